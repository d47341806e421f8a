"""How are many measured runs predicted at once? One kernel call over all rows, each with its own model and machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lakh.catalog.calibration import Values
from lakh.columns import Array
from lakh.fabric.closed_form import NetworkInput
from lakh.perf.inputs import RECOMPUTE_CODE, ModelInput, PlanInput, WorkloadInput
from lakh.perf.machine import device_input, network_input, software_input
from lakh.perf.memory import MemoryTable
from lakh.perf.software import SoftwareInput
from lakh.perf.step import StepTable, evaluate
from lakh.perf.system import DeviceInput, SystemInput
from lakh.validation.measurements import Case


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Cases as columns; only families and generations are left to fill in."""

    cases: tuple[Case, ...]
    models: ModelInput
    plans: PlanInput
    workloads: WorkloadInput
    families: tuple[str, ...]
    devices: DeviceInput
    networks: NetworkInput
    software: SoftwareInput


def batch_of(
    cases: Sequence[Case],
    families: Mapping[str, Values],
    family_of: Mapping[str, str],
    generations: Mapping[str, Values],
) -> Batch:
    """Columns for `cases` under given parameters."""
    names = [family_of.get(case.accelerator.name, "generic") for case in cases]
    models = ModelInput.stack(ModelInput.of(case.model, mtp_layer_count=case.mtp_layer_count) for case in cases)
    plans = PlanInput.of([case.layout for case in cases])
    workloads = WorkloadInput.stack(
        WorkloadInput.of(sequence_length=case.sequence_length, global_batch_sequences=case.global_batch_sequences)
        for case in cases
    )
    devices = DeviceInput.stack(
        device_input(case.accelerator, families[name]) for case, name in zip(cases, names, strict=True)
    )
    networks = NetworkInput.stack(
        network_input(case.accelerator, case.node, families[name], scale_out_bytes_per_s=case.scale_out_bytes_per_s)
        for case, name in zip(cases, names, strict=True)
    )
    software = SoftwareInput.stack(software_input(generations[case.generation], case.switches) for case in cases)
    return Batch(
        cases=tuple(cases),
        models=models,
        plans=plans,
        workloads=workloads,
        families=tuple(names),
        devices=devices,
        networks=networks,
        software=software,
    )


def evaluate_batch(batch: Batch) -> StepTable:
    """All rows in one kernel call."""
    system = SystemInput(device=batch.devices, network=batch.networks)
    return evaluate(batch.models, system, batch.software, batch.plans, batch.workloads)


_FULL_ONLY_BEYOND = 1.25
"""Recipes that do not say full recomputation do not use it unless even selective is this far from fitting."""


def with_stated_recompute(batch: Batch) -> Batch:
    """Rows that do not state recomputation get the least that fits: none, else selective, else (far out) full."""
    unstated = np.array([not case.recompute_stated for case in batch.cases])
    if not unstated.any():
        return batch

    def memory_with(recompute: Array) -> MemoryTable:
        return evaluate_batch(replace(batch, plans=replace(batch.plans, recompute=recompute))).memory

    stated = np.array(batch.plans.recompute, dtype=np.float64)
    none, selective, full = (float(RECOMPUTE_CODE[name]) for name in ("none", "selective", "full"))
    fits = memory_with(np.where(unstated, none, stated)).fits
    chosen = np.where(unstated & ~fits, selective, np.where(unstated, none, stated))
    memory = memory_with(chosen)
    far_out = memory.required_bytes > _FULL_ONLY_BEYOND * memory.capacity_bytes
    chosen = np.where(unstated & far_out, full, chosen)
    plans: PlanInput = replace(batch.plans, recompute=chosen)
    return replace(batch, plans=plans)


def relative_errors(predicted: Array, measured: Array) -> Array:
    """Predicted over measured, minus one."""
    return predicted / measured - 1.0
