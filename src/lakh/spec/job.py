"""What does a tenant want? One job: its kind, its model, its work and how much of the cluster it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from lakh.catalog import Model
from lakh.evidence import Fact
from lakh.spec.layout import Layout

JobKind = Literal["train", "serve", "simulate", "command"]
"""train: a model over tokens; serve: a model to users; simulate: worlds for embodied training; command: a program."""

Objective = Literal["step-time", "cost", "energy"]

JOB_KINDS: tuple[str, ...] = get_args(JobKind)
OBJECTIVES: tuple[str, ...] = get_args(Objective)


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """The work of a training job."""

    sequence_length: int
    """Tokens per sequence."""
    global_batch_sequences: int
    """Sequences per optimizer step."""
    tokens: Fact | None = None
    """Tokens of the whole run [token]."""

    @property
    def global_batch_tokens(self) -> int:
        return self.sequence_length * self.global_batch_sequences

    @property
    def step_count(self) -> float | None:
        """Optimizer steps of the whole run; None where its tokens are not stated."""
        return None if self.tokens is None else self.tokens.value / self.global_batch_tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Constraints:
    """What a plan for the job must keep to. None: no constraint."""

    objective: Objective = "step-time"
    precisions: tuple[str, ...] = ()
    """Number formats a plan may use; empty: any that the accelerator has."""
    run_time_s_max: Fact | None = None
    power_watt_max: Fact | None = None
    cost_max: Fact | None = None
    """In the currency of the cluster's prices [rmb or usd]."""
    tp_max: int | None = None
    sites: tuple[str, ...] = ()
    """Sites the job may use; empty: any."""
    one_site: bool = True
    """All of the job at one site."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One job, as asked for."""

    name: str
    kind: JobKind
    project: str | None = None
    model: Model | None = None
    """Present for "train" and "serve"."""
    workload: Workload | None = None
    """Present for "train"."""
    layout: Layout | None = None
    """None: the planner chooses."""
    accelerators: int | None = None
    """Accelerators asked for; None: as many as the question varies over."""
    framework: str | None = None
    """Training framework, such as "megatron"; None: any."""
    command: tuple[str, ...] = ()
    """Program and arguments; present for "simulate" and "command"."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    constraints: Constraints = field(default_factory=Constraints)
    origin: str = ""
    """File it came from."""
