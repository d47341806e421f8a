"""How is a number that nobody knows written down? Distributions by their quantile function.

Each is read one way only: a share of probability u in 0..1 gives the value below which the unknown lies with that
probability. Quasi-random points go in, values come out; nothing here draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from lakh.columns import Array
from lakh.evidence import Fact


class Distribution(Protocol):
    """What is known of a number."""

    def quantile(self, u: Array) -> Array:
        """The value below which the number lies with probability u (0..1)."""
        ...

    @property
    def is_fixed(self) -> bool:
        """True where there is nothing left to know."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Fixed:
    """A number that is known, or taken as known."""

    value: float

    def quantile(self, u: Array) -> Array:
        return np.full(np.shape(u), self.value)

    @property
    def is_fixed(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Triangular:
    """Between two ends, most likely at `mode`; what a range with a middle becomes."""

    low: float
    mode: float
    high: float

    def __post_init__(self) -> None:
        assert self.low <= self.mode <= self.high and self.low < self.high, (self.low, self.mode, self.high)

    def quantile(self, u: Array) -> Array:
        width = self.high - self.low
        peak = (self.mode - self.low) / width
        left = self.low + np.sqrt(u * width * (self.mode - self.low))
        right = self.high - np.sqrt((1.0 - u) * width * (self.high - self.mode))
        return np.where(u < peak, left, right)

    @property
    def is_fixed(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Uniform:
    """Anywhere between two ends; what a range without a middle becomes. `log`: equal odds for equal ratios."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        assert self.low < self.high and (self.low > 0.0 or not self.log), (self.low, self.high)

    def quantile(self, u: Array) -> Array:
        if self.log:
            return np.asarray(self.low * (self.high / self.low) ** u)
        return np.asarray(self.low + (self.high - self.low) * u)

    @property
    def is_fixed(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Lognormal:
    """A factor that may err either way by the same ratio; nine cases of ten lie between `low` and `high`."""

    low: float
    """5th percentile."""
    high: float
    """95th percentile."""

    def __post_init__(self) -> None:
        assert 0.0 < self.low < self.high, (self.low, self.high)

    @property
    def median(self) -> float:
        return float(np.sqrt(self.low * self.high))

    def quantile(self, u: Array) -> Array:
        sigma = np.log(self.high / self.low) / (2.0 * 1.6448536269514722)
        inside = np.clip(u, 1e-9, 1.0 - 1e-9)
        return np.asarray(self.median * np.exp(sigma * special.ndtri(inside)))

    @property
    def is_fixed(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One of a few designs, each with its odds; ordered from the least to the most favourable or by size."""

    values: tuple[float, ...]
    weights: tuple[float, ...]
    labels: tuple[str, ...] = ()
    """What each value stands for, where the number says nothing."""

    def __post_init__(self) -> None:
        assert len(self.values) == len(self.weights) > 0 and abs(sum(self.weights) - 1.0) < 1e-9

    def quantile(self, u: Array) -> Array:
        edges = np.cumsum(self.weights)[:-1]
        return np.asarray(self.values)[np.searchsorted(edges, u, side="right")]

    @property
    def is_fixed(self) -> bool:
        return len(self.values) == 1

    def label(self, value: float) -> str:
        """What a value stands for; the number itself where nothing is said."""
        return self.labels[self.values.index(value)] if self.labels else f"{value:g}"


def from_fact(fact: Fact) -> Distribution:
    """What a fact of a description becomes.

    One value pins. A range whose value is stated inside it or at an end becomes a triangle with its top there; a range
    whose value is its middle says nothing of the middle and becomes uniform, over ratios where the ends differ tenfold.
    """
    if not fact.is_range:
        return Fixed(value=fact.value)
    middle = (fact.low + fact.high) / 2.0
    if abs(fact.value - middle) > 1e-9 * abs(fact.high):
        return Triangular(low=fact.low, mode=fact.value, high=fact.high)
    wide = fact.low > 0.0 and fact.high >= 10.0 * fact.low
    return Uniform(low=fact.low, high=fact.high, log=wide)


def design_choice(values: Sequence[float], weights: Sequence[float]) -> Distribution:
    """A design that is one of a few: equal values are joined, in ascending order."""
    joined: dict[float, float] = {}
    for value, weight in zip(values, weights, strict=True):
        joined[value] = joined.get(value, 0.0) + weight
    ordered = sorted(joined)
    if len(ordered) == 1:
        return Fixed(value=ordered[0])
    return Choice(values=tuple(ordered), weights=tuple(joined[value] for value in ordered))
