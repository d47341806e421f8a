"""Which network? The plain description that the graph is built from: scale-up links, NICs, rails, tiers, sites.

Every bandwidth is what one element can carry in ONE direction [byte/s].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from lakh.errors import Problem, RequestError, list_names, nearest_hint

ScaleUpKind = Literal["full-mesh", "switched", "ring", "pcie", "torus", "none"]
Routing = Literal["ecmp", "adaptive", "spray"]
"""ecmp: every queue pair keeps the path its hash picks, so two may collide; adaptive: packets take the least loaded
path, so a flow sees the sum of what is left; spray: packets go round all live paths alike, whatever their speed."""
TierName = Literal["leaf", "spine", "core"]
Wiring = Literal["clos", "dragonfly"]
"""clos: pods join through core switches; dragonfly: every pod has a cable bundle to every other pod."""

SCALE_UP_KINDS: tuple[str, ...] = get_args(ScaleUpKind)
ROUTINGS: tuple[str, ...] = get_args(Routing)
TIER_NAMES: tuple[str, ...] = get_args(TierName)
WIRINGS: tuple[str, ...] = get_args(Wiring)


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricTier:
    """One tier of switches; the tiers of a fabric are listed from the nodes upwards."""

    name: TierName
    span: int | None = None
    """Accelerators below one group of this tier (leaf: a block, spine: a pod); None: all of a site."""
    oversubscription: float = 1.0
    """Bandwidth down over bandwidth up, 1 or more; the top tier has no up and ignores it [1]."""
    path_count: int | None = None
    """Switches of the NEXT tier that one switch of this tier reaches, per plane; None: one uplink as fast as a
    downlink, each to another switch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricSite:
    """One data centre with its share of the accelerators."""

    name: str
    accelerator_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LongHaul:
    """What joins two sites, all of it together."""

    between: tuple[str, str]
    bytes_per_s: float
    """One direction."""
    latency_s: float = 0.0
    """One way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricSpec:
    """The network of a cluster. Accelerators are numbered site by site, node by node."""

    name: str
    sites: tuple[FabricSite, ...]
    node_size: int
    """Accelerators of one host."""
    scale_up_kind: ScaleUpKind
    domain_size: int
    """Accelerators joined by scale-up links; may span nodes."""
    scale_up_bytes_per_s: float
    """All scale-up links of one accelerator."""
    nic_count: int
    """Network interfaces of one node; 0 where there is only one node or domain."""
    nic_bytes_per_s: float
    rail_optimised: bool = False
    """The i-th interface of every node of a block goes to the block's i-th leaf; else all go to one leaf."""
    plane_count: int = 1
    """Separate networks over which the ports of one interface are divided."""
    tiers: tuple[FabricTier, ...] = ()
    wiring: Wiring = "clos"
    routing: Routing = "adaptive"
    queue_pairs: int = 4
    """Paths that one pair of ranks hashes to under ecmp."""
    scale_up_reduction: bool = False
    """The scale-up switch adds (NVLink SHARP)."""
    scale_out_reduction: bool = False
    """The network's switches add (SHARP)."""
    site_links: tuple[LongHaul, ...] = ()

    def __post_init__(self) -> None:
        problems = _problems(self)
        if problems:
            raise RequestError(problems)

    @property
    def accelerator_count(self) -> int:
        return sum(site.accelerator_count for site in self.sites)

    @property
    def node_count(self) -> int:
        return sum(math.ceil(site.accelerator_count / self.node_size) for site in self.sites)

    @property
    def rail_count(self) -> int:
        """Leaves of one block and plane."""
        return self.nic_count if self.rail_optimised else 1

    @property
    def network_bytes_per_s(self) -> float:
        """Interface share of one accelerator."""
        return self.nic_count * self.nic_bytes_per_s / self.node_size


def _choice(where: str, found: object, accepted: tuple[str, ...]) -> Problem | None:
    if found in accepted:
        return None
    return Problem(where=where, found=found, accepted=list_names(accepted), hint=nearest_hint(found, accepted))


