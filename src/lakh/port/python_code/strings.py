"""Is this string a device, a backend, an environment variable, a library or a path, or is it just text?

The answer depends on the string and on where it stands. Only whole values count: "cuda" and f"cuda:{rank}" are devices,
"CUDA is not available" is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakh.port.maps import MappedName, Maps
from lakh.port.nvcc_flags import LIBRARIES

DEVICE_TYPES = frozenset(
    ["cpu", "cuda", "gpu", "hip", "hpu", "mps", "mtia", "musa", "meta", "npu", "rocm", "tpu", "vulkan", "xla", "xpu"]
)
"""Words that stand beside "cuda" in a table by device type."""
TEXT_KEYWORDS = frozenset(
    [
        "help",
        "description",
        "reason",
        "msg",
        "message",
        "label",
        "title",
        "doc",
        "summary",
        "epilog",
        "name",
        "id",
        "ids",
        "group",
        "tag",
        "comment",
        "desc",
    ]
)
"""Keyword arguments that hold text for people."""
TEXT_FUNCTIONS = frozenset(
    [
        "print",
        "debug",
        "info",
        "warning",
        "warn",
        "error",
        "exception",
        "critical",
        "log",
        "getLogger",
        "get_logger",
        "skip",
        "fail",
        "xfail",
        "write",
        "echo",
        "secho",
    ]
)
"""Functions whose strings are text for people."""

_DEVICE = re.compile(r"cuda(?P<index>:(?:\d+|\{[^{}]*\}|%[ds])?)?")
_TARGET = re.compile(r"cuda(?P<options>(?:\s+-[\w-]+(?:=\S*)?)+)")
_BACKENDS = re.compile(r"[a-z]+:[a-z]+(?:,[a-z]+:[a-z]+)*")
_LIBRARY = re.compile(r"(?P<head>(?:.*/)?lib)(?P<name>\w+)(?P<tail>\.so(?:\.[\d.*]+)?)")
_ARCH = re.compile(r"\b(?:sm|compute)_\d+[af]?\b")


def device(text: str, arch: str) -> str | None:
    """A device, compile target or per-device backend list, translated; None where the string is none of them."""
    match = _DEVICE.fullmatch(text)
    if match:
        return "musa" + (match["index"] or "")
    match = _TARGET.fullmatch(text)
    if match:
        return "musa" + _ARCH.sub(arch, match["options"])
    return None


def backend(text: str) -> str | None:
    """A torch.distributed backend, translated; None where the string is none."""
    if text == "nccl":
        return "mccl"
    if _BACKENDS.fullmatch(text) and "cuda:nccl" in text.split(","):
        return ",".join("musa:mccl" if part == "cuda:nccl" else part for part in text.split(","))
    return None


def environment_variable(text: str, maps: Maps) -> MappedName | None:
    """The row of an environment variable."""
    row = maps.python(text)
    if row is not None and row.kind == "env":
        return row
    row = maps.api(text)
    return row if row is not None and row.library == "env" else None


def library(text: str) -> str | None:
    """A shared library's file name or path, translated; None where it is none that is known."""
    match = _LIBRARY.fullmatch(text)
    if match is None or match["name"] not in LIBRARIES:
        return None
    return f"{match['head']}{LIBRARIES[match['name']]}{match['tail']}"


DISPATCH_KEYS: Mapping[str, str] = {
    "CUDA": "PrivateUse1",
    "AutogradCUDA": "AutogradPrivateUse1",
    "AutocastCUDA": "AutocastPrivateUse1",
}
"""Dispatch keys as strings (python-map.csv)."""
DISPATCH_FUNCTIONS = frozenset(["impl", "register_kernel", "fallback", "Library"])
