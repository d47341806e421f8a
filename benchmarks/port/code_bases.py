"""Public CUDA code bases through the translator: names handled, guards, asm, includes, a second run, speed.

    python benchmarks/port/code_bases.py FOLDER[:SUBFOLDER] ...

Each folder is a checkout outside this repository. With SUBFOLDER the whole folder is the project and only files below
are counted.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

from lakh.port.check import check_pair
from lakh.port.cpp.headers import INCLUDE
from lakh.port.cpp.translate import _TOKEN
from lakh.port.maps import Maps
from lakh.port.project import Port, port, translate_text

_SAME = frozenset({"device", "feature", "ptx", "cmake", "flag", "env", "cub", "thrust", "nvtx", "triton"})


def known_names(text: str, maps: Maps) -> Counter[str]:
    """CUDA names and headers of the map outside comments and strings, without names that MUSA spells the same."""
    counted: Counter[str] = Counter()
    spans = [match.span(2) for match in INCLUDE.finditer(text) if match.group(2)]
    for start, end in spans:
        row = maps.api(text[start:end])
        if row is not None and row.kind == "header" and row.musa not in (None, text[start:end]):
            counted[text[start:end]] += 1
    inside = {start for start, _ in spans}
    skip_to = 0
    for match in _TOKEN.finditer(text):
        if match.start() < skip_to or not (match.group()[0].isalpha() or match.group()[0] == "_"):
            continue
        place = next((end for start, end in spans if start <= match.start() < end), None) if inside else None
        if place is not None:
            skip_to = place
            continue
        name = match.group()
        row = maps.api(name)
        if row is None or row.library in _SAME or row.kind in ("header", "flag") or row.musa == name:
            continue
        if row.musa is None and not re.match(r"(?i)_*(?:cu|nccl|npp|nv)", name):
            continue
        counted[name] += 1
    return counted


def measure(found: Port, below: str) -> dict[str, object]:
    """The figures of one code base."""
    maps = Maps.load()
    ported = frozenset(file.new_path for file in found.files)
    before: Counter[str] = Counter()
    left: Counter[str] = Counter()
    unlisted: list[str] = []
    codes: Counter[str] = Counter()
    second = 0
    asm = Counter()
    lines = files = 0
    for file in found.files:
        if file.source.language != "cxx" or file.source.text is None or not file.source.path.startswith(below):
            continue
        files += 1
        lines += file.source.line_count
        old = known_names(file.source.text, maps)
        before += old
        new = known_names(file.result.text, maps)
        left += new
        listed = {row.name for row in file.result.findings} | {use.name for use in file.result.uses}
        unlisted += [f"{file.source.path}: {name}" for name in new if name not in listed]
        asm.update(use.musa is not None for use in file.result.uses if use.kind == "asm")
        for row in check_pair(
            file.source.text,
            file.result.text,
            path=file.source.path,
            new_path=file.new_path,
            language="cxx",
            context=found.context,
            ported=ported,
        ):
            codes[f"{row.code} {row.severity}"] += 1
            if row.severity == "error":
                print("   ", row.path, row.line, row.code, row.message)
        again = translate_text(file.result.text, path=file.new_path, language="cxx", context=found.context, change=True)
        second += again.text != file.result.text
    total, gone = before.total(), before.total() - left.total()
    return {
        "files": files,
        "lines": lines,
        "names": total,
        "gone": f"{100 * gone / max(1, total):.2f} %",
        "left and listed": left.total() - len(unlisted),
        "left and not listed": len(unlisted),
        "unlisted": unlisted[:10],
        "most left": left.most_common(8),
        "asm replaced": asm[True],
        "asm kept under a guard": asm[False],
        "check": dict(sorted(codes.items())),
        "files that a second run changes": second,
    }


def speed(found: Port, below: str) -> str:
    """Lines a CPU second of the C++ translator in one process, beside a plain rename of words."""
    files = [
        (file.source.path, file.source.text)
        for file in found.files
        if file.source.language == "cxx" and file.source.text is not None and file.source.path.startswith(below)
    ]
    lines = sum(text.count("\n") for _, text in files)
    start = time.process_time()
    for path, text in files:
        translate_text(text, path=path, language="cxx", context=found.context, change=True)
    tree = time.process_time() - start
    names = {
        name: row.musa for name in found.context.maps.api_names() if (row := found.context.maps.api(name)) and row.musa
    }
    start = time.process_time()
    for _, text in files:
        re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0]) or match[0], text)
    plain = time.process_time() - start
    return f"{lines / tree:,.0f} lines a CPU second; a plain rename of words: {lines / plain:,.0f}"


def main(arguments: list[str]) -> None:
    """Print the figures of each code base."""
    for argument in arguments:
        folder, _, below = argument.partition(":")
        start = time.perf_counter()
        found = port(Path(folder))
        wall_s = time.perf_counter() - start
        lines = sum(file.source.line_count for file in found.files)
        print(argument, found.decision.rename, found.decision.reasons[0])
        for name, value in measure(found, below).items():
            print(f"  {name}: {value}")
        print(f"  whole run: {lines:,} lines in {wall_s:.1f} s on all cores, all languages")
        print(f"  C++ translator: {speed(found, below)}")


if __name__ == "__main__":
    main(sys.argv[1:])
