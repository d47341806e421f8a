"""Texts that we promise, word for word. Regenerate by hand: print what the test compares, read it, then commit it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakh.planner.emit import emit
from lakh.planner.explain import explain, infeasible
from lakh.planner.search import candidate_of, search
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


def test_an_explanation_reads_as_promised(request_of):
    request = request_of(
        "llama-70b", accelerator_count=100, global_batch_sequences=256, precision=("bf16",), schedule=("1f1b",)
    )
    text = explain(request, search(request)).text + "\n"
    assert text == (GOLDEN / "explain-llama-70b.txt").read_text(encoding="utf-8")


def test_an_infeasible_request_reads_as_promised(request_of):
    request = request_of(
        "llama-70b", pp=(1,), tp=(4,), cp=(1,), recompute=("none",), sharding=("zero1",), precision=("bf16",)
    )
    assert f"{infeasible(request)}\n" == (GOLDEN / "infeasible-llama-70b.txt").read_text(encoding="utf-8")
