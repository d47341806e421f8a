"""How long is one optimizer step? Layers, pipeline, data parallel, optimizer and jitter put together; parts add up."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from lakh.columns import Array, Mask
from lakh.fabric.closed_form import ClosedForm, CollectiveModel, Group
from lakh.perf.flops import model_flop_per_token
from lakh.perf.inputs import SCHEDULE_CODE, SHARDING_CODE, ModelInput, PlanInput, WorkloadInput
from lakh.perf.memory import MemoryTable, memory_table
from lakh.perf.operators import LayerTime, LayerTimes, hide, layer_times
from lakh.perf.parameters import RankParameters, rank_parameters
from lakh.perf.software import SoftwareInput
from lakh.perf.system import SystemInput

STEP_PARTS: tuple[str, ...] = (
    "compute_s",
    "exposed_communication_s",
    "bubble_s",
    "host_s",
    "optimizer_s",
    "jitter_s",
)
"""The parts of a step; they add up to `step_time_s` exactly."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTable:
    """One row per plan. `step_time_s` is the sum of STEP_PARTS by construction."""

    compute_s: Array
    """Kernels of the mean stage, recomputation included."""
    exposed_communication_s: Array
    bubble_s: Array
    """Idle time of the pipeline: fill and drain, and waiting for the fullest stage."""
    host_s: Array
    """Time in which the device waits for kernels to be launched, and work of the host once per step."""
    optimizer_s: Array
    jitter_s: Array
    """Waiting for the slowest of all ranks."""
    exposed_tp_s: Array
    exposed_cp_s: Array
    exposed_ep_s: Array
    exposed_pp_s: Array
    exposed_dp_s: Array
    """The five exposed_* parts add up to `exposed_communication_s`."""
    micro_batch_count: Array
    model_flop: Array
    """Model FLOPs of the whole job per step, causal convention."""
    peak_flop_per_s: Array
    """Of one accelerator in the plan's precision."""
    accelerator_count: Array
    memory: MemoryTable
    data_parallel_outermost: Mask
    """True where ranks are ordered tp-cp-ep-pp-dp: a job over several sites whose pipelines stay on one."""
    valid: Mask
    """False where the layout does not divide the model, the batch or the ranks."""

    @property
    def step_time_s(self) -> Array:
        total = self.compute_s + self.exposed_communication_s
        return total + self.bubble_s + self.host_s + self.optimizer_s + self.jitter_s

    @property
    def mfu(self) -> Array:
        """Model FLOPs utilisation, causal convention, 0 to 1."""
        return self.model_flop / (self.step_time_s * self.accelerator_count * self.peak_flop_per_s)


def is_valid(m: ModelInput, p: PlanInput, w: WorkloadInput) -> Mask:
    """Whether a layout divides what it must: heads, experts, layers, sequences and ranks."""
    ranks = p.dp * p.cp * p.tp
    micro_batches = w.global_batch_sequences / (p.dp * p.micro_batch)
    dense = m.moe_layer_count <= 0
    checks = [
        np.mod(m.head_count, p.tp) == 0,
        np.where(p.tp > m.kv_head_count, np.mod(p.tp, m.kv_head_count), np.mod(m.kv_head_count, p.tp)) == 0,
        np.mod(m.expert_count, p.ep) == 0,
        np.where(dense, (p.ep == 1) & (p.etp == 1), True),
        np.mod(ranks, p.ep * p.etp) == 0,
        micro_batches == np.floor(micro_batches),
        micro_batches >= 1.0,
        p.pp * p.vpp <= m.layer_count + m.mtp_layer_count + 2.0,
        np.where(p.vpp > 1, (p.pp > 1) & (np.mod(micro_batches, p.pp) == 0), True),
        np.where(p.sharding == SHARDING_CODE["hsdp"], np.mod(p.dp * p.cp, np.maximum(p.shard_group, 1.0)), 0.0) == 0,
        np.mod(w.sequence_length, np.where(p.cp > 1, 2.0 * p.cp, 1.0)) == 0,
        np.where(p.schedule == SCHEDULE_CODE["dualpipe"], (np.mod(p.pp, 2) == 0) & (p.vpp <= 1), True),
        np.where(p.schedule == SCHEDULE_CODE["zero-bubble"], p.vpp <= 1, True),
    ]
    valid: Mask = np.asarray(True)
    for check in checks:
        valid = valid & check
    return valid


