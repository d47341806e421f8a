"""The Monte Carlo meets the closed forms where they apply, and the closed forms meet direct computation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lakh.evidence import exact
from lakh.reliability import (
    CheckpointTier,
    EventClass,
    Hardware,
    JobModel,
    NodeOutages,
    blocking_restart,
    build_job,
    closed_form,
    closed_form_ettr,
    failure_profile,
    jitter_slowdown,
    mean_throughput,
    nodes_down,
    simulate,
    simulate_fault_log,
    slow_nodes,
    synchronous_slowdown,
)
from lakh.reliability.events import PHASES
from lakh.reliability.profiles import Burst, Repair, SlowMode

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
NO_BURST = Burst(
    episode_shape=math.inf,
    episode_s=14 * DAY_S,
    simultaneous_share=0.0,
    common_share=exact(0.5, "ratio", status="estimate", source="none"),
    group_node_count=400,
)


def event(*, rate_per_s, recovery_s, tier_index=0, rolls_back=True, debt_s=0.0) -> EventClass:
    phases = [0.0] * len(PHASES)
    phases[PHASES.index("detection")], phases[PHASES.index("restart")] = 0.25 * recovery_s, 0.75 * recovery_s
    return EventClass(
        mode="any",
        component="unknown",
        signal="crash",
        rate_per_s=rate_per_s,
        phases_s=tuple(phases),
        tier_index=tier_index,
        rolls_back=rolls_back,
        silent_latency_s=0.0,
        nodes_out=0,
        repair_mean_s=0.0,
        capacity_debt_s=debt_s,
    )


def tier(*, interval_s, block_s, persist_s=0.0) -> CheckpointTier:
    times = {"block_s": block_s, "persist_s": persist_s, "load_s": 0.0, "interval_s": interval_s}
    return CheckpointTier(name="shared-storage", interference=0.0, **times)


def plain_job(events: tuple[EventClass, ...], tiers: tuple[CheckpointTier, ...]) -> JobModel:
    return JobModel(
        accelerator_count=8192,
        node_count=1024,
        events=events,
        tiers=tiers,
        policy=blocking_restart(restart_s=0.0),
        burst=NO_BURST,
        repair=Repair(mean_s=HOUR_S, weibull_shape=0.5),
        frailty_shape=1.0,
        slow=(),
        rate_log_sigma=0.0,
        growth=None,
    )


def stalling_job(*, mtbf_s: float, stall_s: float) -> JobModel:
    """Every stop costs the same and nothing else costs anything."""
    stop = event(rate_per_s=1 / mtbf_s, recovery_s=stall_s, rolls_back=False)
    return plain_job((stop,), (tier(interval_s=60.0, block_s=0.0),))


def mean_and_error(values) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values) / math.sqrt(len(values)))


@pytest.mark.parametrize(
    ("mtbf_s", "restart_s", "interval_s", "checkpoint_s"),
    [
        (3 * HOUR_S, 10 * MINUTE_S, 30 * MINUTE_S, 60.0),
        (HOUR_S, 5 * MINUTE_S, 10 * MINUTE_S, 10.0),
        (18 * MINUTE_S, 10 * MINUTE_S, MINUTE_S, 0.6),
        (18 * MINUTE_S, 36 * MINUTE_S, 5 * MINUTE_S, 30.0),  # restarts longer than the time between failures
    ],
)
def test_the_simulation_meets_daly_2006_with_exponential_gaps(mtbf_s, restart_s, interval_s, checkpoint_s):
    stop = event(rate_per_s=1.0 / mtbf_s, recovery_s=restart_s)
    job = plain_job((stop,), (tier(interval_s=interval_s, block_s=checkpoint_s),))
    trials = simulate(job, duration_s=60 * DAY_S, trial_count=400, seed=3, gaps="exponential")
    mean, error = mean_and_error(trials.ettr)
    expected = closed_form.daly_efficiency(
        interval_s=interval_s, checkpoint_s=checkpoint_s, restart_s=restart_s, mtbf_s=mtbf_s
    )
    assert mean == pytest.approx(expected, abs=4 * error + 1e-3)  # a run starts up: worth one recovery in 60 days
    assert closed_form_ettr(job) == pytest.approx(expected, rel=1e-9)


def test_evenly_spaced_failures_leave_the_time_between_stalls():
    job = stalling_job(mtbf_s=1080.0, stall_s=600.0)
    trials = simulate(job, duration_s=30 * DAY_S, trial_count=200, seed=1, gaps="even")
    expected = closed_form.first_order_efficiency(stall_s=600.0, mtbf_s=1080.0)
    assert trials.ettr.mean() == pytest.approx(expected, abs=1e-3)


def test_gaps_counted_on_uptime_leave_m_over_m_plus_r():
    job = stalling_job(mtbf_s=1080.0, stall_s=600.0)
    trials = simulate(job, duration_s=30 * DAY_S, trial_count=400, seed=1, gaps="exponential", clock="uptime")
    mean, error = mean_and_error(trials.ettr)
    assert mean == pytest.approx(1080.0 / 1680.0, abs=4 * error + 1e-3)


def test_the_share_up_is_exponential_in_mean_recovery_time_for_any_mixture():
    short = event(rate_per_s=1 / 1200.0, recovery_s=60.0, rolls_back=False)
    long = event(rate_per_s=1 / 7200.0, recovery_s=3600.0, rolls_back=False)
    job = plain_job((short, long), (tier(interval_s=60.0, block_s=0.0),))
    job = replace(job, policy=replace(job.policy, recovery_cv=0.8))
    trials = simulate(job, duration_s=30 * DAY_S, trial_count=400, seed=5, gaps="exponential")
    mean, error = mean_and_error(trials.ettr)
    assert mean == pytest.approx(closed_form.up_share(recovery_s_per_s=60 / 1200 + 3600 / 7200), abs=4 * error + 1e-3)


def test_the_simulation_meets_the_asynchronous_form_where_failures_are_rare():
    mtbf_s, interval_s, block_s, persist_s, restart_s = 8 * HOUR_S, 600.0, 0.5, 120.0, 300.0
    stop = event(rate_per_s=1 / mtbf_s, recovery_s=restart_s)
    job = plain_job((stop,), (tier(interval_s=interval_s, block_s=block_s, persist_s=persist_s),))
    trials = simulate(job, duration_s=90 * DAY_S, trial_count=400, seed=7, gaps="exponential")
    times = {"interval_s": interval_s, "block_s": block_s, "persist_s": persist_s, "restart_s": restart_s}
    expected = closed_form.asynchronous_efficiency(detection_s=0.0, mtbf_s=mtbf_s, **times)
    assert trials.ettr.mean() == pytest.approx(expected, abs=1.5e-3)  # second order: (R/M)^2 is 1e-4, and the start


def test_the_simulation_meets_the_replica_form():
    stop = event(rate_per_s=1 / HOUR_S, recovery_s=60.0, rolls_back=False, debt_s=1200.0 / 50)
    job = plain_job((stop,), (tier(interval_s=600.0, block_s=0.0),))
    trials = simulate(job, duration_s=60 * DAY_S, trial_count=200, seed=2, gaps="exponential")
    expected = closed_form.replica_efficiency(stall_s=60.0, replica_down_s=1200.0, replica_count=50, mtbf_s=HOUR_S)
    assert trials.ettr.mean() == pytest.approx(expected, abs=1e-3)


def test_the_simulation_meets_the_multi_level_form_at_its_optimum_intervals():
    often, seldom, restart_s, fast_s, slow_s = 1 / (2 * HOUR_S), 1 / (2 * DAY_S), 30.0, 2.0, 60.0
    intervals = [
        closed_form.multi_level_interval_s(checkpoint_s=cost, rate_per_s=rate)
        for cost, rate in ((fast_s, often), (slow_s, seldom))
    ]
    stops = (
        event(rate_per_s=often, recovery_s=restart_s, tier_index=0),
        event(rate_per_s=seldom, recovery_s=restart_s, tier_index=1),
    )
    job = plain_job(
        stops, (tier(interval_s=intervals[0], block_s=fast_s), tier(interval_s=intervals[1], block_s=slow_s))
    )
    trials = simulate(job, duration_s=90 * DAY_S, trial_count=400, seed=11, gaps="exponential")
    expected = closed_form.multi_level_efficiency(
        checkpoints_s=(fast_s, slow_s), rates_per_s=(often, seldom), restart_s=restart_s
    )
    assert trials.ettr.mean() == pytest.approx(expected, abs=2e-3)


def test_the_simulation_meets_metas_ettr_within_its_stated_5_percent():
    node_count, rate = 1024, 6.5 / 1000 / DAY_S
    stop = event(rate_per_s=node_count * rate, recovery_s=300.0)
    job = plain_job((stop,), (tier(interval_s=HOUR_S, block_s=300.0),))
    trials = simulate(job, duration_s=90 * DAY_S, trial_count=400, seed=13, gaps="exponential")
    expected = closed_form.meta_ettr(
        node_count=node_count, rate_per_node_s=rate, interval_s=HOUR_S, checkpoint_s=300.0, restart_overhead_s=300.0
    )
    assert trials.ettr.mean() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("checkpoint_s", "mtbf_s"), [(1.0, 3600.0), (60.0, 7200.0), (300.0, 1800.0)])
def test_dalys_interval_loses_least_by_his_exact_form(checkpoint_s, mtbf_s):
    def efficiency(interval_s: float) -> float:
        return closed_form.daly_efficiency(
            interval_s=interval_s, checkpoint_s=checkpoint_s, restart_s=60.0, mtbf_s=mtbf_s
        )

    best = max(np.geomspace(5.0, 20_000.0, 4000), key=efficiency)
    assert closed_form.daly_interval_s(checkpoint_s=checkpoint_s, mtbf_s=mtbf_s) == pytest.approx(best, rel=0.02)


def test_young_and_daly_and_the_availability_form_agree_for_cheap_checkpoints():
    young = closed_form.young_interval_s(checkpoint_s=0.1, mtbf_s=DAY_S)
    daly = closed_form.daly_interval_s(checkpoint_s=0.1, mtbf_s=DAY_S)
    availability = closed_form.availability_interval_s(checkpoint_s=0.1, mtbf_s=DAY_S, restart_s=60.0)
    assert daly == pytest.approx(young, rel=2e-3)
    assert availability == pytest.approx(young, rel=2e-3)


def test_daly_takes_the_time_between_failures_where_checkpoints_are_dearer_than_that():
    assert closed_form.daly_interval_s(checkpoint_s=100.0, mtbf_s=50.0) == 50.0


def test_a_silent_error_shortens_the_interval_as_two_stops_do():
    verified = closed_form.verified_interval_s(
        checkpoint_s=10.0, verification_s=5.0, stop_rate_per_s=1e-4, silent_rate_per_s=1e-4
    )
    assert verified == pytest.approx(closed_form.young_interval_s(checkpoint_s=15.0, mtbf_s=1 / 3e-4))


def test_memory_recovery_probability_meets_enumeration():
    nodes, copies = 8, 2
    groups = [set(range(start, start + copies)) for start in range(0, nodes, copies)]
    lost = list(itertools.combinations(range(nodes), copies))
    survived = sum(not any(group <= set(gone) for group in groups) for gone in lost)
    probability = closed_form.memory_recovery_probability(node_count=nodes, copies=copies, lost_count=copies)
    assert probability == pytest.approx(survived / len(lost))


def test_the_optimum_intervals_of_a_built_job_beat_shorter_and_longer_ones():
    job = build_job(
        profile=failure_profile("llama3-h100-16k"),
        policy=blocking_restart(restart_s=300.0),
        hardware=Hardware(),
        accelerator_count=16_384,
        checkpoint_bytes=5.67e12,
    )

    def ettr(factor: float) -> float:
        stretched = job.with_intervals([tier.interval_s * factor for tier in job.tiers])
        found = simulate(stretched, duration_s=90 * DAY_S, trial_count=300, seed=17, gaps="exponential")
        return float(found.ettr.mean())

    assert ettr(1.0) > max(ettr(0.4), ettr(2.5))


@pytest.mark.parametrize("rank_count", [1, 8, 1024, 100_000])
def test_jitter_slowdown_meets_the_mean_of_the_largest_of_n(rank_count):
    cv = 0.02
    sigma = math.sqrt(math.log1p(cv**2))
    u = np.random.default_rng(0).random(200_000) ** (1.0 / rank_count)  # the largest of n is the u^(1/n) quantile
    sampled = np.exp(-(sigma**2) / 2 + sigma * stats.norm.ppf(u))
    tolerance = 4 * sampled.std() / math.sqrt(len(u)) + 1e-6
    assert jitter_slowdown(rank_count=rank_count, cv=cv) == pytest.approx(sampled.mean(), abs=tolerance)


def test_slow_downs_that_overlap_run_at_the_slowest():
    def mode(throughput: float) -> SlowMode:
        def fact(value: float, unit: str):
            return exact(value, unit, status="estimate", source="none")

        return SlowMode(
            name="slow",
            component="network",
            rate_per_node_s=fact(0.01, "1/second"),
            duration_s=fact(50.0, "second"),
            throughput=fact(throughput, "ratio"),
            evictable=False,
        )

    absent = math.exp(-0.5)
    expected = (1 - absent) * 0.2 + absent * (1 - absent) * 0.6 + absent**2
    assert float(mean_throughput([mode(0.6), mode(0.2)], node_count=1)) == pytest.approx(expected)


def test_nodes_down_without_bursts_are_poisson():
    repair = Repair(mean_s=180 * HOUR_S, weibull_shape=0.46)
    stream = NodeOutages(rate_per_s=1.4 / DAY_S, nodes_out=1.0, together=False, repair=repair)
    down = nodes_down([stream], burst=NO_BURST, node_count=400)
    assert down.mean == pytest.approx(1.4 * 7.5)
    assert down.variance == pytest.approx(down.mean)
    assert down.quantile(0.99) == int(stats.poisson.ppf(0.99, down.mean))


def test_nodes_down_meet_simulated_logs_in_mean_and_tail():
    """Repairs shorter than the trace's, so that a log is long against them and settles at once."""
    burst = replace(failure_profile("stepfun-400").shape.burst, episode_s=5 * DAY_S)
    repair, rate = Repair(mean_s=20 * HOUR_S, weibull_shape=0.7), 10.0 / DAY_S
    stream = NodeOutages(rate_per_s=rate, nodes_out=1.0, together=False, repair=repair)
    down = nodes_down([stream], burst=burst, node_count=400)
    logs = [
        simulate_fault_log(
            fault_rate_per_s=rate, burst=burst, repair=repair, node_count=400, duration_s=1000 * DAY_S, seed=seed
        )
        for seed in range(20)
    ]
    mean, error = mean_and_error([log.mean_down for log in logs])
    assert down.mean == pytest.approx(mean, abs=4 * error + 0.01 * mean)
    assert down.quantile(0.99) == pytest.approx(np.mean([log.p99_down for log in logs]), rel=0.08)


def test_unevicted_slow_nodes_cost_more_the_more_nodes_there_are_up_to_their_own_factor():
    persistent = next(m for m in failure_profile("undisclosed").shape.slow if m.name == "persistent slow node")
    slow = slow_nodes(persistent)
    assert slow.probability == pytest.approx(0.022 / 1000 * 5, rel=1e-3)  # 5 days, 0.022 per 1000 node-days
    costs = [
        synchronous_slowdown(rank_count=8 * nodes, node_count=nodes, jitter_cv=0.0, slow=slow)
        for nodes in (1, 100, 12_500, 10**7)
    ]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(slow.slowdown)
    assert synchronous_slowdown(rank_count=10**5, node_count=12_500, jitter_cv=0.0, slow=None) == 1.0
