"""C, C++ and CUDA text in, MUSA text and findings out: one pure function over one file.

Tokens give names, comments and strings; the syntax tree (tree-sitter-cuda) gives launches, functions and broken places. Work
is done on Latin-1 text of the UTF-8 bytes, so that positions of the tree and of the text are the same and every byte that
is not replaced comes out as it went in.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Parser, Query, QueryCursor, Tree

from lakh.port.codes import CODES
from lakh.port.cpp import asm, hazards
from lakh.port.cpp.guards import GUARD_MACROS, MUSA_MACRO, find_guards
from lakh.port.cpp.headers import INCLUDE, ProjectFiles, translate_include
from lakh.port.cpp.words import Word, WordTable, word_table
from lakh.port.findings import Finding, PortContext, Translation, Use, finding
from lakh.port.maps import Status

_RAW_STRING = r"(?:u8|[uUL])?R\"([^()\\\s]{0,16})\([\s\S]*?\)\1\"|"
_TOKEN_PATTERN = (
    r"//(?:[^\n\\]|\\[\s\S])*"
    r"|/\*[\s\S]*?(?:\*/|\Z)|" + _RAW_STRING + r"(?:u8|[uUL])?\"(?:\\[\s\S]|[^\"\\\n])*\""
    r"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'"
    r"|[A-Za-z_]\w*"
    r"|\.?\d(?:[eEpP][+-]|[\w.]|'\w)*"
)
_TOKEN = re.compile(_TOKEN_PATTERN)
_TOKEN_WITHOUT_RAW = re.compile(_TOKEN_PATTERN.replace(_RAW_STRING, ""))
"""For text in which no raw string ends: looking for the end of each would take time with the square of their number."""
_RAW_END = re.compile(r"\)[^()\\\s]{0,16}\"")
_CUDA_HINT = re.compile(
    r"(?i)cu|nccl|nv|npp|cut[el]|\basm\b|__asm|warp|__shfl|__ballot|__global__|__device__|threadIdx|thrust|this_grid|tex\dD"
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\[\s\S])*", re.M)
_CONDITION = re.compile(
    r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b((?:[^\n\\]|\\[\s\S])*)", re.M
)
_ALIAS_DEFINE = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(cu\w*|CU\w*|nccl\w*|NCCL\w*|__?\w*cuda\w*|__?nv\w*)\b(?:\([^)\n]*\))?[ \t]+\(?(?:\w*(?:mu|MU|mt|mccl|MCCL|hip|HIP|rccl|ROC)\w*)",
    re.M,
)
_NATIVE_MACRO = re.compile(r"\b\w*(?:MUSA|MTGPU|MTHREADS)\w*\b|\b\w*[Mm]usa\w*\b")
_OTHER_MACRO = re.compile(
    r"\b\w*(?:HIP|ROCM|RCCL|AMD|SYCL|ONEAPI|DPCPP|OPENCL|HCC|CANN|ASCEND|METAL|VULKAN|MACA|COREX|BANG)\w*\b"
)
_CUDA_MACRO = re.compile(r"\b\w*(?:CUDA|NVCC|NVIDIA|cuda)\w*\b")
_MUSA_NAME = re.compile(
    r"\b(?:musa[A-Z]\w*|mu(?:blas|fft|rand|sparse|solver|dnn|pti)\w+|mccl[A-Z]\w*|MUSA_\w+|__MUSA\w*|musa_runtime\w*)\b"
)
_LOW_GUARD = re.compile(
    r"defined[ \t]*(\(?)[ \t]*__CUDA_ARCH__[ \t]*(\)?)(?:[ \t]|\\\r?\n)*&&(?:[ \t]|\\\r?\n)*(\(?)[ \t]*__CUDA_ARCH__[ \t]*>=[ \t]*([1-7]\d\d)[ \t]*(\)?)(?!\w)"
)
_PYTORCH_DEVICE = re.compile(
    r"\b((?:at|c10|torch)\s*::\s*(?:kCUDA)|(?:c10\s*::\s*|at\s*::\s*|torch\s*::\s*)?(?:DeviceType|DispatchKey|Backend)\s*::\s*CUDA)\b"
)
_PYTORCH_LIBRARY = re.compile(r"\bTORCH_LIBRARY_IMPL\s*\([^,()\n]+,\s*(CUDA)\s*,")
_IS_CUDA = re.compile(r"(?:\.|->)\s*(is_cuda)\s*\(\s*\)")

_HELPER = "LAKH_PTX_NOT_PORTED"
_HELPER_TEXT = (
    "#if defined(__MUSA_ARCH__)\n"
    '#define {helper} _Pragma("GCC error \\"LP101: this inline PTX has no MUSA replacement; see lakh port explain LP101\\"")\n'
    "#else\n"
    "#define {helper}\n"
    "#endif\n"
)
"""Stands before the template of every PTX statement that stays: on MUSA it stops the compiler, elsewhere it is nothing."""

_LANGUAGE = Language(tree_sitter_cuda.language())
_LAUNCHES = Query(_LANGUAGE, "(call_expression (kernel_call_syntax)) @launch")
_ERRORS = Query(_LANGUAGE, "(ERROR) @error (MISSING) @missing")
_NATIVE_SUFFIXES = (".mu", ".muh")


@dataclass(slots=True)
class _Work:
    """What the steps of one translation share."""

    text: str
    path: str
    context: PortContext
    words: WordTable
    files: ProjectFiles
    starts: list[int] = field(default_factory=list)
    names: list[tuple[int, str]] = field(default_factory=list)
    """Start and text of each identifier that may matter, outside comments and strings."""
    quiet: list[tuple[int, int]] = field(default_factory=list)
    """Comments, strings and character literals."""
    strings: list[tuple[int, int]] = field(default_factory=list)
    edits: list[tuple[int, int, int, str]] = field(default_factory=list)
    """Priority (small first), start, end, replacement."""
    held: list[tuple[int, int]] = field(default_factory=list)
    """Regions of native MUSA code or of another backend: API names stay."""
    findings: list[Finding] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    seen: dict[tuple[str, str], int] = field(default_factory=dict)

    def line(self, position: int) -> int:
        return bisect_right(self.starts, position)

    def report(self, code: str, position: int, message: str | None = None, **more: object) -> None:
        line = self.line(position)
        column = position - self.starts[line - 1] + 1
        self.findings.append(finding(code, path=self.path, line=line, column=column, message=message, **more))  # type: ignore[arg-type]

    def use(self, name: str, kind: str, status: Status, position: int, reason: str, musa: str | None) -> None:
        self.uses.append(
            Use(name=name, kind=kind, status=status, path=self.path, line=self.line(position), reason=reason, musa=musa)
        )

    def edit(self, start: int, end: int, new: str, priority: int = 5) -> None:
        self.edits.append((priority, start, end, new))


@lru_cache(maxsize=4)
def _files(own_files: frozenset[str], renames: tuple[tuple[str, str], ...]) -> ProjectFiles:
    return ProjectFiles(own_files, dict(renames))


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(_LANGUAGE)


def parse(latin: str) -> Tree:
    """The syntax tree of a text whose characters are bytes."""
    return _parser().parse(latin.encode("latin-1"))


def translate(text: str, *, path: str, context: PortContext) -> Translation:
    """Translate one file; the same text and context give the same result, and a second run changes nothing."""
    return _run(text, path=path, context=context, change=True)


def assess(text: str, *, path: str, context: PortContext) -> Translation:
    """The findings and uses of `translate`, with the text left alone."""
    return _run(text, path=path, context=context, change=False)


def _run(text: str, *, path: str, context: PortContext, change: bool) -> Translation:
    if not _CUDA_HINT.search(text):
        return Translation(text=text)
    latin = text.encode("utf-8", errors="surrogateescape").decode("latin-1")
    words = word_table(
        context.maps,
        rename=context.rename == "rename",
        own_names=context.own_names,
        word_renames=context.word_renames,
    )
    files = _files(context.own_files, tuple(sorted(context.file_renames.items())))
    work = _Work(text=latin, path=path, context=context, words=words, files=files)
    work.starts = [0, *(match.end() for match in re.finditer("\n", latin))]
    if _is_native(latin, path):
        _native_uses(work)
        return Translation(text=text, findings=tuple(work.findings), uses=tuple(work.uses))
    _tokens(work)
    work.held = list(_held_regions(latin))
    _includes(work)
    _guards(work)
    _names(work)
    _pytorch(work)
    _asm(work)
    _strings(work)
    _hazards(work)
    if work.uses or work.edits or hazards.DEVICE_WORD.search(latin):
        _tree(work)
    new, changed = _apply(work) if change and work.edits else (latin, 0)
    work.findings.sort(key=lambda row: (row.line, row.column, row.code))
    return Translation(
        text=new.encode("latin-1").decode("utf-8", errors="surrogateescape") if new != latin else text,
        findings=tuple(work.findings),
        uses=tuple(work.uses),
        changed_line_count=changed,
    )


def _is_native(latin: str, path: str) -> bool:
    """True for a file that is MUSA's already, or that maps the names itself with macros (and must not map them twice)."""
    aliases = len(_ALIAS_DEFINE.findall(latin))
    if aliases >= 3:
        return True
    return path.endswith(_NATIVE_SUFFIXES) and _MUSA_NAME.search(latin) is not None


