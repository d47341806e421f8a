"""Curves from one node to the cluster."""

from __future__ import annotations

import pytest

from lakh.errors import InfeasibleError, RequestError
from lakh.planner.scale import default_sizes, scale


@pytest.fixture(scope="module")
def reference(request_of, system_of_test):
    """Memory to spare, so that nothing but traffic and jitter bends the curve."""
    options = {"precision": ("bf16",), "sharding": ("zero1",), "micro_batch": (1, 2), "cp": (1,)}
    options["system"] = system_of_test(memory_gib=4000.0)
    return request_of("llama-8b", accelerator_count=1024, global_batch_sequences=2048, **options)


@pytest.fixture(scope="module")
def weak(reference, economics):
    return scale(reference, sizes=default_sizes(8, 1024), train_tokens=1e12, economics=economics)


def test_default_sizes_double_from_one_node_to_the_cluster():
    assert default_sizes(8, 100) == (8, 16, 32, 64, 100)
    assert default_sizes(8, 8) == (8,)


def test_efficiency_is_relative_to_the_base(weak):
    """Sharded optimizer states shrink with dp, so a little more than one is no mistake."""
    assert weak.base_count == weak.points[0].accelerator_count == 8
    assert weak.points[0].scaling_efficiency == 1.0
    assert 0.5 < weak.points[-1].scaling_efficiency < 1.02
    for point in weak.points:
        rate = point.tokens_per_s / point.accelerator_count
        assert point.scaling_efficiency == pytest.approx(rate / weak.points[0].tokens_per_s * 8)


def test_waiting_for_the_slowest_rank_grows_with_the_cluster(weak):
    shares = [point.part_share["jitter_s"] for point in weak.points]
    assert shares == sorted(shares)


def test_weak_scaling_keeps_the_sequences_per_accelerator(weak):
    for point in weak.points:
        per_accelerator = point.candidate.global_batch_sequences / point.accelerator_count
        assert per_accelerator == pytest.approx(2.0, rel=0.05)


def test_shares_of_the_step_add_up_to_one(weak):
    for point in weak.points:
        assert sum(point.part_share.values()) == pytest.approx(1.0, rel=1e-12)


def test_time_energy_and_cost_follow_from_throughput_power_and_price(weak):
    for point in weak.points:
        assert point.train_time_s == pytest.approx(1e12 / point.tokens_per_s)
        assert point.energy_joule.value == pytest.approx(point.power_watt.value * point.train_time_s)
        assert point.cost.value == pytest.approx(2.0 * point.accelerator_count * point.train_time_s / 3600)


def test_power_lies_between_idle_and_full_load(weak):
    for point in weak.points:
        per_accelerator = point.power_watt.value / point.candidate.accelerator_count
        assert 1.25 * (250 + 150) < per_accelerator < 1.25 * (250 + 700)


def test_strong_scaling_keeps_the_batch_and_loses_efficiency(reference):
    curve = scale(reference, sizes=(8, 64, 1024), scaling="strong")
    assert {point.candidate.global_batch_sequences for point in curve.points} == {2048}
    efficiencies = [point.scaling_efficiency for point in curve.points]
    assert efficiencies == sorted(efficiencies, reverse=True)
    assert curve.overall is not None
    assert curve.overall.to_share > curve.overall.from_share


def test_one_family_grows_in_dp_alone(reference):
    curve = scale(reference, sizes=(64, 256, 1024), replan=False)
    kept = {(p.candidate.layout.tp, p.candidate.layout.pp, p.candidate.layout.micro_batch) for p in curve.points}
    assert len(kept) == 1
    assert not curve.replanned


def test_replanning_is_never_worse_than_keeping_one_layout(reference):
    kept = scale(reference, sizes=(64, 256, 1024), replan=False)
    best = {p.accelerator_count: p for p in scale(reference, sizes=(64, 256, 1024)).points}
    for point in kept.points:
        per_sequence = point.candidate.step_time_s / point.candidate.global_batch_sequences
        chosen = best[point.accelerator_count].candidate
        assert chosen.step_time_s / chosen.global_batch_sequences <= per_sequence * (1 + 1e-9)


def test_sizes_that_hold_nothing_are_listed_with_the_reason(request_of):
    curve = scale(request_of("llama-70b", accelerator_count=64, precision=("bf16",)), sizes=(8, 64))
    assert [skipped.accelerator_count for skipped in curve.skipped] == [8]
    assert "GiB" in curve.skipped[0].reason


def test_the_order_of_sizes_does_not_matter(reference):
    assert scale(reference, sizes=(256, 64, 64)) == scale(reference, sizes=(64, 256))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"sizes": ()}, "one size or more"),
        ({"sizes": (0,)}, "whole numbers"),
        ({"sizes": (8,), "scaling": "weka"}, "Did you mean 'weak'"),
        ({"sizes": (8,), "base_count": 9}, "one of the sizes"),
        ({"sizes": (8,), "train_tokens": 0.0}, "more than 0"),
    ],
)
def test_wrong_arguments_are_refused(reference, arguments, match):
    with pytest.raises(RequestError, match=match):
        scale(reference, **arguments)


def test_a_cluster_too_small_at_every_size_is_infeasible(request_of):
    with pytest.raises(InfeasibleError, match="no size can be planned"):
        scale(request_of("deepseek-v3", accelerator_count=16), sizes=(8, 16))
