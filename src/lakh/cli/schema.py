"""`lakh schema`: what may a cluster, job or scenario file hold? A JSON Schema for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from lakh.cli.console import print_json
from lakh.cli.options import JsonOption, new_app
from lakh.errors import list_names
from lakh.report.json import document
from lakh.spec import FILE_KINDS, schema

app = new_app()

KindArgument = Annotated[str, typer.Argument(metavar="KIND", help=f"{list_names(FILE_KINDS)}.")]


@app.command("schema")
def schema_command(kind: KindArgument, as_json: JsonOption = False) -> None:
    """Print the JSON Schema (draft 2020-12) of one kind of file.

    Without --json it is the schema alone, ready for an editor; with it, the schema inside the usual object.

    \b
    Example:
      lakh schema cluster > cluster.schema.json
    """
    generated = schema(kind)
    print_json(document("schema", inputs={"kind": kind}, result=generated, evidence={}) if as_json else generated)
