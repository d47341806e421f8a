"""The space holds exactly the layouts that divide."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lakh.errors import RequestError
from lakh.perf.inputs import PlanInput
from lakh.perf.step import evaluate, is_valid
from lakh.planner.explain import layout_problems
from lakh.planner.space import PlanRequest, Space, SpaceCount, memory_of, plan_fits, stages_divide
from lakh.spec.layout import Layout


def layouts_of(request: PlanRequest, *, prune: bool = False) -> list[Layout]:
    return [
        block.plans.layout(row)
        for block in Space(request).blocks(prune=prune, block_size=777)
        for row in range(block.size)
    ]


@pytest.mark.parametrize("name", ["llama-8b", "small-moe", "deepseek-v3"])
def test_every_layout_of_a_space_divides_by_the_step_models_own_rules(request_of, name):
    request = request_of(name, accelerator_count=128)
    size = 0
    for block in Space(request).blocks(prune=False):
        valid = is_valid(request.model_input, block.plans, block.workload(request.sequence_length))
        assert np.all(valid)
        size += block.size
    assert size > 1000


@pytest.mark.parametrize("name", ["llama-8b", "small-moe"])
def test_no_layout_that_divides_is_missing(request_of, name):
    """Against every combination of small factors, each checked one at a time."""
    sizes, counts = (1, 2, 3, 4), (1, 2, 4)
    request = request_of(
        name,
        accelerator_count=16,
        global_batch_sequences=24,
        tp=(1, 2, 4),
        cp=(1, 2),
        pp=(1, 2, 4),
        vpp=(1, 2, 4),
        dp=sizes,
        ep=counts if name == "small-moe" else (1,),
        etp=(1, 2) if name == "small-moe" else (1,),
        micro_batch=sizes,
        sharding=("zero1",),
        recompute=("none",),
        schedule=("1f1b",),
        precision=("bf16",),
    )
    values = Space(request).values
    names = ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "micro_batch")
    expected = set()
    for combination in product(*(values[n] for n in names)):
        layout = Layout(**dict(zip(names, combination, strict=True)), sharding="zero1")
        if not layout_problems(request, layout):
            expected.add(layout)
    found = layouts_of(request)
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert len(expected) > 50


def test_the_count_of_a_space_is_what_iterating_it_yields(request_of):
    request = request_of("small-moe", accelerator_count=32, global_batch_sequences=96)
    count = SpaceCount()
    yielded = sum(block.size for block in Space(request).blocks(prune=False, count=count))
    assert yielded == count.total
    assert count.pruned == 0


def test_pruning_takes_only_layouts_that_do_not_fit(request_of):
    request = request_of("llama-70b", accelerator_count=32, micro_batch=(1, 4), cp=(1,), precision=("bf16", "fp8"))
    count = SpaceCount()
    kept = {b.plans.layout(row) for b in Space(request).blocks(count=count) for row in range(b.size)}
    assert count.pruned > 0
    for block in Space(request).blocks(prune=False):
        micro_batches = block.global_batch_sequences / (block.plans.dp * block.plans.micro_batch)
        fits = plan_fits(memory_of(request, block.plans, micro_batch_count=micro_batches))
        assert all(block.plans.layout(int(row)) in kept for row in np.flatnonzero(fits))


def test_gpipe_takes_the_time_of_1f1b_and_never_less_memory(request_of):
    """The rule by which gpipe is left out of a space."""
    request = request_of("llama-8b", recompute=("none",), precision=("bf16",))
    for block in Space(request).blocks(prune=False):
        one = block.take(np.flatnonzero((block.plans.pp > 1) & (block.plans.vpp == 1) & (block.plans.schedule == 0)))
        if not one.size:
            continue
        layouts = [one.plans.layout(row) for row in range(one.size)]
        gpipe = PlanInput.of(
            [Layout(**{n: getattr(a, n) for n in a.__slots__} | {"schedule": "gpipe"}) for a in layouts]
        )
        workload = one.workload(request.sequence_length)
        first = evaluate(request.model_input, request.system, request.software, one.plans, workload)
        second = evaluate(request.model_input, request.system, request.software, gpipe, workload)
        assert np.allclose(first.step_time_s, second.step_time_s, rtol=1e-12)
        assert np.all(second.memory.device_bytes >= first.memory.device_bytes * (1 - 1e-12))


def test_layers_divide_alone_or_with_embedding_and_output():
    assert stages_divide(126, 16)
    assert stages_divide(126, 126)
    assert not stages_divide(126, 10)


def test_accelerators_that_do_not_divide_are_left_over(request_of):
    request = request_of(accelerator_count=100, global_batch_sequences=96, tp=(8,), pp=(1,), cp=(1,))
    assert {layout.dp for layout in layouts_of(request)} == {12}


def test_batch_slack_lets_every_accelerator_work(request_of):
    request = request_of(accelerator_count=104, global_batch_sequences=256, tp=(8,), pp=(1,), cp=(1,), batch_slack=0.05)
    found = {(layout.dp, layout.accelerator_count) for layout in layouts_of(request)}
    assert (13, 104) in found
    for block in Space(request).blocks():
        assert np.all(np.abs(block.global_batch_sequences / 256 - 1) <= 0.05)
        assert np.all(np.mod(block.global_batch_sequences, block.plans.dp * block.plans.micro_batch) == 0)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"tp": (3,)}, ["options.tp: found 3", "32 heads", "Nearest: 2"]),
        ({"pp": (99,)}, ["options.pp: found 99", "34 stages"]),
        ({"ep": (2,)}, ["options.ep: found 2", "no experts"]),
        ({"recompute": ("ful",)}, ["options.recompute", "Did you mean 'full'?"]),
        ({"schedule": ()}, ["options.schedule", "one value or more"]),
        ({"batch_slack": 0.9}, ["batch_slack", "below 0.5"]),
        ({"cp": (3,)}, ["options.cp: found 3", "4096 tokens"]),
        ({"micro_batch": (0,)}, ["options.micro_batch: found 0", "256"]),
    ],
)
def test_a_wrong_value_says_its_rule_and_the_nearest_value(request_of, options, parts):
    with pytest.raises(RequestError) as error:
        Space(request_of(**options))
    for part in parts:
        assert part in str(error.value)


def test_all_wrong_values_are_listed_at_once(request_of):
    with pytest.raises(RequestError) as error:
        Space(request_of(tp=(3, 5), pp=(99,), precision=("fp9",)))
    assert len(error.value.problems) == 4


@pytest.mark.parametrize("field", ["accelerator_count", "sequence_length", "global_batch_sequences"])
def test_a_request_needs_positive_whole_numbers(request_of, field):
    with pytest.raises(RequestError, match=f"{field}: found 0"):
        Space(request_of(**{field: 0}))
