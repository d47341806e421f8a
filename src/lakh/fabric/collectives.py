"""Which flows does a collective consist of? Algorithms as phases of flows between accelerators.

Groups are rows of accelerator numbers: all rows run at once, as the data-parallel or expert groups of one job do.
Sizes are bytes per byte of message (nccl-tests convention), so that time is proportional to the message.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lakh.columns import Array
from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.fabric.graph import Graph, IntArray

Collective = Literal["all-gather", "reduce-scatter", "all-reduce", "all-to-all", "send"]
Algorithm = Literal["ring", "hierarchical", "tree", "halving-doubling", "direct", "in-network"]
COLLECTIVES: tuple[str, ...] = get_args(Collective)
ALGORITHMS: tuple[str, ...] = get_args(Algorithm)

_DIRECT, _ENGINE, _LEFT, _RIGHT = range(4)  # as in lakh.fabric.kernels, which must not be imported here


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """Flows that run at once. Phases of one collective run one after another."""

    label: str
    sources: IntArray
    targets: IntArray
    sizes: Array
    """Bytes per byte of message, one per flow or one for all."""
    ways: IntArray
    """How a flow may travel (see `lakh.fabric.kernels`), one per flow or one for all."""
    entities: IntArray
    """Flows of one ring, chain or tree move in step: they carry the same number here."""
    all_pairs: NDArray[np.int64] | None = None
    """Instead of a list of flows: every ordered pair of every row, `sizes[0]` each."""
    extra_links: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Links loaded apart from the flows (what a switch that adds receives and sends)."""
    extra_sizes: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def flow_count(self) -> int:
        if self.all_pairs is not None:
            rows, size = self.all_pairs.shape
            return int(rows * size * (size - 1))
        return int(self.sources.size)


def refuse_algorithm(collective: str, algorithm: str, why: str) -> RequestError:
    """The error for an algorithm that a collective cannot run as."""
    accepted = f"an algorithm that fits {collective}: {list_names(ALGORITHMS)}"
    hint = why or nearest_hint(algorithm, ALGORITHMS)
    return RequestError(Problem(where="algorithm", found=algorithm, accepted=accepted, hint=hint))


