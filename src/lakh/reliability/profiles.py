"""How often does what fail, and who counted? Failure profiles, read from `catalog/failures/`.

A profile holds failure modes with their rates, the definition of failure they were counted under, and a shape: how
bursty the faults are, how long repairs take, how unequal nodes are. Rates under different definitions differ several
times over on one cluster (RSC-1: 6.5 and 23.7 per 1000 node-days), so a profile never travels without its definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

import yaml

from lakh import catalog
from lakh.errors import Problem, SpecError, UnknownNameError, list_names, nearest_hint
from lakh.evidence import STATUSES, Fact, Status
from lakh.reliability.counts import negative_binomial_probabilities, poisson_mean_bounds
from lakh.units import UnitError, parse_quantity

Component = Literal[
    "accelerator",
    "hbm",
    "sdc",
    "link",
    "transceiver",
    "nic",
    "switch",
    "network",
    "host",
    "power",
    "cooling",
    "storage",
    "software",
    "unknown",
    "planned",
]
"""What fails. link: the scale-up link or one cable; sdc: silent data corruption; network: where the source does not
say which part; planned: a stop that somebody chose."""

Signal = Literal["crash", "hang", "silent", "planned"]
"""How the job notices. crash: an error or a dead process; hang: nothing moves; silent: wrong numbers; planned: told."""

Scope = Literal["node", "block", "row", "job"]
"""What one event takes: one node, the nodes behind one leaf switch, one row's, or the job's processes alone."""

Counts = Literal["interruptions", "faults"]
"""interruptions: each stop of a job once; faults: each node's fault, several at one instant counted severally."""

Gaps = Literal["bursty", "exponential", "even"]
"""bursty: a rate that changes from episode to episode, as observed; exponential: a constant rate, as Young, Daly and
most formulas assume; even: always the same gap, as (M - R) / M assumes."""

Clock = Literal["wall", "uptime"]
"""What the time between failures is counted on: all time, or only the time the job is up."""

GAPS: tuple[str, ...] = get_args(Gaps)
CLOCKS: tuple[str, ...] = get_args(Clock)
COMPONENTS: tuple[str, ...] = get_args(Component)
SIGNALS: tuple[str, ...] = get_args(Signal)
SCOPES: tuple[str, ...] = get_args(Scope)
COUNTS: tuple[str, ...] = get_args(Counts)

PER_ACCELERATOR: frozenset[str] = frozenset({"accelerator", "hbm", "sdc", "link", "transceiver", "nic"})
"""Components of which a node has as many as accelerators: their rate per node follows that number."""

