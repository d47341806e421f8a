"""What never happens on a network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric_examples import mesh_cluster, switched_cluster

from lakh.fabric.flow import FlowNetwork, completion_times, network_input
from lakh.fabric.graph import Fault, Graph
from lakh.fabric.protocol import protocol_fit
from lakh.fabric.topology import FabricTier

TIERS = (FabricTier(name="leaf", span=32, oversubscription=2.0), FabricTier(name="spine"))
GRAPHS = {
    (kind, routing): Graph(make(128, tiers=TIERS, routing=routing))
    for kind, make in (("mesh", mesh_cluster), ("switched", switched_cluster))
    for routing in ("ecmp", "adaptive", "spray")
}
graphs = st.sampled_from(sorted(GRAPHS))
flows = st.lists(
    st.tuples(st.integers(0, 127), st.integers(0, 127)).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=40
)


@settings(max_examples=60, deadline=None)
@given(graphs, flows)
def test_rates_fit_the_links_and_every_flow_has_a_bottleneck(
    which: tuple[str, str], pairs: list[tuple[int, int]]
) -> None:
    graph = GRAPHS[which]
    sources, targets = np.array(pairs, dtype=np.int64).T.copy()
    pointers, links, shares, lost = graph.list_paths(sources, targets)
    assert not lost.any()
    rates = graph.max_min_rates(graph.capacity, pointers, links, shares, np.ones(len(pairs), dtype=bool))
    owner = np.repeat(np.arange(len(pairs)), np.diff(pointers))
    used = np.bincount(links, weights=shares * rates[owner], minlength=graph.capacity.size)
    assert (used <= graph.capacity * (1 + 1e-9)).all()
    for flow in range(len(pairs)):
        mine = links[pointers[flow] : pointers[flow + 1]]
        full = mine[used[mine] >= graph.capacity[mine] * (1 - 1e-9)]
        # Max-min: somewhere on its way a full link carries no flow that is faster.
        assert any(rates[owner[links == link]].max() <= rates[flow] * (1 + 1e-9) for link in full)


@settings(max_examples=40, deadline=None)
@given(graphs, flows)
def test_bytes_that_leave_arrive(which: tuple[str, str], pairs: list[tuple[int, int]]) -> None:
    graph = GRAPHS[which]
    sources, targets = np.array(pairs, dtype=np.int64).T.copy()
    loads = np.zeros_like(graph.capacity)
    assert graph.add_loads(sources, targets, np.ones(1), loads) == 0
    bases = graph.link_bases
    outside = float(np.count_nonzero(sources // 8 != targets // 8))
    for side, end in (("nic_up", "nic_down"), ("nic_down", "leaf_up")):
        assert np.isclose(loads[bases[side] : bases[end]].sum(), outside)
    assert np.isclose(
        loads[bases["leaf_up"] : bases["leaf_down"]].sum(), loads[bases["leaf_down"] : bases["spine_up"]].sum()
    )


@settings(max_examples=40, deadline=None)
@given(graphs, flows, st.randoms(use_true_random=False))
def test_the_order_of_flows_never_matters(which: tuple[str, str], pairs: list[tuple[int, int]], random: object) -> None:
    graph = GRAPHS[which]
    order = list(range(len(pairs)))
    random.shuffle(order)  # type: ignore[attr-defined]
    sizes = np.arange(1.0, len(pairs) + 1.0) * 1e9
    sources, targets = np.array(pairs, dtype=np.int64).T.copy()
    ends = completion_times(graph, sources, targets, sizes)
    again = completion_times(graph, sources[order].copy(), targets[order].copy(), sizes[order])
    assert np.allclose(again, ends[order], rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["scale_up_bytes_per_s", "nic_bytes_per_s"]),
    st.floats(1.0, 4.0),
    st.sampled_from(["ecmp", "adaptive", "spray"]),
    st.sampled_from([("all-gather", 16, 8), ("all-reduce", 128, 1), ("all-to-all", 8, 16), ("send", 2, 8)]),
)
def test_more_bandwidth_is_never_slower(field: str, factor: float, routing: str, use: tuple[str, int, int]) -> None:
    spec = mesh_cluster(128, tiers=TIERS, routing=routing)
    faster = replace(spec, **{field: getattr(spec, field) * factor})
    times = [
        FlowNetwork(Graph(each), network_input(each, protocol_fit("s5000"))).time_of(use[0], 1e9, use[1], use[2])  # type: ignore[arg-type]
        for each in (spec, faster)
    ]
    assert times[1] <= times[0] * (1 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["adaptive", "spray"]),
    st.sampled_from(["nic", "leaf", "spine", "uplink", "rail", "pair"]),
    st.integers(0, 7),
    st.floats(0.0, 1.0),
)
def test_a_fault_never_speeds_a_collective_up(routing: str, kind: str, index: int, factor: float) -> None:
    spec = mesh_cluster(128, tiers=TIERS, routing=routing)
    network = network_input(spec, protocol_fit("s5000"))
    graph = Graph(spec)
    fault = Fault(kind=kind, index=min(index, graph.element_count(kind) - 1), factor=factor)  # type: ignore[arg-type]
    healthy, hurt = FlowNetwork(graph, network), FlowNetwork(graph.with_faults([fault]), network)
    for collective, size, stride in (("all-gather", 16, 8), ("all-to-all", 16, 8), ("all-reduce", 8, 1)):
        before = healthy.time_of(collective, 1e9, size, stride)  # type: ignore[arg-type]
        assert hurt.time_of(collective, 1e9, size, stride) >= before * (1 - 1e-12)  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(16)), st.sampled_from(["all-gather", "all-to-all"]))
def test_which_nodes_of_one_block_a_job_gets_never_matters(nodes: list[int], collective: str) -> None:
    spec = mesh_cluster(128)
    network = network_input(spec, protocol_fit("s5000"))
    placement = (np.array(nodes)[:, None] * 8 + np.arange(8)[None, :]).ravel()
    placed = FlowNetwork(Graph(spec), network, placement=placement)
    packed = FlowNetwork(Graph(spec), network)
    for size, stride in ((16, 8), (128, 1)):
        found = placed.cost(collective, size, stride).seconds_per_byte  # type: ignore[arg-type]
        assert np.isclose(found, packed.cost(collective, size, stride).seconds_per_byte)  # type: ignore[arg-type]
