"""What do accelerators draw and cost while they train? One power model and one price, as ranges where unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakh.columns import Array
from lakh.evidence import Fact, exact
from lakh.perf.step import StepTable
from lakh.perf.system_of import System


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
    price_per_accelerator_s: Fact | None = None
    """What one accelerator costs, metered, host, network and power included [currency/second]."""
    currency: str | None = None
    """"RMB", "USD"; None without a price."""


_IDLE_SHARE = (0.1, 0.14, 0.22)
"""Idle power of an accelerator over its board power where no source states it: low, middle, high. The span of the six
accelerators of the catalogue that state both (S5000 and H200 0.10, GB300 up to 0.17, the highest B300 board 0.22)."""


def economics_of(system: System) -> Economics:
    """Power and price of a described system: its accelerator, its share of the node, its site, its price list."""
    chip, node = system.accelerator, system.node
    board = chip.board_power_watt
    idle = chip.idle_power_watt
    if idle is None:
        low, middle, high = _IDLE_SHARE
        idle = Fact(
            value=board.value * middle,
            low=board.low * low,
            high=board.high * high,
            unit="watt",
            status="estimate",
            source="10 to 22 % of the board power, as the accelerators of the catalogue that state both",
        )
    host = node.host_power_watt
    share = node.accelerator_count
    power = PowerModel(
        accelerator_idle_watt=idle,
        accelerator_max_watt=board,
        host_watt=replace(host, value=host.value / share, low=host.low / share, high=host.high / share),
        pue=exact(system.pue, "1", status="estimate", source=f"{system.cluster_name}: highest PUE of its sites"),
    )
    return Economics(power=power, price_per_accelerator_s=system.price_per_accelerator_s, currency=system.currency)


def activity_of(table: StepTable) -> Array:
    """Share of the step in which kernels compute, 0 to 1."""
    return (table.compute_s + table.optimizer_s) / table.step_time_s
