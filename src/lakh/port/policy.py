"""Do we keep the project's own cuda words or rename them? Evidence from the code base, a decision and its reasons."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakh.port.cpp.guards import GUARD_MACROS
from lakh.port.cpp.words import _API_SHAPE
from lakh.port.findings import RenamePolicy
from lakh.port.maps import Maps

_BACKENDS = frozenset(
    [
        "hip",
        "rocm",
        "amd",
        "sycl",
        "oneapi",
        "opencl",
        "ocl",
        "vulkan",
        "metal",
        "mps",
        "xpu",
        "npu",
        "hcc",
        "ascend",
        "cann",
        "roctracer",
    ]
)
_BACKEND_FILE = re.compile(r"(?i)(?:^|[_./])(?:hip|rocm|sycl|opencl|vulkan|metal|mps|roctracer|rocprof)")
_CUDA_FOLDER = re.compile(r"(?i)cuda")
_DEFINE = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\(?)(?:[ \t]+\(?[ \t]*([A-Za-z_]\w*)[ \t]*\)?[ \t]*(?:$|//|/\*))?", re.M
)
_TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:[ \t]+class)?)[ \t]+([A-Za-z_]\w*)[ \t]*(?:final[ \t]*)?(?=\s*(?:\{|:(?!:)))"
)
_FUNCTION = re.compile(
    r"^[ \t]*(?:[A-Za-z_][\w:<>,*& \t]*[ \t*&])((?:cuda|cu|CU|nccl|cublas|cudnn|cufft|curand|cusparse|cusolver)\w+)[ \t]*"
    r"\((?:[^;{}()#]|\([^;{}()]*\)){0,800}\)[ \t\n]*(?:const|noexcept|override|\s)*\{",
    re.M,
)
_VARIABLE = re.compile(
    r"\b(?!return\b|case\b|goto\b|else\b|throw\b|new\b|delete\b|sizeof\b|not\b|and\b|or\b)[A-Za-z_][\w:]*(?:<[^<>;\n]*>)?"
    r"[ \t]*(?:[*&]+[ \t]*|[ \t])((?:cuda|cublas|cufft|curand|cusparse|cusolver|cupti|nccl|cudnn)[A-Z]\w*)[ \t]*(?=[;,=\[){:])"
)
"""A variable, field or parameter whose name looks like an API call."""
_NAMESPACE = re.compile(r"\bnamespace[ \t]+([A-Za-z_][\w:]*)[ \t\n]*\{?")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_OWN_WORD = re.compile(r"cuda|Cuda|CUDA|cupti|Cupti|CUPTI")
_LOCAL_HINT = re.compile(
    r"[ \t*&](?:cuda|cublas|cufft|curand|cusparse|cusolver|cupti|nccl|cudnn)[A-Z]\w*[ \t]*[;,=\[){:]"
)
_OWN_PARTS = ("uda", "UDA", "upti", "UPTI")
_API_HINT = re.compile(r"\b(?:cuda|cu|CU|nccl|cublas|cudnn|cufft|curand|cusparse|cusolver)[A-Z_]\w+\s*\(")
_MUSA_MAP = re.compile(r"^[ \t]*#[ \t]*define[ \t]+cu\w+[ \t]+mu\w+", re.M)
_ENGLISH = frozenset(
    [
        "cub",
        "cube",
        "cubes",
        "cubic",
        "cuboid",
        "cubin",
        "cuckoo",
        "cue",
        "cues",
        "cuff",
        "cull",
        "culled",
        "culling",
        "cult",
        "culture",
        "cum",
        "cumulative",
        "cumsum",
        "cumprod",
        "cup",
        "cups",
        "curate",
        "curb",
        "cure",
        "curie",
        "curl",
        "curly",
        "currency",
        "current",
        "currently",
        "curry",
        "cursor",
        "cursors",
        "curtain",
        "curvature",
        "curve",
        "curved",
        "curves",
        "cushion",
        "custom",
        "customer",
        "customers",
        "customize",
        "custody",
        "cut",
        "cutoff",
        "cuts",
        "cutter",
        "cutting",
        "cuda",
        "cutlass",
        "cute",
        "cudart",
        "cublas",
        "cufft",
        "curand",
        "cusparse",
        "cusolver",
        "cudnn",
        "cupti",
        "cuts",
        "cutout",
        "curr",
        "cur",
        "cus",
        "cupy",
    ]
)


LARGEST_OWN = 25
"""A file that defines more names of the map is a copy of a CUDA header; its definitions do not make them the project's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEvidence:
    """What one C or C++ file says about the project."""

    own_names: frozenset[str] = frozenset()
    """CUDA-looking names that the file defines."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Macros that stand for a guard macro."""
    namespaces: frozenset[str] = frozenset()
    own_word_count: int = 0
    """Uses of cuda words that are no CUDA name."""
    api_count: int = 0
    """Uses of names of the map."""
    is_musa_map: bool = False
    """True for a header that defines CUDA names as MUSA names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The policy, who chose it and why."""

    rename: RenamePolicy
    chosen_by: str
    """tool or user."""
    reasons: tuple[str, ...]
    word_renames: Mapping[str, str] = field(default_factory=dict)
    """Words of the project such as cuX that its folders and namespaces are named by."""


