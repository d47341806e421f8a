"""How much of a run's time is productive? From cluster, model and policy to ETTR, losses, intervals and spares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lakh.errors import Problem, RequestError
from lakh.evidence import Fact
from lakh.reliability.checkpoints import STATE_BYTES_PER_PARAMETER, Hardware, TierName, state_bytes
from lakh.reliability.closed_form import up_share
from lakh.reliability.events import JobModel, build_job
from lakh.reliability.monte_carlo import CAUSES, Trials, simulate
from lakh.reliability.profiles import Clock, FailureProfile, Gaps
from lakh.reliability.recovery import POLICIES, RecoveryPolicy
from lakh.reliability.spares import independent_spare_count, job_outages, nodes_down, spare_count
from lakh.reliability.stragglers import mean_throughput

DAY_S = 86_400.0
CURVE_ACCELERATOR_COUNTS: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


@dataclass(frozen=True, kw_only=True, slots=True)
class Percentiles:
    """A quantity over trials. p05 to p95 holds 90 % of them."""

    mean: float
    p05: float
    p50: float
    p95: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeShare:
    """One bar of the waterfall: productive time or one cause of loss."""

    cause: str
    share: float
    """Of wall time, mean over trials [ratio]; all bars sum to 1."""
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TierPlan:
    """Checkpoints to one tier."""

    tier: TierName
    interval_s: float
    """Work between two checkpoints that loses least [s]."""
    block_s: float
    persist_s: float
    load_s: float
    overhead: float
    """Checkpoint time per unit of work [ratio]."""
    mtbf_s: float
    """Between failures that need this tier; infinite where none does [s]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SparePlan:
    """Nodes held so that the job has its full size."""

    held: int
    for_99: int
    """For 99 % of the time."""
    for_999: int
    """For 99.9 % of the time."""
    independent_for_99: int
    """What the binomial rule would hold for 99 %: it ignores bursts and falls short."""
    nodes_down_mean: float
    full_size_share: float
    """Share of the simulated time at full size with the spares held [ratio]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """The same policy at another size."""

    accelerator_count: int
    mtbf_s: float
    ettr: Percentiles
    effective_time: Percentiles


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyResult:
    """Another policy at the same size."""

    policy: str
    description: str
    ettr: Percentiles
    effective_time: Percentiles
    lost_most_to: str
    spare_node_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceRow:
    """One number that went in, with who says so. `low` and `high` state what is not known."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    status: str
    source: str
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GoodputReport:
    """What becomes of a run: times in seconds, ratios 0 to 1."""

    accelerator_count: int
    node_count: int
    policy: str
    profile: str
    failure_definition: str
    """What the profile counts as a failure."""
    gaps: Gaps
    clock: Clock
    duration_s: float
    trial_count: int
    checkpoint_bytes: float
    mtbf_s: float
    """Between unplanned stops, at the stated rates [s]."""
    unplanned_stops: Percentiles
    ettr: Percentiles
    """Productive time over wall time: slow-downs and checkpoint stalls count as lost."""
    effective_time: Percentiles
    """As "effective training time" is mostly quoted: wall time less stops, waits, lost work and checkpoint stalls;
    training that runs slowly counts as training."""
    ettr_closed_form: float
    """Exponential gaps, first order in lost work, spares never short; see `closed_form_ettr`."""
    waterfall: tuple[TimeShare, ...]
    """Productive time first, then every cause."""
    lost_by_component: tuple[TimeShare, ...]
    """What each component's stops cost, most first; checkpoint stalls, slow-downs and reduced size are not in it."""
    tiers: tuple[TierPlan, ...]
    spares: SparePlan
    policies: tuple[PolicyResult, ...]
    """Compared, best first; the asked one among them where others were named."""
    best_policy: str
    curve: tuple[CurvePoint, ...]
    evidence: tuple[EvidenceRow, ...]


def percentiles(values: npt.NDArray[np.float64]) -> Percentiles:
    """Mean, 5th, 50th and 95th percentile."""
    p05, p50, p95 = (float(value) for value in np.quantile(values, (0.05, 0.5, 0.95)))
    return Percentiles(mean=float(values.mean()), p05=p05, p50=p50, p95=p95)


