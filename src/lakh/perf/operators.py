"""How long does one layer take? GEMMs by shape, attention, memory-bound passes and the layer's own collectives.

All times are for one micro-batch on one rank; shapes follow Megatron's division of work: the columns of the first
matrix and the rows of the second are split over tp, tokens over cp (and over tp between the matrices when sequence
parallel is on), experts over ep and, inside one expert, over etp.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lakh.columns import Array
from lakh.fabric.closed_form import CollectiveModel, Group
from lakh.perf.flops import mean_keys
from lakh.perf.inputs import PRECISION_CODE, ModelInput, PlanInput, WorkloadInput
from lakh.perf.software import SELECTIVE_CHEAP, SELECTIVE_CORE, SELECTIVE_PER_OP, SoftwareInput
from lakh.perf.system import DeviceInput

WIDE_BYTES = 2.0
"""Bytes of a bf16 or fp16 element."""

# Bytes moved to quantise one element for a GEMM: read wide, write the row-wise and the column-wise copy; current
# scaling reads once more to find the maximum first; nvfp4 adds the random Hadamard transform of the column copy.
_CAST_BYTES = {"fp8": 4.0, "fp8-cs": 6.0, "fp8-rowwise": 6.0, "mxfp8": 4.2, "nvfp4": 5.2, "int8": 4.0}
_NARROW_BYTES = {"fp8": 1.0, "fp8-cs": 1.0, "fp8-rowwise": 1.0, "mxfp8": 1.03, "nvfp4": 0.56, "int8": 1.0, "fp32": 4.0}

_BACKWARD_ATTENTION_WORK = 2.5
"""A fused backward pass computes five matmuls where the forward pass computes two (arXiv:2205.14135, appendix B)."""


def by_precision(precision: Array, table: dict[str, float], default: float) -> Array:
    """A per-precision constant as a column."""
    result = np.full(np.shape(precision), default)
    for name, value in table.items():
        result = np.where(precision == PRECISION_CODE[name], value, result)
    return result


def alignment_factor(size: Array, cost_per_halving: float) -> Array:
    """What a matrix dimension costs that is not a multiple of 64 elements: a tile and its loads do not line up.

    The largest power of two that divides the dimension decides, from 64 (nothing) down to 1; each halving costs
    `cost_per_halving`. Makers ask for multiples of 8 to use the matrix units at all and of 64 to use them well.
    """
    whole = np.maximum(np.rint(size), 1.0).astype(np.int64)
    power = np.minimum(whole & -whole, 64)
    factor: Array = 1.0 + cost_per_halving * (6.0 - np.log2(power))
    return factor


_NO_MATRIX_UNIT = 4.0
"""Further cost of a head dimension that is not a multiple of 8: batched products then miss the matrix units."""

_WEIGHT_MISALIGNMENT = 0.05
_HEAD_MISALIGNMENT = 0.30
"""Cost per halving for weight dimensions and for the head dimension of unfused attention. Judgement, checked on runs
that differ only in the number of heads (the bigscience-a100 rows: 96 heads of 150 against 64 of 216)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """Forward and backward time of something [s]; the backward pass includes both gradients."""

    forward: Array
    backward: Array

    def __add__(self, other: Pass) -> Pass:
        return Pass(forward=self.forward + other.forward, backward=self.backward + other.backward)

    def times(self, factor: Array | float) -> Pass:
        return Pass(forward=self.forward * factor, backward=self.backward * factor)

    @property
    def total(self) -> Array:
        return self.forward + self.backward


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerTime:
    """One layer on one rank, one micro-batch [s]."""

    gemm: Pass
    attention: Pass
    elementwise: Pass
    """Norms, activations, residuals, rotary embedding, quantisation, token permutation."""
    recompute_s: Array
    """Forward work done again in the backward pass."""
    exposed_tp_s: Array
    exposed_cp_s: Array
    exposed_ep_s: Array
    hidden_s: Array
    """Transfers of this layer that hide behind its compute."""

    @property
    def compute_s(self) -> Array:
        return self.gemm.total + self.attention.total + self.elementwise.total + self.recompute_s

    @property
    def exposed_s(self) -> Array:
        return self.exposed_tp_s + self.exposed_cp_s + self.exposed_ep_s


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerTimes:
    """The two kinds of layer, and what stands before and after them."""

    dense: LayerTime
    moe: LayerTime
    output_s: Array
    """Output layer and loss, forward and backward, on the last stage."""
    embedding_s: Array


