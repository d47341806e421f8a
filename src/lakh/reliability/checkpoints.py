"""How long do saving and loading a checkpoint take, and from where can what be restored?

Three tiers, fastest first: the memory of a peer node, the local disk (with a copy on a peer's), shared storage. A
failure is recovered from the fastest tier that survives it. Sizes follow from the model, times from links and storage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lakh.errors import Problem, RequestError
from lakh.reliability.closed_form import daly_interval_s

TierName = Literal["peer-memory", "local-disk", "shared-storage"]
TIER_NAMES: tuple[str, ...] = get_args(TierName)

STATE_BYTES_PER_PARAMETER = 14.0
"""Mixed-precision Adam: 4 master weight + 8 moments + 2 bf16 weight. 12 without the copy, 16 with gradients (ZeRO,
arXiv:1910.02054); BLOOM wrote 13.07 (its chronicles)."""

SNAPSHOT_FIXED_S = 0.35
"""What a snapshot blocks apart from copying: planning and a barrier. ByteCheckpoint 0.34 s on 1,488 accelerators
(arXiv:2407.20143), DLRover 0.2 s on 1,536, PyTorch DCP 0.78 s on 1,856."""
PERSIST_FIXED_S = 15.0
"""Metadata, many small files and a barrier of one save to shared storage: ByteCheckpoint's 20.1 s for a 7 B model on
1,488 accelerators less its transfer (arXiv:2407.20143). Estimate."""
LOAD_FIXED_S = 30.0
"""Planning and metadata of one load from shared storage. Estimate between DCP's seconds and ByteCheckpoint's 266 s with
data loaders (arXiv:2407.20143)."""
PERSIST_INTERFERENCE = 0.05
"""Share of throughput lost while a snapshot goes out. DCP: 0.5 with a thread, next to nothing with a process of its own
(PyTorch blog, April 2025). Estimate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """What checkpoints and correlated failures need to know of a cluster. Bandwidths are one direction."""

    accelerators_per_node: int = 8
    nodes_per_block: int = 32
    """Nodes that one leaf switch joins."""
    nodes_per_row: int = 128
    """Nodes on one power feed."""
    host_copy_bytes_per_s: float = 32e9
    """One accelerator to host memory [byte/s]; DLRover reaches 32 GB/s over PCIe 4."""
    nic_bytes_per_s: float = 50e9
    """One accelerator's share of the network, line rate [byte/s]."""
    network_efficiency: float = 0.7
    local_disk_bytes_per_s: float = 4e9
    """One node's disks, writing [byte/s]."""
    storage_write_bytes_per_s: float = 2e12
    """What the job gets of shared storage [byte/s]; Llama 3's reaches 2 TB/s sustained (arXiv:2407.21783)."""
    storage_read_bytes_per_s: float = 2e12
    storage_client_bytes_per_s: float = 2.5e9
    """What one node gets from shared storage [byte/s]; 10 % of a 200 Gbit/s link, the best of 504 B200s whose NFS
    client was the limit (arXiv:2605.09370)."""

    def __post_init__(self) -> None:
        problems = [
            Problem(where=f"hardware: {name}", found=getattr(self, name), accepted="a value above 0")
            for name in self.__slots__
            if not getattr(self, name) > 0
        ]
        if problems:
            raise RequestError(problems)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointTier:
    """One place checkpoints go to."""

    name: TierName
    block_s: float
    """Time the job stands still for one checkpoint [s]."""
    persist_s: float
    """Time until it can be restored from, after the block; 0 where the job waits for all of it [s]."""
    load_s: float
    """Time to restore from it [s]."""
    interval_s: float = math.nan
    """Work between two checkpoints [s]; NaN until chosen."""
    interference: float = PERSIST_INTERFERENCE
    """Share of throughput lost while it persists [ratio]."""

    @property
    def cost_s(self) -> float:
        """Time one checkpoint costs the job: its block, and what persisting takes from throughput [s]."""
        return self.block_s + self.interference * self.persist_s

    @property
    def overhead(self) -> float:
        """Cost per unit of work, C / T [1]."""
        return self.cost_s / self.interval_s


