"""Regenerate `lakh/catalog/calibration.json`: fit, leave out each source and each family, keep the residuals.

Run from a checkout as `python -m lakh.validation.calibrate`; it takes some minutes and always gives the same file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lakh import catalog
from lakh.columns import Array
from lakh.validation.fit import fit, predicted_step_times
from lakh.validation.measurements import Case, read_measurements
from lakh.validation.priors import FAMILY_OF, family_priors, generation_priors
from lakh.validation.report import LeaveOut, group_of, left_out_step_times, summarise

_FEWEST_ROWS = 10
"""A family's own residuals describe its error only from this many rows on."""


def residuals(
    cases: Sequence[Case], in_sample: Array, source_out: Array, hardware_out: Array
) -> dict[str, dict[str, float | int]]:
    """Residuals by kind: those of rows predicted without their own source, and of families never seen."""
    measured = np.array([case.measured_step_time_s for case in cases], dtype=np.float64)
    kinds = np.array([case.kind for case in cases])
    families = np.array([FAMILY_OF.get(case.accelerator.name, "generic") for case in cases])
    result: dict[str, dict[str, float | int]] = {}

    def keep(name: str, mask: Array, predicted: Array) -> None:
        if int(np.sum(mask)) < _FEWEST_ROWS:
            return
        ratio = measured[mask] / predicted[mask]
        result[name] = {
            "row_count": int(np.sum(mask)),
            "median_error": round(float(np.median(np.abs(1.0 / ratio - 1.0))), 4),
            "low": round(float(np.quantile(ratio, 0.05)), 4),
            "high": round(float(np.quantile(ratio, 0.95)), 4),
        }

    for kind in ("dense", "moe"):
        of_kind = kinds == kind
        for family in sorted(set(families)):
            keep(f"{family}/{kind}", of_kind & (families == family), source_out)
        keep(f"unseen-hardware/{kind}", of_kind, hardware_out)
        keep(kind, of_kind, source_out)
    keep("all", np.ones(len(cases), dtype=bool), source_out)
    return result


def _say(done: int, total: int) -> None:
    sys.stderr.write(f"\r{done}/{total} refits")
    sys.stderr.flush()


def _rounded(values: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {key: float(f"{value:.6g}") for key, value in inner.items()} for name, inner in values.items()}


def calibrate(path: Path) -> dict[str, Any]:
    """The whole content of calibration.json for the measurements at `path`."""
    cases = [entry for entry in read_measurements(path) if isinstance(entry, Case) and entry.measured_step_time_s]
    full = fit(cases)
    in_sample = predicted_step_times(cases, full)
    measured = np.array([case.measured_step_time_s for case in cases], dtype=np.float64)
    kinds = np.array([case.kind for case in cases])
    out: dict[LeaveOut, Array] = {}
    modes: tuple[LeaveOut, ...] = ("source", "hardware")
    for mode in modes:
        out[mode] = left_out_step_times(cases, cases, mode, progress=_say)

    def errors(predicted: Array) -> dict[str, dict[str, float]]:
        found = {}
        for kind in ("dense", "moe"):
            summary = summarise(kind, list((predicted / measured - 1.0)[kinds == kind]))
            found[kind] = {"median": round(summary.median_error, 4), "p90": round(summary.p90_error, 4)}
        return found

    return {
        "about": {
            "generated_by": "python -m lakh.validation.calibrate",
            "data": "lakh/catalog/measurements/training-measured.csv",
            "row_count": len(cases),
            "source_count": len({group_of(case, "source") for case in cases}),
            "largest_accelerator_count": max(case.layout.accelerator_count for case in cases),
            "free_parameter_count": len(full.free),
            "method": (
                "least squares on log(predicted/measured), soft L1 beyond 5 %, rows that repeat a configuration share "
                "their weight, each free parameter pulled to its prior (lakh.validation.priors)"
            ),
            "error": errors(in_sample),
            "leave_one_source_out_error": errors(out["source"]),
            "leave_one_hardware_out_error": errors(out["hardware"]),
        },
        "family_of": dict(FAMILY_OF),
        "families": _rounded(full.families),
        "generations": _rounded(full.generations),
        "fixed": {
            "families": {
                name: sorted(key for key, prior in family_priors(name).items() if prior.spread == 0.0)
                for name in sorted(full.families)
            },
            "generations": {
                name: sorted(key for key, prior in generation_priors(name).items() if prior.spread == 0.0)
                for name in sorted(full.generations)
            },
        },
        "residuals": residuals(cases, in_sample, out["source"], out["hardware"]),
    }


def main() -> None:
    """Write the calibration beside the catalogue."""
    target = Path(catalog.__file__).with_name("calibration.json")
    data = calibrate(Path(catalog.training_measurements_path()))
    target.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    sys.stderr.write(f"\nwrote {target.name}: {json.dumps(data['about'], indent=1)}\n")


if __name__ == "__main__":
    main()
