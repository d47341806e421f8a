"""Which layouts are there? The whole space of a request as columns, block by block, never one layout at a time.

A space is the product of small factor lists. The outer loop runs over (tp, cp, pp), which fixes dp; everything else
is index arithmetic on arrays. Only layouts that divide what they must are produced, and only two rules leave out
layouts that divide (see PRUNING_RULES); both are provable, so the best layout is never lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakh.catalog.model import Model
from lakh.columns import Array, Mask
from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.perf.inputs import (
    PRECISION_CODE,
    RECOMPUTE_CODE,
    SCHEDULE_CODE,
    SHARDING_CODE,
    ModelInput,
    PlanInput,
    WorkloadInput,
)
from lakh.perf.memory import MemoryTable, memory_table
from lakh.perf.parameters import rank_parameters
from lakh.perf.software import SoftwareInput
from lakh.perf.system import SystemInput
from lakh.spec.layout import PRECISIONS, RECOMPUTES, SCHEDULES, SHARDINGS

MOST_TP = 64
"""Largest tensor-parallel size that is looked at unless one is asked for, where the scale-up domain is that large."""

MOST_MICRO_BATCH = 16
"""Most sequences per micro-batch that are looked at unless more are asked for."""

FEWEST_TOKENS_PER_CP_RANK = 1024
"""Context parallelism is looked at down to this many tokens of a sequence per rank."""

SHARD_GROUPS: tuple[int, ...] = (8, 32, 128, 512)
"""Sizes of a group that shares one copy of the weights under "hsdp"."""

SPACE_RULES: tuple[str, ...] = (
    f"tp divides the heads, and divides or is divided by the key-value heads; up to {MOST_TP}, and inside one "
    "scale-up domain unless asked for: no published run splits a layer between domains",
    f"cp is a power of two, 2 cp divides the sequence; at least {FEWEST_TOKENS_PER_CP_RANK} tokens per rank",
    "pp x vpp divides the layers or the layers + 2 (embedding and output as a layer each); pp alone may also be a "
    "power of two that divides neither, balanced to one layer",
    "vpp above 1 needs pp above 1, the 1f1b schedule and micro-batches that are a multiple of pp",
    "dp is the largest divisor of the global batch that the accelerators allow, and with experts the largest that is "
    "a multiple of 2, 4, ... 64; what is left over stays unused",
    "ep divides the experts, etp divides tp and the expert width, and ep x etp divides dp x cp x tp",
    f"the micro-batch divides the sequences of a data-parallel rank; up to {MOST_MICRO_BATCH}",
    "zero-bubble and dualpipe need pp above 1 and vpp 1; dualpipe an even pp",
    f"zero3 and hsdp without a pipeline only; hsdp in groups of {', '.join(map(str, SHARD_GROUPS))}",
    "precisions: bf16, and fp8 where the accelerator is faster in fp8; others on request",
)
"""What the space holds where nothing is fixed. A dimension that is given is taken as given, divisibility apart."""

PRUNING_RULES: tuple[str, ...] = (
    "weights, gradients and optimizer state alone exceed the memory: activations only add to them",
    "gpipe: 1f1b takes the same time and never more memory",
)
"""Layouts that divide and are still not timed, and why the best one is never among them."""

DIMENSIONS: tuple[str, ...] = (
    "tp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "micro_batch",
    "sharding",
    "shard_group",
    "recompute",
    "schedule",
    "precision",
)
"""Names of what a search decides, as `SearchOptions` and `Layout` spell them."""

_NAMES: dict[str, tuple[str, ...]] = {
    "sharding": SHARDINGS,
    "recompute": RECOMPUTES,
    "schedule": SCHEDULES,
    "precision": PRECISIONS,
}

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchOptions:
    """What the search may choose from. None leaves a dimension free (SPACE_RULES); one value fixes it.

    The order of values never matters. Wrong values raise RequestError when a space is built.
    """

    tp: tuple[int, ...] | None = None
    cp: tuple[int, ...] | None = None
    pp: tuple[int, ...] | None = None
    vpp: tuple[int, ...] | None = None
    dp: tuple[int, ...] | None = None
    ep: tuple[int, ...] | None = None
    etp: tuple[int, ...] | None = None
    micro_batch: tuple[int, ...] | None = None
    sharding: tuple[str, ...] | None = None
    shard_group: tuple[int, ...] | None = None
    recompute: tuple[str, ...] | None = None
    schedule: tuple[str, ...] | None = None
    precision: tuple[str, ...] | None = None
    batch_slack: float = 0.0
    """Share by which the global batch may move so that more accelerators divide it (0: not at all)."""

    @property
    def fixed(self) -> dict[str, tuple[Any, ...]]:
        """The dimensions that were given, with their values in order."""
        given = {name: getattr(self, name) for name in DIMENSIONS}
        return {name: tuple(sorted(set(values))) for name, values in given.items() if values is not None}

    def free(self, name: str) -> SearchOptions:
        """The same options with one dimension left free."""
        changed: dict[str, Any] = {name: None}
        return replace(self, **changed)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """What to plan for. Everything a search needs, and nothing about how it is presented."""

    model: Model
    system: SystemInput
    software: SoftwareInput
    accelerator_count: int
    sequence_length: int
    """Tokens per sequence."""
    global_batch_sequences: int
    options: SearchOptions = SearchOptions()

    @property
    def model_input(self) -> ModelInput:
        return ModelInput.of(self.model)

    @property
    def stage_slots(self) -> int:
        """Layers that a pipeline divides: the model's and its multi-token-prediction layers."""
        return self.model.layer_count + self.model.mtp_layer_count


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Some layouts of a space, in its canonical order."""

    plans: PlanInput
    global_batch_sequences: Array
    """Sequences per step of each layout; the asked batch unless `batch_slack` moves it."""
    ordinal: Integers
    """Grows along the canonical order of the space; breaks ties."""

    @property
    def size(self) -> int:
        return int(self.ordinal.size)

    def workload(self, sequence_length: float) -> WorkloadInput:
        return WorkloadInput(
            sequence_length=np.float64(sequence_length),  # type: ignore[arg-type]
            global_batch_sequences=self.global_batch_sequences,
        )

    def take(self, index: NDArray[Any]) -> Block:
        return Block(
            plans=self.plans.take(index),
            global_batch_sequences=self.global_batch_sequences[index],
            ordinal=self.ordinal[index],
        )


@dataclass(slots=True)
class SpaceCount:
    """How many layouts a space holds and what became of them; the parts add up to `total`."""

    total: int = 0
    """Layouts that divide what they must."""
    pruned: int = 0
    """Left out by PRUNING_RULES before they were built."""
    out_of_memory: int = 0
    """Memory computed in full; does not fit."""
    timed: int = 0
    """Memory fits; step time computed with the whole model."""

    def add(self, other: SpaceCount) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors of a positive whole number, ascending."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


def powers_of_two(most: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to `most`."""
    return tuple(1 << e for e in range(max(most, 1).bit_length()))


