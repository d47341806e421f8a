"""How long do commands take, start of Python included? Prints a Markdown table for docs/performance.md.

Run as `python benchmarks/cli/commands.py`; each command runs five times, the rehearsal once.
"""

from __future__ import annotations

import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS: tuple[tuple[str, int], ...] = (
    ("lakh --help", 5),
    ("lakh catalog accelerators", 5),
    ('lakh predict -m llama3.1-405b -c h100-16k --layout "tp8 cp2 pp16 vpp8 dp64 mb1" --seq 8192 --batch 2048', 5),
    ("lakh plan -m llama3-70b -c h100-16k -n 1024 --seq 8192 --batch 1024", 5),
    ("lakh plan -m llama3.1-405b -c jd-cloud-100k --seq 8192 --batch 2048", 3),
    ("lakh plan -m deepseek-v3 -c jd-cloud-100k --seq 4096 --batch 15360", 3),
    ("lakh validate", 3),
    ("lakh rehearse examples/jd-cloud-100k/scenario.yaml", 1),
)


def main() -> None:
    root = Path(__file__).parents[2]
    program = Path(sys.executable).with_name("lakh")
    print("| command | best [s] | median [s] | runs |")
    print("|---|---|---|---|")
    for command, runs in COMMANDS:
        times = []
        for _ in range(runs):
            started = time.perf_counter()
            subprocess.run([str(program), *shlex.split(command)[1:]], check=True, cwd=root, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - started)
        print(f"| `{command}` | {min(times):.2f} | {statistics.median(times):.2f} | {runs} |", flush=True)


if __name__ == "__main__":
    main()
