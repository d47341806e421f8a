"""Which options do commands share? Their types with help, and the way from text to what the API takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer

from lakh.api import FABRIC_LEVELS
from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.perf.flops import MFU_CONVENTIONS, MfuConvention
from lakh.planner import FRAMEWORKS, SearchOptions
from lakh.spec.layout import PRECISIONS, RECOMPUTES, SCHEDULES, SHARDINGS, Layout
from lakh.spec.layout_text import layout_values
from lakh.units import UnitError, parse_quantity


def new_app() -> typer.Typer:
    """A command's application: plain help, no completion of its own."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
    )


ModelOption = Annotated[
    str, typer.Option("--model", "-m", help="Catalogue name (lakh catalog models), or a path to a config.json.")
]
ClusterOption = Annotated[
    str, typer.Option("--cluster", "-c", help="Shipped name (lakh catalog clusters), or a path to a cluster.yaml.")
]
SequenceOption = Annotated[int, typer.Option("--seq", help="Tokens per sequence.")]
BatchOption = Annotated[int, typer.Option("--batch", help="Sequences per optimizer step, over the whole job.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, in base units.")]
GenerationOption = Annotated[
    str | None, typer.Option("--generation", help="Framework generation, such as megatron-2026h2 (the default).")
]
FabricOption = Annotated[str, typer.Option("--fabric", help=f"How collectives are timed: {list_names(FABRIC_LEVELS)}.")]
ConventionOption = Annotated[
    str, typer.Option("--mfu-convention", help=f"MFU that is shown: {list_names(MFU_CONVENTIONS)}.")
]
AcceleratorsOption = Annotated[
    int | None, typer.Option("--accelerators", "-n", help="Accelerators to use; all of the cluster unless given.")
]
TokensOption = Annotated[
    str | None, typer.Option("--tokens", help='Tokens of the whole run, such as "15.6T": adds days, energy and cost.')
]
FrameworkOption = Annotated[
    str | None, typer.Option("--framework", help=f"Only layouts that it can launch: {list_names(FRAMEWORKS)}.")
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", help="Threads of the search; one per core unless given.")
]
SlackOption = Annotated[
    float, typer.Option("--batch-slack", help="Share by which the batch may move so that more accelerators have work.")
]

_SIZES = "one size or several, such as 8 or 4,8"
Tp = Annotated[str | None, typer.Option("--tp", help=f"Tensor parallel: {_SIZES}.")]
Cp = Annotated[str | None, typer.Option("--cp", help="Context parallel.")]
Pp = Annotated[str | None, typer.Option("--pp", help="Pipeline parallel.")]
Vpp = Annotated[str | None, typer.Option("--vpp", help="Model chunks per pipeline rank (interleaving).")]
Dp = Annotated[str | None, typer.Option("--dp", help="Data parallel.")]
Ep = Annotated[str | None, typer.Option("--ep", help="Expert parallel.")]
Etp = Annotated[str | None, typer.Option("--etp", help="Tensor parallel inside one expert.")]
MicroBatch = Annotated[str | None, typer.Option("--micro-batch", help="Sequences per micro-batch.")]
Sharding = Annotated[str | None, typer.Option("--sharding", help=f"{list_names(SHARDINGS)}.")]
ShardGroup = Annotated[str | None, typer.Option("--shard-group", help="Ranks that share one copy, with hsdp.")]
Recompute = Annotated[str | None, typer.Option("--recompute", help=f"{list_names(RECOMPUTES)}.")]
Schedule = Annotated[str | None, typer.Option("--schedule", help=f"{list_names(SCHEDULES)}.")]
Precision = Annotated[str | None, typer.Option("--precision", help=f"{list_names(PRECISIONS)}.")]

_CHOICES: dict[str, tuple[str, ...]] = {
    "sharding": SHARDINGS,
    "recompute": RECOMPUTES,
    "schedule": SCHEDULES,
    "precision": PRECISIONS,
}


