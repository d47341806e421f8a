"""How fast would the best layout be in each of many worlds? Thousands of re-optimised plans, a column at a time.

The planner searches the whole space under a few corner systems; the union of its best families is small and holds the
best layout of every system between them closely enough (docs/concepts-claims.md says how closely). Every sample then
takes the best of that set: a re-optimised plan for the price of a few hundred rows of the step model.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from lakh.claims.unknowns import Unknown
from lakh.claims.worlds import Worlds, software_at, system_at, worlds_at
from lakh.columns import Array
from lakh.errors import InfeasibleError, RequestError
from lakh.perf.flops import MfuConvention, hardware_flop_factor, model_flop_per_token
from lakh.perf.inputs import PRECISION_CODE, RECOMPUTE_CODE, PlanInput, WorkloadInput
from lakh.perf.slow_nodes import slow_node_factor
from lakh.perf.step import StepTable, evaluate
from lakh.planner import PlanRequest, SearchOptions, search
from lakh.planner.economics import activity_of
from lakh.spec.cluster import Cluster
from lakh.spec.layout import Layout

BLOCK_ROWS = 4_096
"""Rows of the step model at a time: columns of this length stay in a core's cache."""

FAMILIES_PER_CORNER = 24
"""Families (tp, cp, pp, ep) that are kept of each corner system's search."""