@dataclass(frozen=True, slots=True)
class _Gemm:
    """A GEMM timer for one precision: time of a product and of its two gradients."""

    device: DeviceInput
    rate_flop_per_s: Array
    half_size: Array
    narrow_bytes: Array
    gradient_bytes: Array
    memory_bytes_per_s: Array

    def __call__(self, m: Array, n: Array, k: Array, count: Array | float = 1.0) -> Pass:
        """`count` products (m x k) (k x n), launched as one kernel where there are several.

        Time is the larger of arithmetic and memory traffic, plus the gap to the next kernel. Each dimension d
        costs a factor (1 + half_size/d): tiles at the edge, waves that do not fill the device, and the ramp of
        the main loop. The weight gradient is accumulated in memory, read and written once.
        """
        half = self.half_size
        shape = (1.0 + half / m) * (1.0 + half / n) * (1.0 + half / k)
        shape = shape * alignment_factor(n, _WEIGHT_MISALIGNMENT) * alignment_factor(k, _WEIGHT_MISALIGNMENT)
        arithmetic = count * 2.0 * m * n * k / self.rate_flop_per_s * shape
        gap = self.device.kernel_gap_s
        bandwidth, narrow = self.memory_bytes_per_s, self.narrow_bytes
        forward = count * (narrow * (m * k + k * n) + WIDE_BYTES * m * n) / bandwidth
        data = count * (narrow * (m * n + k * n) + WIDE_BYTES * m * k) / bandwidth
        weight = count * (narrow * (m * n + m * k) + 2.0 * self.gradient_bytes * k * n) / bandwidth
        return Pass(
            forward=np.maximum(arithmetic, forward) + gap,
            backward=np.maximum(arithmetic, data) + np.maximum(arithmetic, weight) + 2.0 * gap,
        )


def hide(transfer_s: Array, overlap: Array, behind_s: Array, contention: Array) -> tuple[Array, Array]:
    """What stays visible of a transfer that may hide behind work, and what hides.

    At most `overlap` of it, and no more than the work lasts, hides; what hides slows the work by `contention` of
    its own time, since the transfer takes memory bandwidth and cores from it. Work hides one transfer at a time:
    pass on only what earlier transfers have left of it.
    """
    hidden = np.minimum(transfer_s * overlap, behind_s)
    return transfer_s - hidden * (1.0 - contention), hidden


