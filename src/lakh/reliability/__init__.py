"""Does a run hold up? Failures, checkpoints, recovery, spares and what is left of its time: goodput.

Each name is imported when first used: the compiled Monte Carlo costs more to load than all the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakh.reliability.checkpoints import CheckpointTier, Hardware, checkpoint_tier, optimum_intervals_s, state_bytes
    from lakh.reliability.cluster import cluster_failures, cluster_hardware
    from lakh.reliability.events import EventClass, JobModel, build_job
    from lakh.reliability.goodput_report import (
        CURVE_ACCELERATOR_COUNTS,
        GoodputReport,
        Percentiles,
        closed_form_ettr,
        goodput,
        with_recovery_s,
    )
    from lakh.reliability.monte_carlo import CAUSES, Trials, simulate
    from lakh.reliability.profiles import (
        Clock,
        FailureMode,
        FailureProfile,
        Gaps,
        failure_profile,
        failure_profiles,
        read_profile_file,
    )
    from lakh.reliability.recovery import POLICIES, RecoveryPolicy, blocking_restart, recovery_policy
    from lakh.reliability.spares import NodeOutages, NodesDown, nodes_down, simulate_fault_log, spare_count
    from lakh.reliability.stragglers import (
        SlowNodes,
        jitter_slowdown,
        mean_throughput,
        slow_nodes,
        synchronous_slowdown,
    )

_HOME = {
    "CAUSES": "monte_carlo",
    "CURVE_ACCELERATOR_COUNTS": "goodput_report",
    "POLICIES": "recovery",
    "CheckpointTier": "checkpoints",
    "Clock": "profiles",
    "EventClass": "events",
    "FailureMode": "profiles",
    "FailureProfile": "profiles",
    "Gaps": "profiles",
    "GoodputReport": "goodput_report",
    "Hardware": "checkpoints",
    "JobModel": "events",
    "NodeOutages": "spares",
    "NodesDown": "spares",
    "Percentiles": "goodput_report",
    "RecoveryPolicy": "recovery",
    "SlowNodes": "stragglers",
    "Trials": "monte_carlo",
    "blocking_restart": "recovery",
    "build_job": "events",
    "checkpoint_tier": "checkpoints",
    "closed_form_ettr": "goodput_report",
    "cluster_failures": "cluster",
    "cluster_hardware": "cluster",
    "failure_profile": "profiles",
    "failure_profiles": "profiles",
    "goodput": "goodput_report",
    "jitter_slowdown": "stragglers",
    "mean_throughput": "stragglers",
    "nodes_down": "spares",
    "optimum_intervals_s": "checkpoints",
    "read_profile_file": "profiles",
    "recovery_policy": "recovery",
    "simulate": "monte_carlo",
    "simulate_fault_log": "spares",
    "slow_nodes": "stragglers",
    "spare_count": "spares",
    "state_bytes": "checkpoints",
    "synchronous_slowdown": "stragglers",
    "with_recovery_s": "goodput_report",
}

__all__ = [
    "CAUSES",
    "CURVE_ACCELERATOR_COUNTS",
    "POLICIES",
    "CheckpointTier",
    "Clock",
    "EventClass",
    "FailureMode",
    "FailureProfile",
    "Gaps",
    "GoodputReport",
    "Hardware",
    "JobModel",
    "NodeOutages",
    "NodesDown",
    "Percentiles",
    "RecoveryPolicy",
    "SlowNodes",
    "Trials",
    "blocking_restart",
    "build_job",
    "checkpoint_tier",
    "closed_form_ettr",
    "cluster_failures",
    "cluster_hardware",
    "failure_profile",
    "failure_profiles",
    "goodput",
    "jitter_slowdown",
    "mean_throughput",
    "nodes_down",
    "optimum_intervals_s",
    "read_profile_file",
    "recovery_policy",
    "simulate",
    "simulate_fault_log",
    "slow_nodes",
    "spare_count",
    "state_bytes",
    "synchronous_slowdown",
    "with_recovery_s",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"lakh.reliability.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
