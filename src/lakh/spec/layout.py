"""How is the work divided? One parallel layout, in the field's own words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from lakh.errors import Problem, SpecError, list_names, nearest_hint

Sharding = Literal["none", "zero1", "zero2", "zero3", "hsdp"]
"""What is sharded over the data-parallel group. none: everything replicated; zero1: optimizer state (Megatron's
distributed optimizer); zero2: gradients too; zero3: weights too (FSDP); hsdp: weights sharded inside a group of
`shard_group` ranks and replicated over groups."""

Recompute = Literal["none", "selective", "full"]
"""Activations recomputed in the backward pass. selective: the cheap, large parts (norms, activation functions,
softmax without flash attention); full: every layer from its input."""

Schedule = Literal["1f1b", "gpipe", "zero-bubble", "dualpipe"]
"""Pipeline schedule; "1f1b" with vpp > 1 is the interleaved one."""

Precision = Literal["bf16", "fp16", "fp8", "fp8-cs", "fp8-rowwise", "mxfp8", "nvfp4", "int8", "fp32"]
"""Number format of the GEMMs. Attention, norms and the optimizer stay wider."""

SHARDINGS: tuple[str, ...] = get_args(Sharding)
RECOMPUTES: tuple[str, ...] = get_args(Recompute)
SCHEDULES: tuple[str, ...] = get_args(Schedule)
PRECISIONS: tuple[str, ...] = get_args(Precision)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """One parallel layout. Accelerators used: tp * cp * pp * dp."""

    tp: int = 1
    """Tensor parallel size."""
    cp: int = 1
    """Context parallel size."""
    pp: int = 1
    """Pipeline parallel size."""
    vpp: int = 1
    """Model chunks per pipeline rank (interleaving)."""
    dp: int = 1
    """Data parallel size; includes the ranks that expert parallel reuses."""
    ep: int = 1
    """Expert parallel size; divides the dp * cp * tp / etp ranks that hold one pipeline stage."""
    etp: int = 1
    """Tensor parallel size inside one expert."""
    micro_batch: int = 1
    """Sequences per micro-batch."""
    sharding: Sharding = "zero1"
    shard_group: int = 0
    """Ranks that share one copy under "hsdp"; 0 elsewhere."""
    recompute: Recompute = "none"
    schedule: Schedule = "1f1b"
    precision: Precision = "bf16"
    sequence_parallel: bool = True
    """Norms and residuals split along the sequence over the tensor-parallel group."""

    @property
    def accelerator_count(self) -> int:
        return self.tp * self.cp * self.pp * self.dp

    def __post_init__(self) -> None:
        problems = [
            Problem(where=f"layout.{name}", found=value, accepted="a whole number of 1 or more")
            for name in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "micro_batch")
            if not isinstance(value := getattr(self, name), int) or isinstance(value, bool) or value < 1
        ]
        closed = {"sharding": SHARDINGS, "recompute": RECOMPUTES, "schedule": SCHEDULES, "precision": PRECISIONS}
        for name, accepted in closed.items():
            value = getattr(self, name)
            if value not in accepted:
                hint = nearest_hint(value, accepted)
                problems.append(Problem(where=f"layout.{name}", found=value, accepted=list_names(accepted), hint=hint))
        if self.sharding == "hsdp" and self.shard_group < 2:
            problems.append(Problem(where="layout.shard_group", found=self.shard_group, accepted="2 or more with hsdp"))
        if problems:
            raise SpecError(problems)

    def describe(self) -> str:
        """The layout on one line, sizes of 1 left out: "tp8 pp16 vpp4 dp64 zero1 mb1"."""
        sizes = [f"{name}{getattr(self, name)}" for name in ("tp", "cp", "pp", "vpp", "ep", "etp", "dp")]
        parts = [size for size in sizes if size.lstrip("abcdefghijklmnopqrstuvwxyz") != "1"] or ["dp1"]
        parts.append(self.sharding if self.sharding != "hsdp" else f"hsdp{self.shard_group}")
        parts.append(f"mb{self.micro_batch}")
        if self.recompute != "none":
            parts.append(f"recompute={self.recompute}")
        if self.pp > 1 and self.schedule != "1f1b":
            parts.append(self.schedule)
        parts.append(self.precision)
        return " ".join(parts)


LAYOUT_FIELDS: tuple[str, ...] = tuple(field.name for field in fields(Layout))
