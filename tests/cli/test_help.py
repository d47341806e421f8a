from __future__ import annotations

import subprocess
import sys

import pytest

from lakh import __version__
from lakh.cli.main import FIRST, commands
from tests.cli.conftest import Lakh

COMMANDS = tuple(commands())


def test_the_commands_of_the_planner_are_there_and_come_first() -> None:
    assert COMMANDS[: len(FIRST)] == FIRST
    assert "schema" in COMMANDS


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_help_names_every_command(lakh: Lakh, arguments: tuple[str, ...]) -> None:
    outcome = lakh(*arguments)
    assert outcome.code == 0
    for name in COMMANDS:
        assert f"  {name} " in outcome.out
    assert "Example:" in outcome.out


@pytest.mark.parametrize("name", (*FIRST, "schema"))
def test_help_of_a_command_has_an_example_that_starts_with_its_name(lakh: Lakh, name: str) -> None:
    outcome = lakh(name, "--help")
    assert outcome.code == 0
    assert f"Usage: lakh {name}" in outcome.out
    example = outcome.out.split("Example:", 1)[1]
    assert example.strip().startswith(f"lakh {name} ")


@pytest.mark.parametrize("name", (*FIRST, "schema"))
def test_every_command_takes_json(lakh: Lakh, name: str) -> None:
    assert "--json" in lakh(name, "--help").out


def test_version(lakh: Lakh) -> None:
    assert lakh("--version").out == f"lakh {__version__}\n"


def test_help_and_import_load_no_library() -> None:
    """What keeps `lakh --help` instant: numpy, pydantic, typer, rich and plotly come with a command only."""
    script = (
        "import sys, lakh; from lakh.cli.main import run; run(['--help']); "
        "heavy = {'numpy', 'scipy', 'pydantic', 'typer', 'rich', 'plotly', 'yaml'} & set(sys.modules); "
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
