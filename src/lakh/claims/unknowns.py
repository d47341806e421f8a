"""What does nobody know about this cluster? Every unknown of a verdict, as a distribution with its source.

The order of trust: a measurement of the cluster itself, then what `cluster.yaml` says (one value pins, a range becomes
a distribution), then the calibration, then a judgement that is stated in words. Nothing is left out because it is
inconvenient: the error of the step model itself is an unknown like any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lakh.catalog.calibration import Calibration, load_calibration
from lakh.claims.distributions import (
    Choice,
    Distribution,
    Fixed,
    Lognormal,
    Triangular,
    Uniform,
    design_choice,
    from_fact,
)
from lakh.evidence import Fact, Status
from lakh.perf.predict import residual_for
from lakh.perf.system_of import System
from lakh.planner import PlanRequest
from lakh.spec.cluster import Cluster

Kind = Literal["step", "network", "software", "reliability", "model"]
"""step: the accelerator; network: between nodes and sites; software: what frameworks and libraries achieve;
reliability: failures and recovery; model: how wrong our own models are."""

BENCH = "lakh bench"
"""Every measurement below is taken by this command, which later releases bring."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """One number that decides a verdict and that is not known, or was and now is."""

    name: str
    title: str
    """In words, as a part of a sentence: "share of the BF16 peak that a large matmul reaches in training"."""
    unit: str
    """Base unit, as in `lakh.units`; "choice" for one of a few designs."""
    distribution: Distribution
    kind: Kind
    status: Status
    source: str
    note: str = ""
    bench: str = ""
    """The command that measures it; empty where no measurement on one node or cluster can."""
    pinned_by: str = ""
    """What took the range away: the cluster's file or a measurement."""

    @property
    def is_open(self) -> bool:
        """True while there is something left to know."""
        return not self.distribution.is_fixed

    def at(self, u: float) -> float:
        """The value at a share of probability."""
        return float(self.distribution.quantile(u))  # type: ignore[arg-type]

    def text(self, value: float) -> str:
        """A value for people."""
        if isinstance(self.distribution, Choice) and self.distribution.labels:
            return self.distribution.label(value)
        return value_text(value, self.unit)


def value_text(value: float, unit: str) -> str:
    """A base-unit value for people."""
    if unit == "ratio":
        return f"{value:.1%}"
    scales = {
        "flop/second": (1e12, "TFLOP/s"),
        "byte/second": (1e9, "GB/s"),
        "second": (1.0, "s"),
    }
    if unit == "second" and value < 1e-3:
        return f"{value * 1e6:.3g} us"
    if unit == "byte/second" and value >= 1e12:
        return f"{value / 1e12:.3g} TB/s"
    if unit == "second" and value >= 7200.0:
        return f"{value / 3600.0:.3g} h"
    factor, name = scales.get(unit, (1.0, "" if unit in ("1", "choice", "element") else unit))
    return f"{value / factor:.3g} {name}".strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredValue:
    """What a measurement says of one unknown: a value, or a value between two ends."""

    unknown: str
    value: float
    low: float
    high: float
    source: str

    @property
    def distribution(self) -> Distribution:
        if self.low < self.high:
            return Triangular(low=self.low, mode=self.value, high=self.high)
        return Fixed(value=self.value)


def judged(
    name: str,
    title: str,
    unit: str,
    distribution: Distribution,
    kind: Kind,
    *,
    source: str,
    status: Status = "estimate",
    note: str = "",
    bench: str = "",
) -> Unknown:
    return Unknown(
        name=name,
        title=title,
        unit=unit,
        distribution=distribution,
        kind=kind,
        status=status,
        source=source,
        note=note,
        bench=bench and f"{BENCH} {bench}",
    )


def stated(name: str, title: str, fact: Fact, kind: Kind, *, where: str, bench: str) -> Unknown:
    """A fact of the catalogue or of the cluster's file."""
    return Unknown(
        name=name,
        title=title,
        unit=fact.unit,
        distribution=from_fact(fact),
        kind=kind,
        status=fact.status,
        source=fact.source,
        note=fact.note,
        bench=f"{BENCH} {bench}",
        pinned_by="" if fact.is_range else where,
    )


