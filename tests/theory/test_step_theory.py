"""What must hold whatever the calibration: limits, sums and closed forms of the step model."""

from dataclasses import replace

import numpy as np
import pytest
from tests.perf_cases import software, step, system, with_network, workload

from lakh import catalog
from lakh.perf.flops import model_flop_per_token
from lakh.perf.inputs import ModelInput, PlanInput
from lakh.perf.memory import micro_batches_in_flight
from lakh.perf.parameters import rank_parameters
from lakh.perf.step import STEP_PARTS
from lakh.spec.layout import Layout

DENSE, MOE = "llama3-70b", "deepseek-v3"
LAYOUTS = [
    Layout(),
    Layout(tp=8, dp=8, micro_batch=2),
    Layout(tp=4, pp=8, vpp=5, dp=4),
    Layout(tp=2, cp=4, pp=4, dp=2, recompute="full"),
    Layout(dp=64, sharding="zero3", micro_batch=2),
    Layout(tp=8, pp=16, dp=8, schedule="zero-bubble", precision="fp8"),
]
EXPERT_LAYOUTS = [
    Layout(tp=1, pp=8, dp=64, ep=64),
    Layout(tp=4, pp=4, dp=16, ep=16, etp=1, recompute="full"),
    Layout(tp=2, pp=16, dp=32, ep=32, schedule="dualpipe", precision="fp8"),
    Layout(dp=256, ep=64, sharding="zero3"),
]


@pytest.mark.parametrize(("model", "layouts"), [(DENSE, LAYOUTS), (MOE, EXPERT_LAYOUTS)])
def test_the_parts_add_up_to_the_step_exactly(model: str, layouts: list[Layout]) -> None:
    table = step(model, layouts)
    total = sum(getattr(table, part) for part in STEP_PARTS)
    assert np.array_equal(total, table.step_time_s)
    exposed = table.exposed_tp_s + table.exposed_cp_s + table.exposed_ep_s + table.exposed_pp_s + table.exposed_dp_s
    assert exposed == pytest.approx(table.exposed_communication_s, rel=1e-12)
    for part in STEP_PARTS:
        assert np.all(getattr(table, part) >= 0.0), part
    memory = table.memory
    parts = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    parts = parts + memory.activations_bytes + memory.logits_bytes + memory.buffers_bytes
    assert np.array_equal(parts, memory.allocated_bytes)


def test_one_accelerator_has_no_communication_no_bubble_and_nobody_to_wait_for() -> None:
    table = step("llama3.2-1b", Layout(), work=workload(global_batch_sequences=8))
    assert table.exposed_communication_s[0] == 0.0
    assert table.bubble_s[0] == 0.0
    assert table.jitter_s[0] == 0.0
    assert table.compute_s[0] > 0.0


@pytest.mark.parametrize(("model", "layouts"), [(DENSE, LAYOUTS[1:]), (MOE, EXPERT_LAYOUTS)])
def test_an_infinitely_fast_network_leaves_compute_bubble_host_and_optimizer(model: str, layouts: list[Layout]) -> None:
    fast = with_network(
        system(),
        scale_up_bytes_per_s=1e30,
        scale_out_bytes_per_s=1e30,
        copy_bytes_per_s=1e30,
        launch_s=0.0,
        scale_up_latency_s=0.0,
        scale_out_latency_s=0.0,
    )
    table = step(model, layouts, machine=fast)
    assert np.all(table.exposed_communication_s < 1e-9)
    assert np.all(table.compute_s > 0.0)


def test_the_scalar_prediction_is_the_same_code_as_the_column() -> None:
    whole = step(MOE, EXPERT_LAYOUTS)
    for i, layout in enumerate(EXPERT_LAYOUTS):
        alone = step(MOE, layout)
        assert alone.step_time_s[0] == whole.step_time_s[i]
        assert alone.memory.allocated_bytes[0] == whole.memory.allocated_bytes[i]


def test_the_1f1b_bubble_is_p_minus_1_over_m_and_interleaving_divides_it() -> None:
    """Equation 1 and section 2.2.2 of Narayanan et al., SC '21 (arXiv:2104.04473), on equal stages."""
    work = workload(global_batch_sequences=32)
    ideal = step("mcore-gpt-177B", Layout(tp=8, pp=8, dp=1), work=work)
    interleaved = step("mcore-gpt-177B", Layout(tp=8, pp=8, vpp=2, dp=1), work=work)
    layers_only = step("mcore-gpt-177B", Layout(tp=8, pp=8, dp=1), work=workload(global_batch_sequences=3200))
    # With a hundred times the micro-batches the fill is a hundredth, what remains is waiting for the last stage.
    uneven = layers_only.bubble_s[0] / 3200 * 32
    fill = ideal.bubble_s[0] - uneven
    fill_interleaved = interleaved.bubble_s[0] - uneven
    assert fill_interleaved == pytest.approx(fill / 2.0, rel=0.05)
    busy = ideal.compute_s[0] + ideal.exposed_tp_s[0] + ideal.host_s[0]
    assert fill / busy == pytest.approx(7.0 / 32.0, rel=0.15)


def test_zero_bubble_and_dualpipe_wait_less_than_1f1b() -> None:
    work = workload(global_batch_sequences=64)
    layouts = [
        Layout(pp=16, dp=1, tp=8, schedule=name)  # type: ignore[arg-type]
        for name in ("1f1b", "zero-bubble", "dualpipe")
    ]
    ordinary, zero, dual = step(DENSE, layouts, work=work).bubble_s
    assert zero < ordinary
    assert dual < ordinary


