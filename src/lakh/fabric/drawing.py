"""How does a network look, and where is the load? An SVG and a page that need nothing else, from a report's rows."""

from __future__ import annotations

from html import escape

from lakh.fabric.inspection import FabricReport
from lakh.units import format_duration, format_quantity

_WIDTH, _MARGIN = 960, 20
_MOST_PODS, _MOST_LEAVES = 16, 512
_EMPTY, _LOW, _HIGH = (226, 232, 240), (56, 132, 200), (200, 40, 40)


def _colour(load: float) -> str:
    """Grey without load, blue to red with it."""
    if load <= 0.0:
        return "rgb({},{},{})".format(*_EMPTY)
    mixed = [round(low + (high - low) * min(load, 1.0)) for low, high in zip(_LOW, _HIGH, strict=True)]
    return "rgb({},{},{})".format(*mixed)


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def fabric_svg(report: FabricReport) -> str:
    """Tiers from the core down to the leaves, one column per pod; colour is load over the busiest link of all."""
    names = [row.tier for row in report.tiers]
    shown = report.pods[:_MOST_PODS]
    hidden = len(report.pods) - len(shown)
    column = (_WIDTH - 2 * _MARGIN) / max(len(shown), 1)
    parts = [_text(_MARGIN, 24, f"{report.name}: {report.accelerator_count:,} accelerators, {report.routing}", size=16)]
    top, spine_y, leaf_y, leaf_height = 44, 110, 180, 40
    if "core" in names:
        core = next(row for row in report.tiers if row.tier == "core")
        width = _WIDTH - 2 * _MARGIN
        parts.append(
            f'<rect x="{_MARGIN}" y="{top}" width="{width}" height="26" fill="{_colour(0.0)}" stroke="#64748b"/>'
        )
        parts.append(_text(_WIDTH / 2, top + 17, f"core: {core.switch_count:,} switches", anchor="middle"))
    for index, (spine, leaves) in enumerate(shown):
        x = _MARGIN + index * column
        centre = x + column / 2
        if "core" in names:
            stroke = 1.0 + 5.0 * spine
            parts.append(
                f'<line x1="{centre:.1f}" y1="{top + 26}" x2="{centre:.1f}" y2="{spine_y}" '
                f'stroke="{_colour(spine)}" stroke-width="{stroke:.1f}"/>'
            )
        if "spine" in names:
            parts.append(
                f'<rect x="{x + 3:.1f}" y="{spine_y}" width="{column - 6:.1f}" height="26" fill="{_colour(spine)}" '
                f'stroke="#64748b"><title>pod {index}: load {spine:.2f}</title></rect>'
            )
        drawn = leaves[:_MOST_LEAVES]
        step = (column - 6) / max(len(drawn), 1)
        for place, load in enumerate(drawn):
            left = x + 3 + place * step
            if "spine" in names:
                parts.append(
                    f'<line x1="{left + step / 2:.1f}" y1="{leaf_y}" x2="{left + step / 2:.1f}" y2="{spine_y + 26}" '
                    f'stroke="{_colour(load)}" stroke-width="{max(step * 0.4, 0.5):.1f}"/>'
                )
            parts.append(
                f'<rect x="{left:.2f}" y="{leaf_y}" width="{max(step - 0.5, 0.5):.2f}" height="{leaf_height}" '
                f'fill="{_colour(load)}"><title>pod {index}, leaf {place}: load {load:.2f}</title></rect>'
            )
        rest = f" (+{len(leaves) - len(drawn)} leaves)" if len(leaves) > len(drawn) else ""
        parts.append(_text(centre, leaf_y + leaf_height + 16, f"pod {index}{rest}", size=11, anchor="middle"))
    y = leaf_y + leaf_height + 40
    if hidden > 0:
        parts.append(_text(_MARGIN, y, f"{hidden} more pods are not drawn"))
        y += 18
    parts.append(_text(_MARGIN, y, "Busiest link of each class, over the busiest of all:"))
    for name, load in report.class_loads:
        y += 20
        parts.append(_text(_MARGIN, y, name))
        parts.append(f'<rect x="120" y="{y - 11}" width="{600 * load:.1f}" height="13" fill="{_colour(load)}"/>')
        parts.append(_text(730, y, f"{100 * load:.0f} %"))
    height = y + _MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">'
    return "\n".join([head, *parts, "</svg>"])


def _table(headings: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def collective_cells(report: FabricReport) -> list[list[str]]:
    """The job's collectives as text."""
    return [
        [
            row.use,
            row.collective,
            row.algorithm,
            f"{row.size} x {row.stride}",
            format_duration(row.time_s),
            row.worst_link,
        ]
        for row in report.collectives
    ]


COLLECTIVE_HEADINGS = ["use", "collective", "algorithm", "ranks x stride", "time", "link that decides"]


def fault_cells(report: FabricReport) -> list[list[str]]:
    """Costs of faults as text."""
    return [
        [
            row.fault,
            f"{row.element_count:,}",
            "stops" if row.slow_down is None else f"{row.slow_down:.3f}",
            "" if row.worst_slow_down is None else f"{row.worst_slow_down:.3f} ({row.worst_use})",
            row.note,
        ]
        for row in report.faults
    ]


FAULT_HEADINGS = ["dead element", "of how many", "slow-down", "worst collective", "what happens"]


def tier_cells(report: FabricReport) -> list[list[str]]:
    """Tiers as text."""
    return [
        [
            row.tier,
            f"{row.switch_count:,}",
            f"{row.group_span:,}",
            format_quantity(row.down_bytes_per_s, "B/s"),
            format_quantity(row.up_bytes_per_s, "B/s") if row.up_bytes_per_s else "top",
            f"{row.oversubscription:g}",
        ]
        for row in report.tiers
    ]


TIER_HEADINGS = ["tier", "switches", "accelerators per group", "down", "up", "oversubscription"]


def bisection_text(report: FabricReport) -> str:
    """Bisection in one sentence."""
    if report.full_bisection_bytes_per_s <= 0.0:
        return "Bisection: one accelerator has none"
    share = report.bisection_bytes_per_s / report.full_bisection_bytes_per_s
    have = format_quantity(report.bisection_bytes_per_s, "B/s")
    full = format_quantity(report.full_bisection_bytes_per_s, "B/s")
    return f"Bisection: {have} of {full} ({100 * share:.1f} %), limited by {report.bisection_limit}"


def fabric_html(report: FabricReport) -> str:
    """One page with the drawing and every table; it loads nothing."""
    style = (
        "body{font-family:sans-serif;max-width:62rem;margin:2rem auto;color:#1e293b}"
        "table{border-collapse:collapse;margin:.5rem 0}td,th{border:1px solid #cbd5e1;padding:.25rem .6rem;"
        "text-align:left}"
    )
    faults = ", ".join(report.active_faults) or "none"
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(report.name)}: fabric</title>',
        f"<style>{style}</style></head><body>",
        f"<h1>{escape(report.name)}: fabric</h1>",
        f"<p>{escape(bisection_text(report))}. Faults now: {escape(faults)}.</p>",
        fabric_svg(report),
        "<h2>Tiers</h2>",
        _table(TIER_HEADINGS, tier_cells(report)),
        "<h2>Collectives of the job</h2>",
        _table(COLLECTIVE_HEADINGS, collective_cells(report)),
        "<h2>What one dead element costs</h2>",
        _table(FAULT_HEADINGS, fault_cells(report)),
        "</body></html>",
    ]
    return "\n".join(parts)
