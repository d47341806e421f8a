"""Why does the winner win, why does nothing fit, and why is a fixed value refused? Answers in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lakh.errors import InfeasibleError, Problem
from lakh.perf.inputs import PlanInput
from lakh.perf.validity import invalid_reasons
from lakh.planner.search import EXPOSED_PARTS, Candidate, SearchResult, candidate_of
from lakh.planner.space import (
    PlanRequest,
    Space,
    divisors,
    memory_of,
    nothing_divides,
    plan_fits,
    stages_divide,
)
from lakh.spec.layout import RECOMPUTES, SHARDINGS, Layout

GIB = 2.0**30

PART_WORDS: dict[str, str] = {
    "compute_s": "compute",
    "bubble_s": "pipeline bubble",
    "host_s": "host overhead",
    "optimizer_s": "optimizer",
    "jitter_s": "waiting for the slowest rank",
    "exposed_tp_s": "visible tensor-parallel traffic",
    "exposed_cp_s": "visible context-parallel traffic",
    "exposed_ep_s": "visible expert-parallel traffic",
    "exposed_pp_s": "visible pipeline sends",
    "exposed_dp_s": "visible data-parallel traffic",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PartDifference:
    """One part of the step, winner against another layout."""

    part: str
    """A name of PART_WORDS."""
    winner_s: float
    other_s: float

    @property
    def loss_s(self) -> float:
        """How much longer the other layout takes in this part; negative where it is better."""
        return self.other_s - self.winner_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The winner against one other layout; the differences add up to the difference of the step times."""

    winner: Candidate
    other: Candidate
    differences: tuple[PartDifference, ...]
    """Largest loss of the other layout first."""
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class KnobEffect:
    """What happens to the winner if one dimension is set to its neighbouring value."""

    dimension: str
    value: Any
    step_time_ratio: float | None
    """Step time over the winner's; None where the layout does not fit."""
    device_bytes: float
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why a search ended as it did."""

    winner: Candidate
    runner_up: Comparison | None
    """Against the best layout of the next family; None where there is no other family."""
    knobs: tuple[KnobEffect, ...]
    notes: tuple[str, ...]
    """What the request leaves unused, and what would use it."""

    @property
    def text(self) -> str:
        """The whole explanation, one thought per line."""
        lines = [f"best: {self.winner.layout.describe()}"]
        if self.runner_up:
            lines.append(self.runner_up.text)
        lines += [effect.text for effect in self.knobs]
        lines += list(self.notes)
        return "\n".join(lines)


def step_parts_s(candidate: Candidate) -> dict[str, float]:
    """The step in the parts that people can act on: communication split by the group that causes it."""
    parts = {name: value for name, value in candidate.parts_s.items() if name != "exposed_communication_s"}
    parts.update({name: candidate.exposed_s[name] for name in EXPOSED_PARTS})
    return parts


def compare(winner: Candidate, other: Candidate) -> Comparison:
    """Which parts of the step make the difference between two layouts."""
    ours, theirs = step_parts_s(winner), step_parts_s(other)
    differences = sorted(
        (PartDifference(part=name, winner_s=ours[name], other_s=theirs[name]) for name in ours),
        key=lambda d: (-d.loss_s, d.part),
    )
    slower_s = other.step_time_s - winner.step_time_s
    notable = 0.02 * max(abs(slower_s), 1e-9)
    losses = [d for d in differences if d.loss_s > notable][:3]
    gains = [d for d in reversed(differences) if d.loss_s < -notable][:2]
    relative = slower_s / winner.step_time_s
    speed = "slower" if relative >= 0 else "faster"
    text = f"runner-up: {other.layout.describe()} is {abs(relative):.1%} {speed} ({slower_s:+.3g} s)"
    if losses:
        text += ": it loses " + ", ".join(f"{d.loss_s:.3g} s in {PART_WORDS[d.part]}" for d in losses)
    if gains:
        text += "; it gains " + ", ".join(f"{-d.loss_s:.3g} s in {PART_WORDS[d.part]}" for d in gains)
    return Comparison(winner=winner, other=other, differences=tuple(differences), text=text)


def explain(request: PlanRequest, result: SearchResult) -> Explanation:
    """Why the best layout is the best: against the next family, and against its own neighbours."""
    winner = result.best
    runner_up = compare(winner, result.ranked[1]) if len(result.ranked) > 1 else None
    return Explanation(
        winner=winner,
        runner_up=runner_up,
        knobs=tuple(_knobs(request, winner)),
        notes=tuple(_notes(request, result)),
    )


def _notes(request: PlanRequest, result: SearchResult) -> Iterator[str]:
    winner = result.best
    if result.unused_accelerators:
        used, layout = winner.accelerator_count, winner.layout
        group = layout.tp * layout.cp * layout.pp
        most = request.accelerator_count // group
        note = (
            f"{result.unused_accelerators:,} of {request.accelerator_count:,} accelerators stay unused ({used:,} used)"
        )
        if most > layout.dp:
            batch = max(round(request.global_batch_sequences / most), 1) * most
            note += f"; a global batch of {batch:,} sequences instead of {request.global_batch_sequences:,} "
            note += f"lets dp be {most:,} and use {most * group:,}"
        yield note
    if winner.global_batch_sequences != request.global_batch_sequences:
        asked = request.global_batch_sequences
        yield f"global batch moved from {asked:,} to {winner.global_batch_sequences:,} sequences, as batch_slack allows"


_KNOBS: tuple[str, ...] = ("tp", "cp", "pp", "vpp", "ep", "micro_batch", "recompute", "sharding", "precision")


def _knobs(request: PlanRequest, winner: Candidate) -> Iterator[KnobEffect]:
    """The winner with one dimension moved to its next value down and up, whatever dp that leaves."""
    space = Space(request)
    for name in _KNOBS:
        values = _choices(space, name)
        now = getattr(winner.layout, name)
        if now not in values:
            continue
        at = values.index(now)
        for index in (at - 1, at + 1):
            if not 0 <= index < len(values):
                continue
            changed = _changed(request, winner, name, values[index])
            if changed is None:
                continue
            yield _effect(request, winner, name, values[index], changed)


def _choices(space: Space, name: str) -> tuple[Any, ...]:
    values = space.values[name]
    if name == "sharding":
        return tuple(value for value in values if value != "hsdp")
    if name == "micro_batch":
        return tuple(value for value in values if space.request.global_batch_sequences % value == 0)
    return values


def _changed(request: PlanRequest, winner: Candidate, name: str, value: Any) -> Layout | None:
    """The winner with one value changed and dp fitted to it; None where it does not divide."""
    layout = replace(winner.layout, **{name: value})
    batch = winner.global_batch_sequences
    if name in ("tp", "cp", "pp"):
        most = request.accelerator_count // (layout.tp * layout.cp * layout.pp)
        dp = max((d for d in divisors(batch) if d <= most), default=0)
        if not dp:
            return None
        layout = replace(layout, dp=dp)
    if name == "pp" and value == 1:
        layout = replace(layout, vpp=1, schedule="1f1b")
    return layout if not layout_problems(request, layout, global_batch_sequences=batch) else None


def _effect(request: PlanRequest, winner: Candidate, name: str, value: Any, layout: Layout) -> KnobEffect:
    moved = replace(request, global_batch_sequences=winner.global_batch_sequences)
    other = candidate_of(moved, layout)
    what = f"{name} {value} instead of {getattr(winner.layout, name)}"
    if other.headroom_bytes < 0:
        needs, fits = _gib(other.device_bytes), _gib(other.capacity_bytes)
        text = f"{what}: needs {needs} GiB, {fits} fit"
        return KnobEffect(dimension=name, value=value, step_time_ratio=None, device_bytes=other.device_bytes, text=text)
    ratio = other.step_time_s / winner.step_time_s
    comparison = compare(winner, other)
    if abs(ratio - 1) < 5e-5:
        text = f"{what}: the same time, {_gib(other.device_bytes)} GiB instead of {_gib(winner.device_bytes)}"
        return KnobEffect(
            dimension=name, value=value, step_time_ratio=ratio, device_bytes=other.device_bytes, text=text
        )
    word = "slower" if ratio >= 1 else "faster"
    first, last = comparison.differences[0], comparison.differences[-1]
    main = first if ratio >= 1 else last
    text = f"{what}: {abs(ratio - 1):.1%} {word}, mostly {PART_WORDS[main.part]} ({main.loss_s:+.3g} s)"
    return KnobEffect(dimension=name, value=value, step_time_ratio=ratio, device_bytes=other.device_bytes, text=text)


def _gib(value: float) -> str:
    return f"{value / GIB:.1f}"


def layout_problems(
    request: PlanRequest, layout: Layout, *, global_batch_sequences: int | None = None
) -> tuple[Problem, ...]:
    """Every rule that a layout breaks: those of the step model, and what a plan needs beyond them."""
    batch = request.global_batch_sequences if global_batch_sequences is None else global_batch_sequences
    slots = request.stage_slots
    problems = invalid_reasons(
        request.model, layout, sequence_length=request.sequence_length, global_batch_sequences=batch
    )

    def refuse(name: str, found: object, accepted: str, hint: str = "") -> None:
        problems.append(Problem(where=f"layout.{name}", found=found, accepted=accepted, hint=hint))

    if layout.vpp > 1 and not stages_divide(slots, layout.pp * layout.vpp):
        values = [v for v in range(1, slots + 3) if v == 1 or stages_divide(slots, v * layout.pp)]
        accepted = f"pp x vpp divides {slots} or {slots + 2} layers (vpp {_listed(values)} at pp {layout.pp})"
        refuse("vpp", layout.vpp, accepted, f"Nearest: {min(values, key=lambda v: (abs(v - layout.vpp), v))}.")
    experts = request.model.experts
    if experts is not None and experts.expert_ffn_size % layout.etp:
        refuse("etp", layout.etp, f"a divisor of the expert width {experts.expert_ffn_size}")
    ranks = layout.dp * layout.cp
    if layout.sharding == "hsdp" and (ranks % layout.shard_group or layout.shard_group >= ranks):
        smaller = [d for d in divisors(ranks) if 1 < d < ranks]
        refuse(
            "shard_group", layout.shard_group, f"a divisor of dp x cp = {ranks}, smaller than it ({_listed(smaller)})"
        )
    if layout.accelerator_count > request.accelerator_count:
        found = f"tp x cp x pp x dp = {layout.accelerator_count}"
        problems.append(
            Problem(where="layout", found=found, accepted=f"at most {request.accelerator_count} accelerators")
        )
    return tuple(problems)


def _listed(values: Sequence[int]) -> str:
    shown = [str(value) for value in values]
    return ", ".join(shown[:14]) + (", ..." if len(shown) > 14 else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortfall:
    """The layout that comes closest to fitting, and what would make one fit."""

    layout: Layout
    needed_bytes: float
    capacity_bytes: float
    remedies: tuple[str, ...]
    """Least change of each dimension on its own that makes a layout fit; empty if none does."""
    accelerators_needed: int | None
    """Fewest accelerators (in doublings of the request) with which a layout fits, if any up to 2^20 does."""

    @property
    def text(self) -> str:
        text = f"needs {_gib(self.needed_bytes)} GiB, {_gib(self.capacity_bytes)} fit"
        text += (
            f" ({_gib(self.needed_bytes - self.capacity_bytes)} GiB short, closest layout: {self.layout.describe()})"
        )
        if self.remedies:
            return f"{text}: add {' or '.join(self.remedies)}"
        if self.accelerators_needed:
            return f"{text}: use {self.accelerators_needed:,} accelerators or more"
        return f"{text}: no single change makes it fit"


def shortfall(request: PlanRequest) -> Shortfall:
    """Why nothing fits: the layout that needs the least memory, and the least change of each knob that helps.

    Raises:
        RequestError: the request is invalid or nothing divides
        ValueError: a layout does fit
    """
    plans, needed, capacity = _smallest(request)
    if needed <= capacity:
        raise ValueError("a layout fits; there is no shortfall to explain")
    remedies = []
    for name in request.options.fixed:
        remedy = _remedy(request, name)
        if remedy:
            remedies.append(remedy)
    return Shortfall(
        layout=plans.layout(0),
        needed_bytes=needed,
        capacity_bytes=capacity,
        remedies=tuple(remedies),
        accelerators_needed=None if remedies else _accelerators_needed(request),
    )


def infeasible(request: PlanRequest) -> InfeasibleError:
    """The error for a request in which no layout fits."""
    return InfeasibleError(f"no layout fits in memory: {shortfall(request).text}")


def _smallest(request: PlanRequest) -> tuple[PlanInput, float, float]:
    """The layout of a space that needs the least memory; first in canonical order of equals."""
    best: tuple[PlanInput, float, float] | None = None
    for block in Space(request).blocks(prune=False):
        count = block.global_batch_sequences / (block.plans.dp * block.plans.micro_batch)
        table = memory_of(request, block.plans, micro_batch_count=count)
        device = np.asarray(table.device_bytes)
        at = int(np.argmin(device))
        if best is None or device[at] < best[1]:
            capacity = float(np.broadcast_to(np.asarray(table.capacity_bytes), device.shape)[at])
            best = (block.plans.take(np.array([at])), float(device[at]), capacity)
    if best is None:
        raise nothing_divides(request)
    return best


def _remedy(request: PlanRequest, name: str) -> str | None:
    """The least change of one fixed dimension, all other fixed ones kept, that makes some layout fit."""
    given = request.options.fixed[name]
    relaxed = replace(request, options=request.options.free(name))
    fitting: set[float] = set()
    for block in Space(relaxed).blocks():
        count = block.global_batch_sequences / (block.plans.dp * block.plans.micro_batch)
        fits = plan_fits(memory_of(relaxed, block.plans, micro_batch_count=count))
        fitting.update(np.unique(getattr(block.plans, name)[fits]).tolist())
    names = {"sharding": SHARDINGS, "recompute": RECOMPUTES}.get(name)
    if not fitting:
        return None
    if names:
        code = min(fitting)
        word = names[int(code)]
        return f"recompute ({word})" if name == "recompute" else f"{name} {word}"
    if name in ("schedule", "precision"):
        order = {"schedule": "schedule", "precision": "precision"}[name]
        layout_name = Space(relaxed).values[order]
        codes = sorted(int(code) for code in fitting)
        known = [word for word in layout_name if _code(name, word) in codes]
        return f"{name} {known[0]}" if known else None
    above = [value for value in fitting if value > max(given)]
    below = [value for value in fitting if value < min(given)]
    if above:
        return f"{name} >= {int(min(above))}"
    return f"{name} <= {int(max(below))}" if below else f"{name} {int(min(fitting))}"


def _code(name: str, word: str) -> int:
    probe = PlanInput.of(Layout(**{name: word}))  # type: ignore[arg-type]
    return int(getattr(probe, name)[0])


def _accelerators_needed(request: PlanRequest) -> int | None:
    """Doublings of the request's accelerators until a layout fits; its batch stays as it is."""
    count = request.accelerator_count * 2
    while count <= 2**20:
        larger = replace(request, accelerator_count=count)
        _, needed, capacity = _smallest(larger)
        if needed <= capacity:
            return count
        count *= 2
    return None