def test_micro_batches_in_flight_follow_the_schedule() -> None:
    layouts = [Layout(pp=8), Layout(pp=8, vpp=4), Layout(pp=8, schedule="gpipe"), Layout(pp=8, schedule="dualpipe")]
    held = micro_batches_in_flight(PlanInput.of(layouts), np.asarray(64.0))
    assert list(held) == [8.0, 8.0 + 7.0 / 4.0, 64.0, 9.0]


@pytest.mark.parametrize(
    ("layers", "hidden", "sequence", "vocabulary", "name"),
    [(96, 12288, 2048, 51200, "gpt3-175b"), (105, 20480, 2048, 51200, "megatron-gpt-530B")],
)
def test_full_attention_flops_are_72_b_l_s_h2(
    layers: int, hidden: int, sequence: int, vocabulary: int, name: str
) -> None:
    """Appendix A of Korthikanti et al. (arXiv:2205.05198): 72 B L s h^2 (1 + s/(6h) + V/(12 h L))."""
    per_token = 72 * layers * hidden**2 * (1 + sequence / (6 * hidden) + vocabulary / (12 * hidden * layers))
    ours = model_flop_per_token(ModelInput.of(catalog.model(name)), np.asarray(float(sequence)), "full-attention")
    assert float(ours) == pytest.approx(per_token, rel=1e-9)


def test_causal_attention_is_half_of_full_and_6n_leaves_it_out() -> None:
    m = ModelInput.of(catalog.model(DENSE))
    s = np.asarray(8192.0)
    causal, full, six_n = (float(model_flop_per_token(m, s, c)) for c in ("causal", "full-attention", "6n"))  # type: ignore[arg-type]
    attention = 12.0 * 80 * 8192 * 8192
    assert full - causal == pytest.approx(attention / 2.0, rel=1e-9)
    table = 6.0 * 8192 * 128256
    assert causal - attention / 2.0 == pytest.approx(six_n - table, rel=1e-9)


@pytest.mark.parametrize("name", ["gpt3-175b", "llama3-70b", "mixtral-8x7b", "deepseek-v3", "qwen3-235b-a22b"])
def test_the_shares_of_all_ranks_are_the_whole_model(name: str) -> None:
    model = catalog.model(name)
    layout = Layout(tp=2, pp=1, dp=8, ep=8 if model.is_moe else 1)
    r = rank_parameters(ModelInput.of(model), PlanInput.of(layout))
    whole = 2 * float(r.stage_dense[0] + r.first_stage_tables[0] + r.last_stage_tables[0]) + 8 * float(
        np.ravel(r.stage_experts)[0]
    )
    assert whole == pytest.approx(model.parameter_count, rel=0.01)


def test_sharding_takes_optimizer_then_gradients_then_weights_off_a_rank() -> None:
    layouts = [Layout(dp=64, sharding=s) for s in ("none", "zero1", "zero2", "zero3")]  # type: ignore[arg-type]
    memory = step("llama3-8b", layouts).memory
    none, zero1, zero2, zero3 = memory.allocated_bytes
    assert none > zero1 > zero2 > zero3
    assert memory.optimizer_bytes[1] == pytest.approx(memory.optimizer_bytes[0] / 64)
    assert memory.gradients_bytes[2] == pytest.approx(memory.gradients_bytes[1] / 64)
    assert memory.weights_bytes[3] == pytest.approx(memory.weights_bytes[2] / 64)


def test_recomputation_trades_time_for_memory() -> None:
    layouts = [Layout(tp=8, pp=8, dp=4, recompute=r) for r in ("none", "selective", "full")]  # type: ignore[arg-type]
    table = step("llama3.1-405b", layouts, work=workload(8192))
    assert list(table.compute_s) == sorted(table.compute_s)
    assert list(table.memory.activations_bytes) == sorted(table.memory.activations_bytes, reverse=True)
    assert table.compute_s[2] / table.compute_s[0] == pytest.approx(4.0 / 3.0, rel=0.1)


def test_unbalanced_routing_costs_time_and_memory() -> None:
    layout = Layout(tp=1, pp=8, dp=64, ep=64)
    even = step(MOE, layout)
    uneven = step(MOE, layout, programs=software(token_imbalance=1.5))
    assert uneven.step_time_s[0] > even.step_time_s[0]
    assert uneven.memory.activations_bytes[0] > even.memory.activations_bytes[0]


def test_waiting_for_the_slowest_grows_with_the_number_of_ranks() -> None:
    table = step("llama3-8b", [Layout(dp=n) for n in (2, 64, 512)])
    share = table.jitter_s / (table.step_time_s - table.jitter_s)
    scale = float(system().device.jitter_scale)
    assert share == pytest.approx(scale * np.log([2, 64, 512]))


def test_launch_blocking_shows_every_launch() -> None:
    work = workload(global_batch_sequences=8)
    ahead = step("mpt-125m", Layout(dp=8), work=work)
    blocked = step("mpt-125m", Layout(dp=8), work=work, programs=software(launch_blocking=1.0))
    assert blocked.host_s[0] > ahead.host_s[0]


def test_a_sliding_window_saves_attention_work() -> None:
    windowed = catalog.model("gpt-oss-20b")
    open_model = replace(windowed, sliding_window=None, sliding_window_layer_fraction=0.0)
    s = np.asarray(8192.0)
    saved = 1 - float(model_flop_per_token(ModelInput.of(windowed), s)) / float(
        model_flop_per_token(ModelInput.of(open_model), s)
    )
    assert 0.05 < saved < 0.5
