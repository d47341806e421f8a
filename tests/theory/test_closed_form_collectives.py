"""Collectives in closed form: limits, the switchless mesh, and what was measured on it."""

from dataclasses import replace

import numpy as np
import pytest
from tests.perf_cases import system

from lakh.fabric.closed_form import ClosedForm, Group

GIB = 2.0**30


def group(size: float, stride: float = 1.0, concurrent: float = 1.0) -> Group:
    return Group(size=np.asarray(size), stride=np.asarray(stride), concurrent=np.asarray(concurrent))


@pytest.mark.parametrize(("cards", "measured_s"), [(2, 34.2e-3), (4, 16.0e-3), (8, 8.0e-3)])
def test_all_reduce_of_1_gib_on_the_s5000_mesh(cards: int, measured_s: float) -> None:
    """Public benchmark of an 8 x S5000 node (July 2026): busbw 31.4, 100.4 and 234.3 GB/s. Tolerance 10 %."""
    net = ClosedForm(system("MTT-S5000").network)
    assert float(net.all_reduce_s(np.asarray(GIB), group(cards))) == pytest.approx(measured_s, rel=0.10)


@pytest.mark.parametrize(
    ("kind", "busbw_gb_per_s", "factor"),
    [("all_gather_s", 197.0, 7 / 8), ("reduce_scatter_s", 201.8, 7 / 8), ("all_to_all_s", 155.7, 7 / 8)],
)
def test_other_collectives_on_the_s5000_mesh(kind: str, busbw_gb_per_s: float, factor: float) -> None:
    """256 MiB on 8 cards, the same benchmark. Tolerance 15 %."""
    net = ClosedForm(system("MTT-S5000").network)
    seconds = float(getattr(net, kind)(np.asarray(GIB / 4), group(8)))
    assert GIB / 4 * factor / seconds / 1e9 == pytest.approx(busbw_gb_per_s, rel=0.15)


def test_two_cards_of_a_mesh_get_a_seventh_of_a_cards_links() -> None:
    net = system("MTT-S5000").network
    quiet = replace(
        net, launch_s=np.asarray(0.0), scale_up_latency_s=np.asarray(0.0), copy_bytes_per_s=np.asarray(1e30)
    )
    mesh = ClosedForm(quiet)
    two, eight = (float(mesh.all_reduce_s(np.asarray(GIB), group(n))) for n in (2, 8))
    assert two / eight == pytest.approx((2 * 1 / 2) / (1 / 7) / (2 * 7 / 8), rel=1e-9)


def test_a_large_ring_all_reduce_tends_to_2_n_minus_1_over_n() -> None:
    net = system("A100-80GB-SXM").network
    seconds = float(ClosedForm(net).all_reduce_s(np.asarray(1e13), group(8)))
    wire = 2 * 7 / 8 * 1e13 / (float(net.scale_up_bytes_per_s) * float(net.all_reduce_efficiency))
    copy = 2 * 1e13 / 8 / float(net.copy_bytes_per_s)
    assert seconds == pytest.approx(wire + copy, rel=2e-3)  # what is left is the pipeline's fill


@pytest.mark.parametrize("kind", ["all_gather_s", "reduce_scatter_s", "all_reduce_s", "all_to_all_s"])
def test_one_rank_needs_no_time(kind: str) -> None:
    assert float(getattr(ClosedForm(system().network), kind)(np.asarray(GIB), group(1))) == 0.0


def test_oversubscription_slows_only_groups_beyond_the_block() -> None:
    net = replace(system().network, block_size=np.asarray(256.0), oversubscription=np.asarray(4.0))
    flat = ClosedForm(system().network)
    tapered = ClosedForm(net)
    message = np.asarray(GIB)
    inside, beyond = group(16, 8), group(64, 512)
    for kind in ("all_gather_s", "all_to_all_s"):
        assert float(getattr(tapered, kind)(message, inside)) == float(getattr(flat, kind)(message, inside))
        assert float(getattr(tapered, kind)(message, beyond)) > 2.0 * float(getattr(flat, kind)(message, beyond))
    # A ring whose neighbours are close crosses the border of a block once per block: uplinks have room for that.
    close = group(512, 8)
    assert float(tapered.all_gather_s(message, close)) == float(flat.all_gather_s(message, close))


def test_groups_that_span_sites_share_the_long_haul() -> None:
    net = replace(
        system().network,
        site_size=np.asarray(1000.0),
        long_haul_bytes_per_s=np.asarray(4e11),
        long_haul_latency_s=np.asarray(0.01),
    )
    across = ClosedForm(net)
    one = float(across.all_gather_s(np.asarray(100 * GIB), group(250, 8, concurrent=1)))
    many = float(across.all_gather_s(np.asarray(100 * GIB), group(250, 8, concurrent=128)))
    assert many > 10.0 * one  # alone a ring is bound by its interfaces, not by the long haul
    assert float(across.send_s(np.asarray(1.0), np.asarray(1000.0))) > 0.01
    # A pair of neighbours may be on one site while the pipeline they belong to is not: its slowest hop sets the pace.
    near = np.asarray(400.0)
    assert float(across.send_s(np.asarray(1.0), near)) < 0.01 < float(across.send_s(np.asarray(1.0), near, 8.0))
