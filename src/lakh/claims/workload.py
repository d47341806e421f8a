"""On what work is a claim judged, where it names none? Models, sequences and batches as their makers published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lakh.catalog.model import Experts, Model

TOKENS_PER_ACCELERATOR = 1_024
"""Tokens of one step per accelerator where the batch grows with the cluster: Llama 3 405B's 16.8 million over 16,384
(arXiv:2407.21783, section 3.4). Ten times fewer would starve the pipeline, ten times more no optimizer is known to use
well at 100,000 accelerators."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """One training task."""

    model: Model
    sequence_length: int
    published_batch_sequences: int
    """Sequences per step as published, or asked for."""
    source: str
    tokens: float | None = None
    """Of the whole run, as published; None where it is not known [token]."""

    def published_batch(self, accelerator_count: int) -> int:
        """The published batch, whatever the size."""
        return self.published_batch_sequences

    def grown_batch(self, accelerator_count: int) -> int:
        """The published batch, or more where the cluster is so large that it would be starved."""
        return max(self.published_batch_sequences, self.weak_batch(accelerator_count))

    def weak_batch(self, accelerator_count: int) -> int:
        """The same tokens per accelerator at every size."""
        return max(round(TOKENS_PER_ACCELERATOR * accelerator_count / self.sequence_length), 1)


_PUBLISHED: Mapping[str, tuple[int, int, str]] = MappingProxyType(
    {
        "llama3.1-405b": (8192, 2048, "arXiv:2407.21783, section 3.4: 16 M tokens a step"),
        "llama3-70b": (8192, 2048, "batch of the 405B model; the 70B's is not published"),
        "deepseek-v3": (4096, 15360, "arXiv:2412.19437, section 4.2"),
        "deepseek-v2": (4096, 9216, "arXiv:2405.04434, section 3.1"),
        "gpt4-as-reported": (8192, 7324, "the same analysis: about 60 M tokens a step, sequence length 8,192"),
    }
)

_RUN_TOKENS: Mapping[str, float] = MappingProxyType(
    {"llama3.1-405b": 15.6e12, "llama3-70b": 15.0e12, "deepseek-v3": 14.8e12, "deepseek-v2": 8.1e12}
)
"""arXiv:2407.21783 and its model card, arXiv:2412.19437, arXiv:2405.04434."""

_DEFAULT_TOKENS = 16_777_216
_DEFAULT_SEQUENCE = 4_096


def workload_of(
    model: Model, *, sequence_length: int | None = None, global_batch_sequences: int | None = None
) -> Workload:
    """The published workload of a model; 16.8 million tokens in sequences of 4,096 where none is known."""
    published = _PUBLISHED.get(model.name)
    sequence, batch, source = published or (
        _DEFAULT_SEQUENCE,
        _DEFAULT_TOKENS // _DEFAULT_SEQUENCE,
        "assumed by Lakh: no batch of this model is known to us",
    )
    if sequence_length is not None:
        batch = max(round(batch * sequence / sequence_length), 1)
        source = f"{source}; sequence length as asked"
    if global_batch_sequences is not None:
        batch, source = global_batch_sequences, "as asked"
    return Workload(
        model=model,
        sequence_length=sequence_length or sequence,
        published_batch_sequences=batch,
        source=source,
        tokens=_RUN_TOKENS.get(model.name),
    )


GPT4_AS_REPORTED = Model(
    name="gpt4-as-reported",
    family="gpt",
    layer_count=120,
    hidden_size=10752,
    ffn_size=43008,
    head_count=96,
    kv_head_count=96,
    head_size=112,
    vocabulary_size=100256,
    mlp_matrix_count=2,
    experts=Experts(
        expert_count=16, experts_per_token=2, expert_ffn_size=43008, shared_ffn_size=0, moe_layer_count=120
    ),
    source="an analysis of July 2023 that OpenAI never confirmed, as the press repeats it: 1.8 T parameters, 120 "
    "layers, 16 experts of about 111 B each and two per token, about 55 B in attention",
    note="width and heads are ours: round ones that give 55 B of attention and 111 B per expert over 120 layers",
)
"""What is said of GPT-4. Nothing of it is confirmed; it serves as a known comparison of the right size and kind."""


def claimed_model_name(claim_name: str) -> str:
    """The catalogue model that a claim is judged with unless another is asked for."""
    return {"kuae-mfu-moe-40": "deepseek-v3", "gpt4-mfu-32-36": GPT4_AS_REPORTED.name}.get(claim_name, "llama3.1-405b")


def claimed_cluster_name(claim_name: str) -> str:
    """The cluster that a claim is judged on unless another is asked for; "" where it needs one of its own."""
    return "" if claim_name == "gpt4-mfu-32-36" else "jd-cloud-100k"
