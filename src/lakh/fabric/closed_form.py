"""How long does a collective take? Closed forms over the actual scale-up topology and the scale-out network.

Both levels of the fabric answer to one interface, `CollectiveModel`: these formulas, which a search evaluates
millions of times, and a flow-level simulation of the real graph, which sees what formulas cannot.

Convention: every bandwidth is what ONE accelerator can send in ONE direction [byte/s].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lakh.columns import Array, Columns

FULL_MESH, SWITCHED, RING, PCIE, TORUS, NONE = range(6)
SCALE_UP_KINDS: tuple[str, ...] = ("full-mesh", "switched", "ring", "pcie", "torus", "none")


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A communicator: `size` ranks, `stride` apart in rank order, where neighbours in rank order share a node.

    With Megatron's order (tp, cp, ep/dp, pp from fastest to slowest) the tensor-parallel group has stride 1 and
    the data-parallel group stride tp * cp.
    """

    size: Array
    stride: Array


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkInput(Columns):
    """The network as numbers that broadcast; efficiencies are fitted or measured, 0 to 1."""

    scale_up_kind: Array
    """Code: position in SCALE_UP_KINDS."""
    scale_up_domain_size: Array
    scale_up_bytes_per_s: Array
    """All scale-up links of one accelerator together, one direction."""
    scale_out_bytes_per_s: Array
    """Network interface share of one accelerator, one direction."""
    scale_up_efficiency: Array
    """Protocol efficiency of large messages inside the domain."""
    scale_out_efficiency: Array
    all_to_all_efficiency: Array
    """What an all-to-all reaches of what a ring reaches, both levels."""
    scale_up_latency_s: Array
    """One hop inside the domain, software included."""
    scale_out_latency_s: Array
    block_size: Array
    """Accelerators under one leaf tier: traffic inside it sees no oversubscription."""
    oversubscription: Array
    """Downlink over uplink capacity above the block, 1 or more."""
    in_network_reduction: Array
    """1 where the scale-up switch reduces (an all-reduce then sends each byte once), else 0."""
    site_size: Array
    """Accelerators on one site; infinite where there is one site."""
    long_haul_bytes_per_s: Array
    """Share of one accelerator in the links between sites, one direction; used only across sites."""
    long_haul_latency_s: Array


class CollectiveModel(Protocol):
    """What a step model asks of a network. Sizes follow nccl-tests: the whole buffer of one rank [byte]."""

    @property
    def scale_up_domain_size(self) -> Array:
        """Accelerators that the scale-up links join."""
        ...

    def all_gather_s(self, total_bytes: Array, group: Group) -> Array:
        """Every rank holds 1/size of `total_bytes` and ends with all of it."""
        ...

    def reduce_scatter_s(self, total_bytes: Array, group: Group) -> Array:
        """Every rank holds `total_bytes` and ends with its 1/size of the sum."""
        ...

    def all_reduce_s(self, message_bytes: Array, group: Group) -> Array:
        """Every rank holds `message_bytes` and ends with the sum."""
        ...

    def all_to_all_s(self, message_bytes: Array, group: Group) -> Array:
        """Every rank sends 1/size of `message_bytes` to each rank of the group."""
        ...

    def send_s(self, message_bytes: Array, stride: Array) -> Array:
        """One rank sends to the rank `stride` further; every pair at that distance may do so at once."""
        ...


@dataclass(frozen=True, slots=True)
class _Split:
    """A group cut along the machine: `inner` ranks per scale-up domain, `outer` domains."""

    inner: Array
    outer: Array


