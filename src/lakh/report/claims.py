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
                result += _mfu_comparisons(claim, job)
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
        reason=f"{curve.scaling} scaling from {curve.base_count:,}",
    )


def _mfu_comparisons(claim: Claim, job: JobRehearsal) -> list[ClaimComparison]:
    """One comparison per reading that changes the verdict: how the batch scales, and over which peak.

    A claim that states neither can be true in one reading and false in another; all are shown, none is chosen.
    """
    result = []
    for scaled in (job.curve, job.weak):
        points = scaled.curve.points
        wanted = stated_size(claim)
        at = len(points) - 1
        if wanted is not None:
            at = min(range(len(points)), key=lambda i: (abs(points[i].accelerator_count - wanted), i))
        precision = points[at].candidate.layout.precision
        batch = "the job's batch" if scaled.curve.scaling == "strong" else "a batch that grows with the accelerators"
        for peak, factor in _peaks(job, precision):
            band = scaled.bands[at].mfu
            predicted = Range(low=band.low * factor, value=band.value * factor, high=band.high * factor)
            first = scaled is job.curve and peak == precision
            result.append(
                ClaimComparison(
                    claim=claim,
                    job_name=job.job.name,
                    accelerator_count=points[at].accelerator_count,
                    predicted=predicted,
                    verdict=_verdict(claim, predicted),
                    reason=f"causal, {peak} peak, {batch}",
                    readings=_readings(job, at) if first else (),
                )
            )
    return result


def _peaks(job: JobRehearsal, precision: str) -> list[tuple[str, float]]:
    """Peaks that a utilisation may be over: the precision's own and bf16; with what turns the first into each."""
    peaks = job.plan.accelerator.peak_flop_per_s
    key = "fp8" if "fp8" in precision else "fp4" if "fp4" in precision else precision
    result = [(precision, 1.0)]
    if key != "bf16" and key in peaks and "bf16" in peaks:
        result.append(("bf16", peaks[key].value / peaks["bf16"].value))
    return result


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
    precision = point.candidate.layout.precision
    result = []
    for name in get_args(MfuConvention):
        convention = cast(MfuConvention, name)
        value = point.mfu * job.plan.mfu[convention] / job.plan.mfu["causal"]
        result += [
            Reading(convention=convention, precision=peak, value=value * factor)
            for peak, factor in _peaks(job, precision)
        ]
    return tuple(result)
