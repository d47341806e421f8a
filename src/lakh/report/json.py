"""How does a result become JSON? Dataclasses to objects, base units kept, nothing that JSON cannot say."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any


def jsonable(value: Any) -> Any:
    """Plain JSON values: dataclasses by field, tuples as lists, infinity and NaN as null (not known)."""
    if isinstance(value, bool) or value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, datetime.date | Path):
        return str(value)
    if hasattr(value, "item"):  # a numpy scalar
        return jsonable(value.item())
    raise TypeError(f"no JSON for {type(value).__name__}")


def document(command: str, *, inputs: Any, result: Any, evidence: Any) -> dict[str, Any]:
    """The one object that `--json` prints."""
    return {
        "schema": f"lakh.{command}/1",
        "inputs": jsonable(inputs),
        "result": jsonable(result),
        "evidence": jsonable(evidence),
    }


def dumps(data: Any) -> str:
    """JSON text; refuses what JSON cannot hold rather than write NaN."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
