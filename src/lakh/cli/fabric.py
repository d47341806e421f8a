"""`lakh fabric`: the network of a cluster, what it carries for a job, and what a dead element costs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lakh.cli import options as o
from lakh.cli.console import OutputFile
from lakh.cli.main import run
from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.fabric.drawing import (
    COLLECTIVE_HEADINGS,
    FAULT_HEADINGS,
    TIER_HEADINGS,
    bisection_text,
    collective_cells,
    fabric_html,
    fault_cells,
    tier_cells,
)
from lakh.fabric.from_cluster import FabricSystem, fabric_system
from lakh.fabric.graph import Graph, parse_fault
from lakh.fabric.inspection import FabricJob, FabricReport, inspect
from lakh.fabric.topology import ROUTINGS
from lakh.spec import load_cluster
from lakh.units import UnitError, parse_quantity

_JOB_KEYS = ("accelerators", "tp", "ep", "bytes", "fragments")


def parse_job(text: str, *, default_count: int, domain_size: int) -> FabricJob:
    """Read "accelerators=4096,tp=8,ep=64,bytes=256 MiB,fragments=4"; every part may be left out.

    Raises:
        RequestError: an unknown key, a value that is not a number
    """
    problems: list[Problem] = []
    values: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if key not in _JOB_KEYS or not equals:
            hint = nearest_hint(key, _JOB_KEYS)
            problems.append(
                Problem(where="--job", found=part, accepted=f"KEY=VALUE of {list_names(_JOB_KEYS)}", hint=hint)
            )
            continue
        try:
            values[key] = parse_quantity(value, "byte") if key == "bytes" else float(int(value))
        except (UnitError, ValueError):
            accepted = "a size such as '256 MiB'" if key == "bytes" else "a whole number"
            problems.append(Problem(where=f"--job: {key}", found=value, accepted=accepted))
    if problems:
        raise RequestError(problems)
    count = int(values.get("accelerators", default_count))
    tensor = int(values.get("tp", domain_size if count % domain_size == 0 else 1))
    return FabricJob(
        accelerator_count=count,
        tensor_parallel=tensor,
        expert_parallel=int(values.get("ep", 0)),
        message_bytes=values.get("bytes", 2.0**28),
        fragments=int(values.get("fragments", 1)),
    )


def default_job_size(system: FabricSystem) -> int:
    """One pod, or the first site where it has no pods: the largest job that no oversubscription above touches."""
    spec = system.spec
    first = spec.sites[0].accelerator_count
    spans = [tier.span for tier in spec.tiers[1:2] if tier.span]
    return min([first, *spans])


def document(report: FabricReport, inputs: dict[str, Any], system: FabricSystem) -> dict[str, Any]:
    """What --json prints."""
    return {
        "schema": "lakh/fabric/1",
        "inputs": inputs,
        "result": asdict(report),
        "evidence": {
            "protocol_family": system.fit.family,
            "status": system.fit.status,
            "source": system.fit.source,
            "note": system.fit.note,
            "median_error": system.fit.median_error,
        },
    }


def _print_table(console: Console, title: str, headings: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    console.print(table)


app = o.new_app()


@app.command()
def fabric(
    cluster: Annotated[str, typer.Argument(help="A cluster.yaml, or the name of a cluster that ships with Lakh.")],
    fail: Annotated[
        list[str] | None,
        typer.Option(
            help="An element that is dead now, KIND:INDEX, or KIND:INDEX@FACTOR if degraded; may be repeated."
        ),
    ] = None,
    job: Annotated[
        str, typer.Option(help="accelerators=N,tp=N,ep=N,bytes=SIZE,fragments=N; unset parts take defaults.")
    ] = "",
    routing: Annotated[str, typer.Option(help="ecmp, adaptive or spray instead of the cluster's own.")] = "",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the hash that picks paths under ecmp.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write a page with the drawing, or an SVG if it ends so.")] = None,
) -> None:
    """Show the network of a cluster: tiers, bisection, a job's collectives, and what a dead element costs it.

    The model behind it is described in docs/concepts-fabric.md.

    \b
    Example:
      lakh fabric kuae-10k --job accelerators=4096,tp=8,ep=64
      lakh fabric kuae-10k --fail spine:3 --fail leaf:12@0.5 --report out/fabric.html
    """
    system = fabric_system(load_cluster(cluster))
    if routing and routing not in ROUTINGS:
        hint = nearest_hint(routing, ROUTINGS)
        raise RequestError(Problem(where="--routing", found=routing, accepted=list_names(ROUTINGS), hint=hint))
    graph = Graph(system.spec, faults=[parse_fault(text) for text in fail or []], seed=seed)
    if routing:
        graph = graph.with_routing(routing)
    wanted = parse_job(job, default_count=default_job_size(system), domain_size=system.spec.node_size)
    found = inspect(graph, system.network, wanted)
    if report is not None:
        page = fabric_html(found)
        if report.suffix == ".svg":
            page = page[page.index("<svg") : page.index("</svg>") + 6]
        with OutputFile(report) as target:
            target.write(page)
    if as_json:
        inputs = {"cluster": cluster, "fail": fail or [], "job": asdict(wanted), "routing": graph.spec.routing}
        print(json.dumps(document(found, {**inputs, "seed": seed}, system), indent=2))
        return
    console = Console()
    now = ", ".join(found.active_faults) or "none"
    console.print(
        f"{found.name}: {found.accelerator_count:,} accelerators, {found.node_count:,} nodes, {found.routing}"
    )
    console.print(f"{bisection_text(found)}. Faults now: {now}.", highlight=False)
    _print_table(console, "Tiers", TIER_HEADINGS, tier_cells(found))
    _print_table(console, "Collectives of the job", COLLECTIVE_HEADINGS, collective_cells(found))
    _print_table(console, "What one dead element costs", FAULT_HEADINGS, fault_cells(found))
    if report is not None:
        console.print(f"Wrote {report}")


if __name__ == "__main__":
    sys.exit(run(["fabric", *sys.argv[1:]]))
