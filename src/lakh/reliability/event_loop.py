"""The inner loop of the Monte Carlo: one trial after another, one failure after another, compiled.

Time is booked as it passes: at every moment a run works, and what it works is kept or lost, or it is in one phase of a
recovery, or it waits for nodes. Every second is in exactly one place. Where a failure hits during a recovery, the
recovery ends when the later of the two is done (with equal times, Daly's restart from the beginning).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    """Compile, and keep the result beside the package or in the user's cache; where neither can be written, compile
    anew in each process."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))


CLASS_BITS, QUANTILE_BITS = 16, 12
CLASS_TABLE_SIZE, QUANTILE_COUNT = 1 << CLASS_BITS, 1 << QUANTILE_BITS
SLOT_COUNT = 1024
"""Repaired nodes come back at the end of one of so many slots of a run."""

# Rows of `Outcome.booked_s` after the phases.
WAITING, CHECKPOINT, LOST_WORK, SLOW, REDUCED = range(5)
BOOKED_COUNT = 5


class Classes(NamedTuple):
    """Event classes, one entry each; see `events.EventClass`."""

    table: npt.NDArray[np.uint16]
    """Class by the next 16 random bits."""
    phases_s: Floats
    """(phase, class)"""
    recovery_s: Floats
    tier: Integers
    rolls_back: npt.NDArray[np.bool_]
    silent_s: Floats
    nodes_out: Integers
    repair_mean_s: Floats
    debt_s: Floats
    unplanned: Floats


class Tables(NamedTuple):
    """Quantiles, by the next 12 random bits; each has mean 1 except the batch and the residual."""

    recovery_factor: Floats
    repair_factor: Floats
    batch: Integers
    """Nodes that fail together."""
    residual_s: Floats
    """Time left of a repair under way."""


class Plan(NamedTuple):
    """What all trials share."""

    duration_s: float
    intervals_s: Floats
    lags_s: Floats
    overhead: float
    """Checkpoint time per unit of work."""
    episode_s: float
    even_gaps: bool
    uptime_clock: bool
    tracks_nodes: bool
    spares: int
    shrinks: bool
    nodes_per_replica: float
    node_count: int


class Draws(NamedTuple):
    """What each trial drew at its start."""

    seed: npt.NDArray[np.uint64]
    rate_per_s: Floats
    multiplier: Floats
    """(trial, episode)"""
    first_episode_end_s: Floats
    throughput: Floats
    down: Integers
    """Nodes in repair when the run starts."""


class Outcome(NamedTuple):
    """Filled trial by trial."""

    productive_s: Floats
    phase_s: Floats
    """(phase, trial)"""
    booked_s: Floats
    """(WAITING .. REDUCED, trial)"""
    stops: Floats
    unplanned: Floats
    short_s: Floats
    """Time with fewer nodes than the full size needs."""
    class_cost_s: Floats
    """(trial, class): recoveries, waiting and lost work by the class that caused them."""


