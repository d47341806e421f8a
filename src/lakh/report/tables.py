"""How is a table shown? One neutral table, and its renderings for a console and for a page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Literal

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

Align = Literal["left", "right"]

_GAP = 2
"""Blanks between two columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column: its heading (with the unit, where cells do not carry one) and how it behaves when space is short."""

    heading: str
    align: Align = "left"
    rank: int = 0
    """0: always shown; the columns of the highest rank are left out first where the width is too small."""
    wraps: bool = False
    """True where a long cell may go over several lines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows of text under headings, with a title above and notes below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), self.title


def table(
    title: str,
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[str]],
    *,
    notes: Sequence[str] = (),
) -> Table:
    """A table; a heading alone stands for a left-aligned column that is always shown."""
    return Table(
        title=title,
        columns=tuple(column if isinstance(column, Column) else Column(heading=column) for column in columns),
        rows=tuple(tuple(row) for row in rows),
        notes=tuple(notes),
    )


def number(heading: str, *, rank: int = 0) -> Column:
    """A column of numbers."""
    return Column(heading=heading, align="right", rank=rank)


def words(heading: str, *, rank: int = 0) -> Column:
    """A column of text that may wrap."""
    return Column(heading=heading, rank=rank, wraps=True)


_LEAST_WRAPPED = 16
"""A wrapping column is never asked to be narrower than this."""


def shown_columns(one: Table, width: int) -> tuple[int, ...]:
    """Positions of the columns that fit into a width: the highest ranks go first, from the right."""
    needed = [
        min(_natural(one, index), _LEAST_WRAPPED) if column.wraps else _natural(one, index)
        for index, column in enumerate(one.columns)
    ]
    shown = list(range(len(one.columns)))
    while sum(needed[i] for i in shown) + _GAP * len(shown) > width:
        droppable = [i for i in shown if one.columns[i].rank > 0]
        if not droppable:
            break
        shown.remove(max(droppable, key=lambda i: (one.columns[i].rank, i)))
    return tuple(shown)


def _natural(one: Table, index: int) -> int:
    cells = [one.columns[index].heading, *(row[index] for row in one.rows)]
    return max(len(line) for cell in cells for line in (cell.splitlines() or [""]))


def for_console(one: Table, width: int) -> Group:
    """A table as rich draws it, with its notes below; without colour it loses nothing but boldness."""
    shown = shown_columns(one, width)
    drawn = RichTable(
        title=one.title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),
        header_style="bold",
        show_header=any(column.heading for column in one.columns),
    )
    for index in shown:
        column = one.columns[index]
        drawn.add_column(column.heading, justify=column.align, no_wrap=not column.wraps, overflow="fold")
    for row in one.rows:
        drawn.add_row(*(Text(row[index]) for index in shown))
    left_out = [column.heading for index, column in enumerate(one.columns) if index not in shown]
    notes = list(one.notes)
    if left_out:
        notes.append(f"left out at this width: {', '.join(left_out)} (a wider window or --json shows them)")
    return Group(drawn, *(Padding(Text(note), (0, 0, 0, _GAP)) for note in notes), "") if notes else Group(drawn)


def as_text(one: Table, *, width: int = 100) -> str:
    """A table as plain text of at most `width` columns, no blanks at line ends."""
    console = Console(file=StringIO(), width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(for_console(one, width))
    assert isinstance(console.file, StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def as_html(one: Table) -> str:
    """A table as an HTML element: headings in <thead>, numbers to the right, notes below."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if column.align == 'right' else ''}>{html.escape(text)}</{tag}>"
            for column, text in zip(one.columns, texts, strict=True)
        )

    head = cells("th", [column.heading for column in one.columns])
    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in one.rows)
    caption = f"<caption>{html.escape(one.title)}</caption>" if one.title else ""
    notes = "".join(f"<p class=note>{html.escape(note)}</p>" for note in one.notes)
    drawn = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
    return f"<div class=scroll>{drawn}</div>{notes}"
