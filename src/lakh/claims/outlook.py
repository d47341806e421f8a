"""What would a whole run take at the predicted rate? Power, energy, cost per token, and the date it ends on."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from lakh.claims.effective_time import EffectiveQuestion, effective_time
from lakh.claims.worlds import sobol_points, worlds_at
from lakh.perf.system_of import System
from lakh.planner import (
    Energy,
    Range,
    SitePower,
    energy_of,
    site_power,
)
from lakh.planner.delivery import DeliveryOutlook, TokenCost, delivery_outlook, token_cost
from lakh.spec.cluster import Cluster

DAY_S = 86_400.0
_SAMPLES = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOutlook:
    """One run on one cluster: 5th, 50th and 95th percentiles as low, value and high."""

    tokens: float
    accelerator_count: int
    effective_time: Range
    """Share of wall time that is training, all unknowns of reliability open."""
    tokens_per_s: Range
    """Of wall time: undisturbed rate times effective time, ends with ends. Where failures eat the gain of the last
    cards, fewer of them train more: each end is that of its own best size."""
    best_size: int
    """Accelerators that train most at the middle, of the sizes that were judged."""
    days: Range
    """With all accelerators from the first day."""
    sites: tuple[SitePower, ...]
    energy: Energy
    """Of an undisturbed step, at the middle rate."""
    energy_joule: float
    """Of the run, at the middle rate."""
    cost: TokenCost | None
    delivery: DeliveryOutlook | None
    """The end under the delivery phases of the description; None where it has none."""

    @property
    def cost_currency(self) -> str | None:
        return None if self.cost is None else self.cost.currency


def rate_at(rates: Mapping[int, Range], count: int, part: str) -> float:
    """Tokens per second and accelerator at a size: between sizes by the logarithm of the size, flat beyond the ends."""
    sizes = sorted(rates)
    values = [float(getattr(rates[size], part)) for size in sizes]
    return float(np.interp(math.log(count), [math.log(size) for size in sizes], values))


def run_outlook(
    cluster: Cluster,
    system: System,
    *,
    tokens: float,
    tokens_per_step: float,
    accelerator_count: int,
    activity: float,
    rate_per_accelerator: Mapping[int, Range],
    effective: EffectiveQuestion,
    seed: int,
) -> RunOutlook:
    """A run from predicted rates and the odds of interruptions.

    Args:
        cluster, system: where it runs
        tokens: of the run
        tokens_per_step: of one optimizer step
        accelerator_count: of the job
        activity: share of the step in which kernels compute
        rate_per_accelerator: undisturbed tokens per second and accelerator, by size
        effective: the unknowns of reliability at this size
        seed: of the samples
    """
    points = sobol_points(effective.unknowns, _SAMPLES, seed)

    def share_at(count: int) -> Range:
        sized = replace(effective.at_size(count), unknowns=effective.unknowns)
        p05, p50, p95 = np.quantile(effective_time(sized, worlds_at(effective.unknowns, points)), (0.05, 0.5, 0.95))
        return Range(low=float(p05), value=float(p50), high=float(p95))

    delivered = {phase.accelerator_count for phase in cluster.delivery}
    judged = {size for size in {*rate_per_accelerator, *delivered} if size <= accelerator_count}
    sizes = sorted(judged | {accelerator_count})
    shares = {size: share_at(size) for size in sizes}

    def trained(count: int, part: str) -> float:
        """Tokens per second of wall time of up to `count` accelerators, at their best size."""
        usable = [size for size in sizes if size <= count] or [count]
        return max(
            rate_at(rate_per_accelerator, size, part) * size * float(getattr(shares[size], part)) for size in usable
        )

    share = shares[accelerator_count]
    undisturbed = Range(
        **{part: rate_at(rate_per_accelerator, accelerator_count, part) * accelerator_count for part in _PARTS}
    )
    rate = Range(**{part: trained(accelerator_count, part) for part in _PARTS})
    best_size = max(sizes, key=lambda size: rate_at(rate_per_accelerator, size, "value") * size * shares[size].value)
    sites = site_power(cluster, system, activity=activity)
    used = accelerator_count / sum(site.accelerator_count for site in sites)
    energy = energy_of(sites, step_time_s=tokens_per_step / undisturbed.value, tokens_per_step=tokens_per_step)
    energy = replace(
        energy,
        watt=energy.watt * used,
        joule_per_step=energy.joule_per_step * used,
        token_per_joule=energy.token_per_joule / used,
    )
    facility = Range(**{part: used * sum(getattr(site.facility_watt, part) for site in sites) for part in _PARTS})
    cost = None
    if cluster.prices is not None:
        cost = token_cost(
            cluster.prices,
            accelerator_count=accelerator_count,
            accelerators_per_node=system.node.accelerator_count,
            tokens_per_s=rate,
            facility_watt=facility,
        )
    return RunOutlook(
        tokens=tokens,
        accelerator_count=accelerator_count,
        effective_time=share,
        tokens_per_s=rate,
        best_size=best_size,
        days=Range(low=tokens / rate.high / DAY_S, value=tokens / rate.value / DAY_S, high=tokens / rate.low / DAY_S),
        sites=sites,
        energy=energy,
        energy_joule=energy.watt * tokens / rate.value,
        cost=cost,
        delivery=_delivery(cluster, tokens, lambda count: trained(count, "value"), seed),
    )


_PARTS = ("low", "value", "high")


def _delivery(cluster: Cluster, tokens: float, rate: Callable[[int], float], seed: int) -> DeliveryOutlook | None:
    """The end of a run that starts the day after the first phase is surely there."""
    if not cluster.delivery:
        return None
    start = cluster.delivery[0].date.latest + datetime.timedelta(days=1)
    return delivery_outlook(cluster.delivery, rate, tokens=tokens, start=start, seed=seed)
