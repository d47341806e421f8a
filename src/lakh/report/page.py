"""How does a report become one HTML file? Figures with their rows, tables, and a style for screens and for paper."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.metadata import version

from lakh.report import text
from lakh.report.charts import Chart, chart_rows
from lakh.report.figures import rehearsal_charts
from lakh.report.json import jsonable
from lakh.report.odds import odds_table
from lakh.report.plotly_figure import figure, plotly_script
from lakh.report.results import JobRehearsal, Rehearsal
from lakh.report.rows import (
    claims_table,
    effects_table,
    evidence_table,
    graph_notes,
    graph_table,
    launchable,
    plan_tables,
    readings_table,
    scale_tables,
    size_text,
    unknowns_table,
)
from lakh.report.tables import Table, as_html

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--paper:#fff;--card:#f6f8fa;--line:#d0d7de;--grid:#e3e7eb;
--accent:#0072b2}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4af;--paper:#0d1117;--card:#161b22;--line:#30363d;
--grid:#262c34;--accent:#56b4e9}}
@media print{:root{color-scheme:light;--ink:#000;--soft:#333;--paper:#fff;--card:#fff;--line:#999;--grid:#ddd;
--accent:#0072b2}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1120px;padding:28px 20px 60px;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:27px;line-height:1.2;margin:0 0 4px}h2{font-size:20px;margin:40px 0 10px;padding-top:14px;
border-top:1px solid var(--line)}h3{font-size:16px;margin:26px 0 8px}
p{margin:6px 0;max-width:80ch}.soft,.note{color:var(--soft)}.note{font-size:13px;margin:2px 0 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:12px;margin:16px 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
.card b{display:block;font-size:22px;line-height:1.25;font-weight:600}.card span{color:var(--soft);font-size:13px}
.chart{height:420px;margin:14px 0 0}.scroll{overflow-x:auto;margin:16px 0 4px}
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums;min-width:50%}
caption{text-align:left;font-weight:600;padding:0 0 6px;font-size:15px}
th,td{padding:5px 14px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}
th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--line)}thead:not(:has(th:not(:empty))){display:none}
.n{text-align:right;white-space:nowrap}
details{margin:4px 0 20px}summary{cursor:pointer;color:var(--accent);font-size:13px}
footer{margin-top:48px;color:var(--soft);font-size:13px;border-top:1px solid var(--line);padding-top:10px}
.js-plotly-plot text{fill:var(--ink)!important}.js-plotly-plot .gridlayer path{stroke:var(--grid)!important}
.js-plotly-plot .hovertext text{fill:#fff!important}.js-plotly-plot .modebar{display:none}
.js-plotly-plot .xlines-above,.js-plotly-plot .ylines-above{stroke:var(--line)!important}
@media print{body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}.chart,table,.card{break-inside:avoid}
.chart{width:100%;height:auto;aspect-ratio:860/400}
.chart .plot-container,.chart .svg-container,.chart .main-svg{width:100%!important;height:100%!important}
details:not([open])>summary{display:none}.scroll{overflow:visible}}
"""

_DRAW = """
const drawn=JSON.parse(document.getElementById("figures").textContent);
drawn.forEach((f,i)=>Plotly.newPlot("chart"+i,f.data,f.layout,f.config));
const figures=drawn.map((_,i)=>document.getElementById("chart"+i));
const sheets=f=>f.querySelectorAll(".main-svg");
// On paper every figure has one size, scaled to the width of the page: a page is laid out only after this event.
addEventListener("beforeprint",()=>figures.forEach(f=>{
  Plotly.relayout(f,{autosize:false,width:860,height:400});
  sheets(f).forEach(s=>s.setAttribute("viewBox","0 0 860 400"));
}));
addEventListener("afterprint",()=>figures.forEach(f=>{
  sheets(f).forEach(s=>s.removeAttribute("viewBox"));
  Plotly.relayout(f,{autosize:true,width:null,height:null});
}));
"""


def _page(title: str, body: str, charts: Sequence[Chart]) -> str:
    """A whole page: everything inside, nothing fetched."""
    figures = json.dumps([jsonable(figure(chart)) for chart in charts], allow_nan=False).replace("</", "<\\/")
    return (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n"
        f"<footer>Made by Lakh {html.escape(version('lakh'))}. This page holds all of its data and opens without a "
        "network.</footer>\n"
        f'<script type="application/json" id=figures>{figures}</script>\n'
        f"<script>{plotly_script()}</script>\n<script>{_DRAW}</script>\n</body>\n</html>\n"
    )


def _chart(chart: Chart, index: int) -> str:
    rows = as_html(chart_rows(chart))
    label = html.escape(f"{chart.title}: {chart.y_label} over {chart.x_label}")
    return (
        f'<div class=chart id=chart{index} role=img aria-label="{label}"></div>\n'
        f"<details><summary>The numbers of this figure</summary>{rows}</details>"
    )


