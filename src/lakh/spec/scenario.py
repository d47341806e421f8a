"""What is to be rehearsed? A cluster, the jobs on it, the sizes to look at and the claims to compare with."""

from __future__ import annotations

from dataclasses import dataclass

from lakh.catalog import Claim
from lakh.spec.cluster import Cluster
from lakh.spec.job import Job


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One rehearsal."""

    name: str
    description: str
    cluster: Cluster
    jobs: tuple[Job, ...]
    claims: tuple[Claim, ...] = ()
    scales: tuple[int, ...] = ()
    """Accelerator counts of the scaling curve, ascending; empty: the planner's own."""
    duration_s: float | None = None
    """How long the rehearsal runs; None: until the jobs are done [second]."""
    seeds: tuple[int, ...] = (0,)
    origin: str = ""
    """File it came from."""
