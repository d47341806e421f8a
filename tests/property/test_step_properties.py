"""What never happens, whatever the layout: a faster machine that is slower, more memory that fits less."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.perf_cases import software, step, system, with_device, with_network, workload

from lakh import catalog
from lakh.perf.inputs import ModelInput, PlanInput
from lakh.perf.step import STEP_PARTS, evaluate
from lakh.spec.layout import PRECISIONS, RECOMPUTES, Layout

powers = st.sampled_from([1, 2, 4, 8])


@st.composite
def layouts(draw: st.DrawFn, *, moe: bool) -> Layout:
    pp = draw(powers)
    schedule = draw(st.sampled_from(["1f1b", "zero-bubble"]))
    return Layout(
        tp=draw(powers),
        cp=draw(st.sampled_from([1, 2])),
        pp=pp,
        vpp=draw(st.sampled_from([1, 2])) if pp > 1 and schedule == "1f1b" else 1,
        dp=draw(st.sampled_from([8, 16, 64])),
        ep=draw(st.sampled_from([1, 8])) if moe else 1,
        micro_batch=draw(st.sampled_from([1, 2])),
        sharding=draw(st.sampled_from(["none", "zero1", "zero2", "zero3"])),
        recompute=draw(st.sampled_from(RECOMPUTES)),  # type: ignore[arg-type]
        schedule=schedule,  # type: ignore[arg-type]
        precision=draw(st.sampled_from(PRECISIONS)),  # type: ignore[arg-type]
    )


cases = st.one_of(
    st.tuples(st.just("llama3-70b"), layouts(moe=False)), st.tuples(st.just("mixtral-8x7b"), layouts(moe=True))
)


@settings(deadline=None, max_examples=60)
@given(case=cases, machine=st.sampled_from(["H100-80GB-SXM", "MTT-S5000", "GB200-NVL72"]), factor=st.floats(1.0, 8.0))
def test_a_faster_machine_is_never_slower(case: tuple[str, Layout], machine: str, factor: float) -> None:
    model, layout = case
    base = system(machine)
    before = step(model, layout, machine=base).step_time_s[0]
    faster = [
        with_device(base, memory_bytes_per_s=factor),
        with_network(base, scale_up_bytes_per_s=float(base.network.scale_up_bytes_per_s) * factor),
        with_network(base, scale_out_bytes_per_s=float(base.network.scale_out_bytes_per_s) * factor),
        with_device(
            base,
            wide_flop_per_s=factor,
            fp8_flop_per_s=factor,
            fp4_flop_per_s=factor,
            int8_flop_per_s=factor,
            fp32_flop_per_s=factor,
        ),
        with_device(base, host_speed=factor),
    ]
    for machine_input in faster:
        assert step(model, layout, machine=machine_input).step_time_s[0] <= before * (1 + 1e-9)


@settings(deadline=None, max_examples=60)
@given(case=cases, factor=st.floats(1.0, 4.0))
def test_more_memory_never_makes_a_layout_infeasible(case: tuple[str, Layout], factor: float) -> None:
    model, layout = case
    small, large = step(model, layout), step(model, layout, machine=with_device(system(), memory_bytes=factor))
    assert small.memory.fits[0] <= large.memory.fits[0]
    assert small.memory.required_bytes[0] == large.memory.required_bytes[0]


@settings(deadline=None, max_examples=30)
@given(rows=st.lists(layouts(moe=True), min_size=2, max_size=12), seed=st.integers(0, 1000))
def test_the_order_of_plans_does_not_matter(rows: list[Layout], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(rows))
    there = step("mixtral-8x7b", rows).step_time_s
    shuffled = step("mixtral-8x7b", [rows[i] for i in order]).step_time_s
    assert np.array_equal(there[order], shuffled)


@settings(deadline=None, max_examples=60)
@given(case=cases)
def test_parts_are_finite_and_never_negative(case: tuple[str, Layout]) -> None:
    table = step(*case)
    for part in STEP_PARTS:
        value = getattr(table, part)[0]
        assert np.isfinite(value), part
        assert value >= 0.0, part
    assert table.mfu[0] < 1.0


@settings(deadline=None, max_examples=40)
@given(case=cases)
def test_more_work_takes_longer(case: tuple[str, Layout]) -> None:
    model, layout = case
    m, p = ModelInput.of(catalog.model(model)), PlanInput.of(layout)
    small = evaluate(m, system(), software(), p, workload(4096, 512)).step_time_s[0]
    assert evaluate(m, system(), software(), p, workload(4096, 1024)).step_time_s[0] > small
    assert evaluate(m, system(), software(), p, workload(8192, 512)).step_time_s[0] > small


@pytest.mark.parametrize("name", ["llama3-8b", "gpt3-175b"])
def test_mfu_never_exceeds_what_the_device_can_reach(name: str) -> None:
    table = step(name, [Layout(tp=t, dp=8, micro_batch=b) for t in (1, 2, 4, 8) for b in (1, 4)])
    assert np.all(table.mfu <= float(system().device.wide_gemm_efficiency) + 0.01)
