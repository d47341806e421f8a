"""What does one training step depend on? The model, the system, the plans and the software, as plain arrays.

Every field is a float array that broadcasts against every other: in a search the model and the system are scalars
and the plans are a column of a hundred thousand layouts; in validation each row has its own model, system and
software. One kernel serves both, and the scalar prediction is a column of length one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from lakh.catalog.model import Model
from lakh.columns import Array, Columns
from lakh.spec.layout import PRECISIONS, RECOMPUTES, SCHEDULES, SHARDINGS, Layout

SHARDING_CODE: Mapping[str, int] = {name: code for code, name in enumerate(SHARDINGS)}
RECOMPUTE_CODE: Mapping[str, int] = {name: code for code, name in enumerate(RECOMPUTES)}
SCHEDULE_CODE: Mapping[str, int] = {name: code for code, name in enumerate(SCHEDULES)}
PRECISION_CODE: Mapping[str, int] = {name: code for code, name in enumerate(PRECISIONS)}

_CODES: Mapping[str, Mapping[str, int]] = {
    "sharding": SHARDING_CODE,
    "recompute": RECOMPUTE_CODE,
    "schedule": SCHEDULE_CODE,
    "precision": PRECISION_CODE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInput(Columns):
    """The numbers of an architecture that a step depends on [elements], and derived weight counts."""

    layer_count: Array
    hidden_size: Array
    ffn_size: Array
    head_count: Array
    kv_head_count: Array
    qk_head_size: Array
    v_head_size: Array
    vocabulary_size: Array
    mlp_matrix_count: Array
    tied_embeddings: Array
    """1 where the output layer shares the embedding table."""
    learned_position_count: Array
    moe_layer_count: Array
    expert_count: Array
    """1 for dense models, so that it divides."""
    experts_per_token: Array
    expert_ffn_size: Array
    shared_ffn_size: Array
    is_mla: Array
    q_lora_rank: Array
    """0 where queries are not compressed."""
    kv_lora_rank: Array
    qk_rope_size: Array
    sliding_window: Array
    """Tokens; infinite where there is no window."""
    sliding_window_layer_fraction: Array
    mtp_layer_count: Array
    attention_sinks: Array
    """1 where heads have learned sinks, which not every fused attention kernel supports."""

    @classmethod
    def of(cls, model: Model, *, mtp_layer_count: int | None = None) -> ModelInput:
        """One model as scalars. MTP layers count as extra MoE (or dense) layers with an output layer of their own."""
        experts, mla = model.experts, model.latent_attention
        values = {
            "layer_count": model.layer_count,
            "hidden_size": model.hidden_size,
            "ffn_size": model.ffn_size,
            "head_count": model.head_count,
            "kv_head_count": model.kv_head_count,
            "qk_head_size": model.qk_head_size,
            "v_head_size": model.v_head_size,
            "vocabulary_size": model.vocabulary_size,
            "mlp_matrix_count": model.mlp_matrix_count,
            "tied_embeddings": float(model.tied_embeddings),
            "learned_position_count": model.learned_position_count,
            "moe_layer_count": model.moe_layer_count,
            "expert_count": experts.expert_count if experts else 1,
            "experts_per_token": experts.experts_per_token if experts else 1,
            "expert_ffn_size": experts.expert_ffn_size if experts else 0,
            "shared_ffn_size": experts.shared_ffn_size if experts else 0,
            "is_mla": float(mla is not None),
            "q_lora_rank": (mla.q_lora_rank or 0) if mla else 0,
            "kv_lora_rank": mla.kv_lora_rank if mla else 0,
            "qk_rope_size": mla.qk_rope_head_size if mla else 0,
            "sliding_window": model.sliding_window if model.sliding_window else np.inf,
            "sliding_window_layer_fraction": model.sliding_window_layer_fraction,
            "attention_sinks": float(model.attention_sinks),
            "mtp_layer_count": model.mtp_layer_count if mtp_layer_count is None else mtp_layer_count,
        }
        return cls(**{name: np.float64(value) for name, value in values.items()})  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanInput(Columns):
    """A column of layouts; closed choices are codes (positions in the tuples of `lakh.spec.layout`)."""

    tp: Array
    cp: Array
    pp: Array
    vpp: Array
    dp: Array
    ep: Array
    etp: Array
    micro_batch: Array
    sharding: Array
    shard_group: Array
    recompute: Array
    schedule: Array
    precision: Array
    sequence_parallel: Array

    def __len__(self) -> int:
        return int(np.size(self.tp))

    @classmethod
    def of(cls, layouts: Layout | Sequence[Layout]) -> PlanInput:
        """One column from layouts, in their order."""
        rows = [layouts] if isinstance(layouts, Layout) else list(layouts)
        columns = {}
        for field in fields(cls):
            code = _CODES.get(field.name)
            values = [getattr(row, field.name) for row in rows]
            columns[field.name] = np.array([float(code[value]) if code else float(value) for value in values])
        return cls(**columns)

    def layout(self, index: int) -> Layout:
        """The layout in row `index`, as people read it."""
        values: dict[str, Any] = {}
        for field in fields(self):
            column = np.asarray(getattr(self, field.name))
            value = float(column if column.ndim == 0 else column[index])
            if field.name in _CODES:
                values[field.name] = list(_CODES[field.name])[int(value)]
            elif field.name == "sequence_parallel":
                values[field.name] = bool(value)
            else:
                values[field.name] = int(value)
        return Layout(**values)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadInput(Columns):
    """What one optimizer step must process."""

    sequence_length: Array
    """Tokens per sequence."""
    global_batch_sequences: Array
    """Sequences per step over the whole job."""

    @classmethod
    def of(cls, *, sequence_length: float, global_batch_sequences: float) -> WorkloadInput:
        return cls(
            sequence_length=np.float64(sequence_length),  # type: ignore[arg-type]
            global_batch_sequences=np.float64(global_batch_sequences),  # type: ignore[arg-type]
        )