def _native_uses(work: _Work) -> None:
    """List what a file that maps CUDA names itself still names, so that nothing goes uncounted."""
    if work.path.endswith(_NATIVE_SUFFIXES):
        return
    _tokens(work)
    work.report("LP154", 0)
    for start, name in work.names:
        word = work.words.get(name)
        if word is not None and word.kind != "own" and word.text != name:
            work.use(name, word.kind, word.status, start, "in a file that maps CUDA names itself; left", name)


def _tokens(work: _Work) -> None:
    """Split into names, strings and the rest; keep the names that the word table, a guard or a hazard knows."""
    get, names, quiet, strings = work.words.get, work.names, work.quiet, work.strings
    known = work.words._known
    pattern = _TOKEN if 'R"' in work.text and _RAW_END.search(work.text) else _TOKEN_WITHOUT_RAW
    for match in pattern.finditer(work.text):
        token = match.group()
        first = token[0]
        if first == "_" or first.isalpha():
            last = token[-1]
            if last == '"' and '"' in token[:-1]:
                quiet.append(match.span())
                strings.append(match.span())
            elif last == "'" and "'" in token[:-1]:
                quiet.append(match.span())
            elif (known[token] if token in known else get(token)) is not None or token in _INTERESTING:
                names.append((match.start(), token))
        elif first == '"':
            quiet.append(match.span())
            strings.append(match.span())
        elif first in "/'":
            quiet.append(match.span())


