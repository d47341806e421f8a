"""What can Lakh be asked from Python? `predict`, `plan`, `scale`, `validate`, `rehearse` and `catalog`.

Each takes names, paths or objects and returns a frozen dataclass. The console and every other face call these
functions and format what they return. `import lakh` offers them as `lakh.predict(...)` and so on, except
`catalog`, whose name belongs to the package `lakh.catalog`.

Errors: RequestError (and its kinds) for what was asked wrongly, every problem at once; CouldNotError and
InfeasibleError for what was asked rightly and could not be done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import numpy as np

import lakh.claims as odds
from lakh.catalog import Accelerator, Claim, Model, Node, accelerator, accelerators, claim, claims, models, node, nodes
from lakh.catalog.calibration import Calibration
from lakh.errors import InfeasibleError, Problem, RequestError, UnknownNameError, list_names, nearest_hint
from lakh.evidence import Fact
from lakh.fabric.flow import FlowNetwork
from lakh.fabric.from_cluster import fabric_system
from lakh.perf.flops import MFU_CONVENTIONS, MfuConvention, hardware_flop_factor, model_flop_per_token
from lakh.perf.inputs import ModelInput
from lakh.perf.predict import ErrorBar, Prediction, error_bar
from lakh.perf.predict import predict as predict_step
from lakh.perf.system_of import DEFAULT_GENERATION, System, system_of
from lakh.planner import (
    FRAMEWORKS,
    SCALINGS,
    Candidate,
    Economics,
    Framework,
    Launch,
    PlanRequest,
    Range,
    Scaling,
    SearchOptions,
    SearchResult,
    Space,
    default_sizes,
    economics_of,
    emit,
    explain,
    infeasible,
    plan_request,
    search,
)
from lakh.planner import scale as scale_curve
from lakh.report.claims import compare_claims
from lakh.report.results import (
    GraphCheck,
    JobRehearsal,
    PlanResult,
    Rehearsal,
    RunEstimate,
    ScaleBand,
    ScaleResult,
    UnknownEffect,
)
from lakh.report.unknowns import on_one_site, unknowns, variants
from lakh.spec import load_cluster, load_scenario, resolve_model
from lakh.spec.cluster import Cluster
from lakh.spec.cluster_file import cluster_names
from lakh.spec.job import OBJECTIVES, Job, Objective
from lakh.spec.layout import PRECISIONS, Layout
from lakh.spec.layout_text import parse_layout
from lakh.spec.scenario import Scenario

if TYPE_CHECKING:
    from lakh.validation.report import LeaveOut, ValidationReport

A = TypeVar("A")
T = TypeVar("T")

ModelLike = str | Path | Model
"""A catalogue name, a path to a config.json (or its folder), or a model."""

ClusterLike = str | Path | Cluster
"""A shipped name, a path to a cluster.yaml, or a cluster."""

LayoutLike = str | Layout
"""A layout, or text such as "tp8 pp16 vpp4 dp128 mb1"."""

FabricLevel = Literal["closed", "flow"]
"""closed: closed forms of the collectives; flow: flows on the cluster's graph, max-min fair."""

FABRIC_LEVELS: tuple[str, ...] = get_args(FabricLevel)

CatalogKind = Literal["accelerators", "nodes", "models", "clusters", "claims"]
CATALOG_KINDS: tuple[str, ...] = get_args(CatalogKind)

CatalogEntry = Accelerator | Node | Model | Cluster | Claim

FULL_PLAN_FAMILIES = 5
"""Families that a plan ranks unless asked otherwise."""

TORCHTITAN_GENERATION = "fsdp-2025"
"""What a torchtitan launch is predicted with unless asked otherwise: the newest fitted generation of that design."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, steps done and steps in all."""


