"""The syntax of CMake's language: commands with arguments, comments; every place as an offset of the text.

Source: cmake-language(7). Text that does not follow it gives the commands up to where it stops making sense.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

ArgumentKind = Literal["unquoted", "quoted", "bracket", "paren"]

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>\#\[(?P<c>=*)\[.*?\](?P=c)\] | \#[^\r\n]*)
      | (?P<bracket>\[(?P<b>=*)\[.*?\](?P=b)\])
      | (?P<quoted>"(?:\\.|[^"\\])*")
      | (?P<open>\() | (?P<close>\))
      | (?P<unquoted>(?:\\.|"(?:\\.|[^"\\])*"(?=[^\s()])|\$\([^\s()]*\)|[^\s()\#"\\])+)
      | (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; a nested parenthesis is an argument of its own kind."""

    kind: ArgumentKind
    start: int
    end: int
    text: str
    """Without the quotes."""

    @property
    def inner_start(self) -> int:
        """Offset of `text`."""
        return self.start + 1 if self.kind == "quoted" else self.start


@dataclass(frozen=True, slots=True)
class Command:
    """One command invocation."""

    name: str
    start: int
    end: int
    """After the closing parenthesis."""
    arguments: tuple[Argument, ...]

    @property
    def lower(self) -> str:
        """Command names are case-insensitive."""
        return self.name.lower()


def commands(text: str) -> list[Command]:
    """Every complete command of a CMake file, in order."""
    found: list[Command] = []
    name: str | None = None
    start = 0
    depth = 0
    arguments: list[Argument] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup not in ("c", "b") else ("comment" if match["comment"] else "bracket")
        if kind in ("space", "comment"):
            continue
        if depth == 0:
            if kind == "open" and name is not None:
                depth, arguments = 1, []
            else:
                name = match[0] if kind == "unquoted" and match[0].isidentifier() else None
                start = match.start()
            continue
        if kind == "open":
            depth += 1
            arguments.append(Argument("paren", match.start(), match.end(), "("))
        elif kind == "close":
            depth -= 1
            if depth == 0:
                found.append(Command(name or "", start, match.end(), tuple(arguments)))
                name = None
            else:
                arguments.append(Argument("paren", match.start(), match.end(), ")"))
        elif kind == "quoted":
            arguments.append(Argument("quoted", match.start(), match.end(), match[0][1:-1]))
        elif kind == "bracket":
            arguments.append(Argument("bracket", match.start(), match.end(), match[0]))
        else:
            arguments.append(Argument("unquoted", match.start(), match.end(), match[0]))
    return found
