"""`lakh check`: its JSON, its page, its answers to wrong requests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Lakh

QUICK = ("check", "kuae-effective-time-90", "--samples", "256")


def test_the_json_holds_odds_band_readings_unknowns_and_what_must_be_true(lakh: Lakh) -> None:
    outcome = lakh(*QUICK, "--json")
    assert outcome.code == 0, outcome.err
    document = outcome.document
    result = document["result"]
    assert document["schema"] == "lakh.check/1"
    assert 0.0 <= result["probability"] <= 1.0
    assert result["quantity"]["p05"] <= result["quantity"]["p50"] <= result["quantity"]["p95"]
    assert {"name", "text", "probability", "quantity"} <= result["readings"][0].keys()
    assert {"name", "sensitivity"} <= result["deciding_unknowns"][0].keys()
    assert {"name", "text", "value", "side"} <= result["must_be_true"][0].keys()
    assert result["curve"][-1]["accelerator_count"] == 100_000
    assert result["measurements"][0]["command"].startswith("lakh bench ")
    assert document["evidence"]["failure-rate"]["source"]


def test_the_headline_is_the_first_reading(lakh: Lakh) -> None:
    result = lakh(*QUICK, "--json").document["result"]
    assert result["readings"][0]["probability"] == result["probability"]
    assert result["readings"][0]["quantity"] == result["quantity"]


def test_the_same_seed_prints_the_same(lakh: Lakh) -> None:
    assert lakh(*QUICK, "--seed", "7", "--json").out == lakh(*QUICK, "--seed", "7", "--json").out


def test_the_console_shows_every_part(lakh: Lakh) -> None:
    outcome = lakh(*QUICK)
    assert outcome.code == 0
    for title in ("Is it true?", "Readings", "What must be true", "What decides it", "By size", "What would settle it"):
        assert title in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_the_page_holds_all_of_its_data(lakh: Lakh, tmp_path: Path) -> None:
    page = tmp_path / "verdict.html"
    outcome = lakh(*QUICK, "--report", page)
    assert outcome.code == 0, outcome.err
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=", text)
    for words in ("class=tornado", "Llama 3: over 90 %", "lakh bench recovery", "Everything that is not known"):
        assert words in text


def test_a_measurement_file_pins_what_it_states(lakh: Lakh, tmp_path: Path) -> None:
    path = tmp_path / "measurements.yaml"
    path.write_text(
        "name: a\nsource: drill of 2026-12-01\nunknowns:\n  recovery-policy: hot-spares\n  restart-time: 0.4\n",
        encoding="utf-8",
    )
    before = lakh(*QUICK, "--json").document
    after = lakh(*QUICK, "--measurements", path, "--json").document
    assert after["evidence"]["recovery-policy"]["pinned_by"] == "drill of 2026-12-01"
    assert after["evidence"]["recovery-policy"]["status"] == "measured"
    assert "recovery-policy" not in [one["name"] for one in after["result"]["deciding_unknowns"]]
    assert after["result"]["quantity"]["p50"] > before["result"]["quantity"]["p50"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check",), ("Missing argument",)),
        (("check", "kuae-mfu-dens-60"), ("Did you mean 'kuae-mfu-dense-60'?",)),
        (("check", "kuae-scaling-95", "-c", "jd-cloud-10k"), ("'jd-cloud-10k'", "jd-cloud-100k")),
        (("check", "kuae-scaling-95", "-m", "lama3-8b"), ("Did you mean 'llama3-8b'?",)),
        (("check", "kuae-scaling-95", "--samples", "8"), ("samples", "found 8", "64 or more")),
        (("check", "kuae-scaling-95", "--seed", "-1"), ("seed", "-1", "0 or more")),
        (("check", "kuae-scaling-95", "-n", "200000"), ("accelerators", "200000", "100,000")),
        (("check", "kuae-scaling-95", "--measurements", "nowhere.yaml"), ("nowhere.yaml", "no such file")),
        (("check", "kuae-mfu-dense-60", "--generation", "megatron-2062"), ("'megatron-2062'",)),
    ],
)
def test_a_wrong_request_is_explained(lakh: Lakh, arguments: tuple[str, ...], said: tuple[str, ...]) -> None:
    outcome = lakh(*arguments)
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    for words in said:
        assert words in outcome.err


def test_all_numbers_that_are_wrong_come_at_once(lakh: Lakh) -> None:
    outcome = lakh("check", "kuae-scaling-95", "--samples", "8", "--seed", "-1", "-n", "0")
    assert outcome.err.count("error: ") == 3
