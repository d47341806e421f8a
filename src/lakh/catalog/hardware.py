"""What is an accelerator, and what is a node? Facts as published, in base units, one direction per link figure.

Direction convention, everywhere in Lakh: a link figure is what ONE accelerator (or one NIC) can send in ONE
direction. Makers mostly print the sum of both directions (NVLink 4: "900 GB/s"); the catalogue halves such a
figure (450 GB/s) and says so in the note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from lakh.evidence import Fact

ScaleUpKind = Literal["full-mesh", "switched", "ring", "pcie", "torus", "none"]
"""How accelerators of one scale-up domain are joined. full-mesh: every pair has its own 1/(n-1) of an
accelerator's links, so a group of k reaches (k-1)/(n-1) of them (MTLink, Ascend 910B, MI300X, Gaudi); switched:
any pair may use all links (NVSwitch); ring: two neighbours; pcie: through the host's PCIe, `pcie_bytes_per_s` is
the figure to use; torus: neighbours of a 2-D or 3-D grid (TPU, Trainium); none: one accelerator."""

SCALE_UP_KINDS: tuple[str, ...] = get_args(ScaleUpKind)

PEAK_FORMATS: tuple[str, ...] = ("bf16", "fp16", "fp8", "fp4", "int8", "tf32", "fp32", "fp64")
"""Number formats a peak may be stated for. Dense: no structured sparsity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """One accelerator model: what one device can do. TPU: one chip; Trainium: one chip; MI300X: the whole package."""

    name: str
    maker: str
    year: int
    """Year of first volume or of the announcement."""
    aliases: tuple[str, ...] = ()
    announced: bool = False
    """True while nobody can buy it; its figures are then ranges."""
    peak_flop_per_s: Mapping[str, Fact]
    """Dense peak per number format [flop/second]; keys from `PEAK_FORMATS`; a missing key is unsupported or unknown."""
    memory_bytes: Fact
    """Device memory [byte]."""
    usable_memory_bytes: Fact | None = None
    """What a process can see before it allocates anything [byte]; None where nobody has published it."""
    memory_bytes_per_s: Fact
    """Peak device-memory bandwidth [byte/second]."""
    scale_up_bytes_per_s: Fact
    """Sum of all scale-up links of one accelerator, ONE direction [byte/second]; 0 where it has none."""
    pcie_bytes_per_s: Fact
    """Host link, one direction, after line coding [byte/second]."""
    board_power_watt: Fact
    """Limit of the whole board or package [watt]."""
    idle_power_watt: Fact | None = None
    kernel_launch_s: Fact | None = None
    """Time from one kernel launch to the next on an otherwise idle host [second]."""
    forms: tuple[str, ...] = ()
    """Form factors sold: "SXM", "OAM", "PCIe"."""
    notes: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleUp:
    """What joins accelerators faster than the network."""

    kind: ScaleUpKind
    domain_size: int
    """Accelerators in one scale-up domain; may be larger than a node (NVL72: 72) and is 1 for "none"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One host with its accelerators."""

    name: str
    maker: str
    aliases: tuple[str, ...] = ()
    accelerator: str
    """Catalogue name of the accelerator."""
    accelerator_count: int
    scale_up: ScaleUp
    nic_count: int
    """Network ports for traffic between accelerators of different nodes; storage and management ports not counted."""
    nic_bytes_per_s: Fact
    """One such port, one direction [byte/second]."""
    cpu_core_count: Fact
    """Physical cores of all sockets [1]."""
    host_memory_bytes: Fact
    host_power_watt: Fact
    """Everything in the box but the accelerators, at training load [watt]."""
    max_power_watt: Fact | None = None
    """Maximum of the whole box as stated by its maker [watt]."""
    notes: str = ""

    @property
    def nic_bytes_per_s_per_accelerator(self) -> float:
        """Network bandwidth of one accelerator, one direction, if all of the node send at once [byte/second]."""
        return self.nic_count * self.nic_bytes_per_s.value / self.accelerator_count


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A statement that someone made about a cluster or a chip, to be checked."""

    name: str
    statement: str
    who: str
    when: str
    """Date as far as it is known: "2025-12-20", "2026-09"."""
    quantity: str
    """What is claimed, in Lakh's words: "mfu", "scaling_efficiency", "effective_time", "scale_up_bytes_per_s"."""
    value: Fact
    conditions: Mapping[str, str]
    """What was said about hardware, model, scale, precision; only what was said."""
    undefined: tuple[str, ...]
    """What was not said and would have to be, before the claim can be called true or false."""
    aliases: tuple[str, ...] = ()
