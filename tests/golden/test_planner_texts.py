"""Texts that we promise, word for word. Regenerate by hand: print what the test compares, read it, then commit it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakh.planner.emit import emit
from lakh.planner.explain import Shortfall, compare
from lakh.planner.scale import Bend
from lakh.planner.search import EXPOSED_PARTS, Candidate, candidate_of
from lakh.spec.layout import Layout

GOLDEN = Path(__file__).parent / "planner"

LAUNCHES = {
    "megatron-llama-70b": ("megatron", "llama-70b", Layout(tp=8, pp=4, vpp=5, dp=64, recompute="selective")),
    "megatron-deepseek-v3": (
        "megatron",
        "deepseek-v3",
        Layout(tp=2, pp=16, vpp=2, ep=32, dp=64, precision="fp8", recompute="selective"),
    ),
    "megatron-fsdp-llama-8b": ("megatron", "llama-8b", Layout(dp=64, sharding="zero3", precision="mxfp8")),
    "torchtitan-llama-70b": (
        "torchtitan",
        "llama-70b",
        Layout(tp=8, pp=2, vpp=2, dp=8, sharding="zero3", recompute="full", precision="fp8-rowwise"),
    ),
    "torchtitan-deepseek-v3": (
        "torchtitan",
        "deepseek-v3",
        Layout(tp=8, ep=64, dp=32, sharding="hsdp", shard_group=8, precision="mxfp8", recompute="selective"),
    ),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_are_as_promised(request_of, name):
    framework, model, layout = LAUNCHES[name]
    request = request_of(model, accelerator_count=4096, global_batch_sequences=2048)
    candidate = candidate_of(request, layout)
    launch = emit(framework, request.model, request.software, candidate, sequence_length=4096, train_tokens=1e12)
    assert launch.text == (GOLDEN / f"{name}.sh").read_text(encoding="utf-8")


def candidate(layout: Layout, **parts: float) -> Candidate:
    """A candidate of stated parts: texts must not depend on the step model."""
    names = ("compute_s", "bubble_s", "host_s", "optimizer_s", "jitter_s")
    exposed = {name: parts.get(name, 0.0) for name in EXPOSED_PARTS}
    parts_s = {name: parts.get(name, 0.0) for name in names} | {"exposed_communication_s": sum(exposed.values())}
    return Candidate(
        layout=layout,
        global_batch_sequences=1024,
        accelerator_count=layout.accelerator_count,
        step_time_s=sum(parts_s.values()),
        tokens_per_s=1e6,
        mfu=0.4,
        parts_s=parts_s,
        exposed_s=exposed,
        micro_batch_count=16,
        data_parallel_outermost=False,
        device_bytes=60 * 2.0**30,
        capacity_bytes=79.9 * 2.0**30,
        memory_bytes={},
        activity=0.8,
        accelerator_hours=1.0,
        energy_joule=None,
    )


def test_a_comparison_reads_as_promised():
    winner = candidate(Layout(tp=8, pp=8, vpp=4, dp=16), compute_s=8.0, bubble_s=0.5, exposed_tp_s=0.9, jitter_s=0.1)
    other = candidate(Layout(tp=4, pp=16, vpp=2, dp=16), compute_s=7.9, bubble_s=1.5, exposed_tp_s=0.5, jitter_s=0.1)
    assert compare(winner, other).text == (
        "runner-up: tp4 pp16 vpp2 dp16 zero1 mb1 bf16 is 5.3% slower (+0.5 s): it loses 1 s in pipeline bubble; "
        "it gains 0.4 s in visible tensor-parallel traffic, 0.1 s in compute"
    )


def shortfall_of(remedies: tuple[str, ...], accelerators_needed: int | None) -> str:
    return Shortfall(
        layout=Layout(tp=8, dp=8),
        needed_bytes=96.1 * 2**30,
        capacity_bytes=79.9 * 2**30,
        remedies=remedies,
        accelerators_needed=accelerators_needed,
    ).text


def test_a_shortfall_reads_as_promised():
    needs = "needs 96.1 GiB, 79.9 fit (16.2 GiB short, closest layout: tp8 dp8 zero1 mb1 bf16): "
    assert shortfall_of(("recompute (selective)", "pp >= 8"), None) == needs + "add recompute (selective) or pp >= 8"
    assert shortfall_of((), 256) == needs + "use 256 accelerators or more"
    assert shortfall_of((), None) == needs + "no single change makes it fit"


def test_a_bend_reads_as_promised():
    bend = Bend(
        from_count=8, to_count=100_000, part="exposed_dp_s", from_share=0.012, to_share=0.093, efficiency_change=-0.07
    )
    assert bend.text == (
        "from 8 to 100,000 accelerators visible data-parallel traffic grows from 1.2% to 9.3% of the step "
        "(scaling efficiency -7.0 points)"
    )
