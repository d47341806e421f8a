"""Which links does a flow cross, and how much can each carry? The graph of a fabric, with its faults.

The graph is held as arrays: every link has a number, a capacity and a class, and a route is computed from the
numbers of its two ends rather than searched for. Under adaptive routing and spraying the parallel links of one leaf
or pod are one pooled link; under ecmp each is its own, and a hash picks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lakh.columns import Array
from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.fabric.topology import FabricSpec

IntArray = NDArray[np.int64]
LinkClass = Literal["scale-up", "engine", "nic", "leaf", "spine", "long-haul"]
"""engine: what one accelerator's cores can forward for a collective, scale-up and network together."""
LINK_CLASSES: tuple[LinkClass, ...] = get_args(LinkClass)

FaultKind = Literal["nic", "leaf", "uplink", "spine", "core", "rail", "plane", "pair", "accelerator-links", "long-haul"]
FAULT_KINDS: tuple[str, ...] = get_args(FaultKind)

_KIND_CODE = {"full-mesh": 0, "switched": 1, "ring": 2, "pcie": 3, "torus": 4, "none": 5}


_DEAD_BELOW = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One element that carries less than it should: `factor` of its capacity, 0 when dead."""

    kind: FaultKind
    index: int
    """Counted from 0. uplink: leaf * paths + path; pair: accelerator * domain_size + local number of the other."""
    factor: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}" + (f"@{self.factor:g}" if self.factor > 0.0 else "")


def parse_fault(text: str) -> Fault:
    """Read "spine:3" (dead) or "leaf:12@0.5" (at half its capacity); the factor may have an exponent.

    Raises:
        RequestError: another form, an unknown kind, a factor outside 0..1
    """
    accepted = f"KIND:INDEX or KIND:INDEX@FACTOR with KIND one of {list_names(FAULT_KINDS)} and FACTOR from 0 to 1"
    match = re.fullmatch(r"([a-z-]+):(\d+)(?:@([0-9.]+(?:[eE][+-]?[0-9]+)?))?", text.strip(), re.ASCII)
    if match is None:
        raise RequestError(Problem(where="fault", found=text, accepted=accepted, hint="Such as 'spine:3'."))
    if match[1] not in FAULT_KINDS:
        hint = nearest_hint(match[1], FAULT_KINDS)
        raise RequestError(Problem(where="fault", found=text, accepted=accepted, hint=hint))
    try:
        factor = float(match[3]) if match[3] else 0.0
    except ValueError:
        factor = math.nan
    if not 0.0 <= factor <= 1.0:
        raise RequestError(Problem(where="fault", found=text, accepted=accepted))
    return Fault(kind=match[1], index=int(match[2]), factor=factor)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """How many of each element a fabric has."""

    node_count: int
    block_count: int
    pod_count: int
    leaf_count: int
    """Leaves of all blocks and rails; each exists once per plane."""
    member_count: int
    """Parallel uplinks of one leaf, all planes together."""
    top_count: int
    """Parallel uplinks of one spine; 0 where no tier lies above."""
    spine_count: int
    core_count: int


class Graph:
    """The network of a `FabricSpec` under faults."""

    def __init__(self, spec: FabricSpec, *, faults: Iterable[Fault] = (), seed: int = 0) -> None:
        """Lay out links and capacities.

        Args:
            spec: the network
            faults: elements that carry less
            seed: of the hash that picks paths under ecmp

        Raises:
            RequestError: a fault names an element that is not there
        """
        self.spec = spec
        self.faults = tuple(faults)
        self.seed = seed
        self._number_elements()
        self._lay_out_capacities()

    def with_faults(self, faults: Iterable[Fault]) -> Graph:
        """The same network with these faults instead."""
        return Graph(self.spec, faults=faults, seed=self.seed)

    def with_routing(self, routing: str) -> Graph:
        """The same network, routed otherwise."""
        return Graph(replace(self.spec, routing=routing), faults=self.faults, seed=self.seed)  # type: ignore[arg-type]

    def _number_elements(self) -> None:
        spec = self.spec
        spans = [tier.span for tier in spec.tiers]
        nodes_per_site = [math.ceil(site.accelerator_count / spec.node_size) for site in spec.sites]
        node_site, node_block, node_pod = [], [], []
        blocks = pods = 0
        self._pod_site: list[int] = []
        for site, count in enumerate(nodes_per_site):
            here = np.arange(count)
            block_nodes = count if not spans or spans[0] is None else spans[0] // spec.node_size
            pod_nodes = count if len(spans) < 2 or spans[1] is None else spans[1] // spec.node_size
            node_site.append(np.full(count, site))
            node_block.append(blocks + here // block_nodes)
            node_pod.append(pods + here // pod_nodes)
            blocks += math.ceil(count / block_nodes)
            fresh = math.ceil(count / pod_nodes)
            self._pod_site += [site] * fresh
            pods += fresh
        self.node_site: IntArray = np.concatenate(node_site).astype(np.int64)
        self.node_block: IntArray = np.concatenate(node_block).astype(np.int64)
        self.node_pod: IntArray = np.concatenate(node_pod).astype(np.int64)
        largest = max(nodes_per_site)
        block_nodes = largest if not spans or spans[0] is None else min(spans[0] // spec.node_size, largest)
        pod_nodes = largest if len(spans) < 2 or spans[1] is None else min(spans[1] // spec.node_size, largest)
        self._block_nodes, self._pod_nodes = block_nodes, pod_nodes
        ports = block_nodes * max(spec.nic_count, 1) // spec.rail_count
        paths, tops = 1, 0
        if len(spec.tiers) > 1:
            leaf = spec.tiers[0]
            paths = leaf.path_count or max(round(ports / leaf.oversubscription), 1)
        if len(spec.tiers) > 2:
            spine = spec.tiers[1]
            leaves = math.ceil(pod_nodes / block_nodes) * spec.rail_count
            tops = spine.path_count or max(round(leaves / spine.oversubscription), 1)
        members = paths * spec.plane_count
        has_spines = len(spec.tiers) > 1
        self.shape = Shape(
            node_count=int(sum(nodes_per_site)),
            block_count=blocks,
            pod_count=pods,
            leaf_count=blocks * spec.rail_count,
            member_count=members,
            top_count=tops,
            spine_count=pods * members if has_spines else 0,
            core_count=len(spec.sites) * members * tops if spec.wiring == "clos" else 0,
        )

    def _lay_out_capacities(self) -> None:
        spec, shape = self.spec, self.shape
        planes, members = spec.plane_count, shape.member_count
        tops = max(shape.top_count, 1)
        accelerators = shape.node_count * spec.node_size
        up, down, engine = self._scale_up_capacities(accelerators)
        nic = np.full((shape.node_count * spec.nic_count, planes), spec.nic_bytes_per_s / planes)
        over = [tier.oversubscription for tier in spec.tiers]
        block_rate = self._block_nodes * spec.nic_count * spec.nic_bytes_per_s / spec.rail_count
        leaf_rate = block_rate / (over[0] if len(over) > 1 else 1.0)
        leaf_up = np.full((shape.leaf_count, members), leaf_rate / members)
        pod_rate = self._pod_nodes * spec.nic_count * spec.nic_bytes_per_s / (over[0] if len(over) > 1 else 1.0)
        pod_rate /= over[1] if len(over) > 2 else 1.0
        dragonfly = spec.wiring == "dragonfly" and len(spec.tiers) > 2
        if dragonfly:
            spine_up = np.full((shape.pod_count, shape.pod_count), pod_rate / max(shape.pod_count - 1, 1))
            sites = np.array(self._pod_site)
            spine_up[sites[:, None] != sites[None, :]] = pod_rate
        else:
            spine_up = np.full((shape.pod_count, members * tops), pod_rate / (members * tops))
        haul = np.array([link.bytes_per_s for link in spec.site_links for _ in range(2)], dtype=np.float64)
        parts = {
            "up": up,
            "down": down,
            "engine": engine,
            "nic_up": nic,
            "nic_down": nic.copy(),
            "leaf_up": leaf_up,
            "leaf_down": leaf_up.copy(),
            "spine_up": spine_up,
            "spine_down": np.zeros((0, 0)) if dragonfly else spine_up.copy(),
            "haul": haul,
        }
        self._dragonfly = dragonfly
        for fault in self.faults:
            self._apply(fault, parts)
        hashed = spec.routing == "ecmp"
        if not hashed:
            for name in ("nic_up", "nic_down", "leaf_up", "leaf_down", "spine_up", "spine_down"):
                if not (dragonfly and name == "spine_up"):
                    parts[name] = self._pooled(parts[name])
        bases, at = {}, 0
        for name, part in parts.items():
            bases[name] = at
            at += part.size
        self.capacity: Array = np.concatenate([np.ravel(part) for part in parts.values()]).astype(np.float64)
        self._bases = bases
        ends = dict(zip(bases, [*list(bases.values())[1:], at], strict=True))
        classes = {"up": 0, "down": 0, "engine": 1, "nic_up": 2, "nic_down": 2, "leaf_up": 3, "leaf_down": 3}
        classes |= {"spine_up": 4, "spine_down": 4, "haul": 5}
        self.link_class: NDArray[np.int8] = np.zeros(at, dtype=np.int8)
        for name, code in classes.items():
            self.link_class[bases[name] : ends[name]] = code
        pointers, links = self._haul_routes()
        parameters = [
            spec.node_size,
            spec.domain_size,
            max(spec.nic_count, 1),
            spec.rail_count,
            planes,
            max(members // planes, 1),
            -1 if dragonfly else tops,
            int(hashed),
            spec.queue_pairs,
            self.seed,
            _KIND_CODE[spec.scale_up_kind],
            bases["up"],
            bases["down"],
            bases["engine"] if engine.size else -1,
            bases["nic_up"],
            bases["nic_down"],
            bases["leaf_up"],
            bases["leaf_down"],
            bases["spine_up"],
            bases["spine_down"],
            bases["haul"],
            len(spec.sites),
            int(not np.any(self.capacity <= 0.0)),
            shape.pod_count,
            0,
        ]
        self._arguments: tuple[Any, ...] = (
            np.array(parameters, dtype=np.int64),
            self.capacity,
            self.node_block,
            self.node_pod,
            self.node_site,
            pointers,
            links,
        )

    def _scale_up_capacities(self, accelerators: int) -> tuple[Array, Array, Array]:
        spec = self.spec
        size, rate, none = spec.domain_size, spec.scale_up_bytes_per_s, np.zeros(0)
        domains = math.ceil(accelerators / size)
        if size == 1 or spec.scale_up_kind == "none":
            return none, none, none
        engine = np.full(domains * size, rate)
        if spec.scale_up_kind == "full-mesh":
            return np.full((domains * size, size), rate / (size - 1)), none, engine
        if spec.scale_up_kind == "ring":
            return np.full(domains * size, rate / 2.0), np.full(domains * size, rate / 2.0), engine
        if spec.scale_up_kind == "pcie":
            return np.full(domains * size, rate), none, engine
        return np.full(domains * size, rate), np.full(domains * size, rate), engine

    def _pooled(self, members: Array) -> Array:
        """Parallel links as one: their sum, or under spraying as many times the slowest live one as are live."""
        if self.spec.routing == "adaptive" or members.size == 0:
            return np.asarray(members.sum(axis=1))
        live = members > 0.0
        slowest = np.where(live, members, np.inf).min(axis=1)
        return np.where(live.any(axis=1), live.sum(axis=1) * np.where(np.isfinite(slowest), slowest, 0.0), 0.0)

    def _haul_routes(self) -> tuple[IntArray, IntArray]:
        """Shortest chains of long-haul links between every two sites, as offsets into a flat list."""
        names = [site.name for site in self.spec.sites]
        count = len(names)
        nearest: dict[tuple[int, int], list[int]] = {(i, i): [] for i in range(count)}
        edges = []
        for index, link in enumerate(self.spec.site_links):
            a, b = names.index(link.between[0]), names.index(link.between[1])
            edges += [(a, b, 2 * index), (b, a, 2 * index + 1)]
        for _ in range(count):
            for (start, end), chain in list(nearest.items()):
                for a, b, number in edges:
                    if a == end and ((start, b) not in nearest or len(nearest[start, b]) > len(chain) + 1):
                        nearest[start, b] = [*chain, number]
        pointers, links = [0], list[int]()
        for start in range(count):
            for end in range(count):
                links += nearest.get((start, end), [])
                pointers.append(len(links))
        self._haul_chain = nearest
        return np.array(pointers, dtype=np.int64), np.array(links, dtype=np.int64)

    def long_haul_latency_s(self, start: int, end: int) -> float:
        """One way between two sites along the chain that traffic takes."""
        chain = self._haul_chain.get((start, end), [])
        return sum(self.spec.site_links[number // 2].latency_s for number in chain)

    def element_count(self, kind: str) -> int:
        """How many elements of a kind can fail."""
        spec, shape = self.spec, self.shape
        accelerators = shape.node_count * spec.node_size
        has_scale_up = spec.domain_size > 1
        return {
            "nic": shape.node_count * spec.nic_count,
            "leaf": shape.leaf_count * spec.plane_count if spec.tiers else 0,
            "uplink": shape.leaf_count * shape.member_count if len(spec.tiers) > 1 else 0,
            "spine": shape.spine_count,
            "core": shape.core_count if len(spec.tiers) > 2 else 0,
            "rail": spec.rail_count if spec.rail_optimised else 0,
            "plane": spec.plane_count if spec.plane_count > 1 else 0,
            "pair": accelerators * spec.domain_size if spec.scale_up_kind == "full-mesh" else 0,
            "accelerator-links": accelerators if has_scale_up else 0,
            "long-haul": len(spec.site_links),
        }[kind]

    def _apply(self, fault: Fault, parts: dict[str, Array]) -> None:
        spec, shape, planes = self.spec, self.shape, self.spec.plane_count
        count = self.element_count(fault.kind)
        if not 0 <= fault.index < count:
            accepted = f"{fault.kind}:0 to {fault.kind}:{count - 1}" if count else f"no {fault.kind}: there is none"
            raise RequestError(Problem(where=f"fabric {spec.name}: fault", found=str(fault), accepted=accepted))
        # Less than a billionth of an element carries nothing: such a factor means a dead one.
        i, by = fault.index, fault.factor if fault.factor >= _DEAD_BELOW else 0.0
        if fault.kind == "nic":
            parts["nic_up"][i] *= by
            parts["nic_down"][i] *= by
        elif fault.kind == "leaf":
            self._scale_leaf(parts, i // planes, i % planes, by)
        elif fault.kind == "rail":
            for block in range(shape.block_count):
                for plane in range(planes):
                    self._scale_leaf(parts, block * spec.rail_count + i, plane, by)
        elif fault.kind == "plane":
            for leaf in range(shape.leaf_count):
                self._scale_leaf(parts, leaf, i, by)
        elif fault.kind == "uplink":
            leaf, member = divmod(i, shape.member_count)
            parts["leaf_up"][leaf, member] *= by
            parts["leaf_down"][leaf, member] *= by
        elif fault.kind == "spine":
            self._scale_spine(parts, i, by)
        elif fault.kind == "core":
            site, top = divmod(i, shape.member_count * max(shape.top_count, 1))
            pods = [pod for pod, home in enumerate(self._pod_site) if home == site]
            for name in ("spine_up", "spine_down"):
                parts[name][pods, top] *= by
        elif fault.kind == "pair":
            accelerator, other = divmod(i, spec.domain_size)
            mate = accelerator // spec.domain_size * spec.domain_size + other
            parts["up"][accelerator, other] *= by
            parts["up"][mate, accelerator % spec.domain_size] *= by
        elif fault.kind == "accelerator-links":
            parts["up"][i] *= by
            if spec.scale_up_kind == "full-mesh":
                base = i // spec.domain_size * spec.domain_size
                parts["up"][base : base + spec.domain_size, i % spec.domain_size] *= by
            elif parts["down"].size:
                parts["down"][i] *= by
        else:
            parts["haul"][2 * i : 2 * i + 2] *= by

    def _scale_leaf(self, parts: dict[str, Array], leaf: int, plane: int, by: float) -> None:
        """A leaf of one plane: its ports to interfaces and its uplinks."""
        spec = self.spec
        block, rail = divmod(leaf, spec.rail_count)
        nodes = np.flatnonzero(self.node_block == block)
        nics = [rail] if spec.rail_optimised else list(range(spec.nic_count))
        ports = (nodes[:, None] * spec.nic_count + np.array(nics)[None, :]).ravel()
        paths = self.shape.member_count // spec.plane_count
        for side in ("up", "down"):
            parts[f"nic_{side}"][ports, plane] *= by
            parts[f"leaf_{side}"][leaf, plane * paths : (plane + 1) * paths] *= by

    def _scale_spine(self, parts: dict[str, Array], spine: int, by: float) -> None:
        """A spine: one uplink of every leaf of its pod, and its own uplinks."""
        pod, member = divmod(spine, self.shape.member_count)
        blocks = np.unique(self.node_block[self.node_pod == pod])
        rails = np.arange(self.spec.rail_count)
        leaves = (blocks[:, None] * self.spec.rail_count + rails[None, :]).ravel()
        tops = max(self.shape.top_count, 1)
        for side in ("up", "down"):
            parts[f"leaf_{side}"][leaves, member] *= by
            if not self._dragonfly:
                parts[f"spine_{side}"][pod, member * tops : (member + 1) * tops] *= by

    @property
    def link_bases(self) -> dict[str, int]:
        """Number of the first link of every kind."""
        return self._bases

    @cached_property
    def is_healthy(self) -> bool:
        return not self.faults

    def link_name(self, link: int) -> str:
        """A link in words, such as "leaf 12 up" or "nic 40 down"."""
        name = max((n for n, base in self._bases.items() if base <= link), key=lambda n: (self._bases[n], n))
        for candidate, base in self._bases.items():
            if base <= link:
                name = candidate
        offset = link - self._bases[name]
        spec, shape = self.spec, self.shape
        hashed = spec.routing == "ecmp"
        if name == "engine":
            return f"accelerator {offset} engine"
        if name in ("up", "down"):
            if spec.scale_up_kind == "full-mesh":
                accelerator, other = divmod(offset, spec.domain_size)
                mate = accelerator // spec.domain_size * spec.domain_size + other
                return f"accelerator {accelerator} to {mate}"
            return f"accelerator {offset} {name}"
        if name == "haul":
            ends = spec.site_links[offset // 2].between
            return f"long haul {' to '.join(ends if offset % 2 == 0 else ends[::-1])}"
        element, side = name.split("_")
        if element == "spine" and self._dragonfly:
            start, end = divmod(offset, shape.pod_count)
            return f"pod {start} to {end}"
        width = {"nic": spec.plane_count, "leaf": shape.member_count, "spine": shape.member_count}[element]
        if element == "spine":
            tops = max(shape.top_count, 1)
            if not hashed:
                return f"pod {offset} {side}"
            pod, member = divmod(offset, width * tops)
            return f"spine {pod * width + member // tops} {side} {member % tops}"
        if not hashed or width == 1:
            return f"{element} {offset} {side}"
        return f"{element} {offset // width} {side} {offset % width}"

    @cached_property
    def _kernels(self) -> Any:
        from lakh.fabric import kernels  # the compiler's start-up is paid by those who route

        return kernels

    def add_loads(
        self, sources: IntArray, targets: IntArray, sizes: Array, loads: Array, *, ways: IntArray | None = None
    ) -> int:
        """Add the bytes of flows to the links they cross; the number of flows that have no path."""
        way = np.zeros(1, dtype=np.int64) if ways is None else ways
        lost = self._kernels.add_loads(*self._arguments, sources, targets, way, sizes, loads)
        return int(lost)

    def add_all_to_all_loads(self, groups: IntArray, size: float, loads: Array) -> int:
        """Add `size` bytes from every rank of every row to every other rank of it."""
        return int(self._kernels.add_all_to_all_loads(*self._arguments, groups, size, loads))

    def list_paths(
        self, sources: IntArray, targets: IntArray, *, ways: IntArray | None = None
    ) -> tuple[IntArray, IntArray, Array, NDArray[np.bool_]]:
        """Links and shares of every flow: pointers, links, shares, and which flows have no path."""
        way = np.zeros(1, dtype=np.int64) if ways is None else ways
        pointers, links, shares, lost = self._kernels.list_paths(*self._arguments, sources, targets, way)
        return pointers, links, shares, lost

    def max_min_rates(
        self, capacity: Array, pointers: IntArray, links: IntArray, shares: Array, active: NDArray[np.bool_]
    ) -> Array:
        """Max-min fair rate of every entity [byte/s]; see `lakh.fabric.kernels.max_min_rates`."""
        rates: Array = self._kernels.max_min_rates(capacity, pointers, links, shares, active)
        return rates


def blocks_of(graph: Graph, accelerators: Sequence[int] | IntArray) -> IntArray:
    """Block of every accelerator."""
    return graph.node_block[np.asarray(accelerators, dtype=np.int64) // graph.spec.node_size]
