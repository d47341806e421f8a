"""What share of a run's time is training, in each of many worlds? The closed forms of `reliability`, in columns.

    share = (E_m[exp(-m L)] - debt) * product_i x_i / (e^(x_i) - 1) * lag * silent / (1 + overhead) * speed

as `lakh.reliability.goodput_report.closed_form_ettr`, with L the recovery time begun per second, and the mean taken
over the rate multiplier m of bursty faults (gamma, mean 1): a mean of exponentials is not the exponential of a mean.
Spares are taken as never short, which the Monte Carlo of `lakh goodput` shows to cost little at 99 % sizing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy import special

from lakh.claims.distributions import Choice, Lognormal, Triangular, Uniform
from lakh.claims.unknowns import BENCH, Unknown, judged, stated
from lakh.claims.worlds import Worlds
from lakh.columns import Array
from lakh.reliability.checkpoints import LONGEST_INTERVAL_S, Hardware
from lakh.reliability.cluster import cluster_failures, cluster_hardware
from lakh.reliability.events import PHASES, JobModel, build_job
from lakh.reliability.profiles import FailureProfile
from lakh.reliability.recovery import recovery_policy
from lakh.reliability.stragglers import mean_throughput
from lakh.spec.cluster import Cluster

EffectiveTime = Literal["effective", "ettr", "not-stopped"]
"""effective: wall time less stops, waits, lost work and checkpoint stalls; slow training counts as training;
ettr: productive over wall time, slow-downs lost too; not-stopped: wall time less stops and restarts only: work that is
lost and repeated counts as effective, and so do checkpoint stalls."""

EFFECTIVE_TIMES: tuple[str, ...] = get_args(EffectiveTime)

POLICY_ODDS: tuple[tuple[str, float], ...] = (
    ("job-restart", 0.25),
    ("automated", 0.40),
    ("hot-spares", 0.25),
    ("elastic-replicas", 0.10),
)
"""Which recovery a new cluster's software has: a judgement. Most published large runs of 2024 to 2026 are automated or
better; a restart of the whole job by the scheduler is what a cluster has before anybody builds more."""

RUN_S = 54 * 86_400.0
"""Length of the run that is judged: Llama 3's published log (arXiv:2407.21783)."""

_BURST_POINTS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectiveQuestion:
    """One training job on one size of one cluster: what the failure unknowns are asked about."""

    cluster: Cluster
    profile: FailureProfile
    hardware: Hardware
    jobs: tuple[JobModel, ...]
    """One per recovery policy, in the order of POLICY_ODDS."""
    checkpoint_bytes: float
    accelerator_count: int
    unknowns: tuple[Unknown, ...]

    def at_size(self, accelerator_count: int) -> EffectiveQuestion:
        jobs = _jobs(self.profile, self.hardware, accelerator_count, self.checkpoint_bytes)
        return replace(self, jobs=jobs, accelerator_count=accelerator_count)


def effective_question(cluster: Cluster, accelerator_count: int, checkpoint_bytes: float) -> EffectiveQuestion:
    """The question for a described cluster; its failure profile, storage and hardware are read.

    Args:
        cluster: the description
        accelerator_count: accelerators of the one job
        checkpoint_bytes: one full checkpoint
    """
    profile, hardware = cluster_failures(cluster), cluster_hardware(cluster)
    jobs = _jobs(profile, hardware, accelerator_count, checkpoint_bytes)
    return EffectiveQuestion(
        cluster=cluster,
        profile=profile,
        hardware=hardware,
        jobs=jobs,
        checkpoint_bytes=checkpoint_bytes,
        accelerator_count=accelerator_count,
        unknowns=reliability_unknowns(cluster, profile, jobs[0]),
    )


def _jobs(
    profile: FailureProfile, hardware: Hardware, accelerator_count: int, checkpoint_bytes: float
) -> tuple[JobModel, ...]:
    return tuple(
        build_job(
            profile=profile,
            policy=recovery_policy(name),
            hardware=hardware,
            accelerator_count=accelerator_count,
            checkpoint_bytes=checkpoint_bytes,
            duration_s=RUN_S,
            shortest_interval_s=10.0,
        )
        for name, _ in POLICY_ODDS
    )


