"""How do facts become the numbers of a step? Catalogue entries and calibration into kernel inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lakh.catalog import Accelerator, Node
from lakh.catalog.calibration import Values
from lakh.columns import Array
from lakh.evidence import Fact
from lakh.fabric.closed_form import SCALE_UP_KINDS, NetworkInput
from lakh.perf.software import SoftwareInput
from lakh.perf.system import DeviceInput

_UNSHARED = float("inf")


def _column(value: float) -> Array:
    return np.float64(value)  # type: ignore[return-value]


def _peak(accelerator: Accelerator, *formats: str) -> float:
    """The first peak that is stated among `formats`: an accelerator without fp8 runs fp8 jobs at its wide rate."""
    for name in formats:
        fact = accelerator.peak_flop_per_s.get(name)
        if fact is not None:
            return fact.value
    return max(fact.value for fact in accelerator.peak_flop_per_s.values())


def device_input(accelerator: Accelerator, values: Values) -> DeviceInput:
    """One accelerator as kernel numbers: peaks and memory from the catalogue, efficiencies from the calibration."""
    wide = _peak(accelerator, "bf16", "fp16", "tf32", "fp32")
    fp8 = _peak(accelerator, "fp8", "bf16", "fp16", "tf32", "fp32")
    usable: Fact = accelerator.usable_memory_bytes or accelerator.memory_bytes
    return DeviceInput(
        wide_flop_per_s=_column(wide),
        fp8_flop_per_s=_column(fp8),
        fp4_flop_per_s=_column(_peak(accelerator, "fp4", "fp8", "bf16", "fp16", "tf32", "fp32")),
        int8_flop_per_s=_column(_peak(accelerator, "int8", "bf16", "fp16", "fp32")),
        fp32_flop_per_s=_column(_peak(accelerator, "tf32", "fp32", "bf16", "fp16")),
        wide_gemm_efficiency=_column(values["wide_gemm_efficiency"]),
        fp8_gemm_efficiency=_column(values["fp8_gemm_efficiency"]),
        fp4_gemm_efficiency=_column(values["fp4_gemm_efficiency"]),
        gemm_half_size=_column(values["gemm_half_size"]),
        attention_efficiency=_column(values["attention_efficiency"]),
        memory_bytes_per_s=_column(accelerator.memory_bytes_per_s.value),
        memory_efficiency=_column(values["memory_efficiency"]),
        memory_bytes=_column(usable.value),
        kernel_gap_s=_column(values["kernel_gap_s"]),
        host_speed=_column(values["host_speed"]),
        jitter_scale=_column(values["jitter_scale"]),
    )


def network_input(
    accelerator: Accelerator,
    node: Node,
    values: Values,
    *,
    scale_out_bytes_per_s: float | None = None,
    block_size: float = _UNSHARED,
    oversubscription: float = 1.0,
    site_size: float = _UNSHARED,
    long_haul_bytes_per_s: float = _UNSHARED,
    long_haul_latency_s: float = 0.0,
) -> NetworkInput:
    """The network as kernel numbers.

    Args:
        scale_out_bytes_per_s: network share of one accelerator, one direction; the node's interfaces unless given
        block_size: accelerators that reach each other without oversubscription
        oversubscription: downlink over uplink capacity above the block
        site_size: accelerators of one site; traffic of larger groups crosses the long haul
    """
    kind = node.scale_up.kind
    links = accelerator.scale_up_bytes_per_s.value
    if kind == "pcie" or links <= 0.0:
        links = accelerator.pcie_bytes_per_s.value
    outside = node.nic_bytes_per_s_per_accelerator if scale_out_bytes_per_s is None else scale_out_bytes_per_s
    return NetworkInput(
        scale_up_kind=_column(float(SCALE_UP_KINDS.index(kind))),
        scale_up_domain_size=_column(float(node.scale_up.domain_size)),
        scale_up_bytes_per_s=_column(links),
        scale_out_bytes_per_s=_column(outside if outside > 0.0 else links),
        scale_up_efficiency=_column(values["scale_up_efficiency"]),
        all_reduce_efficiency=_column(values["all_reduce_efficiency"]),
        in_network_efficiency=_column(values["in_network_efficiency"] if kind == "switched" else 0.0),
        in_network_ranks=_column(values["in_network_ranks"]),
        scale_out_efficiency=_column(values["scale_out_efficiency"]),
        all_to_all_efficiency=_column(values["all_to_all_efficiency"]),
        launch_s=_column(values["launch_s"]),
        scale_up_latency_s=_column(values["scale_up_latency_s"]),
        scale_out_latency_s=_column(values["scale_out_latency_s"]),
        copy_bytes_per_s=_column(values["copy_bytes_per_s"]),
        rail_count=_column(values["rail_count"]),
        block_size=_column(block_size),
        oversubscription=_column(oversubscription),
        site_size=_column(site_size),
        long_haul_bytes_per_s=_column(long_haul_bytes_per_s),
        long_haul_latency_s=_column(long_haul_latency_s),
    )


def software_input(values: Values, switches: Mapping[str, float] | None = None) -> SoftwareInput:
    """A framework generation as kernel numbers; `switches` override single fields (what a run turned on or off)."""
    merged = dict(values) | dict(switches or {})
    return SoftwareInput(**{name: _column(value) for name, value in merged.items()})
