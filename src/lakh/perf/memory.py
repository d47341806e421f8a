"""What must one rank hold? Weights, gradients, optimizer, activations, buffers; what does not fit, by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakh.columns import Array, Mask
from lakh.perf.inputs import PRECISION_CODE, SCHEDULE_CODE, SHARDING_CODE, ModelInput, PlanInput, WorkloadInput
from lakh.perf.parameters import RankParameters
from lakh.perf.software import SELECTIVE_CHEAP, SELECTIVE_PER_OP, SoftwareInput
from lakh.perf.system import DeviceInput

FRAGMENTATION = 0.06
"""Share of the allocated bytes that the allocator holds without being able to use, in the mean. The gap between
allocated and reserved memory in published runs is 1 to 9 % where both are stated (simumax-b200 rows). A run at the
limit frees what it holds before it fails, so this share is reported but does not decide what fits."""

CONTEXT_BYTES = 1.0 * 2**30
"""Driver context, communication buffers and library workspaces of one process. Judgement: the measurements' README
puts what the device reports above what the allocator holds at 1 to 3 GB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryTable:
    """Bytes on the fullest rank, by what they are for; the parts add up to `allocated_bytes`."""

    weights_bytes: Array
    gradients_bytes: Array
    optimizer_bytes: Array
    activations_bytes: Array
    logits_bytes: Array
    buffers_bytes: Array
    """Gathered weights under full sharding, exchange buffers of experts."""
    capacity_bytes: Array

    @property
    def allocated_bytes(self) -> Array:
        """What the framework's allocator reports at its peak."""
        parts = self.weights_bytes + self.gradients_bytes + self.optimizer_bytes
        return parts + self.activations_bytes + self.logits_bytes + self.buffers_bytes

    @property
    def device_bytes(self) -> Array:
        """What the device reports: allocated, fragmentation and the process's own share."""
        return self.allocated_bytes * (1.0 + FRAGMENTATION) + CONTEXT_BYTES

    @property
    def required_bytes(self) -> Array:
        """The least a device must have: allocated bytes and the process's own share."""
        return self.allocated_bytes + CONTEXT_BYTES

    @property
    def fits(self) -> Mask:
        return self.required_bytes <= self.capacity_bytes


def micro_batches_in_flight(p: PlanInput, micro_batch_count: Array) -> Array:
    """Micro-batches whose activations the first stage holds at once, in units of the whole stage.

    1F1B: pp; interleaved: pp + (pp - 1)/vpp (arXiv:2205.05198, section 4.2.3); GPipe: all of them; DualPipe:
    pp + 1 (arXiv:2412.19437, table 2); zero-bubble H1: as 1F1B (arXiv:2401.10241, section 2).
    """
    interleaved = p.pp + np.where(p.vpp > 1, (p.pp - 1.0) / p.vpp, 0.0)
    gpipe = p.schedule == SCHEDULE_CODE["gpipe"]
    dual = p.schedule == SCHEDULE_CODE["dualpipe"]
    held = np.where(gpipe, micro_batch_count, np.where(dual, p.pp + 1.0, interleaved))
    return np.minimum(held, micro_batch_count)