def _device(system: System) -> list[Unknown]:
    """The accelerator. Where its family was fitted on training runs the residual holds all of this but the peak."""
    chip, device, network = system.accelerator, system.input.device, system.input.network
    peak = chip.peak_flop_per_s.get("bf16") or chip.peak_flop_per_s.get("fp16")
    found = []
    if peak is not None:
        found.append(
            stated(
                "card-peak",
                "dense BF16 peak of one card (FP8 in proportion)",
                peak,
                "step",
                where=f"the catalogue entry {chip.name}",
                bench="gemm",
            )
        )
    if system.calibrated:
        return found
    wide, fp8 = float(device.wide_gemm_efficiency), float(device.fp8_gemm_efficiency)
    attention, half = float(device.attention_efficiency), float(device.gemm_half_size)
    fitted = "calibration of the family, from kernels measured on one node; no training run was measured"
    found += [
        judged(
            "gemm-efficiency-bf16",
            "share of the BF16 peak that a very large matmul reaches in training",
            "ratio",
            around(wide, low=0.76, high=1.10, most=0.95),
            "step",
            source=fitted,
            note="low end: H100 and GB200 reach 0.61 to 0.72 in training with clocks under load; high end: vendor "
            "libraries on the best shapes. A judgement",
            bench="gemm --precision bf16",
        ),
        judged(
            "gemm-efficiency-fp8",
            "share of the FP8 peak that a very large matmul reaches in training",
            "ratio",
            around(fp8, low=0.65, high=1.11, most=0.95),
            "step",
            source=fitted,
            note="S5000: 899 of 1000 TFLOP/s in one kernel, 336 to 714 through other libraries; in training "
            "B200 0.55, H100 0.74",
            bench="gemm --precision fp8",
        ),
        judged(
            "gemm-half-size",
            "matmul dimension that costs half of the rate",
            "element",
            around(half, low=0.5, high=1.6),
            "step",
            source=fitted,
            note="from three measured shapes (2048, 4096, 16384); other families lie between 110 and 180",
            bench="gemm --shapes sweep",
        ),
        judged(
            "attention-efficiency",
            "share of the BF16 peak that fused attention reaches",
            "ratio",
            around(attention, low=0.6, high=1.25, most=0.8),
            "step",
            source=fitted,
            note="forward 0.74 measured without mask; backward and causal unmeasured; the vendor says 0.95",
            bench="attention",
        ),
        judged(
            "memory-efficiency",
            "share of the memory bandwidth that long passes reach",
            "ratio",
            around(float(device.memory_efficiency), low=0.88, high=1.05, most=0.95),
            "step",
            source="STREAM copy and triad on one node: 0.77 and 0.89 of nominal",
            bench="memory",
        ),
        judged(
            "scale-up-efficiency",
            "collectives inside a node, over what was measured",
            "1",
            Triangular(low=0.85, mode=1.0, high=1.35),
            "network",
            source="collectives measured on one 8-card node with default settings",
            note="the library may improve (the vendor claims 1.62 times a domestic average) or suffer beside compute",
            bench="collectives --ranks 8",
        ),
        judged(
            "host-speed",
            "speed of kernel launches over a 2023 x86 server",
            "1",
            Triangular(low=0.6, mode=1.0, high=1.3),
            "software",
            source="kernel launch of 6.26 us measured on one node; the driver and framework are younger",
            bench="launch",
        ),
    ]
    if float(network.scale_up_domain_size) <= 1.0:
        found = [one for one in found if one.name != "scale-up-efficiency"]
    return found


def around(value: float, *, low: float, high: float, most: float = math.inf) -> Distribution:
    """A triangle whose ends are shares of its top, cut at `most`."""
    top = max(min(value * high, most), value * 1.001)
    return Triangular(low=value * low, mode=value, high=top)


_OVERLAP_TITLES = {
    "tp": "tensor-parallel",
    "cp": "context-parallel",
    "pp": "pipeline",
    "dp": "data-parallel",
    "ep": "expert",
}


