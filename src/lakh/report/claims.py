"""How does a claim lie beside the prediction? The claimed figure, the predicted band, and what was not said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast, get_args

from lakh.catalog import Claim
from lakh.perf.flops import MfuConvention
from lakh.planner import Range, ScaleCurve
from lakh.report.results import ClaimComparison, JobRehearsal, Reading, Verdict


def compare_claims(claims: Sequence[Claim], jobs: Sequence[JobRehearsal]) -> tuple[ClaimComparison, ...]:
    """Each claim beside each job that it may be about; a claim about something else is kept with the reason."""
    result: list[ClaimComparison] = []
    for claim in claims:
        reason = _not_comparable(claim, jobs)
        fitting = [] if reason else [job for job in jobs if _may_be_about(claim, job)]
        if not fitting:
            result.append(
                ClaimComparison(
                    claim=claim,
                    job_name=None,
                    accelerator_count=None,
                    predicted=None,
                    verdict="not-comparable",
                    reason=reason or "no job of this scenario is of the kind that the claim names",
                )
            )
        for job in fitting:
            if claim.quantity == "scaling_efficiency":
                result += [_efficiency_comparison(claim, job, curve) for curve in (job.curve.curve, job.weak.curve)]
            else:
                result.append(_mfu_comparison(claim, job))
    return tuple(result)


def _not_comparable(claim: Claim, jobs: Sequence[JobRehearsal]) -> str:
    """Why no prediction of these jobs can be held against the claim; empty where one can."""
    if claim.quantity == "effective_time":
        return "a claim about failures and restarts; a step prediction holds none"
    if claim.quantity not in ("mfu", "scaling_efficiency"):
        return f"a claim about {claim.quantity.replace('_', ' ')}, which a rehearsal of training does not predict"
    hardware = claim.conditions.get("hardware", "")
    chip = jobs[0].plan.accelerator
    names = [chip.name, *chip.aliases, *(name.split(" ")[-1] for name in (chip.name, *chip.aliases))]
    if hardware and not any(name.casefold() in hardware.casefold() for name in names):
        return f"made about {hardware}; this cluster has {chip.name}"
    return ""


def _may_be_about(claim: Claim, job: JobRehearsal) -> bool:
    about = claim.conditions.get("model", "").casefold()
    if "mixture" in about or "moe" in about.split():
        return job.plan.model.is_moe
    if about.startswith("dense"):
        return not job.plan.model.is_moe
    return True


def stated_size(claim: Claim) -> int | None:
    """The number of accelerators in a claim's conditions, the first that is stated."""
    found = re.search(r"\d[\d,]*", claim.conditions.get("accelerators", ""))
    return int(found[0].replace(",", "")) if found else None


def _efficiency_comparison(claim: Claim, job: JobRehearsal, curve: ScaleCurve) -> ClaimComparison:
    predicted = efficiency_over_bases(curve)
    return ClaimComparison(
        claim=claim,
        job_name=job.job.name,
        accelerator_count=curve.points[-1].accelerator_count,
        predicted=predicted,
        verdict=_verdict(claim, predicted),
        reason=f"{curve.scaling} scaling from {curve.base_count:,} (in brackets: from any smaller size)",
    )


def _mfu_comparison(claim: Claim, job: JobRehearsal) -> ClaimComparison:
    points = job.curve.curve.points
    wanted = stated_size(claim)
    at = len(points) - 1
    if wanted is not None:
        at = min(range(len(points)), key=lambda i: (abs(points[i].accelerator_count - wanted), i))
    predicted = job.curve.bands[at].mfu
    return ClaimComparison(
        claim=claim,
        job_name=job.job.name,
        accelerator_count=points[at].accelerator_count,
        predicted=predicted,
        verdict=_verdict(claim, predicted),
        reason=f"causal, {points[at].candidate.layout.precision} peak",
        readings=_readings(job, at),
    )


def efficiency_over_bases(curve: ScaleCurve) -> Range:
    """Scaling efficiency at the largest size: over the curve's base, and the span over every smaller size as base."""
    *smaller, last = [point.scaling_efficiency for point in curve.points]
    ratios = [last / base for base in smaller] or [1.0]
    return Range(low=min(*ratios, last), value=last, high=max(*ratios, last))


def _verdict(claim: Claim, predicted: Range) -> Verdict:
    if predicted.high < claim.value.low:
        return "below"
    return "above" if predicted.low >= claim.value.high else "within"


def _readings(job: JobRehearsal, at: int) -> tuple[Reading, ...]:
    """The predicted step in each convention, over the peak of its precision and over the bf16 peak."""
    point = job.curve.curve.points[at]
    chip, precision = job.plan.accelerator, point.candidate.layout.precision
    key = "fp8" if "fp8" in precision else "fp4" if "fp4" in precision else precision
    peaks = chip.peak_flop_per_s
    result = []
    for name in get_args(MfuConvention):
        convention = cast(MfuConvention, name)
        value = point.mfu * job.plan.mfu[convention] / job.plan.mfu["causal"]
        result.append(Reading(convention=convention, precision=precision, value=value))
        if key != "bf16" and key in peaks and "bf16" in peaks:
            ratio = peaks[key].value / peaks["bf16"].value
            result.append(Reading(convention=convention, precision="bf16", value=value * ratio))
    return tuple(result)
