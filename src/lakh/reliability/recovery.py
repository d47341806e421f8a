"""What happens after a failure? Policies: detection, diagnosis, the restart ladder, checkpoint tiers, spares.

The ladder, cheapest rung first: start the processes anew on the same node; swap in a spare; go on with fewer
data-parallel replicas; wait for a node. A policy says which rungs it has and how long each takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, get_args

from lakh.errors import Problem, RequestError, UnknownNameError
from lakh.reliability.checkpoints import TIER_NAMES, TierName

Elastic = Literal["none", "shrink", "replica"]
"""none: every node is needed; shrink: without a spare the job goes on with fewer replicas; replica: a failure stops all
replicas only briefly, and the failed one rejoins later."""
ELASTICS: tuple[str, ...] = get_args(Elastic)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecoveryPolicy:
    """How a job is kept alive. Times are means."""

    name: str
    description: str
    source: str
    detection_crash_s: float
    detection_hang_s: float
    silent_latency_s: float
    """Work done between a silent corruption and its discovery, all of it lost [s]."""
    diagnosis_s: float
    """From "it has stopped" to "this node" [s]."""
    node_swap_s: float
    """To put a spare in the place of a node [s]."""
    queue_s: float = 0.0
    """Wait in the scheduler's queue for each whole restart [s]."""
    process_restart: bool
    """True where the processes are first started anew on the same nodes."""
    restart_fixed_s: float
    restart_per_accelerator_s: float
    """Start-up that grows with size: launch, rendezvous, communicators [s per accelerator]."""
    warmup_s: float
    """Work lost to slow first steps after a restart [s]."""
    tiers: tuple[TierName, ...]
    asynchronous: bool
    elastic: Elastic = "none"
    replica_accelerator_count: int = 1024
    """Accelerators of one replica, the unit by which an elastic job shrinks."""
    replica_stall_s: float = 0.0
    """Time all replicas stop when one fails, detection included; used by "replica" [s]."""
    spare_node_count: int | None = None
    """Spares held; None: as many as 99 % availability of the full size needs."""
    evicts_lemons: bool = False
    evicts_slow_nodes: bool = False
    eviction_s: float = 600.0
    """From the onset of a slow-down to the node being out; used where slow nodes are evicted [s]."""
    recovery_cv: float = 0.5
    """Coefficient of variation of a recovery's length, one to the next (lognormal); an estimate, 0 for none [1]."""

    def __post_init__(self) -> None:
        problems = [
            Problem(where=f"policy {self.name}: {field}", found=value, accepted="a duration of 0 or more")
            for field in self.__slots__
            if field.endswith("_s") and not (value := getattr(self, field)) >= 0
        ]
        if not self.tiers or list(self.tiers) != [name for name in TIER_NAMES if name in self.tiers]:
            accepted = "one or more of peer-memory, local-disk, shared-storage, in that order"
            problems.append(Problem(where=f"policy {self.name}: tiers", found=self.tiers, accepted=accepted))
        if self.replica_accelerator_count < 1:
            found = self.replica_accelerator_count
            problems.append(
                Problem(where=f"policy {self.name}: replica_accelerator_count", found=found, accepted="1 or more")
            )
        if self.spare_node_count is not None and self.spare_node_count < 0:
            problems.append(
                Problem(
                    where=f"policy {self.name}: spare_node_count", found=self.spare_node_count, accepted="0 or more"
                )
            )
        if problems:
            raise RequestError(problems)

    def restart_s(self, accelerator_count: int) -> float:
        """Time to start all processes and their communicators [s]."""
        return self.restart_fixed_s + self.restart_per_accelerator_s * accelerator_count


_COLD_FIXED_S, _COLD_PER_ACCELERATOR_S = 98.2, 0.00771
_COLD = (
    "cold restart: least squares over 200, 300 and 600 s at 16,384, 22,528 and 65,536 accelerators"
    " (FT-HSDP, arXiv:2602.00277)"
)
_INIT_PER_ACCELERATOR_S = 0.00148
_INIT = (
    "communicators: 17, 30 and 100 s at 16,384, 22,528 and 65,536 accelerators (FT-HSDP, arXiv:2602.00277),"
    " through the origin"
)
_REPLAY = (
    "silent errors: suspicious steps are replayed at once (0.25 % of steps, Gemini 2.5 report), minutes as a judgement;"
    " in other policies hours, as a judgement"
)