def closed_form_ettr(job: JobModel) -> float:
    """Expected ETTR with exponential gaps and spares that are never short.

        ETTR = exp(-sum_c lambda_c E[R_c]) * product_i x_i / (exp(x_i) - 1) * s - debt
        x_i = lambda_i (T_i + C_i)        lost work of tier i: Daly's term, with T/(T+C) taken once for all tiers

    The first factor is exact for any recovery times (M/G/infinity); the second is Daly's equation 20 for one tier and a
    product of independent tiers for several; what persists asynchronously adds its lag to each rollback, and silent
    errors add their latency, to first order. s is the mean rate under slow-downs.
    """
    up = up_share(recovery_s_per_s=sum(event.rate_per_s * event.recovery_s for event in job.events))
    overhead = sum(tier.overhead for tier in job.tiers)
    kept = 1.0
    for tier, rate in zip(job.tiers, job.tier_rates_per_s(), strict=True):
        x = rate * tier.interval_s * (1.0 + overhead)
        kept *= x / math.expm1(x) if x > 0.0 else 1.0
        kept *= math.exp(-rate * tier.persist_s)
    kept *= math.exp(-sum(event.rate_per_s * event.silent_latency_s for event in job.events))
    debt = sum(event.rate_per_s * event.capacity_debt_s for event in job.events)
    speed = float(mean_throughput(job.slow, node_count=job.node_count))
    return max(0.0, up - debt) * kept / (1.0 + overhead) * speed


def goodput(
    *,
    accelerator_count: int,
    profile: FailureProfile,
    policy: RecoveryPolicy | None = None,
    parameter_count: float | None = None,
    checkpoint_bytes: float | None = None,
    hardware: Hardware | None = None,
    compared: Sequence[RecoveryPolicy] = (),
    curve_accelerator_counts: Sequence[int] = (),
    intervals_s: Sequence[float] | None = None,
    shard_count: int | None = None,
    cluster_age_s: float | None = None,
    duration_s: float = 90 * DAY_S,
    trial_count: int = 2000,
    seed: int = 0,
    gaps: Gaps = "bursty",
    clock: Clock = "wall",
    uncertain: bool = True,
    step_s: float = 1.0,
) -> GoodputReport:
    """ETTR of a run with percentiles, where its time goes, optimum checkpoint intervals, spares, policies, curve.

    Args:
        accelerator_count: accelerators of the job
        profile: what fails and how often; see `failure_profile`
        policy: what happens then; see `recovery_policy`; None: the best of `compared`
        parameter_count: of the model; its checkpoint takes 14 bytes a parameter
        checkpoint_bytes: size of one checkpoint; instead of `parameter_count`
        hardware: of the cluster; None: the defaults of `Hardware`
        compared: other policies to run at the same size
        curve_accelerator_counts: other sizes to run the policy at
        intervals_s: checkpoint intervals, one a tier, fastest first; None: the optimum of each
        shard_count: accelerators that each hold a different part of the checkpoint; None: all
        cluster_age_s: age of the cluster when the run starts; None: past its early life
        duration_s: wall time of the run
        trial_count: simulated runs
        seed: of the random numbers
        gaps: distribution of the gaps between failures
        clock: what the gaps are counted on
        uncertain: True: the band holds what is not known of the rates as well as chance; False: chance alone
        step_s: time of one training step, the shortest checkpoint interval there is

    Raises:
        RequestError: a count, size or duration that makes no sense; every one is named
    """
    hardware = hardware or Hardware()
    size_bytes = _check(
        accelerator_count,
        parameter_count,
        checkpoint_bytes,
        policy,
        compared,
        intervals_s,
        curve_accelerator_counts,
        step_s,
    )
    side_count = max(1, min(trial_count, 1000))

    def job_of(chosen: RecoveryPolicy, count: int) -> JobModel:
        return build_job(
            profile=profile,
            policy=chosen,
            hardware=hardware,
            accelerator_count=count,
            checkpoint_bytes=size_bytes,
            shard_count=shard_count,
            cluster_age_s=cluster_age_s,
            duration_s=duration_s,
            shortest_interval_s=step_s,
        )

    def run(job: JobModel, trials: int) -> Trials:
        return simulate(
            job, duration_s=duration_s, trial_count=trials, seed=seed, gaps=gaps, clock=clock, uncertain=uncertain
        )

    others = {
        other.name: _policy_result(other, run(job_of(other, accelerator_count), side_count))
        for other in compared
        if policy is None or other.name != policy.name
    }
    if policy is None:
        best = min(others.values(), key=lambda result: (-result.ettr.p50, result.policy)).policy
        policy = next(other for other in compared if other.name == best)
        del others[best]
    job = job_of(policy, accelerator_count)
    if intervals_s is not None:
        job = job.with_intervals(intervals_s)
    trials = run(job, trial_count)
    results = [_policy_result(policy, trials), *others.values()]
    results.sort(key=lambda result: (-result.ettr.p50, result.policy))
    return GoodputReport(
        accelerator_count=accelerator_count,
        node_count=job.node_count,
        policy=policy.name,
        profile=profile.name,
        failure_definition=profile.definition,
        gaps=gaps,
        clock=clock,
        duration_s=duration_s,
        trial_count=trial_count,
        checkpoint_bytes=size_bytes,
        mtbf_s=math.inf if job.unplanned_rate_per_s == 0.0 else 1.0 / job.unplanned_rate_per_s,
        unplanned_stops=percentiles(trials.unplanned_stop_count),
        ettr=percentiles(trials.ettr),
        effective_time=percentiles(effective_time(trials)),
        ettr_closed_form=closed_form_ettr(job),
        waterfall=waterfall(trials),
        lost_by_component=_by_component(trials),
        tiers=_tier_plans(job),
        spares=_spare_plan(job, trials),
        policies=tuple(results),
        best_policy=results[0].policy,
        curve=tuple(_curve_point(job_of(policy, count), run, side_count) for count in curve_accelerator_counts),
        evidence=_evidence(profile, policy),
    )