def catalog(kind: CatalogKind | None = None, name: str | None = None) -> tuple[CatalogEntry, ...]:
    """What is known: everything of a kind, one entry by name, or (without arguments) everything.

    Raises:
        UnknownNameError: no such kind or no such entry; says the nearest
    """
    if kind is None:
        return tuple(entry for one in CATALOG_KINDS for entry in catalog(cast(CatalogKind, one)))
    if kind not in CATALOG_KINDS:
        raise UnknownNameError("catalogue kind", kind, CATALOG_KINDS)
    every: Mapping[str, Callable[[], tuple[CatalogEntry, ...]]] = {
        "accelerators": accelerators,
        "nodes": nodes,
        "models": models,
        "clusters": lambda: tuple(load_cluster(shipped) for shipped in cluster_names()),
        "claims": claims,
    }
    one_of: Mapping[str, Callable[[str], CatalogEntry]] = {
        "accelerators": accelerator,
        "nodes": node,
        "models": resolve_model,
        "clusters": load_cluster,
        "claims": claim,
    }
    return every[kind]() if name is None else (one_of[kind](name),)


def predict(
    model: ModelLike,
    cluster: ClusterLike,
    layout: LayoutLike,
    *,
    sequence_length: int,
    global_batch_sequences: int,
    generation: str | None = None,
    fabric: FabricLevel = "closed",
    switches: Mapping[str, float] | None = None,
    calibration: Calibration | None = None,
) -> Prediction:
    """One training step of one layout: its parts, memory, MFU in every convention, and an error bar.

    Args:
        model: catalogue name, path to a config.json, or a `Model`
        cluster: shipped name, path to a cluster.yaml, or a `Cluster`
        layout: a `Layout`, or text such as "tp8 pp16 vpp4 dp128 mb1"; uses tp * cp * pp * dp accelerators
        sequence_length: tokens per sequence
        global_batch_sequences: sequences per optimizer step over the whole job
        generation: framework generation; the newest Megatron one unless given
        fabric: how collectives are timed
        switches: fields of SoftwareInput that this run sets otherwise than its generation
        calibration: fitted parameters; the shipped ones unless given

    Raises:
        RequestError: an argument is refused, or the layout does not divide; every reason is listed
    """
    asked = Asked()
    asked.check(_whole_numbers, sequence_length=sequence_length, global_batch_sequences=global_batch_sequences)
    found, described = asked.get(_model, model), asked.get(_cluster, cluster)
    chosen = asked.get(parse_layout, layout) if isinstance(layout, str) else layout
    asked.check(_check_choice, "fabric", fabric, FABRIC_LEVELS)
    asked.finish()
    system = system_of(described, calibration=calibration)
    return predict_step(
        found,
        system,
        chosen,
        sequence_length=sequence_length,
        global_batch_sequences=global_batch_sequences,
        generation=generation or DEFAULT_GENERATION,
        switches=switches,
        network=_graph_network(described, system, chosen) if fabric == "flow" else None,
        calibration=calibration,
    )


def plan(
    model: ModelLike,
    cluster: ClusterLike,
    *,
    sequence_length: int,
    global_batch_sequences: int,
    accelerators: int | None = None,
    objective: Objective = "step-time",
    top: int = FULL_PLAN_FAMILIES,
    options: SearchOptions | None = None,
    framework: Framework | None = None,
    emit_launch: bool = False,
    generation: str | None = None,
    train_tokens: float | None = None,
    workers: int | None = None,
) -> PlanResult:
    """The best layouts of the whole space, why the best one is, and what a run would take.

    Args:
        model, cluster, sequence_length, global_batch_sequences, generation: as in `predict`
        accelerators: how many of the cluster's accelerators the plan may use; all unless given
        objective: what to minimise for one global batch: step-time, cost (accelerator time) or energy
        top: layout families (tp, cp, pp, ep) to rank
        options: dimensions that are fixed, and how far the batch may move
        framework: only layouts that this framework can launch
        emit_launch: also write its launch arguments
        train_tokens: tokens of the whole run, for days, energy and cost [token]
        workers: threads of the search; one per core unless given

    Raises:
        RequestError: an argument is refused, or nothing divides
        InfeasibleError: nothing fits in memory; says by how much, and what would help
    """
    asked = Asked()
    asked.check(_check_plan, objective, framework, emit_launch)
    asked.check(_whole_numbers, sequence_length=sequence_length, global_batch_sequences=global_batch_sequences, top=top)
    found, described = asked.get(_model, model), asked.get(_cluster, cluster)
    asked.finish()
    system = system_of(described)
    generation = generation or (TORCHTITAN_GENERATION if framework == "torchtitan" else DEFAULT_GENERATION)
    request = plan_request(
        found,
        system,
        sequence_length=sequence_length,
        global_batch_sequences=global_batch_sequences,
        accelerator_count=_accelerators(accelerators, system),
        generation=generation,
        options=options,
        framework=framework,
    )
    return _plan(
        request,
        described,
        system,
        generation,
        objective=objective,
        top=top,
        framework=framework if emit_launch else None,
        train_tokens=train_tokens,
        workers=workers,
    )


