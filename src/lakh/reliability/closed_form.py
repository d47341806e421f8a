"""What do the published formulas say? Young, Daly, multi-level, Meta's ETTR and others, each as its source prints it.

All times are in seconds and all rates in events per second; `mtbf_s` is the mean time between failures of the whole
job. Efficiency and ETTR are productive time over wall time, 0 to 1. Each function says what it assumes: most assume
independent failures with exponential gaps, which real clusters do not have (see `processes`); the Monte Carlo agrees
with them where that holds and goes where it does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import special

from lakh.reliability.counts import binomial_quantile

DAY_S = 86_400.0


def job_mtbf_s(*, node_count: float, rate_per_node_s: float) -> float:
    """Mean time between failures of a job that any node stops: M = 1 / (N r) [1].

    Args:
        node_count: nodes of the job, N
        rate_per_node_s: failures of one node per second, r

    [1] A. Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters", HPCA 2025
        (arXiv:2410.21680): a series system. Optimistic at scale where the rate per node grows with N.
    """
    rate_per_s = node_count * rate_per_node_s
    return math.inf if rate_per_s == 0 else 1.0 / rate_per_s


def young_interval_s(*, checkpoint_s: float, mtbf_s: float) -> float:
    """Work between checkpoints that loses least, first order: T = sqrt(2 C M) [1].

    Args:
        checkpoint_s: time a checkpoint blocks the job, C [s]
        mtbf_s: mean time between failures, M [s]

    [1] J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974.
    """
    return math.sqrt(2.0 * checkpoint_s * mtbf_s)


def daly_interval_s(*, checkpoint_s: float, mtbf_s: float) -> float:
    """Work between checkpoints that loses least, higher order [1].

        T = sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C     where C < 2M, else T = M

    Args:
        checkpoint_s: time a checkpoint blocks the job, C [s]
        mtbf_s: mean time between failures, M [s]; infinite where nothing fails

    [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
        Computer Systems 22(3), 2006, equation 37.
    """
    if math.isinf(mtbf_s):
        return math.inf if checkpoint_s > 0 else 0.0
    if checkpoint_s >= 2.0 * mtbf_s:
        return mtbf_s
    share = checkpoint_s / (2.0 * mtbf_s)
    return math.sqrt(2.0 * checkpoint_s * mtbf_s) * (1.0 + math.sqrt(share) / 3.0 + share / 9.0) - checkpoint_s


def availability_interval_s(*, checkpoint_s: float, mtbf_s: float, restart_s: float) -> float:
    """Time from one checkpoint's start to the next that gives most availability: T = C + sqrt(2 (M + R) C + C^2) [1].

    Equals Young's where C << R << M.

    [1] NVIDIA, arXiv:2410.18124, 2024.
    """
    return checkpoint_s + math.sqrt(2.0 * (mtbf_s + restart_s) * checkpoint_s + checkpoint_s**2)


def daly_efficiency(*, interval_s: float, checkpoint_s: float, restart_s: float, mtbf_s: float) -> float:
    """Productive over wall time with exponential gaps, failures allowed while restarting and while writing [1].

        S / wall = T / (M exp(R / M) (exp((T + C) / M) - 1))

    Args:
        interval_s: work between checkpoints, T [s]
        checkpoint_s: time a checkpoint blocks the job, C [s]
        restart_s: time from a failure to the first useful step, R [s]; a failure meanwhile starts it anew
        mtbf_s: mean time between failures on the wall clock, M [s]

    [1] Daly 2006 (see `daly_interval_s`), equation 20.
    """
    if math.isinf(mtbf_s):
        return interval_s / (interval_s + checkpoint_s)
    return interval_s / (mtbf_s * math.exp(restart_s / mtbf_s) * math.expm1((interval_s + checkpoint_s) / mtbf_s))


def up_share(*, recovery_s_per_s: float) -> float:
    """Share of time in which no recovery is under way, exponential gaps, any distribution of recovery times.

        P(up) = exp(-sum_c lambda_c E[R_c])

    A recovery that a second failure hits ends when the later of the two is done, so the job is up exactly where an
    M/G/infinity queue is empty (any text on queues; for one class it is the exp(-R/M) in Daly's equation 20).

    Args:
        recovery_s_per_s: sum over failure classes of rate times mean recovery time [1]
    """
    return math.exp(-recovery_s_per_s)


def first_order_efficiency(*, stall_s: float, mtbf_s: float) -> float:
    """What is left when failures come evenly spaced and each stops the job for a fixed time: (M - R) / M [1].

    With exponential gaps the share left is exp(-R/M), which is much more where R is near M: at M = 18 min and
    R = 10 min the two are 0.44 and 0.57. State the gap distribution with the figure.

    [1] How Meta's FT-HSDP paper (arXiv:2602.00277) arrives at 44 % for synchronous training on O(100K) GPUs.
    """
    return max(0.0, (mtbf_s - stall_s) / mtbf_s)


def meta_ettr(
    *,
    node_count: float,
    rate_per_node_s: float,
    interval_s: float,
    checkpoint_s: float,
    restart_overhead_s: float,
    queue_s: float = 0.0,
) -> float:
    """Expected training time ratio of a long run, first order [1].

        ETTR >= (1 - N r (u0 + T/2)) / (1 + C/T + N r q)

    Args:
        node_count: N
        rate_per_node_s: r [1/s]
        interval_s: time between checkpoints, T [s]
        checkpoint_s: time a checkpoint blocks, C (w_cp in the paper) [s]
        restart_overhead_s: start-up time that repeats on each failure, u0 [s]
        queue_s: mean wait in the scheduler's queue per failure, q [s]

    Valid while N r (u0 + T/2) << 1; the paper states about 5 % against its own Monte Carlo.

    [1] Kokolis et al. (see `job_mtbf_s`), reconstructed from the public notes.
    """
    rate_per_s = node_count * rate_per_node_s
    lost = rate_per_s * (restart_overhead_s + interval_s / 2.0)
    return max(0.0, 1.0 - lost) / (1.0 + checkpoint_s / interval_s + rate_per_s * queue_s)


def asynchronous_efficiency(
    *, interval_s: float, block_s: float, persist_s: float, detection_s: float, restart_s: float, mtbf_s: float
) -> float:
    """Efficiency with asynchronous checkpoints, first order: 1 - b/T - (T/2 + P + D + R) / M, for T >= P.

    Args:
        interval_s: T [s]; a checkpoint must be out before the next begins
        block_s: time the job waits for its snapshot, b [s]
        persist_s: time until the snapshot can be restored from, P [s]; work done meanwhile is lost with it
        detection_s: D [s]
        restart_s: R [s]
        mtbf_s: M [s]

    Derived: a failure finds the last usable checkpoint T/2 + P old on average.
    """
    return max(0.0, 1.0 - block_s / interval_s - (interval_s / 2.0 + persist_s + detection_s + restart_s) / mtbf_s)


def replica_efficiency(*, stall_s: float, replica_down_s: float, replica_count: float, mtbf_s: float) -> float:
    """Efficiency when a failure stops all replicas briefly and one for long: 1 - (S + t_down / K) / M.

    Args:
        stall_s: time all replicas stop, S [s]
        replica_down_s: time the failed replica is away, t_down [s]
        replica_count: K
        mtbf_s: M [s]

    Derived; the scheme is that of torchft and of Meta's FT-HSDP (arXiv:2602.00277).
    """
    return max(0.0, 1.0 - (stall_s + replica_down_s / replica_count) / mtbf_s)


def multi_level_interval_s(*, checkpoint_s: float, rate_per_s: float) -> float:
    """Optimum interval of one level among several: T_i = sqrt(2 C_i / lambda_i) [1].

    Args:
        checkpoint_s: blocking time of this level's checkpoint, C_i [s]
        rate_per_s: rate of the failures whose fastest usable level is this one, lambda_i [1/s]

    [1] S. Di et al., IPDPS 2014; A. Benoit et al., IEEE TPDS 2017: first order; the intervals are then rounded to nest.
    """
    return math.inf if rate_per_s == 0 else math.sqrt(2.0 * checkpoint_s / rate_per_s)


def multi_level_efficiency(*, checkpoints_s: Sequence[float], rates_per_s: Sequence[float], restart_s: float) -> float:
    """Efficiency at the optimum intervals of every level: 1 - sum_i sqrt(2 C_i lambda_i) - lambda R.

    Source as `multi_level_interval_s`; first order.
    """
    loss = sum(math.sqrt(2.0 * c * rate) for c, rate in zip(checkpoints_s, rates_per_s, strict=True))
    return max(0.0, 1.0 - loss - sum(rates_per_s) * restart_s)


def verified_interval_s(
    *, checkpoint_s: float, verification_s: float, stop_rate_per_s: float, silent_rate_per_s: float
) -> float:
    """Interval with a verification before each checkpoint: T = sqrt(2 (C + V) / (lambda_f + 2 lambda_s)) [1].

    A silent error is found at the end of its interval, so it costs a whole one and counts twice. Keep two checkpoints
    or more where verification can miss.

    [1] A. Benoit, Y. Robert et al., "Assessing general-purpose algorithms to cope with fail-stop and silent errors",
        PMBS 2014.
    """
    rate_per_s = stop_rate_per_s + 2.0 * silent_rate_per_s
    return math.inf if rate_per_s == 0 else math.sqrt(2.0 * (checkpoint_s + verification_s) / rate_per_s)


def memory_recovery_probability(*, node_count: int, copies: int, lost_count: int) -> float:
    """Probability that no group of peers loses all copies when `lost_count` nodes go at once.

    Peers keep `copies` replicas in disjoint groups of that size; for lost_count = copies this is
    1 - (N/m) / C(N, m) [1], and for other counts it is the union bound over groups, at least 0.

    [1] Z. Wang et al., "GEMINI: Fast Failure Recovery in Distributed Training with In-Memory Checkpoints", SOSP 2023.
    """
    if lost_count < copies:
        return 1.0
    group_count = node_count / copies
    hit = special.comb(node_count - copies, lost_count - copies) / special.comb(node_count, lost_count)
    return max(0.0, 1.0 - group_count * float(hit))


def binomial_spares(*, node_count: int, down_probability: float, confidence: float) -> int:
    """Spares that cover the nodes down with the given confidence if nodes fail independently [1].

    Falls short by about 1.6x on a public trace (faults are bursty and repairs heavy-tailed): use `spares.spare_count`.

    [1] The rule of ByteRobust (arXiv:2509.16293): the 99th percentile of Binomial(N, p).
    """
    return binomial_quantile(confidence, trial_count=node_count, success=down_probability)
