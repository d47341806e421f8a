"""Would a compiler accept it? A CUDA front end reads the port, with each MUSA name defined back to its CUDA name.

A generated header defines every MUSA name that the translation used as the CUDA name it came from, small headers stand
for musa_runtime.h and the like, and clang reads the file in CUDA host mode with the headers of a toolkit. The original
goes through the same front end: only a file that passes before and fails after is a finding.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lakh.port.conditions import conditions
from lakh.port.cpp.headers import INCLUDE
from lakh.port.cpp.words import WordTable
from lakh.port.findings import Finding, finding
from lakh.port.maps import Maps

_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
_NOT_A_VALUE = re.compile(r"_H_*\Z|_HPP_*\Z|^__\w+__\Z")
"""Include guards and macros of the compiler: defining them would change what conditions say."""
_GUARD = re.compile(r"(?i)_h_*\Z")
_COMPILER = """\
#define __get_laneid() 0u
#define __get_lanemask_lt() 0u
#define __get_lanemask_le() 0u
#define __get_lanemask_gt() 0u
#define __get_lanemask_ge() 0u
#define __bfe_u32(value, start, count) (((value) >> (start)) & ((1u << (count)) - 1u))
#define __musa_exit() ((void)0)
#ifdef __CUDACC__
#define __MUSACC__ 1
#endif
#define MUSA_VERSION 50000
#define MUSART_VERSION 50000"""


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontEnd:
    """A compiler that reads CUDA without a GPU, and its CUDA headers."""

    command: tuple[str, ...]
    name: str


def find_front_end(cuda_folder: Path | None = None) -> FrontEnd | str:
    """clang with CUDA headers that it accepts, else nvcc, else the reason why there is none.

    Args:
        cuda_folder: a toolkit's include folder, or the `nvidia` folder of NVIDIA's wheels; None looks in usual places
    """
    names = ("clang++-19", "clang++-18", "clang++-17", "clang++")
    clang = next((path for name in names if (path := shutil.which(name))), None)
    headers = cuda_include_folders(cuda_folder)
    if clang is not None and headers:
        command = (
            *(clang, "-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib"),
            *("-fsyntax-only", "-std=c++17", "-w"),
            *(f"-isystem{folder}" for folder in headers),
            *("-include", "__clang_cuda_runtime_wrapper.h"),
        )
        return FrontEnd(command=command, name=f"{Path(clang).name} with {headers[0]}")
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        return FrontEnd(command=(nvcc, "-x", "cu", "-std=c++17", "-w", "--cuda", "-o", "/dev/null"), name="nvcc")
    missing = [name for name, found in (("clang", clang), ("CUDA headers before 13.0", headers)) if not found]
    return f"{' and '.join(missing)} not found, and no nvcc"


def cuda_include_folders(given: Path | None = None) -> list[Path]:
    """The include folders of a toolkit that clang accepts (before 13.0), or of NVIDIA's wheels; empty if none."""
    candidates = [given] if given is not None else [Path("/usr/local/cuda/include"), Path("/usr/include")]
    spec = importlib.util.find_spec("nvidia")  # the namespace of NVIDIA's wheels
    if given is None and spec is not None:
        candidates += [Path(place) for place in spec.submodule_search_locations or ()]
    for folder in candidates:
        if (folder / "cuda_runtime.h").is_file() and _is_old_enough(folder):
            return [folder]
        runtime = folder / "cuda_runtime" / "include"
        if (runtime / "cuda_runtime.h").is_file() and _is_old_enough(runtime):
            return [runtime, *(path for path in sorted(folder.glob("*/include")) if path != runtime)]
    return []


def _is_old_enough(folder: Path) -> bool:
    text = (folder / "cuda.h").read_text(errors="replace") if (folder / "cuda.h").is_file() else ""
    match = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", text)
    return match is not None and int(match[1]) < 13000


def reverse_header(texts: Iterable[tuple[str, str]], words: WordTable) -> str:
    """Defines each MUSA name of the translated texts as the CUDA name it came from.

    Args:
        texts: original and translated text of each file
        words: the table that they were translated with
    """
    pairs: dict[str, str] = {}
    texts = list(texts)
    # A name that a condition asks for must not be defined here, or every #ifdef becomes true.
    asked = {name for _, new in texts for row in conditions(new) for name in _IDENTIFIER.findall(row.text)}
    for old, new in texts:
        present = set(_IDENTIFIER.findall(new))
        for name in set(_IDENTIFIER.findall(old)):
            word = words.get(name)
            if word is None or word.text == name or word.kind == "own" or word.text not in present:
                continue
            if word.text in asked or _NOT_A_VALUE.search(name):
                continue
            pairs.setdefault(word.text, name)
    lines = [f"#define {musa} {cuda}" for musa, cuda in sorted(pairs.items()) if musa.isidentifier()]
    return "\n".join(["#pragma once", "#define __MUSA_RUNTIME_H__", _COMPILER, *lines, ""])


