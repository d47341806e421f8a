"""How long does a collective take on the real graph? Flows, fair rates, and the step model's view of both.

`FlowNetwork` answers the same questions as the closed forms, from the links that the flows of a collective cross.
With equal flows the slowest one of a max-min fair allocation runs at the least capacity per flow of any link, so the
time of a phase is the largest (bytes on a link / capacity of the link); where jobs compete or flows differ, the rates
themselves are computed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lakh.columns import Array
from lakh.errors import CouldNotError, Problem, RequestError
from lakh.fabric.closed_form import SCALE_UP_KINDS, Group, NetworkInput
from lakh.fabric.collectives import Algorithm, Collective, Phase, phases_of
from lakh.fabric.graph import LINK_CLASSES, Graph, IntArray
from lakh.fabric.protocol import ProtocolFit
from lakh.fabric.topology import FabricSpec

IN_NETWORK_STEPS = 16.0
"""Steps of an all-reduce in the scale-up switch, fitted: it ramps more slowly with message size than a ring."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseCost:
    """One phase of a collective per byte of message."""

    label: str
    scale_up_seconds_per_byte: float
    """On the slowest scale-up link or engine."""
    network_seconds_per_byte: float
    """On the slowest link of the network."""
    worst_link: int
    """Link that decides; -1 where nothing is sent."""
    flow_count: int

    @property
    def seconds_per_byte(self) -> float:
        return max(self.scale_up_seconds_per_byte, self.network_seconds_per_byte)


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveCost:
    """A collective per byte of message, with the algorithm that was chosen."""

    collective: Collective
    algorithm: Algorithm
    phases: tuple[PhaseCost, ...]
    inner: int
    """Ranks of a group in one scale-up domain."""

    @property
    def seconds_per_byte(self) -> float:
        return sum(phase.seconds_per_byte for phase in self.phases)

    @property
    def scale_up_seconds_per_byte(self) -> float:
        return sum(phase.scale_up_seconds_per_byte for phase in self.phases)

    @property
    def network_seconds_per_byte(self) -> float:
        return sum(phase.network_seconds_per_byte for phase in self.phases)

    @property
    def slowest(self) -> PhaseCost:
        return max(self.phases, key=lambda phase: phase.seconds_per_byte)


