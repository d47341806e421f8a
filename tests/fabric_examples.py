"""Networks that the fabric tests share."""

from __future__ import annotations

from dataclasses import replace

from lakh.fabric.flow import FlowNetwork, network_input
from lakh.fabric.graph import Graph
from lakh.fabric.protocol import protocol_fit
from lakh.fabric.topology import FabricSite, FabricSpec, FabricTier


def mesh_cluster(accelerators: int = 4096, **changes: object) -> FabricSpec:
    """S5000 nodes on a non-blocking rail-optimised network; a block of 128, a pod of 1,024 accelerators."""
    spec = FabricSpec(
        name="mesh",
        sites=(FabricSite(name="here", accelerator_count=accelerators),),
        node_size=8,
        scale_up_kind="full-mesh",
        domain_size=8,
        scale_up_bytes_per_s=392e9,
        nic_count=8,
        nic_bytes_per_s=50e9,
        rail_optimised=True,
        tiers=(FabricTier(name="leaf", span=128), FabricTier(name="spine", span=1024), FabricTier(name="core")),
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


def switched_cluster(accelerators: int = 4096, **changes: object) -> FabricSpec:
    """H100 nodes on the same network, without reduction in the switch."""
    return mesh_cluster(
        accelerators, **{"name": "switched", "scale_up_kind": "switched", "scale_up_bytes_per_s": 450e9, **changes}
    )


def flow_network(spec: FabricSpec, family: str = "s5000", **options: object) -> FlowNetwork:
    """Flows over a healthy graph with the protocol of a family."""
    return FlowNetwork(Graph(spec), network_input(spec, protocol_fit(family)), **options)  # type: ignore[arg-type]
