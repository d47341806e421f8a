"""What does a collective library make of the wire? A few fitted numbers per accelerator family, with their error.

They feed both levels of the fabric (see `lakh.fabric.closed_form` for the formula): y = bytes on the slowest link over
its bandwidth times an efficiency, t = launch + (sqrt(y) + sqrt(steps))^2 + own share / copy rate. The square is a
transfer pipelined in its best number of chunks; it is the slow ramp of bandwidth with message size that every measured
table shows. `benchmarks/fabric/fit_protocol.py` fits the numbers and writes `protocols.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from lakh.errors import UnknownNameError
from lakh.evidence import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtocolFit:
    """Protocol of one accelerator family. Efficiencies are shares of the nominal link rate for very large messages."""

    family: str
    all_gather_efficiency: float
    reduce_scatter_efficiency: float
    all_reduce_efficiency: float
    all_to_all_efficiency: float
    send_efficiency: float
    in_network_efficiency: float
    """Of an all-reduce in the scale-up switch, whose ranks send (1 + 1/n) of the message."""
    scale_out_efficiency: float
    """Of the network interfaces, any collective."""
    copy_bytes_per_s: float
    """Rate at which the own share is copied; it bounds no link."""
    launch_s: float
    """Fixed cost of a call."""
    step_s: float
    """Cost of a chunk at one stage."""
    in_network_least_ranks: int
    """Ranks of a domain from which the library lets the switch add."""
    ring_hop_s: float
    """Latency per rank of a ring that leaves the domain."""
    most_channels: int
    """Interfaces of one domain that one ring collective engages at most."""
    status: Status
    source: str
    note: str = ""
    median_error: float | None
    """Median of |predicted / measured - 1| over its rows, messages of 1 MB and more; None: no rows."""
    row_count: int


@cache
def protocol_fits() -> dict[str, ProtocolFit]:
    """Every fitted family by name."""
    text = files("lakh.fabric").joinpath("protocols.json").read_text(encoding="utf-8")
    names = {field.name for field in fields(ProtocolFit)}
    rows = json.loads(text)["families"]
    return {row["family"]: ProtocolFit(**{key: value for key, value in row.items() if key in names}) for row in rows}


def protocol_fit(family: str) -> ProtocolFit:
    """The fit of one family.

    Raises:
        UnknownNameError: no family has that name
    """
    fits = protocol_fits()
    if family not in fits:
        raise UnknownNameError("protocol family", family, tuple(fits))
    return fits[family]


FAMILY_OF = {
    "A100": "a100",
    "A800": "a100",
    "H100": "hopper",
    "H200": "hopper",
    "H800": "hopper",
    "H20": "hopper",
    "B200": "blackwell",
    "B300": "blackwell",
    "GB200": "blackwell",
    "GB300": "blackwell",
    "MTT-S5000": "s5000",
    "MI300X": "mi300x",
    "RTX-PRO-6000": "pcie5",
}
"""Accelerator names by their beginning; the longest that fits wins."""


def family_of(accelerator: str, *, domain_size: int = 8) -> str | None:
    """Protocol family of an accelerator; None where nobody has published its collectives."""
    if accelerator.upper().startswith("GB") and domain_size > 8:
        return "nvl72"
    fitting = [name for name in FAMILY_OF if accelerator.upper().startswith(name)]
    return FAMILY_OF[max(fitting, key=len)] if fitting else None
