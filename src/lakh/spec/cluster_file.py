"""How is cluster.yaml read? Its schema, the checks over several fields, and the way into `Cluster`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field

from lakh.catalog import Node, ScaleUp, ScaleUpKind, accelerators, default_node_for, node, nodes
from lakh.errors import UnknownNameError, list_names, nearest_hint
from lakh.evidence import Fact
from lakh.spec.cluster import (
    TIER_NAMES,
    Cluster,
    Component,
    DeliveryPhase,
    Fabric,
    FabricKind,
    Failures,
    NodePool,
    Prices,
    Routing,
    Site,
    SiteLink,
    Storage,
    Tier,
    TierName,
    assumed,
    assumed_hop_latency,
    assumed_protocol_efficiency,
    assumed_pue,
)
from lakh.spec.document import Document, Location, read_document
from lakh.spec.door import (
    AtLeastOne,
    Bytes,
    BytesPerS,
    Checks,
    Count,
    Date,
    DoorModel,
    Factor,
    Metre,
    Money,
    MoneyPerJoule,
    MoneyPerS,
    Ratio,
    Second,
    Watt,
    validate,
)

_CLUSTERS = Path(__file__).parent / "clusters"
WHAT = "a cluster description"

Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]


class ScaleUpDoor(DoorModel):
    kind: ScaleUpKind
    domain_size: Positive


class NodeDoor(DoorModel):
    """A catalogue node with some of its values replaced."""

    base: Name
    name: Name | None = None
    accelerator_count: Positive | None = None
    scale_up: ScaleUpDoor | None = None
    nic_count: Annotated[int, Field(ge=0)] | None = None
    nic: BytesPerS | None = None
    cpu_core_count: Count | None = None
    host_memory: Bytes | None = None
    host_power: Watt | None = None
    max_power: Watt | None = None


class PoolDoor(DoorModel):
    name: Name | None = None
    node: Name | None = None
    override: NodeDoor | None = None
    count: Count
    nodes_per_block: Positive | None = None
    blocks_per_row: Positive | None = None


class SiteDoor(DoorModel):
    name: Name
    location: str = "not stated"
    pools: Annotated[list[PoolDoor], Field(min_length=1)]
    power_cap: Watt | None = None
    pue: AtLeastOne | None = None
    price_factor: Factor | None = None
    note: str = ""


class TierDoor(DoorModel):
    name: TierName
    port: BytesPerS
    oversubscription: AtLeastOne
    nodes: Positive | None = None
    hop_latency: Second | None = None


class FabricDoor(DoorModel):
    kind: FabricKind
    tiers: list[TierDoor] = Field(default_factory=list)
    routing: Routing = "ecmp"
    in_network_reduction: bool = False
    protocol_efficiency: Ratio | None = None
    note: str = ""


class SiteLinkDoor(DoorModel):
    between: Annotated[list[str], Field(min_length=2, max_length=2)]
    bandwidth: BytesPerS
    distance: Metre | None = None
    latency: Second | None = None


class StorageDoor(DoorModel):
    read: BytesPerS
    write: BytesPerS
    capacity: Bytes


class FailuresDoor(DoorModel):
    profile: Name | None = None
    mean_time_between_failures: dict[Component, Second] = Field(default_factory=dict)


class PricesDoor(DoorModel):
    currency: Literal["RMB", "USD"]
    on_demand: MoneyPerS | None = None
    reserved: MoneyPerS | None = None
    spot: MoneyPerS | None = None
    energy: MoneyPerJoule | None = None
    capital_per_node: Money | None = None


class PhaseDoor(DoorModel):
    name: Name
    date: Date
    accelerators: dict[str, Annotated[int, Field(ge=0)]]
    note: str = ""


class ClusterDoor(DoorModel):
    """cluster.yaml: one description of a cluster. Link figures are one direction."""

    name: Name
    description: str = ""
    sites: Annotated[list[SiteDoor], Field(min_length=1)]
    fabric: FabricDoor
    site_links: list[SiteLinkDoor] = Field(default_factory=list)
    storage: StorageDoor | None = None
    failures: FailuresDoor | None = None
    prices: PricesDoor | None = None
    delivery: list[PhaseDoor] = Field(default_factory=list)


# --- from the door inwards --------------------------------------------------------------------------------------


def _node(door: PoolDoor, location: Location, checks: Checks) -> Node | None:
    override = door.override
    if (door.node is None) == (override is None):
        found = "neither" if override is None else "both"
        checks.refuse(location, "either node (a catalogue name) or override", found=found)
        return None
    name, field = (door.node, "node") if override is None else (override.base, "override")
    at: Location = (*location, field) if override is None else (*location, field, "base")
    try:
        base = node(name or "")
    except UnknownNameError:
        names = [made.name for made in nodes()]
        every = [alias for made in nodes() for alias in (made.name, *made.aliases)]
        hint = nearest_hint(name, every)
        if (name or "").casefold() in {
            alias.casefold() for made in accelerators() for alias in (made.name, *made.aliases)
        }:
            hint = f"That is an accelerator; its node is {default_node_for(name or '').name!r}."
        checks.refuse(at, list_names(names), hint=hint)
        return None
    if override is None:
        return base
    changes: dict[str, Any] = {
        "name": override.name or f"{base.name} (changed)",
        "aliases": (),
        "accelerator_count": override.accelerator_count,
        "nic_count": override.nic_count,
        "nic_bytes_per_s": override.nic,
        "cpu_core_count": override.cpu_core_count,
        "host_memory_bytes": override.host_memory,
        "host_power_watt": override.host_power,
        "max_power_watt": override.max_power,
    }
    if override.scale_up:
        changes["scale_up"] = ScaleUp(kind=override.scale_up.kind, domain_size=override.scale_up.domain_size)
    return replace(base, **{key: value for key, value in changes.items() if value is not None})


def _sites(door: ClusterDoor, checks: Checks) -> tuple[Site, ...]:
    sites: list[Site] = []
    names: set[str] = set()
    for index, site in enumerate(door.sites):
        here: Location = ("sites", index)
        if site.name in names:
            checks.refuse((*here, "name"), "a name that no other site has")
        pools: list[NodePool] = []
        for pool_index, pool in enumerate(site.pools):
            at: Location = (*here, "pools", pool_index)
            kind = _node(pool, at, checks)
            if kind is None:
                continue
            name = pool.name or kind.name
            if name in {made.name for made in pools}:
                checks.refuse(
                    (*at, "name") if pool.name else at, "a name that no other pool of the site has", found=name
                )
            pools.append(
                NodePool(
                    name=name,
                    node=kind,
                    count=pool.count,
                    nodes_per_block=pool.nodes_per_block,
                    blocks_per_row=pool.blocks_per_row,
                )
            )
        names.add(site.name)
        sites.append(
            Site(
                name=site.name,
                location=site.location,
                pools=tuple(pools),
                power_cap_watt=site.power_cap,
                pue=site.pue or assumed_pue(),
                price_factor=site.price_factor,
                note=site.note,
            )
        )
    return tuple(sites)


_TIERS_PER_KIND: Mapping[str, tuple[int, int]] = {
    "clos": (1, 3),
    "rail-optimised": (1, 3),
    "dragonfly": (1, 3),
    "single-switch": (1, 1),
    "torus": (0, 0),
    "none": (0, 0),
}


def _fabric(door: FabricDoor, checks: Checks) -> Fabric:
    fewest, most = _TIERS_PER_KIND[door.kind]
    if not fewest <= len(door.tiers) <= most:
        accepted = f"{fewest} tiers" if fewest == most else f"{fewest} to {most} tiers"
        checks.refuse(("fabric", "tiers"), f"{accepted} for kind {door.kind}", found=f"{len(door.tiers)} tiers")
    tiers: list[Tier] = []
    for index, tier in enumerate(door.tiers):
        here: Location = ("fabric", "tiers", index)
        if index < len(TIER_NAMES) and tier.name != TIER_NAMES[index]:
            checks.refuse((*here, "name"), f"{TIER_NAMES[index]}: tiers go from the nodes upwards")
        below = door.tiers[index - 1].nodes if index else None
        if below is not None and tier.nodes is not None and tier.nodes < below:
            checks.refuse((*here, "nodes"), f"at least the {below} nodes of the tier below")
        tiers.append(
            Tier(
                name=tier.name,
                port_bytes_per_s=tier.port,
                oversubscription=tier.oversubscription,
                node_count=tier.nodes,
                hop_latency_s=tier.hop_latency or assumed_hop_latency(),
            )
        )
    efficiency = door.protocol_efficiency
    if efficiency is not None and efficiency.low <= 0.0:
        checks.refuse(("fabric", "protocol_efficiency"), "more than 0 and up to 1")
    return Fabric(
        kind=door.kind,
        tiers=tuple(tiers),
        routing=door.routing,
        in_network_reduction=door.in_network_reduction,
        protocol_efficiency=door.protocol_efficiency or assumed_protocol_efficiency(),
        note=door.note,
    )


_LIGHT_IN_GLASS_METRE_PER_S = 2.0e8
"""Speed of light over the group index of silica, 1.47, rounded."""


def _latency(door: SiteLinkDoor) -> Fact:
    if door.latency is not None:
        return door.latency
    if door.distance is None:
        why = "neither latency nor distance stated; from 100 to 2,500 km of fibre"
        return assumed(5e-3, "second", low=0.5e-3, high=12.5e-3, why=why)
    low, value, high = (
        end / _LIGHT_IN_GLASS_METRE_PER_S for end in (door.distance.low, door.distance.value, door.distance.high)
    )
    return assumed(
        value, "second", low=low, high=high, why="distance over 2e8 m/s, light in fibre; equipment not counted"
    )


def _site_links(door: ClusterDoor, checks: Checks) -> tuple[SiteLink, ...]:
    names = [site.name for site in door.sites]
    links: list[SiteLink] = []
    for index, link in enumerate(door.site_links):
        here: Location = ("site_links", index, "between")
        for end, name in enumerate(link.between):
            if name not in names:
                checks.refuse((*here, end), list_names(names), hint=nearest_hint(name, names))
        if link.between[0] == link.between[1]:
            checks.refuse(here, "two different sites")
        links.append(
            SiteLink(
                between=(link.between[0], link.between[1]),
                bytes_per_s=link.bandwidth,
                latency_s=_latency(link),
                distance_metre=link.distance,
            )
        )
    return tuple(links)


def _prices(door: PricesDoor, checks: Checks) -> Prices:
    for name in ("on_demand", "reserved", "spot", "energy", "capital_per_node"):
        price = getattr(door, name)
        if price is not None and price.unit.split("/")[0] != door.currency.casefold():
            checks.refuse(("prices", name), f"a price in {door.currency}, the currency of these prices")
    return Prices(
        currency=door.currency,
        on_demand_per_accelerator_s=door.on_demand,
        reserved_per_accelerator_s=door.reserved,
        spot_per_accelerator_s=door.spot,
        energy_per_joule=door.energy,
        capital_per_node=door.capital_per_node,
    )


def _delivery(door: ClusterDoor, sites: tuple[Site, ...], checks: Checks) -> tuple[DeliveryPhase, ...]:
    capacity = {
        site.name: sum(round(pool.count.high) * pool.node.accelerator_count for pool in site.pools) for site in sites
    }
    phases: list[DeliveryPhase] = []
    before: Mapping[str, int] = {}
    for index, phase in enumerate(door.delivery):
        here: Location = ("delivery", index)
        for name, count in phase.accelerators.items():
            at: Location = (*here, "accelerators", name)
            if name not in capacity:
                checks.refuse(at, list_names(list(capacity)), found=name, hint=nearest_hint(name, list(capacity)))
            elif count > capacity[name]:
                checks.refuse(at, f"at most {capacity[name]}, all that the pools of {name} hold")
            if count < before.get(name, 0):
                checks.refuse(at, f"at least {before[name]}: earlier phases are included in later ones")
        if phases and phase.date.latest < phases[-1].date.latest:
            checks.refuse((*here, "date"), f"not before phase {phases[-1].name}")
        before = phase.accelerators
        phases.append(
            DeliveryPhase(
                name=phase.name,
                date=phase.date,
                accelerators=MappingProxyType(dict(phase.accelerators)),
                note=phase.note,
            )
        )
    return tuple(phases)


def cluster_from_document(document: Document) -> Cluster:
    """Check a read document and turn it into a cluster.

    Raises:
        SpecError: every problem found
    """
    door = validate(ClusterDoor, document)
    checks = Checks(document)
    sites = _sites(door, checks)
    failures = None
    if door.failures:
        failures = Failures(
            profile=door.failures.profile,
            mean_time_between_failures_s=MappingProxyType(
                {str(name): mean for name, mean in door.failures.mean_time_between_failures.items()}
            ),
        )
    storage = None
    if door.storage:
        storage = Storage(
            read_bytes_per_s=door.storage.read,
            write_bytes_per_s=door.storage.write,
            capacity_bytes=door.storage.capacity,
        )
    cluster = Cluster(
        name=door.name,
        description=door.description,
        sites=sites,
        fabric=_fabric(door.fabric, checks),
        site_links=_site_links(door, checks),
        storage=storage,
        failures=failures,
        prices=_prices(door.prices, checks) if door.prices else None,
        delivery=_delivery(door, sites, checks),
        origin=str(document.path),
    )
    if not checks.problems and cluster.fabric.kind == "none" and cluster.node_count > 1:
        checks.refuse(("fabric", "kind"), f"a network: the cluster has {cluster.node_count} nodes")
    checks.finish()
    return cluster


def cluster_names() -> tuple[str, ...]:
    """Clusters that ship with Lakh."""
    return tuple(sorted(path.stem for path in _CLUSTERS.glob("*.yaml")))


def load_cluster(name_or_path: str | Path, *, base: Path | None = None) -> Cluster:
    """A cluster that ships with Lakh, by name, or a cluster.yaml, by path.

    Args:
        name_or_path: a name from `cluster_names`, or a path; a text with a slash or a suffix is a path
        base: folder that relative paths start from; the working directory if absent

    Raises:
        SpecError: the file is refused; lists every problem with file, line and field
        UnknownNameError: no shipped cluster has that name
    """
    text = str(name_or_path)
    if isinstance(name_or_path, str) and "/" not in text and not text.endswith((".yaml", ".yml", ".json")):
        names = cluster_names()
        chosen = next((name for name in names if name == text.strip().casefold()), None)
        if chosen is None:
            if not Path(text).exists():
                raise UnknownNameError("cluster", text, names)
            return cluster_from_document(read_document(text, WHAT))
        return cluster_from_document(read_document(_CLUSTERS / f"{chosen}.yaml", WHAT))
    path = Path(text)
    return cluster_from_document(read_document(base / path if base else path, WHAT))
