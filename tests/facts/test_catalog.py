"""Facts of the catalogue: every value has a source, and the numbers agree with what was published."""

import csv
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from lakh.catalog import (
    accelerator,
    accelerators,
    claim,
    claims,
    default_node_for,
    model,
    models,
    node,
    nodes,
    training_measurements_path,
)
from lakh.errors import UnknownNameError
from lakh.evidence import STATUSES, Fact


def facts_of(thing: Any, where: str) -> Iterator[tuple[str, Fact]]:
    for field in fields(thing):
        value = getattr(thing, field.name)
        if isinstance(value, Fact):
            yield f"{where}.{field.name}", value
        elif hasattr(value, "items"):
            yield from (
                (f"{where}.{field.name}.{key}", inner) for key, inner in value.items() if isinstance(inner, Fact)
            )
        elif is_dataclass(value):
            yield from facts_of(value, f"{where}.{field.name}")


ALL_FACTS = [found for thing in (*accelerators(), *nodes(), *claims()) for found in facts_of(thing, f"{thing.name}")]


def test_every_value_of_the_catalogue_has_a_source_and_a_status() -> None:
    assert len(ALL_FACTS) > 600
    for where, fact in ALL_FACTS:
        assert fact.source.strip(), where
        assert fact.status in STATUSES, where
        assert fact.low <= fact.value <= fact.high, where


def test_every_range_says_why_it_is_one() -> None:
    for where, fact in ALL_FACTS:
        assert not fact.is_range or fact.note, where


def test_announced_hardware_has_ranges_for_what_was_not_announced() -> None:
    huashan = accelerator("Huashan")
    assert huashan.announced
    assert all(peak.is_range for peak in huashan.peak_flop_per_s.values())
    assert [made.name for made in accelerators() if made.announced] == ["MTT-Huashan"]


def test_what_a_process_sees_is_a_little_less_than_the_memory_there_is() -> None:
    for made in accelerators():
        if made.usable_memory_bytes is not None:
            assert 0.92 < made.usable_memory_bytes.value / made.memory_bytes.value <= 1, made.name


def test_power_and_rates_are_in_the_order_that_physics_asks_for() -> None:
    for made in accelerators():
        assert made.idle_power_watt is None or made.idle_power_watt.high < made.board_power_watt.low, made.name
        assert made.scale_up_bytes_per_s.value < made.memory_bytes_per_s.value, made.name
        peaks = {key: fact.value for key, fact in made.peak_flop_per_s.items()}
        ladder = [peaks[key] for key in ("fp64", "fp32", "tf32", "bf16", "fp8", "fp4") if key in peaks]
        assert ladder == sorted(ladder), made.name


@pytest.mark.parametrize(
    ("name", "printed_sum_of_both_directions"),
    [
        ("MTT-S5000", 784e9),
        ("MTT-S4000", 240e9),
        ("A100-80GB-SXM", 600e9),
        ("H100-80GB-SXM", 900e9),
        ("H800-80GB-SXM", 400e9),
        ("GB200-NVL72", 1800e9),
        ("MI300X", 896e9),
        ("Ascend-910B", 392e9),
    ],
)
def test_links_are_stored_in_one_direction_and_the_note_says_what_was_printed(
    name: str, printed_sum_of_both_directions: float
) -> None:
    link = accelerator(name).scale_up_bytes_per_s
    assert link.value == printed_sum_of_both_directions / 2
    assert f"{printed_sum_of_both_directions / 1e9:,.0f}".replace(",", "") in link.note.replace(",", "")


def test_a_pair_of_s5000_has_56_gb_per_second_of_its_mesh() -> None:
    box = node("SGX5000")
    link = accelerator(box.accelerator).scale_up_bytes_per_s.value
    assert box.scale_up.kind == "full-mesh"
    assert link / (box.scale_up.domain_size - 1) == pytest.approx(56e9)


def test_fp8_peak_of_10240_s5000_is_the_10_exaflops_that_were_announced() -> None:
    assert 10_240 * accelerator("S5000").peak_flop_per_s["fp8"].value == pytest.approx(10e18, rel=0.03)


def test_kuae2_prospectus_row_agrees_with_1280_boxes() -> None:
    box = node("SGX5000")
    assert 1_280 * box.cpu_core_count.value == 81_920
    assert 1_280 * box.accelerator_count * accelerator(box.accelerator).memory_bytes.value == pytest.approx(
        800 * 2**40, rel=0.001
    )
    assert box.nic_bytes_per_s_per_accelerator == 400e9 / 8


def test_a_box_of_eight_s5000_draws_10_to_11_kilowatt() -> None:
    box = node("SGX5000")
    board = accelerator(box.accelerator).board_power_watt.value
    assert 10_000 <= box.accelerator_count * board + box.host_power_watt.value <= 11_000


def test_every_hardware_name_of_the_measurements_resolves_and_has_a_default_node() -> None:
    with training_measurements_path().open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 757
    for name, domain in sorted({(row["hardware"], row["scale_up_domain"]) for row in rows}):
        box = default_node_for(name)
        if domain:
            assert box.scale_up.domain_size == int(domain), name


@pytest.mark.parametrize(
    "name",
    [
        "L40S",
        "RTX-PRO-6000-Server",
        "B200 (SM100)",
        "H100/H800 (SM90)",
        "BI-V150",
        "CPU-side 64B RDMA",
        "GH200-141GB",
        "Gaudi3",
        "MI325X",
        "MI355X",
        "H200-SXM-141G",
        "H100-SXM-80G",
        "B200-SXM-180G",
        "MTT-S5000-80G",
        "MTT-S80",
        "GB300",
    ],
)
def test_names_of_the_other_published_tables_resolve(name: str) -> None:
    assert default_node_for(name).accelerator == accelerator(name).name


