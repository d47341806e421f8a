"""What is true of the hardware, the models and the claims? Facts with sources, and one loader.

Every link figure is one direction (see `lakh.catalog.hardware`). Nothing is read before it is asked for.
"""

from lakh.catalog.facts import FactError, read_fact
from lakh.catalog.hardware import PEAK_FORMATS, SCALE_UP_KINDS, Accelerator, Claim, Node, ScaleUp, ScaleUpKind
from lakh.catalog.loader import (
    accelerator,
    accelerators,
    claim,
    claims,
    default_node_for,
    model,
    models,
    node,
    nodes,
    training_measurements_path,
)
from lakh.catalog.model import Experts, LatentAttention, Model

__all__ = [
    "PEAK_FORMATS",
    "SCALE_UP_KINDS",
    "Accelerator",
    "Claim",
    "Experts",
    "FactError",
    "LatentAttention",
    "Model",
    "Node",
    "ScaleUp",
    "ScaleUpKind",
    "accelerator",
    "accelerators",
    "claim",
    "claims",
    "default_node_for",
    "model",
    "models",
    "node",
    "nodes",
    "read_fact",
    "training_measurements_path",
]