def reliability_unknowns(cluster: Cluster, profile: FailureProfile, job: JobModel) -> tuple[Unknown, ...]:
    """What an effective-time claim depends on and what is known of it."""
    where = cluster.origin or f"cluster {cluster.name}"
    found: list[Unknown] = []
    sigma = job.rate_log_sigma
    if sigma > 0.0:
        spread = math.exp(1.6448536269514722 * sigma)
        found.append(
            judged(
                "failure-rate",
                f"failures per node over those of the profile {profile.name!r} ({profile.rate_per_node_s * 86.4e6:.2g} "
                "per 1000 node-days)",
                "1",
                Lognormal(low=1.0 / spread, high=spread),
                "reliability",
                source=profile.source,
                status=profile.status,
                note=f"definition: {profile.definition}",
                bench="failures --days 14",
            )
        )
    exponent = profile.growth_exponent
    if exponent.is_range:
        found.append(
            Unknown(
                name="failure-growth",
                title="exponent by which the rate per node grows with the nodes of the job",
                unit="1",
                distribution=Triangular(low=exponent.low, mode=exponent.value, high=exponent.high),
                kind="reliability",
                status=exponent.status,
                source=exponent.source,
                note=exponent.note,
                bench=f"{BENCH} failures --days 14",
            )
        )
    variance = job.burst.multiplier_variance(job.node_count) * min(1.0, job.burst.episode_s / RUN_S)
    spread = math.exp(1.6448536269514722 * math.sqrt(math.log1p(variance)))
    found += [
        judged(
            "luck-of-the-run",
            f"failures in {RUN_S / 86_400:.0f} days over the long-run mean",
            "1",
            Lognormal(low=1.0 / spread, high=spread),
            "reliability",
            source="bursts of the StepFun fault trace (coefficient of variation of gaps 1.93)",
            note="chance, not ignorance: no measurement takes it away",
        ),
        judged(
            "recovery-policy",
            "what the recovery software does",
            "choice",
            Choice(
                values=tuple(float(i) for i in range(len(POLICY_ODDS))),
                weights=tuple(odds for _, odds in POLICY_ODDS),
                labels=tuple(name for name, _ in POLICY_ODDS),
            ),
            "software",
            source="undisclosed; odds by judgement over what published clusters do",
            note="lakh goodput says what each policy is",
            bench="recovery --kill node",
        ),
        judged(
            "detection-time",
            "time to see a failure over that of the policy's published examples",
            "1",
            Uniform(low=0.5, high=2.0, log=True),
            "software",
            source="spread between published systems of one kind; a judgement",
            bench="recovery --kill node",
        ),
        judged(
            "restart-time",
            "time to diagnose and start again over that of the policy's published examples",
            "1",
            Uniform(low=0.4, high=2.5, log=True),
            "software",
            source="spread between published systems of one kind, and MCCL start-up is unpublished; a judgement",
            bench="recovery --restart",
        ),
        judged(
            "slow-down-share",
            "slow nodes, flaps and throttling over those of public fleets",
            "1",
            Lognormal(low=0.25, high=4.0),
            "reliability",
            source="rates of slow-downs are derived from two public fleets and a judgement",
            bench="nodes --all",
        ),
        judged(
            "goodput-model-error",
            "true lost time over the predicted one",
            "1",
            Lognormal(low=0.75, high=1.33),
            "model",
            source="closed form against its Monte Carlo and against published runs; a judgement of the same size",
            bench="failures --days 14",
        ),
    ]
    if cluster.storage is not None:
        found += [
            stated(
                "storage-write",
                "what one job can write to shared storage",
                cluster.storage.write_bytes_per_s,
                "reliability",
                where=where,
                bench="storage --write",
            ),
            stated(
                "storage-read",
                "what one job can read from shared storage",
                cluster.storage.read_bytes_per_s,
                "reliability",
                where=where,
                bench="storage --read",
            ),
        ]
    return tuple(found)


def effective_time(question: EffectiveQuestion, worlds: Worlds, definition: EffectiveTime = "effective") -> Array:
    """Share of wall time that is training, per sample, in a definition [ratio]."""
    share = np.zeros(worlds.count)
    policy = worlds.get("recovery-policy", float(_AUTOMATED))
    for index, job in enumerate(question.jobs):
        rows = np.flatnonzero(np.broadcast_to(policy, (worlds.count,)) == float(index))
        if rows.size:
            share[rows] = _share(question, job, worlds.take(rows), definition)
    lost = (1.0 - share) * worlds.get("goodput-model-error", 1.0)
    return np.clip(1.0 - lost, 0.0, 1.0)


_AUTOMATED = [name for name, _ in POLICY_ODDS].index("automated")