def scale(
    model: ModelLike,
    cluster: ClusterLike,
    *,
    sequence_length: int,
    global_batch_sequences: int,
    accelerators: int | None = None,
    sizes: Sequence[int] | None = None,
    scaling: Scaling = "weak",
    replan: bool = True,
    base: int | None = None,
    options: SearchOptions | None = None,
    framework: Framework | None = None,
    generation: str | None = None,
    train_tokens: float | None = None,
    mfu_convention: MfuConvention = "causal",
    workers: int | None = None,
) -> ScaleResult:
    """Throughput, MFU and scaling efficiency over sizes of the cluster, and what bends the curve.

    Args:
        accelerators: the reference size that `global_batch_sequences` belongs to; the largest size unless given
        sizes: accelerators at each point; one node, its doublings and the whole cluster unless given
        scaling: weak: the batch grows with the accelerators; strong: it stays
        replan: best layout at each size; else one layout that grows in dp alone
        base: size that scaling efficiency is relative to; the smallest that can be planned unless given
        mfu_convention: convention in which MFU is shown

    Other arguments are those of `plan`.

    Raises:
        RequestError: an argument is refused
        InfeasibleError: no size can be planned
    """
    asked = Asked()
    asked.check(_check_plan, "step-time", framework, False)
    asked.check(_check_choice, "mfu convention", mfu_convention, MFU_CONVENTIONS)
    asked.check(_check_choice, "scaling", scaling, SCALINGS)
    asked.check(_whole_numbers, sequence_length=sequence_length, global_batch_sequences=global_batch_sequences)
    found, described = asked.get(_model, model), asked.get(_cluster, cluster)
    asked.finish()
    system = system_of(described)
    most = system.accelerator_count
    points = tuple(sizes) if sizes else default_sizes(system.node.accelerator_count, most)
    _check_sizes(points, system)
    generation = generation or (TORCHTITAN_GENERATION if framework == "torchtitan" else DEFAULT_GENERATION)
    request = plan_request(
        found,
        system,
        sequence_length=sequence_length,
        global_batch_sequences=global_batch_sequences,
        accelerator_count=_accelerators(accelerators or max(points), system),
        generation=generation,
        options=options,
        framework=framework,
    )
    return _scale(
        request,
        described,
        system,
        generation,
        sizes=points,
        scaling=scaling,
        replan=replan,
        base=base,
        train_tokens=train_tokens,
        mfu_convention=mfu_convention,
        workers=workers,
    )


