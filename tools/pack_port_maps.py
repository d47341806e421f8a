"""Pack the two name maps into src/lakh/port/data: `python tools/pack_port_maps.py api-map.csv python-map.csv`.

Input columns: cuda, musa, kind, library (API map only), status, note, evidence.
"""

from __future__ import annotations

import csv
import lzma
import sys
from pathlib import Path

from lakh.port.maps import pack

DATA = Path(__file__).resolve().parents[1] / "src" / "lakh" / "port" / "data"


def main(api_csv: str, python_csv: str) -> None:
    """Write the three packed files."""
    strings: dict[str, int] = {}
    for source, target, library in ((api_csv, "api_map", None), (python_csv, "python_map", "python")):
        with Path(source).open(encoding="utf-8", newline="") as handle:
            rows = [{**row, "library": library or row["library"]} for row in csv.DictReader(handle)]
        for row in rows:
            for column, cell in row.items():
                row[column] = " ".join(cell.split())
        (DATA / f"{target}.tsv.xz").write_bytes(lzma.compress(pack(rows, strings).encode(), preset=9))
    (DATA / "strings.txt.xz").write_bytes(lzma.compress("\n".join(strings).encode(), preset=9))


if __name__ == "__main__":
    main(*sys.argv[1:])
