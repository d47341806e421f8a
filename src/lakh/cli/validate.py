"""`lakh validate`: how far are predictions from measured runs, shipped ones or yours?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from lakh import api
from lakh.catalog.calibration import load_calibration
from lakh.cli import options as o
from lakh.cli.console import OutputFile, print_json, print_tables, progress
from lakh.errors import list_names
from lakh.report.documents import validation_document
from lakh.report.figures import validation_charts
from lakh.report.page import charts_page
from lakh.report.rows import validation_row_table, validation_tables
from lakh.validation.report import LEAVE_OUTS, LeaveOut

app = o.new_app()

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE.csv]", help="Measured runs in the columns of the shipped file; that one if left out."
    ),
]
LeaveOutOption = Annotated[
    str | None,
    typer.Option("--leave-out", help=f"Refit without each {list_names(LEAVE_OUTS)} and predict what was left out."),
]
RowsOption = Annotated[bool, typer.Option("--rows", help="Also show every row, the largest error first.")]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", help="Write predicted against measured to FILE.html; opens without a network.")
]


@app.command()
def validate(
    file: FileArgument = None,
    leave_out: LeaveOutOption = None,
    rows: RowsOption = False,
    plot: PlotOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Predictions beside measurements: error per row, kind of model, hardware and source.

    Rows that cannot be predicted are listed with the reason, never dropped. The columns are described in
    docs/how-to/validate-your-runs.md.

    \b
    Example:
      lakh validate --rows
      lakh validate my-runs.csv --plot out/my-runs.html
    """
    target = OutputFile(plot) if plot is not None else None
    try:
        with progress("predicting the rows") as steps:
            result = api.validate(file, leave_out=cast(LeaveOut | None, leave_out), progress=steps)
        if target is not None:
            tables = [*validation_tables(result), validation_row_table(result.rows)]
            target.write(charts_page("Predicted against measured", validation_charts(result), tables))
    finally:
        if target is not None:
            target.discard()
    if as_json:
        inputs = {"file": file or "the measurements that ship with Lakh", "leave_out": leave_out, "plot": plot}
        print_json(validation_document(result, inputs, load_calibration().about))
        return
    print_tables(validation_tables(result, all_rows=rows))
