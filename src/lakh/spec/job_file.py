"""How is job.yaml read? Its schema, the checks over several fields, and the way into `Job`."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from lakh.catalog import Model
from lakh.errors import RequestError, SpecError
from lakh.spec.document import Document, Location, read_document
from lakh.spec.door import Checks, DoorModel, Money, Second, Tokens, Watt, validate
from lakh.spec.job import Constraints, Job, JobKind, Objective, Workload
from lakh.spec.layout import Layout, Precision, Recompute, Schedule, Sharding
from lakh.spec.model import resolve_model

WHAT = "a job description"

Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]


class LayoutDoor(DoorModel):
    tp: Positive = 1
    cp: Positive = 1
    pp: Positive = 1
    vpp: Positive = 1
    dp: Positive = 1
    ep: Positive = 1
    etp: Positive = 1
    micro_batch: Positive = 1
    sharding: Sharding = "zero1"
    shard_group: Annotated[int, Field(ge=0)] = 0
    recompute: Recompute = "none"
    schedule: Schedule = "1f1b"
    precision: Precision = "bf16"
    sequence_parallel: bool = True


class WorkloadDoor(DoorModel):
    sequence_length: Positive
    global_batch_sequences: Positive
    tokens: Tokens | None = None


class ConstraintsDoor(DoorModel):
    objective: Objective = "step-time"
    precisions: list[Precision] = Field(default_factory=list)
    run_time_max: Second | None = None
    power_max: Watt | None = None
    cost_max: Money | None = None
    tp_max: Positive | None = None
    sites: list[Name] = Field(default_factory=list)
    one_site: bool = True


class JobDoor(DoorModel):
    """job.yaml: what a tenant wants to run."""

    name: Name
    kind: JobKind
    project: Name | None = None
    model: Name | None = None
    workload: WorkloadDoor | None = None
    layout: LayoutDoor | None = None
    accelerators: Positive | None = None
    framework: Name | None = None
    command: list[str] = Field(default_factory=list)
    environment: dict[str, str] = Field(default_factory=dict)
    constraints: ConstraintsDoor = Field(default_factory=ConstraintsDoor)


_NEEDS: dict[str, tuple[str, ...]] = {
    "train": ("model", "workload"),
    "serve": ("model",),
    "simulate": ("command",),
    "command": ("command",),
}


def _model(name: str, location: Location, checks: Checks) -> Model | None:
    try:
        return resolve_model(name, base=checks.document.path.parent)
    except SpecError as error:
        checks.gather(error)
    except RequestError as error:
        problem = error.problems[0]
        checks.refuse(location, problem.accepted, found=name, hint=problem.hint)
    return None


def _layout(door: LayoutDoor, checks: Checks) -> Layout | None:
    if door.sharding == "hsdp" and door.shard_group < 2:
        checks.refuse(("layout", "shard_group"), "2 or more with sharding hsdp", found=door.shard_group)
        return None
    return Layout(**door.model_dump())


def job_from_document(document: Document) -> Job:
    """Check a read document and turn it into a job.

    Raises:
        SpecError: every problem found
    """
    door = validate(JobDoor, document)
    checks = Checks(document)
    for name in _NEEDS[door.kind]:
        if not getattr(door, name):
            checks.refuse((name,), f"{name}: a job of kind {door.kind} needs it", found="nothing")
    layout = _layout(door.layout, checks) if door.layout else None
    if layout and door.accelerators and layout.accelerator_count != door.accelerators:
        accepted = f"{layout.accelerator_count}, which is tp x cp x pp x dp of the layout"
        checks.refuse(("accelerators",), accepted)
    workload = None
    if door.workload:
        workload = Workload(**dict(door.workload))
        if layout and workload.global_batch_sequences % (layout.dp * layout.micro_batch):
            step = layout.dp * layout.micro_batch
            checks.refuse(("workload", "global_batch_sequences"), f"a multiple of dp x micro_batch = {step}")
    wishes = door.constraints
    job = Job(
        name=door.name,
        kind=door.kind,
        project=door.project,
        model=_model(door.model, ("model",), checks) if door.model else None,
        workload=workload,
        layout=layout,
        accelerators=door.accelerators,
        framework=door.framework,
        command=tuple(door.command),
        environment=MappingProxyType(dict(door.environment)),
        constraints=Constraints(
            objective=wishes.objective,
            precisions=tuple(wishes.precisions),
            run_time_s_max=wishes.run_time_max,
            power_watt_max=wishes.power_max,
            cost_max=wishes.cost_max,
            tp_max=wishes.tp_max,
            sites=tuple(wishes.sites),
            one_site=wishes.one_site,
        ),
        origin=str(document.path),
    )
    checks.finish()
    return job


def load_job(path: str | Path) -> Job:
    """Read a job.yaml. Its model is a catalogue name or a config.json beside it.

    Raises:
        SpecError: the file, or the config.json it names, is refused; lists every problem
    """
    return job_from_document(read_document(path, WHAT))