def _check(
    accelerator_count: int,
    parameter_count: float | None,
    checkpoint_bytes: float | None,
    policy: RecoveryPolicy | None,
    compared: Sequence[RecoveryPolicy],
    intervals_s: Sequence[float] | None,
    curve_accelerator_counts: Sequence[int],
    step_s: float,
) -> float:
    problems = []
    if policy is None and not compared:
        problems.append(Problem(where="policy", found=None, accepted="a policy, or policies to compare"))
    if any(count < 1 for count in curve_accelerator_counts):
        sizes = tuple(curve_accelerator_counts)
        problems.append(Problem(where="curve_accelerator_counts", found=sizes, accepted="counts of 1 or more"))
    if accelerator_count < 1:
        problems.append(Problem(where="accelerator_count", found=accelerator_count, accepted="1 or more"))
    if (parameter_count is None) == (checkpoint_bytes is None):
        found = None if parameter_count is None else (parameter_count, checkpoint_bytes)
        accepted = "either parameter_count or checkpoint_bytes"
        problems.append(Problem(where="checkpoint size", found=found, accepted=accepted))
    for name, value in (("parameter_count", parameter_count), ("checkpoint_bytes", checkpoint_bytes)):
        if value is not None and not (value > 0.0 and math.isfinite(value)):
            problems.append(Problem(where=name, found=value, accepted="a number above 0"))
    if not step_s > 0.0:
        problems.append(Problem(where="step_s", found=step_s, accepted="a duration above 0"))
    tiers = policy.tiers if policy is not None else ()
    if intervals_s is not None and (len(intervals_s) != len(tiers) or any(not t > 0.0 for t in intervals_s)):
        accepted = (
            f"{len(tiers)} durations above 0, for {', '.join(tiers)}" if tiers else "a named policy to go with them"
        )
        problems.append(Problem(where="intervals_s", found=tuple(intervals_s), accepted=accepted))
    if problems:
        raise RequestError(problems)
    if checkpoint_bytes is not None:
        return checkpoint_bytes
    assert parameter_count is not None
    return state_bytes(parameter_count, bytes_per_parameter=STATE_BYTES_PER_PARAMETER)


def effective_time(trials: Trials) -> npt.NDArray[np.float64]:
    """Wall time less stops, waits, lost work and checkpoint stalls, over wall time, per trial."""
    slow = trials.lost_s[CAUSES.index("slow-downs")]
    return np.asarray((trials.productive_s + slow) / trials.duration_s, dtype=np.float64)


def waterfall(trials: Trials) -> tuple[TimeShare, ...]:
    """Where the wall time goes, mean over trials: productive time, then every cause of loss; sums to 1."""
    means = [float(trials.productive_s.mean()), *(float(x) for x in trials.lost_s.mean(axis=1))]
    return tuple(
        TimeShare(cause=cause, share=seconds / trials.duration_s, seconds=seconds)
        for cause, seconds in zip(("productive", *CAUSES), means, strict=True)
    )


def _by_component(trials: Trials) -> tuple[TimeShare, ...]:
    rows = sorted(trials.component_lost_s.items(), key=lambda item: (-item[1], item[0]))
    return tuple(TimeShare(cause=name, share=s / trials.duration_s, seconds=s) for name, s in rows)


