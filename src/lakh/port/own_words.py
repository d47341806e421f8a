"""What does a project's own cuda word become when the policy is to rename it?

Case and everything around the word stay: `CudaStreamPool` becomes `MusaStreamPool`, `use_cuda` becomes `use_musa`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from lakh.port.findings import PortContext

WORDS: Mapping[str, str] = {
    "cuda": "musa",
    "cudart": "musart",
    "nccl": "mccl",
    "nvcc": "mcc",
    "nvlink": "mtlink",
    "nvshmem": "mtshmem",
    "cublas": "mublas",
    "cudnn": "mudnn",
    "cufft": "mufft",
    "cupti": "mupti",
    "curand": "murand",
    "cusolver": "musolver",
    "cusparse": "musparse",
}
"""Words of the CUDA vocabulary and the MUSA word that vendor ports put in their place."""

_WORD = re.compile("|".join(sorted(WORDS, key=len, reverse=True)) + r"|(?<![A-Za-z])nvl(?![A-Za-z])", re.IGNORECASE)
_SEARCH = re.compile(r"cuda|nccl|nvcc|cublas|cudnn|cufft|cupti|curand|cusolver|cusparse|nvl|nvshmem", re.IGNORECASE)


def has_own_word(text: str, word_renames: Mapping[str, str]) -> bool:
    """True where `rename_own_words` may change the text."""
    return bool(_SEARCH.search(text)) or any(word.lower() in text.lower() for word in word_renames)


def rename_own_words(text: str, word_renames: Mapping[str, str]) -> str:
    """Rename every cuda word in an identifier, path or sentence; the project's words in `word_renames` come first."""
    if word_renames:
        pattern, table = _project_pattern(tuple(sorted(word_renames.items())))
        text = pattern.sub(lambda match: _in_case_of(match[0], table[match[0].lower()]), text)
    return _WORD.sub(lambda match: _in_case_of(match[0], WORDS.get(match[0].lower(), "mtl")), text)


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


def renamed_path(text: str, *, folder: str, context: PortContext) -> str | None:
    """The new spelling of a path that ends in a renamed project file, None where no renamed file fits.

    `text` is a path as a build file writes it, relative to its folder or to a variable: "${DIR}/src/pool_cuda.cu".
    """
    tail = re.sub(r"^(?:.*\})?/*(?:\./)*", "", text)
    if not tail or "." not in tail:
        return None
    candidates = [f"{folder}/{tail}" if folder else tail, tail]
    for old, new in context.file_renames.items():
        if old in candidates or (text != tail and old.endswith("/" + tail)):
            count = tail.count("/") + 1
            return text[: len(text) - len(tail)] + "/".join(new.split("/")[-count:])
    return None


def renamed_suffixes(context: PortContext) -> dict[str, str]:
    """Suffixes that the port changes on every project file that has them, such as {".cu": ".mu"}."""
    changes: dict[str, set[str]] = {}
    for old, new in context.file_renames.items():
        old_suffix, new_suffix = "." + old.rpartition(".")[2], "." + new.rpartition(".")[2]
        if old_suffix in (".cu", ".cuh"):
            changes.setdefault(old_suffix, set()).add(new_suffix)
    return {old: new.pop() for old, new in changes.items() if len(new) == 1 and old not in new}


def project_words(context: PortContext) -> dict[str, str]:
    """Words of the project itself that the port renames, none where the policy keeps them.

    Those of the context, and those that renamed folders show, such as {"acmecu": "acmemu"} for acmecu/a.h that became
    acmemu/a.h: the names of build options, targets and modules follow the folders.
    """
    if context.rename != "rename":
        return {}
    words: dict[str, str] = {}
    for old_folder, new_folder in {
        (old.rpartition("/")[0], new.rpartition("/")[0]) for old, new in context.file_renames.items()
    }:
        for old, new in zip(old_folder.split("/"), new_folder.split("/"), strict=False):
            if old != new and rename_own_words(old, {}) != new and old.isidentifier() and new.isidentifier():
                words[old.lower()] = new.lower()
    return words | dict(context.word_renames)
