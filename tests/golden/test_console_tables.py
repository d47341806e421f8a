"""Exact text of console tables, from results made of round numbers: no fitted parameter changes these files.

To accept a change that is meant: LAKH_GOLDEN=write python -m pytest tests/golden/test_console_tables.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from lakh import catalog
from lakh.evidence import exact
from lakh.perf.predict import ErrorBar, Prediction
from lakh.planner import Candidate, Range
from lakh.report.results import ClaimComparison, Reading, RunEstimate, Unknown
from lakh.report.rows import (
    candidate_rows,
    claims_table,
    evidence_table,
    prediction_tables,
    readings_table,
    run_table,
    short_unknowns_table,
)
from lakh.report.tables import Table, as_text
from lakh.spec.layout_text import parse_layout

FOLDER = Path(__file__).parent / "cli"


def prediction() -> Prediction:
    layout = parse_layout("tp8 pp4 vpp2 dp32 mb1 fp8")
    return Prediction(
        model=catalog.model("llama3-70b"),
        layout=layout,
        cluster_name="round",
        accelerator_name="R100",
        generation="megatron-2026",
        sequence_length=8192,
        global_batch_sequences=1024,
        step_time_s=10.0,
        parts_s={
            "compute_s": 6.0,
            "exposed_communication_s": 2.0,
            "bubble_s": 1.0,
            "host_s": 0.5,
            "optimizer_s": 0.05,
            "jitter_s": 0.45,
        },
        exposed_s={"tp": 1.25, "cp": 0.0, "ep": 0.0, "pp": 0.25, "dp": 0.5},
        error_bar=ErrorBar(
            low_s=9.0, high_s=12.0, kind="R100/dense", row_count=100, inside_validated=False, notes=("R100 is made up",)
        ),
        memory_parts_bytes={
            "weights_bytes": 2.0**34,
            "gradients_bytes": 2.0**33,
            "optimizer_bytes": 2.0**32,
            "activations_bytes": 2.0**35,
            "logits_bytes": 2.0**30,
            "buffers_bytes": 2.0**29,
        },
        memory_allocated_bytes=61.5 * 2**30,
        memory_required_bytes=64.0 * 2**30,
        memory_device_bytes=69.0 * 2**30,
        memory_capacity_bytes=80.0 * 2**30,
        fits=True,
        model_flop=4e18,
        peak_flop_per_s=1e15,
        mfu={"causal": 0.4, "full-attention": 0.42, "hfu": 0.42, "6n": 0.39},
        tokens_per_s=838_860.8,
        tokens_per_s_per_accelerator=819.2,
        micro_batch_count=32,
        data_parallel_outermost=False,
        evidence={"R100 peak fp8": exact(1e15, "flop/second", status="estimate", source="made up for a test")},
    )


def candidate(words: str, *, step_time_s: float) -> Candidate:
    layout = parse_layout(words)
    return Candidate(
        layout=layout,
        global_batch_sequences=1024,
        accelerator_count=layout.accelerator_count,
        step_time_s=step_time_s,
        tokens_per_s=8_388_608 / step_time_s,
        mfu=4.0 / step_time_s,
        parts_s={
            "compute_s": 6.0,
            "exposed_communication_s": 2.0,
            "bubble_s": step_time_s - 9.0,
            "host_s": 0.5,
            "optimizer_s": 0.05,
            "jitter_s": 0.45,
        },
        exposed_s={
            "exposed_tp_s": 1.25,
            "exposed_cp_s": 0.0,
            "exposed_ep_s": 0.0,
            "exposed_pp_s": 0.25,
            "exposed_dp_s": 0.5,
        },
        micro_batch_count=32,
        data_parallel_outermost=False,
        device_bytes=64.0 * 2**30,
        capacity_bytes=80.0 * 2**30,
        memory_bytes={},
        activity=0.6,
        accelerator_hours=2.8,
        energy_joule=None,
    )


def claim_rows() -> list[ClaimComparison]:
    claim = catalog.claim("kuae-mfu-dense-60")
    return [
        ClaimComparison(
            claim=claim,
            job_name="dense",
            accelerator_count=10_240,
            predicted=Range(low=0.3, value=0.4, high=0.5),
            verdict="below",
            reason="causal, fp8 peak",
            readings=(
                Reading(convention="causal", precision="fp8", value=0.4),
                Reading(convention="causal", precision="bf16", value=0.8),
                Reading(convention="6n", precision="fp8", value=0.39),
                Reading(convention="6n", precision="bf16", value=0.78),
            ),
        ),
        ClaimComparison(
            claim=catalog.claim("kuae-effective-time-90"),
            job_name=None,
            accelerator_count=None,
            predicted=None,
            verdict="not-comparable",
            reason="a claim about failures and restarts; a step prediction holds none",
        ),
    ]


def run_estimate() -> RunEstimate:
    return RunEstimate(
        tokens=15e12,
        step_count=1_788_139,
        train_time_s=Range(low=90 * 86400.0, value=100 * 86400.0, high=120 * 86400.0),
        power_watt=Range(low=1.0e6, value=1.2e6, high=1.5e6),
        energy_joule=Range(low=7.776e12, value=1.0368e13, high=1.5552e13),
        energy_cost=Range(low=8e5, value=1.7e6, high=3.5e6),
        rent=Range(low=2e7, value=4e7, high=1.3e9),
        currency="RMB",
    )


def unknowns() -> list[Unknown]:
    def one(name: str, low: float, value: float, high: float, unit: str) -> Unknown:
        fact = exact(value, unit, status="estimate", source="made up for a test")
        return Unknown(name=name, fact=type(fact)(
            value=value, low=low, high=high, unit=unit, status="estimate", source=fact.source
        ), place_count=1)  # fmt: skip

    return [
        one("fabric: protocol efficiency", 0.6, 0.7, 0.9, "ratio"),
        one("site links: latency", 0.002, 0.003, 0.004, "second"),
        one("site links: latency", 0.009, 0.01, 0.012, "second"),
        one("prices: on demand price", 5 / 3600, 9 / 3600, 15 / 3600, "rmb/second"),
    ]


TABLES: dict[str, Sequence[Table]] = {
    "predict": [*prediction_tables(prediction(), "causal"), evidence_table(prediction().evidence)],
    "plan": [
        candidate_rows(
            [
                candidate("tp8 pp4 vpp2 dp32 mb1 fp8", step_time_s=10.0),
                candidate("tp8 pp8 dp16 mb2 recompute=selective zero-bubble fp8", step_time_s=10.5),
            ]
        ),
        run_table(run_estimate()),
    ],
    "claims": [claims_table(claim_rows()), readings_table(claim_rows()[0])],
    "unknowns": [short_unknowns_table(unknowns())],
}


@pytest.mark.parametrize("width", [72, 100])
@pytest.mark.parametrize("name", list(TABLES))
def test_console_tables_read_as_promised(name: str, width: int) -> None:
    made = "".join(as_text(one, width=width) for one in TABLES[name])
    file = FOLDER / f"{name}-{width}.txt"
    if os.environ.get("LAKH_GOLDEN") == "write":
        file.write_text(made, encoding="utf-8")
    assert made == file.read_text(encoding="utf-8")
