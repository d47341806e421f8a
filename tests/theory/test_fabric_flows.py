"""The flow level against closed forms and arithmetic that can be done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fabric_examples import flow_network, mesh_cluster, switched_cluster

from lakh.fabric.closed_form import ClosedForm, Group
from lakh.fabric.collectives import phases_of
from lakh.fabric.flow import (
    FlowNetwork,
    JobTraffic,
    completion_times,
    contention,
    flapping_slow_down,
    group_rows,
    network_input,
)
from lakh.fabric.graph import Fault, Graph
from lakh.fabric.inspection import bisection, fragmented_placement
from lakh.fabric.protocol import protocol_fit
from lakh.fabric.topology import FabricSite, FabricSpec, FabricTier, LongHaul

GIB = 2.0**30
GROUPS = [(2, 1), (4, 1), (8, 1), (32, 1), (4, 8), (64, 8), (512, 8), (64, 64), (16, 256)]


@pytest.mark.parametrize("spec", [mesh_cluster(), switched_cluster()], ids=["mesh", "switched"])
@pytest.mark.parametrize(("size", "stride"), GROUPS)
def test_flows_agree_with_closed_forms_where_nothing_contends(spec: FabricSpec, size: int, stride: int) -> None:
    family = "s5000" if spec.name == "mesh" else "hopper"
    flows, forms = flow_network(spec, family), ClosedForm(network_input(spec, protocol_fit(family)))
    group = Group(size=np.asarray(float(size)), stride=np.asarray(float(stride)))
    for name in ("all_gather_s", "reduce_scatter_s", "all_reduce_s", "all_to_all_s"):
        found = float(getattr(flows, name)(np.asarray(4 * GIB), group))
        assert found == pytest.approx(float(getattr(forms, name)(np.asarray(4 * GIB), group)), rel=0.02), name
    sent = float(flows.send_s(np.asarray(GIB), np.asarray(float(stride * 8))))
    assert sent == pytest.approx(float(forms.send_s(np.asarray(GIB), np.asarray(float(stride * 8)))), rel=0.02)


@pytest.mark.parametrize("algorithm", ["auto", "hierarchical"])
@pytest.mark.parametrize(("size", "stride"), [(8, 1), (64, 1), (64, 8), (512, 8), (16, 256), (4096, 1), (64, 64)])
def test_one_period_stands_for_the_whole_network(size: int, stride: int, algorithm: str) -> None:
    tiers = (
        FabricTier(name="leaf", span=128, oversubscription=2.0),
        FabricTier(name="spine", span=1024, oversubscription=2.0),
        FabricTier(name="core"),
    )
    spec = mesh_cluster(tiers=tiers)
    whole = flow_network(spec, collapse=False, algorithm=algorithm)
    period = flow_network(spec, algorithm=algorithm)
    for collective in ("all-gather", "all-reduce", "all-to-all")[: 3 if size < 4096 else 2]:
        full, part = whole.cost(collective, size, stride), period.cost(collective, size, stride)
        assert part.seconds_per_byte == pytest.approx(full.seconds_per_byte, rel=1e-9)
        assert part.slowest.flow_count <= full.slowest.flow_count


@pytest.mark.parametrize("nodes", [3, 4, 16])
def test_a_ring_over_several_nodes_of_one_leaf_does_not_turn_into_a_tree_over_two(nodes: int) -> None:
    spec = switched_cluster(8 * nodes, tiers=(FabricTier(name="leaf"),), scale_up_reduction=True)
    costs = [flow_network(spec, "hopper", collapse=way).cost("all-reduce", 8 * nodes, 1) for way in (True, False)]
    assert [cost.algorithm for cost in costs] == ["ring", "ring"]
    assert costs[0].seconds_per_byte == pytest.approx(costs[1].seconds_per_byte)


def test_max_min_rates_of_the_textbook_line() -> None:
    # Flow 0 crosses both links, flows 1 and 2 share the first, flow 3 the second (Bertsekas, Gallager, Data
    # Networks, section 6.5.2): the first link of 1 gives 1/3 each, and flow 3 takes what is left of the second.
    graph = Graph(mesh_cluster(8))
    pointers = np.array([0, 2, 3, 4, 5])
    links = np.array([0, 1, 0, 0, 1])
    rates = graph.max_min_rates(np.array([1.0, 1.0]), pointers, links, np.ones(5), np.ones(4, dtype=bool))
    assert rates == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_flows_speed_up_when_others_end() -> None:
    # Two flows into one interface of 50 GB/s: 25 GB/s each until the short one ends after 2 s, then 50.
    graph = Graph(switched_cluster(1024))
    ends = completion_times(graph, np.array([8, 16]), np.array([0, 0]), np.array([50e9, 100e9]))
    assert ends == pytest.approx([2.0, 3.0])


def test_small_groups_on_a_mesh_are_slower_in_the_ratio_of_their_links() -> None:
    flows = flow_network(mesh_cluster(8))
    costs = {size: flows.cost("all-reduce", size, 1).seconds_per_byte for size in (2, 4, 8)}
    assert costs[2] / costs[8] == pytest.approx(4.0)
    assert costs[4] / costs[8] == pytest.approx(2.0)


def test_reduction_in_the_switch_sends_one_message_and_its_share() -> None:
    flows = flow_network(switched_cluster(8, scale_up_reduction=True), "hopper", algorithm="in-network")
    expected = (1 + 1 / 8) / (450e9 * protocol_fit("hopper").in_network_efficiency)
    assert flows.cost("all-reduce", 8, 1).seconds_per_byte == pytest.approx(expected)


def test_reduction_in_the_network_halves_the_bytes_of_every_interface() -> None:
    spec = switched_cluster(1024, scale_out_reduction=True)
    ring = flow_network(spec, "hopper", algorithm="ring").cost("all-reduce", 128, 8).network_seconds_per_byte
    added = flow_network(spec, "hopper", algorithm="in-network").cost("all-reduce", 128, 8).network_seconds_per_byte
    assert ring / added == pytest.approx(2 * 127 / 128)


def test_halving_doubling_moves_the_bytes_of_a_ring() -> None:
    spec = switched_cluster(1024)
    ring = flow_network(spec, "hopper", algorithm="ring").cost("all-gather", 64, 8)
    doubling = flow_network(spec, "hopper", algorithm="halving-doubling").cost("all-gather", 64, 8)
    assert len(doubling.phases) == 6
    assert doubling.seconds_per_byte == pytest.approx(ring.seconds_per_byte)


def test_hierarchical_all_reduce_adds_its_three_phases() -> None:
    spec, fit = mesh_cluster(1024), protocol_fit("s5000")
    cost = flow_network(spec, algorithm="hierarchical").cost("all-reduce", 1024, 1)
    inside = 7 / 8 / (392e9 * fit.all_reduce_efficiency)
    across = 2 * 127 / 128 / 8 / (50e9 * fit.scale_out_efficiency)
    assert [phase.seconds_per_byte for phase in cost.phases] == pytest.approx([inside, across, inside])


def test_a_tree_over_two_domains_sends_each_byte_once() -> None:
    slow = switched_cluster(16, nic_bytes_per_s=6.25e9, tiers=(FabricTier(name="leaf"),))
    tree = flow_network(slow, "a100").cost("all-reduce", 16, 1)
    assert tree.algorithm == "tree"
    assert tree.network_seconds_per_byte == pytest.approx(1 / (50e9 * protocol_fit("a100").scale_out_efficiency))


def test_oversubscription_is_felt_by_strided_groups_in_full_and_by_neighbours_not_at_all() -> None:
    tiers = (FabricTier(name="leaf", span=128, oversubscription=4.0), FabricTier(name="spine"))
    tight, open_ = mesh_cluster(1024, tiers=tiers), mesh_cluster(1024)
    strided = [flow_network(spec).cost("all-to-all", 8, 128).network_seconds_per_byte for spec in (tight, open_)]
    assert strided[0] / strided[1] == pytest.approx(4.0)
    rings = [flow_network(spec).cost("all-gather", 128, 8).network_seconds_per_byte for spec in (tight, open_)]
    assert rings[0] == pytest.approx(rings[1])


def test_a_dead_rail_leaves_seven_of_eight() -> None:
    spec = mesh_cluster(1024)
    network = network_input(spec, protocol_fit("s5000"))
    dead = FlowNetwork(Graph(spec, faults=[Fault(kind="rail", index=3)]), network)
    whole = FlowNetwork(Graph(spec), network)
    ratio = dead.cost("all-gather", 128, 8).seconds_per_byte / whole.cost("all-gather", 128, 8).seconds_per_byte
    assert ratio == pytest.approx(8 / 7)


def test_a_dead_spine_costs_its_share_of_full_uplinks() -> None:
    tiers = (FabricTier(name="leaf", span=128, path_count=16), FabricTier(name="spine"))
    spec = mesh_cluster(1024, tiers=tiers)
    network = network_input(spec, protocol_fit("s5000"))
    costs = [
        FlowNetwork(Graph(spec, faults=faults), network).cost("all-to-all", 8, 128).network_seconds_per_byte
        for faults in ([], [Fault(kind="spine", index=5)])
    ]
    assert costs[1] / costs[0] == pytest.approx(16 / 15)


def test_a_degraded_link_holds_up_spraying_more_than_adaptive_routing() -> None:
    fault = [Fault(kind="uplink", index=0, factor=0.5)]
    tiers = (FabricTier(name="leaf", span=128, path_count=16), FabricTier(name="spine"))
    ratios = {}
    for routing in ("adaptive", "spray"):
        spec = mesh_cluster(1024, tiers=tiers, routing=routing)
        network = network_input(spec, protocol_fit("s5000"))
        healthy, hurt = Graph(spec), Graph(spec, faults=fault)
        costs = [
            FlowNetwork(graph, network).cost("all-to-all", 8, 128).network_seconds_per_byte for graph in (healthy, hurt)
        ]
        ratios[routing] = costs[1] / costs[0]
    assert ratios["adaptive"] == pytest.approx(16 / 15.5)
    assert ratios["spray"] == pytest.approx(2.0)


def test_hash_collisions_follow_the_balls_in_bins_of_their_queue_pairs() -> None:
    # One stream per interface over as many uplinks: the fullest of n bins with n balls holds about ln n / ln ln n.
    tiers = (FabricTier(name="leaf", span=512, path_count=64), FabricTier(name="spine"))
    one, many = [], []
    for seed in range(5):
        for pairs, found in ((1, one), (64, many)):
            spec = mesh_cluster(4096, tiers=tiers, routing="ecmp", queue_pairs=pairs)
            flows = FlowNetwork(Graph(spec, seed=seed), network_input(spec, protocol_fit("s5000")))
            adaptive = flow_network(mesh_cluster(4096, tiers=tiers)).cost("all-gather", 8, 512)
            found.append(flows.cost("all-gather", 8, 512).network_seconds_per_byte / adaptive.network_seconds_per_byte)
    assert 3.0 <= np.mean(one) <= 7.0  # whole numbers of colliding streams
    assert 1.0 < np.mean(many) < 2.0  # split over 64 paths the excess shrinks


def test_bisection_is_what_the_narrowest_tier_lets_through() -> None:
    tiers = (FabricTier(name="leaf", span=128, oversubscription=2.0), FabricTier(name="spine"))
    total, limit = bisection(Graph(mesh_cluster(1024, tiers=tiers)))
    assert total == pytest.approx(512 * 50e9 / 2)
    assert limit.startswith("leaf")
    assert bisection(Graph(mesh_cluster(1024)))[0] == pytest.approx(512 * 50e9)


def test_two_sites_share_their_long_haul() -> None:
    sites = (FabricSite(name="a", accelerator_count=512), FabricSite(name="b", accelerator_count=512))
    haul = (LongHaul(between=("a", "b"), bytes_per_s=100e9, latency_s=5e-3),)
    graph = Graph(mesh_cluster(1024, sites=sites, site_links=haul))
    total, limit = bisection(graph)
    assert (total, limit) == (pytest.approx(100e9), "long haul a to b")
    assert graph.long_haul_latency_s(0, 1) == 5e-3


def test_two_jobs_on_one_uplink_get_half_each() -> None:
    tiers = (FabricTier(name="leaf", span=128, oversubscription=4.0), FabricTier(name="spine"))
    graph = Graph(mesh_cluster(256, tiers=tiers))
    # Each job has half the nodes of both blocks; alone, 8 of its streams per rail share 4 uplinks.
    halves = [np.concatenate([np.arange(64) + start, np.arange(64) + 128 + start]) for start in (0, 64)]
    jobs = [
        JobTraffic(name=name, placement=half, collective="all-gather", size=2, stride=64)
        for name, half in zip("xy", halves, strict=True)
    ]
    found = contention(graph, jobs)
    assert [row.slow_down for row in found] == pytest.approx([2.0, 2.0])
    assert all(row.worst_link.startswith("leaf") for row in found)


def test_jobs_in_different_blocks_do_not_meet() -> None:
    graph = Graph(mesh_cluster(256))
    jobs = [
        JobTraffic(name=str(start), placement=np.arange(128) + start, collective="all-gather", size=16, stride=8)
        for start in (0, 128)
    ]
    assert [row.slow_down for row in contention(graph, jobs)] == pytest.approx([1.0, 1.0])


def test_a_fragmented_job_feels_the_oversubscription_that_a_packed_one_does_not() -> None:
    tiers = (FabricTier(name="leaf", span=128, oversubscription=8.0), FabricTier(name="spine"))
    spec = mesh_cluster(1024, tiers=tiers)
    graph, network = Graph(spec), network_input(spec, protocol_fit("s5000"))
    times = [
        FlowNetwork(graph, network, placement=fragmented_placement(graph, 128, parts)).time_of(
            "all-to-all", GIB, 128, 1
        )
        for parts in (1, 2)
    ]
    assert 1.8 < times[1] / times[0] < 2.3  # eight streams, half of each going up, on two uplinks


def test_a_flapping_link_costs_its_time_away_and_its_standstill() -> None:
    slow_down = flapping_slow_down(degraded_slow_down=1.5, down_s=60.0, period_s=600.0, stall_s=6.0)
    assert slow_down == pytest.approx((1 + 0.5 * 0.1) / 0.99)
    assert flapping_slow_down(degraded_slow_down=1.0, down_s=0.0, period_s=600.0, stall_s=0.0) == 1.0


def test_rings_use_every_link_of_a_mesh_once_and_every_interface_once() -> None:
    graph = Graph(mesh_cluster(64))
    (phase,) = phases_of(graph, group_rows(32, 1, 64), "all-gather", "ring")
    loads = np.zeros_like(graph.capacity)
    graph.add_loads(phase.sources, phase.targets, phase.sizes, loads, ways=phase.ways)
    base = graph.link_bases
    ports = loads[base["nic_up"] : base["nic_down"]]
    assert ports == pytest.approx(np.full(ports.size, 31 / 32 / 8))
    pairs = loads[base["up"] : base["down"]].reshape(64, 8)
    used = pairs[pairs > 0]
    assert used.size == 64 * 7
    assert used == pytest.approx(np.full(used.size, 31 / 32 / 8))


def test_dragonfly_pods_share_their_bundles_by_pair() -> None:
    spec = mesh_cluster(4096, wiring="dragonfly")
    graph = Graph(spec)
    loads = np.zeros_like(graph.capacity)
    # All of pod 0 to pod 1: one bundle of three carries everything.
    first = np.arange(1024)
    graph.add_loads(first, first + 1024, np.ones(1), loads)
    seconds = loads / np.where(graph.capacity > 0, graph.capacity, 1.0)
    assert seconds.max() * 50e9 == pytest.approx(3.0)
    assert graph.link_name(int(seconds.argmax())) == "pod 0 to 1"
