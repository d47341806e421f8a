"""The public pairs: the same file before and after a vendor's port, and the measure "changed lines saved".

`changed` is the number of added plus removed lines between two versions, comments and spacing ignored; `saved` is the
share of it that is gone when the tool's output stands in for the version before. The code is checked out from bare
mirrors into a scratch folder and never enters this repository.
"""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CODE = re.compile(
    r"""//(?:[^\n\\]|\\.)*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S
)
_HASH = re.compile(r"#\[\[.*?\]\]|#[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\\n])*'", re.S)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One row of the list of pairs."""

    set: str
    cuda_repo: str
    cuda_commit: str
    cuda_path: str
    musa_repo: str
    musa_commit: str
    musa_path: str
    kind: str
    """cxx, cmake or py."""
    code_lines: int
    changed_lines: int


def read_pairs(path: Path) -> list[Pair]:
    """Read the list of pairs."""
    names = Pair.__dataclass_fields__
    with path.open(encoding="utf-8", newline="") as handle:
        return [
            Pair(**{k: int(v) if k.endswith("_lines") else v for k, v in row.items() if k in names})
            for row in csv.DictReader(handle)
        ]


def code_lines(text: str, kind: str) -> list[str]:
    """The lines of a file without comments, spacing and empty lines."""
    pattern = _CODE if kind == "cxx" else _HASH

    def keep(match: re.Match[str]) -> str:
        token = match.group()
        if token[0] in "\"'R":
            return token
        return " " + "\n" * token.count("\n")

    text = pattern.sub(keep, text.replace("\r\n", "\n"))
    lines = ("".join(line.split()) for line in text.split("\n"))
    return [line for line in lines if line]


def changed_line_count(before: list[str], after: list[str], scratch: Path) -> int:
    """Added plus removed lines of the smallest edit between two lists of lines."""
    if before == after:
        return 0
    first, second = scratch / "a", scratch / "b"
    first.write_text("\n".join(before) + "\n" if before else "", encoding="utf-8", errors="surrogateescape")
    second.write_text("\n".join(after) + "\n" if after else "", encoding="utf-8", errors="surrogateescape")
    run = subprocess.run(["diff", str(first), str(second)], capture_output=True, check=False)
    return sum(line[:1] in (b"<", b">") for line in run.stdout.split(b"\n"))


def checkout(mirror: Path, commit: str, target: Path, paths: tuple[str, ...] = ()) -> Path:
    """Write the text files of one commit of a bare mirror, once; objects that the mirror lacks are left out."""
    done = target.with_name(target.name + ".done")
    if done.exists():
        return target
    git = ["git", "-C", str(mirror)]
    tree = subprocess.run([*git, "ls-tree", "-r", "-z", commit, *paths], capture_output=True, check=True).stdout
    entries = [entry.split(b"\t", 1) for entry in tree.split(b"\0") if entry]
    blobs = [(head.split()[2], name) for head, name in entries if head.startswith(b"100")]
    with subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as batch:
        assert batch.stdin is not None and batch.stdout is not None
        for blob, name in blobs:
            batch.stdin.write(blob + b"\n")
            batch.stdin.flush()
            head = batch.stdout.readline().split()
            if head[-1] == b"missing":
                continue
            body = batch.stdout.read(int(head[2]) + 1)[:-1]
            if b"\0" in body[:8192]:
                continue
            path = target / name.decode("utf-8", errors="surrogateescape")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        batch.stdin.close()
    done.touch()
    return target


def read_text(path: Path) -> str:
    """UTF-8, other bytes kept."""
    return path.read_bytes().decode("utf-8", errors="surrogateescape")


def by_set(pairs: list[Pair]) -> Iterator[tuple[str, list[Pair]]]:
    """Pairs in sets, in the order of the list."""
    names = list(dict.fromkeys(pair.set for pair in pairs))
    for name in names:
        yield name, [pair for pair in pairs if pair.set == name]
