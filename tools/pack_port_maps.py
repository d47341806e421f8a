"""Pack the two name maps into src/lakh/port/data: `python tools/pack_port_maps.py api-map.csv python-map.csv`.

Input columns: cuda, musa, kind, library (API map only), status, note, evidence.
"""

from __future__ import annotations

import argparse
import csv
import lzma
from pathlib import Path

from lakh.port.maps import pack

DATA = Path(__file__).resolve().parents[1] / "src" / "lakh" / "port" / "data"


def pack_maps(api_csv: Path, python_csv: Path) -> None:
    """Write the three packed files."""
    strings: dict[str, int] = {}
    for source, target, library in ((api_csv, "api_map", None), (python_csv, "python_map", "python")):
        with source.open(encoding="utf-8", newline="") as handle:
            rows = [{**row, "library": library or row["library"]} for row in csv.DictReader(handle)]
        for row in rows:
            for column, cell in row.items():
                row[column] = " ".join(cell.split())
        (DATA / f"{target}.tsv.xz").write_bytes(lzma.compress(pack(rows, strings).encode(), preset=9))
    (DATA / "strings.txt.xz").write_bytes(lzma.compress("\n".join(strings).encode(), preset=9))


def main() -> None:
    """Read the two paths from the command line."""
    parser = argparse.ArgumentParser(
        description="Pack the two name maps into src/lakh/port/data.",
        epilog="Input columns: cuda, musa, kind, library (API map only), status, note, evidence.",
    )
    parser.add_argument("api_map", type=Path, help="CSV of CUDA names with their MUSA counterparts")
    parser.add_argument("python_map", type=Path, help="CSV of Python names with theirs")
    asked = parser.parse_args()
    for path in (asked.api_map, asked.python_map):
        if not path.is_file():
            parser.error(f"{path}: no such file")
    pack_maps(asked.api_map, asked.python_map)


if __name__ == "__main__":
    main()
