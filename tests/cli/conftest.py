"""Runs `lakh` inside the test process: the same entry point as the console script, its output captured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lakh.cli.main import run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call printed and returned."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object on stdout; refuses NaN and infinity."""

        def refuse(text: str) -> Any:
            raise AssertionError(f"{text} in JSON")

        made: dict[str, Any] = json.loads(self.out, parse_constant=refuse)
        return made


Lakh = Callable[..., Outcome]


@pytest.fixture
def lakh(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lakh:
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: str) -> Outcome:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code=code, out=captured.out, err=captured.err)

    return call