def group_rows(size: int, stride: int, job_size: int) -> IntArray:
    """Ranks of all groups of one kind: [groups, size]. Rank order as in `Group`; ranks left over are in no group.

    Raises:
        RequestError: one group needs more ranks than the job has
    """
    span = size * stride
    if size < 1 or stride < 1 or span > job_size:
        found = f"{size} ranks {stride} apart in a job of {job_size}"
        raise RequestError(Problem(where="group", found=found, accepted="size times stride up to the size of the job"))
    starts = np.arange(job_size // span)[:, None] * span + np.arange(stride)[None, :]
    rows: IntArray = (starts.reshape(-1, 1) + np.arange(size)[None, :] * stride).astype(np.int64)
    return rows


def class_efficiencies(scale_up: float, scale_out: float) -> Array:
    """Efficiency per link class: scale-up links and engine, network links; long-haul links are payload rates."""
    by_class = {"scale-up": scale_up, "engine": scale_up, "long-haul": 1.0}
    return np.array([by_class.get(name, scale_out) for name in LINK_CLASSES])


def phase_loads(graph: Graph, phase: Phase) -> Array:
    """Bytes on every link per byte of message.

    Raises:
        CouldNotError: a flow has no path left
    """
    loads = np.zeros_like(graph.capacity)
    if phase.all_pairs is not None:
        lost = graph.add_all_to_all_loads(phase.all_pairs, float(phase.sizes[0]), loads)
    elif phase.sources.size:
        lost = graph.add_loads(phase.sources, phase.targets, phase.sizes, loads, ways=phase.ways)
    else:
        lost = 0
    if phase.extra_links.size:
        np.add.at(loads, phase.extra_links, phase.extra_sizes)
        lost += int(np.count_nonzero(graph.capacity[phase.extra_links] <= 0.0))
    if lost:
        faults = ", ".join(str(fault) for fault in graph.faults) or "none"
        raise CouldNotError(
            f"fabric {graph.spec.name}: {lost} flows of phase {phase.label!r} have no path left "
            f"(faults: {faults}). The job cannot run there until it is placed elsewhere or the element is back."
        )
    return loads


def seconds_of(graph: Graph, loads: Array, efficiencies: Array) -> tuple[float, float, int]:
    """Time to move these loads on scale-up links and on the network, and the link that decides."""
    used = np.flatnonzero(loads)
    if used.size == 0:
        return 0.0, 0.0, -1
    seconds = loads[used] / (graph.capacity[used] * efficiencies[graph.link_class[used]])
    outside = graph.link_class[used] >= LINK_CLASSES.index("nic")
    worst = int(used[int(np.argmax(seconds))])
    return float(seconds[~outside].max(initial=0.0)), float(seconds[outside].max(initial=0.0)), worst


def network_input(spec: FabricSpec, fit: ProtocolFit, *, ring_hop_s: float | None = None) -> NetworkInput:
    """The same network as numbers for the closed forms: one block size, one oversubscription, one site size.

    Args:
        spec: the network
        fit: protocol of its accelerators
        ring_hop_s: latency per hop between domains, where the network's own is known
    """

    def column(value: float) -> Array:
        return np.asarray(value, dtype=np.float64)

    over = math.prod(tier.oversubscription for tier in spec.tiers[:-1])
    narrow = [tier.span for tier in spec.tiers[:-1] if tier.oversubscription > 1.0 and tier.span]
    first = spec.tiers[0].span if len(spec.tiers) > 1 else None
    block = min(narrow, default=first or math.inf)
    several = len(spec.sites) > 1
    smallest = min(site.accelerator_count for site in spec.sites)
    outgoing = [sum(link.bytes_per_s for link in spec.site_links if site.name in link.between) for site in spec.sites]
    adds = spec.scale_up_reduction and spec.scale_up_kind == "switched"
    return NetworkInput(
        scale_up_kind=column(SCALE_UP_KINDS.index(spec.scale_up_kind)),
        scale_up_domain_size=column(spec.domain_size),
        scale_up_bytes_per_s=column(spec.scale_up_bytes_per_s),
        scale_out_bytes_per_s=column(spec.network_bytes_per_s or spec.scale_up_bytes_per_s),
        scale_up_efficiency=column(0.5 * (fit.all_gather_efficiency + fit.reduce_scatter_efficiency)),
        all_reduce_efficiency=column(fit.all_reduce_efficiency),
        in_network_efficiency=column(fit.in_network_efficiency if adds else 0.0),
        in_network_ranks=column(fit.in_network_least_ranks),
        scale_out_efficiency=column(fit.scale_out_efficiency),
        all_to_all_efficiency=column(fit.all_to_all_efficiency),
        launch_s=column(fit.launch_s),
        scale_up_latency_s=column(fit.step_s),
        scale_out_latency_s=column(fit.ring_hop_s if ring_hop_s is None else ring_hop_s),
        copy_bytes_per_s=column(fit.copy_bytes_per_s),
        rail_count=column(fit.most_channels),
        block_size=column(block),
        oversubscription=column(over),
        site_size=column(smallest if several else math.inf),
        long_haul_bytes_per_s=column(min(outgoing) if several else math.inf),
        long_haul_latency_s=column(max((link.latency_s for link in spec.site_links), default=0.0)),
    )


class FlowNetwork:
    """Collectives timed on the graph; fits wherever a `CollectiveModel` is asked for.

    Bandwidth comes from the flows of ALL groups of a kind at once over the links they cross; efficiencies, latencies
    and the ramp with message size are those of the closed forms, so that the two levels differ only in what the graph
    sees. Each kind of group is simulated once.
    """

    def __init__(
        self,
        graph: Graph,
        network: NetworkInput,
        *,
        placement: IntArray | None = None,
        job_size: int | None = None,
        algorithm: Algorithm | Literal["auto"] = "auto",
        collapse: bool = True,
    ) -> None:
        """Bind a graph to protocol numbers and a job to accelerators.

        Args:
            graph: the network with its faults
            network: one system (scalars): efficiencies and latencies
            placement: accelerator of every rank of the job; the first ones in order unless given
            job_size: ranks of the job where no placement is given; all accelerators unless given
            algorithm: of all-gather, reduce-scatter and all-reduce; "auto": what a library would choose
            collapse: simulate one period of a network that repeats itself instead of all of it; exact

        Raises:
            RequestError: several systems, or a placement that is not one accelerator per rank of this graph
        """
        if any(np.size(getattr(network, name)) != 1 for name in ("scale_up_efficiency", "scale_out_efficiency")):
            raise RequestError(
                Problem(where="network", found="several systems", accepted="one: a graph is of one cluster")
            )
        self.graph = graph
        self._net = network
        self._algorithm = algorithm
        self._collapse = collapse
        self._costs: dict[tuple[str, int, int], CollectiveCost] = {}
        available = graph.shape.node_count * graph.spec.node_size
        if placement is None:
            self._placement: IntArray | None = None
            self.job_size = graph.spec.accelerator_count if job_size is None else job_size
            if not 1 <= self.job_size <= graph.spec.accelerator_count:
                accepted = f"1 to {graph.spec.accelerator_count} accelerators"
                raise RequestError(Problem(where="job_size", found=job_size, accepted=accepted))
        else:
            self._placement = np.asarray(placement, dtype=np.int64)
            self.job_size = self._placement.size
            distinct = np.unique(self._placement)
            if distinct.size != self.job_size or distinct[0] < 0 or distinct[-1] >= available:
                accepted = f"distinct accelerators from 0 to {available - 1}"
                raise RequestError(Problem(where="placement", found=f"{self.job_size} accelerators", accepted=accepted))

    @property
    def scale_up_domain_size(self) -> Array:
        return self._net.scale_up_domain_size

    def efficiencies(self, collective: Collective, *, in_network: bool = False) -> Array:
        """Efficiency per link class for one collective, as the closed forms apply it."""
        net = self._net
        out = float(net.scale_out_efficiency)
        if in_network:
            return class_efficiencies(float(net.in_network_efficiency) or 1.0, out)
        if collective == "all-reduce":
            return class_efficiencies(float(net.all_reduce_efficiency), out)
        if collective == "all-to-all":
            spread = float(net.all_to_all_efficiency)
            return class_efficiencies(spread, out * spread)
        return class_efficiencies(float(net.scale_up_efficiency), out)

    def _rows(self, size: int, stride: int) -> tuple[IntArray, float]:
        """Groups to simulate and the factor on links above the leaf that stands for the ones left out.

        A healthy network with pooled links looks the same from every pod, so groups that stay within whole pods
        repeat with the least common multiple of span and pod. Where every rail is a network of its own below the
        spine, groups of different rails load different leaves alike and one rail stands for all.
        """
        spec = self.graph.spec
        job, factor = self.job_size, 1.0
        plain = self._collapse and not self.graph.faults and spec.routing != "ecmp" and self._placement is None
        if plain and len(spec.sites) == 1:
            spans = [tier.span for tier in spec.tiers if tier.span]
            period = math.lcm(size * stride, spec.domain_size, *spans)
            if job % period == 0:
                job = period
        rows = group_rows(size, stride, job)
        railed = spec.rail_optimised and spec.nic_count >= spec.node_size and spec.domain_size in (1, spec.node_size)
        if plain and railed and stride % spec.node_size == 0 and rows.shape[0] % spec.node_size == 0:
            rows = rows[rows[:, 0] % spec.node_size == 0]
            factor = float(spec.node_size)
        return (rows if self._placement is None else self._placement[rows]), factor

    def _send_rows(self, stride: int) -> tuple[IntArray, float]:
        """Every rank and the one `stride` further: all stages of a pipeline send at once."""
        if not 1 <= stride < self.job_size:
            found = f"a rank {stride} further in a job of {self.job_size}"
            raise RequestError(Problem(where="send", found=found, accepted="a stride below the size of the job"))
        first = np.arange(self.job_size - stride, dtype=np.int64)
        rows = np.stack([first, first + stride], axis=1)
        return (rows if self._placement is None else self._placement[rows]), 1.0

    def cost(self, collective: Collective, size: int, stride: int) -> CollectiveCost:
        """What a collective costs per byte over all groups of this kind at once.

        Raises:
            RequestError: the group does not fit the job
            CouldNotError: a flow has no path left
        """
        key = (collective, size, stride)
        if key not in self._costs:
            self._costs[key] = self._simulate(collective, size, stride)
        return self._costs[key]

    def _simulate(self, collective: Collective, size: int, stride: int) -> CollectiveCost:
        inner = self._inner(size, stride)
        if collective in ("all-gather", "reduce-scatter", "all-reduce"):
            fewer = self._repeating_size(size, stride, inner)
            if fewer is not None:
                name: Algorithm = "ring" if self._algorithm == "auto" else self._algorithm
                rows, factor = self._rows(fewer, stride)
                return self._stretched(self._cost_of(rows, factor, collective, name, inner), size, fewer)
        rows, factor = self._send_rows(stride) if collective == "send" else self._rows(size, stride)
        if collective == "all-to-all":
            names: list[Algorithm] = ["direct"]
        elif self._algorithm != "auto":
            names = [self._algorithm]
        else:
            names = ["ring"]
            if collective == "all-reduce":
                names += self._all_reduce_choices(size, inner)
        costs = [self._cost_of(rows, factor, collective, names[0], inner)]
        for name in names[1:]:
            # A tree or a switch that lost a link is no choice any more; the ring above still is.
            with contextlib.suppress(CouldNotError):
                costs.append(self._cost_of(rows, factor, collective, name, inner))
        return min(costs, key=lambda cost: cost.seconds_per_byte)

    def _repeating_size(self, size: int, stride: int, inner: int) -> int | None:
        """Ranks of two periods of the network, where a ring over all of `size` ranks only repeats them.

        Two pods, so that the ring leaves and enters pods as the long one does; None where nothing repeats.
        """
        spec = self.graph.spec
        plain = self._collapse and not self.graph.faults and spec.routing != "ecmp" and self._placement is None
        if not plain or len(spec.sites) > 1 or self._algorithm not in ("auto", "ring", "hierarchical"):
            return None
        if spec.scale_out_reduction or spec.wiring == "dragonfly" or size <= 2 * inner:
            return None
        period = math.lcm(stride, spec.domain_size, *(tier.span for tier in spec.tiers if tier.span))
        if self.job_size % period or (size * stride) % period or 2 * period >= size * stride:
            return None
        return 2 * period // stride

    def _stretched(self, cost: CollectiveCost, size: int, fewer: int) -> CollectiveCost:
        """A ring over `fewer` ranks as one over `size`: each rank passes on (n - 1)/n of the message in each phase."""
        phases = []
        for phase in cost.phases:
            parts = cost.inner if "across" in phase.label else 1
            ranks, few = size / parts, fewer / parts
            factor = 1.0 if "inside" in phase.label else (1.0 - 1.0 / ranks) / (1.0 - 1.0 / few)
            phases.append(
                replace(
                    phase,
                    scale_up_seconds_per_byte=phase.scale_up_seconds_per_byte * factor,
                    network_seconds_per_byte=phase.network_seconds_per_byte * factor,
                )
            )
        return replace(cost, phases=tuple(phases))

    def _inner(self, size: int, stride: int) -> int:
        return int(np.clip(self.graph.spec.domain_size // stride, 1, size))

    def _all_reduce_choices(self, size: int, inner: int) -> list[Algorithm]:
        """Besides a ring: the switch where it adds, and a tree between two domains, where it sends half as much."""
        spec = self.graph.spec
        least = float(self._net.in_network_ranks)
        choices: list[Algorithm] = []
        inside = inner == size
        if inside and spec.scale_up_reduction and spec.scale_up_kind == "switched" and size >= least:
            choices.append("in-network")
        adds = spec.scale_up_reduction and spec.scale_up_kind == "switched" and inner >= least
        pair = size == 2 * inner and size > 2
        if not inside and ((spec.scale_out_reduction and spec.routing != "ecmp") or (pair and adds)):
            choices.append("in-network")
        if pair:
            choices.append("tree")
        return choices

    def _cost_of(
        self, rows: IntArray, factor: float, collective: Collective, algorithm: Algorithm, inner: int
    ) -> CollectiveCost:
        most = max(round(min(float(self._net.rail_count), 1e6)), 1)
        phases = phases_of(self.graph, rows, collective, algorithm, most_channels=most)
        efficiencies = self.efficiencies(collective, in_network=algorithm == "in-network")
        costs = []
        for phase in phases:
            loads = phase_loads(self.graph, phase)
            if factor != 1.0:
                above = self.graph.link_class >= LINK_CLASSES.index("spine")
                loads = np.where(above, loads * factor, loads)
            inside, outside, worst = seconds_of(self.graph, loads, efficiencies)
            costs.append(
                PhaseCost(
                    label=phase.label,
                    scale_up_seconds_per_byte=inside,
                    network_seconds_per_byte=outside,
                    worst_link=worst,
                    flow_count=phase.flow_count,
                )
            )
        return CollectiveCost(collective=collective, algorithm=algorithm, phases=tuple(costs), inner=inner)

    def time_of(self, collective: Collective, message_bytes: float, size: int, stride: int) -> float:
        """Time of one collective over groups of one kind [s].

        A transfer that takes y on its slowest link is pipelined, (sqrt(y) + sqrt(latency of its steps))^2; a ring
        that leaves the domain adds a hop per rank (as measured from 16 to 1,440 ranks), a tree per level; each rank
        copies its own share.
        """
        net = self._net
        if size < 2 or message_bytes <= 0.0 or (collective == "send" and stride >= self.job_size):
            return 0.0  # nobody to talk to, or nothing to say
        cost = self.cost(collective, size, stride)
        launch_s, step_s, hop_s = float(net.launch_s), float(net.scale_up_latency_s), float(net.scale_out_latency_s)
        inner, outer = cost.inner, size / cost.inner
        across_s = self._across_s(size * stride)
        wire_s = cost.seconds_per_byte * message_bytes
        if collective == "send":
            inside = stride < self.graph.spec.domain_size
            return launch_s + wire_s + (step_s if inside else hop_s + across_s)
        phases = 2.0 if collective == "all-reduce" else 1.0
        if cost.algorithm == "in-network" and outer <= 1.0:
            return launch_s + (math.sqrt(wire_s) + math.sqrt(IN_NETWORK_STEPS * step_s)) ** 2
        line = self.graph.spec.scale_up_kind in ("ring", "pcie")
        steps_s = (inner - 1.0 if line else math.ceil(math.log2(inner))) * step_s if inner > 1 else 0.0
        copy_s = phases * message_bytes / size / float(net.copy_bytes_per_s)
        if collective == "all-to-all":
            inside_s = cost.scale_up_seconds_per_byte * message_bytes
            inside_s = (math.sqrt(inside_s) + math.sqrt(steps_s)) ** 2
            outside_s = cost.network_seconds_per_byte * message_bytes
            levels_s = math.ceil(math.log2(outer)) * hop_s
            return launch_s + max(inside_s, outside_s) + copy_s + levels_s + across_s
        piped_s = (math.sqrt(wire_s) + math.sqrt(phases * steps_s)) ** 2
        moved_s = launch_s + piped_s + copy_s + phases * across_s
        if outer <= 1.0:
            return moved_s
        ring_s = phases * (size - 1.0) * hop_s
        levels_s = 2.0 * phases * math.ceil(math.log2(outer)) * hop_s
        if cost.algorithm in ("tree", "in-network", "halving-doubling"):
            # Up and down the levels and the chain of each domain, in chunks that follow one another.
            chain_s = levels_s + phases * (inner - 1.0) * hop_s
            piped_s = (math.sqrt(wire_s) + math.sqrt(phases * steps_s + chain_s)) ** 2
            return launch_s + piped_s + copy_s + phases * across_s
        if collective != "all-reduce" or self._algorithm != "auto":
            return moved_s + ring_s
        # A tree for a message so small that its fewer steps outweigh its tenth of extra traffic.
        return min(moved_s + ring_s, 1.1 * (moved_s + ring_s) - ring_s + levels_s)

    def _across_s(self, span: int) -> float:
        if span <= float(self._net.site_size):
            return 0.0
        return float(self._net.long_haul_latency_s)

    def _times(self, collective: Collective, message_bytes: Array, size: Array, stride: Array) -> Array:
        amounts, sizes, strides = np.broadcast_arrays(message_bytes, size, stride)
        flat = [
            self.time_of(collective, float(amount), round(float(ranks)), round(float(apart)))
            for amount, ranks, apart in zip(amounts.flat, sizes.flat, strides.flat, strict=True)
        ]
        return np.array(flat, dtype=np.float64).reshape(amounts.shape)

    def all_gather_s(self, total_bytes: Array, group: Group) -> Array:
        """See `CollectiveModel`."""
        return self._times("all-gather", total_bytes, group.size, group.stride)

    def reduce_scatter_s(self, total_bytes: Array, group: Group) -> Array:
        """See `CollectiveModel`."""
        return self._times("reduce-scatter", total_bytes, group.size, group.stride)

    def all_reduce_s(self, message_bytes: Array, group: Group) -> Array:
        """See `CollectiveModel`."""
        return self._times("all-reduce", message_bytes, group.size, group.stride)

    def all_to_all_s(self, message_bytes: Array, group: Group) -> Array:
        """See `CollectiveModel`."""
        return self._times("all-to-all", message_bytes, group.size, group.stride)

    def send_s(self, message_bytes: Array, stride: Array, chain: Array | float = 2.0) -> Array:
        """See `CollectiveModel`; the graph sees every pair of the job, so the length of a chain adds nothing."""
        return self._times("send", message_bytes, np.asarray(2.0), stride)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobTraffic:
    """What one of several jobs sends: a collective over groups of its accelerators."""

    name: str
    placement: IntArray
    collective: Collective
    size: int
    stride: int
    algorithm: Algorithm = "ring"


@dataclass(frozen=True, kw_only=True, slots=True)
class Contention:
    """One job alone and beside the others, per byte of its message."""

    name: str
    alone_seconds_per_byte: float
    shared_seconds_per_byte: float
    worst_link: str

    @property
    def slow_down(self) -> float:
        """Shared over alone, 1 or more."""
        return self.shared_seconds_per_byte / self.alone_seconds_per_byte


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entities:
    """Flows that move in step, with the links they load."""

    pointers: IntArray
    links: IntArray
    shares: Array
    sizes: Array


def _entities(graph: Graph, phase: Phase) -> _Entities:
    """Entities of a phase: the flows of one ring or tree joined, every other flow on its own."""
    if phase.all_pairs is not None:
        rows, count = phase.all_pairs.shape
        a, b = np.nonzero(~np.eye(count, dtype=bool))
        sources, targets = phase.all_pairs[:, a].ravel(), phase.all_pairs[:, b].ravel()
        numbers = np.arange(rows * a.size)
    else:
        sources, targets, numbers = phase.sources, phase.targets, phase.entities
    ways = phase.ways if phase.ways.size in (1, sources.size) else np.zeros(1, dtype=np.int64)
    sizes = np.broadcast_to(phase.sizes, sources.shape)
    pointers, links, shares, lost = graph.list_paths(sources, targets, ways=ways)
    if lost.any():
        raise CouldNotError(f"fabric {graph.spec.name}: {int(lost.sum())} flows of {phase.label!r} have no path left")
    unique, of = np.unique(numbers, return_inverse=True)
    lengths = np.diff(pointers)
    owner = np.repeat(of, lengths)
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(of, weights=lengths, minlength=unique.size).astype(np.int64)
    biggest = np.zeros(unique.size)
    np.maximum.at(biggest, of, sizes)
    relative = np.repeat(sizes / biggest[of], lengths)
    return _Entities(
        pointers=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        links=links[order],
        shares=(shares * relative)[order],
        sizes=biggest,
    )


def _joined(parts: Sequence[_Entities]) -> _Entities:
    offsets = np.cumsum([0, *[part.links.size for part in parts]])
    pointers = [part.pointers[:-1] + offset for part, offset in zip(parts, offsets, strict=False)]
    return _Entities(
        pointers=np.concatenate([*pointers, offsets[-1:]]).astype(np.int64),
        links=np.concatenate([part.links for part in parts]),
        shares=np.concatenate([part.shares for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
    )


def contention(
    graph: Graph, jobs: Sequence[JobTraffic], *, scale_up: float = 1.0, scale_out: float = 1.0
) -> list[Contention]:
    """How much jobs slow each other down while all of them send without a pause.

    Each job is in the phase that takes it longest alone; rates are max-min fair over all flows of all jobs. Jobs
    that compute most of the time meet less often: this is the worst case of their overlap.

    Args:
        graph: the network
        jobs: at least one
        scale_up, scale_out: protocol efficiencies

    Raises:
        RequestError: two jobs claim one accelerator, or a group does not fit
        CouldNotError: a flow has no path left
    """
    everyone = np.concatenate([np.asarray(job.placement) for job in jobs])
    if np.unique(everyone).size != everyone.size:
        shared = everyone.size - np.unique(everyone).size
        raise RequestError(
            Problem(where="jobs", found=f"{shared} accelerators claimed twice", accepted="each by one job")
        )
    capacity = graph.capacity * class_efficiencies(scale_up, scale_out)[graph.link_class]
    parts, alone = [], []
    for job in jobs:
        rows = np.asarray(job.placement, dtype=np.int64)[group_rows(job.size, job.stride, len(job.placement))]
        slowest: tuple[float, _Entities] | None = None
        for phase in phases_of(graph, rows, job.collective, job.algorithm):
            entities = _entities(graph, phase)
            seconds = float(np.max(entities.sizes / _rates(graph, capacity, entities)))
            if slowest is None or seconds > slowest[0]:
                slowest = (seconds, entities)
        if slowest is None:
            raise RequestError(Problem(where=f"job {job.name}", found=f"a group of {job.size}", accepted="2 or more"))
        alone.append(slowest[0])
        parts.append(slowest[1])
    together = _joined(parts)
    rates = _rates(graph, capacity, together)
    loads = np.bincount(
        together.links,
        weights=together.shares * np.repeat(rates, np.diff(together.pointers)),
        minlength=graph.capacity.size,
    )
    results, at = [], 0
    for job, part, seconds in zip(jobs, parts, alone, strict=True):
        mine = rates[at : at + part.sizes.size]
        times = part.sizes / mine
        slow = int(np.argmax(times))
        links = part.links[part.pointers[slow] : part.pointers[slow + 1]]
        tight = links[np.argmax(loads[links] / capacity[links])]
        at += part.sizes.size
        results.append(
            Contention(
                name=job.name,
                alone_seconds_per_byte=seconds,
                shared_seconds_per_byte=float(times[slow]),
                worst_link=graph.link_name(int(tight)),
            )
        )
    return results


def _rates(graph: Graph, capacity: Array, entities: _Entities) -> Array:
    active = np.ones(entities.sizes.size, dtype=np.bool_)
    return graph.max_min_rates(capacity, entities.pointers, entities.links, entities.shares, active)


def completion_times(graph: Graph, sources: IntArray, targets: IntArray, sizes_bytes: Array) -> Array:
    """When each flow ends if all start at once and share max-min fairly, rates recomputed at every end [s].

    Args:
        graph: the network
        sources, targets: accelerators, one pair per flow
        sizes_bytes: one per flow

    Raises:
        CouldNotError: a flow has no path left
    """
    pointers, links, shares, lost = graph.list_paths(sources, targets)
    if lost.any():
        raise CouldNotError(f"fabric {graph.spec.name}: {int(lost.sum())} of {lost.size} flows have no path left")
    left = np.array(sizes_bytes, dtype=np.float64)
    ends = np.zeros(left.size)
    active: NDArray[np.bool_] = left > 0.0
    now_s = 0.0
    while active.any():
        rates = graph.max_min_rates(graph.capacity, pointers, links, shares, active)
        with np.errstate(divide="ignore", invalid="ignore"):
            need = np.where(active, left / rates, np.inf)
        step_s = float(need.min())
        done = active & (need <= step_s * (1.0 + 1e-9))
        now_s += step_s
        with np.errstate(invalid="ignore"):
            left = np.where(active, left - np.where(np.isfinite(rates), rates * step_s, left), left)
        ends[done] = now_s
        active = active & ~done
    return ends


def flapping_slow_down(*, degraded_slow_down: float, down_s: float, period_s: float, stall_s: float) -> float:
    """Mean slow-down of a collective stream beside a link that goes down and comes back.

        f = (1 + (d - 1) down / period) / (1 - stall / period)

    Args:
        degraded_slow_down: d, slow-down while the link is away, 1 or more
        down_s: time it is away
        period_s: from one flap to the next
        stall_s: standstill per flap until packets are sent again and routes are changed

    Raises:
        RequestError: times that contradict each other
    """
    if not (0.0 <= down_s <= period_s and 0.0 <= stall_s < period_s and degraded_slow_down >= 1.0):
        found = {"degraded_slow_down": degraded_slow_down, "down_s": down_s, "period_s": period_s, "stall_s": stall_s}
        accepted = "down_s up to period_s, stall_s below period_s, a slow-down of 1 or more"
        raise RequestError(Problem(where="flap", found=found, accepted=accepted))
    return (1.0 + (degraded_slow_down - 1.0) * down_s / period_s) / (1.0 - stall_s / period_s)
