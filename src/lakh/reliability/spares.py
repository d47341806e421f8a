"""How many nodes are down at once, and how many spares keep the job whole?

Nodes down form an M/G/infinity queue whose arrivals come in bursts: the mean is rate x repair time, the variance is
that of a Poisson plus what simultaneous faults, correlated events and a changing rate add. A negative binomial with
that mean and variance gives the quantiles. A binomial has the right mean and too little variance: on the StepFun trace
it says 19 where the 99th percentile is 31.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import integrate, special

from lakh.reliability.counts import binomial_quantile, negative_binomial_quantile, poisson_quantile
from lakh.reliability.events import JobModel
from lakh.reliability.profiles import Burst, Repair

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeOutages:
    """One stream of events that take nodes out."""

    rate_per_s: float
    nodes_out: float
    """Nodes an event takes [1]."""
    together: bool
    """True where they come back together too (a switch, a row's power)."""
    repair: Repair


@dataclass(frozen=True, kw_only=True, slots=True)
class NodesDown:
    """Distribution of the nodes down at a time."""

    mean: float
    variance: float

    def quantile(self, probability: float) -> int:
        """Smallest count that is not exceeded with that probability."""
        if self.mean <= 0.0:
            return 0
        if self.variance <= self.mean * (1.0 + 1e-9):
            return poisson_quantile(probability, mean=self.mean)
        shape = self.mean**2 / (self.variance - self.mean)
        return negative_binomial_quantile(probability, mean=self.mean, shape=shape)


def weibull_scale_s(repair: Repair) -> float:
    """Scale of the repair time's Weibull distribution [s]."""
    return repair.mean_s / math.gamma(1.0 + 1.0 / repair.weibull_shape)


def _survival(repair: Repair, age_s: Array) -> Array:
    return np.asarray(np.exp(-((age_s / weibull_scale_s(repair)) ** repair.weibull_shape)), dtype=np.float64)


def _modulation_overlap(streams: Sequence[NodeOutages], episode_s: float) -> float:
    """Variance of nodes down per unit variance of the rate multiplier: the integral of a(u) a(w) rho(u - w), with
    a(u) = sum of rate x nodes x P(repair > u), rho(h) = 1 - |h|/L for episodes of length L at a random phase."""
    longest = max(weibull_scale_s(s.repair) * 40.0 ** (1.0 / s.repair.weibull_shape) for s in streams)
    age_s = np.concatenate(([0.0], np.geomspace(1.0, longest, 1500)))
    active = sum((s.rate_per_s * s.nodes_out * _survival(s.repair, age_s) for s in streams), np.zeros_like(age_s))
    lags_s = np.linspace(0.0, episode_s, 81)
    shifted = [np.interp(age_s + lag, age_s, active, right=0.0) for lag in lags_s]
    overlap = np.array([integrate.trapezoid(active * other, age_s) for other in shifted])
    return float(2.0 * integrate.trapezoid((1.0 - lags_s / episode_s) * overlap, lags_s))


def nodes_down(streams: Sequence[NodeOutages], *, burst: Burst, node_count: float) -> NodesDown:
    """Mean and variance of the nodes down at once in a fleet.

    Args:
        streams: events that take nodes out
        burst: how they bunch
        node_count: nodes of the fleet, over which the groups' swings average out
    """
    live = [stream for stream in streams if stream.rate_per_s > 0.0 and stream.nodes_out > 0.0]
    if not live:
        return NodesDown(mean=0.0, variance=0.0)
    mean = variance = 0.0
    q = burst.simultaneous_share
    for stream in live:
        here = stream.rate_per_s * stream.nodes_out * stream.repair.mean_s
        mean += here
        if stream.together:
            variance += here * stream.nodes_out
        else:
            # A batch is geometric with mean 1/(1-q); E[B(B-1)] = 2q/(1-q)^2; two of one batch are both down for the
            # integral of S^2, which for a Weibull is the mean times 2^(-1/k).
            batches_per_s = stream.rate_per_s * (1.0 - q) * stream.nodes_out
            both = stream.repair.mean_s * 2.0 ** (-1.0 / stream.repair.weibull_shape)
            variance += here + batches_per_s * 2.0 * q / (1.0 - q) ** 2 * both
    if math.isfinite(burst.episode_shape):
        variance += burst.multiplier_variance(node_count) * _modulation_overlap(live, burst.episode_s)
    return NodesDown(mean=mean, variance=variance)


def job_outages(job: JobModel, *, pool_factor: float = 1.0) -> tuple[NodeOutages, ...]:
    """The streams that take nodes out of a job's pool.

    Args:
        job: see `events.build_job`
        pool_factor: nodes of the pool over those of the job; spares fail as well
    """
    streams = []
    for event in job.events:
        if event.nodes_out:
            together = event.nodes_out > 1
            streams.append(
                NodeOutages(
                    rate_per_s=event.rate_per_s * pool_factor * (1.0 if together else job.nodes_out_per_event),
                    nodes_out=float(event.nodes_out),
                    together=together,
                    repair=Repair(mean_s=event.repair_mean_s, weibull_shape=job.repair.weibull_shape),
                )
            )
    return tuple(streams)


def spare_count(job: JobModel, *, availability: float) -> int:
    """Spares with which the job has its full size for that share of the time.

    The spares are in the pool and fail too, so the count is a fixed point; three rounds settle it.
    """
    spares = 0
    for _ in range(3):
        factor = (job.node_count + spares) / job.node_count
        pool = nodes_down(job_outages(job, pool_factor=factor), burst=job.burst, node_count=job.node_count + spares)
        spares = pool.quantile(availability)
    return spares


def independent_spare_count(job: JobModel, *, availability: float) -> int:
    """What the binomial rule would hold: same mean, nodes independent. For comparison; it falls short."""
    mean = sum(s.rate_per_s * s.nodes_out * s.repair.mean_s for s in job_outages(job))
    return binomial_quantile(availability, trial_count=job.node_count, success=min(1.0, mean / job.node_count))


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultLog:
    """What one simulated fleet's log says."""

    fault_count: int
    gap_cv: float
    """Coefficient of variation of the gaps between faults."""
    mean_down: float
    p99_down: float
    """99th percentile over time of the nodes down at once."""


def simulate_fault_log(
    *, fault_rate_per_s: float, burst: Burst, repair: Repair, node_count: int, duration_s: float, seed: int
) -> FaultLog:
    """One fleet's log of faults, from all nodes up at its start.

    Args:
        fault_rate_per_s: faults of the whole fleet, simultaneous ones counted severally
        burst: how they bunch
        repair: how long each node is away
        node_count: nodes of the fleet
        duration_s: length of the log
        seed: of the random numbers
    """
    rng = np.random.default_rng(seed)
    episodes = math.ceil(duration_s / burst.episode_s) + 1
    variance = burst.multiplier_variance(node_count) if math.isfinite(burst.episode_shape) else 0.0
    factors = rng.gamma(1.0 / variance, variance, episodes) if variance > 0.0 else np.ones(episodes)
    starts = np.arange(episodes) * burst.episode_s - rng.random() * burst.episode_s
    q = burst.simultaneous_share
    counts = rng.poisson(fault_rate_per_s * (1.0 - q) * factors * burst.episode_s)
    at_s = np.repeat(starts, counts) + rng.random(int(counts.sum())) * burst.episode_s
    at_s = at_s[(at_s >= 0.0) & (at_s < duration_s)]
    at_s = np.sort(np.repeat(at_s, rng.geometric(1.0 - q, len(at_s))))
    back_s = np.sort(at_s + weibull_scale_s(repair) * rng.weibull(repair.weibull_shape, len(at_s)))
    grid_s = np.linspace(0.0, duration_s, 2000)
    down = np.searchsorted(at_s, grid_s) - np.searchsorted(back_s, grid_s)
    gaps = np.diff(at_s)
    return FaultLog(
        fault_count=len(at_s),
        gap_cv=float(gaps.std() / gaps.mean()),
        mean_down=float(down.mean()),
        p99_down=float(np.quantile(down, 0.99)),
    )


def equilibrium_residual_s(repair: Repair, probability: Array) -> Array:
    """Quantiles of the time left of a repair that is under way: density S(t) / mean, which for a Weibull is an
    incomplete gamma function."""
    k = repair.weibull_shape
    return np.asarray(
        weibull_scale_s(repair) * special.gammaincinv(1.0 / k, probability) ** (1.0 / k), dtype=np.float64
    )
