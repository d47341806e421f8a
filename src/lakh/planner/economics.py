"""What do accelerators draw and cost while they train? One power model and one price, as ranges where unknown."""

from __future__ import annotations

from dataclasses import dataclass

from lakh.columns import Array
from lakh.evidence import Fact
from lakh.perf.step import StepTable

SECONDS_PER_HOUR = 3600.0
JOULE_PER_KWH = 3.6e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A value that may not be known better than between two bounds."""

    low: float
    value: float
    high: float

    def times(self, factor: float) -> Range:
        return Range(low=self.low * factor, value=self.value * factor, high=self.high * factor)


def range_of(fact: Fact) -> Range:
    return Range(low=fact.low, value=fact.value, high=fact.high)


@dataclass(frozen=True, kw_only=True, slots=True)
class PowerModel:
    """Power of one accelerator with its share of everything around it [watt].

        P(activity) = PUE x (host + idle + (max - idle) x activity)

    Activity is the share of the step in which kernels compute; a device that waits for a transfer, a bubble or
    the host is taken as idle. Linear in between: a stated simplification.
    """

    accelerator_idle_watt: Fact
    accelerator_max_watt: Fact
    host_watt: Fact
    """Host, network and storage, per accelerator."""
    pue: Fact
    """Power usage effectiveness: facility power over IT power, 1 or more."""

    def watt(self, activity: Array) -> Array:
        """Middle of the range, per accelerator, facility included."""
        idle, most = self.accelerator_idle_watt.value, self.accelerator_max_watt.value
        return self.pue.value * (self.host_watt.value + idle + (most - idle) * activity)

    def watt_range(self, activity: float) -> Range:
        """The same with every bound of every fact at once, low ones and high ones together."""

        def at(idle: float, most: float, host: float, pue: float) -> float:
            return pue * (host + idle + (most - idle) * activity)

        facts = (self.accelerator_idle_watt, self.accelerator_max_watt, self.host_watt, self.pue)
        return Range(
            low=at(*(fact.low for fact in facts)),
            value=at(*(fact.value for fact in facts)),
            high=at(*(fact.high for fact in facts)),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Economics:
    """Power and price of one accelerator; None where nobody has said."""

    power: PowerModel | None = None
    usd_per_accelerator_hour: Fact | None = None
    """What an accelerator costs per hour, host, network and power included."""


def activity_of(table: StepTable) -> Array:
    """Share of the step in which kernels compute, 0 to 1."""
    return (table.compute_s + table.optimizer_s) / table.step_time_s
