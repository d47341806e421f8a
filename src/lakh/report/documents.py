"""What does `--json` hold? One document per command: inputs as understood, result in base units, evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakh.catalog import Model
from lakh.perf.flops import MfuConvention
from lakh.perf.predict import ErrorBar, Prediction
from lakh.planner import Candidate
from lakh.planner.explain import step_parts_s
from lakh.report.entries import KIND_OF, Entry, entry_evidence, path_text
from lakh.report.json import document, jsonable
from lakh.report.results import ClaimComparison, PlanResult, Rehearsal, ScaleResult
from lakh.report.unknowns import walk_facts

if TYPE_CHECKING:
    from lakh.validation.report import RowResult, ValidationReport

Document = dict[str, Any]


def _model(model: Model) -> Document:
    return {
        "name": model.name,
        "parameter_count": model.parameter_count,
        "active_parameter_count": model.active_parameter_count,
        "is_moe": model.is_moe,
    }


def _bar(bar: ErrorBar) -> Document:
    return {
        "step_time_s_low": bar.low_s,
        "step_time_s_high": bar.high_s,
        "kind": bar.kind,
        "row_count": bar.row_count,
        "inside_validated": bar.inside_validated,
        "notes": bar.notes,
    }


def prediction_document(one: Prediction, inputs: Mapping[str, Any], convention: MfuConvention) -> Document:
    """`lakh predict --json`."""
    result = {
        "layout": one.layout,
        "layout_text": one.layout.describe(),
        "accelerator": one.accelerator_name,
        "accelerator_count": one.layout.accelerator_count,
        "generation": one.generation,
        "model": _model(one.model),
        "step_time_s": one.step_time_s,
        "parts_s": one.parts_s,
        "exposed_communication_parts_s": one.exposed_s,
        "error_bar": _bar(one.error_bar),
        "memory": {
            "parts_bytes": one.memory_parts_bytes,
            "allocated_bytes": one.memory_allocated_bytes,
            "required_bytes": one.memory_required_bytes,
            "device_bytes": one.memory_device_bytes,
            "capacity_bytes": one.memory_capacity_bytes,
            "fits": one.fits,
        },
        "mfu": one.mfu[convention],
        "mfu_convention": convention,
        "mfu_by_convention": one.mfu,
        "model_flop": one.model_flop,
        "peak_flop_per_s": one.peak_flop_per_s,
        "tokens_per_s": one.tokens_per_s,
        "tokens_per_s_per_accelerator": one.tokens_per_s_per_accelerator,
        "micro_batch_count": one.micro_batch_count,
        "data_parallel_outermost": one.data_parallel_outermost,
    }
    return document("predict", inputs=inputs, result=result, evidence=one.evidence)


def candidate_document(one: Candidate) -> Document:
    """One layout of a search."""
    return {
        "layout": one.layout,
        "layout_text": one.layout.describe(),
        "global_batch_sequences": one.global_batch_sequences,
        "accelerator_count": one.accelerator_count,
        "step_time_s": one.step_time_s,
        "parts_s": step_parts_s(one),
        "tokens_per_s": one.tokens_per_s,
        "mfu": one.mfu,
        "micro_batch_count": one.micro_batch_count,
        "data_parallel_outermost": one.data_parallel_outermost,
        "required_bytes": one.device_bytes,
        "capacity_bytes": one.capacity_bytes,
        "memory_parts_bytes": one.memory_bytes,
        "accelerator_hours": one.accelerator_hours,
        "energy_joule": one.energy_joule,
    }


def plan_result(one: PlanResult) -> Document:
    """The result part of `lakh plan --json`."""
    why = one.explanation
    return {
        "best": candidate_document(one.best),
        "error_bar": _bar(one.error_bar),
        "mfu_by_convention": one.mfu,
        "accelerator": one.accelerator.name,
        "accelerator_count": one.accelerator_count,
        "unused_accelerators": one.search.unused_accelerators,
        "generation": one.generation,
        "ranked": [candidate_document(candidate) for candidate in one.search.ranked],
        "pareto": [candidate_document(candidate) for candidate in one.search.pareto],
        "why": {
            "runner_up": why.runner_up
            and {
                "layout_text": why.runner_up.other.layout.describe(),
                "differences": why.runner_up.differences,
                "text": why.runner_up.text,
            },
            "neighbours": why.knobs,
            "notes": why.notes,
        },
        "layout_count": one.search.count,
        "search_time_s": one.search_time_s,
        "power_watt": one.power_watt,
        "run": one.run,
        "launch": one.launch,
    }


def plan_document(one: PlanResult, inputs: Mapping[str, Any]) -> Document:
    """`lakh plan --json`."""
    return document(
        "plan", inputs=inputs, result=plan_result(one) | {"model": _model(one.model)}, evidence=one.evidence
    )


def scale_result(one: ScaleResult) -> Document:
    """The result part of `lakh scale --json`."""
    curve = one.curve
    points = [
        {
            "accelerator_count": point.accelerator_count,
            "used_accelerator_count": point.candidate.accelerator_count,
            "layout": point.candidate.layout,
            "layout_text": point.candidate.layout.describe(),
            "global_batch_sequences": point.candidate.global_batch_sequences,
            "step_time_s": point.candidate.step_time_s,
            "tokens_per_s": band.tokens_per_s,
            "tokens_per_s_per_accelerator": point.tokens_per_s_per_accelerator,
            "mfu": {
                "low": band.mfu.low * one.mfu_factor,
                "value": band.mfu.value * one.mfu_factor,
                "high": band.mfu.high * one.mfu_factor,
            },
            "scaling_efficiency": point.scaling_efficiency,
            "part_share": point.part_share,
            "power_watt": band.power_watt,
            "run": band.run,
            "inside_validated": band.inside_validated,
        }
        for point, band in zip(curve.points, one.bands, strict=True)
    ]
    return {
        "scaling": curve.scaling,
        "replanned": curve.replanned,
        "base_accelerator_count": curve.base_count,
        "mfu_convention": one.mfu_convention,
        "generation": one.generation,
        "points": points,
        "skipped": curve.skipped,
        "bends": [jsonable(bend) | {"text": bend.text} for bend in curve.bends],
        "overall": curve.overall and jsonable(curve.overall) | {"text": curve.overall.text},
    }


def scale_document(one: ScaleResult, inputs: Mapping[str, Any]) -> Document:
    """`lakh scale --json`."""
    result = scale_result(one) | {"model": _model(one.model)}
    return document("scale", inputs=inputs, result=result, evidence=one.evidence)


def row_document(row: RowResult) -> Document:
    """One row of a validation."""
    made: Document = jsonable(row)
    return made


def validation_document(one: ValidationReport, inputs: Mapping[str, Any], about: Mapping[str, Any]) -> Document:
    """`lakh validate --json`."""
    result = {
        "rows": [row_document(row) for row in one.rows],
        "by_kind": one.by_kind,
        "by_source": one.by_source,
        "by_hardware": one.by_hardware,
        "memory": one.memory,
        "scaling": one.scaling,
        "scaling_median_error": one.scaling_median_error,
        "wrongly_out_of_memory": one.wrongly_out_of_memory,
        "predictable_share": one.predictable_share,
        "left_out": one.left_out,
    }
    return document("validate", inputs=inputs, result=result, evidence=about)


def claim_document(one: ClaimComparison) -> Document:
    """One claim beside its prediction."""
    return {
        "claim": one.claim.name,
        "statement": one.claim.statement,
        "quantity": one.claim.quantity,
        "claimed": one.claim.value,
        "job": one.job_name,
        "accelerator_count": one.accelerator_count,
        "predicted": one.predicted,
        "verdict": one.verdict,
        "read_as": one.reason,
        "readings": one.readings,
        "undefined": one.claim.undefined,
    }


def rehearsal_document(one: Rehearsal, inputs: Mapping[str, Any]) -> Document:
    """`lakh rehearse --json`."""
    result = {
        "name": one.name,
        "cluster": one.cluster.name,
        "accelerator_count": one.cluster.accelerator_count,
        "jobs": [
            {
                "name": job.job.name,
                "model": _model(job.plan.model),
                "plan": plan_result(job.plan),
                "curve": scale_result(job.curve),
                "weak_curve": scale_result(job.weak),
                "on_graph": job.on_graph,
                "effects_of_unknowns": job.effects,
            }
            for job in one.jobs
        ],
        "claims": [claim_document(claim) for claim in one.claims],
        "odds": one.odds
        and [
            {
                "claim": row.claim.name,
                "model": row.model_name,
                "fabric": row.fabric,
                "accelerator_count": row.accelerator_count,
                "probability": row.probability,
                "quantity": row.quantity,
            }
            for row in one.odds.rows
        ],
        "unknowns": one.unknowns,
        "notes": one.notes,
        "wall_time_s": one.wall_time_s,
    }
    evidence = {path_text(path): fact for path, fact in walk_facts(one.cluster)} | dict(one.jobs[0].plan.evidence)
    return document("rehearse", inputs=inputs, result=result, evidence=evidence)


def catalog_document(entries: Sequence[Entry], inputs: Mapping[str, Any]) -> Document:
    """`lakh catalog --json`: every entry of a kind, or one entry with its facts as evidence."""
    shown = [{"kind": KIND_OF[type(entry)], **jsonable(entry)} for entry in entries]
    evidence = entry_evidence(entries[0]) if len(entries) == 1 else {}
    return document("catalog", inputs=inputs, result={"entries": shown}, evidence=evidence)
