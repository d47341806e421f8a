"""How close to its peak does each accelerator come, and what does each framework generation add?

The numbers are fitted to published measurements by `lakh.validation.fit` and live in one generated file,
calibration.json, which says from which data, with how many parameters and with which leave-one-source-out error.
There is no factor per row, per model or per source: only accelerator families and framework generations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from lakh.errors import UnknownNameError

Values = Mapping[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Residual:
    """What validation left over for one kind of prediction: the error bar of the next one."""

    row_count: int
    median_error: float
    """Median of |predicted/measured - 1|."""
    low: float
    """5th percentile of measured/predicted: the step was at least this share of the prediction."""
    high: float
    """95th percentile of measured/predicted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The fitted numbers and the residuals they leave."""

    families: Mapping[str, Values]
    """Family name to device and network parameters (fields of DeviceInput and NetworkInput)."""
    family_of: Mapping[str, str]
    """Accelerator name to family; an accelerator not listed has never been validated."""
    generations: Mapping[str, Values]
    """Framework generation to fields of SoftwareInput."""
    residuals: Mapping[str, Residual]
    """By kind, such as "H100/dense"; "all" is the fallback."""
    about: Mapping[str, Any]
    """Data, method, parameter count and leave-one-out errors of the fit."""

    def family_values(self, accelerator_name: str) -> tuple[str, Values, bool]:
        """Family, its parameters, and whether the accelerator was among the validated ones."""
        family = self.family_of.get(accelerator_name)
        if family is None:
            return "generic", self.families["generic"], False
        return family, self.families[family], True

    def generation_values(self, name: str) -> Values:
        if name not in self.generations:
            raise UnknownNameError("framework generation", name, sorted(self.generations))
        return self.generations[name]


def calibration_from(data: Mapping[str, Any]) -> Calibration:
    """Read the structure of calibration.json."""
    return Calibration(
        families=data["families"],
        family_of=data["family_of"],
        generations=data["generations"],
        residuals={kind: Residual(**values) for kind, values in data["residuals"].items()},
        about=data["about"],
    )


@cache
def load_calibration() -> Calibration:
    """The calibration that ships with Lakh."""
    text = resources.files("lakh.catalog").joinpath("calibration.json").read_text(encoding="utf-8")
    return calibration_from(json.loads(text))
