"""`lakh predict`: what will one layout of one model on one cluster do?"""

from __future__ import annotations

from functools import partial
from typing import Annotated, cast

import typer

from lakh import api
from lakh.cli import options as o
from lakh.cli.console import print_json, print_tables
from lakh.report.documents import prediction_document
from lakh.report.rows import evidence_table, prediction_tables

app = o.new_app()

LayoutOption = Annotated[
    str | None,
    typer.Option("--layout", "-l", help='Words such as "tp8 pp16 vpp4 dp128 mb1 zero1 fp8 recompute=full".'),
]
EvidenceOption = Annotated[bool, typer.Option("--evidence", help="Also show the facts that it rests on.")]


@app.command()
def predict(
    model: o.ModelOption,
    cluster: o.ClusterOption,
    sequence_length: o.SequenceOption,
    batch: o.BatchOption,
    layout: LayoutOption = None,
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
    generation: o.GenerationOption = None,
    fabric: o.FabricOption = "closed",
    mfu_convention: o.ConventionOption = "causal",
    evidence: EvidenceOption = False,
    as_json: o.JsonOption = False,
) -> None:
    """One training step: where its time goes, memory, MFU, and an error bar from validation.

    A layout is given in words (--layout) or by single options, which win over the words; sizes not given are 1. It
    uses tp x cp x pp x dp accelerators.

    \b
    Example:
      lakh predict -m llama3.1-405b -c h100-16k --layout "tp8 cp2 pp16 vpp8 dp64 mb1" --seq 8192 --batch 2048
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
    chosen = asked.get(partial(o.layout_of, layout), given)
    asked.finish()
    result = api.predict(
        model,
        cluster,
        chosen,
        sequence_length=sequence_length,
        global_batch_sequences=batch,
        generation=generation,
        fabric=cast(api.FabricLevel, fabric),
    )
    if as_json:
        inputs = {
            "model": model,
            "cluster": cluster,
            "layout": chosen.describe(),
            "sequence_length": sequence_length,
            "global_batch_sequences": batch,
            "generation": result.generation,
            "fabric": fabric,
            "mfu_convention": convention,
        }
        print_json(prediction_document(result, inputs, convention))
        return
    tables = prediction_tables(result, convention)
    print_tables([*tables, evidence_table(result.evidence)] if evidence else tables)
