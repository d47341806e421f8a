"""How do we change a text and leave the rest of it byte-equal? Edits are spans of the original, applied once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, order=True, slots=True)
class Edit:
    """Replace `text[start:end]` by `new`; an insertion has start == end."""

    start: int
    end: int
    new: str


class Lines:
    """Offsets of a text by line and column, with Python's line ends: LF, CRLF and CR."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def offset(self, line: int, column: int) -> int:
        """Offset of a 1-based line and 0-based column."""
        return self.starts[line - 1] + column

    def line(self, offset: int) -> int:
        """1-based line that holds the offset."""
        return bisect_right(self.starts, offset)

    def column(self, offset: int) -> int:
        """1-based column of the offset."""
        return offset - self.starts[self.line(offset) - 1] + 1


def apply_edits(text: str, edits: Iterable[Edit]) -> tuple[str, int]:
    """The edited text and the number of input lines touched. Of two edits that overlap the first one wins."""
    lines = Lines(text)
    parts: list[str] = []
    touched: set[int] = set()
    position = 0
    for edit in sorted(set(edits)):
        if edit.start < position or text[edit.start : edit.end] == edit.new:
            continue
        parts += [text[position : edit.start], edit.new]
        touched.update(range(lines.line(edit.start), lines.line(max(edit.start, edit.end - 1)) + 1))
        position = edit.end
    parts.append(text[position:])
    return "".join(parts), len(touched)


def newline_of(text: str) -> str:
    """The line end that the text uses first."""
    match = _LINE_END.search(text)
    return match[0] if match else "\n"