_PER_1000_NODE_DAYS = 1.0 / (1000.0 * 86_400.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureMode:
    """One thing that goes wrong, and how often."""

    name: str
    component: Component
    rate_per_node_s: Fact
    """Events per node of the profile's size and second; the range is the source's, or of the count [1/second]."""
    signal: Signal = "crash"
    scope: Scope = "node"
    process_restart_share: Fact
    """Share of the events after which the same node goes on, once its processes are started anew [ratio]."""
    repair_mean_s: float | None = None
    """Mean time until a node taken out serves again; None: the shape's [second]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SlowMode:
    """Something that slows the synchronous job while it lasts, without stopping it."""

    name: str
    component: Component
    rate_per_node_s: Fact
    """Begins per node and second [1/second]."""
    duration_s: Fact
    """Mean time it lasts when nobody acts [second]."""
    throughput: Fact
    """The job's rate while it lasts, over its undisturbed rate [ratio]."""
    evictable: bool
    """True where taking the node out ends it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Burst:
    """How faults bunch: a fleet-wide rate that changes from episode to episode, and faults that come together.

    The rate is multiplied by a gamma variable of mean 1 and shape `episode_shape`, drawn anew every `episode_s`. Over a
    gap much shorter than an episode this gives Lomax gaps with CV^2 = (a + 1)/(a - 1) for a > 1.
    """

    episode_shape: float
    """Gamma shape a; the multiplier's variance is 1/a. Infinite: a constant rate [1]."""
    episode_s: float
    simultaneous_share: float
    """Share of faults that start at the same instant as an earlier one [ratio]."""
    common_share: Fact
    """Share of the multiplier's variance common to the whole cluster; the rest averages out over groups [ratio]."""
    group_node_count: int
    """Nodes of one group: the size of the fleet that the shape was fitted on."""

    def multiplier_variance(self, node_count: float) -> float:
        """Variance of the rate multiplier of a fleet of `node_count` nodes: v (c + (1 - c) min(1, g/n))."""
        c = self.common_share.value
        return (c + (1.0 - c) * min(1.0, self.group_node_count / node_count)) / self.episode_shape


@dataclass(frozen=True, kw_only=True, slots=True)
class Repair:
    """How long a node stays away: Weibull with shape below 1, a heavy tail."""

    mean_s: float
    weibull_shape: float

    @property
    def median_s(self) -> float:
        k = self.weibull_shape
        return float(self.mean_s / math.gamma(1.0 + 1.0 / k) * math.log(2.0) ** (1.0 / k))


@dataclass(frozen=True, kw_only=True, slots=True)
class Lemons:
    """How unequal nodes are: each node's rate is the mean times a gamma variable of mean 1 and this shape."""

    frailty_shape: float

    def fault_share_of_worst(self, *, node_share: float, mean_count: float) -> float:
        """Share of all faults on the worst nodes, ranked by what was counted: counts are negative binomial.

        Args:
            node_share: share of nodes taken as the worst, 0 to 1
            mean_count: faults per node in the window they were counted in
        """
        left, taken = node_share, 0.0
        for count, probability in self._counts_from_the_worst(mean_count):
            part = min(left, probability)
            taken += part * count
            left -= part
            if left <= 0.0:
                break
        return taken / mean_count

    def rate_after_eviction(self, *, node_share: float, mean_count: float) -> float:
        """Fault rate per node after the worst are replaced by average ones, over the rate before.

        The next rate of a node that had c faults is (k + c) / (k + m) times the mean (gamma prior, Poisson counts), so
        part of a bad record is bad luck and does not repeat.

        Args:
            node_share: share of nodes replaced, 0 to 1
            mean_count: faults per node in the window they were judged by, m
        """
        k, left, factor = self.frailty_shape, node_share, 1.0
        for count, probability in self._counts_from_the_worst(mean_count):
            part = min(left, probability)
            factor -= part * ((k + count) / (k + mean_count) - 1.0)
            left -= part
            if left <= 0.0:
                break
        return factor

    def _counts_from_the_worst(self, mean_count: float) -> Iterable[tuple[int, float]]:
        probabilities = negative_binomial_probabilities(mean=mean_count, shape=self.frailty_shape)
        for count in range(len(probabilities) - 1, -1, -1):
            yield count, float(probabilities[count])


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyLife:
    """Infant mortality: the rate is `factor` times its final value at first and decays over `decay_s`."""

    factor: Fact
    decay_s: float

    def mean_factor(self, *, age_s: float, duration_s: float) -> float:
        """Mean of 1 + (f - 1) exp(-age/decay) over a run that starts at `age_s` of the cluster's life."""
        start = math.exp(-age_s / self.decay_s)
        mean = start * self.decay_s / duration_s * -math.expm1(-duration_s / self.decay_s)
        return 1.0 + (self.factor.value - 1.0) * mean


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What rates alone do not say: bursts, repairs, lemons, early life, correlated events and slow-downs."""

    name: str
    source: str
    burst: Burst
    repair: Repair
    lemons: Lemons
    early_life: EarlyLife
    hang_share: Fact
    """Share of crashes that show as a hang instead of an error [ratio]."""
    correlated: tuple[FailureMode, ...]
    """Events that take more than a node; their rate is per block or row and second."""
    slow: tuple[SlowMode, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureProfile:
    """Failure modes counted on one fleet under one definition."""

    name: str
    aliases: tuple[str, ...]
    title: str
    definition: str
    """What was counted as a failure."""
    counts: Counts
    accelerators_per_node: int
    node_count: int
    """Nodes of the job or fleet that was counted."""
    status: Status
    source: str
    note: str
    growth_exponent: Fact
    """Above `node_count` the rate per node grows with size to this power [1]."""
    modes: tuple[FailureMode, ...]
    shape: Shape

    @property
    def rate_per_node_s(self) -> float:
        """All unplanned events per node and second at the profile's own size."""
        return sum(mode.rate_per_node_s.value for mode in self.modes if mode.signal != "planned")

    def growth_factor(self, node_count: float, *, exponent: float | None = None) -> float:
        """Rate per node at `node_count` nodes over that at the profile's own size; 1 for smaller jobs.

        The growth is observed upwards only, and between one or two pairs of sizes: a prior, not a law.
        """
        beta = self.growth_exponent.value if exponent is None else exponent
        return float(max(1.0, node_count / self.node_count) ** beta)

    def mode_rate_per_node_s(self, mode: FailureMode, *, accelerators_per_node: int, node_count: float) -> float:
        """Rate of one mode on nodes of another width in a job of another size [1/s].

        Args:
            mode: one of this profile's modes
            accelerators_per_node: width of the nodes asked about
            node_count: nodes of the job asked about

        A planned stop is of the whole job: as many a day at any size. Everything else grows with the nodes.
        """
        width = accelerators_per_node / self.accelerators_per_node if mode.component in PER_ACCELERATOR else 1.0
        if mode.signal == "planned":
            return mode.rate_per_node_s.value * self.node_count / node_count
        return mode.rate_per_node_s.value * width * self.growth_factor(node_count)

    def interruptions_per_s(self, *, node_count: float, accelerators_per_node: int | None = None) -> float:
        """Unplanned stops of a job of that size, each once [1/s]."""
        width = accelerators_per_node or self.accelerators_per_node
        rate = sum(
            self.mode_rate_per_node_s(mode, accelerators_per_node=width, node_count=node_count)
            for mode in self.modes
            if mode.signal != "planned"
        )
        return rate * node_count * self.stops_per_event

    @property
    def stops_per_event(self) -> float:
        """Stops of a job per event of the modes: below 1 where faults at one instant were counted severally."""
        return 1.0 - self.shape.burst.simultaneous_share if self.counts == "faults" else 1.0

    def job_mtbf_s(self, *, node_count: float, accelerators_per_node: int | None = None) -> float:
        """Mean time between unplanned stops of a job of that size [s]."""
        rate = self.interruptions_per_s(node_count=node_count, accelerators_per_node=accelerators_per_node)
        return math.inf if rate == 0 else 1.0 / rate

    def with_rates_scaled(self, factor: float) -> FailureProfile:
        """The same profile with every failure rate times `factor`; slow-downs too."""

        def scaled(rate: Fact) -> Fact:
            return replace(rate, value=rate.value * factor, low=rate.low * factor, high=rate.high * factor)

        modes = tuple(replace(mode, rate_per_node_s=scaled(mode.rate_per_node_s)) for mode in self.modes)
        correlated = tuple(replace(m, rate_per_node_s=scaled(m.rate_per_node_s)) for m in self.shape.correlated)
        slow = tuple(replace(m, rate_per_node_s=scaled(m.rate_per_node_s)) for m in self.shape.slow)
        return replace(self, modes=modes, shape=replace(self.shape, correlated=correlated, slow=slow))

    def with_component_mtbf(
        self, mtbf_s: Mapping[str, Fact], *, per_node: Mapping[str, float], where: str
    ) -> FailureProfile:
        """The same profile with the modes of some components replaced by a stated mean time between failures.

        Args:
            mtbf_s: mean time between failures of one such component, by component [second]
            per_node: such components per node; a node has one of what is not named
            where: file or object the values come from, for the source

        The modes of a component keep their proportions; a component that has no mode here gets one. Modes of "network",
        where the source did not say which part, give way to stated links or switches.
        """
        stated_network = {"link", "switch", "transceiver"} & set(mtbf_s)
        modes = [mode for mode in self.modes if not (stated_network and mode.component == "network")]
        for component, fact in mtbf_s.items():
            count = per_node.get(component, 1.0)
            value, low, high = count / fact.value, count / fact.high, count / fact.low
            held = [mode for mode in modes if mode.component == component and mode.signal != "planned"]
            total = sum(mode.rate_per_node_s.value for mode in held)
            status, source = fact.status, fact.source or where
            if total <= 0.0:
                rate = Fact(value=value, low=low, high=high, unit="1/second", status=status, source=source)
                share = Fact(value=0.0, low=0.0, high=1.0, unit="ratio", status="estimate", source="not stated")
                modes.append(
                    FailureMode(
                        name=component,
                        component=cast(Component, component),
                        rate_per_node_s=rate,
                        signal="silent" if component == "sdc" else "crash",
                        process_restart_share=share,
                    )
                )
                continue
            for mode in held:
                part = mode.rate_per_node_s.value / total
                rate = Fact(
                    value=value * part, low=low * part, high=high * part, unit="1/second", status=status, source=source
                )
                modes[modes.index(mode)] = replace(mode, rate_per_node_s=rate)
        return replace(self, modes=tuple(modes))


# --- reading ----------------------------------------------------------------------------------------------------

FOLDER = Path(catalog.__file__).parent / "failures"
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times quicker, where it is built in
T = TypeVar("T")

_MODE_FIELDS = ("name", "component", "count", "rate", "signal", "scope", "process_restart_share", "repair_mean", "note")
_SLOW_FIELDS = ("name", "component", "rate", "duration", "throughput", "evictable", "note")
_PROFILE_FIELDS = (
    "name",
    "aliases",
    "title",
    "definition",
    "counts",
    "accelerators_per_node",
    "node_count",
    "exposure_node_days",
    "status",
    "source",
    "note",
    "growth_exponent",
    "process_restart_share",
    "modes",
    "shape",
)
_SHAPE_FIELDS = (
    "name",
    "status",
    "source",
    "note",
    "burst",
    "repair",
    "lemons",
    "early_life",
    "hang_share",
    "correlated",
    "slow",
)
_FACT_FIELDS = ("value", "low", "high", "status", "source", "note")


class _Reader:
    """One file being read: hands out fields, and reports everything that is wrong with them at once."""

    def __init__(self, where: str, raw: object) -> None:
        self.where, self.problems = where, list[Problem]()
        self.raw: Mapping[str, Any] = {}
        if isinstance(raw, Mapping):
            self.raw = raw
        else:
            self.refuse("", raw, "a mapping of fields")
        self.source = str(self.raw.get("source", ""))
        self.status: Status = self.choice(self.raw, "", "status", STATUSES, "estimate")

    def refuse(self, path: str, found: object, accepted: str, hint: str = "") -> None:
        self.problems.append(
            Problem(where=f"{self.where}: {path}" if path else self.where, found=found, accepted=accepted, hint=hint)
        )

    def known(self, raw: Mapping[str, Any], path: str, fields: tuple[str, ...]) -> None:
        for key in raw:
            if key not in fields:
                name = f"{path}.{key}" if path else str(key)
                self.refuse(name, raw[key], list_names(fields, most=40), nearest_hint(key, fields))

    def choice(self, raw: Mapping[str, Any], path: str, key: str, accepted: tuple[Any, ...], default: Any) -> Any:
        value = raw.get(key, default)
        if value not in accepted:
            self.refuse(
                f"{path}.{key}".lstrip("."), value, list_names(accepted, most=40), nearest_hint(value, accepted)
            )
            return default if default is not None else accepted[0]
        return value

    def text(self, raw: Mapping[str, Any], path: str, key: str, default: str | None = None) -> str:
        value = raw.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            self.refuse(f"{path}.{key}".lstrip("."), value, "a text")
            return ""
        return value

    def whole(self, raw: Mapping[str, Any], path: str, key: str) -> int:
        value = raw.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self.refuse(f"{path}.{key}".lstrip("."), value, "a whole number of 1 or more")
            return 1
        return value

    def mapping(self, raw: Mapping[str, Any], path: str, key: str, fields: tuple[str, ...]) -> Mapping[str, Any]:
        value = raw.get(key)
        if not isinstance(value, Mapping):
            self.refuse(f"{path}.{key}".lstrip("."), value, f"a mapping with {list_names(fields, most=40)}")
            return {}
        self.known(value, key, fields)
        return value

    def items(self, raw: Mapping[str, Any], key: str) -> list[tuple[str, Mapping[str, Any]]]:
        value = raw.get(key, [])
        if not isinstance(value, list):
            self.refuse(key, value, "a list")
            return []
        found = []
        for index, item in enumerate(value):
            if isinstance(item, Mapping):
                found.append((f"{key}[{index}]", item))
            else:
                self.refuse(f"{key}[{index}]", item, "a mapping of fields")
        return found

    def number(self, raw: object, path: str, unit: str, *, low: float = 0.0, high: float = math.inf) -> float:
        try:
            value = parse_quantity(raw, unit)  # type: ignore[arg-type]  # it refuses what it cannot read
        except UnitError as error:
            self.refuse(path, error.found, error.accepted)
            return max(low, 0.0) if math.isinf(high) else (low + high) / 2
        if not low <= value <= high:
            bound = f"{low:g} or more" if math.isinf(high) else f"{low:g} to {high:g}"
            self.refuse(path, raw, f"a value of {bound}")
            return low if math.isinf(high) else (low + high) / 2
        return value

    def fact(self, raw: object, path: str, unit: str, *, low: float = 0.0, high: float = math.inf) -> Fact:
        """A bare quantity, or {value, low, high, status, source, note}; `low` and `high` state what is not known."""
        long_form: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {"value": raw}
        self.known(long_form, path, _FACT_FIELDS)
        value = self.number(long_form.get("value"), f"{path}.value", unit, low=low, high=high)
        ends = [
            self.number(long_form[key], f"{path}.{key}", unit, low=low, high=high) if key in long_form else value
            for key in ("low", "high")
        ]
        if not ends[0] <= value <= ends[1]:
            self.refuse(path, dict(long_form), "low <= value <= high")
            ends = [value, value]
        source = str(long_form.get("source", self.source))
        if not source.strip():
            self.refuse(f"{path}.source", None, "who says so")
        return Fact(
            value=value,
            low=ends[0],
            high=ends[1],
            unit=unit,
            status=self.choice(long_form, path, "status", STATUSES, self.status),
            source=source,
            note=str(long_form.get("note", "")),
        )

    def finish(self) -> None:
        if self.problems:
            raise SpecError(self.problems)


def _times(fact: Fact, factor: float, unit: str) -> Fact:
    return replace(fact, value=fact.value * factor, low=fact.low * factor, high=fact.high * factor, unit=unit)


def _count_rate(reader: _Reader, raw: Mapping[str, Any], path: str, exposure_node_s: float) -> Fact:
    """A rate from a count, with its 90 % interval."""
    count = reader.number(raw["count"], f"{path}.count", "1")
    low, high = poisson_mean_bounds(count)
    return Fact(
        value=count / exposure_node_s,
        low=low / exposure_node_s,
        high=high / exposure_node_s,
        unit="1/second",
        status=reader.status,
        source=reader.source,
        note=f"{count:g} counted",
    )


def _mode(
    reader: _Reader, path: str, raw: Mapping[str, Any], *, exposure_node_s: float | None, restart_share: Fact | None
) -> FailureMode:
    reader.known(raw, path, _MODE_FIELDS)
    if ("count" in raw) == ("rate" in raw):
        reader.refuse(path, sorted(raw), "either count or rate (events per 1000 node-days)")
        rate = Fact(value=0.0, low=0.0, high=0.0, unit="1/second", status="estimate", source="")
    elif "count" in raw and exposure_node_s is None:
        reader.refuse(f"{path}.count", raw["count"], "a rate; a count needs exposure_node_days in the file")
        rate = Fact(value=0.0, low=0.0, high=0.0, unit="1/second", status="estimate", source="")
    elif "count" in raw:
        rate = _count_rate(reader, raw, path, cast(float, exposure_node_s))
    else:
        rate = _times(reader.fact(raw["rate"], f"{path}.rate", "1"), _PER_1000_NODE_DAYS, "1/second")
    share = restart_share
    if "process_restart_share" in raw or share is None:
        stated = raw.get("process_restart_share", 0.0)
        share = reader.fact(stated, f"{path}.process_restart_share", "ratio", high=1.0)
    repair = raw.get("repair_mean")
    return FailureMode(
        name=reader.text(raw, path, "name"),
        component=reader.choice(raw, path, "component", COMPONENTS, None),
        rate_per_node_s=rate,
        signal=reader.choice(raw, path, "signal", SIGNALS, "crash"),
        scope=reader.choice(raw, path, "scope", SCOPES, "node"),
        process_restart_share=share,
        repair_mean_s=None if repair is None else reader.number(repair, f"{path}.repair_mean", "second"),
    )


def _slow(reader: _Reader, path: str, raw: Mapping[str, Any]) -> SlowMode:
    reader.known(raw, path, _SLOW_FIELDS)
    rate = reader.fact(raw.get("rate"), f"{path}.rate", "1")
    return SlowMode(
        name=reader.text(raw, path, "name"),
        component=reader.choice(raw, path, "component", COMPONENTS, None),
        rate_per_node_s=_times(rate, _PER_1000_NODE_DAYS, "1/second"),
        duration_s=reader.fact(raw.get("duration"), f"{path}.duration", "second"),
        throughput=reader.fact(raw.get("throughput"), f"{path}.throughput", "ratio", high=1.0),
        evictable=reader.choice(raw, path, "evictable", (True, False), False),
    )


def read_shape(raw: object, *, where: str) -> Shape:
    """Read one shape file.

    Raises:
        SpecError: every field that is wrong
    """
    reader = _Reader(where, raw)
    reader.known(reader.raw, "", _SHAPE_FIELDS)
    burst_fields = ("episode_shape", "episode", "simultaneous_share", "common_share", "group_node_count")
    burst = reader.mapping(reader.raw, "", "burst", burst_fields)
    repair = reader.mapping(reader.raw, "", "repair", ("mean", "weibull_shape"))
    lemons = reader.mapping(reader.raw, "", "lemons", ("frailty_shape",))
    early = reader.mapping(reader.raw, "", "early_life", ("factor", "decay"))
    shape = Shape(
        name=reader.text(reader.raw, "", "name"),
        source=reader.text(reader.raw, "", "source"),
        burst=Burst(
            episode_shape=reader.number(burst.get("episode_shape"), "burst.episode_shape", "1", low=0.05),
            episode_s=reader.number(burst.get("episode"), "burst.episode", "second", low=1.0),
            simultaneous_share=reader.number(
                burst.get("simultaneous_share"), "burst.simultaneous_share", "ratio", high=0.99
            ),
            common_share=reader.fact(burst.get("common_share"), "burst.common_share", "ratio", high=1.0),
            group_node_count=reader.whole(burst, "burst", "group_node_count"),
        ),
        repair=Repair(
            mean_s=reader.number(repair.get("mean"), "repair.mean", "second", low=1.0),
            weibull_shape=reader.number(repair.get("weibull_shape"), "repair.weibull_shape", "1", low=0.1, high=10.0),
        ),
        lemons=Lemons(frailty_shape=reader.number(lemons.get("frailty_shape"), "lemons.frailty_shape", "1", low=0.01)),
        early_life=EarlyLife(
            factor=reader.fact(early.get("factor"), "early_life.factor", "1", low=1.0),
            decay_s=reader.number(early.get("decay"), "early_life.decay", "second", low=1.0),
        ),
        hang_share=reader.fact(reader.raw.get("hang_share"), "hang_share", "ratio", high=1.0),
        correlated=tuple(
            _mode(reader, path, item, exposure_node_s=None, restart_share=None)
            for path, item in reader.items(reader.raw, "correlated")
        ),
        slow=tuple(_slow(reader, path, item) for path, item in reader.items(reader.raw, "slow")),
    )
    reader.finish()
    return shape


def read_profile(raw: object, *, where: str) -> FailureProfile:
    """Read one profile file; it names one of the shapes in the catalogue.

    Raises:
        SpecError: every field that is wrong
    """
    reader = _Reader(where, raw)
    reader.known(reader.raw, "", _PROFILE_FIELDS)
    exposure = reader.raw.get("exposure_node_days")
    exposure_s = None if exposure is None else reader.number(exposure, "exposure_node_days", "1", low=1.0) * 86_400.0
    restart_share = reader.fact(reader.raw.get("process_restart_share"), "process_restart_share", "ratio", high=1.0)
    modes = tuple(
        _mode(reader, path, item, exposure_node_s=exposure_s, restart_share=restart_share)
        for path, item in reader.items(reader.raw, "modes")
    )
    if not modes:
        reader.refuse("modes", reader.raw.get("modes"), "one failure mode or more")
    names = tuple(shape.name for shape in failure_shapes())
    shape_name = reader.choice(reader.raw, "", "shape", names, names[0])
    profile = FailureProfile(
        name=reader.text(reader.raw, "", "name"),
        aliases=tuple(str(alias) for alias in reader.raw.get("aliases", ())),
        title=reader.text(reader.raw, "", "title"),
        definition=reader.text(reader.raw, "", "definition"),
        counts=reader.choice(reader.raw, "", "counts", COUNTS, None),
        accelerators_per_node=reader.whole(reader.raw, "", "accelerators_per_node"),
        node_count=reader.whole(reader.raw, "", "node_count"),
        status=reader.status,
        source=reader.text(reader.raw, "", "source"),
        note=reader.text(reader.raw, "", "note", ""),
        growth_exponent=reader.fact(reader.raw.get("growth_exponent"), "growth_exponent", "1", high=3.0),
        modes=modes,
        shape=next(shape for shape in failure_shapes() if shape.name == shape_name),
    )
    reader.finish()
    return profile


def read_profile_file(path: Path) -> FailureProfile:
    """Read a profile from a file of one's own.

    Raises:
        SpecError: the file is not there, is not YAML, or a field is wrong
    """
    try:
        raw = yaml.load(path.read_bytes(), Loader=_Loader)
    except OSError as error:
        raise SpecError(Problem(where=str(path), found=error.strerror, accepted="a readable file")) from None
    except yaml.YAMLError as error:
        raise SpecError(Problem(where=str(path), found=str(error).splitlines()[0], accepted="YAML")) from None
    return read_profile(raw, where=path.name)


def _read_folder(folder: Path, read: Callable[..., T]) -> tuple[T, ...]:
    return tuple(
        read(yaml.load(path.read_bytes(), Loader=_Loader), where=f"failures/{folder.name}/{path.name}")
        for path in sorted(folder.glob("*.yaml"))
    )


@cache
def failure_shapes() -> tuple[Shape, ...]:
    """All shapes of the catalogue, by name."""
    return _read_folder(FOLDER / "shapes", read_shape)


@cache
def failure_profiles() -> tuple[FailureProfile, ...]:
    """All profiles of the catalogue, by name."""
    return _read_folder(FOLDER / "profiles", read_profile)


def failure_profile(name: str, *, where: str = "") -> FailureProfile:
    """The profile of that name or alias, upper and lower case alike.

    Args:
        name: of the profile
        where: file and field that name it, for the error

    Raises:
        UnknownNameError: no profile has that name; says the nearest one
    """
    for profile in failure_profiles():
        if name.strip().casefold() in (profile.name.casefold(), *(alias.casefold() for alias in profile.aliases)):
            return profile
    raise UnknownNameError("failure profile", name, tuple(one.name for one in failure_profiles()), where=where)