def validate(
    path: str | Path | None = None,
    *,
    leave_out: LeaveOut | None = None,
    calibration: Calibration | None = None,
    progress: Progress | None = None,
) -> ValidationReport:
    """Predict every row of a CSV of measured runs and compare; see `lakh.validation.report.validate`.

    Args:
        path: a CSV in the columns of the shipped measurements; those unless given
        leave_out: refit without each source, or each hardware family, and predict what was left out

    Raises:
        SpecError: the file is not a readable CSV of measurements
    """
    # Here and not above: fitting brings an optimiser along that takes longer to load than a prediction to make.
    from lakh.validation.report import LEAVE_OUTS
    from lakh.validation.report import validate as validate_rows

    if leave_out is not None:
        _check_choice("leave out", leave_out, LEAVE_OUTS)
    label = f"refitting without each {leave_out}"
    report = None if progress is None else (lambda done, total: progress(label, done, total))
    return validate_rows(path, leave_out=leave_out, calibration=calibration, progress=report)


def rehearse(
    scenario: str | Path | Scenario,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Rehearsal:
    """Plan every training job of a scenario on its cluster, from the smallest size to all of it, beside the claims.

    Raises:
        SpecError: the scenario or a file it names is refused
        RequestError: a job cannot be planned as asked
        InfeasibleError: a job fits at no size
    """
    started = time.perf_counter()
    asked = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    jobs = [job for job in asked.jobs if job.kind == "train"]
    if not jobs:
        kinds = sorted({job.kind for job in asked.jobs})
        raise RequestError(
            Problem(
                where=f"{asked.origin or asked.name}: jobs", found=", ".join(kinds), accepted="one job of kind train"
            )
        )
    system = system_of(asked.cluster)
    rehearsed = []
    steps = 3  # per job: the plan and two curves
    for index, job in enumerate(jobs):
        if progress:
            progress(f"planning {job.name}", steps * index, steps * len(jobs))
        request, generation = _job_request(job, system)
        framework = cast(Framework, job.framework) if job.framework in FRAMEWORKS else None
        tokens = job.workload.tokens.value if job.workload and job.workload.tokens else None
        planned = _plan(
            request,
            asked.cluster,
            system,
            generation,
            objective=job.constraints.objective,
            top=FULL_PLAN_FAMILIES,
            framework=framework,
            train_tokens=tokens,
            workers=workers,
        )
        sizes = [size for size in asked.scales if size <= request.accelerator_count]
        like_it = replace(request, options=_like(request.options, planned.best))
        points = sizes or default_sizes(system.node.accelerator_count, request.accelerator_count)
        if progress:
            progress(f"scaling {job.name}", steps * index + 1, steps * len(jobs))
        strong = _scale(
            like_it,
            asked.cluster,
            system,
            generation,
            sizes=points,
            scaling="strong",
            replan=True,
            base=None,
            train_tokens=tokens,
            mfu_convention="causal",
            workers=workers,
        )
        if progress:
            progress(f"scaling {job.name} with its batch", steps * index + 2, steps * len(jobs))
        # The job's batch is that of the smallest size, so that every accelerator always has as much work as there.
        weak = _scale(
            replace(like_it, accelerator_count=strong.curve.base_count),
            asked.cluster,
            system,
            generation,
            sizes=[point.accelerator_count for point in strong.curve.points],
            scaling="weak",
            replan=True,
            base=None,
            train_tokens=None,
            mfu_convention="causal",
            workers=workers,
        )
        effects = _effects(planned, asked.cluster)
        rehearsed.append(
            JobRehearsal(
                job=job,
                plan=planned,
                curve=strong,
                weak=weak,
                on_graph=_on_graph(planned, asked.cluster),
                effects=effects,
            )
        )
    if progress:
        progress("weighing the claims", steps * len(jobs), steps * len(jobs))
    judged = [claim.name for claim in asked.claims if claim.name in odds.REHEARSED_CLAIMS]
    models = tuple({one.plan.model.name: one.plan.model for one in rehearsed}.values())
    return Rehearsal(
        name=asked.name,
        description=asked.description,
        cluster=asked.cluster,
        jobs=tuple(rehearsed),
        claims=compare_claims(asked.claims, rehearsed),
        odds=odds.rehearsal_odds(asked.cluster, models, claims=judged) if judged else None,
        unknowns=unknowns(asked.cluster),
        wall_time_s=time.perf_counter() - started,
        notes=unused_wishes(asked),
    )


# --- the way in: names and paths to objects --------------------------------------------------------------------


class Asked:
    """Reads several arguments and raises the problems of all of them at once."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def get(self, read: Callable[[A], T], argument: A) -> T:
        """The argument as an object; where it is refused, the problem waits for `finish`, which then raises."""
        try:
            return read(argument)
        except RequestError as error:
            self._problems += error.problems
            return cast(T, None)

    def check(self, rule: Callable[..., None], *arguments: object, **named: object) -> None:
        """Apply a rule that raises where it is broken."""
        try:
            rule(*arguments, **named)
        except RequestError as error:
            self._problems += error.problems

    def finish(self) -> None:
        """
        Raises:
            RequestError: with every problem met
        """
        if self._problems:
            raise RequestError(self._problems)


def _model(model: ModelLike) -> Model:
    return model if isinstance(model, Model) else resolve_model(model)


def _cluster(cluster: ClusterLike) -> Cluster:
    return cluster if isinstance(cluster, Cluster) else load_cluster(cluster)


def _graph_network(cluster: Cluster, system: System, layout: Layout) -> FlowNetwork:
    """The cluster's network as a graph, for a job that fills its accelerators from the first one on."""
    count = layout.accelerator_count
    if count > system.accelerator_count:
        raise RequestError(
            Problem(
                where="layout", found=count, accepted=f"at most the {system.accelerator_count} accelerators there are"
            )
        )
    return FlowNetwork(fabric_system(cluster).graph(), system.input.network, job_size=count)


def _check_choice(where: str, found: str, accepted: Sequence[str]) -> None:
    if found not in accepted:
        hint = nearest_hint(found, accepted)
        raise RequestError(Problem(where=where, found=found, accepted=list_names(accepted), hint=hint))


def _check_plan(objective: str, framework: str | None, emit_launch: bool) -> None:
    _check_choice("objective", objective, OBJECTIVES)
    if framework is not None:
        _check_choice("framework", framework, FRAMEWORKS)
    elif emit_launch:
        raise RequestError(Problem(where="framework", found=None, accepted=list_names(FRAMEWORKS)))


MOST_COUNT = 10**15
"""Largest count that is taken: every product of two stays exact in the arithmetic of the model."""


def _whole_numbers(**values: object) -> None:
    problems = [
        Problem(where=name, found=_shown(value), accepted=f"a whole number from 1 to {MOST_COUNT:,}")
        for name, value in values.items()
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_COUNT
    ]
    if problems:
        raise RequestError(problems)


def _shown(value: object) -> object:
    """A value as an error shows it: an integer of hundreds of digits by its size."""
    return f"an integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) > 10**30 else value


def _accelerators(asked: int | None, system: System) -> int:
    most = system.accelerator_count
    if asked is None:
        return most
    if not isinstance(asked, int) or isinstance(asked, bool) or not 1 <= asked <= most:
        accepted = f"1 to {most:,}, the accelerators of {system.cluster_name}"
        raise RequestError(Problem(where="accelerators", found=asked, accepted=accepted))
    return asked


def _check_sizes(sizes: Sequence[int], system: System) -> None:
    most = system.accelerator_count
    problems = [
        Problem(where="sizes", found=size, accepted=f"1 to {most:,}, the accelerators of {system.cluster_name}")
        for size in sizes
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= most
    ]
    if problems:
        raise RequestError(problems)


# --- one plan and one curve ------------------------------------------------------------------------------------


def _plan(
    request: PlanRequest,
    cluster: Cluster,
    system: System,
    generation: str,
    *,
    objective: Objective,
    top: int,
    framework: Framework | None,
    train_tokens: float | None,
    workers: int | None,
) -> PlanResult:
    started = time.perf_counter()
    economics = _economics(cluster, system)
    try:
        found: SearchResult = search(
            request,
            objective=objective.replace("-", "_"),  # type: ignore[arg-type]
            top_count=max(top, 2),
            economics=economics,
            worker_count=_workers(workers),
        )
    except InfeasibleError:
        raise infeasible(request) from None
    search_time_s = time.perf_counter() - started
    best = found.best
    bar = error_bar(best.step_time_s, system, best.layout, moe=request.model.is_moe)
    launch: Launch | None = None
    if framework is not None:
        launch = emit(
            framework,
            request.model,
            request.software,
            best,
            sequence_length=request.sequence_length,
            accelerators_per_node=system.node.accelerator_count,
            train_tokens=train_tokens,
        )
    explanation = explain(request, found)
    found = replace(found, ranked=found.ranked[:top])
    return PlanResult(
        model=request.model,
        cluster_name=cluster.name,
        accelerator=system.accelerator,
        node=system.node,
        accelerator_count=request.accelerator_count,
        generation=generation,
        sequence_length=request.sequence_length,
        global_batch_sequences=request.global_batch_sequences,
        objective=objective,
        search=found,
        search_time_s=search_time_s,
        explanation=explanation,
        error_bar=bar,
        mfu=mfu_by_convention(request.model, request.sequence_length, best),
        run=_run(best, bar, request.accelerator_count, train_tokens, economics, cluster, request.sequence_length),
        power_watt=_power(economics, best),
        launch=launch,
        evidence=system.evidence,
    )


def _scale(
    request: PlanRequest,
    cluster: Cluster,
    system: System,
    generation: str,
    *,
    sizes: Sequence[int],
    scaling: Scaling,
    replan: bool,
    base: int | None,
    train_tokens: float | None,
    mfu_convention: MfuConvention,
    workers: int | None,
) -> ScaleResult:
    economics = _economics(cluster, system)
    curve = scale_curve(
        request,
        sizes=sizes,
        scaling=scaling,
        replan=replan,
        base_count=base,
        train_tokens=train_tokens,
        economics=economics,
        worker_count=_workers(workers),
    )
    bands = []
    for point in curve.points:
        best = point.candidate
        bar = error_bar(best.step_time_s, system, best.layout, moe=request.model.is_moe)
        slow, fast = bar.high_s / best.step_time_s, bar.low_s / best.step_time_s
        tokens = Range(low=point.tokens_per_s / slow, value=point.tokens_per_s, high=point.tokens_per_s / fast)
        bands.append(
            ScaleBand(
                accelerator_count=point.accelerator_count,
                tokens_per_s=tokens,
                mfu=Range(low=point.mfu / slow, value=point.mfu, high=point.mfu / fast),
                inside_validated=bar.inside_validated,
                power_watt=_power(economics, best),
                run=_run(best, bar, point.accelerator_count, train_tokens, economics, cluster, request.sequence_length),
            )
        )
    last = curve.points[-1].candidate
    by_convention = mfu_by_convention(request.model, request.sequence_length, last)
    return ScaleResult(
        model=request.model,
        cluster_name=cluster.name,
        accelerator=system.accelerator,
        generation=generation,
        sequence_length=request.sequence_length,
        global_batch_sequences=request.global_batch_sequences,
        accelerator_count=request.accelerator_count,
        curve=curve,
        bands=tuple(bands),
        mfu_factor=by_convention[mfu_convention] / by_convention["causal"],
        mfu_convention=mfu_convention,
        evidence=system.evidence,
    )


def _workers(asked: int | None) -> int:
    return asked if asked is not None else max(len(os.sched_getaffinity(0)), 1)


def mfu_by_convention(model: Model, sequence_length: int, candidate: Candidate) -> dict[MfuConvention, float]:
    """A candidate's MFU in every convention, over the peak of its precision."""
    numbers, length = ModelInput.of(model), np.float64(sequence_length)
    causal = float(model_flop_per_token(numbers, length, "causal"))  # type: ignore[arg-type]
    result: dict[MfuConvention, float] = {}
    for name in get_args(MfuConvention):
        convention = cast(MfuConvention, name)
        flop = float(model_flop_per_token(numbers, length, convention))  # type: ignore[arg-type]
        if convention == "hfu":
            flop *= float(hardware_flop_factor(np.asarray(float(candidate.layout.recompute == "full"))))
        result[convention] = candidate.mfu * flop / causal
    return result


# --- power and money -------------------------------------------------------------------------------------------


def _economics(cluster: Cluster, system: System) -> Economics:
    """Power and price of the system, with the whole range of its sites' power usage effectiveness."""
    economics = economics_of(system)
    assert economics.power is not None
    sites = [site for site in cluster.sites if site.accelerator_count > 0]
    pue = replace(
        sites[0].pue,
        value=economics.power.pue.value,
        low=min(site.pue.low for site in sites),
        high=max(site.pue.high for site in sites),
    )
    return replace(economics, power=replace(economics.power, pue=pue))


def _power(economics: Economics, best: Candidate) -> Range:
    assert economics.power is not None
    return economics.power.watt_range(best.activity).times(best.accelerator_count)


def _times(first: Range, second: Range) -> Range:
    return Range(low=first.low * second.low, value=first.value * second.value, high=first.high * second.high)


def _of(fact: Fact) -> Range:
    return Range(low=fact.low, value=fact.value, high=fact.high)


def _run(
    best: Candidate,
    bar: ErrorBar,
    accelerator_count: int,
    train_tokens: float | None,
    economics: Economics,
    cluster: Cluster,
    sequence_length: int,
) -> RunEstimate | None:
    if train_tokens is None:
        return None
    if not train_tokens > 0.0:
        raise RequestError(Problem(where="train_tokens", found=train_tokens, accepted="more than 0 tokens"))
    steps = train_tokens / (best.global_batch_sequences * sequence_length)
    train_time_s = Range(low=bar.low_s * steps, value=best.step_time_s * steps, high=bar.high_s * steps)
    power = _power(economics, best)
    energy = _times(power, train_time_s)
    rate = economics.price_per_accelerator_s
    energy_price = cluster.prices.energy_per_joule if cluster.prices else None
    return RunEstimate(
        tokens=train_tokens,
        step_count=steps,
        train_time_s=train_time_s,
        power_watt=power,
        energy_joule=energy,
        energy_cost=_times(energy, _of(energy_price)) if energy_price else None,
        rent=_times(train_time_s, _of(rate)).times(accelerator_count) if rate else None,
        currency=cluster.prices.currency if cluster.prices else None,
    )


# --- rehearsal -------------------------------------------------------------------------------------------------


def unused_wishes(asked: Scenario) -> tuple[str, ...]:
    """One line on the jobs that a rehearsal does not plan, one on the fields that it reads and does not use."""
    notes = []
    others = [f"{job.name} ({job.kind})" for job in asked.jobs if job.kind != "train"]
    if others:
        notes.append(f"not rehearsed, as only jobs of kind train are: {', '.join(others)}")
    fields = []
    for job in asked.jobs:
        limits = job.constraints
        wishes = {
            "run_time_max": limits.run_time_s_max is not None,
            "power_max": limits.power_watt_max is not None,
            "cost_max": limits.cost_max is not None,
            "sites": bool(limits.sites),
        }
        fields += [f"{job.name}: constraints.{name}" for name, stated in wishes.items() if stated]
        if job.environment:
            fields.append(f"{job.name}: environment")
    if asked.duration_s is not None:
        fields.append("duration")
    if asked.seeds != (0,):
        fields.append("seeds")
    if fields:
        notes.append(f"read, and not used yet by a rehearsal: {', '.join(fields)}")
    return tuple(notes)


def _job_request(job: Job, system: System) -> tuple[PlanRequest, str]:
    """What a job asks of the planner: its constraints as options of the search."""
    assert job.model is not None
    assert job.workload is not None
    limits = job.constraints
    most = (
        system.accelerator_count
        if not limits.one_site
        else min(system.accelerator_count, system.site_accelerator_count)
    )
    count = most if job.accelerators is None else _accelerators(min(job.accelerators, most), system)
    options = SearchOptions(batch_slack=0.05)
    if job.layout is not None:
        options = _like(options, job.layout, all_of_it=True)
    if limits.precisions:
        options = replace(options, precision=tuple(name for name in PRECISIONS if name in limits.precisions))
    generation = TORCHTITAN_GENERATION if job.framework == "torchtitan" else DEFAULT_GENERATION
    request = plan_request(
        job.model,
        system,
        sequence_length=job.workload.sequence_length,
        global_batch_sequences=job.workload.global_batch_sequences,
        accelerator_count=count,
        generation=generation,
        options=options,
        framework=cast(Framework, job.framework) if job.framework in FRAMEWORKS else None,
    )
    if limits.tp_max is not None and options.tp is None:
        allowed = tuple(tp for tp in Space(request).values["tp"] if tp <= limits.tp_max)
        request = replace(request, options=replace(options, tp=allowed))
    return request, generation


def _like(options: SearchOptions, best: Candidate | Layout, *, all_of_it: bool = False) -> SearchOptions:
    """Options that keep the choices of a layout which do not depend on size; with `all_of_it`, every choice."""
    layout = best if isinstance(best, Layout) else best.layout
    kept: dict[str, Any] = {
        "schedule": (layout.schedule,) if layout.pp > 1 else options.schedule,
        "precision": (layout.precision,),
        "sharding": (layout.sharding,),
    }
    if layout.sharding == "hsdp":
        kept["shard_group"] = (layout.shard_group,)
    if all_of_it:
        for name in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "micro_batch", "recompute"):
            kept[name] = (getattr(layout, name),)
    return replace(options, **kept)


