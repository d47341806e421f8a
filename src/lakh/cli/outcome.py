"""How does a command end? Its errors as text on stderr and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.exceptions import Abort, TyperException
from typer.main import get_command

from lakh.errors import LakhError, RequestError

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the signal's number."""

TRACEBACK_VARIABLE = "LAKH_TRACEBACK"
"""Set to 1, a failure of Lakh itself also shows where it came from."""


def run_command(name: str, module: str, arguments: list[str]) -> int:
    """Run the command whose application `module` holds; returns its exit code.

    BrokenPipeError, KeyboardInterrupt and OSError on our own output pass through: the entry point ends those.
    """
    try:
        code = get_command(import_module(module).app).main(
            args=arguments, prog_name=f"lakh {name}", standalone_mode=False
        )
    except LakhError as error:
        show_error(error)
        return error.exit_code
    except typer.Exit as error:
        return error.exit_code
    except Abort:
        raise KeyboardInterrupt from None
    except TyperException as error:
        message = error.format_message().rstrip(".")
        if not message:  # help was shown in its place
            return error.exit_code
        _write(f"lakh {name}: {message}. See `lakh {name} --help`.")
        return error.exit_code
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # the command-line library has already caught it
            raise error.__context__ from None
        return error.code if isinstance(error.code, int) else 1
    except MemoryError:
        _write(f"lakh {name}: out of memory on this machine; ask for fewer sizes, or fix more of the layout")
        return 1
    except OSError:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        _write(
            f"lakh {name}: this should not happen: {type(error).__name__}: {error} "
            f"({Path(where.filename).name}:{where.lineno}). Please report it; {TRACEBACK_VARIABLE}=1 shows more."
        )
        if os.environ.get(TRACEBACK_VARIABLE) == "1":
            _write("".join(traceback.format_exception(error)))
        return 1
    if code == INTERRUPTED:  # the command-line library has already caught the interrupt
        raise KeyboardInterrupt
    return int(code or 0)


def show_error(error: LakhError) -> None:
    """Every problem on a line of its own."""
    if isinstance(error, RequestError):
        for problem in error.problems:
            _write(f"error: {problem}")
    else:
        _write(f"could not: {error}")


def _write(text: Any) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
