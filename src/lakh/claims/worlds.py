"""What would the world be at one sample? Points of the unit cube to values of unknowns to inputs of the step model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lakh.claims.unknowns import Unknown
from lakh.columns import Array
from lakh.perf.software import SoftwareInput
from lakh.perf.system import SystemInput
from lakh.spec.cluster import Cluster

Index = NDArray[np.int64]

SCALING_GROWTH = 100.0
"""The growth that `scaling-model-error` is stated for."""


def sobol_points(unknowns: Sequence[Unknown], count: int, seed: int) -> Array:
    """Scrambled Sobol points, one column per open unknown [count, open unknowns].

    `count` is best a power of two; other counts are cut from the next one.
    """
    open_count = sum(one.is_open for one in unknowns)
    if open_count == 0:
        return np.zeros((count, 0))
    engine = stats.qmc.Sobol(d=open_count, scramble=True, rng=np.random.default_rng(seed))
    power = max(int(np.ceil(np.log2(max(count, 2)))), 1)
    return np.asarray(engine.random_base2(power)[:count])


@dataclass(frozen=True, kw_only=True, slots=True)
class Worlds:
    """Samples of every unknown: one column each."""

    values: Mapping[str, Array]
    count: int

    def get(self, name: str, default: float) -> Array:
        """One unknown's column, or a single default where it is not among them."""
        found = self.values.get(name)
        return np.asarray(default) if found is None else found

    def take(self, index: slice | Index) -> Worlds:
        taken = {name: column[index] for name, column in self.values.items()}
        return Worlds(values=taken, count=len(next(iter(taken.values()))) if taken else 0)

    def repeat(self, times: int) -> Worlds:
        """Every sample `times` times in a row."""
        repeated = {name: np.repeat(column, times) for name, column in self.values.items()}
        return Worlds(values=repeated, count=self.count * times)


def worlds_at(unknowns: Sequence[Unknown], points: Array) -> Worlds:
    """The values of all unknowns at points of the unit cube of the open ones."""
    count, column = len(points), 0
    values: dict[str, Array] = {}
    for one in unknowns:
        if one.is_open:
            values[one.name] = one.distribution.quantile(points[:, column])
            column += 1
        else:
            values[one.name] = one.distribution.quantile(np.full(count, 0.5))
    return Worlds(values=values, count=count)


def tier_nodes(cluster: Cluster) -> tuple[tuple[str, int | None], ...]:
    """Name and reach of every tier that may be oversubscribed, from the nodes upwards."""
    return tuple((tier.name, tier.node_count) for tier in cluster.fabric.tiers[:-1])


def system_at(cluster: Cluster, base: SystemInput, accelerators_per_node: int, w: Worlds) -> SystemInput:
    """The system as columns, one row per sample; what is not an unknown stays as `base` has it."""
    device, network = base.device, base.network
    peak = w.get("card-peak", float(device.wide_flop_per_s))
    ratio = peak / float(device.wide_flop_per_s)
    inside = w.get("scale-up-efficiency", 1.0)
    device = replace(
        device,
        wide_flop_per_s=peak,
        fp8_flop_per_s=device.fp8_flop_per_s * ratio,
        fp4_flop_per_s=device.fp4_flop_per_s * ratio,
        int8_flop_per_s=device.int8_flop_per_s * ratio,
        fp32_flop_per_s=device.fp32_flop_per_s * ratio,
        wide_gemm_efficiency=w.get("gemm-efficiency-bf16", float(device.wide_gemm_efficiency)),
        fp8_gemm_efficiency=w.get("gemm-efficiency-fp8", float(device.fp8_gemm_efficiency)),
        gemm_half_size=w.get("gemm-half-size", float(device.gemm_half_size)),
        attention_efficiency=w.get("attention-efficiency", float(device.attention_efficiency)),
        memory_efficiency=w.get("memory-efficiency", float(device.memory_efficiency)),
        host_speed=w.get("host-speed", float(device.host_speed)),
        jitter_scale=w.get("jitter-scale", float(device.jitter_scale)),
    )
    block, oversubscription = _contention(
        cluster, network.block_size, network.oversubscription, accelerators_per_node, w
    )
    one_fabric = w.get("sites", 0.0) > 0.5
    network = replace(
        network,
        scale_up_efficiency=np.minimum(network.scale_up_efficiency * inside, 1.0),
        all_reduce_efficiency=np.minimum(network.all_reduce_efficiency * inside, 1.0),
        all_to_all_efficiency=np.minimum(network.all_to_all_efficiency * inside, 1.0),
        scale_out_bytes_per_s=w.get("card-network-bandwidth", float(network.scale_out_bytes_per_s)),
        scale_out_efficiency=w.get("protocol-efficiency", float(network.scale_out_efficiency)),
        scale_out_latency_s=w.get("network-step-latency", float(network.scale_out_latency_s)),
        block_size=block,
        oversubscription=oversubscription,
        site_size=np.where(one_fabric, np.inf, network.site_size),
        long_haul_bytes_per_s=w.get("long-haul-bandwidth", float(network.long_haul_bytes_per_s)),
        long_haul_latency_s=w.get("long-haul-latency", float(network.long_haul_latency_s)),
    )
    return SystemInput(device=device, network=network)


def _contention(
    cluster: Cluster, block: Array, oversubscription: Array, accelerators_per_node: int, w: Worlds
) -> tuple[Array, Array]:
    """Block and oversubscription per sample: the first tier that is oversubscribed ends the block, tiers multiply."""
    tiers = tier_nodes(cluster)
    if not any(f"oversubscription-{name}" in w.values for name, _ in tiers):
        return block, oversubscription
    found_block: Array = np.asarray(np.inf)
    total: Array = np.asarray(1.0)
    for name, nodes in tiers:
        ratio = w.get(f"oversubscription-{name}", 1.0)
        reach = np.inf if nodes is None else float(nodes * accelerators_per_node)
        found_block = np.where((ratio > 1.0) & np.isinf(found_block), reach, found_block)
        total = total * ratio
    # With nothing above the block there is no traffic to slow: the closed form wants a ratio of 1.
    return found_block, np.where(np.isinf(found_block), 1.0, total)


def software_at(base: SoftwareInput, w: Worlds) -> SoftwareInput:
    """The framework as columns, one row per sample."""
    names = ("tp", "cp", "pp", "dp", "ep")
    changed = {f"{name}_overlap": w.get(f"overlap-{name}", float(getattr(base, f"{name}_overlap"))) for name in names}
    return replace(base, **changed)


def scaling_error(w: Worlds, growth: float) -> Array:
    """Factor on a predicted throughput ratio after a growth in size: the stated error grows with its logarithm."""
    share = np.log(max(growth, 1.0)) / np.log(SCALING_GROWTH)
    return np.asarray(w.get("scaling-model-error", 1.0) ** share)