def memory_table(
    m: ModelInput,
    d: DeviceInput,
    q: SoftwareInput,
    p: PlanInput,
    w: WorkloadInput,
    r: RankParameters,
    micro_batch_count: Array,
) -> MemoryTable:
    """Bytes on the fullest rank of the job: the first stage (most micro-batches in flight) or the last (logits).

    Activations are counted tensor by tensor, as what the backward pass needs: inputs of norms and GEMMs, queries,
    keys, values and outputs of attention, inputs of the activation function; with unfused attention the score
    matrices too, 5 bytes per score with dropout (arXiv:2205.05198, section 4.1).
    """
    h, tp = m.hidden_size, p.tp
    wide = 2.0
    code = SHARDING_CODE
    shard = np.where(p.sharding == code["hsdp"], p.shard_group, p.dp * p.cp)
    expert_ranks = np.maximum(p.dp * p.cp * tp / (p.ep * p.etp), 1.0)
    state_sharded = p.sharding >= code["zero1"]
    gradient_sharded = p.sharding >= code["zero2"]
    weight_sharded = p.sharding >= code["zero3"]
    dual = np.where((p.schedule == SCHEDULE_CODE["dualpipe"]) & (p.pp > 1), 2.0, 1.0)

    first = r.stage_dense + r.first_stage_tables + np.where(p.pp <= 1, r.last_stage_tables, 0.0)
    last = r.stage_dense + r.last_stage_tables
    experts = r.stage_experts

    def over(dense: Array, ranks_on: Mask) -> Array:
        dense_share = np.where(ranks_on, dense / shard, dense)
        return dense_share + np.where(ranks_on, experts / np.minimum(shard, expert_ranks), experts)

    fp8 = (p.precision >= PRECISION_CODE["fp8"]) & (p.precision <= PRECISION_CODE["int8"])
    # fp8 runs keep the row-wise and the column-wise copy of a weight, one byte each, in place of a wide one.
    weight_bytes = wide
    full = p.recompute == 2.0
    selective = p.recompute == 1.0

    # Activations of one layer and one micro-batch, bytes per token of this rank.
    tokens = p.micro_batch * w.sequence_length / p.cp
    split = np.where(p.sequence_parallel > 0, tp, 1.0)
    heads, kv_heads = m.head_count / tp, np.maximum(m.kv_head_count / tp, 1.0)
    qk, v = m.qk_head_size, m.v_head_size
    kv_width = np.where(m.is_mla > 0, heads * (qk + v), kv_heads * (qk + v))
    latent = (m.q_lora_rank + m.kv_lora_rank) * 2.0 * np.where(m.is_mla > 0, 1.0, 0.0)
    saved = np.where(fp8, 1.0, wide)
    keep_norms = np.where(selective & (q.selective_kind >= SELECTIVE_CHEAP), 0.0, 1.0)
    # With latent attention the cheap part includes the up-projections of queries, keys and values.
    keep_heads = np.where((m.is_mla > 0) & (keep_norms < 1.0), 0.0, 1.0)
    keep_matmuls = np.where(selective & (q.selective_kind == SELECTIVE_PER_OP), 0.5, 1.0)
    attention = (wide + keep_norms * saved) * h / split + keep_heads * keep_matmuls * wide * (heads * qk + kv_width)
    attention = attention + wide * latent / split + wide * heads * v + 4.0 * heads
    scores = heads * np.minimum(
        w.sequence_length, np.where(np.isinf(m.sliding_window), w.sequence_length, m.sliding_window)
    )
    unfused = (1.0 - q.fuses_attention(m)) * np.where(selective, 0.0, 1.0)
    attention = attention + unfused * scores * (wide + q.attention_dropout * (wide + 1.0))
    masks = q.attention_dropout * 2.0 * h / split
    attention = attention + masks + wide * h / split
    up = m.mlp_matrix_count - 1.0
    keep_activation = saved * keep_norms

    def mlp(width: Array) -> Array:
        kept_bytes: Array = (up * wide * keep_matmuls + keep_activation) * width
        return kept_bytes

    dense_layer = attention + keep_norms * saved * h / split + mlp(m.ffn_size / tp)
    routed = m.experts_per_token * p.etp / split * q.token_imbalance
    expert = routed * (saved * h + mlp(m.expert_ffn_size / p.etp) + wide * h)
    shared = mlp(m.shared_ffn_size / tp)
    moe_layer = attention + keep_norms * saved * h / split + expert + shared + 4.0 * m.expert_count / split

    layers = r.stage_layers
    moe_part = np.where(m.moe_layer_count > 0, r.stage_experts / np.maximum(r.moe_layer_experts, 1.0), 0.0)
    moe_layers = np.minimum(moe_part, layers)
    worst = np.where(moe_layers > 0, np.maximum(moe_layer, dense_layer), dense_layer)
    stage = (layers - moe_layers) * dense_layer + moe_layers * moe_layer
    kept = np.where(full, layers * wide * h / split, stage)
    in_flight = micro_batches_in_flight(p, micro_batch_count)
    working = np.where(full, worst, 0.2 * worst)
    first_activations = tokens * (kept * in_flight + working)
    last_in_flight = np.minimum(np.where(p.vpp > 1, p.pp, 1.0), micro_batch_count)
    last_activations = tokens * (kept * last_in_flight + working)
    logits = tokens * m.vocabulary_size / tp * q.logit_bytes * (1.0 + m.mtp_layer_count)

    def table(dense: Array, activations: Array, logits_bytes: Array) -> MemoryTable:
        gathered = 2.0 * wide * np.where(moe_layers > 0, r.moe_layer_shared + r.moe_layer_experts, r.dense_layer)
        return MemoryTable(
            weights_bytes=dual * weight_bytes * over(dense, weight_sharded),
            gradients_bytes=dual * (q.gradient_bytes + q.gradient_copy_bytes) * over(dense, gradient_sharded),
            optimizer_bytes=q.optimizer_bytes * over(dense, state_sharded),
            activations_bytes=activations,
            logits_bytes=logits_bytes,
            buffers_bytes=np.where(weight_sharded, gathered, 0.0) + np.where(weight_sharded, 2.0 * r.table, 0.0),
            capacity_bytes=d.memory_bytes,
        )

    alone = p.pp <= 1.0
    head = table(first, first_activations, np.where(alone, logits, 0.0))
    tail = table(last, last_activations, logits)
    tail_is_fuller = ~alone & (tail.allocated_bytes > head.allocated_bytes)

    def fuller(at_tail: Array, at_head: Array) -> Array:
        return np.where(tail_is_fuller, at_tail, at_head)

    return MemoryTable(
        weights_bytes=fuller(tail.weights_bytes, head.weights_bytes),
        gradients_bytes=fuller(tail.gradients_bytes, head.gradients_bytes),
        optimizer_bytes=fuller(tail.optimizer_bytes, head.optimizer_bytes),
        activations_bytes=fuller(tail.activations_bytes, head.activations_bytes),
        logits_bytes=fuller(tail.logits_bytes, head.logits_bytes),
        buffers_bytes=fuller(tail.buffers_bytes, head.buffers_bytes),
        capacity_bytes=d.memory_bytes,
    )
