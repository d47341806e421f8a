"""Is the claim true, how likely, and under which reading? The one function behind `lakh check`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lakh.catalog import Claim, Model
from lakh.catalog.calibration import Calibration
from lakh.claims.effective_time import (
    EFFECTIVE_TIMES,
    EffectiveQuestion,
    EffectiveTime,
    effective_question,
    effective_time,
)
from lakh.claims.must_be_true import MustBeTrue, must_be_true
from lakh.claims.outlook import RunOutlook, run_outlook
from lakh.claims.sensitivity import Measurement, Sensitivity, Swing, measurements, sensitivities, tornado
from lakh.claims.throughput import (
    LayoutSet,
    Question,
    Throughput,
    activity_at_middle,
    in_precision,
    joined,
    layouts_for,
    mfu_of,
    reduced,
    throughput,
)
from lakh.claims.unknowns import MeasuredValue, Unknown, narrowed, step_unknowns
from lakh.claims.workload import Workload, workload_of
from lakh.claims.worlds import Worlds, scaling_error, sobol_points, worlds_at
from lakh.columns import Array, Mask
from lakh.errors import InfeasibleError, Problem, RequestError
from lakh.perf.flops import MfuConvention, model_flop_per_token
from lakh.perf.system_of import DEFAULT_GENERATION, System, system_of
from lakh.planner import Range, plan_request
from lakh.reliability.checkpoints import STATE_BYTES_PER_PARAMETER
from lakh.spec.cluster import Cluster

DEFAULT_SAMPLES = 4_096
FEWEST_SAMPLES = 64
CURVE_SAMPLES = 512
"""Samples per size of the curve; the size that is asked about takes all."""

FIRST_LOOK = 256
"""Samples that say which layouts are ever best."""

CURVE_SIZES: tuple[int, ...] = (8, 64, 512, 1_024, 4_096, 10_240, 25_000, 50_000, 100_000)

STATED_SIZE = 10_240
"""Accelerators of the cluster that the vendor's figures of December 2025 were stated for (prospectus, KUAE2 row)."""

LARGEST_VALIDATED = 8_192
"""Beyond this size a predicted MFU carries the error of extrapolation as well."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A quantity over samples: nine cases of ten lie between p05 and p95."""

    p05: float
    p50: float
    p95: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The claim with its undefined parts read one way."""

    name: str
    text: str
    accelerator_count: int
    probability: float | None
    """That the claim holds so read; None where it cannot be judged [ratio]."""
    quantity: Band | None
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """The headline reading at one size."""

    accelerator_count: int
    quantity: Band
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedPoint:
    """A size at which the claim cannot be judged."""

    accelerator_count: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Odds of one claim on one cluster, and what they rest on. Ratios 0 to 1."""

    claim: Claim
    cluster_name: str
    model_name: str
    accelerator_count: int
    asks: str
    """What must hold, in words: "MFU of at least 60.0 %"."""
    headline: str
    """How the undefined parts are read in `probability` and `quantity`: the reading of the first row."""
    probability: float | None
    quantity: Band | None
    readings: tuple[Reading, ...]
    deciding_unknowns: tuple[Sensitivity, ...]
    """Largest total effect first."""
    tornado: tuple[Swing, ...]
    """Each unknown on its own, widest first."""
    must_be_true: MustBeTrue | None
    curve: tuple[CurvePoint, ...]
    skipped: tuple[SkippedPoint, ...]
    first_fails_at: int | None
    """The smallest size at which the odds are below one half (a claimed range: outside of the band); None: nowhere."""
    measurements: tuple[Measurement, ...]
    """What would settle it, most valuable first."""
    unknowns: tuple[Unknown, ...]
    sample_count: int
    seed: int
    plan_count: int
    """Layouts timed over all samples, readings and sizes."""
    notes: tuple[str, ...]
    outlook: RunOutlook | None
    """What a whole run would take and cost at the predicted rate; None for claims that are not about MFU."""
    samples: Array = field(repr=False)
    """The quantity in every sample of the headline reading; empty where there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What must hold."""

    low: float
    high: float

    def margin(self, quantity: Array) -> Array:
        """Positive where it holds; in units of the quantity."""
        return (
            np.minimum(quantity - self.low, self.high - quantity) if math.isfinite(self.high) else quantity - self.low
        )

    def holds(self, quantity: Array) -> Mask:
        return np.asarray(self.margin(quantity) >= 0.0)


