"""`lakh fabric` as a person runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lakh.cli.fabric", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.slow
def test_json_holds_the_cost_of_a_dead_rail_and_says_where_numbers_come_from() -> None:
    done = run("kuae-10k", "--job", "accelerators=1024,tp=8,ep=64,bytes=1 GiB", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"schema", "inputs", "result", "evidence"}
    rail = next(row for row in found["result"]["faults"] if row["fault"] == "rail:0")
    assert 1.0 < rail["slow_down"] < 8 / 7 + 1e-6
    assert [row["collective"] for row in found["result"]["collectives"]] == ["all-reduce", "all-to-all", "all-reduce"]
    assert found["evidence"]["source"]


@pytest.mark.slow
def test_report_is_one_page_that_loads_nothing(tmp_path: Path) -> None:
    page = tmp_path / "fabric.html"
    done = run("kuae-10k", "--fail", "spine:3", "--report", str(page))
    assert done.returncode == 0, done.stderr
    assert "Faults now: spine:3" in re.sub(r"\s+", " ", done.stdout)
    text = page.read_text(encoding="utf-8")
    assert "What one dead element costs" in text
    assert not re.search(r"(src|href)=", text)
    svg = ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
    assert len(list(svg)) > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kuae-10k", "--fail", "spne:3"), "Did you mean 'spine'"),
        (("kuae-10k", "--routing", "ecpm"), "Did you mean 'ecmp'"),
        (("kuae-10k", "--job", "accelerator=8"), "Did you mean 'accelerators'"),
        (("kuae-10k", "--job", "accelerators=999999"), "1 to 10240"),
    ],
)
def test_what_is_asked_wrongly_exits_2_without_a_traceback(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
