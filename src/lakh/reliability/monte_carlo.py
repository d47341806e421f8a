"""What becomes of many such runs? A Monte Carlo over failures: draws, threads and totals around `event_loop`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from lakh.errors import Problem, RequestError
from lakh.reliability.event_loop import (
    BOOKED_COUNT,
    CLASS_TABLE_SIZE,
    QUANTILE_COUNT,
    Classes,
    Draws,
    Outcome,
    Plan,
    Tables,
    run_trials,
)
from lakh.reliability.events import PHASES, JobModel
from lakh.reliability.profiles import CLOCKS, GAPS, Clock, Gaps
from lakh.reliability.recovery import replicas_of
from lakh.reliability.spares import equilibrium_residual_s, job_outages, nodes_down, spare_count
from lakh.reliability.stragglers import mean_throughput

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CAUSES: tuple[str, ...] = (*PHASES, "waiting for nodes", "checkpoint", "lost work", "slow-downs", "reduced size")
"""Where time goes that is not productive. With the productive time they sum to the wall time."""

_CHUNK = 250


@dataclass(frozen=True, kw_only=True, slots=True)
class Trials:
    """The outcome of every trial of one job."""

    duration_s: float
    productive_s: Floats
    """Work done and kept, per trial [s]."""
    lost_s: Floats
    """(cause, trial), causes as in `CAUSES` [s]."""
    stop_count: Floats
    """Stops of the job, planned ones too, per trial."""
    unplanned_stop_count: Floats
    short_s: Floats
    """Time with fewer nodes than the full size needs, per trial [s]."""
    component_lost_s: Mapping[str, float]
    """Mean over trials of what each component's stops cost: recoveries, waiting and lost work [s]."""
    spare_node_count: int
    """Spares that were held."""

    @property
    def ettr(self) -> Floats:
        """Productive over wall time, per trial [ratio]."""
        return self.productive_s / self.duration_s


def simulate(
    job: JobModel,
    *,
    duration_s: float,
    trial_count: int,
    seed: int,
    gaps: Gaps = "bursty",
    clock: Clock = "wall",
    uncertain: bool = False,
    thread_count: int | None = None,
) -> Trials:
    """Run a job many times.

    Args:
        job: see `events.build_job`; its tiers' intervals are used as they are
        duration_s: wall time of each run [s]
        trial_count: runs
        seed: of the random numbers; the same seed gives the same outcome, whatever the threads
        gaps: distribution of the gaps between failures
        clock: what the gaps are counted on
        uncertain: True: each trial also draws the rates from what is known of them; False: as stated
        thread_count: threads; None: one per core

    Raises:
        RequestError: a count or duration that is not positive, or an unknown word
    """
    _check(duration_s=duration_s, trial_count=trial_count, gaps=gaps, clock=clock)
    events = job.events
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    spares = spare_count(job, availability=0.99) if job.policy.spare_node_count is None else job.policy.spare_node_count
    factor = _rate_factors(job, rng, trial_count, gaps=gaps, uncertain=uncertain)
    throughput = mean_throughput(job.slow, node_count=job.node_count, rate_factor=factor)
    if not events:
        return _undisturbed(job, duration_s, throughput, spares)
    classes, tables = _classes(job), _tables(job)
    plan = _plan(job, duration_s, spares, gaps=gaps, clock=clock)
    draws = _draws(job, rng, plan, factor, throughput, bursty=gaps == "bursty")
    out = Outcome(
        productive_s=np.zeros(trial_count),
        phase_s=np.zeros((len(PHASES), trial_count)),
        booked_s=np.zeros((BOOKED_COUNT, trial_count)),
        stops=np.zeros(trial_count),
        unplanned=np.zeros(trial_count),
        short_s=np.zeros(trial_count),
        class_cost_s=np.zeros((trial_count, len(events))),
    )
    bounds = [(first, min(first + _CHUNK, trial_count)) for first in range(0, trial_count, _CHUNK)]
    with ThreadPoolExecutor(thread_count or os.cpu_count() or 1) as pool:
        for part in [pool.submit(run_trials, classes, tables, plan, draws, out, *bound) for bound in bounds]:
            part.result()
    components: dict[str, float] = {}
    for event, seconds in zip(events, out.class_cost_s.mean(axis=0), strict=True):
        components[event.component] = components.get(event.component, 0.0) + float(seconds)
    return Trials(
        duration_s=duration_s,
        productive_s=out.productive_s,
        lost_s=np.concatenate((out.phase_s, out.booked_s)),
        stop_count=out.stops,
        unplanned_stop_count=out.unplanned,
        short_s=out.short_s,
        component_lost_s=components,
        spare_node_count=spares,
    )


def _check(*, duration_s: float, trial_count: int, gaps: str, clock: str) -> None:
    problems = []
    if not (duration_s > 0.0 and math.isfinite(duration_s)):
        problems.append(Problem(where="duration_s", found=duration_s, accepted="a duration above 0"))
    if trial_count < 1:
        problems.append(Problem(where="trial_count", found=trial_count, accepted="1 or more"))
    if gaps not in GAPS:
        problems.append(Problem(where="gaps", found=gaps, accepted=", ".join(GAPS)))
    if clock not in CLOCKS:
        problems.append(Problem(where="clock", found=clock, accepted=", ".join(CLOCKS)))
    if problems:
        raise RequestError(problems)


