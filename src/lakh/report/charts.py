"""What does a figure show? Series over an axis with bands and marks; drawn as SVG or by plotly, rows kept beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lakh.report.tables import Column, Table, number, table

PALETTE: tuple[str, ...] = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#F0E442", "#882255", "#44AA99",
)  # fmt: skip
"""Colours that people with any colour vision tell apart: M. Okabe, K. Ito, Color Universal Design, 2008; the last two
from P. Tol, Colour Schemes, 2021."""

DASHES: tuple[str, ...] = ("solid", "dash", "dot", "dashdot")
SYMBOLS: tuple[str, ...] = ("circle", "square", "diamond", "triangle-up")
"""A second way to tell series apart, for print without colour."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Points of one thing; `low` and `high` are its band, empty where there is none."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    """Text of each point, shown when it is pointed at."""
    slot: int | None = None
    """Position in the palette; that of the series in its chart unless given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A level to compare with, such as a claim."""

    name: str
    y: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """One figure. Axis labels carry the unit; values are in that unit."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    log_x: bool = False
    log_y: bool = False
    kind: Literal["lines", "points", "stacked"] = "lines"
    diagonal: bool = False
    """True draws y = x, for predicted against measured."""
    y_from_zero: bool = True


def colour_of(one: Series, index: int) -> str:
    """The colour of the series at `index` of its chart."""
    return PALETTE[(index if one.slot is None else one.slot) % len(PALETTE)]


def chart_rows(chart: Chart) -> Table:
    """The numbers of a figure, as they were drawn."""
    rows = []
    for one in chart.series:
        for index, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
            band = (f"{one.low[index]:.4g}", f"{one.high[index]:.4g}") if one.low else ("", "")
            label = one.labels[index] if one.labels else ""
            rows.append((one.name, f"{x:,.6g}", f"{y:.4g}", *band, label))
    columns: list[Column | str] = [
        "series",
        number(chart.x_label),
        number(chart.y_label),
        number("low"),
        number("high"),
        "point",
    ]
    keep = [index for index in range(6) if index < 3 or any(row[index] for row in rows)]
    return table(
        "",
        [columns[index] for index in keep],
        [[row[index] for index in keep] for row in rows],
        notes=[f"{mark.name}: {mark.y:.4g} {chart.y_label}" for mark in chart.marks],
    )