@pytest.mark.parametrize(
    ("name", "tera"),
    [
        ("A100", 312),
        ("H100", 989),
        ("H200", 989),
        ("B200", 2250),
        ("GB200", 2500),
        ("MI300X", 1307),
        ("TPUv4", 275),
        ("TPUv5e", 197),
        ("TPUv5p", 459),
        ("TPUv6e", 918),
        ("TPUv3", 123),
        ("Gaudi2", 432),
        ("Trainium1", 190),
        ("Ascend-910B", 353),
    ],
)
def test_bf16_peak_is_the_one_behind_the_published_percentages(name: str, tera: float) -> None:
    assert accelerator(name).peak_flop_per_s["bf16"].value / 1e12 == pytest.approx(tera, rel=0.001)


def test_names_match_in_any_case_and_by_alias() -> None:
    assert accelerator("h100-80gb-sxm") is accelerator("H100") is accelerator(" H100-SXM ")
    assert node("8X-S5000") is default_node_for("mtt s5000")
    assert model("JoyAI-LLM-Flash") is model("joyai-llm-flash-48b-a3b")


def test_an_unknown_name_says_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match=r"found 'MTT-S5O00'; accepted: .*Did you mean 'MTT-S5000'\?"):
        accelerator("MTT-S5O00")
    with pytest.raises(UnknownNameError, match=r"Did you mean 'llama3\.1-405b'"):
        model("llama-3.1-405b")
    for look_up in (node, claim, default_node_for):
        with pytest.raises(UnknownNameError, match="accepted:"):
            look_up("no-such-thing")


# --- models -----------------------------------------------------------------------------------------------------

PUBLISHED_DIFFERS = {
    "gopher-280b": "about 22B of relative-position weights are not in the columns",
    "glm-130b": "128.7e9 by its architecture; the name rounds up",
    "llama4-scout-109b": "the published count includes the vision encoder",
    "mcore-gpt-32B": "31.5e9 by its architecture; the table rounds up",
    "nemotron3-22b": "21.3e9 by its architecture; the name rounds up",
    "joyai-llm-flash-48b-a3b": "48.9e9 by its architecture; the model card truncates",
    "qwen3-next-80b-a3b": "linear attention: the columns do not describe it",
    "nemotron-h-56b": "state-space layers: the columns do not describe it",
}


def rounding_of(printed: float) -> float:
    """Half a unit of the last digit printed, in billions: 1.7 stands for 1.65 to 1.75."""
    text = f"{printed / 1e9:.10g}"
    return 0.5 * 10.0 ** -len(text.partition(".")[2]) * 1e9


@pytest.mark.parametrize(
    "name", [made.name for made in models() if made.published_parameter_count and made.name not in PUBLISHED_DIFFERS]
)
def test_parameter_count_is_the_published_one_within_1_percent_or_its_rounding(name: str) -> None:
    made = model(name)
    published = made.published_parameter_count
    assert published is not None
    assert abs(made.parameter_count - published) <= max(0.01 * published, rounding_of(published))


def test_exceptions_to_the_published_count_are_still_needed() -> None:
    for name in PUBLISHED_DIFFERS:
        made = model(name)
        assert made.published_parameter_count is not None
        assert abs(made.parameter_count / made.published_parameter_count - 1) > 0.01


def test_parameter_counts_agree_with_the_independent_column_within_a_twentieth_of_a_percent() -> None:
    with training_measurements_path().with_name("models.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 118
    for row in rows:
        if row["params_b_computed"]:
            computed = float(row["params_b_computed"]) * 1e9
            assert model(row["model"]).parameter_count == pytest.approx(computed, rel=5e-4), row["model"]


@pytest.mark.parametrize(
    ("name", "active_billions"),
    [("deepseek-v3", 37), ("kimi-k2", 32.6), ("qwen3-235b-a22b", 22.2), ("mixtral-8x7b", 12.9), ("gpt-oss-120b", 5.1)],
)
def test_active_parameters_are_the_published_ones_but_for_the_input_embedding(
    name: str, active_billions: float
) -> None:
    made = model(name)
    low, high = made.active_parameter_count, made.active_parameter_count + made.embedding_parameter_count
    assert 0.99 * low <= active_billions * 1e9 <= 1.01 * high


def test_only_hybrid_models_are_marked_as_outside_the_formulae() -> None:
    assert {made.name for made in models() if not made.formulae_apply} == {"qwen3-next-80b-a3b", "nemotron-h-56b"}


# --- claims -----------------------------------------------------------------------------------------------------


def test_claims_say_what_is_undefined_about_them() -> None:
    names = ["kuae-mfu-dense-60", "kuae-mfu-moe-40", "kuae-scaling-95", "kuae-effective-time-90", "mtlink4-1314"]
    assert {made.name for made in claims()} == {*names, "gpt4-mfu-32-36"}
    for made in claims():
        assert made.undefined and made.statement.endswith(".") and made.who and made.when
        assert made.conditions
    assert claim("KUAE-MFU-dense-60").value.value == 0.6
    assert (claim("gpt4-mfu-32-36").value.low, claim("gpt4-mfu-32-36").value.high) == (0.32, 0.36)