_INTERESTING = frozenset({*GUARD_MACROS, "asm", "__asm__", "__asm"})


def _held_regions(latin: str) -> Iterator[tuple[int, int]]:
    """Regions under a condition that is true for MUSA (native already) or for another backend only."""
    stack: list[tuple[int | None, bool]] = []  # start of a held region, whether #else is held
    for match in _CONDITION.finditer(latin):
        word, rest = match.groups()
        if word.startswith("if"):
            held, other = _verdict(word, rest)
            stack.append((match.end() if held else None, other))
        elif stack:
            start, other = stack.pop()
            if start is not None:
                yield start, match.start()
            if word == "endif":
                continue
            if word == "else":
                stack.append((match.end() if other else None, False))
            else:
                held, _ = _verdict(word, rest)
                stack.append((match.end() if held else None, other))


def _verdict(word: str, rest: str) -> tuple[bool, bool]:
    """Whether the branch belongs to MUSA or another backend alone, and whether its #else does."""
    rest = rest.split("//", 1)[0]
    if "MUSA" not in rest and "usa" not in rest and not _OTHER_MACRO.search(rest):
        return False, False
    named = [*_NATIVE_MACRO.finditer(rest), *_OTHER_MACRO.finditer(rest)]
    if not named:
        return False, False
    if word in ("ifndef", "elifndef"):
        return False, True
    negative = [bool(re.search(r"!\s*(?:defined\s*\(?\s*)?\Z", rest[: match.start()])) for match in named]
    if _CUDA_MACRO.search(rest):
        return False, False
    if word in ("ifdef", "elifdef"):
        return True, False
    if all(negative):
        return False, "||" not in rest and "&&" not in rest
    if "||" in rest:
        names = re.findall(r"\b[A-Za-z_]\w*\b", rest)
        foreign = all(
            name == "defined" or _NATIVE_MACRO.fullmatch(name) or _OTHER_MACRO.fullmatch(name) for name in names
        )
        return foreign and not any(negative), False
    return not all(negative), False


