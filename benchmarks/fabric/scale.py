"""Cost of the flow level against the size of the cluster: time and memory, as a table and an SVG.

    python benchmarks/fabric/scale.py [OUTPUT.svg]

Every row runs in its own process, after one small call that compiles or loads the kernels.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path

SIZES = (1_024, 4_096, 16_384, 65_536, 98_304)
FULL_SIZES = (1_024, 4_096, 16_384, 65_536, 100_352)
CASES = (
    ("hierarchical all-reduce, adaptive", "all-reduce", "hierarchical", "adaptive", False),
    ("hierarchical all-reduce, ecmp", "all-reduce", "hierarchical", "ecmp", False),
    ("64-way all-to-all, adaptive", "all-to-all", "auto", "adaptive", False),
    ("64-way all-to-all, ecmp", "all-to-all", "auto", "ecmp", False),
    ("hierarchical all-reduce, collapsed", "all-reduce", "hierarchical", "adaptive", True),
    ("64-way all-to-all, collapsed", "all-to-all", "auto", "adaptive", True),
)


def one(size: int, case: int) -> dict[str, object]:
    """Build the graph and time one collective, all groups at once."""
    from lakh.fabric.flow import FlowNetwork, network_input
    from lakh.fabric.graph import Graph
    from lakh.fabric.protocol import protocol_fit
    from lakh.fabric.topology import FabricSite, FabricSpec, FabricTier

    label, collective, algorithm, routing, collapse = CASES[case]

    def network(count: int) -> FlowNetwork:
        spec = FabricSpec(
            name="bench",
            sites=(FabricSite(name="here", accelerator_count=count),),
            node_size=8,
            scale_up_kind="full-mesh",
            domain_size=8,
            scale_up_bytes_per_s=392e9,
            nic_count=8,
            nic_bytes_per_s=50e9,
            rail_optimised=True,
            tiers=(FabricTier(name="leaf", span=256), FabricTier(name="spine", span=2048), FabricTier(name="core")),
            routing=routing,
        )
        net = network_input(spec, protocol_fit("s5000"))
        return FlowNetwork(Graph(spec), net, algorithm=algorithm, collapse=collapse)

    network(512).cost(collective, 64, 1)
    start = time.perf_counter()
    flows = network(size)
    built_s = time.perf_counter() - start
    start = time.perf_counter()
    cost = flows.cost(collective, size if collective == "all-reduce" else 64, 1)
    found_s = time.perf_counter() - start
    return {
        "case": label,
        "accelerators": size,
        "flows": sum(phase.flow_count for phase in cost.phases),
        "build_s": round(built_s, 4),
        "simulate_s": round(found_s, 4),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
    }


def svg(rows: list[dict[str, object]]) -> str:
    """Time against size, both on logarithmic scales."""
    colours = ("#1d4ed8", "#0891b2", "#b91c1c", "#ea580c", "#15803d", "#7c3aed")
    left, top, width, height = 70, 30, 560, 320

    def x(value: float) -> float:
        return left + width * (math.log10(value) - 3) / 2.1

    def y(value: float) -> float:
        return top + height * (1 - (math.log10(max(value, 1e-4)) + 4) / 5)

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 410" font-family="sans-serif" font-size="12">']
    for power in range(-4, 2):
        parts.append(
            f'<line x1="{left}" x2="{left + width}" y1="{y(10**power)}" y2="{y(10**power)}" stroke="#e2e8f0"/>'
        )
        parts.append(f'<text x="{left - 8}" y="{y(10**power) + 4}" text-anchor="end">{10.0**power:g} s</text>')
    parts += [
        f'<text x="{x(size)}" y="{top + height + 18}" text-anchor="middle">{size:,}</text>' for size in FULL_SIZES
    ]
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 40}" text-anchor="middle">accelerators</text>')
    for index, (label, *_rest) in enumerate(CASES):
        mine = [row for row in rows if row["case"] == label]
        points = " ".join(f"{x(row['accelerators']):.1f},{y(row['simulate_s']):.1f}" for row in mine)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colours[index]}" stroke-width="2"/>')
        parts.append(
            f'<text x="{left + width + 12}" y="{top + 18 * index + 10}" fill="{colours[index]}">{label}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--one":
        print(json.dumps(one(int(sys.argv[2]), int(sys.argv[3]))))
        return
    rows = []
    print("| case | accelerators | flows | build [s] | simulate [s] | peak [GB] |\n|---|---|---|---|---|---|")
    for case in range(len(CASES)):
        for size in SIZES if CASES[case][4] else FULL_SIZES:
            command = [sys.executable, __file__, "--one", str(size), str(case)]
            row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            rows.append(row)
            print(
                "| "
                + " | ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values())
                + " |"
            )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(svg(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