def evaluate(
    m: ModelInput,
    s: SystemInput,
    q: SoftwareInput,
    p: PlanInput,
    w: WorkloadInput,
    *,
    network: CollectiveModel | None = None,
    layers: LayerTimes | None = None,
) -> StepTable:
    """Time and memory of one step for every plan: the one function behind `predict`, `plan`, `scale`, `validate`.

    Args:
        m, s, q, p, w: columns that broadcast against each other
        network: how collectives are timed; the closed forms over `s.network` unless given
        layers: `layer_times` of these very plans, where a search has them already (`shared_layer_times`)

    The step is m micro-batches through the fullest stage, the pipeline's fill and drain, data-parallel traffic
    that does not hide, the optimizer, and waiting for the slowest rank.
    """
    net = ClosedForm(s.network) if network is None else network
    if layers is None:
        layers = layer_times(m, s.device, net, q, p, w)
    r = rank_parameters(m, p)
    count = w.global_batch_sequences / (p.dp * p.micro_batch)

    moe_layers = np.where(m.moe_layer_count > 0, m.moe_layer_count + m.mtp_layer_count, 0.0)
    dense_layers = m.layer_count + m.mtp_layer_count - moe_layers
    per_stage = (dense_layers / p.pp, moe_layers / p.pp)

    speed = s.device.host_speed / np.where(m.is_mla > 0, _LATENT_ATTENTION_LAUNCHES, 1.0)
    fsdp = _fully_sharded_s(layers, net, q, p, r)
    host = (
        _host_wait_s(layers.dense, fsdp[0], q.dense_layer_host_s / speed, q, p),
        _host_wait_s(layers.moe, fsdp[1], q.moe_layer_host_s / speed, q, p),
    )

    def over_layers(dense: Array, moe: Array) -> Array:
        return per_stage[0] * dense + per_stage[1] * moe

    ends_s = (layers.output_s + layers.embedding_s) / p.pp
    compute_s = over_layers(layers.dense.compute_s, layers.moe.compute_s) + ends_s
    tp_s = over_layers(layers.dense.exposed_tp_s, layers.moe.exposed_tp_s)
    cp_s = over_layers(layers.dense.exposed_cp_s, layers.moe.exposed_cp_s)
    ep_s = over_layers(layers.dense.exposed_ep_s, layers.moe.exposed_ep_s)
    sharded_s = over_layers(fsdp[0], fsdp[1])
    host_s = over_layers(host[0], host[1])
    ranks = p.tp * p.cp * p.pp * p.dp
    order, data_last = _rank_order(m, net, q, p, w, r, count, ranks > s.network.site_size)
    send_s = _pipeline_send_s(m, net, q, p, w, order)
    micro_s = compute_s + tp_s + cp_s + ep_s + sharded_s + host_s + send_s

    layer_s = np.where(
        moe_layers > 0,
        layers.moe.compute_s + layers.moe.exposed_s + host[1] + fsdp[1],
        layers.dense.compute_s + layers.dense.exposed_s + host[0] + fsdp[0],
    )
    fullest_s = _fullest_stage_s(m, p, r, micro_s, layer_s, layers)
    bubble_s = _bubble_s(p, fullest_s, count, layers) + count * (fullest_s - micro_s)

    dp_s = _data_parallel_s(net, q, p, r, order, count, fullest_s / 3.0, fullest_s * 2.0 / 3.0)
    optimizer_s = _optimizer_s(s, q, p, r)
    exposed = {"tp": count * tp_s, "cp": count * cp_s, "ep": count * ep_s}
    exposed["pp"] = count * send_s
    exposed["dp"] = count * sharded_s + dp_s
    communication_s = exposed["tp"] + exposed["cp"] + exposed["ep"] + exposed["pp"] + exposed["dp"]
    total_host_s = count * host_s + q.step_host_s / s.device.host_speed
    busy_s = count * compute_s + communication_s + bubble_s + total_host_s + optimizer_s
    # Noise of one rank has an exponential tail (interference, retransmissions, clock changes): the mean of the largest
    # of n such delays is near ln n times the scale. Normal noise would grow as sqrt(2 ln n) only, and the published
    # scaling series grow faster than that (ratio error 1.4 % against 0.9 %).
    jitter_s = busy_s * s.device.jitter_scale * np.log(np.maximum(ranks, 1.0))

    peak, _ = s.device.gemm_flop_per_s(p.precision)
    tokens = w.global_batch_sequences * w.sequence_length
    shape = np.shape(busy_s)

    def column(value: Array) -> Array:
        return np.broadcast_to(np.asarray(value, dtype=np.float64), shape)

    return StepTable(
        compute_s=column(count * compute_s),
        exposed_communication_s=column(communication_s),
        bubble_s=column(bubble_s),
        host_s=column(total_host_s),
        optimizer_s=column(optimizer_s),
        jitter_s=column(jitter_s),
        exposed_tp_s=column(exposed["tp"]),
        exposed_cp_s=column(exposed["cp"]),
        exposed_ep_s=column(exposed["ep"]),
        exposed_pp_s=column(exposed["pp"]),
        exposed_dp_s=column(exposed["dp"]),
        micro_batch_count=column(count),
        model_flop=column(tokens * model_flop_per_token(m, w.sequence_length)),
        peak_flop_per_s=column(peak),
        accelerator_count=column(ranks),
        memory=_broadcast(memory_table(m, s.device, q, p, w, r, count), shape),
        data_parallel_outermost=np.broadcast_to(data_last, shape),
        valid=np.broadcast_to(is_valid(m, p, w), shape),
    )


