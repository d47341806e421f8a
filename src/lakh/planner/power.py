"""What does a site draw, and what when it may not? Power by activity, caps, inlet temperature, energy per token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from lakh.errors import Problem, RequestError
from lakh.evidence import Fact
from lakh.perf.system_of import System
from lakh.planner.economics import PowerModel, Range, economics_of
from lakh.spec.cluster import Cluster, Site

CLOCK_EXPONENT = 3.0
"""Dynamic power over clock: frequency times voltage squared, and voltage follows frequency in the upper range
(T. Mudge, "Power: a first-class architectural design constraint", Computer 34(4), 2001); at the lowest voltage
it is 1."""

LOWEST_CLOCK = 0.4
"""Share of the clock below which accelerators do not throttle; a judgement."""

INLET_LIMIT_CELSIUS = 35.0
"""Inlet air above which accelerators protect themselves: the upper end of what ASHRAE class A2 allows."""

DERATING_PER_CELSIUS = 0.03
"""Share of the dynamic power that each degree above the limit takes away; a judgement, no maker states it."""

Binding = Literal["nothing", "power-cap", "inlet-temperature"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SitePower:
    """One site under load. Ranges hold every range of the description together."""

    site: str
    accelerator_count: int
    it_watt: float
    """Without cooling, at full clock [watt]."""
    facility_watt: Range
    """With cooling, at full clock [watt]."""
    cap_watt: float | None
    drawn_watt: float
    """With cooling, after throttling [watt]."""
    clock_share: float
    """Clock that the cap and the inlet temperature leave; 1: not throttled [ratio]."""
    step_time_factor: float
    """Step time over that at full clock, 1 or more: only what computes gets slower."""
    binding: Binding


def activity_at(activity: float, clock_share: float) -> float:
    """Share of the step in which kernels compute once they take longer: (a/f) / (a/f + 1 - a)."""
    longer = activity / clock_share
    return longer / (longer + 1.0 - activity)


def step_time_factor(activity: float, clock_share: float) -> float:
    """Step time over that at full clock: what computes is stretched, what waits is not."""
    return activity / clock_share + 1.0 - activity


def accelerator_watt(power: PowerModel, activity: float, clock_share: float) -> float:
    """One accelerator with its share of the host, without cooling [watt].

    P = host + idle + (max - idle) a(f) f^3
    """
    idle, most = power.accelerator_idle_watt.value, power.accelerator_max_watt.value
    busy = activity_at(activity, clock_share) * clock_share**CLOCK_EXPONENT
    return float(power.host_watt.value + idle + (most - idle) * busy)


def inlet_clock_share(inlet_celsius: float | None) -> float:
    """Clock that a warm inlet leaves: the dynamic power falls by DERATING_PER_CELSIUS per degree above the limit."""
    if inlet_celsius is None or inlet_celsius <= INLET_LIMIT_CELSIUS:
        return 1.0
    left = 1.0 - DERATING_PER_CELSIUS * (inlet_celsius - INLET_LIMIT_CELSIUS)
    return float(max(max(left, 0.0) ** (1.0 / CLOCK_EXPONENT), LOWEST_CLOCK))


def capped_clock_share(power: PowerModel, activity: float, *, pue: float, count: int, cap_watt: float) -> float:
    """The highest clock at which `count` accelerators stay below a cap; the lowest there is where none does."""
    if pue * count * accelerator_watt(power, activity, 1.0) <= cap_watt:
        return 1.0
    low, high = LOWEST_CLOCK, 1.0
    for _ in range(50):
        middle = (low + high) / 2.0
        if pue * count * accelerator_watt(power, activity, middle) <= cap_watt:
            low = middle
        else:
            high = middle
    return low


def site_power(
    cluster: Cluster,
    system: System,
    *,
    activity: float,
    inlet_celsius: Mapping[str, float] | None = None,
) -> tuple[SitePower, ...]:
    """What each site draws while one job trains on all of it, and what its cap and its air do to the clock.

    Args:
        cluster: its sites, with PUE and cap
        system: the accelerator and node that the job runs on
        activity: share of the step in which kernels compute [ratio]
        inlet_celsius: inlet temperature per site; sites not named are cool enough

    Raises:
        RequestError: an activity outside 0..1, or a site that is not there
    """
    if not 0.0 <= activity <= 1.0:
        raise RequestError(Problem(where="activity", found=activity, accepted="a ratio from 0 to 1"))
    warm = dict(inlet_celsius or {})
    for name in warm:
        cluster.site(name)
    power = economics_of(system).power
    assert power is not None  # economics_of always has one
    sites = [site for site in cluster.sites if site.accelerator_count > 0]
    return tuple(_one_site(site, power, activity, warm.get(site.name)) for site in sites)


def _one_site(site: Site, power: PowerModel, activity: float, inlet_celsius: float | None) -> SitePower:
    count, pue = site.accelerator_count, site.pue
    it_watt = count * accelerator_watt(power, activity, 1.0)
    by_cap = 1.0
    cap = None if site.power_cap_watt is None else site.power_cap_watt.value
    if cap is not None:
        by_cap = capped_clock_share(power, activity, pue=pue.value, count=count, cap_watt=cap)
    by_air = inlet_clock_share(inlet_celsius)
    clock = min(by_cap, by_air)
    binding: Binding = "nothing" if clock >= 1.0 else "power-cap" if by_cap < by_air else "inlet-temperature"
    return SitePower(
        site=site.name,
        accelerator_count=count,
        it_watt=it_watt,
        facility_watt=_facility(power, activity, pue, count),
        cap_watt=cap,
        drawn_watt=pue.value * count * accelerator_watt(power, activity, clock),
        clock_share=clock,
        step_time_factor=step_time_factor(activity, clock),
        binding=binding,
    )


def _facility(power: PowerModel, activity: float, pue: Fact, count: int) -> Range:
    def at(end: Callable[[Fact], float]) -> float:
        idle, most, host = (
            end(fact) for fact in (power.accelerator_idle_watt, power.accelerator_max_watt, power.host_watt)
        )
        return count * end(pue) * (host + idle + (most - idle) * activity)

    return Range(low=at(lambda f: f.low), value=at(lambda f: f.value), high=at(lambda f: f.high))


@dataclass(frozen=True, kw_only=True, slots=True)
class Energy:
    """What a step and a token take, all sites together."""

    watt: float
    joule_per_step: float
    token_per_joule: float
    slowest_factor: float
    """Step time over that without throttling: a synchronous job runs at the slowest site's clock."""


def energy_of(sites: tuple[SitePower, ...], *, step_time_s: float, tokens_per_step: float) -> Energy:
    """Energy of a synchronous job over all its sites; a throttled site slows them all.

    Args:
        sites: from `site_power`
        step_time_s: at full clock [s]
        tokens_per_step: tokens of one optimizer step
    """
    slowest = max(site.step_time_factor for site in sites)
    watt = sum(site.drawn_watt for site in sites)
    joule = watt * step_time_s * slowest
    return Energy(watt=watt, joule_per_step=joule, token_per_joule=tokens_per_step / joule, slowest_factor=slowest)
