"""What never happens: more failures that help, time that is lost twice, a band without its median."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakh.reliability import (
    CAUSES,
    POLICIES,
    Hardware,
    build_job,
    failure_profile,
    failure_profiles,
    goodput,
    jitter_slowdown,
    recovery_policy,
    simulate,
    spare_count,
)

DAY_S = 86_400.0
policies = st.sampled_from(sorted(POLICIES)).map(recovery_policy)
profiles = st.sampled_from(failure_profiles())
sizes = st.sampled_from([8, 64, 1_000, 8_192, 24_000, 100_000])


def job_of(profile, policy, accelerators, factor=1.0):
    return build_job(
        profile=profile.with_rates_scaled(factor),
        policy=policy,
        hardware=Hardware(),
        accelerator_count=accelerators,
        checkpoint_bytes=2e12,
    )


@settings(max_examples=30, deadline=None)
@given(profile=profiles, policy=policies, accelerators=sizes, seed=st.integers(0, 2**31), uncertain=st.booleans())
def test_productive_time_and_every_loss_sum_to_the_wall_time_in_each_trial(
    profile, policy, accelerators, seed, uncertain
):
    trials = simulate(
        job_of(profile, policy, accelerators), duration_s=7 * DAY_S, trial_count=20, seed=seed, uncertain=uncertain
    )
    assert trials.productive_s + trials.lost_s.sum(axis=0) == pytest.approx(np.full(20, 7 * DAY_S), rel=1e-9)
    assert (trials.lost_s > -1e-6).all()
    assert (trials.productive_s >= 0.0).all()


@settings(max_examples=30, deadline=None)
@given(profile=profiles, policy=policies, accelerators=sizes, seed=st.integers(0, 2**31))
def test_what_components_cost_sums_to_recoveries_waits_and_lost_work(profile, policy, accelerators, seed):
    trials = simulate(job_of(profile, policy, accelerators), duration_s=7 * DAY_S, trial_count=20, seed=seed)
    apart = [CAUSES.index(cause) for cause in ("checkpoint", "slow-downs", "reduced size")]
    booked = trials.lost_s.mean(axis=1).sum() - trials.lost_s[apart].mean(axis=1).sum()
    assert sum(trials.component_lost_s.values()) == pytest.approx(booked, rel=1e-6, abs=1e-3)


@settings(max_examples=20, deadline=None)
@given(profile=profiles, policy=policies, accelerators=st.sampled_from([1_000, 8_192, 24_000]))
def test_more_failures_never_raise_goodput(profile, policy, accelerators):
    def ettr(factor: float) -> tuple[float, float]:
        found = simulate(
            job_of(profile, policy, accelerators, factor),
            duration_s=30 * DAY_S,
            trial_count=200,
            seed=5,
            gaps="exponential",
        ).ettr
        return float(found.mean()), float(found.std() / np.sqrt(len(found)))

    before = ettr(0.5)
    for factor in (1.0, 2.0, 4.0):
        after = ettr(factor)
        assert after[0] <= before[0] + 4 * (before[1] + after[1]) + 1e-9
        before = after


@settings(max_examples=15, deadline=None)
@given(profile=profiles, policy=policies, accelerators=sizes, seed=st.integers(0, 2**31))
def test_a_band_contains_its_median_and_shares_sum_to_one(profile, policy, accelerators, seed):
    report = goodput(
        accelerator_count=accelerators,
        profile=profile,
        policy=policy,
        checkpoint_bytes=2e12,
        trial_count=50,
        duration_s=14 * DAY_S,
        seed=seed,
    )
    for band in (report.ettr, report.effective_time, report.unplanned_stops):
        assert band.p05 <= band.p50 <= band.p95
    assert sum(bar.share for bar in report.waterfall) == pytest.approx(1.0, abs=1e-9)
    assert 0.0 <= report.ettr.mean <= report.effective_time.mean <= 1.0 + 1e-12
    assert report.spares.for_99 <= report.spares.for_999
    assert 0.0 <= report.ettr_closed_form <= 1.0


@settings(max_examples=15, deadline=None)
@given(policy=policies, accelerators=st.sampled_from([1_000, 8_192]), longer=st.floats(1.1, 5.0))
def test_a_slower_restart_never_raises_goodput(policy, accelerators, longer):
    profile = failure_profile("llama3-h100-16k")
    slower = replace(
        policy,
        restart_fixed_s=policy.restart_fixed_s * longer,
        diagnosis_s=policy.diagnosis_s * longer,
        replica_stall_s=policy.replica_stall_s * longer,
    )
    quick, slow = (
        simulate(job_of(profile, p, accelerators), duration_s=30 * DAY_S, trial_count=100, seed=5).ettr.mean()
        for p in (policy, slower)
    )
    assert slow <= quick + 1e-4


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_more_spares_never_lower_goodput(policy):
    profile = failure_profile("stepfun-400")
    found = [
        simulate(
            job_of(profile, replace(recovery_policy(policy), spare_node_count=spares), 3200),
            duration_s=60 * DAY_S,
            trial_count=400,
            seed=8,
        ).ettr.mean()
        for spares in (0, 5, 20, 80)
    ]
    assert all(after >= before - 1e-3 for before, after in itertools.pairwise(found))


def test_the_same_seed_gives_the_same_trials_whatever_the_threads():
    job = job_of(failure_profile("undisclosed"), recovery_policy("hot-spares"), 24_000)
    one, two = (
        simulate(job, duration_s=10 * DAY_S, trial_count=600, seed=42, thread_count=threads) for threads in (1, 2)
    )
    assert (one.productive_s == two.productive_s).all()
    assert (one.lost_s == two.lost_s).all()
    other = simulate(job, duration_s=10 * DAY_S, trial_count=600, seed=43)
    assert (one.productive_s != other.productive_s).any()


@settings(max_examples=25, deadline=None)
@given(profile=profiles, accelerators=sizes)
def test_more_availability_never_needs_fewer_spares(profile, accelerators):
    job = job_of(profile, recovery_policy("automated"), accelerators)
    counts = [spare_count(job, availability=a) for a in (0.9, 0.99, 0.999)]
    assert counts == sorted(counts)


@given(cv=st.floats(0.0, 0.3), rank_count=st.integers(1, 100_000))
@settings(max_examples=40, deadline=None)
def test_more_ranks_never_wait_less(cv, rank_count):
    few, many = (jitter_slowdown(rank_count=count, cv=cv) for count in (rank_count, 2 * rank_count))
    assert 1.0 - 1e-6 <= few <= many + 1e-9
