"""How does a described cluster become a graph? The network of a `Cluster`, with the protocol of its accelerator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lakh.catalog import accelerator as catalogue_accelerator
from lakh.errors import Problem, RequestError
from lakh.fabric.closed_form import NetworkInput
from lakh.fabric.flow import network_input
from lakh.fabric.graph import Graph
from lakh.fabric.protocol import ProtocolFit, family_of, protocol_fit
from lakh.fabric.topology import FabricSite, FabricSpec, FabricTier, LongHaul
from lakh.spec.cluster import Cluster


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricSystem:
    """The network of a cluster: plain description, protocol numbers, and both as closed-form input."""

    spec: FabricSpec
    fit: ProtocolFit
    network: NetworkInput

    def graph(self) -> Graph:
        """The graph without faults."""
        return Graph(self.spec)


def fabric_system(cluster: Cluster) -> FabricSystem:
    """Read the network out of a cluster; ranges stand for their middle value.

    Raises:
        RequestError: several kinds of node, or a network that is not made of switches
    """
    where = cluster.origin or f"cluster {cluster.name}"
    kinds = cluster.nodes
    if len(kinds) != 1:
        found = ", ".join(kind.name for kind in kinds)
        raise RequestError(
            Problem(where=f"{where}: sites.pools", found=found, accepted="one kind of node in all pools")
        )
    node = kinds[0]
    fabric = cluster.fabric
    if fabric.kind == "torus":
        accepted = "clos, rail-optimised, dragonfly, single-switch or none"
        hint = "A torus between nodes has no tiers to draw; describe it as one scale-up domain."
        raise RequestError(Problem(where=f"{where}: fabric.kind", found="torus", accepted=accepted, hint=hint))
    card = catalogue_accelerator(node.accelerator)
    family = family_of(card.name, domain_size=node.scale_up.domain_size) or "generic"
    fit = protocol_fit(family)
    links = card.scale_up_bytes_per_s.value
    if node.scale_up.kind == "pcie" or links <= 0.0:
        links = card.pcie_bytes_per_s.value
    tiers = []
    for index, tier in enumerate(fabric.tiers):
        top = index == len(fabric.tiers) - 1
        span = None if top or tier.node_count is None else tier.node_count * node.accelerator_count
        tiers.append(FabricTier(name=tier.name, span=span, oversubscription=max(tier.oversubscription.value, 1.0)))
    port = min([node.nic_bytes_per_s.value, *(tier.port_bytes_per_s.value for tier in fabric.tiers[:1])])
    spec = FabricSpec(
        name=cluster.name,
        sites=tuple(FabricSite(name=site.name, accelerator_count=site.accelerator_count) for site in cluster.sites),
        node_size=node.accelerator_count,
        scale_up_kind=node.scale_up.kind,
        domain_size=node.scale_up.domain_size,
        scale_up_bytes_per_s=links,
        nic_count=node.nic_count,
        nic_bytes_per_s=port,
        rail_optimised=fabric.kind == "rail-optimised",
        tiers=tuple(tiers),
        wiring="dragonfly" if fabric.kind == "dragonfly" else "clos",
        routing=fabric.routing,
        scale_up_reduction=node.scale_up.kind == "switched" and fit.in_network_least_ranks <= node.scale_up.domain_size,
        scale_out_reduction=fabric.in_network_reduction,
        site_links=tuple(
            LongHaul(between=link.between, bytes_per_s=link.bytes_per_s.value, latency_s=link.latency_s.value)
            for link in cluster.site_links
        ),
    )
    network = network_input(spec, fit)
    if fabric.tiers:
        network = replace(network, scale_out_efficiency=np.asarray(fabric.protocol_efficiency.value))
    return FabricSystem(spec=spec, fit=fit, network=network)