def state_bytes(parameter_count: float, *, bytes_per_parameter: float = STATE_BYTES_PER_PARAMETER) -> float:
    """Size of one full checkpoint: weights and optimizer, each once [byte]."""
    return parameter_count * bytes_per_parameter


def checkpoint_tier(
    name: TierName,
    *,
    checkpoint_bytes: float,
    accelerator_count: int,
    hardware: Hardware,
    asynchronous: bool = True,
    shard_count: int | None = None,
) -> CheckpointTier:
    """Times of one tier.

        snapshot = fixed + shard / host copy
        peer memory:    persist = shard / network;     load = fixed + shard / network
        local disk:     persist = node's shards / disk, and a peer's copy over the network; load the same
        shared storage: persist = fixed + checkpoint / min(storage, nodes x client)
                        load    = fixed + checkpoint / min(read, nodes x client) + shard / network

    Args:
        checkpoint_bytes: the whole checkpoint, each shard once
        accelerator_count: accelerators of the job
        hardware: bandwidths
        asynchronous: True: the job waits for the snapshot only; False: until all is written
        shard_count: accelerators that each hold a different part; None: all of them (fully sharded states)

    Loading reads each byte once and spreads it over the network, as MegaScale does (NSDI 2024): with many replicas
    reading all of it, storage would be the limit.
    """
    shards = min(shard_count or accelerator_count, accelerator_count)
    shard_bytes = checkpoint_bytes / shards
    node_count = math.ceil(accelerator_count / hardware.accelerators_per_node)
    writing_nodes = math.ceil(shards / hardware.accelerators_per_node)
    network_bytes_per_s = hardware.nic_bytes_per_s * hardware.network_efficiency
    snapshot_s = SNAPSHOT_FIXED_S + shard_bytes / hardware.host_copy_bytes_per_s
    node_bytes = shard_bytes * hardware.accelerators_per_node
    if name == "peer-memory":
        persist_s = shard_bytes / network_bytes_per_s
        load_s = SNAPSHOT_FIXED_S + persist_s + shard_bytes / hardware.host_copy_bytes_per_s
    elif name == "local-disk":
        persist_s = node_bytes / hardware.local_disk_bytes_per_s + shard_bytes / network_bytes_per_s
        load_s = SNAPSHOT_FIXED_S + persist_s
    else:
        write = min(hardware.storage_write_bytes_per_s, writing_nodes * hardware.storage_client_bytes_per_s)
        read = min(hardware.storage_read_bytes_per_s, node_count * hardware.storage_client_bytes_per_s)
        persist_s = PERSIST_FIXED_S + checkpoint_bytes / write
        load_s = LOAD_FIXED_S + checkpoint_bytes / read + shard_bytes / network_bytes_per_s
    if asynchronous:
        return CheckpointTier(name=name, block_s=snapshot_s, persist_s=persist_s, load_s=load_s)
    return CheckpointTier(name=name, block_s=snapshot_s + persist_s, persist_s=0.0, load_s=load_s)


LONGEST_INTERVAL_S = 86_400.0
"""Nobody goes longer than a day without a checkpoint, however rare the failure it is for."""


def optimum_intervals_s(
    tiers: Sequence[CheckpointTier], rates_per_s: Sequence[float], *, shortest_s: float = 1.0
) -> tuple[float, ...]:
    """Work between checkpoints of each tier that loses least.

    Each level takes Daly's interval for the failures that need it (Di 2014, Benoit 2017), no shorter than one persists
    and no shorter than the level before it, since nothing is gained by writing the slower tier more often. A tier that
    no failure needs is written at the longest interval.

    Args:
        tiers: fastest first
        rates_per_s: failures whose fastest usable tier is each one [1/s]
        shortest_s: shortest interval there is: one step [s]
    """
    intervals: list[float] = []
    floor = shortest_s
    for tier, rate in zip(tiers, rates_per_s, strict=True):
        if rate <= 0.0:
            intervals.append(LONGEST_INTERVAL_S)
            continue
        best = daly_interval_s(checkpoint_s=tier.cost_s, mtbf_s=1.0 / rate)
        floor = max(floor, tier.persist_s, min(best, LONGEST_INTERVAL_S))
        intervals.append(floor)
    return tuple(intervals)