def _is_held(work: _Work, position: int) -> bool:
    return any(start <= position < end for start, end in work.held)


def _in_quiet(work: _Work, position: int) -> bool:
    index = bisect_right(work.quiet, (position, len(work.text) + 1)) - 1
    return index >= 0 and work.quiet[index][0] <= position < work.quiet[index][1]


def _includes(work: _Work) -> None:
    for match in INCLUDE.finditer(work.text):
        group = 2 if match.group(2) else 4
        if _in_quiet(work, match.start()):
            continue
        include = match.group(group)
        if _is_held(work, match.start()):
            row = work.context.maps.api(include)
            if row is not None and row.kind == "header":
                reason = "in a branch for MUSA or another backend; left"
                work.use(include, "header", row.status, match.start(group), reason, include)
                work.edit(match.start(group), match.end(group), include, priority=1)
            continue
        result = translate_include(
            include,
            path=work.path,
            context=work.context,
            words=work.words,
            files=work.files,
            is_quoted=match.group(group - 1) == '"',
        )
        start = match.start(group)
        # An include that stays is an edit too: it shields its path from the word table.
        work.edit(start, match.end(group), result.text, priority=1)
        if result.is_cuda:
            work.use(include, "header", result.status, start, result.reason, result.text)
            code = hazards.hazard_of(re.sub(r"\W.*", "", include.rsplit("/", 1)[-1])) or _header_code(
                include, result.text, result.status
            )
            if code is not None:
                work.report(code, start, f"{include}: {result.reason}", name=include, status=result.status)
        elif result.is_own and result.status == "unknown":
            work.report("LP153", start, f"{include}: {result.reason}, renamed with it", name=include)


def _header_code(include: str, text: str, status: Status) -> str | None:
    if "nvtx" in include or "nvToolsExt" in include:
        return "LP212"
    if status == "unsupported":
        return "LP201"
    if status == "differs":
        return "LP204"
    return "LP202" if status == "unknown" and text == include else None


def _guards(work: _Work) -> None:
    aliases = {**{name: name for name in GUARD_MACROS}, **work.context.guard_aliases}
    places = [(start, name) for start, name in work.names if name in aliases and not _is_held(work, start)]
    places += (
        [
            (match.start(), match.group())
            for match in _alias_pattern(tuple(sorted(work.context.guard_aliases))).finditer(work.text)
            if not _in_quiet(work, match.start()) and not _is_held(work, match.start())
        ]
        if work.context.guard_aliases
        else []
    )
    if not places:
        return
    for match in _LOW_GUARD.finditer(work.text):
        one, two, three, number, four = match.groups()
        if bool(one) == bool(two) and bool(three) == bool(four) and not _in_quiet(work, match.start()):
            work.edit(match.start(), match.end(), f"defined{one or ' '}__MUSA_ARCH__{two}", priority=0)
            message = f"__CUDA_ARCH__ >= {number} holds on every MUSA target; only defined(__MUSA_ARCH__) is left"
            work.report("LP120", match.start(), message, name="__CUDA_ARCH__")
            work.use("__CUDA_ARCH__", "guard", "differs", match.start(), message, "__MUSA_ARCH__")
    for guard in find_guards(work.text, sorted(set(places)), aliases):
        is_arch = guard.kind == "arch"
        if any(p == 0 and start <= guard.start < end for p, start, end, _ in work.edits):
            continue
        if guard.replacement is not None:
            work.edit(guard.start, guard.end, guard.replacement, priority=1)
            message = f"{_flat(guard.text)} became {_flat(guard.replacement)}"
            work.report("LP120" if is_arch else "LP122", guard.start, message, name=guard.macro)
        else:
            work.edit(guard.start, guard.end, guard_text(guard.text), priority=1)
            what = (
                "an architecture" if is_arch else "a CUDA release" if guard.kind == "version" else "a library release"
            )
            message = (
                f"{_flat(guard.text)} kept: no MUSA number stands for {what} here; on MUSA the macro is not defined"
            )
            work.report("LP121" if is_arch else "LP123", guard.start, message, name=guard.macro)
        work.use(guard.macro, "guard", "differs", guard.start, message, guard.replacement)


