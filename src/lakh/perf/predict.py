"""What will one layout do? The scalar face of the step model: parts, memory, MFU, an error bar and its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lakh.catalog import Model
from lakh.catalog.calibration import Calibration, Residual, load_calibration
from lakh.errors import Problem, RequestError
from lakh.evidence import Fact
from lakh.fabric.closed_form import CollectiveModel
from lakh.perf.flops import MFU_CONVENTIONS, MfuConvention, hardware_flop_factor, model_flop_per_token
from lakh.perf.inputs import ModelInput, PlanInput, WorkloadInput
from lakh.perf.step import STEP_PARTS, StepTable, evaluate
from lakh.perf.system_of import DEFAULT_GENERATION, System, software_of
from lakh.perf.validity import invalid_reasons
from lakh.spec.layout import Layout

_PEAK_OF: Mapping[str, str] = {
    "fp8": "fp8", "fp8-cs": "fp8", "fp8-rowwise": "fp8", "mxfp8": "fp8", "nvfp4": "fp4", "int8": "int8",
}  # fmt: skip
"""The stated peak that a precision runs at."""

MEMORY_PARTS: tuple[str, ...] = (
    "weights_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "activations_bytes",
    "logits_bytes",
    "buffers_bytes",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorBar:
    """Where the truth lies in nine cases of ten, from the residuals of validation."""

    low_s: float
    high_s: float
    kind: str
    """Which residuals: "H100/dense", or "unseen-hardware/dense" where no run on this accelerator was measured."""
    row_count: int
    inside_validated: bool
    notes: tuple[str, ...]
    """Why a prediction is outside what was validated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """One step of one layout on one cluster. Times in seconds, memory in bytes, ratios 0 to 1."""

    model: Model
    layout: Layout
    cluster_name: str
    accelerator_name: str
    generation: str
    sequence_length: int
    global_batch_sequences: int
    step_time_s: float
    parts_s: Mapping[str, float]
    """The parts of STEP_PARTS; they add up to `step_time_s`."""
    exposed_s: Mapping[str, float]
    """What is visible of tp, cp, ep, pp and dp traffic; adds up to `exposed_communication_s`."""
    error_bar: ErrorBar
    memory_parts_bytes: Mapping[str, float]
    memory_allocated_bytes: float
    memory_required_bytes: float
    """The least a device must have: allocated bytes and the process's own share."""
    memory_device_bytes: float
    """What the device will report, the allocator's usual fragmentation included; a plan must fit with it."""
    memory_capacity_bytes: float
    fits: bool
    model_flop: float
    """Model FLOPs of the step, causal convention [flop]."""
    peak_flop_per_s: float
    mfu: Mapping[MfuConvention, float]
    """Utilisation by convention, over the dense peak of the layout's precision."""
    tokens_per_s: float
    tokens_per_s_per_accelerator: float
    micro_batch_count: int
    data_parallel_outermost: bool
    """Ranks ordered tp-cp-ep-pp-dp, so that pipelines stay on one site; else tp-cp-ep-dp-pp."""
    evidence: Mapping[str, Fact]


def residual_for(calibration: Calibration, family: str, *, moe: bool) -> tuple[str, Residual]:
    """The residuals that describe a prediction best: the family's own, else those of hardware nobody had seen."""
    kind = "moe" if moe else "dense"
    for name in (f"{family}/{kind}", f"unseen-hardware/{kind}", kind, "all"):
        if name in calibration.residuals:
            return name, calibration.residuals[name]
    return "none", Residual(row_count=0, median_error=1.0, low=0.5, high=2.0)


def error_bar(
    step_time_s: float, system: System, layout: Layout, *, moe: bool, calibration: Calibration | None = None
) -> ErrorBar:
    """The band around a predicted step time, and whether validation covers it."""
    calibration = calibration or load_calibration()
    name, residual = residual_for(calibration, system.family, moe=moe)
    notes = []
    if not name.startswith(system.family):
        notes.append(f"no {'MoE' if moe else 'dense'} run on {system.accelerator.name} was measured")
    largest = int(calibration.about["largest_accelerator_count"])
    if layout.accelerator_count > largest:
        notes.append(f"{layout.accelerator_count:,} accelerators; the largest measured run had {largest:,}")
    needed = _PEAK_OF.get(layout.precision)
    if needed is not None and needed not in system.accelerator.peak_flop_per_s:
        notes.append(
            f"{system.accelerator.name} states no {needed} rate; {layout.precision} runs at its next wider one"
        )
    if system.accelerator.announced:
        notes.append(f"{system.accelerator.name} is announced, not shipping")
    return ErrorBar(
        low_s=step_time_s * residual.low,
        high_s=step_time_s * residual.high,
        kind=name,
        row_count=residual.row_count,
        inside_validated=not notes,
        notes=tuple(notes),
    )