def _broadcast(table: MemoryTable, shape: tuple[int, ...]) -> MemoryTable:
    columns = {f.name: np.broadcast_to(np.asarray(getattr(table, f.name), float), shape) for f in fields(table)}
    return MemoryTable(**columns)


_LATENT_ATTENTION_LAUNCHES = 1.5
"""Kernels of a layer with latent attention over those of one with grouped queries: five projections and two more
norms in place of two projections."""

_HOST_SHARPNESS = 4.0
"""How sharply a layer turns from device-bound to host-bound: launches of many short kernels are late even where the
mean is not, so the two times join as (a^4 + b^4)^(1/4) rather than as their maximum."""


def _host_wait_s(layer: LayerTime, sharded_s: Array, host_s: Array, q: SoftwareInput, p: PlanInput) -> Array:
    """What the device waits for launches of one layer, forward and backward, per micro-batch.

    Launches run ahead of the device, so only a host slower than the device is seen; with launch blocking nothing
    runs ahead and all of it is seen. Full recomputation launches the forward pass once more.
    """
    launches_s = host_s * np.where(p.recompute == 2.0, 4.0 / 3.0, 1.0)
    device_s = layer.compute_s + layer.exposed_s + sharded_s
    joined = (device_s**_HOST_SHARPNESS + launches_s**_HOST_SHARPNESS) ** (1.0 / _HOST_SHARPNESS)
    return np.where(q.launch_blocking > 0, launches_s, joined - device_s)


def _fully_sharded_s(
    layers: LayerTimes, net: CollectiveModel, q: SoftwareInput, p: PlanInput, r: RankParameters
) -> tuple[Array, Array]:
    """Visible traffic of one layer under full sharding, per micro-batch: gather, gather again, scatter gradients.

    Each hides behind the compute of a neighbouring layer.
    """
    sharded = p.sharding >= SHARDING_CODE["zero3"]
    if not np.any(sharded):
        zero = np.zeros(())
        return zero, zero
    size = np.where(p.sharding == SHARDING_CODE["hsdp"], p.shard_group, p.dp * p.cp)
    group = Group(size=np.maximum(size, 1.0), stride=p.tp)
    expert_ranks = np.maximum(p.dp * p.cp * p.tp / (p.ep * p.etp), 1.0)
    expert_group = Group(size=np.minimum(expert_ranks, size * p.tp), stride=p.ep * p.etp)

    def traffic_s(dense: Array, experts: Array) -> Array:
        gather = net.all_gather_s(dense * q.gather_bytes, group)
        gather = gather + net.all_gather_s(experts * q.gather_bytes, expert_group)
        scatter = net.reduce_scatter_s(dense * q.gradient_bytes, group)
        return 2.0 * gather + scatter + net.reduce_scatter_s(experts * q.gradient_bytes, expert_group)

    def visible_s(layer: LayerTime, transfer_s: Array) -> Array:
        visible, _ = hide(transfer_s, q.dp_overlap, layer.compute_s - layer.hidden_s, q.overlap_contention)
        return np.where(sharded, visible, 0.0)

    dense = visible_s(layers.dense, traffic_s(r.dense_layer, np.zeros(())))
    moe = visible_s(layers.moe, traffic_s(r.moe_layer_shared, r.moe_layer_experts))
    return dense, moe


@dataclass(frozen=True, slots=True)
class _RankOrder:
    """Where neighbours of a pipeline and of a data-parallel group lie, in ranks."""

    pipeline_stride: Array
    data_stride: Array
    expert_data_stride: Array


