"""How is the verdict on a claim shown? Tables for a console, one JSON object, and one page that needs no network."""

from __future__ import annotations

import csv
import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lakh.catalog import accelerator, training_measurements_path
from lakh.claims import Band, Reading, RunOutlook, Swing, Verdict, summary
from lakh.errors import UnknownNameError
from lakh.report import text
from lakh.report.charts import Chart, Mark, Series, chart_rows
from lakh.report.json import document, jsonable
from lakh.report.odds import band_text, odds_text
from lakh.report.page import STYLE
from lakh.report.plotly_figure import figure, plotly_script
from lakh.report.tables import Table, as_html, number, table, words

SHOWN_UNKNOWNS = 10
SHOWN_MEASUREMENTS = 8

PUBLISHED_EFFECTIVE_TIMES: tuple[tuple[int, float, str], ...] = (
    (16_384, 0.90, "Llama 3: over 90 % in 54 days (arXiv:2407.21783)"),
    (98_304, 0.44, "Meta, fully synchronous with ten-minute stalls (arXiv:2602.00277)"),
)
"""What others reached: accelerators, effective time, source."""

BENCH_NOTE = "lakh bench comes with a later release; the commands are named here so that a measurement can be planned"


def _scaled(verdict: Verdict, band: Band | None) -> str:
    if band is not None and verdict.probability is None:
        return f"{band.p50:.2f}x ({band.p05:.2f}x to {band.p95:.2f}x)"
    return band_text(band)


