"""Does `#if __CUDA_ARCH__ >= 800` still take the same branch? Comparisons of architecture and version macros.

NVIDIA counts architectures 300 to 1200 and CUDA releases 5000 to 13000; MUSA counts 210, 220, 310 and 40300, 50000. A
renamed macro with its old number flips the branch silently. A comparison therefore gets the MUSA macro and a MUSA number,
or it is kept word for word and reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

GuardKind = Literal["arch", "version", "library"]

GUARD_MACROS: Mapping[str, GuardKind] = {
    "__CUDA_ARCH__": "arch",
    "CUDA_VERSION": "version",
    "CUDART_VERSION": "version",
    "__CUDART_API_VERSION": "version",
    "__CUDA_API_VERSION": "version",
    "__CUDACC_VER_MAJOR__": "library",
    "__CUDACC_VER_MINOR__": "library",
    "__CUDACC_VER__": "library",
    "CUDNN_VERSION": "library",
    "CUDNN_MAJOR": "library",
    "CUDNN_MINOR": "library",
    "NCCL_VERSION_CODE": "library",
    "NCCL_MAJOR": "library",
    "NCCL_MINOR": "library",
    "CUSPARSE_VERSION": "library",
    "CUSPARSE_VER_MAJOR": "library",
    "CUSOLVER_VERSION": "library",
    "CUSOLVER_VER_MAJOR": "library",
    "CUBLAS_VERSION": "library",
    "CUBLAS_VER_MAJOR": "library",
    "CUFFT_VERSION": "library",
    "CURAND_VERSION": "library",
    "CUPTI_API_VERSION": "library",
    "NPP_VERSION": "library",
    "NPP_VERSION_MAJOR": "library",
    "NVRTC_VERSION": "library",
}
MUSA_MACRO: Mapping[str, str] = {
    "__CUDA_ARCH__": "__MUSA_ARCH__",
    "CUDA_VERSION": "MUSA_VERSION",
    "CUDART_VERSION": "MUSART_VERSION",
}

OLDEST_SDK = 40300
"""MUSA_VERSION of the oldest SDK that is a target (rc4.3; map rows CUDA_VERSION and CUDART_VERSION)."""

_SPACE = r"(?:[ \t]|\\\r?\n)*"
_COMPARISON = re.compile(rf"{_SPACE}\)?{_SPACE}(>=|<=|==|!=|>(?!>)|<(?!<)){_SPACE}(\(?)(\d+)([uUlL]*)(?![\w.])")
_COMPARISON_WITH_CALL = re.compile(rf"{_SPACE}\)?{_SPACE}(?:>=|<=|==|!=|>(?!>)|<(?!<)){_SPACE}\w+{_SPACE}\([^()\n]*\)")
_ANY_OPERATOR = re.compile(rf"{_SPACE}\)?{_SPACE}(?:>=|<=|==|!=|>|<|[-+*/%])")
_REVERSED = re.compile(rf"(?<![\w.])(\d+)([uUlL]*){_SPACE}(>=|<=|==|!=|(?<!>)>|(?<!<)<){_SPACE}\(?{_SPACE}\Z")
_ANY_REVERSED = re.compile(rf"(?:>=|<=|==|!=|[<>]|[-+*/%]){_SPACE}\(?{_SPACE}\Z")
_MIRROR = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "==", "!=": "!="}


@dataclass(frozen=True, kw_only=True, slots=True)
class Guard:
    """One comparison of a guard macro, and what becomes of it."""

    start: int
    """Start of the macro in the text."""
    end: int
    """End of what is replaced or kept as one piece."""
    macro: str
    kind: GuardKind
    text: str
    """The comparison as it stands."""
    replacement: str | None
    """None where it is kept and reported."""


def arch_threshold(compute_capability: int) -> int | None:
    """The `__MUSA_ARCH__` from which a feature guarded by `__CUDA_ARCH__ >= N` is there; None where none has it.

    8.0 is 220 and 9.0 is 310 (map rows `__CUDA_ARCH__ >= 800` and `>= 900`); what came before 8.0 every MUSA target has, and
    210 is the lowest number that a target reports. No source names a MUSA architecture for 10.0 and up.
    """
    if compute_capability < 800:
        return 210
    if compute_capability < 900:
        return 220
    return 310 if compute_capability < 1000 else None


def version_threshold(cuda_version: int) -> int | None:
    """The MUSA_VERSION from which an API guarded by `CUDA_VERSION >= N` is there; None where no source says.

    The MUSA runtime follows the API of CUDA 11 (the vendor's table was made for 11.x): every target SDK has it.
    """
    return OLDEST_SDK if cuda_version < 12000 else None


def threshold_of(kind: GuardKind, number: int) -> int | None:
    """The MUSA number for a CUDA number of one kind of guard."""
    if kind == "arch":
        return arch_threshold(number)
    return version_threshold(number) if kind == "version" else None


def translate_comparison(macro: str, kind: GuardKind, operator: str, number: int) -> str | None:
    """`MACRO operator number` for MUSA, or None where the truth cannot be carried over.

    `> N` means "a later one", so its threshold is that of N + 1; equality with one NVIDIA number has no counterpart.
    """
    name = MUSA_MACRO.get(macro, macro)
    if operator in ("==", "!="):
        return None
    if kind == "arch" and number == 0:
        return f"{name} {operator} 0"
    threshold = threshold_of(kind, number + 1 if operator in (">", "<=") else number)
    if threshold is None:
        return None
    return f"{name} {'>=' if operator in ('>', '>=') else '<'} {threshold}"


def find_guards(text: str, places: list[tuple[int, str]], aliases: Mapping[str, str]) -> Iterator[Guard]:
    """The comparisons around each place where a guard macro (or a project macro that stands for one) is named.

    Args:
        text: the file
        places: start and name of each candidate identifier outside comments and strings
        aliases: project macro to the guard macro that it stands for
    """
    for start, name in places:
        kind = GUARD_MACROS[aliases.get(name, name)]
        end = start + len(name)
        match = _COMPARISON.match(text, end)
        if match is not None and kind != "library":
            operator, _, digits, suffix = match.groups()
            new = translate_comparison(name, kind, operator, int(digits))
            between = text[end : match.start(1)]
            yield Guard(
                start=start,
                end=match.end(),
                macro=name,
                kind=kind,
                text=text[start : match.end()],
                replacement=None if new is None else _rejoin(new, between, text[match.end(1) : match.start(3)], suffix),
            )
            continue
        if match is not None or (_ANY_OPERATOR.match(text, end) and not text.startswith("->", end)):
            call = _COMPARISON_WITH_CALL.match(text, end)
            stop = call.end() if call else match.end() if match else end
            yield Guard(start=start, end=stop, macro=name, kind=kind, text=text[start:stop], replacement=None)
            continue
        before = text[max(0, start - 80) : start]
        reverse = _REVERSED.search(before)
        if reverse is not None and kind != "library":
            new = translate_comparison(name, kind, _MIRROR[reverse.group(3)], int(reverse.group(1)))
            begin = start - len(before) + reverse.start()
            replacement = None
            if new is not None:
                musa, operator, number = new.split(" ")
                middle = text[begin:start]
                tail = middle[len(reverse.group(1)) + len(reverse.group(2)) :]
                replacement = number + reverse.group(2) + tail.replace(reverse.group(3), _MIRROR[operator], 1) + musa
            yield Guard(start=begin, end=end, macro=name, kind=kind, text=text[begin:end], replacement=replacement)
        elif _ANY_REVERSED.search(before):
            yield Guard(start=start, end=end, macro=name, kind=kind, text=text[start:end], replacement=None)


def _rejoin(new: str, before_operator: str, after_operator: str, suffix: str) -> str:
    """The new comparison with the spacing and parentheses of the old one."""
    name, operator, number = new.split(" ")
    return f"{name}{before_operator}{operator}{after_operator}{number}{suffix}"