def _orders(p: PlanInput) -> tuple[_RankOrder, _RankOrder]:
    """The two orders of ranks that launchers offer: pipeline outermost, and data parallel outermost.

    The first keeps data-parallel groups close and is Megatron's default (tp-cp-ep-dp-pp); the second
    (tp-cp-ep-pp-dp, --use-tp-pp-dp-mapping) keeps pipelines close.
    """
    pipeline_last = _RankOrder(p.tp * p.cp * p.dp, p.tp, p.ep * p.etp)
    data_last = _RankOrder(p.tp * p.cp, p.tp * p.pp, p.ep * p.etp * p.pp)
    return pipeline_last, data_last


def _rank_order(
    m: ModelInput,
    net: CollectiveModel,
    q: SoftwareInput,
    p: PlanInput,
    w: WorkloadInput,
    r: RankParameters,
    count: Array,
    across: Mask,
) -> tuple[_RankOrder, Mask]:
    """The order of ranks of each plan: the default one, but the cheaper of the two for jobs that span sites.

    A pipeline that crosses from site to site sends every micro-batch over the long haul; data parallel crosses once
    per step. Which is cheaper depends on the batch.
    """
    default, other = _orders(p)
    if not np.any(across):
        return default, across
    cost = []
    for order in (default, other):
        send_s = _pipeline_send_s(m, net, q, p, w, order)
        scatter_s, gather_s, _ = _data_parallel_transfers_s(net, q, p, r, order)
        cost.append(send_s * (count + p.pp - 1.0) + scatter_s + gather_s)
    data_last = across & (cost[1] < cost[0])

    order = _RankOrder(
        np.where(data_last, other.pipeline_stride, default.pipeline_stride),
        np.where(data_last, other.data_stride, default.data_stride),
        np.where(data_last, other.expert_data_stride, default.expert_data_stride),
    )
    return order, data_last


def _pipeline_send_s(
    m: ModelInput, net: CollectiveModel, q: SoftwareInput, p: PlanInput, w: WorkloadInput, order: _RankOrder
) -> Array:
    """Visible sends of one micro-batch on one stage: activations on, gradients back, once per model chunk."""
    size = p.micro_batch * w.sequence_length / p.cp * m.hidden_size * 2.0 / p.tp
    once_s = net.send_s(size, order.pipeline_stride, p.pp)
    visible = np.where(p.vpp > 1, 1.0 - q.pp_overlap, 1.0)
    return np.where(p.pp > 1, 2.0 * p.vpp * once_s * visible, 0.0)


def _fullest_stage_s(
    m: ModelInput, p: PlanInput, r: RankParameters, mean_s: Array, layer_s: Array, layers: LayerTimes
) -> Array:
    """Time of the stage that sets the pace, per micro-batch.

    Even division: every stage has its share of layers and the last one the output layer on top. Recipes that count
    embedding and output as a layer each give the last stage one layer less. Otherwise the split is taken as
    balanced to one layer.
    """
    total = m.layer_count + m.mtp_layer_count
    slots = p.pp * p.vpp
    even = np.mod(total, slots) == 0
    ends_s = (layers.output_s + layers.embedding_s) / p.pp
    middle_s = mean_s - ends_s
    last_even_s = middle_s + layers.output_s
    with_ends = np.mod(total + 2.0, slots) == 0
    scale = r.stage_layers * p.pp / total
    ends_fullest_s = np.maximum(middle_s * scale, middle_s * scale - layer_s + layers.output_s)
    rounded_s = np.maximum(middle_s * scale, mean_s)
    fullest_s = np.where(even, last_even_s, np.where(with_ends, ends_fullest_s, rounded_s))
    return np.where(p.pp > 1, np.maximum(fullest_s, mean_s), mean_s)


def _bubble_s(p: PlanInput, stage_s: Array, count: Array, layers: LayerTimes) -> Array:
    """Fill and drain of the pipeline.

    1F1B and GPipe: (p - 1) stages of forward and backward; interleaved: 1/v of it (arXiv:2104.04473, section 2.2).
    Zero-bubble H1: the weight gradients, a third of the work, fill two thirds of it (arXiv:2401.10241, table 1).
    DualPipe: (p/2 - 1)(F&B + B - 3 W), with F = B_input = W a third each: (p/2 - 1) * 2/3 (arXiv:2412.19437,
    table 2).
    """
    ordinary = (p.pp - 1.0) / p.vpp
    zero = (p.pp - 1.0) / 3.0
    dual = np.maximum(p.pp / 2.0 - 1.0, 0.0) * 2.0 / 3.0
    stages = np.select(
        [p.schedule == SCHEDULE_CODE["zero-bubble"], p.schedule == SCHEDULE_CODE["dualpipe"]], [zero, dual], ordinary
    )
    return stages * stage_s


