"""The import arrow of docs/architecture.md is a test, not a wish."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_imports_point_down_only() -> None:
    script = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_planner_and_physics_start_without_torch_or_the_schema_library() -> None:
    program = (
        "import sys, lakh.planner, lakh.perf.predict, lakh.validation.report;"
        "print([m for m in ('torch', 'pydantic', 'typer', 'plotly') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
