"""What can stop this job, how often, and what does each stop cost? Profile x policy x hardware, as event classes.

An event class is one failure mode with one way of showing (error or hang) and one rung of the restart ladder. Its
recovery is a list of phases in time order; the Monte Carlo and the closed forms both read these classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakh.reliability.checkpoints import CheckpointTier, Hardware, checkpoint_tier, optimum_intervals_s
from lakh.reliability.profiles import Burst, FailureMode, FailureProfile, Repair, Signal, SlowMode
from lakh.reliability.recovery import RecoveryPolicy, replicas_of

PHASES: tuple[str, ...] = (
    "detection",
    "diagnosis",
    "queue",
    "node swap",
    "restart",
    "checkpoint load",
    "warm-up",
)
"""Parts of a recovery, in the order they happen. Waiting for nodes comes on top, where no spare is left."""

LEMON_NODE_SHARE = 0.0125
"""Share of nodes that lemon detection takes out: 1.2 to 1.3 % on RSC-1 (Kokolis et al., arXiv:2410.21680)."""
LEMON_WINDOW_S = 90 * 86_400.0
"""Record a node is judged by; a judgement."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventClass:
    """One kind of stop."""

    mode: str
    component: str
    signal: Signal
    rate_per_s: float
    """Of the whole job [1/s]."""
    phases_s: tuple[float, ...]
    """Mean length of each of `PHASES` [s]."""
    tier_index: int
    """The fastest tier it can be recovered from."""
    rolls_back: bool
    """True where work since the checkpoint is lost."""
    silent_latency_s: float
    """Work done on wrong numbers before anybody saw [s]."""
    nodes_out: int
    """Nodes that leave the job for repair."""
    repair_mean_s: float
    capacity_debt_s: float
    """Productive time lost because part of the job is away while the rest goes on [s]."""

    @property
    def recovery_s(self) -> float:
        return sum(self.phases_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobModel:
    """Everything that decides one job's goodput, in numbers."""

    accelerator_count: int
    node_count: int
    events: tuple[EventClass, ...]
    tiers: tuple[CheckpointTier, ...]
    policy: RecoveryPolicy
    burst: Burst
    repair: Repair
    frailty_shape: float
    slow: tuple[SlowMode, ...]
    """Durations as the policy leaves them."""
    rate_log_sigma: float
    """How well the rates are known: standard deviation of their logarithm [1]."""
    growth: tuple[float, float, float] | None
    """log(n / n0) and the exponent's distance from its value to its low and high end; None where it does not apply."""

    @property
    def rate_per_s(self) -> float:
        """All stops of the job, planned ones too [1/s]."""
        return sum(event.rate_per_s for event in self.events)

    @property
    def unplanned_rate_per_s(self) -> float:
        return sum(event.rate_per_s for event in self.events if event.signal != "planned")

    @property
    def nodes_out_per_event(self) -> float:
        """Nodes out per node-level event where faults come together: 1 / (1 - q)."""
        return 1.0 / (1.0 - self.burst.simultaneous_share)

    def tier_rates_per_s(self) -> tuple[float, ...]:
        """Stops whose fastest usable tier is each one [1/s]."""
        rates = [0.0] * len(self.tiers)
        for event in self.events:
            if event.rolls_back:
                rates[event.tier_index] += event.rate_per_s
        return tuple(rates)

    def with_intervals(self, intervals_s: Sequence[float]) -> JobModel:
        """The same job with stated intervals, fastest tier first."""
        tiers = tuple(replace(tier, interval_s=t) for tier, t in zip(self.tiers, intervals_s, strict=True))
        return replace(self, tiers=tiers)

    def at_optimum_intervals(self, *, shortest_s: float = 1.0) -> JobModel:
        """The same job with the interval of every tier at its optimum."""
        return self.with_intervals(optimum_intervals_s(self.tiers, self.tier_rates_per_s(), shortest_s=shortest_s))


def build_job(
    *,
    profile: FailureProfile,
    policy: RecoveryPolicy,
    hardware: Hardware,
    accelerator_count: int,
    checkpoint_bytes: float,
    shard_count: int | None = None,
    cluster_age_s: float | None = None,
    duration_s: float = 90 * 86_400.0,
    shortest_interval_s: float = 1.0,
) -> JobModel:
    """Event classes, checkpoint tiers and their optimum intervals of one job.

    Args:
        profile: what fails and how often
        policy: what happens then
        hardware: bandwidths and sizes of the cluster
        accelerator_count: accelerators of the job
        checkpoint_bytes: one full checkpoint
        shard_count: accelerators that each hold a different part of it; None: all
        cluster_age_s: age of the cluster when the run starts; None: past its early life
        duration_s: length of the run, over which early life is averaged
        shortest_interval_s: shortest checkpoint interval there is
    """
    width = hardware.accelerators_per_node
    node_count = math.ceil(accelerator_count / width)
    tiers = tuple(
        checkpoint_tier(
            name,
            checkpoint_bytes=checkpoint_bytes,
            accelerator_count=accelerator_count,
            hardware=hardware,
            asynchronous=policy.asynchronous,
            shard_count=shard_count,
        )
        for name in policy.tiers
    )
    shape = profile.shape
    early = 1.0
    if cluster_age_s is not None:
        early = shape.early_life.mean_factor(age_s=cluster_age_s, duration_s=duration_s)
    builder = _Builder(policy, tiers, hardware, accelerator_count, shape.repair.mean_s)
    events: list[EventClass] = []
    for mode in profile.modes:
        per_node = profile.mode_rate_per_node_s(mode, accelerators_per_node=width, node_count=node_count)
        rate = per_node * node_count
        if mode.signal != "planned":
            rate *= profile.stops_per_event * early
        if policy.evicts_lemons and mode.scope == "node" and mode.signal != "planned":
            seen = profile.rate_per_node_s * LEMON_WINDOW_S
            rate *= shape.lemons.rate_after_eviction(node_share=LEMON_NODE_SHARE, mean_count=seen)
        events += builder.events(mode, rate, hang_share=shape.hang_share.value)
    for mode in shape.correlated:
        size = hardware.nodes_per_block if mode.scope == "block" else hardware.nodes_per_row
        rate = mode.rate_per_node_s.value * math.ceil(node_count / size) * early
        events += builder.events(mode, rate, hang_share=0.0)
    slow = tuple(_as_left_by(policy, mode) for mode in shape.slow)
    if policy.evicts_slow_nodes:
        evictions = [mode for mode in shape.slow if mode.evictable]
        events += [builder.eviction(mode, mode.rate_per_node_s.value * node_count) for mode in evictions]
    growth = None
    if node_count > profile.node_count:
        exponent = profile.growth_exponent
        growth = (
            math.log(node_count / profile.node_count),
            exponent.low - exponent.value,
            exponent.high - exponent.value,
        )
    job = JobModel(
        accelerator_count=accelerator_count,
        node_count=node_count,
        events=tuple(event for event in events if event.rate_per_s > 0.0),
        tiers=tiers,
        policy=policy,
        burst=shape.burst,
        repair=shape.repair,
        frailty_shape=shape.lemons.frailty_shape,
        slow=slow,
        rate_log_sigma=_rate_log_sigma(profile),
        growth=growth,
    )
    return job.at_optimum_intervals(shortest_s=shortest_interval_s)


def _as_left_by(policy: RecoveryPolicy, mode: SlowMode) -> SlowMode:
    if not (policy.evicts_slow_nodes and mode.evictable):
        return mode
    seconds = min(policy.eviction_s, mode.duration_s.value)
    return replace(mode, duration_s=replace(mode.duration_s, value=seconds, low=seconds, high=seconds))


def _rate_log_sigma(profile: FailureProfile) -> float:
    """Standard deviation of the log of the total rate, from the 90 % ranges of its modes.

    Counted rates err independently, so their ranges add in quadrature; estimated ones share their error.
    """
    modes = [mode.rate_per_node_s for mode in profile.modes if mode.signal != "planned"]
    total = sum(rate.value for rate in modes)
    if total <= 0.0:
        return 0.0
    if profile.status == "estimate":
        low, high = sum(rate.low for rate in modes), sum(rate.high for rate in modes)
    else:
        low = total - math.sqrt(sum((rate.value - rate.low) ** 2 for rate in modes))
        high = total + math.sqrt(sum((rate.high - rate.value) ** 2 for rate in modes))
    return math.log(high / max(low, high * 1e-3)) / (2.0 * 1.645)


class _Builder:
    """Turns failure modes into event classes under one policy."""

    def __init__(
        self,
        policy: RecoveryPolicy,
        tiers: tuple[CheckpointTier, ...],
        hardware: Hardware,
        accelerator_count: int,
        repair_mean_s: float,
    ) -> None:
        self.policy, self.tiers, self.hardware = policy, tiers, hardware
        self.accelerator_count, self.repair_mean_s = accelerator_count, repair_mean_s
        self.restart_s = policy.restart_s(accelerator_count)

    def events(self, mode: FailureMode, rate_per_s: float, *, hang_share: float) -> list[EventClass]:
        """The classes of one mode: (error or hang) x (processes restarted or nodes swapped)."""
        if mode.signal == "planned":
            return [self._whole_restart(mode, "planned", rate_per_s, nodes_out=0)]
        signals: list[tuple[Signal, float]] = [(mode.signal, 1.0)]
        if mode.signal == "crash":
            signals = [("crash", 1.0 - hang_share), ("hang", hang_share)]
        healthy = mode.process_restart_share.value if mode.scope != "job" else 1.0
        found = []
        for signal, signal_share in signals:
            for nodes_out, share in ((0, healthy), (self._nodes_out(mode), 1.0 - healthy)):
                rate = rate_per_s * signal_share * share
                if rate > 0.0:
                    found.append(self._event(mode, signal, rate, nodes_out=nodes_out))
        return found

    def eviction(self, mode: SlowMode, rate_per_s: float) -> EventClass:
        """Taking a slow node out: a stop that is announced, so that nothing is lost but the time of the swap."""
        phases = self._phases("planned", nodes_out=1)
        return EventClass(
            mode=f"{mode.name}, evicted",
            component=mode.component,
            signal="planned",
            rate_per_s=rate_per_s,
            phases_s=phases,
            tier_index=0,
            rolls_back=False,
            silent_latency_s=0.0,
            nodes_out=1,
            repair_mean_s=self.repair_mean_s,
            capacity_debt_s=0.0,
        )

    def _nodes_out(self, mode: FailureMode) -> int:
        if mode.scope == "block":
            return self.hardware.nodes_per_block
        return self.hardware.nodes_per_row if mode.scope == "row" else 1

    def _event(self, mode: FailureMode, signal: Signal, rate_per_s: float, *, nodes_out: int) -> EventClass:
        # A software fault starts in one process too; a silent one has reached every replica through the all-reduce.
        replica_saves = self.policy.elastic == "replica" and signal in ("crash", "hang")
        if replica_saves and replicas_of(self.policy, self.accelerator_count) > 1.0:
            return self._replica_drop(mode, signal, rate_per_s, nodes_out=nodes_out)
        return self._whole_restart(mode, signal, rate_per_s, nodes_out=nodes_out)

    def _whole_restart(self, mode: FailureMode, signal: Signal, rate_per_s: float, *, nodes_out: int) -> EventClass:
        tier_index = self._tier_index(mode, signal)
        return EventClass(
            mode=mode.name,
            component=mode.component,
            signal=signal,
            rate_per_s=rate_per_s,
            phases_s=self._phases(signal, nodes_out=nodes_out, tier_index=tier_index),
            tier_index=tier_index,
            rolls_back=signal != "planned",
            silent_latency_s=self.policy.silent_latency_s if signal == "silent" else 0.0,
            nodes_out=nodes_out,
            repair_mean_s=self._repair_s(mode),
            capacity_debt_s=0.0,
        )

    def _replica_drop(self, mode: FailureMode, signal: Signal, rate_per_s: float, *, nodes_out: int) -> EventClass:
        policy = self.policy
        replica_size = min(policy.replica_accelerator_count, self.accelerator_count)
        lost_accelerators = max(1, nodes_out) * self.hardware.accelerators_per_node
        replicas_hit = max(1, math.ceil(lost_accelerators / replica_size))
        detection_s = policy.detection_hang_s if signal == "hang" else policy.detection_crash_s
        away_s = policy.diagnosis_s + policy.restart_s(replica_size) + self.tiers[0].load_s + policy.warmup_s
        away_s += policy.node_swap_s if nodes_out else 0.0
        phases = [0.0] * len(PHASES)
        phases[PHASES.index("detection")] = min(detection_s, policy.replica_stall_s)
        phases[PHASES.index("restart")] = max(0.0, policy.replica_stall_s - detection_s)
        share = min(1.0, replicas_hit * replica_size / self.accelerator_count)
        return EventClass(
            mode=mode.name,
            component=mode.component,
            signal=signal,
            rate_per_s=rate_per_s,
            phases_s=tuple(phases),
            tier_index=0,
            rolls_back=False,
            silent_latency_s=0.0,
            nodes_out=nodes_out,
            repair_mean_s=self._repair_s(mode),
            capacity_debt_s=away_s * share,
        )

    def _tier_index(self, mode: FailureMode, signal: Signal) -> int:
        """The fastest tier that survives.

        A row without power takes peers' memories together, and a silent error may be in every recent copy: both need
        the last tier. A software fault takes its processes' memory along, so it needs the first tier on disk. Peers are
        placed behind different leaf switches, so a block's loss leaves its copies elsewhere.
        """
        if mode.scope == "row" or signal == "silent":
            return len(self.tiers) - 1
        if mode.scope == "job" and signal != "planned":
            return next((i for i, tier in enumerate(self.tiers) if tier.name != "peer-memory"), 0)
        return 0

    def _repair_s(self, mode: FailureMode) -> float:
        return self.repair_mean_s if mode.repair_mean_s is None else mode.repair_mean_s

    def _phases(self, signal: Signal, *, nodes_out: int, tier_index: int = 0) -> tuple[float, ...]:
        policy, tier = self.policy, self.tiers[tier_index]
        detection = {"crash": policy.detection_crash_s, "hang": policy.detection_hang_s}.get(signal, 0.0)
        in_place = policy.process_restart and nodes_out == 0
        by_name = {
            "detection": detection,
            "diagnosis": 0.0 if signal == "planned" else policy.diagnosis_s,
            "queue": 0.0 if in_place else policy.queue_s,
            # Without the rung "same nodes" even a healthy node is replaced: nobody knows that it is healthy.
            "node swap": 0.0 if in_place or (signal == "planned" and not nodes_out) else policy.node_swap_s,
            "restart": self.restart_s,
            "checkpoint load": tier.load_s,
            "warm-up": policy.warmup_s,
        }
        return tuple(by_name.get(name, 0.0) for name in PHASES)
