"""Which layout is best? Every layout of a space through the whole step model, in blocks that stay in cache.

The result does not depend on the order in which options are given, on the block size or on the number of workers:
ties go to the layout that comes first in the space's canonical order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lakh.columns import Array
from lakh.errors import InfeasibleError, Problem, RequestError, list_names, nearest_hint
from lakh.fabric.closed_form import ClosedForm, CollectiveModel
from lakh.perf.inputs import PlanInput
from lakh.perf.operators import shared_layer_times
from lakh.perf.step import STEP_PARTS, StepTable, evaluate
from lakh.planner.economics import Economics, activity_of
from lakh.planner.space import Block, PlanRequest, Space, SpaceCount, memory_of, nothing_divides, plan_fits
from lakh.spec.layout import Layout

Objective = Literal["step_time", "cost", "energy"]
"""step_time: seconds for the asked global batch; cost: accelerator time for it, as price is the same for all
layouts; energy: joules for it."""

OBJECTIVES: tuple[str, ...] = get_args(Objective)

BLOCK_SIZE = 16_384
"""Layouts per block on one thread: large enough that the interpreter's share is small, small enough for a core's
cache (measured: benchmarks/planner/speed.py)."""

THREAD_BLOCK_SIZE = 65_536
"""The same with several threads, which wait for each other outside numpy's kernels."""

MEMORY_GRAIN_BYTES = 2.0**30
"""Memory headroom counts in whole GiB on the Pareto front: a few bytes are no reason to keep a layout."""

FRONT_GRAIN = 1e-3
"""Times, costs and energies within this share of each other are the same on the Pareto front."""

MEMORY_PARTS: tuple[str, ...] = (
    "weights_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "activations_bytes",
    "logits_bytes",
    "buffers_bytes",
)

EXPOSED_PARTS: tuple[str, ...] = ("exposed_tp_s", "exposed_cp_s", "exposed_ep_s", "exposed_pp_s", "exposed_dp_s")


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One layout with everything the model says about its step."""

    layout: Layout
    global_batch_sequences: int
    accelerator_count: int
    """Accelerators that the layout uses."""
    step_time_s: float
    tokens_per_s: float
    mfu: float
    """Causal convention, over the accelerators used."""
    parts_s: dict[str, float]
    """STEP_PARTS; they add up to `step_time_s`."""
    exposed_s: dict[str, float]
    """EXPOSED_PARTS; they add up to the step's exposed communication."""
    micro_batch_count: int
    data_parallel_outermost: bool
    """Ranks ordered tp-cp-ep-pp-dp, so that pipelines stay on one site."""
    device_bytes: float
    """Memory of the fullest rank as the device reports it."""
    capacity_bytes: float
    memory_bytes: dict[str, float]
    """MEMORY_PARTS of what the allocator holds."""
    activity: float
    """Share of the step in which kernels compute."""
    accelerator_hours: float
    """For the asked global batch."""
    energy_joule: float | None
    """For the asked global batch; None without a power model."""

    @property
    def headroom_bytes(self) -> float:
        return self.capacity_bytes - self.device_bytes

    @property
    def family(self) -> tuple[int, int, int, int]:
        """(tp, cp, pp, ep): layouts that differ elsewhere only are variants of one."""
        return (self.layout.tp, self.layout.cp, self.layout.pp, self.layout.ep)


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """The best layouts of a space."""

    objective: Objective
    ranked: tuple[Candidate, ...]
    """Best layout of each family (tp, cp, pp, ep), best family first."""
    pareto: tuple[Candidate, ...]
    """Layouts that no other beats in step time, accelerator time, energy (with a power model) and memory headroom
    at once; fastest first."""
    count: SpaceCount
    unused_accelerators: int
    """Accelerators that the best layout leaves over."""

    @property
    def best(self) -> Candidate:
        return self.ranked[0]


