"""How is a goodput report shown? As one JSON document, as tables for a console, and as one offline HTML page."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from lakh.report.json import document, jsonable
from lakh.report.tables import Table, number, table, words
from lakh.units import format_duration, format_quantity

if TYPE_CHECKING:
    from lakh.reliability import GoodputReport  # loads the compiled simulation


def goodput_document(report: GoodputReport, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What `--json` prints: base units, infinity as null."""
    result = jsonable(report)
    return document("goodput", inputs=inputs, result=result, evidence=result.pop("evidence"))


def _percent(share: float, *, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _duration(seconds: float) -> str:
    return "never" if math.isinf(seconds) else format_duration(seconds)


def headline(report: GoodputReport) -> tuple[tuple[str, str], ...]:
    """The figures that matter most, as label and text."""
    ettr, effective, stops = report.ettr, report.effective_time, report.unplanned_stops
    return (
        ("ETTR (productive over wall time)", f"{_percent(ettr.p50)}, {_percent(ettr.p05)} to {_percent(ettr.p95)}"),
        (
            "effective training time (slow training counts)",
            f"{_percent(effective.p50)}, {_percent(effective.p05)} to {_percent(effective.p95)}",
        ),
        ("closed form, exponential gaps", _percent(report.ettr_closed_form)),
        ("between unplanned stops", _duration(report.mtbf_s)),
        (
            f"unplanned stops in {_duration(report.duration_s)}",
            f"{stops.p50:,.0f}, {stops.p05:,.0f} to {stops.p95:,.0f}",
        ),
        ("policy", report.policy),
        ("failure profile", f"{report.profile}: {report.failure_definition}"),
        ("gaps between failures", f"{report.gaps}, counted on {report.clock} time"),
        ("checkpoint", format_quantity(report.checkpoint_bytes, "B")),
    )


Rows = tuple[tuple[str, ...], ...]


def _sections(report: GoodputReport) -> tuple[tuple[str, tuple[str, ...], Rows], ...]:
    """Title, headings and rows of every table; the first column is text, the others are figures."""
    spares = report.spares
    sections: list[tuple[str, tuple[str, ...], Rows]] = [
        (
            "Where the time goes",
            ("cause", "share", "time"),
            tuple(
                (bar.cause, _percent(bar.share, digits=2), _duration(bar.seconds))
                for bar in report.waterfall
                if bar.share > 0.0
            ),
        ),
        (
            "Stops by component",
            ("component", "share", "time"),
            tuple(
                (bar.cause, _percent(bar.share, digits=2), _duration(bar.seconds)) for bar in report.lost_by_component
            ),
        ),
        (
            "Checkpoints",
            ("tier", "optimum interval", "blocks", "persists in", "loads in", "overhead", "needed every"),
            tuple(
                (
                    tier.tier,
                    _duration(tier.interval_s),
                    _duration(tier.block_s),
                    _duration(tier.persist_s),
                    _duration(tier.load_s),
                    _percent(tier.overhead, digits=2),
                    _duration(tier.mtbf_s),
                )
                for tier in report.tiers
            ),
        ),
        (
            "Spare nodes",
            ("for", "nodes"),
            (
                ("99 % of the time at full size", f"{spares.for_99:,}"),
                ("99.9 % of the time at full size", f"{spares.for_999:,}"),
                ("99 %, if nodes failed independently (too few)", f"{spares.independent_for_99:,}"),
                ("held here", f"{spares.held:,}"),
                ("share of the time at full size, with rates as unsure as they are", _percent(spares.full_size_share)),
                ("nodes down on average", f"{spares.nodes_down_mean:,.1f}"),
            ),
        ),
    ]
    if len(report.policies) > 1:
        policy_rows = tuple(
            (
                one.policy,
                _percent(one.ettr.p50),
                f"{_percent(one.ettr.p05)} to {_percent(one.ettr.p95)}",
                _percent(one.effective_time.p50),
                f"{one.spare_node_count:,}",
                one.lost_most_to,
            )
            for one in report.policies
        )
        sections.append(
            (
                "Policies, best first",
                ("policy", "ETTR", "90 % range", "effective", "spares", "loses most to"),
                policy_rows,
            )
        )
    if report.curve:
        rows = tuple(
            (
                f"{point.accelerator_count:,}",
                _percent(point.ettr.p50),
                f"{_percent(point.ettr.p05)} to {_percent(point.ettr.p95)}",
                _percent(point.effective_time.p50),
                _duration(point.mtbf_s),
            )
            for point in report.curve
        )
        sections.append(("By size", ("accelerators", "ETTR", "90 % range", "effective", "between stops"), rows))
    return tuple(sections)


def goodput_tables(report: GoodputReport) -> tuple[Table, ...]:
    """What a console shows."""
    title = f"{report.accelerator_count:,} accelerators on {report.node_count:,} nodes"
    first = table(title, ["figure", words("median, 5th to 95th percentile")], headline(report))
    others = (
        table(name, [headings[0], *(number(heading) for heading in headings[1:])], rows)
        for name, headings, rows in _sections(report)
    )
    return (first, *others)


# --- the page ---------------------------------------------------------------------------------------------------

_STYLE = """
body{margin:0 auto;max-width:1080px;padding:24px;font:15px/1.5 system-ui,sans-serif;color:#1b1f24}
h1{font-size:26px}h2{font-size:19px;margin-top:36px}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:4px 14px 4px 0;text-align:right;border-bottom:1px solid #d0d7de;vertical-align:top}
th:first-child,td:first-child{text-align:left}.soft{color:#57606a;font-size:13px}
"""
_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#8c959f"


def waterfall_figure(report: GoodputReport) -> go.Figure:
    """Wall time, less every cause of loss, down to productive time."""
    losses = [bar for bar in report.waterfall if bar.cause != "productive" and bar.share >= 5e-5]
    productive = next(bar for bar in report.waterfall if bar.cause == "productive")
    figure = go.Figure(
        go.Waterfall(
            x=["wall time", *(bar.cause for bar in losses), "productive"],
            measure=["absolute", *("relative" for _ in losses), "total"],
            y=[100.0, *(-100 * bar.share for bar in losses), 100 * productive.share],
            text=["100 %", *(_percent(bar.share, digits=2) for bar in losses), _percent(productive.share)],
            decreasing={"marker": {"color": _ORANGE}},
            totals={"marker": {"color": _BLUE}},
            connector={"line": {"color": _GREY, "width": 1}},
        )
    )
    figure.update_layout(template="plotly_white", yaxis_title="share of wall time [%]", height=420, margin={"t": 20})
    return figure


def curve_figure(report: GoodputReport) -> go.Figure:
    """ETTR against size, with its 90 % band."""
    sizes = [point.accelerator_count for point in report.curve]
    figure = go.Figure()
    figure.add_scatter(
        x=[*sizes, *reversed(sizes)],
        y=[100 * p.ettr.p95 for p in report.curve] + [100 * p.ettr.p05 for p in reversed(report.curve)],
        fill="toself",
        fillcolor="rgba(0,114,178,0.18)",
        line={"width": 0},
        name="90 % of runs",
        hoverinfo="skip",
    )
    for name, values, color in (
        ("ETTR", [100 * p.ettr.p50 for p in report.curve], _BLUE),
        ("effective training time", [100 * p.effective_time.p50 for p in report.curve], _ORANGE),
    ):
        figure.add_scatter(x=sizes, y=values, name=name, mode="lines+markers", line={"color": color})
    figure.update_xaxes(type="log", title="accelerators")
    figure.update_yaxes(title="share of wall time [%]", range=[0, 100])
    figure.update_layout(template="plotly_white", height=420, margin={"t": 20})
    return figure


def policies_figure(report: GoodputReport) -> go.Figure:
    """Median ETTR of each policy with its 90 % range."""
    shown = list(reversed(report.policies))
    figure = go.Figure(
        go.Bar(
            x=[100 * one.ettr.p50 for one in shown],
            y=[one.policy for one in shown],
            orientation="h",
            marker_color=_BLUE,
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [100 * (one.ettr.p95 - one.ettr.p50) for one in shown],
                "arrayminus": [100 * (one.ettr.p50 - one.ettr.p05) for one in shown],
                "color": _GREY,
            },
        )
    )
    figure.update_layout(template="plotly_white", xaxis_title="ETTR [%]", height=320, margin={"t": 20})
    return figure


def goodput_page(report: GoodputReport) -> str:
    """One HTML file that needs no network."""
    title = f"Goodput of {report.accelerator_count:,} accelerators"
    figures: dict[str, go.Figure] = {"Where the time goes": waterfall_figure(report)}
    if report.curve:
        figures["By size"] = curve_figure(report)
    if len(report.policies) > 1:
        figures["Policies, best first"] = policies_figure(report)
    parts = [f"<h1>{html.escape(title)}</h1>", _html_table(("figure", "value"), headline(report))]
    script: bool = True
    for name, headings, rows in _sections(report):
        parts.append(f"<h2>{html.escape(name)}</h2>")
        if name in figures:
            parts.append(figures[name].to_html(full_html=False, include_plotlyjs=script, config={"displaylogo": False}))
            script = False
        parts.append(_html_table(headings, rows))
    parts.append("<h2>Evidence</h2>")
    evidence = tuple(
        (row.name, f"{row.value:.4g}", f"{row.low:.4g} to {row.high:.4g}", row.unit, row.status, row.source, row.note)
        for row in report.evidence
    )
    parts.append(_html_table(("number", "value", "range", "unit", "status", "source", "note"), evidence))
    body = "\n".join(parts)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def _html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
