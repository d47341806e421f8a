"""The scalar face: what it refuses, what it carries."""

import pytest

from lakh import catalog
from lakh.errors import RequestError, UnknownNameError
from lakh.perf.inputs import ModelInput, PlanInput, WorkloadInput
from lakh.perf.predict import predict
from lakh.perf.step import is_valid
from lakh.perf.system_of import software_of, system_of
from lakh.perf.validity import invalid_reasons
from lakh.spec import load_cluster
from lakh.spec.layout import Layout


def test_a_prediction_carries_parts_band_memory_and_evidence() -> None:
    run = predict(
        catalog.model("llama3-70b"),
        system_of(load_cluster("h100-16k")),
        Layout(tp=8, pp=4, vpp=5, dp=32),
        sequence_length=8192,
        global_batch_sequences=1024,
    )
    assert sum(run.parts_s.values()) == pytest.approx(run.step_time_s, rel=1e-12)
    assert sum(run.exposed_s.values()) == pytest.approx(run.parts_s["exposed_communication_s"], rel=1e-12)
    assert sum(run.memory_parts_bytes.values()) == pytest.approx(run.memory_allocated_bytes, rel=1e-12)
    assert run.error_bar.low_s < run.step_time_s < run.error_bar.high_s
    assert run.error_bar.inside_validated
    assert run.mfu["full-attention"] > run.mfu["causal"] > 0
    assert run.tokens_per_s == pytest.approx(8192 * 1024 / run.step_time_s)
    assert all(fact.source for fact in run.evidence.values())


def test_hardware_that_nobody_measured_gets_the_wider_band_and_says_so() -> None:
    model, layout = catalog.model("llama3-70b"), Layout(tp=8, pp=4, vpp=5, dp=32)
    known, unknown = (
        predict(model, system_of(load_cluster(c)), layout, sequence_length=8192, global_batch_sequences=1024)
        for c in ("h100-16k", "kuae-10k")
    )

    def width(run: object) -> float:
        bar = run.error_bar  # type: ignore[attr-defined]
        return bar.high_s / bar.low_s  # type: ignore[no-any-return]

    assert not unknown.error_bar.inside_validated
    assert "no dense run on MTT-S5000 was measured" in unknown.error_bar.notes
    assert width(unknown) > width(known)


@pytest.mark.parametrize(
    ("layout", "part"),
    [
        (Layout(tp=3), "layout.tp: found 3; accepted: a divisor of the 64 attention heads"),
        (Layout(ep=2, dp=2), "layout.ep: found 2; accepted: 1: llama3-70b has no experts"),
        (Layout(dp=7), "global batch [sequences]: found 1024"),
        (Layout(pp=90), "layout.pp: found 'pp 90 x vpp 1'"),
        (Layout(vpp=2), "layout.vpp: found 2; accepted: 1 without a pipeline"),
        (Layout(pp=3, schedule="dualpipe"), "layout.pp: found 3; accepted: an even pipeline size"),
        (Layout(tp=8, pp=8, dp=1024), "accepted: at most the 16384 accelerators of"),
    ],
)
def test_a_layout_that_breaks_a_rule_is_refused_in_words(layout: Layout, part: str) -> None:
    with pytest.raises(RequestError) as caught:
        predict(
            catalog.model("llama3-70b"),
            system_of(load_cluster("h100-16k")),
            layout,
            sequence_length=8192,
            global_batch_sequences=1024,
        )
    assert part in str(caught.value)


def test_every_rule_broken_is_named() -> None:
    problems = invalid_reasons(
        catalog.model("mixtral-8x7b"), Layout(tp=5, ep=3, dp=7), sequence_length=4096, global_batch_sequences=100
    )
    assert len(problems) >= 4


@pytest.mark.parametrize("name", ["llama3-70b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b", "palm-540b"])
def test_the_rules_in_words_agree_with_the_vectorised_ones(name: str) -> None:
    model = catalog.model(name)
    sizes = (1, 2, 3, 4, 8, 16)
    layouts = [
        Layout(tp=tp, cp=cp, pp=pp, vpp=vpp, dp=dp, ep=ep, schedule=schedule)  # type: ignore[arg-type]
        for tp in sizes
        for cp in (1, 3)
        for pp in (1, 2, 5, 16)
        for vpp in (1, 2)
        for dp in (1, 8, 12)
        for ep in (1, 4)
        for schedule in ("1f1b", "dualpipe")
    ]
    work = WorkloadInput.of(sequence_length=4096, global_batch_sequences=96)
    fast = is_valid(ModelInput.of(model), PlanInput.of(layouts), work)
    slow = [not invalid_reasons(model, x, sequence_length=4096, global_batch_sequences=96) for x in layouts]
    assert list(fast) == slow


def test_a_model_of_another_kind_is_refused() -> None:
    with pytest.raises(RequestError, match="softmax attention in every layer"):
        predict(
            catalog.model("nemotron-h-56b"),
            system_of(load_cluster("h100-16k")),
            Layout(),
            sequence_length=4096,
            global_batch_sequences=8,
        )


def test_an_unknown_generation_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="megatron-2026h2"):
        software_of("megatron-2027")


def test_the_four_site_cluster_knows_its_sites_and_long_haul() -> None:
    system = system_of(load_cluster("jd-cloud-100k"))
    assert system.accelerator_count == 100_000
    assert float(system.input.network.site_size) == 25_000
    assert float(system.input.network.long_haul_bytes_per_s) > 0
    one_site = system_of(load_cluster("kuae-10k"))
    assert float(one_site.input.network.site_size) == float("inf")


def test_a_precision_that_the_accelerator_does_not_have_is_named() -> None:
    run = predict(
        catalog.model("llama3-8b"),
        system_of(load_cluster("selene-a100")),
        Layout(tp=2, dp=8, precision="fp8"),
        sequence_length=4096,
        global_batch_sequences=64,
    )
    assert any("states no fp8 rate" in note for note in run.error_bar.notes)