class ClosedForm:
    """Bandwidth and latency terms of the algorithm a collective library would choose on this topology."""

    def __init__(self, network: NetworkInput) -> None:
        self._net = network

    @property
    def scale_up_domain_size(self) -> Array:
        return self._net.scale_up_domain_size

    def _split(self, group: Group) -> _Split:
        inner = np.clip(np.floor(self._net.scale_up_domain_size / group.stride), 1.0, group.size)
        return _Split(inner, np.maximum(group.size / inner, 1.0))

    def _inner_bytes_per_s(self, ranks: Array) -> Array:
        """What one rank can send to the other `ranks - 1` of its domain at once.

        A switch or a torus gives a pair all of the accelerator's links. A full mesh has one link bundle per pair,
        so a group of k out of D uses (k - 1)/(D - 1) of them: 2 of 8 cards get a seventh. On a ring two of the
        links are used, whatever the group's size. PCIe is shared through the root complex in both directions.
        """
        net = self._net
        pairs = np.maximum(net.scale_up_domain_size - 1.0, 1.0)
        mesh_share = np.where(net.scale_up_kind == FULL_MESH, np.minimum((ranks - 1.0) / pairs, 1.0), 1.0)
        share = np.where(net.scale_up_kind == PCIE, 0.5, mesh_share)
        rate = net.scale_up_bytes_per_s * share * net.scale_up_efficiency
        return np.where(rate > 0.0, rate, np.inf)

    def _outer_bytes_per_s(self, group: Group, inner: Array) -> Array:
        """What one rank can send out of its domain, given oversubscription and site crossings.

        The `inner` ranks of a domain each own an interface; a group smaller than the block stays below the leaf
        tier; above it only 1/oversubscription of the rate leads up. Across sites the long-haul share binds.
        """
        net = self._net
        span = group.size * group.stride
        above = np.where(span > net.block_size, 1.0 - net.block_size / np.maximum(span, 1.0), 0.0)
        slow_down = 1.0 + above * (net.oversubscription - 1.0)
        rate = net.scale_out_bytes_per_s * net.scale_out_efficiency / slow_down
        rate = np.where(span > net.site_size, np.minimum(rate, net.long_haul_bytes_per_s), rate)
        return np.where(rate > 0.0, rate, 1.0)

    def _one_way_s(self, total_bytes: Array, group: Group) -> Array:
        """An all-gather or, run backwards, a reduce-scatter: each rank must receive (n - 1)/n of the total.

        Bandwidth: rings through all ranks, one per interface of a domain; a domain's traffic to the next domain is
        shared by its `inner` interfaces, so the ring runs at min(inner rate, inner * interface rate) [1].
        Latency: hops inside a domain are direct on a mesh or switch; between domains the library takes a ring when
        the message is large and log2 steps when it is small.

        [1] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
            Int. J. High Perform. Comput. Appl. 19(1), 2005, sections 4.1 and 4.4.
        """
        split = self._split(group)
        wire = total_bytes * (group.size - 1.0) / group.size
        inner_rate = np.where(split.inner > 1.0, self._inner_bytes_per_s(split.inner), np.inf)
        outer_rate = np.where(split.outer > 1.0, split.inner * self._outer_bytes_per_s(group, split.inner), np.inf)
        seconds = wire / np.minimum(inner_rate, outer_rate)
        return seconds + self._latency_s(group, split)

    def _latency_s(self, group: Group, split: _Split) -> Array:
        net = self._net
        ring_inner = (net.scale_up_kind == RING) | (net.scale_up_kind == PCIE)
        inner_hops = np.where(ring_inner, split.inner - 1.0, np.ceil(np.log2(split.inner)))
        across = np.where(group.size * group.stride > net.site_size, net.long_haul_latency_s, 0.0)
        outer_hops = np.ceil(np.log2(split.outer))
        return inner_hops * net.scale_up_latency_s + outer_hops * net.scale_out_latency_s + across

    def all_gather_s(self, total_bytes: Array, group: Group) -> Array:
        return np.where(group.size > 1.0, self._one_way_s(total_bytes, group), 0.0)

    def reduce_scatter_s(self, total_bytes: Array, group: Group) -> Array:
        return self.all_gather_s(total_bytes, group)

    def all_reduce_s(self, message_bytes: Array, group: Group) -> Array:
        """A reduce-scatter and an all-gather; half the traffic where the scale-up switch reduces in the network."""
        two_phases = 2.0 * self._one_way_s(message_bytes, group)
        inside = (self._split(group).outer <= 1.0) & (self._net.in_network_reduction > 0.0)
        reduced = self._one_way_s(message_bytes * group.size / np.maximum(group.size - 1.0, 1.0), group)
        return np.where(group.size > 1.0, np.where(inside, np.minimum(reduced, two_phases), two_phases), 0.0)

    def all_to_all_s(self, message_bytes: Array, group: Group) -> Array:
        """Each rank keeps 1/n, sends (inner - 1)/n inside its domain and the rest through its own interface.

        Both levels run at once; the slower one decides.
        """
        net = self._net
        split = self._split(group)
        inner_bytes = message_bytes * (split.inner - 1.0) / group.size
        outer_bytes = message_bytes * (group.size - split.inner) / group.size
        inner_s = inner_bytes / (self._inner_bytes_per_s(split.inner) * net.all_to_all_efficiency)
        outer_s = outer_bytes / (self._outer_bytes_per_s(group, split.inner) * net.all_to_all_efficiency)
        return np.where(group.size > 1.0, np.maximum(inner_s, outer_s) + self._latency_s(group, split), 0.0)

    def send_s(self, message_bytes: Array, stride: Array) -> Array:
        net = self._net
        inside = stride < net.scale_up_domain_size
        pair = Group(size=np.asarray(2.0), stride=stride)
        inner_s = message_bytes / self._inner_bytes_per_s(np.asarray(2.0)) + net.scale_up_latency_s
        outer_s = message_bytes / self._outer_bytes_per_s(pair, np.asarray(1.0)) + net.scale_out_latency_s
        across = np.where(2.0 * stride > net.site_size, net.long_haul_latency_s, 0.0)
        return np.where(inside, inner_s, outer_s + across)
