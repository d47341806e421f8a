"""What did others measure? One row of a measurements CSV, as it is run: model, layout, hardware, software.

The columns are those of `lakh/catalog/measurements/training-measured.csv`; users bring their own runs in the same
columns. A row that does not say enough is kept with the reason, never dropped.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lakh import catalog
from lakh.catalog import Accelerator, Model, Node
from lakh.catalog.model import Experts
from lakh.errors import Problem, SpecError, UnknownNameError, list_names, nearest_hint
from lakh.perf.software import SELECTIVE_CORE, SELECTIVE_PER_OP
from lakh.spec.layout import Layout, Precision, Recompute, Sharding

REQUIRED_COLUMNS: tuple[str, ...] = ("row_id", "model", "hardware", "n_accel", "seq_len", "micro_batch")
NUMBER_COLUMNS: tuple[str, ...] = (
    "layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab", "seq_len", "n_accel", "tp", "pp", "vpp",
    "cp", "ep", "etp", "dp", "micro_batch", "params_b", "active_params_b", "global_batch_seqs", "step_time_s",
    "tokens_per_s_per_accel", "tokens_per_s_total", "mem_gib", "scale_up_domain",
)  # fmt: skip


MOST_BYTES = 32 * 2**20
"""Largest file of measurements that is read: a hundred times the one that ships."""

UNSTATED_MANY = ">1"
"""A cell that says "several" without a number; understood in the vpp column (interleaved, chunks not stated)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A measured run, ready to be predicted."""

    row_id: str
    source: str
    hardware: str
    model: Model
    layout: Layout
    accelerator: Accelerator
    node: Node
    scale_out_bytes_per_s: float | None
    generation: str
    switches: Mapping[str, float]
    """SoftwareInput fields that this run states otherwise than its generation."""
    mtp_layer_count: int
    sequence_length: int
    global_batch_sequences: int
    measured_step_time_s: float | None
    measured_memory_gib: float | None
    memory_kind: str
    published: str
    trust: float
    """Weight in the fit, 0 to 1: how the figure was read."""
    recompute_stated: bool
    assumptions: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "moe" if self.model.is_moe else "dense"


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A row that cannot be predicted, and why."""

    row_id: str
    source: str
    hardware: str
    kind: str
    reason: str
    measured_step_time_s: float | None = None


@dataclass(slots=True)
class _Row:
    """One CSV row with typed access; collects problems instead of stopping at the first."""

    where: str
    cells: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)

    def text(self, name: str) -> str:
        return (self.cells.get(name) or "").strip()

    def number(self, name: str) -> float | None:
        text = self.text(name)
        if not text or text == UNSTATED_MANY:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0:
            self.problems.append(
                Problem(where=f"{self.where}: {name}", found=text, accepted="a number of 0 or more, or an empty cell")
            )
            return None
        return value

    def count(self, name: str, default: int | None = None) -> int | None:
        value = self.number(name)
        if value is None:
            return default
        if value != int(value) or value < 1:
            self.problems.append(
                Problem(where=f"{self.where}: {name}", found=self.text(name), accepted="a whole number of 1 or more")
            )
            return default
        return int(value)


def read_measurements(path: str | Path) -> list[Case | Skipped]:
    """Read a measurements CSV; one entry per row, in order.

    Raises:
        SpecError: not a readable CSV with the required columns, or a cell that is not what its column says
    """
    file = Path(path)
    rows = _read_rows(file)
    problems: list[Problem] = []
    result: list[Case | Skipped] = []
    for line, cells in rows:
        row = _Row(where=f"{file}:{line}", cells=cells)
        entry = _read_case(row)
        problems.extend(row.problems)
        if not row.problems:
            result.append(entry)
    if problems:
        raise SpecError(problems[:50])
    return result