def _share(question: EffectiveQuestion, job: JobModel, w: Worlds, definition: EffectiveTime) -> Array:
    events = job.events
    planned = np.array([event.signal == "planned" for event in events])
    rates = np.array([event.rate_per_s for event in events])
    factor = w.get("failure-rate", 1.0) * w.get("luck-of-the-run", 1.0) * _growth(question, job, w)
    factor = np.broadcast_to(factor, (w.count,))
    per_event = np.where(planned[None, :], rates[None, :], rates[None, :] * factor[:, None])

    load_s, persist_s, block_s = _tier_times(question, job, w)
    phases = np.array([event.phases_s for event in events])
    tier = np.array([event.tier_index for event in events])
    loads = phases[:, PHASES.index("checkpoint load")] > 0.0
    detection = np.broadcast_to(w.get("detection-time", 1.0), (w.count,))
    again = np.broadcast_to(w.get("restart-time", 1.0), (w.count,))
    fixed = phases[:, [PHASES.index(n) for n in ("queue", "warm-up")]].sum(axis=1)
    begun = phases[:, [PHASES.index(n) for n in ("diagnosis", "node swap", "restart")]].sum(axis=1)
    seen = phases[:, PHASES.index("detection")]
    recovery_s = fixed[None, :] + again[:, None] * begun[None, :] + detection[:, None] * seen[None, :]
    recovery_s = recovery_s + np.where(loads[None, :], load_s[:, tier], 0.0)
    stopped = (per_event * recovery_s).sum(axis=1)
    variance = job.burst.multiplier_variance(job.node_count)
    up = _mean_over_bursts(stopped, variance)
    if definition == "not-stopped":
        return up

    kept, overhead = np.ones(w.count), np.zeros(w.count)
    shortest = np.full(w.count, 10.0)
    rolls = np.array([event.rolls_back for event in events])
    for index, one in enumerate(job.tiers):
        rate = (per_event * (rolls & (tier == index))[None, :]).sum(axis=1)
        cost_s = block_s[:, index] + one.interference * persist_s[:, index]
        interval_s = np.minimum(_daly_s(cost_s, rate), LONGEST_INTERVAL_S)
        shortest = np.maximum(np.maximum(shortest, persist_s[:, index]), np.where(rate > 0.0, interval_s, 0.0))
        interval_s = np.where(rate > 0.0, shortest, LONGEST_INTERVAL_S)
        overhead = overhead + cost_s / interval_s
        x = rate * interval_s * (1.0 + cost_s / interval_s)
        kept = kept * np.where(x > 0.0, x / np.expm1(np.maximum(x, 1e-12)), 1.0) * np.exp(-rate * persist_s[:, index])
    silent = np.array([event.silent_latency_s for event in events])
    debt = np.array([event.capacity_debt_s for event in events])
    kept = kept * np.exp(-(per_event * silent[None, :]).sum(axis=1))
    away = (per_event * debt[None, :]).sum(axis=1) * again
    share = np.maximum(up - away, 0.0) * kept / (1.0 + overhead)
    if definition == "ettr":
        slow = np.broadcast_to(w.get("slow-down-share", 1.0), (w.count,))
        share = share * mean_throughput(job.slow, node_count=job.node_count, rate_factor=slow)
    return np.asarray(share)


def _growth(question: EffectiveQuestion, job: JobModel, w: Worlds) -> Array:
    """Rate per node at this size over that at the profile's exponent."""
    base = question.profile.node_count
    if job.node_count <= base or "failure-growth" not in w.values:
        return np.ones(())
    exponent = w.values["failure-growth"]
    return np.asarray((job.node_count / base) ** (exponent - question.profile.growth_exponent.value))


def _tier_times(question: EffectiveQuestion, job: JobModel, w: Worlds) -> tuple[Array, Array, Array]:
    """Load, persist and block time of every tier in every sample [sample, tier]; storage moves the last tier only."""
    hardware, size = question.hardware, question.checkpoint_bytes
    reach = job.node_count * hardware.storage_client_bytes_per_s
    write = np.broadcast_to(w.get("storage-write", hardware.storage_write_bytes_per_s), (w.count,))
    read = np.broadcast_to(w.get("storage-read", hardware.storage_read_bytes_per_s), (w.count,))
    more_write_s = size / np.minimum(write, reach) - size / min(hardware.storage_write_bytes_per_s, reach)
    more_read_s = size / np.minimum(read, reach) - size / min(hardware.storage_read_bytes_per_s, reach)
    ones = np.ones((w.count, 1))
    load = ones * np.array([tier.load_s for tier in job.tiers])
    persist = ones * np.array([tier.persist_s for tier in job.tiers])
    block = ones * np.array([tier.block_s for tier in job.tiers])
    for index, tier in enumerate(job.tiers):
        if tier.name == "shared-storage":
            load[:, index] += more_read_s
            (persist if tier.persist_s > 0.0 else block)[:, index] += more_write_s
    return load, persist, block


def _daly_s(cost_s: Array, rate_per_s: Array) -> Array:
    """Daly's interval in columns; see `lakh.reliability.closed_form.daly_interval_s`."""
    mtbf_s = 1.0 / np.maximum(rate_per_s, 1e-30)
    half = cost_s / (2.0 * mtbf_s)
    best = np.sqrt(2.0 * cost_s * mtbf_s) * (1.0 + np.sqrt(half) / 3.0 + half / 9.0) - cost_s
    return np.where(half >= 1.0, mtbf_s, best)


def _mean_over_bursts(stopped: Array, variance: float) -> Array:
    """Mean of exp(-m L) over a gamma multiplier m of mean 1: midpoints of equal shares of probability."""
    if variance <= 0.0:
        return np.exp(-stopped)
    points = (np.arange(_BURST_POINTS) + 0.5) / _BURST_POINTS
    shape = 1.0 / variance
    multipliers = special.gammaincinv(shape, points) / shape
    multipliers = multipliers / multipliers.mean()
    return np.asarray(np.exp(-stopped[:, None] * multipliers[None, :]).mean(axis=1))
