"""`lakh rehearse`: what would a scenario's jobs do on its cluster, from one node to all of it?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lakh import api
from lakh.cli import options as o
from lakh.cli.console import OutputFile, print_json, print_tables, progress
from lakh.report.documents import rehearsal_document
from lakh.report.page import rehearsal_page
from lakh.report.rows import rehearsal_tables
from lakh.spec import load_scenario

app = o.new_app()

ScenarioArgument = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario.yaml.")]
ReportOption = Annotated[
    Path | None, typer.Option("--report", help="The HTML report; out/NAME.html unless given. Opens without a network.")
]


@app.command()
def rehearse(
    scenario: ScenarioArgument,
    report: ReportOption = None,
    workers: o.WorkersOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Plan every training job of a scenario, from the smallest size to the whole cluster, beside what is claimed.

    Prints the best layouts, the curve with its error bars, days to train, power, energy and cost as ranges, the claims
    beside the predictions, and everything that is unknown; writes all of it to one HTML file.

    \b
    Example:
      lakh rehearse examples/jd-cloud-100k/scenario.yaml
    """
    asked = load_scenario(scenario)
    with OutputFile(report or Path("out") / f"{_file_name(asked.name)}.html") as target:
        with progress("planning") as steps:
            result = api.rehearse(asked, workers=workers, progress=steps)
        target.write(rehearsal_page(result))
    if as_json:
        print_json(rehearsal_document(result, {"scenario": scenario, "report": target.path}))
        return
    print_tables(rehearsal_tables(result))
    sys.stdout.write(f"\nreport: {target.path}\n")


def _file_name(name: str) -> str:
    """A scenario's name as a file name: letters, digits, dots and dashes stay."""
    return "".join(sign if sign.isalnum() or sign in ".-_" else "-" for sign in name).lstrip(".") or "rehearsal"
