"""How is a claim asked about by name? Names and paths to a verdict, with the defaults that each claim implies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lakh.catalog import Claim, Model
from lakh.catalog import claim as catalogue_claim
from lakh.claims.measurement_file import load_measurements
from lakh.claims.verdict import DEFAULT_SAMPLES, Progress, Verdict, check
from lakh.claims.workload import GPT4_AS_REPORTED, claimed_cluster_name, claimed_model_name
from lakh.spec import load_cluster, resolve_model
from lakh.spec.cluster import Cluster, single_pool_cluster

GPT4_ACCELERATORS = 25_000
GPT4_GENERATION = "megatron-2022"
"""The newest fitted framework generation of the time at which GPT-4 was trained."""


def model_of(model: str | Path | Model) -> Model:
    """A model by its name, by a path to a config.json, or as it is; "gpt4-as-reported" is known here alone."""
    if isinstance(model, Model):
        return model
    return GPT4_AS_REPORTED if str(model) == GPT4_AS_REPORTED.name else resolve_model(str(model))


def cluster_of(cluster: str | Path | Cluster | None, claim: Claim) -> Cluster:
    """A cluster by its name, by a path, or as it is; the one that the claim is about where none is given."""
    if isinstance(cluster, Cluster):
        return cluster
    if cluster is not None:
        return load_cluster(cluster)
    name = claimed_cluster_name(claim.name)
    if name:
        return load_cluster(name)
    return single_pool_cluster("DGX-A100-80GB", GPT4_ACCELERATORS, name="gpt4-as-reported")


def ask(
    claim: str | Claim,
    *,
    cluster: str | Path | Cluster | None = None,
    model: str | Path | Model | None = None,
    measurements: str | Path | None = None,
    accelerator_count: int | None = None,
    sequence_length: int | None = None,
    global_batch_sequences: int | None = None,
    sample_count: int = DEFAULT_SAMPLES,
    seed: int = 0,
    sizes: Sequence[int] | None = None,
    generation: str | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """The verdict on a claim by name: what `lakh check` prints.

    Args:
        claim: a catalogue name, or a claim
        cluster: name, path or cluster; JD Cloud's announced cluster unless given, or the claim's own
        model: name, path or model; the flagship of the claim's kind unless given
        measurements: a file that narrows unknowns
        others: as `lakh.claims.verdict.check`

    Raises:
        RequestError: a name, file or number that is refused
        InfeasibleError: the model fits nowhere at the size asked about
    """
    found = catalogue_claim(claim) if isinstance(claim, str) else claim
    narrowing = load_measurements(measurements).values if measurements is not None else ()
    about_gpt4 = cluster is None and not claimed_cluster_name(found.name)
    return check(
        found,
        cluster_of(cluster, found),
        model_of(claimed_model_name(found.name) if model is None else model),
        accelerator_count=accelerator_count,
        sequence_length=sequence_length,
        global_batch_sequences=global_batch_sequences,
        sample_count=sample_count,
        seed=seed,
        measured=narrowing,
        sizes=sizes,
        generation=generation or (GPT4_GENERATION if about_gpt4 else None),
        progress=progress,
    )
