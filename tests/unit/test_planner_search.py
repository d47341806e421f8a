"""The search finds what looking at every layout one by one finds."""

from __future__ import annotations

import numpy as np
import pytest

from lakh.errors import InfeasibleError, RequestError
from lakh.fabric.closed_form import ClosedForm
from lakh.perf.operators import shared_layer_times
from lakh.perf.step import evaluate
from lakh.planner.search import candidate_of, search
from lakh.planner.space import Space


def one_by_one(request, economics=None):
    """Every layout of a space that fits, each on its own."""
    for block in Space(request).blocks(prune=False):
        for row in range(block.size):
            candidate = candidate_of(request, block.plans.layout(row), economics=economics)
            if candidate.headroom_bytes >= 0:
                yield candidate


@pytest.fixture(scope="module")
def small(request_of):
    return request_of(
        "llama-70b",
        recompute=("none", "selective"),
        precision=("bf16",),
        micro_batch=(1, 2),
        cp=(1,),
        schedule=("1f1b",),
        vpp=(1, 2, 5),
        sharding=("none", "zero1", "zero3"),
    )


@pytest.fixture(scope="module")
def all_candidates(small, economics):
    return list(one_by_one(small, economics))


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        ("step_time", lambda c: c.step_time_s),
        ("cost", lambda c: c.accelerator_hours),
        ("energy", lambda c: c.energy_joule),
    ],
)
def test_the_best_layout_is_the_best_of_all(small, all_candidates, economics, objective, value):
    best = search(small, objective=objective, economics=economics).best
    assert len(all_candidates) > 100
    assert value(best) == pytest.approx(min(value(c) for c in all_candidates), rel=1e-12)


def test_ranked_families_are_the_best_of_each_family(small, all_candidates, economics):
    result = search(small, top_count=6, economics=economics)
    best = {}
    for candidate in all_candidates:
        best[candidate.family] = min(best.get(candidate.family, np.inf), candidate.step_time_s)
    expected = sorted(best.values())[:6]
    assert [c.step_time_s for c in result.ranked] == pytest.approx(expected, rel=1e-12)
    assert len({c.family for c in result.ranked}) == len(result.ranked)


def test_nothing_beats_a_layout_of_the_pareto_front(small, all_candidates, economics):
    front = search(small, economics=economics).pareto
    for kept in front:
        for other in all_candidates:
            better = (
                other.step_time_s < kept.step_time_s * 0.998
                and other.accelerator_hours < kept.accelerator_hours * 0.998
                and other.energy_joule < kept.energy_joule * 0.998
                and other.device_bytes < kept.device_bytes - 2**30
            )
            assert not better
    assert len(front) > 2


def test_everything_is_beaten_or_matched_by_the_pareto_front(small, all_candidates, economics):
    front = search(small, economics=economics).pareto
    for other in all_candidates:
        assert any(
            kept.step_time_s <= other.step_time_s * 1.002
            and kept.accelerator_hours <= other.accelerator_hours * 1.002
            and kept.energy_joule <= other.energy_joule * 1.002
            and kept.device_bytes <= other.device_bytes + 2**30
            for kept in front
        )


def test_the_count_adds_up(small):
    count = search(small).count
    assert count.total == count.pruned + count.out_of_memory + count.timed
    assert count.timed > 0


def test_parts_of_the_step_and_of_the_memory_add_up(small):
    best = search(small).best
    assert sum(best.parts_s.values()) == pytest.approx(best.step_time_s, rel=1e-12)
    assert sum(best.exposed_s.values()) == pytest.approx(best.parts_s["exposed_communication_s"], rel=1e-9)
    assert sum(best.memory_bytes.values()) < best.device_bytes <= best.capacity_bytes


def test_threads_and_block_sizes_find_the_same(small, economics):
    first = search(small, economics=economics, block_size=100)
    second = search(small, economics=economics, worker_count=2, block_size=1000)
    assert first == second


def test_what_does_not_fit_is_infeasible(request_of):
    with pytest.raises(InfeasibleError, match="no layout fits"):
        search(request_of("deepseek-v3", accelerator_count=8))


def test_what_does_not_divide_is_asked_wrongly(request_of):
    with pytest.raises(RequestError, match="a combination that divides 64 accelerators"):
        search(request_of(tp=(8,), pp=(16,), cp=(1,)))


def test_energy_needs_a_power_model(request_of):
    with pytest.raises(RequestError, match="a power model"):
        search(request_of(), objective="energy")


def test_an_unknown_objective_is_refused_with_the_nearest(request_of):
    with pytest.raises(RequestError, match="Did you mean 'step_time'"):
        search(request_of(), objective="step_tim")


def test_a_mesh_wide_tensor_group_beats_a_pair_where_links_are_split(request_of):
    """On a full mesh two cards share a seventh of the links: the search sees it."""
    request = request_of("llama-8b", accelerator_count=8, recompute=("none",), precision=("bf16",))
    pair = search(request_of("llama-8b", accelerator_count=8, tp=(2,), recompute=("none",))).best
    assert pair.exposed_s["exposed_tp_s"] > 0
    assert search(request).best.step_time_s <= pair.step_time_s


@pytest.mark.parametrize("name", ["llama-8b", "deepseek-v3"])
def test_layers_shared_between_plans_take_the_time_of_layers_of_their_own(request_of, name):
    request = request_of(name, accelerator_count=256)
    m, s, q = request.model_input, request.system, request.software
    for block in list(Space(request).blocks(prune=False, block_size=3000))[:3]:
        w = block.workload(request.sequence_length)
        layers = shared_layer_times(m, s.device, ClosedForm(s.network), q, block.plans, w)
        shared = evaluate(m, s, q, block.plans, w, layers=layers)
        own = evaluate(m, s, q, block.plans, w)
        np.testing.assert_allclose(shared.step_time_s, own.step_time_s, rtol=1e-12)
