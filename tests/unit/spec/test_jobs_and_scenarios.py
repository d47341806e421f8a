import json
from pathlib import Path

import pytest

from lakh.catalog import model
from lakh.errors import SpecError, UnknownNameError
from lakh.spec import load_job, load_scenario, model_from_config, resolve_model

EXAMPLE = Path(__file__).parents[3] / "examples" / "jd-cloud-100k"
CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
GOOD = """\
name: dense
kind: train
model: llama3-8b
accelerators: 64
workload:
  sequence_length: 8192
  global_batch_sequences: 128
layout:
  tp: 2
  pp: 4
  dp: 8
"""


def write(tmp_path: Path, text: str, name: str = "job.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(SpecError) as refused:
        load_job(write(tmp_path, text))
    return str(refused.value).replace(f"{tmp_path}/", "")


def test_a_job_with_a_layout_is_read(tmp_path: Path) -> None:
    job = load_job(write(tmp_path, GOOD))
    assert job.layout is not None and job.workload is not None
    assert job.layout.accelerator_count == job.accelerators == 64
    assert job.workload.global_batch_tokens == 128 * 8192
    assert job.model is model("llama3-8b")
    assert job.workload.step_count is None


WRONG_JOBS = [
    (
        "kind: train",
        "kind: trian",
        "job.yaml:2: kind: found 'trian'; accepted: train, serve, simulate, command. Did you mean 'train'?",
    ),
    ("model: llama3-8b\n", "", "job.yaml:1: model: found 'nothing'; accepted: model: a job of kind train needs it."),
    ("llama3-8b", "llama-3-8b", "job.yaml:3: model: found 'llama-3-8b'; accepted: a path to a config.json, or one of"),
    ("llama3-8b", "llama-3-8b", "Did you mean 'llama3-8b'?"),
    (
        "llama3-8b",
        "nothing/config.json",
        "nothing/config.json: found 'no such file'; accepted: a Hugging Face config.json",
    ),
    (
        "accelerators: 64",
        "accelerators: 65",
        "job.yaml:4: accelerators: found 65; accepted: 64, which is tp x cp x pp x dp of the layout.",
    ),
    ("accelerators: 64", "accelerators: 64.0", "job.yaml:4: accelerators: found 64.0; accepted: a whole number."),
    ("tp: 2", "tp: 0", "job.yaml:9: layout.tp: found 0; accepted: at least 1."),
    ("tp: 2", "tp: '2'", "job.yaml:9: layout.tp: found '2'; accepted: a whole number."),
    (
        "tp: 2",
        "tp: 2\n  sharding: zero4",
        "job.yaml:10: layout.sharding: found 'zero4'; accepted: none, zero1, zero2, zero3, hsdp. Did you mean 'zero",
    ),
    (
        "tp: 2",
        "tp: 2\n  sharding: hsdp",
        "job.yaml:8: layout.shard_group: found 0; accepted: 2 or more with sharding hsdp.",
    ),
    ("tp: 2", "tp: 2\n  precision: bf61", "layout.precision: found 'bf61'; accepted: bf16, fp16, fp8,"),
    (
        "batch_sequences: 128",
        "batch_sequences: 129",
        "job.yaml:7: workload.global_batch_sequences: found 129; accepted: a multiple of dp x micro_batch = 8.",
    ),
    (
        "sequence_length: 8192",
        "sequence_length: 8192\n  tokens: 15 T",
        "job.yaml:7: workload.tokens: found '15 T'; accepted: a quantity that reduces to token",
    ),
    (
        "kind: train",
        "kind: command",
        "job.yaml:1: command: found 'nothing'; accepted: command: a job of kind command needs it.",
    ),
    (
        "kind: train",
        "kind: train\nconstraints: {objective: speed}",
        "job.yaml:3: constraints.objective: found 'speed'; accepted: step-time, cost, energy.",
    ),
    ("kind: train", "kind: train\nenvironment: {A: 1}", "job.yaml:3: environment.A: found 1; accepted: a text."),
]


@pytest.mark.parametrize(("old", "new", "expected"), WRONG_JOBS, ids=[new[-40:] for _, new, _ in WRONG_JOBS])
def test_one_wrong_thing_in_a_job_is_named_with_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert expected in refusal(tmp_path, GOOD.replace(old, new, 1))


def test_a_job_may_name_a_config_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((CONFIGS / "qwen3-8b.json").read_text())
    job = load_job(write(tmp_path, GOOD.replace("llama3-8b", "./config.json")))
    assert job.model is not None and job.model.parameter_count == 8_190_735_360


def test_a_command_job_needs_no_model(tmp_path: Path) -> None:
    job = load_job(write(tmp_path, "name: hello\nkind: command\ncommand: [echo, hi]\nenvironment: {A: b}\n"))
    assert (job.command, job.environment["A"], job.model) == (("echo", "hi"), "b", None)


# --- scenarios --------------------------------------------------------------------------------------------------


def test_the_main_example_is_read() -> None:
    scenario = load_scenario(EXAMPLE / "scenario.yaml")
    assert scenario.cluster.accelerator_count == 100_000
    assert [job.model.name for job in scenario.jobs if job.model] == ["llama3.1-405b", "deepseek-v3"]
    assert (scenario.scales[0], scenario.scales[-1]) == (8, 100_000)
    assert [made.name for made in scenario.claims][:2] == ["kuae-mfu-dense-60", "kuae-mfu-moe-40"]
    assert scenario.duration_s == 54 * 86_400
    dense = scenario.jobs[0].workload
    assert dense is not None and dense.global_batch_tokens == 2**24
    assert dense.step_count == pytest.approx(15.6e12 / 2**24)


def test_problems_of_a_scenario_and_of_the_files_it_names_are_listed_together(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace("tp: 2", "tp: 0"))
    write(tmp_path, "name: x\nsites: []\nfabric: {kind: none}\n", "cluster.yaml")
    text = (
        "name: all-wrong\ncluster: cluster.yaml\njobs: [job.yaml, other.yaml]\n"
        "claims: [kuae-mfu-dense-61]\nscales: [8, 4]\n"
    )
    with pytest.raises(SpecError) as refused:
        load_scenario(write(tmp_path, text, "scenario.yaml"))
    said = str(refused.value).replace(f"{tmp_path}/", "")
    for expected in (
        "cluster.yaml:2: sites: found []; accepted: at least one item.",
        "job.yaml:9: layout.tp: found 0; accepted: at least 1.",
        "other.yaml: found 'no such file'; accepted: a job description",
        "scenario.yaml:4: claims[0]: found 'kuae-mfu-dense-61'; accepted:",
        "Did you mean 'kuae-mfu-dense-60'?",
        "scenario.yaml:5: scales[1]: found 4; accepted: more than 8: scales go upwards.",
    ):
        assert expected in said


def test_a_scale_beyond_the_cluster_is_refused(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    text = "name: s\ncluster: kuae-10k\njobs: [job.yaml]\nscales: [8, 20000]\nduration: 3 h\nseeds: [1]\n"
    with pytest.raises(SpecError, match="found 20000; accepted: at most 10240, all that kuae-10k has"):
        load_scenario(write(tmp_path, text, "scenario.yaml"))
    with pytest.raises(SpecError, match="found '3 kg'; accepted: a duration, such as '30 d'"):
        load_scenario(write(tmp_path, text.replace("3 h", "3 kg"), "scenario.yaml"))
    with pytest.raises(
        SpecError, match=r"cluster: found 'kuae-20k'; accepted: a path, or one of .*Did you mean 'kuae-10k'"
    ):
        load_scenario(write(tmp_path, text.replace("kuae-10k", "kuae-20k"), "scenario.yaml"))


# --- models -----------------------------------------------------------------------------------------------------

LLAMA = (CONFIGS / "llama-3.1-8b.json").read_text()
WRONG_CONFIGS = [
    (
        '"llama"',
        '"lama"',
        "config.json:4: model_type: found 'lama'; accepted: llama, mistral, mixtral, qwen2, qwen2_moe, qwen3,",
    ),
    ('"llama"', '"lama"', "Did you mean 'llama'?"),
    ('"llama"', "null", "config.json:4: model_type: found nothing; accepted: llama,"),
    (
        '"hidden_size": 4096',
        '"hidden_size": "4096"',
        "config.json:5: hidden_size: found '4096'; accepted: a whole number from 1 to 1,000,000,000.",
    ),
    (
        '"hidden_size": 4096',
        '"hidden_size": 4095',
        "num_attention_heads: found 32; accepted: a divisor of hidden_size 4095, or head_dim stated.",
    ),
    (
        '"num_key_value_heads": 8',
        '"num_key_value_heads": 7',
        "num_key_value_heads: found 7; accepted: a divisor of num_attention_heads 32.",
    ),
    (
        '"num_hidden_layers": 32,',
        "",
        "config.json: num_hidden_layers: found nothing; accepted: a whole number of 1 or more; this field is required.",
    ),
    (
        '"num_hidden_layers": 32',
        '"num_hidden_layers": -1',
        "num_hidden_layers: found -1; accepted: a whole number from 1 to 1,000,000,000.",
    ),
    (
        '"tie_word_embeddings": false',
        '"tie_word_embeddings": 0',
        "tie_word_embeddings: found 0; accepted: true or false.",
    ),
    (
        '"llama",',
        '"llama"',
        "config.json:5: found '\"hidden_size\": 4096,'; accepted: JSON. The reader says: Expecting ',' delimiter.",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), WRONG_CONFIGS, ids=[new for _, new, _ in WRONG_CONFIGS])
def test_one_wrong_thing_in_a_config_is_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in LLAMA
    path = write(tmp_path, LLAMA.replace(old, new, 1), "config.json")
    with pytest.raises(SpecError) as refused:
        model_from_config(tmp_path)
    assert expected in str(refused.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "an empty file"),
        ("[]", "accepted: a Hugging Face config.json: a JSON object"),
        ("[" * 200_000, "nested too deep"),
    ],
)
def test_what_is_no_config_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(SpecError, match=expected):
        model_from_config(write(tmp_path, text, "config.json"))


def test_a_model_is_a_name_a_file_or_a_folder(tmp_path: Path) -> None:
    write(tmp_path, LLAMA, "config.json")
    assert resolve_model("LLAMA3-8B") is model("llama3-8b")
    by_file, by_folder = resolve_model(tmp_path / "config.json"), resolve_model(str(tmp_path))
    assert by_file == by_folder
    assert resolve_model("config.json", base=tmp_path) == by_file
    with pytest.raises(UnknownNameError, match=r"accepted: a path to a config\.json, or one of"):
        resolve_model("gpt-5")


def test_an_architecture_that_cannot_be_is_refused():
    """More experts per token than there are, no layer with experts, more layers than a search can divide."""
    mixtral = json.loads((CONFIGS / "mixtral-8x7b.json").read_text())
    for changes, field in (
        ({"num_experts_per_tok": 9}, "num_experts_per_tok"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"hidden_size": 10**12}, "hidden_size"),
    ):
        with pytest.raises(SpecError, match=field):
            model_from_config(mixtral | changes)
