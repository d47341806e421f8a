"""How is a plan launched? Complete arguments for Megatron-LM and torchtitan, in their published option names.

The names that may be written are data (`published/*.json`), each checked against the framework's source at a
commit by `tools/published_options.py`; writing any other name is an error here, not a surprise on the cluster.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Literal, get_args

from lakh.catalog.model import Model
from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.perf.software import SELECTIVE_CORE, SoftwareInput
from lakh.planner.search import Candidate
from lakh.planner.space import SearchOptions
from lakh.spec.layout import Layout

Framework = Literal["megatron", "torchtitan"]
FRAMEWORKS: tuple[str, ...] = get_args(Framework)

MEGATRON_FP8_RECIPE: Mapping[str, str] = {"fp8": "delayed", "fp8-cs": "tensorwise", "mxfp8": "mxfp8"}
"""Our precision words in Megatron's --fp8-recipe: "fp8" is delayed scaling, "fp8-cs" current scaling."""

_MEGATRON_PRECISIONS = ("bf16", "fp16", "fp32", *MEGATRON_FP8_RECIPE, "nvfp4")
_MEGATRON_FSDP = {"zero2": "optim_grads", "zero3": "optim_grads_params", "hsdp": "optim_grads_params"}
_TORCHTITAN_PRECISIONS = ("bf16", "fp8-rowwise", "mxfp8", "nvfp4")


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedOptions:
    """Option names of one framework at one commit."""

    repository: str
    commit: str
    names: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """What to paste: the text, and every option name in it."""

    framework: Framework
    text: str
    options: tuple[str, ...]


@lru_cache(maxsize=len(FRAMEWORKS))
def published_options(framework: Framework) -> PublishedOptions:
    """The option names that Lakh may write for a framework."""
    data = json.loads((files("lakh.planner") / "published" / f"{framework}.json").read_text(encoding="utf-8"))
    return PublishedOptions(repository=data["repository"], commit=data["commit"], names=frozenset(data["options"]))


def framework_options(framework: Framework, options: SearchOptions, model: Model | None = None) -> SearchOptions:
    """The options of a search restricted to what a framework can launch; given values stay as they are.

    In torchtitan experts are spread over the ranks of one sharded copy, so a model with experts must be sharded.
    """
    _check_framework(framework)
    allowed: dict[str, tuple[str, ...] | tuple[int, ...]] = {"schedule": ("1f1b",)}
    if framework == "megatron":
        allowed["sharding"] = ("none", "zero1")
    else:
        moe = model is not None and model.is_moe
        allowed |= {"sharding": ("zero3",) if moe else ("none", "zero3"), "etp": (1,), "precision": ("bf16",)}
    missing = {name: values for name, values in allowed.items() if getattr(options, name) is None}
    return replace(options, **missing)  # type: ignore[arg-type]


