"""Which unknown decides? Variance-based sensitivity, and what a measurement of each unknown would settle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from lakh.claims.unknowns import Unknown
from lakh.claims.worlds import Worlds, worlds_at
from lakh.columns import Array, Mask

Quantity = Callable[[Worlds], Array]
"""What is judged, per sample."""

SOBOL_BASE = 256
"""Base sample of the sensitivity design (a power of two); it takes this many times (open unknowns + 2) evaluations."""

BINS = 16
"""Equal shares of probability into which an unknown is cut to see what knowing it would change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sensitivity:
    """What one unknown contributes to what is not known of the quantity."""

    name: str
    title: str
    first_order: float
    """Share of the variance that goes away on average once it is known; alone [ratio]."""
    total: float
    """Share of the variance that it takes part in, interactions included [ratio]."""
    decides: float
    """Share of the doubt about the verdict that goes away once it is known: variance of the odds over that of the
    outcome; 0 where the outcome is certain [ratio]."""


def sensitivities(
    quantity: Quantity,
    unknowns: Sequence[Unknown],
    *,
    points: Array,
    holds: Mask,
    seed: int,
    base: int = SOBOL_BASE,
) -> tuple[Sensitivity, ...]:
    """First-order and total Sobol indices [1], largest total first.

    Args:
        quantity: what is judged
        unknowns: all of them; the open ones are ranked
        points: the samples of the verdict, one column per open unknown
        holds: whether the claim holds in each
        seed: of the design
        base: base sample of the design, a power of two

    [1] A. Saltelli et al., "Variance based sensitivity analysis of model output. Design and estimator for the total
        sensitivity index", Computer Physics Communications 181(2), 2010; as scipy.stats.sobol_indices has it.
    """
    open_ones = [one for one in unknowns if one.is_open]
    if not open_ones:
        return ()
    if len(open_ones) == 1:
        only = open_ones[0]
        return (Sensitivity(name=only.name, title=only.title, first_order=1.0, total=1.0, decides=1.0),)

    def of_points(x: Array) -> Array:
        return np.atleast_2d(quantity(worlds_at(unknowns, np.ascontiguousarray(x.T))))

    spread = quantity(worlds_at(unknowns, points[: min(len(points), 256)]))
    if float(np.std(spread)) <= 1e-12 * max(abs(float(np.mean(spread))), 1e-300):
        return tuple(
            Sensitivity(name=u.name, title=u.title, first_order=0.0, total=0.0, decides=0.0) for u in open_ones
        )
    uniform = [stats.uniform(loc=0.0, scale=1.0)] * len(open_ones)
    found = stats.sobol_indices(func=of_points, n=base, dists=uniform, rng=np.random.default_rng(seed))
    first = np.clip(np.ravel(found.first_order), 0.0, 1.0)
    total = np.clip(np.ravel(found.total_order), 0.0, 1.0)
    decides = [share_explained(points[:, column], holds.astype(np.float64)) for column in range(len(open_ones))]
    rows = [
        Sensitivity(
            name=one.name,
            title=one.title,
            first_order=float(first[i]),
            total=float(max(total[i], first[i])),
            decides=decides[i],
        )
        for i, one in enumerate(open_ones)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.total, row.name)))


def share_explained(u: Array, value: Array, *, bins: int = BINS) -> float:
    """Share of a variance that the mean over bins of one unknown explains, less what bins explain by chance [ratio]."""
    variance = float(np.var(value))
    count = len(value)
    if variance <= 0.0 or count <= bins:
        return 0.0
    index = np.minimum((u * bins).astype(np.int64), bins - 1)
    sums, sizes = np.bincount(index, value, bins), np.bincount(index, minlength=bins)
    means = sums / np.maximum(sizes, 1)
    between = float(np.sum(sizes * (means - value.mean()) ** 2) / count)
    by_chance = (bins - 1) / (count - 1) * variance
    return max((between - by_chance) / (variance - by_chance), 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """One measurement that would narrow what is not known."""

    command: str
    """What will take it; `lakh bench` comes with a later release."""
    unknowns: tuple[str, ...]
    titles: tuple[str, ...]
    settles: float
    """Share of the doubt about the verdict that it takes away at least; of the quantity's variance where the verdict is
    all but certain [ratio]."""
    narrows: float
    """Share of the quantity's variance that it takes away at least [ratio]."""


SETTLED_ODDS = 0.02
"""Below these odds, or above their complement, there is little doubt left to take away: measurements are then ordered
by how much they narrow the quantity."""


def measurements(
    rows: Sequence[Sensitivity], unknowns: Sequence[Unknown], *, probability: float
) -> tuple[Measurement, ...]:
    """The measurements that would settle the verdict, most valuable first; first-order effects add up.

    Args:
        rows: what each unknown contributes
        unknowns: all of them, with the command that measures each
        probability: that the claim holds
    """
    by_command: dict[str, list[Sensitivity]] = {}
    commands = {one.name: one.bench for one in unknowns}
    for row in rows:
        if commands[row.name]:
            by_command.setdefault(commands[row.name], []).append(row)
    found = []
    for command, group in by_command.items():
        settled = sum(row.decides for row in group)
        narrowed = sum(row.first_order for row in group)
        found.append(
            Measurement(
                command=command,
                unknowns=tuple(row.name for row in group),
                titles=tuple(row.title for row in group),
                settles=min(settled, 1.0),
                narrows=min(narrowed, 1.0),
            )
        )
    settled_already = not SETTLED_ODDS <= probability <= 1.0 - SETTLED_ODDS

    def value(one: Measurement) -> tuple[float, float, str]:
        first, second = (one.narrows, one.settles) if settled_already else (one.settles, one.narrows)
        return (-round(first, 4), -second, one.command)

    return tuple(sorted(found, key=value))


@dataclass(frozen=True, kw_only=True, slots=True)
class Swing:
    """One bar of the tornado: the quantity at both ends of one unknown, all others at their medians."""

    name: str
    title: str
    low_text: str
    """The unknown at its 5th percentile, or the first of its designs."""
    high_text: str
    at_low: float
    at_high: float


def tornado(quantity: Quantity, unknowns: Sequence[Unknown]) -> tuple[Swing, ...]:
    """What each open unknown does to the quantity on its own, widest first."""
    open_ones = [one for one in unknowns if one.is_open]
    if not open_ones:
        return ()
    count = len(open_ones)
    points = np.full((2 * count, count), 0.5)
    rows = np.arange(count)
    points[2 * rows, rows], points[2 * rows + 1, rows] = 0.05, 0.95
    values = quantity(worlds_at(unknowns, points))
    swings = [
        Swing(
            name=one.name,
            title=one.title,
            low_text=one.text(one.at(0.05)),
            high_text=one.text(one.at(0.95)),
            at_low=float(values[2 * i]),
            at_high=float(values[2 * i + 1]),
        )
        for i, one in enumerate(open_ones)
    ]
    return tuple(sorted(swings, key=lambda one: (-abs(one.at_high - one.at_low), one.name)))