def _uniform_inner(graph: Graph, groups: IntArray) -> int:
    """Ranks per domain where every group has the same number in each of its domains, one after another; else 1."""
    domains = groups // graph.spec.domain_size
    size = groups.shape[1]
    first = domains[:, :1]
    inner = int((domains == first).sum(axis=1).min())
    if inner == size:
        return inner
    if size % inner:
        return 1
    folded = domains.reshape(groups.shape[0], size // inner, inner)
    same = (folded == folded[:, :, :1]).all()
    apart = (np.diff(folded[:, :, 0], axis=1) != 0).all() and (folded[:, 0, 0] != folded[:, -1, 0]).all()
    return inner if same and apart else 1


def _zigzag(size: int, start: int) -> IntArray:
    """Order of cards in one channel: start, start+1, start-1, start+2, ... mod size.

    The `size` channels together use every directed pair of an even number of cards exactly once (Walecki's
    decomposition of the complete graph into Hamiltonian paths), so a full mesh is loaded evenly.
    """
    steps = np.arange(size)
    offsets = np.where(steps % 2 == 1, (steps + 1) // 2, -(steps // 2))
    order: IntArray = np.mod(start + offsets, size).astype(np.int64)
    return order


def _flat(label: str, parts: list[tuple[IntArray, IntArray, float, int, IntArray]]) -> Phase:
    """Join pieces (sources, targets, size, way, entities) into one phase."""
    sources = np.concatenate([np.ravel(part[0]) for part in parts]).astype(np.int64)
    targets = np.concatenate([np.ravel(part[1]) for part in parts]).astype(np.int64)
    entities = np.concatenate([np.ravel(part[4]) for part in parts]).astype(np.int64)
    if len({(part[2], part[3]) for part in parts}) == 1:
        sizes, ways = np.array([parts[0][2]]), np.array([parts[0][3]])
    else:
        sizes = np.concatenate([np.full(np.size(part[0]), part[2]) for part in parts])
        ways = np.concatenate([np.full(np.size(part[0]), part[3]) for part in parts])
    return Phase(
        label=label, sources=sources, targets=targets, sizes=sizes, ways=ways.astype(np.int64), entities=entities
    )


def ring(
    graph: Graph, groups: IntArray, wire: float, *, label: str = "ring", most_channels: int | None = None
) -> Phase:
    """Rings through all ranks of a group; every rank passes on `wire` bytes per byte of message.

    Within one domain: a mesh uses all its links, every rank to every other; a ring of links goes both ways round; a
    switch carries one ring. Over several domains: as many rings as a domain has ranks, each entering and leaving it
    through another interface, with 1/ranks of the data; inside, each takes the cards in another order.
    """
    rows, size = groups.shape
    row = np.arange(rows)[:, None] + np.zeros((1, size), dtype=np.int64)
    nexts = np.roll(groups, -1, axis=1)
    inner = _uniform_inner(graph, groups)
    if inner == size:
        kind = graph.spec.scale_up_kind
        if kind == "full-mesh":
            return _all_pairs(groups, wire / (size - 1), _ENGINE, label)
        if kind == "ring" and size > 2:
            back = np.roll(groups, 1, axis=1)
            return _flat(
                label,
                [(groups, nexts, wire / 2.0, _RIGHT, 2 * row), (groups, back, wire / 2.0, _LEFT, 2 * row + 1)],
            )
        return _flat(label, [(groups, nexts, wire, _ENGINE, row)])
    if inner == 1:
        return _flat(label, [(groups, nexts, wire, _ENGINE, row)])
    folded = groups.reshape(rows, size // inner, inner)
    parts = []
    channels = inner if most_channels is None else min(inner, most_channels)
    for channel in range(channels):
        order = _zigzag(inner, channel * inner // channels)
        path = folded[:, :, order].copy()
        path[:, 1::2] = path[:, 1::2, ::-1]  # enter the next domain on the rail on which this one was left
        flat = path.reshape(rows, size)
        parts.append((flat, np.roll(flat, -1, axis=1), wire / channels, _ENGINE, row * inner + channel))
    return _flat(label, parts)


def _all_pairs(groups: IntArray, size: float, way: int, label: str) -> Phase:
    """Every rank sends `size` to every other rank of its group."""
    rows, count = groups.shape
    if way == _DIRECT:
        none = np.zeros(0, dtype=np.int64)
        return Phase(
            label=label,
            sources=none,
            targets=none,
            sizes=np.array([size]),
            ways=np.array([way]),
            entities=none,
            all_pairs=np.ascontiguousarray(groups),
        )
    shifts = [np.roll(groups, -step, axis=1) for step in range(1, count)]
    row = np.arange(rows)[:, None] + np.zeros((1, count), dtype=np.int64)
    return _flat(label, [(groups, shifted, size, way, row) for shifted in shifts])


def _tree(graph: Graph, groups: IntArray) -> list[Phase]:
    """All-reduce up and down two binary trees over the domains, chains inside; each tree carries half.

    A domain that is inside one tree is a leaf of the other, so that all send about the same (Sanders, Speck, Traeff,
    "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009).
    """
    rows, size = groups.shape
    inner = _uniform_inner(graph, groups)
    count = size // inner
    folded = groups.reshape(rows, count, inner)
    channels = np.arange(inner)
    parts = []
    number = np.arange(rows)[:, None]
    share = 0.5 / inner
    for flip in (0, 1):
        for channel in channels:
            card = folded[:, :, channel]
            for child in range(1, count):
                # Heap order; the second tree mirrors it, so its inner domains are the first one's leaves.
                a = count - 1 - child if flip else child
                b = count - 1 - (child - 1) // 2 if flip else (child - 1) // 2
                entity = (number * inner + channel) * 2 + flip
                parts.append((card[:, a : a + 1], card[:, b : b + 1], share, _ENGINE, entity))
                parts.append((card[:, b : b + 1], card[:, a : a + 1], share, _ENGINE, entity))
            for step in range(1, inner):
                near = folded[:, :, (channel + step - 1) % inner]
                far = folded[:, :, (channel + step) % inner]
                entity = np.broadcast_to((number * inner + channel) * 2 + flip, near.shape)
                parts.append((near, far, share, _ENGINE, entity))
                parts.append((far, near, share, _ENGINE, entity))
    return [_flat("tree", parts)] if parts else []


def _hierarchical(graph: Graph, groups: IntArray, collective: str) -> list[Phase]:
    """Reduce-scatter inside each domain, the collective over domains on every rail, all-gather inside."""
    rows, size = groups.shape
    inner = _uniform_inner(graph, groups)
    if inner == size or inner == 1:
        factor = 2.0 if collective == "all-reduce" else 1.0
        return [ring(graph, groups, factor * (size - 1) / size)]
    count = size // inner
    inside = groups.reshape(rows * count, inner)
    rails = groups.reshape(rows, count, inner).transpose(0, 2, 1).reshape(rows * inner, count)
    within, across = (inner - 1) / inner, (count - 1) / count / inner
    scatter = ring(graph, inside, within, label="reduce-scatter inside")
    gather = ring(graph, inside, within, label="all-gather inside")
    if collective == "reduce-scatter":
        return [scatter, ring(graph, np.ascontiguousarray(rails), across, label="reduce-scatter across")]
    if collective == "all-gather":
        return [ring(graph, np.ascontiguousarray(rails), across, label="all-gather across"), gather]
    return [scatter, ring(graph, np.ascontiguousarray(rails), 2.0 * across, label="all-reduce across"), gather]


def _halving_doubling(groups: IntArray, collective: str) -> list[Phase]:
    """Recursive halving (reduce-scatter) and doubling (all-gather): log2 phases, the farthest with half the data."""
    rows, size = groups.shape
    rounds = size.bit_length() - 1
    if size != 1 << rounds:
        raise refuse_algorithm(collective, "halving-doubling", f"It needs 2, 4, 8, ... ranks; the group has {size}.")
    entity = np.arange(rows * size).reshape(rows, size)
    phases = []
    for step in range(rounds):
        distance = size >> (step + 1)
        partner = groups[:, np.arange(size) ^ distance]
        phases.append(_flat(f"distance {distance}", [(groups, partner, 0.5 ** (step + 1), _ENGINE, entity)]))
    if collective == "reduce-scatter":
        return phases
    return phases[::-1] if collective == "all-gather" else phases + phases[::-1]


def phases_of(
    graph: Graph,
    groups: IntArray,
    collective: Collective,
    algorithm: Algorithm,
    *,
    most_channels: int | None = None,
) -> list[Phase]:
    """The phases of a collective over every row of `groups` at once.

    Args:
        graph: the network
        groups: accelerator numbers, one group per row, in rank order
        collective: what is done
        algorithm: how
        most_channels: rings that one group runs at most; as many as ranks per domain unless given

    Raises:
        RequestError: the algorithm cannot do this collective, or not for this group size
    """
    size = groups.shape[1]
    if size < 2:
        return []
    wire = (size - 1) / size
    if collective == "send":
        number = np.arange(groups.shape[0] * (size - 1)).reshape(-1, size - 1)
        return [_flat("send", [(groups[:, :-1], groups[:, 1:], 1.0, _DIRECT, number)])]
    if collective == "all-to-all":
        if algorithm != "direct":
            raise refuse_algorithm(collective, algorithm, "An all-to-all is sent directly.")
        return [_all_pairs(groups, 1.0 / size, _DIRECT, "direct")]
    if algorithm == "ring":
        factor = 2.0 if collective == "all-reduce" else 1.0
        return [ring(graph, groups, factor * wire, most_channels=most_channels)]
    if algorithm == "direct":
        one = _all_pairs(groups, 1.0 / size, _ENGINE, "direct")
        return [one, one] if collective == "all-reduce" else [one]
    if algorithm == "hierarchical":
        return _hierarchical(graph, groups, collective)
    if algorithm == "halving-doubling":
        return _halving_doubling(groups, collective)
    if collective != "all-reduce":
        raise refuse_algorithm(collective, algorithm, "Only an all-reduce runs on a tree or in the switches.")
    if algorithm == "tree":
        return _tree(graph, groups)
    if algorithm == "in-network":
        return _in_network(graph, groups)
    raise refuse_algorithm(collective, algorithm, "")


def _in_network(graph: Graph, groups: IntArray) -> list[Phase]:
    """All-reduce by switches that add.

    In the scale-up switch each rank pulls its share of everyone's data already added up, and broadcasts the result:
    (1 + 1/n) of the message leaves and enters every accelerator. In the network, domains reduce first, then every
    interface sends its share up once and receives it once, and a leaf passes on one stream per group.
    """
    spec = graph.spec
    rows, size = groups.shape
    inner = _uniform_inner(graph, groups)
    none = np.zeros(0, dtype=np.int64)
    phases: list[Phase] = []
    base = graph.link_bases
    if inner > 1:
        if spec.scale_up_reduction and spec.scale_up_kind == "switched":
            ranks = np.ravel(groups)
            share = 1.0 + 1.0 / inner
            links = np.concatenate([base["up"] + ranks, base["down"] + ranks])
            phases.append(
                Phase(
                    label="scale-up switches add",
                    sources=none,
                    targets=none,
                    sizes=np.zeros(1),
                    ways=np.zeros(1, dtype=np.int64),
                    entities=none,
                    extra_links=links,
                    extra_sizes=np.full(links.size, share),
                )
            )
        elif inner == size:
            why = "The scale-up links of this fabric do not add."
            raise refuse_algorithm("all-reduce", "in-network", why)
        else:
            inside = groups.reshape(-1, inner)
            wire = 2.0 * (inner - 1) / inner
            phases.append(ring(graph, inside, wire, label="reduce-scatter and all-gather inside"))
    if inner == size:
        return phases
    if not spec.scale_out_reduction and phases and size == 2 * inner:
        return [_switches_and_exchange(phases[0], groups, inner)]
    if not spec.scale_out_reduction:
        raise refuse_algorithm("all-reduce", "in-network", "The switches of this network do not add.")
    if spec.routing == "ecmp":
        raise refuse_algorithm("all-reduce", "in-network", "Reduction trees do not hash; use adaptive routing.")
    ranks = np.ravel(groups)
    nodes = ranks // spec.node_size
    per = max(spec.nic_count // spec.node_size, 1)
    first = (ranks % spec.node_size) * spec.nic_count // spec.node_size
    ports = (nodes * spec.nic_count + first)[:, None] + np.arange(per)[None, :]
    rails = (first[:, None] + np.arange(per)[None, :]) % spec.rail_count
    leaves = graph.node_block[nodes][:, None] * spec.rail_count + rails
    row = np.repeat(np.arange(rows), size)[:, None] + np.zeros((1, per), dtype=np.int64)
    streams = np.unique(row.ravel() * graph.shape.leaf_count + leaves.ravel()) % graph.shape.leaf_count
    size_port = 1.0 / inner / per
    loaded = [base["nic_up"] + ports.ravel(), base["nic_down"] + ports.ravel()]
    sizes = [np.full(2 * ports.size, size_port)]
    if np.unique(leaves).size > spec.rail_count:
        loaded += [base["leaf_up"] + streams, base["leaf_down"] + streams]
        sizes.append(np.full(2 * streams.size, size_port * max(spec.nic_count // spec.rail_count, 1)))
    phases.append(
        Phase(
            label="network switches add",
            sources=none,
            targets=none,
            sizes=np.zeros(1),
            ways=np.zeros(1, dtype=np.int64),
            entities=none,
            extra_links=np.concatenate(loaded).astype(np.int64),
            extra_sizes=np.concatenate(sizes),
        )
    )
    return phases


def _switches_and_exchange(switches: Phase, groups: IntArray, inner: int) -> Phase:
    """Two domains whose switches add, chunk after chunk, while their interfaces exchange each card's share."""
    other = np.roll(groups, inner, axis=1)
    return Phase(
        label="scale-up switches add, two domains exchange",
        sources=np.ravel(groups).astype(np.int64),
        targets=np.ravel(other).astype(np.int64),
        sizes=np.array([1.0 / inner]),
        ways=np.array([_DIRECT]),
        entities=np.arange(groups.size),
        extra_links=switches.extra_links,
        extra_sizes=switches.extra_sizes,
    )