def gather(text: str, maps: Maps) -> FileEvidence:
    """Read the evidence of one file."""
    if not _OWN_WORD.search(text) and "define" not in text and not _API_HINT.search(text):
        return FileEvidence()
    names: set[str] = set()
    aliases: dict[str, str] = {}
    for name, paren, value in _DEFINE.findall(text):
        if value in GUARD_MACROS and not paren and name not in GUARD_MACROS:
            aliases[name] = value
        # A macro of a CUDA name is a shim for an old toolkit or another platform, not a name of the project.
        if not maps.is_api(name):
            names.add(name)
    names.update(_TYPE.findall(text))
    if _API_HINT.search(text):
        names.update(_FUNCTION.findall(text))
    if _LOCAL_HINT.search(text):
        names.update(name for name in _VARIABLE.findall(text) if not maps.is_api(name))
    every = Counter(_IDENTIFIER.findall(text)) if _OWN_WORD.search(text) else Counter()
    counted = {name: count for name, count in every.items() if any(part in name for part in _OWN_PARTS)}
    api = sum(count for name, count in counted.items() if maps.is_api(name))
    own = {name for name in names if _API_SHAPE.match(name) or maps.is_api(name)}
    if len(own) > LARGEST_OWN:
        own = set()
    return FileEvidence(
        own_names=frozenset(own),
        aliases=aliases,
        namespaces=frozenset(part for name in _NAMESPACE.findall(text) for part in name.split("::")),
        own_word_count=sum(counted.values()) - api,
        api_count=api,
        is_musa_map=len(_MUSA_MAP.findall(text)) >= 3 if "usa" in text else False,
    )


def decide(
    paths: Iterable[str], evidence: Mapping[str, FileEvidence], maps: Maps, asked: RenamePolicy | None = None
) -> Decision:
    """Choose whether the project's own words are renamed.

    Names of a library that the toolkit itself ships stay, since its users spell them. Otherwise the words are renamed where
    they organise the project (folders, files, namespaces named after cuda, or another backend beside it): there a MUSA
    edition stands beside the CUDA edition and must not clash with it. In all other projects the words are labels, and keeping
    them keeps the difference to upstream small.
    """
    paths = list(paths)
    code = [path for path in paths if path in evidence]
    words = _cu_words(code, evidence)
    reasons: list[str] = []
    shipped, renamed = _library_headers(code, maps)
    named = [path for path in code if _CUDA_FOLDER.search(path) or _has_word(path, words)]
    share = len(named) / len(code) if code else 0.0
    siblings = _siblings(paths)
    own = sum(row.own_word_count for row in evidence.values())
    api = sum(row.api_count for row in evidence.values())
    spaces = sorted(
        {name for row in evidence.values() for name in row.namespaces if re.fullmatch(r"(?i)\w*cuda\w*", name)}
    )
    native = [path for path in code if evidence[path].is_musa_map]
    choice: RenamePolicy
    if native:
        choice = "keep"
        reasons.append(
            f"the project already maps CUDA names to MUSA itself ({native[0]}); its words stay what that expects"
        )
    elif shipped:
        choice = "keep"
        reasons.append(f"the project defines headers that the CUDA toolkit ships and MUSA keeps ({shipped[0]})")
    elif renamed:
        choice = "rename"
        reasons.append(f"the project is a library whose MUSA edition has another name ({renamed[0]})")
    elif siblings and named:
        choice = "rename"
        reasons.append(f"another backend stands beside cuda ({siblings[0]})")
    elif share >= 0.1 and len(named) >= 3:
        choice = "rename"
        reasons.append(f"{len(named)} of {len(code)} code files have a cuda word in their path")
    else:
        choice = "keep"
        reasons.append(
            f"cuda words do not organise the project: {len(named)} of {len(code)} code files have one in their path"
        )
    reasons.append(f"{own:,} uses of the project's own cuda words beside {api:,} uses of CUDA names")
    if spaces:
        reasons.append("namespaces with a cuda word: " + ", ".join(spaces[:6]))
    chosen_by = "tool"
    if asked is not None:
        chosen_by = "user"
        reasons.insert(0, f"asked for; the evidence says {choice}")
        choice = asked
    return Decision(
        rename=choice,
        chosen_by=chosen_by,
        reasons=tuple(reasons),
        word_renames=words if choice == "rename" else {},
    )