def _read_rows(file: Path) -> list[tuple[int, dict[str, str]]]:
    where = str(file)
    if file.exists() and not file.is_dir():
        if not file.is_file():
            raise SpecError(Problem(where=where, found="not a regular file", accepted="a CSV file that can be read"))
        if file.stat().st_size > MOST_BYTES:
            found, accepted = f"{file.stat().st_size:,} bytes", f"at most {MOST_BYTES:,} bytes of measurements"
            raise SpecError(Problem(where=where, found=found, accepted=accepted))
    try:
        with file.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.DictReader(handle, strict=True)
            header = reader.fieldnames or []
            missing = [name for name in REQUIRED_COLUMNS if name not in header]
            if missing:
                raise SpecError(
                    Problem(
                        where=f"{where}:1",
                        found=list_names([name or "" for name in header]) or "an empty file",
                        accepted=f"a header with the columns {', '.join(REQUIRED_COLUMNS)}",
                        hint=f"Missing: {', '.join(missing)}. {nearest_hint(missing[0], list(header))}".strip(),
                    )
                )
            rows = []
            for cells in reader:
                if None in cells or None in cells.values():
                    raise SpecError(
                        Problem(
                            where=f"{where}:{reader.line_num}",
                            found="a row with another number of cells than the header",
                            accepted=f"{len(header)} cells",
                        )
                    )
                rows.append((reader.line_num, cells))
    except OSError as error:
        raise SpecError(Problem(where=where, found=error.strerror, accepted="a CSV file that can be read")) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError(Problem(where=where, found=str(error), accepted="comma-separated text in UTF-8")) from error
    if not rows:
        raise SpecError(Problem(where=where, found="no rows", accepted="at least one row under the header"))
    return rows


def _read_case(row: _Row) -> Case | Skipped:
    numbers = {name: row.number(name) for name in NUMBER_COLUMNS}
    row_id, source, hardware = row.text("row_id"), row.text("source") or "unnamed", row.text("hardware")
    kind = "dense"

    def skipped(reason: str) -> Skipped:
        return Skipped(
            row_id=row_id,
            source=source,
            hardware=hardware,
            kind=kind,
            reason=reason,
            measured_step_time_s=_step_time_s(row),
        )

    model = _named_or_described(row)
    if isinstance(model, str):
        return skipped(model)
    try:
        accelerator = catalog.accelerator(hardware)
    except UnknownNameError as error:
        return skipped(str(error))
    kind = "moe" if model.is_moe else "dense"
    if not model.formulae_apply:
        return skipped("hybrid or linear attention: the operators of this model are not described by its columns")
    missing = [
        column
        for column in ("n_accel", "seq_len", "micro_batch", "global_batch_seqs", "tp", "pp")
        if not numbers[column]
    ]
    if missing:
        return skipped(f"not a full layout: {', '.join(missing)} not stated")
    model = _as_run(model, row)
    assumptions: list[str] = []
    generation, switches = generation_of(row.text("framework"), row.text("published"), row.text("features"))
    layout = _layout(row, model, generation, assumptions)
    if isinstance(layout, str):
        return skipped(layout)
    _batch_precision_switches(row, layout, switches)
    node = catalog.default_node_for(accelerator.name)
    mtp = 1 if ("MTP layer" in row.text("flop_convention") or "MTP layer" in row.text("features")) else 0
    if "no MTP" in row.text("features"):
        mtp = 0
    return Case(
        row_id=row_id,
        source=source,
        hardware=hardware,
        model=model,
        layout=layout,
        accelerator=accelerator,
        node=node,
        scale_out_bytes_per_s=_scale_out(row.text("interconnect"), node.accelerator_count),
        generation=generation,
        switches=switches,
        mtp_layer_count=mtp,
        sequence_length=row.count("seq_len") or 1,
        global_batch_sequences=row.count("global_batch_seqs") or 1,
        measured_step_time_s=_step_time_s(row),
        measured_memory_gib=numbers["mem_gib"],
        memory_kind=row.text("mem_kind"),
        published=row.text("published"),
        trust=_trust(row),
        recompute_stated=row.text("recompute") not in ("", "not stated"),
        assumptions=tuple(assumptions),
    )