@dataclass(frozen=True, slots=True)
class _Score:
    """Columns by which layouts are compared; smaller is better in each."""

    block: Block
    time_s: Array
    accelerator_s: Array
    energy_joule: Array
    device_bytes: Array

    def take(self, index: NDArray[Any]) -> _Score:
        columns = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.name != "block"}
        return _Score(block=self.block.take(index), **columns)

    def objective(self, name: Objective) -> Array:
        return {"step_time": self.time_s, "cost": self.accelerator_s, "energy": self.energy_joule}[name]


@dataclass(frozen=True, slots=True)
class _Found:
    """What has been kept of the blocks so far."""

    ranked: _Score
    front: _Score


def search(
    request: PlanRequest,
    *,
    objective: Objective = "step_time",
    top_count: int = 5,
    economics: Economics | None = None,
    worker_count: int = 1,
    block_size: int | None = None,
    network: CollectiveModel | None = None,
) -> SearchResult:
    """The best layouts of a request, from every layout of its space.

    Args:
        objective: what to minimise for the asked global batch
        top_count: families to rank
        economics: power model, needed for the objective "energy"
        worker_count: threads; numpy lets go of the interpreter inside its kernels
        block_size: layouts per block; BLOCK_SIZE or THREAD_BLOCK_SIZE where None
        network: how collectives are timed; closed forms over the request's network unless given

    Raises:
        RequestError: invalid options, or nothing divides
        InfeasibleError: layouts divide, but none fits in memory
    """
    _check(objective, top_count, worker_count, economics)
    count = SpaceCount()
    size = block_size or (BLOCK_SIZE if worker_count == 1 else THREAD_BLOCK_SIZE)
    blocks = _blocks(request, size, count)
    power = economics.power if economics else None

    def score(block: Block) -> tuple[_Score | None, SpaceCount]:
        return _score(request, block, economics, network)

    found: _Found | None = None
    for scored, part in _mapped(score, blocks, worker_count):
        count.add(part)
        if scored is not None:
            found = _merge(found, scored, objective, top_count, use_energy=power is not None)
    if not count.total:
        raise nothing_divides(request)
    if found is None:
        raise InfeasibleError(f"no layout fits in memory ({count.total:,} that divide were looked at)")
    ranked = candidates(request, found.ranked.block, economics=economics, network=network)
    front = found.front.take(np.lexsort((found.front.block.ordinal, found.front.time_s)))
    return SearchResult(
        objective=objective,
        ranked=ranked,
        pareto=candidates(request, front.block, economics=economics, network=network),
        count=count,
        unused_accelerators=request.accelerator_count - ranked[0].accelerator_count,
    )


STARVED_ACCELERATORS_PER_SEQUENCE = 8
"""A step with fewer sequences than one per this many accelerators is starved: fewer accelerators may be faster."""


