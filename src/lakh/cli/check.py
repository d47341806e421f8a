"""`lakh check`: is a claim true, which unknown decides it, and what would have to be true?"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from lakh.claims import ask
from lakh.claims.verdict import DEFAULT_SAMPLES
from lakh.cli.console import OutputFile, print_json, print_tables, progress
from lakh.cli.options import JsonOption, new_app
from lakh.report.verdict import verdict_document, verdict_page, verdict_tables

app = new_app()


@app.command()
def check(
    claim: Annotated[str, typer.Argument(help="Catalogue name (lakh catalog claims).")],
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", "-c", help="Shipped name, or a path to a cluster.yaml; the claim's own if absent."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Catalogue name, or a path to a config.json; the claim's kind if absent."),
    ] = None,
    accelerators: Annotated[
        int | None, typer.Option("--accelerators", "-n", help="Size of the one job; all of the cluster if absent.")
    ] = None,
    measurements: Annotated[
        Path | None, typer.Option("--measurements", help="A measurements.yaml that narrows unknowns.")
    ] = None,
    seq: Annotated[int | None, typer.Option("--seq", help="Tokens per sequence; as published if absent.")] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", help="Sequences per optimizer step; as published if absent.")
    ] = None,
    generation: Annotated[
        str | None, typer.Option("--generation", help="Framework generation, such as megatron-2026h2 (the default).")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", help="Samples of all unknowns; best a power of two.")] = (
        DEFAULT_SAMPLES
    ),
    seed: Annotated[int, typer.Option("--seed", help="Of the samples: same seed, same verdict.")] = 0,
    report: Annotated[Path | None, typer.Option("--report", help="Write one HTML page that needs no network.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The odds of a claim under every reading of what was not said, and what they rest on.

    \b
    Example:
      lakh check kuae-mfu-dense-60 --cluster jd-cloud-100k
      lakh check kuae-effective-time-90 --report effective-time.html
    """
    with OutputFile(report) if report is not None else nullcontext() as page, progress("asking") as steps:
        verdict = ask(
            claim,
            cluster=cluster,
            model=model,
            measurements=measurements,
            accelerator_count=accelerators,
            sequence_length=seq,
            global_batch_sequences=batch,
            sample_count=samples,
            seed=seed,
            generation=generation,
            progress=steps,
        )
        if page is not None:
            page.write(verdict_page(verdict))
    if as_json:
        inputs = {
            "claim": claim,
            "cluster": verdict.cluster_name,
            "model": verdict.model_name,
            "accelerator_count": verdict.accelerator_count,
            "measurements": measurements,
            "sequence_length": seq,
            "global_batch_sequences": batch,
            "generation": generation,
            "sample_count": samples,
            "seed": seed,
        }
        print_json(verdict_document(verdict, inputs))
        return
    print_tables(verdict_tables(verdict))
    if report is not None:
        sys.stdout.write(f"Report: {report}\n")
