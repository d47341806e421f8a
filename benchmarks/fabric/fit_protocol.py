"""Fit the protocol numbers of each accelerator family and write src/lakh/fabric/protocols.json.

    python benchmarks/fabric/fit_protocol.py COLLECTIVES.csv S5000.csv

COLLECTIVES.csv: one row per measured collective (nccl-tests conventions); S5000.csv: measurements of an S5000 node.
Messages of 1 MB and more. Residuals are log ratios under a soft L1 loss, so that no single table decides.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

OUT = Path(__file__).resolve().parents[2] / "src" / "lakh" / "fabric" / "protocols.json"
LEAST_BYTES = 1e6
IN_NETWORK_STEPS = 16.0  # as in lakh.fabric.flow; left free, Hopper gives 13 and Blackwell 16
KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
NAMES = {"all_gather": KINDS[0], "reduce_scatter": KINDS[1], "all_reduce": KINDS[2], "alltoall": KINDS[3]}
SINGLE_DOMAIN_SOURCES = ("aiconfigurator", "ml-engineering", "aws-nccl-tests", "nccl-tests-issues")

# Nominal scale-up rate of one accelerator, one direction [byte/s], and from how many ranks the switch adds.
FAMILIES = {
    "a100": {"hardware": {"A100": 300e9}, "least": 10**6},
    "hopper": {"hardware": {"H100": 450e9, "H200": 450e9}, "least": 5},
    # PCIe 5 x16 without NVLink: a card's link carries both directions of a ring through the host, half of 64 GB/s each.
    "pcie5": {"hardware": {"RTX": 32e9}, "least": 10**6},
    "blackwell": {"hardware": dict.fromkeys(("B200", "B300", "GB200", "GB300"), 900e9), "least": 6},
}


@dataclass(frozen=True, kw_only=True)
class Row:
    kind: str
    ranks: float
    message_bytes: float
    time_s: float
    wire_bytes_per_s: float
    in_network: bool


def rows_of(path: Path, family: str) -> list[Row]:
    spec = FAMILIES[family]
    rows = []
    for raw in csv.DictReader(path.open(encoding="utf-8")):
        name = raw["hardware"].split("-")[0]
        if name not in spec["hardware"] or raw["collective"] not in NAMES or not raw["time_us"]:
            continue
        if raw["source"] not in SINGLE_DOMAIN_SOURCES or raw["n_nodes"] != "1":
            continue
        if float(raw["message_bytes"]) < LEAST_BYTES:
            continue
        ranks = int(raw["n_accel"])
        adds = raw["collective"] == "all_reduce" and ranks >= spec["least"] and "off" not in raw["algorithm"]
        rows.append(
            Row(
                kind=NAMES[raw["collective"]],
                ranks=ranks,
                message_bytes=float(raw["message_bytes"]),
                time_s=float(raw["time_us"]) * 1e-6,
                wire_bytes_per_s=spec["hardware"][name],
                in_network=adds,
            )
        )
    return rows


def predict(p: np.ndarray, rows: dict[str, np.ndarray]) -> np.ndarray:
    """The closed forms over columns; p: four efficiencies, copy, launch, step, efficiency in the switch."""
    adds, n, m = rows["adds"], rows["n"], rows["m"]
    efficiency = np.where(adds, p[7], np.select([rows["kind"] == kind for kind in KINDS], p[:4]))
    phases = np.where((rows["kind"] == "all-reduce") & ~adds, 2.0, 1.0)
    wire = np.where(adds, 1.0 + 1.0 / n, phases * (n - 1.0) / n) * m
    y = wire / (rows["w"] * efficiency)
    launch, step = p[5] * 1e-6, p[6] * 1e-6
    kept = phases * m / n / (p[4] * 1e12)
    stages = np.where(rows["line"], n - 1.0, np.ceil(np.log2(n)))
    ring = launch + (np.sqrt(y) + np.sqrt(phases * stages * step)) ** 2 + kept
    switch = launch + (np.sqrt(y) + np.sqrt(IN_NETWORK_STEPS * step)) ** 2
    return np.where(adds, switch, ring)


def fit(rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
    columns = {
        "kind": np.array([row.kind for row in rows]),
        "n": np.array([float(row.ranks) for row in rows]),
        "m": np.array([row.message_bytes for row in rows]),
        "w": np.array([row.wire_bytes_per_s for row in rows]),
        "adds": np.array([row.in_network for row in rows]),
        "line": np.array([row.wire_bytes_per_s == 32e9 for row in rows]),
    }
    measured = np.array([row.time_s for row in rows])
    found = least_squares(
        lambda p: np.log(predict(p, columns) / measured),
        [0.8, 0.8, 0.8, 0.7, 1.0, 8.0, 1.0, 0.65],
        loss="soft_l1",
        f_scale=0.1,
        bounds=([0.1] * 4 + [0.1, 0.1, 0.01, 0.1], [1.0] * 4 + [20.0, 60.0, 60.0, 1.0]),
    )
    return found.x, predict(found.x, columns) / measured - 1.0


def scale_out(path: Path) -> dict[str, tuple[float, float, int, str]]:
    """What rows over several nodes add: efficiency of the interfaces, latency per rank, channels; with reasons.

    Read off, one per family, from the large-message end and from the constant of time against size.
    """
    by_id = {row["row_id"]: row for row in csv.DictReader(path.open(encoding="utf-8"))}

    def rate(row_id: str) -> float:
        row = by_id[row_id]
        return float(row["message_bytes"]) / (float(row["time_us"]) * 1e-6)

    a100 = rate("aws-nccl-tests-0022") / 50e9  # two nodes, a tree: each node of 50 GB/s sends the message once
    hopper = float(by_id["aws-nccl-tests-0079"]["busbw_GBps"]) / 400.0
    blackwell = float(by_id["ml-engineering-0080"]["busbw_GBps"]) / 400.0
    small = {name: by_id[name] for name in ("aws-nccl-tests-0033", "ml-engineering-0052", "coreweave-nccl-tests-0017")}
    ring_hops = 2.0 * 1439.0
    gb200 = small["coreweave-nccl-tests-0017"]
    slope = 1.0 / (float(by_id["coreweave-nccl-tests-0022"]["message_bytes"]) - float(gb200["message_bytes"]))
    slope *= (float(by_id["coreweave-nccl-tests-0022"]["time_us"]) - float(gb200["time_us"])) * 1e-6
    constant = float(gb200["time_us"]) * 1e-6 - slope * float(gb200["message_bytes"])
    ib_hop_s = constant / ring_hops
    efa_hop_s = float(small["aws-nccl-tests-0033"]["time_us"]) * 1e-6 / 30.0
    channels = round(1439.0 / 1440.0 * 2.0 / slope / 1e9 / 50.0 / blackwell)
    # The hop is the network's, not the accelerator's: InfiniBand for all, and what EFA adds in the note.
    efa = f"ring hop from 1,440 GB200 on InfiniBand; on EFA {efa_hop_s * 1e6:.1f} us (2 nodes of H100)"
    return {
        "pcie5": (0.85, ib_hop_s, 8, "scale-out efficiency is an estimate; RTX PRO 6000 in one host"),
        "a100": (a100, ib_hop_s, 8, f"scale-out: 2 nodes on EFA, 4 x 100 Gbit/s per node; {efa}"),
        "hopper": (hopper, ib_hop_s, 8, f"scale-out: 16 nodes of H200 on EFA v3; {efa}"),
        "blackwell": (blackwell, ib_hop_s, channels, f"scale-out: 4 nodes on EFA v4; channels and {efa}"),
    }


def s5000(path: Path) -> dict[str, object]:
    """The S5000 node: one efficiency for ring-like collectives, one for all-to-all, one latency, no factor per size."""
    table = {}
    for raw in csv.DictReader(path.open(encoding="utf-8")):
        if raw["category"] == "interconnect":
            table.setdefault((raw["metric"], raw["conditions"]), float(raw["value"]))
    mesh, giga = 392e9 / 7.0, 2.0**30
    cases = [(n, giga, table["allreduce_busbw", f"{n} GPUs 1 GiB"], "all-reduce", 2.0) for n in (2, 4, 8)]
    cases.append((8, giga / 4, table["allreduce_busbw", "8 GPUs 256 MiB"], "all-reduce", 2.0))
    cases.append((8, giga / 4, table["allgather_busbw", "8 GPUs 256 MiB"], "all-gather", 1.0))
    cases.append((8, giga / 4, table["reducescatter_busbw", "8 GPUs 256 MiB"], "reduce-scatter", 1.0))
    cases.append((8, giga / 4, table["alltoall_busbw", "8 GPUs 256 MiB"], "all-to-all", 1.0))
    n = np.array([case[0] for case in cases], dtype=float)
    m = np.array([case[1] for case in cases])
    phases = np.array([case[4] for case in cases])
    measured = phases * (n - 1) / n * m / (np.array([case[2] for case in cases]) * 1e9)
    spread = np.array([case[3] == "all-to-all" for case in cases])

    def model(p: np.ndarray) -> np.ndarray:
        y = phases * m / n / (mesh * np.where(spread, p[1], p[0]))
        return 6e-6 + (np.sqrt(y) + np.sqrt(phases * np.ceil(np.log2(n)) * p[2] * 1e-6)) ** 2

    found = least_squares(
        lambda p: np.log(model(p) / measured), [0.6, 0.45, 1.0], bounds=([0.2, 0.2, 0.0], [1.0, 1.0, 50.0])
    )
    error = np.abs(model(found.x) / measured - 1.0)
    ring, direct, step = (float(value) for value in found.x)
    one_pair = table["p2p_oneway", "256 MiB, one pair"] * 1e9 / mesh
    note = "launch 6 us from the measured kernel launch; scale-out efficiency is nobody's measurement: 0.70 to 0.93"
    return entry(
        "s5000",
        [ring, ring, ring, direct, one_pair, ring, 0.85],
        [1e15, 6.258e-6, step * 1e-6, 10**6, 3e-6, 8],
        "public S5000 node benchmark, tests of July 2026 (s5000-measured.csv)",
        note,
        error,
    )


def entry(
    family: str,
    shares: list[float],
    rest: list[float],
    source: str,
    note: str,
    error: np.ndarray,
    status: str = "measured",
) -> dict[str, object]:
    names = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send", "in_network", "scale_out"]
    tail = ["copy_bytes_per_s", "launch_s", "step_s", "in_network_least_ranks", "ring_hop_s"]
    row: dict[str, object] = {"family": family}
    row |= {f"{name}_efficiency": round(value, 4) for name, value in zip(names, shares, strict=True)}
    row |= {name: float(f"{value:.4g}") for name, value in zip([*tail, "most_channels"], rest, strict=True)}
    row["in_network_least_ranks"], row["most_channels"] = int(rest[3]), int(rest[5])
    row |= {"status": status, "source": source, "note": note}
    row |= {"median_error": round(float(np.median(error)), 4), "row_count": int(error.size)}
    return row


def rack(path: Path, tray: dict[str, object]) -> dict[str, object]:
    """A rack of 72 as its trays of 4 and 8, but for the switch: with 72 ranks it reaches a smaller share."""
    rows = [
        (float(raw["message_bytes"]), float(raw["time_us"]) * 1e-6)
        for raw in csv.DictReader(path.open(encoding="utf-8"))
        if raw["source"] == "coreweave-nccl-tests" and raw["n_accel"] == "72"
    ]
    m, measured = np.array(rows).T
    launch, step = float(str(tray["launch_s"])), float(str(tray["step_s"]))

    def model(share: float) -> np.ndarray:
        y = (1.0 + 1.0 / 72.0) * m / (900e9 * share)
        return launch + (np.sqrt(y) + np.sqrt(IN_NETWORK_STEPS * step)) ** 2

    found = least_squares(lambda p: np.log(model(p[0]) / measured), [0.5], bounds=([0.1], [1.0]))
    error = np.abs(model(found.x[0]) / measured - 1.0)
    row = dict(tray) | {"family": "nvl72", "in_network_efficiency": round(float(found.x[0]), 4)}
    row |= {"source": "coreweave-nccl-tests, 72 GB200; the rest as blackwell", "row_count": len(rows)}
    return row | {"median_error": round(float(np.median(error)), 4)}


def generic(families: list[dict[str, object]]) -> dict[str, object]:
    """For accelerators whose collectives nobody has published: the median of the families that were fitted."""
    numbers = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send", "in_network", "scale_out"]
    keys = [f"{name}_efficiency" for name in numbers] + ["copy_bytes_per_s", "launch_s", "step_s", "ring_hop_s"]
    row = dict(families[0])
    row |= {key: float(f"{np.median([float(str(each[key])) for each in families]):.4g}") for key in keys}
    row |= {"family": "generic", "in_network_least_ranks": 10**6, "most_channels": 8, "status": "estimate"}
    row |= {"source": "median of the fitted families", "note": "no measurement of this accelerator", "row_count": 0}
    row["median_error"] = None
    return row


def main() -> None:
    collectives, node = Path(sys.argv[1]), Path(sys.argv[2])
    outside = scale_out(collectives)
    families = []
    for family in FAMILIES:
        rows = rows_of(collectives, family)
        p, error = fit(rows)
        efficiency, hop_s, channels, note = outside[family]
        adds = float(p[7]) if any(row.in_network for row in rows) else float(p[2])
        families.append(
            entry(
                family,
                [*map(float, p[:4]), float(p[0]), adds, efficiency],
                [p[4] * 1e12, p[5] * 1e-6, p[6] * 1e-6, FAMILIES[family]["least"], hop_s, channels],
                "nccl-tests tables of aiconfigurator, ml-engineering, aws-nccl-tests (collectives-measured.csv)",
                note,
                np.abs(error),
            )
        )
    trays = next(row for row in families if row["family"] == "blackwell")
    families.append(rack(collectives, trays))
    families.append(s5000(node))
    families.append(
        entry(
            "mi300x",
            [0.70, 0.70, 0.70, 0.60, 0.745, 0.70, 0.90],
            [1e15, 10e-6, 1e-6, 10**6, 3e-6, 8],
            "ml-engineering, all_reduce over 2 and 8 MI300X at 4 GiB (collectives-measured.csv)",
            "two rows; all-to-all, launch, step and scale-out are estimates",
            np.array([0.745 / 0.70 - 1.0, 0.0]),
            status="secondary",
        )
    )
    families.append(generic(families))
    head = "Generated by benchmarks/fabric/fit_protocol.py; do not edit."
    OUT.write_text(json.dumps({"comment": head, "families": families}, indent=2) + "\n", encoding="utf-8")
    for row in families:
        print(row["family"], "median error", row["median_error"], "over", row["row_count"], "rows")


if __name__ == "__main__":
    main()
