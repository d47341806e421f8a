"""How much work is one token? Model FLOPs in the conventions of the field, and the way from one to another.

MFU is model FLOPs per second over the dense peak. Four conventions are in use; a figure without its convention
can be off by a factor of two, so every result of Lakh names one (causal by default).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from lakh.columns import Array
from lakh.perf.inputs import ModelInput

MfuConvention = Literal["causal", "full-attention", "hfu", "6n"]
"""causal: 6 x active matmul weights + causal attention (half of the score matrix) + output layer, no recompute;
full-attention: the same with the whole score matrix (Megatron-LM, arXiv:2205.05198); hfu: full attention and the
recomputed forward passes counted too; 6n: 6 x all active weights, attention left out."""

MFU_CONVENTIONS: tuple[str, ...] = get_args(MfuConvention)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkPerToken:
    """FLOPs per token of one forward pass, by part [flop]."""

    dense_layer: Array
    """Matmuls of one dense layer, attention scores not included."""
    moe_layer: Array
    attention_full: Array
    """Scores and weighted values of one layer, whole score matrix, window applied."""
    attention_causal: Array
    output_layer: Array


def attention_parameter_count(m: ModelInput) -> Array:
    """Matmul weights of one layer's attention [elements]; see `lakh.catalog.model.Model`."""
    nope = m.qk_head_size - m.qk_rope_size
    plain = m.hidden_size * m.qk_head_size * (m.head_count + 2 * m.kv_head_count) + m.head_count * (
        m.v_head_size * m.hidden_size
    )
    compressed = m.q_lora_rank * (m.hidden_size + m.head_count * m.qk_head_size)
    q = np.where(m.q_lora_rank > 0, compressed, m.hidden_size * m.head_count * m.qk_head_size)
    kv = m.hidden_size * (m.kv_lora_rank + m.qk_rope_size) + m.kv_lora_rank * m.head_count * (nope + m.v_head_size)
    return np.where(m.is_mla > 0, q + kv + m.head_count * m.v_head_size * m.hidden_size, plain)


def work_per_token(m: ModelInput, sequence_length: Array) -> WorkPerToken:
    """Forward FLOPs per token; a multiply and an add count as two.

    Causal attention sees (s + 1)/2, here s/2, keys on average; a window of w sees min(w, s) - min(w, s)^2/(2 s).
    """
    attention = attention_parameter_count(m)
    mlp = m.mlp_matrix_count * m.hidden_size
    dense = 2.0 * (attention + mlp * m.ffn_size)
    routed = m.experts_per_token * m.expert_ffn_size + m.shared_ffn_size
    moe = 2.0 * (attention + mlp * routed + m.hidden_size * m.expert_count)
    per_key = 2.0 * m.head_count * (m.qk_head_size + m.v_head_size)
    keys_causal, keys_full = mean_keys(m, sequence_length)
    return WorkPerToken(
        dense_layer=dense,
        moe_layer=moe,
        attention_full=per_key * keys_full,
        attention_causal=per_key * keys_causal,
        output_layer=2.0 * m.hidden_size * m.vocabulary_size,
    )


def mean_keys(m: ModelInput, sequence_length: Array) -> tuple[Array, Array]:
    """Keys that a query sees, mean over positions and layers: causal, and as the full-attention convention counts."""
    window = np.minimum(m.sliding_window, sequence_length)
    windowed = window - window * window / (2.0 * sequence_length)
    share = m.sliding_window_layer_fraction
    causal = share * windowed + (1.0 - share) * sequence_length / 2.0
    full = share * window + (1.0 - share) * sequence_length
    return causal, full


def model_flop_per_token(m: ModelInput, sequence_length: Array, convention: MfuConvention = "causal") -> Array:
    """Model FLOPs of one token, forward and backward (3 x forward), in a convention [flop].

    "hfu" here is the full-attention count of a run without recomputation; `hardware_flop_factor` adds the rest.
    """
    work = work_per_token(m, sequence_length)
    mtp = m.mtp_layer_count
    moe_layers = m.moe_layer_count + np.where(m.moe_layer_count > 0, mtp, 0.0)
    dense_layers = m.layer_count - m.moe_layer_count + np.where(m.moe_layer_count > 0, 0.0, mtp)
    matmul = dense_layers * work.dense_layer + moe_layers * work.moe_layer + (1.0 + mtp) * work.output_layer
    layers = m.layer_count + mtp
    if convention == "6n":
        # All active weights: the input embedding is a weight too, unless it is the output layer.
        table = 2.0 * m.hidden_size * m.vocabulary_size * (1.0 - m.tied_embeddings)
        return 3.0 * (matmul + table)
    attention = work.attention_causal if convention == "causal" else work.attention_full
    return 3.0 * (matmul + layers * attention)


def hardware_flop_factor(full_recompute: Array) -> Array:
    """What full recomputation multiplies the work by: one more forward pass, 4/3 (arXiv:2104.04473, section 5)."""
    return np.where(full_recompute > 0, 4.0 / 3.0, 1.0)
