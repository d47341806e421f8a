"""Systems and models that several test folders share. Numbers are round on purpose: no test reads a fact here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from lakh.catalog.model import Experts, LatentAttention, Model
from lakh.evidence import exact
from lakh.fabric.closed_form import SCALE_UP_KINDS, NetworkInput
from lakh.perf.software import SELECTIVE_CHEAP, SoftwareInput
from lakh.perf.system import DeviceInput, SystemInput
from lakh.planner.economics import Economics, PowerModel
from lakh.planner.space import PlanRequest, SearchOptions

# The suite gives the same answer every time; a search for new counterexamples is `pytest --hypothesis-profile=search`.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile("suite")


def _floats(cls: Any, **values: float) -> Any:
    return cls(**{field.name: np.float64(values[field.name]) for field in fields(cls)})


def make_system(*, memory_gib: float = 79.9, scale_out_bytes_per_s: float = 50e9) -> SystemInput:
    """Eight accelerators of 500 TFLOP/s and 1.6 TB/s on a full mesh of 392 GB/s each."""
    device = _floats(
        DeviceInput,
        wide_flop_per_s=500e12,
        fp8_flop_per_s=1000e12,
        fp4_flop_per_s=1000e12,
        int8_flop_per_s=1000e12,
        fp32_flop_per_s=250e12,
        wide_gemm_efficiency=0.8,
        fp8_gemm_efficiency=0.7,
        fp4_gemm_efficiency=0.6,
        gemm_half_size=150,
        attention_efficiency=0.55,
        memory_bytes_per_s=1.6e12,
        memory_efficiency=0.85,
        memory_bytes=memory_gib * 2**30,
        kernel_gap_s=2e-6,
        host_speed=1,
        jitter_scale=0.002,
    )
    network = _floats(
        NetworkInput,
        scale_up_kind=SCALE_UP_KINDS.index("full-mesh"),
        scale_up_domain_size=8,
        scale_up_bytes_per_s=392e9,
        scale_out_bytes_per_s=scale_out_bytes_per_s,
        scale_up_efficiency=0.8,
        scale_out_efficiency=0.85,
        all_to_all_efficiency=0.8,
        scale_up_latency_s=5e-6,
        scale_out_latency_s=12e-6,
        block_size=1024,
        oversubscription=1,
        in_network_efficiency=0,
        in_network_ranks=2,
        all_reduce_efficiency=0.8,
        launch_s=6e-6,
        copy_bytes_per_s=600e9,
        rail_count=8,
        site_size=np.inf,
        long_haul_bytes_per_s=1,
        long_haul_latency_s=0,
    )
    return SystemInput(device=device, network=network)


def make_software() -> SoftwareInput:
    software: SoftwareInput = _floats(
        SoftwareInput,
        flash_attention=1,
        fused_sinks=1,
        attention_dropout=0,
        elementwise_factor=1.3,
        cast_factor=1.2,
        dispatch_factor=1.5,
        tp_overlap=0.3,
        cp_overlap=0.7,
        pp_overlap=0.7,
        dp_overlap=0.8,
        ep_overlap=0.5,
        overlap_contention=0.15,
        dense_layer_host_s=4e-4,
        moe_layer_host_s=1e-3,
        step_host_s=0.02,
        gradient_bytes=4,
        gather_bytes=2,
        optimizer_bytes=12,
        dispatch_dedup=1,
        token_imbalance=1.1,
        launch_blocking=0,
        attention_factor=1,
        gradient_copy_bytes=0,
        selective_kind=SELECTIVE_CHEAP,
        logit_bytes=4,
    )
    return software


MODELS: dict[str, Model] = {
    "deepseek-v3": Model(
        name="DeepSeek-V3",
        family="deepseek",
        layer_count=61,
        hidden_size=7168,
        ffn_size=18432,
        head_count=128,
        kv_head_count=128,
        head_size=128,
        vocabulary_size=129280,
        mlp_matrix_count=3,
        experts=Experts(
            expert_count=256, experts_per_token=8, expert_ffn_size=2048, shared_ffn_size=2048, moe_layer_count=58
        ),
        latent_attention=LatentAttention(
            q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_size=128, qk_rope_head_size=64, v_head_size=128
        ),
        mtp_layer_count=1,
    ),
    "llama-70b": Model(
        name="Llama-3.1-70B",
        family="llama",
        layer_count=80,
        hidden_size=8192,
        ffn_size=28672,
        head_count=64,
        kv_head_count=8,
        head_size=128,
        vocabulary_size=128256,
        mlp_matrix_count=3,
    ),
    "llama-8b": Model(
        name="Llama-3.1-8B",
        family="llama",
        layer_count=32,
        hidden_size=4096,
        ffn_size=14336,
        head_count=32,
        kv_head_count=8,
        head_size=128,
        vocabulary_size=128256,
        mlp_matrix_count=3,
    ),
    "small-moe": Model(
        name="small-moe",
        family="mixtral",
        layer_count=16,
        hidden_size=2048,
        ffn_size=8192,
        head_count=16,
        kv_head_count=4,
        head_size=128,
        vocabulary_size=32000,
        mlp_matrix_count=3,
        experts=Experts(
            expert_count=8, experts_per_token=2, expert_ffn_size=4096, shared_ffn_size=0, moe_layer_count=16
        ),
    ),
}


def make_request(model: str = "llama-8b", **changes: Any) -> PlanRequest:
    """A request for one of MODELS on 64 accelerators; options by name, everything else by field."""
    options = {name: changes.pop(name) for name in list(changes) if name in SearchOptions.__slots__}
    request = PlanRequest(
        model=MODELS[model],
        system=make_system(),
        software=make_software(),
        accelerator_count=64,
        sequence_length=4096,
        global_batch_sequences=256,
        options=SearchOptions(**options),
    )
    return replace(request, **changes)


def make_economics() -> Economics:
    def watt(value: float) -> Any:
        return exact(value, "watt", status="estimate", source="round number for tests")

    power = PowerModel(
        accelerator_idle_watt=watt(150),
        accelerator_max_watt=watt(700),
        host_watt=watt(250),
        pue=exact(1.25, "1", status="estimate", source="round number for tests"),
    )
    price = exact(2.0 / 3600, "usd/second", status="estimate", source="round number for tests")
    return Economics(power=power, price_per_accelerator_s=price, currency="USD")


@pytest.fixture(scope="session")
def request_of() -> Callable[..., PlanRequest]:
    return make_request


@pytest.fixture(scope="session")
def system_of_test() -> Callable[..., SystemInput]:
    return make_system


@pytest.fixture(scope="session")
def economics() -> Economics:
    return make_economics()