def _problems(spec: FabricSpec) -> list[Problem]:
    """Everything that is wrong with a description, with the field it is wrong in."""
    where = f"fabric {spec.name}"
    found: list[Problem] = []

    def refuse(field: str, value: object, accepted: str, hint: str = "") -> None:
        found.append(Problem(where=f"{where}: {field}", found=value, accepted=accepted, hint=hint))

    for field, value, choices in (
        ("scale_up_kind", spec.scale_up_kind, SCALE_UP_KINDS),
        ("routing", spec.routing, ROUTINGS),
        ("wiring", spec.wiring, WIRINGS),
    ):
        problem = _choice(f"{where}: {field}", value, choices)
        if problem:
            found.append(problem)
    if not spec.sites:
        refuse("sites", (), "one site or more")
    for index, site in enumerate(spec.sites):
        if site.accelerator_count < 1:
            refuse(f"sites[{index}].accelerator_count", site.accelerator_count, "1 or more")
        elif len(spec.sites) > 1 and site.accelerator_count % max(spec.node_size, 1):
            accepted = f"a multiple of node_size, {spec.node_size}"
            refuse(f"sites[{index}].accelerator_count", site.accelerator_count, accepted)
    for field, count in (
        ("node_size", spec.node_size),
        ("domain_size", spec.domain_size),
        ("plane_count", spec.plane_count),
        ("queue_pairs", spec.queue_pairs),
    ):
        if count < 1:
            refuse(field, count, "1 or more")
    if spec.domain_size > 1 and not spec.scale_up_bytes_per_s > 0.0:
        refuse("scale_up_bytes_per_s", spec.scale_up_bytes_per_s, "more than 0 where a domain has several accelerators")
    if spec.scale_up_kind == "none" and spec.domain_size > 1:
        refuse("domain_size", spec.domain_size, "1 where scale_up_kind is 'none'")
    small, large = sorted((max(spec.node_size, 1), max(spec.domain_size, 1)))
    if large % small:
        refuse("domain_size", spec.domain_size, f"a divisor or a multiple of node_size, {spec.node_size}")
    joined = all(site.accelerator_count <= spec.domain_size for site in spec.sites) and len(spec.sites) == 1
    if not joined:
        if spec.nic_count < 1:
            refuse("nic_count", spec.nic_count, "1 or more where accelerators lie in several scale-up domains")
        if not spec.nic_bytes_per_s > 0.0:
            refuse("nic_bytes_per_s", spec.nic_bytes_per_s, "more than 0")
        if not spec.tiers:
            refuse("tiers", (), "at least a leaf tier where accelerators lie in several scale-up domains")
    if spec.nic_count > spec.node_size and spec.nic_count % max(spec.node_size, 1):
        refuse("nic_count", spec.nic_count, f"a divisor or a multiple of node_size, {spec.node_size}")
    if 0 < spec.nic_count < spec.node_size and spec.node_size % spec.nic_count:
        refuse("nic_count", spec.nic_count, f"a divisor or a multiple of node_size, {spec.node_size}")
    _check_tiers(spec, refuse)
    _check_site_links(spec, refuse)
    return found


def _check_tiers(spec: FabricSpec, refuse: object) -> None:
    assert callable(refuse)
    names = tuple(tier.name for tier in spec.tiers)
    if names != TIER_NAMES[: len(names)]:
        refuse("tiers", list(names), "leaf, or leaf and spine, or leaf, spine and core, from the nodes upwards")
    largest = max((site.accelerator_count for site in spec.sites), default=0)
    below = spec.node_size
    for index, tier in enumerate(spec.tiers):
        field = f"tiers[{index}]"
        if not tier.oversubscription >= 1.0:
            refuse(f"{field}.oversubscription", tier.oversubscription, "1 or more")
        if tier.path_count is not None and tier.path_count < 1:
            refuse(f"{field}.path_count", tier.path_count, "1 or more")
        if tier.span is not None:
            if tier.span < below or tier.span % max(below, 1):
                refuse(f"{field}.span", tier.span, f"a multiple of what lies below, {below} accelerators")
            below = max(tier.span, 1)
        top = index == len(spec.tiers) - 1
        if top and tier.span is not None and tier.span < largest:
            accepted = f"None, or all {largest} accelerators of the largest site: no tier above joins the groups"
            refuse(f"{field}.span", tier.span, accepted)
        if not top and tier.span is None:
            refuse(f"{field}.span", tier.span, "a number of accelerators, for every tier but the top one")


def _check_site_links(spec: FabricSpec, refuse: object) -> None:
    assert callable(refuse)
    names = tuple(site.name for site in spec.sites)
    reached = {names[0]} if names else set()
    for index, link in enumerate(spec.site_links):
        for name in link.between:
            if name not in names:
                hint = nearest_hint(name, names)
                refuse(f"site_links[{index}].between", name, list_names(names), hint)
        if not link.bytes_per_s > 0.0:
            refuse(f"site_links[{index}].bytes_per_s", link.bytes_per_s, "more than 0")
        if link.latency_s < 0.0:
            refuse(f"site_links[{index}].latency_s", link.latency_s, "0 or more")
    for _ in names:
        reached |= {end for link in spec.site_links for end in link.between if reached & set(link.between)}
    lost = [name for name in names if name not in reached]
    if len(names) != len(set(names)):
        refuse("sites", list(names), "every name once")
    if lost:
        refuse("site_links", lost, "links that join every site to the first, directly or through others")