def charts_page(title: str, charts: Sequence[Chart], tables: Sequence[Table]) -> str:
    """Figures, then tables."""
    drawn = "\n".join(_chart(chart, index) for index, chart in enumerate(charts))
    below = "\n".join(as_html(one) for one in tables)
    return _page(title, f"<h1>{html.escape(title)}</h1>\n{drawn}\n{below}", charts)


def _card(value: str, label: str) -> str:
    return f"<div class=card><b>{html.escape(value)}</b><span>{html.escape(label)}</span></div>"


def _job_cards(job: JobRehearsal) -> str:
    best, bar = job.plan.best, job.plan.error_bar
    slow, fast = bar.high_s / best.step_time_s, bar.low_s / best.step_time_s
    mfu = job.plan.mfu["causal"]
    last = job.curve.curve.points[-1]
    cards = [
        _card(
            text.percent(mfu),
            f"MFU of the accelerators used ({text.span(text.percent(mfu / slow), text.percent(mfu / fast))})",
        ),
        _card(
            text.percent(last.scaling_efficiency),
            f"strong scaling efficiency at {last.accelerator_count:,}, from {job.curve.curve.base_count:,}",
        ),
    ]
    run = job.plan.run
    if run is not None:
        time = run.train_time_s
        ends = text.span(text.duration(time.low), text.duration(time.high))
        cards.append(_card(text.duration(time.value), f"to train {text.fact_value(run.tokens, 'token')} ({ends})"))
    power = job.plan.power_watt
    cards.append(
        _card(text.watt(power.value), f"facility power ({text.span(text.watt(power.low), text.watt(power.high))})")
    )
    if run is not None and run.rent is not None:
        ends = text.span(text.money(run.rent.low, run.currency), text.money(run.rent.high, run.currency))
        cards.append(_card(text.money(run.rent.value, run.currency), f"at the on-demand price ({ends})"))
    return f"<div class=cards>{''.join(cards)}</div>"


def _job_tables(job: JobRehearsal) -> list[Table]:
    graph = [graph_table(job)] if job.on_graph else []
    curves = [*scale_tables(job.curve), *scale_tables(job.weak)]
    return [*plan_tables(job.plan), *curves, *graph, effects_table(job)]


def rehearsal_page(one: Rehearsal) -> str:
    """The report of `lakh rehearse`."""
    cluster = one.cluster
    charts = rehearsal_charts(one)
    size = size_text(cluster)
    parts = [
        f"<h1>{html.escape(one.name)}</h1>",
        f"<p class=soft>{html.escape(one.description)}</p>",
        f"<p>{html.escape(cluster.description)}. {size}. Predictions are of steps that nothing interrupts; every band "
        "holds nine of ten measured runs of its kind; every range of the description is listed at the end.</p>",
    ]
    parts += [f"<p class=note>{html.escape(note)}.</p>" for note in one.notes]
    for job in one.jobs:
        best, only = job.plan.best.layout.describe(), launchable(job.plan)
        parts.append(f"<h3>{html.escape(job.job.name)}: {html.escape(job.plan.model.name)}</h3>")
        most = text.counted(job.plan.accelerator_count, "accelerator")
        parts.append(f"<p>Best layout on {most}: <b>{html.escape(best)}</b>{html.escape(only)}</p>")
        parts.append(_job_cards(job))
        outside = job.plan.error_bar.notes
        if outside:
            parts.append(f"<p class=note>Outside what was validated: {html.escape('; '.join(outside))}.</p>")
    parts += [f"<p><b>{html.escape(note)}.</b></p>" for note in graph_notes(one)]
    if one.claims:
        parts.append("<h2>Claims</h2>")
        parts.append(as_html(claims_table(one.claims)))
        parts += [as_html(readings_table(claim)) for claim in one.claims if claim.readings]
    if one.odds is not None:
        parts.append(as_html(odds_table(one.odds)))
    parts.append("<h2>From one node to the whole cluster</h2>")
    parts += [_chart(chart, index) for index, chart in enumerate(charts)]
    for job in one.jobs:
        parts.append(f"<h2>{html.escape(job.job.name)}</h2>")
        parts += [as_html(table) for table in _job_tables(job)]
        if job.plan.launch is not None:
            launch = html.escape(job.plan.launch.text)
            parts.append(f"<details><summary>Launch of the best layout</summary><pre>{launch}</pre></details>")
    parts.append("<h2>What is unknown, and what it rests on</h2>")
    parts.append(as_html(unknowns_table(one.unknowns)))
    parts.append(as_html(evidence_table(one.jobs[0].plan.evidence)))
    return _page(one.name, "\n".join(parts), charts)
