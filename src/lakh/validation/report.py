"""How far are predictions from measurements? Errors per row, per kind, source and hardware; and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lakh import catalog
from lakh.catalog.calibration import Calibration, load_calibration
from lakh.columns import Array
from lakh.perf.memory import MemoryTable
from lakh.validation.fit import Fit, fit
from lakh.validation.measurements import Case, Skipped, read_measurements
from lakh.validation.prediction import batch_of, evaluate_batch, with_stated_recompute
from lakh.validation.priors import FAMILY_OF

LeaveOut = Literal["source", "hardware"]
LEAVE_OUTS: tuple[str, ...] = get_args(LeaveOut)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowResult:
    """One row of a validation: what was measured, what is predicted, or why not."""

    row_id: str
    kind: str
    source: str
    hardware: str
    measured_step_time_s: float | None
    predicted_step_time_s: float | None
    relative_error: float | None
    """Predicted over measured, minus one."""
    measured_memory_gib: float | None
    predicted_memory_gib: float | None
    fits: bool | None
    accelerator_count: int | None
    layout: str
    assumptions: tuple[str, ...]
    skipped_reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorSummary:
    """Errors of a group of rows."""

    group: str
    row_count: int
    median_error: float
    """Median of the absolute relative error."""
    p90_error: float
    median_bias: float
    """Median of the signed relative error: above 0 the model is slow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingSeries:
    """One run at several sizes: how well the ratio between sizes is predicted."""

    name: str
    row_ids: tuple[str, ...]
    ratio_errors: tuple[float, ...]
    """For each size but the smallest: predicted over measured ratio of step times, minus one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationReport:
    """Everything `lakh validate` shows."""

    rows: tuple[RowResult, ...]
    by_kind: tuple[ErrorSummary, ...]
    by_source: tuple[ErrorSummary, ...]
    by_hardware: tuple[ErrorSummary, ...]
    memory: ErrorSummary | None
    scaling: tuple[ScalingSeries, ...]
    scaling_median_error: float | None
    wrongly_out_of_memory: tuple[str, ...]
    """Rows that ran and are called out of memory by more than 3 %."""
    predictable_share: float
    """Predicted rows over rows with a full layout and a measured time."""
    left_out: LeaveOut | None


def summarise(group: str, errors: Sequence[float]) -> ErrorSummary:
    """Median, 90th percentile and bias of signed relative errors."""
    values = np.asarray(errors)
    return ErrorSummary(
        group=group,
        row_count=len(values),
        median_error=float(np.median(np.abs(values))),
        p90_error=float(np.quantile(np.abs(values), 0.9)),
        median_bias=float(np.median(values)),
    )


def validate(
    path: str | Path | None = None,
    *,
    leave_out: LeaveOut | None = None,
    calibration: Calibration | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ValidationReport:
    """Predict every row of a measurements CSV and compare.

    Args:
        path: a CSV in the columns of the shipped measurements; those, unless given
        leave_out: refit without each source (or hardware family) in turn and predict what was left out; the rows
            to fit on are then those of the shipped measurements that are not left out
        progress: called with (done, total) while refitting

    Raises:
        SpecError: the file is not a readable CSV of measurements
    """
    calibration = calibration or load_calibration()
    entries = read_measurements(path or catalog.training_measurements_path())
    cases = [entry for entry in entries if isinstance(entry, Case)]
    step_s, memory = _predict(cases, calibration.families, calibration.family_of, calibration.generations)
    if leave_out is not None:
        known = [entry for entry in read_measurements(catalog.training_measurements_path()) if isinstance(entry, Case)]
        step_s = left_out_step_times(cases, known, leave_out, progress=progress)
    return _report(entries, cases, step_s, memory, leave_out)


def _predict(
    cases: Sequence[Case],
    families: Mapping[str, Mapping[str, float]],
    family_of: Mapping[str, str],
    generations: Mapping[str, Mapping[str, float]],
) -> tuple[Array, MemoryTable | None]:
    if not cases:
        return np.zeros(0), None
    table = evaluate_batch(with_stated_recompute(batch_of(cases, families, family_of, generations)))
    return table.step_time_s, table.memory


def group_of(case: Case, leave_out: LeaveOut) -> str:
    """What a case is left out with: its source, or its accelerator's family."""
    return case.source if leave_out == "source" else FAMILY_OF.get(case.accelerator.name, case.accelerator.name)


