"""What do slow ranks cost a synchronous job? Jitter of every step, slow nodes, and slow-downs that come and go.

A synchronous step waits for the slowest of its ranks, so the loss grows with their number even where the mean does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import integrate, special

from lakh.reliability.profiles import SlowMode

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class SlowNodes:
    """Nodes that are slow for as long as they stay: an unknown few, each by the same factor."""

    probability: float
    """That a given node is slow now [ratio]."""
    slowdown: float
    """Its step time over a sound node's, 1 or more."""


def slow_nodes(mode: SlowMode) -> SlowNodes:
    """The share of nodes that are slow at a time, and by how much, from how often and for how long they are.

    Args:
        mode: a slow-down of single nodes, such as the shape's "persistent slow node"; its duration is as the policy
            leaves it
    """
    concurrent = mode.rate_per_node_s.value * mode.duration_s.value
    return SlowNodes(probability=-math.expm1(-concurrent), slowdown=1.0 / max(mode.throughput.value, 1e-9))


def jitter_slowdown(*, rank_count: int, cv: float) -> float:
    """Mean of the slowest of N ranks over the mean of one, when each one's time is lognormal and independent.

        E[max] = integral over t of 1 - F(t)^N

    Args:
        rank_count: ranks that wait for each other, N
        cv: coefficient of variation of one rank's step time

    Lognormal because a delay has a long right side and no left one; for small cv it is 1 + cv times the mean of the
    largest of N normals, about 1 + cv sqrt(2 ln N).
    """
    if cv == 0.0 or rank_count <= 1:
        return 1.0
    sigma = float(np.sqrt(np.log1p(cv**2)))
    mu = -(sigma**2) / 2.0
    low, high = (float(special.ndtri(p)) for p in (1e-14, 1.0 - 1e-14))

    def density_weighted(z: Array) -> Array:
        with np.errstate(divide="ignore"):
            log_pdf = (
                np.log(rank_count)
                + (-(z**2) / 2.0 - 0.5 * math.log(2.0 * math.pi))
                + (rank_count - 1) * special.log_ndtr(z)
            )
        return np.asarray(np.exp(mu + sigma * z + log_pdf), dtype=np.float64)

    grid = np.linspace(low, high + 1.0, 8001)
    return float(integrate.simpson(density_weighted(grid), x=grid))


def slow_node_slowdown(*, node_count: int, slow: SlowNodes) -> float:
    """Mean step time of a job over that of a sound one: 1 + (s - 1)(1 - (1 - p)^N), the chance of one slow node."""
    return 1.0 + (slow.slowdown - 1.0) * -float(np.expm1(node_count * np.log1p(-slow.probability)))


def synchronous_slowdown(*, rank_count: int, node_count: int, jitter_cv: float, slow: SlowNodes | None = None) -> float:
    """Step time of N ranks over that of one, jitter and slow nodes together.

    The two multiply: a slow node's jitter is as large, in proportion, as a sound one's.

    Args:
        rank_count: ranks that wait for each other
        node_count: nodes they are on
        jitter_cv: of one rank's step time
        slow: None where slow nodes are evicted
    """
    by_jitter = jitter_slowdown(rank_count=rank_count, cv=jitter_cv)
    return by_jitter if slow is None else by_jitter * slow_node_slowdown(node_count=node_count, slow=slow)


def mean_throughput(modes: Sequence[SlowMode], *, node_count: int, rate_factor: Array | float = 1.0) -> Array:
    """Mean rate of a job under slow-downs that come and go, over its undisturbed rate.

    Each kind is an M/G/infinity queue: none is under way with probability exp(-rate x duration), whatever the
    distribution of durations; the job runs at the lowest rate of those that are.

    Args:
        modes: kinds of slow-down
        node_count: nodes of the job
        rate_factor: multiplies all rates; an array gives an array of the same shape
    """
    factor = np.asarray(rate_factor, dtype=np.float64)
    none_so_far, total = np.ones_like(factor), np.zeros_like(factor)
    for mode in sorted(modes, key=lambda mode: mode.throughput.value):
        absent = np.exp(-mode.rate_per_node_s.value * node_count * mode.duration_s.value * factor)
        total = total + none_so_far * (1.0 - absent) * mode.throughput.value
        none_so_far = none_so_far * absent
    return total + none_so_far