def accelerator_counts(request: PlanRequest) -> tuple[int, ...]:
    """How many accelerators are worth a look: all of them; whole sites, since crossing from site to site costs; and
    half and a quarter where the batch starves them. What is not used stays unused."""
    most = request.accelerator_count
    counts = {most}
    site = float(np.max(request.system.network.site_size))
    if site < most:
        counts |= {int(site) * sites for sites in range(1, math.ceil(most / site))}
    if request.global_batch_sequences * STARVED_ACCELERATORS_PER_SEQUENCE < most:
        counts |= {most // 2, most // 4}
    return tuple(sorted((count for count in counts if count > 0), reverse=True))


def _blocks(request: PlanRequest, block_size: int, count: SpaceCount) -> Iterator[Block]:
    """The layouts of every size worth a look, one after the other."""
    for index, accelerators in enumerate(accelerator_counts(request)):
        space = Space(replace(request, accelerator_count=accelerators))
        for block in space.blocks(block_size=block_size, count=count):
            # Ties between sizes go to the larger one.
            yield replace(block, ordinal=block.ordinal + index * _ORDINALS_PER_SIZE)


_ORDINALS_PER_SIZE = 10**12


def _check(objective: str, top_count: int, worker_count: int, economics: Economics | None) -> None:
    problems = []
    if objective not in OBJECTIVES:
        hint = nearest_hint(objective, OBJECTIVES)
        problems.append(Problem(where="objective", found=objective, accepted=list_names(OBJECTIVES), hint=hint))
    if objective == "energy" and (economics is None or economics.power is None):
        problems.append(Problem(where="economics.power", found=None, accepted="a power model, to minimise energy"))
    for name, value in (("top_count", top_count), ("worker_count", worker_count)):
        if value < 1:
            problems.append(Problem(where=name, found=value, accepted="a whole number of 1 or more"))
    if problems:
        raise RequestError(problems)


def _mapped(function: Any, blocks: Iterator[Block], worker_count: int) -> Iterator[tuple[_Score | None, SpaceCount]]:
    """Results in the order of the blocks, a few blocks ahead at most so that memory stays small."""
    if worker_count == 1:
        yield from map(function, blocks)
        return
    with ThreadPoolExecutor(max_workers=worker_count) as pool:
        waiting = []
        for block in blocks:
            waiting.append(pool.submit(function, block))
            if len(waiting) > 2 * worker_count:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def _score(
    request: PlanRequest, block: Block, economics: Economics | None, network: CollectiveModel | None
) -> tuple[_Score | None, SpaceCount]:
    """Memory of the whole block, then time of what fits."""
    p = block.plans
    count = block.global_batch_sequences / (p.dp * p.micro_batch)
    fits = np.flatnonzero(plan_fits(memory_of(request, p, micro_batch_count=count)))
    counted = SpaceCount(out_of_memory=block.size - fits.size, timed=int(fits.size))
    if not fits.size:
        return None, counted
    block = block.take(fits) if fits.size < block.size else block
    table = _table(request, block, network)
    asked = request.global_batch_sequences / block.global_batch_sequences
    time_s = table.step_time_s * asked
    accelerator_s = time_s * table.accelerator_count
    power = economics.power if economics else None
    energy = accelerator_s * power.watt(activity_of(table)) if power else accelerator_s
    return _Score(block, time_s, accelerator_s, energy, np.asarray(table.memory.device_bytes)), counted


def _table(request: PlanRequest, block: Block, network: CollectiveModel | None) -> StepTable:
    workload = block.workload(request.sequence_length)
    m, s, q, p = request.model_input, request.system, request.software, block.plans
    net = ClosedForm(s.network) if network is None else network
    layers = shared_layer_times(m, s.device, net, q, p, workload)
    return evaluate(m, s, q, p, workload, network=net, layers=layers)


def _merge(found: _Found | None, scored: _Score, objective: Objective, top_count: int, *, use_energy: bool) -> _Found:
    ranked = _best_of_families(scored, objective, top_count)
    if found is None:
        return _Found(ranked, _front(scored, use_energy=use_energy))
    ranked = _best_of_families(_concatenate(found.ranked, ranked), objective, top_count)
    rows = _beyond(found.front, scored, use_energy=use_energy)
    if not rows.size:
        return _Found(ranked, found.front)
    return _Found(ranked, _front(_concatenate(found.front, scored.take(rows)), use_energy=use_energy))


def _concatenate(first: _Score, second: _Score) -> _Score:
    columns = {
        f.name: np.concatenate([getattr(first, f.name), getattr(second, f.name)])
        for f in fields(first)
        if f.name != "block"
    }
    names = [f.name for f in fields(PlanInput)]
    plans = {n: np.concatenate([getattr(first.block.plans, n), getattr(second.block.plans, n)]) for n in names}
    block = Block(
        plans=PlanInput(**plans),
        global_batch_sequences=np.concatenate(
            [first.block.global_batch_sequences, second.block.global_batch_sequences]
        ),
        ordinal=np.concatenate([first.block.ordinal, second.block.ordinal]),
    )
    return _Score(block=block, **columns)


def _best_of_families(score: _Score, objective: Objective, top_count: int) -> _Score:
    """The best row of each family, of the `top_count` best families."""
    order = np.lexsort((score.block.ordinal, score.objective(objective)))
    p = score.block.plans
    family = ((p.tp * 4_096.0 + p.cp) * 4_096.0 + p.pp) * 4_096.0 + p.ep  # exact: below 2^53 for tp up to 2^17
    kept: list[int] = []
    seen: set[float] = set()
    for row in order:
        key = float(family[row])
        if key not in seen:
            seen.add(key)
            kept.append(int(row))
            if len(kept) == top_count:
                break
    return score.take(np.array(kept, dtype=np.int64))


def _grains(score: _Score, *, use_energy: bool) -> Array:
    """What the front compares, one row per layout, in grains that make near-equal values equal."""

    def grain(value: Array) -> Array:
        return np.floor(np.log(value) / FRONT_GRAIN)

    columns = [grain(score.time_s), grain(score.accelerator_s), np.floor(score.device_bytes / MEMORY_GRAIN_BYTES)]
    if use_energy:
        columns.append(grain(score.energy_joule))
    return np.stack(columns, axis=1)


def _beyond(front: _Score, score: _Score, *, use_energy: bool) -> NDArray[np.int64]:
    """Rows that no row of the front beats or equals in all columns."""
    grains = _grains(score, use_energy=use_energy)
    rows = np.arange(len(grains))
    for best in _grains(front, use_energy=use_energy):
        rows = rows[np.any(grains[rows] < best, axis=1)]
    return rows


def _front(score: _Score, *, use_energy: bool) -> _Score:
    """Rows that no other row beats or equals in all columns; of equals the first in canonical order stays.

    In lexicographic order nothing later beats the first row, so it stays and takes along all that it beats.
    """
    grains = _grains(score, use_energy=use_energy)
    rows = np.lexsort((score.block.ordinal, *grains.T[::-1]))
    kept: list[int] = []
    while rows.size:
        best = rows[0]
        kept.append(int(best))
        rows = rows[np.any(grains[rows] < grains[best], axis=1)]
    return score.take(np.array(kept, dtype=np.int64))


def candidates(
    request: PlanRequest,
    block: Block,
    *,
    economics: Economics | None = None,
    network: CollectiveModel | None = None,
) -> tuple[Candidate, ...]:
    """Everything the model says about the layouts of a block, in its order."""
    table = _table(request, block, network)
    memory = table.memory
    step_s, mfu = table.step_time_s, table.mfu
    activity = activity_of(table)
    asked = request.global_batch_sequences / block.global_batch_sequences
    power = economics.power if economics else None
    watt = power.watt(activity) if power else None
    result = []
    for row in range(block.size):
        accelerator_s = float(step_s[row] * asked[row] * table.accelerator_count[row])
        result.append(
            Candidate(
                layout=block.plans.layout(row),
                global_batch_sequences=int(block.global_batch_sequences[row]),
                accelerator_count=int(table.accelerator_count[row]),
                step_time_s=float(step_s[row]),
                tokens_per_s=float(block.global_batch_sequences[row] * request.sequence_length / step_s[row]),
                mfu=float(mfu[row]),
                parts_s={name: float(getattr(table, name)[row]) for name in STEP_PARTS},
                exposed_s={name: float(getattr(table, name)[row]) for name in EXPOSED_PARTS},
                micro_batch_count=int(table.micro_batch_count[row]),
                data_parallel_outermost=bool(table.data_parallel_outermost[row]),
                device_bytes=float(np.asarray(memory.device_bytes)[row]),
                capacity_bytes=float(np.asarray(memory.capacity_bytes)[row]),
                memory_bytes={name: float(getattr(memory, name)[row]) for name in MEMORY_PARTS},
                activity=float(activity[row]),
                accelerator_hours=accelerator_s / 3600.0,
                energy_joule=None if watt is None else accelerator_s * float(watt[row]),
            )
        )
    return tuple(result)


def candidate_of(
    request: PlanRequest,
    layout: Layout,
    *,
    economics: Economics | None = None,
    network: CollectiveModel | None = None,
) -> Candidate:
    """What the model says about one layout of one's own choice, divisible or not."""
    block = Block(
        plans=PlanInput.of(layout),
        global_batch_sequences=np.array([float(request.global_batch_sequences)]),
        ordinal=np.zeros(1, dtype=np.int64),
    )
    return candidates(request, block, economics=economics, network=network)[0]
