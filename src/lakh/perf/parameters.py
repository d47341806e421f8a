"""How many weights does one rank hold? Per stage, per kind, for traffic, optimizer and memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakh.columns import Array
from lakh.perf.flops import attention_parameter_count
from lakh.perf.inputs import ModelInput, PlanInput


@dataclass(frozen=True, kw_only=True, slots=True)
class RankParameters:
    """Weights of one rank of the fullest pipeline stage [elements]."""

    dense_layer: Array
    """Attention, norms and MLP of one dense layer, split over tp."""
    moe_layer_shared: Array
    """What an MoE layer holds beside its routed experts: attention, norms, shared experts, router."""
    moe_layer_experts: Array
    """Routed experts of one MoE layer on this rank."""
    table: Array
    """One vocabulary table, split over tp."""
    stage_layers: Array
    """Layers of the fullest stage."""
    stage_dense: Array
    """All weights of the stage that every data-parallel rank holds."""
    stage_experts: Array
    """Routed experts of the stage on this rank."""
    first_stage_tables: Array
    last_stage_tables: Array

    @property
    def stage_total(self) -> Array:
        return self.stage_dense + self.stage_experts


def stage_layer_count(m: ModelInput, p: PlanInput) -> Array:
    """Layers of the fullest pipeline stage.

    Where layers do not divide, embedding and output layer take a layer's place each if that makes them divide
    (as recipes for 126-layer Llama do); otherwise the fullest stage holds the rounded-up share.
    """
    layers = m.layer_count + m.mtp_layer_count
    slots = p.pp * p.vpp
    even = np.mod(layers, slots) == 0
    with_ends = np.mod(layers + 2.0, slots) == 0
    return np.where(even, layers / p.pp, np.where(with_ends, (layers + 2.0) / p.pp, np.ceil(layers / p.pp)))


def rank_parameters(m: ModelInput, p: PlanInput) -> RankParameters:
    """Weights per rank. Routed experts are split over ep and etp; everything else over tp."""
    h = m.hidden_size
    attention = attention_parameter_count(m)
    # MLA's down-projections are replicated over tp; their share is small and counted as if split.
    mlp = m.mlp_matrix_count * h
    dense_layer = (attention + mlp * m.ffn_size) / p.tp + 2.0 * h
    shared = (attention + mlp * m.shared_ffn_size) / p.tp + 2.0 * h + h * m.expert_count
    experts = m.expert_count * mlp * m.expert_ffn_size / (p.ep * p.etp)
    layers = stage_layer_count(m, p)
    total_layers = m.layer_count + m.mtp_layer_count
    moe_share = np.where(m.moe_layer_count > 0, m.moe_layer_count + m.mtp_layer_count, 0.0) / total_layers
    # With a pipeline, a stage of nothing but MoE layers is the fullest one; it holds the model's mix on one stage.
    moe_layers = np.where(p.pp > 1, np.where(moe_share > 0.5, layers, np.ceil(layers * moe_share)), layers * moe_share)
    moe_layers = np.where(m.moe_layer_count > 0, moe_layers, 0.0)
    table = m.vocabulary_size * h / p.tp
    positions = m.learned_position_count * h
    alone = p.pp <= 1.0
    last = np.where(alone, np.where(m.tied_embeddings > 0, 0.0, table), table)
    return RankParameters(
        dense_layer=dense_layer,
        moe_layer_shared=np.where(m.moe_layer_count > 0, shared, 0.0),
        moe_layer_experts=np.where(m.moe_layer_count > 0, experts, 0.0),
        table=table,
        stage_layers=layers,
        stage_dense=(layers - moe_layers) * dense_layer + moe_layers * shared,
        stage_experts=moe_layers * experts,
        first_stage_tables=table + positions,
        last_stage_tables=last,
    )