@_compiled
def _next_random(state: npt.NDArray[np.uint64]) -> Any:
    """SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_compiled
def _next_uniform(state: npt.NDArray[np.uint64]) -> float:
    return (float(_next_random(state) >> np.uint64(11)) + 0.5) * 2.0**-53


@_compiled
def _account(
    booked_s: Floats, trial: int, span_s: float, capacity: float, throughput: float, overhead: float, debt_s: float
) -> tuple[float, float]:
    """Book a span in which the job is up: reduced size, slow-downs, checkpoints. Returns the work and the debt left."""
    paid_s = min(debt_s, span_s)
    full_s = (span_s - paid_s) * capacity
    booked_s[REDUCED, trial] += span_s - full_s
    fast_s = full_s * throughput
    booked_s[SLOW, trial] += full_s - fast_s
    work_s = fast_s / (1.0 + overhead)
    booked_s[CHECKPOINT, trial] += fast_s - work_s
    return work_s, debt_s - paid_s


@_compiled
def _capacity(down: int, plan: Plan) -> float:
    """Share of the full size that an elastic job runs at: whole replicas only."""
    missing = down - plan.spares
    if missing <= 0:
        return 1.0
    return max(0.0, 1.0 - math.ceil(missing / plan.nodes_per_replica) * plan.nodes_per_replica / plan.node_count)


@_compiled
def _take_back(classes: Classes, phase_s: Floats, trial: int, kind: int, factor: float, unspent_s: float) -> None:
    """A recovery that is cut short did not spend its last phases after all."""
    for phase in range(classes.phases_s.shape[0] - 1, -1, -1):
        part_s = min(unspent_s, classes.phases_s[phase, kind] * factor)
        phase_s[phase, trial] -= part_s
        unspent_s -= part_s


@_compiled
def run_trials(
    classes: Classes, tables: Tables, plan: Plan, draws: Draws, out: Outcome, first_trial: int, last_trial: int
) -> None:
    """Run trials `first_trial` to `last_trial` - 1 and write their outcome; releases the interpreter's lock."""
    state = np.zeros(1, dtype=np.uint64)
    returns = np.zeros(SLOT_COUNT + 2, dtype=np.int64)
    class_count, tier_count = classes.recovery_s.shape[0], plan.intervals_s.shape[0]
    saved_s = np.zeros(tier_count)
    factor_sum = np.zeros(class_count)
    slot_s = plan.duration_s / SLOT_COUNT
    last_episode = draws.multiplier.shape[1] - 1
    quantile_mask = np.uint64(QUANTILE_COUNT - 1)
    for trial in range(first_trial, last_trial):
        state[0] = draws.seed[trial]
        saved_s[:] = 0.0
        factor_sum[:] = 0.0
        time_s = up_at_s = work_s = debt_s = mark_s = 0.0
        kind, kind_factor = 0, 0.0
        throughput = draws.throughput[trial]
        episode, episode_end_s = 0, draws.first_episode_end_s[trial]
        rate_per_s = draws.rate_per_s[trial] * draws.multiplier[trial, 0]
        down, slot = draws.down[trial], 0
        if plan.tracks_nodes:
            returns[:] = 0
            for _ in range(down):
                left_s = tables.residual_s[_next_random(state) & quantile_mask]
                returns[min(1 + int(left_s / slot_s), SLOT_COUNT + 1)] += 1
        capacity = _capacity(down, plan) if plan.shrinks else 1.0
        first = True
        while True:
            # --- when the next failure comes
            hazard = 1.0
            if not plan.even_gaps:
                hazard = -math.log(_next_uniform(state))
            elif first:
                hazard = _next_uniform(state)  # a run begins anywhere between two failures
            first = False
            start_s = max(time_s, up_at_s) if plan.uptime_clock else time_s
            failure_s = start_s + hazard / rate_per_s
            while failure_s > episode_end_s and episode_end_s < plan.duration_s:
                hazard -= max(episode_end_s - start_s, 0.0) * rate_per_s
                start_s = max(start_s, episode_end_s)
                episode = min(episode + 1, last_episode)
                episode_end_s += plan.episode_s
                rate_per_s = draws.rate_per_s[trial] * draws.multiplier[trial, episode]
                failure_s = start_s + hazard / rate_per_s
            at_s = min(failure_s, plan.duration_s)

            # --- what happens until then
            if plan.tracks_nodes:
                target = int(at_s / slot_s)
                while slot < target:
                    slot += 1
                    back = returns[slot]
                    if back == 0:
                        continue
                    if down > plan.spares:
                        edge_s = slot * slot_s
                        out.short_s[trial] += edge_s - mark_s
                        mark_s = edge_s
                        if edge_s > up_at_s:
                            if plan.shrinks:
                                done_s, debt_s = _account(
                                    out.booked_s, trial, edge_s - up_at_s, capacity, throughput, plan.overhead, debt_s
                                )
                                work_s += done_s
                            else:
                                out.booked_s[WAITING, trial] += edge_s - up_at_s
                                out.class_cost_s[trial, kind] += edge_s - up_at_s
                            up_at_s = edge_s
                    down -= back
                    if plan.shrinks:
                        capacity = _capacity(down, plan)
                if down > plan.spares:
                    out.short_s[trial] += at_s - mark_s
                    if not plan.shrinks and at_s > up_at_s:
                        out.booked_s[WAITING, trial] += at_s - up_at_s
                        out.class_cost_s[trial, kind] += at_s - up_at_s
                        up_at_s = at_s
                mark_s = at_s
            if at_s > up_at_s:
                done_s, debt_s = _account(
                    out.booked_s, trial, at_s - up_at_s, capacity, throughput, plan.overhead, debt_s
                )
                work_s += done_s
            if failure_s >= plan.duration_s:
                break

            # --- the failure
            bits = _next_random(state)
            event = int(classes.table[bits & np.uint64(CLASS_TABLE_SIZE - 1)])
            bits >>= np.uint64(CLASS_BITS)
            factor = tables.recovery_factor[bits & quantile_mask]
            bits >>= np.uint64(QUANTILE_BITS)
            out.stops[trial] += 1.0
            out.unplanned[trial] += classes.unplanned[event]
            for tier in range(tier_count):
                newest_s = math.floor((work_s - plan.lags_s[tier]) / plan.intervals_s[tier]) * plan.intervals_s[tier]
                saved_s[tier] = max(saved_s[tier], newest_s)
            if classes.rolls_back[event]:
                from_tier = classes.tier[event]
                to_s = saved_s[from_tier]
                if classes.silent_s[event] > 0.0:
                    sound_s = work_s - classes.silent_s[event] - plan.lags_s[from_tier]
                    interval_s = plan.intervals_s[from_tier]
                    to_s = min(to_s, max(math.floor(sound_s / interval_s) * interval_s, 0.0))
                out.booked_s[LOST_WORK, trial] += work_s - to_s
                out.class_cost_s[trial, event] += work_s - to_s
                work_s = to_s
                for tier in range(tier_count):
                    # What is loaded from a slower tier is in the faster ones afterwards.
                    saved_s[tier] = to_s if tier < from_tier else min(saved_s[tier], to_s)
            if plan.tracks_nodes and classes.nodes_out[event] > 0:
                nodes = classes.nodes_out[event]
                if nodes == 1:
                    nodes = tables.batch[(bits >> np.uint64(QUANTILE_BITS)) & quantile_mask]
                away_s = classes.repair_mean_s[event] * tables.repair_factor[bits & quantile_mask]
                returns[min(slot + 1 + int(away_s / slot_s), SLOT_COUNT + 1)] += nodes
                down += nodes
                if plan.shrinks:
                    capacity = _capacity(down, plan)
            debt_s += classes.debt_s[event] * factor
            time_s = at_s
            until_s = at_s + classes.recovery_s[event] * factor
            if up_at_s > at_s:
                if up_at_s > until_s:
                    continue  # the recovery under way takes longer than this one would
                out.class_cost_s[trial, kind] -= up_at_s - at_s
                _take_back(classes, out.phase_s, trial, kind, kind_factor, up_at_s - at_s)
            factor_sum[event] += factor
            out.class_cost_s[trial, event] += until_s - at_s
            kind, kind_factor, up_at_s = event, factor, until_s
        if up_at_s > plan.duration_s:
            out.class_cost_s[trial, kind] -= up_at_s - plan.duration_s
            _take_back(classes, out.phase_s, trial, kind, kind_factor, up_at_s - plan.duration_s)
        out.productive_s[trial] = work_s
        for event in range(class_count):
            if factor_sum[event] > 0.0:
                for phase in range(classes.phases_s.shape[0]):
                    out.phase_s[phase, trial] += classes.phases_s[phase, event] * factor_sum[event]
