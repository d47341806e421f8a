"""`lakh port`: exit codes, JSON with four keys, and errors without a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakh.cli.port import app

RUNNER = CliRunner()
KERNEL = "#include <cuda_runtime.h>\nvoid f(float *p) { cudaMalloc(&p, 4); }\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cu").write_text(KERNEL)
    return tmp_path / "src"


def test_each_command_prints_one_object_with_schema_inputs_result_evidence(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments in (
        ["assess", str(source)],
        ["translate", str(source), "--diff"],
        ["translate", str(source), "--out", str(out)],
        ["check", str(out), "--no-compile"],
        ["sync", str(source), str(out)],
        ["explain", "LP101"],
    ):
        run = RUNNER.invoke(app, [*arguments, "--json"])
        assert run.exit_code == 0, (arguments, run.output)
        assert set(json.loads(run.stdout)) == {"schema", "inputs", "result", "evidence"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["assess", "nowhere"],
        ["translate", "nowhere", "--diff"],
        ["translate", "{source}"],
        ["translate", "{source}", "--diff", "--in-place"],
        ["translate", "{source}", "--out", "{source}/x"],
        ["check", "{source}"],
        ["sync", "{source}", "{source}"],
        ["explain", "LP999"],
        ["assess", "{source}", "--arch", "mp_99"],
        ["assess", "{source}", "--baseline", "nowhere"],
        ["assess", "{source}", "--map", "{source}/a.cu"],
    ],
)
def test_a_wrong_request_exits_with_2_and_no_traceback(arguments: list[str], source: Path) -> None:
    run = RUNNER.invoke(app, [argument.format(source=source) for argument in arguments])
    assert run.exit_code == 2, run.output
    assert "Traceback" not in run.output


def test_assess_writes_html_sarif_and_a_baseline(source: Path, tmp_path: Path) -> None:
    (source / "b.cu").write_text("cudnnCreate(&h);\n")
    files = {name: tmp_path / name for name in ("r.html", "r.sarif", "base.json")}
    arguments = ["--html", str(files["r.html"]), "--sarif", str(files["r.sarif"])]
    run = RUNNER.invoke(app, ["assess", str(source), *arguments, "--write-baseline", str(files["base.json"])])
    assert run.exit_code == 0, run.output
    assert all(path.stat().st_size > 40 for path in files.values())
    again = ["assess", str(source), "--baseline", str(files["base.json"])]
    assert RUNNER.invoke(app, again).exit_code == 0
    (source / "c.cu").write_text("nvrtcCompileProgram(p, 0, 0);\n")
    assert RUNNER.invoke(app, again).exit_code == 1


def test_check_exits_with_1_when_a_hand_edit_broke_the_port(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert RUNNER.invoke(app, ["translate", str(source), "--out", str(out)]).exit_code == 0
    (out / "a.cu").write_text((out / "a.cu").read_text().replace("musaMalloc(&p, 4)", "musaMaloc(&p)"))
    run = RUNNER.invoke(app, ["check", str(out), "--no-compile"])
    assert run.exit_code == 1
    assert "LP602" in run.output


def test_an_added_map_is_used(source: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra.csv"
    extra.write_text(
        "cuda,musa,kind,library,status,note,evidence\ncuAcmeRun,muAcmeRun,library,acme,same-semantics,,acme:run.h\n"
    )
    (source / "a.cu").write_text("cuAcmeRun(1);\n")
    run = RUNNER.invoke(app, ["translate", str(source), "--diff", "--map", str(extra)])
    assert "+muAcmeRun(1);" in run.output


def test_every_code_is_explained() -> None:
    run = RUNNER.invoke(app, ["explain"])
    assert run.exit_code == 0 and "LP101" in run.output and "LP701" in run.output
