"""Compiled loops of the flow level: routes, loads and max-min fair rates.

All compiled functions live in this one file: a cached kernel is rebuilt when ITS file changes, not when a function
that it calls from another file does. Nothing imports this module at start-up; `lakh.fabric.graph` does when first
asked to route.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Positions in the integer parameters of a graph; see `lakh.fabric.graph.Graph`.
(
    NODE_SIZE,
    DOMAIN_SIZE,
    NIC_COUNT,
    RAIL_COUNT,
    PLANE_COUNT,
    LEAF_PATHS,
    SPINE_PATHS,
    HASHED,
    QUEUE_PAIRS,
    SEED,
    SCALE_UP,
    BASE_UP,
    BASE_DOWN,
    BASE_ENGINE,
    BASE_NIC_UP,
    BASE_NIC_DOWN,
    BASE_LEAF_UP,
    BASE_LEAF_DOWN,
    BASE_SPINE_UP,
    BASE_SPINE_DOWN,
    BASE_HAUL,
    SITE_COUNT,
    HEALTHY,
    POD_COUNT,
    PARAMETER_COUNT,
) = range(25)

FULL_MESH, SWITCHED, RING, PCIE, TORUS, NONE = range(6)
DIRECT, ENGINE, LEFT, RIGHT = range(4)
"""How a flow may travel. ENGINE: a collective kernel forwards it, so it counts on the sender's engine; LEFT and RIGHT:
the same, and on a ring it goes that way round."""

BUFFER_SIZE = 8192


@njit(cache=True)
def _mix(value: Any) -> Any:
    """The finaliser of splitmix64: spreads a counter over 64 bits."""
    z = value + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _scale_up_route(
    p: Any, capacity: Any, s: Any, d: Any, way: Any, weight: Any, links: Any, weights: Any, at: Any
) -> Any:
    """Append the scale-up links from accelerator s to d of one domain; -1 if none is left.

    On a mesh a dead link is replaced by two hops over the other cards that both still reach, in equal shares.
    """
    start = at
    kind = p[SCALE_UP]
    size = p[DOMAIN_SIZE]
    if kind == FULL_MESH:
        base = (s // size) * size
        straight = p[BASE_UP] + s * size + d % size
        if capacity[straight] > 0.0:
            links[at] = straight
            weights[at] = weight
            return at + 1
        over = 0
        for k in range(size):
            if base + k != s and base + k != d:
                first = p[BASE_UP] + s * size + k
                second = p[BASE_UP] + (base + k) * size + d % size
                if capacity[first] > 0.0 and capacity[second] > 0.0:
                    links[at] = first
                    links[at + 1] = second
                    at += 2
                    over += 1
        if over == 0:
            return -1
        for i in range(start, at):
            weights[i] = weight / over
        return at
    if kind == RING:
        forward = (d - s) % size
        right = forward <= size - forward
        if way == LEFT:
            right = False
        elif way == RIGHT:
            right = True
        steps = forward if right else size - forward
        base = (s // size) * size
        here = s % size
        for _ in range(steps):
            links[at] = (p[BASE_UP] if right else p[BASE_DOWN]) + base + here
            weights[at] = weight
            at += 1
            here = (here + 1) % size if right else (here - 1) % size
        for i in range(start, at):
            if capacity[links[i]] <= 0.0:
                return -1
        return at
    if kind == PCIE:
        links[at] = p[BASE_UP] + s
        links[at + 1] = p[BASE_UP] + d
        weights[at] = weight
        weights[at + 1] = weight
        return at + 2 if capacity[links[at]] > 0.0 and capacity[links[at + 1]] > 0.0 else -1
    links[at] = p[BASE_UP] + s
    links[at + 1] = p[BASE_DOWN] + d
    weights[at] = weight
    weights[at + 1] = weight
    return at + 2 if capacity[links[at]] > 0.0 and capacity[links[at + 1]] > 0.0 else -1


@njit(cache=True)
def _nth_live(capacity: Any, up: Any, down: Any, count: Any, stride: Any, h: Any) -> Any:
    """The path that a hash picks among the `count` whose up and down links both carry; -1 if none does."""
    live = 0
    for i in range(count):
        if capacity[up + i * stride] > 0.0 and capacity[down + i * stride] > 0.0:
            live += 1
    if live == 0:
        return -1
    pick = np.int64(h % np.uint64(live))
    for i in range(count):
        if capacity[up + i * stride] > 0.0 and capacity[down + i * stride] > 0.0:
            if pick == 0:
                return i
            pick -= 1
    return -1


@njit(cache=True)
def _network_route(
    p: Any,
    capacity: Any,
    node_block: Any,
    node_pod: Any,
    node_site: Any,
    haul_ptr: Any,
    haul_link: Any,
    s_node: Any,
    d_node: Any,
    s_nic: Any,
    d_nic: Any,
    rail: Any,
    key: Any,
    weight: Any,
    links: Any,
    weights: Any,
    at: Any,
) -> Any:
    """Append the network links between two interfaces; -1 if no path is left."""
    rails = p[RAIL_COUNT]
    planes = p[PLANE_COUNT]
    s_leaf = node_block[s_node] * rails + rail
    d_leaf = node_block[d_node] * rails + rail
    s_port = s_node * p[NIC_COUNT] + s_nic
    d_port = d_node * p[NIC_COUNT] + d_nic
    s_site = node_site[s_node]
    d_site = node_site[d_node]
    s_pod = node_pod[s_node]
    d_pod = node_pod[d_node]
    ways = p[LEAF_PATHS]
    tops = p[SPINE_PATHS]
    if p[HASHED] == 0:
        links[at] = p[BASE_NIC_UP] + s_port
        weights[at] = weight
        at += 1
        if s_leaf != d_leaf:
            links[at] = p[BASE_LEAF_UP] + s_leaf
            weights[at] = weight
            at += 1
            if s_pod != d_pod:
                target = d_pod if tops < 0 else 0
                width = p[POD_COUNT] if tops < 0 else 1
                links[at] = p[BASE_SPINE_UP] + s_pod * width + target
                weights[at] = weight
                at += 1
                if s_site != d_site:
                    pair = s_site * p[SITE_COUNT] + d_site
                    for i in range(haul_ptr[pair], haul_ptr[pair + 1]):
                        links[at] = p[BASE_HAUL] + haul_link[i]
                        weights[at] = weight
                        at += 1
                if tops >= 0:
                    links[at] = p[BASE_SPINE_DOWN] + d_pod
                    weights[at] = weight
                    at += 1
            links[at] = p[BASE_LEAF_DOWN] + d_leaf
            weights[at] = weight
            at += 1
        links[at] = p[BASE_NIC_DOWN] + d_port
        weights[at] = weight
        for i in range(at + 1):
            if capacity[links[i]] <= 0.0:
                return -1
        return at + 1
    pairs = p[QUEUE_PAIRS]
    share = weight / pairs
    healthy = p[HEALTHY] == 1
    for q in range(pairs):
        h = _mix(key + np.uint64(q))
        if s_leaf == d_leaf:
            nic_up = p[BASE_NIC_UP] + s_port * planes
            nic_down = p[BASE_NIC_DOWN] + d_port * planes
            plane = np.int64(h % np.uint64(planes)) if healthy else _nth_live(capacity, nic_up, nic_down, planes, 1, h)
            if plane < 0:
                return -1
            links[at] = nic_up + plane
            links[at + 1] = nic_down + plane
            weights[at] = share
            weights[at + 1] = share
            at += 2
            continue
        member_count = planes * ways
        up = p[BASE_LEAF_UP] + s_leaf * member_count
        down = p[BASE_LEAF_DOWN] + d_leaf * member_count
        member = np.int64(h % np.uint64(member_count)) if healthy else _nth_live(capacity, up, down, member_count, 1, h)
        if member < 0:
            return -1
        plane = member // ways
        links[at] = p[BASE_NIC_UP] + s_port * planes + plane
        links[at + 1] = up + member
        weights[at] = share
        weights[at + 1] = share
        at += 2
        if s_pod != d_pod:
            g = _mix(h)
            if tops < 0:
                links[at] = p[BASE_SPINE_UP] + s_pod * p[POD_COUNT] + d_pod
                weights[at] = share
                at += 1
            else:
                s_top = p[BASE_SPINE_UP] + (s_pod * member_count + member) * tops
                d_top = p[BASE_SPINE_DOWN] + (d_pod * member_count + member) * tops
                top = np.int64(g % np.uint64(tops)) if healthy else _nth_live(capacity, s_top, d_top, tops, 1, g)
                if top < 0:
                    return -1
                links[at] = s_top + top
                links[at + 1] = d_top + top
                weights[at] = share
                weights[at + 1] = share
                at += 2
            if s_site != d_site:
                pair = s_site * p[SITE_COUNT] + d_site
                for i in range(haul_ptr[pair], haul_ptr[pair + 1]):
                    links[at] = p[BASE_HAUL] + haul_link[i]
                    weights[at] = share
                    at += 1
        links[at] = down + member
        links[at + 1] = p[BASE_NIC_DOWN] + d_port * planes + plane
        weights[at] = share
        weights[at + 1] = share
        at += 2
    for i in range(at):
        if capacity[links[i]] <= 0.0:
            return -1
    return at


@njit(cache=True)
def _port_live(p: Any, capacity: Any, node: Any, nic: Any, node_block: Any, rail: Any) -> Any:
    """Whether an interface and its leaf carry anything."""
    planes = p[PLANE_COUNT] if p[HASHED] == 1 else 1
    base = (node * p[NIC_COUNT] + nic) * planes
    for i in range(planes):
        if capacity[p[BASE_NIC_UP] + base + i] > 0.0:
            return True
    return False


@njit(cache=True)
def route(
    p: Any,
    capacity: Any,
    node_block: Any,
    node_pod: Any,
    node_site: Any,
    haul_ptr: Any,
    haul_link: Any,
    s: Any,
    d: Any,
    way: Any,
    links: Any,
    weights: Any,
) -> Any:
    """Write the links of one flow and the share of its bytes on each; the number written, or -1 if there is no path.

    Inside a domain the scale-up links carry it. Between domains it leaves through the interface on the RAIL OF THE
    RECEIVER, reached by one scale-up hop where that is not the sender's own: rails never cross below the spine.
    Where that interface is dead on either side, the live ones share the flow evenly.
    """
    at = 0
    if s == d:
        return 0
    if way != DIRECT and p[BASE_ENGINE] >= 0:
        links[0] = p[BASE_ENGINE] + s
        weights[0] = 1.0
        at = 1
    if s // p[DOMAIN_SIZE] == d // p[DOMAIN_SIZE]:
        return _scale_up_route(p, capacity, s, d, way, 1.0, links, weights, at)
    nodes = p[NODE_SIZE]
    nics = p[NIC_COUNT]
    s_node = s // nodes
    d_node = d // nodes
    railed = p[RAIL_COUNT] > 1
    per = max(nics // nodes, 1)
    d_first = (d % nodes) * nics // nodes
    s_first = (s % nodes) * nics // nodes
    key = np.uint64(p[SEED]) * np.uint64(0x2545F4914F6CDD1D) + _mix(np.uint64(s) * np.uint64(4294967291) + np.uint64(d))
    whole = True
    if p[HEALTHY] == 0:
        for i in range(per):
            d_nic = d_first + i
            s_nic = d_nic if railed else s_first + i
            rail = d_nic if railed else 0
            if not (
                _port_live(p, capacity, s_node, s_nic, node_block, rail)
                and _port_live(p, capacity, d_node, d_nic, node_block, rail)
            ):
                whole = False
    live = per
    if not whole:
        live = 0
        for i in range(nics):
            rail = i if railed else 0
            if _port_live(p, capacity, s_node, i, node_block, rail) and _port_live(
                p, capacity, d_node, i, node_block, rail
            ):
                live += 1
        if live == 0:
            return -1
    share = 1.0 / live
    count = per if whole else nics
    for i in range(count):
        d_nic = d_first + i if whole else i
        s_nic = d_nic if railed or not whole else s_first + i
        rail = d_nic if railed else 0
        if not whole and not (
            _port_live(p, capacity, s_node, s_nic, node_block, rail)
            and _port_live(p, capacity, d_node, d_nic, node_block, rail)
        ):
            continue
        if railed:
            owner = s_node * nodes + d_nic * nodes // nics
            if owner != s and owner // p[DOMAIN_SIZE] == s // p[DOMAIN_SIZE]:
                at = _scale_up_route(p, capacity, s, owner, DIRECT, share, links, weights, at)
                if at < 0:
                    return -1
        at = _network_route(
            p,
            capacity,
            node_block,
            node_pod,
            node_site,
            haul_ptr,
            haul_link,
            s_node,
            d_node,
            s_nic,
            d_nic,
            rail,
            key + np.uint64(i) * np.uint64(1000003),
            share,
            links,
            weights,
            at,
        )
        if at < 0:
            return -1
    return at


@njit(cache=True)
def add_loads(
    p: Any,
    capacity: Any,
    node_block: Any,
    node_pod: Any,
    node_site: Any,
    haul_ptr: Any,
    haul_link: Any,
    sources: Any,
    targets: Any,
    ways: Any,
    sizes: Any,
    loads: Any,
) -> Any:
    """Add the bytes of every flow to the links it crosses; the number of flows without a path."""
    links = np.empty(BUFFER_SIZE, np.int64)
    weights = np.empty(BUFFER_SIZE, np.float64)
    lost = 0
    for f in range(sources.size):
        way = ways[f] if ways.size > 1 else ways[0]
        size = sizes[f] if sizes.size > 1 else sizes[0]
        n = route(
            p,
            capacity,
            node_block,
            node_pod,
            node_site,
            haul_ptr,
            haul_link,
            sources[f],
            targets[f],
            way,
            links,
            weights,
        )
        if n < 0:
            lost += 1
            continue
        for i in range(n):
            loads[links[i]] += size * weights[i]
    return lost


@njit(cache=True)
def add_all_to_all_loads(
    p: Any,
    capacity: Any,
    node_block: Any,
    node_pod: Any,
    node_site: Any,
    haul_ptr: Any,
    haul_link: Any,
    groups: Any,
    size: Any,
    loads: Any,
) -> Any:
    """As `add_loads` for every ordered pair of every row of `groups`, without listing the pairs."""
    links = np.empty(BUFFER_SIZE, np.int64)
    weights = np.empty(BUFFER_SIZE, np.float64)
    lost = 0
    for g in range(groups.shape[0]):
        for a in range(groups.shape[1]):
            for b in range(groups.shape[1]):
                if a == b:
                    continue
                n = route(
                    p,
                    capacity,
                    node_block,
                    node_pod,
                    node_site,
                    haul_ptr,
                    haul_link,
                    groups[g, a],
                    groups[g, b],
                    DIRECT,
                    links,
                    weights,
                )
                if n < 0:
                    lost += 1
                    continue
                for i in range(n):
                    loads[links[i]] += size * weights[i]
    return lost


@njit(cache=True)
def list_paths(
    p: Any,
    capacity: Any,
    node_block: Any,
    node_pod: Any,
    node_site: Any,
    haul_ptr: Any,
    haul_link: Any,
    sources: Any,
    targets: Any,
    ways: Any,
) -> Any:
    """Links and shares of every flow, as offsets into two flat arrays; a flow without a path has length 0.

    Returns:
        pointers [flows + 1], links, shares, and a mask of flows without a path
    """
    links = np.empty(BUFFER_SIZE, np.int64)
    weights = np.empty(BUFFER_SIZE, np.float64)
    pointers = np.zeros(sources.size + 1, np.int64)
    lost = np.zeros(sources.size, np.bool_)
    for f in range(sources.size):
        way = ways[f] if ways.size > 1 else ways[0]
        n = route(
            p,
            capacity,
            node_block,
            node_pod,
            node_site,
            haul_ptr,
            haul_link,
            sources[f],
            targets[f],
            way,
            links,
            weights,
        )
        lost[f] = n < 0
        pointers[f + 1] = pointers[f] + max(n, 0)
    flat_links = np.empty(pointers[-1], np.int64)
    flat_shares = np.empty(pointers[-1], np.float64)
    for f in range(sources.size):
        if pointers[f + 1] == pointers[f]:
            continue
        way = ways[f] if ways.size > 1 else ways[0]
        route(
            p,
            capacity,
            node_block,
            node_pod,
            node_site,
            haul_ptr,
            haul_link,
            sources[f],
            targets[f],
            way,
            links,
            weights,
        )
        for i in range(pointers[f + 1] - pointers[f]):
            flat_links[pointers[f] + i] = links[i]
            flat_shares[pointers[f] + i] = weights[i]
    return pointers, flat_links, flat_shares, lost


@njit(cache=True)
def _sift(heap_share: Any, heap_link: Any, start: Any, count: Any) -> None:
    root = start
    while 2 * root + 1 < count:
        child = 2 * root + 1
        if child + 1 < count and heap_share[child + 1] < heap_share[child]:
            child += 1
        if heap_share[root] <= heap_share[child]:
            return
        heap_share[root], heap_share[child] = heap_share[child], heap_share[root]
        heap_link[root], heap_link[child] = heap_link[child], heap_link[root]
        root = child


@njit(cache=True)
def max_min_rates(capacity: Any, pointers: Any, links: Any, shares: Any, active: Any) -> Any:
    """Max-min fair rates by progressive filling: raise all alike, fix those whose link is full, go on with the rest.

    Entity e loads link l with (sum of its shares there) times its rate. The link with the least remaining capacity
    per unit of load fills first; freeing a link's other entities never lowers another link's value, so a heap whose
    entries are checked when they surface finds the order.

    Args:
        capacity: byte/s per link
        pointers, links, shares: links of entity e are links[pointers[e]:pointers[e + 1]]
        active: entities that want to send

    Returns:
        rate of every entity [byte/s]: 0 for inactive ones, infinite for those that cross no link
    """
    entity_count = pointers.size - 1
    rates = np.zeros(entity_count, np.float64)
    load = np.zeros(capacity.size, np.float64)
    user_count = np.zeros(capacity.size + 1, np.int64)
    for e in range(entity_count):
        if not active[e]:
            continue
        if pointers[e] == pointers[e + 1]:
            rates[e] = np.inf
        for i in range(pointers[e], pointers[e + 1]):
            load[links[i]] += shares[i]
            user_count[links[i] + 1] += 1
    offsets = np.cumsum(user_count)
    users = np.empty(offsets[-1], np.int64)
    filled = offsets[:-1].copy()
    for e in range(entity_count):
        if not active[e]:
            continue
        for i in range(pointers[e], pointers[e + 1]):
            users[filled[links[i]]] = e
            filled[links[i]] += 1
    remaining = capacity.copy()
    used = np.flatnonzero(load > 0.0)
    count = used.size
    heap_share = np.empty(count, np.float64)
    heap_link = used.copy()
    for i in range(count):
        heap_share[i] = remaining[used[i]] / load[used[i]]
    for i in range(count // 2 - 1, -1, -1):
        _sift(heap_share, heap_link, i, count)
    open_entity = active.copy()
    while count > 0:
        link = heap_link[0]
        if load[link] <= 1e-12 * max(1.0, capacity[link]) and load[link] <= 1e-12:
            count -= 1
            heap_share[0], heap_link[0] = heap_share[count], heap_link[count]
            _sift(heap_share, heap_link, 0, count)
            continue
        now = max(remaining[link], 0.0) / load[link]
        if now > heap_share[0] * (1.0 + 1e-12):
            heap_share[0] = now
            _sift(heap_share, heap_link, 0, count)
            continue
        for u in range(offsets[link], offsets[link + 1]):
            e = users[u]
            if not open_entity[e]:
                continue
            open_entity[e] = False
            rates[e] = now
            for i in range(pointers[e], pointers[e + 1]):
                remaining[links[i]] -= shares[i] * now
                load[links[i]] -= shares[i]
        load[link] = 0.0
        count -= 1
        heap_share[0], heap_link[0] = heap_share[count], heap_link[count]
        _sift(heap_share, heap_link, 0, count)
    return rates