def left_out_step_times(
    cases: Sequence[Case],
    known: Sequence[Case],
    leave_out: LeaveOut,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """Step times of `cases`, each under a fit to those `known` rows that are not of its source or hardware."""
    groups = sorted({group_of(case, leave_out) for case in cases})
    predicted = np.zeros(len(cases))
    for done, group in enumerate(groups):
        if progress:
            progress(done, len(groups))
        index = [i for i, case in enumerate(cases) if group_of(case, leave_out) == group]
        refit: Fit = fit([case for case in known if group_of(case, leave_out) != group], most_evaluations=8)
        step_s, _ = _predict([cases[i] for i in index], refit.families, FAMILY_OF, refit.generations)
        predicted[index] = step_s
    if progress:
        progress(len(groups), len(groups))
    return predicted


def _report(
    entries: Sequence[Case | Skipped],
    cases: Sequence[Case],
    step_s: Array,
    memory: MemoryTable | None,
    leave_out: LeaveOut | None,
) -> ValidationReport:
    results: list[RowResult] = []
    position = 0
    for entry in entries:
        if isinstance(entry, Skipped):
            results.append(_skipped_row(entry))
            continue
        assert memory is not None
        results.append(_case_row(entry, float(step_s[position]), memory, position))
        position += 1
    timed = [row for row in results if row.relative_error is not None]
    series = scaling_series(cases, step_s)
    ratio_errors = [abs(error) for one in series for error in one.ratio_errors]
    memory_errors = [
        row.predicted_memory_gib / row.measured_memory_gib - 1.0
        for row in results
        if row.measured_memory_gib and row.predicted_memory_gib
    ]
    out_of_memory = [
        case.row_id
        for i, case in enumerate(cases)
        if memory is not None
        and case.measured_step_time_s
        and memory.required_bytes[i] > 1.03 * memory.capacity_bytes[i]
    ]
    full = [row for row in results if row.measured_step_time_s and not _lacks_layout(row)]
    return ValidationReport(
        rows=tuple(results),
        by_kind=_grouped(timed, lambda row: row.kind),
        by_source=_grouped(timed, lambda row: row.source),
        by_hardware=_grouped(timed, lambda row: row.hardware),
        memory=summarise("memory", memory_errors) if memory_errors else None,
        scaling=series,
        scaling_median_error=float(np.median(ratio_errors)) if ratio_errors else None,
        wrongly_out_of_memory=tuple(out_of_memory),
        predictable_share=len(timed) / len(full) if full else 0.0,
        left_out=leave_out,
    )


def _lacks_layout(row: RowResult) -> bool:
    reason = row.skipped_reason or ""
    return reason.startswith(("not a full layout", "the model is not named"))


def _skipped_row(entry: Skipped) -> RowResult:
    return RowResult(
        row_id=entry.row_id,
        kind=entry.kind,
        source=entry.source,
        hardware=entry.hardware,
        measured_step_time_s=entry.measured_step_time_s,
        predicted_step_time_s=None,
        relative_error=None,
        measured_memory_gib=None,
        predicted_memory_gib=None,
        fits=None,
        accelerator_count=None,
        layout="",
        assumptions=(),
        skipped_reason=entry.reason,
    )


def _case_row(case: Case, step_s: float, memory: MemoryTable, position: int) -> RowResult:
    # What the device reports includes the process's own share; what the framework reports does not.
    by_device = "smi" in case.memory_kind or "device" in case.memory_kind
    held = memory.device_bytes if by_device else memory.allocated_bytes
    measured = case.measured_step_time_s
    return RowResult(
        row_id=case.row_id,
        kind=case.kind,
        source=case.source,
        hardware=case.hardware,
        measured_step_time_s=measured,
        predicted_step_time_s=step_s,
        relative_error=step_s / measured - 1.0 if measured else None,
        measured_memory_gib=case.measured_memory_gib,
        predicted_memory_gib=float(held[position]) / 2**30,
        fits=bool(memory.fits[position]),
        accelerator_count=case.layout.accelerator_count,
        layout=case.layout.describe(),
        assumptions=case.assumptions,
        skipped_reason=None,
    )


def _grouped(rows: Sequence[RowResult], key: Callable[[RowResult], str]) -> tuple[ErrorSummary, ...]:
    groups: dict[str, list[float]] = {}
    for row in rows:
        assert row.relative_error is not None
        groups.setdefault(key(row), []).append(row.relative_error)
    return tuple(summarise(group, errors) for group, errors in sorted(groups.items()))


def scaling_series(cases: Sequence[Case], step_s: Array) -> tuple[ScalingSeries, ...]:
    """Runs that differ only in the number of accelerators (dp and global batch), three sizes or more.

    Weak scaling (batch grows with accelerators) and strong scaling (fixed batch) are separate series. The error of
    a size is that of its step time over the smallest size's.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, case in enumerate(cases):
        if not case.measured_step_time_s:
            continue
        one = case.layout
        per_replica = case.global_batch_sequences / one.dp
        base = (
            case.source, case.model.name, case.hardware, case.generation, case.sequence_length, one.precision, one.tp,
            one.cp, one.pp, one.vpp, one.ep, one.etp, one.micro_batch, one.recompute, one.sharding, case.published,
        )  # fmt: skip
        groups.setdefault((*base, "weak", per_replica), []).append(i)
        groups.setdefault((*base, "strong", case.global_batch_sequences), []).append(i)
    series = []
    for key, rows in groups.items():
        rows = sorted(rows, key=lambda i: cases[i].layout.accelerator_count)
        sizes = [cases[i].layout.accelerator_count for i in rows]
        if len(set(sizes)) < 3 or len(set(sizes)) != len(sizes):
            continue
        first = rows[0]
        errors = []
        for i in rows[1:]:
            measured = (cases[i].measured_step_time_s or 1.0) / (cases[first].measured_step_time_s or 1.0)
            errors.append(float(step_s[i] / step_s[first] / measured - 1.0))
        name = (
            f"{cases[first].source} {cases[first].model.name} {cases[first].hardware} {cases[first].layout.precision}"
        )
        series.append(
            ScalingSeries(
                name=f"{name} {key[-2]} {sizes[0]}..{sizes[-1]}",
                row_ids=tuple(cases[i].row_id for i in rows),
                ratio_errors=tuple(errors),
            )
        )
    return tuple(series)