def _policy_result(policy: RecoveryPolicy, trials: Trials) -> PolicyResult:
    losses = trials.lost_s.mean(axis=1)
    return PolicyResult(
        policy=policy.name,
        description=policy.description,
        ettr=percentiles(trials.ettr),
        effective_time=percentiles(effective_time(trials)),
        lost_most_to=CAUSES[int(losses.argmax())],
        spare_node_count=trials.spare_node_count,
    )


def _curve_point(job: JobModel, run: Callable[[JobModel, int], Trials], trial_count: int) -> CurvePoint:
    trials = run(job, trial_count)
    return CurvePoint(
        accelerator_count=job.accelerator_count,
        mtbf_s=math.inf if job.unplanned_rate_per_s == 0.0 else 1.0 / job.unplanned_rate_per_s,
        ettr=percentiles(trials.ettr),
        effective_time=percentiles(effective_time(trials)),
    )


def _tier_plans(job: JobModel) -> tuple[TierPlan, ...]:
    return tuple(
        TierPlan(
            tier=tier.name,
            interval_s=tier.interval_s,
            block_s=tier.block_s,
            persist_s=tier.persist_s,
            load_s=tier.load_s,
            overhead=tier.overhead,
            mtbf_s=math.inf if rate == 0.0 else 1.0 / rate,
        )
        for tier, rate in zip(job.tiers, job.tier_rates_per_s(), strict=True)
    )


def _spare_plan(job: JobModel, trials: Trials) -> SparePlan:
    return SparePlan(
        held=trials.spare_node_count,
        for_99=spare_count(job, availability=0.99),
        for_999=spare_count(job, availability=0.999),
        independent_for_99=independent_spare_count(job, availability=0.99),
        nodes_down_mean=nodes_down(job_outages(job), burst=job.burst, node_count=job.node_count).mean,
        full_size_share=1.0 - float(trials.short_s.mean()) / trials.duration_s,
    )


def _evidence(profile: FailureProfile, policy: RecoveryPolicy) -> tuple[EvidenceRow, ...]:
    per_1000_node_days = 1000.0 * DAY_S

    def row(name: str, fact: Fact, unit: str, factor: float = 1.0) -> EvidenceRow:
        return EvidenceRow(
            name=name,
            value=fact.value * factor,
            low=fact.low * factor,
            high=fact.high * factor,
            unit=unit,
            status=fact.status,
            source=fact.source,
            note=fact.note,
        )

    shape = profile.shape
    rows = [
        row(f"rate: {mode.name}", mode.rate_per_node_s, "1 per 1000 node-days", per_1000_node_days)
        for mode in profile.modes
    ]
    rows += [
        row(f"rate: {mode.name}", mode.rate_per_node_s, f"1 per 1000 {mode.scope}-days", per_1000_node_days)
        for mode in shape.correlated
    ]
    rows += [
        row(f"slow-down begins: {mode.name}", mode.rate_per_node_s, "1 per 1000 node-days", per_1000_node_days)
        for mode in shape.slow
    ]
    rows.append(row("growth of the rate per node with size, exponent", profile.growth_exponent, "1"))
    rows.append(row("share of crashes that show as a hang", shape.hang_share, "ratio"))
    rows.append(row("share of rate swings common to the whole cluster", shape.burst.common_share, "ratio"))
    rows.append(
        EvidenceRow(
            name=f"shape of bursts, repairs and lemons: {shape.name}",
            value=shape.burst.episode_shape,
            low=shape.burst.episode_shape,
            high=shape.burst.episode_shape,
            unit="1",
            status="estimate",
            source=shape.source,
            note="episode shape of the gamma rate multiplier",
        )
    )
    rows.append(
        EvidenceRow(
            name=f"recovery times: {policy.name}",
            value=policy.restart_fixed_s,
            low=policy.restart_fixed_s,
            high=policy.restart_fixed_s,
            unit="second",
            status="estimate",
            source=policy.source,
            note="fixed part of a restart",
        )
    )
    return tuple(rows)


def all_policies() -> tuple[RecoveryPolicy, ...]:
    """Every policy that can be named."""
    return tuple(POLICIES.values())


def with_recovery_s(policy: RecoveryPolicy, *, stall_s: float) -> RecoveryPolicy:
    """The same policy whose every stop takes a stated time in all, checkpoint load apart: a measured stall."""
    return replace(
        policy,
        detection_crash_s=0.0,
        detection_hang_s=0.0,
        diagnosis_s=0.0,
        node_swap_s=0.0,
        queue_s=0.0,
        restart_fixed_s=stall_s,
        restart_per_accelerator_s=0.0,
        warmup_s=0.0,
        replica_stall_s=min(policy.replica_stall_s, stall_s),
    )