CORNERS: tuple[tuple[str, dict[str, float]], ...] = (
    ("middle", {}),
    (
        "slow network",
        {"protocol-efficiency": 0.05, "oversubscription-leaf": 0.99, "oversubscription-spine": 0.99, "sites": 0.99}
        | {f"overlap-{name}": 0.05 for name in ("tp", "cp", "pp", "dp", "ep")},
    ),
    (
        "fast network",
        {"protocol-efficiency": 0.95, "oversubscription-leaf": 0.01, "oversubscription-spine": 0.01, "sites": 0.99}
        | {f"overlap-{name}": 0.95 for name in ("tp", "cp", "pp", "dp", "ep")},
    ),
    ("several sites", {"sites": 0.01}),
)
"""Systems that the planner searches in full: shares of probability per unknown, the rest at their medians."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutSet:
    """Layouts among which every sample chooses."""

    plans: PlanInput
    batch_sequences: Array
    """Global batch of each; the planner may move it a little so that it divides."""

    @property
    def size(self) -> int:
        return int(np.size(self.plans.tp))

    def take(self, index: NDArray[np.int64]) -> LayoutSet:
        return LayoutSet(plans=self.plans.take(index), batch_sequences=self.batch_sequences[index])


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """The best plan of each sample."""

    tokens_per_s: Array
    """Of the whole job, errors of the step model and slow nodes included; without the scaling error."""
    peak_flop_per_s: Array
    """Of one card in the precision of the plans."""
    best: Array
    """Position of the best layout."""
    recompute: Array
    """1 where the best layout recomputes everything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One model on one size of one cluster: what `Worlds` are asked about."""

    cluster: Cluster
    request: PlanRequest
    accelerators_per_node: int
    unknowns: tuple[Unknown, ...]

    def at_size(self, accelerator_count: int, global_batch_sequences: int) -> Question:
        request = replace(
            self.request, accelerator_count=accelerator_count, global_batch_sequences=global_batch_sequences
        )
        return replace(self, request=request)

    def with_precision(self, precision: str) -> Question:
        options = replace(self.request.options, precision=(precision,))
        return replace(self, request=replace(self.request, options=options))


def search_options(question: Question, *, precision: str) -> SearchOptions:
    """What the corner searches look at: everything for dense models; for experts the sizes that are ever best.

    The batch may move by a twentieth, so that a size that divides nothing well is not held against the cluster.
    """
    model = question.request.model
    base = replace(question.request.options, precision=(precision,), batch_slack=0.05)
    if not model.is_moe or model.experts is None:
        return base
    experts = model.experts.expert_count
    return replace(
        base,
        ep=base.ep or tuple(e for e in (1, 2, 4, 8, 10, 16, 20, 32, 64) if experts % e == 0),
        etp=base.etp or (1,),
        cp=base.cp or tuple(c for c in (1, 2, 4) if question.request.sequence_length % (2 * c) == 0),
        micro_batch=base.micro_batch or (1, 2, 3, 4),
        sharding=base.sharding or ("zero1",),
        recompute=base.recompute or ("none", "selective", "full"),
    )


def layouts_for(question: Question, *, corners: int = len(CORNERS), precision: str = "bf16") -> LayoutSet:
    """The layouts among which samples choose: the best families of every corner system, each once.

    Raises:
        InfeasibleError: nothing fits at this size
        RequestError: nothing divides
    """
    options = search_options(question, precision=precision)
    seen: dict[tuple[Layout, int], None] = {}
    failures: list[InfeasibleError | RequestError] = []
    names = [one.name for one in question.unknowns if one.is_open]
    done: set[bytes] = set()
    for _, shares in CORNERS[:corners]:
        point = np.array([[shares.get(name, 0.5) for name in names]])
        if point.tobytes() in done or (shares and not set(shares) & set(names)):
            continue
        done.add(point.tobytes())
        world = worlds_at(question.unknowns, point)
        system = system_at(question.cluster, question.request.system, question.accelerators_per_node, world)
        software = software_at(question.request.software, world)
        request = replace(question.request, system=system, software=software, options=options)
        try:
            found = search(request, top_count=FAMILIES_PER_CORNER, worker_count=2)
        except (InfeasibleError, RequestError) as error:
            failures.append(error)
            continue
        for candidate in found.ranked:
            seen[candidate.layout, candidate.global_batch_sequences] = None
    if not seen:
        raise failures[0]
    layouts = list(seen)
    return LayoutSet(
        plans=PlanInput.of([layout for layout, _ in layouts]),
        batch_sequences=np.array([float(batch) for _, batch in layouts]),
    )


def throughput(question: Question, layouts: LayoutSet, worlds: Worlds) -> Throughput:
    """The best layout of every sample and its rate."""
    step = max(BLOCK_ROWS // layouts.size, 1)
    parts = [_block(question, layouts, worlds.take(slice(i, i + step))) for i in range(0, worlds.count, step)]
    names = ("tokens_per_s", "peak_flop_per_s", "best", "recompute")
    return Throughput(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _block(question: Question, layouts: LayoutSet, worlds: Worlds) -> Throughput:
    request, size, count = question.request, layouts.size, worlds.count
    table = _table(question, layouts, worlds)
    memory = table.memory
    usable = table.valid & np.asarray(memory.device_bytes <= memory.capacity_bytes)
    index = np.tile(np.arange(size), count)
    rate = layouts.batch_sequences[index] * request.sequence_length / table.step_time_s
    rate = np.where(usable, rate, 0.0).reshape(count, size)
    best = rate.argmax(axis=1)
    rows = np.arange(count)
    slow = worlds.get("step-model-error", 1.0) * _slow_nodes(question, worlds)
    return Throughput(
        tokens_per_s=rate[rows, best] / slow,
        peak_flop_per_s=np.asarray(table.peak_flop_per_s).reshape(count, size)[:, 0],
        best=best,
        recompute=(np.asarray(layouts.plans.recompute)[best] == _FULL_RECOMPUTE).astype(np.float64),
    )


_FULL_RECOMPUTE = float(RECOMPUTE_CODE["full"])


def _table(question: Question, layouts: LayoutSet, worlds: Worlds) -> StepTable:
    """Every layout in every sample: rows in the order sample, layout."""
    request = question.request
    index = np.tile(np.arange(layouts.size), worlds.count)
    each = worlds.repeat(layouts.size)
    return evaluate(
        request.model_input,
        system_at(question.cluster, request.system, question.accelerators_per_node, each),
        software_at(request.software, each),
        layouts.plans.take(index),
        WorkloadInput(
            sequence_length=np.float64(request.sequence_length),  # type: ignore[arg-type]
            global_batch_sequences=layouts.batch_sequences[index],
        ),
    )


def _slow_nodes(question: Question, w: Worlds) -> Array:
    nodes = question.request.accelerator_count / question.accelerators_per_node
    return slow_node_factor(
        share=w.get("slow-node-share", 0.0),
        speed=w.get("slow-node-speed", 1.0),
        removal_s=w.get("slow-node-removal", np.inf),
        node_count=np.ceil(nodes),
    )


NEAR_BEST = 0.01
"""A layout that comes within this share of the best in some sample of the first look stays in the set."""


def reduced(question: Question, layouts: LayoutSet, worlds: Worlds) -> LayoutSet:
    """The layouts that are best, or nearly, in at least one of some worlds.

    Raises:
        InfeasibleError: none fits in memory
    """
    kept = np.zeros(layouts.size, dtype=bool)
    step = max(BLOCK_ROWS // layouts.size, 1)
    for i in range(0, worlds.count, step):
        part = worlds.take(slice(i, i + step))
        table = _table(question, layouts, part)
        usable = table.valid & np.asarray(table.memory.device_bytes <= table.memory.capacity_bytes)
        batch = layouts.batch_sequences[np.tile(np.arange(layouts.size), part.count)]
        rate = np.where(usable, batch / table.step_time_s, 0.0).reshape(part.count, layouts.size)
        top = rate.max(axis=1, keepdims=True)
        kept |= np.any((rate >= (1.0 - NEAR_BEST) * top) & (top > 0.0), axis=0)
    if not kept.any():
        raise InfeasibleError("no layout of the corner systems fits in memory")
    return layouts.take(np.flatnonzero(kept))


def in_precision(layouts: LayoutSet, precision: str) -> LayoutSet:
    """The same layouts in another precision."""
    code = np.full(layouts.size, float(PRECISION_CODE[precision]))
    return replace(layouts, plans=replace(layouts.plans, precision=code))


def joined(first: LayoutSet, second: LayoutSet) -> LayoutSet:
    """Both sets, one after the other."""
    names = [field.name for field in fields(PlanInput)]
    plans = {n: np.concatenate([getattr(first.plans, n), getattr(second.plans, n)]) for n in names}
    return LayoutSet(
        plans=PlanInput(**plans),
        batch_sequences=np.concatenate([first.batch_sequences, second.batch_sequences]),
    )


def mfu_of(
    question: Question,
    found: Throughput,
    convention: MfuConvention,
    *,
    peak_flop_per_s: Array | None = None,
) -> Array:
    """MFU per sample over all cards of the question, in a convention and over a peak (the plans' own unless given)."""
    request = question.request
    flop = model_flop_per_token(request.model_input, np.asarray(float(request.sequence_length)), convention)
    if convention == "hfu":
        flop = flop * hardware_flop_factor(found.recompute)
    peak = found.peak_flop_per_s if peak_flop_per_s is None else peak_flop_per_s
    return np.asarray(found.tokens_per_s * flop / (request.accelerator_count * peak))


def activity_at_middle(question: Question, layouts: LayoutSet) -> float:
    """Share of the step in which kernels compute, in the best layout with every unknown at its median."""
    open_count = sum(one.is_open for one in question.unknowns)
    world = worlds_at(question.unknowns, np.full((1, open_count), 0.5))
    best = int(throughput(question, layouts, world).best[0])
    return float(np.asarray(activity_of(_table(question, layouts, world)))[best])
