"""What did we find, and what does it mean? The words that every translator and the report share.

A translator is a pure function `translate(text, *, path, context) -> Translation`; `assess` has the same signature and
returns the text unchanged. The codes and their explanations are rows in `lakh.port.codes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lakh.errors import UnknownNameError
from lakh.port.codes import CODES, Code, Severity
from lakh.port.maps import Maps, Status

Arch = Literal["mp_22", "mp_31"]
Sdk = Literal["4.3", "5.x"]
RenamePolicy = Literal["keep", "rename"]
PythonMode = Literal["torch_musa", "torchada"]

ARCH_NUMBER: Mapping[str, int] = {"mp_22": 220, "mp_31": 310}
"""Value of `__MUSA_ARCH__` (porting facts, section 1)."""
WARP_LANES: Mapping[str, int] = {"mp_22": 128, "mp_31": 32}
"""Hardware warp width (porting facts, section 1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing a person should know about one place."""

    code: str
    """Stable code, such as "LP101"; `explain(code)` says more."""
    severity: Severity
    path: str
    """Relative to the root that was asked about, with forward slashes."""
    line: int
    """1-based line in the text that was given (before translation)."""
    column: int = 1
    """1-based."""
    message: str
    suggestion: str = ""
    name: str | None = None
    """The CUDA name it is about, if it is about one."""
    status: Status | None = None
    """The status of that name in the map."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """One use of CUDA in the code: a name, header, launch, guard, device string, build variable."""

    name: str
    kind: str
    """A kind of the maps (header, runtime, driver, type, enum, macro, library, flag, python, op, env), or launch,
    guard, asm, device-string, build."""
    status: Status
    path: str
    line: int
    reason: str
    """Why it has this status: the note or the evidence of the map, in one sentence."""
    musa: str | None = None
    """What it becomes, None where nothing is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Translation:
    """What a translator made of one text."""

    text: str
    findings: tuple[Finding, ...] = ()
    uses: tuple[Use, ...] = ()
    changed_line_count: int = 0
    """Lines of the input that were replaced, removed or gained a neighbour."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PortContext:
    """What a translator may know besides the text. Picklable: it travels to worker processes."""

    arch: Arch = "mp_31"
    sdk: Sdk = "5.x"
    rename: RenamePolicy = "keep"
    """Whether the project's own cuda words (its files, identifiers, namespaces, variables) are renamed too."""
    python_mode: PythonMode = "torch_musa"
    own_names: frozenset[str] = frozenset()
    """Identifiers that the project declares itself (functions, types, macros, CMake functions and options)."""
    own_files: frozenset[str] = frozenset()
    """Every file of the project, relative to its root, with forward slashes."""
    own_modules: frozenset[str] = frozenset()
    """Top-level Python modules and packages that the project defines."""
    file_renames: Mapping[str, str] = field(default_factory=dict)
    """Old to new path of each project file that the port renames (empty unless the policy renames files)."""
    word_renames: Mapping[str, str] = field(default_factory=dict)
    """Words of the project's own vocabulary and what each becomes, such as {"acmecuda": "acmemusa"}."""
    guard_aliases: Mapping[str, str] = field(default_factory=dict)
    """Project macros that stand for a guard macro, such as {"ACME_ARCH": "__CUDA_ARCH__"}."""
    maps: Maps = field(default_factory=Maps.load)

    @property
    def arch_number(self) -> int:
        """`__MUSA_ARCH__` of the target."""
        return ARCH_NUMBER[self.arch]

    @property
    def warp_lanes(self) -> int:
        """Lanes of a hardware warp of the target."""
        return WARP_LANES[self.arch]


def finding(
    code: str,
    *,
    path: str,
    line: int,
    column: int = 1,
    message: str | None = None,
    suggestion: str | None = None,
    severity: Severity | None = None,
    name: str | None = None,
    status: Status | None = None,
) -> Finding:
    """A finding with the title, suggestion and severity of its code where nothing more exact is said."""
    row = CODES[code]
    return Finding(
        code=code,
        severity=severity or row.severity,
        path=path,
        line=line,
        column=column,
        message=message or row.title,
        suggestion=row.suggestion if suggestion is None else suggestion,
        name=name,
        status=status,
    )


def explain(code: str) -> Code:
    """The row of one code; raises UnknownNameError with the nearest code."""
    row = CODES.get(code.upper())
    if row is None:
        raise UnknownNameError("finding code", code, sorted(CODES))
    return row