def layer_times(
    m: ModelInput,
    d: DeviceInput,
    network: CollectiveModel,
    q: SoftwareInput,
    p: PlanInput,
    w: WorkloadInput,
) -> LayerTimes:
    """Times of a dense layer, an MoE layer, the output layer and the embedding for every plan.

    For dense models the MoE layer is computed with one expert of width 0 and is never counted.
    """
    sequence = w.sequence_length
    tokens = p.micro_batch * sequence / p.cp
    h, tp = m.hidden_size, p.tp
    split = np.where(p.sequence_parallel > 0, tp, 1.0)
    bandwidth = d.memory_bytes_per_s * d.memory_efficiency
    peak, rate = d.gemm_flop_per_s(p.precision)
    half = d.gemm_half_size * peak / d.wide_flop_per_s
    narrow = by_precision(p.precision, _NARROW_BYTES, WIDE_BYTES)
    cast = by_precision(p.precision, _CAST_BYTES, 0.0) * q.cast_factor
    gemm = _Gemm(d, rate, half, narrow, q.gradient_bytes, bandwidth)

    heads = m.head_count / tp
    kv_heads = np.maximum(m.kv_head_count / tp, 1.0)
    qk, v = m.qk_head_size, m.v_head_size
    nope = qk - m.qk_rope_size

    # Projections. MLA's down-projections are not split over tp: with sequence parallel each rank does its tokens.
    plain = gemm(tokens, heads * qk + kv_heads * (qk + v), h)
    if np.any(m.is_mla > 0):
        rank = np.maximum(m.q_lora_rank, 1.0)
        q_down = gemm(tokens / split, rank, h)
        q_up = gemm(tokens, heads * qk, np.where(m.q_lora_rank > 0, rank, h))
        kv_rank = np.maximum(m.kv_lora_rank, 1.0)
        kv_down = gemm(tokens / split, kv_rank + m.qk_rope_size, h)
        kv_up = gemm(tokens, heads * (nope + v), kv_rank)
        has_q_down = np.where(m.q_lora_rank > 0, 1.0, 0.0)
        latent = q_down.times(has_q_down) + q_up + kv_down + kv_up
        is_mla = m.is_mla > 0
        up_projection_s = np.where(is_mla, q_up.forward + kv_up.forward, 0.0)
        projections = Pass(
            forward=np.where(is_mla, latent.forward, plain.forward),
            backward=np.where(is_mla, latent.backward, plain.backward),
        )
    else:
        projections = plain
        up_projection_s = np.zeros(())
    projections = projections + gemm(tokens, h, heads * v)

    up = m.mlp_matrix_count - 1.0
    dense_gemm = projections + gemm(tokens, up * m.ffn_size / tp, h) + gemm(tokens, h, m.ffn_size / tp)

    attention, score_passes = _attention(m, d, q, p, w, tokens, heads, bandwidth)

    # Memory-bound passes, bytes per token: two norms (2 each) and two residuals (3 each) of width h; rotary on
    # queries and keys; the activation function; masks where dropout is on.
    around = WIDE_BYTES * 10.0 * h / split + q.attention_dropout * 2.0 * (WIDE_BYTES + 1.0) * h / split
    around_back = WIDE_BYTES * 12.0 * h / split + q.attention_dropout * 2.0 * (WIDE_BYTES + 1.0) * h / split
    rotary = WIDE_BYTES * 2.0 * (heads + kv_heads) * qk
    gated = m.mlp_matrix_count - 2.0
    dense_width = m.ffn_size / tp
    activation = WIDE_BYTES * (2.0 + gated)
    activation_back = WIDE_BYTES * (3.0 + 2.0 * gated)
    cast_attention = cast * (h + heads * v)
    cast_attention_back = cast * (heads * qk + kv_heads * (qk + v) + h)
    fused = q.elementwise_factor / bandwidth
    gap = d.kernel_gap_s

    def passes(width: Array, extra: Array | float, extra_back: Array | float) -> Pass:
        cast_mlp = cast * (h + width)
        cast_mlp_back = cast * (up * width + h)
        forward = (around + rotary + activation * width + extra) * fused + (cast_attention + cast_mlp) / bandwidth
        backward = (around_back + rotary + activation_back * width + extra_back) * fused
        backward = backward + (cast_attention_back + cast_mlp_back) / bandwidth
        return Pass(forward=tokens * forward + 8.0 * gap, backward=tokens * backward + 12.0 * gap)

    dense_elementwise = passes(dense_width, 0.0, 0.0) + score_passes

    # Tensor-parallel traffic: gather before and scatter after each of the two blocks; the backward pass gathers
    # the inputs once more for the weight gradients. Without sequence parallel: one all-reduce per block and pass.
    tp_group = Group(size=tp, stride=np.asarray(1.0))
    tp_bytes = tokens * h * WIDE_BYTES
    gather_s = network.all_gather_s(tp_bytes, tp_group)
    reduce_s = np.where(p.sequence_parallel > 0, 2.0 * gather_s, network.all_reduce_s(tp_bytes, tp_group))
    again_s = np.where(p.sequence_parallel > 0, gather_s, 0.0)
    full = np.where(p.recompute == 2.0, 1.0, 0.0)
    selective = np.where(p.recompute == 1.0, 1.0, 0.0)
    block_tp_s = reduce_s * (2.0 + full) + again_s

    # Context-parallel traffic: keys and values of the whole sequence pass every rank; twice that in the backward.
    cp_group = Group(size=p.cp, stride=tp)
    kv_width = np.where(m.is_mla > 0, heads * (qk + v), kv_heads * (qk + v))
    kv_s = network.all_gather_s(p.micro_batch * sequence * kv_width * WIDE_BYTES, cp_group)
    cp_s = kv_s * (3.0 + full)
    exposed_cp_s, hidden_cp_s = hide(cp_s, q.cp_overlap, attention.total, q.overlap_contention)

    def recomputed(gemm_s: Array, elementwise: Pass, width: Array) -> Array:
        whole = gemm_s + attention.forward + elementwise.forward
        passes_s = tokens * (activation * width + 0.4 * around) * fused
        cheap = np.where(q.selective_kind >= SELECTIVE_CHEAP, passes_s + up_projection_s, 0.0)
        again = (q.selective_kind == SELECTIVE_CORE) | (q.fuses_attention(m) < 1.0)
        core = np.where(again, attention.forward + score_passes.forward, 0.0)
        per_op = np.where(q.selective_kind == SELECTIVE_PER_OP, 0.5 * gemm_s, 0.0)
        again_s: Array = full * whole + selective * (cheap + core + per_op)
        return again_s

    def exposed_tp(gemm_s: Array, blocks: Array | float) -> tuple[Array, Array]:
        return hide(block_tp_s * blocks, q.tp_overlap, gemm_s, q.overlap_contention)

    dense_tp_s, dense_hidden_s = exposed_tp(dense_gemm.total, 2.0)
    dense = LayerTime(
        gemm=dense_gemm,
        attention=attention,
        elementwise=dense_elementwise,
        recompute_s=recomputed(dense_gemm.forward, dense_elementwise, dense_width),
        exposed_tp_s=dense_tp_s,
        exposed_cp_s=exposed_cp_s,
        exposed_ep_s=np.zeros(()),
        hidden_s=dense_hidden_s + hidden_cp_s,
    )

    output = gemm(tokens, m.vocabulary_size / tp, h)
    # What the loss keeps of each logit it has written and read, and the logit itself and its gradient.
    loss_bytes = (2.0 * q.logit_bytes + 4.0) * tokens * m.vocabulary_size / tp
    output_s = output.total + loss_bytes / bandwidth + reduce_s + 20.0 * gap
    output_s = output_s * (1.0 + m.mtp_layer_count)
    embedding_s = tokens * h * WIDE_BYTES * 6.0 / bandwidth

    if not np.any(m.moe_layer_count > 0):
        return LayerTimes(dense=dense, moe=dense, output_s=output_s, embedding_s=embedding_s)

    # Experts. A rank routes `routed` token copies out and, balanced, receives as many (times etp, since the ranks
    # of one expert's tensor-parallel group share their tokens).
    share = np.where(p.sequence_parallel > 0, tp, 1.0)
    routed = tokens / share * m.experts_per_token
    received = routed * p.etp * q.token_imbalance
    local_experts = np.maximum(m.expert_count / p.ep, 1.0)
    per_expert = np.maximum(received / local_experts, 1.0)
    expert_width = np.maximum(m.expert_ffn_size / p.etp, 1.0)
    shared_width = m.shared_ffn_size / tp
    has_shared = np.where(m.shared_ffn_size > 0, 1.0, 0.0)
    router = gemm(tokens / share, m.expert_count, h)
    expert_gemm = gemm(per_expert, up * expert_width, h, local_experts) + gemm(
        per_expert, h, expert_width, local_experts
    )
    safe_shared = np.maximum(shared_width, 1.0)
    shared_gemm = (gemm(tokens, up * safe_shared, h) + gemm(tokens, h, safe_shared)).times(has_shared)
    moe_gemm = projections + router + expert_gemm + shared_gemm

    # Permutation before and after the exchange, the same for the way back: one read and one write of width h each.
    permute_bytes = routed * (1.0 + p.etp) * h * WIDE_BYTES * 2.0 * 2.0 * q.dispatch_factor
    expert_passes = received * (activation * expert_width) * fused + received * cast * (h + expert_width) / bandwidth
    expert_passes_back = received * (activation_back * expert_width) * fused
    expert_passes_back = expert_passes_back + received * cast * (up * expert_width + h) / bandwidth
    router_bytes = tokens / share * m.expert_count * 24.0
    moe_passes = passes(shared_width, 0.0, 0.0)
    moe_elementwise = Pass(
        forward=moe_passes.forward + expert_passes + (permute_bytes + router_bytes) / bandwidth + 16.0 * gap,
        backward=moe_passes.backward + expert_passes_back + (permute_bytes + router_bytes) / bandwidth + 20.0 * gap,
    )
    moe_elementwise = moe_elementwise + score_passes

    # Dispatch and combine, forward and backward: four exchanges. A deduplicating dispatcher sends a token once to
    # each scale-up domain that holds one of its experts: g (1 - (1 - 1/g)^k) of k copies for g domains.
    ep_group = Group(size=p.ep, stride=p.etp)
    domains = np.maximum(p.ep * p.etp / network.scale_up_domain_size, 1.0)
    distinct = domains * (1.0 - (1.0 - 1.0 / domains) ** m.experts_per_token)
    copies = np.where((q.dispatch_dedup > 0) & (domains > 1.0), distinct / m.experts_per_token, 1.0)
    exchange_s = network.all_to_all_s(routed * q.token_imbalance * h * WIDE_BYTES * np.minimum(copies, 1.0), ep_group)
    etp_group = Group(size=p.etp, stride=np.asarray(1.0))
    etp_s = network.all_gather_s(received * h * WIDE_BYTES, etp_group)
    ep_s = (exchange_s + etp_s) * (4.0 + 2.0 * full)
    moe_compute = moe_gemm.total + attention.total + moe_elementwise.total
    expert_cheap = received * activation * expert_width * fused
    moe_tp_s, moe_hidden_s = exposed_tp(moe_gemm.total, 1.0 + has_shared)
    left_s = moe_compute - moe_hidden_s - hidden_cp_s
    exposed_ep_s, hidden_ep_s = hide(ep_s, q.ep_overlap, left_s, q.overlap_contention)
    moe = LayerTime(
        gemm=moe_gemm,
        attention=attention,
        elementwise=moe_elementwise,
        recompute_s=recomputed(moe_gemm.forward, moe_elementwise, shared_width) + selective * expert_cheap,
        exposed_tp_s=moe_tp_s,
        exposed_cp_s=exposed_cp_s,
        exposed_ep_s=exposed_ep_s,
        hidden_s=moe_hidden_s + hidden_cp_s + hidden_ep_s,
    )
    return LayerTimes(dense=dense, moe=moe, output_s=output_s, embedding_s=embedding_s)