def _named_or_described(row: _Row) -> Model | str:
    """The catalogue's model of that name; else a dense one from the architecture columns; else why neither."""
    name = row.text("model")
    try:
        if name:
            return catalog.model(name)
        missing = "the model is not named, so its layers are unknown"
    except UnknownNameError as error:
        missing = str(error)
    layers, hidden, heads = row.count("layers"), row.count("hidden"), row.count("heads")
    ffn, vocabulary = row.count("ffn"), row.count("vocab")
    if not (layers and hidden and heads and ffn and vocabulary) or row.number("active_params_b"):
        return missing
    plain, gated = (
        Model(
            name=name or f"described in row {row.text('row_id')}",
            family="described",
            layer_count=layers,
            hidden_size=hidden,
            ffn_size=ffn,
            head_count=heads,
            kv_head_count=row.count("kv_heads") or heads,
            head_size=row.count("head_dim") or max(hidden // heads, 1),
            vocabulary_size=vocabulary,
            mlp_matrix_count=matrices,
            source="architecture columns of the row",
        )
        for matrices in (2, 3)
    )
    stated = (row.number("params_b") or 0.0) * 1e9
    if not stated:
        return gated
    # Gated MLPs have three matrices and plain ones two: the stated size tells which.
    return min(plain, gated, key=lambda model: abs(model.parameter_count - stated))


def _step_time_s(row: _Row) -> float | None:
    """Measured step time, or what the stated token rate implies."""
    stated = row.number("step_time_s")
    if stated:
        return stated
    rate, accelerators = row.number("tokens_per_s_per_accel"), row.number("n_accel")
    batch, sequence = row.number("global_batch_seqs"), row.number("seq_len")
    if rate and accelerators and batch and sequence:
        return batch * sequence / (rate * accelerators)
    return None


def _as_run(model: Model, row: _Row) -> Model:
    """The model with the architecture columns of the row, which say what was run."""
    changes: dict[str, object] = {}
    columns = {
        "layers": "layer_count", "hidden": "hidden_size", "heads": "head_count", "kv_heads": "kv_head_count",
        "vocab": "vocabulary_size",
    }  # fmt: skip
    for column, name in columns.items():
        value = row.count(column)
        if value is not None and value != getattr(model, name):
            changes[name] = value
    if model.latent_attention is None:
        head_size = row.count("head_dim")
        square = model.head_count * model.head_size == model.hidden_size
        if "head_count" in changes and (head_size is None or square):
            # Heads share the hidden size: another number of heads means another width of each.
            head_size = max(
                int(str(changes.get("hidden_size", model.hidden_size))) // int(str(changes["head_count"])), 1
            )
        if head_size is not None and head_size != model.head_size:
            changes["head_size"] = head_size
        if "head_count" in changes and "kv_head_count" not in changes and model.kv_head_count == model.head_count:
            changes["kv_head_count"] = changes["head_count"]
    if not model.is_moe:
        width = row.count("ffn")
        if width is not None and width != model.ffn_size:
            changes["ffn_size"] = width
    elif "layer_count" in changes and model.experts is not None:
        kept = model.moe_layer_count * int(str(changes["layer_count"])) // model.layer_count
        experts: Experts = replace(model.experts, moe_layer_count=max(kept, 1))
        changes["experts"] = experts
    return replace(model, **changes) if changes else model  # type: ignore[arg-type]


_SHARDING_WORDS: tuple[tuple[str, Sharding], ...] = (
    ("fsdp inside slice", "hsdp"),
    ("fsdp within", "hsdp"),
    ("shard_grad_op", "zero2"),
    ("full_shard", "zero3"),
    ("fsdp", "zero3"),
    ("zero-3", "zero3"),
    ("zero-1", "zero1"),
    ("distributed optimizer", "zero1"),
    ("none", "none"),
)


def _sharding(row: _Row, generation: str) -> Sharding:
    text = row.text("sharding").lower()
    for word, sharding in _SHARDING_WORDS:
        if word in text:
            return sharding
    return "zero1" if generation.startswith("megatron-202") and generation >= "megatron-2023" else "none"


def _recompute(row: _Row) -> Recompute:
    text = row.text("recompute").lower()
    if text.startswith("full"):
        return "full"
    if text.startswith(("selective", "norm", "minimal")) or text == "see features":
        return "selective"
    return "none"


def _layout(row: _Row, model: Model, generation: str, assumptions: list[str]) -> Layout | str:
    """The layout of a row; a string says why there is none."""
    accelerators = row.count("n_accel") or 1
    tp, pp, cp = row.count("tp", 1) or 1, row.count("pp", 1) or 1, row.count("cp", 1) or 1
    ep, etp = row.count("ep", 1) or 1, row.count("etp", 1) or 1
    if row.text("hardware") == "Trainium1":
        # The measurements count NeuronCores in tp and chips in n_accel, two cores to a chip.
        tp = max(tp // 2, 1)
        assumptions.append("tp counts cores; two to an accelerator")
    if accelerators % (tp * pp * cp):
        return f"tp {tp} x pp {pp} x cp {cp} does not divide {accelerators} accelerators"
    vpp = row.count("vpp")
    if row.text("vpp") == UNSTATED_MANY:
        vpp = 2
        assumptions.append("interleaved, number of chunks not stated: vpp 2")
    if vpp is None:
        vpp = _unstated_vpp(row, model, generation, pp, accelerators // (tp * pp * cp))
        if vpp > 1:
            assumptions.append(f"interleaving not stated; the framework's recipes interleave: vpp {vpp}")
    sharding = _sharding(row, generation)
    dp = accelerators // (tp * pp * cp)
    group = 0
    if sharding == "hsdp":
        group = min(256, dp)
        if group >= dp:
            sharding, group = "zero3", 0
    if model.is_moe and (dp * cp * tp) % (ep * etp):
        return f"ep {ep} x etp {etp} does not divide the {dp * cp * tp} ranks of a pipeline stage"
    if row.text("recompute") in ("", "not stated"):
        assumptions.append("recomputation not stated: the least that fits is taken")
    sequence_parallel = tp > 1 and not generation.startswith(("megatron-2021", "deepspeed-2022"))
    if generation.startswith("megatron-2022"):
        sequence_parallel = "sequence parallel" in row.text("recompute")
    return Layout(
        tp=tp,
        cp=cp,
        pp=pp,
        vpp=vpp,
        dp=dp,
        ep=ep if model.is_moe else 1,
        etp=etp if model.is_moe else 1,
        micro_batch=row.count("micro_batch", 1) or 1,
        sharding=sharding,
        shard_group=group,
        recompute=_recompute(row),
        precision=_precision(row),
        sequence_parallel=sequence_parallel,
    )


def _unstated_vpp(row: _Row, model: Model, generation: str, pp: int, dp: int) -> int:
    """Interleaving where a row does not say: NeMo and Megatron-Bridge recipes interleave as deep as layers allow."""
    framework = row.text("framework").lower()
    if pp <= 1 or not ("nemo" in framework or "bridge" in framework):
        return 1
    micro_batches = (row.count("global_batch_seqs") or 1) // (dp * (row.count("micro_batch") or 1))
    if micro_batches % pp:
        return 1
    layers = model.layer_count
    for chunks in range(layers // pp, 0, -1):
        if layers % (pp * chunks) == 0 or (layers + 2) % (pp * chunks) == 0:
            return chunks
    return 1


def _precision(row: _Row) -> Precision:
    text = row.text("precision").lower() or "bf16"
    accepted = ("bf16", "fp16", "fp8", "fp8-cs", "fp8-rowwise", "mxfp8", "nvfp4", "int8", "fp32")
    if text not in accepted:
        row.problems.append(
            Problem(
                where=f"{row.where}: precision",
                found=text,
                accepted=", ".join(accepted),
                hint=nearest_hint(text, accepted),
            )
        )
        return "bf16"
    return text  # type: ignore[return-value]


_PER_NODE = re.compile(r"(?:(\d+)\s*x\s*)?(\d+)\s*Gb/s[^;,]*per node", re.IGNORECASE)
_PER_ACCELERATOR = re.compile(r"(\d+)\s*Gb/s RDMA per GPU", re.IGNORECASE)


def _scale_out(text: str, accelerators_per_node: int) -> float | None:
    """Network share of one accelerator where the interconnect column states it [byte/s], else None.

    Understood: "1600 Gb/s per node", "8x400Gb/s InfiniBand per node", "400Gb/s RDMA per GPU".
    """
    match = _PER_ACCELERATOR.search(text)
    if match:
        return float(match[1]) * 1e9 / 8.0
    match = _PER_NODE.search(text)
    if match:
        return float(match[1] or 1) * float(match[2]) * 1e9 / 8.0 / accelerators_per_node
    return None


def _trust(row: _Row) -> float:
    """Weight of a row, from how its figures were read (the measurements' README)."""
    if row.text("verified") == "recall":
        return 0.2
    if "digitiz" in row.text("verify_note").lower():
        return 0.3
    return 1.0


def generation_of(framework: str, published: str, features: str) -> tuple[str, dict[str, float]]:
    """Framework generation of a run and the switches that it states.

    Generations are framework family and year; the year is the publication's where the framework states none.
    """
    name, year = framework.lower(), int(published[:4]) if published[:4].isdigit() else 2025
    half = 2 if len(published) >= 7 and published[5:7].isdigit() and int(published[5:7]) >= 7 else 1
    text = features.lower()
    switches: dict[str, float] = {}
    if "composer" in name or "fsdp" in name:
        generation = "fsdp-2023" if year <= 2023 else "fsdp-2025"
    elif "maxtext" in name or "jax" in name or "paxml" in name:
        generation = "jax"
    elif "habana" in name or name.startswith(("pytorch 1.13", "pytorch 2.0")):
        generation = "megatron-2023"
    elif year <= 2022 and "deepspeed" in name:
        generation = "deepspeed-2022"
    elif year <= 2021:
        generation = "megatron-2021"
    elif year == 2022:
        generation = "megatron-2022" if name.startswith("megatron-lm") else "megatron-2021"
    elif year == 2023:
        generation = "megatron-2023"
    elif year == 2024:
        generation = "megatron-2024"
    elif year == 2025:
        generation = "megatron-2025"
    else:
        generation = "megatron-2026" if half == 1 else "megatron-2026h2"
    if year >= 2024 and ("nemo" in name or "bridge" in name or "nvidia" in name):
        # These recipes reduce gradients in bf16 (grad_reduce_in_fp32 off).
        switches["gradient_bytes"] = 2.0
    if "no comm overlap" in name or "overlap features disabled" in text:
        switches |= {"tp_overlap": 0.0, "dp_overlap": 0.0, "pp_overlap": 0.0, "cp_overlap": 0.0, "ep_overlap": 0.0}
    if "cuda_launch_blocking" in text:
        switches["launch_blocking"] = 1.0
    if "async tp" in text:
        switches["tp_overlap"] = 0.7
    elif "vanilla tp" in text:
        switches["tp_overlap"] = 0.0
    if "nccl all-to-all" in text or "all-to-all dispatcher" in text:
        switches["dispatch_dedup"] = 0.0
    if "deepep" in text or "hybridep" in text or "bridge" in name:
        switches["dispatch_dedup"] = 1.0
    if "a2a overlap" in text or "all-to-all overlap" in text:
        switches["ep_overlap"] = 0.8
    if "cuda graphs" in text and "graphs (" not in text:
        switches |= {"moe_layer_host_s": 2e-3, "dense_layer_host_s": 2e-4}
    return generation, switches


def _batch_precision_switches(row: _Row, layout: Layout, switches: dict[str, float]) -> None:
    """Switches that come from the sharding column: how wide gradients and optimizer states are kept."""
    text = row.text("sharding").lower()
    if "pure" in text:
        switches["gradient_bytes"] = 2.0
    if "bf16 optimizer states" in text:
        switches["optimizer_bytes"] = 8.0
    if "deepspeed" in row.text("framework").lower() and layout.precision == "bf16" and layout.pp > 1:
        # DeepSpeed's bf16 pipeline optimizer keeps the bf16 gradients beside their fp32 accumulation.
        switches["gradient_copy_bytes"] = 2.0
    recompute = row.text("recompute")
    if "--recompute-activations" in recompute or "attention core" in recompute:
        switches["selective_kind"] = float(SELECTIVE_CORE)
    elif "per op" in recompute:
        switches["selective_kind"] = float(SELECTIVE_PER_OP)


def cases_of(entries: Iterable[Case | Skipped]) -> list[Case]:
    """The rows that can be predicted."""
    return [entry for entry in entries if isinstance(entry, Case)]