def predict(
    model: Model,
    system: System,
    layout: Layout,
    *,
    sequence_length: int,
    global_batch_sequences: int,
    generation: str = DEFAULT_GENERATION,
    switches: Mapping[str, float] | None = None,
    network: CollectiveModel | None = None,
    calibration: Calibration | None = None,
) -> Prediction:
    """Predict one training step.

    Args:
        model: the architecture
        system: what the job runs on, from `system_of(cluster)`
        layout: how the work is divided; uses tp * cp * pp * dp accelerators
        sequence_length: tokens per sequence
        global_batch_sequences: sequences per optimizer step over the whole job
        generation: framework generation, one of the calibration's
        switches: SoftwareInput fields that this run sets otherwise than its generation
        network: how collectives are timed; closed forms unless given

    Raises:
        RequestError: the layout does not divide the model, the batch or the cluster; every rule broken is named
    """
    calibration = calibration or load_calibration()
    if not model.formulae_apply:
        raise RequestError(
            Problem(where="model", found=model.name, accepted="a model with softmax attention in every layer")
        )
    problems = invalid_reasons(
        model, layout, sequence_length=sequence_length, global_batch_sequences=global_batch_sequences
    )
    if layout.accelerator_count > system.accelerator_count:
        problems.append(
            Problem(
                where="layout",
                found=f"tp {layout.tp} x cp {layout.cp} x pp {layout.pp} x dp {layout.dp} = {layout.accelerator_count}",
                accepted=f"at most the {system.accelerator_count} accelerators of {system.cluster_name}",
            )
        )
    if problems:
        raise RequestError(problems)
    m = ModelInput.of(model)
    w = WorkloadInput.of(sequence_length=sequence_length, global_batch_sequences=global_batch_sequences)
    q = software_of(generation, switches, calibration=calibration)
    table = evaluate(m, system.input, q, PlanInput.of(layout), w, network=network)
    return _prediction(model, system, layout, table, m, w, generation, calibration)


def _prediction(
    model: Model,
    system: System,
    layout: Layout,
    table: StepTable,
    m: ModelInput,
    w: WorkloadInput,
    generation: str,
    calibration: Calibration,
) -> Prediction:
    step_s = float(table.step_time_s[0])
    memory = table.memory
    count, peak = layout.accelerator_count, float(table.peak_flop_per_s[0])
    tokens = float(w.sequence_length * w.global_batch_sequences)
    recomputed = hardware_flop_factor(np.asarray(float(layout.recompute == "full")))
    mfu: dict[MfuConvention, float] = {}
    for name in MFU_CONVENTIONS:
        convention: MfuConvention = name  # type: ignore[assignment]
        flop = tokens * float(model_flop_per_token(m, w.sequence_length, convention))
        if convention == "hfu":
            flop *= float(recomputed)
        mfu[convention] = flop / (step_s * count * peak)
    return Prediction(
        model=model,
        layout=layout,
        cluster_name=system.cluster_name,
        accelerator_name=system.accelerator.name,
        generation=generation,
        sequence_length=int(w.sequence_length),
        global_batch_sequences=int(w.global_batch_sequences),
        step_time_s=step_s,
        parts_s={name: float(getattr(table, name)[0]) for name in STEP_PARTS},
        exposed_s={name: float(getattr(table, f"exposed_{name}_s")[0]) for name in ("tp", "cp", "ep", "pp", "dp")},
        error_bar=error_bar(step_s, system, layout, moe=model.is_moe, calibration=calibration),
        memory_parts_bytes={name: float(getattr(memory, name)[0]) for name in MEMORY_PARTS},
        memory_allocated_bytes=float(memory.allocated_bytes[0]),
        memory_required_bytes=float(memory.required_bytes[0]),
        memory_device_bytes=float(memory.device_bytes[0]),
        memory_capacity_bytes=float(memory.capacity_bytes[0]),
        fits=bool(memory.fits[0]),
        model_flop=float(table.model_flop[0]),
        peak_flop_per_s=peak,
        mfu=mfu,
        tokens_per_s=tokens / step_s,
        tokens_per_s_per_accelerator=tokens / step_s / count,
        micro_batch_count=int(table.micro_batch_count[0]),
        data_parallel_outermost=bool(table.data_parallel_outermost[0]),
        evidence=system.evidence,
    )
