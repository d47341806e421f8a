"""What may a file hold? JSON Schemas for editors, generated from the very schemas that check the files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lakh.errors import UnknownNameError
from lakh.spec.cluster_file import ClusterDoor
from lakh.spec.door import DoorModel
from lakh.spec.job_file import JobDoor
from lakh.spec.scenario_file import ScenarioDoor

_DOORS: Mapping[str, type[DoorModel]] = MappingProxyType(
    {"cluster": ClusterDoor, "job": JobDoor, "scenario": ScenarioDoor}
)

FILE_KINDS: tuple[str, ...] = tuple(_DOORS)


def schema(kind: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one kind of file: "cluster", "job" or "scenario".

    Raises:
        UnknownNameError: another kind was named
    """
    if kind not in _DOORS:
        raise UnknownNameError("schema", kind, FILE_KINDS)
    generated = _DOORS[kind].model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:lakh:schema:{kind}",
        **generated,
        "title": f"{kind}.yaml",
    }
