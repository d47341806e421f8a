"""What are the odds on each fabric that JD Cloud might build? The vendor's claims in one table, for `lakh rehearse`.

One set of samples serves every fabric: only what the fabric decides is pinned, so that rows differ by the fabric
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lakh.catalog import Claim, Model
from lakh.catalog import claim as catalogue_claim
from lakh.claims.effective_time import effective_question, effective_time
from lakh.claims.throughput import LayoutSet, Question, joined, layouts_for, mfu_of, reduced, throughput
from lakh.claims.unknowns import step_unknowns
from lakh.claims.verdict import FIRST_LOOK, LARGEST_VALIDATED, Band, Progress, band_of, target_of
from lakh.claims.workload import Workload, workload_of
from lakh.claims.worlds import Worlds, scaling_error, sobol_points, worlds_at
from lakh.columns import Array
from lakh.errors import InfeasibleError, Problem, RequestError
from lakh.perf.system_of import DEFAULT_GENERATION, System, system_of
from lakh.planner import plan_request
from lakh.reliability.checkpoints import STATE_BYTES_PER_PARAMETER
from lakh.spec.cluster import Cluster

FABRICS: Mapping[str, Mapping[str, float]] = {
    "non-blocking": {"oversubscription-leaf": 1.0, "oversubscription-spine": 1.0, "sites": 1.0},
    "1.75 : 1 above the spine": {"oversubscription-leaf": 1.0, "oversubscription-spine": 1.75, "sites": 1.0},
    "4 : 1 above the spine": {"oversubscription-leaf": 1.0, "oversubscription-spine": 4.0, "sites": 1.0},
    "several sites, 1.75 : 1": {"oversubscription-leaf": 1.0, "oversubscription-spine": 1.75, "sites": 0.0},
}
"""What is pinned of each fabric: unknown to value."""

REHEARSAL_SAMPLES = 1_024
SCALING_BASE = 1_024


REHEARSED_CLAIMS: tuple[str, ...] = (
    "kuae-mfu-dense-60",
    "kuae-mfu-moe-40",
    "kuae-scaling-95",
    "kuae-effective-time-90",
)
"""Claims whose odds a rehearsal can give."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricOdds:
    """One claim, one model, one fabric."""

    claim: Claim
    model_name: str
    fabric: str
    accelerator_count: int
    probability: float
    quantity: Band


@dataclass(frozen=True, kw_only=True, slots=True)
class RehearsalOdds:
    """The verdict of a rehearsal: rows, and what could not be judged."""

    rows: tuple[FabricOdds, ...]
    skipped: tuple[str, ...]
    sample_count: int
    seed: int


def rehearsal_odds(
    cluster: Cluster,
    models: Sequence[Model],
    *,
    claims: Sequence[str] = REHEARSED_CLAIMS,
    accelerator_count: int | None = None,
    fabrics: Mapping[str, Mapping[str, float]] = FABRICS,
    sample_count: int = REHEARSAL_SAMPLES,
    seed: int = 0,
    generation: str = DEFAULT_GENERATION,
    progress: Progress | None = None,
) -> RehearsalOdds:
    """Odds of the vendor's claims for each model on each fabric, in the headline reading of `lakh check`.

    Args:
        cluster: the description
        models: what is trained; a claim about MoE models is judged with those, one about dense ones with the others
        claims: catalogue names; one that cannot be judged is skipped with the reason
        accelerator_count: all of the cluster unless given
        fabrics: what to pin of each; see `FABRICS`
        sample_count, seed: of the samples, the same for every row
        generation: framework generation

    Raises:
        UnknownNameError: a claim that is not in the catalogue
    """
    tell = progress or (lambda label, done, total: None)
    wanted = [catalogue_claim(name) for name in claims]
    rows: list[FabricOdds] = []
    skipped: list[str] = []
    for index, model in enumerate(models):
        tell(f"odds of the claims with {model.name}", index, len(models))
        job = _Job(
            cluster=cluster,
            system=system_of(cluster),
            work=workload_of(model),
            count=accelerator_count or system_of(cluster).accelerator_count,
            generation=generation,
            sample_count=sample_count,
            seed=seed,
        )
        for claim in wanted:
            if not _is_about(claim, model):
                continue
            try:
                rows += job.odds(claim, fabrics)
            except (InfeasibleError, RequestError) as error:
                skipped.append(f"{claim.name} with {model.name}: {str(error).splitlines()[0]}")
    return RehearsalOdds(rows=tuple(rows), skipped=tuple(skipped), sample_count=sample_count, seed=seed)


