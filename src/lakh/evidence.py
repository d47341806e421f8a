"""What supports a number? Every fact carries its source and how far to trust it.

A `Fact` is a value, or a range where nobody has said: unknown stays unknown. Status is one of four words, used
the same way in every table and report of Lakh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["vendor", "measured", "secondary", "estimate"]
"""vendor: claimed by the maker; measured: by someone outside, on real hardware; secondary: repeated by a third
party, not checked; estimate: arithmetic from other rows, or a judgement that is stated."""

STATUSES: tuple[Status, ...] = ("vendor", "measured", "secondary", "estimate")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One number with its source. A range has `low < high`; `value` is then the middle we compute with."""

    value: float
    """In base units [see `unit`]."""
    low: float
    high: float
    unit: str
    """Base unit, such as "byte/second"."""
    status: Status
    source: str
    note: str = ""

    @property
    def is_range(self) -> bool:
        """True where the number is not known and only a range is stated."""
        return self.low < self.high


def exact(value: float, unit: str, *, status: Status, source: str, note: str = "") -> Fact:
    """A fact without a range."""
    return Fact(value=value, low=value, high=value, unit=unit, status=status, source=source, note=note)
