"""How does a measurement narrow an unknown? measurements.yaml, its schema, and the way into `MeasuredValue`.

    name: first S5000 node
    source: lakh bench on node 17, 2026-12-01
    unknowns:
      gemm-efficiency-bf16: 0.79 .. 0.83
      protocol-efficiency: {value: 0.81, low: 0.78, high: 0.83, source: 64 nodes, 1 GiB all-gather}
      recovery-policy: hot-spares

One value pins an unknown; a range replaces its assumed one. `lakh bench` will write such files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lakh.catalog import FactError, read_fact
from lakh.claims.effective_time import POLICY_ODDS
from lakh.claims.unknowns import MeasuredValue
from lakh.errors import list_names, nearest_hint
from lakh.spec.document import Location, read_document
from lakh.spec.door import Checks, DoorModel, validate

WHAT = "a file of measurements"

UNITS: Mapping[str, str] = MappingProxyType(
    {
        "card-peak": "flop/second",
        "gemm-efficiency-bf16": "ratio",
        "gemm-efficiency-fp8": "ratio",
        "gemm-half-size": "1",
        "attention-efficiency": "ratio",
        "memory-efficiency": "ratio",
        "scale-up-efficiency": "1",
        "host-speed": "1",
        "overlap-tp": "ratio",
        "overlap-cp": "ratio",
        "overlap-pp": "ratio",
        "overlap-dp": "ratio",
        "overlap-ep": "ratio",
        "card-network-bandwidth": "byte/second",
        "protocol-efficiency": "ratio",
        "oversubscription-leaf": "1",
        "oversubscription-spine": "1",
        "network-step-latency": "second",
        "sites": "choice",
        "long-haul-bandwidth": "byte/second",
        "long-haul-latency": "second",
        "jitter-scale": "ratio",
        "slow-node-share": "ratio",
        "slow-node-speed": "ratio",
        "slow-node-removal": "second",
        "step-model-error": "1",
        "scaling-model-error": "1",
        "failure-rate": "1",
        "failure-growth": "1",
        "luck-of-the-run": "1",
        "recovery-policy": "choice",
        "detection-time": "1",
        "restart-time": "1",
        "slow-down-share": "1",
        "goodput-model-error": "1",
        "storage-write": "byte/second",
        "storage-read": "byte/second",
    }
)
"""Every unknown that can be measured, with the unit it is written in."""

CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"sites": ("several sites", "one fabric"), "recovery-policy": tuple(name for name, _ in POLICY_ODDS)}
)

_AT_LEAST_ONE = ("oversubscription-leaf", "oversubscription-spine")


class MeasurementDoor(DoorModel):
    """measurements.yaml: what was measured of a cluster's unknowns."""

    name: str
    source: str
    unknowns: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurements:
    """One file of measurements."""

    name: str
    source: str
    values: tuple[MeasuredValue, ...]


def load_measurements(path: str | Path) -> Measurements:
    """Read a file of measurements.

    Raises:
        SpecError: every problem with file, line and field
    """
    document = read_document(path, WHAT)
    door = validate(MeasurementDoor, document)
    checks = Checks(document)
    values = []
    for name, raw in door.unknowns.items():
        location: Location = ("unknowns", name)
        if name not in UNITS:
            names = tuple(UNITS)
            checks.refuse(location, list_names(names, most=40), found=name, hint=nearest_hint(name, names))
            continue
        value = _choice(name, raw, door.source, checks, location) if name in CHOICES else None
        if name not in CHOICES:
            value = _number(name, raw, door.source, checks, location)
        if value is not None:
            values.append(value)
    checks.finish()
    return Measurements(name=door.name, source=door.source, values=tuple(values))


def _choice(name: str, raw: object, source: str, checks: Checks, location: Location) -> MeasuredValue | None:
    labels = CHOICES[name]
    if raw not in labels:
        checks.refuse(location, list_names(labels), found=raw, hint=nearest_hint(raw, labels))
        return None
    value = float(labels.index(str(raw)))
    return MeasuredValue(unknown=name, value=value, low=value, high=value, source=source)


def _number(name: str, raw: object, source: str, checks: Checks, location: Location) -> MeasuredValue | None:
    unit = UNITS[name]
    try:
        fact = read_fact(raw, unit, status="measured", source=source)
    except FactError as error:
        where: Location = (*location, *error.key.split(".")) if error.key else location
        checks.refuse(where, error.accepted, found=error.found, hint=error.hint)
        return None
    least = 1.0 if name in _AT_LEAST_ONE else 0.0
    most = 1.0 if unit == "ratio" else float("inf")
    if not least <= fact.low <= fact.high <= most or (unit != "ratio" and fact.low <= 0.0 and name != "failure-growth"):
        bounds = "a ratio from 0 to 1" if unit == "ratio" else "1 or more" if least else "a value above 0"
        checks.refuse(location, bounds, found=raw)
        return None
    return MeasuredValue(unknown=name, value=fact.value, low=fact.low, high=fact.high, source=fact.source)


def measurement_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of measurements.yaml, for editors."""
    scalar: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "number"}]}
    long_form = {
        "type": "object",
        "properties": {
            "value": scalar,
            "low": scalar,
            "high": scalar,
            "source": {"type": "string"},
            "note": {"type": "string"},
        },
        "additionalProperties": False,
    }
    properties: dict[str, Any] = {
        name: {"enum": list(CHOICES[name])}
        if name in CHOICES
        else {"description": f"[{unit}] a value, or a range 'LOW .. HIGH'", "anyOf": [*scalar["anyOf"], long_form]}
        for name, unit in UNITS.items()
    }
    schema = MeasurementDoor.model_json_schema()
    schema["properties"]["unknowns"] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:lakh:schema:measurements",
        **schema,
        "title": "measurements.yaml",
    }
