"""The verdict machinery against what must be true of any of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lakh.catalog import claim
from lakh.claims.distributions import Choice, Fixed, Lognormal, Triangular, Uniform, from_fact
from lakh.claims.effective_time import EFFECTIVE_TIMES, RUN_S, effective_question, effective_time
from lakh.claims.must_be_true import must_be_true
from lakh.claims.sensitivity import measurements, sensitivities, share_explained, tornado
from lakh.claims.throughput import Question, layouts_for, mfu_of, reduced, throughput
from lakh.claims.unknowns import MeasuredValue, Unknown, narrowed, step_unknowns
from lakh.claims.verdict import check, summary
from lakh.claims.worlds import Worlds, sobol_points, worlds_at
from lakh.evidence import Fact, exact
from lakh.perf.slow_nodes import BAD_WORKERS, NodeSpeeds, slow_node_factor, slowest_of
from lakh.perf.system_of import system_of
from lakh.planner import plan_request
from lakh.reliability import simulate
from lakh.reliability.goodput_report import closed_form_ettr
from lakh.spec import load_cluster, resolve_model
from lakh.spec.cluster import Cluster


def unknown(name: str, distribution: object, bench: str = "") -> Unknown:
    return Unknown(
        name=name,
        title=name,
        unit="1",
        distribution=distribution,  # type: ignore[arg-type]
        kind="step",
        status="estimate",
        source="a test",
        bench=bench,
    )


def pinned_to_middle(unknowns: tuple[Unknown, ...]) -> tuple[MeasuredValue, ...]:
    values = ((one.name, one.at(0.5)) for one in unknowns)
    return tuple(MeasuredValue(unknown=name, value=v, low=v, high=v, source="a test") for name, v in values)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return load_cluster("kuae-10k")


@pytest.fixture(scope="module")
def question(cluster: Cluster) -> Question:
    system = system_of(cluster)
    request = plan_request(
        resolve_model("llama3-70b"), system, sequence_length=8192, global_batch_sequences=128, accelerator_count=1024
    )
    return Question(
        cluster=cluster, request=request, accelerators_per_node=8, unknowns=step_unknowns(cluster, system, request)
    )


# --- distributions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "distribution, median",
    [
        (Triangular(low=0.0, mode=0.5, high=1.0), 0.5),
        (Uniform(low=2.0, high=4.0), 3.0),
        (Uniform(low=1.0, high=100.0, log=True), 10.0),
        (Lognormal(low=0.5, high=2.0), 1.0),
    ],
)
def test_a_distribution_has_its_median_and_never_falls(distribution: object, median: float) -> None:
    u = np.linspace(0.001, 0.999, 301)
    values = distribution.quantile(u)  # type: ignore[attr-defined]
    assert float(distribution.quantile(np.asarray(0.5))) == pytest.approx(median)  # type: ignore[attr-defined]
    assert np.all(np.diff(values) >= 0.0)


def test_a_lognormal_holds_nine_cases_of_ten_between_its_ends() -> None:
    ends = Lognormal(low=0.8, high=1.5).quantile(np.array([0.05, 0.95]))
    assert ends == pytest.approx([0.8, 1.5])


def test_a_choice_comes_as_often_as_its_weight_says() -> None:
    points = sobol_points([unknown("design", Choice(values=(1.0, 2.0, 4.0), weights=(0.25, 0.5, 0.25)))], 4096, 3)
    values = Choice(values=(1.0, 2.0, 4.0), weights=(0.25, 0.5, 0.25)).quantile(points[:, 0])
    assert np.mean(values == 2.0) == pytest.approx(0.5, abs=1e-3)


def test_one_value_in_a_file_pins_and_a_range_does_not() -> None:
    assert from_fact(exact(3.0, "1", status="vendor", source="a test")) == Fixed(value=3.0)
    stated = Fact(value=0.7, low=0.6, high=0.9, unit="ratio", status="estimate", source="a test")
    assert from_fact(stated) == Triangular(low=0.6, mode=0.7, high=0.9)
    middle = Fact(value=0.75, low=0.6, high=0.9, unit="ratio", status="estimate", source="a test")
    assert from_fact(middle) == Uniform(low=0.6, high=0.9)


# --- sensitivities ---------------------------------------------------------------------------------------------


def linear(weights: dict[str, float]) -> object:
    return lambda w: sum(weight * w.values[name] for name, weight in weights.items())


def test_sensitivities_of_a_sum_are_its_shares_of_variance_and_add_up_to_one() -> None:
    unknowns = tuple(unknown(name, Uniform(low=0.0, high=1.0)) for name in ("a", "b", "c"))
    points = sobol_points(unknowns, 1024, 0)
    quantity = linear({"a": 3.0, "b": 2.0, "c": 1.0})
    found = sensitivities(
        quantity,
        unknowns,
        points=points,
        holds=np.ones(1024, dtype=bool),
        seed=1,
        base=1024,  # type: ignore[arg-type]
    )
    assert {one.name: one.total for one in found} == pytest.approx({"a": 9 / 14, "b": 4 / 14, "c": 1 / 14}, abs=0.03)
    assert sum(one.first_order for one in found) == pytest.approx(1.0, abs=0.05)
    assert [one.name for one in found] == ["a", "b", "c"]
    assert all(one.decides == 0.0 for one in found)  # the outcome is certain


def test_an_unknown_that_does_nothing_explains_nothing() -> None:
    rng = np.random.default_rng(0)
    u, other = rng.random(4096), rng.random(4096)
    assert share_explained(u, (other > 0.5).astype(float)) < 0.01
    assert share_explained(u, (u > 0.5).astype(float)) > 0.95


def test_the_measurement_of_what_decides_comes_first() -> None:
    unknowns = (
        unknown("a", Uniform(low=0.0, high=1.0), "lakh bench small"),
        unknown("b", Uniform(low=0.0, high=1.0), "lakh bench large"),
    )
    points = sobol_points(unknowns, 4096, 0)
    quantity = linear({"a": 0.1, "b": 1.0})
    holds = np.asarray(quantity(worlds_at(unknowns, points)) > 0.6)  # type: ignore[operator]
    rows = sensitivities(quantity, unknowns, points=points, holds=holds, seed=0)  # type: ignore[arg-type]
    found = measurements(rows, unknowns, probability=float(holds.mean()))
    assert [one.command for one in found] == ["lakh bench large", "lakh bench small"]
    assert found[0].settles > 0.8


def test_a_tornado_is_widest_where_the_slope_is_steepest() -> None:
    unknowns = tuple(unknown(name, Uniform(low=0.0, high=1.0)) for name in ("a", "b"))
    bars = tornado(linear({"a": 1.0, "b": -5.0}), unknowns)  # type: ignore[arg-type]
    assert [one.name for one in bars] == ["b", "a"]
    assert bars[0].at_low - bars[0].at_high == pytest.approx(4.5)


# --- what must be true -----------------------------------------------------------------------------------------


def needed(limit: float, weights: dict[str, float]) -> object:
    unknowns = tuple(unknown(name, Lognormal(low=np.exp(-1.6448536), high=np.exp(1.6448536))) for name in weights)
    points = sobol_points(unknowns, 4096, 0)

    def quantity(w: Worlds) -> np.ndarray:
        return np.asarray(sum(weight * np.log(w.values[name]) for name, weight in weights.items()))

    samples = quantity(worlds_at(unknowns, points))
    return must_be_true(lambda w: quantity(w) - limit, quantity, unknowns, points=points, margins=samples - limit)


def test_the_least_demanding_combination_of_a_plane_is_the_foot_of_its_normal() -> None:
    # Scores are standard normal, so the nearest point of 3 x + 4 y = 5 is (3/5, 4/5), one away from the medians.
    found = needed(5.0, {"x": 3.0, "y": 4.0})
    values = {one.name: np.log(one.value) for one in found.conditions}  # type: ignore[attr-defined]
    assert values == pytest.approx({"x": 0.6, "y": 0.8}, abs=0.01)
    assert found.outcome == "reachable"  # type: ignore[attr-defined]


def test_what_hardly_matters_is_left_at_its_middle() -> None:
    found = needed(5.0, {"x": 5.0, "y": 0.2})
    assert [one.name for one in found.conditions] == ["x"]  # type: ignore[attr-defined]
    assert found.conditions[0].side == "at least"  # type: ignore[attr-defined]


def test_what_holds_at_the_middle_says_what_must_stay_so() -> None:
    found = needed(-5.0, {"x": 3.0, "y": 4.0})
    assert found.outcome == "holds-at-middle"  # type: ignore[attr-defined]
    assert all(one.side == "at least" and one.value < 1.0 for one in found.conditions)  # type: ignore[attr-defined]


def test_what_no_combination_reaches_is_said_to_be_out_of_reach() -> None:
    found = needed(60.0, {"x": 3.0, "y": 4.0})
    assert found.outcome == "out-of-reach"  # type: ignore[attr-defined]
    assert found.conditions == ()  # type: ignore[attr-defined]


# --- throughput ------------------------------------------------------------------------------------------------


def test_a_better_network_never_lowers_the_rate(question: Question) -> None:
    layouts = layouts_for(question, corners=2)
    worlds = worlds_at(question.unknowns, sobol_points(question.unknowns, 128, 0))
    rates = []
    for efficiency in (0.6, 0.75, 0.9):
        column = np.full(worlds.count, efficiency)
        better = replace(worlds, values={**worlds.values, "protocol-efficiency": column})
        rates.append(throughput(question, layouts, better).tokens_per_s)
    assert np.all(rates[1] >= rates[0] * (1 - 1e-12))
    assert np.all(rates[2] >= rates[1] * (1 - 1e-12))


def test_the_reduced_set_loses_less_than_a_hundredth_of_the_best(question: Question) -> None:
    layouts = layouts_for(question)
    worlds = worlds_at(question.unknowns, sobol_points(question.unknowns, 512, 0))
    few = reduced(question, layouts, worlds.take(slice(0, 128)))
    assert few.size < layouts.size
    all_of_them = throughput(question, layouts, worlds).tokens_per_s
    assert np.min(throughput(question, few, worlds).tokens_per_s / all_of_them) > 0.99


def test_the_conventions_of_mfu_keep_their_order(question: Question) -> None:
    worlds = worlds_at(question.unknowns, sobol_points(question.unknowns, 64, 0))
    found = throughput(question, layouts_for(question, corners=1), worlds)
    bare, causal, full, hardware = (
        mfu_of(question, found, name)
        for name in ("6n", "causal", "full-attention", "hfu")  # type: ignore[arg-type]
    )
    assert np.all(causal < full)
    assert np.all(full <= hardware)
    assert np.all(bare < full)


# --- the whole verdict -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, probability", [(0.10, 1.0), (0.95, 0.0)])
def test_a_pinned_world_gives_certainty(cluster: Cluster, question: Question, value: float, probability: float) -> None:
    stated = replace(claim("kuae-mfu-dense-60"), value=exact(value, "ratio", status="vendor", source="a test"))
    verdict = check(
        stated,
        cluster,
        resolve_model("llama3-70b"),
        accelerator_count=1024,
        sequence_length=8192,
        global_batch_sequences=128,
        measured=pinned_to_middle(question.unknowns),
        sample_count=64,
        sizes=(1024,),
    )
    assert verdict.probability == probability
    assert verdict.quantity is not None
    assert verdict.quantity.p05 == verdict.quantity.p95
    assert verdict.deciding_unknowns == ()


def test_the_same_seed_gives_the_same_verdict_and_a_band_contains_its_median(cluster: Cluster) -> None:
    verdicts = [
        check(
            claim("kuae-mfu-dense-60"),
            cluster,
            resolve_model("llama3-70b"),
            accelerator_count=1024,
            sample_count=256,
            seed=5,
            sizes=(1024,),
        )
        for _ in range(2)
    ]
    assert summary(verdicts[0]) == summary(verdicts[1])
    for one in verdicts[0].readings:
        assert one.quantity is not None
        assert one.quantity.p05 <= one.quantity.p50 <= one.quantity.p95
        assert 0.0 <= (one.probability or 0.0) <= 1.0


def test_a_measurement_narrows_the_band(cluster: Cluster, question: Question) -> None:
    before = narrowed(question.unknowns, ())
    error = next(one for one in before if one.name == "step-model-error")
    after = narrowed(
        before, [MeasuredValue(unknown="step-model-error", value=1.05, low=1.0, high=1.1, source="lakh bench step")]
    )
    measured = next(one for one in after if one.name == "step-model-error")
    assert measured.at(0.95) - measured.at(0.05) < error.at(0.95) - error.at(0.05)
    assert measured.status == "measured"


# --- effective time --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accelerator_count", [1_024, 16_384])
def test_the_columns_agree_with_the_closed_form_of_one_job(accelerator_count: int) -> None:
    question = effective_question(load_cluster("jd-cloud-100k"), accelerator_count, 5.7e12)
    for index, job in enumerate(question.jobs):
        steady = replace(job, burst=replace(job.burst, episode_shape=np.inf))
        still = replace(question, jobs=tuple(steady if i == index else one for i, one in enumerate(question.jobs)))
        world = Worlds(values={"recovery-policy": np.array([float(index)])}, count=1)
        found = float(effective_time(still, world, "ettr")[0])
        assert found == pytest.approx(closed_form_ettr(steady), rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("accelerator_count, tolerance", [(10_240, 0.02), (100_000, 0.06)])
def test_the_columns_agree_with_the_monte_carlo(accelerator_count: int, tolerance: float) -> None:
    question = effective_question(load_cluster("jd-cloud-100k"), accelerator_count, 5.7e12)
    for index, job in enumerate(question.jobs):
        world = Worlds(values={"recovery-policy": np.array([float(index)])}, count=1)
        found = float(effective_time(question, world, "ettr")[0])
        trials = simulate(job, duration_s=RUN_S, trial_count=400, seed=0)
        assert found == pytest.approx(float(trials.ettr.mean()), abs=tolerance)


@pytest.mark.parametrize("definition", EFFECTIVE_TIMES)
def test_more_failures_and_slower_restarts_never_help(definition: str) -> None:
    question = effective_question(load_cluster("jd-cloud-100k"), 100_000, 5.7e12)
    worlds = worlds_at(question.unknowns, sobol_points(question.unknowns, 256, 0))
    before = effective_time(question, worlds, definition)  # type: ignore[arg-type]
    for name in ("failure-rate", "detection-time", "restart-time", "goodput-model-error"):
        worse = replace(worlds, values={**worlds.values, name: worlds.values[name] * 1.5})
        assert np.all(effective_time(question, worse, definition) <= before + 1e-12), name  # type: ignore[arg-type]


def test_effective_time_counts_more_than_ettr() -> None:
    question = effective_question(load_cluster("jd-cloud-100k"), 10_240, 5.7e12)
    worlds = worlds_at(question.unknowns, sobol_points(question.unknowns, 256, 0))
    ettr, effective, up = (
        effective_time(question, worlds, name)
        for name in ("ettr", "effective", "not-stopped")  # type: ignore[arg-type]
    )
    assert np.all(ettr <= effective + 1e-12)
    assert np.all(effective <= up + 1e-12)


# --- slow nodes ------------------------------------------------------------------------------------------------


def test_one_slow_node_in_all_is_everybodys() -> None:
    speeds = NodeSpeeds(slowdowns=(1.5,), shares=(1e-4,))
    assert slowest_of(speeds, node_count=0.0) == pytest.approx(1.0)
    assert slowest_of(speeds, node_count=1e7) == pytest.approx(1.5)
    # One node: the mean of its own distribution.
    assert slowest_of(speeds, node_count=1.0) == pytest.approx(1.0 + 0.5e-4)


def test_the_slowest_of_many_agrees_with_drawing_them() -> None:
    rng = np.random.default_rng(0)
    times = np.array([1.0, *BAD_WORKERS.slowdowns])
    shares = np.array([1.0 - sum(BAD_WORKERS.shares), *BAD_WORKERS.shares])
    drawn = rng.choice(times, p=shares, size=(400, 12_500)).max(axis=1)
    expected = slowest_of(BAD_WORKERS, node_count=12_500.0)
    assert drawn.mean() == pytest.approx(float(expected), abs=4 * drawn.std() / 20)


def test_taking_slow_nodes_out_helps_and_size_hurts() -> None:
    sizes = np.array([16.0, 128.0, 1_280.0, 12_500.0])
    kept = slow_node_factor(share=1.1e-4, speed=0.787, node_count=sizes)
    evicted = slow_node_factor(share=1.1e-4, speed=0.787, node_count=sizes, removal_s=600.0)
    assert np.all(np.diff(kept) > 0.0)
    assert np.all(evicted < kept)
    assert evicted[-1] < 1.01 < kept[-1]