def emit(
    framework: Framework,
    model: Model,
    software: SoftwareInput,
    candidate: Candidate,
    *,
    sequence_length: int,
    accelerators_per_node: int = 8,
    train_tokens: float | None = None,
) -> Launch:
    """A launch that can be pasted on every node of the job.

    Args:
        candidate: the layout to launch, with its global batch
        train_tokens: tokens to train; 100 steps where None
        accelerators_per_node: processes per node

    Raises:
        RequestError: the framework cannot launch this layout or this model; every reason is listed
    """
    _check_framework(framework)
    layout, count = candidate.layout, candidate.accelerator_count
    if count % accelerators_per_node and count > accelerators_per_node:
        raise RequestError(
            Problem(
                where="accelerators_per_node",
                found=accelerators_per_node,
                accepted=f"a size that divides the {count} accelerators of the layout",
            )
        )
    batch = candidate.global_batch_sequences
    steps = 100 if train_tokens is None else max(round(train_tokens / (batch * sequence_length)), 1)
    job = _Job(
        model=model,
        software=software,
        layout=layout,
        data_parallel_outermost=candidate.data_parallel_outermost,
        sequence_length=sequence_length,
        global_batch_sequences=batch,
        steps=steps,
        node_count=max(count // accelerators_per_node, 1),
        processes_per_node=min(accelerators_per_node, count),
    )
    launch = _megatron(job) if framework == "megatron" else _torchtitan(job)
    unknown = sorted(set(launch.options) - published_options(framework).names)
    assert not unknown, f"options that {framework} does not publish: {unknown}"
    return launch


def _check_framework(framework: str) -> None:
    if framework not in FRAMEWORKS:
        hint = nearest_hint(framework, FRAMEWORKS)
        raise RequestError(Problem(where="emit", found=framework, accepted=list_names(FRAMEWORKS), hint=hint))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    model: Model
    software: SoftwareInput
    layout: Layout
    data_parallel_outermost: bool
    sequence_length: int
    global_batch_sequences: int
    steps: int
    node_count: int
    processes_per_node: int


def stage_tokens(model: Model, layout: Layout) -> list[str]:
    """What each of the pp x vpp stages holds, in order of depth, as the step model counts it.

    One letter per part: E embedding, t layer, m multi-token-prediction layer, L output layer. Where the layers
    divide, embedding and output come on top of the first and last stage; where layers + 2 divide, they take a
    layer's place; otherwise the first stages hold one layer more.
    """
    stages = layout.pp * layout.vpp
    layers = ["t"] * model.layer_count + ["m"] * model.mtp_layer_count
    total = len(layers)
    if total % stages and (total + 2) % stages == 0:
        parts = ["E", *layers, "L"]
        size = len(parts) // stages
        return ["".join(parts[i * size : (i + 1) * size]) for i in range(stages)]
    base, extra = divmod(total, stages)
    sizes = [base + (1 if index < extra else 0) for index in range(stages)]
    result, at = [], 0
    for size in sizes:
        result.append("".join(layers[at : at + size]))
        at += size
    result[0] = "E" + result[0]
    result[-1] += "L"
    return result


class _Arguments:
    """Command-line arguments in groups, and the names used."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.names: list[str] = []

    def group(self) -> None:
        self.groups.append([])

    def add(self, name: str, *values: object) -> None:
        self.names.append(name)
        self.groups[-1].append(" ".join([name, *(shlex.quote(str(value)) for value in values)]))

    def lines(self) -> list[str]:
        return [" ".join(group) for group in self.groups if group]


def _torchrun(job: _Job) -> str:
    if job.node_count == 1:
        return f"torchrun --standalone --nproc-per-node {job.processes_per_node}"
    return (
        f"torchrun --nnodes {job.node_count} --nproc-per-node {job.processes_per_node} "
        '--node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port 29500'
    )


def _header(job: _Job) -> list[str]:
    where = "on the node" if job.node_count == 1 else "on every node, with NODE_RANK and MASTER_ADDR set"
    return [f"# {job.model.name}: {job.layout.describe()}", f"# run {where}"]


def _megatron_problems(job: _Job) -> list[Problem]:
    layout = job.layout
    problems = []
    if layout.pp > 1 and layout.schedule != "1f1b":
        problems.append(Problem(where="layout.schedule", found=layout.schedule, accepted="1f1b in Megatron-LM"))
    if layout.precision not in _MEGATRON_PRECISIONS:
        accepted = list_names(_MEGATRON_PRECISIONS) + " in Megatron-LM"
        problems.append(Problem(where="layout.precision", found=layout.precision, accepted=accepted))
    return problems


def _megatron(job: _Job) -> Launch:
    problems = _megatron_problems(job)
    if problems:
        raise RequestError(problems)
    layout = job.layout
    arguments = _Arguments()
    _megatron_model(arguments, job)
    _megatron_parallelism(arguments, job)
    _megatron_batch(arguments, job)
    _megatron_precision(arguments, job)
    _megatron_recompute(arguments, job)
    _megatron_data(arguments, job)
    fully_sharded = layout.sharding in _MEGATRON_FSDP
    lines = _header(job)
    if not fully_sharded:
        # One hardware queue keeps collectives ahead of the kernels that wait for them; Megatron-FSDP refuses it.
        lines.append("export CUDA_DEVICE_MAX_CONNECTIONS=1")
    lines.append(" \\\n  ".join([_torchrun(job), "pretrain_gpt.py", *arguments.lines()]))
    return Launch(framework="megatron", text="\n".join(lines) + "\n", options=tuple(arguments.names))


def _megatron_model(a: _Arguments, job: _Job) -> None:
    model, experts, mla = job.model, job.model.experts, job.model.latent_attention
    a.group()
    a.add("--num-layers", model.layer_count)
    a.add("--hidden-size", model.hidden_size)
    a.add("--ffn-hidden-size", model.ffn_size)
    a.add("--num-attention-heads", model.head_count)
    if mla is None:
        a.add("--kv-channels", model.head_size)
        if model.kv_head_count != model.head_count:
            a.add("--group-query-attention")
            a.add("--num-query-groups", model.kv_head_count)
    a.group()
    learned = model.learned_position_count
    a.add("--max-position-embeddings", max(learned, job.sequence_length))
    a.add("--position-embedding-type", "learned_absolute" if learned else "rope")
    if model.mlp_matrix_count == 3:
        a.add("--swiglu")
        a.add("--normalization", "RMSNorm")
        a.add("--disable-bias-linear")
    if not model.tied_embeddings:
        a.add("--untie-embeddings-and-output-weights")
    dropout = 0.1 if float(job.software.attention_dropout) > 0 else 0.0
    a.add("--attention-dropout", dropout)
    a.add("--hidden-dropout", dropout)
    if model.sliding_window:
        a.add("--window-size", f"({model.sliding_window - 1},0)")
        share = model.sliding_window_layer_fraction
        if 0.0 < share < 1.0:
            a.add("--window-attn-skip-freq", max(round(1.0 / (1.0 - share)), 2))
    if mla is not None:
        a.group()
        a.add("--multi-latent-attention")
        if mla.q_lora_rank is not None:
            a.add("--q-lora-rank", mla.q_lora_rank)
        a.add("--kv-lora-rank", mla.kv_lora_rank)
        a.add("--qk-head-dim", mla.qk_nope_head_size)
        a.add("--qk-pos-emb-head-dim", mla.qk_rope_head_size)
        a.add("--v-head-dim", mla.v_head_size)
    if experts is not None:
        a.group()
        a.add("--num-experts", experts.expert_count)
        a.add("--moe-router-topk", experts.experts_per_token)
        a.add("--moe-ffn-hidden-size", experts.expert_ffn_size)
        if experts.shared_ffn_size:
            a.add("--moe-shared-expert-intermediate-size", experts.shared_ffn_size)
        if model.dense_layer_count:
            a.add("--moe-layer-freq", f"([0]*{model.dense_layer_count}+[1]*{experts.moe_layer_count})")
        a.add("--moe-router-load-balancing-type", "aux_loss")
        a.add("--moe-aux-loss-coeff", "1e-4")
        a.add("--moe-router-dtype", "fp32")
        a.add("--moe-grouped-gemm")
        a.add("--moe-permute-fusion")
    if model.mtp_layer_count:
        a.group()
        a.add("--mtp-num-layers", model.mtp_layer_count)


def _megatron_parallelism(a: _Arguments, job: _Job) -> None:
    layout, model, software = job.layout, job.model, job.software
    a.group()
    a.add("--tensor-model-parallel-size", layout.tp)
    if layout.tp > 1 and layout.sequence_parallel:
        a.add("--sequence-parallel")
        if float(software.tp_overlap) > 0.5:
            a.add("--tp-comm-overlap")
    if layout.cp > 1:
        a.add("--context-parallel-size", layout.cp)
    a.add("--pipeline-model-parallel-size", layout.pp)
    if layout.pp > 1:
        layers = model.layer_count
        if model.mtp_layer_count or layers % (layout.pp * layout.vpp):
            a.add("--pipeline-model-parallel-layout", _megatron_stages(model, layout))
        elif layout.vpp > 1:
            a.add("--num-virtual-stages-per-pipeline-rank", layout.vpp)
    if job.data_parallel_outermost:
        a.add("--use-tp-pp-dp-mapping")
    if model.experts is not None:
        a.group()
        a.add("--expert-model-parallel-size", layout.ep)
        a.add("--expert-tensor-parallel-size", layout.etp)
        deduplicates = float(software.dispatch_dedup) > 0 and layout.ep > 1
        a.add("--moe-token-dispatcher-type", "flex" if deduplicates else "alltoall")
        if deduplicates:
            a.add("--moe-flex-dispatcher-backend", "deepep")
        interleaved = layout.pp == 1 or layout.vpp > 1
        hides = layout.ep > 1 and interleaved and layout.recompute != "full" and layout.precision != "fp32"
        if hides and float(software.ep_overlap) > 0.5:
            a.add("--overlap-moe-expert-parallel-comm")
    a.group()
    sharded = layout.sharding in _MEGATRON_FSDP
    if layout.sharding != "none":
        a.add("--use-distributed-optimizer")
    if sharded:
        a.add("--use-megatron-fsdp")
        a.add("--data-parallel-sharding-strategy", _MEGATRON_FSDP[layout.sharding])
        a.add("--ckpt-format", "fsdp_dtensor")
        a.add("--no-gradient-accumulation-fusion")
        a.add("--init-model-with-meta-device")
    if layout.sharding == "hsdp":
        a.add("--num-distributed-optimizer-instances", layout.dp * layout.cp // layout.shard_group)
    if layout.dp * layout.cp > 1 and (float(software.dp_overlap) > 0 or sharded):
        a.add("--overlap-grad-reduce")
        if layout.sharding != "none":
            a.add("--overlap-param-gather")


def _megatron_stages(model: Model, layout: Layout) -> str:
    """Stages as --pipeline-model-parallel-layout spells them; runs of equal stages are written once."""
    parts: list[str] = []
    stages = [_short(stage) for stage in stage_tokens(model, layout)]
    at = 0
    while at < len(stages):
        run = 1
        while at + run < len(stages) and stages[at + run] == stages[at]:
            run += 1
        parts.append(f"({stages[at]}|)*{run}" if run > 1 else f"{stages[at]}|")
        at += run
    return "".join(parts).removesuffix("|")


def _short(stage: str) -> str:
    """Runs of one letter with their count: "Ettt" is "Et*3"."""
    result, at = "", 0
    while at < len(stage):
        run = len(stage[at:]) - len(stage[at:].lstrip(stage[at]))
        result += f"{stage[at]}*{run}" if run > 2 else stage[at] * run
        at += run
        if run > 2 and at < len(stage):
            result += ","
    return result


def _megatron_batch(a: _Arguments, job: _Job) -> None:
    a.group()
    a.add("--seq-length", job.sequence_length)
    a.add("--micro-batch-size", job.layout.micro_batch)
    a.add("--global-batch-size", job.global_batch_sequences)
    a.add("--train-iters", job.steps)
    a.add("--lr", "1e-4")
    a.add("--min-lr", "1e-5")
    a.add("--lr-decay-style", "cosine")
    a.add("--clip-grad", "1.0")


def _megatron_precision(a: _Arguments, job: _Job) -> None:
    precision = job.layout.precision
    a.group()
    if precision != "fp32":
        a.add("--fp16" if precision == "fp16" else "--bf16")
    if precision in MEGATRON_FP8_RECIPE:
        a.add("--fp8-format", "hybrid" if precision != "mxfp8" else "e4m3")
        a.add("--fp8-recipe", MEGATRON_FP8_RECIPE[precision])
        a.add("--fp8-param-gather")
    if precision == "nvfp4":
        a.add("--fp4-format", "e2m1")
        a.add("--fp4-recipe", "nvfp4")
    if float(job.software.gradient_bytes) <= 2.0:
        a.add("--grad-reduce-in-bf16")
    a.add("--attention-backend", "flash" if float(job.software.flash_attention) > 0 else "unfused")
    if float(job.software.logit_bytes) <= 4.0:
        a.add("--cross-entropy-loss-fusion")


def _megatron_recompute(a: _Arguments, job: _Job) -> None:
    recompute = job.layout.recompute
    if recompute == "none":
        return
    a.group()
    a.add("--recompute-granularity", recompute)
    if recompute == "full":
        a.add("--recompute-method", "uniform")
        a.add("--recompute-num-layers", 1)
        return
    modules = ["core_attn"]
    if float(job.software.selective_kind) != SELECTIVE_CORE:
        modules = ["layernorm"]
        if float(job.software.flash_attention) <= 0:
            modules.append("core_attn")
        if job.model.is_moe:
            modules.append("moe_act")
    a.add("--recompute-modules", *modules)


def _megatron_data(a: _Arguments, job: _Job) -> None:
    """Synthetic data of the model's vocabulary: what the prediction is for. Replace it to train."""
    a.group()
    a.add("--mock-data")
    a.add("--tokenizer-type", "NullTokenizer")
    a.add("--vocab-size", job.model.vocabulary_size)
    a.add("--split", "99,1,0")
    a.add("--log-interval", 1)
    a.add("--log-throughput")
    a.add("--eval-iters", 0)


@dataclass(frozen=True, slots=True)
class _Titan:
    """A model that torchtitan publishes a configuration for."""

    module: str
    function: str
    flavor: str
    layer_count: int
    hidden_size: int
    expert_count: int


_TITANS: tuple[_Titan, ...] = (
    _Titan("llama3", "llama3_8b", "8B", 32, 4096, 0),
    _Titan("llama3", "llama3_70b", "70B", 80, 8192, 0),
    _Titan("llama3", "llama3_405b", "405B", 126, 16384, 0),
    _Titan("deepseek_v3", "deepseek_v3_16b", "16B", 27, 2048, 64),
    _Titan("deepseek_v3", "deepseek_v3_671b", "671B", 61, 7168, 256),
    _Titan("qwen3", "qwen3_0_6b", "0.6B", 28, 1024, 0),
    _Titan("qwen3", "qwen3_1_7b", "1.7B", 28, 2048, 0),
    _Titan("qwen3", "qwen3_14b", "14B", 40, 5120, 0),
    _Titan("qwen3", "qwen3_32b", "32B", 64, 5120, 0),
    _Titan("qwen3", "qwen3_30b_a3b", "30B-A3B", 48, 2048, 128),
    _Titan("gpt_oss", "gpt_oss_20b", "20b", 24, 2880, 32),
    _Titan("gpt_oss", "gpt_oss_120b", "120b", 36, 2880, 128),
)

_TITAN_CONVERTERS: Mapping[str, tuple[str, str]] = {
    "fp8-rowwise": ("Float8LinearConverter", "Float8GroupedExpertsConverter"),
    "mxfp8": ("MXFP8LinearConverter", "MXFP8GroupedExpertsConverter"),
    "nvfp4": ("NVFP4LinearConverter", ""),
}


def _titan_of(model: Model) -> _Titan | None:
    key = (model.layer_count, model.hidden_size, model.experts.expert_count if model.experts else 0)
    llama = model.family.startswith("llama")
    for titan in _TITANS:
        if key == (titan.layer_count, titan.hidden_size, titan.expert_count) and (titan.module != "llama3" or llama):
            return titan
    return None


def _torchtitan_problems(job: _Job, titan: _Titan | None) -> list[Problem]:
    layout = job.layout
    problems = []
    if titan is None:
        accepted = list_names([f"{t.module} {t.flavor}" for t in _TITANS]) + " in torchtitan"
        problems.append(Problem(where="model", found=job.model.name, accepted=accepted))
    if layout.pp > 1 and layout.schedule not in ("1f1b", "gpipe"):
        accepted = "1f1b or gpipe in torchtitan (its zero-bubble and DualPipe variants hold two stages per rank)"
        problems.append(Problem(where="layout.schedule", found=layout.schedule, accepted=accepted))
    if layout.sharding in ("zero1", "zero2") and layout.dp * layout.cp > 1:
        accepted = "none, zero3 or hsdp in torchtitan"
        problems.append(Problem(where="layout.sharding", found=layout.sharding, accepted=accepted))
    shard = _titan_shard_degree(layout)
    if layout.sharding == "hsdp" and (layout.shard_group % layout.cp or layout.dp % shard):
        accepted = f"a multiple of cp that divides dp x cp = {layout.dp * layout.cp} in torchtitan"
        problems.append(Problem(where="layout.shard_group", found=layout.shard_group, accepted=accepted))
    if (shard * layout.cp * layout.tp) % layout.ep:
        accepted = f"a size that divides the {shard * layout.cp * layout.tp} ranks of one sharded copy in torchtitan"
        problems.append(Problem(where="layout.ep", found=layout.ep, accepted=accepted))
    if layout.etp > 1:
        problems.append(Problem(where="layout.etp", found=layout.etp, accepted="1 in torchtitan"))
    precisions = _TORCHTITAN_PRECISIONS if job.model.experts is None else _TORCHTITAN_PRECISIONS[:3]
    if layout.precision not in precisions:
        accepted = list_names(precisions) + " in torchtitan"
        problems.append(Problem(where="layout.precision", found=layout.precision, accepted=accepted))
    return problems


def _torchtitan(job: _Job) -> Launch:
    """A configuration module, since torchtitan takes models, precision and recomputation from Python only."""
    titan = _titan_of(job.model)
    problems = _torchtitan_problems(job, titan)
    if problems or titan is None:
        raise RequestError(problems)
    layout = job.layout
    settings = _titan_settings(job)
    converters = _titan_converters(job)
    recompute = {"none": "", "selective": "SelectiveAC", "full": "FullAC"}[layout.recompute]
    imports = []
    if converters:
        imports.append(f"from torchtitan.components.quantization import {', '.join(sorted(converters))}")
    if recompute:
        imports.append(f"from torchtitan.distributed.activation_checkpoint import {recompute}")
    mtp = job.model.mtp_layer_count if titan.module == "deepseek_v3" else 0
    registry = [f'"{titan.flavor}"']
    if converters:
        built = ", ".join(f"{name}.Config(model_compile_enabled=True)" for name in converters)
        registry.append(f"converters=[{built}]")
    if mtp:
        registry.append(f"num_mtp_layers={mtp}")
        imports += [
            "from torchtitan.models.common.config_utils import decoder_vocab_size",
            "from torchtitan.models.deepseek_v3.mtp import MTPLoss",
        ]
    imports.append(f"from torchtitan.models.{titan.module} import model_registry")
    imports.append(f"from torchtitan.models.{titan.module}.config_registry import {titan.function}")
    # Published configurations may convert to a narrow precision of their own, so the model is always built anew.
    body = [f"config = {titan.function}()", f"config.model_spec = model_registry({', '.join(registry)})"]
    if mtp:
        body.append("config.loss = MTPLoss.Config(global_vocab_size=decoder_vocab_size(config.model_spec))")
    body += [f"config.{name} = {value!r}" for name, value in settings.items()]
    body.append(f"config.activation_checkpoint = {recompute + '.Config()' if recompute else None}")
    body.append("return config")
    lines = _header(job)
    lines += ["cat > lakh_plan.py <<'EOF'", *imports, "", "", "def plan():", *(f"    {line}" for line in body), "EOF"]
    lines.append(f'PYTHONPATH="$PWD" {_torchrun(job)} \\\n  -m torchtitan.train --module lakh_plan --config plan')
    return Launch(
        framework="torchtitan",
        text="\n".join(lines) + "\n",
        options=("--module", "--config", *settings, "activation_checkpoint", *converters),
    )


def _titan_converters(job: _Job) -> list[str]:
    linear, experts = _TITAN_CONVERTERS.get(job.layout.precision, ("", ""))
    return [name for name in (linear, experts if job.model.is_moe else "") if name]


def _titan_shard_degree(layout: Layout) -> int:
    """Data-parallel ranks that share one copy; torchtitan counts the context-parallel ranks of a group apart."""
    if layout.sharding == "hsdp":
        return max(layout.shard_group // layout.cp, 1)
    return 1 if layout.sharding == "none" else layout.dp


def _titan_settings(job: _Job) -> dict[str, object]:
    """Fields of torchtitan's configuration, in its names."""
    layout = job.layout
    shard = _titan_shard_degree(layout)
    micro_batches = job.global_batch_sequences // (layout.dp * layout.micro_batch)
    settings: dict[str, object] = {
        "parallelism.data_parallel_replicate_degree": layout.dp // shard,
        "parallelism.data_parallel_shard_degree": shard,
        "parallelism.fsdp_reshard_after_forward": "always",
        "parallelism.tensor_parallel_degree": layout.tp,
        "parallelism.enable_sequence_parallel": layout.sequence_parallel,
        "parallelism.context_parallel_degree": layout.cp,
        "parallelism.pipeline_parallel_degree": layout.pp,
    }
    if layout.pp > 1:
        single = "1F1B" if layout.schedule == "1f1b" else "GPipe"
        settings["parallelism.pipeline_parallel_schedule"] = "Interleaved1F1B" if layout.vpp > 1 else single
        settings["parallelism.num_pp_microbatches"] = micro_batches
        settings["parallelism.module_fqns_per_model_part"] = _titan_stages(job.model, layout)
    if job.model.is_moe:
        settings["parallelism.expert_parallel_degree"] = layout.ep
    settings |= {
        "training.max_context_length": job.sequence_length,
        "training.num_tokens_per_microbatch_per_dp_rank": layout.micro_batch * job.sequence_length,
        "training.num_tokens_per_train_step": job.global_batch_sequences * job.sequence_length,
        "training.steps": job.steps,
        "training.disable_cuda_graphs": True,
        "compile.enable": True,
    }
    return settings


def _titan_stages(model: Model, layout: Layout) -> list[list[str]]:
    """Module names of each stage. Multi-token-prediction layers stay with the output layer."""
    result: list[list[str]] = []
    layer = 0
    words: Mapping[str, Sequence[str]] = {"E": ("tok_embeddings",), "L": ("norm", "lm_head"), "m": ()}
    for stage in stage_tokens(model, layout):
        names: list[str] = []
        for token in stage:
            if token == "t":
                names.append(f"layers.{layer}")
                layer += 1
            else:
                names += words[token]
        result.append(names)
    return result
