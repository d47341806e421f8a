"""A matrix of wrong files: each gets errors that name file, line, field, what was found and what is accepted."""

from pathlib import Path

import pytest

from lakh.errors import SpecError, UnknownNameError
from lakh.spec import load_cluster

GOOD = """\
name: toy
sites:
  - name: a
    pools:
      - node: DGX-H100
        count: 4
fabric:
  kind: clos
  tiers:
    - name: leaf
      port: 400 Gbit/s
      oversubscription: 1
"""


def refusal(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SpecError) as refused:
        load_cluster(path)
    assert refused.value.exit_code == 2
    return str(refused.value).replace(f"{tmp_path}/", "")


def test_the_file_that_the_matrix_starts_from_is_read(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(GOOD)
    assert load_cluster(tmp_path / "cluster.yaml").accelerator_count == 32


ONE_CHANGE = [
    (
        "count: 4",
        "count: many",
        "cluster.yaml:6: sites[0].pools[0].count: found 'many'; accepted: a number, such as '128', "
        "or a range 'LOW .. HIGH'.",
    ),
    ("count: 4", "count: 4.5", "cluster.yaml:6: sites[0].pools[0].count: found 4.5; accepted: a whole number"),
    (
        "count: 4",
        "count: -4",
        "cluster.yaml:6: sites[0].pools[0].count: found -4; accepted: at least 0, such as '128'.",
    ),
    ("count: 4", "count: .nan", "cluster.yaml:6: sites[0].pools[0].count: found nan; accepted: a number"),
    ("count: 4", "count: .inf", "cluster.yaml:6: sites[0].pools[0].count: found inf; accepted: a number"),
    ("count: 4", "count: true", "cluster.yaml:6: sites[0].pools[0].count: found True; accepted: a number"),
    ("count: 4", "count:", "cluster.yaml:6: sites[0].pools[0].count: found nothing; accepted: a number"),
    ("count: 4", "count: [4]", "cluster.yaml:6: sites[0].pools[0].count: found [4]; accepted: a number"),
    (
        "        count: 4\n",
        "",
        "cluster.yaml:5: sites[0].pools[0].count: found nothing; accepted: a quantity; this field is required.",
    ),
    (
        "400 Gbit/s",
        "400 Gbit",
        "cluster.yaml:11: fabric.tiers[0].port: found '400 Gbit'; accepted: a quantity that reduces to byte/second, "
        "such as '400 Gbit/s', or a range 'LOW .. HIGH'.",
    ),
    (
        "400 Gbit/s",
        "400",
        "cluster.yaml:11: fabric.tiers[0].port: found 400; accepted: a quantity that reduces to byte/second",
    ),
    (
        "400 Gbit/s",
        "0 Gbit/s",
        "cluster.yaml:11: fabric.tiers[0].port: found '0 Gbit/s'; accepted: at least 1, such as '400 Gbit/s'.",
    ),
    (
        "400 Gbit/s",
        "800 .. 400 Gbit/s",
        "cluster.yaml:11: fabric.tiers[0].port: found '800 .. 400 Gbit/s'; accepted: a quantity",
    ),
    (
        "oversubscription: 1",
        "oversubscription: 0.5",
        "cluster.yaml:12: fabric.tiers[0].oversubscription: found 0.5; accepted: at least 1, such as '2.0'.",
    ),
    (
        "oversubscription: 1",
        "oversubscription: {low: 4, high: 2}",
        "cluster.yaml:12: fabric.tiers[0].oversubscription.low: found 4; accepted: at most high, which is 2.",
    ),
    (
        "oversubscription: 1",
        "oversubscription: {low: 4}",
        "cluster.yaml:12: fabric.tiers[0].oversubscription.high: found nothing; accepted: "
        "both low and high, or neither.",
    ),
    (
        "oversubscription: 1",
        "oversubscription: {value: 9, low: 1, high: 2}",
        "cluster.yaml:12: fabric.tiers[0].oversubscription.value: found 9; accepted: between low (1) and high (2).",
    ),
    (
        "oversubscription: 1",
        "oversubscription: {}",
        "cluster.yaml:12: fabric.tiers[0].oversubscription.value: found nothing; accepted: value, or low and high.",
    ),
    (
        "oversubscription: 1",
        "oversubscription: {value: 1, status: vendr}",
        "cluster.yaml:12: fabric.tiers[0].oversubscription.status: found 'vendr'; accepted: vendor, measured, "
        "secondary, estimate. Did you mean 'vendor'?",
    ),
    (
        "oversubscription: 1",
        "oversubscription: {value: 1, sorce: x}",
        "cluster.yaml:12: fabric.tiers[0].oversubscription.sorce: found 'x'; accepted: value, low, high, status, "
        "source, note. Did you mean 'source'?",
    ),
    (
        "oversubscription: 1",
        "oversubscripton: 1",
        "cluster.yaml:12: fabric.tiers[0].oversubscripton: found 'oversubscripton'; accepted: name, port, "
        "oversubscription, nodes, hop_latency. Did you mean 'oversubscription'?",
    ),
    ("DGX-H100", "DGX-H10O", "Did you mean 'DGX-H100'?"),
    ("DGX-H100", "H100", "That is an accelerator; its node is 'DGX-H100'."),
    (
        "node: DGX-H100",
        "override: {base: DGX-H1000}",
        "cluster.yaml:5: sites[0].pools[0].override.base: found 'DGX-H1000'",
    ),
    (
        "node: DGX-H100",
        "override: {base: DGX-H100, nic_counts: 3}",
        "cluster.yaml:5: sites[0].pools[0].override.nic_counts: found 'nic_counts'; accepted: base, name,",
    ),
    (
        "      - node: DGX-H100\n        count",
        "      - count",
        "cluster.yaml:5: sites[0].pools[0]: found 'neither'; accepted: either node (a catalogue name) or override.",
    ),
    (
        "kind: clos",
        "kind: close",
        "cluster.yaml:8: fabric.kind: found 'close'; accepted: clos, rail-optimised, dragonfly, torus, single-switch, "
        "none. Did you mean 'clos'?",
    ),
    ("kind: clos", "kind: none", "cluster.yaml:9: fabric.tiers: found '1 tiers'; accepted: 0 tiers for kind none."),
    (
        "name: leaf",
        "name: spine",
        "cluster.yaml:10: fabric.tiers[0].name: found 'spine'; accepted: leaf: tiers go from the nodes upwards.",
    ),
    ("name: toy", "name: 3", "cluster.yaml:1: name: found 3; accepted: a text."),
    ("name: toy", "name: ''", "cluster.yaml:1: name: found ''; accepted: a text that is not empty."),
    ("fabric:", "fabrik:", "cluster.yaml:7: fabrik: found 'fabrik'; accepted: name, description, sites, fabric,"),
    (
        "name: toy",
        "name: toy\nname: two",
        "cluster.yaml:2: name: found 'name again'; accepted: each field once; first on line 1.",
    ),
    (
        "kind: clos",
        "kind: [clos",
        "cluster.yaml:9: found 'tiers:'; accepted: YAML. The reader says: while parsing a flow sequence",
    ),
    ("  kind: clos", "\tkind: clos", "cluster.yaml:8: found 'kind: clos'; accepted: YAML. The reader says:"),
    (
        "name: toy",
        "name: toy\n<<: {a: 1}",
        "cluster.yaml:2: found '<<'; accepted: fields written out, or an alias as a value.",
    ),
    ("name: toy", "name: !!binary 12", "cluster.yaml:1: name: found"),
    ("name: toy", "? [a, b]\n: toy", "cluster.yaml:1: found 'a list or mapping as a key'; accepted: a name as a key."),
]


@pytest.mark.parametrize(("old", "new", "expected"), ONE_CHANGE, ids=[f"{new[:40]!r}" for _, new, _ in ONE_CHANGE])
def test_one_wrong_thing_is_named_with_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert expected in refusal(tmp_path, GOOD.replace(old, new, 1))


ADDED = [
    (
        "site_links:\n  - {between: [a, b], bandwidth: 1 Tbit/s}\n",
        "cluster.yaml:14: site_links[0].between[1]: found 'b'; accepted: a.",
    ),
    (
        "site_links:\n  - {between: [a, a], bandwidth: 1 Tbit/s}\n",
        "site_links[0].between: found ['a', 'a']; accepted: two different sites.",
    ),
    (
        "prices: {currency: RMB, on_demand: 2 USD/h}\n",
        "cluster.yaml:13: prices.on_demand: found '2 USD/h'; accepted: a price in RMB, the currency of these prices.",
    ),
    ("prices: {currency: EUR}\n", "cluster.yaml:13: prices.currency: found 'EUR'; accepted: RMB, USD."),
    (
        "prices: {currency: RMB, energy: 2 RMB}\n",
        "prices.energy: found '2 RMB'; accepted: a quantity that reduces to rmb/joule or usd/joule",
    ),
    (
        "delivery:\n  - {name: x, date: soon, accelerators: {a: 4}}\n",
        "cluster.yaml:14: delivery[0].date: found 'soon'; accepted: a day 'YYYY-MM-DD' or a span",
    ),
    (
        "delivery:\n  - {name: x, date: 2027-02-30, accelerators: {a: 4}}\n",
        "delivery[0].date: found '2027-02-30'; accepted: a day",
    ),
    (
        "delivery:\n  - {name: x, date: 2027-02-01, accelerators: {a: 40}}\n",
        "delivery[0].accelerators.a: found 40; accepted: at most 32, all that the pools of a hold.",
    ),
    (
        "delivery:\n  - {name: x, date: 2027-02-01, accelerators: {aa: 4}}\n",
        "delivery[0].accelerators.aa: found 'aa'; accepted: a. Did you mean 'a'?",
    ),
    (
        "delivery:\n  - {name: x, date: 2027-02-01, accelerators: {a: 8}}\n"
        "  - {name: y, date: 2027-01-01, accelerators: {a: 4}}\n",
        "cluster.yaml:15: delivery[1].accelerators.a: found 4; accepted: "
        "at least 8: earlier phases are included in later ones.\n"
        "cluster.yaml:15: delivery[1].date: found '2027-01-01'; accepted: not before phase x.",
    ),
    (
        "failures: {mean_time_between_failures: {gpu: 3 h}}\n",
        "failures.mean_time_between_failures.gpu: found 'gpu'; accepted: accelerator, hbm,",
    ),
    (
        "storage: {read: 1 GB/s, write: 1 GB, capacity: 1 PB}\n",
        "storage.write: found '1 GB'; accepted: a quantity that reduces to byte/second",
    ),
    ("storage: fast\n", "cluster.yaml:13: storage: found 'fast'; accepted: a mapping, 'field: value' lines."),
]


@pytest.mark.parametrize(("added", "expected"), ADDED, ids=[added[:60] for added, _ in ADDED])
def test_a_wrong_section_is_named_with_its_line(tmp_path: Path, added: str, expected: str) -> None:
    assert expected in refusal(tmp_path, GOOD + added)


def test_all_problems_of_a_file_are_listed_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("count: 4", "count: x").replace("kind: clos", "kind: clo").replace("400 Gbit/s", "4")
    said = refusal(tmp_path, text).splitlines()
    assert [line.split(":")[1] for line in said] == ["6", "8", "11"]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
NOT_A_DESCRIPTION = [
    ("", "cluster.yaml:1: found 'an empty file'; accepted: a cluster description."),
    ("\n \n", "cluster.yaml:1: found 'an empty file'"),
    ("# only this\n", "cluster.yaml:1: found 'nothing but comments'; accepted: a cluster description."),
    ("- a\n", "cluster.yaml:1: found 'a list'; accepted: a cluster description: 'field: value' lines."),
    ("toy\n", "cluster.yaml:1: found 'one value'"),
    (
        b"name: toy\ndescription: caf\xe9\n",
        "cluster.yaml:2: found 'byte 0xe9'; accepted: a cluster description in UTF-8.",
    ),
    (b"\x00\x01\x02", "cluster.yaml:1: found 'unacceptable character #x0000"),
    ("name: toy\n---\nname: two\n", "cluster.yaml:2: found '---'; accepted: YAML."),
    ("name: &a [*a]\n", "cluster.yaml:1: found 'an alias inside its own anchor'; accepted: aliases that end."),
    ("name: *a\n", "cluster.yaml:1: found 'name: *a'; accepted: YAML. The reader says: found undefined alias."),
    (BOMB, "found 'more than 200000 values'; accepted: a file whose aliases expand to less."),
    ("a: " + "[" * 100_000, "cluster.yaml:1: found"),
    ("a: " + "{b: " * 100_000, "cluster.yaml:1: found"),
]


@pytest.mark.parametrize(("content", "expected"), NOT_A_DESCRIPTION, ids=range(len(NOT_A_DESCRIPTION)))
def test_what_is_no_description_at_all_is_refused(tmp_path: Path, content: str | bytes, expected: str) -> None:
    assert expected in refusal(tmp_path, content)


def test_a_tag_that_would_run_code_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    said = refusal(tmp_path, f"name: !!python/object/apply:os.system ['touch {marker}']\n")
    assert "name: found" in said
    assert not marker.exists()


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load_cluster(path).node_count == 4


def test_folders_missing_files_devices_and_giants_are_refused(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    giant = tmp_path / "giant.yaml"
    with giant.open("wb") as file:
        file.truncate(17 * 2**20)
    expected = {
        tmp_path: "found 'a folder'; accepted: a cluster description, a file of UTF-8 text.",
        tmp_path
        / "none.yaml": "found 'no such file'; accepted: a cluster description, a file of UTF-8 text. Beside it: giant",
        Path("/dev/null"): "found 'not a regular file'",
        giant: "found '17.0 MiB'; accepted: a cluster description of at most 16 MiB.",
        Path("a\0b.yaml"): "found 'a name with a NUL character'",
    }
    for path, text in expected.items():
        with pytest.raises(SpecError) as refused:
            load_cluster(path)
        assert text in str(refused.value)


def test_an_unknown_shipped_cluster_says_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match=r"found 'jd-cloud-10k'; accepted: .* Did you mean 'jd-cloud-100k'\?"):
        load_cluster("jd-cloud-10k")
