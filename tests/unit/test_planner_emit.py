"""Launches name published options only, and say again what the layout says."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from lakh.errors import RequestError
from lakh.planner.emit import FRAMEWORKS, emit, framework_options, published_options, stage_tokens
from lakh.planner.search import candidate_of, search
from lakh.planner.space import SearchOptions
from lakh.spec.layout import Layout

ACCELERATORS = 2048


def launch_of(request_of, framework, name, layout, **more):
    request = request_of(name, accelerator_count=ACCELERATORS, global_batch_sequences=4096)
    candidate = candidate_of(request, layout)
    return emit(framework, request.model, request.software, candidate, sequence_length=4096, **more)


def megatron_arguments(text):
    words = shlex.split(text[text.index("pretrain_gpt.py") :].replace("\\\n", " "))[1:]
    arguments = {}
    for word in words:
        if word.startswith("--"):
            name = word
            arguments[name] = []
        else:
            arguments[name].append(word)
    return arguments


MEGATRON = [
    ("llama-8b", Layout(tp=1, dp=8)),
    ("llama-8b", Layout(tp=2, cp=2, dp=8, sharding="none", precision="fp16")),
    ("llama-70b", Layout(tp=8, pp=4, vpp=5, dp=8, precision="fp8-cs", recompute="full")),
    ("llama-70b", Layout(tp=4, pp=2, dp=8, sharding="zero3", precision="nvfp4")),
    ("llama-70b", Layout(tp=4, dp=32, sharding="hsdp", shard_group=8, precision="mxfp8")),
    ("deepseek-v3", Layout(tp=2, pp=16, vpp=2, ep=32, dp=64, precision="fp8", recompute="selective")),
    ("small-moe", Layout(tp=2, ep=4, etp=2, dp=16)),
]


@pytest.mark.parametrize(("name", "layout"), MEGATRON)
def test_every_megatron_argument_is_published(request_of, name, layout):
    launch = launch_of(request_of, "megatron", name, layout)
    written = set(megatron_arguments(launch.text))
    assert written == set(launch.options)
    assert written <= published_options("megatron").names


TORCHTITAN = [
    ("llama-8b", Layout(dp=8, sharding="zero3")),
    ("llama-70b", Layout(tp=8, pp=2, vpp=2, dp=4, sharding="zero3", recompute="full", precision="fp8-rowwise")),
    ("llama-70b", Layout(tp=8, dp=32, sharding="hsdp", shard_group=8, precision="nvfp4")),
    ("deepseek-v3", Layout(tp=8, ep=64, dp=32, sharding="hsdp", shard_group=8, precision="mxfp8")),
]


@pytest.mark.parametrize(("name", "layout"), TORCHTITAN)
def test_every_torchtitan_field_is_published_and_the_module_is_python(request_of, name, layout):
    launch = launch_of(request_of, "torchtitan", name, layout)
    assert set(launch.options) <= published_options("torchtitan").names
    module = launch.text[launch.text.index("<<'EOF'\n") + 8 : launch.text.index("\nEOF\n")]
    compile(module, "lakh_plan.py", "exec")
    fields = set(re.findall(r"config\.((?:parallelism|training|compile)\.\w+) =", module))
    assert fields == {option for option in launch.options if "." in option}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_published_names_state_the_commit_they_were_checked_at(framework):
    published = published_options(framework)
    assert re.fullmatch(r"[0-9a-f]{40}", published.commit)
    assert len(published.names) > 20


@pytest.mark.parametrize(("name", "layout"), MEGATRON)
def test_megatron_arguments_multiply_to_the_accelerators_of_the_launch(request_of, name, layout):
    text = launch_of(request_of, "megatron", name, layout).text
    arguments = megatron_arguments(text)
    sizes = {flag: int(arguments.get(flag, ["1"])[0]) for flag in (
        "--tensor-model-parallel-size", "--context-parallel-size", "--pipeline-model-parallel-size")}  # fmt: skip
    model_parallel = 1
    for size in sizes.values():
        model_parallel *= size
    nodes = re.search(r"--nnodes (\d+)", text)
    processes = int(re.search(r"--nproc-per-node (\d+)", text)[1])
    world = processes * (int(nodes[1]) if nodes else 1)
    assert world == layout.accelerator_count
    assert world // model_parallel == layout.dp
    assert 4096 % (layout.dp * int(arguments["--micro-batch-size"][0])) == 0
    assert arguments["--global-batch-size"] == ["4096"]


def expand(text):
    """Stages of a --pipeline-model-parallel-layout, as its published grammar reads them."""
    text = text.replace(",", "")
    text = re.sub(r"\(([^)]*)\)\*(\d+)", lambda m: m[1] * int(m[2]), text)
    text = re.sub(r"(\w)\*(\d+)", lambda m: m[1] * int(m[2]), text)
    return text.split("|")


@pytest.mark.parametrize(("pp", "vpp"), [(2, 1), (16, 1), (16, 2), (8, 1), (32, 2), (8, 8)])
def test_a_pipeline_layout_holds_every_layer_once_and_in_order(request_of, pp, vpp):
    layout = Layout(tp=1, pp=pp, vpp=vpp, ep=32, dp=32)
    text = launch_of(request_of, "megatron", "deepseek-v3", layout).text
    stages = expand(megatron_arguments(text)["--pipeline-model-parallel-layout"][0])
    assert len(stages) == pp * vpp
    assert "".join(stages) == "E" + 61 * "t" + "m" + "L"
    assert stages == stage_tokens(request_of("deepseek-v3").model, layout)


def test_126_layers_on_16_stages_give_the_ends_a_layer_less(request_of):
    """As Llama 3 405B was trained (arXiv:2407.21783, section 3.3.2): one layer less on the first and last stage."""
    model = replace(request_of("llama-70b").model, layer_count=126)
    stages = stage_tokens(model, Layout(pp=16))
    assert [stage.count("t") for stage in stages] == [7, *[8] * 14, 7]


def test_training_tokens_become_steps(request_of):
    text = launch_of(request_of, "megatron", "llama-8b", Layout(dp=8), train_tokens=1e12).text
    assert megatron_arguments(text)["--train-iters"] == [str(round(1e12 / (4096 * 4096)))]


@pytest.mark.parametrize(
    ("framework", "name", "layout", "parts"),
    [
        ("megatron", "llama-8b", Layout(pp=2, schedule="zero-bubble"), ["layout.schedule", "1f1b in Megatron-LM"]),
        ("megatron", "llama-8b", Layout(precision="int8"), ["layout.precision: found 'int8'"]),
        ("torchtitan", "small-moe", Layout(sharding="zero3"), ["model: found 'small-moe'", "llama3 8B"]),
        ("torchtitan", "llama-8b", Layout(dp=8, sharding="zero1"), ["layout.sharding: found 'zero1'"]),
        ("torchtitan", "llama-8b", Layout(pp=2, schedule="dualpipe"), ["layout.schedule: found 'dualpipe'"]),
        ("torchtitan", "deepseek-v3", Layout(dp=8, ep=16, tp=2, sharding="none"), ["layout.ep: found 16"]),
    ],
)
def test_what_a_framework_cannot_launch_is_refused_with_what_it_can(request_of, framework, name, layout, parts):
    with pytest.raises(RequestError) as error:
        launch_of(request_of, framework, name, layout)
    for part in parts:
        assert part in str(error.value)


def test_an_unknown_framework_is_refused_with_the_nearest(request_of):
    with pytest.raises(RequestError, match="Did you mean 'megatron'"):
        launch_of(request_of, "megatorn", "llama-8b", Layout())


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_plan_made_for_a_framework_can_be_launched_by_it(request_of, framework):
    fixed = framework_options(framework, SearchOptions()).fixed
    for name in ("llama-8b", "llama-70b"):
        request = request_of(name, accelerator_count=128, **fixed)
        for candidate in search(request).ranked:
            text = emit(framework, request.model, request.software, candidate, sequence_length=4096).text
            assert request.model.name in text


def test_given_options_win_over_a_frameworks_defaults():
    assert framework_options("megatron", SearchOptions(sharding=("zero3",))).sharding == ("zero3",)
