"""What is the best way to train this model on this cluster? Request, search and explanation in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakh.catalog.model import Model
from lakh.errors import InfeasibleError, Problem, RequestError
from lakh.fabric.closed_form import CollectiveModel
from lakh.perf.system_of import DEFAULT_GENERATION, System, software_of
from lakh.planner.economics import Economics, economics_of
from lakh.planner.emit import Framework, framework_options
from lakh.planner.explain import Explanation, explain, infeasible
from lakh.planner.search import Objective, SearchResult, search
from lakh.planner.space import PlanRequest, SearchOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The best layouts of a model on a system, and why."""

    system: System
    generation: str
    request: PlanRequest
    economics: Economics
    result: SearchResult
    explanation: Explanation


def plan_request(
    model: Model,
    system: System,
    *,
    sequence_length: int,
    global_batch_sequences: int,
    accelerator_count: int | None = None,
    generation: str = DEFAULT_GENERATION,
    switches: Mapping[str, float] | None = None,
    options: SearchOptions | None = None,
    framework: Framework | None = None,
) -> PlanRequest:
    """A request from described things.

    Args:
        accelerator_count: accelerators to use; all of the system where None
        generation: framework generation of the calibration
        switches: SoftwareInput fields that this run sets otherwise than its generation
        framework: look only at what it can launch

    Raises:
        RequestError: more accelerators than there are, or a model that the step model does not describe
        UnknownNameError: no such generation
    """
    count = system.accelerator_count if accelerator_count is None else accelerator_count
    problems = []
    if count > system.accelerator_count:
        accepted = f"at most the {system.accelerator_count} accelerators of {system.cluster_name}"
        problems.append(Problem(where="accelerator_count", found=count, accepted=accepted))
    if not model.formulae_apply:
        accepted = "a model with softmax attention in every layer"
        problems.append(Problem(where="model", found=model.name, accepted=accepted))
    if problems:
        raise RequestError(problems)
    chosen = SearchOptions() if options is None else options
    return PlanRequest(
        model=model,
        system=system.input,
        software=software_of(generation, switches),
        accelerator_count=count,
        sequence_length=sequence_length,
        global_batch_sequences=global_batch_sequences,
        options=chosen if framework is None else framework_options(framework, chosen, model),
    )


def plan(
    model: Model,
    system: System,
    *,
    sequence_length: int,
    global_batch_sequences: int,
    accelerator_count: int | None = None,
    generation: str = DEFAULT_GENERATION,
    switches: Mapping[str, float] | None = None,
    options: SearchOptions | None = None,
    framework: Framework | None = None,
    objective: Objective = "step_time",
    top_count: int = 5,
    worker_count: int = 1,
    network: CollectiveModel | None = None,
) -> Plan:
    """The best layouts of a model on a system.

    Args: as `plan_request` and `lakh.planner.search.search`.

    Raises:
        RequestError: asked wrongly, or nothing divides
        InfeasibleError: nothing fits; says by how much and what would help
    """
    request = plan_request(
        model,
        system,
        sequence_length=sequence_length,
        global_batch_sequences=global_batch_sequences,
        accelerator_count=accelerator_count,
        generation=generation,
        switches=switches,
        options=options,
        framework=framework,
    )
    economics = economics_of(system)
    try:
        result = search(
            request,
            objective=objective,
            top_count=max(top_count, 2),
            economics=economics,
            worker_count=worker_count,
            network=network,
        )
    except InfeasibleError as error:
        raise infeasible(request) from error
    explanation = explain(request, result)
    shown = replace(result, ranked=result.ranked[:top_count])
    return Plan(
        system=system,
        generation=generation,
        request=request,
        economics=economics,
        result=shown,
        explanation=explanation,
    )
