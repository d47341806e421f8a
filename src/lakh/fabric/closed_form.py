"""How long does a collective take? Closed forms over the actual scale-up topology and the scale-out network.

Both levels of the fabric answer to one interface, `CollectiveModel`: these formulas, which a search evaluates
millions of times, and a flow-level simulation of the real graph, which sees what formulas cannot.

Convention: every bandwidth is what ONE accelerator can send in ONE direction [byte/s].
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    concurrent: Array = field(default_factory=lambda: np.asarray(1.0))
    """Groups that communicate at the same time and share the links between sites."""


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
    """What an all-gather or a reduce-scatter reaches of the links inside the domain, very large messages."""
    all_reduce_efficiency: Array
    """The same for a ring all-reduce, wire bytes counted as 2 (n - 1)/n of the message."""
    in_network_efficiency: Array
    """The same for an all-reduce in the scale-up switch; 0 where the switch cannot reduce."""
    in_network_ranks: Array
    """Smallest group for which the library reduces in the switch."""
    scale_out_efficiency: Array
    all_to_all_efficiency: Array
    """What an all-to-all reaches of the links, both levels."""
    launch_s: Array
    """Fixed cost of one collective."""
    scale_up_latency_s: Array
    """One step of a pipelined transfer inside the domain."""
    scale_out_latency_s: Array
    """One step between domains."""
    copy_bytes_per_s: Array
    """Rate at which a rank copies its own share."""
    rail_count: Array
    """Rings that a library runs through one domain at most: interfaces that one collective can use."""
    block_size: Array
    """Accelerators under one leaf tier: traffic inside it sees no oversubscription."""
    oversubscription: Array
    """Downlink over uplink capacity above the block, 1 or more."""
    site_size: Array
    """Accelerators on one site; infinite where there is one site."""
    long_haul_bytes_per_s: Array
    """The link from one site to the next, one direction; shared by every group that spans sites."""
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

    def send_s(self, message_bytes: Array, stride: Array, chain: Array | float = 2.0) -> Array:
        """Every rank of a chain sends to the rank `stride` further; all `stride` chains may do so at once.

        Args:
            message_bytes: of one send [byte]
            stride: ranks between neighbours of a chain
            chain: ranks of a chain; a long one may cross from site to site, and its slowest hop sets its pace
        """
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

    def _inner_bytes_per_s(self, ranks: Array, outer: Array | float = 1.0) -> Array:
        """What one rank can send to the other `ranks - 1` of its domain at once, before protocol efficiency.

        A switch or a torus gives a pair all of the accelerator's links. A full mesh has one link bundle per pair,
        so a group of k out of D uses (k - 1)/(D - 1) of them: 2 of 8 cards get a seventh. On a ring two of the
        links are used, whatever the group's size. PCIe is shared through the root complex in both directions.
        """
        net = self._net
        pairs = np.maximum(net.scale_up_domain_size - 1.0, 1.0)
        mesh_share = np.where(net.scale_up_kind == FULL_MESH, np.minimum((ranks - 1.0) / pairs, 1.0), 1.0)
        share = np.where(net.scale_up_kind == PCIE, 0.5, mesh_share)
        rate = net.scale_up_bytes_per_s * share
        return np.where(rate > 0.0, rate, np.inf)

    def _outer_bytes_per_s(self, crossing_share: Array | float) -> Array:
        """What one rank can send out of its domain, when `crossing_share` of it leaves the block.

        Every rank of a domain owns an interface. Uplinks of a block carry 1/oversubscription of what its
        interfaces do, so they bind only where more than that share of the traffic goes up.
        """
        net = self._net
        slow_down = np.maximum(crossing_share * net.oversubscription, 1.0)
        rate = net.scale_out_bytes_per_s * net.scale_out_efficiency / slow_down
        return np.where(rate > 0.0, rate, 1.0)

    def _ring_crossing_share(self, group: Group) -> Array:
        """Share of a ring's hops that leave a block, ranks placed in order: neighbours are `stride` apart."""
        beyond = group.size * group.stride > self._net.block_size
        return np.where(beyond, np.minimum(group.stride / self._net.block_size, 1.0), 0.0)

    def _long_haul_bytes_per_s(self, group: Group, senders: Array) -> Array:
        """Share of one sender in the links between sites; infinite for groups that stay on one site."""
        across = group.size * group.stride > self._net.site_size
        return np.where(across, self._net.long_haul_bytes_per_s / np.maximum(senders, 1.0), np.inf)

    def _phases_s(self, message_bytes: Array, group: Group, efficiency: Array, phases: float) -> Array:
        """`phases` passes of a ring: each rank must receive (n - 1)/n of the message in each.

        Inside a domain a transfer is cut into its best number of chunks: with y the time at full rate and l the
        latency of all its hops it takes (sqrt(y) + sqrt(l))^2 [1]; each rank also copies its own share. Between
        domains, rings run through all ranks, one per interface, so a domain of k ranks sends at min(inner rate,
        k * interface rate), and every rank adds a step (measured: latency grows linearly with ranks).

        [1] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
            Int. J. High Perform. Comput. Appl. 19(1), 2005, sections 4.1 and 4.4.
        """
        net = self._net
        split = self._split(group)
        wire = phases * message_bytes * (group.size - 1.0) / group.size
        inner_rate = np.where(split.inner > 1.0, self._inner_bytes_per_s(split.inner) * efficiency, np.inf)
        rails = np.minimum(split.inner, net.rail_count)
        outer_rate = np.where(
            split.outer > 1.0, rails * self._outer_bytes_per_s(self._ring_crossing_share(group)), np.inf
        )
        # A ring crosses each site border once, whatever its length: groups share the long haul, ranks do not.
        outer_rate = np.minimum(outer_rate, self._long_haul_bytes_per_s(group, group.concurrent))
        seconds = wire / np.minimum(inner_rate, outer_rate)
        hops = phases * self._inner_hops(split)
        pipelined = np.square(np.sqrt(seconds) + np.sqrt(hops * net.scale_up_latency_s))
        copy_s = phases * message_bytes / group.size / net.copy_bytes_per_s
        beyond = np.where(split.outer > 1.0, group.size - 1.0, 0.0)
        steps_s = phases * beyond * net.scale_out_latency_s
        total: Array = net.launch_s + pipelined + copy_s + steps_s + phases * self._across_s(group)
        return total

    def _inner_hops(self, split: _Split) -> Array:
        ring = (self._net.scale_up_kind == RING) | (self._net.scale_up_kind == PCIE)
        return np.where(ring, split.inner - 1.0, np.ceil(np.log2(split.inner)))

    def _across_s(self, group: Group) -> Array:
        """Latency of the long haul for groups that span sites."""
        return np.where(group.size * group.stride > self._net.site_size, self._net.long_haul_latency_s, 0.0)

    def all_gather_s(self, total_bytes: Array, group: Group) -> Array:
        seconds = self._phases_s(total_bytes, group, self._net.scale_up_efficiency, 1.0)
        return np.where((group.size > 1.0) & (total_bytes > 0.0), seconds, 0.0)

    def reduce_scatter_s(self, total_bytes: Array, group: Group) -> Array:
        return self.all_gather_s(total_bytes, group)

    def all_reduce_s(self, message_bytes: Array, group: Group) -> Array:
        """A reduce-scatter and an all-gather over the ring; in the switch, where that is possible and faster.

        A reducing switch pulls 1/n of the message from every rank and broadcasts the sum: (1 + 1/n) m per rank.
        Between domains a small message takes a tree: 2 log2 steps instead of 2 (n - 1).
        """
        net = self._net
        split = self._split(group)
        ring = self._phases_s(message_bytes, group, net.all_reduce_efficiency, 2.0)
        linear_s = 2.0 * np.where(split.outer > 1.0, group.size - 1.0, 0.0) * net.scale_out_latency_s
        tree_steps_s = 4.0 * np.ceil(np.log2(split.outer)) * net.scale_out_latency_s
        # A tree sends the message up and down once: 2 m on the wire of an inner node instead of 2 (n - 1)/n m.
        tree = ring - linear_s + tree_steps_s + ring * 0.1
        switched = (split.outer <= 1.0) & (net.in_network_efficiency > 0.0) & (group.size >= net.in_network_ranks)
        rate = self._inner_bytes_per_s(split.inner) * np.where(
            net.in_network_efficiency > 0, net.in_network_efficiency, 1.0
        )
        in_network = net.launch_s + message_bytes * (1.0 + 1.0 / group.size) / rate + 4.0 * net.scale_up_latency_s
        best = np.minimum(ring, tree)
        best = np.where(switched, np.minimum(best, in_network), best)
        return np.where((group.size > 1.0) & (message_bytes > 0.0), best, 0.0)

    def all_to_all_s(self, message_bytes: Array, group: Group) -> Array:
        """Each rank keeps 1/n, sends (inner - 1)/n inside its domain and the rest through its own interface.

        Both levels run at once; the slower one decides.
        """
        net = self._net
        split = self._split(group)
        inner_bytes = message_bytes * (split.inner - 1.0) / group.size
        outer_bytes = message_bytes * (group.size - split.inner) / group.size
        inner_s = inner_bytes / (self._inner_bytes_per_s(split.inner) * net.all_to_all_efficiency)
        inner_s = np.square(np.sqrt(inner_s) + np.sqrt(self._inner_hops(split) * net.scale_up_latency_s))
        senders = np.where(np.isfinite(net.site_size), net.site_size, 1.0)
        share = self._long_haul_bytes_per_s(group, senders)
        span = group.size * group.stride
        crossing = np.where(span > net.block_size, 1.0 - net.block_size / np.maximum(span, 1.0), 0.0)
        outer_rate = np.minimum(self._outer_bytes_per_s(crossing) * net.all_to_all_efficiency, share)
        outer_s = outer_bytes / outer_rate
        steps_s = np.ceil(np.log2(split.outer)) * net.scale_out_latency_s + self._across_s(group)
        copy_s = message_bytes / group.size / net.copy_bytes_per_s
        seconds = net.launch_s + np.maximum(inner_s, outer_s) + copy_s + steps_s
        return np.where((group.size > 1.0) & (message_bytes > 0.0), seconds, 0.0)

    def send_s(self, message_bytes: Array, stride: Array, chain: Array | float = 2.0) -> Array:
        net = self._net
        inside = stride < net.scale_up_domain_size
        pair = Group(size=np.asarray(2.0), stride=stride)
        whole = Group(size=np.asarray(chain), stride=stride)
        inner_rate = self._inner_bytes_per_s(np.asarray(2.0)) * net.scale_up_efficiency
        inner_s = message_bytes / inner_rate + net.scale_up_latency_s
        outer_rate = self._outer_bytes_per_s(self._ring_crossing_share(pair))
        outer_rate = np.minimum(outer_rate, self._long_haul_bytes_per_s(whole, stride))
        outer_s = message_bytes / outer_rate + net.scale_out_latency_s
        return net.launch_s + np.where(inside, inner_s, outer_s + self._across_s(whole))
