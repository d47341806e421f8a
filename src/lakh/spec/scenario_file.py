"""How is scenario.yaml read? Its schema, the files it names, and the way into `Scenario`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from lakh.catalog import Claim, claim
from lakh.errors import SpecError, UnknownNameError
from lakh.spec.cluster import Cluster
from lakh.spec.cluster_file import load_cluster
from lakh.spec.document import Document, Location, read_document
from lakh.spec.door import Checks, DoorModel, Duration, validate
from lakh.spec.job import Job
from lakh.spec.job_file import load_job
from lakh.spec.scenario import Scenario

WHAT = "a scenario"

Name = Annotated[str, Field(min_length=1)]


class ScenarioDoor(DoorModel):
    """scenario.yaml: what to rehearse. Paths are relative to this file."""

    name: Name
    description: str = ""
    cluster: Name
    jobs: Annotated[list[Name], Field(min_length=1)]
    claims: list[Name] = Field(default_factory=list)
    scales: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)
    duration: Duration | None = None
    seeds: list[Annotated[int, Field(ge=0)]] = Field(default_factory=lambda: [0], min_length=1)


def _cluster(name: str, checks: Checks) -> Cluster | None:
    try:
        return load_cluster(name, base=checks.document.path.parent)
    except SpecError as error:
        checks.gather(error)
    except UnknownNameError as error:
        problem = error.problems[0]
        checks.refuse(("cluster",), f"a path, or one of {problem.accepted}", hint=problem.hint)
    return None


def _claims(names: list[str], checks: Checks) -> tuple[Claim, ...]:
    found: list[Claim] = []
    for index, name in enumerate(names):
        try:
            found.append(claim(name))
        except UnknownNameError as error:
            problem = error.problems[0]
            checks.refuse(("claims", index), problem.accepted, hint=problem.hint)
    return tuple(found)


def scenario_from_document(document: Document) -> Scenario:
    """Check a read document, read the files it names, and turn all into a scenario.

    Raises:
        SpecError: every problem found, in this file and in the files it names
    """
    door = validate(ScenarioDoor, document)
    checks = Checks(document)
    cluster = _cluster(door.cluster, checks)
    jobs: list[Job] = []
    for index, path in enumerate(door.jobs):
        here: Location = ("jobs", index)
        try:
            job = load_job(document.path.parent / path)
        except SpecError as error:
            checks.gather(error)
            continue
        if job.name in {made.name for made in jobs}:
            checks.refuse(here, f"a job whose name is not {job.name!r}, which another one has", found=path)
        jobs.append(job)
    for index, (smaller, larger) in enumerate(zip(door.scales, door.scales[1:], strict=False)):
        if larger <= smaller:
            checks.refuse(("scales", index + 1), f"more than {smaller}: scales go upwards")
    claims = _claims(door.claims, checks)
    if cluster is not None:
        for index, scale in enumerate(door.scales):
            if scale > cluster.accelerator_count:
                checks.refuse(("scales", index), f"at most {cluster.accelerator_count}, all that {cluster.name} has")
    checks.finish()
    assert cluster is not None
    return Scenario(
        name=door.name,
        description=door.description,
        cluster=cluster,
        jobs=tuple(jobs),
        claims=claims,
        scales=tuple(door.scales),
        duration_s=door.duration,
        seeds=tuple(door.seeds),
        origin=str(document.path),
    )


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario.yaml with the cluster and jobs it names.

    Raises:
        SpecError: it, or a file it names, is refused; lists every problem of all of them
    """
    return scenario_from_document(read_document(path, WHAT))
