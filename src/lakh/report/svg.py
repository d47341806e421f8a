"""How is a chart drawn as SVG? By hand, so that a picture needs neither a browser nor a network."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakh.report.charts import Chart, Series, colour_of

WIDTH, HEIGHT = 760, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 40, 84
_DASH_ARRAYS = ("none", "7 4", "2 3", "8 3 2 3")

_STYLE = (
    "svg{background:#fff;color:#1b1f24}text{font:12px system-ui,sans-serif;fill:currentColor}"
    ".title{font-size:15px;font-weight:600}.grid{stroke:#8884}.axis{stroke:currentColor}"
    "@media (prefers-color-scheme:dark){svg{background:#0d1117;color:#e6edf3}}"
)


@dataclass(frozen=True, slots=True)
class _Axis:
    """A scale from values to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        def place(v: float) -> float:
            return math.log10(max(v, 1e-300)) if self.log else v

        span = place(self.high) - place(self.low)
        share = (place(value) - place(self.low)) / span if span else 0.5
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, *, log: bool, most: int = 6) -> list[float]:
    """Round values inside a range: powers of ten, or steps of 1, 2 or 5."""
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        return [10.0**power for power in range(first, last + 1)]
    step = (high - low) / most
    size = 10.0 ** math.floor(math.log10(step))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= step)
    return [step * index for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A tick in few signs: 100000 is "100k"."""
    for limit, word in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            short = f"{value / limit:g}{word}"
            return short if len(short) <= 5 else f"{value:,.0f}"
    return f"{value:.4g}"


def _stacked(chart: Chart) -> list[Series]:
    """Series on top of each other: each one's band goes from the sum below it to its own sum."""
    below = [0.0] * len(chart.series[0].x)
    result = []
    for one in chart.series:
        above = [low + value for low, value in zip(below, one.y, strict=True)]
        result.append(replace(one, y=tuple(above), low=tuple(below), high=tuple(above)))
        below = above
    return result


def _axes(chart: Chart, series: Sequence[Series]) -> tuple[_Axis, _Axis]:
    xs = [x for one in series for x in one.x]
    ys = [y for one in series for y in (*one.y, *one.low, *one.high)] + [mark.y for mark in chart.marks]
    if chart.diagonal:
        xs = ys = xs + ys
    y_low = min(ys) / 1.2 if chart.log_y else 0.0 if chart.y_from_zero else min(ys)
    y_high = max(ys) * 1.2 if chart.log_y else max(ys) * (1.0 if chart.kind == "stacked" else 1.08)
    x_low, x_high = (min(xs) / 1.15, max(xs) * 1.15) if chart.log_x else (min(0.0, *xs), max(xs) * 1.02)
    return (
        _Axis(x_low, x_high, _LEFT, WIDTH - _RIGHT, chart.log_x),
        _Axis(y_low, y_high, HEIGHT - _BOTTOM, _TOP, chart.log_y),
    )


def _points(xs: Sequence[float], ys: Sequence[float], x: _Axis, y: _Axis) -> list[str]:
    return [f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in zip(xs, ys, strict=True)]


def _draw_series(one: Series, index: int, chart: Chart, x: _Axis, y: _Axis) -> list[str]:
    colour = colour_of(one, index)
    parts = []
    if one.low:
        outline = [*_points(one.x, one.high, x, y), *reversed(_points(one.x, one.low, x, y))]
        opacity = 0.8 if chart.kind == "stacked" else 0.18
        parts.append(f'<polygon points="{" ".join(outline)}" fill="{colour}" fill-opacity="{opacity}"/>')
    places = _points(one.x, one.y, x, y)
    if chart.kind == "lines":
        dash = _DASH_ARRAYS[index % len(_DASH_ARRAYS)]
        parts.append(
            f'<polyline points="{" ".join(places)}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dash}"/>'
        )
    if chart.kind != "stacked" and len(places) <= 2000:
        labels = one.labels or ("",) * len(places)
        for place, label in zip(places, labels, strict=True):
            across, down = place.split(",")
            title = f"<title>{html.escape(label)}</title>" if label else ""
            parts.append(f'<circle cx="{across}" cy="{down}" r="3" fill="{colour}" fill-opacity="0.8">{title}</circle>')
    return parts


def chart_svg(chart: Chart, *, top: float = 0.0) -> str:
    """One chart as an SVG group, `top` pixels down."""
    series = _stacked(chart) if chart.kind == "stacked" else list(chart.series)
    x, y = _axes(chart, series)
    parts = [f'<g transform="translate(0 {top:g})">', _text(_LEFT, 22, chart.title, kind="title")]
    sizes = sorted({value for one in series for value in one.x})
    x_ticks = (
        sizes if chart.log_x and not chart.diagonal and len(sizes) <= 16 else ticks(x.low, x.high, log=chart.log_x)
    )
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    last = -math.inf
    for value in x_ticks:
        parts.append(_line(x.at(value), _TOP, x.at(value), bottom))
        if x.at(value) - last > 38:
            parts.append(_text(x.at(value), bottom + 16, tick_text(value), anchor="middle"))
            last = x.at(value)
    for value in ticks(y.low, y.high, log=chart.log_y):
        parts.append(_line(_LEFT, y.at(value), right, y.at(value)))
        parts.append(_text(_LEFT - 8, y.at(value) + 4, tick_text(value), anchor="end"))
    if chart.diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        parts.append(_line(x.at(low), y.at(low), x.at(high), y.at(high), kind="axis", dash="6 4"))
    for index, one in enumerate(series):
        parts += _draw_series(one, index, chart, x, y)
    for mark in chart.marks:
        parts.append(_line(_LEFT, y.at(mark.y), right, y.at(mark.y), kind="axis", dash="6 4"))
        parts.append(_text(right - 6, y.at(mark.y) + 14, mark.name, anchor="end"))
    parts.append(_line(_LEFT, bottom, right, bottom, kind="axis"))
    parts.append(_line(_LEFT, _TOP, _LEFT, bottom, kind="axis"))
    parts.append(_text((_LEFT + right) / 2, bottom + 34, chart.x_label, anchor="middle"))
    middle = (_TOP + bottom) / 2
    label = html.escape(chart.y_label)
    parts.append(f'<text transform="translate(16 {middle:g}) rotate(-90)" text-anchor="middle">{label}</text>')
    parts += _legend(series, bottom + 52)
    parts.append("</g>")
    return "\n".join(parts)


def _legend(series: Sequence[Series], top: float) -> list[str]:
    parts, across, down = [], float(_LEFT), top
    for index, one in enumerate(series):
        needed = 34 + 6.8 * len(one.name)
        if across + needed > WIDTH - _RIGHT:
            across, down = float(_LEFT), down + 16
        parts.append(f'<rect x="{across:g}" y="{down - 9:g}" width="14" height="10" fill="{colour_of(one, index)}"/>')
        parts.append(_text(across + 20, down, one.name))
        across += needed
    return parts


def _text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{html.escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, *, kind: str = "grid", dash: str = "none") -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke-dasharray="{dash}"/>'


def charts_svg(charts: Sequence[Chart]) -> str:
    """Charts below each other in one SVG file that follows the reader's light or dark screen."""
    step = HEIGHT + 10
    drawn = "\n".join(chart_svg(chart, top=index * step) for index, chart in enumerate(charts))
    height = len(charts) * step
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH} {height:g}">\n<style>{_STYLE}</style>\n'
        f'<rect width="100%" height="100%" fill="none"/>\n{drawn}\n</svg>\n'
    )