def _is_about(claim: Claim, model: Model) -> bool:
    about = claim.conditions.get("model", "").casefold()
    if "mixture" in about:
        return model.is_moe
    return not (about.startswith("dense") and model.is_moe)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    """One model on the whole cluster."""

    cluster: Cluster
    system: System
    work: Workload
    count: int
    generation: str
    sample_count: int
    seed: int

    def odds(self, claim: Claim, fabrics: Mapping[str, Mapping[str, float]]) -> list[FabricOdds]:
        """One row per fabric; the effective time does not depend on the fabric and gets one row."""
        if claim.quantity == "effective_time":
            size_bytes = self.work.model.parameter_count * STATE_BYTES_PER_PARAMETER
            question = effective_question(self.cluster, self.count, size_bytes)
            worlds = worlds_at(question.unknowns, sobol_points(question.unknowns, self.sample_count, self.seed))
            return [self._row(claim, "any", effective_time(question, worlds))]
        if claim.quantity == "mfu":
            return self._mfu(claim, fabrics)
        if claim.quantity == "scaling_efficiency":
            return self._scaling(claim, fabrics)
        accepted = "a claim about mfu, scaling_efficiency or effective_time"
        raise RequestError(Problem(where=f"claim {claim.name}: quantity", found=claim.quantity, accepted=accepted))

    def _row(self, claim: Claim, fabric: str, samples: Array) -> FabricOdds:
        target, _ = target_of(claim)
        return FabricOdds(
            claim=claim,
            model_name=self.work.model.name,
            fabric=fabric,
            accelerator_count=self.count,
            probability=float(np.mean(target.holds(samples))),
            quantity=band_of(samples),
        )

    def _question(self, size: int, batch: int) -> tuple[Question, Worlds]:
        request = plan_request(
            self.work.model,
            self.system,
            sequence_length=self.work.sequence_length,
            global_batch_sequences=batch,
            accelerator_count=size,
            generation=self.generation,
        )
        question = Question(
            cluster=self.cluster,
            request=request,
            accelerators_per_node=self.system.node.accelerator_count,
            unknowns=step_unknowns(self.cluster, self.system, request),
        )
        points = sobol_points(question.unknowns, self.sample_count, self.seed)
        return question, worlds_at(question.unknowns, points)

    def _layouts(self, question: Question, worlds: Worlds, fabrics: Mapping[str, Mapping[str, float]]) -> LayoutSet:
        looks = [_pinned(worlds.take(slice(0, FIRST_LOOK // 4)), pins) for pins in fabrics.values()]
        found = layouts_for(question)
        kept = [reduced(question, found, look) for look in looks]
        together = kept[0]
        for more in kept[1:]:
            together = joined(together, more)
        return together

    def _mfu(self, claim: Claim, fabrics: Mapping[str, Mapping[str, float]]) -> list[FabricOdds]:
        question, worlds = self._question(self.count, self.work.grown_batch(self.count))
        layouts = self._layouts(question, worlds, fabrics)
        beyond = scaling_error(worlds, max(self.count / LARGEST_VALIDATED, 1.0))
        rows = []
        for fabric, pins in fabrics.items():
            found = throughput(question, layouts, _pinned(worlds, pins))
            rows.append(self._row(claim, fabric, mfu_of(question, found, "causal") * beyond))
        return rows

    def _scaling(self, claim: Claim, fabrics: Mapping[str, Mapping[str, float]]) -> list[FabricOdds]:
        if self.count <= SCALING_BASE:
            accepted = f"more than the {SCALING_BASE:,} accelerators that scaling is counted from"
            raise RequestError(Problem(where="accelerators", found=self.count, accepted=accepted))
        large, worlds = self._question(self.count, self.work.weak_batch(self.count))
        small, _ = self._question(SCALING_BASE, self.work.weak_batch(SCALING_BASE))
        small = replace(small, unknowns=large.unknowns)
        at_large = self._layouts(large, worlds, fabrics)
        at_small = self._layouts(small, worlds, fabrics)
        error = scaling_error(worlds, self.count / SCALING_BASE)
        rows = []
        for fabric, pins in fabrics.items():
            world = _pinned(worlds, pins)
            rate = throughput(large, at_large, world).tokens_per_s / self.count
            base = throughput(small, at_small, world).tokens_per_s / SCALING_BASE
            rows.append(self._row(claim, fabric, rate / base * error))
        return rows


def _pinned(worlds: Worlds, pins: Mapping[str, float]) -> Worlds:
    """The same worlds with some unknowns settled; a pin that is none of them changes nothing."""
    fixed = {name: np.full(worlds.count, value) for name, value in pins.items() if name in worlds.values}
    return replace(worlds, values={**worlds.values, **fixed})