def _undisturbed(job: JobModel, duration_s: float, throughput: Floats, spares: int) -> Trials:
    """A run that nothing stops: checkpoints and slow-downs only."""
    count = len(throughput)
    lost_s = np.zeros((len(CAUSES), count))
    fast_s = duration_s * throughput
    productive_s = fast_s / (1.0 + sum(tier.overhead for tier in job.tiers))
    lost_s[CAUSES.index("slow-downs")] = duration_s - fast_s
    lost_s[CAUSES.index("checkpoint")] = fast_s - productive_s
    return Trials(
        duration_s=duration_s,
        productive_s=productive_s,
        lost_s=lost_s,
        stop_count=np.zeros(count),
        unplanned_stop_count=np.zeros(count),
        short_s=np.zeros(count),
        component_lost_s={},
        spare_node_count=spares,
    )


def _rate_factors(job: JobModel, rng: np.random.Generator, count: int, *, gaps: Gaps, uncertain: bool) -> Floats:
    """Each trial's rate over the stated one: which nodes it got, and what is not known of the rates."""
    factor = np.ones(count)
    if gaps == "bursty":
        shape = job.node_count * job.frailty_shape
        factor *= rng.gamma(shape, 1.0 / shape, count)
    if uncertain:
        factor *= np.exp(job.rate_log_sigma * rng.standard_normal(count))
        if job.growth is not None and job.growth[1] < job.growth[2]:
            log_ratio, low, high = job.growth
            factor *= np.exp(log_ratio * rng.triangular(low, min(max(0.0, low), high), high, count))
    return factor


def _classes(job: JobModel) -> Classes:
    events = job.events
    weights = np.array([event.rate_per_s for event in events])
    ideal = weights / weights.sum() * CLASS_TABLE_SIZE
    counts = np.floor(ideal).astype(np.int64)
    counts[np.argsort(counts - ideal)[: CLASS_TABLE_SIZE - int(counts.sum())]] += 1  # largest remainders first
    phases_s = np.ascontiguousarray(np.array([event.phases_s for event in events]).T)
    return Classes(
        table=np.repeat(np.arange(len(events)), counts).astype(np.uint16),
        phases_s=phases_s,
        recovery_s=phases_s.sum(axis=0),
        tier=np.array([event.tier_index for event in events], dtype=np.int64),
        rolls_back=np.array([event.rolls_back for event in events], dtype=np.bool_),
        silent_s=np.array([event.silent_latency_s for event in events]),
        nodes_out=np.array([event.nodes_out for event in events], dtype=np.int64),
        repair_mean_s=np.array([event.repair_mean_s for event in events]),
        debt_s=np.array([event.capacity_debt_s for event in events]),
        unplanned=np.array([float(event.signal != "planned") for event in events]),
    )


def _tables(job: JobModel) -> Tables:
    points = (np.arange(QUANTILE_COUNT) + 0.5) / QUANTILE_COUNT
    recovery = np.exp(math.sqrt(math.log1p(job.policy.recovery_cv**2)) * special.ndtri(points))
    repair = (-np.log1p(-points)) ** (1.0 / job.repair.weibull_shape)
    q = job.burst.simultaneous_share
    batch = 1 + np.floor(np.log1p(-points) / math.log(q)).astype(np.int64) if q > 0.0 else np.ones(QUANTILE_COUNT)
    return Tables(
        recovery_factor=recovery / recovery.mean(),
        repair_factor=repair / repair.mean(),  # the table cuts the far tail and keeps the mean
        batch=batch.astype(np.int64),
        residual_s=equilibrium_residual_s(job.repair, points),
    )


def _plan(job: JobModel, duration_s: float, spares: int, *, gaps: Gaps, clock: Clock) -> Plan:
    overhead = sum(tier.overhead for tier in job.tiers)
    replicas = replicas_of(job.policy, job.accelerator_count)
    takes_nodes = any(event.nodes_out for event in job.events)
    return Plan(
        duration_s=duration_s,
        intervals_s=np.array([tier.interval_s for tier in job.tiers]),
        lags_s=np.array([tier.persist_s / (1.0 + overhead) for tier in job.tiers]),
        overhead=overhead,
        episode_s=job.burst.episode_s if gaps == "bursty" else 2.0 * duration_s,
        even_gaps=gaps == "even",
        uptime_clock=clock == "uptime",
        tracks_nodes=takes_nodes and spares < job.node_count,
        spares=spares,
        shrinks=job.policy.elastic != "none" and replicas > 1.0,
        nodes_per_replica=job.node_count / replicas,
        node_count=job.node_count,
    )


def _draws(
    job: JobModel, rng: np.random.Generator, plan: Plan, factor: Floats, throughput: Floats, *, bursty: bool
) -> Draws:
    count = len(factor)
    variance = job.burst.multiplier_variance(job.node_count) if math.isfinite(job.burst.episode_shape) else 0.0
    episodes = math.ceil(plan.duration_s / plan.episode_s) + 2
    multiplier, first_end_s = np.ones((count, episodes)), np.full(count, plan.episode_s)
    if bursty and variance > 0.0:
        multiplier = np.maximum(rng.gamma(1.0 / variance, variance, (count, episodes)), 1e-12)
        first_end_s = rng.random(count) * plan.episode_s  # a run begins anywhere in an episode
    down = np.zeros(count, dtype=np.int64)
    if plan.tracks_nodes:
        # The pool starts in its steady state: some nodes are being repaired already.
        mean = nodes_down(job_outages(job), burst=job.burst, node_count=job.node_count).mean
        down = np.minimum(rng.poisson(mean * factor * multiplier[:, 0]), job.node_count).astype(np.int64)
    return Draws(
        seed=rng.integers(0, 2**64, count, dtype=np.uint64),
        rate_per_s=sum(event.rate_per_s for event in job.events) * factor,
        multiplier=multiplier,
        first_episode_end_s=first_end_s,
        throughput=throughput,
        down=down,
    )
