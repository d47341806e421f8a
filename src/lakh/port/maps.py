"""Which MUSA name stands for a CUDA name, and how far can that be trusted?

Data: `data/api_map.tsv.xz` (names of C, C++, device code, headers, build variables) and `data/python_map.tsv.xz`
(PyTorch), written by tools/pack_port_maps.py with the evidence of each row; `data/added.csv` holds rows that people add
by hand (docs/how-to/add-a-mapping.md). A table gives spelling, only evidence gives existence; the four statuses stay:

- same-semantics: stands there in a vendor port, a mapping header or MUSA code; behaviour not tested here
- differs: a source states a difference, or two sources give two MUSA names
- unsupported: a source says that it is missing, stubbed or broken
- unknown: only a naming table has it (a spelling), or nothing has it
"""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal, cast, get_args

from lakh.errors import Problem, SpecError, list_names, nearest_hint

Status = Literal["same-semantics", "differs", "unsupported", "unknown"]
STATUSES: tuple[Status, ...] = get_args(Status)
Kind = Literal["header", "runtime", "driver", "type", "enum", "macro", "library", "flag", "python", "op", "env"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COLUMNS = ("cuda", "musa", "kind", "library", "status", "note", "evidence")


@dataclass(frozen=True, kw_only=True, slots=True)
class MappedName:
    """One row of a map."""

    cuda: str
    musa: str | None
    """None where no source gives a name."""
    kind: Kind
    library: str
    """Finer group, such as cudart, cublas, device, ptx, env, cmake, pytorch-cpp; "python" for the PyTorch map."""
    status: Status
    note: str
    evidence: str
    """`repository:path`, `repository#issue` or the header that declares it."""

    @property
    def reason(self) -> str:
        """One sentence: the note, else the evidence."""
        return self.note or f"seen in {self.evidence}"


class Maps:
    """Both maps with lookups by CUDA name and by MUSA name. Pickles as "load again", so that it is cheap to send."""

    def __init__(
        self,
        api: Mapping[str, MappedName | str],
        python: Mapping[str, MappedName | str],
        tables: _Tables,
        added: tuple[str, ...] = (),
    ) -> None:
        self._api = dict(api)
        self._python = dict(python)
        self._tables = tables
        self._added = added
        self._musa: dict[str, list[str]] | None = None

    @staticmethod
    def load(added: Iterable[str] = ()) -> Maps:
        """The packaged maps, with rows of the CSV files named in `added` on top. Cached."""
        return _load(tuple(added))

    def __reduce__(self) -> tuple[object, ...]:
        return (_load, (self._added,))

    def api(self, cuda: str) -> MappedName | None:
        """The row of a C, C++, device, header, environment or CMake name, or None where it is no known CUDA name."""
        row = self._api.get(cuda)
        if type(row) is str:
            row = self._api[cuda] = self._tables.row(row)
        return row  # type: ignore[return-value]

    def python(self, cuda: str) -> MappedName | None:
        """The row of a PyTorch name such as "torch.cuda.Stream", an op or an environment variable."""
        row = self._python.get(cuda)
        if type(row) is str:
            row = self._python[cuda] = self._tables.row(row)
        return row  # type: ignore[return-value]

    def api_names(self) -> Iterator[str]:
        """Every CUDA name of the API map."""
        return iter(self._api)

    def python_names(self) -> Iterator[str]:
        """Every name of the PyTorch map."""
        return iter(self._python)

    def is_api(self, cuda: str) -> bool:
        """True where the API map holds the name."""
        return cuda in self._api

    def cuda_of(self, musa: str) -> tuple[MappedName, ...]:
        """The rows whose MUSA name this is (more than one where CUDA has versioned names)."""
        if self._musa is None:
            self._musa = {}
            for name in self._api:
                row = self.api(name)
                if row is not None and row.musa is not None:
                    self._musa.setdefault(row.musa, []).append(name)
        rows = (self.api(name) for name in self._musa.get(musa, ()))
        return tuple(row for row in rows if row is not None)


class _Tables:
    """The shared strings of the packed files: kinds, libraries, statuses, notes, evidence."""

    def __init__(self, strings: list[str]) -> None:
        self.strings = strings

    def row(self, line: str) -> MappedName:
        cuda, musa, *indices = line.split("\t")
        kind, library, status, note, evidence = (self.strings[int(index, 36)] for index in indices)
        return MappedName(
            cuda=cuda,
            musa=musa or None,
            kind=cast(Kind, kind),
            library=library,
            status=cast(Status, status),
            note=note,
            evidence=evidence,
        )


def pack(rows: Iterable[Mapping[str, str]], strings: dict[str, int]) -> str:
    """One line a row: cuda, musa, then base-36 indices of kind, library, status, note and evidence in `strings`."""
    lines = []
    for row in rows:
        cells = [row["cuda"], row["musa"]]
        cells += [_base36(strings.setdefault(row[column], len(strings))) for column in COLUMNS[2:]]
        lines.append("\t".join(cells))
    return "\n".join(lines)


def read_rows(path: Path) -> list[MappedName]:
    """Read a CSV of added rows; every problem of the file is listed."""
    problems: list[Problem] = []
    rows: list[MappedName] = []
    text = path.read_text(encoding="utf-8")
    reader = csv.DictReader(io.StringIO(text))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise SpecError(Problem(where=f"{path}:1", found=reader.fieldnames, accepted="the header " + ",".join(COLUMNS)))
    for cells in reader:
        where = f"{path}:{reader.line_num}"
        if None in cells or None in cells.values():
            problems.append(Problem(where=where, found=cells, accepted=f"{len(COLUMNS)} cells"))
            continue
        if not cells["cuda"]:
            problems.append(Problem(where=f"{where}: cuda", found=None, accepted="a CUDA name"))
        for column, closed in (("kind", KINDS), ("status", STATUSES)):
            if cells[column] not in closed:
                problems.append(
                    Problem(
                        where=f"{where}: {column}",
                        found=cells[column],
                        accepted=list_names(closed),
                        hint=nearest_hint(cells[column], closed),
                    )
                )
        if not cells["evidence"]:
            problems.append(Problem(where=f"{where}: evidence", found=None, accepted="repository:path, or a document"))
        if not problems:
            rows.append(MappedName(**{**cells, "musa": cells["musa"] or None}))  # type: ignore[arg-type]
    if problems:
        raise SpecError(problems)
    return rows


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while True:
        number, rest = divmod(number, 36)
        text = digits[rest] + text
        if not number:
            return text


@lru_cache(maxsize=4)
def _load(added: tuple[str, ...]) -> Maps:
    data = resources.files("lakh.port") / "data"
    strings = lzma.decompress((data / "strings.txt.xz").read_bytes()).decode().split("\n")
    parts: list[dict[str, MappedName | str]] = []
    for name in ("api_map.tsv.xz", "python_map.tsv.xz"):
        lines = lzma.decompress((data / name).read_bytes()).decode().split("\n")
        parts.append({line[: line.index("\t")]: line for line in lines})
    api, python = parts
    with resources.as_file(data / "added.csv") as path:
        files = [path, *map(Path, added)]
        for file in files:
            for row in read_rows(file):
                (python if row.kind in ("python", "op") else api)[row.cuda] = row
    return Maps(api, python, _Tables(strings), added)
