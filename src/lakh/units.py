"""How do we read "400 Gbit/s"? The only module that knows a prefix.

Inside Lakh every quantity is held in base units: second, byte, flop, watt, joule, and money in a stated
currency. Prefixes exist at the edge: in files that people write and in text that people read. A "GB" is 1e9
bytes and a "GiB" is 2**30; a tera is 1e12 always.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}

# symbol: (base unit, factor, prefixes allowed)
_SYMBOL: dict[str, tuple[str, float, dict[str, float]]] = {
    "B": ("byte", 1.0, _DECIMAL | _BINARY),
    "bit": ("byte", 1.0 / 8.0, _DECIMAL | _BINARY),
    "FLOP": ("flop", 1.0, _DECIMAL),
    "OP": ("flop", 1.0, _DECIMAL),
    "W": ("watt", 1.0, _DECIMAL | {"m": 1e-3}),
    "Wh": ("joule", 3600.0, _DECIMAL),
    "J": ("joule", 1.0, _DECIMAL),
    "s": ("second", 1.0, _SMALL | {"": 1.0}),
    "min": ("second", 60.0, {"": 1.0}),
    "h": ("second", 3600.0, {"": 1.0}),
    "d": ("second", 86400.0, {"": 1.0}),
    "Hz": ("hertz", 1.0, _DECIMAL),
    "m": ("metre", 1.0, {"": 1.0, "k": 1e3}),
    "USD": ("usd", 1.0, _DECIMAL),
    "RMB": ("rmb", 1.0, _DECIMAL),
    "token": ("token", 1.0, _DECIMAL),
    "C": ("celsius", 1.0, {"": 1.0}),
}
_NUMBER = r"[+-]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([A-Za-zµ%]*(?:/[A-Za-zµ]+)*)\s*$")


class UnitError(ValueError):
    """A text that is not a quantity of the unit that was asked for."""

    def __init__(self, found: object, accepted: str) -> None:
        self.found, self.accepted = found, accepted
        super().__init__(f"found {found!r}; accepted: {accepted}")


@dataclass(frozen=True, slots=True)
class _Unit:
    base: str
    factor: float


def _read_symbol(text: str) -> _Unit | None:
    """Split "Gbit" into prefix and symbol; the longest symbol that fits wins, so that "min" is minutes."""
    for symbol in sorted(_SYMBOL, key=len, reverse=True):
        if text.endswith(symbol):
            base, factor, prefixes = _SYMBOL[symbol]
            prefix = text[: len(text) - len(symbol)]
            if prefix in prefixes:
                return _Unit(base, factor * prefixes[prefix])
    return None


def _example(unit: str) -> str:
    examples = {
        "byte": "80 GiB",
        "byte/second": "400 Gbit/s",
        "flop/second": "500 TFLOP/s",
        "watt": "950 W",
        "second": "1.5 us",
        "joule": "3 MWh",
        "ratio": "0.95 or 95 %",
    }
    return examples.get(unit, f"1 {unit}")


def parse_quantity(text: str | float, unit: str) -> float:
    """Read a quantity such as "400 Gbit/s" into our base unit, here "byte/second" (5e10).

    Args:
        text: a number, a space and a unit; for unit "ratio" a bare number in 0..1 or a percentage; for unit
            "1" a bare number
        unit: what it must reduce to, numerator and denominators joined by "/": "byte", "byte/second", "watt"

    Raises:
        UnitError: the text is not a number with a unit that reduces to `unit`
    """
    accepted = f"a number, a space and a unit that reduces to {unit}, such as {_example(unit)!r}"
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise UnitError(text, accepted)
    if isinstance(text, int | float):
        if unit in ("ratio", "1"):
            return float(text)
        raise UnitError(text, accepted)
    match = _QUANTITY.match(text)
    if match is None:
        raise UnitError(text, accepted)
    number, symbols = float(match[1]), match[2]
    if not math.isfinite(number):
        raise UnitError(text, f"{accepted}, and a number below 1e308")
    if unit in ("ratio", "1"):
        if symbols == "%" and unit == "ratio":
            return number / 100.0
        if symbols == "":
            return number
        raise UnitError(text, accepted)
    parts = symbols.split("/")
    units = [_read_symbol(part) for part in parts]
    if not symbols or any(found is None for found in units):
        raise UnitError(text, accepted)
    known = [found for found in units if found is not None]
    if "/".join(found.base for found in known) != unit:
        raise UnitError(text, accepted)
    value = number * known[0].factor
    for found in known[1:]:
        value /= found.factor
    return value


_SCALE = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))


def format_quantity(value: float, symbol: str, *, digits: int = 3) -> str:
    """Write a base-unit value with a decimal prefix: (5e10, "B/s") gives "50 GB/s"."""
    if value == 0:
        return f"0 {symbol}"
    size = abs(value)
    prefix, factor = next(((p, f) for p, f in _SCALE if size >= f), ("", 1.0))
    return f"{value / factor:.{digits}g} {prefix}{symbol}" if size < 1e21 else f"{value:.{digits}g} {symbol}"


def format_bytes_gib(value_bytes: float) -> str:
    """Bytes as GiB with one decimal: what an accelerator's memory is compared in."""
    return f"{value_bytes / 2**30:.1f} GiB"


def format_duration(value_s: float) -> str:
    """A duration for people: "8.0 ms", "12.3 s", "14.2 min", "3.1 h", "54.0 days"."""
    size = abs(value_s)
    if size < 1e-3:
        return f"{value_s * 1e6:.1f} us"
    if size < 1.0:
        return f"{value_s * 1e3:.1f} ms"
    for limit, factor, name in ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (172800.0, 3600.0, "h")):
        if size < limit:
            return f"{value_s / factor:.1f} {name}"
    return f"{value_s / 86400.0:.1f} days"
