"""The two searches that the speed of the planner is stated for: DeepSeek-V3 and a dense model of 10^12 parameters."""

from __future__ import annotations

import numpy as np

from lakh.catalog import Model
from lakh.catalog import model as catalog_model
from lakh.fabric.closed_form import SCALE_UP_KINDS, NetworkInput
from lakh.perf.software import SELECTIVE_CHEAP, SoftwareInput
from lakh.perf.system import DeviceInput, SystemInput
from lakh.planner import PlanRequest

SEQUENCE_LENGTH = 4096
GLOBAL_BATCH_SEQUENCES = 16_384
ACCELERATOR_COUNT = 100_000

MODELS = {"DeepSeek-V3": "deepseek-v3", "1T dense": "megatron-gpt-1T"}


def model(name: str) -> Model:
    """A model of MODELS from the catalogue."""
    return catalog_model(MODELS[name])


def s5000_like() -> SystemInput:
    """Eight accelerators of 500 TFLOP/s on a full mesh, 50 GB/s each outside: speed does not depend on the numbers."""
    device = {
        "wide_flop_per_s": 500e12,
        "fp8_flop_per_s": 1000e12,
        "fp4_flop_per_s": 1000e12,
        "int8_flop_per_s": 1000e12,
        "fp32_flop_per_s": 250e12,
        "wide_gemm_efficiency": 0.8,
        "fp8_gemm_efficiency": 0.7,
        "fp4_gemm_efficiency": 0.6,
        "gemm_half_size": 150.0,
        "attention_efficiency": 0.55,
        "memory_bytes_per_s": 1.6e12,
        "memory_efficiency": 0.85,
        "memory_bytes": 79.9 * 2**30,
        "kernel_gap_s": 2e-6,
        "host_speed": 1.0,
        "jitter_scale": 0.002,
    }
    network = {
        "scale_up_kind": float(SCALE_UP_KINDS.index("full-mesh")),
        "scale_up_domain_size": 8.0,
        "scale_up_bytes_per_s": 392e9,
        "scale_out_bytes_per_s": 50e9,
        "scale_up_efficiency": 0.8,
        "all_reduce_efficiency": 0.8,
        "in_network_efficiency": 0.0,
        "in_network_ranks": 2.0,
        "scale_out_efficiency": 0.85,
        "all_to_all_efficiency": 0.8,
        "launch_s": 6e-6,
        "scale_up_latency_s": 5e-6,
        "scale_out_latency_s": 12e-6,
        "copy_bytes_per_s": 600e9,
        "rail_count": 8.0,
        "block_size": 1024.0,
        "oversubscription": 1.0,
        "site_size": np.inf,
        "long_haul_bytes_per_s": 1.0,
        "long_haul_latency_s": 0.0,
    }
    return SystemInput(device=DeviceInput(**_columns(device)), network=NetworkInput(**_columns(network)))


def software() -> SoftwareInput:
    """A framework generation of round numbers."""
    values = {
        "flash_attention": 1.0,
        "fused_sinks": 1.0,
        "attention_dropout": 0.0,
        "attention_factor": 1.0,
        "elementwise_factor": 1.3,
        "cast_factor": 1.2,
        "dispatch_factor": 1.5,
        "tp_overlap": 0.3,
        "cp_overlap": 0.7,
        "pp_overlap": 0.7,
        "dp_overlap": 0.8,
        "ep_overlap": 0.5,
        "overlap_contention": 0.15,
        "dense_layer_host_s": 4e-4,
        "moe_layer_host_s": 1e-3,
        "step_host_s": 0.02,
        "gradient_bytes": 4.0,
        "gradient_copy_bytes": 0.0,
        "gather_bytes": 2.0,
        "optimizer_bytes": 12.0,
        "dispatch_dedup": 1.0,
        "token_imbalance": 1.1,
        "launch_blocking": 0.0,
        "selective_kind": float(SELECTIVE_CHEAP),
        "logit_bytes": 4.0,
    }
    return SoftwareInput(**_columns(values))


def _columns(values: dict[str, float]) -> dict[str, np.float64]:
    return {name: np.float64(value) for name, value in values.items()}


def request(name: str, accelerator_count: int = ACCELERATOR_COUNT, batch: int = GLOBAL_BATCH_SEQUENCES) -> PlanRequest:
    """A search of a model of MODELS over its whole space."""
    return PlanRequest(
        model=model(name),
        system=s5000_like(),
        software=software(),
        accelerator_count=accelerator_count,
        sequence_length=SEQUENCE_LENGTH,
        global_batch_sequences=batch,
    )
