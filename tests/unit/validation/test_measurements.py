"""Reading a user's measurements: what is understood, what is refused, what is skipped with a reason."""

import csv
from pathlib import Path

import pytest

from lakh import catalog
from lakh.errors import SpecError
from lakh.validation.measurements import Case, Skipped, generation_of, read_measurements
from lakh.validation.report import validate

ROW = {
    "row_id": "mine-1",
    "source": "mine",
    "model": "llama3-8b",
    "hardware": "H100-80GB-SXM",
    "n_accel": "8",
    "seq_len": "8192",
    "micro_batch": "1",
    "global_batch_seqs": "128",
    "tp": "1",
    "pp": "1",
    "cp": "2",
    "precision": "bf16",
    "framework": "NeMo",
    "published": "2025-05",
    "step_time_s": "12.3",
}


def write(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, fieldnames=list(ROW))
        writer.writeheader()
        writer.writerows(rows)
    return path


def only(path: Path) -> Case | Skipped:
    (entry,) = read_measurements(path)
    return entry


def test_a_users_own_run_is_predicted(tmp_path: Path) -> None:
    report = validate(write(tmp_path / "mine.csv", ROW))
    (row,) = report.rows
    assert row.relative_error == pytest.approx(0.0, abs=0.15)
    assert row.assumptions == ("recomputation not stated: the least that fits is taken",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": ""}, "the model is not named"),
        ({"model": "llama3-9b"}, "llama3-8b"),
        ({"hardware": "H101"}, "H101"),
        ({"tp": ""}, "not a full layout: tp not stated"),
        ({"tp": "3"}, "does not divide 8 accelerators"),
        ({"model": "nemotron-h-56b"}, "hybrid or linear attention"),
    ],
)
def test_a_row_that_cannot_be_predicted_says_why(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    entry = only(write(tmp_path / "mine.csv", ROW | changes))
    assert isinstance(entry, Skipped)
    assert reason in entry.reason
    assert entry.measured_step_time_s == 12.3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_accel": "eight"}, "mine.csv:2: n_accel: found 'eight'; accepted: a number of 0 or more"),
        ({"n_accel": "8.5"}, "mine.csv:2: n_accel: found '8.5'; accepted: a whole number of 1 or more"),
        ({"step_time_s": "-1"}, "mine.csv:2: step_time_s: found '-1'"),
        ({"step_time_s": "nan"}, "mine.csv:2: step_time_s: found 'nan'"),
        ({"precision": "fp9"}, "mine.csv:2: precision: found 'fp9'; accepted: bf16"),
    ],
)
def test_a_wrong_cell_is_refused_with_file_line_and_column(
    tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        read_measurements(write(tmp_path / "mine.csv", ROW | changes))
    assert message in str(caught.value)


def test_every_wrong_cell_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        read_measurements(write(tmp_path / "mine.csv", ROW | {"n_accel": "x"}, ROW | {"seq_len": "y"}))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty file"),
        (b"row_id,model\na,b\n", "Missing: hardware, n_accel, seq_len, micro_batch"),
        (",".join(ROW).encode() + b"\n", "no rows"),
        (",".join(ROW).encode() + b"\n1,2,3\n", "another number of cells"),
        (",".join(ROW).encode() + b"\n\xff\xfe\n", "UTF-8"),
    ],
)
def test_a_file_that_is_not_measurements_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=message):
        read_measurements(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(SpecError, match="a CSV file that can be read"):
            read_measurements(path)


@pytest.mark.parametrize(
    ("framework", "published", "generation"),
    [
        ("Megatron-LM", "2021-04", "megatron-2021"),
        ("Megatron-LM", "2022-05", "megatron-2022"),
        ("NeMo 24.07", "2024-08", "megatron-2024"),
        ("Megatron-Bridge 26.08", "2026-08", "megatron-2026h2"),
        ("Composer + PyTorch FSDP", "2023-05", "fsdp-2023"),
        ("torchtitan (FSDP2)", "2025-06", "fsdp-2025"),
        ("MaxText", "2024", "jax"),
        ("", "", "megatron-2025"),
    ],
)
def test_framework_and_year_give_the_generation(framework: str, published: str, generation: str) -> None:
    assert generation_of(framework, published, "")[0] == generation


def test_heads_as_run_change_the_width_of_a_head() -> None:
    """The BigScience rows vary the number of heads at one hidden size."""
    entries = read_measurements(catalog.training_measurements_path())
    sizes = {
        (entry.model.head_count, entry.model.head_size)
        for entry in entries
        if isinstance(entry, Case) and entry.model.name == "bs-gpt-L78-h13824"
    }
    assert {(64, 216), (96, 144), (128, 108)} <= sizes


def test_a_model_that_the_catalogue_does_not_hold_is_read_from_its_columns(tmp_path: Path) -> None:
    columns = {"layers": "40", "hidden": "5120", "heads": "40", "ffn": "13824", "vocab": "32000", "params_b": "13.0"}
    path = tmp_path / "mine.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, fieldnames=[*ROW, *columns])
        writer.writeheader()
        writer.writerow(ROW | columns | {"model": "our-13b"})
    entry = only(path)
    assert isinstance(entry, Case)
    assert entry.model.mlp_matrix_count == 3
    assert entry.model.parameter_count == pytest.approx(13.0e9, rel=0.01)
