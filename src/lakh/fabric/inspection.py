"""What can a network do for a job, where is it tight, and what does a dead element cost? Rows, no drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakh.columns import Array
from lakh.errors import CouldNotError, Problem, RequestError
from lakh.fabric.closed_form import NetworkInput
from lakh.fabric.collectives import Collective, phases_of
from lakh.fabric.flow import FlowNetwork, class_efficiencies, phase_loads, seconds_of
from lakh.fabric.graph import LINK_CLASSES, Fault, FaultKind, Graph, IntArray


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricJob:
    """A job as far as the network sees it: tensor-parallel groups in order, experts in order, the rest replicas."""

    accelerator_count: int
    tensor_parallel: int = 8
    expert_parallel: int = 0
    """Ranks of one expert all-to-all; 0: none."""
    message_bytes: float = 2.0**28
    """Buffer of each collective [byte]."""
    fragments: int = 1
    """Blocks over which the job is spread in equal parts; 1: packed from the first accelerator on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TierRow:
    """One tier as built."""

    tier: str
    switch_count: int
    group_span: int
    """Accelerators below one group of this tier."""
    down_bytes_per_s: float
    up_bytes_per_s: float
    """All links towards the next tier; 0 at the top."""
    oversubscription: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveRow:
    """One collective of the job."""

    use: str
    collective: Collective
    algorithm: str
    size: int
    stride: int
    time_s: float
    flow_count: int
    worst_link: str
    network_utilisation: float
    """Load of the busiest network link over that of the link that decides, 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultRow:
    """The job's collectives with one element dead or degraded."""

    fault: str
    element_count: int
    """Elements of that kind that could fail alike."""
    slow_down: float | None
    """Of all collectives together, 1 or more; None: the job cannot run where it stands."""
    worst_use: str
    worst_slow_down: float | None
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricReport:
    """All rows of `lakh fabric`."""

    name: str
    accelerator_count: int
    node_count: int
    routing: str
    tiers: tuple[TierRow, ...]
    bisection_bytes_per_s: float
    """What one half of the accelerators can send to the other at once, one direction."""
    full_bisection_bytes_per_s: float
    """Interfaces of one half: what a network without oversubscription would carry."""
    bisection_limit: str
    collectives: tuple[CollectiveRow, ...]
    faults: tuple[FaultRow, ...]
    active_faults: tuple[str, ...]
    class_loads: tuple[tuple[str, float], ...]
    """Busiest link of every class over the busiest of all, job's collectives one after another."""
    pods: tuple[tuple[float, tuple[float, ...]], ...]
    """Per pod: load of its uplinks, and of the uplinks of each of its leaves; 0 to 1."""


def fragmented_placement(graph: Graph, count: int, blocks: int) -> IntArray:
    """Accelerators of a job spread in equal parts over the first `blocks` blocks; whole nodes.

    Raises:
        RequestError: the parts do not divide, or do not fit
    """
    size = graph.spec.node_size
    total = graph.spec.accelerator_count
    if not 1 <= count <= total:
        raise RequestError(Problem(where="job: accelerators", found=count, accepted=f"1 to {total}"))
    if blocks == 1:
        return np.arange(count, dtype=np.int64)
    if blocks < 1 or count % (blocks * size) or blocks > graph.shape.block_count:
        accepted = f"1 to {graph.shape.block_count} parts of whole nodes of {size} accelerators"
        raise RequestError(Problem(where="job: fragments", found=f"{count} over {blocks}", accepted=accepted))
    part = count // blocks
    pieces = []
    for block in range(blocks):
        nodes = np.flatnonzero(graph.node_block == block)
        if nodes.size * size < part:
            accepted = f"parts of at most {nodes.size * size}, what block {block} holds"
            raise RequestError(Problem(where="job: fragments", found=f"{part} per block", accepted=accepted))
        pieces.append(nodes[0] * size + np.arange(part))
    placed: IntArray = np.concatenate(pieces).astype(np.int64)
    return placed


def collectives_of(job: FabricJob) -> list[tuple[str, Collective, int, int]]:
    """What the job sends: use, collective, group size and stride.

    Raises:
        RequestError: parallel sizes that do not divide the job
    """
    problems = []
    count = job.accelerator_count
    for name, size in (("tp", job.tensor_parallel), ("ep", job.expert_parallel or 1)):
        if size < 1 or count % size:
            problems.append(Problem(where=f"job: {name}", found=size, accepted=f"a divisor of {count} accelerators"))
    if not job.message_bytes > 0.0:
        problems.append(Problem(where="job: bytes", found=job.message_bytes, accepted="more than 0"))
    if problems:
        raise RequestError(problems)
    uses: list[tuple[str, Collective, int, int]] = []
    if job.tensor_parallel > 1:
        uses.append(("tensor parallel", "all-reduce", job.tensor_parallel, 1))
    if job.expert_parallel > 1:
        uses.append(("expert parallel", "all-to-all", job.expert_parallel, 1))
    replicas = count // job.tensor_parallel
    if replicas > 1:
        uses.append(("data parallel", "all-reduce", replicas, job.tensor_parallel))
    return uses


