"""measurements.yaml: what is read, and what is said of a file that is wrong."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from lakh.claims import load_measurements, measurement_schema
from lakh.claims.effective_time import effective_question
from lakh.claims.measurement_file import CHOICES, UNITS
from lakh.claims.unknowns import step_unknowns
from lakh.errors import SpecError
from lakh.perf.system_of import system_of
from lakh.planner import plan_request
from lakh.spec import load_cluster, resolve_model

GOOD = """\
name: first node
source: lakh bench on node 17, 2026-12-01
unknowns:
  gemm-efficiency-bf16: 0.79 .. 0.83
  protocol-efficiency: {value: 0.81, low: 0.78, high: 0.83, source: 64 nodes}
  card-network-bandwidth: 400 Gbit/s
  recovery-policy: hot-spares
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "measurements.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_ranges_values_and_choices_are_read_in_base_units(tmp_path: Path) -> None:
    found = {one.unknown: one for one in load_measurements(written(tmp_path, GOOD)).values}
    assert (found["gemm-efficiency-bf16"].low, found["gemm-efficiency-bf16"].high) == (0.79, 0.83)
    assert found["card-network-bandwidth"].value == 5e10
    assert found["recovery-policy"].value == CHOICES["recovery-policy"].index("hot-spares")
    assert found["protocol-efficiency"].source == "64 nodes"
    assert found["card-network-bandwidth"].source == "lakh bench on node 17, 2026-12-01"


def test_a_good_file_passes_the_schema_that_editors_use() -> None:
    jsonschema.validate(yaml.safe_load(GOOD), measurement_schema())


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    raw = yaml.safe_load(GOOD)
    raw["unknowns"]["gemm-eficiency-bf16"] = 0.8
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(raw, measurement_schema())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gemm-eficiency-bf16: 0.8", ("measurements.yaml:4", "Did you mean 'gemm-efficiency-bf16'?")),
        ("gemm-efficiency-bf16: 1.4", ("gemm-efficiency-bf16", "1.4", "a ratio from 0 to 1")),
        ("gemm-efficiency-bf16: fast", ("gemm-efficiency-bf16", "'fast'")),
        ("card-network-bandwidth: 400", ("card-network-bandwidth", "400", "byte/second")),
        ("oversubscription-spine: 0.5", ("oversubscription-spine", "1 or more")),
        ("recovery-policy: hot-spare", ("recovery-policy", "Did you mean 'hot-spares'?")),
        ("failure-rate: -1", ("failure-rate", "-1", "above 0")),
        ("protocol-efficiency: {value: 0.8, lo: 0.7}", ("protocol-efficiency", "lo")),
    ],
)
def test_a_wrong_line_is_named_with_what_is_accepted(tmp_path: Path, line: str, said: tuple[str, ...]) -> None:
    with pytest.raises(SpecError) as caught:
        load_measurements(written(tmp_path, f"name: a\nsource: b\nunknowns:\n  {line}\n"))
    for words in said:
        assert words in str(caught.value)


def test_every_problem_of_a_file_comes_at_once(tmp_path: Path) -> None:
    text = "name: a\nsource: b\nunknowns:\n  gemm-efficiency-bf16: 3\n  sites: two\n  nothing: 1\n"
    with pytest.raises(SpecError) as caught:
        load_measurements(written(tmp_path, text))
    assert len(caught.value.problems) == 3


def test_every_unknown_of_every_claim_can_be_measured() -> None:
    cluster = load_cluster("jd-cloud-100k")
    system = system_of(cluster)
    names = {one.name for one in effective_question(cluster, 10_240, 5.7e12).unknowns}
    for model in ("llama3.1-405b", "deepseek-v3"):
        request = plan_request(resolve_model(model), system, sequence_length=4096, global_batch_sequences=4096)
        names |= {one.name for one in step_unknowns(cluster, system, request)}
    assert names == set(UNITS)


def test_every_unknown_says_who_says_so_and_how_to_measure_it() -> None:
    cluster = load_cluster("jd-cloud-100k")
    system = system_of(cluster)
    request = plan_request(resolve_model("deepseek-v3"), system, sequence_length=4096, global_batch_sequences=4096)
    unknowns = [*step_unknowns(cluster, system, request), *effective_question(cluster, 10_240, 5.7e12).unknowns]
    for one in unknowns:
        assert one.source, one.name
        assert one.bench.startswith("lakh bench ") or one.name in ("sites", "luck-of-the-run"), one.name
        assert one.at(0.05) <= one.at(0.5) <= one.at(0.95), one.name
