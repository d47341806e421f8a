"""What does a project's own cuda word become when the policy is to rename it?

Case and everything around the word stay: `CudaStreamPool` becomes `MusaStreamPool`, `use_cuda` becomes `use_musa`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

WORDS: Mapping[str, str] = {
    "cuda": "musa",
    "cudart": "musart",
    "nccl": "mccl",
    "nvcc": "mcc",
    "cublas": "mublas",
    "cudnn": "mudnn",
    "cufft": "mufft",
    "cupti": "mupti",
    "cutlass": "mutlass",
    "curand": "murand",
    "cusolver": "musolver",
    "cusparse": "musparse",
}
"""Words of the CUDA vocabulary and the MUSA word that vendor ports put in their place."""

_WORD = re.compile("|".join(sorted(WORDS, key=len, reverse=True)), re.IGNORECASE)
_SEARCH = re.compile(r"cuda|nccl|nvcc|cublas|cudnn|cufft|cupti|curand|cusolver|cusparse|cutlass", re.IGNORECASE)


def has_own_word(text: str, word_renames: Mapping[str, str]) -> bool:
    """True where `rename_own_words` may change the text."""
    return bool(_SEARCH.search(text)) or any(word.lower() in text.lower() for word in word_renames)


def rename_own_words(text: str, word_renames: Mapping[str, str]) -> str:
    """Rename every cuda word in an identifier, path or sentence; the project's words in `word_renames` come first."""
    if word_renames:
        pattern, table = _project_pattern(tuple(sorted(word_renames.items())))
        text = pattern.sub(lambda match: _in_case_of(match[0], table[match[0].lower()]), text)
    return _WORD.sub(lambda match: _in_case_of(match[0], WORDS[match[0].lower()]), text)


@lru_cache(maxsize=16)
def _project_pattern(items: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    table = {old.lower(): new for old, new in items}
    words = "|".join(re.escape(word) for word in sorted(table, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z])(?:{words})(?![a-z])", re.IGNORECASE), table


def _in_case_of(found: str, new: str) -> str:
    if found.isupper():
        return new.upper()
    if found.islower():
        return new.lower()
    if len(found) == len(new):  # cuBLAS -> muBLAS, Cuda -> Musa
        return "".join(letter.upper() if old.isupper() else letter for old, letter in zip(found, new, strict=True))
    return new[:1].upper() + new[1:] if found[:1].isupper() else new
