"""Where does output go? Tables to stdout at its width, progress to stderr after two seconds, files whole or not."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lakh.errors import CouldNotError
from lakh.report.json import dumps
from lakh.report.tables import Table, as_text, for_console

PLAIN_WIDTH = 100
"""Columns where stdout is not a terminal and COLUMNS does not say."""

PROGRESS_AFTER_S = 2.0


def width() -> int:
    """Columns of the output."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else PLAIN_WIDTH


def print_tables(tables: Sequence[Table]) -> None:
    """Tables one below the other; bold headings on a terminal, plain text elsewhere."""
    columns = width()
    console = Console(width=columns, highlight=False) if sys.stdout.isatty() else None
    for one in tables:
        if console is not None:
            console.print(for_console(one, columns))
        else:
            sys.stdout.write(as_text(one, width=columns))


def print_json(document: dict[str, Any]) -> None:
    """One JSON object and a newline."""
    sys.stdout.write(dumps(document) + "\n")


class Steps:
    """Says how far a command is: a bar on stderr once it has run for two seconds, where stderr is a terminal."""

    def __init__(self, label: str) -> None:
        self._label, self._done, self._total = label, 0, 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(PROGRESS_AFTER_S, self._show)
        self._timer.daemon = True

    def start(self) -> None:
        if sys.stderr.isatty():
            self._timer.start()

    def __call__(self, label: str, done: int, total: int) -> None:
        with self._lock:
            self._label, self._done, self._total = label, done, total
            self._update()

    def _show(self) -> None:
        with self._lock:
            console = Console(stderr=True)
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True
            )
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=None)
            self._update()

    def _update(self) -> None:
        if self._bar is not None and self._task is not None:
            total = self._total or None  # no total: a bar that only moves
            self._bar.update(self._task, description=self._label, completed=self._done, total=total)

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            if self._bar is not None:
                self._bar.stop()


@contextmanager
def progress(label: str) -> Iterator[Steps]:
    """A progress bar for as long as the block runs."""
    steps = Steps(label)
    steps.start()
    try:
        yield steps
    finally:
        steps.stop()


class OutputFile:
    """A file that is written whole or not at all; whether it can be is known before the work starts."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            CouldNotError: the folder cannot be made or written, or the path is a folder
        """
        self.path = path
        if path.is_dir():
            raise CouldNotError(f"cannot write {path}: it is a folder; name a file in it")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        except OSError as error:
            raise CouldNotError(f"cannot write {path}: {error.strerror or error}") from error
        os.close(handle)
        self._draft = Path(name)

    def write(self, text: str) -> None:
        """Put the text in place in one step.

        Raises:
            CouldNotError: the disk is full, or the file cannot be replaced
        """
        try:
            self._draft.write_text(text, encoding="utf-8")
            self._draft.chmod(0o666 & ~_umask())
            self._draft.replace(self.path)
        except OSError as error:
            raise CouldNotError(f"cannot write {self.path}: {error.strerror or error}") from error

    def discard(self) -> None:
        """Leave nothing half-written behind; does nothing once the text is in place."""
        self._draft.unlink(missing_ok=True)

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now
