from pathlib import Path

import pytest

from lakh.catalog import accelerators, default_node_for, node
from lakh.errors import RequestError, UnknownNameError
from lakh.evidence import Fact
from lakh.spec import cluster_names, load_cluster, single_pool_cluster


def test_the_six_clusters_of_the_plan_ship() -> None:
    assert cluster_names() == ("gb200-nvl72", "h100-16k", "jd-cloud-100k", "kuae-10k", "laptop", "selene-a100")


@pytest.mark.parametrize(
    ("name", "accelerators"),
    [
        ("jd-cloud-100k", 100_000),
        ("kuae-10k", 10_240),
        ("selene-a100", 3_072),
        ("h100-16k", 16_384),
        ("gb200-nvl72", 576),
        ("laptop", 1),
    ],
)
def test_a_shipped_cluster_has_the_size_in_its_source(name: str, accelerators: int) -> None:
    cluster = load_cluster(name)
    assert cluster.name == name
    assert cluster.accelerator_count == accelerators


def numbers(thing: object) -> list[Fact]:
    if isinstance(thing, Fact):
        return [thing]
    if isinstance(thing, tuple):
        return [fact for item in thing for fact in numbers(item)]
    if hasattr(thing, "items"):
        return [fact for item in thing.values() for fact in numbers(item)]
    names = getattr(thing, "__slots__", ())
    return [fact for name in names for fact in numbers(getattr(thing, name))]


@pytest.mark.parametrize("name", cluster_names())
def test_every_number_of_a_shipped_cluster_has_a_source_and_every_range_a_reason(name: str) -> None:
    facts = numbers(load_cluster(name))
    assert len(facts) > 5
    for fact in facts:
        assert fact.source
        assert fact.note or not fact.is_range or fact.status == "vendor", fact


def test_the_announced_cluster_says_what_is_undisclosed() -> None:
    cluster = load_cluster("jd-cloud-100k")
    assert [site.name for site in cluster.sites] == ["beijing", "guangzhou", "shanghai", "suqian"]
    assert cluster.node_count == 12_500
    for site in cluster.sites:
        share = site.pools[0].count
        assert (share.low, share.high) == (0, 12_500)
        assert "undisclosed" in share.note
    assert cluster.nodes == (node("SGX5000"),)
    assert [phase.accelerator_count for phase in cluster.delivery] == [10_000, 40_000, 100_000]
    assert len(cluster.site_links) == 6
    assert cluster.fabric.tiers[1].oversubscription.is_range
    assert cluster.fabric.hop_count == 5
    assert cluster.storage is not None and cluster.storage.read_bytes_per_s.low == 2e12


def test_the_announced_cluster_draws_131_megawatt_of_it() -> None:
    cluster = load_cluster("jd-cloud-100k")
    box = node("SGX5000")
    assert box.max_power_watt is not None
    assert cluster.node_count * box.max_power_watt.value == pytest.approx(131e6, rel=0.005)


def test_latency_between_sites_is_distance_over_light_in_glass() -> None:
    link = load_cluster("jd-cloud-100k").site_links[0]
    assert link.distance_metre is not None
    assert link.latency_s.value == pytest.approx(link.distance_metre.value / 2e8)
    assert link.latency_s.is_range


def test_a_quantity_a_range_and_the_long_form_are_all_read(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "name: toy\nsites:\n  - name: a\n    pue: 1.1 .. 1.3\n    power_cap: 300 .. 400 kW\n"
        "    pools:\n      - override:\n          {base: DGX-H100, nic: 200 Gbit/s, nic_count: 4,"
        " scale_up: {kind: pcie, domain_size: 8}}\n"
        "        count: {low: 10, high: 20, status: secondary, source: a rumour, note: nobody knows}\n"
        "fabric:\n  kind: single-switch\n  tiers: [{name: leaf, port: 200 Gbit/s, oversubscription: 1}]\n"
    )
    cluster = load_cluster(tmp_path / "c.yaml")
    site = cluster.site("a")
    assert (site.pue.low, site.pue.value, site.pue.high) == pytest.approx((1.1, 1.2, 1.3))
    assert site.pue.source == "given in c.yaml"
    assert site.pue.status == "estimate"
    assert site.power_cap_watt is not None and site.power_cap_watt.low == 300e3
    pool = site.pools[0]
    assert (pool.node_count, pool.count.status, pool.count.source) == (15, "secondary", "a rumour")
    assert pool.node.nic_bytes_per_s.value == 25e9
    assert pool.node.nic_count == 4
    assert pool.node.scale_up.kind == "pcie"
    assert pool.node.host_memory_bytes == node("DGX-H100").host_memory_bytes
    assert cluster.fabric.protocol_efficiency.source == "assumed by Lakh"


def test_a_wrong_site_name_says_the_nearest_one() -> None:
    with pytest.raises(RequestError, match="Did you mean 'beijing'"):
        load_cluster("jd-cloud-100k").site("bejing")


@pytest.mark.parametrize("name", [made.name for made in accelerators()])
@pytest.mark.parametrize("count", [1, 8, 4096])
def test_every_accelerator_makes_a_cluster_of_any_size(name: str, count: int) -> None:
    box = default_node_for(name)
    cluster = single_pool_cluster(box, count)
    assert count <= cluster.accelerator_count < count + box.accelerator_count
    assert (cluster.fabric.kind == "none") == (cluster.node_count == 1)
    assert bool(cluster.fabric.tiers) == (cluster.node_count > 1)


def test_a_measurement_row_can_state_its_own_network() -> None:
    cluster = single_pool_cluster("DGX-A100", 1024, nic_bytes_per_s_per_accelerator=6.25e9, oversubscription=2)
    assert cluster.pools[0].node.nic_bytes_per_s_per_accelerator == 6.25e9
    assert cluster.fabric.tiers[0].oversubscription.value == 2
    assert cluster.fabric.tiers[0].port_bytes_per_s == cluster.pools[0].node.nic_bytes_per_s
    with pytest.raises(RequestError):
        single_pool_cluster("DGX-A100", 0)
    with pytest.raises(UnknownNameError):
        single_pool_cluster("DGX-A1000", 8)
