"""What does the training framework add? Overlap, fusion, host overhead: real dimensions of the result.

The same layout on the same hardware has been published at half and at full speed with software alone, so a
framework generation is an input of every prediction, as visible as the accelerator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakh.columns import Array, Columns
from lakh.perf.inputs import ModelInput

SELECTIVE_CORE, SELECTIVE_CHEAP, SELECTIVE_PER_OP = range(3)
"""Megatron-LM's --recompute-activations; Megatron-Core's norm and activation modules; torchtitan's per-op policy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SoftwareInput(Columns):
    """One framework generation as numbers that broadcast. Overlaps are the share of a transfer that can hide."""

    flash_attention: Array
    """1 where attention is one fused kernel, 0 where scores go through memory."""
    fused_sinks: Array
    """1 where the fused kernel supports attention sinks; 0 where such models fall back to unfused attention."""
    attention_dropout: Array
    """1 where attention and residual dropout are on (GPT recipes before 2023)."""
    attention_factor: Array
    """Speed of the fused attention kernel against the best one known for the accelerator (1)."""
    elementwise_factor: Array
    """Memory traffic of norms, activations and residuals against perfectly fused passes (1 or more)."""
    cast_factor: Array
    """Traffic of fp8 and fp4 quantisation against perfectly fused casts."""
    dispatch_factor: Array
    """Traffic of MoE permutation, padding and un-permutation against one read and one write each way."""
    tp_overlap: Array
    cp_overlap: Array
    pp_overlap: Array
    dp_overlap: Array
    ep_overlap: Array
    overlap_contention: Array
    """Share of a hidden transfer's time by which it slows the kernels it hides behind."""
    dense_layer_host_s: Array
    """Host time to launch one dense layer, forward and backward together."""
    moe_layer_host_s: Array
    """The same for an MoE layer, synchronisations for token counts included."""
    step_host_s: Array
    """Host time once per step: data, gradient norm, logging."""
    gradient_bytes: Array
    """Bytes per element in which gradients are accumulated and reduced."""
    gradient_copy_bytes: Array
    """Bytes per weight of further copies of the gradients that stay in memory."""
    gather_bytes: Array
    """Bytes per element in which weights are gathered."""
    optimizer_bytes: Array
    """Optimizer state per weight: master copy and two moments (12 in fp32)."""
    dispatch_dedup: Array
    """1 where a token crosses to a scale-up domain once for all its experts there (DeepEP-like), 0 for plain
    all-to-all."""
    token_imbalance: Array
    """Tokens of the busiest expert rank over the mean (1 with forced balance)."""
    launch_blocking: Array
    """1 where every kernel is waited for (CUDA_LAUNCH_BLOCKING=1)."""
    selective_kind: Array
    """What "selective" recomputes: SELECTIVE_CORE (attention core), SELECTIVE_CHEAP (norms and activations),
    SELECTIVE_PER_OP (those and every second matmul)."""
    logit_bytes: Array
    """Bytes per logit that the loss keeps at its peak: 4 where it is fused, 8 to 14 where copies in fp32 are made."""

    def fuses_attention(self, m: ModelInput) -> Array:
        """1 where the model's attention runs as one fused kernel."""
        supported: Array = self.flash_attention * np.where(m.attention_sinks > 0, self.fused_sinks, 1.0)
        return supported
