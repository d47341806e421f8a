"""The entry point: finds the command, runs it, and turns every outcome into text and an exit code.

A command is a file of this folder whose docstring starts with "`lakh NAME`: what it answers." and which holds a
Typer application called `app`. `lakh --help` reads those first lines and imports nothing else, so it stays instant;
a command's own imports are paid when it runs.

Exit codes: 0 done, 1 could not, 2 asked wrongly, 130 interrupted, 141 nobody reads our output any more.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lakh import __version__

FIRST: tuple[str, ...] = ("catalog", "predict", "plan", "scale", "validate", "rehearse")
"""Commands in the order in which people need them; all others follow by name."""

_DOCSTRING = re.compile(r'"""`lakh ([a-z-]+)`: (.+?[.?!])(?: |$|""")')

INTERRUPTED = 130
BROKEN_PIPE = 141


def commands() -> Mapping[str, tuple[str, str]]:
    """Name of every command, with its module and its one line of help."""
    found: dict[str, tuple[str, str]] = {}
    for file in Path(__file__).parent.glob("*.py"):
        with file.open(encoding="utf-8") as handle:
            match = _DOCSTRING.match(handle.readline().rstrip("\n"))
        if match:
            found[match[1]] = (f"lakh.cli.{file.stem}", match[2])
    ordered = [name for name in FIRST if name in found] + sorted(set(found) - set(FIRST))
    return {name: found[name] for name in ordered}


def help_text() -> str:
    """What `lakh --help` prints."""
    known = commands()
    width = max(map(len, known))
    lines = [f"  {name:<{width}}  {about}" for name, (_, about) in known.items()]
    return "\n".join(
        [
            "Lakh: the software of a 100,000-accelerator AI cluster, from one description of it.",
            "",
            "Usage: lakh COMMAND [OPTIONS]",
            "",
            "Commands:",
            *lines,
            "",
            "Options:",
            "  -h, --help  this text; `lakh COMMAND --help` explains a command",
            "  --version   the version of Lakh",
            "",
            "Every command takes --json: one object with schema, inputs, result and evidence, in base units.",
            "Exit codes: 0 done, 1 could not, 2 asked wrongly.",
            "",
            "Example:",
            "  lakh rehearse examples/jd-cloud-100k/scenario.yaml",
        ]
    )


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """One call of `lakh` with these arguments; returns the exit code. Nothing it meets ends in a traceback."""
    try:
        if sys.stdout is None:
            _say("could not write: standard output is closed")
            return 1
        code = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except OSError as error:
        _forget_stdout()
        _say(f"could not write: {error.strerror or error}")
        return 1
    return code


def _dispatch(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(help_text() + "\n")
        return 0
    if arguments[0] in ("--version", "-V"):
        sys.stdout.write(f"lakh {__version__}\n")
        return 0
    known = commands()
    name = arguments[0]
    if name not in known:
        from lakh.errors import UnknownNameError

        _say(str(UnknownNameError("command", name, tuple(known), where="lakh")))
        return 2
    from lakh.cli.outcome import run_command

    return run_command(name, known[name][0], list(arguments[1:]))


def _say(text: str) -> None:
    sys.stderr.write(f"lakh: {text}\n")


def _forget_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
