"""One object per command: {schema, inputs, result, evidence}, in base units, without NaN."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakh.api import unused_wishes
from lakh.perf.flops import MFU_CONVENTIONS
from lakh.perf.step import STEP_PARTS
from lakh.spec import load_scenario
from tests.cli.conftest import Lakh, Outcome

PREDICT = ("predict", "-m", "llama3-8b", "-c", "selene-a100", "-l", "tp2 dp4 mb1", "--seq", "4096", "--batch", "32")
PLAN = ("plan", "-m", "llama3-8b", "-c", "selene-a100", "-n", "16", "--seq", "4096", "--batch", "32", "--pp", "1")
SCALE = (
    "scale",
    "-m",
    "llama3-8b",
    "-c",
    "selene-a100",
    "--sizes",
    "8,16",
    "--seq",
    "4096",
    "--batch",
    "32",
    "--pp",
    "1",
)


def checked(outcome: Outcome, command: str) -> dict:
    assert outcome.code == 0, outcome.err
    document = outcome.document
    assert list(document) == ["schema", "inputs", "result", "evidence"]
    assert document["schema"] == f"lakh.{command}/1"
    return document


def test_predict(lakh: Lakh) -> None:
    document = checked(lakh(*PREDICT, "--json"), "predict")
    result = document["result"]
    assert sum(result["parts_s"].values()) == pytest.approx(result["step_time_s"])
    assert set(result["parts_s"]) == set(STEP_PARTS)
    assert set(result["mfu_by_convention"]) == set(MFU_CONVENTIONS)
    assert result["error_bar"]["step_time_s_low"] < result["step_time_s"] < result["error_bar"]["step_time_s_high"]
    assert result["accelerator_count"] == 8
    assert all(fact["source"] for fact in document["evidence"].values())


def test_mfu_is_shown_in_the_convention_that_was_asked_for(lakh: Lakh) -> None:
    result = checked(lakh(*PREDICT, "--mfu-convention", "6n", "--json"), "predict")["result"]
    assert result["mfu"] == result["mfu_by_convention"]["6n"]


def test_single_options_win_over_the_layout_words(lakh: Lakh) -> None:
    result = checked(lakh(*PREDICT, "--tp", "4", "--micro-batch", "2", "--json"), "predict")["result"]
    assert (result["layout"]["tp"], result["layout"]["micro_batch"], result["layout"]["dp"]) == (4, 2, 4)


def test_plan(lakh: Lakh) -> None:
    document = checked(lakh(*PLAN, "--tokens", "1T", "--json"), "plan")
    result = document["result"]
    ranked = result["ranked"]
    assert result["best"] == ranked[0]
    rates = [one["tokens_per_s"] for one in ranked]
    assert rates == sorted(rates, reverse=True)
    assert result["layout_count"]["total"] == sum(
        result["layout_count"][name] for name in ("pruned", "out_of_memory", "timed")
    )
    run = result["run"]
    assert run["train_time_s"]["low"] < run["train_time_s"]["value"] < run["train_time_s"]["high"]
    assert run["tokens"] == 1e12
    assert document["inputs"]["fixed"] == {"pp": [1]}


def test_plan_predicts_its_winner_as_predict_does(lakh: Lakh) -> None:
    best = checked(lakh(*PLAN, "--json"), "plan")["result"]["best"]
    again = checked(
        lakh("predict", "-m", "llama3-8b", "-c", "selene-a100", "-l", best["layout_text"],
             "--seq", "4096", "--batch", str(best["global_batch_sequences"]), "--json"),
        "predict",
    )  # fmt: skip
    assert again["result"]["step_time_s"] == pytest.approx(best["step_time_s"], rel=1e-9)
    assert again["result"]["mfu"] == pytest.approx(best["mfu"], rel=1e-9)


def test_scale(lakh: Lakh) -> None:
    result = checked(lakh(*SCALE, "--json"), "scale")["result"]
    assert [point["accelerator_count"] for point in result["points"]] == [8, 16]
    assert result["base_accelerator_count"] == 8
    assert result["points"][0]["scaling_efficiency"] == 1.0
    for point in result["points"]:
        assert sum(point["part_share"].values()) == pytest.approx(1.0)
        assert point["mfu"]["low"] < point["mfu"]["value"] < point["mfu"]["high"]


def test_validate_has_the_promised_fields_of_every_row(lakh: Lakh) -> None:
    result = checked(lakh("validate", "--json"), "validate")["result"]
    promised = {
        "row_id", "kind", "source", "hardware", "measured_step_time_s", "predicted_step_time_s", "relative_error",
        "measured_memory_gib", "predicted_memory_gib", "skipped_reason",
    }  # fmt: skip
    assert len(result["rows"]) > 700
    for row in result["rows"]:
        assert promised <= set(row)
        assert row["kind"] in ("dense", "moe")
        if row["skipped_reason"] is None:
            assert row["predicted_step_time_s"] > 0
        else:
            assert row["predicted_step_time_s"] is None
        if row["relative_error"] is not None:
            ratio = row["predicted_step_time_s"] / row["measured_step_time_s"]
            assert row["relative_error"] == pytest.approx(ratio - 1.0)


@pytest.mark.parametrize("arguments", [(), ("claims",), ("accelerator", "MTT-S5000"), ("clusters", "jd-cloud-100k")])
def test_catalog(lakh: Lakh, arguments: tuple[str, ...]) -> None:
    document = checked(lakh("catalog", *arguments, "--json"), "catalog")
    assert document["result"]["entries"]
    if len(arguments) == 2:
        assert document["evidence"]
        assert all(fact["source"] for fact in document["evidence"].values())


@pytest.mark.parametrize("kind", ["cluster", "job", "scenario"])
def test_schema_is_the_schema_itself_and_in_the_object_with_json(lakh: Lakh, kind: str) -> None:
    plain = lakh("schema", kind)
    assert plain.code == 0
    assert plain.document["$id"] == f"urn:lakh:schema:{kind}"
    assert checked(lakh("schema", kind, "--json"), "schema")["result"] == plain.document


SMALL_SCENARIO = """\
name: small
cluster: selene-a100
jobs: [small.job.yaml]
claims: [kuae-mfu-dense-60, kuae-scaling-95]
scales: [8, 16]
"""
SMALL_JOB = """\
name: small
kind: train
model: llama3-8b
accelerators: 16
workload: {sequence_length: 4096, global_batch_sequences: 32, tokens: 1 Ttoken}
constraints: {tp_max: 4, precisions: [bf16]}
framework: megatron
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "small.job.yaml").write_text(SMALL_JOB, encoding="utf-8")
    path = tmp_path / "scenario.yaml"
    path.write_text(SMALL_SCENARIO, encoding="utf-8")
    return path