def guard_text(text: str) -> str:
    """A kept guard, word for word (it shields the macro from the word table)."""
    return text


@lru_cache(maxsize=4)
def _alias_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b")


def _flat(text: str) -> str:
    return " ".join(text.replace("\\\n", " ").split())


_STATUS_CODE: dict[str, str | None] = {
    "same-semantics": None,
    "differs": "LP204",
    "unsupported": "LP201",
    "unknown": "LP203",
}
_EACH_PLACE = frozenset({"LP201", "LP202", "LP205", "LP210", "LP211"})


_SHORT_WORD = re.compile(r"(?:[a-z]\w*_)?cu[A-Z](?!\w*(?i:cuda|cupti|cublas|nccl))\w*\Z")
"""A variable such as `cuStream`: no cuda word, so it is renamed only where it is called like a function."""


_CUDA_STARTS = ("cuda", "cu", "nv", "CU", "CUDA", "nccl", "__nv", "NV")


def _is_call(text: str, end: int) -> bool:
    return re.compile(r"\s*\(").match(text, end) is not None


def _names(work: _Work) -> None:
    get = work.words.get
    for start, name in work.names:
        word = get(name)
        if word is None:
            continue
        if word.kind != "own" and work.held and _is_held(work, start):
            if word.text != name:
                work.use(name, word.kind, word.status, start, "in a branch for MUSA or another backend; left", name)
            continue
        if word.kind == "own":
            if word.text != name and not (_SHORT_WORD.match(name) and not _is_call(work.text, start + len(name))):
                work.edit(start, start + len(name), word.text)
            continue
        if word.text != name:
            work.edit(start, start + len(name), word.text)
        if word.musa == name and word.kind in ("runtime", "macro") and word.status != "unsupported":
            hazard = hazards.hazard_of(name)
            if hazard is not None:
                _once(work, hazard, start, name, word)
            continue
        if word.musa is None and word.text == name and word.status == "unknown" and not name.startswith(_CUDA_STARTS):
            continue  # a device or math function that many sources compile unchanged
        work.use(name, word.kind, word.status, start, word.reason, word.musa)
        hazard = hazards.hazard_of(name)
        if hazard is not None:
            _once(work, hazard, start, name, word)
        if name in GUARD_MACROS or name in MUSA_MACRO:
            continue
        code = _STATUS_CODE[word.status]
        if word.kind == "rule":
            code = "LP205"
        elif code == "LP203" and word.musa is None:
            code = "LP202"
        if code is not None and not (
            hazard in ("LP210", "LP211", "LP212", "LP214", "LP215") and code in ("LP203", "LP204")
        ):
            _once(work, code, start, name, word)


def _once(work: _Work, code: str, start: int, name: str, word: Word) -> None:
    """Report every place of what must be written by hand, and the first place of a name for the rest."""
    if code not in _EACH_PLACE:
        if (code, name) in work.seen:
            return
        work.seen[code, name] = 1
    target = f", written as {word.text}" if word.text != name else ", left as it is"
    work.report(code, start, f"{name}{target}: {word.reason}", name=name, status=word.status)


