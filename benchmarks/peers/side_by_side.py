"""Lakh and a peer on the same measured runs: speed of one prediction, and what each predicts.

    python benchmarks/peers/side_by_side.py [--json]

The peer is llm-analysis 0.2.2 (PyPI), an analytical latency and memory model of training. It is installed from PyPI
into a temporary folder that is removed afterwards, about 220 MB, and runs in a process of its own; nothing of it is
kept. It knows tensor, pipeline and data parallelism, and no pipeline bubble. The share of the peak that a run reaches
is an input of it, not a prediction: it is run at all of the peak, and at half of it, which is about the measured
answer of these very runs.

Only one peer is run. Calculon, SimuMax, ASTRA-sim and llm-cluster-simulator are not: this script takes its peer from
PyPI, and there is no package of the first two and the last of them there (the "calculon" on PyPI is an unrelated
producer-consumer library). "astra-sim-sdk" is on PyPI and was not tried.

Cases: Table 1 of arXiv:2104.04473, ten GPT models of 1.7 to 1,008 billion parameters on 32 to 3,072 A100, from the
measurements that ship with Lakh.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import venv
from pathlib import Path
from statistics import median
from typing import Any

from lakh.catalog.calibration import load_calibration
from lakh.catalog.loader import training_measurements_path
from lakh.perf.inputs import ModelInput, PlanInput, WorkloadInput
from lakh.perf.machine import device_input, network_input, software_input
from lakh.perf.step import evaluate
from lakh.perf.system import SystemInput
from lakh.validation.measurements import Case, read_measurements

PEER = "llm-analysis==0.2.2"
SOURCE = "megatron-sc21-t1"
REPEATS = 50

# Runs inside the temporary environment: reads cases as JSON, prints predictions and times as JSON.
PEER_PROGRAM = """
import json, logging, sys, time
from llm_analysis.analysis import ActivationRecomputation, LLMAnalysis
from llm_analysis.config import ModelConfig, ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name
logging.disable(logging.CRITICAL)
result = []
for case in json.load(sys.stdin):
    model = ModelConfig(
        name=case["row_id"], num_layers=case["layers"], n_head=case["heads"], hidden_dim=case["hidden"],
        vocab_size=case["vocabulary"], max_seq_len=case["sequence_length"], num_key_value_heads=case["heads"],
        ffn_embed_dim=case["ffn"],
    )
    row = {"row_id": case["row_id"]}
    for efficiency in (1.0, 0.5):
        def once(efficiency=efficiency):
            analysis = LLMAnalysis(
                model, get_gpu_config_by_name("a100-sxm-80gb"), get_dtype_config_by_name("w16a16e16"),
                ParallelismConfig(tp_size=case["tp"], pp_size=case["pp"], dp_size=case["dp"], sp_size=1),
                flops_efficiency=efficiency, hbm_memory_efficiency=1.0,
            )
            return analysis.training(
                batch_size_per_gpu=case["micro_batch"], global_batch_size=case["batch"],
                seq_len=case["sequence_length"], total_num_tokens=1e9,
                activation_recomputation=ActivationRecomputation.FULL, flash_attn=False, softmax_dropout=True,
            )
        row["step_time_s_at_%g" % efficiency] = once()["latency_per_iter"]
    start = time.perf_counter()
    for _ in range(REPEATS):
        once()
    row["seconds_per_prediction"] = (time.perf_counter() - start) / REPEATS
    result.append(row)