def test_rehearse_writes_its_report_and_says_what_it_found(lakh: Lakh, scenario: Path) -> None:
    report = scenario.parent / "made" / "report.html"
    document = checked(lakh("rehearse", scenario, "--report", report, "--json"), "rehearse")
    (job,) = document["result"]["jobs"]
    assert job["plan"]["best"]["layout"]["tp"] <= 4
    assert job["plan"]["launch"]["framework"] == "megatron"
    assert [point["accelerator_count"] for point in job["curve"]["points"]] == [8, 16]
    verdicts = {claim["claim"]: claim["verdict"] for claim in document["result"]["claims"]}
    assert verdicts["kuae-mfu-dense-60"] == "not-comparable", "the claim is about S5000, this cluster has A100"
    text = report.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "Plotly" in text
    assert [file.name for file in report.parent.iterdir()] == ["report.html"], "no draft is left behind"


def test_a_report_needs_no_network(lakh: Lakh, scenario: Path) -> None:
    report = scenario.parent / "report.html"
    assert lakh("rehearse", scenario, "--report", report).code == 0
    page = report.read_text(encoding="utf-8")
    head = page[: page.index("<script>")]
    assert "src=" not in head
    assert "<link" not in head
    assert "@import" not in head


def test_the_report_stands_in_out_under_the_scenarios_name(
    lakh: Lakh, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scenario.parent)
    outcome = lakh("rehearse", "scenario.yaml")
    assert outcome.code == 0, outcome.err
    assert (scenario.parent / "out" / "small.html").is_file()
    assert outcome.out.endswith("report: out/small.html\n")


def test_a_rehearsal_says_which_wishes_it_does_not_use(lakh: Lakh, scenario: Path) -> None:
    assert unused_wishes(load_scenario(scenario)) == ()
    wishes = "constraints: {tp_max: 4, precisions: [bf16], run_time_max: 30 d, power_max: 1 MW}"
    job = SMALL_JOB.replace("constraints: {tp_max: 4, precisions: [bf16]}", wishes)
    (scenario.parent / "small.job.yaml").write_text(job, encoding="utf-8")
    scenario.write_text(SMALL_SCENARIO + "duration: 2 d\nseeds: [1, 2]\n", encoding="utf-8")
    report = scenario.parent / "report.html"
    outcome = lakh("rehearse", scenario, "--report", report)
    expected = (
        "read, and not used yet by a rehearsal: small: constraints.run_time_max, small: constraints.power_max, "
        "duration, seeds"
    )
    assert expected in " ".join(outcome.out.split())
    assert expected in report.read_text(encoding="utf-8")
