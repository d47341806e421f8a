"""What becomes of many such runs? A Monte Carlo over failures, vectorised across trials.

Each trial is one run. All trials take their k-th failure in one set of array operations, so the cost is the number of
failures of one run, not of all. Time is booked as it passes: at every moment a run either works, and what it works is
later kept or lost, or it is in one phase of a recovery. Every second is in exactly one place.

Where a failure hits during a recovery, the recovery ends when the later of the two is done; with equal times that is
Daly's restart from the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from lakh.errors import Problem, RequestError
from lakh.reliability.events import PHASES, JobModel
from lakh.reliability.recovery import replicas_of
from lakh.reliability.spares import equilibrium_residual_s, job_outages, nodes_down, spare_count
from lakh.reliability.stragglers import mean_throughput

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

Gaps = Literal["bursty", "exponential", "even"]
"""bursty: a rate that changes from episode to episode, as observed; exponential: a constant rate, as Young, Daly and most
formulas assume; even: always the same gap, as (M - R) / M assumes."""
Clock = Literal["wall", "uptime"]
"""What the time between failures is counted on: all time, or only the time the job is up."""
GAPS: tuple[str, ...] = get_args(Gaps)
CLOCKS: tuple[str, ...] = get_args(Clock)

CAUSES: tuple[str, ...] = (*PHASES, "checkpoint", "lost work", "slow-downs", "reduced size")
"""Where time goes that is not productive. With the productive time they sum to the wall time."""
_CHECKPOINT, _LOST_WORK, _SLOW, _REDUCED = (
    CAUSES.index(cause) for cause in ("checkpoint", "lost work", "slow-downs", "reduced size")
)
_WAITING = PHASES.index("waiting for nodes")
_PHASE_COUNT = len(PHASES)

_TABLE = 1 << 16
_FINE = 4096
_BLOCK = 32
_SLOTS = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Trials:
    """The outcome of every trial of one job."""

    duration_s: float
    productive_s: Floats
    """Work done and kept, per trial [s]."""
    lost_s: Floats
    """(cause, trial), causes as in `CAUSES` [s]."""
    stop_count: Floats
    """Stops of the job, per trial."""
    unplanned_stop_count: Floats
    component_lost_s: dict[str, float]
    """Mean over trials of what each component's stops cost: recoveries and lost work [s]."""
    full_size_share: float
    """Share of the time, at the moments of failures, that no node was missing (spares sufficed)."""

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
    thread_count: int = 2,
) -> Trials:
    """Run a job many times.

    Args:
        job: see `events.build_job`; its tiers' intervals are used as they are
        duration_s: wall time of each run [s]
        trial_count: runs
        seed: of the random numbers; the same seed gives the same outcome
        gaps: distribution of the gaps between failures
        clock: what the gaps are counted on
        uncertain: True: each trial also draws the rates from what is known of them; False: as stated
        thread_count: trials are split over so many threads; part of what decides the random numbers

    Raises:
        RequestError: a count or duration that is not positive, or an unknown word
    """
    _check(duration_s=duration_s, trial_count=trial_count, gaps=gaps, clock=clock)
    parts = max(1, min(thread_count, trial_count))
    sizes = [trial_count // parts + (index < trial_count % parts) for index in range(parts)]
    seeds = np.random.SeedSequence(seed).spawn(parts)
    settings = _Settings(job=job, duration_s=duration_s, gaps=gaps, clock=clock, uncertain=uncertain)
    if parts == 1:
        return _Run(settings, sizes[0], seeds[0]).outcome()
    with ThreadPoolExecutor(parts) as pool:
        found = list(pool.map(lambda pair: _Run(settings, *pair).outcome(), zip(sizes, seeds, strict=True)))
    return _merge(found, sizes)


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


def _merge(found: Sequence[Trials], sizes: Sequence[int]) -> Trials:
    weights = np.asarray(sizes, dtype=np.float64) / sum(sizes)
    return Trials(
        duration_s=found[0].duration_s,
        productive_s=np.concatenate([part.productive_s for part in found]),
        lost_s=np.concatenate([part.lost_s for part in found], axis=1),
        stop_count=np.concatenate([part.stop_count for part in found]),
        unplanned_stop_count=np.concatenate([part.unplanned_stop_count for part in found]),
        component_lost_s={
            name: float(sum(w * part.component_lost_s[name] for w, part in zip(weights, found, strict=True)))
            for name in found[0].component_lost_s
        },
        full_size_share=float(sum(w * part.full_size_share for w, part in zip(weights, found, strict=True))),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Settings:
    job: JobModel
    duration_s: float
    gaps: Gaps
    clock: Clock
    uncertain: bool


def _share_table(weights: Floats) -> Indices:
    """A table of 65,536 entries in which each class stands in proportion to its rate, by largest remainder."""
    ideal = weights / weights.sum() * _TABLE
    counts = np.floor(ideal).astype(np.int64)
    counts[np.argsort(counts - ideal)[: _TABLE - int(counts.sum())]] += 1
    return np.repeat(np.arange(len(weights)), counts).astype(np.intp)


def _quantile_points() -> Floats:
    return (np.arange(_FINE) + 0.5) / _FINE


class _Run:
    """One thread's trials. Arrays are over trials; those that are done are dropped as the others go on."""

    def __init__(self, settings: _Settings, trial_count: int, seed: np.random.SeedSequence) -> None:
        self.settings, self.job, self.size = settings, settings.job, trial_count
        self.rng = np.random.default_rng(seed)
        self._tabulate()
        self._draw_trials()
        count = trial_count
        zeros = lambda: np.zeros(count)  # noqa: E731  # one shape, many arrays
        self.t, self.up_at, self.work, self.debt = zeros(), zeros(), zeros(), zeros()
        self.capacity = np.ones(count)
        self.saved = [zeros() for _ in self.job.tiers]
        self.lost = np.zeros((len(CAUSES), count))
        self.current = np.zeros((_PHASE_COUNT, count))
        self.current_class = np.zeros(count, dtype=np.intp)
        self.stops, self.unplanned = zeros(), zeros()
        self.alive = np.ones(count)
        self.ids = np.arange(count)
        self.class_lost_s = np.zeros(len(self.rates))
        self.node_checks = self.node_full = 0.0
        self.out_productive = np.zeros(count)
        self.out_lost = np.zeros((len(CAUSES), count))
        self.out_stops, self.out_unplanned = np.zeros(count), np.zeros(count)

    # --- what is fixed ------------------------------------------------------------------------------------------

    def _tabulate(self) -> None:
        job, events = self.job, self.job.events
        self.rates = np.array([event.rate_per_s for event in events])
        self.base_rate = float(self.rates.sum())
        self.class_table = _share_table(self.rates) if len(events) else np.zeros(_TABLE, dtype=np.intp)
        self.phases = np.array([event.phases_s for event in events]).T.reshape(_PHASE_COUNT, len(events)).copy()
        self.tier = np.array([event.tier_index for event in events], dtype=np.intp)
        self.rolls = np.array([event.rolls_back for event in events], dtype=bool)
        self.silent_s = np.array([event.silent_latency_s for event in events])
        self.out = np.array([event.nodes_out for event in events], dtype=np.int64)
        self.repair_scale_s = np.array([event.repair_mean_s for event in events])
        self.debt_s = np.array([event.capacity_debt_s for event in events])
        self.is_unplanned = np.array([float(event.signal != "planned") for event in events])
        self.any_silent, self.any_debt = bool(self.silent_s.any()), bool(self.debt_s.any())
        cv = job.policy.recovery_cv
        sigma = math.sqrt(math.log1p(cv**2))
        points = _quantile_points()
        normal = special.ndtri(points)
        factor = np.exp(sigma * normal)
        self.factor_table = factor / factor.mean()
        k = job.repair.weibull_shape
        repair = (-np.log1p(-points)) ** (1.0 / k)
        self.repair_table = repair / repair.mean()  # the mean is kept though the far tail is cut
        q = job.burst.simultaneous_share
        self.batch_table = (1 + np.floor(np.log(1.0 - points) / math.log(q))).astype(np.int64) if q > 0.0 else None
        self.overheads = [tier.overhead for tier in job.tiers]
        self.overhead = sum(self.overheads)
        self.lags_s = [tier.persist_s / (1.0 + self.overhead) for tier in job.tiers]
        self.intervals_s = [tier.interval_s for tier in job.tiers]
        spares = job.policy.spare_node_count
        self.spares = spare_count(job, availability=0.99) if spares is None else spares
        self.tracks_nodes = bool((self.out > 0).any()) and self.spares < job.node_count
        replicas = replicas_of(job.policy, job.accelerator_count)
        self.shrinks = job.policy.elastic != "none" and replicas > 1.0
        self.nodes_per_replica = job.node_count / replicas
        self.slot_s = self.settings.duration_s / _SLOTS

    # --- what each trial draws at its start ---------------------------------------------------------------------

    def _draw_trials(self) -> None:
        job, rng, count = self.job, self.rng, self.size
        factor = np.ones(count)
        bursty = self.settings.gaps == "bursty"
        if bursty:
            shape = job.node_count * job.frailty_shape
            factor *= rng.gamma(shape, 1.0 / shape, count)  # some jobs have more lemons than others
        if self.settings.uncertain:
            factor *= np.exp(job.rate_log_sigma * rng.standard_normal(count))
            if job.growth is not None and job.growth[1] < job.growth[2]:
                log_ratio, low, high = job.growth
                factor *= np.exp(log_ratio * rng.triangular(low, min(max(0.0, low), high), high, count))
        self.throughput = mean_throughput(job.slow, node_count=job.node_count, rate_factor=factor)
        self.trial_rate = self.base_rate * factor
        variance = job.burst.multiplier_variance(job.node_count) if math.isfinite(job.burst.episode_shape) else 0.0
        self.episode_s = job.burst.episode_s if bursty and variance > 0.0 else 2.0 * self.settings.duration_s
        episodes = math.ceil(self.settings.duration_s / self.episode_s) + 2
        self.multiplier = np.ones((count, episodes))
        self.episode_end = np.full(count, self.episode_s)
        if bursty and variance > 0.0:
            self.multiplier = rng.gamma(1.0 / variance, variance, (count, episodes))
            self.episode_end = rng.random(count) * self.episode_s
        self.multiplier = np.maximum(self.multiplier, 1e-12)
        self.episode = np.zeros(count, dtype=np.intp)
        self.rate = self.trial_rate * self.multiplier[:, 0]
        if self.tracks_nodes:
            self._start_with_nodes_down(factor)

    def _start_with_nodes_down(self, factor: Floats) -> None:
        """The pool starts in its steady state: some nodes are being repaired already."""
        job, count = self.job, self.size
        mean = nodes_down(job_outages(job), burst=job.burst, node_count=job.node_count).mean
        self.slot = np.zeros(count, dtype=np.intp)
        self.returns = np.zeros((count, _SLOTS + 2), dtype=np.int32)
        down = np.minimum(self.rng.poisson(mean * factor * self.multiplier[:, 0]), job.node_count)
        trial = np.repeat(np.arange(count), down)
        residual = equilibrium_residual_s(job.repair, _quantile_points())
        left_s = residual[self.rng.integers(0, _FINE, len(trial))]
        slot = np.minimum(1 + (left_s / self.slot_s).astype(np.int64), _SLOTS + 1)
        flat = np.bincount(trial * (_SLOTS + 2) + slot, minlength=count * (_SLOTS + 2))
        self.returns += flat.reshape(count, _SLOTS + 2).astype(np.int32)
        self.down = down.astype(np.int64)
        self._set_capacity(np.arange(count))

    # --- the loop -----------------------------------------------------------------------------------------------

    def outcome(self) -> Trials:
        if self.base_rate <= 0.0:
            self._account(np.full(self.size, self.settings.duration_s))
            self._finish(np.arange(self.size), np.full(self.size, self.settings.duration_s))
        else:
            self._loop()
        components: dict[str, float] = {}
        for event, seconds in zip(self.job.events, self.class_lost_s / self.size, strict=True):
            components[event.component] = components.get(event.component, 0.0) + float(seconds)
        return Trials(
            duration_s=self.settings.duration_s,
            productive_s=self.out_productive,
            lost_s=self.out_lost,
            stop_count=self.out_stops,
            unplanned_stop_count=self.out_unplanned,
            component_lost_s=components,
            full_size_share=1.0 if self.node_checks == 0.0 else self.node_full / self.node_checks,
        )

    def _loop(self) -> None:
        first = True
        while len(self.t):
            width = len(self.t)
            hazards, classes, factors, repairs = self._draw_block(width, first=first)
            first = False
            for k in range(_BLOCK):
                self._step(hazards[k], classes[k], factors[k], repairs[k])
                if not self.alive.any():
                    return
            keep = self.alive > 0.0
            if keep.sum() < 0.8 * width:
                self._keep(np.flatnonzero(keep))

    def _draw_block(
        self, width: int, *, first: bool
    ) -> tuple[npt.NDArray[np.float32], Indices, Floats, npt.NDArray[np.uint16]]:
        rng = self.rng
        if self.settings.gaps == "even":
            hazards = np.ones((_BLOCK, width), dtype=np.float32)
            if first:
                hazards[0] = rng.random(width, dtype=np.float32)  # a run begins anywhere between two failures
        else:
            hazards = rng.standard_exponential((_BLOCK, width), dtype=np.float32)
        classes = self.class_table[rng.integers(0, _TABLE, (_BLOCK, width), dtype=np.uint16)]
        fine = rng.integers(0, _TABLE, (2, _BLOCK, width), dtype=np.uint16) >> 4
        return hazards, classes, self.factor_table[fine[0]], fine[1]

    def _step(
        self,
        hazard: npt.NDArray[np.float32],
        event: Indices,
        factor: Floats,
        repair: npt.NDArray[np.uint16],
    ) -> None:
        end_s = self.settings.duration_s
        if self.settings.clock == "uptime":
            np.maximum(self.t, self.up_at, out=self.t)
        next_t = self._next_failure(hazard)
        at = np.minimum(next_t, end_s)
        self._account(at)
        done = np.flatnonzero((next_t >= end_s) & (self.alive > 0.0))
        if done.size:
            self._finish(done, at)
        self.t = at
        self.stops += 1.0
        self.unplanned += self.is_unplanned[event]
        lost_work = self._roll_back(event)
        phases = np.take(self.phases, event, axis=1)
        phases *= factor
        if self.tracks_nodes:
            self._take_nodes(event, repair, phases)
        if self.any_debt:
            self.debt += self.debt_s[event] * factor
        self._begin_recovery(event, phases, lost_work)

    def _next_failure(self, hazard: npt.NDArray[np.float32]) -> Floats:
        next_t = self.t + hazard / self.rate
        late = np.flatnonzero(next_t > self.episode_end)
        if not late.size:
            return next_t
        need = hazard[late].astype(np.float64)
        start = self.t[late]
        last = self.multiplier.shape[1] - 1
        while late.size:
            need -= np.maximum(self.episode_end[late] - start, 0.0) * self.rate[late]
            start = np.maximum(self.episode_end[late], start)
            self.episode[late] = np.minimum(self.episode[late] + 1, last)
            self.episode_end[late] += self.episode_s
            self.rate[late] = self.trial_rate[late] * self.multiplier[late, self.episode[late]]
            found = start + need / self.rate[late]
            next_t[late] = found
            more = (found > self.episode_end[late]) & (self.episode_end[late] < self.settings.duration_s)
            late, need, start = late[more], need[more], start[more]
        return next_t

    def _account(self, at: Floats) -> None:
        """Book the time since the last recovery ended: reduced size, slow-downs, checkpoints, work."""
        up = at - self.up_at
        np.maximum(up, 0.0, out=up)
        lost = self.lost
        if self.any_debt or (self.shrinks and self.tracks_nodes):
            paid = np.minimum(self.debt, up)
            self.debt -= paid
            full = (up - paid) * self.capacity
            lost[_REDUCED] += up - full
            up = full
        fast = up * self.throughput
        lost[_SLOW] += up - fast
        work = fast / (1.0 + self.overhead)
        lost[_CHECKPOINT] += fast - work
        self.work += work

    def _roll_back(self, event: Indices) -> Floats:
        """Return to the newest checkpoint that survives; what was done since is lost."""
        work = self.work
        for saved, lag_s, interval_s in zip(self.saved, self.lags_s, self.intervals_s, strict=True):
            newest = np.floor((work - lag_s) / interval_s)
            newest *= interval_s
            np.maximum(saved, newest, out=saved)
        tier = self.tier[event]
        to = self.saved[0] if len(self.saved) == 1 else np.choose(tier, self.saved)
        if self.any_silent:
            silent = np.flatnonzero(self.silent_s[event])
            if silent.size:
                to = to.copy()
                before = work[silent] - self.silent_s[event[silent]] - self.lags_s[-1]
                clean = np.maximum(np.floor(before / self.intervals_s[-1]) * self.intervals_s[-1], 0.0)
                to[silent] = np.minimum(to[silent], clean)
        to = np.where(self.rolls[event], to, work)
        lost_work = work - to
        self.lost[_LOST_WORK] += lost_work
        self.work = to.copy()
        for index, saved in enumerate(self.saved):
            np.minimum(saved, to, out=saved)
            if index + 1 < len(self.saved):
                # What is loaded from a slower tier is in memory afterwards.
                np.copyto(saved, to, where=(tier > index) & self.rolls[event])
        return np.asarray(lost_work)

    def _take_nodes(self, event: Indices, repair: npt.NDArray[np.uint16], phases: Floats) -> None:
        """Nodes come back, the failed ones go to repair, and who finds no spare waits or goes on smaller."""
        slot = np.minimum((self.t / self.slot_s).astype(np.intp), _SLOTS)
        behind = np.flatnonzero(self.slot < slot)
        changed = behind
        while behind.size:
            self.slot[behind] += 1
            self.down[behind] -= self.returns[behind, self.slot[behind]]
            behind = behind[self.slot[behind] < slot[behind]]
        out = self.out[event]
        hit = np.flatnonzero(out)
        if hit.size:
            nodes = out[hit]
            if self.batch_table is not None:
                nodes = np.where(nodes == 1, self.batch_table[repair[hit][::-1]], nodes)
            away_s = self.repair_table[repair[hit]] * self.repair_scale_s[event[hit]]
            back = np.minimum(slot[hit] + 1 + (away_s / self.slot_s).astype(np.intp), _SLOTS + 1)
            self.returns[hit, back] += nodes.astype(np.int32)
            self.down[hit] += nodes
        if self.shrinks:
            self._set_capacity(np.concatenate((changed, hit)))
        missing = self.down - self.spares
        short = np.flatnonzero(missing > 0)
        alive = float(self.alive.sum())
        self.node_checks += alive
        self.node_full += alive - float(self.alive[short].sum())
        if short.size and not self.shrinks:
            phases[_WAITING, short] += self._wait_s(short, missing[short])

    def _wait_s(self, short: Indices, missing: npt.NDArray[np.int64]) -> Floats:
        """Time until enough nodes are back for the full size."""
        slot, need = self.slot[short].copy(), missing.copy()
        waiting = np.arange(short.size)
        while waiting.size:
            slot[waiting] += 1
            need[waiting] -= self.returns[short[waiting], slot[waiting]]
            waiting = waiting[(need[waiting] > 0) & (slot[waiting] <= _SLOTS)]
        return np.asarray(np.maximum(slot * self.slot_s - self.t[short], 0.0))

    def _set_capacity(self, trials: Indices) -> None:
        """An elastic job without spares gives up whole replicas."""
        if not self.shrinks:
            return
        missing = np.maximum(self.down[trials] - self.spares, 0)
        replicas = np.ceil(missing / self.nodes_per_replica)
        self.capacity[trials] = np.maximum(1.0 - replicas * self.nodes_per_replica / self.job.node_count, 0.0)

    def _begin_recovery(self, event: Indices, phases: Floats, lost_work: Floats) -> None:
        until = self.t + phases.sum(axis=0)
        cost = lost_work * self.alive
        interrupted = np.flatnonzero(self.up_at > self.t)
        if interrupted.size:
            longer = self.up_at[interrupted] > until[interrupted]
            self._take_back(interrupted[~longer], self.t)
            kept = interrupted[longer]
            phases[:, kept] = 0.0
            self.lost[:_PHASE_COUNT] += phases
            phases[:, kept] = self.current[:, kept]
            until[kept] = self.up_at[kept]
            fresh = np.ones(len(until))
            fresh[kept] = 0.0
            cost += (until - self.t) * fresh * self.alive
            event = np.where(fresh > 0.0, event, self.current_class)
            self.class_lost_s += np.bincount(event, weights=cost, minlength=len(self.rates))
        else:
            self.lost[:_PHASE_COUNT] += phases
            cost += (until - self.t) * self.alive
            self.class_lost_s += np.bincount(event, weights=cost, minlength=len(self.rates))
        self.current, self.current_class, self.up_at = phases, event, until

    def _take_back(self, trials: Indices, at: Floats) -> None:
        """A recovery that is cut short did not spend its last phases after all."""
        if not trials.size:
            return
        unspent = self.up_at[trials] - at[trials]
        self.class_lost_s -= np.bincount(
            self.current_class[trials], weights=unspent * self.alive[trials], minlength=len(self.rates)
        )
        for phase in range(_PHASE_COUNT - 1, -1, -1):
            part = np.minimum(unspent, self.current[phase, trials])
            self.lost[phase, trials] -= part
            unspent = unspent - part

    # --- the end of trials --------------------------------------------------------------------------------------

    def _finish(self, done: Indices, at: Floats) -> None:
        over = done[self.up_at[done] > at[done]]
        if over.size:
            self._take_back(over, at)
        ids = self.ids[done]
        self.out_productive[ids] = self.work[done]
        self.out_lost[:, ids] = self.lost[:, done]
        self.out_stops[ids], self.out_unplanned[ids] = self.stops[done], self.unplanned[done]
        self.alive[done] = 0.0

    def _keep(self, kept: Indices) -> None:
        for name in (
            "t",
            "up_at",
            "work",
            "debt",
            "capacity",
            "current_class",
            "stops",
            "unplanned",
            "alive",
            "ids",
            "throughput",
            "trial_rate",
            "episode_end",
            "multiplier",
            "episode",
            "rate",
        ):
            setattr(self, name, getattr(self, name)[kept])
        self.saved = [saved[kept] for saved in self.saved]
        self.lost, self.current = self.lost[:, kept], self.current[:, kept]
        if self.tracks_nodes:
            self.slot, self.returns, self.down = self.slot[kept], self.returns[kept], self.down[kept]

