"""What never happens at the door: another exception than ours, a value outside its range, a lost unit."""

import math
import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakh.catalog import FactError, Model, default_node_for, model, models, read_fact
from lakh.errors import RequestError
from lakh.spec import load_cluster, load_job, model_from_config, single_pool_cluster

UNITS = ("byte", "byte/second", "flop/second", "watt", "second", "ratio", "1", "rmb/second")
quiet = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.floats(1e-3, 1e6), st.floats(1.0, 1e3), st.sampled_from(["GB/s", "Gbit/s", "TB/s"]))
def test_a_range_with_one_unit_is_the_range_of_both_ends(low: float, factor: float, unit: str) -> None:
    high = low * factor
    fact = read_fact(f"{low!r} .. {high!r} {unit}", "byte/second")
    assert fact.low == read_fact(f"{low!r} {unit}", "byte/second").value
    assert fact.high == read_fact(f"{high!r} {unit}", "byte/second").value
    assert fact == read_fact({"low": f"{low!r} {unit}", "high": f"{high!r} {unit}"}, "byte/second")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["4 GB/s", "1 .. 2"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.sampled_from(["value", "low"]), inner)
    ),
    max_leaves=8,
)


@given(values, st.sampled_from(UNITS))
def test_whatever_is_read_is_a_fact_in_its_range_or_is_refused(raw: Any, unit: str) -> None:
    try:
        fact = read_fact(raw, unit)
    except FactError as error:
        assert error.accepted
    else:
        assert fact.low <= fact.value <= fact.high
        assert math.isfinite(fact.low) and math.isfinite(fact.high)
        assert fact.unit == unit


@quiet
@given(st.binary(max_size=200) | st.text(alphabet=string.printable, max_size=200).map(str.encode))
def test_any_bytes_as_a_file_are_refused_with_a_place(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(content)
    for load in (load_cluster, load_job, model_from_config):
        with pytest.raises(RequestError) as refused:
            load(path)
        assert all(problem.where.startswith(str(path)) for problem in refused.value.problems)
        assert all(problem.accepted for problem in refused.value.problems)


SHIPPED = yaml.safe_load((Path(__file__).parents[2] / "src/lakh/spec/clusters/laptop.yaml").read_text())


@quiet
@given(st.data())
def test_a_description_with_anything_in_one_place_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    content = yaml.safe_load(yaml.safe_dump(SHIPPED))
    holder: Any = content
    while True:
        keys = list(range(len(holder))) if isinstance(holder, list) else sorted(holder)
        key = data.draw(st.sampled_from(keys))
        if not isinstance(holder[key], dict | list) or not holder[key] or data.draw(st.booleans()):
            break
        holder = holder[key]
    holder[key] = data.draw(values)
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    try:
        cluster = load_cluster(path)
    except RequestError as error:
        assert all(problem.where.startswith(str(path)) for problem in error.problems)
    else:
        assert cluster.node_count >= 0


@given(st.sampled_from(["DGX-H100", "SGX5000", "GB200-NVL72-tray", "laptop"]), st.integers(1, 200_000))
def test_a_made_cluster_holds_what_was_asked_for_and_no_node_more(name: str, count: int) -> None:
    cluster = single_pool_cluster(name, count)
    size = cluster.nodes[0].accelerator_count
    assert 0 <= cluster.accelerator_count - count < size
    below = [tier.node_count for tier in cluster.fabric.tiers]
    assert all(node_count is not None for node_count in below[:-1])
    assert not below or below[-1] is None


@given(st.sampled_from([made.name for made in models() if made.formulae_apply]))
def test_active_parameters_are_never_more_than_all(name: str) -> None:
    made: Model = model(name)
    assert 0 < made.active_parameter_count <= made.parameter_count


@given(st.text(max_size=30))
def test_any_name_is_found_or_refused_with_the_names_there_are(name: str) -> None:
    try:
        default_node_for(name)
    except RequestError as error:
        assert "MTT" in error.problems[0].accepted or "A100" in error.problems[0].accepted
