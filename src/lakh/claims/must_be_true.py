"""What would have to be true? The most probable combination of unknowns under which a claim holds.

Every unknown is put on one scale, its normal score z (0 is the median, 1.64 the 95th percentile). Of all combinations
that make the claim true, the one nearest to the medians is the most probable: it asks for least. That is the design
point of structural reliability [1], found by its own iteration from the best samples.

[1] A. M. Hasofer, N. C. Lind, "Exact and invariant second-moment code format", J. Eng. Mech. Div. ASCE 100(1), 1974;
    R. Rackwitz, B. Fiessler, "Structural reliability under combined random load sequences", Computers & Structures 9,
    1978.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from lakh.claims.distributions import Choice
from lakh.claims.unknowns import Unknown
from lakh.claims.worlds import Worlds, worlds_at
from lakh.columns import Array, Mask

MOST_SCORE = 3.0
"""No unknown is asked to lie beyond one case in a thousand of its range."""

MINOR_SCORE = 0.25
"""Unknowns that need to move by less than this stay at their median."""

_ITERATIONS = 12
_STEP = 0.05
_STARTS = 4

Outcome = Literal["holds-at-middle", "reachable", "out-of-reach"]
"""holds-at-middle: true with every unknown at its median, and the conditions say what must stay so; reachable: true
once the conditions are met; out-of-reach: true nowhere within the ranges."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One thing that must be true."""

    name: str
    text: str
    """In words, with the number, the middle and the range."""
    value: float
    median: float
    side: Literal["at least", "at most", "is"]
    odds: float
    """Probability that it is met, all else aside [ratio]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MustBeTrue:
    """The least demanding combination."""

    outcome: Outcome
    conditions: tuple[Condition, ...]
    """Most demanding first; all together, the rest at their medians."""
    odds: float
    """Probability that all of them are met at once, if they are independent [ratio]."""
    quantity_at_middle: float
    """The quantity with every unknown at its median."""
    best: float
    """The best that was found within the ranges."""

    @property
    def text(self) -> str:
        """One sentence."""
        if self.outcome == "out-of-reach":
            return f"no combination within the ranges makes it true; the best found is {self.best:.1%}"
        if self.outcome == "holds-at-middle":
            return "it holds with every unknown at its middle, and fails where all of these are missed at once"
        odds = "below 0.1 %" if self.odds < 1e-3 else f"{self.odds * 100:.1f} %"
        return f"it holds if all of these are true at once (odds {odds} if independent)"


Margin = Callable[[Worlds], Array]
"""Positive where the claim holds, negative where it fails; continuous."""


def must_be_true(
    margin: Margin,
    quantity: Callable[[Worlds], Array],
    unknowns: Sequence[Unknown],
    *,
    points: Array,
    margins: Array,
) -> MustBeTrue:
    """The most probable point at which a claim changes its truth, seen from the medians.

    Args:
        margin: positive where the claim holds
        quantity: what is claimed, for the report
        unknowns: all of them
        points: the samples of the verdict, one column per open unknown
        margins: margin of each sample
    """
    open_ones = [one for one in unknowns if one.is_open]
    middle = np.full((1, len(open_ones)), 0.5)
    middle_world = worlds_at(unknowns, middle)
    at_middle, value = float(margin(middle_world)[0]), float(quantity(middle_world)[0])
    holds_at_middle = at_middle >= 0.0
    sign = -1.0 if holds_at_middle else 1.0
    if not open_ones:
        outcome: Outcome = "holds-at-middle" if holds_at_middle else "out-of-reach"
        return MustBeTrue(outcome=outcome, conditions=(), odds=1.0, quantity_at_middle=value, best=value)

    is_choice = np.array([isinstance(one.distribution, Choice) for one in open_ones])

    def wanted(z: Array) -> Array:
        """Positive where the truth has changed, for rows of normal scores."""
        return sign * margin(worlds_at(unknowns, special.ndtr(z)))

    starts = _starts(open_ones, is_choice, points, sign * margins >= 0.0, wanted)
    found: tuple[Condition, ...] | None = None
    likeliest = 0.0
    for start in starts:
        point = _design_point(wanted, start, ~is_choice)
        if point is None:
            continue
        asked = _conditions(open_ones, is_choice, point, flipped=holds_at_middle)
        chance = float(np.prod([1.0 - one.odds if holds_at_middle else one.odds for one in asked]))
        if found is None or chance > likeliest:
            found, likeliest = asked, chance
    best = _best_value(quantity, unknowns, points, margins, starts)
    if found is None:
        outcome = "holds-at-middle" if holds_at_middle else "out-of-reach"
        return MustBeTrue(outcome=outcome, conditions=(), odds=0.0, quantity_at_middle=value, best=best)
    return MustBeTrue(
        outcome="holds-at-middle" if holds_at_middle else "reachable",
        conditions=found,
        odds=_joint(found),
        quantity_at_middle=value,
        best=best,
    )


def _joint(conditions: Sequence[Condition]) -> float:
    """Probability that all are met at once, if they are independent."""
    return float(np.prod([one.odds for one in conditions])) if conditions else 1.0


def _scores(open_ones: Sequence[Unknown], is_choice: Mask, points: Array) -> Array:
    """Normal scores of samples; a choice gets the score of its value that lies nearest to the median."""
    z = special.ndtri(np.clip(points, 1e-4, 1.0 - 1e-4))
    for column in np.flatnonzero(is_choice).tolist():
        choice = open_ones[column].distribution
        assert isinstance(choice, Choice)
        edges = np.concatenate(([0.0], np.cumsum(choice.weights)))
        index = np.searchsorted(edges[1:-1], points[:, column], side="right")
        inside = 1e-4 * (edges[index + 1] - edges[index])
        z[:, column] = special.ndtri(np.clip(0.5, edges[index] + inside, edges[index + 1] - inside))
    return np.asarray(np.clip(z, -MOST_SCORE, MOST_SCORE))


def _starts(
    open_ones: Sequence[Unknown],
    is_choice: Mask,
    points: Array,
    changed: Mask,
    wanted: Callable[[Array], Array],
) -> list[Array]:
    """Where to begin: the samples nearest to the medians of a few combinations of designs; else a corner."""
    z = _scores(open_ones, is_choice, points)
    starts: list[Array] = []
    seen: set[tuple[float, ...]] = set()
    rows = np.flatnonzero(changed)
    for row in rows[np.argsort(np.linalg.norm(z[rows], axis=1), kind="stable")]:
        key = tuple(z[row, is_choice])
        if key not in seen:
            seen.add(key)
            starts.append(z[row])
            if len(starts) == _STARTS:
                break
    if starts:
        return starts
    # Nothing among the samples: each unknown to the end that helps, seen one at a time from the middle.
    ends = np.stack([np.eye(len(open_ones)) * side for side in (-1.5, 1.5)])
    gains = np.stack([wanted(end) for end in ends])
    best = np.where(gains[1] >= gains[0], MOST_SCORE, -MOST_SCORE)
    return [np.where(np.abs(gains[1] - gains[0]) > 0.0, best, 0.0)]


def _gradient(wanted: Callable[[Array], Array], z: Array, moves: Mask) -> tuple[float, Array]:
    columns = np.flatnonzero(moves)
    rows = np.repeat(z[None, :], 2 * len(columns) + 1, axis=0)
    for i, column in enumerate(columns):
        rows[1 + 2 * i, column] += _STEP
        rows[2 + 2 * i, column] -= _STEP
    values = wanted(rows)
    slope = np.zeros(len(z))
    slope[columns] = (values[1::2] - values[2::2]) / (2.0 * _STEP)
    return float(values[0]), slope


def _design_point(wanted: Callable[[Array], Array], start: Array, moves: Mask) -> Array | None:
    """The nearest point at which `wanted` turns positive, with what hardly matters put back to its median."""
    point = _iterate(wanted, start, moves)
    if point is None:
        return None
    minor = moves & (np.abs(point) < MINOR_SCORE)
    while minor.any():
        trimmed = np.where(minor, 0.0, point)
        again = _iterate(wanted, trimmed, moves & ~minor)
        if again is None:
            break
        point = again
        more = moves & (np.abs(point) < MINOR_SCORE) & ~minor
        if not more.any():
            break
        minor = minor | more
    return point


def _iterate(wanted: Callable[[Array], Array], start: Array, moves: Mask) -> Array | None:
    """Hasofer-Lind steps with damping, then a bisection along the way from the medians onto the border."""
    z = start.copy()
    for _ in range(_ITERATIONS):
        value, slope = _gradient(wanted, z, moves)
        size = float(slope @ slope)
        if size < 1e-16:
            break
        target = (float(slope @ z) - value) / size * slope
        target = np.clip(np.where(moves, target, z), -MOST_SCORE, MOST_SCORE)
        step = target - z
        z = z + 0.7 * step
        if float(np.abs(step).max()) < 1e-3:
            break
    ends = [z, start]
    for end in ends:
        border = _onto_border(wanted, end, moves)
        if border is not None:
            return border
    return None


def _onto_border(wanted: Callable[[Array], Array], z: Array, moves: Mask) -> Array | None:
    """The point on the ray through z (designs fixed) at which `wanted` turns positive first."""
    shares = np.linspace(0.0, 1.6, 33)
    rays = np.where(moves[None, :], shares[:, None] * z[None, :], z[None, :])
    rays = np.clip(rays, -MOST_SCORE, MOST_SCORE)
    good = np.flatnonzero(wanted(rays) >= 0.0)
    if not good.size:
        return None
    high = int(good[0])
    if high == 0:
        return np.asarray(rays[0])
    low_share, high_share = float(shares[high - 1]), float(shares[high])
    for _ in range(4):
        part = np.linspace(low_share, high_share, 9)
        rows = np.where(moves[None, :], part[:, None] * z[None, :], z[None, :])
        rows = np.clip(rows, -MOST_SCORE, MOST_SCORE)
        first = int(np.flatnonzero(wanted(rows) >= 0.0)[0])
        low_share, high_share = float(part[max(first - 1, 0)]), float(part[first])
    return np.asarray(np.clip(np.where(moves, high_share * z, z), -MOST_SCORE, MOST_SCORE))


def _best_value(
    quantity: Callable[[Worlds], Array],
    unknowns: Sequence[Unknown],
    points: Array,
    margins: Array,
    starts: Sequence[Array],
) -> float:
    rows = np.vstack([points[int(np.argmax(margins))][None, :], special.ndtr(np.asarray(starts))])
    return float(np.max(quantity(worlds_at(unknowns, rows))))


def _conditions(open_ones: Sequence[Unknown], is_choice: Mask, z: Array, *, flipped: bool) -> tuple[Condition, ...]:
    """What the point asks of each unknown; flipped: what keeps away from it."""
    found: list[tuple[float, Condition]] = []
    least = min(MINOR_SCORE, float(np.abs(z).max())) / 2.0
    for index, one in enumerate(open_ones):
        score = float(z[index])
        u = float(special.ndtr(score))
        value, median = one.at(u), one.at(0.5)
        if is_choice[index]:
            choice = one.distribution
            assert isinstance(choice, Choice)
            if value == median:
                continue
            odds = choice.weights[choice.values.index(value)]
            words = f"{one.title}: {one.text(value)} (middle of the odds: {one.text(median)})"
            if flipped:
                words = f"{one.title}: anything but {one.text(value)} (middle of the odds: {one.text(median)})"
                odds, value = 1.0 - odds, median
            found.append((abs(score), _condition(one, words, value, median, "is", odds)))
            continue
        if abs(score) < least:
            continue
        ends = f"{one.text(one.at(0.05))} to {one.text(one.at(0.95))}"
        side: Literal["at least", "at most"] = "at least" if (score > 0.0) != flipped else "at most"
        words = f"{one.title}: {side} {one.text(value)} (middle {one.text(median)}, nine cases of ten {ends})"
        found.append((abs(score), _condition(one, words, value, median, side, 1.0 - u if side == "at least" else u)))
    return tuple(condition for _, condition in sorted(found, key=lambda pair: (-pair[0], pair[1].name)))


def _condition(
    one: Unknown, words: str, value: float, median: float, side: Literal["at least", "at most", "is"], odds: float
) -> Condition:
    return Condition(name=one.name, text=words, value=value, median=median, side=side, odds=odds)
