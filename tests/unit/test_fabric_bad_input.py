"""Descriptions and requests that the fabric refuses, and what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.fabric_examples import flow_network, mesh_cluster

from lakh.errors import CouldNotError, RequestError, UnknownNameError
from lakh.fabric.collectives import phases_of
from lakh.fabric.flow import FlowNetwork, JobTraffic, contention, flapping_slow_down, group_rows, network_input
from lakh.fabric.graph import Fault, Graph, parse_fault
from lakh.fabric.inspection import FabricJob, collectives_of, fragmented_placement
from lakh.fabric.protocol import family_of, protocol_fit
from lakh.fabric.topology import FabricSite, FabricTier, LongHaul


@pytest.mark.parametrize(
    ("changes", "field", "accepted"),
    [
        ({"routing": "adaptiv"}, "routing", "adaptive"),
        ({"scale_up_kind": "mesh"}, "scale_up_kind", "full-mesh"),
        ({"sites": ()}, "sites", "one site"),
        ({"domain_size": 6}, "domain_size", "node_size"),
        ({"nic_count": 0}, "nic_count", "1 or more"),
        ({"nic_count": 3}, "nic_count", "divisor"),
        ({"tiers": ()}, "tiers", "leaf"),
        ({"tiers": (FabricTier(name="spine"),)}, "tiers", "leaf"),
        ({"tiers": (FabricTier(name="leaf", span=128),)}, "tiers[0].span", "largest site"),
        ({"tiers": (FabricTier(name="leaf"), FabricTier(name="spine"))}, "tiers[0].span", "number of accelerators"),
        (
            {"tiers": (FabricTier(name="leaf", span=100), FabricTier(name="spine"))},
            "tiers[0].span",
            "multiple of what lies below",
        ),
        (
            {"tiers": (FabricTier(name="leaf", span=128, oversubscription=0.5), FabricTier(name="spine"))},
            "oversubscription",
            "1 or more",
        ),
        (
            {"sites": (FabricSite(name="a", accelerator_count=8), FabricSite(name="b", accelerator_count=8))},
            "site_links",
            "every site",
        ),
        ({"site_links": (LongHaul(between=("here", "ther"), bytes_per_s=1e9),)}, "site_links[0].between", "here"),
    ],
)
def test_a_description_is_refused_with_its_field_and_what_is_accepted(
    changes: dict[str, object], field: str, accepted: str
) -> None:
    with pytest.raises(RequestError) as caught:
        mesh_cluster(1024, **changes)
    assert any(field in problem.where for problem in caught.value.problems)
    assert accepted in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_problems_are_listed_at_once() -> None:
    with pytest.raises(RequestError) as caught:
        replace(mesh_cluster(1024), routing="x", scale_up_kind="y", node_size=0)  # type: ignore[arg-type]
    assert len(caught.value.problems) >= 3


@pytest.mark.parametrize("text", ["spine", "spine:x", "spin:3", "spine:3@2", "spine:3@", "", "leaf:1@0.5.5"])
def test_a_fault_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="KIND:INDEX"):
        parse_fault(text)


def test_a_fault_kind_gets_its_nearest_match() -> None:
    with pytest.raises(RequestError, match="Did you mean 'spine'"):
        parse_fault("spne:3")
    assert str(parse_fault("leaf:12@0.5")) == "leaf:12@0.5"


def test_the_factor_of_a_fault_may_have_an_exponent() -> None:
    assert parse_fault("nic:0@1e-3") == Fault(kind="nic", index=0, factor=0.001)
    assert parse_fault("nic:0@5E-1").factor == 0.5
    with pytest.raises(RequestError):
        parse_fault("nic:0@1e+3")


@pytest.mark.parametrize("fault", [Fault(kind="spine", index=10**6), Fault(kind="plane", index=0)])
def test_a_fault_of_something_that_is_not_there_is_refused(fault: Fault) -> None:
    with pytest.raises(RequestError, match="accepted"):
        Graph(mesh_cluster(1024), faults=[fault])


def test_a_group_larger_than_the_job_is_refused() -> None:
    with pytest.raises(RequestError, match="size of the job"):
        flow_network(mesh_cluster(128)).cost("all-gather", 64, 8)
    with pytest.raises(RequestError, match="stride"):
        flow_network(mesh_cluster(128)).cost("send", 2, 128)
    with pytest.raises(RequestError, match="job_size"):
        flow_network(mesh_cluster(128), job_size=129)


@pytest.mark.parametrize("placement", [[0, 0], [0, 10**7], [-1, 3]])
def test_a_placement_that_is_none_is_refused(placement: list[int]) -> None:
    spec = mesh_cluster(128)
    with pytest.raises(RequestError, match="placement"):
        FlowNetwork(Graph(spec), network_input(spec, protocol_fit("s5000")), placement=np.array(placement))


def test_several_systems_are_refused() -> None:
    spec = mesh_cluster(128)
    network = replace(network_input(spec, protocol_fit("s5000")), scale_up_efficiency=np.array([0.5, 0.6]))
    with pytest.raises(RequestError, match="several systems"):
        FlowNetwork(Graph(spec), network)


@pytest.mark.parametrize(
    ("collective", "algorithm", "size"),
    [
        ("all-to-all", "ring", 8),
        ("all-gather", "tree", 8),
        ("all-gather", "halving-doubling", 6),
        ("all-reduce", "in-network", 8),
    ],
)
def test_an_algorithm_that_does_not_fit_is_refused(collective: str, algorithm: str, size: int) -> None:
    graph = Graph(mesh_cluster(128))
    with pytest.raises(RequestError, match="algorithm"):
        phases_of(graph, group_rows(size, 1, 128), collective, algorithm)  # type: ignore[arg-type]


def test_a_job_that_lost_its_only_leaf_could_not_run_and_says_why() -> None:
    spec = mesh_cluster(256, rail_optimised=False)
    graph = Graph(spec, faults=[Fault(kind="leaf", index=0)])
    flows = FlowNetwork(graph, network_input(spec, protocol_fit("s5000")))
    with pytest.raises(CouldNotError, match=r"no path left \(faults: leaf:0\)") as caught:
        flows.cost("all-gather", 16, 8)
    assert caught.value.exit_code == 1


def test_one_accelerator_of_two_jobs_is_refused() -> None:
    jobs = [
        JobTraffic(name=name, placement=np.arange(16), collective="all-gather", size=2, stride=8) for name in ("a", "b")
    ]
    with pytest.raises(RequestError, match="claimed twice"):
        contention(Graph(mesh_cluster(128)), jobs)


def test_jobs_that_do_not_divide_are_refused_with_every_problem() -> None:
    with pytest.raises(RequestError) as caught:
        collectives_of(FabricJob(accelerator_count=64, tensor_parallel=7, expert_parallel=5, message_bytes=0.0))
    assert len(caught.value.problems) == 3
    with pytest.raises(RequestError, match="fragments"):
        fragmented_placement(Graph(mesh_cluster(1024)), 128, 3)


def test_contradicting_flap_times_are_refused() -> None:
    with pytest.raises(RequestError, match="stall_s"):
        flapping_slow_down(degraded_slow_down=1.5, down_s=60.0, period_s=60.0, stall_s=60.0)


def test_an_unknown_protocol_family_is_refused_and_an_unknown_accelerator_has_none() -> None:
    with pytest.raises(UnknownNameError, match="hopper"):
        protocol_fit("hoper")
    assert family_of("TPU-v5p") is None
    assert family_of("MTT-S5000") == "s5000"
