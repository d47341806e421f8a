"""What never happens, whatever the request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakh.errors import InfeasibleError
from lakh.perf.step import evaluate
from lakh.planner.search import search
from lakh.planner.space import Space

COUNTS = st.sampled_from([8, 16, 24, 32, 64, 96])
MODELS = st.sampled_from(["llama-8b", "small-moe"])
QUICK = settings(max_examples=6, deadline=None)
NARROW = {"cp": (1,), "micro_batch": (1, 2, 4), "schedule": ("1f1b",), "etp": (1,)}
"""Keeps spaces to a few hundred layouts: the properties do not depend on their size."""


def best_time(request):
    try:
        return search(request, top_count=1).best.step_time_s
    except InfeasibleError:
        return np.inf


@QUICK
@given(data=st.data(), model=MODELS)
def test_the_order_of_options_never_matters(request_of, data, model):
    values = {"cp": (1,), "tp": (1, 2, 4), "pp": (1, 2, 4), "micro_batch": (1, 2, 4), "recompute": ("none", "full")}
    shuffled = {name: tuple(data.draw(st.permutations(list(value)))) for name, value in values.items()}
    repeated = {name: value + value[:1] for name, value in shuffled.items()}
    first = search(request_of(model, accelerator_count=32, **values))
    assert search(request_of(model, accelerator_count=32, **shuffled)) == first
    assert search(request_of(model, accelerator_count=32, **repeated)) == first


@QUICK
@given(model=MODELS, count=COUNTS, small=st.floats(18, 70), more=st.floats(0, 60))
def test_more_memory_never_makes_the_best_worse(request_of, system_of_test, model, count, small, more):
    request = request_of(model, accelerator_count=count, precision=("bf16",), **NARROW)
    less = replace(request, system=system_of_test(memory_gib=small))
    greater = replace(request, system=system_of_test(memory_gib=small + more))
    assert best_time(greater) <= best_time(less) * (1 + 1e-12)


@QUICK
@given(model=MODELS, count=COUNTS, factor=st.floats(1, 8))
def test_a_faster_network_never_makes_the_best_worse(request_of, system_of_test, model, count, factor):
    request = request_of(model, accelerator_count=count, precision=("bf16",), **NARROW)
    slow = replace(request, system=system_of_test(scale_out_bytes_per_s=25e9))
    fast = replace(request, system=system_of_test(scale_out_bytes_per_s=25e9 * factor))
    assert best_time(fast) <= best_time(slow) * (1 + 1e-9)


@QUICK
@given(model=MODELS, count=COUNTS)
def test_fixing_a_dimension_never_finds_something_better(request_of, model, count):
    free = best_time(request_of(model, accelerator_count=count, **NARROW))
    for options in ({"tp": (2,)}, {"micro_batch": (1,)}, {"recompute": ("full",)}, {"precision": ("bf16",)}):
        assert best_time(request_of(model, accelerator_count=count, **(NARROW | options))) >= free * (1 - 1e-12)


@QUICK
@given(model=MODELS, count=COUNTS, doublings=st.integers(1, 2))
def test_more_accelerators_never_slow_down_the_same_layouts_on_a_fixed_batch(request_of, model, count, doublings):
    """Twice the accelerators may idle, so the best of a space with every smaller dp in it never gets worse."""
    every_dp = tuple(range(1, 400))
    options = {"precision": ("bf16",), "recompute": ("full",), "sharding": ("zero1",), **NARROW}
    dps = tuple(d for d in every_dp if 256 % d == 0)

    def best(size: int) -> float:
        known = tuple(d for d in dps if d <= size)
        return best_time(request_of(model, accelerator_count=size, dp=known, **options))

    assert best(count * 2**doublings) <= best(count) * (1 + 1e-12)


@pytest.mark.parametrize("name", ["llama-8b", "small-moe", "deepseek-v3"])
def test_a_layout_costs_the_same_alone_and_among_others(request_of, name):
    request = request_of(name, accelerator_count=256)
    block = next(iter(Space(request).blocks(prune=False, block_size=1000)))
    together = evaluate(
        request.model_input, request.system, request.software, block.plans, block.workload(request.sequence_length)
    ).step_time_s
    for row in range(0, block.size, 97):
        one = block.take(np.array([row]))
        alone = evaluate(
            request.model_input, request.system, request.software, one.plans, one.workload(request.sequence_length)
        ).step_time_s
        assert alone[0] == pytest.approx(together[row], rel=1e-12)
