"""What does each result look like as tables? Pure functions from results to rows, for every face."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakh.catalog import Accelerator, Claim, Model, Node
from lakh.evidence import Fact
from lakh.perf.flops import MFU_CONVENTIONS, MfuConvention
from lakh.perf.predict import ErrorBar, Prediction
from lakh.planner import Candidate
from lakh.planner.explain import PART_WORDS, step_parts_s
from lakh.report import text
from lakh.report.odds import odds_table
from lakh.report.results import (
    ClaimComparison,
    JobRehearsal,
    PlanResult,
    Rehearsal,
    RunEstimate,
    ScaleResult,
    Unknown,
    UnknownEffect,
)
from lakh.report.tables import Column, Table, number, table, words
from lakh.spec.cluster import Cluster

if TYPE_CHECKING:
    from lakh.validation.report import ErrorSummary, RowResult, ValidationReport

MEMORY_WORDS: Mapping[str, str] = {
    "weights_bytes": "weights",
    "gradients_bytes": "gradients",
    "optimizer_bytes": "optimizer state",
    "activations_bytes": "activations",
    "logits_bytes": "logits and loss",
    "buffers_bytes": "gathered weights",
}

VERDICT_WORDS: Mapping[str, str] = {
    "below": "below the claim",
    "within": "claim inside the band",
    "above": "above the claim",
    "not-comparable": "not comparable",
}


def _pairs(title: str, rows: Sequence[tuple[str, str]], *, notes: Sequence[str] = ()) -> Table:
    return table(title, ["", words("")], rows, notes=notes)


# --- predict ---------------------------------------------------------------------------------------------------


def error_bar_text(value_s: float, bar: ErrorBar) -> str:
    """A step time with its band."""
    return f"{text.duration(value_s)} ({text.span(text.duration(bar.low_s), text.duration(bar.high_s))})"


def error_bar_notes(bar: ErrorBar) -> list[str]:
    """What the band rests on, and what is outside of it."""
    notes = [
        f"in brackets: where nine of ten measured runs of the kind {bar.kind} lie ({bar.row_count} rows that the "
        "parameters were not fitted to)"
    ]
    if bar.notes:
        notes.append(f"outside what was validated: {'; '.join(bar.notes)}")
    return notes


def prediction_tables(one: Prediction, convention: MfuConvention) -> list[Table]:
    """Summary, parts of the step, memory, and MFU in every convention."""
    bar, step_s = one.error_bar, one.step_time_s
    count = one.layout.accelerator_count
    slow, fast = bar.high_s / step_s, bar.low_s / step_s
    mfu = one.mfu[convention]
    rate = one.tokens_per_s
    rates = text.span(text.tokens_per_s(rate / slow), text.tokens_per_s(rate / fast))
    summary = _pairs(
        f"{one.model.name} on {one.cluster_name}: {one.layout.describe()}",
        [
            ("accelerators", f"{count:,} x {one.accelerator_name}, software {one.generation}"),
            (
                "global batch",
                f"{one.global_batch_sequences:,} sequences of {one.sequence_length:,} tokens, "
                f"{one.micro_batch_count:,} micro-batches per pipeline",
            ),
            ("step time", error_bar_text(step_s, bar)),
            (
                f"MFU, {convention}",
                f"{text.percent(mfu)} ({text.span(text.percent(mfu / slow), text.percent(mfu / fast))}) "
                f"of {text.fact_value(one.peak_flop_per_s, 'flop/second')} dense peak",
            ),
            (
                "throughput",
                f"{text.tokens_per_s(rate)} ({rates}), {one.tokens_per_s_per_accelerator:,.1f} token/s per accelerator",
            ),
            (
                "memory",
                f"{text.gib(one.memory_required_bytes)} of {text.gib(one.memory_capacity_bytes)}: "
                + ("fits" if one.fits else f"{text.gib(one.memory_required_bytes - one.memory_capacity_bytes)} short"),
            ),
        ],
        notes=error_bar_notes(bar),
    )
    parts = [(PART_WORDS.get(name, "visible communication"), value) for name, value in one.parts_s.items()]
    rows = []
    for name, value in parts:
        rows.append((name, text.duration(value), text.percent(value / step_s)))
        if name == "visible communication":
            rows += [
                (f"  of it {group}", text.duration(seconds), text.percent(seconds / step_s))
                for group, seconds in one.exposed_s.items()
                if seconds > 0.0
            ]
    rows.append(("step", text.duration(step_s), text.percent(1.0)))
    step = table("Where the step goes", ["part", number("time"), number("share")], rows)
    memory_rows = [
        (MEMORY_WORDS[name], text.gib(value), text.percent(value / one.memory_capacity_bytes))
        for name, value in one.memory_parts_bytes.items()
    ]
    required = one.memory_required_bytes
    memory_rows.append(("held by the allocator", text.gib(one.memory_allocated_bytes), ""))
    memory_rows.append(
        ("required on the device", text.gib(required), text.percent(required / one.memory_capacity_bytes))
    )
    expected = one.memory_device_bytes
    memory_rows.append(
        ("with usual fragmentation", text.gib(expected), text.percent(expected / one.memory_capacity_bytes))
    )
    memory = table("Memory of the fullest rank", ["part", number("size"), number("of what fits")], memory_rows)
    return [summary, step, memory, mfu_table(one.mfu, convention)]


def mfu_table(mfu: Mapping[MfuConvention, float], shown: MfuConvention) -> Table:
    """MFU in every convention; the others differ by FLOPs counted, never by time."""
    meaning = {
        "causal": "6 x active matmul weights, half of the score matrix, no recompute",
        "full-attention": "the same with the whole score matrix (Megatron-LM)",
        "hfu": "full attention, and recomputed forward passes counted",
        "6n": "6 x all active weights, attention left out",
    }
    rows = [
        (f"{name} *" if name == shown else name, text.percent(mfu[name]), meaning[name])  # type: ignore[index]
        for name in MFU_CONVENTIONS
    ]
    return table("MFU by convention", ["convention", number("MFU"), words("what is counted", rank=1)], rows)


def evidence_table(evidence: Mapping[str, Fact]) -> Table:
    """The facts behind a result, with who says so."""
    rows = [(name, text.fact_text(fact), fact.status, fact.source) for name, fact in evidence.items()]
    return table(
        "What it rests on",
        [words("fact"), words("value"), "status", words("source", rank=1)],
        rows,
    )


# --- plan ------------------------------------------------------------------------------------------------------


def candidate_rows(candidates: Sequence[Candidate]) -> Table:
    """Layouts side by side, the best first."""
    best = candidates[0]
    rows = []
    for position, one in enumerate(candidates, start=1):
        shares = step_parts_s(one)
        communication = sum(value for name, value in shares.items() if name.startswith("exposed"))
        rows.append(
            (
                str(position),
                one.layout.describe(),
                f"{one.accelerator_count:,}",
                text.duration(one.step_time_s),
                f"{one.tokens_per_s / best.tokens_per_s - 1.0:+.1%}" if one is not best else "best",
                text.percent(one.mfu),
                text.percent(shares["bubble_s"] / one.step_time_s),
                text.percent(communication / one.step_time_s),
                text.gib(one.device_bytes),
            )
        )
    columns: list[Column | str] = [
        number("#"),
        Column(heading="layout", wraps=True),
        number("used", rank=2),
        number("step"),
        number("speed", rank=1),
        number("MFU"),
        number("bubble", rank=2),
        number("traffic", rank=2),
        number("memory", rank=1),
    ]
    return table("", columns, rows)


def plan_tables(one: PlanResult, convention: MfuConvention = "causal") -> list[Table]:
    """The answer, the ranked layouts, why, the Pareto front, and the run."""
    best, bar = one.best, one.error_bar
    count = one.search.count
    mfu = one.mfu[convention]
    slow, fast = bar.high_s / best.step_time_s, bar.low_s / best.step_time_s
    summary = _pairs(
        f"{one.model.name} on {one.cluster_name}: {best.layout.describe()}",
        [
            ("accelerators", f"{best.accelerator_count:,} of {one.accelerator_count:,} x {one.accelerator.name}"),
            ("global batch", f"{best.global_batch_sequences:,} sequences of {one.sequence_length:,} tokens"),
            ("step time", error_bar_text(best.step_time_s, bar)),
            (
                f"MFU, {convention}",
                f"{text.percent(mfu)} ({text.span(text.percent(mfu / slow), text.percent(mfu / fast))}) of the "
                f"{best.layout.precision} peak of the accelerators used",
            ),
            ("throughput", text.tokens_per_s(best.tokens_per_s)),
            ("memory", f"{text.gib(best.device_bytes)} of {text.gib(best.capacity_bytes)}"),
            ("power", text.range_text(one.power_watt, text.watt)),
            (
                "searched",
                f"{count.total:,} layouts in {text.duration(one.search_time_s)}: {count.timed:,} timed, "
                f"{count.out_of_memory + count.pruned:,} do not fit; software {one.generation}{launchable(one)}",
            ),
        ],
        notes=[*error_bar_notes(bar), *one.explanation.notes],
    )
    ranked = candidate_rows(one.search.ranked)
    ranked = table("Best layouts, one per (tp, cp, pp, ep)", ranked.columns, ranked.rows)
    why = explanation_table(one)
    front_rows = [
        (
            candidate.layout.describe(),
            text.duration(candidate.step_time_s),
            f"{candidate.accelerator_hours:,.3g}",
            text.energy(candidate.energy_joule) if candidate.energy_joule is not None else text.MISSING,
            text.gib(candidate.headroom_bytes),
        )
        for candidate in one.search.pareto[:12]
    ]
    more = len(one.search.pareto) - len(front_rows)
    front = table(
        "Pareto front: nothing else is better in all of these at once",
        [words("layout"), number("step"), number("accelerator-hours"), number("energy", rank=1), number("memory free")],
        front_rows,
        notes=[f"{more} more with --json"] if more > 0 else [],
    )
    tables = [summary, ranked, why, front]
    if one.run is not None:
        tables.append(run_table(one.run))
    return tables


def launchable(one: PlanResult) -> str:
    """What a framework leaves of the search; empty where any layout was looked at."""
    return "" if one.launch is None else f"; only layouts that {one.launch.framework} can launch"


def explanation_table(one: PlanResult) -> Table:
    """Why the winner wins: against the next family, its neighbours, and what stays unused."""
    lines = [line for line in one.explanation.text.splitlines() if not line.startswith("best: ")]
    lines = [line for line in lines if line not in one.explanation.notes]
    return table("Why", [words("")], [(line,) for line in lines])


def run_table(run: RunEstimate) -> Table:
    """The whole run, if nothing ever fails."""
    rows = [
        ("tokens", text.fact_value(run.tokens, "token")),
        ("steps", f"{run.step_count:,.0f}"),
        ("time to train", text.range_text(run.train_time_s, text.duration)),
        ("power", text.range_text(run.power_watt, text.watt)),
        ("energy", text.range_text(run.energy_joule, text.energy)),
    ]
    if run.energy_cost is not None:
        rows.append(("energy bill", text.range_text(run.energy_cost, lambda value: text.money(value, run.currency))))
    rent = "no price is stated for this cluster"
    if run.rent is not None:
        rent = text.range_text(run.rent, lambda value: text.money(value, run.currency))
    rows.append(("accelerators at the on-demand price", rent))
    return _pairs(
        "The whole run, if nothing ever fails",
        rows,
        notes=[
            "in brackets: error bar of the step and ranges of power and price together; switches and storage left out"
        ],
    )


# --- scale -----------------------------------------------------------------------------------------------------


def scale_tables(one: ScaleResult) -> list[Table]:
    """The curve, what bends it, and which sizes could not be planned."""
    curve = one.curve
    factor = one.mfu_factor
    rows = []
    for point, band in zip(curve.points, one.bands, strict=True):
        run = band.run
        mfu_band = text.span(text.percent(band.mfu.low * factor), text.percent(band.mfu.high * factor))
        rows.append(
            (
                f"{point.accelerator_count:,}",
                text.tokens_per_s(point.tokens_per_s),
                f"{text.percent(point.mfu * factor)}",
                mfu_band,
                text.percent(point.scaling_efficiency),
                text.duration(run.train_time_s.value) if run else text.MISSING,
                text.watt(band.power_watt.value),
                text.money(run.rent.value, run.currency) if run and run.rent else text.MISSING,
                f"{point.candidate.global_batch_sequences:,}",
                point.candidate.layout.describe(),
            )
        )
    columns: list[Column | str] = [
        number("accelerators"),
        number("throughput"),
        number("MFU"),
        number("band", rank=1),
        number("efficiency"),
        number("to train", rank=1),
        number("power", rank=1),
        number("rent", rank=2),
        number("batch", rank=2),
        words("layout", rank=3),
    ]
    planned = "best layout at each size" if curve.replanned else "one layout, grown in dp"
    base = (
        f"efficiency: tokens/s per accelerator over that at {curve.base_count:,} accelerators; {planned}; "
        f"MFU: {one.mfu_convention} convention, unused accelerators included"
    )
    words_of = {"weak": "the batch grows with the accelerators", "strong": "the same batch on every size"}
    title = f"{one.model.name} on {one.cluster_name}, {curve.scaling} scaling: {words_of[curve.scaling]}"
    tables = [_without_empty_columns(table(title, columns, rows, notes=[base]))]
    bends = [bend.text for bend in curve.bends]
    if curve.overall is not None and len(curve.points) > 2:
        bends.append(f"over all: {curve.overall.text}")
    if bends:
        tables.append(table("What bends the curve", [words("")], [(line,) for line in bends]))
    if curve.skipped:
        skipped = [(f"{size.accelerator_count:,}", size.reason) for size in curve.skipped]
        tables.append(table("Sizes without a plan", [number("accelerators"), words("why")], skipped))
    return tables


def _without_empty_columns(one: Table) -> Table:
    """The table without columns in which nothing is known."""
    keep = [i for i in range(len(one.columns)) if any(row[i] != text.MISSING for row in one.rows)]
    columns = [one.columns[i] for i in keep]
    return table(one.title, columns, [[row[i] for i in keep] for row in one.rows], notes=one.notes)


# --- validate --------------------------------------------------------------------------------------------------


def _summary_row(one: ErrorSummary) -> tuple[str, str, str, str, str]:
    return (
        one.group,
        f"{one.row_count:,}",
        text.percent(one.median_error),
        text.percent(one.p90_error),
        text.signed_percent(one.median_bias),
    )


_SUMMARY_COLUMNS: tuple[Column, ...] = (
    words("group"),
    number("rows"),
    number("median error"),
    number("90th percentile"),
    number("bias"),
)


def validation_tables(one: ValidationReport, *, all_rows: bool = False) -> list[Table]:
    """Errors by kind, hardware and source; rows on request; rows that could not be predicted, always."""
    left_out = f", each predicted without its own {one.left_out}" if one.left_out else ""
    tables = [
        table(f"Step time, by kind of model{left_out}", _SUMMARY_COLUMNS, [_summary_row(s) for s in one.by_kind]),
        table("By hardware", _SUMMARY_COLUMNS, [_summary_row(s) for s in one.by_hardware]),
        table("By source", _SUMMARY_COLUMNS, [_summary_row(s) for s in one.by_source]),
    ]
    other = [("rows predicted, of those with a full layout and a time", text.percent(one.predictable_share))]
    if one.memory is not None:
        other.append(
            (
                f"memory, {one.memory.row_count} rows",
                f"median error {text.percent(one.memory.median_error)}, 90th percentile "
                f"{text.percent(one.memory.p90_error)}, bias {text.signed_percent(one.memory.median_bias)}",
            )
        )
    if one.scaling_median_error is not None:
        other.append(
            (
                f"scaling, {len(one.scaling)} series",
                f"median error of the ratio between sizes {text.percent(one.scaling_median_error)}",
            )
        )
    names = ", ".join(one.wrongly_out_of_memory) or "none"
    other.append(("ran, but called out of memory by more than 3 %", names))
    tables.append(_pairs("Other", other))
    skipped: dict[str, list[str]] = {}
    for row in one.rows:
        if row.skipped_reason:
            skipped.setdefault(row.skipped_reason, []).append(row.row_id)
    if skipped:
        rows = [
            (f"{len(ids):,}", reason, ", ".join(ids[:6]) + (", ..." if len(ids) > 6 else ""))
            for reason, ids in sorted(skipped.items(), key=lambda item: (-len(item[1]), item[0]))
        ]
        tables.append(table("Not predicted", [number("rows"), words("why"), words("which", rank=1)], rows))
    if all_rows:
        tables.append(validation_row_table(one.rows))
    return tables


def validation_row_table(rows: Sequence[RowResult]) -> Table:
    """One line per predicted row, the largest error first."""
    timed = sorted(
        (row for row in rows if row.relative_error is not None),
        key=lambda row: (-abs(row.relative_error or 0.0), row.row_id),
    )
    cells = [
        (
            row.row_id,
            row.kind,
            row.hardware,
            f"{row.accelerator_count:,}" if row.accelerator_count else text.MISSING,
            text.duration(row.measured_step_time_s or 0.0),
            text.duration(row.predicted_step_time_s or 0.0),
            text.signed_percent(row.relative_error),
            row.source,
            row.layout,
        )
        for row in timed
    ]
    columns: list[Column | str] = [
        "row",
        Column(heading="kind", rank=2),
        "hardware",
        number("accelerators", rank=1),
        number("measured"),
        number("predicted"),
        number("error"),
        Column(heading="source", rank=3),
        Column(heading="layout", rank=4),
    ]
    return table("Every row, largest error first", columns, cells)


# --- rehearse --------------------------------------------------------------------------------------------------


def claims_table(claims: Sequence[ClaimComparison]) -> Table:
    """Claims beside predictions."""
    rows = []
    for one in claims:
        claimed = text.span(
            text.fact_value(one.claim.value.low, one.claim.value.unit),
            text.fact_value(one.claim.value.high, one.claim.value.unit),
        )
        predicted = text.range_text(one.predicted, text.percent) if one.predicted else text.MISSING
        where = f"{one.job_name}, {one.accelerator_count:,}: " if one.job_name and one.accelerator_count else ""
        rows.append((one.claim.name, claimed, where + one.reason, predicted, VERDICT_WORDS[one.verdict]))
    columns: list[Column | str] = [
        "claim",
        number("claimed"),
        words("read as", rank=1),
        words("predicted"),
        words("verdict"),
    ]
    notes = []
    if any(one.predicted and one.claim.quantity == "scaling_efficiency" for one in claims):
        notes.append("scaling in brackets: from any smaller size of the curve, as the claim states no base")
    return table("Claims beside predictions", columns, rows, notes=notes)


def readings_table(one: ClaimComparison) -> Table:
    """One MFU claim: the predicted step in every convention, over every peak that the claim may mean."""
    peaks = list(dict.fromkeys(reading.precision for reading in one.readings))
    conventions = list(dict.fromkeys(reading.convention for reading in one.readings))
    value = {(reading.convention, reading.precision): reading.value for reading in one.readings}
    rows = [(name, *(text.percent(value.get((name, peak))) for peak in peaks)) for name in conventions]
    claimed = text.fact_value(one.claim.value.value, one.claim.value.unit)
    return table(
        f"{one.claim.name}: {claimed} claimed; predicted",
        ["MFU convention", *(number(f"over the {peak} peak") for peak in peaks)],
        rows,
        notes=[
            f"{one.job_name} on {one.accelerator_count or 0:,} accelerators: one step, read in every way",
            f"not stated by the claim: {'; '.join(one.claim.undefined)}",
        ],
    )


def effects_table(one: JobRehearsal) -> Table:
    """Which unknown moves the step, and how far."""
    rows = [
        (
            effect.name,
            effect.low_text,
            effect.high_text,
            text.signed_percent(effect.step_time_ratio_at_low - 1.0),
            text.signed_percent(effect.step_time_ratio_at_high - 1.0),
        )
        for effect in one.effects
        if _visible(effect)
    ]
    still = _still(one.effects)
    notes = ["step time of the best layout with one unknown at its ends, all else as assumed"]
    if still:
        notes.append(f"no visible effect on this layout: {', '.join(still)}")
    columns: list[Column | str] = [
        words("unknown"),
        number("low end"),
        number("high end"),
        number("step at low"),
        number("step at high"),
    ]
    return table(f"What the unknowns change for {one.job.name}", columns, rows, notes=notes)


def _visible(effect: UnknownEffect) -> bool:
    """Whether either end shows as more than 0.0 %."""
    ends = (effect.step_time_ratio_at_low, effect.step_time_ratio_at_high)
    return max(abs(end - 1.0) for end in ends) >= 0.0005


def _still(effects: Sequence[UnknownEffect]) -> list[str]:
    """Unknowns without a visible effect; those of one kind together, with how many of how many."""
    total = Counter(effect.kind for effect in effects)
    still = Counter(effect.kind for effect in effects if not _visible(effect))
    return [
        kind if still[kind] == total[kind] else f"{kind} ({still[kind]} of {total[kind]})" for kind in sorted(still)
    ]


def _between(low: float, high: float, unit: str) -> str:
    return text.span(text.fact_value(low, unit), text.fact_value(high, unit))


def graph_table(one: JobRehearsal) -> Table:
    """The best layout over closed forms and over the graph of the network."""
    closed = one.plan.best
    groups = ("tp", "cp", "ep", "pp", "dp")
    rows = [
        (
            "closed forms, as planned",
            text.duration(closed.step_time_s),
            "",
            *(text.duration(closed.exposed_s[f"exposed_{group}_s"]) for group in groups),
        )
    ]
    rows += [
        (
            f"graph, {check.case}",
            text.duration(check.step_time_s),
            text.signed_percent(check.step_time_s / closed.step_time_s - 1.0),
            *(text.duration(check.exposed_s[group]) for group in groups),
        )
        for check in one.on_graph
    ]
    columns: list[Column | str] = [
        "network",
        number("step"),
        number("change"),
        *(number(f"{group} traffic", rank=1) for group in groups),
    ]
    notes = ["graph: the flows of all groups at once on the links that they cross, links between sites included"]
    return table(f"{one.job.name} on the graph of the network", columns, rows, notes=notes)


def unknowns_table(unknowns: Sequence[Unknown]) -> Table:
    """Every range of the description, with its reason."""
    rows = [
        (
            one.name,
            _between(one.fact.low, one.fact.high, one.fact.unit),
            text.fact_value(one.fact.value, one.fact.unit),
            one.fact.status,
            one.fact.note or one.fact.source,
        )
        for one in unknowns
    ]
    columns: list[Column | str] = [words("number"), words("between"), words("computed with"), "status", words("why")]
    return table(f"What is unknown: {len(rows)} ranges of the description", columns, rows)


def short_unknowns_table(unknowns: Sequence[Unknown]) -> Table:
    """The same without reasons, ranges of one name together."""
    named: dict[str, list[Fact]] = {}
    for one in unknowns:
        named.setdefault(one.name, []).append(one.fact)
    rows = []
    for name, facts in named.items():
        unit = facts[0].unit
        values = sorted(fact.value for fact in facts)
        rows.append(
            (
                name if len(facts) == 1 else f"{name}, {len(facts)} of them",
                _between(min(fact.low for fact in facts), max(fact.high for fact in facts), unit),
                _between(values[0], values[-1], unit),
            )
        )
    title = f"What is unknown: {len(unknowns)} ranges of the description"
    return table(title, ["number", "between", "computed with"], rows, notes=["reasons and sources: in the report"])


def summary_table(one: Rehearsal) -> Table:
    """The answer in one line per job: the best layout on all accelerators that the job may use."""
    rows = []
    for job in one.jobs:
        best, bar, run = job.plan.best, job.plan.error_bar, job.plan.run
        slow, fast = bar.high_s / best.step_time_s, bar.low_s / best.step_time_s
        mfu, last = job.plan.mfu["causal"], job.curve.curve.points[-1]
        power = job.plan.power_watt
        rows.append(
            (
                job.plan.model.name,
                f"{best.accelerator_count:,}",
                f"{text.percent(mfu)} ({text.span(text.percent(mfu / slow), text.percent(mfu / fast))})",
                text.percent(last.scaling_efficiency),
                text.span(text.duration(run.train_time_s.low), text.duration(run.train_time_s.high))
                if run
                else text.MISSING,
                text.span(text.watt(power.low), text.watt(power.high)),
                text.span(text.money(run.rent.low, run.currency), text.money(run.rent.high, run.currency))
                if run and run.rent
                else text.MISSING,
            )
        )
    columns = [
        words("model"),
        number("used"),
        words("MFU of the accelerators used"),
        number("efficiency"),
        words("to train"),
        words("power"),
        words("rent", rank=1),
    ]
    return table("The answer", columns, rows, notes=graph_notes(one))


def graph_notes(one: Rehearsal) -> list[str]:
    """Jobs whose step is more than a tenth longer on the graph of the described network than in closed forms."""
    notes = []
    for job in one.jobs:
        if not job.on_graph:
            continue
        step_s, graph_s = job.plan.best.step_time_s, job.on_graph[-1].step_time_s
        if graph_s > 1.1 * step_s:
            notes.append(
                f"{job.job.name}: {text.duration(graph_s)} a step instead of {text.duration(step_s)} with every flow "
                "on the graph of the network as described, links between sites included"
            )
    return notes


def size_text(cluster: Cluster) -> str:
    """ "100,000 accelerators in 12,500 nodes at 4 sites"."""
    counts = (cluster.accelerator_count, "accelerator"), (cluster.node_count, "node"), (len(cluster.sites), "site")
    accelerators, nodes, sites = (text.counted(number, noun) for number, noun in counts)
    return f"{accelerators} in {nodes} at {sites}"


def rehearsal_tables(one: Rehearsal) -> list[Table]:
    """What `lakh rehearse` prints, in reading order."""
    cluster = one.cluster
    tables = [
        _pairs(
            f"{one.name}: {one.description}",
            [
                ("cluster", cluster.description or cluster.name),
                ("size", size_text(cluster)),
                ("jobs", ", ".join(f"{job.job.name} ({job.plan.model.name})" for job in one.jobs)),
            ],
            notes=one.notes,
        ),
        summary_table(one),
    ]
    for job in one.jobs:
        summary, ranked, _why, _front, *run = plan_tables(job.plan)
        tables += [summary, ranked]
        tables += scale_tables(job.curve)
        tables.append(scale_tables(job.weak)[0])
        tables += run
        if job.on_graph:
            tables.append(graph_table(job))
        tables.append(effects_table(job))
    if one.claims:
        tables.append(claims_table(one.claims))
        tables += [readings_table(claim) for claim in one.claims if claim.readings]
    if one.odds is not None:
        tables.append(odds_table(one.odds))
    tables.append(short_unknowns_table(one.unknowns))
    return tables


# --- catalog ---------------------------------------------------------------------------------------------------


def _peak(chip: Accelerator, name: str) -> str:
    return (
        text.fact_value(chip.peak_flop_per_s[name].value, "flop/second")
        if name in chip.peak_flop_per_s
        else text.MISSING
    )


def _range_mark(fact: Fact) -> str:
    shown = text.fact_value(fact.value, fact.unit)
    return f"~{shown}" if fact.is_range else shown


def accelerators_table(chips: Sequence[Accelerator]) -> Table:
    """All accelerators; "~" marks the middle of a range."""
    rows = [
        (
            chip.name,
            f"{chip.year}{' (announced)' if chip.announced else ''}",
            _peak(chip, "bf16"),
            _peak(chip, "fp8"),
            _range_mark(chip.memory_bytes),
            _range_mark(chip.memory_bytes_per_s),
            _range_mark(chip.scale_up_bytes_per_s),
            _range_mark(chip.board_power_watt),
            chip.maker,
        )
        for chip in chips
    ]
    columns: list[Column | str] = [
        "accelerator",
        Column(heading="year", rank=2),
        number("bf16 peak"),
        number("fp8 peak", rank=1),
        number("memory"),
        number("bandwidth", rank=1),
        number("links, one way", rank=1),
        number("board", rank=2),
        Column(heading="maker", rank=3),
    ]
    note = "dense peaks; links: one accelerator, one direction; ~: middle of a range"
    return table(f"Accelerators ({len(chips)})", columns, rows, notes=[note])


def nodes_table(kinds: Sequence[Node]) -> Table:
    rows = [
        (
            kind.name,
            f"{kind.accelerator_count} x {kind.accelerator}",
            f"{kind.scale_up.kind} of {kind.scale_up.domain_size}",
            f"{kind.nic_count} x {_range_mark(kind.nic_bytes_per_s)}",
            _range_mark(kind.host_power_watt),
            kind.maker,
        )
        for kind in kinds
    ]
    columns: list[Column | str] = [
        "node",
        "accelerators",
        Column(heading="scale-up", rank=1),
        number("network, one way", rank=1),
        number("host power", rank=2),
        Column(heading="maker", rank=3),
    ]
    return table(f"Nodes ({len(kinds)})", columns, rows)


def models_table(known: Sequence[Model]) -> Table:
    rows = [
        (
            model.name,
            f"{model.parameter_count / 1e9:,.1f}",
            f"{model.active_parameter_count / 1e9:,.1f}",
            str(model.layer_count),
            f"{model.hidden_size:,}",
            f"{model.experts.expert_count} x {model.experts.experts_per_token}" if model.experts else text.MISSING,
            model.family,
        )
        for model in known
    ]
    columns: list[Column | str] = [
        "model",
        number("billion"),
        number("active billion"),
        number("layers"),
        number("hidden", rank=1),
        number("experts x per token", rank=1),
        Column(heading="family", rank=2),
    ]
    return table(f"Models ({len(known)})", columns, rows, notes=["parameters counted from the architecture"])


def clusters_table(known: Sequence[Cluster]) -> Table:
    rows = [
        (
            cluster.name,
            f"{cluster.accelerator_count:,}",
            ", ".join(kind.name for kind in cluster.nodes),
            str(len(cluster.sites)),
            cluster.description,
        )
        for cluster in known
    ]
    columns: list[Column | str] = [
        "cluster",
        number("accelerators"),
        "node",
        number("sites", rank=2),
        words("description", rank=1),
    ]
    return table(f"Clusters ({len(known)})", columns, rows)


def claim_list_table(known: Sequence[Claim]) -> Table:
    rows = [(claim.name, text.fact_text(claim.value), claim.who, claim.when, claim.statement) for claim in known]
    columns: list[Column | str] = [
        "claim",
        words("value"),
        words("who", rank=1),
        Column(heading="when", rank=1),
        words("statement"),
    ]
    return table(f"Claims ({len(known)})", columns, rows)


def facts_table(name: str, facts: Sequence[tuple[str, Fact]], plain: Sequence[tuple[str, str]]) -> list[Table]:
    """One entry in full: what is plain, and every fact with its source."""
    tables = [_pairs(name, plain)]
    if facts:
        rows = [
            (label, text.fact_text(fact), fact.status, "; ".join(part for part in (fact.source, fact.note) if part))
            for label, fact in facts
        ]
        tables.append(table("Facts", [words("field"), words("value"), "status", words("source and note")], rows))
    return tables
