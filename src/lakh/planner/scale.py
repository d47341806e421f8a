"""What happens from one node to the whole cluster? Throughput, MFU, scaling efficiency, and what bends the curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from lakh.errors import InfeasibleError, Problem, RequestError, list_names, nearest_hint
from lakh.fabric.closed_form import CollectiveModel
from lakh.planner.economics import Economics, Range, range_of
from lakh.planner.explain import PART_WORDS, shortfall, step_parts_s
from lakh.planner.search import Candidate, search
from lakh.planner.space import PlanRequest, SearchOptions

Scaling = Literal["weak", "strong"]
"""weak: the global batch grows with the accelerators; strong: it stays as it is."""

SCALINGS: tuple[str, ...] = get_args(Scaling)

WEAK_BATCH_SLACK = 0.05
"""Share by which a weak-scaling batch may move so that every accelerator has work, unless the request says more."""

_SAME_BEND = 0.005
"""A part whose share of the step grew by less than this does not bend a curve."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalePoint:
    """One size of the cluster."""

    accelerator_count: int
    """Accelerators of the cluster at this size; the layout may leave some unused."""
    candidate: Candidate
    tokens_per_s: float
    tokens_per_s_per_accelerator: float
    """Over all accelerators of this size, unused ones included."""
    mfu: float
    """Causal convention, over all accelerators of this size."""
    scaling_efficiency: float
    """Tokens per second per accelerator over that at the base, 0 to 1 or a little more."""
    part_share: dict[str, float]
    """Share of the step by part (PART_WORDS); they add up to 1."""
    train_time_s: float | None
    """Time for the asked tokens if nothing ever fails."""
    power_watt: Range | None
    """Facility power of the accelerators in use."""
    energy_joule: Range | None
    """For the asked tokens."""
    cost: Range | None
    """For the asked tokens, all accelerators of this size paid [`Economics.currency`]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedSize:
    """A size at which nothing could be planned."""

    accelerator_count: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Bend:
    """The part of the step whose share grew most between two sizes."""

    from_count: int
    to_count: int
    part: str
    from_share: float
    to_share: float
    efficiency_change: float
    """Scaling efficiency at the larger size minus that at the smaller one."""

    @property
    def text(self) -> str:
        return (
            f"from {self.from_count:,} to {self.to_count:,} accelerators {PART_WORDS[self.part]} grows from "
            f"{self.from_share:.1%} to {self.to_share:.1%} of the step "
            f"(scaling efficiency {self.efficiency_change * 100:+.1f} points)"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleCurve:
    """A model on growing sizes of one system."""

    scaling: Scaling
    replanned: bool
    """True where each size has its own best layout; False where one layout grows in dp alone."""
    base_count: int
    """The size that scaling efficiency is relative to."""
    points: tuple[ScalePoint, ...]
    skipped: tuple[SkippedSize, ...]
    bends: tuple[Bend, ...]
    """What bends the curve, one entry per step between neighbouring sizes at which a part's share grew."""
    overall: Bend | None
    """The same between the base and the largest size; None where no part's share grew."""


def default_sizes(accelerators_per_node: int, most: int) -> tuple[int, ...]:
    """One node, its doublings, and the whole cluster."""
    sizes = []
    size = accelerators_per_node
    while size < most:
        sizes.append(size)
        size *= 2
    return (*sizes, most)


def scale(
    request: PlanRequest,
    *,
    sizes: Sequence[int],
    scaling: Scaling = "weak",
    replan: bool = True,
    base_count: int | None = None,
    train_tokens: float | None = None,
    economics: Economics | None = None,
    worker_count: int = 1,
    network: CollectiveModel | None = None,
) -> ScaleCurve:
    """The curve of a model over sizes of its cluster.

    Args:
        request: the reference: its accelerators and global batch fix the sequences per accelerator of weak scaling
        sizes: accelerators at each point; order and repeats do not matter
        replan: best layout at each size; else the layout of the largest size that fits, grown in dp alone
        base_count: size that efficiency is relative to; the smallest that can be planned where None
        train_tokens: tokens to train, for time, energy and cost

    Raises:
        RequestError: wrong arguments
        InfeasibleError: no size can be planned
    """
    _check(sizes, scaling, base_count, train_tokens)
    ordered = sorted(set(sizes))
    planned: dict[int, Candidate] = {}
    skipped: list[SkippedSize] = []
    family: SearchOptions | None = None
    for count in reversed(ordered):
        sized = _sized(request, count, scaling)
        if not replan and family is not None:
            sized = replace(sized, options=family)
        try:
            found = search(sized, top_count=1, economics=economics, worker_count=worker_count, network=network)
        except InfeasibleError:
            skipped.append(SkippedSize(accelerator_count=count, reason=shortfall(sized).text))
            continue
        except RequestError as error:
            skipped.append(SkippedSize(accelerator_count=count, reason=str(error)))
            continue
        planned[count] = found.best
        if family is None:
            family = _family(found.best, sized.options)
    counts = sorted(planned)
    if not counts:
        raise InfeasibleError(f"no size can be planned; at {ordered[-1]:,} accelerators: {skipped[0].reason}")
    base = counts[0] if base_count is None else base_count
    if base not in planned:
        raise RequestError(
            Problem(where="base_count", found=base, accepted=f"a size that can be planned ({_listed(counts)})")
        )
    base_rate = planned[base].tokens_per_s / base
    points = tuple(_point(count, planned[count], base_rate, train_tokens, economics) for count in counts)
    by_count = {point.accelerator_count: point for point in points}
    bends = [_bend(first, second) for first, second in pairwise(points)]
    return ScaleCurve(
        scaling=scaling,
        replanned=replan,
        base_count=base,
        points=points,
        skipped=tuple(sorted(skipped, key=lambda s: s.accelerator_count)),
        bends=tuple(bend for bend in bends if bend is not None),
        overall=_bend(by_count[base], points[-1]),
    )


