"""What does a step see of a described cluster? The one accelerator, node and network that a job runs on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lakh.catalog import Accelerator, Node, accelerator
from lakh.catalog.calibration import Calibration, load_calibration
from lakh.errors import Problem, RequestError
from lakh.evidence import Fact
from lakh.perf.machine import device_input, network_input, software_input
from lakh.perf.software import SoftwareInput
from lakh.perf.system import SystemInput
from lakh.spec.cluster import Cluster

DEFAULT_GENERATION = "megatron-2026h2"
"""What a new run would use: the newest Megatron generation that was measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """A cluster as one training job sees it."""

    cluster_name: str
    accelerator: Accelerator
    node: Node
    accelerator_count: int
    """Accelerators of this kind in the cluster."""
    family: str
    calibrated: bool
    """Whether training runs on this accelerator were among the validated ones."""
    input: SystemInput
    evidence: Mapping[str, Fact]
    """Facts behind the numbers that matter most."""
    pue: float
    oversubscription: float
    site_accelerator_count: int
    currency: str | None
    price_per_accelerator_s: Fact | None
    energy_price_per_joule: Fact | None


def system_of(cluster: Cluster, *, calibration: Calibration | None = None) -> System:
    """The system that jobs on `cluster` run on: its most common node kind, the fabric and the links between sites.

    Raises:
        RequestError: the cluster has no accelerators
    """
    calibration = calibration or load_calibration()
    if not cluster.nodes or cluster.accelerator_count < 1:
        raise RequestError(
            Problem(where=f"{cluster.name}: sites[].pools", found="no accelerators", accepted="at least one node")
        )
    node = cluster.nodes[0]
    chip = accelerator(node.accelerator)
    family, values, known = calibration.family_values(chip.name)
    block_nodes, oversubscription = _contention(cluster)
    count = sum(p.accelerator_count for p in cluster.pools if p.node == node)
    sites = [sum(p.accelerator_count for p in site.pools if p.node == node) for site in cluster.sites]
    site_size = math.inf if len([s for s in sites if s > 0]) < 2 else float(max(sites))
    haul_bytes_per_s, haul_latency_s = _long_haul(cluster)
    efficiency = cluster.fabric.protocol_efficiency
    values = dict(values) | {"scale_out_efficiency": efficiency.value}
    port = cluster.fabric.tiers[0].port_bytes_per_s.value if cluster.fabric.tiers else math.inf
    per_accelerator = min(node.nic_bytes_per_s.value, port) * node.nic_count / node.accelerator_count
    network = network_input(
        chip,
        node,
        values,
        scale_out_bytes_per_s=per_accelerator,
        block_size=block_nodes * node.accelerator_count,
        oversubscription=oversubscription,
        site_size=site_size,
        long_haul_bytes_per_s=haul_bytes_per_s,
        long_haul_latency_s=haul_latency_s,
    )
    evidence = {
        f"{chip.name} peak {name}": fact for name, fact in chip.peak_flop_per_s.items() if name in ("bf16", "fp8")
    }
    evidence |= {
        f"{chip.name} memory": chip.memory_bytes,
        f"{chip.name} memory bandwidth": chip.memory_bytes_per_s,
        f"{chip.name} scale-up bandwidth, one direction": chip.scale_up_bytes_per_s,
        f"{chip.name} board power": chip.board_power_watt,
        f"{node.name} network port, one direction": node.nic_bytes_per_s,
        "fabric protocol efficiency": efficiency,
    }
    evidence |= {f"fabric {tier.name} oversubscription": tier.oversubscription for tier in cluster.fabric.tiers}
    prices = cluster.prices
    power_sites = [site for site in cluster.sites if site.accelerator_count > 0]
    return System(
        cluster_name=cluster.name,
        accelerator=chip,
        node=node,
        accelerator_count=count,
        family=family,
        calibrated=known and f"{family}/dense" in calibration.residuals,
        input=SystemInput(device=device_input(chip, values), network=network),
        evidence=evidence,
        pue=max(site.pue.value for site in power_sites),
        oversubscription=oversubscription,
        site_accelerator_count=count if math.isinf(site_size) else int(site_size),
        currency=prices.currency if prices else None,
        price_per_accelerator_s=prices.on_demand_per_accelerator_s if prices else None,
        energy_price_per_joule=prices.energy_per_joule if prices else None,
    )


def _contention(cluster: Cluster) -> tuple[float, float]:
    """Nodes that reach each other at full rate, and the oversubscription above them (all tiers multiplied)."""
    block, total = math.inf, 1.0
    for tier in cluster.fabric.tiers:
        if tier.oversubscription.value > 1.0:
            if math.isinf(block):
                block = float(tier.node_count or math.inf)
            total *= tier.oversubscription.value
    return (block, total) if math.isfinite(block) else (math.inf, 1.0)


def _long_haul(cluster: Cluster) -> tuple[float, float]:
    """What one site can send to the next, one direction [byte/s], and the longest one-way latency [s].

    A ring or a pipeline over all sites passes each border once, so what binds is the weakest link of the best chain:
    links are taken widest first until every site is reached.
    """
    if not cluster.site_links:
        return math.inf, 0.0
    group = {site.name: site.name for site in cluster.sites}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    weakest = math.inf
    for link in sorted(cluster.site_links, key=lambda link: (-link.bytes_per_s.value, link.between)):
        one, other = (root(name) for name in link.between)
        if one != other:
            group[one] = other
            weakest = link.bytes_per_s.value
    return weakest, max(link.latency_s.value for link in cluster.site_links)


def software_of(
    generation: str = DEFAULT_GENERATION,
    switches: Mapping[str, float] | None = None,
    *,
    calibration: Calibration | None = None,
) -> SoftwareInput:
    """A framework generation as kernel numbers.

    Raises:
        UnknownNameError: no such generation
    """
    calibration = calibration or load_calibration()
    return software_input(calibration.generation_values(generation), switches)
