"""Which header stands where `cuda_runtime.h` stood, and do the project's own includes still resolve?"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakh.port.cpp.words import WordTable
from lakh.port.findings import PortContext
from lakh.port.maps import Status

INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*(?:include|include_next|import)[ \t]*([<\"])([^>\"\n]+)[>\"]|__has_include[ \t]*\([ \t]*([<\"])([^>\"\n]+)[>\"]",
    re.M,
)
_CUDA_LOOK = re.compile(
    r"(?i)(?:^|/)(?:cuda|cublas|cudnn|cufft|curand|cusparse|cusolver|cupti|nccl|nvtx|nvToolsExt|nvrtc|nvml|npp|cufile|cutensor|"
    r"cuComplex|nvjpeg|nvshmem|nvcomp|optix|nvcuvid|nvEncodeAPI|cub/|thrust/|cutlass/|cute/|cooperative_groups|mma\.h|device_)"
)
_BY_RULE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"cuda_(\w+\.h(?:pp)?)\Z"), r"musa_\1"),
    (re.compile(r"cu(blas|fft|rand|sparse|solver|pti)(\w*\.h(?:pp)?)\Z"), r"mu\1\2"),
    (re.compile(r"npp(\w*\.h)\Z"), r"mupp\1"),
    (re.compile(r"nccl(\w*\.h)\Z"), r"mccl\1"),
)
_UNCHANGED = ("thrust/", "cub/")
"""muThrust and muAlg keep these folders (rows `thrust/system/cuda/*` and `cub/cub.cuh`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Include:
    """What becomes of one include."""

    text: str
    is_cuda: bool
    """True for a header of CUDA or its libraries."""
    is_own: bool
    status: Status
    reason: str


@dataclass(slots=True)
class ProjectFiles:
    """The project's files, found by the end of their path, as an include names them."""

    own_files: frozenset[str]
    renames: Mapping[str, str]
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    _roots: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for path in self.own_files:
            self._by_name.setdefault(path.rsplit("/", 1)[-1], []).append(path)
        self._roots = frozenset(part for path in self.own_files for part in path.split("/")[:-1])

    def find(self, include: str, *, from_path: str) -> str | None:
        """The project file that an include names: beside the file, else the one whose path ends like the include."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(from_path), include))
        if beside in self.own_files:
            return beside
        wanted = posixpath.normpath(include)
        while wanted.startswith("../"):
            wanted = wanted[3:]
        found = [
            path
            for path in self._by_name.get(wanted.rsplit("/", 1)[-1], ())
            if path == wanted or path.endswith("/" + wanted)
        ]
        return min(found, key=lambda path: (len(path), path)) if found else None

    def shares_root(self, include: str) -> bool:
        """True where the include starts with a folder that the project has, so that it belongs to the same family."""
        head, slash, _ = include.partition("/")
        return bool(slash) and head in self._roots


def translate_include(
    include: str, *, path: str, context: PortContext, words: WordTable, files: ProjectFiles, is_quoted: bool = True
) -> Include:
    """What an include becomes: the project's own follow their file, CUDA's follow the map, all others stay.

    `<cuda.h>` is CUDA's although the project has a file of that name; `"cuda.h"` beside such a file is the project's.
    """
    row = context.maps.api(include)
    is_toolkit = not is_quoted and row is not None and row.kind == "header" and "/" not in include
    own = None if is_toolkit else files.find(include, from_path=path)
    if own is not None:
        new = files.renames.get(own, own)
        text = include if new == own else _renamed(include, own, new, path, files)
        return Include(text=text, is_cuda=False, is_own=True, status="same-semantics", reason="a file of the project")
    if row is not None and row.kind == "header":
        return Include(text=row.musa or include, is_cuda=True, is_own=False, status=row.status, reason=row.reason)
    head = include.split("/", 1)[0]
    for library in (f"{head}/*", "thrust/system/cuda/*"):
        row = context.maps.api(library)
        if row is not None and row.musa and include.startswith(library[:-1]):
            text = words.own(row.musa[:-1] + include[len(library) - 1 :])
            return Include(text=text, is_cuda=True, is_own=False, status=row.status, reason=row.reason)
    if include.startswith(_UNCHANGED):
        return Include(text=include, is_cuda=True, is_own=False, status="same-semantics", reason="same path on MUSA")
    if files.shares_root(include):
        text = rename_path(include, words) if context.rename == "rename" else include
        if text != include:
            return Include(text=text, is_cuda=False, is_own=True, status="unknown", reason="same family as the project")
    if include.startswith("cuda/"):
        reason = "libcu++; in no map, by naming rule"
        return Include(text=f"musa/{include[5:]}", is_cuda=True, is_own=False, status="unknown", reason=reason)
    if _CUDA_LOOK.search(include):
        for pattern, replacement in _BY_RULE:
            text, count = pattern.subn(replacement, include)
            if count and "/" not in include:
                return Include(
                    text=text, is_cuda=True, is_own=False, status="unknown", reason="in no map; by naming rule"
                )
        return Include(text=include, is_cuda=True, is_own=False, status="unknown", reason="in no map")
    return Include(text=include, is_cuda=False, is_own=False, status="same-semantics", reason="no CUDA header")


def rename_path(path: str, words: WordTable) -> str:
    """A path after the port: library words and, where the policy renames, the project's words, `.cu` and `.cuh`."""
    parts = [words.own(part) for part in path.split("/")]
    if words.rename:
        stem, dot, suffix = parts[-1].rpartition(".")
        if dot and suffix in ("cu", "cuh"):
            parts[-1] = f"{stem}.{'mu' if suffix == 'cu' else 'muh'}"
    new = "/".join(parts)
    return new.replace("thrust/system/cuda/", "thrust/system/musa/")


def _renamed(include: str, old: str, new: str, path: str, files: ProjectFiles) -> str:
    """The include text that names `new` from the new place of the including file, in the style of the old text."""
    here = posixpath.dirname(path)
    if posixpath.normpath(posixpath.join(here, include)) == old:
        new_here = posixpath.dirname(files.renames.get(path, path))
        relative = posixpath.relpath(new, new_here or ".")
        return "./" + relative if include.startswith("./") else relative
    count = len([part for part in include.split("/") if part not in ("..", ".")])
    lead = include[: len(include) - len("/".join(include.split("/")[-count:]))]
    return lead + "/".join(new.split("/")[-count:])
