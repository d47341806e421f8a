"""Which figures does a result have? Charts from results; the renderers draw them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakh.planner.explain import PART_WORDS
from lakh.report import text
from lakh.report.charts import Chart, Mark, Series
from lakh.report.results import ClaimComparison, Rehearsal, ScaleResult

if TYPE_CHECKING:
    from lakh.validation.report import ValidationReport

SIZE_LABEL = "accelerators"


def scale_charts(results: Sequence[ScaleResult], claims: Sequence[ClaimComparison] = ()) -> list[Chart]:
    """Curves of one model or several: MFU, scaling efficiency, throughput, and where each step goes."""
    convention = results[0].mfu_convention
    return [
        Chart(
            title="MFU over size",
            x_label=SIZE_LABEL,
            y_label=f"MFU, {convention} [%]",
            series=tuple(_mfu(one) for one in results),
            marks=_marks(claims, "mfu"),
            log_x=True,
        ),
        Chart(
            title=f"Scaling efficiency, {results[0].curve.scaling} scaling",
            x_label=SIZE_LABEL,
            y_label="scaling efficiency [%]",
            series=tuple(_efficiency(one) for one in results),
            marks=_marks(claims, "scaling_efficiency"),
            log_x=True,
        ),
        Chart(
            title="Throughput",
            x_label=SIZE_LABEL,
            y_label="throughput [million token/s]",
            series=tuple(_throughput(one) for one in results),
            log_x=True,
            log_y=True,
        ),
        *(_shares(one) for one in results),
    ]


def _sizes(one: ScaleResult) -> tuple[float, ...]:
    return tuple(float(point.accelerator_count) for point in one.curve.points)


def _labels(one: ScaleResult) -> tuple[str, ...]:
    return tuple(point.candidate.layout.describe() for point in one.curve.points)


def _mfu(one: ScaleResult) -> Series:
    scale = 100.0 * one.mfu_factor
    return Series(
        name=one.model.name,
        x=_sizes(one),
        y=tuple(band.mfu.value * scale for band in one.bands),
        low=tuple(band.mfu.low * scale for band in one.bands),
        high=tuple(band.mfu.high * scale for band in one.bands),
        labels=_labels(one),
    )


def _efficiency(one: ScaleResult) -> Series:
    values = tuple(100.0 * point.scaling_efficiency for point in one.curve.points)
    name = f"{one.model.name}, {one.curve.scaling}, from {one.curve.base_count:,}"
    return Series(name=name, x=_sizes(one), y=values, labels=_labels(one))


def _throughput(one: ScaleResult) -> Series:
    return Series(
        name=one.model.name,
        x=_sizes(one),
        y=tuple(band.tokens_per_s.value / 1e6 for band in one.bands),
        low=tuple(band.tokens_per_s.low / 1e6 for band in one.bands),
        high=tuple(band.tokens_per_s.high / 1e6 for band in one.bands),
        labels=_labels(one),
    )


def _shares(one: ScaleResult) -> Chart:
    """Where the step goes at each size; parts that never reach half a percent are left out."""
    points = one.curve.points
    parts = [name for name in points[0].part_share if max(point.part_share[name] for point in points) >= 0.005]
    return Chart(
        title=f"Where the step goes: {one.model.name}",
        x_label=SIZE_LABEL,
        y_label="share of the step [%]",
        series=tuple(
            Series(
                name=PART_WORDS[part],
                x=_sizes(one),
                y=tuple(100.0 * point.part_share[part] for point in points),
                slot=list(PART_WORDS).index(part),
            )
            for part in parts
        ),
        log_x=True,
        kind="stacked",
    )


def _marks(claims: Sequence[ClaimComparison], quantity: str) -> tuple[Mark, ...]:
    """The claims about one quantity that can be compared, each once."""
    marks: dict[str, Mark] = {}
    for one in claims:
        if one.claim.quantity == quantity and one.verdict != "not-comparable":
            value = text.fact_value(one.claim.value.value, one.claim.value.unit)
            marks[one.claim.name] = Mark(name=f"claim {value}: {one.claim.name}", y=100.0 * one.claim.value.value)
    return tuple(marks.values())


def rehearsal_charts(one: Rehearsal) -> list[Chart]:
    """The curves of all jobs of a rehearsal beside the claims; efficiency in strong and in weak scaling."""
    mfu, efficiency, *others = scale_charts([job.curve for job in one.jobs], one.claims)
    both = [
        replace(_efficiency(curve), slot=index) for index, job in enumerate(one.jobs) for curve in (job.curve, job.weak)
    ]
    return [mfu, replace(efficiency, title="Scaling efficiency, strong and weak", series=tuple(both)), *others]


def validation_charts(one: ValidationReport) -> list[Chart]:
    """Predicted against measured step time, and how errors are spread."""
    timed = [row for row in one.rows if row.relative_error is not None]
    kinds = sorted({row.kind for row in timed})
    series = []
    spread = []
    for kind in kinds:
        rows = [row for row in timed if row.kind == kind]
        series.append(
            Series(
                name=kind,
                x=tuple(row.measured_step_time_s or math.nan for row in rows),
                y=tuple(row.predicted_step_time_s or math.nan for row in rows),
                labels=tuple(f"{row.row_id}: {row.hardware}, {row.layout}" for row in rows),
            )
        )
        errors = sorted(abs(row.relative_error or 0.0) for row in rows)
        spread.append(
            Series(
                name=kind,
                x=tuple(100.0 * error for error in errors),
                y=tuple(100.0 * (index + 1) / len(errors) for index in range(len(errors))),
            )
        )
    return [
        Chart(
            title="Predicted against measured step time",
            x_label="measured step time [s]",
            y_label="predicted step time [s]",
            series=tuple(series),
            log_x=True,
            log_y=True,
            kind="points",
            diagonal=True,
        ),
        Chart(
            title="Share of rows within an error",
            x_label="absolute error of the step time [%]",
            y_label="rows [%]",
            series=tuple(spread),
        ),
    ]
