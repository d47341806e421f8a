"""What the network model costs those who do not use it."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_fabric_does_not_start_the_compiler() -> None:
    code = "import sys, lakh.fabric.flow, lakh.fabric.inspection; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