def _software(system: System, request: PlanRequest) -> list[Unknown]:
    """What of the overlap that the framework reaches on the hardware it was fitted on is reached here."""
    if system.calibrated:
        return []
    found = []
    for name, title in _OVERLAP_TITLES.items():
        if name == "ep" and not request.model.is_moe:
            continue
        value = float(getattr(request.software, f"{name}_overlap"))
        found.append(
            judged(
                f"overlap-{name}",
                f"share of {title} traffic that can hide behind compute",
                "ratio",
                Triangular(low=0.0, mode=value, high=max(0.95, value)),
                "software",
                source="calibration of the framework generation on NVIDIA hardware",
                note="not published for this stack: from nothing to nearly all; most likely what the framework reaches "
                "elsewhere",
                bench=f"overlap --group {name}",
            )
        )
    return found


def _network(cluster: Cluster, system: System) -> list[Unknown]:
    fabric, where = cluster.fabric, cluster.origin or f"cluster {cluster.name}"
    if system.accelerator_count <= float(system.input.network.scale_up_domain_size):
        return []
    node = system.node
    port = fabric.tiers[0].port_bytes_per_s if fabric.tiers else node.nic_bytes_per_s
    slower = min((node.nic_bytes_per_s, port), key=lambda fact: fact.value)
    share = node.nic_count / node.accelerator_count
    per_card = replace(slower, value=slower.value * share, low=slower.low * share, high=slower.high * share)
    found = [
        stated(
            "card-network-bandwidth",
            "network bandwidth of one card, one direction",
            per_card,
            "network",
            where=where,
            bench="p2p --between nodes",
        ),
        stated(
            "protocol-efficiency",
            "share of the line rate that large transfers between nodes reach",
            fabric.protocol_efficiency,
            "network",
            where=where,
            bench="collectives --ranks 64",
        ),
    ]
    for tier in fabric.tiers[:-1]:
        fact = tier.oversubscription
        found.append(
            Unknown(
                name=f"oversubscription-{tier.name}",
                title=f"bandwidth down over bandwidth up at the {tier.name} tier",
                unit="1",
                distribution=design_choice((fact.low, fact.value, fact.high), (0.25, 0.5, 0.25)),
                kind="network",
                status=fact.status,
                source=fact.source,
                note=f"{fact.note}; a design, so one of the ends or the stated value, at odds 1 : 2 : 1",
                bench=f"{BENCH} bisection --tier {tier.name}",
                pinned_by="" if fact.is_range else where,
            )
        )
    found.append(
        judged(
            "network-step-latency",
            "time of one step between nodes in a long collective",
            "second",
            around(float(system.input.network.scale_out_latency_s), low=0.7, high=4.0),
            "network",
            source="calibration on InfiniBand clusters",
            note="several tiers, Ethernet and cables across halls take longer; a judgement",
            bench="collectives --ranks 1024 --size small",
        )
    )
    if math.isfinite(float(system.input.network.site_size)):
        found += _sites(cluster, system, where)
    return found


def _sites(cluster: Cluster, system: System, where: str) -> list[Unknown]:
    haul = min(
        (link.bytes_per_s for link in cluster.site_links),
        key=lambda fact: fact.value,
        default=None,
    )
    latency = max((link.latency_s for link in cluster.site_links), key=lambda fact: fact.value, default=None)
    found = [
        judged(
            "sites",
            "one fabric, or the sites of the description joined over long distance",
            "choice",
            Choice(values=(0.0, 1.0), weights=(0.3, 0.7), labels=("several sites", "one fabric")),
            "network",
            source=f"{where}: which site hosts the cluster is undisclosed",
            note="a judgement: one job over several cities is rare, one campus for it is not announced",
        )
    ]
    if haul is not None:
        # The step model counts either one link or all out of a site: the stated range moves with what it counts.
        counted = float(system.input.network.long_haul_bytes_per_s) / haul.value
        scaled = replace(haul, value=haul.value * counted, low=haul.low * counted, high=haul.high * counted)
        found.append(
            stated(
                "long-haul-bandwidth",
                "bandwidth between sites that one job can use, one direction",
                scaled,
                "network",
                where=where,
                bench="p2p --between sites",
            )
        )
    if latency is not None:
        found.append(
            stated(
                "long-haul-latency",
                "one-way latency between the farthest sites",
                latency,
                "network",
                where=where,
                bench="p2p --between sites",
            )
        )
    return found


