"""`lakh goodput`: what it prints, what it writes and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.main import get_command

from lakh.cli.goodput import app
from lakh.errors import CouldNotError, RequestError

QUICK = ("--model", "llama3.1-405b", "--cluster", "h100-16k", "--trials", "40", "--days", "20")


def lakh_goodput(*arguments: str) -> None:
    get_command(app).main(args=list(arguments), standalone_mode=False)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    page = tmp_path_factory.mktemp("goodput") / "goodput.html"
    command = [sys.executable, "-m", "lakh.cli.goodput", *QUICK, "-n", "8192", "-p", "automated", "-p", "hot-spares"]
    done = subprocess.run(
        [*command, "--report", str(page), "--json"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), page


def test_json_holds_schema_inputs_result_and_evidence(asked):
    document, _ = asked
    assert list(document) == ["schema", "inputs", "result", "evidence"]
    assert document["schema"] == "lakh.goodput/1"
    assert document["inputs"]["accelerator_count"] == 8192
    assert document["inputs"]["policies"] == ["automated", "hot-spares"]


def test_json_gives_percentiles_waterfall_intervals_spares_policies_and_curve(asked):
    result = asked[0]["result"]
    assert result["ettr"]["p05"] <= result["ettr"]["p50"] <= result["ettr"]["p95"]
    assert sum(bar["share"] for bar in result["waterfall"]) == pytest.approx(1.0)
    assert {tier["tier"] for tier in result["tiers"]} <= {"peer-memory", "local-disk", "shared-storage"}
    assert all(tier["interval_s"] > 0 for tier in result["tiers"])
    assert result["spares"]["for_99"] <= result["spares"]["for_999"]
    assert next(one["policy"] for one in result["policies"]) == result["best_policy"] == result["policy"]
    assert next(point["accelerator_count"] for point in result["curve"]) == 1_000
    assert [point["accelerator_count"] for point in result["curve"]][-1] == 100_000


def test_every_evidence_row_has_a_source_and_a_status(asked):
    rows = asked[0]["evidence"]
    assert rows
    for row in rows:
        assert row["source"], row["name"]
        assert row["status"] in ("vendor", "measured", "secondary", "estimate")
        assert row["low"] <= row["value"] <= row["high"]


def test_the_report_is_one_page_that_asks_nothing_of_the_network(asked):
    text = asked[1].read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert '<script src="http' not in text
    for heading in ("Where the time goes", "Spare nodes", "Policies, best first", "By size", "Evidence"):
        assert f"<h2>{heading}</h2>" in text


def test_tables_are_printed_without_json(capsys):
    lakh_goodput(*QUICK, "-n", "1024", "-p", "automated", "--no-curve", "--failures", "llama3")
    printed = capsys.readouterr().out
    for word in ("ETTR", "Where the time goes", "Checkpoints", "Spare nodes", "llama3-h100-16k"):
        assert word in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-p", "hot-spare"), "policy: found 'hot-spare'; accepted:"),
        (("--failures", "llama"), "failure profile: found 'llama'; accepted:"),
        (("--failures", "absent.yaml"), "absent.yaml: found"),
        (("--days", "0", "--trials", "0", "--gaps", "evne"), "--gaps: found 'evne'; accepted:"),
        (("-n", "0"), "--accelerators: found 0; accepted: 1 or more."),
        (("--spares", "-1"), "spare_node_count: found -1"),
    ],
)
def test_what_is_asked_wrongly_is_refused_with_what_is_accepted(arguments, said):
    with pytest.raises(RequestError) as caught:
        lakh_goodput(*QUICK, *arguments)
    assert said in str(caught.value)


def test_a_refusal_ends_with_exit_code_2_and_no_traceback():
    command = [sys.executable, "-m", "lakh.cli.goodput", *QUICK, "-n", "0", "--days", "-1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "--accelerators: found 0; accepted: 1 or more.",
        "--days: found -1.0; accepted: above 0, up to 3650.",
    ]


def test_a_report_that_cannot_be_written_is_refused_before_the_simulation(tmp_path):
    with pytest.raises(CouldNotError, match="it is a folder"):
        lakh_goodput(*QUICK, "--report", str(tmp_path))