def stand_in_headers(maps: Maps, texts: Iterable[str]) -> dict[str, str]:
    """For each MUSA header that the texts include, a file that includes the CUDA header it stands for.

    Include guards that conditions ask for (`#ifdef __musa_musa_h__`) are defined where their CUDA header was read.
    """
    texts = list(texts)
    asked = {name for text in texts for row in conditions(text) for name in _IDENTIFIER.findall(row.text)}
    rows = [row for name in sorted(asked) for row in maps.cuda_of(name) if _GUARD.search(row.cuda)]
    guards = "".join(f"#ifdef {row.cuda}\n#undef {row.musa}\n#define {row.musa}\n#endif\n" for row in rows)
    wanted = {match.group(2) for text in texts for match in INCLUDE.finditer(text) if match.group(2)}
    stand_ins: dict[str, str] = {}
    for name in maps.api_names():
        row = maps.api(name) if name.endswith((".h", ".hpp", ".cuh")) else None
        if row is not None and row.musa is not None and row.musa in wanted and row.musa != name:
            stand_ins.setdefault(row.musa, f"#pragma once\n#include <{name}>\n{guards}")
    for include in wanted:
        if include.startswith("musa/"):
            stand_ins.setdefault(include, f"#pragma once\n#include <cuda/{include[5:]}>\n")
    return stand_ins


def compile_pairs(
    root: Path,
    folder: Path,
    units: Sequence[tuple[str, str]],
    texts: Sequence[tuple[str, str]],
    *,
    words: WordTable,
    maps: Maps,
    front_end: FrontEnd,
) -> tuple[list[Finding], int, int]:
    """Read every file before and after; findings, files whose original passes, and those that pass after too.

    Args:
        root: the source folder
        folder: the port
        units: path and new path of each translation unit
        texts: original and translated text of every C and C++ file, headers too
        words: the table that they were translated with
        maps: the maps
        front_end: from `find_front_end`
    """
    findings: list[Finding] = []
    passed = still = 0
    with tempfile.TemporaryDirectory(prefix="lakh-reverse-") as name:
        scratch = Path(name)
        (scratch / "lakh_reverse.h").write_text(reverse_header(texts, words), encoding="utf-8")
        for header, text in stand_in_headers(maps, (new for _, new in texts)).items():
            target = scratch / header
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        before_folders = include_folders(root, (old for old, _ in texts))
        after_folders = include_folders(folder, (new for _, new in texts))
        old_options = [f"-I{place}" for place in before_folders]
        new_options = [f"-I{scratch}", *(f"-I{place}" for place in after_folders)]
        new_options += ["-include", str(scratch / "lakh_reverse.h")]

        def both(unit: tuple[str, str]) -> tuple[bool, tuple[int, str] | None]:
            path, new_path = unit
            if _run(front_end, root / path, old_options) is not None:
                return False, None
            return True, _run(front_end, folder / new_path, new_options)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (_, new_path), (passes, after) in zip(units, pool.map(both, units), strict=True):
                passed += passes
                still += passes and after is None
                if after is not None:
                    line, message = after
                    findings.append(finding("LP610", path=new_path, line=line, message=message))
    return findings, passed, still


def include_folders(root: Path, texts: Iterable[str], *, most: int = 60) -> list[Path]:
    """The folders from which the includes of the texts resolve inside the project."""
    wanted = {match.group(2) for text in texts for match in INCLUDE.finditer(text) if match.group(2)}
    by_name: dict[str, list[str]] = {}
    for include in wanted:
        by_name.setdefault(include.rsplit("/", 1)[-1], []).append(include)
    found: dict[Path, int] = {root: 1}
    for path in root.rglob("*"):
        for include in by_name.get(path.name, ()):
            relative = path.relative_to(root).as_posix()
            if relative == include or relative.endswith("/" + include):
                place = root / relative[: len(relative) - len(include)].rstrip("/")
                found[place] = found.get(place, 0) + 1
    return sorted(found, key=lambda place: (-found[place], str(place)))[:most]


def _run(front_end: FrontEnd, path: Path, options: list[str]) -> tuple[int, str] | None:
    """None where the front end accepts the file, else line and message of the first error."""
    try:
        run = subprocess.run(
            [*front_end.command, *options, str(path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return 1, "the compiler did not finish in 300 s"
    if run.returncode == 0:
        return None
    for text in run.stderr.splitlines():
        match = re.match(r"(.*?)[:(](\d+)[:)].*?error:? ?(.*)", text)
        if match:
            inside = Path(match[1]).name == path.name
            return (int(match[2]) if inside else 1), match[
                3
            ] if inside else f"{Path(match[1]).name}:{match[2]}: {match[3]}"
    return 1, (run.stderr.strip().splitlines() or ["the compiler refused it"])[0][:200]
