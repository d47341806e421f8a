"""`lakh scale`: what happens from one node to the whole cluster, and what bends the curve?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, cast

import typer

from lakh import api
from lakh.cli import options as o
from lakh.cli.console import OutputFile, print_json, print_tables, progress
from lakh.errors import Problem, RequestError, list_names
from lakh.planner import SCALINGS, Framework, Scaling
from lakh.report.documents import scale_document
from lakh.report.figures import scale_charts
from lakh.report.page import charts_page
from lakh.report.results import ScaleResult
from lakh.report.rows import scale_tables
from lakh.report.svg import charts_svg

app = o.new_app()

SizesOption = Annotated[
    str | None,
    typer.Option("--sizes", help="Accelerator counts, such as 8,1024,100000; one node and doublings unless given."),
]
ScalingOption = Annotated[
    str, typer.Option("--scaling", help=f"{list_names(SCALINGS)}: the batch grows with the accelerators, or stays.")
]
OneLayoutOption = Annotated[
    bool, typer.Option("--one-layout", help="One layout grown in dp, not the best one at each size.")
]
BaseOption = Annotated[
    int | None, typer.Option("--base", help="Size that efficiency is relative to; the smallest unless given.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", help="Write the curve to FILE.svg or FILE.html; opens without a network.")
]


@app.command()
def scale(
    model: o.ModelOption,
    cluster: o.ClusterOption,
    sequence_length: o.SequenceOption,
    batch: o.BatchOption,
    accelerators: o.AcceleratorsOption = None,
    sizes: SizesOption = None,
    scaling: ScalingOption = "weak",
    one_layout: OneLayoutOption = False,
    base: BaseOption = None,
    framework: o.FrameworkOption = None,
    tokens: o.TokensOption = None,
    tp: o.Tp = None,
    cp: o.Cp = None,
    pp: o.Pp = None,
    vpp: o.Vpp = None,
    ep: o.Ep = None,
    etp: o.Etp = None,
    micro_batch: o.MicroBatch = None,
    sharding: o.Sharding = None,
    shard_group: o.ShardGroup = None,
    recompute: o.Recompute = None,
    schedule: o.Schedule = None,
    precision: o.Precision = None,
    generation: o.GenerationOption = None,
    mfu_convention: o.ConventionOption = "causal",
    plot: PlotOption = None,
    workers: o.WorkersOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Throughput, MFU and scaling efficiency over sizes of the cluster; days, energy and cost with --tokens.

    --batch belongs to the largest size (or to --accelerators); with weak scaling the others keep its sequences per
    accelerator. Options fix dimensions as in `lakh plan`, which makes the search faster.

    \b
    Example:
      lakh scale --model llama3-70b --cluster h100-16k --seq 8192 --batch 2048 --sizes 256,2048,16384 --precision bf16
    """
    given = {
        "tp": tp,
        "cp": cp,
        "pp": pp,
        "vpp": vpp,
        "ep": ep,
        "etp": etp,
        "micro_batch": micro_batch,
        "sharding": sharding,
        "shard_group": shard_group,
        "recompute": recompute,
        "schedule": schedule,
        "precision": precision,
    }
    asked = api.Asked()
    convention = asked.get(o.convention_of, mfu_convention)
    options = asked.get(partial(o.search_options, batch_slack=0.0), given)
    points = asked.get(o.sizes_of, sizes)
    train_tokens = asked.get(o.tokens_of, tokens)
    asked.check(_check_plot, plot)
    asked.finish()
    target = OutputFile(plot) if plot is not None else None
    try:
        with progress("planning each size"):
            result = api.scale(
                model,
                cluster,
                sequence_length=sequence_length,
                global_batch_sequences=batch,
                accelerators=accelerators,
                sizes=points,
                scaling=cast(Scaling, scaling),
                replan=not one_layout,
                base=base,
                options=options,
                framework=cast(Framework | None, framework),
                generation=generation,
                train_tokens=train_tokens,
                mfu_convention=convention,
                workers=workers,
            )
        if target is not None:
            target.write(_drawn(result, target.path))
    finally:
        if target is not None:
            target.discard()
    if as_json:
        inputs = {
            "model": model,
            "cluster": cluster,
            "sizes": [point.accelerator_count for point in result.curve.points],
            "accelerators": result.accelerator_count,
            "sequence_length": sequence_length,
            "global_batch_sequences": batch,
            "scaling": scaling,
            "replan": not one_layout,
            "framework": framework,
            "train_tokens": train_tokens,
            "fixed": options.fixed,
            "generation": result.generation,
            "mfu_convention": convention,
            "plot": plot,
        }
        print_json(scale_document(result, inputs))
        return
    print_tables(scale_tables(result))


def _drawn(result: ScaleResult, path: Path) -> str:
    charts = scale_charts([result])
    if path.suffix.casefold() == ".svg":
        return charts_svg(charts)
    title = f"{result.model.name} on {result.cluster_name}"
    return charts_page(title, charts, scale_tables(result))


def _check_plot(path: Path | None) -> None:
    if path is not None and path.suffix.casefold() not in (".svg", ".html"):
        raise RequestError(Problem(where="--plot", found=str(path), accepted="a name that ends in .svg or .html"))
