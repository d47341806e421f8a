"""Does a ported project slide back? Findings that a baseline does not hold, for CI and pre-commit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from lakh.errors import Problem, RequestError, SpecError
from lakh.port.findings import Finding
from lakh.port.summary import fingerprint

SCHEMA = "lakh.port.baseline/1"


def write_baseline(path: Path, findings: Iterable[Finding]) -> int:
    """Write the fingerprints of all findings that are no notes; the number of them."""
    counted = Counter(fingerprint(row) for row in findings if row.severity != "note")
    body = {"schema": SCHEMA, "findings": dict(sorted(counted.items()))}
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    return counted.total()


def new_findings(path: Path, findings: Iterable[Finding]) -> list[Finding]:
    """Errors and warnings beyond those of the baseline.

    Raises:
        RequestError: there is no such file
        SpecError: it is no baseline
    """
    if not path.is_file():
        hint = "Write one with `lakh port assess PATH --write-baseline FILE`."
        raise RequestError(Problem(where="--baseline", found=str(path), accepted="a baseline file", hint=hint))
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["schema"] != SCHEMA:
            raise ValueError(body["schema"])
        left = Counter({str(key): int(count) for key, count in body["findings"].items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(Problem(where=str(path), found=str(error), accepted=f"a file of schema {SCHEMA}")) from error
    fresh = []
    for row in findings:
        if row.severity == "note":
            continue
        key = fingerprint(row)
        if left[key] > 0:
            left[key] -= 1
        else:
            fresh.append(row)
    return fresh