def option_name(field: str) -> str:
    """The option that sets a field: "micro_batch" is "--micro-batch"."""
    return "--" + field.replace("_", "-")


def several(field: str, text: str) -> tuple[Any, ...]:
    """The values of one layout option, separated by commas.

    Raises:
        RequestError: a value that the field cannot have; every such value is named
    """
    values: list[Any] = []
    problems: list[Problem] = []
    for part in (piece.strip() for piece in text.split(",")):
        if field in _CHOICES:
            accepted = _CHOICES[field]
            if part.casefold() not in accepted:
                hint = nearest_hint(part, accepted)
                problems.append(Problem(where=option_name(field), found=part, accepted=list_names(accepted), hint=hint))
            values.append(part.casefold())
        elif re.fullmatch(r"[1-9]\d{0,8}", part):
            values.append(int(part))
        else:
            rule = f"a whole number of 1 or more ({_SIZES})"
            problems.append(Problem(where=option_name(field), found=part, accepted=rule))
    if problems:
        raise RequestError(problems)
    return tuple(values)


def _gathered(given: dict[str, str | None]) -> dict[str, tuple[Any, ...]]:
    """Every option that was given, as values; the problems of all of them at once."""
    values: dict[str, tuple[Any, ...]] = {}
    problems: list[Problem] = []
    for field, text in given.items():
        if text is None:
            continue
        try:
            values[field] = several(field, text)
        except RequestError as error:
            problems += error.problems
    if problems:
        raise RequestError(problems)
    return values


def layout_of(text: str | None, given: dict[str, str | None]) -> Layout:
    """One layout from --layout and from single options; a single option wins over the text.

    Raises:
        RequestError: something in either is refused; every problem of both
    """
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    single: dict[str, tuple[Any, ...]] = {}
    try:
        values = layout_values(text or "", where="--layout")
    except RequestError as error:
        problems += error.problems
    try:
        single = _gathered(given)
    except RequestError as error:
        problems += error.problems
    for field, found in single.items():
        if len(found) > 1:
            problems.append(Problem(where=option_name(field), found=given[field], accepted="one value: one layout"))
        values[field] = found[0]
    if problems:
        raise RequestError(problems)
    return Layout(**values)


def search_options(given: dict[str, str | None], batch_slack: float) -> SearchOptions:
    """What a search may choose from: dimensions that were given are fixed to their values."""
    return SearchOptions(**_gathered(given), batch_slack=batch_slack)


def tokens_of(text: str | None) -> float | None:
    """Tokens of a run: "15.6T", "15.6 Ttoken" or a plain number.

    Raises:
        RequestError: none of these
    """
    if text is None:
        return None
    compact = text.strip().removesuffix("tokens").removesuffix("token").strip()
    match = re.fullmatch(r"([\d._]+(?:e[+-]?\d+)?)\s*([kKMGBTP]?)", compact)
    try:
        if match is None:
            raise UnitError(text, "tokens")
        prefix = {"B": "G"}.get(match[2], match[2])
        tokens = parse_quantity(f"{match[1]} {prefix}token", "token")
    except UnitError:
        tokens = 0.0
    if not tokens > 0.0:
        accepted = 'a number of tokens of more than 0, such as "15.6T" or "300B"'
        raise RequestError(Problem(where="--tokens", found=text, accepted=accepted))
    return tokens


def convention_of(text: str) -> MfuConvention:
    """An MFU convention by its name.

    Raises:
        RequestError: there is none of that name
    """
    if text not in MFU_CONVENTIONS:
        hint = nearest_hint(text, MFU_CONVENTIONS)
        accepted = list_names(MFU_CONVENTIONS)
        raise RequestError(Problem(where="--mfu-convention", found=text, accepted=accepted, hint=hint))
    return cast(MfuConvention, text)


def sizes_of(text: str | None) -> Sequence[int] | None:
    """Accelerator counts separated by commas.

    Raises:
        RequestError: one is not a whole number of 1 or more
    """
    return None if text is None else several("sizes", text)
