"""Limits in which the answer is known without a search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lakh.planner.scale import scale
from lakh.planner.search import search


def with_device(request, **values):
    device = replace(request.system.device, **{name: np.float64(value) for name, value in values.items()})
    return replace(request, system=replace(request.system, device=device))


def test_one_accelerator_has_no_communication_and_no_bubble(request_of):
    best = search(one(request_of)).best
    assert best.layout.accelerator_count == 1
    assert best.parts_s["exposed_communication_s"] == 0.0
    assert best.parts_s["bubble_s"] == 0.0


def one(request_of):
    request = request_of("llama-8b", accelerator_count=1, precision=("bf16",))
    return with_device(request, memory_bytes=1e13)


def test_with_endless_memory_and_free_links_no_layout_recomputes(request_of):
    request = with_device(request_of("llama-70b", accelerator_count=64, precision=("bf16",)), memory_bytes=1e15)
    assert search(request).best.layout.recompute == "none"


def test_weak_scaling_without_jitter_or_network_limits_is_nearly_flat(request_of):
    """What is left is the gradient traffic, which does not grow with dp beyond (n - 1)/n."""
    request = request_of(
        "llama-8b", accelerator_count=512, global_batch_sequences=4096, tp=(1,), pp=(2,), cp=(1,), vpp=(1,),
        sharding=("zero1",), precision=("bf16",), recompute=("full",), micro_batch=(1,), schedule=("1f1b",),
    )  # fmt: skip
    request = with_device(request, jitter_scale=0.0)
    network = replace(
        request.system.network, scale_out_latency_s=np.float64(0.0), scale_out_bytes_per_s=np.float64(1e14)
    )
    request = replace(request, system=replace(request.system, network=network))
    curve = scale(request, sizes=(16, 64, 256, 512))
    assert [point.scaling_efficiency for point in curve.points] == pytest.approx([1.0] * 4, abs=0.03)


def test_jitter_alone_bends_the_curve_with_the_logarithm_of_the_ranks(request_of):
    """The largest of n exponential deviates grows as ln n."""
    request = request_of(
        "llama-8b", accelerator_count=1024, global_batch_sequences=8192, tp=(8,), pp=(1,), cp=(1,), sharding=("none",),
        precision=("bf16",), recompute=("full",), micro_batch=(1,),
    )  # fmt: skip
    curve = scale(request, sizes=(64, 1024), scaling="weak")
    ratio = []
    for point in curve.points:
        parts = point.candidate.parts_s
        busy = point.candidate.step_time_s - parts["jitter_s"]
        ratio.append(parts["jitter_s"] / busy / np.log(point.accelerator_count))
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-9)
