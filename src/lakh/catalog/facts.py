"""How is a number written in a file? One reader for every fact, in the catalogue and in users' files.

Three forms are read, and all become a `Fact`:

    400 Gbit/s                            a quantity with its unit
    0.6 .. 0.8                            a range; one unit at the end serves both ("350 .. 400 GB/s")
    {value, low, high, status, source, note}    the long form; `low` and `high` make a range
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lakh.errors import list_names, nearest_hint
from lakh.evidence import STATUSES, Fact, Status
from lakh.units import UnitError, parse_quantity

FACT_KEYS: tuple[str, ...] = ("value", "low", "high", "status", "source", "note")

_RANGE = ".."


class FactError(ValueError):
    """A text or mapping that is not a fact: which key of it, what was found, what is accepted."""

    def __init__(self, key: str, found: object, accepted: str, hint: str = "") -> None:
        self.key, self.found, self.accepted, self.hint = key, found, accepted, hint
        super().__init__(f"{key or 'value'}: found {found!r}; accepted: {accepted}." + (f" {hint}" if hint else ""))


def _number(raw: object, unit: str, key: str) -> float:
    try:
        number = parse_quantity(raw, unit)  # type: ignore[arg-type]  # it refuses what it cannot read
        if not math.isfinite(number):
            raise UnitError(raw, "a finite number")
        return number
    except UnitError as error:
        accepted = f"{error.accepted}; or a range, 'LOW .. HIGH'" if key == "" else error.accepted
        raise FactError(key, raw, accepted) from None


def _split_range(text: str, unit: str) -> tuple[float, float]:
    low_text, high_text = (part.strip() for part in text.split(_RANGE, 1))
    high = _number(high_text, unit, "")
    symbols = high_text.lstrip("+-0123456789._eE").strip() if unit not in ("1",) else ""
    if low_text and (low_text[-1].isdigit() or low_text[-1] == ".") and symbols:
        low_text = f"{low_text} {symbols}"
    return _number(low_text, unit, ""), high


def read_fact(raw: object, unit: str, *, status: Status = "estimate", source: str = "", note: str = "") -> Fact:
    """Read one fact in base units.

    Args:
        raw: a quantity, a range or the long form, as YAML gave it
        unit: base unit it must reduce to, such as "byte/second"; "ratio" and "1" take bare numbers
        status: used where the long form states none
        source: used where the long form states none
        note: used where the long form states none

    Raises:
        FactError: `raw` is none of the three forms
    """
    if isinstance(raw, Mapping):
        return _read_long_form(raw, unit, status=status, source=source, note=note)
    if isinstance(raw, str) and _RANGE in raw:
        low, high = _split_range(raw, unit)
        value = (low + high) / 2
    else:
        low = high = value = _number(raw, unit, "")
    if low > high:
        raise FactError("", raw, "a range whose low end comes first")
    return Fact(value=value, low=low, high=high, unit=unit, status=status, source=source, note=note)


def _read_long_form(raw: Mapping[object, object], unit: str, *, status: Status, source: str, note: str) -> Fact:
    for key in raw:
        if key not in FACT_KEYS:
            raise FactError(str(key), raw[key], list_names(FACT_KEYS), nearest_hint(key, FACT_KEYS))
    stated = raw.get("status", status)
    if stated not in STATUSES:
        raise FactError("status", stated, list_names(STATUSES), nearest_hint(stated, STATUSES))
    texts = {}
    for key, default in (("source", source), ("note", note)):
        text = raw.get(key, default)
        if not isinstance(text, str):
            raise FactError(key, text, "a text")
        texts[key] = text
    value_raw, low_raw, high_raw = raw.get("value"), raw.get("low"), raw.get("high")
    if (low_raw is None) != (high_raw is None):
        missing = "low" if low_raw is None else "high"
        raise FactError(missing, None, "both low and high, or neither")
    if value_raw is None and low_raw is None:
        raise FactError("value", None, "value, or low and high")
    if low_raw is None:
        if isinstance(value_raw, str) and _RANGE in value_raw:
            low, high = _split_range(value_raw, unit)
            value = (low + high) / 2
        else:
            low = high = value = _number(value_raw, unit, "value")
    else:
        low, high = _number(low_raw, unit, "low"), _number(high_raw, unit, "high")
        value = (low + high) / 2 if value_raw is None else _number(value_raw, unit, "value")
    if low > high:
        raise FactError("low", low_raw, f"at most high, which is {high_raw!r}")
    if not low <= value <= high:
        raise FactError("value", value_raw, f"between low ({low_raw!r}) and high ({high_raw!r})")
    return Fact(
        value=value,
        low=low,
        high=high,
        unit=unit,
        status=stated,
        source=texts["source"],
        note=texts["note"],
    )
