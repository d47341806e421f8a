"""Both levels of the fabric do what a step model asks of a network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.perf_cases import software, system, workload

from lakh import catalog
from lakh.fabric.closed_form import ClosedForm, CollectiveModel, Group
from lakh.fabric.flow import FlowNetwork
from lakh.fabric.from_cluster import fabric_system
from lakh.fabric.graph import Fault, Graph
from lakh.perf.inputs import ModelInput, PlanInput
from lakh.perf.step import StepTable, evaluate
from lakh.perf.system import SystemInput
from lakh.spec.cluster import single_pool_cluster
from lakh.spec.layout import Layout

LAYOUTS = [
    Layout(tp=8, pp=4, dp=16, micro_batch=1, sharding="zero1"),
    Layout(tp=4, pp=4, dp=32, micro_batch=1, sharding="zero1"),
    Layout(tp=8, pp=1, dp=64, micro_batch=1, sharding="zero3"),
]


def steps(machine: SystemInput, network: CollectiveModel) -> StepTable:
    model = ModelInput.of(catalog.model("llama2-70b"))
    return evaluate(model, machine, software(), PlanInput.of(LAYOUTS), workload(), network=network)


def flow_system() -> tuple[SystemInput, Graph]:
    """512 H100, without reduction in the switch."""
    machine = system()
    cluster = single_pool_cluster(catalog.default_node_for("H100-80GB-SXM"), 512)
    spec = replace(fabric_system(cluster).spec, scale_up_reduction=False)
    quiet = replace(machine.network, in_network_efficiency=np.asarray(0.0))
    return SystemInput(device=machine.device, network=quiet), Graph(spec)


def test_a_step_on_the_graph_takes_what_the_closed_forms_say_where_nothing_contends() -> None:
    machine, graph = flow_system()
    flows = steps(machine, FlowNetwork(graph, machine.network))
    forms = steps(machine, ClosedForm(machine.network))
    assert flows.step_time_s[:2] == pytest.approx(forms.step_time_s[:2], rel=0.02)
    # Full sharding of a dense model gathers no expert weights; only the closed forms charge a launch for that.
    assert flows.step_time_s[2] == pytest.approx(forms.step_time_s[2], rel=0.03)
    assert flows.step_time_s[2] <= forms.step_time_s[2]


def test_a_step_feels_a_dead_rail() -> None:
    machine, graph = flow_system()
    hurt = graph.with_faults([Fault(kind="rail", index=0)])
    before = steps(machine, FlowNetwork(graph, machine.network)).exposed_communication_s
    after = steps(machine, FlowNetwork(hurt, machine.network)).exposed_communication_s
    assert (after >= before * (1 - 1e-12)).all()
    assert after[2] > before[2] * 1.01  # full sharding shows its network most


@pytest.mark.parametrize("level", ["closed", "flow"])
def test_a_network_broadcasts_and_a_group_of_one_is_free(level: str) -> None:
    machine, graph = flow_system()
    network: CollectiveModel = (
        ClosedForm(machine.network) if level == "closed" else FlowNetwork(graph, machine.network, job_size=128)
    )
    group = Group(size=np.array([1.0, 4.0, 16.0]), stride=np.array([1.0, 1.0, 8.0]))
    for name in ("all_gather_s", "reduce_scatter_s", "all_reduce_s", "all_to_all_s"):
        times = getattr(network, name)(np.asarray(1e8), group)
        assert times.shape == (3,)
        assert times[0] == 0.0
        assert (times[1:] > 0.0).all()
    assert network.send_s(np.asarray(1e8), np.array([1.0, 8.0])).shape == (2,)
    assert float(network.scale_up_domain_size) == 8.0
