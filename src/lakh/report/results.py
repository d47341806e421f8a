"""What did a question find out? The results of `lakh.plan`, `lakh.scale` and `lakh.rehearse`, before any formatting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lakh.catalog import Accelerator, Claim, Model, Node
from lakh.evidence import Fact
from lakh.perf.flops import MfuConvention
from lakh.perf.predict import ErrorBar
from lakh.planner import Candidate, Explanation, Launch, Range, ScaleCurve, SearchResult
from lakh.spec.cluster import Cluster
from lakh.spec.job import Job, Objective

if TYPE_CHECKING:
    from lakh.claims import RehearsalOdds


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEstimate:
    """A whole run at the predicted speed, if nothing ever fails. Ranges: error bar and ranges of facts together."""

    tokens: float
    step_count: float
    train_time_s: Range
    power_watt: Range
    """Facility power of the accelerators in use."""
    energy_joule: Range
    energy_cost: Range | None
    """In `currency`; None where the cluster states no energy price."""
    rent: Range | None
    """All accelerators of the plan at the on-demand price, in `currency`; None where there is no price."""
    currency: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanResult:
    """The best layouts for one model on one cluster, and why."""

    model: Model
    cluster_name: str
    accelerator: Accelerator
    node: Node
    accelerator_count: int
    """Accelerators that the plan may use."""
    generation: str
    sequence_length: int
    global_batch_sequences: int
    objective: Objective
    search: SearchResult
    search_time_s: float
    explanation: Explanation
    error_bar: ErrorBar
    """Of the best layout's step time."""
    mfu: Mapping[MfuConvention, float]
    """Of the best layout, by convention."""
    run: RunEstimate | None
    """None where no tokens were asked for."""
    power_watt: Range
    launch: Launch | None
    evidence: Mapping[str, Fact]

    @property
    def best(self) -> Candidate:
        return self.search.best


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleBand:
    """The error bar of one point of a curve, and the run at that size."""

    accelerator_count: int
    tokens_per_s: Range
    mfu: Range
    inside_validated: bool
    power_watt: Range
    run: RunEstimate | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleResult:
    """A model on growing parts of one cluster."""

    model: Model
    cluster_name: str
    accelerator: Accelerator
    generation: str
    sequence_length: int
    global_batch_sequences: int
    """At the largest size."""
    accelerator_count: int
    curve: ScaleCurve
    bands: tuple[ScaleBand, ...]
    """One per point of the curve, in its order."""
    mfu_factor: float
    """What turns the curve's causal MFU into `mfu_convention`."""
    mfu_convention: MfuConvention
    evidence: Mapping[str, Fact]


Verdict = Literal["below", "within", "above", "not-comparable"]
"""Where the claim lies against the prediction's band: "below" says that the prediction stays below the claim."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One way to read an MFU claim: which convention, over which peak."""

    convention: MfuConvention
    precision: str
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimComparison:
    """A claim beside what the model predicts for the same quantity."""

    claim: Claim
    job_name: str | None
    accelerator_count: int | None
    """Size at which the prediction was made; None where nothing was predicted."""
    predicted: Range | None
    verdict: Verdict
    reason: str
    readings: tuple[Reading, ...] = ()
    """For MFU: the same step in every convention, as the claim does not say which it means."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """A number of the description that nobody has published: a range."""

    name: str
    fact: Fact
    place_count: int
    """Places of the description that share it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnknownEffect:
    """What one unknown does to the step time of a layout, everything else as assumed."""

    name: str
    kind: str
    """The name without the place: "site links: latency" of every link between two sites."""
    low_text: str
    high_text: str
    step_time_ratio_at_low: float
    """Step time with the unknown at its low end over the assumed one."""
    step_time_ratio_at_high: float

    @property
    def spread(self) -> float:
        """Width of the step time between the ends, over the assumed step time."""
        ends = (self.step_time_ratio_at_low, self.step_time_ratio_at_high, 1.0)
        return max(ends) - min(ends)


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphCheck:
    """One step with every flow on the links it crosses, links between sites included."""

    case: str
    """Which network: "all at one site", "as described"."""
    step_time_s: float
    exposed_s: Mapping[str, float]
    """Visible traffic by group: tp, cp, ep, pp, dp."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRehearsal:
    """One job of a scenario: its best layouts on the whole cluster, and its curves."""

    job: Job
    plan: PlanResult
    curve: ScaleResult
    """The same run on every size: its own global batch (strong scaling)."""
    weak: ScaleResult
    """The batch grows with the accelerators, from the job's own at the smallest size (weak scaling)."""
    on_graph: tuple[GraphCheck, ...]
    """The plan's best layout again, on the graph of the network; empty where the network cannot be drawn."""
    effects: tuple[UnknownEffect, ...]
    """Unknowns that move the step time, the strongest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """A rehearsed scenario."""

    name: str
    description: str
    cluster: Cluster
    jobs: tuple[JobRehearsal, ...]
    claims: tuple[ClaimComparison, ...]
    odds: RehearsalOdds | None
    """Odds of the vendor's claims on several fabrics; None where the scenario names none of them."""
    unknowns: tuple[Unknown, ...]
    wall_time_s: float
    notes: tuple[str, ...] = ()
    """What the scenario and its jobs ask for that a rehearsal does not use."""
