"""How is a number written for people? Quantities with units, ratios as percent, ranges as "low to high"."""

from __future__ import annotations

import math
from collections.abc import Callable

from lakh.evidence import Fact
from lakh.planner.economics import Range
from lakh.units import format_bytes_gib, format_duration, format_quantity

MISSING = "-"
"""What a table shows where nothing is known."""

DAY_S = 86400.0
JOULE_PER_KWH = 3.6e6


def percent(value: float | None, *, digits: int = 1) -> str:
    """A ratio as percent: (0.254) gives "25.4 %"."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value * 100:.{digits}f} %"


def signed_percent(value: float | None, *, digits: int = 1) -> str:
    """A relative difference as percent with its sign: (0.05) gives "+5.0 %"."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value * 100:+.{digits}f} %"


def count(value: float) -> str:
    """A count with thousands separators."""
    return f"{value:,.0f}"


def tokens_per_s(value: float) -> str:
    return format_quantity(value, "token/s")


def gib(value_bytes: float) -> str:
    return format_bytes_gib(value_bytes)


def duration(value_s: float) -> str:
    return format_duration(value_s)


def watt(value: float) -> str:
    return format_quantity(value, "W")


def energy(value_joule: float) -> str:
    """Energy in watt-hours, as bills state it."""
    return format_quantity(value_joule / JOULE_PER_KWH * 1e3, "Wh")


def money(value: float, currency: str | None) -> str:
    """Money in words that people use: "1.32 billion RMB", "840 million RMB"."""
    unit = currency or ""
    for limit, word in ((1e9, "billion "), (1e6, "million "), (1e3, "thousand ")):
        if abs(value) >= limit:
            return f"{value / limit:.3g} {word}{unit}".strip()
    return f"{value:.3g} {unit}".strip()


def span(low: str, high: str) -> str:
    """Two ends as one text; the unit of the first is dropped where both share it."""
    if low == high:
        return low
    first, second = low.split(" ", 1), high.split(" ", 1)
    if len(first) == 2 and len(second) == 2 and first[1] == second[1]:
        return f"{first[0]} to {high}"
    return f"{low} to {high}"


def range_text(value: Range, write: Callable[[float], str]) -> str:
    """A range through one of the writers above: "31.2 (27.0 to 36.1) days"."""
    if value.low == value.high:
        return write(value.value)
    return f"{write(value.value)} ({span(write(value.low), write(value.high))})"


def fact_value(value: float, unit: str) -> str:
    """A base-unit value in the prefix and unit that people use for it."""
    if unit == "ratio":
        return percent(value, digits=0 if abs(value * 100 - round(value * 100)) < 1e-9 else 1)
    if unit == "1":
        return f"{value:,.6g}"
    if unit == "byte":
        return format_quantity(value, "B")
    if unit == "byte/second":
        return format_quantity(value, "B/s")
    if unit == "flop/second":
        return format_quantity(value, "FLOP/s")
    if unit == "watt":
        return watt(value)
    if unit == "second":
        return duration(value)
    if unit == "metre":
        return f"{value / 1e3:,.4g} km" if value >= 1e3 else f"{value:.4g} m"
    if unit == "token":
        return format_quantity(value, "token")
    if unit.endswith("/second") and unit.split("/")[0] in ("rmb", "usd"):
        return f"{value * 3600:.4g} {unit.split('/')[0].upper()}/h"
    if unit.endswith("/joule"):
        return f"{value * JOULE_PER_KWH:.4g} {unit.split('/')[0].upper()}/kWh"
    if unit in ("rmb", "usd"):
        return money(value, unit.upper())
    return format_quantity(value, unit)


def fact_text(fact: Fact) -> str:
    """A fact: its value, or its range with the value that is computed with."""
    if not fact.is_range:
        return fact_value(fact.value, fact.unit)
    ends = span(fact_value(fact.low, fact.unit), fact_value(fact.high, fact.unit))
    return f"{ends} (computed with {fact_value(fact.value, fact.unit)})"


def counted(number: int, noun: str) -> str:
    """ "1 site", "4 sites": a count with a noun whose plural ends in s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