def _tiers(graph: Graph) -> tuple[TierRow, ...]:
    spec, shape = graph.spec, graph.shape
    rows = []
    rate = shape.node_count * spec.nic_count * spec.nic_bytes_per_s
    for index, tier in enumerate(spec.tiers):
        top = index == len(spec.tiers) - 1
        over = 1.0 if top else tier.oversubscription
        count = {
            "leaf": shape.leaf_count * spec.plane_count,
            "spine": shape.spine_count,
            "core": shape.core_count,
        }[tier.name]
        span = tier.span or max(site.accelerator_count for site in spec.sites)
        rows.append(
            TierRow(
                tier=tier.name,
                switch_count=count,
                group_span=span,
                down_bytes_per_s=rate,
                up_bytes_per_s=0.0 if top else rate / over,
                oversubscription=over,
            )
        )
        rate /= over
    return tuple(rows)


def bisection(graph: Graph) -> tuple[float, str]:
    """What one half can send to the other at once [byte/s], one direction, and the link that limits it.

    Accelerator i of the first half sends to the i-th of the second and back; all go at the rate of the slowest.
    """
    half = graph.spec.accelerator_count // 2
    if half == 0:
        return 0.0, "one accelerator"
    first = np.arange(half, dtype=np.int64)
    second = first + half
    loads = np.zeros_like(graph.capacity)
    sources, targets = np.concatenate([first, second]), np.concatenate([second, first])
    lost = graph.add_loads(sources, targets, np.ones(1), loads)
    inside, outside, worst = seconds_of(graph, loads, class_efficiencies(1.0, 1.0))
    if lost or worst < 0:
        return 0.0, f"{lost} accelerators have no path"
    return half / max(inside, outside), graph.link_name(worst)


def _row(network: FlowNetwork, use: tuple[str, Collective, int, int], job: FabricJob) -> CollectiveRow:
    name, collective, size, stride = use
    cost = network.cost(collective, size, stride)
    slowest = cost.slowest
    return CollectiveRow(
        use=name,
        collective=collective,
        algorithm=cost.algorithm,
        size=size,
        stride=stride,
        time_s=network.time_of(collective, job.message_bytes, size, stride),
        flow_count=sum(phase.flow_count for phase in cost.phases),
        worst_link=network.graph.link_name(slowest.worst_link),
        network_utilisation=slowest.network_seconds_per_byte / slowest.seconds_per_byte,
    )


def _fault_candidates(graph: Graph, placement: IntArray) -> list[Fault]:
    """One element of every kind that carries the job's traffic: of its first node, block and pod."""
    spec, shape = graph.spec, graph.shape
    node = int(placement[0]) // spec.node_size
    block, pod = int(graph.node_block[node]), int(graph.node_pod[node])
    leaf = block * spec.rail_count
    found: list[tuple[FaultKind, int]] = [
        ("nic", node * spec.nic_count),
        ("uplink", leaf * shape.member_count),
        ("leaf", leaf * spec.plane_count),
        ("spine", pod * shape.member_count),
        ("core", 0),
        ("rail", 0),
        ("plane", 0),
    ]
    if spec.scale_up_kind == "full-mesh" and spec.domain_size > 1:
        first = int(placement[0])
        found.append(("pair", first * spec.domain_size + (first + 1) % spec.domain_size))
    return [Fault(kind=kind, index=index) for kind, index in found if graph.element_count(kind) > index]


