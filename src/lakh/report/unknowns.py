"""What is not known, and what does it change? The ranges of a description, and each one's effect on a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from lakh.evidence import Fact
from lakh.report.results import Unknown
from lakh.report.text import fact_value
from lakh.spec.cluster import Cluster, SiteLink

Path = tuple[str | int, ...]

STEP_FIELDS: tuple[str, ...] = (
    "protocol_efficiency",
    "oversubscription",
    "port_bytes_per_s",
    "hop_latency_s",
    "nic_bytes_per_s",
    "bytes_per_s",
    "latency_s",
)
"""Fields of a cluster that the step model reads."""


def walk_facts(thing: Any, path: Path = ()) -> Iterator[tuple[Path, Fact]]:
    """Every fact inside nested dataclasses, tuples and mappings, with the way to it."""
    if isinstance(thing, Fact):
        yield path, thing
    elif is_dataclass(thing) and not isinstance(thing, type):
        for field in fields(thing):
            yield from walk_facts(getattr(thing, field.name), (*path, field.name))
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield from walk_facts(value, (*path, str(key)))
    elif isinstance(thing, tuple):
        for index, value in enumerate(thing):
            yield from walk_facts(value, (*path, index))


def with_value(thing: Any, wanted: Fact, value: float, under: Sequence[str]) -> Any:
    """A copy in which every fact that equals `wanted` and stands in a field named in `under` has one exact value."""
    if is_dataclass(thing) and not isinstance(thing, type) and not isinstance(thing, Fact):
        changed = {}
        for field in fields(thing):
            now = getattr(thing, field.name)
            if isinstance(now, Fact):
                if now == wanted and field.name in under:
                    changed[field.name] = replace(now, value=value, low=value, high=value)
            elif (new := with_value(now, wanted, value, under)) is not now:
                changed[field.name] = new
        return replace(thing, **changed) if changed else thing
    if isinstance(thing, tuple):
        items = tuple(with_value(item, wanted, value, under) for item in thing)
        return items if any(new is not old for new, old in zip(items, thing, strict=True)) else thing
    return thing


def _name(path: Path, thing: Any) -> str:
    """A short name for people: "fabric: spine oversubscription", "site links: bandwidth"."""
    words = [part for part in path if isinstance(part, str)]
    place: Any = thing
    owner = ""
    for part in path[:-1]:
        place = getattr(place, part) if isinstance(part, str) and hasattr(place, part) else place[part]
        if is_dataclass(place):
            owner = str(getattr(place, "name", owner) or owner)
    head = words[0].replace("_", " ")
    last = words[-1]
    for suffix, plain in (("_bytes_per_s", " bandwidth"), ("_per_accelerator_s", " price"), ("_per_joule", " price")):
        if last.endswith(suffix):
            last = last.removesuffix(suffix) + plain
    last = {"bytes_per_s": "bandwidth", "count": "nodes"}.get(last, last)
    for unit in ("_s", "_bytes", "_watt", "_metre"):
        last = last.removesuffix(unit)
    last = last.replace("_", " ")
    inner = owner if head in ("fabric",) and len(words) > 2 else ""
    return f"{head}: {inner} {last}".replace("  ", " ")


def _places(cluster: Cluster) -> dict[Fact, str]:
    """Where each range stands first: "beijing to suqian" for a link between sites, else the name of its owner."""
    places: dict[Fact, str] = {}
    for path, fact in walk_facts(cluster):
        place: Any = cluster
        label = ""
        for part in path[:-1]:
            place = getattr(place, part) if isinstance(part, str) and hasattr(place, part) else place[part]
            label = str(getattr(place, "name", "") or label)
            if isinstance(place, SiteLink):
                label = " to ".join(place.between)
        places.setdefault(fact, label)
    return places


def unknowns(cluster: Cluster) -> tuple[Unknown, ...]:
    """Every range of a cluster's description, each once, in the order of the description."""
    found: dict[Fact, tuple[str, int]] = {}
    for path, fact in walk_facts(cluster):
        if fact.is_range:
            name, count = found.get(fact, (_name(path, cluster), 0))
            found[fact] = (name, count + 1)
    return tuple(Unknown(name=name, fact=fact, place_count=count) for fact, (name, count) in found.items())


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """A cluster with one unknown at one end, twice."""

    name: str
    kind: str
    """The name without the place."""
    low_text: str
    high_text: str
    at_low: Cluster
    at_high: Cluster


def variants(cluster: Cluster) -> tuple[Variant, ...]:
    """The clusters that differ from the described one in one unknown of the step model.

    Numbers that share their range and their reason (all links between sites, say) move together. How accelerators
    are split over sites is one unknown: all on one site at one end, the described split at the other.
    """
    result = []
    known = unknowns(cluster)
    named, places = Counter(unknown.name for unknown in known), _places(cluster)
    for unknown in known:
        low, high = (
            with_value(cluster, unknown.fact, end, STEP_FIELDS) for end in (unknown.fact.low, unknown.fact.high)
        )
        if low is cluster or high is cluster:
            continue
        result.append(
            Variant(
                name=f"{unknown.name} ({places[unknown.fact]})" if named[unknown.name] > 1 else unknown.name,
                kind=unknown.name,
                low_text=fact_value(unknown.fact.low, unknown.fact.unit),
                high_text=fact_value(unknown.fact.high, unknown.fact.unit),
                at_low=low,
                at_high=high,
            )
        )
    if sum(site.accelerator_count > 0 for site in cluster.sites) > 1:
        result.append(
            Variant(
                name="split over sites",
                kind="split over sites",
                low_text="all at one site",
                high_text="as described",
                at_low=on_one_site(cluster),
                at_high=cluster,
            )
        )
    return tuple(result)


def on_one_site(cluster: Cluster) -> Cluster:
    """The cluster with all nodes of all sites at its first site."""
    pools = tuple(replace(pool, name=f"{site.name}-{pool.name}") for site in cluster.sites for pool in site.pools)
    first = replace(cluster.sites[0], pools=pools)
    return replace(cluster, sites=(first,), site_links=(), delivery=())
