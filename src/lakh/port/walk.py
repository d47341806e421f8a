"""Which files does a code base have, and which of them can be translated? Bytes in, text with its peculiarities noted.

Nothing here raises for a strange file: binary files, other encodings, links that lead nowhere, very long lines and
generated files are each counted and reported, and the walk goes on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lakh.errors import Problem, RequestError
from lakh.port.findings import Finding, finding

Language = Literal["cxx", "python", "build", "other"]
Skip = Literal["binary", "long-line", "large", "unreadable", "link"]

CXX_SUFFIXES = frozenset(
    "c cc cpp cxx c++ cp h hh hpp hxx h++ inl inc ipp tpp txx cu cuh mu muh".split()  # noqa: SIM905 one line, not twenty
)
SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", ".lakh-port", "__pycache__", "node_modules", ".venv", ".mypy_cache"}
)
LARGEST_BYTES = 8 * 1024 * 1024
LONGEST_LINE = 20_000
_GENERATED = re.compile(
    r"(?i)(?:auto[- ]?generated|generated (?:by|from|file|automatically)|do not (?:edit|modify)"
    r"|this file (?:is|was) generated)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """One file of the code base."""

    path: str
    """Relative to the root, with forward slashes."""
    language: Language
    size_bytes: int
    text: str | None = None
    """None where the file is not translated."""
    encoding: Literal["utf-8", "latin-1"] = "utf-8"
    skip: Skip | None = None
    is_generated: bool = False

    @property
    def line_count(self) -> int:
        """Lines of the text."""
        return 0 if self.text is None else self.text.count("\n") + (not self.text.endswith("\n") and bool(self.text))


@dataclass(frozen=True, kw_only=True, slots=True)
class Inventory:
    """What a walk found."""

    root: Path
    files: tuple[SourceFile, ...]
    findings: tuple[Finding, ...]

    @property
    def paths(self) -> frozenset[str]:
        """Every path, translated or not."""
        return frozenset(file.path for file in self.files)


def language_of(path: str, *, is_build_file: bool = False) -> Language:
    """The language by the name of the file."""
    if is_build_file:
        return "build"
    name = path.rsplit("/", 1)[-1].lower()
    if name.endswith((".py", ".pyi")):
        return "python"
    _, dot, suffix = name.removesuffix(".in").rpartition(".")
    return "cxx" if dot and suffix in CXX_SUFFIXES else "other"


def read_file(full: Path, path: str, *, language: Language) -> tuple[SourceFile, list[Finding]]:
    """Read one file; what cannot be translated has no text and a finding that says why."""
    try:
        size = full.stat().st_size
        if language != "other" and size > LARGEST_BYTES:
            return _skipped(path, language, size, "large"), [finding("LP507", path=path, line=1)]
        data = full.read_bytes() if language != "other" else b""
    except OSError as error:
        message = f"The system refused to read it: {error.strerror or error}"
        return _skipped(path, language, 0, "unreadable"), [finding("LP508", path=path, line=1, message=message)]
    if language == "other":
        return SourceFile(path=path, language=language, size_bytes=size), []
    if b"\0" in data:
        return _skipped(path, language, size, "binary"), [finding("LP501", path=path, line=1)]
    findings = []
    try:
        text, encoding = data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        text, encoding = data.decode("latin-1"), "latin-1"
        line = data.count(b"\n", 0, error.start) + 1
        findings.append(finding("LP502", path=path, line=line))
    longest = max(map(len, text.split("\n")), default=0)
    if longest > LONGEST_LINE:
        message = f"A line of {longest:,} characters is data rather than code; the file is copied unchanged"
        return _skipped(path, language, size, "long-line"), [finding("LP505", path=path, line=1, message=message)]
    is_generated = _GENERATED.search(text[:2000]) is not None
    if is_generated:
        findings.append(finding("LP504", path=path, line=1))
    file = SourceFile(
        path=path,
        language=language,
        size_bytes=size,
        text=text,
        encoding="utf-8" if encoding == "utf-8" else "latin-1",
        is_generated=is_generated,
    )
    return file, findings


def _skipped(path: str, language: Language, size: int, skip: Skip) -> SourceFile:
    return SourceFile(path=path, language=language, size_bytes=size, skip=skip)


def walk(root: Path, *, build_file: object = None) -> Inventory:
    """Every file under `root`, in the order of their paths.

    Args:
        root: a folder or a single file
        build_file: says of a path whether it is a build file; None where none is known
    """
    if not root.exists():
        raise RequestError(
            Problem(where=str(root), found="no such file or folder", accepted="a folder or a file of code")
        )
    if root.is_file():
        language = _language(root.name, build_file)
        file, found = read_file(root, root.name, language=language)
        if language == "other":
            raise RequestError(
                Problem(
                    where=str(root), found=root.suffix or root.name, accepted="C, C++, CUDA, Python or a build file"
                )
            )
        return Inventory(root=root.parent, files=(file,), findings=tuple(found))
    files: list[SourceFile] = []
    findings: list[Finding] = []
    for full, path, problem in _entries(root):
        if problem is not None:
            findings.append(problem)
            continue
        file, found = read_file(full, path, language=_language(path, build_file))
        files.append(file)
        findings.extend(found)
    return Inventory(root=root, files=tuple(files), findings=tuple(findings))


def _language(path: str, build_file: object) -> Language:
    return language_of(path, is_build_file=bool(build_file(path)) if callable(build_file) else False)


def _entries(root: Path) -> Iterator[tuple[Path, str, Finding | None]]:
    """Files in order; a link is followed where it leads to a file inside the root, and reported otherwise."""
    resolved = root.resolve()
    stack = [root]
    while stack:
        folder = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            path = folder.relative_to(root).as_posix()
            message = f"The system refused to list it: {error.strerror or error}"
            yield folder, path, finding("LP508", path=path, line=1, message=message)
            continue
        files: list[tuple[Path, str, Finding | None]] = []
        for entry in entries:
            full = Path(entry.path)
            path = full.relative_to(root).as_posix()
            if entry.is_symlink():
                try:
                    target = full.resolve(strict=True)
                except (OSError, RuntimeError):
                    target = None
                if target is None or not target.is_file() or not target.is_relative_to(resolved):
                    files.append((full, path, finding("LP503", path=path, line=1)))
                    continue
                files.append((full, path, None))
            elif entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS:
                    stack.append(full)
            elif entry.is_file(follow_symlinks=False):
                files.append((full, path, None))
        yield from reversed(files)
