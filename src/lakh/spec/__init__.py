"""What did the user ask for? Clusters, jobs, layouts, scenarios and models: frozen, checked at the door.

Each name is imported when first used: the schema library behind `load_cluster` costs more than all the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakh.spec.cluster import Cluster, single_pool_cluster
    from lakh.spec.cluster_file import cluster_names, load_cluster
    from lakh.spec.job import Constraints, Job, Workload
    from lakh.spec.job_file import load_job
    from lakh.spec.layout import Layout
    from lakh.spec.model import MODEL_TYPES, model_from_config, resolve_model
    from lakh.spec.scenario import Scenario
    from lakh.spec.scenario_file import load_scenario
    from lakh.spec.schemas import FILE_KINDS, schema

_HOME = {
    "FILE_KINDS": "schemas",
    "MODEL_TYPES": "model",
    "Cluster": "cluster",
    "Constraints": "job",
    "Job": "job",
    "Layout": "layout",
    "Scenario": "scenario",
    "Workload": "job",
    "cluster_names": "cluster_file",
    "load_cluster": "cluster_file",
    "load_job": "job_file",
    "load_scenario": "scenario_file",
    "model_from_config": "model",
    "resolve_model": "model",
    "schema": "schemas",
    "single_pool_cluster": "cluster",
}

__all__ = [
    "FILE_KINDS",
    "MODEL_TYPES",
    "Cluster",
    "Constraints",
    "Job",
    "Layout",
    "Scenario",
    "Workload",
    "cluster_names",
    "load_cluster",
    "load_job",
    "load_scenario",
    "model_from_config",
    "resolve_model",
    "schema",
    "single_pool_cluster",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"lakh.spec.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