def _on_graph(planned: PlanResult, cluster: Cluster) -> tuple[GraphCheck, ...]:
    """The best layout with the flows of all its groups on the network's graph: as described, and all at one site."""
    if cluster.fabric.kind == "torus" or len(cluster.nodes) != 1:
        return ()
    cases = {"as described": cluster}
    if sum(site.accelerator_count > 0 for site in cluster.sites) > 1:
        cases = {"all at one site": on_one_site(cluster)} | cases
    checks = []
    for case, described in cases.items():
        system = system_of(described)
        one = predict_step(
            planned.model,
            system,
            planned.best.layout,
            sequence_length=planned.sequence_length,
            global_batch_sequences=planned.best.global_batch_sequences,
            generation=planned.generation,
            network=_graph_network(described, system, planned.best.layout),
        )
        checks.append(GraphCheck(case=case, step_time_s=one.step_time_s, exposed_s=one.exposed_s))
    return tuple(checks)


def _effects(planned: PlanResult, cluster: Cluster) -> tuple[UnknownEffect, ...]:
    """The best layout again with each unknown at its ends, everything else as assumed; the strongest first."""
    best = planned.best

    def step_time_s(changed: Cluster) -> float:
        return predict_step(
            planned.model,
            system_of(changed),
            best.layout,
            sequence_length=planned.sequence_length,
            global_batch_sequences=best.global_batch_sequences,
            generation=planned.generation,
        ).step_time_s

    assumed_s = step_time_s(cluster)
    effects = [
        UnknownEffect(
            name=variant.name,
            kind=variant.kind,
            low_text=variant.low_text,
            high_text=variant.high_text,
            step_time_ratio_at_low=step_time_s(variant.at_low) / assumed_s,
            step_time_ratio_at_high=step_time_s(variant.at_high) / assumed_s,
        )
        for variant in variants(cluster)
    ]
    return tuple(sorted(effects, key=lambda effect: (-effect.spread, effect.name)))
