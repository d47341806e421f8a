"""How does plotly draw a chart? Its figure as plain JSON, without importing plotly, and its script inlined."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from lakh.report.charts import DASHES, SYMBOLS, Chart, Series, colour_of


@cache
def plotly_script() -> str:
    """The whole library, to be inlined: a report opens without a network."""
    return resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")


def _shade(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def figure(chart: Chart) -> dict[str, Any]:
    """Data and layout of a chart as plotly takes them. Colours of text and grid come from the page."""
    traces: list[dict[str, Any]] = []
    for index, one in enumerate(chart.series):
        traces += _traces(chart, one, index)
    if chart.diagonal:
        ends = [min(min(one.x) for one in chart.series), max(max(one.x) for one in chart.series)]
        line = {"color": "#7F7F7F", "width": 1, "dash": "dash"}
        traces.append(
            {"type": "scatter", "mode": "lines", "name": "predicted = measured", "x": ends, "y": ends, "line": line}
        )
    x_axis: dict[str, Any] = {"title": {"text": chart.x_label}, "automargin": True, "zeroline": False}
    y_axis: dict[str, Any] = {"title": {"text": chart.y_label}, "automargin": True, "zeroline": False}
    if chart.log_x:
        x_axis["type"] = "log"
        if not chart.diagonal:
            ticks = sorted({x for one in chart.series for x in one.x})
            x_axis |= {"tickvals": ticks, "ticktext": [_size_text(tick) for tick in ticks]}
    if chart.log_y:
        y_axis |= {"type": "log", "dtick": 1}
    elif chart.y_from_zero:
        y_axis["rangemode"] = "tozero"
    layout = {
        "title": {"text": chart.title, "x": 0.01, "xanchor": "left"},
        "xaxis": x_axis,
        "yaxis": y_axis,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "margin": {"l": 60, "r": 20, "t": 50, "b": 50},
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        "hovermode": "closest",
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": mark.y,
                "y1": mark.y,
                "line": {"color": "#7F7F7F", "width": 1.5, "dash": "dash"},
            }
            for mark in chart.marks
        ],
        "annotations": [
            {
                "xref": "paper",
                "x": 0.99,
                "xanchor": "right",
                "y": mark.y,
                "yanchor": "top",
                "text": mark.name,
                "showarrow": False,
            }
            for mark in chart.marks
        ],
    }
    return {"data": traces, "layout": layout, "config": {"responsive": True, "displaylogo": False}}


def _size_text(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 10_000 and value % 1000 == 0 else f"{value:,.0f}"


def _traces(chart: Chart, one: Series, index: int) -> list[dict[str, Any]]:
    colour = colour_of(one, index)
    trace: dict[str, Any] = {
        "type": "scatter",
        "name": one.name,
        "x": list(one.x),
        "y": list(one.y),
        "mode": "markers" if chart.kind == "points" else "lines+markers",
        "line": {"color": colour, "width": 2, "dash": DASHES[index % len(DASHES)]},
        "marker": {"color": colour, "size": 6, "symbol": SYMBOLS[index % len(SYMBOLS)]},
    }
    if one.labels:
        trace |= {
            "text": list(one.labels),
            "hovertemplate": "%{text}<br>%{x:,}: %{y:.3g}<extra>%{fullData.name}</extra>",
        }
    if chart.kind == "points":
        trace["marker"] |= {"opacity": 0.6}
    if chart.kind == "stacked":
        trace |= {"stackgroup": "one", "mode": "lines", "line": {"color": colour, "width": 0.5}}
        trace["fillcolor"] = _shade(colour, 0.75)
        return [trace]
    if len(one.x) > 60 and chart.kind == "lines":
        trace["mode"] = "lines"
    if not one.low:
        return [trace]
    edge = {"color": "rgba(0,0,0,0)", "width": 0}
    band = {
        "type": "scatter",
        "mode": "lines",
        "x": list(one.x),
        "line": edge,
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [
        band | {"y": list(one.low), "name": f"{one.name}, low"},
        band | {"y": list(one.high), "name": f"{one.name}, high", "fill": "tonexty", "fillcolor": _shade(colour, 0.16)},
        trace,
    ]