def _attention(
    m: ModelInput,
    d: DeviceInput,
    q: SoftwareInput,
    p: PlanInput,
    w: WorkloadInput,
    tokens: Array,
    heads: Array,
    bandwidth: Array,
) -> tuple[Pass, Pass]:
    """Core attention of one layer: time of its arithmetic, and of score traffic where it is not fused.

    Fused kernels skip the masked half and keep scores on the chip; narrow heads fill the matrix units less, as
    qk/(qk + 32) against head size 128. Unfused attention computes the whole score matrix as batched GEMMs whose
    inner dimension is the head, and moves each score several times: written, softmax read and written, dropout
    with its mask, read again (arXiv:2205.05198, section 4.1).
    """
    keys_causal, keys_full = mean_keys(m, w.sequence_length)
    qk, v = m.qk_head_size, m.v_head_size
    per_key = 2.0 * tokens * heads * (qk + v)
    head_fill = (qk / (qk + 32.0)) / (128.0 / 160.0)
    fused_rate = d.wide_flop_per_s * d.attention_efficiency * q.attention_factor * np.minimum(head_fill, 1.1)
    fused_s = per_key * keys_causal / fused_rate
    gap = d.kernel_gap_s
    half = d.gemm_half_size
    batched_rate = d.wide_flop_per_s * d.wide_gemm_efficiency / (1.0 + half / qk) / (1.0 + half / w.sequence_length)
    unfused_s = per_key * keys_full / batched_rate * alignment_factor(qk, _HEAD_MISALIGNMENT)
    unfused_s = unfused_s * np.where(np.mod(qk, 8.0) > 0, _NO_MATRIX_UNIT, 1.0)
    flash = q.fuses_attention(m) > 0
    attention = Pass(
        forward=np.where(flash, fused_s, unfused_s) + gap,
        backward=np.where(flash, _BACKWARD_ATTENTION_WORK * fused_s, 2.0 * unfused_s) + gap,
    )
    scores = tokens * heads * keys_full
    moved = WIDE_BYTES * 4.0 + q.attention_dropout * (2.0 * WIDE_BYTES + 1.0)
    moved_back = WIDE_BYTES * 7.0 + q.attention_dropout * (2.0 * WIDE_BYTES + 1.0)
    traffic = Pass(
        forward=np.where(flash, 0.0, scores * moved / bandwidth),
        backward=np.where(flash, 0.0, scores * moved_back / bandwidth),
    )
    return attention, traffic


