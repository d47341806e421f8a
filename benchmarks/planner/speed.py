"""How fast is the search? Layouts per second, time for whole spaces, memory, and what a larger cluster costs.

    python benchmarks/planner/speed.py [--json]

CPU seconds of this process stand next to wall seconds: on a shared machine only the first are the code's own.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
from collections.abc import Callable
from typing import Any

from cases import MODELS, request

from lakh.planner import search
from lakh.planner.search import SearchResult

SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)


def measured(run: Callable[[], SearchResult]) -> tuple[SearchResult, float, float]:
    """What a run returns, its wall seconds and its CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def whole_space(name: str, worker_count: int) -> dict[str, Any]:
    """The whole space of one model on 100,000 accelerators."""
    asked = request(name)
    result, wall_s, cpu_s = measured(lambda: search(asked, worker_count=worker_count))
    return {
        "model": name,
        "worker_count": worker_count,
        "space": result.count.total,
        "pruned": result.count.pruned,
        "out_of_memory": result.count.out_of_memory,
        "timed": result.count.timed,
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "timed_per_cpu_s": round(result.count.timed / cpu_s),
        "space_per_cpu_s": round(result.count.total / cpu_s),
        "best": result.best.layout.describe(),
    }


def cost_by_size(name: str) -> list[dict[str, Any]]:
    """The same model and sequences per accelerator on growing clusters, powers of two in the batch kept."""
    rows = []
    for count in SIZES:
        batch = _batch(count)
        result, wall_s, cpu_s = measured(lambda count=count, batch=batch: search(request(name, count, batch)))
        rows.append(
            {
                "model": name,
                "accelerator_count": count,
                "global_batch_sequences": batch,
                "space": result.count.total,
                "timed": result.count.timed,
                "wall_s": round(wall_s, 2),
                "cpu_s": round(cpu_s, 2),
            }
        )
    return rows


def _batch(count: int) -> int:
    """About a sixth of a sequence per accelerator, the nearest power of two."""
    return int(2 ** round(math.log2(count * 0.164)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    search(request("1T dense", 1_000, 256))  # first calls pay for imports
    spaces = [whole_space(name, workers) for name in MODELS for workers in (1, 2)]
    sizes = [row for name in MODELS for row in cost_by_size(name)]
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if as_json:
        print(json.dumps({"spaces": spaces, "sizes": sizes, "peak_memory_bytes": peak_bytes}, indent=1))
        return
    print("whole space on 100,000 accelerators")
    for row in spaces:
        print(
            f"  {row['model']:12} {row['worker_count']} thread(s): {row['space']:>9,} layouts, "
            f"{row['timed']:>9,} timed, {row['wall_s']:5.2f} s wall, {row['cpu_s']:5.2f} s CPU, "
            f"{row['timed_per_cpu_s']:>8,} timed/s/core; {row['best']}"
        )
    print("cost against the size of the cluster")
    for row in sizes:
        print(
            f"  {row['model']:12} {row['accelerator_count']:>7,} accelerators: {row['space']:>9,} layouts, "
            f"{row['cpu_s']:5.2f} s CPU"
        )
    print(f"peak memory {peak_bytes / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
