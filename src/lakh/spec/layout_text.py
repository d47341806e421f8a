"""How do people write a layout? "tp8 pp16 vpp4 dp128 mb1 zero1 fp8": the inverse of `Layout.describe`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakh.errors import Problem, RequestError, list_names, nearest_hint
from lakh.spec.layout import PRECISIONS, RECOMPUTES, SCHEDULES, SHARDINGS, Layout

SIZES: Mapping[str, str] = {
    "tp": "tp",
    "cp": "cp",
    "pp": "pp",
    "vpp": "vpp",
    "dp": "dp",
    "ep": "ep",
    "etp": "etp",
    "mb": "micro_batch",
    "micro_batch": "micro_batch",
    "shard_group": "shard_group",
}
"""Words that take a whole number, and the field of `Layout` they set."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "sharding": SHARDINGS,
    "recompute": RECOMPUTES,
    "schedule": SCHEDULES,
    "precision": PRECISIONS,
}
"""Fields that take a name, written "field=name"; the name alone is enough where only one field has it."""

_SIZE = re.compile(r"([a-z_]+)[=:]?(-?\d+)")
_NAMED = re.compile(r"([a-z_]+)[=:]([a-z0-9-]+)")
_ACCEPTED = 'words such as "tp8 pp16 vpp4 dp128 mb1 zero1 recompute=full fp8", each at most once'


def _bare_names() -> dict[str, str]:
    """Names that say their field by themselves: "zero1", "fp8", "dualpipe"; not "none", which two fields have."""
    fields: dict[str, list[str]] = {}
    for field, names in NAMES.items():
        for name in names:
            fields.setdefault(name, []).append(field)
    return {name: owners[0] for name, owners in fields.items() if len(owners) == 1}


def layout_values(text: str, *, where: str = "layout") -> dict[str, Any]:
    """The fields of `Layout` that a text sets; the others keep their defaults.

    Args:
        text: words in any order and case, separated by spaces or commas
        where: what a problem names as its place

    Raises:
        RequestError: a word that is not understood or comes twice; every such word is named
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    bare = _bare_names()
    known = [*SIZES, *NAMES, *bare]
    for word in text.replace(",", " ").split():
        setting = _setting(word.casefold(), bare)
        if setting is None:
            stem = re.sub(r"[=:]?-?\d+$|[=:].*$", "", word.casefold())
            problems.append(Problem(where=where, found=word, accepted=_ACCEPTED, hint=nearest_hint(stem, known)))
            continue
        field, value = setting
        if field in NAMES and value not in NAMES[field]:
            accepted = list_names(NAMES[field])
            problems.append(
                Problem(
                    where=f"{where}.{field}", found=value, accepted=accepted, hint=nearest_hint(value, NAMES[field])
                )
            )
        elif field in values:
            problems.append(Problem(where=f"{where}.{field}", found=word, accepted="each word at most once"))
        values[field] = value
        if word.casefold().startswith("hsdp") and word.casefold() != "hsdp":
            values["shard_group"] = int(word[4:].lstrip("=:"))
    if problems:
        raise RequestError(problems)
    return values


def _setting(word: str, bare: Mapping[str, str]) -> tuple[str, Any] | None:
    if word in bare:
        return bare[word], word
    if re.fullmatch(r"hsdp[=:]?\d+", word):
        return "sharding", "hsdp"
    size = _SIZE.fullmatch(word)
    if size and size[1] in SIZES:
        return SIZES[size[1]], int(size[2])
    named = _NAMED.fullmatch(word)
    if named and named[1] in NAMES:
        return named[1], named[2]
    if named and named[1] == "sequence_parallel" and named[2] in ("true", "false"):
        return "sequence_parallel", named[2] == "true"
    return None


def parse_layout(text: str, *, where: str = "layout") -> Layout:
    """A layout from text such as "tp8 pp16 vpp4 dp128 mb1".

    Raises:
        RequestError: a word that is not understood
        SpecError: a value that no layout may have
    """
    return Layout(**layout_values(text, where=where))