def _pytorch(work: _Work) -> None:
    """The device type of PyTorch is PrivateUse1 (map rows at::kCUDA and at::DeviceType::CUDA)."""
    text = work.text
    if "kCUDA" in text or "::CUDA" in text or ":: CUDA" in text:
        for match in _PYTORCH_DEVICE.finditer(text):
            if not _in_quiet(work, match.start()) and not _is_held(work, match.start()):
                old = match.group(1)
                new = re.sub(r"kCUDA\Z", "kPrivateUse1", old)
                new = re.sub(r"CUDA\Z", "PrivateUse1", new)
                new = re.sub(r"^torch(?=\s*::\s*kPrivateUse1)", "at", new)
                work.edit(match.start(1), match.end(1), new, priority=2)
                reason = "MUSA is a PrivateUse1 backend"
                work.use(_flat(old), "type", "differs", match.start(), reason, new)
    if "TORCH_LIBRARY_IMPL" in text:
        for match in _PYTORCH_LIBRARY.finditer(text):
            if not _in_quiet(work, match.start()) and not _is_held(work, match.start()):
                work.edit(match.start(1), match.end(1), "PrivateUse1", priority=2)
                work.use("CUDA", "macro", "differs", match.start(1), "MUSA is a PrivateUse1 backend", "PrivateUse1")
    if "is_cuda" in text and ("torch" in text or "at::" in text or "Tensor" in text):
        for match in _IS_CUDA.finditer(text):
            if not _in_quiet(work, match.start()) and not _is_held(work, match.start()):
                work.edit(match.start(1), match.end(1), "is_privateuseone", priority=2)
                reason = "MUSA is a PrivateUse1 backend"
                work.use("Tensor::is_cuda()", "type", "differs", match.start(1), reason, "is_privateuseone()")


def _asm(work: _Work) -> None:
    text = work.text
    if "asm" not in text:
        return
    statements = asm.find_asm(text, work.quiet)
    if not statements:
        return
    is_device = work.path.endswith((".cu", ".cuh", ".mu", ".muh")) or hazards.DEVICE_WORD.search(text) is not None
    directives = [match.span() for match in _DIRECTIVE.finditer(text)]
    is_guarded = False
    for statement in statements:
        if statement.is_compiler_barrier or _is_held(work, statement.start):
            continue
        is_ptx = asm.PTX_OPCODE.search(statement.template) is not None
        if not is_ptx and (not is_device or statement.is_plain):
            continue  # assembly of the host
        index = bisect_right(directives, (statement.start, len(text) + 1)) - 1
        directive = directives[index] if index >= 0 and directives[index][1] > statement.start else None
        shown = _flat(statement.template)[:60] or "built by macros"
        new = asm.replacement(statement)
        if new is not None and (directive is None or "\n" not in new):
            new = _translate_words(new, work.words)
            old_lines = text.count("\n", statement.start, statement.end)
            filler = (" \\" if directive is not None else "") + "\n"
            work.edit(
                statement.start, statement.end, new + (filler * old_lines if directive is not None else ""), priority=0
            )
            work.report("LP102", statement.start, f"{shown} became {_flat(new)}")
            work.use(shown, "asm", "differs", statement.start, "recorded idiom", _flat(new))
            continue
        work.use(shown, "asm", "unsupported", statement.start, "mcc does not assemble PTX", None)
        code = "LP103" if hazards.NAMED_BARRIER.search(statement.template) else "LP101"
        work.report(code, statement.start, f"{shown}: no recorded MUSA replacement; a guard stops the compiler")
        is_guarded = True
        opening = text.index("(", statement.start) + 1
        if not re.match(rf"[\s\\]*{_HELPER}\b", text[opening : opening + 200]):
            work.edit(opening, opening, f"{_HELPER} ", priority=0)
    if is_guarded and f"#define {_HELPER}" not in text:
        top = _first_code(work)
        work.edit(top, top, _HELPER_TEXT.format(helper=_HELPER), priority=0)


def _first_code(work: _Work) -> int:
    """Start of the first line that holds something other than a comment."""
    position = 0
    while True:
        match = re.compile(r"\s*").match(work.text, position)
        position = match.end() if match else position
        index = bisect_right(work.quiet, (position, len(work.text) + 1)) - 1
        if index < 0 or work.quiet[index][0] != position:
            return work.starts[work.line(position) - 1]
        position = work.quiet[index][1]


