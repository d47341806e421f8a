"""Which rule does a layout break? The divisibility rules of `lakh.perf.step.is_valid`, one by one and in words."""

from __future__ import annotations

from lakh.catalog import Model
from lakh.errors import Problem
from lakh.spec.layout import Layout


def invalid_reasons(
    model: Model, layout: Layout, *, sequence_length: int, global_batch_sequences: int
) -> list[Problem]:
    """Every rule that the layout breaks; empty where `is_valid` is true.

    Args:
        sequence_length: tokens per sequence
        global_batch_sequences: sequences per optimizer step
    """
    problems: list[Problem] = []

    def check(good: bool, where: str, found: object, accepted: str) -> None:
        if not good:
            problems.append(Problem(where=where, found=found, accepted=accepted))

    heads, kv_heads = model.head_count, model.kv_head_count
    experts = model.experts.expert_count if model.experts else 1
    ranks = layout.dp * layout.cp * layout.tp
    layers = model.layer_count + model.mtp_layer_count
    per_micro = layout.dp * layout.micro_batch
    tp = layout.tp
    check(heads % tp == 0, "layout.tp", tp, f"a divisor of the {heads} attention heads of {model.name}")
    smaller, larger = min(tp, kv_heads), max(tp, kv_heads)
    check(larger % smaller == 0, "layout.tp", tp, f"a divisor or a multiple of the {kv_heads} key-value heads")
    if model.experts is None:
        check(layout.ep == 1, "layout.ep", layout.ep, f"1: {model.name} has no experts")
        check(layout.etp == 1, "layout.etp", layout.etp, f"1: {model.name} has no experts")
    else:
        check(experts % layout.ep == 0, "layout.ep", layout.ep, f"a divisor of the {experts} experts of {model.name}")
        found = f"ep {layout.ep} x etp {layout.etp}"
        accepted = f"sizes whose product divides the {ranks} ranks of a pipeline stage (dp x cp x tp)"
        check(ranks % (layout.ep * layout.etp) == 0, "layout.ep", found, accepted)
    accepted = f"a global batch that dp x micro-batch = {per_micro} divides"
    check(global_batch_sequences % per_micro == 0, "global batch [sequences]", global_batch_sequences, accepted)
    slots = layout.pp * layout.vpp
    accepted = f"pp x vpp of at most {layers + 2}: the {layers} layers, embedding and output"
    check(slots <= layers + 2, "layout.pp", f"pp {layout.pp} x vpp {layout.vpp}", accepted)
    if layout.vpp > 1:
        check(layout.pp > 1, "layout.vpp", layout.vpp, "1 without a pipeline (pp 1)")
        micro_batches = global_batch_sequences // per_micro
        accepted = f"a number of micro-batches (global batch / dp / micro-batch) that pp {layout.pp} divides"
        check(micro_batches % layout.pp == 0, "layout.vpp", f"{micro_batches} micro-batches", accepted)
        if layout.schedule in ("zero-bubble", "dualpipe"):
            check(False, "layout.vpp", layout.vpp, f"1 with the {layout.schedule} schedule")
    if layout.sharding == "hsdp":
        accepted = f"a divisor of the {layout.dp * layout.cp} data-parallel ranks (dp x cp)"
        good = (layout.dp * layout.cp) % layout.shard_group == 0
        check(good, "layout.shard_group", layout.shard_group, accepted)
    if layout.cp > 1:
        accepted = f"a multiple of {2 * layout.cp}: context parallel {layout.cp} gives each rank two chunks"
        check(sequence_length % (2 * layout.cp) == 0, "sequence length", sequence_length, accepted)
    if layout.schedule == "dualpipe":
        check(layout.pp % 2 == 0, "layout.pp", layout.pp, "an even pipeline size with dualpipe")
    return problems
