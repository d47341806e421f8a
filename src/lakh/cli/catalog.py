"""`lakh catalog`: what we know of accelerators, nodes, models, clusters and claims, and from where."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from lakh import api
from lakh.cli.console import print_json, print_tables
from lakh.cli.options import JsonOption, new_app
from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.report.documents import catalog_document
from lakh.report.entries import entry_tables, kind_table
from lakh.report.tables import number, table, words

app = new_app()

KindArgument = Annotated[str | None, typer.Argument(help=f"{list_names(api.CATALOG_KINDS)}; all kinds if left out.")]
NameArgument = Annotated[
    str | None, typer.Argument(help="One entry: everything about it, each number with its source.")
]


@app.command()
def catalog(kind: KindArgument = None, name: NameArgument = None, as_json: JsonOption = False) -> None:
    """What we know, and from where.

    Without arguments: the kinds. With a kind: its entries, one line each. With a name too: every fact of it with its
    status (vendor, measured, secondary, estimate), source and note.

    \b
    Example:
      lakh catalog accelerators
      lakh catalog accelerators MTT-S5000
    """
    chosen = None if kind is None else _kind(kind)
    entries = api.catalog(chosen, name)
    if as_json:
        print_json(catalog_document(entries, {"kind": chosen, "name": name}))
    elif chosen is None:
        rows = [(one, f"{len(api.catalog(one)):,}", f"lakh catalog {one}") for one in _kinds()]
        print_tables([table("Catalogue", ["kind", number("entries"), words("show")], rows)])
    elif name is None:
        print_tables([kind_table(chosen, entries)])
    else:
        print_tables(entry_tables(entries[0]))


def _kinds() -> tuple[api.CatalogKind, ...]:
    return cast(tuple[api.CatalogKind, ...], api.CATALOG_KINDS)


def _kind(text: str) -> api.CatalogKind:
    """A kind by its name, in the singular too."""
    folded = text.casefold()
    for kind in _kinds():
        if folded in (kind, kind.removesuffix("s")):
            return kind
    hint = nearest_hint(text, api.CATALOG_KINDS)
    raise RequestError(Problem(where="KIND", found=text, accepted=list_names(api.CATALOG_KINDS), hint=hint))
