"""`lakh goodput`: how much of a run is productive, what stops it, how often to save, how many spares?"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, cast

import typer

from lakh.cli.console import OutputFile, print_json, print_tables, progress
from lakh.errors import LakhError, Problem, RequestError, list_names, nearest_hint
from lakh.reliability import (
    POLICIES,
    FailureProfile,
    Gaps,
    RecoveryPolicy,
    cluster_failures,
    cluster_hardware,
    failure_profile,
    read_profile_file,
    recovery_policy,
)
from lakh.reliability.profiles import GAPS
from lakh.reliability.recovery import with_spares
from lakh.report.goodput import goodput_document, goodput_page, goodput_tables
from lakh.spec import load_cluster, resolve_model

app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@app.command()
def goodput(
    model: Annotated[
        str, typer.Option("--model", "-m", help="Catalogue name (lakh catalog models), or a path to a config.json.")
    ],
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Shipped name (lakh catalog clusters), or a path to a cluster.yaml.")
    ],
    accelerators: Annotated[
        int | None,
        typer.Option("--accelerators", "-n", help="Accelerators of the run; all of the cluster's if absent."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", "-p", help=f"Compared, and the best reported; repeat it. {list_names(list(POLICIES))}."
        ),
    ] = None,
    failures: Annotated[
        str | None, typer.Option("--failures", help="Failure profile: a name, or a path; the cluster's own if absent.")
    ] = None,
    spares: Annotated[
        int | None, typer.Option("--spares", help="Spare nodes held; as many as 99 % at full size needs if absent.")
    ] = None,
    days: Annotated[float, typer.Option("--days", help="Wall time of the run.")] = 90.0,
    trials: Annotated[int, typer.Option("--trials", help="Simulated runs.")] = 2000,
    gaps: Annotated[str, typer.Option("--gaps", help=f"Between failures: {list_names(GAPS)}.")] = "bursty",
    cluster_age_days: Annotated[
        float | None, typer.Option("--cluster-age-days", help="Adds early failures; past them if absent.")
    ] = None,
    as_stated: Annotated[
        bool, typer.Option("--as-stated", help="Rates as stated: the band is chance alone, not what is unknown.")
    ] = False,
    curve: Annotated[bool, typer.Option("--curve/--no-curve", help="Also 1,000 to 100,000 accelerators.")] = True,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Of the random numbers.")] = 0,
    report: Annotated[Path | None, typer.Option("--report", help="Write one HTML page that needs no network.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, in base units.")] = False,
) -> None:
    """How much of a run is productive time, and what takes the rest.

    \b
    Example:
      lakh goodput --accelerators 100000 --model llama3.1-405b --cluster jd-cloud-100k
      lakh goodput -n 16384 -m llama3.1-405b -c h100-16k --failures llama3-h100-16k -p automated -p hot-spares
    """
    chosen = _policies(policy or list(POLICIES), spares)
    described, architecture = load_cluster(cluster), resolve_model(model)
    count = described.accelerator_count if accelerators is None else accelerators
    _check(accelerators=count, days=days, trials=trials, gaps=gaps, cluster_age_days=cluster_age_days)
    profile = cluster_failures(described) if failures is None else _profile(failures)
    # Loads the compiled simulation: not before the request is known to be sound.
    from lakh.reliability import CURVE_ACCELERATOR_COUNTS
    from lakh.reliability import goodput as goodput_of

    with OutputFile(report) if report is not None else nullcontext() as page, progress("simulating"):
        found = goodput_of(
            accelerator_count=count,
            profile=profile,
            compared=chosen,
            parameter_count=float(architecture.parameter_count),
            hardware=cluster_hardware(described),
            curve_accelerator_counts=CURVE_ACCELERATOR_COUNTS if curve else (),
            cluster_age_s=None if cluster_age_days is None else cluster_age_days * 86_400.0,
            duration_s=days * 86_400.0,
            trial_count=trials,
            seed=seed,
            gaps=cast(Gaps, gaps),
            uncertain=not as_stated,
        )
        if page is not None:
            page.write(goodput_page(found))
    if as_json:
        inputs = {
            "model": architecture.name,
            "cluster": described.name,
            "accelerator_count": count,
            "policies": [one.name for one in chosen],
            "failure_profile": profile.name,
            "spare_node_count": spares,
            "duration_s": days * 86_400.0,
            "trial_count": trials,
            "gaps": gaps,
            "cluster_age_s": None if cluster_age_days is None else cluster_age_days * 86_400.0,
            "uncertain": not as_stated,
            "seed": seed,
        }
        print_json(goodput_document(found, inputs))
        return
    print_tables(goodput_tables(found))
    if report is not None:
        sys.stdout.write(f"Report: {report}\n")


def _policies(names: list[str], spares: int | None) -> tuple[RecoveryPolicy, ...]:
    problems: list[Problem] = []
    found: dict[str, RecoveryPolicy] = {}
    for name in names:
        try:
            one = recovery_policy(name)
            found[one.name] = one if spares is None else with_spares(one, spares)
        except RequestError as error:
            problems += error.problems
    if problems:
        raise RequestError(problems)
    return tuple(found.values())


def _profile(name: str) -> FailureProfile:
    if name.endswith((".yaml", ".yml")):
        return read_profile_file(Path(name))
    return failure_profile(name)


def _check(*, accelerators: int, days: float, trials: int, gaps: str, cluster_age_days: float | None) -> None:
    problems = []
    if accelerators < 1:
        problems.append(Problem(where="--accelerators", found=accelerators, accepted="1 or more"))
    if not 0.0 < days <= 3650.0:
        problems.append(Problem(where="--days", found=days, accepted="above 0, up to 3650"))
    if not 1 <= trials <= 1_000_000:
        problems.append(Problem(where="--trials", found=trials, accepted="1 to 1,000,000"))
    if gaps not in GAPS:
        problems.append(Problem(where="--gaps", found=gaps, accepted=list_names(GAPS), hint=nearest_hint(gaps, GAPS)))
    if cluster_age_days is not None and not cluster_age_days >= 0.0:
        problems.append(Problem(where="--cluster-age-days", found=cluster_age_days, accepted="0 or more"))
    if problems:
        raise RequestError(problems)


def main() -> None:
    """`python -m lakh.cli.goodput`: the command alone, with its exit codes."""
    try:
        app()
    except LakhError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
