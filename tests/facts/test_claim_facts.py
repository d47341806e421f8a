"""Verdicts against what was published of other clusters."""

from __future__ import annotations

import numpy as np
import pytest

from lakh.catalog import claims
from lakh.claims import ask
from lakh.claims.effective_time import POLICY_ODDS, effective_question, effective_time
from lakh.claims.workload import GPT4_AS_REPORTED
from lakh.claims.worlds import Worlds, sobol_points, worlds_at
from lakh.report.verdict import published_mfu
from lakh.spec import load_cluster


def test_the_model_that_gpt4_is_reported_to_be_has_the_reported_size() -> None:
    # 1.8 T parameters, 55 B of them in attention, 111 B in each of 16 experts.
    experts = GPT4_AS_REPORTED.experts
    assert experts is not None
    layers, width = GPT4_AS_REPORTED.layer_count, GPT4_AS_REPORTED.hidden_size
    assert layers * 4 * width**2 / 1e9 == pytest.approx(55, rel=0.02)
    assert layers * 2 * width * experts.expert_ffn_size / 1e9 == pytest.approx(111, rel=0.01)
    assert GPT4_AS_REPORTED.parameter_count / 1e12 == pytest.approx(1.8, rel=0.03)


@pytest.mark.slow
def test_the_band_of_gpt4_contains_the_reported_32_to_36_percent() -> None:
    verdict = ask("gpt4-mfu-32-36", sample_count=512, sizes=(25_000,))
    assert verdict.quantity is not None
    assert verdict.quantity.p05 < 0.32
    assert verdict.quantity.p95 > 0.36
    assert verdict.probability is not None
    assert verdict.probability > 0.05


def test_over_90_percent_on_16384_cards_as_llama_3_reached_is_likely_with_its_kind_of_recovery() -> None:
    question = effective_question(load_cluster("h100-16k"), 16_384, 405e9 * 14)
    worlds = worlds_at(question.unknowns, sobol_points(question.unknowns, 1024, 0))
    automated = float([name for name, _ in POLICY_ODDS].index("automated"))
    pinned = Worlds(values={**worlds.values, "recovery-policy": np.full(1024, automated)}, count=1024)
    share = effective_time(question, pinned)
    assert np.quantile(share, 0.05) < 0.90 < np.quantile(share, 0.95)


def test_44_percent_at_98304_cards_lies_in_the_band_of_a_synchronous_restart() -> None:
    # FT-HSDP, arXiv:2602.00277: fully synchronous training at 98,304 accelerators would be effective 44 % of the time.
    question = effective_question(load_cluster("jd-cloud-100k"), 98_304, 405e9 * 14)
    worlds = worlds_at(question.unknowns, sobol_points(question.unknowns, 1024, 0))
    automated = float([name for name, _ in POLICY_ODDS].index("automated"))
    pinned = Worlds(values={**worlds.values, "recovery-policy": np.full(1024, automated)}, count=1024)
    share = effective_time(question, pinned)
    assert np.quantile(share, 0.05) < 0.44 < np.quantile(share, 0.95)


def test_every_claim_of_the_catalogue_can_be_asked_about() -> None:
    quantities = {one.quantity for one in claims()}
    assert quantities <= {"mfu", "scaling_efficiency", "effective_time", "scale_up_bytes_per_s"}


def test_published_mfus_stand_beside_the_curve_for_both_kinds_of_model() -> None:
    for experts in (False, True):
        rows = published_mfu(experts=experts)
        assert len(rows) > 10
        assert all(0.0 < mfu < 0.8 for _, _, mfu, _ in rows)
