"""What does the hardware give one training step? Peaks, achievable fractions, memory and the network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakh.columns import Array, Columns
from lakh.fabric.closed_form import NetworkInput
from lakh.perf.inputs import PRECISION_CODE

_FP8 = tuple(PRECISION_CODE[name] for name in ("fp8", "fp8-cs", "fp8-rowwise", "mxfp8"))


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceInput(Columns):
    """One accelerator as numbers that broadcast. Efficiencies are fractions of the peak, 0 to 1."""

    wide_flop_per_s: Array
    """Dense peak of bf16 and fp16 GEMMs."""
    fp8_flop_per_s: Array
    """Dense fp8 peak; equal to the wide peak where the accelerator has no fp8."""
    fp4_flop_per_s: Array
    int8_flop_per_s: Array
    fp32_flop_per_s: Array
    wide_gemm_efficiency: Array
    """Share of the peak that a very large GEMM reaches in training (clocks under load included)."""
    fp8_gemm_efficiency: Array
    fp4_gemm_efficiency: Array
    gemm_half_size: Array
    """A GEMM dimension of this many elements costs a factor of two (tile and wave quantisation) [elements]."""
    attention_efficiency: Array
    """Share of the wide peak that a fused attention kernel reaches at head size 128."""
    memory_bytes_per_s: Array
    memory_efficiency: Array
    memory_bytes: Array
    """What a process can allocate, the driver's own share taken off."""
    kernel_gap_s: Array
    """Idle time of the device between two dependent kernels."""
    host_speed: Array
    """Speed of the host CPU in launching kernels, against a 2023 x86 server (1)."""
    jitter_scale: Array
    """Scale of the exponential delays of one rank, relative to its step time."""

    def gemm_flop_per_s(self, precision: Array) -> tuple[Array, Array]:
        """Peak and achievable rate of GEMMs in a precision (code) [flop/s]."""
        is_fp8 = np.isin(precision, _FP8)
        is_fp4 = precision == PRECISION_CODE["nvfp4"]
        is_int8 = precision == PRECISION_CODE["int8"]
        is_fp32 = precision == PRECISION_CODE["fp32"]
        peak = np.select(
            [is_fp8, is_fp4, is_int8, is_fp32],
            [self.fp8_flop_per_s, self.fp4_flop_per_s, self.int8_flop_per_s, self.fp32_flop_per_s],
            self.wide_flop_per_s,
        )
        efficiency = np.select(
            [is_fp8 | is_int8, is_fp4],
            [self.fp8_gemm_efficiency, self.fp4_gemm_efficiency],
            self.wide_gemm_efficiency,
        )
        return peak, peak * efficiency


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemInput:
    """An accelerator and the network that joins many of it."""

    device: DeviceInput
    network: NetworkInput