def verdict_document(verdict: Verdict, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The object that `lakh check --json` prints."""
    evidence = {
        one.name: {
            "title": one.title,
            "unit": one.unit,
            "p05": one.at(0.05),
            "p50": one.at(0.5),
            "p95": one.at(0.95),
            "kind": one.kind,
            "status": one.status,
            "source": one.source,
            "note": one.note,
            "pinned_by": one.pinned_by,
            "bench": one.bench,
        }
        for one in verdict.unknowns
    }
    return document("check", inputs=inputs, result=summary(verdict), evidence=evidence)


def verdict_tables(verdict: Verdict) -> list[Table]:
    """Everything a verdict says, most important first."""
    tables = [_head(verdict), _readings(verdict)]
    if verdict.must_be_true is not None:
        tables.append(_needed(verdict))
    if verdict.deciding_unknowns:
        tables.append(_deciding(verdict))
    if verdict.curve:
        tables.append(_curve(verdict))
    if verdict.measurements:
        tables.append(_measurements(verdict))
    if verdict.outlook is not None:
        tables.append(outlook_table(verdict.outlook))
    return tables


def _head(verdict: Verdict) -> Table:
    claim = verdict.claim
    rows = [
        ("claim", f'"{claim.statement}" ({claim.who}, {claim.when}; {claim.value.status})'),
        ("judged", f"{verdict.asks}: {verdict.model_name} on {verdict.accelerator_count:,} of {verdict.cluster_name}"),
        ("read as", verdict.headline),
        ("odds", odds_text(verdict.probability)),
        ("quantity", f"{_scaled(verdict, verdict.quantity)}; in brackets nine cases of ten"),
    ]
    if verdict.curve:
        failing = verdict.first_fails_at
        said = "no size up to this one" if failing is None else f"{failing:,} cards"
        if failing == verdict.curve[0].accelerator_count:
            said += ", the smallest size that was judged"
        rows.append(("fails first at", said))
    rows.append(("not said", "; ".join(claim.undefined)))
    notes = list(verdict.notes)
    timed = f"; {verdict.plan_count:,} plans timed" if verdict.plan_count else ""
    notes.append(f"{verdict.sample_count:,} samples, seed {verdict.seed}{timed}")
    return table(f"Is it true? {claim.name}", ["", words("")], rows, notes=notes)


def _readings(verdict: Verdict) -> Table:
    rows = [
        (one.text, odds_text(one.probability), _scaled(verdict, one.quantity), one.note) for one in verdict.readings
    ]
    with_notes = any(one.note for one in verdict.readings)
    columns = [words("the claim read as"), number("odds"), number("quantity"), words("note", rank=1)]
    keep = 4 if with_notes else 3
    return table("Readings", columns[:keep], [row[:keep] for row in rows])


def _needed(verdict: Verdict) -> Table:
    needed = verdict.must_be_true
    assert needed is not None
    rows = [(one.text, text.percent(one.odds)) for one in needed.conditions]
    notes = [needed.text, f"with every unknown at its middle: {text.percent(needed.quantity_at_middle)}"]
    return table("What must be true", [words("all of these at once"), number("odds of each")], rows, notes=notes)


def _deciding(verdict: Verdict) -> Table:
    rows = [
        (one.title, text.percent(one.total), text.percent(one.first_order), text.percent(one.decides))
        for one in verdict.deciding_unknowns[:SHOWN_UNKNOWNS]
    ]
    notes = ["total and alone: shares of the variance of the quantity (Sobol); doubt: of that of the verdict"]
    return table(
        "What decides it",
        [words("unknown"), number("total"), number("alone", rank=1), number("doubt", rank=2)],
        rows,
        notes=notes,
    )


def _curve(verdict: Verdict) -> Table:
    rows = [
        (f"{one.accelerator_count:,}", odds_text(one.probability), band_text(one.quantity)) for one in verdict.curve
    ]
    rows += [(f"{one.accelerator_count:,}", text.MISSING, one.reason) for one in verdict.skipped]
    rows.sort(key=lambda row: int(row[0].replace(",", "")))
    return table("By size", [number("cards"), number("odds"), words("quantity")], rows)


def _measurements(verdict: Verdict) -> Table:
    rows = [
        (str(index), one.command, "; ".join(one.titles), text.percent(one.settles), text.percent(one.narrows))
        for index, one in enumerate(verdict.measurements[:SHOWN_MEASUREMENTS], start=1)
    ]
    columns = [number("#"), words("command"), words("of"), number("settles"), number("narrows")]
    notes = ["settles: share of the doubt about the verdict that it takes away; narrows: of the quantity's variance"]
    return table("What would settle it, most valuable first", columns, rows, notes=[*notes, BENCH_NOTE])


def outlook_table(one: RunOutlook) -> Table:
    """What a whole run takes: time, power, energy, cost, and the date it ends on."""
    days = one.days
    rows = [
        ("effective time", text.range_text(one.effective_time, text.percent)),
        ("tokens per second of wall time", text.range_text(one.tokens_per_s, text.tokens_per_s)),
        ("size that trains most, of those judged", f"{one.best_size:,} cards"),
        ("days from a standing start", text.range_text(days, lambda value: f"{value:,.0f}")),
        ("facility power while it trains", text.watt(one.energy.watt)),
        ("energy of a step", text.energy(one.energy.joule_per_step)),
        ("energy of the run", text.energy(one.energy_joule)),
        ("tokens per joule", f"{one.energy.token_per_joule:.3g}"),
    ]
    bound = [
        f"{site.site} ({site.binding}, clock at {site.clock_share:.0%})" for site in one.sites if site.clock_share < 1
    ]
    rows.append(("throttled", "; ".join(bound) if bound else "no site, as described"))
    if one.cost is not None:
        for label, cost in (("rented", one.cost.rent_per_token), ("owned", one.cost.owned_per_token)):
            if cost is not None:
                million = cost.times(1e6)
                rows.append(
                    (
                        f"per million tokens, {label}",
                        text.range_text(million, lambda v: text.money(v, one.cost_currency)),
                    )
                )
    if one.delivery is not None:
        d = one.delivery
        rows.append((f"ends if started {d.start}", f"{d.middle} ({d.earliest} to {d.latest})"))
        rows += [(f"a month late: {late.phase}", f"{late.days_per_month:.0f} days later") for late in d.lateness]
    notes = [
        "in brackets nine cases of ten of each, ends with ends; power at the middle; owned: capital over four years "
        "and energy",
        "where failures eat the gain of the last cards the run takes fewer: the rates are those of the best size",
    ]
    return table(f"A run of {one.tokens / 1e12:.1f} T tokens", ["", words("")], rows, notes=notes)


# --- figures ---------------------------------------------------------------------------------------------------


def verdict_charts(verdict: Verdict) -> list[Chart]:
    """The predicted curve with its band, beside what others measured."""
    if not verdict.curve:
        return []
    points = verdict.curve
    percent = 100.0
    predicted = Series(
        name=f"predicted, {verdict.cluster_name}",
        x=tuple(float(one.accelerator_count) for one in points),
        y=tuple(one.quantity.p50 * percent for one in points),
        low=tuple(one.quantity.p05 * percent for one in points),
        high=tuple(one.quantity.p95 * percent for one in points),
        labels=tuple(f"odds {odds_text(one.probability)}" for one in points),
    )
    marks = (Mark(name=f"claimed: {verdict.asks}", y=verdict.claim.value.low * percent),)
    names = {"mfu": "MFU", "scaling_efficiency": "scaling efficiency", "effective_time": "effective time"}
    curve = Chart(
        title=f"{names[verdict.claim.quantity]} by size, with nine cases of ten",
        x_label="accelerators",
        y_label=f"{names[verdict.claim.quantity]} [%]",
        series=(predicted, *_published(verdict)),
        marks=marks,
        log_x=True,
    )
    odds = Chart(
        title="Odds by size",
        x_label="accelerators",
        y_label="odds that the claim holds [%]",
        series=(
            Series(
                name="odds",
                x=predicted.x,
                y=tuple(one.probability * percent for one in points),
            ),
        ),
        marks=(Mark(name="even odds", y=50.0),),
        log_x=True,
    )
    return [curve, odds]


def _published(verdict: Verdict) -> tuple[Series, ...]:
    """What other clusters reached, for the same quantity and kind of model."""
    if verdict.claim.quantity == "effective_time":
        rows = PUBLISHED_EFFECTIVE_TIMES
        return (
            Series(
                name="published",
                x=tuple(float(count) for count, _, _ in rows),
                y=tuple(share * 100.0 for _, share, _ in rows),
                labels=tuple(label for _, _, label in rows),
            ),
        )
    if verdict.claim.quantity != "mfu":
        return ()
    experts = "moe" in verdict.claim.name or "gpt4" in verdict.claim.name
    by_family: dict[str, list[tuple[float, float, str]]] = {}
    for family, count, mfu, label in published_mfu(experts=experts):
        by_family.setdefault(family, []).append((float(count), mfu * 100.0, label))
    return tuple(
        Series(
            name=f"measured, {family}",
            x=tuple(point[0] for point in sorted(rows)),
            y=tuple(point[1] for point in sorted(rows)),
            labels=tuple(point[2] for point in sorted(rows)),
        )
        for family, rows in sorted(by_family.items())
    )


def published_mfu(*, experts: bool) -> list[tuple[str, int, float, str]]:
    """Hardware, accelerators, MFU (causal, BF16) and a label of the shipped measurements: the best of each size."""
    best: dict[tuple[str, int], tuple[float, str]] = {}
    with training_measurements_path().open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            mfu, count = row["uniform_mfu_pct"], row["n_accel"]
            has_experts = bool(row["active_params_b"]) or "moe" in row["model"].casefold()
            if not mfu or not count or row["precision"] != "bf16" or has_experts != experts:
                continue
            try:
                family = accelerator(row["hardware"]).name
                found = float(mfu) / 100.0
            except (UnknownNameError, ValueError):
                continue
            key = family, int(float(count))
            if found > best.get(key, (0.0, ""))[0]:
                best[key] = found, f"{row['model']}, {row['source']}"
    return [(family, count, mfu, label) for (family, count), (mfu, label) in sorted(best.items())]


# --- the page --------------------------------------------------------------------------------------------------

_BAR_HEIGHT = 26
_LABEL_WIDTH = 430
_PLOT_WIDTH = 560


def tornado_svg(swings: Sequence[Swing], *, middle: float, shown: int = SHOWN_UNKNOWNS) -> str:
    """Bars from the quantity at one end of an unknown to that at the other, widest on top."""
    rows = list(swings[:shown])
    ends = [end for one in rows for end in (one.at_low, one.at_high)] + [middle]
    low, high = min(ends), max(ends)
    width = max(high - low, 1e-9)

    def x(value: float) -> float:
        return _LABEL_WIDTH + (value - low) / width * (_PLOT_WIDTH - 120) + 60

    height = _BAR_HEIGHT * len(rows) + 40
    parts = [f'<svg viewBox="0 0 {_LABEL_WIDTH + _PLOT_WIDTH} {height}" role=img aria-label="tornado" class=tornado>']
    parts.append(f'<line x1="{x(middle):.1f}" x2="{x(middle):.1f}" y1="0" y2="{height - 30}" class=axis />')
    for index, one in enumerate(rows):
        top = index * _BAR_HEIGHT + 4
        for value, side, words_ in ((one.at_low, "low", one.low_text), (one.at_high, "high", one.high_text)):
            left, right = sorted((x(value), x(middle)))
            parts.append(
                f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, 0.5):.1f}" height="{_BAR_HEIGHT - 8}" '
                f"class={side}><title>{html.escape(f'{words_}: {value:.1%}')}</title></rect>"
            )
        label = one.title if len(one.title) <= 62 else one.title[:60] + "…"
        parts.append(f'<text x="{_LABEL_WIDTH + 30}" y="{top + 13}" text-anchor=end>{html.escape(label)}</text>')
    for value, anchor in ((low, "start"), (middle, "middle"), (high, "end")):
        parts.append(f'<text x="{x(value):.1f}" y="{height - 12}" text-anchor={anchor}>{value:.1%}</text>')
    parts.append("</svg>")
    return "\n".join(parts)


_TORNADO_STYLE = """
.tornado{width:100%;max-width:990px;font-size:12.5px}.tornado text{fill:var(--ink)}
.tornado .axis{stroke:var(--soft)}.tornado .low{fill:#D55E00}.tornado .high{fill:#0072B2}
"""

_DRAW = """
const drawn=JSON.parse(document.getElementById("figures").textContent);
drawn.forEach((f,i)=>Plotly.newPlot("chart"+i,f.data,f.layout,f.config));
"""


def verdict_page(verdict: Verdict) -> str:
    """One HTML file with the odds, the curve beside measurements of others, the tornado and what would settle it."""
    title = f"Is it true? {verdict.claim.name}"
    charts = verdict_charts(verdict)
    tables = verdict_tables(verdict)
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>“{html.escape(verdict.claim.statement)}”</p>", _cards(verdict)]
    parts.append(as_html(tables[0]))
    for index, chart in enumerate(charts):
        parts.append(f"<div class=chart id=chart{index} role=img aria-label={json.dumps(chart.title)}></div>")
        parts.append(f"<details><summary>The numbers of this figure</summary>{as_html(chart_rows(chart))}</details>")
    if verdict.tornado and verdict.must_be_true is not None:
        parts.append("<h2>Each unknown on its own</h2>")
        parts.append(
            "<p class=soft>From the 5th (orange) to the 95th percentile (blue) of one unknown, all others at their "
            "middle.</p>"
        )
        parts.append(tornado_svg(verdict.tornado, middle=verdict.must_be_true.quantity_at_middle))
    parts += [as_html(one) for one in tables[1:]]
    parts.append("<h2>Everything that is not known</h2>")
    parts.append(as_html(unknowns_of(verdict)))
    figures = json.dumps([jsonable(figure(chart)) for chart in charts], allow_nan=False).replace("</", "<\\/")
    script = f"<script>{plotly_script()}</script>\n<script>{_DRAW}</script>" if charts else ""
    body = "\n".join(parts)
    return (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}{_TORNADO_STYLE}</style>\n</head>\n<body>\n{body}\n"
        "<footer>Made by Lakh. This page holds all of its data and opens without a network.</footer>\n"
        f'<script type="application/json" id=figures>{figures}</script>\n{script}\n</body>\n</html>\n'
    )


def _cards(verdict: Verdict) -> str:
    def card(value: str, label: str) -> str:
        return f"<div class=card><b>{html.escape(value)}</b><span>{html.escape(label)}</span></div>"

    judged = [one for one in verdict.readings if one.probability is not None]
    cards = [card(odds_text(verdict.probability), "odds in the headline reading")]
    if judged:
        low, high = min(judged, key=_odds_of), max(judged, key=_odds_of)
        span = f"{odds_text(low.probability)} to {odds_text(high.probability)}"
        cards.append(card(span, f"over {len(judged)} readings of what was not said"))
    if verdict.quantity is not None:
        cards.append(card(_scaled(verdict, verdict.quantity), verdict.asks))
    return f"<div class=cards>{''.join(cards)}</div>"


def _odds_of(one: Reading) -> float:
    return one.probability or 0.0


def unknowns_of(verdict: Verdict) -> Table:
    """Every unknown with its range and who says so."""
    rows = [
        (
            one.name,
            one.title,
            one.text(one.at(0.5)) if not one.is_open else f"{one.text(one.at(0.05))} to {one.text(one.at(0.95))}",
            one.status,
            one.source + (f" ({one.note})" if one.note else ""),
        )
        for one in verdict.unknowns
    ]
    columns = [words("name"), words("what"), words("nine cases of ten"), words("status"), words("source")]
    return table("", columns, rows)
