"""Translate makefiles: the compiler, its flags, libraries and the toolkit's folder; the project's names by policy."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from lakh.port.build_files.work import Work
from lakh.port.findings import PortContext, Translation
from lakh.port.nvcc_flags import LIBRARIES_WITHOUT_COUNTERPART, nvcc_only_flags, toolkit_path, translate_flags
from lakh.port.own_words import renamed_path, renamed_suffixes

_TRIGGER = re.compile(
    r"cuda|nvcc|nccl|cublas|cudnn|cufft|curand|\.cuh?\b|sm_\d|cuobjdump|nvprune|fatbinary|ptxas|nvlink|nvdisasm|nvidia",
    re.IGNORECASE,
)
_LINE = re.compile(r"[^\r\n]+")
_COMPILER = re.compile(r"(?<![\w-])nvcc(?![\w-])")
_TOOLS = re.compile(r"(?<![\w-])(?:cuobjdump|nvprune|fatbinary|ptxas|nvlink|nvdisasm|nvidia-smi)(?![\w-])")
_PATH = re.compile(r"[\w${}()/.-]+\.(?:cu|cuh)\b")
_CONDITION = re.compile(r"\s*(?:ifeq|ifneq|\$\(if|else\s+if)")
_VERSION = re.compile(r"CUDA_?VERSION|NVCC_?VERSION|nvcc\s+--?[vV]", re.IGNORECASE)


def translate_make(text: str, *, path: str, context: PortContext, apply: bool) -> Translation:
    """Translate or assess one makefile."""
    work = Work(text, path, context)
    if not _TRIGGER.search(text) and not work.renames:
        return Translation(text=text)
    folder = str(PurePosixPath(path).parent).removeprefix(".")
    suffixes = renamed_suffixes(context)
    codes: list[str] = []
    for match in _LINE.finditer(text):
        line = match[0]
        comment = re.search(r"(?<!\\)#", line)
        code = line[: comment.start()] if comment else line
        if not code.strip():
            continue
        codes.append(code)
        if _VERSION.search(code):
            work.find("LP409", match.start())
            continue  # a CUDA release means nothing to mcc; the line is a person's to decide
        new = _translate_line(code, match.start(), work, folder, suffixes)
        if new != code:
            work.edit(match.start(), match.start() + len(code), new)
    work.leave_native("\n".join(codes))
    return work.result(apply=apply)


def declared_make_names(text: str) -> frozenset[str]:
    """Variables that a makefile sets."""
    return frozenset(re.findall(r"^[ ]*(?:export[ ]+|override[ ]+)*(\w+)[ ]*[:?+]?=", text, re.MULTILINE))


def _translate_line(code: str, offset: int, work: Work, folder: str, suffixes: dict[str, str]) -> str:
    for place, flag in nvcc_only_flags(code):
        work.find("LP403", offset + place, f"nvcc flag {flag} without a recorded mcc counterpart")
    for match in _TOOLS.finditer(code):
        work.find("LP405", offset + match.start(), f"Build calls {match[0]}", name=match[0])
    for match in re.finditer(r"(?<![\w-])-l(\w+)", code):
        if match[1] in LIBRARIES_WITHOUT_COUNTERPART:
            work.find("LP406", offset + match.start(), f"Library {match[1]} has no recorded MUSA counterpart")
    for match in _COMPILER.finditer(code):
        work.use("nvcc", offset + match.start(), "mcc", work.context.maps.api("nvcc"))
    new = _COMPILER.sub("mcc", translate_flags(code, work.context.arch))
    new = _one_offload(toolkit_path(new))

    def path(match: re.Match[str]) -> str:
        return renamed_path(match[0], folder=folder, context=work.context) or match[0]

    new = _PATH.sub(path, new)
    for old_suffix, new_suffix in suffixes.items():
        new = re.sub(rf"(?<=[%*\w)}}]){re.escape(old_suffix)}\b|(?<=[=:,\s]){re.escape(old_suffix)}\b", new_suffix, new)
    return work.rename(new)


def _one_offload(code: str) -> str:
    """Several NVIDIA architectures become one MUSA flag, written once."""
    flags = re.findall(r"--offload-arch=mp_\d+", code)
    if len(flags) < 2 or len(set(flags)) > 1:
        return code
    head, flag, tail = code.partition(flags[0])
    return head + flag + re.sub(rf"\s+{re.escape(flag)}(?=\s|$)", "", tail)