def fault_costs(
    graph: Graph, network: NetworkInput, job: FabricJob, placement: IntArray, faults: Sequence[Fault]
) -> tuple[FaultRow, ...]:
    """What each fault on its own, on top of those of `graph`, does to the job's collectives."""
    uses = collectives_of(job)
    if not uses:
        return ()

    def times(with_faults: Sequence[Fault]) -> list[float]:
        flow = FlowNetwork(graph.with_faults(with_faults), network, placement=placement)
        return [flow.time_of(collective, job.message_bytes, size, stride) for _, collective, size, stride in uses]

    base = times(graph.faults)
    rows = []
    for fault in faults:
        note, slow, worst, worst_use = "", None, None, ""
        try:
            now = times([*graph.faults, fault])
        except CouldNotError as error:
            note = str(error).split(": ", 1)[-1]
        else:
            slow = sum(now) / sum(base)
            ratios = [after / before for after, before in zip(now, base, strict=True)]
            place = int(np.argmax(ratios))
            worst, worst_use = ratios[place], uses[place][0]
            note = "traffic goes round it" if slow > 1.0 + 1e-9 else "not felt"
            if graph.spec.routing == "ecmp" and slow != 1.0:
                note = "paths hash anew: worse or better by chance"
        rows.append(
            FaultRow(
                fault=str(fault),
                element_count=graph.element_count(fault.kind),
                slow_down=slow,
                worst_use=worst_use,
                worst_slow_down=worst,
                note=note,
            )
        )
    return tuple(rows)


def _loads(network: FlowNetwork, job: FabricJob, placement: IntArray) -> Array:
    """Seconds per byte of every link, the busiest collective of each."""
    graph = network.graph
    seconds = np.zeros_like(graph.capacity)
    for _, collective, size, stride in collectives_of(job):
        cost = network.cost(collective, size, stride)
        span = size * stride
        starts = np.arange(placement.size // span)[:, None] * span + np.arange(stride)[None, :]
        rows = placement[(starts.reshape(-1, 1) + np.arange(size)[None, :] * stride).astype(np.int64)]
        for phase in phases_of(graph, rows, collective, cost.algorithm):
            loads = phase_loads(graph, phase)
            live = graph.capacity > 0.0
            seconds[live] = np.maximum(seconds[live], loads[live] / graph.capacity[live])
    return seconds


def inspect(
    graph: Graph, network: NetworkInput, job: FabricJob, *, faults: Sequence[Fault] | None = None
) -> FabricReport:
    """Everything `lakh fabric` shows.

    Args:
        graph: the network, with the faults it has now
        network: protocol numbers
        job: whose traffic
        faults: elements whose failure to cost; one of every kind that the job uses unless given

    Raises:
        RequestError: the job does not fit
        CouldNotError: the job has no path even now
    """
    placement = fragmented_placement(graph, job.accelerator_count, job.fragments)
    flow = FlowNetwork(graph, network, placement=placement)
    rows = tuple(_row(flow, use, job) for use in collectives_of(job))
    candidates = _fault_candidates(graph, placement) if faults is None else list(faults)
    total, limit = bisection(graph)
    seconds = _loads(flow, job, placement)
    peak = float(seconds.max()) or 1.0
    loads = seconds / peak
    classes = []
    for code, name in enumerate(LINK_CLASSES):
        mine = loads[graph.link_class == code]
        if mine.size and name != "engine":
            classes.append((name, float(mine.max())))
    half = graph.spec.accelerator_count // 2
    return FabricReport(
        name=graph.spec.name,
        accelerator_count=graph.spec.accelerator_count,
        node_count=graph.shape.node_count,
        routing=graph.spec.routing,
        tiers=_tiers(graph),
        bisection_bytes_per_s=total,
        full_bisection_bytes_per_s=half * (graph.spec.network_bytes_per_s or graph.spec.scale_up_bytes_per_s),
        bisection_limit=limit,
        collectives=rows,
        faults=fault_costs(graph, network, job, placement, candidates),
        active_faults=tuple(str(fault) for fault in graph.faults),
        class_loads=tuple(classes),
        pods=_pod_loads(graph, loads),
    )


def _pod_loads(graph: Graph, loads: Array) -> tuple[tuple[float, tuple[float, ...]], ...]:
    """Load of the uplinks of every pod and of its leaves, for the drawing."""
    shape, bases = graph.shape, graph.link_bases
    hashed = graph.spec.routing == "ecmp"
    width = shape.member_count if hashed else 1
    leaf = loads[bases["leaf_up"] : bases["leaf_up"] + shape.leaf_count * width].reshape(shape.leaf_count, width)
    spine = loads[bases["spine_up"] : bases["spine_down"]].reshape(shape.pod_count, -1)
    block_pod = np.zeros(shape.block_count, dtype=np.int64)
    block_pod[graph.node_block] = graph.node_pod
    leaf_pod = np.repeat(block_pod, graph.spec.rail_count)
    top = leaf.max(axis=1, initial=0.0)
    return tuple(
        (float(spine[pod].max(initial=0.0)), tuple(float(value) for value in top[leaf_pod == pod]))
        for pod in range(shape.pod_count)
    )
