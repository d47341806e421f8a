"""Which kind of build file is this?"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

from lakh.port.build_files.bazel import assess_bazel
from lakh.port.build_files.cmake import declared_cmake_names, translate_cmake
from lakh.port.build_files.make import declared_make_names, translate_make
from lakh.port.build_files.packages import assess_packages
from lakh.port.findings import PortContext, Translation

BuildKind = Literal["cmake", "make", "packages", "bazel"]

_BAZEL = frozenset({"BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel"})


def build_kind(path: str) -> BuildKind | None:
    """The kind of a build file by its name, None for any other file. A setup.py is Python."""
    name = PurePosixPath(path).name
    if name == "CMakeLists.txt" or name.endswith((".cmake", ".cmake.in")):
        return "cmake"
    if re.fullmatch(r"(?:GNU)?[Mm]akefile(?:\..+)?", name) or name.endswith((".mk", ".mak", ".make")):
        return "make"
    if name in _BAZEL or name.endswith(".bzl"):
        return "bazel"
    if name in ("pyproject.toml", "setup.cfg", "environment.yml", "environment.yaml") or re.fullmatch(
        r"(?:.*[-_])?(?:requirements|constraints)(?:[-_.].*)?\.(?:txt|in)", name
    ):
        return "packages"
    return None


def is_build_file(path: str) -> bool:
    """True for a file that `translate` and `assess` know."""
    return build_kind(path) is not None


def declared_names(text: str, *, path: str) -> frozenset[str]:
    """Names that a build file declares, for `PortContext.own_names`."""
    kind = build_kind(path)
    if kind == "cmake":
        return declared_cmake_names(text)
    return declared_make_names(text) if kind == "make" else frozenset()


def translate(text: str, *, path: str, context: PortContext) -> Translation:
    """Translate one build file; a text that is no build file comes back as it is. A second run changes nothing."""
    return _run(text, path, context, apply=True)


def assess(text: str, *, path: str, context: PortContext) -> Translation:
    """What `translate` would find, with the text unchanged."""
    return _run(text, path, context, apply=False)


def _run(text: str, path: str, context: PortContext, *, apply: bool) -> Translation:
    kind = build_kind(path)
    if kind == "cmake":
        return translate_cmake(text, path=path, context=context, apply=apply)
    if kind == "make":
        return translate_make(text, path=path, context=context, apply=apply)
    if kind == "packages":
        return assess_packages(text, path=path, context=context)
    if kind == "bazel":
        return assess_bazel(text, path=path, context=context)
    return Translation(text=text)