def _check(sizes: Sequence[int], scaling: str, base_count: int | None, train_tokens: float | None) -> None:
    problems = []
    if not sizes:
        problems.append(Problem(where="sizes", found=(), accepted="one size or more"))
    problems += [
        Problem(where="sizes", found=size, accepted="whole numbers of 1 or more")
        for size in sizes
        if not isinstance(size, int) or isinstance(size, bool) or size < 1
    ]
    if scaling not in SCALINGS:
        hint = nearest_hint(scaling, SCALINGS)
        problems.append(Problem(where="scaling", found=scaling, accepted=list_names(SCALINGS), hint=hint))
    if base_count is not None and base_count not in sizes:
        problems.append(Problem(where="base_count", found=base_count, accepted=f"one of the sizes ({_listed(sizes)})"))
    if train_tokens is not None and not train_tokens > 0:
        problems.append(Problem(where="train_tokens", found=train_tokens, accepted="more than 0"))
    if problems:
        raise RequestError(problems)


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(f"{size:,}" for size in sorted(set(sizes)))


def _sized(request: PlanRequest, count: int, scaling: Scaling) -> PlanRequest:
    """The request at another size. A weak-scaling batch keeps the sequences per accelerator."""
    if scaling == "strong":
        return replace(request, accelerator_count=count)
    batch = max(round(request.global_batch_sequences * count / request.accelerator_count), 1)
    slack = max(request.options.batch_slack, WEAK_BATCH_SLACK)
    options = replace(request.options, batch_slack=slack, dp=None)
    return replace(request, accelerator_count=count, global_batch_sequences=batch, options=options)


def _family(best: Candidate, options: SearchOptions) -> SearchOptions:
    """Everything of a layout fixed except dp."""
    layout = best.layout
    return replace(
        options,
        tp=(layout.tp,),
        cp=(layout.cp,),
        pp=(layout.pp,),
        vpp=(layout.vpp,),
        dp=None,
        ep=(layout.ep,),
        etp=(layout.etp,),
        micro_batch=(layout.micro_batch,),
        sharding=(layout.sharding,),
        shard_group=(layout.shard_group,) if layout.sharding == "hsdp" else None,
        recompute=(layout.recompute,),
        schedule=(layout.schedule,),
        precision=(layout.precision,),
    )


def _point(
    count: int, best: Candidate, base_rate: float, train_tokens: float | None, economics: Economics | None
) -> ScalePoint:
    rate = best.tokens_per_s / count
    time_s = None if train_tokens is None else train_tokens / best.tokens_per_s
    power = energy = cost = None
    if economics is not None and economics.power is not None:
        power = economics.power.watt_range(best.activity).times(best.accelerator_count)
        energy = None if time_s is None else power.times(time_s)
    if economics is not None and economics.price_per_accelerator_s is not None and time_s is not None:
        cost = range_of(economics.price_per_accelerator_s).times(count * time_s)
    return ScalePoint(
        accelerator_count=count,
        candidate=best,
        tokens_per_s=best.tokens_per_s,
        tokens_per_s_per_accelerator=rate,
        mfu=best.mfu * best.accelerator_count / count,
        scaling_efficiency=rate / base_rate,
        part_share={name: value / best.step_time_s for name, value in step_parts_s(best).items()},
        train_time_s=time_s,
        power_watt=power,
        energy_joule=energy,
        cost=cost,
    )


def _bend(first: ScalePoint, second: ScalePoint) -> Bend | None:
    """The part whose share grew most; compute is what the others displace, so it never bends a curve."""
    growth = {
        part: second.part_share[part] - first.part_share[part] for part in first.part_share if part != "compute_s"
    }
    part = max(sorted(growth), key=lambda name: growth[name])
    if growth[part] < _SAME_BEND:
        return None
    return Bend(
        from_count=first.accelerator_count,
        to_count=second.accelerator_count,
        part=part,
        from_share=first.part_share[part],
        to_share=second.part_share[part],
        efficiency_change=second.scaling_efficiency - first.scaling_efficiency,
    )
