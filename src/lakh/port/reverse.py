"""Would a compiler accept it? A CUDA front end reads the port, with each MUSA name defined back to its CUDA name.

A generated header defines every MUSA name that the translation used as the CUDA name it came from, small headers stand
for musa_runtime.h and the like, and clang reads the file in CUDA host mode with the headers of a toolkit. The original
goes through the same front end: only a file that passes before and fails after is a finding.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakh.port.cpp.headers import INCLUDE
from lakh.port.cpp.words import WordTable
from lakh.port.findings import Finding, finding
from lakh.port.maps import Maps

_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
_MACRO_LIKE = re.compile(r"[A-Z_0-9]+\Z|__\w+__\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontEnd:
    """A compiler that reads CUDA without a GPU, and its CUDA headers."""

    command: tuple[str, ...]
    name: str


def find_front_end() -> FrontEnd | str:
    """clang with CUDA headers, else nvcc, else the reason why there is none."""
    headers = cuda_include_folder()
    clang = next(
        (path for name in ("clang++-19", "clang++-18", "clang++-17", "clang++") if (path := shutil.which(name))), None
    )
    if clang is not None and headers is not None:
        command = (
            clang,
            "-x",
            "cuda",
            "--cuda-host-only",
            "-nocudainc",
            "-nocudalib",
            "-fsyntax-only",
            "-std=c++17",
            "-w",
            f"-I{headers}",
            "-include",
            "cuda_runtime.h",
        )
        return FrontEnd(command=command, name=f"{Path(clang).name} with {headers}")
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        nvcc_command = (nvcc, "-x", "cu", "-std=c++17", "-w", "--cuda", "-o", "/dev/null")
        return FrontEnd(command=nvcc_command, name="nvcc")
    missing = [name for name, found in (("clang", clang), ("CUDA headers", headers)) if found is None]
    return f"{' and '.join(missing)} not found, and no nvcc"


def cuda_include_folder() -> Path | None:
    """The include folder of a toolkit, or of the nvidia-cuda-runtime wheel."""
    candidates = [Path("/usr/local/cuda/include"), Path("/usr/include/cuda"), Path("/usr/include")]
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        candidates.insert(0, Path(nvcc).resolve().parent.parent / "include")
    spec = importlib.util.find_spec("nvidia")  # the namespace of NVIDIA's wheels
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        candidates += sorted(Path(place).glob("*/include"))
    return next((folder for folder in candidates if (folder / "cuda_runtime.h").is_file()), None)


def reverse_header(texts: Iterable[tuple[str, str]], words: WordTable) -> str:
    """Defines each MUSA name of the translated texts as the CUDA name it came from.

    Args:
        texts: original and translated text of each file
        words: the table that they were translated with
    """
    pairs: dict[str, str] = {}
    for old, new in texts:
        present = set(_IDENTIFIER.findall(new))
        for name in set(_IDENTIFIER.findall(old)):
            word = words.get(name)
            if word is None or word.text == name or word.kind == "own" or word.text not in present:
                continue
            # A macro defined here would make every #ifdef true; constants are the exception, for they are values.
            if word.kind in ("macro",) or (_MACRO_LIKE.match(name) and word.kind not in ("enum",)):
                continue
            pairs.setdefault(word.text, name)
    lines = [f"#define {musa} {cuda}" for musa, cuda in sorted(pairs.items()) if musa.isidentifier()]
    return "\n".join(["#pragma once", "#define __MUSA_RUNTIME_H__", *lines, ""])


def stand_in_headers(maps: Maps, texts: Iterable[str]) -> dict[str, str]:
    """For each MUSA header that the texts include, a file that includes the CUDA header it stands for."""
    wanted = {match.group(2) for text in texts for match in INCLUDE.finditer(text) if match.group(2)}
    stand_ins: dict[str, str] = {}
    for name in maps.api_names():
        row = maps.api(name) if name.endswith((".h", ".hpp", ".cuh")) else None
        if row is not None and row.musa is not None and row.musa in wanted and row.musa != name:
            stand_ins.setdefault(row.musa, f"#pragma once\n#include <{name}>\n")
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
        for path, new_path in units:
            before = _run(front_end, root / path, [f"-I{root}", f"-I{(root / path).parent}"])
            if before is not None:
                continue
            passed += 1
            options = [
                f"-I{scratch}",
                f"-I{folder}",
                f"-I{(folder / new_path).parent}",
                "-include",
                str(scratch / "lakh_reverse.h"),
            ]
            after = _run(front_end, folder / new_path, options)
            if after is None:
                still += 1
                continue
            line, message = after
            findings.append(finding("LP610", path=new_path, line=line, message=message))
    return findings, passed, still


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
