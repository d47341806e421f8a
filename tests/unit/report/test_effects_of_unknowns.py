"""Unknowns of a rehearsal: one name each, and either in the table or among those without effect."""

from __future__ import annotations

from lakh.report.results import UnknownEffect
from lakh.report.rows import _still
from lakh.report.text import counted
from lakh.report.unknowns import variants
from lakh.spec import load_cluster


def effect(name: str, kind: str, ratio: float) -> UnknownEffect:
    return UnknownEffect(
        name=name,
        kind=kind,
        low_text="1",
        high_text="2",
        step_time_ratio_at_low=1.0,
        step_time_ratio_at_high=ratio,
    )


def test_each_unknown_of_a_cluster_with_many_links_has_its_own_name() -> None:
    found = variants(load_cluster("jd-cloud-100k"))
    names = [variant.name for variant in found]
    assert len(set(names)) == len(names)
    assert "site links: latency (beijing to suqian)" in names
    assert "site links: bandwidth" in names, "all links share one range, so they move together"


def test_unknowns_without_effect_are_counted_where_others_of_their_kind_have_one() -> None:
    latency = "site links: latency"
    mixed = [effect(f"{latency} (a to b)", latency, 1.1), effect(f"{latency} (b to c)", latency, 1.0)]
    assert _still(mixed) == [f"{latency} (1 of 2)"]
    assert _still(mixed[1:]) == [latency]


def test_a_count_of_one_is_singular() -> None:
    assert [counted(1, "site"), counted(2, "site"), counted(12_500, "node")] == ["1 site", "2 sites", "12,500 nodes"]