def _noise(system: System) -> list[Unknown]:
    value = float(system.input.device.jitter_scale)
    found = []
    if not system.calibrated:
        found.append(
            judged(
                "jitter-scale",
                "random delay of one rank, over its step time",
                "ratio",
                Triangular(low=0.75 * value, mode=value, high=2.0 * value),
                "step",
                source="calibration: 0.0049 to 0.0064 over eight families",
                note="a younger driver and network may double it; a judgement",
                bench="jitter --ranks 64",
            )
        )
    found += [
        judged(
            "slow-node-share",
            "share of nodes that are persistently slow at any time, before any is taken out",
            "ratio",
            Lognormal(low=1.1e-4 / 5.0, high=1.1e-4 * 5.0),
            "reliability",
            source="derived: 1.7 % of the 42.5 % of 3,079 jobs that straggle do so because of a bad worker "
            "(arXiv:2505.05713); 64 nodes a job is a judgement",
            bench="nodes --all",
        ),
        judged(
            "slow-node-speed",
            "speed of such a node over a sound one",
            "ratio",
            Triangular(low=0.6, mode=0.787, high=0.95),
            "reliability",
            source="arXiv:2505.05713: the worst tenth of straggling jobs is slowed 1.27 times or more",
            status="secondary",
            bench="nodes --all",
        ),
        judged(
            "slow-node-removal",
            "time until a slow node is found and taken out",
            "second",
            Uniform(low=600.0, high=5 * 86_400.0, log=True),
            "reliability",
            source="from ten minutes (detectors of 2024 to 2026) to the five days it would last",
            note="whether slow nodes are evicted here is not known",
            bench="nodes --all --every 10min",
        ),
    ]
    return found


SCALING_ERROR_AT_100X = 0.04
"""Half width of the 90 % range of a predicted throughput ratio over a hundredfold growth: the published scaling series
err by 0.9 % in the median over growths of 16 at most, and none reaches the sizes asked here. A judgement."""


def _model_error(
    system: System, request: PlanRequest, calibration: Calibration, accelerator_count: int
) -> list[Unknown]:
    name, residual = residual_for(calibration, system.family, moe=request.model.is_moe)
    beyond = accelerator_count / float(calibration.about["largest_accelerator_count"])
    return [
        judged(
            "step-model-error",
            "true step time over the predicted one",
            "1",
            Lognormal(low=residual.low, high=residual.high),
            "model",
            source=f"residuals {name!r} of {residual.row_count} measured runs, leave-one-out where the hardware is new",
            status="measured",
            note="90 % of measured over predicted step times",
            bench="step",
        ),
        judged(
            "scaling-model-error",
            "true over predicted change of throughput with size, over a hundredfold growth",
            "1",
            Lognormal(low=1.0 - SCALING_ERROR_AT_100X, high=1.0 / (1.0 - SCALING_ERROR_AT_100X)),
            "model",
            source="published scaling series: ratio error 0.9 % in the median; none as large as asked",
            note=f"{accelerator_count:,} accelerators are {beyond:.1f} times the largest measured run"
            if beyond > 1
            else "",
            bench="step --accelerators 8,64,512",
        ),
    ]


def step_unknowns(
    cluster: Cluster,
    system: System,
    request: PlanRequest,
    *,
    calibration: Calibration | None = None,
) -> tuple[Unknown, ...]:
    """What a throughput claim depends on and what is known of it.

    Args:
        cluster: the description; its ranges become distributions, its single values pin
        system: the same cluster as a job sees it
        request: the model, software and size that are asked about
        calibration: residuals; the shipped ones unless given
    """
    calibration = calibration or load_calibration()
    return (
        *_device(system),
        *_software(system, request),
        *_network(cluster, system),
        *_noise(system),
        *_model_error(system, request, calibration, request.accelerator_count),
    )


def narrowed(unknowns: Sequence[Unknown], measured: Sequence[MeasuredValue]) -> tuple[Unknown, ...]:
    """The same unknowns with what measurements say of them in place of the assumption.

    A measurement of something that this verdict does not depend on changes nothing.
    """
    by_name: Mapping[str, MeasuredValue] = {m.unknown: m for m in measured}
    result = []
    for one in unknowns:
        found = by_name.get(one.name)
        if found is None:
            result.append(one)
            continue
        result.append(
            replace(
                one,
                distribution=found.distribution,
                status="measured",
                source=found.source,
                note="",
                pinned_by=found.source if found.low >= found.high else "",
            )
        )
    return tuple(result)
