"""What is a cluster? Sites, node pools, fabric, links between sites, storage, failures, prices, delivery.

Every number is a `Fact`: a value or a range, with who says so. Link figures are one direction (see
`lakh.catalog.hardware`).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, get_args

from lakh.catalog import Node
from lakh.catalog import node as catalogue_node
from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.evidence import Fact, Status

FabricKind = Literal["clos", "rail-optimised", "dragonfly", "torus", "single-switch", "none"]
"""clos: leaf, spine and perhaps core tiers, every NIC of a node on one leaf; rail-optimised: a Clos whose leaf joins
the NICs of one rail (the i-th of every node of a block); dragonfly: groups joined all to all; torus: no switches;
single-switch: one tier; none: one node."""

TierName = Literal["leaf", "spine", "core"]

Routing = Literal["ecmp", "adaptive"]
"""ecmp: a flow keeps one path chosen by hash, and two may collide; adaptive: packets take any path."""

Component = Literal["accelerator", "hbm", "link", "nic", "switch", "host", "power", "cooling", "software", "sdc"]
"""What fails. link: one cable with its optics; sdc: silent data corruption, per accelerator."""

FABRIC_KINDS: tuple[str, ...] = get_args(FabricKind)
TIER_NAMES: tuple[str, ...] = get_args(TierName)
ROUTINGS: tuple[str, ...] = get_args(Routing)
COMPONENTS: tuple[str, ...] = get_args(Component)
CURRENCIES: tuple[str, ...] = ("RMB", "USD")


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePool:
    """Nodes of one kind at one site."""

    name: str
    node: Node
    count: Fact
    """Nodes; a range where nobody has said [1]."""
    nodes_per_block: int | None = None
    """Nodes that one leaf tier joins; None where it is not known."""
    blocks_per_row: int | None = None

    @property
    def node_count(self) -> int:
        """Nodes we compute with."""
        return round(self.count.value)

    @property
    def accelerator_count(self) -> int:
        return self.node_count * self.node.accelerator_count


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """One data centre."""

    name: str
    location: str
    pools: tuple[NodePool, ...]
    power_cap_watt: Fact | None = None
    """What the site may draw, cooling included; None where it is not known [watt]."""
    pue: Fact
    """Power usage effectiveness: whole site over IT [1]."""
    price_factor: Fact | None = None
    """Prices at this site over the listed ones [1]."""
    note: str = ""

    @property
    def node_count(self) -> int:
        return sum(pool.node_count for pool in self.pools)

    @property
    def accelerator_count(self) -> int:
        return sum(pool.accelerator_count for pool in self.pools)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tier:
    """One tier of switches."""

    name: TierName
    port_bytes_per_s: Fact
    """One port towards the nodes, one direction [byte/second]."""
    oversubscription: Fact
    """Bandwidth down over bandwidth up, 1 or more; 1 for the top tier, which has no up [1]."""
    node_count: int | None = None
    """Nodes below one switch group of this tier (leaf: one block); None: all of the site."""
    hop_latency_s: Fact
    """One hop through a switch of this tier, cable included [second]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fabric:
    """The network between nodes of one site; every site has one of this design."""

    kind: FabricKind
    tiers: tuple[Tier, ...]
    """From the nodes upwards; empty for "none" and "torus"."""
    routing: Routing
    in_network_reduction: bool
    """Switches add: an all-reduce then moves its data once instead of twice."""
    protocol_efficiency: Fact
    """Payload over line rate that one large, undisturbed transfer reaches [ratio]."""
    note: str = ""

    @property
    def hop_count(self) -> int:
        """Switches between two nodes that share only the top tier."""
        return max(2 * len(self.tiers) - 1, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteLink:
    """What joins two sites."""

    between: tuple[str, str]
    bytes_per_s: Fact
    """All of it together, one direction [byte/second]."""
    latency_s: Fact
    """One way [second]."""
    distance_metre: Fact | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Storage:
    """Shared storage of the cluster."""

    read_bytes_per_s: Fact
    write_bytes_per_s: Fact
    capacity_bytes: Fact


@dataclass(frozen=True, kw_only=True, slots=True)
class Failures:
    """How often things fail: a named profile, single components, or both (components then win)."""

    profile: str | None = None
    mean_time_between_failures_s: Mapping[str, Fact] = field(default_factory=lambda: MappingProxyType({}))
    """Per single component of that kind; keys from `COMPONENTS` [second]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """What things cost, in one currency. None where it is not known."""

    currency: Literal["RMB", "USD"]
    on_demand_per_accelerator_s: Fact | None = None
    """One accelerator, metered [rmb/second or usd/second]."""
    reserved_per_accelerator_s: Fact | None = None
    spot_per_accelerator_s: Fact | None = None
    energy_per_joule: Fact | None = None
    capital_per_node: Fact | None = None
    """One node with its share of the network [rmb or usd]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DateRange:
    """A day, or the span it is expected in."""

    earliest: datetime.date
    latest: datetime.date


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryPhase:
    """What stands at the end of a phase."""

    name: str
    date: DateRange
    accelerators: Mapping[str, int]
    """Accelerators in place per site, earlier phases included."""
    note: str = ""

    @property
    def accelerator_count(self) -> int:
        return sum(self.accelerators.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """All sites together."""

    name: str
    description: str
    sites: tuple[Site, ...]
    fabric: Fabric
    site_links: tuple[SiteLink, ...] = ()
    storage: Storage | None = None
    failures: Failures | None = None
    prices: Prices | None = None
    delivery: tuple[DeliveryPhase, ...] = ()
    origin: str = ""
    """File or function it came from."""

    @property
    def pools(self) -> tuple[NodePool, ...]:
        return tuple(pool for site in self.sites for pool in site.pools)

    @property
    def node_count(self) -> int:
        return sum(site.node_count for site in self.sites)

    @property
    def accelerator_count(self) -> int:
        return sum(site.accelerator_count for site in self.sites)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The kinds of node, each once, most accelerators first."""
        counts: dict[Node, int] = {}
        for pool in self.pools:
            counts[pool.node] = counts.get(pool.node, 0) + pool.accelerator_count
        return tuple(sorted(counts, key=lambda kind: (-counts[kind], kind.name)))

    def site(self, name: str) -> Site:
        """The site of that name.

        Raises:
            RequestError: there is none
        """
        for site in self.sites:
            if site.name == name:
                return site
        names = [site.name for site in self.sites]
        raise RequestError(
            Problem(
                where=f"cluster {self.name}: site",
                found=name,
                accepted=list_names(names),
                hint=nearest_hint(name, names),
            )
        )


def assumed(value: float, unit: str, *, low: float | None = None, high: float | None = None, why: str) -> Fact:
    """A fact that nobody stated: our assumption, said to be one."""
    status: Status = "estimate"
    return Fact(
        value=value,
        low=value if low is None else low,
        high=value if high is None else high,
        unit=unit,
        status=status,
        source="assumed by Lakh",
        note=why,
    )


def assumed_hop_latency() -> Fact:
    """Latency of one hop where a cluster states none."""
    why = "not stated; one switch hop with its cable, InfiniBand at the low end and Ethernet at the high one"
    return assumed(1e-6, "second", low=0.4e-6, high=2e-6, why=why)


def assumed_protocol_efficiency() -> Fact:
    """Payload over line rate where a cluster states none."""
    why = "not stated; published RDMA transfers reach 43 to 47 of 50 GB/s, poorly tuned ones less"
    return assumed(0.85, "ratio", low=0.7, high=0.95, why=why)


def assumed_pue() -> Fact:
    """Power usage effectiveness where a site states none."""
    why = "not stated; from liquid-cooled new sites to the national average of 1.42 of June 2025"
    return assumed(1.25, "1", low=1.1, high=1.42, why=why)


def single_pool_cluster(
    node: Node | str,
    accelerator_count: int,
    *,
    nic_bytes_per_s_per_accelerator: float | None = None,
    oversubscription: float = 1.0,
    nodes_per_block: int = 32,
    name: str = "",
) -> Cluster:
    """A cluster of one kind of node on one site: what a published measurement ran on, as far as its row says.

    Args:
        node: a node, or its catalogue name
        accelerator_count: accelerators; the last node may be partly used
        nic_bytes_per_s_per_accelerator: replaces the node's own network rate, one direction [byte/second]
        oversubscription: of the leaf tier, 1 or more
        nodes_per_block: nodes that one leaf tier joins
        name: name of the cluster

    Returns:
        A rail-optimised fabric where the node has a port per accelerator, a Clos where it has fewer, "none" for one
        node; one tier for one block, two up to 64 blocks, three above. All of that is assumed and says so.

    Raises:
        RequestError: a count below 1
        UnknownNameError: no node has that name
    """
    if accelerator_count < 1 or nodes_per_block < 1:
        found = {"accelerator_count": accelerator_count, "nodes_per_block": nodes_per_block}
        raise RequestError(Problem(where="single_pool_cluster", found=found, accepted="counts of 1 or more"))
    kind = catalogue_node(node) if isinstance(node, str) else node
    if nic_bytes_per_s_per_accelerator is not None:
        port_bytes_per_s = nic_bytes_per_s_per_accelerator * kind.accelerator_count / max(kind.nic_count, 1)
        rate = assumed(port_bytes_per_s, "byte/second", why="as asked for, divided over the node's ports")
        kind = replace(kind, nic_count=max(kind.nic_count, 1), nic_bytes_per_s=rate)
    node_count = math.ceil(accelerator_count / kind.accelerator_count)
    block_count = math.ceil(node_count / nodes_per_block)
    tier_names: tuple[TierName, ...] = () if node_count == 1 else ("leaf", "spine", "core")
    tier_count = 1 if block_count == 1 else 2 if block_count <= 64 else 3
    sizes = (nodes_per_block, nodes_per_block * 64, None)
    tiers = tuple(
        Tier(
            name=tier,
            port_bytes_per_s=kind.nic_bytes_per_s,
            oversubscription=assumed(
                oversubscription if index == 0 and tier_count > 1 else 1.0, "1", why="as asked for; 1 is non-blocking"
            ),
            node_count=sizes[index] if index + 1 < tier_count else None,
            hop_latency_s=assumed_hop_latency(),
        )
        for index, tier in enumerate(tier_names[:tier_count])
    )
    fabric_kind: FabricKind = "none"
    if node_count > 1:
        fabric_kind = "rail-optimised" if kind.nic_count >= kind.accelerator_count else "clos"
    pool = NodePool(
        name="nodes",
        node=kind,
        count=assumed(node_count, "1", why="as asked for"),
        nodes_per_block=min(nodes_per_block, node_count),
    )
    return Cluster(
        name=name or f"{accelerator_count} x {kind.accelerator}",
        description=f"{node_count} nodes of {kind.name} with an assumed network",
        sites=(Site(name="site", location="not stated", pools=(pool,), pue=assumed_pue()),),
        fabric=Fabric(
            kind=fabric_kind,
            tiers=tiers,
            routing="adaptive",
            in_network_reduction=False,
            protocol_efficiency=assumed_protocol_efficiency(),
        ),
        origin="single_pool_cluster",
    )
