"""What does one slow node cost a synchronous job? Per-node speeds as a distribution, and the slowest of N.

Random delays that change from step to step are part of the step model (`jitter_scale`); this is about nodes that stay
slow for hours or days. A synchronous step takes as long as its slowest node, so a fault of one node in ten thousand
is everybody's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakh.columns import Array


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSpeeds:
    """Step time of a node over that of a sound one, as shares of nodes; the rest are sound (1)."""

    slowdowns: tuple[float, ...]
    """Each above 1, ascending."""
    shares: tuple[float, ...]
    """Share of nodes with each, before any is taken out [ratio]."""

    def __post_init__(self) -> None:
        assert len(self.slowdowns) == len(self.shares) and sum(self.shares) <= 1.0
        assert all(s > 1.0 for s in self.slowdowns) and list(self.slowdowns) == sorted(self.slowdowns)


BAD_WORKERS = NodeSpeeds(
    slowdowns=(1.1, 1.27, 1.66),
    shares=(0.55e-4, 0.44e-4, 0.11e-4),
)
"""Nodes that are persistently slow in production. 1.7 % of the 42.5 % of 3,079 jobs that straggle do so because of a
bad worker; the worst tenth of straggling jobs is slowed 1.27 times or more (arXiv:2505.05713). With 64 nodes a job, a
judgement, 1.1e-4 of nodes are slow at a time; half of them by less than 1.27, a tenth by far more, a judgement too."""

LASTS_S = 5 * 86_400.0
"""How long a node stays slow when nobody acts: a judgement, "persistent within a job" (arXiv:2505.05713)."""


def slowest_of(speeds: NodeSpeeds, *, node_count: Array | float, kept_share: Array | float = 1.0) -> Array:
    """Mean step time of a job over that of one of sound nodes only.

        E[max] = 1 + sum over k of (s_k - s_(k-1)) (1 - F_(k-1)^N)

    with s_0 = 1 and F_(k-1) the share of nodes no slower than s_(k-1): the largest of N independent nodes.

    Args:
        speeds: what nodes do
        node_count: nodes of the job, N
        kept_share: share of the time that a slow node stays before it is taken out; 1: nobody takes it out
    """
    nodes, kept = np.asarray(node_count, dtype=np.float64), np.asarray(kept_share, dtype=np.float64)
    total, below = np.ones(np.broadcast(nodes, kept).shape), 1.0
    for index, slowdown in enumerate(speeds.slowdowns):
        slower = sum(speeds.shares[index:]) * kept
        total = total + (slowdown - below) * -np.expm1(nodes * np.log1p(-slower))
        below = slowdown
    return total


def slow_node_factor(
    *, share: Array | float, speed: Array | float, node_count: Array | float, removal_s: Array | float = np.inf
) -> Array:
    """Step time over that of sound nodes where a share of nodes runs at one lower speed.

    Args:
        share: of nodes that are slow at a time where nobody acts [ratio]
        speed: of such a node over a sound one [ratio]
        node_count: nodes of the job
        removal_s: time until it is taken out [s]; above `LASTS_S` it makes no difference
    """
    kept = np.minimum(np.asarray(removal_s, dtype=np.float64) / LASTS_S, 1.0)
    present = -np.expm1(node_count * np.log1p(-np.minimum(np.asarray(share) * kept, 0.999)))
    return np.asarray(1.0 + (1.0 / np.asarray(speed) - 1.0) * present)
