"""Machines and models that the tests of the step model share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lakh import catalog
from lakh.columns import Array
from lakh.perf.inputs import ModelInput, PlanInput, WorkloadInput
from lakh.perf.machine import device_input, network_input, software_input
from lakh.perf.software import SoftwareInput
from lakh.perf.step import StepTable, evaluate
from lakh.perf.system import SystemInput
from lakh.spec.layout import Layout
from lakh.validation.fit import start_parameters
from lakh.validation.priors import FAMILY_OF

FAMILIES, GENERATIONS = start_parameters()


def system(name: str = "H100-80GB-SXM") -> SystemInput:
    """A machine with every parameter at its prior, so that these tests do not move with the calibration."""
    chip = catalog.accelerator(name)
    values = FAMILIES[FAMILY_OF.get(chip.name, "generic")]
    return SystemInput(
        device=device_input(chip, values), network=network_input(chip, catalog.default_node_for(chip.name), values)
    )


def software(name: str = "megatron-2025", **switches: float) -> SoftwareInput:
    return software_input(GENERATIONS[name], switches)


def workload(sequence_length: int = 4096, global_batch_sequences: int = 512) -> WorkloadInput:
    return WorkloadInput.of(sequence_length=sequence_length, global_batch_sequences=global_batch_sequences)


def step(
    model: str,
    layouts: Layout | list[Layout],
    *,
    machine: SystemInput | None = None,
    programs: SoftwareInput | None = None,
    work: WorkloadInput | None = None,
) -> StepTable:
    return evaluate(
        ModelInput.of(catalog.model(model)),
        machine or system(),
        programs or software(),
        PlanInput.of(layouts),
        work or workload(),
    )


def with_device(machine: SystemInput, **factors: float) -> SystemInput:
    """The machine with device numbers multiplied."""
    changes = {name: getattr(machine.device, name) * factor for name, factor in factors.items()}
    return SystemInput(device=replace(machine.device, **changes), network=machine.network)


def with_network(machine: SystemInput, **values: float) -> SystemInput:
    """The machine with network numbers set."""
    changes: dict[str, Array] = {name: np.asarray(value) for name, value in values.items()}
    return SystemInput(device=machine.device, network=replace(machine.network, **changes))
