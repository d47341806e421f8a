"""A config.json gives the parameter count that its authors publish (numel of the released weights where known)."""

import json
from pathlib import Path

import pytest

from lakh.catalog import model
from lakh.spec import MODEL_TYPES, model_from_config

CONFIGS = Path(__file__).parents[1] / "fixtures" / "configs"
EXACT = {"llama-3.1-8b", "llama-3.2-1b", "mistral-7b", "qwen2.5-7b", "qwen3-8b", "qwen3-30b-a3b", "mixtral-8x7b"}
EXACT |= {"gpt2", "gpt-neox-20b", "deepseek-v2-lite"}


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_config_gives_the_published_parameter_count(path: Path) -> None:
    published = json.loads(path.read_text())["_published_parameter_count"]
    made = model_from_config(path)
    assert made.parameter_count == pytest.approx(published, rel=0.01)
    assert made.name == path.stem
    if path.stem in EXACT:
        assert made.parameter_count == published


def test_every_family_we_say_we_read_has_a_real_config_among_the_fixtures() -> None:
    kinds = {json.loads(path.read_text())["model_type"] for path in CONFIGS.glob("*.json")}
    assert set(MODEL_TYPES) - kinds == {"glm", "glm4"}  # dense GLM: the same reader as glm4_moe without experts


def test_dense_glm_4_has_its_9_4_billion_parameters() -> None:
    config = {
        "model_type": "glm4",
        "hidden_size": 4096,
        "intermediate_size": 13696,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "vocab_size": 151552,
        "attention_bias": False,
        "tie_word_embeddings": False,
    }
    assert model_from_config(config).parameter_count == pytest.approx(9.4e9, rel=0.01)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ("deepseek-v3", "deepseek-v3"),
        ("kimi-k2", "kimi-k2"),
        ("qwen3-30b-a3b", "qwen3-30b-a3b"),
        ("gpt-oss-20b", "gpt-oss-20b"),
        ("llama-3.1-8b", "llama3-8b"),
        ("mixtral-8x7b", "mixtral-8x7b"),
    ],
)
def test_a_config_and_the_catalogue_describe_the_same_architecture(config: str, name: str) -> None:
    read, held = model_from_config(CONFIGS / f"{config}.json"), model(name)
    same = ("layer_count", "hidden_size", "head_count", "vocabulary_size", "experts", "sliding_window_layer_fraction")
    for field in same:
        assert getattr(read, field) == getattr(held, field), field
    assert read.parameter_count == held.parameter_count
    assert read.active_parameter_count == held.active_parameter_count


def test_windows_count_only_where_layers_use_them() -> None:
    mistral, qwen = (model_from_config(CONFIGS / f"{name}.json") for name in ("mistral-7b", "qwen2.5-7b"))
    assert (mistral.sliding_window, mistral.sliding_window_layer_fraction) == (4096, 1.0)
    assert (qwen.sliding_window, qwen.sliding_window_layer_fraction) == (None, 0.0)
