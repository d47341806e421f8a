"""How is a model named? By its catalogue name, or by a Hugging Face config.json, read here into `Model`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lakh.catalog import Experts, LatentAttention, Model, models
from lakh.catalog import model as catalogue_model
from lakh.errors import Problem, SpecError, UnknownNameError, list_names, nearest_hint
from lakh.spec.document import read_text

WHAT = "a Hugging Face config.json"

MOST_COUNT = 10**9
"""Largest size or count in a config.json that is taken for one."""

MOST_LAYERS = 10_000
"""Most layers of a model: a search divides them in every way."""


class _Config:
    """One config: hands out fields, collects what is wrong with them."""

    def __init__(self, values: Mapping[str, Any], where: str, text: str) -> None:
        self.values, self.file, self.lines = values, where, text.splitlines()
        self.problems: list[Problem] = []

    def where(self, field: str) -> str:
        """File, line of the first mention of the field, and the field."""
        found = (number for number, line in enumerate(self.lines, 1) if f'"{field}"' in line)
        line = next(found, None)
        return f"{self.file}:{line}: {field}" if line else f"{self.file}: {field}"

    def refuse(self, field: str, found: object, accepted: str, hint: str = "") -> None:
        self.problems.append(Problem(where=self.where(field), found=found, accepted=accepted, hint=hint))

    def count(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """The first of `names` that is there: some fields were renamed over the years."""
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_COUNT:
                return value
            self.refuse(name, value, f"a whole number from {least} to {MOST_COUNT:,}")
            return least
        if default is None:
            self.refuse(names[0], None, f"a whole number of {least} or more; this field is required")
            return least
        return default

    def optional_count(self, name: str) -> int | None:
        return self.count(name) if self.values.get(name) is not None else None

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.refuse(name, value, "true or false")
            return default
        return value


def _head_size(config: _Config, hidden_size: int, head_count: int) -> int:
    stated = config.optional_count("head_dim")
    if stated is not None:
        return stated
    if hidden_size % head_count:
        config.refuse("num_attention_heads", head_count, f"a divisor of hidden_size {hidden_size}, or head_dim stated")
    return max(hidden_size // head_count, 1)


def _decoder(config: _Config) -> dict[str, Any]:
    """Fields that Llama and everything after it share."""
    hidden_size = config.count("hidden_size")
    head_count = config.count("num_attention_heads")
    kv_head_count = config.count("num_key_value_heads", default=head_count)
    if head_count % kv_head_count:
        config.refuse("num_key_value_heads", kv_head_count, f"a divisor of num_attention_heads {head_count}")
    return {
        "layer_count": config.count("num_hidden_layers"),
        "hidden_size": hidden_size,
        "ffn_size": config.count("intermediate_size"),
        "head_count": head_count,
        "kv_head_count": kv_head_count,
        "head_size": _head_size(config, hidden_size, head_count),
        "vocabulary_size": config.count("vocab_size"),
        "mlp_matrix_count": 3,
        "tied_embeddings": config.flag("tie_word_embeddings", False),
    }


def _window(config: _Config, fraction: float) -> dict[str, Any]:
    window = config.optional_count("sliding_window")
    if window is None or fraction == 0:
        return {}
    return {"sliding_window": window, "sliding_window_layer_fraction": fraction}


def _windowed_share(config: _Config, default: float) -> float:
    types = config.values.get("layer_types")
    if not isinstance(types, list) or not types:
        return default
    windowed = sum(1 for kind in types if kind == "sliding_attention")
    return windowed / len(types)


def _llama(config: _Config) -> dict[str, Any]:
    bias = config.flag("attention_bias", False)
    mlp_bias = config.flag("mlp_bias", False)
    return _decoder(config) | {"qkv_bias": bias, "attention_output_bias": bias, "mlp_bias": mlp_bias}


def _mistral(config: _Config) -> dict[str, Any]:
    return _decoder(config) | _window(config, _windowed_share(config, 1.0))


def _qwen_window(config: _Config, layer_count: int) -> dict[str, Any]:
    if not config.flag("use_sliding_window", False):
        return {}
    full_below = config.count("max_window_layers", default=layer_count, least=0)
    return _window(config, _windowed_share(config, max(layer_count - full_below, 0) / layer_count))


def _qwen2(config: _Config) -> dict[str, Any]:
    fields = _decoder(config)
    return fields | {"qkv_bias": True} | _qwen_window(config, fields["layer_count"])


def _qwen3(config: _Config) -> dict[str, Any]:
    fields = _decoder(config)
    bias = config.flag("attention_bias", False)
    fields |= {"qkv_bias": bias, "attention_output_bias": bias, "qk_norm": True}
    return fields | _qwen_window(config, fields["layer_count"])


def _qwen_experts(config: _Config, layer_count: int, shared_ffn_size: int) -> dict[str, Any]:
    step = config.count("decoder_sparse_step", default=1)
    dense = config.values.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        config.refuse("mlp_only_layers", dense, "a list of layer numbers")
        dense = []
    moe_layers = sum((index + 1) % step == 0 and index not in dense for index in range(layer_count))
    experts = Experts(
        expert_count=config.count("num_experts"),
        experts_per_token=config.count("num_experts_per_tok"),
        expert_ffn_size=config.count("moe_intermediate_size"),
        shared_ffn_size=shared_ffn_size,
        moe_layer_count=moe_layers,
    )
    return {"experts": experts if moe_layers else None}


def _qwen2_moe(config: _Config) -> dict[str, Any]:
    fields = _qwen2(config)
    shared = config.count("shared_expert_intermediate_size", least=0)
    return fields | _qwen_experts(config, fields["layer_count"], shared)


def _qwen3_moe(config: _Config) -> dict[str, Any]:
    fields = _qwen3(config)
    return fields | _qwen_experts(config, fields["layer_count"], 0)


def _mixtral(config: _Config) -> dict[str, Any]:
    fields = _mistral(config)
    experts = Experts(
        expert_count=config.count("num_local_experts"),
        experts_per_token=config.count("num_experts_per_tok"),
        expert_ffn_size=fields["ffn_size"],
        shared_ffn_size=0,
        moe_layer_count=fields["layer_count"],
    )
    return fields | {"experts": experts}


def _deepseek_experts(config: _Config, layer_count: int) -> dict[str, Any]:
    if config.values.get("n_routed_experts") is None:
        return {}
    first_dense = config.count("first_k_dense_replace", default=0, least=0)
    step = config.count("moe_layer_freq", default=1)
    expert_ffn_size = config.count("moe_intermediate_size")
    layers = range(min(layer_count, MOST_LAYERS))
    moe_layers = sum(index >= first_dense and index % step == 0 for index in layers)
    experts = Experts(
        expert_count=config.count("n_routed_experts"),
        experts_per_token=config.count("num_experts_per_tok"),
        expert_ffn_size=expert_ffn_size,
        shared_ffn_size=expert_ffn_size * config.count("n_shared_experts", default=0, least=0),
        moe_layer_count=moe_layers,
    )
    return {"experts": experts if moe_layers else None}


def _deepseek(config: _Config) -> dict[str, Any]:
    fields = _decoder(config)
    latent = LatentAttention(
        q_lora_rank=config.optional_count("q_lora_rank"),
        kv_lora_rank=config.count("kv_lora_rank"),
        qk_nope_head_size=config.count("qk_nope_head_dim"),
        qk_rope_head_size=config.count("qk_rope_head_dim"),
        v_head_size=config.count("v_head_dim"),
    )
    fields |= {"latent_attention": latent, "head_size": latent.v_head_size}
    fields |= _deepseek_experts(config, fields["layer_count"])
    return fields | {"mtp_layer_count": config.count("num_nextn_predict_layers", default=0, least=0)}


def _glm4(config: _Config) -> dict[str, Any]:
    return _decoder(config) | {"qkv_bias": config.flag("attention_bias", False)}


def _glm4_moe(config: _Config) -> dict[str, Any]:
    fields = _glm4(config) | {"qk_norm": config.flag("use_qk_norm", False)}
    fields |= _deepseek_experts(config, fields["layer_count"])
    return fields | {"mtp_layer_count": config.count("num_nextn_predict_layers", default=0, least=0)}


def _gpt_oss(config: _Config) -> dict[str, Any]:
    fields = _decoder(config)
    experts = Experts(
        expert_count=config.count("num_local_experts"),
        experts_per_token=config.count("num_experts_per_tok", "experts_per_token"),
        expert_ffn_size=fields["ffn_size"],
        shared_ffn_size=0,
        moe_layer_count=fields["layer_count"],
    )
    bias = config.flag("attention_bias", True)
    fields |= {
        "qkv_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": True,
        "attention_sinks": True,
        "experts": experts,
    }
    return fields | _window(config, _windowed_share(config, 0.5))


_GPT_BIASES = {"qkv_bias": True, "attention_output_bias": True, "mlp_bias": True, "norm_bias": True}


def _gpt2(config: _Config) -> dict[str, Any]:
    hidden_size, head_count = config.count("n_embd"), config.count("n_head")
    if hidden_size % head_count:
        config.refuse("n_head", head_count, f"a divisor of n_embd {hidden_size}")
    return {
        "layer_count": config.count("n_layer"),
        "hidden_size": hidden_size,
        "ffn_size": config.count("n_inner", default=4 * hidden_size),
        "head_count": head_count,
        "kv_head_count": head_count,
        "head_size": max(hidden_size // head_count, 1),
        "vocabulary_size": config.count("vocab_size"),
        "mlp_matrix_count": 2,
        "tied_embeddings": config.flag("tie_word_embeddings", True),
        "learned_position_count": config.count("n_positions", "n_ctx"),
        **_GPT_BIASES,
    }


def _gpt_neox(config: _Config) -> dict[str, Any]:
    bias = config.flag("attention_bias", True)
    biases = _GPT_BIASES | {"qkv_bias": bias, "attention_output_bias": bias}
    return _decoder(config) | {"mlp_matrix_count": 2, **biases}


_READERS: Mapping[str, Callable[[_Config], dict[str, Any]]] = MappingProxyType(
    {
        "llama": _llama,
        "mistral": _mistral,
        "mixtral": _mixtral,
        "qwen2": _qwen2,
        "qwen2_moe": _qwen2_moe,
        "qwen3": _qwen3,
        "qwen3_moe": _qwen3_moe,
        "deepseek_v2": _deepseek,
        "deepseek_v3": _deepseek,
        "kimi_k2": _deepseek,
        "glm": _glm4,
        "glm4": _glm4,
        "glm4_moe": _glm4_moe,
        "gpt_oss": _gpt_oss,
        "gpt2": _gpt2,
        "gpt_neox": _gpt_neox,
    }
)

MODEL_TYPES: tuple[str, ...] = tuple(_READERS)
"""Values of `model_type` that a config.json may have."""


def _read_json(path: Path) -> tuple[Mapping[str, Any], str]:
    if path.is_dir():
        path = path / "config.json"
    text = read_text(path, WHAT)
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        line = text.splitlines()[error.lineno - 1].strip() if text.splitlines() else ""
        where = f"{path}:{error.lineno}"
        raise SpecError(
            Problem(where=where, found=line, accepted="JSON", hint=f"The reader says: {error.msg}.")
        ) from None
    except ValueError:
        # The reader refuses integers of thousands of digits.
        accepted = f"numbers up to {MOST_COUNT:,}"
        raise SpecError(Problem(where=str(path), found="a number of thousands of digits", accepted=accepted)) from None
    except RecursionError:
        raise SpecError(Problem(where=f"{path}:1", found="values nested too deep", accepted=WHAT)) from None
    if not isinstance(values, dict):
        raise SpecError(Problem(where=f"{path}:1", found=type(values).__name__, accepted=f"{WHAT}: a JSON object"))
    return values, text


def model_from_config(source: str | Path | Mapping[str, Any], *, name: str | None = None) -> Model:
    """Read the architecture of a Hugging Face model.

    Args:
        source: a config.json, the folder that holds one, or its content; a `text_config` inside it wins, as in
            models that also see or hear
        name: name of the model; if absent, `_name_or_path` of the config, the file's name, or the folder's

    Raises:
        SpecError: not such a file, a `model_type` we do not read, or a field missing or wrong
    """
    if isinstance(source, Mapping):
        values, text, where, fallback = source, "", "config", "model"
    else:
        path = Path(source)
        values, text = _read_json(path)
        where = str(path / "config.json" if path.is_dir() else path)
        fallback = path.resolve().name if path.is_dir() else path.stem
        if fallback == "config":
            fallback = path.resolve().parent.name
    stated = values.get("_name_or_path")
    inner = values.get("text_config")
    if isinstance(inner, Mapping):
        values = {**{key: values[key] for key in ("tie_word_embeddings",) if key in values}, **inner}
    config = _Config(values, where, text)
    kind = values.get("model_type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        config.refuse("model_type", kind, list_names(MODEL_TYPES, most=40), nearest_hint(kind, MODEL_TYPES))
        raise SpecError(config.problems)
    fields = reader(config)
    _check_architecture(config, fields)
    if config.problems:
        raise SpecError(config.problems)
    chosen = name or (stated if isinstance(stated, str) and stated else fallback)
    return Model(name=chosen, family=str(kind), source=where, **fields)


def _check_architecture(config: _Config, fields: Mapping[str, Any]) -> None:
    """What holds for a model of any kind."""
    layers = fields["layer_count"]
    if layers > MOST_LAYERS:
        config.refuse("num_hidden_layers", layers, f"at most {MOST_LAYERS:,}")
    experts = fields.get("experts")
    if experts is None:
        return
    if experts.experts_per_token > experts.expert_count:
        accepted = f"at most the {experts.expert_count} experts of a layer"
        config.refuse("num_experts_per_tok", experts.experts_per_token, accepted)
    if experts.moe_layer_count < 1:
        accepted = f"fewer than the {layers} layers, so that some hold experts"
        config.refuse("first_k_dense_replace", config.values.get("first_k_dense_replace"), accepted)


def resolve_model(name_or_path: str | Path, *, base: Path | None = None) -> Model:
    """A catalogue model by name, or a config.json by path.

    Args:
        name_or_path: a catalogue name; or a path to a config.json or to the folder that holds one
        base: folder that relative paths start from; the working directory if absent

    Raises:
        UnknownNameError: neither a catalogue name nor a path
        SpecError: the config.json is refused
    """
    text = str(name_or_path)
    path = base / text if base else Path(text)
    if isinstance(name_or_path, Path) or "/" in text or text.endswith(".json"):
        return model_from_config(path)
    try:
        return catalogue_model(text)
    except UnknownNameError:
        if path.is_dir():
            return model_from_config(path)
        names = [made.name for made in models()]
        raise UnknownNameError("model", text, names, also="a path to a config.json") from None