_NAMES: Mapping[str, str] = {
    "mfu": "MFU",
    "scaling_efficiency": "scaling efficiency",
    "effective_time": "effective training time",
}


def target_of(claim: Claim) -> tuple[Target, str]:
    """A claim's value as limits: a range is a band to be met, except that "above 90 %" has no upper end."""
    name, value = _NAMES[claim.quantity], claim.value
    if value.is_range and value.high < 1.0:
        return Target(low=value.low, high=value.high), f"{name} between {value.low:.1%} and {value.high:.1%}"
    return Target(low=value.low, high=math.inf), f"{name} of at least {value.low:.1%}"


def band_of(values: Array) -> Band:
    """5th, 50th and 95th percentile."""
    p05, p50, p95 = (float(x) for x in np.quantile(values, (0.05, 0.5, 0.95)))
    return Band(p05=p05, p50=p50, p95=p95)


def check(
    claim: Claim,
    cluster: Cluster,
    model: Model,
    *,
    accelerator_count: int | None = None,
    sequence_length: int | None = None,
    global_batch_sequences: int | None = None,
    sample_count: int = DEFAULT_SAMPLES,
    seed: int = 0,
    measured: Sequence[MeasuredValue] = (),
    sizes: Sequence[int] | None = None,
    generation: str | None = None,
    calibration: Calibration | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """The odds of a claim, the unknowns that decide them, and what would have to be true.

    Args:
        claim: what was said
        cluster: where it is judged; its ranges are unknowns, its single values are taken as known
        model: what is trained
        accelerator_count: size of the one job; all of the cluster unless given
        sequence_length, global_batch_sequences: of a step; as the model's makers published unless given
        sample_count: samples of all unknowns at once; a power of two is best
        seed: of the samples; the same seed gives the same verdict
        measured: what a measurement file says of unknowns
        sizes: of the curve; 8 to 100,000 unless given
        generation: framework generation
        calibration: fitted parameters; the shipped ones unless given
        progress: told what is done

    Raises:
        RequestError: asked wrongly; every problem is listed
        InfeasibleError: the model fits nowhere at the size asked about
    """
    _check_request(cluster, accelerator_count, sample_count, seed, sizes)
    asked = _Asked(
        claim=claim,
        cluster=cluster,
        system=system_of(cluster, calibration=calibration),
        work=workload_of(model, sequence_length=sequence_length, global_batch_sequences=global_batch_sequences),
        count=accelerator_count or system_of(cluster, calibration=calibration).accelerator_count,
        sample_count=sample_count,
        seed=seed,
        measured=tuple(measured),
        sizes=tuple(sizes) if sizes is not None else CURVE_SIZES,
        generation=generation or DEFAULT_GENERATION,
        calibration=calibration,
        progress=progress or (lambda label, done, total: None),
    )
    judges: Mapping[str, Callable[[_Asked], Verdict]] = {
        "mfu": _judge_mfu,
        "scaling_efficiency": _judge_scaling,
        "effective_time": _judge_effective_time,
        "scale_up_bytes_per_s": _judge_scale_up,
    }
    judge = judges.get(claim.quantity)
    if judge is None:
        accepted = "a claim about mfu, scaling_efficiency, effective_time or scale_up_bytes_per_s"
        raise RequestError(Problem(where=f"claim {claim.name}: quantity", found=claim.quantity, accepted=accepted))
    return judge(asked)


def _check_request(
    cluster: Cluster, count: int | None, sample_count: int, seed: int, sizes: Sequence[int] | None
) -> None:
    problems = []
    if count is not None and not 1 <= count <= cluster.accelerator_count:
        accepted = f"1 to the {cluster.accelerator_count:,} accelerators of {cluster.name}"
        problems.append(Problem(where="accelerators", found=count, accepted=accepted))
    if sample_count < FEWEST_SAMPLES:
        problems.append(Problem(where="samples", found=sample_count, accepted=f"{FEWEST_SAMPLES} or more"))
    if seed < 0:
        problems.append(Problem(where="seed", found=seed, accepted="0 or more"))
    problems += [
        Problem(where="sizes", found=size, accepted="whole numbers of 1 or more") for size in sizes or () if size < 1
    ]
    if problems:
        raise RequestError(problems)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """Everything that was asked, and a cache of nothing: each judge builds what it needs."""

    claim: Claim
    cluster: Cluster
    system: System
    work: Workload
    count: int
    sample_count: int
    seed: int
    measured: tuple[MeasuredValue, ...]
    sizes: tuple[int, ...]
    generation: str
    calibration: Calibration | None
    progress: Progress

    def question(self, accelerator_count: int, batch: int, *, generation: str | None = None) -> Question:
        request = plan_request(
            self.work.model,
            self.system,
            sequence_length=self.work.sequence_length,
            global_batch_sequences=batch,
            accelerator_count=accelerator_count,
            generation=generation or self.generation,
        )
        unknowns = step_unknowns(self.cluster, self.system, request, calibration=self.calibration)
        return Question(
            cluster=self.cluster,
            request=request,
            accelerators_per_node=self.system.node.accelerator_count,
            unknowns=narrowed(unknowns, self.measured),
        )

    def judged_sizes(self) -> tuple[int, ...]:
        """The size asked about, and the size that the claim was stated for where it names ten thousand cards."""
        stated = "10,000" in self.claim.conditions.get("accelerators", "") and self.count > STATED_SIZE
        return (self.count, STATED_SIZE) if stated else (self.count,)

    def curve_sizes(self) -> tuple[int, ...]:
        inside = {size for size in self.sizes if size <= self.count}
        return tuple(sorted(inside | {self.count}))


class _Timer:
    """Questions with their layouts, and how many plans were timed."""

    def __init__(self, asked: _Asked, points: Array, unknowns: tuple[Unknown, ...]) -> None:
        self.asked, self.points, self.unknowns = asked, points, unknowns
        self.worlds = worlds_at(unknowns, points)
        self.plan_count = 0
        self._sets: dict[tuple[int, int, str, str], tuple[Question, LayoutSet]] = {}

    def prepared(
        self, count: int, batch: int, precision: str = "bf16", *, full: bool = True, generation: str = ""
    ) -> tuple[Question, LayoutSet]:
        """The layouts of a size among which samples choose; raises where nothing fits."""
        key = (count, batch, precision, generation)
        if key not in self._sets:
            question = replace(self.asked.question(count, batch, generation=generation or None), unknowns=self.unknowns)
            found = layouts_for(question, corners=4 if full else 2)
            if precision != "bf16":
                found = joined(in_precision(found, precision), layouts_for(question, corners=1, precision=precision))
            look = self.worlds.take(slice(0, FIRST_LOOK if full else FIRST_LOOK // 2))
            self.plan_count += found.size * look.count
            self._sets[key] = (question, reduced(question, found, look))
        return self._sets[key]

    def rate(
        self,
        count: int,
        batch: int,
        precision: str = "bf16",
        *,
        worlds: Worlds | None = None,
        full: bool = True,
        generation: str = "",
    ) -> tuple[Question, Throughput]:
        question, layouts = self.prepared(count, batch, precision, full=full, generation=generation)
        chosen = self.worlds if worlds is None else worlds
        self.plan_count += layouts.size * chosen.count
        return question, throughput(question, layouts, chosen)


def _size_error(worlds: Worlds, count: int) -> Array:
    """What extrapolation beyond the largest measured run adds to the error of a rate."""
    return scaling_error(worlds, max(count / LARGEST_VALIDATED, 1.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Judged:
    """A headline and everything that is derived from it."""

    samples: Array
    holds: Mask
    deciding: tuple[Sensitivity, ...]
    needed: MustBeTrue
    swings: tuple[Swing, ...]


def _judged(
    asked: _Asked,
    target: Target,
    quantity: Callable[[Worlds], Array],
    timer_points: Array,
    unknowns: Sequence[Unknown],
) -> _Judged:
    samples = quantity(worlds_at(unknowns, timer_points))
    holds = target.holds(samples)
    asked.progress("ranking the unknowns", 0, 0)
    deciding = sensitivities(quantity, unknowns, points=timer_points, holds=holds, seed=asked.seed)
    needed = must_be_true(
        lambda w: target.margin(quantity(w)),
        quantity,
        unknowns,
        points=timer_points,
        margins=target.margin(samples),
    )
    swings = tornado(quantity, unknowns)
    return _Judged(samples=samples, holds=holds, deciding=deciding, needed=needed, swings=swings)


def _reading(name: str, text: str, count: int, samples: Array, target: Target, note: str = "") -> Reading:
    return Reading(
        name=name,
        text=text,
        accelerator_count=count,
        probability=float(np.mean(target.holds(samples))),
        quantity=band_of(samples),
        note=note,
    )


def _unread(name: str, text: str, count: int, reason: str) -> Reading:
    return Reading(name=name, text=text, accelerator_count=count, probability=None, quantity=None, note=reason)


def _points_of(asked: _Asked, unknowns: Sequence[Unknown]) -> Array:
    return sobol_points(unknowns, asked.sample_count, asked.seed)


_CONVENTION_WORDS: Mapping[MfuConvention, str] = {
    "causal": "causal attention",
    "full-attention": "full attention matrix",
    "hfu": "full attention matrix, recomputation counted",
    "6n": "6 x active weights, no attention",
}


def _judge_mfu(asked: _Asked) -> Verdict:
    target, asks = target_of(asked.claim)
    work, count = asked.work, asked.count
    head = asked.question(count, work.grown_batch(count))
    points = _points_of(asked, head.unknowns)
    timer = _Timer(asked, points, head.unknowns)
    has_fp8 = float(asked.system.input.device.fp8_flop_per_s) > 1.01 * float(asked.system.input.device.wide_flop_per_s)
    wide_peak = timer.worlds.get("card-peak", float(asked.system.input.device.wide_flop_per_s))

    asked.progress("planning for thousands of worlds", 0, 0)
    question, layouts = timer.prepared(count, work.grown_batch(count))

    def quantity(w: Worlds) -> Array:
        timer.plan_count += layouts.size * w.count
        return mfu_of(question, throughput(question, layouts, w), "causal") * _size_error(
            w, question.request.accelerator_count
        )

    judged = _judged(asked, target, quantity, points, head.unknowns)
    readings: list[Reading] = []
    sizes = asked.judged_sizes()
    for size in sizes:
        batch = work.grown_batch(size)
        where = f"{size:,} cards"
        try:
            _, wide = timer.rate(size, batch)
        except (InfeasibleError, RequestError) as error:
            readings.append(_unread(f"bf16-causal-{size}", f"BF16, {where}", size, str(error)))
            continue
        beyond = _size_error(timer.worlds, size)
        asking = question.at_size(size, batch)
        for convention, words in _CONVENTION_WORDS.items():
            samples = mfu_of(asking, wide, convention) * beyond
            text = f"BF16 over the BF16 peak, {words}, {where}"
            readings.append(_reading(f"bf16-{convention}-{size}", text, size, samples, target))
        if has_fp8:
            _, narrow = timer.rate(size, batch, "fp8")
            for over, peak, convention in (
                ("fp8", None, "causal"),
                ("bf16", wide_peak, "causal"),
                ("bf16", wide_peak, "full-attention"),
            ):
                chosen: MfuConvention = convention
                samples = mfu_of(asking, narrow, chosen, peak_flop_per_s=peak) * beyond
                text = f"FP8 matmuls over the {over.upper()} peak, {_CONVENTION_WORDS[chosen]}, {where}"
                readings.append(_reading(f"fp8-over-{over}-{convention}-{size}", text, size, samples, target))
        published = work.published_batch(size)
        if published != batch:
            _, held = timer.rate(size, published)
            samples = mfu_of(asking, held, "causal") * beyond
            tokens = published * work.sequence_length / 1e6
            text = f"BF16 over the BF16 peak, causal attention, batch held at {tokens:.1f} M tokens, {where}"
            readings.append(_reading(f"bf16-causal-published-batch-{size}", text, size, samples, target))
    readings += _generation_readings(asked, timer, question, target)
    curve, skipped = _curve(asked, target, timer, _mfu_at(asked, timer))
    tokens = work.grown_batch(count) * work.sequence_length / 1e6
    return _verdict(
        asked,
        asks=asks,
        headline=f"{readings[0].text}, batch of {tokens:.1f} M tokens, no failures",
        judged=judged,
        readings=readings,
        curve=curve,
        skipped=skipped,
        unknowns=head.unknowns,
        plan_count=timer.plan_count,
        notes=_step_notes(asked, head.unknowns),
        outlook=_outlook(asked, question, layouts, curve),
    )


def _outlook(asked: _Asked, question: Question, layouts: LayoutSet, curve: Sequence[CurvePoint]) -> RunOutlook | None:
    """The run at the predicted rates; None where nothing says how many tokens it has."""
    if asked.work.tokens is None or not curve:
        return None
    model = question.request.model_input
    flop = float(model_flop_per_token(model, np.asarray(float(asked.work.sequence_length))))
    peak = float(asked.system.input.device.wide_flop_per_s)
    rates = {
        point.accelerator_count: Range(
            low=point.quantity.p05 * peak / flop,
            value=point.quantity.p50 * peak / flop,
            high=point.quantity.p95 * peak / flop,
        )
        for point in curve
    }
    size_bytes = asked.work.model.parameter_count * STATE_BYTES_PER_PARAMETER
    effective = effective_question(asked.cluster, asked.count, size_bytes)
    effective = replace(effective, unknowns=narrowed(effective.unknowns, asked.measured))
    return run_outlook(
        asked.cluster,
        asked.system,
        tokens=asked.work.tokens,
        tokens_per_step=float(asked.work.grown_batch(asked.count) * asked.work.sequence_length),
        accelerator_count=asked.count,
        activity=activity_at_middle(question, layouts),
        rate_per_accelerator=rates,
        effective=effective,
        seed=asked.seed,
    )


def _generation_readings(asked: _Asked, timer: _Timer, question: Question, target: Target) -> list[Reading]:
    """For a claim about the past: the frameworks of its time."""
    others = {"megatron-2022": "megatron-2023"}.get(asked.generation)
    if others is None:
        return []
    batch = asked.work.grown_batch(asked.count)
    _, found = timer.rate(asked.count, batch, generation=others)
    samples = mfu_of(question, found, "causal") * _size_error(timer.worlds, asked.count)
    text = f"BF16, causal attention, {asked.count:,} cards, framework generation {others}"
    return [_reading(f"bf16-causal-{others}", text, asked.count, samples, target)]


def _mfu_at(asked: _Asked, timer: _Timer) -> Callable[[int, Worlds], Array]:
    def at(size: int, worlds: Worlds) -> Array:
        question, found = timer.rate(size, asked.work.grown_batch(size), worlds=worlds, full=size == asked.count)
        return mfu_of(question, found, "causal") * _size_error(worlds, size)

    return at


def _curve(
    asked: _Asked, target: Target, timer: _Timer, at: Callable[[int, Worlds], Array]
) -> tuple[tuple[CurvePoint, ...], tuple[SkippedPoint, ...]]:
    worlds = timer.worlds.take(slice(0, min(CURVE_SAMPLES, timer.worlds.count)))
    points, skipped = [], []
    sizes = asked.curve_sizes()
    for index, size in enumerate(sizes):
        asked.progress(f"the curve at {size:,}", index, len(sizes))
        try:
            samples = at(size, worlds)
        except (InfeasibleError, RequestError) as error:
            reason = str(error).splitlines()[0]
            skipped.append(SkippedPoint(accelerator_count=size, reason=reason))
            continue
        odds = float(np.mean(target.holds(samples)))
        points.append(CurvePoint(accelerator_count=size, quantity=band_of(samples), probability=odds))
    return tuple(points), tuple(skipped)


def _first_failure(curve: Sequence[CurvePoint], target: Target) -> int | None:
    """The smallest size at which a claim fails: odds below one half; for a claimed range, no overlap with the band."""
    for point in curve:
        band = point.quantity
        if math.isfinite(target.high):
            failed = band.p95 < target.low or band.p05 > target.high
        else:
            failed = point.probability < 0.5
        if failed:
            return point.accelerator_count
    return None


def _verdict(
    asked: _Asked,
    *,
    asks: str,
    headline: str,
    judged: _Judged,
    readings: Sequence[Reading],
    curve: tuple[CurvePoint, ...],
    skipped: tuple[SkippedPoint, ...],
    unknowns: tuple[Unknown, ...],
    plan_count: int,
    notes: Sequence[str],
    outlook: RunOutlook | None = None,
) -> Verdict:
    return Verdict(
        claim=asked.claim,
        cluster_name=asked.cluster.name,
        model_name=asked.work.model.name,
        accelerator_count=asked.count,
        asks=asks,
        headline=headline,
        probability=float(np.mean(judged.holds)),
        quantity=band_of(judged.samples),
        readings=tuple(readings),
        deciding_unknowns=judged.deciding,
        tornado=judged.swings,
        must_be_true=judged.needed,
        curve=curve,
        skipped=skipped,
        first_fails_at=_first_failure(curve, target_of(asked.claim)[0]),
        measurements=measurements(judged.deciding, unknowns, probability=float(np.mean(judged.holds))),
        unknowns=unknowns,
        sample_count=asked.sample_count,
        seed=asked.seed,
        plan_count=plan_count,
        notes=tuple(notes),
        outlook=outlook,
        samples=judged.samples,
    )


def _step_notes(asked: _Asked, unknowns: Sequence[Unknown]) -> list[str]:
    notes = [f"workload: {asked.work.source}"]
    if asked.count > LARGEST_VALIDATED:
        notes.append(f"{asked.count:,} accelerators; the largest measured run had {LARGEST_VALIDATED:,}")
    if asked.system.accelerator.announced:
        notes.append(f"{asked.system.accelerator.name} is announced, not shipping")
    if math.isfinite(target_of(asked.claim)[0].high):
        notes.append("a claimed range is met only from both sides; odds of a narrow one are low even where it is right")
    pinned = [one.title for one in unknowns if not one.is_open]
    if pinned:
        notes.append(f"taken as known: {'; '.join(pinned)}")
    return notes


def _judge_scaling(asked: _Asked) -> Verdict:
    target, asks = target_of(asked.claim)
    work, count = asked.work, asked.count
    head = asked.question(count, work.weak_batch(count))
    points = _points_of(asked, head.unknowns)
    timer = _Timer(asked, points, head.unknowns)
    bases = [size for size in (1_024, 10_240) if size < count]
    per_node = asked.system.node.accelerator_count
    if not bases:
        bases = [per_node]
    base = bases[0]

    def ratio(size: int, start: int, batch: Callable[[int], int], w: Worlds, *, full: bool = True) -> Array:
        _, large = timer.rate(size, batch(size), worlds=w, full=full)
        _, small = timer.rate(start, batch(start), worlds=w)
        growth = large.tokens_per_s / size / (small.tokens_per_s / start)
        return np.asarray(growth * scaling_error(w, size / start))

    def quantity(w: Worlds) -> Array:
        return ratio(count, base, work.weak_batch, w)

    asked.progress("planning for thousands of worlds", 0, 0)
    judged = _judged(asked, target, quantity, points, head.unknowns)
    readings: list[Reading] = []
    batches: tuple[tuple[str, str, Callable[[int], int]], ...] = (
        ("weak", f"{_tokens_per_card(work)} tokens per card at every size", work.weak_batch),
        (
            "strong",
            f"batch held at {work.published_batch_sequences * work.sequence_length / 1e6:.1f} M tokens",
            work.published_batch,
        ),
    )
    ends = asked.judged_sizes()
    for size in ends:
        for kind, words, batch in batches:
            for start in (*bases, per_node):
                if start >= size:
                    continue
                label = "one node" if start == per_node else f"{start:,}"
                text = f"from {label} to {size:,} cards, {kind} scaling ({words})"
                name = f"{kind}-{start}-to-{size}"
                try:
                    samples = ratio(size, start, batch, timer.worlds)
                except (InfeasibleError, RequestError) as error:
                    readings.append(_unread(name, text, size, str(error).splitlines()[0]))
                    continue
                readings.append(_reading(name, text, size, samples, target))
    curve, skipped = _curve(
        asked,
        target,
        timer,
        lambda size, w: np.ones(w.count) if size == base else ratio(size, base, work.weak_batch, w, full=size == count),
    )
    return _verdict(
        asked,
        asks=asks,
        headline=f"{readings[0].text}, one step, no failures",
        judged=judged,
        readings=readings,
        curve=tuple(p for p in curve if p.accelerator_count >= base),
        skipped=skipped,
        unknowns=head.unknowns,
        plan_count=timer.plan_count,
        notes=_step_notes(asked, head.unknowns),
    )


def _tokens_per_card(work: Workload) -> str:
    return f"{work.weak_batch(1_024_000) * work.sequence_length / 1_024_000:,.0f}"


_EFFECTIVE_WORDS: Mapping[EffectiveTime, str] = {
    "effective": "wall time less stops, waits, lost work and checkpoint stalls",
    "ettr": "productive over wall time, slow-downs lost too (ETTR)",
    "not-stopped": "wall time less stops and restarts; repeated work counts",
}


def _judge_effective_time(asked: _Asked) -> Verdict:
    target, asks = target_of(asked.claim)
    count = asked.count
    size_bytes = asked.work.model.parameter_count * STATE_BYTES_PER_PARAMETER
    question = effective_question(asked.cluster, count, size_bytes)
    unknowns = narrowed(question.unknowns, asked.measured)
    question = replace(question, unknowns=unknowns)
    points = _points_of(asked, unknowns)
    worlds = worlds_at(unknowns, points)
    asked.progress("failing in thousands of worlds", 0, 0)
    judged = _judged(asked, target, lambda w: effective_time(question, w), points, unknowns)
    readings = []
    for size in asked.judged_sizes():
        sized = question if size == count else question.at_size(size)
        for name in EFFECTIVE_TIMES:
            definition: EffectiveTime = name  # type: ignore[assignment]
            samples = effective_time(sized, worlds, definition)
            text = f"{_EFFECTIVE_WORDS[definition]}, one job on {size:,} cards"
            readings.append(_reading(f"{name}-{size}", text, size, samples, target))
    curve = _effective_curve(asked, question, worlds.take(slice(0, min(CURVE_SAMPLES, worlds.count))), target)
    return _verdict(
        asked,
        asks=asks,
        headline=readings[0].text,
        judged=judged,
        readings=readings,
        curve=curve,
        skipped=(),
        unknowns=unknowns,
        plan_count=0,
        notes=[
            f"failure profile {question.profile.name}: {question.profile.definition}",
            f"checkpoint of {size_bytes / 1e12:.2f} TB ({asked.work.model.name}, {STATE_BYTES_PER_PARAMETER:g} bytes "
            "a parameter)",
            "a run of 54 days; spares sized for 99 % availability",
        ],
    )


def _effective_curve(
    asked: _Asked, question: EffectiveQuestion, worlds: Worlds, target: Target
) -> tuple[CurvePoint, ...]:
    points = []
    for size in asked.curve_sizes():
        samples = effective_time(question.at_size(size), worlds)
        odds = float(np.mean(target.holds(samples)))
        points.append(CurvePoint(accelerator_count=size, quantity=band_of(samples), probability=odds))
    return tuple(points)


def _judge_scale_up(asked: _Asked) -> Verdict:
    """A chip that nobody can buy has no odds; what its links would change has.

    The quantity is the throughput of the model with the claimed links over that with the cluster's own, everything
    else as it is.
    """
    work, count = asked.work, asked.count
    batch = work.grown_batch(count)
    head = asked.question(count, batch)
    points = _points_of(asked, head.unknowns)
    timer = _Timer(asked, points, head.unknowns)
    network = asked.system.input.network
    own = float(network.scale_up_bytes_per_s)
    _, before = timer.rate(count, batch)
    readings, best = [], None
    value = asked.claim.value
    mesh, switched = float(network.scale_up_kind), 1.0
    for name, words, rate, kind, domain in (
        ("half", "the sum of both directions, same 8-card mesh", value.low, mesh, float(network.scale_up_domain_size)),
        ("whole", "one direction, same 8-card mesh", value.high, mesh, float(network.scale_up_domain_size)),
        ("half-switched-64", "the sum of both directions, 64 cards switched", value.low, switched, 64.0),
    ):
        changed = replace(
            network,
            scale_up_bytes_per_s=np.asarray(rate),
            scale_up_kind=np.asarray(kind),
            scale_up_domain_size=np.asarray(domain),
        )
        question = replace(head, request=replace(head.request, system=replace(head.request.system, network=changed)))
        asked.progress(f"planning with {rate / 1e9:.0f} GB/s", 0, 0)
        layouts = layouts_for(question, corners=2)
        layouts = reduced(question, layouts, timer.worlds.take(slice(0, FIRST_LOOK)))
        timer.plan_count += layouts.size * timer.worlds.count
        after = throughput(question, layouts, timer.worlds)
        gain = after.tokens_per_s / before.tokens_per_s
        links = f"{rate / 1e9:,.0f} GB/s one way ({words})"
        text = f"{links}: throughput over that with {own / 1e9:,.0f} GB/s, {count:,} cards"
        readings.append(
            Reading(
                name=name,
                text=text,
                accelerator_count=count,
                probability=None,
                quantity=band_of(gain),
                note="what it would change; whether it is true nobody outside can measure before the chip ships",
            )
        )
        if best is None:
            best = gain
    assert best is not None
    return Verdict(
        claim=asked.claim,
        cluster_name=asked.cluster.name,
        model_name=work.model.name,
        accelerator_count=count,
        asks=f"scale-up links of {value.low / 1e9:,.0f} to {value.high / 1e9:,.0f} GB/s per card, one direction",
        headline=f"not judged: the chip does not ship; shown is the effect on throughput, {readings[0].text}",
        probability=None,
        quantity=band_of(best),
        readings=tuple(readings),
        deciding_unknowns=(),
        tornado=(),
        must_be_true=None,
        curve=(),
        skipped=(),
        first_fails_at=None,
        measurements=(),
        unknowns=head.unknowns,
        sample_count=asked.sample_count,
        seed=asked.seed,
        plan_count=timer.plan_count,
        notes=("everything but the links is the cluster's own: the announced chip would change the rest as well",),
        outlook=None,
        samples=best,
    )


def summary(verdict: Verdict) -> Mapping[str, Any]:
    """The figures of a verdict that programs read first: `result` of `lakh check --json` is built from it."""
    needed = verdict.must_be_true
    return {
        "claim": verdict.claim.name,
        "statement": verdict.claim.statement,
        "asks": verdict.asks,
        "headline": verdict.headline,
        "cluster": verdict.cluster_name,
        "model": verdict.model_name,
        "accelerator_count": verdict.accelerator_count,
        "probability": verdict.probability,
        "quantity": _band(verdict.quantity),
        "readings": [
            {
                "name": one.name,
                "text": one.text,
                "accelerator_count": one.accelerator_count,
                "probability": one.probability,
                "quantity": _band(one.quantity),
                "note": one.note,
            }
            for one in verdict.readings
        ],
        "deciding_unknowns": [
            {
                "name": one.name,
                "title": one.title,
                "sensitivity": one.total,
                "first_order": one.first_order,
                "decides": one.decides,
            }
            for one in verdict.deciding_unknowns
        ],
        "tornado": [
            {
                "name": one.name,
                "low": one.low_text,
                "high": one.high_text,
                "at_low": one.at_low,
                "at_high": one.at_high,
            }
            for one in verdict.tornado
        ],
        "must_be_true": [
            {
                "name": one.name,
                "text": one.text,
                "side": one.side,
                "value": one.value,
                "median": one.median,
                "probability": one.odds,
            }
            for one in (needed.conditions if needed else ())
        ],
        "must_be_true_outcome": needed.outcome if needed else None,
        "must_be_true_odds": needed.odds if needed else None,
        "quantity_at_middle": needed.quantity_at_middle if needed else None,
        "curve": [
            {
                "accelerator_count": one.accelerator_count,
                "quantity": _band(one.quantity),
                "probability": one.probability,
            }
            for one in verdict.curve
        ],
        "first_fails_at": verdict.first_fails_at,
        "measurements": [
            {
                "command": one.command,
                "unknowns": list(one.unknowns),
                "settles": one.settles,
                "narrows": one.narrows,
            }
            for one in verdict.measurements
        ],
        "outlook": verdict.outlook,
        "sample_count": verdict.sample_count,
        "seed": verdict.seed,
        "plan_count": verdict.plan_count,
        "notes": list(verdict.notes),
    }


def _band(band: Band | None) -> dict[str, float] | None:
    return None if band is None else {"p05": band.p05, "p50": band.p50, "p95": band.p95}
