"""`lakh plan`: which layouts are best, why, and how are they launched?"""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, cast

import typer

from lakh import api
from lakh.cli import options as o
from lakh.cli.console import print_json, print_tables, progress
from lakh.errors import list_names
from lakh.planner import FRAMEWORKS, Framework
from lakh.report.documents import plan_document
from lakh.report.rows import plan_tables
from lakh.spec.job import OBJECTIVES, Objective

app = o.new_app()

ObjectiveOption = Annotated[str, typer.Option("--objective", help=f"What to minimise: {list_names(OBJECTIVES)}.")]
TopOption = Annotated[int, typer.Option("--top", help="Layout families (tp, cp, pp, ep) to rank.")]
EmitOption = Annotated[
    str | None,
    typer.Option(
        "--emit",
        help=f"Print only the launch of the best layout: {list_names(FRAMEWORKS)}. Searches what it can launch.",
    ),
]


@app.command()
def plan(
    model: o.ModelOption,
    cluster: o.ClusterOption,
    sequence_length: o.SequenceOption,
    batch: o.BatchOption,
    accelerators: o.AcceleratorsOption = None,
    objective: ObjectiveOption = "step-time",
    top: TopOption = api.FULL_PLAN_FAMILIES,
    emit: EmitOption = None,
    framework: o.FrameworkOption = None,
    tokens: o.TokensOption = None,
    tp: o.Tp = None,
    cp: o.Cp = None,
    pp: o.Pp = None,
    vpp: o.Vpp = None,
    dp: o.Dp = None,
    ep: o.Ep = None,
    etp: o.Etp = None,
    micro_batch: o.MicroBatch = None,
    sharding: o.Sharding = None,
    shard_group: o.ShardGroup = None,
    recompute: o.Recompute = None,
    schedule: o.Schedule = None,
    precision: o.Precision = None,
    batch_slack: o.SlackOption = 0.0,
    generation: o.GenerationOption = None,
    mfu_convention: o.ConventionOption = "causal",
    workers: o.WorkersOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """The best layouts of the whole space, the Pareto front, and why the winner wins.

    Every layout that divides is looked at: tp, cp, pp, vpp, ep, etp, dp, sharding, micro-batch, recompute, schedule and
    precision. An option fixes its dimension to one value or to several ("--tp 4,8"). Where nothing fits, the answer
    says how much memory is short and what would help.

    \b
    Example:
      lakh plan --model llama3-70b --cluster h100-16k -n 1024 --seq 8192 --batch 1024 --tokens 15T
      lakh plan --model llama3-70b --cluster h100-16k -n 1024 --seq 8192 --batch 1024 --emit megatron
    """
    given = {
        "tp": tp,
        "cp": cp,
        "pp": pp,
        "vpp": vpp,
        "dp": dp,
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
    options = asked.get(partial(o.search_options, batch_slack=batch_slack), given)
    train_tokens = asked.get(o.tokens_of, tokens)
    asked.finish()
    with progress("searching layouts"):
        result = api.plan(
            model,
            cluster,
            sequence_length=sequence_length,
            global_batch_sequences=batch,
            accelerators=accelerators,
            objective=cast(Objective, objective),
            top=top,
            options=options,
            framework=cast(Framework | None, emit or framework),
            emit_launch=emit is not None,
            generation=generation,
            train_tokens=train_tokens,
            workers=workers,
        )
    if as_json:
        inputs = {
            "model": model,
            "cluster": cluster,
            "accelerators": result.accelerator_count,
            "sequence_length": sequence_length,
            "global_batch_sequences": batch,
            "objective": objective,
            "framework": emit or framework,
            "train_tokens": train_tokens,
            "fixed": options.fixed,
            "batch_slack": batch_slack,
            "generation": result.generation,
        }
        print_json(plan_document(result, inputs))
    elif result.launch is not None:
        sys.stdout.write(result.launch.text)
    else:
        print_tables(plan_tables(result, convention))