_LAYER_DIMENSIONS = ("tp", "cp", "ep", "etp", "micro_batch", "precision", "recompute", "sequence_parallel")
"""What a layer's time depends on in a plan: all the rest divides layers, sequences and states, not a layer."""


def shared_layer_times(
    m: ModelInput,
    d: DeviceInput,
    network: CollectiveModel,
    q: SoftwareInput,
    p: PlanInput,
    w: WorkloadInput,
) -> LayerTimes:
    """`layer_times` of a search: plans that differ elsewhere only are computed once.

    Valid for one model, device and software (scalars) and one sequence length; equal to `layer_times`.
    """
    key = np.zeros(len(p), dtype=np.int64)
    span = 1
    for name in _LAYER_DIMENSIONS:
        column = np.asarray(getattr(p, name))
        radix = int(column.max(initial=0.0)) + 1
        key = key * radix + column.astype(np.int64)
        span *= radix
    if span >= 2**63:  # keys would overlap: sizes far beyond any machine
        return layer_times(m, d, network, q, p, w)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    times = layer_times(m, d, network, q, p.take(first), w)
    spread: LayerTimes = _spread(times, inverse)
    return spread


def _spread(value: Any, inverse: NDArray[np.intp]) -> Any:
    """Columns, or dataclasses of columns, with each row put where `inverse` wants it; scalars stay scalars."""
    if is_dataclass(value):
        parts = {field.name: _spread(getattr(value, field.name), inverse) for field in fields(value)}
        return replace(cast(Any, value), **parts)
    column = np.asarray(value)
    return column if column.ndim == 0 else column[inverse]
