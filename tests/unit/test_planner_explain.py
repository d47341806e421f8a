"""Explanations say what is true, in numbers."""

from __future__ import annotations

import re

import pytest

from lakh.errors import InfeasibleError
from lakh.planner.explain import compare, explain, infeasible, layout_problems, shortfall, step_parts_s
from lakh.planner.search import candidate_of, search
from lakh.spec.layout import Layout


@pytest.fixture(scope="module")
def planned(request_of):
    request = request_of("llama-70b", accelerator_count=128, precision=("bf16",))
    return request, search(request)


def test_differences_by_part_add_up_to_the_difference_of_the_step_times(planned):
    _, result = planned
    comparison = compare(result.ranked[0], result.ranked[1])
    total = sum(d.loss_s for d in comparison.differences)
    assert total == pytest.approx(result.ranked[1].step_time_s - result.ranked[0].step_time_s, rel=1e-9)


def test_the_parts_people_read_add_up_to_the_step(planned):
    _, result = planned
    assert sum(step_parts_s(result.best).values()) == pytest.approx(result.best.step_time_s, rel=1e-12)


def test_no_neighbour_of_the_winner_is_faster(planned):
    """The winner is the best of the whole space, so no single change that stays in it can help."""
    request, result = planned
    explanation = explain(request, result)
    ratios = [k.step_time_ratio for k in explanation.knobs if k.step_time_ratio is not None]
    assert len(ratios) >= 3
    assert all(ratio >= 1 - 1e-9 for ratio in ratios)


def test_a_neighbour_that_does_not_fit_says_what_it_needs(planned):
    request, result = planned
    lines = [k.text for k in explain(request, result).knobs if k.step_time_ratio is None]
    assert lines
    for line in lines:
        needs, fits = map(float, re.search(r"needs ([\d.]+) GiB, ([\d.]+) fit", line).groups())
        assert needs > fits == pytest.approx(79.9)


def test_unused_accelerators_come_with_a_batch_that_would_use_them(request_of):
    request = request_of(
        accelerator_count=100, global_batch_sequences=64, tp=(4,), pp=(1,), cp=(1,), precision=("bf16",)
    )
    result = search(request)
    assert (result.best.accelerator_count, result.unused_accelerators) == (64, 36)
    assert (
        "36 of 100 accelerators stay unused (64 used); a global batch of 75 sequences instead of 64 lets dp be 25 and "
        "use 100" in explain(request, result).text
    )


def test_a_shortfall_names_the_least_change_of_each_knob(request_of):
    request = request_of("llama-70b", pp=(1,), tp=(4,), cp=(1,), recompute=("none",), sharding=("zero1",), ep=(1,))
    with pytest.raises(InfeasibleError, match="no layout fits"):
        search(request)
    short = shortfall(request)
    assert short.needed_bytes > short.capacity_bytes
    assert set(short.remedies) == {"tp >= 8", "pp >= 4", "sharding zero2"}
    options = {"pp": (1,), "tp": (4,), "cp": (1,), "recompute": ("none",), "sharding": ("zero1",)}
    for helps in ({"tp": (8,)}, {"pp": (4,)}, {"sharding": ("zero2",)}):
        assert search(request_of("llama-70b", **(options | helps))).best.headroom_bytes >= 0
    for less in ({"pp": (2,)}, {"sharding": ("none",)}):
        with pytest.raises(InfeasibleError, match="no layout fits"):
            search(request_of("llama-70b", **(options | less)))


def test_a_shortfall_says_how_many_gib_are_needed_and_fit(request_of):
    request = request_of("llama-70b", pp=(1,), tp=(4,), recompute=("none",), sharding=("zero1",))
    text = str(infeasible(request))
    found = re.search(r"needs ([\d.]+) GiB, 79\.9 fit \(([\d.]+) GiB short", text)
    assert float(found[1]) - 79.9 == pytest.approx(float(found[2]), abs=0.11)


def test_a_shortfall_with_nothing_fixed_asks_for_accelerators(request_of):
    short = shortfall(request_of("deepseek-v3", accelerator_count=64))
    assert short.remedies == ()
    needed = short.accelerators_needed
    assert needed is not None
    assert search(request_of("deepseek-v3", accelerator_count=needed)).best.headroom_bytes >= 0
    assert short.text.endswith(f"use {needed} accelerators or more")


def test_the_closest_layout_needs_exactly_what_the_shortfall_says(request_of):
    request = request_of("deepseek-v3", accelerator_count=64)
    short = shortfall(request)
    assert candidate_of(request, short.layout).device_bytes == pytest.approx(short.needed_bytes, rel=1e-12)


def test_there_is_no_shortfall_where_a_layout_fits(request_of):
    with pytest.raises(ValueError, match="a layout fits"):
        shortfall(request_of())


@pytest.mark.parametrize(
    ("layout", "parts"),
    [
        (Layout(tp=3), ["layout.tp", "32 attention heads"]),
        (Layout(pp=4, vpp=3, dp=4), ["layout.vpp: found 3", "vpp 1, 2, 4, 8 at pp 4", "Nearest: 2"]),
        (Layout(dp=128), ["tp x cp x pp x dp = 128", "at most 64 accelerators"]),
        (Layout(dp=8, sharding="hsdp", shard_group=3), ["layout.shard_group: found 3", "dp x cp = 8", "(2, 4)"]),
        (Layout(ep=2), ["layout.ep: found 2", "no experts"]),
    ],
)
def test_a_layout_that_does_not_divide_names_its_rule(request_of, layout, parts):
    text = "\n".join(str(problem) for problem in layout_problems(request_of(), layout))
    for part in parts:
        assert part in text


def test_a_layout_that_divides_has_no_problem(request_of):
    assert layout_problems(request_of(), Layout(tp=2, pp=2, vpp=2, dp=16)) == ()