print("RESULT" + json.dumps(result))
"""


def cases() -> list[Case]:
    """The measured runs of SOURCE with a full layout and a time."""
    entries = read_measurements(training_measurements_path())
    found = [e for e in entries if isinstance(e, Case) and e.source == SOURCE and e.measured_step_time_s]
    if not found:
        raise SystemExit(f"no measured runs of {SOURCE} in {training_measurements_path()}")
    return found


def peer_rows(runs: list[Case]) -> list[dict[str, Any]]:
    """What the peer predicts, from a fresh environment."""
    asked = [
        {
            "row_id": run.row_id,
            "layers": run.model.layer_count,
            "heads": run.model.head_count,
            "hidden": run.model.hidden_size,
            "ffn": run.model.ffn_size,
            "vocabulary": run.model.vocabulary_size,
            "sequence_length": run.sequence_length,
            "tp": run.layout.tp,
            "pp": run.layout.pp,
            "dp": run.layout.dp,
            "micro_batch": run.layout.micro_batch,
            "batch": run.global_batch_sequences,
        }
        for run in runs
    ]
    with tempfile.TemporaryDirectory(prefix="lakh-peer-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PEER]
        subprocess.run(install, check=True)
        program = PEER_PROGRAM.replace("REPEATS", str(REPEATS))
        command = [python, "-c", program]
        ran = subprocess.run(command, check=False, input=json.dumps(asked), capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{PEER} failed:\n{ran.stderr}")
    answer = next(line for line in ran.stdout.splitlines() if line.startswith("RESULT"))
    rows: list[dict[str, Any]] = json.loads(answer.removeprefix("RESULT"))
    return rows


def lakh_row(run: Case) -> tuple[float, float]:
    """Predicted step time, and seconds for one scalar prediction."""
    calibration = load_calibration()
    _, values, _ = calibration.family_values(run.accelerator.name)
    network = network_input(run.accelerator, run.node, values, scale_out_bytes_per_s=run.scale_out_bytes_per_s)
    system = SystemInput(device=device_input(run.accelerator, values), network=network)
    software = software_input(calibration.generation_values(run.generation), run.switches)
    model, plan = ModelInput.of(run.model, mtp_layer_count=run.mtp_layer_count), PlanInput.of(run.layout)
    workload = WorkloadInput.of(sequence_length=run.sequence_length, global_batch_sequences=run.global_batch_sequences)
    start = time.perf_counter()
    for _ in range(REPEATS):
        table = evaluate(model, system, software, plan, workload)
    return float(table.step_time_s[0]), (time.perf_counter() - start) / REPEATS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    runs = cases()
    rows = []
    for run, peer in zip(runs, peer_rows(runs), strict=True):
        predicted_s, seconds = lakh_row(run)
        measured_s = float(run.measured_step_time_s or 0.0)
        rows.append(
            {
                "row_id": run.row_id,
                "model": run.model.name,
                "accelerators": run.layout.accelerator_count,
                "measured_s": measured_s,
                "lakh_s": predicted_s,
                "lakh_error": predicted_s / measured_s - 1,
                "peer_error_at_full_peak": peer["step_time_s_at_1"] / measured_s - 1,
                "peer_error_at_half_peak": peer["step_time_s_at_0.5"] / measured_s - 1,
                "lakh_ms_per_prediction": seconds * 1e3,
                "peer_ms_per_prediction": peer["seconds_per_prediction"] * 1e3,
            }
        )
    if as_json:
        print(json.dumps({"peer": PEER, "rows": rows}, indent=1))
        return
    print(f"{'model':20} {'cards':>6} {'measured':>9} {'Lakh':>8} {'peer at 100 %':>14} {'peer at 50 % of peak':>21}")
    for row in rows:
        print(
            f"{row['model']:20} {row['accelerators']:>6} {row['measured_s']:>7.2f} s {row['lakh_error']:>+8.1%} "
            f"{row['peer_error_at_full_peak']:>+14.1%} {row['peer_error_at_half_peak']:>+21.1%}"
        )
    for name, label in (("lakh_error", "Lakh"), ("peer_error_at_half_peak", f"{PEER} at 50 % of peak")):
        print(f"median absolute error, {label}: {median(abs(row[name]) for row in rows):.1%}")
    ours, theirs = (median(row[key] for row in rows) for key in ("lakh_ms_per_prediction", "peer_ms_per_prediction"))
    print(f"one prediction alone: Lakh {ours:.2f} ms, {PEER} {theirs:.2f} ms; among many: benchmarks/planner/speed.py")
    print("these runs are among those that Lakh is fitted to; `lakh validate --leave-out source` scores unseen ones")


if __name__ == "__main__":
    main()