def tp_divides(model: Model, tp: int) -> bool:
    """Whether heads and key-value heads divide over tp."""
    kv = model.kv_head_count
    return model.head_count % tp == 0 and (tp % kv == 0 if tp > kv else kv % tp == 0)


def stages_divide(slots: int, stages: int) -> bool:
    """Whether layers divide over pp x vpp, counting embedding and output as a layer each where that helps."""
    return slots % stages == 0 or (slots + 2) % stages == 0


def _aligned(size: int, domain: int) -> bool:
    return size % domain == 0 if size > domain else domain % size == 0


def dimension_values(request: PlanRequest) -> dict[str, tuple[Any, ...]]:
    """Values that each dimension may take on its own, ascending: given ones as given, else what SPACE_RULES say.

    Raises:
        RequestError: a given value is no valid value of its dimension; every problem is listed
    """
    model, o = request.model, request.options
    sequence, slots, count = request.sequence_length, request.stage_slots, request.accelerator_count
    device = request.system.device
    domain = int(np.max(request.system.network.scale_up_domain_size))
    experts = model.experts
    accepted_tp = tuple(t for t in divisors(model.head_count) if tp_divides(model, t) and t <= count)
    accepted_cp = (1, *(c for c in divisors(sequence) if c > 1 and sequence % (2 * c) == 0 and c <= count))
    accepted_pp = tuple(range(1, min(slots + 2, count) + 1))
    default_pp = [p for p in accepted_pp if stages_divide(slots, p) or (p & (p - 1) == 0 and p <= slots)]
    accepted_vpp = tuple(
        v for v in range(1, slots + 3) if v == 1 or any(stages_divide(slots, v * p) for p in default_pp if p > 1)
    )
    accepted_ep = divisors(experts.expert_count) if experts else (1,)
    accepted_etp = divisors(experts.expert_ffn_size) if experts else (1,)
    fp8_is_faster = bool(np.max(device.fp8_flop_per_s) > np.max(device.wide_flop_per_s))
    accepted: dict[str, Sequence[Any]] = {
        "tp": accepted_tp,
        "cp": accepted_cp,
        "pp": accepted_pp,
        "vpp": accepted_vpp,
        "dp": range(1, count + 1),
        "ep": accepted_ep,
        "etp": accepted_etp,
        "micro_batch": range(1, request.global_batch_sequences + 1),
        "shard_group": range(2, count + 1),
        **_NAMES,
    }
    default: dict[str, Sequence[Any]] = {
        "tp": [t for t in accepted_tp if t <= min(MOST_TP, max(domain, 1)) and _aligned(t, domain)],
        "cp": [c for c in accepted_cp if c & (c - 1) == 0 and (c == 1 or sequence // c >= FEWEST_TOKENS_PER_CP_RANK)],
        "pp": default_pp,
        "vpp": accepted_vpp,
        "dp": (),
        "ep": accepted_ep,
        "etp": [e for e in accepted_etp if e <= min(MOST_TP, max(domain, 1))],
        "micro_batch": range(1, MOST_MICRO_BATCH + 1),
        "sharding": SHARDINGS,
        "shard_group": SHARD_GROUPS,
        "recompute": RECOMPUTES,
        "schedule": [name for name in SCHEDULES if name != "gpipe"],
        "precision": ("bf16", "fp8") if fp8_is_faster else ("bf16",),
    }
    problems = _request_problems(request)
    values: dict[str, tuple[Any, ...]] = {}
    for name in DIMENSIONS:
        given = getattr(o, name)
        if given is None:
            values[name] = tuple(default[name])
            continue
        if not given:
            problems.append(Problem(where=f"options.{name}", found=(), accepted="one value or more, or None for all"))
        for value in given:
            if value not in accepted[name] or isinstance(value, bool):
                problems.append(_value_problem(request, name, value, accepted[name]))
        order = _NAMES.get(name)
        known = {value for value in given if value in accepted[name]}
        values[name] = tuple(sorted(known, key=order.index if order else None))
    if problems:
        raise RequestError(problems)
    return values


def _request_problems(request: PlanRequest) -> list[Problem]:
    numbers = ("accelerator_count", "sequence_length", "global_batch_sequences")
    problems = [
        Problem(where=name, found=value, accepted="a whole number of 1 or more")
        for name in numbers
        if not isinstance(value := getattr(request, name), int) or isinstance(value, bool) or value < 1
    ]
    if problems:
        raise RequestError(problems)
    slack = request.options.batch_slack
    if not 0.0 <= slack < 0.5:
        problems.append(Problem(where="options.batch_slack", found=slack, accepted="0 or more and below 0.5"))
    return problems


def _value_problem(request: PlanRequest, name: str, value: object, accepted: Sequence[Any]) -> Problem:
    """Why one value of one dimension is invalid: the rule with its numbers, and the nearest values that pass it."""
    where = f"options.{name}"
    if name in _NAMES:
        hint = nearest_hint(value, accepted)
        return Problem(where=where, found=value, accepted=list_names(accepted), hint=hint)
    model = request.model
    rules = {
        "tp": f"tp divides {model.head_count} heads; it divides, or is a multiple of, {model.kv_head_count} kv heads",
        "cp": f"2 cp divides the sequence of {request.sequence_length} tokens",
        "pp": f"1 to {request.stage_slots + 2} stages for {request.stage_slots} layers, and no more than accelerators",
        "vpp": f"pp x vpp divides {request.stage_slots} or {request.stage_slots + 2} layers",
        "ep": f"ep divides {model.experts.expert_count} experts" if model.experts else "1: the model has no experts",
        "etp": f"etp divides the expert width {model.experts.expert_ffn_size}"
        if model.experts
        else "1: the model has no experts",
        "dp": f"1 to {request.accelerator_count}, the accelerators of the request",
        "micro_batch": f"1 to {request.global_batch_sequences}, the sequences of the global batch",
        "shard_group": f"2 to {request.accelerator_count}",
    }
    listed = "" if isinstance(accepted, range) else f" ({list_names([str(a) for a in accepted])})"
    hint = ""
    if isinstance(value, int) and accepted and not isinstance(value, bool):
        nearest = min(accepted, key=lambda a: (abs(a - value), a))
        hint = f"Nearest: {nearest}."
    return Problem(where=where, found=value, accepted=f"{rules[name]}{listed}", hint=hint)


@dataclass(frozen=True, slots=True)
class _Cell:
    """One (tp, cp, pp, dp, batch) of a space with the choices that remain in it."""

    tp: int
    cp: int
    pp: int
    dp: int
    batch: int
    stages: tuple[tuple[int, int], ...]
    """(vpp, schedule code)"""
    experts: tuple[tuple[int, int], ...]
    """(ep, etp)"""
    shardings: tuple[tuple[int, int], ...]
    """(sharding code, shard group)"""
    micro_batches: tuple[int, ...]


class Space:
    """All layouts of a request. Iterating is repeatable and always in the same order."""

    def __init__(self, request: PlanRequest) -> None:
        """
        Raises:
            RequestError: a given value is invalid, or the given values leave nothing that divides
        """
        self.request = request
        self.values = dimension_values(request)
        self._precision = tuple(PRECISION_CODE[name] for name in self.values["precision"])
        self._recompute = tuple(RECOMPUTE_CODE[name] for name in self.values["recompute"])
        self.cells: tuple[_Cell, ...] = tuple(self._cells())

    def _cells(self) -> Iterator[_Cell]:
        count = self.request.accelerator_count
        for tp, cp, pp in product(self.values["tp"], self.values["cp"], self.values["pp"]):
            most = count // (tp * cp * pp)
            if most < 1:
                continue
            stages = self._stages(pp)
            for dp, batch in self._data_parallel(most, pp):
                ranks = tp * cp * dp
                experts = self._experts(tp, ranks)
                shardings = self._shardings(pp, dp * cp)
                sequences = batch // dp
                micro_batches = tuple(b for b in self.values["micro_batch"] if sequences % b == 0)
                if stages and experts and shardings and micro_batches:
                    yield _Cell(tp, cp, pp, dp, batch, stages, experts, shardings, micro_batches)

    def _stages(self, pp: int) -> tuple[tuple[int, int], ...]:
        slots, fixed = self.request.stage_slots, self.request.options.vpp is not None
        pairs = []
        for vpp, name in product(self.values["vpp"], self.values["schedule"]):
            if pp == 1 and (vpp > 1 or (name != "1f1b" and "1f1b" in self.values["schedule"])):
                continue
            if vpp > 1 and (name != "1f1b" or not (stages_divide(slots, pp * vpp))):
                continue
            if vpp > 1 and not fixed and pp * vpp > slots + 2:
                continue
            if name == "dualpipe" and pp % 2:
                continue
            pairs.append((vpp, SCHEDULE_CODE[name]))
        return tuple(pairs)

    def _data_parallel(self, most: int, pp: int) -> Iterator[tuple[int, int]]:
        """Data-parallel sizes with their global batch: the asked batch, and moved ones where slack allows.

        Experts need dp to hold powers of two, so with experts the largest size that is a multiple of each small
        power of two is looked at too.
        """
        batch, slack = self.request.global_batch_sequences, self.request.options.batch_slack
        if self.request.options.dp is not None:
            wanted = {dp for dp in self.values["dp"] if dp <= most}
            exact = {dp for dp in wanted if batch % dp == 0}
        else:
            powers = powers_of_two(64) if self.request.model.is_moe else (1,)
            wanted = {most // power * power for power in powers} - {0}
            below = [d for d in divisors(batch) if d <= most]
            exact = {max((d for d in below if d % power == 0), default=0) for power in powers} - {0}
        found = {(dp, batch) for dp in exact}
        if slack > 0.0:
            micro = math.lcm(*self.values["micro_batch"]) if self.request.options.micro_batch is not None else 1
            for dp in wanted:
                for multiple in (micro, micro * pp, 8 * micro, 8 * micro * pp):
                    moved = dp * multiple * round(batch / (dp * multiple))
                    if moved and abs(moved / batch - 1.0) <= slack:
                        found.add((dp, moved))
        yield from sorted(found)

    def _experts(self, tp: int, ranks: int) -> tuple[tuple[int, int], ...]:
        free = self.request.options.etp is None
        etps = [e for e in self.values["etp"] if not free or tp % e == 0]
        return tuple((ep, etp) for ep, etp in product(self.values["ep"], etps) if ranks % (ep * etp) == 0)

    def _shardings(self, pp: int, ranks: int) -> tuple[tuple[int, int], ...]:
        free = self.request.options.sharding is None
        pairs = []
        for name in self.values["sharding"]:
            code = SHARDING_CODE[name]
            if free and ((ranks == 1 and code > SHARDING_CODE["zero1"]) or (pp > 1 and name in ("zero3", "hsdp"))):
                continue
            if name != "hsdp":
                pairs.append((code, 0))
                continue
            pairs += [(code, group) for group in self.values["shard_group"] if group < ranks and ranks % group == 0]
        return tuple(pairs)

    def count_per_cell(self, cell: _Cell) -> int:
        """Layouts of a cell that divide; equal to what iterating produces without pruning."""
        block = self._expand(cell, self._base(cell), 0)
        return block.size

    def _base(self, cell: _Cell) -> PlanInput:
        """The cell's choices without micro-batch, recompute and precision, smallest memory first of those."""
        shape = (len(cell.stages), len(cell.experts), len(cell.shardings))
        stage, expert, shard = (index.ravel() for index in np.indices(shape))
        stages, experts, shardings = (np.array(c, dtype=float) for c in (cell.stages, cell.experts, cell.shardings))
        size = stage.size

        def full(value: float) -> Array:
            return np.full(size, float(value))

        return PlanInput(
            tp=full(cell.tp),
            cp=full(cell.cp),
            pp=full(cell.pp),
            vpp=stages[stage, 0],
            dp=full(cell.dp),
            ep=experts[expert, 0],
            etp=experts[expert, 1],
            micro_batch=full(1.0),
            sharding=shardings[shard, 0],
            shard_group=shardings[shard, 1],
            recompute=full(RECOMPUTE_CODE["full"]),
            schedule=stages[stage, 1],
            precision=full(PRECISION_CODE["bf16"]),
            sequence_parallel=full(1.0),
        )

    def _expand(self, cell: _Cell, base: PlanInput, start: int) -> Block:
        """Every micro-batch, recompute and precision for every row of `base` that divides."""
        rows = len(base)
        shape = (rows, len(cell.micro_batches), len(self._recompute), len(self._precision))
        row, micro, recompute, precision = (index.ravel() for index in np.indices(shape))
        micro_batch = np.array(cell.micro_batches, dtype=float)[micro]
        count = cell.batch / (cell.dp * micro_batch)
        keep: Mask = (base.vpp[row] <= 1.0) | (np.mod(count, cell.pp) == 0)
        row, micro_batch, recompute, precision = row[keep], micro_batch[keep], recompute[keep], precision[keep]
        plans = replace(
            base.take(row),
            micro_batch=micro_batch,
            recompute=np.array(self._recompute, dtype=float)[recompute],
            precision=np.array(self._precision, dtype=float)[precision],
        )
        size = row.size
        return Block(
            plans=plans,
            global_batch_sequences=np.full(size, float(cell.batch)),
            ordinal=np.arange(start, start + size, dtype=np.int64),
        )

    def states_fit(self, cell: _Cell, base: PlanInput) -> Mask:
        """Rows whose weights, gradients and optimizer state fit: a lower bound of the memory of all they expand to.

        The memory model with micro-batches of no tokens, in the precision that keeps the fewest copies of weights.
        """
        states = memory_of(self.request, replace(base, micro_batch=np.zeros(len(base))), micro_batch_count=np.ones(()))
        return np.broadcast_to(plan_fits(states), (len(base),))

    def blocks(self, *, prune: bool = True, block_size: int = 4096, count: SpaceCount | None = None) -> Iterator[Block]:
        """The space in canonical order, in blocks of about `block_size` layouts.

        Args:
            prune: leave out what PRUNING_RULES allow
            count: filled with the totals on the way
        """
        count = SpaceCount() if count is None else count
        waiting: list[Block] = []
        held = 0
        for cell in self.cells:
            base = self._base(cell)
            whole = self._expand_count(cell)
            start = count.total
            count.total += whole
            if prune:
                base = base.take(np.flatnonzero(self.states_fit(cell, base)))
            block = self._expand(cell, base, start)
            count.pruned += whole - block.size
            for part in _pieces(block, block_size):
                if held and held + part.size > block_size:
                    yield _join(waiting)
                    waiting, held = [], 0
                waiting.append(part)
                held += part.size
        if held:
            yield _join(waiting)

    def _expand_count(self, cell: _Cell) -> int:
        """Size of the unpruned cell, without building it."""
        micro = np.array(cell.micro_batches)
        counts = cell.batch // (cell.dp * micro)
        divides = np.array([[vpp <= 1 or n % cell.pp == 0 for n in counts] for vpp, _ in cell.stages])
        pairs = int(np.sum(divides)) * len(cell.shardings)
        return pairs * len(cell.experts) * len(self._recompute) * len(self._precision)


def nothing_divides(request: PlanRequest) -> RequestError:
    """The error for a request whose values are valid one by one and fit together nowhere."""
    fixed = request.options.fixed
    found = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in fixed.items()) or "no fixed dimension"
    return RequestError(
        Problem(
            where="options",
            found=found,
            accepted=f"a combination that divides {request.accelerator_count} accelerators, "
            f"{request.global_batch_sequences} sequences and {request.stage_slots} layers",
        )
    )


def plan_fits(table: MemoryTable) -> Mask:
    """Whether a plan fits with its fragmentation. Stricter than `MemoryTable.fits`, the least a layout needs: a plan
    that fits only if the allocator wastes nothing is no plan."""
    return np.asarray(table.device_bytes <= table.capacity_bytes)


def memory_of(request: PlanRequest, plans: PlanInput, *, micro_batch_count: Array) -> MemoryTable:
    """Memory alone of every plan, without its time."""
    m = request.model_input
    w = WorkloadInput.of(sequence_length=request.sequence_length, global_batch_sequences=request.global_batch_sequences)
    device, software = request.system.device, request.software
    return memory_table(m, device, software, plans, w, rank_parameters(m, plans), micro_batch_count)


def _pieces(block: Block, most: int) -> Iterator[Block]:
    if block.size <= most:
        if block.size:
            yield block
        return
    for start in range(0, block.size, most):
        yield block.take(np.arange(start, min(start + most, block.size)))


def _join(blocks: Sequence[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    names = [field.name for field in fields(PlanInput)]
    columns = {name: np.concatenate([getattr(block.plans, name) for block in blocks]) for name in names}
    return Block(
        plans=PlanInput(**columns),
        global_batch_sequences=np.concatenate([block.global_batch_sequences for block in blocks]),
        ordinal=np.concatenate([block.ordinal for block in blocks]),
    )
