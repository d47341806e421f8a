"""Whatever is asked wrongly gets its problems on stderr, exit code 2, nothing on stdout and never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakh.cli.main import BROKEN_PIPE, INTERRUPTED, run
from tests.cli.conftest import Lakh

MODEL = ("-m", "llama3-8b", "-c", "selene-a100", "--seq", "4096", "--batch", "32")

WRONG: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("predct",), ("'predct'", "Did you mean 'predict'?")),
    (("--halp",), ("--halp",)),
    (("predict",), ("Missing option '--model'",)),
    (("predict", *MODEL, "--sequence"), ("--sequence",)),
    (("predict", *MODEL, "--seq", "many"), ("--seq", "integer")),
    (("predict", *MODEL, "--seq", "0"), ("sequence_length", "found 0", "a whole number from 1 to")),
    (("predict", *MODEL, "--batch", "-4"), ("global_batch_sequences", "-4")),
    (("predict", *MODEL, "-l", "tp2 px4"), ("--layout", "'px4'")),
    (("predict", *MODEL, "-l", "tp2 tp4"), ("layout.tp", "at most once")),
    (("predict", *MODEL, "-l", "tp3"), ("layout.tp", "found 3", "32 attention heads")),
    (("predict", *MODEL, "-l", "dp4096"), ("at most the 3072 accelerators",)),
    (("predict", *MODEL, "--tp", "2,4"), ("--tp", "one value")),
    (("predict", *MODEL, "--tp", "two"), ("--tp", "'two'", "whole number")),
    (("predict", *MODEL, "--sharding", "zero4"), ("--sharding", "'zero4'", "Did you mean 'zero3'?")),
    (("predict", *MODEL, "--precision", "fp9"), ("--precision", "'fp9'")),
    (("predict", *MODEL, "--mfu-convention", "casual"), ("Did you mean 'causal'?",)),
    (("predict", *MODEL, "--generation", "megatron-2062"), ("framework generation", "'megatron-2062'")),
    (("predict", *MODEL, "--fabric", "open"), ("fabric", "'open'")),
    (("plan", *MODEL, "--objective", "cots"), ("objective", "Did you mean 'cost'?")),
    (("plan", *MODEL, "-n", "0"), ("accelerators", "found 0")),
    (("plan", *MODEL, "-n", "99999999"), ("accelerators", "99999999")),
    (("plan", *MODEL, "--top", "0"), ("top", "found 0")),
    (("plan", *MODEL, "--emit", "megatronn"), ("framework", "Did you mean 'megatron'?")),
    (("plan", *MODEL, "--tokens", "lots"), ("--tokens", "'lots'")),
    (("plan", *MODEL, "--tokens", "-1T"), ("--tokens",)),
    (("plan", *MODEL, "--batch-slack", "0.9"), ("batch_slack", "0.9")),
    (("plan", *MODEL, "--tp", "3"), ("tp", "found 3", "Nearest")),
    (("scale", *MODEL, "--sizes", "8,x"), ("--sizes", "'x'")),
    (("scale", *MODEL, "--sizes", "8,99999999"), ("sizes", "99999999")),
    (("scale", *MODEL, "--scaling", "weka"), ("Did you mean 'weak'?",)),
    (("scale", *MODEL, "--plot", "curve.pdf"), ("--plot", ".svg or .html")),
    (("scale", *MODEL, "--sizes", "8,16", "--base", "9"), ("base_count", "found 9")),
    (("validate", "nowhere.csv"), ("nowhere.csv",)),
    (("validate", "--leave-out", "sorce"), ("Did you mean 'source'?",)),
    (("rehearse",), ("Missing argument",)),
    (("rehearse", "nowhere.yaml"), ("nowhere.yaml",)),
    (("catalog", "gpus"), ("KIND", "'gpus'")),
    (("catalog", "models", "lama3-8b"), ("Did you mean 'llama3-8b'?",)),
    (("schema", "clusters"), ("Did you mean 'cluster'?",)),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), WRONG, ids=[" ".join(arguments[-2:]) for arguments, _ in WRONG])
def test_a_wrong_request_is_explained(lakh: Lakh, arguments: tuple[str, ...], said: tuple[str, ...]) -> None:
    outcome = lakh(*arguments)
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    for words in said:
        assert words in outcome.err
    assert "Traceback" not in outcome.err


def test_all_problems_come_at_once(lakh: Lakh) -> None:
    outcome = lakh("predict", "-m", "lama3-8b", "-c", "selene", "--seq", "0", "--batch", "32")
    assert outcome.code == 2
    for words in ("llama3-8b", "selene-a100", "sequence_length"):
        assert words in outcome.err
    assert outcome.err.count("error: ") == 3


def test_a_request_that_fits_nowhere_is_explained_and_is_no_mistake_of_the_caller(lakh: Lakh) -> None:
    outcome = lakh("plan", "-m", "llama3.1-405b", "-c", "selene-a100", "-n", "8", "--seq", "8192", "--batch", "8")
    assert outcome.code == 1
    assert "GiB short" in outcome.err
    assert "use " in outcome.err


@pytest.mark.parametrize(
    ("path", "why"), [("", "it is a folder"), ("file/report.html", "cannot write")], ids=["folder", "below-a-file"]
)
def test_a_report_that_cannot_be_written_is_known_before_the_work(
    lakh: Lakh, tmp_path: Path, path: str, why: str
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    scenario = "examples/jd-cloud-100k/scenario.yaml"
    outcome = lakh("rehearse", Path(__file__).parents[2] / scenario, "--report", tmp_path / path)
    assert outcome.code == 1
    assert why in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_said_and_not_traced() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lakh", "catalog", "models"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("arguments", [["catalog", "models"], ["catalog", "--json"], ["--help"]])
def test_a_reader_that_stops_reading_ends_the_command_quietly(arguments: list[str]) -> None:
    """The command waits for its input to end, so that its output is surely closed when it first writes."""
    script = f"import sys; sys.stdin.read(); from lakh.cli.main import run; sys.exit(run({arguments!r}))"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == BROKEN_PIPE
    assert said == b""


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("lakh.api.catalog", interrupted)
    assert run(["catalog", "claims"]) == INTERRUPTED
    assert capsys.readouterr().err == "lakh: interrupted\n"


def test_our_own_mistake_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("lakh.api.catalog", broken)
    assert run(["catalog", "claims"]) == 1
    said = capsys.readouterr().err
    assert "this should not happen: ZeroDivisionError" in said
    assert "Traceback" not in said
