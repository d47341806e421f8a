"""How much is done, how much is left, and is a module ready? Numbers that the CLI, the JSON and the report share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from lakh.port.codes import CODES
from lakh.port.findings import Finding, Use
from lakh.port.maps import STATUSES
from lakh.port.project import Port

Verdict = Literal["nothing to port", "ready to build", "review needed", "work needed", "blocked"]
VERDICT_MEANING: dict[Verdict, str] = {
    "nothing to port": "no use of CUDA was found",
    "ready to build": "every use has a MUSA name that is seen in MUSA code",
    "review needed": "every use has a MUSA name; some are spellings from a table, or a person has to look at a hazard",
    "work needed": "some uses have no MUSA name or need a rewrite; the estimate says how many lines",
    "blocked": "a feature that MUSA does not offer is used; the module needs another design there",
}
_BLOCKERS = frozenset({"LP130", "LP131", "LP211"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleSummary:
    """One top-level folder, or the whole."""

    name: str
    file_count: int
    line_count: int
    use_count: int
    use_count_by_status: dict[str, int]
    changed_line_count: int
    finding_count_by_severity: dict[str, int]
    effort_lines: float
    """Lines that a person has to look at or write; an estimate from the effort of each finding's code."""
    verdict: Verdict


def effort_lines(findings: Iterable[Finding]) -> float:
    """Sum of the effort of each finding; repeats of one code and name in one file count a tenth after the first."""
    total = 0.0
    seen: Counter[tuple[str, str, str | None]] = Counter()
    for row in findings:
        key = (row.path, row.code, row.name)
        seen[key] += 1
        share = 1.0 if seen[key] == 1 else 0.1
        total += CODES[row.code].effort_lines * share * (0.25 if row.severity == "note" else 1.0)
    return total


def verdict(findings: list[Finding], uses: int) -> Verdict:
    """The readiness of a module."""
    if any(row.code in _BLOCKERS and row.severity == "error" for row in findings):
        return "blocked"
    if any(row.severity == "error" for row in findings):
        return "work needed"
    if any(row.severity == "warning" for row in findings):
        return "review needed"
    return "ready to build" if uses else "nothing to port"


def module_of(path: str) -> str:
    """The top-level folder of a path, "." for files in the root."""
    head, slash, _ = path.partition("/")
    return head if slash else "."


def summarise(port: Port) -> tuple[ModuleSummary, list[ModuleSummary]]:
    """The whole and each module, in order."""
    findings: dict[str, list[Finding]] = {}
    for row in port.findings:
        findings.setdefault(module_of(row.path), []).append(row)
    names = sorted({module_of(file.source.path) for file in port.files if file.source.language != "other"})
    modules = [_one(port, name, findings.get(name, [])) for name in names]
    return _one(port, None, list(port.findings)), modules


def _one(port: Port, name: str | None, findings: list[Finding]) -> ModuleSummary:
    files = [
        file
        for file in port.files
        if file.source.language != "other" and (name is None or module_of(file.source.path) == name)
    ]
    uses = [use for file in files for use in file.result.uses]
    counted = Counter(use.status for use in uses)
    severities = Counter(row.severity for row in findings)
    return ModuleSummary(
        name=name or "all",
        file_count=len(files),
        line_count=sum(file.source.line_count for file in files),
        use_count=len(uses),
        use_count_by_status={status: counted[status] for status in STATUSES},
        changed_line_count=sum(file.result.changed_line_count for file in files),
        finding_count_by_severity={severity: severities[severity] for severity in ("error", "warning", "note")},
        effort_lines=round(effort_lines(findings), 1),
        verdict=verdict(findings, len(uses)),
    )


def use_json(use: Use) -> dict[str, Any]:
    """One use as JSON."""
    return {
        "name": use.name,
        "musa": use.musa,
        "kind": use.kind,
        "status": use.status,
        "path": use.path,
        "line": use.line,
        "reason": use.reason,
    }


def finding_json(row: Finding) -> dict[str, Any]:
    """One finding as JSON."""
    return {
        "code": row.code,
        "severity": row.severity,
        "path": row.path,
        "line": row.line,
        "column": row.column,
        "message": row.message,
        "suggestion": row.suggestion,
        "name": row.name,
        "status": row.status,
    }


def module_json(row: ModuleSummary) -> dict[str, Any]:
    """One summary as JSON."""
    return {name: getattr(row, name) for name in ModuleSummary.__dataclass_fields__}


def sarif(findings: Iterable[Finding], *, version: str) -> dict[str, Any]:
    """SARIF 2.1.0, which editors and code hosts show beside the code."""
    rows = list(findings)
    codes = sorted({row.code for row in rows})
    rules = [
        {
            "id": code,
            "shortDescription": {"text": CODES[code].title},
            "fullDescription": {"text": CODES[code].explanation},
            "help": {"text": CODES[code].suggestion},
            "defaultConfiguration": {"level": CODES[code].severity},
        }
        for code in codes
    ]
    results = [
        {
            "ruleId": row.code,
            "ruleIndex": codes.index(row.code),
            "level": row.severity,
            "message": {"text": f"{row.message} {row.suggestion}".strip()},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(row.path), "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": row.line, "startColumn": row.column},
                    }
                }
            ],
            "partialFingerprints": {"lakh/v1": fingerprint(row)},
        }
        for row in rows
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "lakh port", "version": version, "rules": rules}}, "results": results}],
    }


def fingerprint(row: Finding) -> str:
    """What stays the same about a finding while lines move: its file, code, name and message."""
    return f"{row.path}:{row.code}:{row.name or row.message}"


def _uri(path: str) -> str:
    return quote(path)