def _library_headers(code: list[str], maps: Maps) -> tuple[list[str], list[str]]:
    """The project's files that answer to a header row of the map such as `acme/*`: those whose name MUSA keeps, and those
    whose library has another name on MUSA."""
    kept: list[str] = []
    renamed: list[str] = []
    for name in maps.api_names():
        if "/" not in name or " " in name:
            continue
        row = maps.api(name)
        if row is None or row.kind != "header" or row.library != "header" or row.musa is None:
            continue
        stem = name.removesuffix("*")
        same = row.musa.split("/", 1)[0] == name.split("/", 1)[0]
        found = [path for path in code if stem in path and (path.startswith(stem) or f"/{stem}" in path)]
        if not name.endswith("*"):
            found = [path for path in found if path.endswith(stem)]
        if len(found) >= (5 if name.endswith("*") else 1) and not any(
            "third" in path or "extern" in path for path in found
        ):
            (kept if same else renamed).append(min(found, key=lambda path: (path.count("/"), path)))
    return kept, renamed


def _cu_words(code: list[str], evidence: Mapping[str, FileEvidence]) -> dict[str, str]:
    """Folder names such as cuX that are a namespace too, with CUDA code below: the project's own word for CUDA."""
    below: Counter[str] = Counter()
    for path in code:
        for part in set(path.split("/")[:-1]):
            if re.fullmatch(r"cu[a-z]{2,}", part) and part not in _ENGLISH and not part.startswith("cuda"):
                below[part] += evidence[path].api_count > 0 or path.endswith((".cu", ".cuh"))
    spaces = {name for row in evidence.values() for name in row.namespaces}
    return {word: "mu" + word[2:] for word, count in sorted(below.items()) if count and word in spaces}


def _has_word(path: str, words: Mapping[str, str]) -> bool:
    return any(part in words for part in path.split("/"))


def _siblings(paths: list[str]) -> list[str]:
    """Folders or files of another backend beside one of cuda."""
    folders: dict[str, set[str]] = {}
    for path in paths:
        parts = path.split("/")
        for depth, part in enumerate(parts[:-1]):
            folders.setdefault("/".join(parts[:depth]), set()).add(part)
    found = []
    for parent, names in folders.items():
        lower = {name.lower(): name for name in names}
        if any(name in ("cuda", "nvidia", "cupti") for name in lower):
            found += [f"{parent}/{lower[name]}".lstrip("/") for name in sorted(_BACKENDS) if name in lower]
    swapped = {path.lower() for path in paths if _BACKEND_FILE.search(path.rsplit("/", 1)[-1])}
    for path in paths:
        name = path.rsplit("/", 1)[-1].lower()
        for word, others in (("cuda", ("hip", "rocm", "sycl", "opencl", "metal")), ("cupti", ("roctracer", "rocprof"))):
            if word in name:
                for other in others:
                    beside = path[: len(path) - len(name)].lower() + name.replace(word, other)
                    if beside in swapped:
                        found.append(beside)
    return sorted(set(found))
