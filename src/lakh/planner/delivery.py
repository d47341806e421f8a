"""When is a run done if the cluster arrives in phases, and what does a late phase cost? Dates in, dates out.

The run starts on what stands, stops at each phase for long enough to plan anew and to reshard, and goes on at the
larger size. Dates are ranges: the outlook is a distribution over them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from lakh.columns import Array
from lakh.errors import InfeasibleError, Problem, RequestError
from lakh.evidence import Fact
from lakh.planner.economics import Range, range_of
from lakh.spec.cluster import DeliveryPhase, Prices

DAY_S = 86_400.0

REPLAN_S = 6 * 3600.0
"""What a growth of the job takes: drain, reshard the checkpoint, start, warm up; a judgement (ByteCheckpoint reshards
off line in 593 to 1,870 s, arXiv:2407.20143; the rest is acceptance of new nodes)."""

Rate = Callable[[int], float]
"""Tokens per second of wall time that a number of accelerators trains, interruptions included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lateness:
    """What a phase that comes later does to the end of the run."""

    phase: str
    accelerator_count: int
    days_per_month: float
    """Days by which the run ends later if this phase alone comes 30 days later, all dates at their middles."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryOutlook:
    """When a run ends under the delivery dates that are known."""

    start: datetime.date
    tokens: float
    earliest: datetime.date
    """5th percentile."""
    middle: datetime.date
    latest: datetime.date
    """95th percentile."""
    days: Range
    """From start to end: 5th, 50th and 95th percentile [days]."""
    share_by_phase: tuple[tuple[str, float], ...]
    """Share of the tokens that each size of the cluster trains, all dates at their middles."""
    lateness: tuple[Lateness, ...]


def end_day(starts_day: Sequence[float], rates_per_day: Sequence[float], tokens: float, *, replan_days: float) -> float:
    """Day on which a run ends whose rate changes on given days.

    Args:
        starts_day: day from which each rate holds, ascending; the run starts on the first
        rates_per_day: tokens per day
        tokens: of the whole run
        replan_days: standstill at each change but the first
    """
    left = tokens
    for index, (start, rate) in enumerate(zip(starts_day, rates_per_day, strict=True)):
        begins = start if index == 0 else start + replan_days
        until = starts_day[index + 1] if index + 1 < len(starts_day) else float("inf")
        if begins >= until:
            continue
        done = (until - begins) * rate
        if done >= left:
            return begins + left / rate
        left -= done
    raise AssertionError("the last rate has no end")


def delivery_outlook(
    phases: Sequence[DeliveryPhase],
    rate: Rate,
    *,
    tokens: float,
    start: datetime.date,
    sample_count: int = 1024,
    seed: int = 0,
    replan_s: float = REPLAN_S,
) -> DeliveryOutlook:
    """The end of a run over phases whose dates are ranges; a phase never comes before the one it follows.

    Args:
        phases: what stands when, from `Cluster.delivery`
        rate: tokens per second of wall time at a size
        tokens: of the whole run
        start: the run starts then, or with the first phase if that comes later
        sample_count: quasi-random draws of all dates, uniform in their ranges
        seed: of the draws
        replan_s: standstill at each growth

    Raises:
        RequestError: no phase, or no token
        InfeasibleError: the last size trains nothing
    """
    problems = []
    if not phases:
        problems.append(Problem(where="delivery", found=(), accepted="at least one phase"))
    if not tokens > 0.0:
        problems.append(Problem(where="tokens", found=tokens, accepted="more than 0"))
    if problems:
        raise RequestError(problems)
    counts = [phase.accelerator_count for phase in phases]
    rates = [max(rate(count), 0.0) * DAY_S for count in counts]
    if rates[-1] <= 0.0:
        raise InfeasibleError(f"{counts[-1]:,} accelerators, the last phase, train nothing")
    early = np.array([(phase.date.earliest - start).days for phase in phases], dtype=np.float64)
    late = np.array([(phase.date.latest - start).days for phase in phases], dtype=np.float64)
    engine = stats.qmc.Sobol(d=len(phases), scramble=True, rng=np.random.default_rng(seed))
    power = max(int(np.ceil(np.log2(max(sample_count, 2)))), 1)
    drawn = early + (late - early) * engine.random_base2(power)[:sample_count]
    replan_days = replan_s / DAY_S

    def ends(days: Array) -> float:
        ordered = np.maximum.accumulate(np.maximum(days, 0.0))
        kept = [
            i for i in range(len(ordered)) if rates[i] > 0.0 and (i + 1 == len(ordered) or ordered[i + 1] > ordered[i])
        ]
        return end_day([float(ordered[i]) for i in kept], [rates[i] for i in kept], tokens, replan_days=replan_days)

    found = np.array([ends(row) for row in drawn])
    middle = (early + late) / 2.0
    base = ends(middle)
    lateness = []
    for index, phase in enumerate(phases):
        later = middle.copy()
        later[index] = max(later[index], 0.0) + 30.0
        lateness.append(Lateness(phase=phase.name, accelerator_count=counts[index], days_per_month=ends(later) - base))
    p05, p50, p95 = (float(x) for x in np.quantile(found, (0.05, 0.5, 0.95)))
    return DeliveryOutlook(
        start=start,
        tokens=tokens,
        earliest=start + datetime.timedelta(days=round(p05)),
        middle=start + datetime.timedelta(days=round(p50)),
        latest=start + datetime.timedelta(days=round(p95)),
        days=Range(low=p05, value=p50, high=p95),
        share_by_phase=_shares(
            phases, np.maximum.accumulate(np.maximum(middle, 0.0)), rates, tokens, base, replan_days
        ),
        lateness=tuple(lateness),
    )


def _shares(
    phases: Sequence[DeliveryPhase], days: Array, rates: Sequence[float], tokens: float, end: float, replan_days: float
) -> tuple[tuple[str, float], ...]:
    shares = []
    for index, phase in enumerate(phases):
        begins = days[index] + (replan_days if index else 0.0)
        until = min(days[index + 1] if index + 1 < len(days) else np.inf, end)
        shares.append((phase.name, max(float(until - begins), 0.0) * rates[index] / tokens))
    total = sum(share for _, share in shares)
    return tuple((name, share / total) for name, share in shares)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCost:
    """What a trained token costs, in one currency. None where the cluster states no price."""

    currency: str
    rent_per_token: Range | None
    """All accelerators at the on-demand price."""
    owned_per_token: Range | None
    """Capital written off over the stated years, and energy."""


def token_cost(
    prices: Prices,
    *,
    accelerator_count: int,
    accelerators_per_node: int,
    tokens_per_s: Range,
    facility_watt: Range,
    write_off_years: float = 4.0,
) -> TokenCost:
    """Cost of a trained token when capacity is rented, and when it is owned.

    Args:
        prices: of the cluster
        accelerator_count: accelerators that the job holds, used or not
        accelerators_per_node: of one node
        tokens_per_s: of wall time, interruptions included
        facility_watt: of all of it, cooling included
        write_off_years: straight-line; hardware of this kind is written off in 3 to 6 years

    Ends are paired so that the low end is the cheapest there may be: the lowest price with the highest rate.
    """
    rent = owned = None
    if prices.on_demand_per_accelerator_s is not None:
        price = range_of(prices.on_demand_per_accelerator_s).times(accelerator_count)
        rent = _over(price, tokens_per_s)
    if prices.capital_per_node is not None:
        seconds = write_off_years * 365.25 * DAY_S
        capital = range_of(prices.capital_per_node).times(accelerator_count / accelerators_per_node / seconds)
        energy = _energy_per_s(prices.energy_per_joule, facility_watt)
        owned = _over(_plus(capital, energy), tokens_per_s)
    return TokenCost(currency=prices.currency, rent_per_token=rent, owned_per_token=owned)


def _energy_per_s(price: Fact | None, watt: Range) -> Range:
    if price is None:
        return Range(low=0.0, value=0.0, high=0.0)
    return Range(low=price.low * watt.low, value=price.value * watt.value, high=price.high * watt.high)


def _plus(first: Range, second: Range) -> Range:
    return Range(low=first.low + second.low, value=first.value + second.value, high=first.high + second.high)


def _over(cost_per_s: Range, tokens_per_s: Range) -> Range:
    return Range(
        low=cost_per_s.low / tokens_per_s.high,
        value=cost_per_s.value / tokens_per_s.value,
        high=cost_per_s.high / tokens_per_s.low,
    )
