"""What is a model? Its architecture: the numbers that decide work, memory and traffic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts:
    """The mixture-of-experts part of a model."""

    expert_count: int
    """Routed experts per MoE layer."""
    experts_per_token: int
    expert_ffn_size: int
    """Inner width of one routed expert."""
    shared_ffn_size: int
    """Inner width of all shared experts together; 0 where there are none."""
    moe_layer_count: int
    """Layers with experts; the other layers are dense."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (MLA), as in DeepSeek-V2 (arXiv:2405.04434, section 2.1)."""

    q_lora_rank: int | None
    """Rank of the query compression; None where queries are not compressed."""
    kv_lora_rank: int
    qk_nope_head_size: int
    qk_rope_head_size: int
    v_head_size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """A transformer decoder. Counts and sizes are in elements."""

    name: str
    family: str
    layer_count: int
    hidden_size: int
    ffn_size: int
    """Inner width of a dense layer's MLP."""
    head_count: int
    kv_head_count: int
    head_size: int
    vocabulary_size: int
    """Rows of the embedding table, padded where the source says so."""
    mlp_matrix_count: int
    """3 for gated MLPs (SwiGLU, GeGLU), 2 for plain ones."""
    tied_embeddings: bool = False
    learned_position_count: int = 0
    """Rows of a learned position table; 0 for rotary, ALiBi or none."""
    experts: Experts | None = None
    latent_attention: LatentAttention | None = None
    sliding_window: int | None = None
    """Tokens each query sees in a windowed layer."""
    sliding_window_layer_fraction: float = 0.0
    """Share of the layers that use the window, 0 to 1."""
    mtp_layer_count: int = 0
    """Multi-token-prediction layers trained with the model (DeepSeek-V3: 1)."""
    qkv_bias: bool = False
    """Query, key and value projections add a bias (Qwen2, GPT)."""
    attention_output_bias: bool = False
    mlp_bias: bool = False
    """Every MLP matrix, each expert's and the router's included, adds a bias (GPT, gpt-oss)."""
    norm_bias: bool = False
    """Norms have a shift beside their scale: LayerNorm, not RMSNorm."""
    attention_sinks: bool = False
    """True where each head has a learned score that takes part in the softmax and no value (gpt-oss)."""
    qk_norm: bool = False
    """Query and key heads are normalised with a learned scale per head dimension (Qwen3)."""
    published_parameter_count: float | None = None
    """As the authors print it; None for cuts and proxies of a published model."""
    published_active_parameter_count: float | None = None
    """As the authors print it; some count the input embeddings and some do not."""
    formulae_apply: bool = True
    """False for hybrid or linear attention, where these columns do not describe the work."""
    source: str = ""
    note: str = ""

    @property
    def moe_layer_count(self) -> int:
        return self.experts.moe_layer_count if self.experts else 0

    @property
    def dense_layer_count(self) -> int:
        return self.layer_count - self.moe_layer_count

    @property
    def is_moe(self) -> bool:
        return self.experts is not None

    @property
    def qk_head_size(self) -> int:
        """Width of one query or key head, where scores are computed."""
        mla = self.latent_attention
        return mla.qk_nope_head_size + mla.qk_rope_head_size if mla else self.head_size

    @property
    def v_head_size(self) -> int:
        return self.latent_attention.v_head_size if self.latent_attention else self.head_size

    @property
    def attention_parameter_count(self) -> int:
        """Matmul weights of one layer's attention: query, key, value and output projections."""
        h, a = self.hidden_size, self.head_count
        mla = self.latent_attention
        if mla is None:
            return h * self.head_size * (a + 2 * self.kv_head_count) + a * self.head_size * h
        q = h * a * self.qk_head_size
        if mla.q_lora_rank is not None:
            q = mla.q_lora_rank * (h + a * self.qk_head_size)
        kv = h * (mla.kv_lora_rank + mla.qk_rope_head_size)
        kv += mla.kv_lora_rank * a * (mla.qk_nope_head_size + mla.v_head_size)
        return q + kv + a * mla.v_head_size * h

    @property
    def dense_mlp_parameter_count(self) -> int:
        """Matmul weights of one dense layer's MLP."""
        return self.mlp_matrix_count * self.hidden_size * self.ffn_size

    @property
    def expert_parameter_count(self) -> int:
        """Matmul weights of one routed expert; 0 for dense models."""
        return self.mlp_matrix_count * self.hidden_size * self.experts.expert_ffn_size if self.experts else 0

    @property
    def shared_expert_parameter_count(self) -> int:
        return self.mlp_matrix_count * self.hidden_size * self.experts.shared_ffn_size if self.experts else 0

    @property
    def router_parameter_count(self) -> int:
        return self.hidden_size * self.experts.expert_count if self.experts else 0

    @property
    def norm_parameter_count(self) -> int:
        """Scales (and shifts) of one layer's norms: two over the hidden size, and those on heads or latents."""
        per_norm = 2 if self.norm_bias else 1
        count = 2 * self.hidden_size * per_norm
        if self.qk_norm:
            count += 2 * self.head_size
        if self.latent_attention:
            count += (self.latent_attention.q_lora_rank or 0) + self.latent_attention.kv_lora_rank
        return count

    @property
    def attention_bias_count(self) -> int:
        """Biases of one layer's attention projections (latent attention has none)."""
        if self.latent_attention:
            return 0
        qkv = self.head_size * (self.head_count + 2 * self.kv_head_count) if self.qkv_bias else 0
        return qkv + (self.hidden_size if self.attention_output_bias else 0)

    def mlp_bias_count(self, ffn_size: int) -> int:
        """Biases of one MLP of that inner width: one per column of each matrix."""
        return (self.mlp_matrix_count - 1) * ffn_size + self.hidden_size if self.mlp_bias else 0

    def layer_parameter_count(self, *, moe: bool) -> int:
        """Weights of one layer, all experts included where `moe`."""
        count = self.attention_parameter_count + self.attention_bias_count + self.norm_parameter_count
        if not moe:
            return count + self.dense_mlp_parameter_count + self.mlp_bias_count(self.ffn_size)
        experts = self.experts
        assert experts is not None
        routed = experts.expert_count * (self.expert_parameter_count + self.mlp_bias_count(experts.expert_ffn_size))
        router = self.router_parameter_count + (experts.expert_count if self.mlp_bias else 0)
        return count + routed + self.shared_expert_parameter_count + router

    @property
    def embedding_parameter_count(self) -> int:
        """One vocabulary table (the output layer is another one unless tied)."""
        return self.vocabulary_size * self.hidden_size

    @property
    def parameter_count(self) -> int:
        """All weights, multi-token-prediction layers not included (as published counts do)."""
        tables = 1 if self.tied_embeddings else 2
        count = tables * self.embedding_parameter_count + self.learned_position_count * self.hidden_size
        count += self.dense_layer_count * self.layer_parameter_count(moe=False)
        if self.moe_layer_count:
            count += self.moe_layer_count * self.layer_parameter_count(moe=True)
        return count + (2 if self.norm_bias else 1) * self.hidden_size

    @property
    def active_parameter_count(self) -> int:
        """Weights that touch one token: routed experts count `experts_per_token` times; no input embedding look-up."""
        if self.experts is None:
            return self.parameter_count
        experts = self.experts
        per_expert = self.expert_parameter_count + self.mlp_bias_count(experts.expert_ffn_size)
        idle = (experts.expert_count - experts.experts_per_token) * per_expert
        count = self.parameter_count - self.moe_layer_count * idle
        return count if self.tied_embeddings else count - self.embedding_parameter_count