POLICIES: Mapping[str, RecoveryPolicy] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            RecoveryPolicy(
                name="by-hand",
                description="a time-out, somebody looks, a node is asked for, the job is queued again",
                source="detection 10 to 30 min (ByteRobust); diagnosis over 30 min by hand (Minder, NSDI 2025);"
                f" replacement takes hours (OPT-175B chronicles); {_COLD}",
                detection_crash_s=1200.0,
                detection_hang_s=1800.0,
                silent_latency_s=86_400.0,
                diagnosis_s=2700.0,
                node_swap_s=7200.0,
                queue_s=600.0,
                process_restart=False,
                restart_fixed_s=_COLD_FIXED_S,
                restart_per_accelerator_s=_COLD_PER_ACCELERATOR_S,
                warmup_s=120.0,
                tiers=("shared-storage",),
                asynchronous=False,
            ),
            RecoveryPolicy(
                name="job-restart",
                description="the scheduler restarts the whole job on healthy nodes from shared storage",
                source=f"collective time-out 10 min; retries after a median of 11 min (arXiv:2605.09370); {_COLD}",
                detection_crash_s=600.0,
                detection_hang_s=600.0,
                silent_latency_s=43_200.0,
                diagnosis_s=300.0,
                node_swap_s=60.0,
                process_restart=False,
                restart_fixed_s=_COLD_FIXED_S,
                restart_per_accelerator_s=_COLD_PER_ACCELERATOR_S,
                warmup_s=120.0,
                tiers=("shared-storage",),
                asynchronous=False,
            ),
            RecoveryPolicy(
                name="automated",
                description="faults found and nodes swapped without people; asynchronous checkpoints to shared storage",
                source="detection and diagnosis below 10 min, caught up within 15 (MegaScale, NSDI 2024);"
                f" 10 s to 60 s by inspection (ByteRobust); {_COLD}",
                detection_crash_s=60.0,
                detection_hang_s=600.0,
                silent_latency_s=3600.0,
                diagnosis_s=120.0,
                node_swap_s=60.0,
                process_restart=True,
                restart_fixed_s=_COLD_FIXED_S,
                restart_per_accelerator_s=_COLD_PER_ACCELERATOR_S,
                warmup_s=60.0,
                tiers=("shared-storage",),
                asynchronous=True,
                elastic="none",
            ),
            RecoveryPolicy(
                name="hot-spares",
                description="inspection in seconds, warm spares, processes restarted in place, checkpoints in peers'"
                " memory; lemons and slow nodes evicted",
                source="2 to 60 s by inspection (ByteRobust); stalls found in 15 s and placed in 20 (Mycroft, SOSP"
                " 2025); 150 s in all at 4,800 accelerators (FlashRecovery, arXiv:2509.03047), of which 60 are taken"
                f" as the fixed part; {_INIT}; {_REPLAY}",
                detection_crash_s=10.0,
                detection_hang_s=60.0,
                silent_latency_s=300.0,
                diagnosis_s=20.0,
                node_swap_s=10.0,
                process_restart=True,
                restart_fixed_s=60.0,
                restart_per_accelerator_s=_INIT_PER_ACCELERATOR_S,
                warmup_s=20.0,
                tiers=("peer-memory", "local-disk", "shared-storage"),
                asynchronous=True,
                elastic="shrink",
                evicts_lemons=True,
                evicts_slow_nodes=True,
            ),
            RecoveryPolicy(
                name="elastic-replicas",
                description="a failure drops one replica; the others go on after a short stall and it rejoins later",
                source="about 3 min stall at 98K accelerators: 60 s time-out, reconfiguration, 20 s redone (FT-HSDP,"
                f" arXiv:2602.00277); rejoining stalls the first step about 100 s; {_COLD}, here of one replica;"
                f" {_REPLAY}",
                detection_crash_s=60.0,
                detection_hang_s=60.0,
                silent_latency_s=300.0,
                diagnosis_s=20.0,
                node_swap_s=60.0,
                process_restart=True,
                restart_fixed_s=_COLD_FIXED_S,
                restart_per_accelerator_s=_COLD_PER_ACCELERATOR_S,
                warmup_s=100.0,
                tiers=("peer-memory", "shared-storage"),
                asynchronous=True,
                elastic="replica",
                replica_stall_s=180.0,
                evicts_lemons=True,
                evicts_slow_nodes=True,
            ),
        )
    }
)
"""The policies that can be named, from the slowest to recover to the fastest."""


def recovery_policy(name: str) -> RecoveryPolicy:
    """The policy of that name.

    Raises:
        UnknownNameError: no policy has that name; says the nearest one
    """
    found = POLICIES.get(name.strip().casefold())
    if found is None:
        raise UnknownNameError("policy", name, tuple(POLICIES))
    return found


def blocking_restart(
    *, restart_s: float, checkpoint_tiers: tuple[TierName, ...] = ("shared-storage",), asynchronous: bool = False
) -> RecoveryPolicy:
    """A policy whose every recovery takes the same fixed time: what the closed forms assume.

    Args:
        restart_s: from the failure to the first useful step, R [s]
        checkpoint_tiers: where checkpoints go
        asynchronous: see `checkpoint_tier`
    """
    return RecoveryPolicy(
        name="fixed",
        description="every recovery takes the same time",
        source="the assumption of Young, Daly and Meta's ETTR",
        detection_crash_s=0.0,
        detection_hang_s=0.0,
        silent_latency_s=0.0,
        diagnosis_s=0.0,
        node_swap_s=0.0,
        process_restart=False,
        restart_fixed_s=restart_s,
        restart_per_accelerator_s=0.0,
        warmup_s=0.0,
        tiers=checkpoint_tiers,
        asynchronous=asynchronous,
        spare_node_count=1_000_000,
        recovery_cv=0.0,
    )


def with_spares(policy: RecoveryPolicy, spare_node_count: int) -> RecoveryPolicy:
    """The same policy with a stated number of spares."""
    return replace(policy, spare_node_count=spare_node_count)


def replicas_of(policy: RecoveryPolicy, accelerator_count: int) -> float:
    """Replicas of an elastic job, 1 or more."""
    return max(1.0, math.floor(accelerator_count / policy.replica_accelerator_count))