def _translate_words(text: str, words: WordTable) -> str:
    def one(match: re.Match[str]) -> str:
        word = words.get(match.group())
        return word.text if word is not None else match.group()

    return re.sub(r"[A-Za-z_]\w*", one, text)


_STRING_HINT = re.compile(r"(?i)cuda|cupti|cublas|cutlass|nccl|cudnn|cufft|curand|cusparse|cusolver|cudev|npp")
_NAME_STRING = re.compile(r'"([A-Za-z_]\w{4,})"\Z')


def _strings(work: _Work) -> None:
    """A string that is exactly one API name is a symbol or a name table; a device string or library name is code too."""
    for start, end in work.strings:
        token = work.text[start:end]
        if end - start > 400:
            if hazards.JIT_STRING.search(token):
                work.report("LP151", start, "A string holds CUDA source for a run-time compiler; left as it is")
            continue
        match = _NAME_STRING.match(token)
        if match is not None:
            name = match[1]
            row = work.context.maps.api(name)
            if (
                row is not None
                and row.musa
                and row.kind in ("runtime", "driver", "enum", "type", "library")
                and len(name) > 6
            ):
                word = work.words.get(name)
                if word is not None and word.text != name and word.kind != "own" and not _is_held(work, start):
                    work.edit(start + 1, end - 1, word.text)
                    work.report(
                        "LP151", start, f'"{name}" became "{word.text}": a string that is one API name', name=name
                    )
            continue
        library = hazards.LIBRARY_STRING.fullmatch(token)
        if library is not None and not _is_held(work, start):
            old = library[1]
            new = "mccl" if old == "nccl" else "musa" + old[4:] if old.startswith("cuda") else "mu" + old[2:]
            work.edit(start, end, token.replace("lib" + old, "lib" + new))
            work.report("LP151", start, f"{token}: a library opened by name", name=old)
        elif hazards.JIT_STRING.search(token):
            work.report("LP151", start, "A string holds CUDA source; left as it is")
        elif work.words.rename and _STRING_HINT.search(token) and not _is_held(work, start):
            new = _translate_words(token, work.words)
            if new != token:
                work.edit(start, end, new)


def _hazards(work: _Work) -> None:
    text = work.text
    if "##" in text:
        for match in hazards.PASTE.finditer(text):
            if not _in_quiet(work, match.start()):
                work.report("LP150", match.start(), f"{_flat(match.group())}: the names that come out cannot be seen")
                prefix = re.match(r"\w+", match.group())
                if prefix and prefix.group() in hazards.PASTED_PREFIX and not _is_held(work, match.start()):
                    work.edit(
                        match.start(), match.start() + prefix.end(), hazards.PASTED_PREFIX[prefix.group()], priority=2
                    )
    for match in hazards.found(hazards.CAPABILITY, text):
        if not _in_quiet(work, match.start()):
            work.report("LP124", match.start(), _flat(match.group()))
    for match in hazards.GRID_SYNC.finditer(text) if "grid" in text and "sync" in text else ():
        if not _in_quiet(work, match.start()):
            work.report("LP130", match.start(), _flat(match.group()))
    if not hazards.DEVICE_WORD.search(text) and "memcpy_async" not in text:
        return
    for match in hazards.UNMAPPED.finditer(text) if any(word in text for word in hazards.UNMAPPED_HINTS) else ():
        name = match.group()
        hazard = hazards.hazard_of(name)
        if hazard is not None and (hazard, name) not in work.seen and not _in_quiet(work, match.start()):
            work.seen[hazard, name] = 1
            work.report(hazard, match.start(), f"{name}: {CODES[hazard].title}", name=name)
    lanes = work.context.warp_lanes
    for match in hazards.found(hazards.WARP_WIDTH, text):
        if not _in_quiet(work, match.start()):
            work.report(
                "LP110",
                match.start(),
                f"{_flat(match.group())[:60]}: 32 lanes; hardware warps of {work.context.arch} have {lanes}",
                severity="note" if lanes == 32 else "warning",
            )
    for match in hazards.MASK_CALL.finditer(text) if "sync" in text and "0x" in text else ():
        if _in_quiet(work, match.start()):
            continue
        opening = text.index("(", match.start())
        close = asm.closing(text, opening)
        inner = text[opening + 1 : close] if close else ""
        if hazards.FULL_MASK.search(inner.split(",", 1)[0]):
            work.report(
                "LP111",
                match.start(),
                f"{_flat(match.group())}0xffffffff...: 32 lanes",
                severity="note" if lanes == 32 else "warning",
            )
    if lanes != 32:
        for match in hazards.SHUFFLE.finditer(text) if "__shfl" in text else ():
            close = asm.closing(text, match.end() - 1)
            if close and not _in_quiet(work, match.start()) and len(asm._split(text[match.end() : close], ",")) == 3:
                message = f"{match.group()[:-1].strip()} without a width works on {lanes} lanes"
                work.report("LP113", match.start(), message, suggestion="Add the width of 32.")
        for match in hazards.BALLOT.finditer(text):
            if not _in_quiet(work, match.start()):
                work.report(
                    "LP113", match.start(), f"{match.group()[:-1].strip()} sees {lanes} lanes; its result holds 32 bits"
                )
    for match in re.finditer(r"\bwarpSize\b", text) if "warpSize" in text else ():
        if not _in_quiet(work, match.start()):
            work.report(
                "LP112",
                match.start(),
                f"warpSize is {lanes} on {work.context.arch}",
                severity="note" if lanes == 32 else "error",
            )
    if "int128" in text and re.search(r"[^/*]/[^/*]", text):
        for match in hazards.WIDE_DIVISION.finditer(text):
            if not _in_quiet(work, match.start()):
                work.report(
                    "LP140", match.start(), f"{match.group()}: mcc crashes where it is divided", severity="warning"
                )


