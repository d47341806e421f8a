"""Which identifier becomes which? Names of the map, words of CUDA's libraries, and words of the project itself.

Three sources, in this order: the map (28,000 names with evidence); the naming rule of each CUDA library (`cudaX` becomes
`musaX`), for names that no source lists; and, only where the policy renames, the project's own words (`AcmeCudaPool`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from lakh.port.maps import Maps, Status

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")

_API_PREFIX: tuple[tuple[str, str], ...] = (
    ("cublas", "mublas"),
    ("cufft", "mufft"),
    ("curand", "murand"),
    ("cusparse", "musparse"),
    ("cusolver", "musolver"),
    ("cupti", "mupti"),
    ("cuda", "musa"),
    ("nccl", "mccl"),
    ("CUBLAS_", "MUBLAS_"),
    ("CUFFT_", "MUFFT_"),
    ("CURAND_", "MURAND_"),
    ("CUSPARSE_", "MUSPARSE_"),
    ("CUSOLVER_", "MUSOLVER_"),
    ("CUPTI_", "MUPTI_"),
    ("NCCL_", "MCCL_"),
    ("cudnn", "mudnn"),
    ("CUDNN_", "MUDNN_"),
    ("cu", "mu"),
    ("CU_", "MU_"),
    ("CU", "MU"),
    ("CUDA_", "MUSA_"),
    ("npp", "mupp"),
    ("Npp", "MUpp"),
    ("NPP_", "MUPP_"),
)
"""The naming rule of each library, as seen in the map. It forms a spelling; it is no evidence that the name exists."""

_API_SHAPE = re.compile(
    r"(?:cuda|cublas(?:Lt|Xt)?|cufft|curand|cusparse|cusolver(?:Dn|Sp|Rf|Mg)?|cupti|nccl|cudnn)[A-Z]\w*\Z"
    r"|(?:CUBLAS|CUFFT|CURAND|CUSPARSE|CUSOLVER|CUPTI|NCCL|CUDNN)_[A-Z]\w*\Z"
)
"""An undeclared name of this shape is an API call that the map does not know yet."""

LIBRARY_WORDS: tuple[tuple[str, str], ...] = (("cutlass", "mutlass"), ("cute", "mute"))
"""Header-only libraries whose MUSA edition has another name (rows `cutlass` and `cute/*` of the map): the word is renamed
in identifiers, namespaces, macros and include paths, whatever the policy, since a user of the library must follow it."""

_LIBRARY_WORD = re.compile(
    r"CUTLASS|cutlass|Cutlass|(?:(?<![A-Za-z])|(?<=k)|(?<=_))(?:CUTE|Cute|cute)(?![a-z])|(?<=[a-z])Cute(?=[A-Z])"
)

_OWN_WORD = re.compile(
    r"CUDA|Cuda|cuda|CUPTI|CUpti|Cupti|cupti|CUBLAS|Cublas|CuBLAS|cublas|CUFFT|Cufft|CuFFT|cufft|CURAND|Curand|CuRand"
    r"|curand|CUSPARSE|Cusparse|CuSparse|cusparse|CUSOLVER|Cusolver|CuSolver|cusolver|CUDNN|Cudnn|CuDNN|cudnn|NCCL|Nccl"
    r"|nccl|(?<![A-Za-z])NPP(?=[A-Z][a-z]|_|$)|(?<![A-Za-z])Npp(?=[A-Z0-9is]|$)|(?<![A-Za-z])npp(?=_|$)|(?<![A-Za-z])cu(?=[A-Z])"
    r"|(?<![A-Za-z])CU(?=_|device|context|stream|event|module|function)|(?<![A-Za-z0-9])NV(?=_STD_)"
)

_OWN_TARGET: Mapping[str, str] = {
    "CUDA": "MUSA",
    "Cuda": "Musa",
    "cuda": "musa",
    "CUPTI": "MUPTI",
    "CUpti": "MUpti",
    "Cupti": "Mupti",
    "cupti": "mupti",
    "CUBLAS": "MUBLAS",
    "Cublas": "Mublas",
    "CuBLAS": "MuBLAS",
    "cublas": "mublas",
    "CUFFT": "MUFFT",
    "Cufft": "Mufft",
    "CuFFT": "MuFFT",
    "cufft": "mufft",
    "CURAND": "MURAND",
    "Curand": "Murand",
    "CuRand": "MuRand",
    "curand": "murand",
    "CUSPARSE": "MUSPARSE",
    "Cusparse": "Musparse",
    "CuSparse": "MuSparse",
    "cusparse": "musparse",
    "CUSOLVER": "MUSOLVER",
    "Cusolver": "Musolver",
    "CuSolver": "MuSolver",
    "cusolver": "musolver",
    "CUDNN": "MUDNN",
    "Cudnn": "Mudnn",
    "CuDNN": "MuDNN",
    "cudnn": "mudnn",
    "NCCL": "MCCL",
    "Nccl": "Mccl",
    "nccl": "mccl",
    "NPP": "MUPP",
    "Npp": "MUpp",
    "npp": "mupp",
    "cu": "mu",
    "CU": "MU",
    "NV": "MT",
}

_NO_COUNTERPART = re.compile(
    r"(?:nvOF|NvOF|NV_OF|PFNNvOF|cuvid|CUVID|NvEnc|nvEnc|NV_ENC|optix|Optix|OPTIX|cuFile|CUfile|cutensor|CUTENSOR|nvcomp)\w*\Z"
    r"|(?:EGL|GL|VK|AV|CL|MPIX|UCS|UCT|UCP|IBV)_\w*\Z"
)
"""Names of NVIDIA libraries for which no source names a MUSA library, and constants of other interfaces that name CUDA
(`EGL_CUDA_DEVICE_NV`, `AV_PIX_FMT_CUDA`): no word in them is renamed."""

_SKIPPED_LIBRARIES = frozenset({"ptx", "feature", "cmake", "flag", "env", "header"})
_NOT_A_NAME = frozenset({"thrust", "cub", "nvtx", "nvml", "triton", "nvidia", "CUDA"})
"""Rows that say which package stands for which; the word in code stays (muThrust and muAlg keep their namespaces)."""
_KEPT_VALUES = frozenset({"__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "__CUDACC_VER_BUILD__", "warpSize"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """What an identifier becomes."""

    text: str
    status: Status
    kind: str
    """A kind of the map, "rule" (formed by the naming rule of its library) or "own" (the project's word)."""
    reason: str
    musa: str | None
    """The map's MUSA name; None where no source has one."""


@dataclass(slots=True)
class WordTable:
    """Identifier to Word for one map and one policy, filled on demand."""

    maps: Maps
    rename: bool
    own_names: frozenset[str]
    word_renames: Mapping[str, str]
    _known: dict[str, Word | None] = field(default_factory=dict)
    _own: re.Pattern[str] | None = None
    _own_target: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.word_renames:
            for word, target in self.word_renames.items():
                for shape in (str.lower, str.upper, str.capitalize):
                    self._own_target[shape(word)] = shape(target)
            words = "|".join(re.escape(word) for word in sorted(self._own_target, key=len, reverse=True))
            self._own = re.compile(rf"(?<![A-Za-z])(?:{words})(?![a-z])")

    def get(self, name: str) -> Word | None:
        """What this identifier becomes, or None where it stays and means nothing to a port."""
        try:
            return self._known[name]
        except KeyError:
            word = self._known[name] = self._find(name)
            return word

    def _find(self, name: str) -> Word | None:
        row = self.maps.api(name)
        if row is not None and row.library not in _SKIPPED_LIBRARIES and name not in _NOT_A_NAME:
            if name in self.own_names and not self.rename:
                return Word(text=name, status=row.status, kind="own", reason="declared by the project", musa=None)
            musa = row.musa
            if musa is not None and (not _IDENTIFIER.match(musa.replace("::", "_")) or name in _KEPT_VALUES):
                musa = name if name in _KEPT_VALUES else None
            if musa is not None:
                return Word(text=musa, status=row.status, kind=row.kind, reason=row.reason, musa=musa)
            if row.library == "device":
                return Word(text=name, status=row.status, kind=row.kind, reason=row.reason, musa=None)
            text = name if row.status == "unsupported" else by_rule(name)
            return Word(text=text, status=row.status, kind=row.kind, reason=row.reason, musa=None)
        if _API_SHAPE.match(name) and name not in self.own_names and not self.rename:
            reason = "in no map; spelled by the naming rule of its library"
            return Word(text=by_rule(name), status="unknown", kind="rule", reason=reason, musa=None)
        if _NO_COUNTERPART.match(name):
            return None
        text = self.own(name)
        if text != name:
            return Word(text=text, status="same-semantics", kind="own", reason="a word of the project", musa=text)
        return None

    def own(self, name: str) -> str:
        """The name with library words replaced and, where the policy renames, the project's own words too."""
        text = name
        if "utlass" in name or "UTLASS" in name or "ute" in name or "UTE" in name:
            text = _LIBRARY_WORD.sub(_library_word, text)
        if not self.rename:
            return text
        if self._own is not None:
            text = self._own.sub(lambda match: self._own_target[match.group()], text)
        return _OWN_WORD.sub(lambda match: _OWN_TARGET[match.group()], text)


def by_rule(name: str) -> str:
    """The spelling that the naming rule of the library forms; the name itself where no rule applies."""
    lead = name[: len(name) - len(name.lstrip("_"))]
    rest = name[len(lead) :]
    for cuda, musa in _API_PREFIX:
        if rest.startswith(cuda):
            if cuda in ("cu", "CU") and not rest[2:3].isalpha():
                continue
            return lead + musa + rest[len(cuda) :]
    return name


def _library_word(match: re.Match[str]) -> str:
    word = match.group()
    return ("M" if word[0] == "C" else "m") + word[1:]


@lru_cache(maxsize=8)
def _table(maps: Maps, rename: bool, own: frozenset[str], words: tuple[tuple[str, str], ...]) -> WordTable:
    return WordTable(maps=maps, rename=rename, own_names=own, word_renames=dict(words))


def word_table(maps: Maps, *, rename: bool, own_names: frozenset[str], word_renames: Mapping[str, str]) -> WordTable:
    """The table of one context; cached, since every file of a project shares it."""
    return _table(maps, rename, own_names, tuple(sorted(word_renames.items())))
