"""Which efficiencies explain the measurements? Least squares over families and generations, with priors.

Run as `python -m lakh.validation.fit` to regenerate `lakh/catalog/calibration.json` from the measurements that
ship with Lakh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from lakh.columns import Array
from lakh.perf.system import DeviceInput
from lakh.validation.measurements import Case
from lakh.validation.prediction import Batch, batch_of, evaluate_batch, with_stated_recompute
from lakh.validation.priors import FAMILY_OF, GENERATIONS, Prior, family_priors, generation_priors

_ERROR_SCALE = 0.05
"""Relative error at which a row starts to count as an outlier (soft L1): the published noise floor is 3 to 10 %."""

Parameters = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeParameter:
    """One number that the fit may move."""

    section: str
    """"family" or "generation"."""
    owner: str
    name: str
    prior: Prior

    def to_free(self, value: float) -> float:
        """The unbounded coordinate of a value: log for positive numbers, logit for fractions."""
        if self.prior.fraction:
            return float(np.log(value / (1.0 - value)))
        return float(np.log(value))

    def from_free(self, free: float) -> float:
        return float(1.0 / (1.0 + np.exp(-free))) if self.prior.fraction else float(np.exp(free))


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """Parameters found, and how many were free."""

    families: Parameters
    generations: Parameters
    free: tuple[FreeParameter, ...]


def start_parameters() -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Every parameter at its prior."""
    names = sorted(set(FAMILY_OF.values()) | {"generic"})
    families = {name: {key: prior.value for key, prior in family_priors(name).items()} for name in names}
    generations = {name: {key: prior.value for key, prior in generation_priors(name).items()} for name in GENERATIONS}
    return families, generations


def free_parameters(cases: Sequence[Case]) -> tuple[FreeParameter, ...]:
    """What these rows can tell: the free parameters of the families and generations that occur in them."""
    result = []
    for family in sorted({FAMILY_OF.get(case.accelerator.name, "generic") for case in cases}):
        for name, prior in family_priors(family).items():
            if prior.spread > 0.0:
                result.append(FreeParameter(section="family", owner=family, name=name, prior=prior))
    for generation in sorted({case.generation for case in cases}):
        for name, prior in generation_priors(generation).items():
            if prior.spread > 0.0:
                result.append(FreeParameter(section="generation", owner=generation, name=name, prior=prior))
    return tuple(result)


class _Columns:
    """Writes a parameter vector into the columns of a batch without rebuilding it."""

    def __init__(self, batch: Batch, free: Sequence[FreeParameter]) -> None:
        self._batch = batch
        families = np.array(batch.families)
        generations = np.array([case.generation for case in batch.cases])
        self._targets: list[tuple[str, str, NDArray[np.bool_]]] = []
        device = {field.name for field in fields(DeviceInput)}
        for parameter in free:
            if parameter.section == "family":
                mask = families == parameter.owner
                place = "device" if parameter.name in device else "network"
            else:
                stated = np.array([parameter.name in case.switches for case in batch.cases])
                mask = (generations == parameter.owner) & ~stated
                place = "software"
            self._targets.append((place, parameter.name, mask))

    @property
    def rows(self) -> list[NDArray[np.bool_]]:
        """For each free parameter, the rows that it can change."""
        return [mask for _, _, mask in self._targets]

    def filled(self, values: Sequence[float]) -> Batch:
        changed: dict[str, dict[str, Array]] = {"device": {}, "network": {}, "software": {}}
        now: dict[str, Any] = {
            "device": self._batch.devices,
            "network": self._batch.networks,
            "software": self._batch.software,
        }
        for (place, name, mask), value in zip(self._targets, values, strict=True):
            column = changed[place].get(name)
            if column is None:
                column = np.array(getattr(now[place], name), dtype=np.float64)
            changed[place][name] = np.where(mask, value, column)
        return replace(
            self._batch,
            devices=replace(self._batch.devices, **changed["device"]),
            networks=replace(self._batch.networks, **changed["network"]),
            software=replace(self._batch.software, **changed["software"]),
        )


def fit(cases: Sequence[Case], *, most_evaluations: int = 60) -> Fit:
    """Fit free parameters to the measured step times of `cases`.

    Residuals are log(predicted/measured) over 5 %, soft-L1 so that one odd row cannot bend a family, weighted by
    how the row was read and by how many rows repeat its configuration; each free parameter adds its distance to
    its prior.
    """
    measured = [case for case in cases if case.measured_step_time_s]
    families, generations = start_parameters()
    batch = with_stated_recompute(batch_of(measured, families, FAMILY_OF, generations))
    free = free_parameters(measured)
    columns = _Columns(batch, free)
    target = np.log(np.array([case.measured_step_time_s for case in measured], dtype=np.float64))
    weight = np.sqrt(row_weights(measured))
    start = np.array([parameter.to_free(parameter.prior.value) for parameter in free])
    spread = np.array([parameter.prior.spread for parameter in free])

    def residuals(free_values: NDArray[np.float64]) -> NDArray[np.float64]:
        values = [p.from_free(v) for p, v in zip(free, free_values, strict=True)]
        predicted = np.log(evaluate_batch(columns.filled(values)).step_time_s)
        error = (predicted - target) / _ERROR_SCALE
        soft = np.sign(error) * np.sqrt(2.0 * (np.sqrt(1.0 + error * error) - 1.0))
        return np.concatenate([weight * soft, (free_values - start) / spread])

    owner_rows = columns.rows
    names = sorted({(parameter.section, parameter.name) for parameter in free})
    step = 1e-5

    def jacobian(free_values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A row belongs to one family and one generation, so one parameter of all of them is moved at once."""
        base = residuals(free_values)[: len(measured)]
        result = np.zeros((len(measured) + len(free), len(free)))
        for name in names:
            moved = [i for i, parameter in enumerate(free) if (parameter.section, parameter.name) == name]
            shifted = free_values.copy()
            shifted[moved] += step
            slope = (residuals(shifted)[: len(measured)] - base) / step
            for i in moved:
                result[: len(measured), i] = np.where(owner_rows[i], slope, 0.0)
        result[len(measured) :, :] = np.diag(1.0 / spread)
        return result

    found = least_squares(residuals, start, jac=jacobian, method="lm", x_scale=spread, max_nfev=most_evaluations)
    for parameter, value in zip(free, found.x, strict=True):
        owner = families if parameter.section == "family" else generations
        owner[parameter.owner][parameter.name] = parameter.from_free(float(value))
    return Fit(families=families, generations=generations, free=free)


def row_weights(cases: Sequence[Case]) -> NDArray[np.float64]:
    """Trust of each row over the square root of the number of rows that repeat its configuration.

    A recipe measured again in ten containers, or one run at nine sizes, is not ten or nine independent facts.
    """
    keys = [(case.source.split("-2")[0], case.model.name, case.hardware, case.layout.precision) for case in cases]
    counts = {key: keys.count(key) for key in set(keys)}
    return np.array([case.trust / np.sqrt(counts[key]) for case, key in zip(cases, keys, strict=True)])


def predicted_step_times(cases: Sequence[Case], fitted: Fit) -> Array:
    """Step times of `cases` under fitted parameters [s]."""
    batch = with_stated_recompute(batch_of(cases, fitted.families, FAMILY_OF, fitted.generations))
    return evaluate_batch(batch).step_time_s
