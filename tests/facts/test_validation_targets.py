"""How close the shipped calibration comes to the shipped measurements, and what it says of itself."""

from functools import cache

import pytest

from lakh import catalog
from lakh.catalog.calibration import load_calibration
from lakh.perf.predict import Prediction, predict
from lakh.perf.system_of import system_of
from lakh.spec import load_cluster
from lakh.spec.layout import Layout
from lakh.validation.report import ValidationReport, validate


@cache
def report() -> ValidationReport:
    return validate()


@pytest.mark.parametrize(("kind", "median", "p90"), [("dense", 0.07, 0.18), ("moe", 0.15, 0.35)])
def test_step_times_are_within_target(kind: str, median: float, p90: float) -> None:
    summary = next(s for s in report().by_kind if s.group == kind)
    assert summary.row_count > 100
    assert summary.median_error <= median
    assert summary.p90_error <= p90


def test_scaling_series_are_predicted_to_3_percent() -> None:
    assert len(report().scaling) >= 40
    assert report().scaling_median_error is not None
    assert report().scaling_median_error <= 0.03


def test_memory_is_within_8_percent_in_the_median() -> None:
    memory = report().memory
    assert memory is not None
    assert memory.row_count >= 80
    assert memory.median_error <= 0.08


def test_few_layouts_that_ran_are_called_out_of_memory() -> None:
    """Seven of 655: a 350M model packed to the last byte, a TPU recipe that XLA rematerialises, an unstated ep."""
    assert len(report().wrongly_out_of_memory) <= 7


def test_the_published_out_of_memory_run_is_called_out_of_memory() -> None:
    row = next(row for row in report().rows if row.row_id == "flagperf-008")
    assert row.fits is False


def test_nearly_every_full_layout_is_predictable_and_no_row_is_dropped() -> None:
    assert len(report().rows) == 757
    assert report().predictable_share >= 0.9
    for row in report().rows:
        assert (row.predicted_step_time_s is None) == (row.skipped_reason is not None)


@pytest.mark.parametrize(("kind", "median"), [("dense", 0.10), ("moe", 0.20)])
def test_leaving_a_source_out_keeps_the_error_within_target(kind: str, median: float) -> None:
    assert load_calibration().about["leave_one_source_out_error"][kind]["median"] <= median


def test_calibration_belongs_to_the_shipped_measurements() -> None:
    about = load_calibration().about
    assert about["row_count"] == sum(1 for row in report().rows if row.relative_error is not None)
    for name in about["error"]:
        summary = next(s for s in report().by_kind if s.group == name)
        assert about["error"][name]["median"] == pytest.approx(summary.median_error, abs=2e-3)


def _on(cluster: str, model: str, layout: Layout, *, seq: int, batch: int, generation: str) -> Prediction:
    return predict(
        catalog.model(model),
        system_of(load_cluster(cluster)),
        layout,
        sequence_length=seq,
        global_batch_sequences=batch,
        generation=generation,
    )


def test_llama_3_405b_on_16k_h100_lies_in_the_published_band() -> None:
    """38 to 43 % BF16 MFU (arXiv:2407.21783, table 4: 16,384 GPUs, tp 8, pp 16, dp 128). Not among the rows fitted."""
    layout = Layout(tp=8, pp=16, vpp=8, dp=128)
    run = _on("h100-16k", "llama3.1-405b", layout, seq=8192, batch=2048, generation="megatron-2024")
    assert 0.38 * 0.95 <= run.mfu["causal"] <= 0.43 * 1.07


def test_gpt_3_175b_on_selene_took_34_days_for_300b_tokens_on_1024_a100() -> None:
    """34 days in Narayanan et al. (arXiv:2104.04473, section 5.1): 1,024 A100, batch 1,536. Within 15 %."""
    layout = Layout(tp=8, pp=16, dp=8, micro_batch=1, recompute="full", sharding="none", precision="fp16")
    run = _on("selene-a100", "gpt3-175b", layout, seq=2048, batch=1536, generation="megatron-2021")
    days = 300e9 / run.tokens_per_s / 86400
    assert days == pytest.approx(34, rel=0.15)