def _data_parallel_transfers_s(
    net: CollectiveModel, q: SoftwareInput, p: PlanInput, r: RankParameters, order: _RankOrder
) -> tuple[Array, Array, Array]:
    """Transfers of one step over the data-parallel groups: gradients scattered, weights gathered, gradients reduced."""
    tables = np.where(p.pp > 1, r.table, r.first_stage_tables + r.last_stage_tables)
    dense = r.stage_dense + tables
    group = Group(size=p.dp * p.cp, stride=order.data_stride, concurrent=p.tp * p.pp)
    expert_ranks = np.maximum(p.dp * p.cp * p.tp / (p.ep * p.etp), 1.0)
    expert_group = Group(size=expert_ranks, stride=order.expert_data_stride, concurrent=p.ep * p.etp * p.pp)
    scatter_s = net.reduce_scatter_s(dense * q.gradient_bytes, group)
    scatter_s = scatter_s + net.reduce_scatter_s(r.stage_experts * q.gradient_bytes, expert_group)
    gather_s = net.all_gather_s(dense * q.gather_bytes, group)
    gather_s = gather_s + net.all_gather_s(r.stage_experts * q.gather_bytes, expert_group)
    reduce_s = net.all_reduce_s(dense * q.gradient_bytes, group)
    reduce_s = reduce_s + net.all_reduce_s(r.stage_experts * q.gradient_bytes, expert_group)
    return scatter_s, gather_s, reduce_s


def _data_parallel_s(
    net: CollectiveModel,
    q: SoftwareInput,
    p: PlanInput,
    r: RankParameters,
    order: _RankOrder,
    count: Array,
    forward_s: Array,
    backward_s: Array,
) -> Array:
    """Visible data-parallel traffic once per step: gradients reduced, weights gathered, replicas synchronised.

    It hides behind the last micro-batch's backward and the next step's first forward; with interleaving behind
    those of pp micro-batches of the chunks that still run.
    """
    code = SHARDING_CODE
    chunks = 1.0 + p.pp * (p.vpp - 1.0) / p.vpp

    def visible_s(transfer_s: Array, window_s: Array) -> Array:
        visible, _ = hide(transfer_s, q.dp_overlap, window_s * chunks, q.overlap_contention)
        return visible

    scatter_s, gather_s, reduce_s = _data_parallel_transfers_s(net, q, p, r, order)
    replicated = visible_s(reduce_s, backward_s)
    zero = visible_s(scatter_s, backward_s) + visible_s(gather_s, forward_s)
    # Sharded gradients cannot wait for the last micro-batch: each one's are scattered behind its own backward.
    each_s, _ = hide(scatter_s, q.dp_overlap, backward_s, q.overlap_contention)
    zero2 = count * each_s + visible_s(gather_s, forward_s)
    tables = np.where(p.pp > 1, r.table, r.first_stage_tables + r.last_stage_tables)
    share = np.maximum(p.shard_group, 1.0)
    replicas = np.maximum(p.dp * p.cp / share, 1.0)
    outer = Group(size=replicas, stride=order.data_stride * share, concurrent=p.tp * share * p.pp)
    shard_bytes = (r.stage_dense + tables + r.stage_experts) * q.gradient_bytes / share
    hybrid = visible_s(net.all_reduce_s(shard_bytes, outer), backward_s)
    return np.select(
        [
            p.sharding == code["none"],
            p.sharding == code["zero2"],
            p.sharding == code["zero3"],
            p.sharding == code["hsdp"],
        ],
        [replicated, zero2, np.zeros(()), hybrid],
        zero,
    )


def _optimizer_s(s: SystemInput, q: SoftwareInput, p: PlanInput, r: RankParameters) -> Array:
    """Adam reads and writes its state and the master weights, reads gradients, writes weights: memory-bound."""
    tables = np.where(p.pp > 1, r.table, r.first_stage_tables + r.last_stage_tables)
    sharded = p.sharding >= SHARDING_CODE["zero1"]
    group = np.where(p.sharding == SHARDING_CODE["hsdp"], p.shard_group, p.dp * p.cp)
    expert_ranks = np.maximum(p.dp * p.cp * p.tp / (p.ep * p.etp), 1.0)
    dense = (r.stage_dense + tables) / np.where(sharded, group, 1.0)
    experts = r.stage_experts / np.where(sharded, np.minimum(expert_ranks, group * p.tp), 1.0)
    touched = 2.0 * q.optimizer_bytes + 2.0 * q.gradient_bytes + 2.0
    return (dense + experts) * touched / (s.device.memory_bytes_per_s * s.device.memory_efficiency)
