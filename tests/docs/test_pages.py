"""Every command and every Python block of README and docs runs as written; every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lakh.cli.main import FIRST, run

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
SLOW = ("lakh check", "lakh fabric", "lakh goodput", "lakh rehearse")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def blocks(page: Path, kind: str) -> list[str]:
    """The code blocks of one kind."""
    return [text for found, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if found == kind]


def commands(page: Path) -> list[str]:
    """The commands of a page: lines of console blocks that start with "$ "."""
    return [line[2:] for text in blocks(page, "console") for line in text.splitlines() if line.startswith("$ ")]


def _cases() -> list[object]:
    every = dict.fromkeys(command for page in PAGES for command in commands(page))
    return [pytest.param(command, marks=pytest.mark.slow if command.startswith(SLOW) else ()) for command in every]


def test_the_pages_hold_commands_at_all() -> None:
    assert len(_cases()) >= 12


@pytest.mark.parametrize("command", _cases())
def test_a_command_of_the_docs_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(command)
    assert program == "lakh"
    code = run(arguments)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert captured.out


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(text, id=f"{page.name}-{index}")
        for page in PAGES
        for index, text in enumerate(blocks(page, "python"))
    ],
)
def test_a_python_block_of_the_docs_runs(block: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    missing = [link for link in targets if not (page.parent / link).exists()]
    assert not missing


def test_every_command_is_in_the_docs() -> None:
    text = "\n".join(command for page in PAGES for command in commands(page))
    assert [name for name in (*FIRST, "schema") if f"lakh {name}" not in text] == []


def test_every_how_to_page_is_in_the_index() -> None:
    folder = ROOT / "docs" / "how-to"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in folder.glob("*.md") if page.name != "README.md"]
    assert [name for name in pages if f"({name})" not in index] == []