def _tree(work: _Work) -> None:
    tree = parse(work.text)
    root = tree.root_node
    if "<<<" in work.text:
        for node in QueryCursor(_LAUNCHES).captures(root).get("launch", []):
            work.use("<<<>>>", "launch", "same-semantics", node.start_byte, "the launch syntax is the same", "<<<>>>")
            parent = node.parent
            while parent is not None and parent.type != "function_definition":
                parent = parent.parent
            if parent is not None:
                body = parent.child_by_field_name("body")
                head = work.text[parent.start_byte : body.start_byte if body is not None else parent.end_byte]
                if "__global__" in head or ("__device__" in head and "__host__" not in head):
                    work.report("LP131", node.start_byte, "A kernel is launched from device code")
    if root.has_error:
        found = QueryCursor(_ERRORS).captures(root)
        nodes = sorted({node.start_byte for group in found.values() for node in group})
        if nodes:
            work.report("LP506", nodes[0], f"The syntax tree has {len(nodes)} error nodes, the first one here")


def _apply(work: _Work) -> tuple[str, int]:
    """Apply the edits; where two overlap, the one with the smaller priority wins."""
    text = work.text
    taken: list[tuple[int, int, str]] = []
    inserts: list[tuple[int, int, str]] = []
    covered: list[tuple[int, int]] = []
    for priority in range(6):
        level = sorted(edit[1:] for edit in set(work.edits) if edit[0] == priority)
        fresh: list[tuple[int, int, str]] = []
        for start, end, new in level:
            if start == end:
                inserts.append((start, end, new))
                continue
            index = bisect_right(covered, (start, len(text) + 1)) - 1
            if index >= 0 and covered[index][1] > start:
                continue
            if index + 1 < len(covered) and covered[index + 1][0] < end:
                continue
            if fresh and fresh[-1][1] > start:
                continue
            fresh.append((start, end, new))
        taken += fresh
        if fresh:
            covered = sorted([*covered, *((start, end) for start, end, _ in fresh)])
    pieces: list[str] = []
    position = 0
    lines: set[int] = set()
    for start, end, new in sorted([*taken, *inserts], key=lambda edit: (edit[0], edit[1])):
        if start < position:
            continue
        old = text[start:end]
        pieces.append(text[position:start])
        pieces.append(new)
        position = end
        if new != old:
            lines.update(range(work.line(start), work.line(max(start, end - 1)) + 1))
    pieces.append(text[position:])
    return "".join(pieces), len(lines)
