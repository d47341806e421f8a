"""Is a translated file still the same program, as far as can be seen without a GPU? File by file, before and after.

The manifest of the port says which source each file came from. What a compiler would say is asked of one in
`lakh.port.reverse`; everything here needs only the two texts and the maps.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tree_sitter import Query, QueryCursor

from lakh.errors import Problem, RequestError, nearest_hint
from lakh.port import build_files
from lakh.port.codes import Severity
from lakh.port.conditions import conditions, evaluate
from lakh.port.cpp import asm
from lakh.port.cpp.guards import GUARD_MACROS
from lakh.port.cpp.headers import INCLUDE, ProjectFiles, translate_include
from lakh.port.cpp.translate import _CUDA_HINT, _HELPER, _LANGUAGE, _TOKEN, assess, parse, translate
from lakh.port.cpp.words import WordTable, word_table
from lakh.port.findings import Arch, Finding, PortContext, PythonMode, RenamePolicy, Sdk, finding
from lakh.port.maps import Maps
from lakh.port.output import Manifest, read_manifest
from lakh.port.policy import decide, gather
from lakh.port.project import Progress, make_context
from lakh.port.reverse import compile_pairs, find_front_end
from lakh.port.walk import Inventory, walk

_MUSA_SHAPE = re.compile(
    r"(?:musa|mublas(?:Lt|Xt)?|mufft|murand|musparse|musolver(?:Dn|Sp|Rf)?|mupti|mccl|mudnn)[A-Z]\w*\Z"
    r"|(?:MUSA|MUBLAS|MUFFT|MURAND|MUSPARSE|MUSOLVER|MUPTI|MCCL|MUDNN|MU)_[A-Z]\w*\Z|mu(?:Ctx|Mem|Module|Stream|Event|Device|Launch|Func|Init)\w*\Z"
)
_MUSA_HEADER = re.compile(
    r"(?:^|/)(?:musa|mublas|mufft|murand|musparse|musolver|mupti|mccl|mudnn|mupp|mtrtc)\w*\.h(?:pp)?\Z"
)
_CALLS = Query(
    _LANGUAGE,
    "(call_expression function: (identifier) @name arguments: (argument_list) @arguments)"
    "(call_expression (kernel_call_syntax) @launch)",
)
_ERRORS = Query(_LANGUAGE, "(ERROR) @error (MISSING) @error")
_DEAD = re.compile(r"\bif\s*\(\s*(?:0|false)\s*\)\s*\Z|\bwhile\s*\(\s*0\s*\)\s*\Z")
_UNIT_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx")
_COMPILE_STEP = "reverse-header compile"
_LANE_CODES = ("LP110", "LP111", "LP112", "LP113")

REFERENCE_CAPABILITY = {"mp_22": 800, "mp_31": 900}
"""The NVIDIA architecture whose branches a target should take (map rows `__CUDA_ARCH__ >= 800` and `>= 900`)."""
REFERENCE_CUDA = 11080
"""The CUDA release whose API the MUSA runtime follows (the vendor's table was made for 11.x)."""
SDK_VERSION = {"4.3": 40300, "5.x": 50000}


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """The result of a check."""

    file_count: int
    pair_count: int
    """Files whose original was at hand."""
    findings: tuple[Finding, ...]
    steps: dict[str, str]
    """Name of each step and what came of it ("done" or why it was skipped)."""

    @property
    def is_clean(self) -> bool:
        """True where nothing is an error."""
        return all(row.severity != "error" for row in self.findings)


def check_folder(
    folder: Path,
    *,
    original: Path | None = None,
    use_compiler: bool = True,
    cuda_folder: Path | None = None,
    progress: Progress | None = None,
) -> Checked:
    """Check every file of a port against its original.

    Args:
        folder: what `translate --out` wrote
        original: the source; None takes the one that the manifest names
        use_compiler: ask a CUDA front end too, where there is one
        cuda_folder: where the CUDA headers for clang are; None looks in the usual places
        progress: told how many files are done

    Raises:
        RequestError: no manifest, or the original is not there
    """
    manifest = read_manifest(folder)
    source = original or Path(manifest.source)
    if not source.is_dir():
        raise RequestError(
            Problem(
                where="original", found=str(source), accepted="the folder that was translated", hint="Pass --original."
            )
        )
    before = walk(source, build_file=build_files.is_build_file)
    after = walk(folder, build_file=build_files.is_build_file)
    context = _context(before, manifest)
    new_files = {file.path: file for file in after.files}
    findings: list[Finding] = []
    pairs = 0
    ported = frozenset(new_files)
    by_source = {row["source"]: path for path, row in manifest.files.items()}
    texts: list[tuple[str, str]] = []
    units: list[tuple[str, str]] = []
    for index, file in enumerate(before.files):
        if progress is not None:
            progress(index, len(before.files))
        if file.text is None:
            continue
        new_path = by_source.get(file.path, file.path)
        new = new_files.get(new_path)
        if new is None or (new.text is not None and not new.text.strip() and file.text.strip()):
            findings.append(finding("LP616", path=new_path, line=1))
            continue
        if new.text is None:
            continue
        pairs += 1
        if file.language == "cxx":
            texts.append((file.text, new.text))
            if file.path.endswith(_UNIT_SUFFIXES) and new.text != file.text:
                units.append((file.path, new_path))
        findings.extend(
            check_pair(
                file.text,
                new.text,
                path=file.path,
                new_path=new_path,
                language=file.language,
                context=context,
                ported=ported,
            )
        )
    steps = {
        "syntax tree": "done",
        "names and their status": "done",
        "guards for the target": "done",
        "inline asm kept, replaced or stopped": "done",
        "includes": "done",
        "calls and launches": "done",
        "Python compiles and imports resolve": "done",
    }
    steps[_COMPILE_STEP], found = _compile(
        source, folder, units, texts, context, use_compiler=use_compiler, cuda_folder=cuda_folder
    )
    findings.extend(found)
    return Checked(file_count=len(new_files), pair_count=pairs, findings=tuple(findings), steps=steps)


def _compile(
    source: Path,
    folder: Path,
    units: list[tuple[str, str]],
    texts: list[tuple[str, str]],
    context: PortContext,
    *,
    use_compiler: bool,
    cuda_folder: Path | None,
) -> tuple[str, list[Finding]]:
    if not use_compiler:
        return "skipped: not asked for", []
    front_end = find_front_end(cuda_folder)
    if isinstance(front_end, str):
        return f"skipped: {front_end}", [finding("LP614", path=".", line=1, message=front_end)]
    found, passed, still = compile_pairs(
        source, folder, units, texts, words=_words(context), maps=context.maps, front_end=front_end
    )
    return f"{still} of {passed} files that pass before pass after ({len(units)} tried; {front_end.name})", found


def _context(inventory: Inventory, manifest: Manifest) -> PortContext:

    maps = Maps.load()
    files = inventory.files
    evidence = {
        file.path: gather(file.text, maps) for file in files if file.language == "cxx" and file.text is not None
    }
    decision = decide([file.path for file in files], evidence, maps, cast(RenamePolicy, manifest.rename))
    return make_context(
        inventory,
        evidence,
        decision,
        maps,
        arch=cast(Arch, manifest.arch),
        sdk=cast(Sdk, manifest.sdk),
        python_mode=cast(PythonMode, manifest.python_mode),
    )


def check_pair(
    old: str, new: str, *, path: str, new_path: str, language: str, context: PortContext, ported: frozenset[str]
) -> list[Finding]:
    """Check one file against its original.

    Args:
        old: the original text
        new: the translated text, hand edits included
        path: of the original
        new_path: of the translated file; findings point there
        language: of both
        context: that the file was translated with
        ported: every path of the port
    """
    if language == "python":
        return list(_python(old, new, path=path, new_path=new_path, context=context))
    if language != "cxx" or (not _CUDA_HINT.search(old) and old == new):
        return []
    if not _CUDA_HINT.search(old):
        return list(_syntax(old, new, new_path))
    if translate(old, path=path, context=context).text == new:
        # Word for word what the translator wrote: what remains is what it could not see.
        return [
            *_syntax(old, new, new_path),
            *_includes(old, new, path, new_path, context, ported),
            *_guards(old, new, new_path, context),
        ]
    return [
        *_syntax(old, new, new_path),
        *_names(old, new, path, new_path, context),
        *_includes(old, new, path, new_path, context, ported),
        *_guards(old, new, new_path, context),
        *_asm(old, new, new_path),
        *_calls(old, new, new_path, _words(context)),
        *_lanes(old, new, path, new_path, context),
    ]


def _latin(text: str) -> str:
    return text.encode("utf-8", errors="surrogateescape").decode("latin-1")


def _words(context: PortContext) -> WordTable:
    return word_table(
        context.maps,
        rename=context.rename == "rename",
        own_names=context.own_names,
        word_renames=context.word_renames,
    )


def _syntax(old: str, new: str, path: str) -> Iterator[Finding]:
    if old == new:
        return
    before, after = (
        QueryCursor(_ERRORS).captures(parse(_latin(text)).root_node).get("error", []) for text in (old, new)
    )
    if len(after) > len(before):
        old_lines = Counter(node.text for node in before)
        fresh = next((node for node in after if not old_lines[node.text]), after[-1])
        message = f"{len(after)} error nodes in the syntax tree, {len(before)} in the original"
        yield finding("LP601", path=path, line=fresh.start_point[0] + 1, message=message)


def _identifiers(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each identifier outside comments and strings."""
    line, last = 1, 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0].isalpha() or token[0] == "_":
            if token[-1] in "\"'":
                continue
            line += text.count("\n", last, match.start())
            last = match.start()
            yield line, token


def _names(old: str, new: str, path: str, new_path: str, context: PortContext) -> Iterator[Finding]:
    words = _words(context)
    known = set()
    for _, name in _identifiers(old):
        word = words.get(name)
        known.add(name)
        known.add(word.text if word is not None else name)
    seen = set()
    for line, name in _identifiers(new):
        if name in seen or name in known or name == _HELPER or not _MUSA_SHAPE.match(name):
            continue
        seen.add(name)
        rows = context.maps.cuda_of(name)
        if not rows and name not in context.own_names:
            targets = [row.musa for cuda in _near(name, context.maps) if (row := context.maps.api(cuda)) and row.musa]
            yield finding(
                "LP602",
                path=new_path,
                line=line,
                name=name,
                message=f"{name}: no map has this name. {nearest_hint(name, [*targets, *sorted(known)])}".strip(),
            )
        elif rows and all(row.status == "unknown" for row in rows):
            yield finding(
                "LP603", path=new_path, line=line, name=name, status="unknown", message=f"{name}: {rows[0].reason}"
            )
        elif rows and all(row.status == "unsupported" for row in rows):
            yield finding(
                "LP201", path=new_path, line=line, name=name, status="unsupported", message=f"{name}: {rows[0].reason}"
            )
    kept = {
        row.name for row in assess(old, path=path, context=context).findings if row.code in ("LP201", "LP121", "LP123")
    }
    again = assess(new, path=new_path, context=context)
    for use in again.uses:
        if use.kind in ("launch", "asm", "guard") or use.musa is None or use.musa == use.name or use.name in kept:
            continue
        if use.name in GUARD_MACROS and use.name in new:
            continue
        yield finding(
            "LP611",
            path=new_path,
            line=use.line,
            name=use.name,
            status=use.status,
            message=f"{use.name} should be {use.musa}",
        )


def _near(name: str, maps: Maps) -> list[str]:
    cuda = re.sub(r"^musa", "cuda", re.sub(r"^mu(?=[A-Z])", "cu", re.sub(r"^mu(?=[a-z])", "cu", name)))
    head = cuda[:7]
    return difflib.get_close_matches(cuda, [row for row in maps.api_names() if row.startswith(head)], n=3, cutoff=0.7)


def _includes(
    old: str, new: str, path: str, new_path: str, context: PortContext, ported: frozenset[str]
) -> Iterator[Finding]:
    words = _words(context)
    files = ProjectFiles(context.own_files, context.file_renames)
    port_files = ProjectFiles(ported, {})
    expected: dict[str, tuple[str, bool, bool]] = {}
    for match in INCLUDE.finditer(old):
        include = match.group(2) or match.group(4)
        is_quoted = (match.group(1) or match.group(3)) == '"'
        result = translate_include(include, path=path, context=context, words=words, files=files, is_quoted=is_quoted)
        expected[result.text] = (
            include,
            result.is_own and files.find(include, from_path=path) is not None,
            result.is_cuda,
        )
    actual: dict[str, int] = {}
    for match in INCLUDE.finditer(new):
        include = match.group(2) or match.group(4)
        actual.setdefault(include, new.count("\n", 0, match.start()) + 1)
    targets = None
    for include, line in actual.items():
        was, is_own, _ = expected.get(include, ("", False, False))
        if is_own and port_files.find(include, from_path=new_path) is None:
            yield finding("LP604", path=new_path, line=line, message=f"{include} (was {was}) is no file of the port")
        elif (
            include not in expected
            and _MUSA_HEADER.search(include)
            and port_files.find(include, from_path=new_path) is None
        ):
            if targets is None:
                rows = (
                    context.maps.api(name) for name in context.maps.api_names() if name.endswith((".h", ".hpp", ".cuh"))
                )
                targets = sorted({row.musa for row in rows if row is not None and row.musa})
            if include not in targets:
                hint = nearest_hint(include, targets)
                yield finding(
                    "LP604", path=new_path, line=line, message=f"{include} is no header of the map. {hint}".strip()
                )
    for include, (was, is_own, is_cuda) in expected.items():
        if is_own and include not in actual:
            yield finding("LP604", path=new_path, line=1, message=f"{include} (was {was}) is not included any more")
        if is_cuda and include not in actual and include != was:
            yield finding("LP607", path=new_path, line=1, message=f"{include} (for {was}) is not included")


def _guards(old: str, new: str, new_path: str, context: PortContext) -> Iterator[Finding]:
    """Compare each condition before (on the NVIDIA reference) and after (on the target)."""
    reference = REFERENCE_CAPABILITY[context.arch]
    before_macros: dict[str, int | None] = {
        "__CUDA_ARCH__": reference,
        "__CUDACC__": 1,
        "__NVCC__": 1,
        "CUDA_VERSION": REFERENCE_CUDA,
        "CUDART_VERSION": REFERENCE_CUDA,
        "__MUSA_ARCH__": None,
        "__MUSACC__": None,
        "__MUSA__": None,
        "MUSA_VERSION": None,
        "MUSART_VERSION": None,
    }
    version = SDK_VERSION[context.sdk]
    after_macros: dict[str, int | None] = {
        "__MUSA_ARCH__": context.arch_number,
        "__MUSACC__": 1,
        "MUSA_VERSION": version,
        "MUSART_VERSION": version,
        "__CUDA_ARCH__": None,
        "__CUDACC__": None,
        "CUDA_VERSION": None,
        "CUDART_VERSION": None,
    }
    for alias, macro in context.guard_aliases.items():
        before_macros[alias] = before_macros.get(macro)
        after_macros[_words(context).own(alias)] = after_macros.get(
            {"__CUDA_ARCH__": "__MUSA_ARCH__", "CUDA_VERSION": "MUSA_VERSION"}.get(macro, "MUSART_VERSION")
        )
    first = [row for row in conditions(old) if _concerns(row.text, context)]
    second = [row for row in conditions(new) if _concerns(row.text, context)]
    words = _words(context)
    left = [_shape(row.text, words) for row in first]
    right = [_shape(row.text, words) for row in second]
    for op, i1, i2, j1, j2 in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if op == "equal" or i2 - i1 == j2 - j1:
            for before, after in zip(first[i1:i2], second[j1:j2], strict=True):
                one, two = evaluate(before.text, before_macros), evaluate(after.text, after_macros)
                if one is None or two is None or one == two:
                    continue
                kept = _kept(before.text, after.text)
                message = f"#if {after.text} is {str(two).lower()} on {context.arch}; #if {before.text} was {str(one).lower()}"
                yield finding(
                    "LP605", path=new_path, line=after.line, message=message, severity="warning" if kept else "error"
                )


def _concerns(text: str, context: PortContext) -> bool:
    return re.search(r"(?:CUDA|MUSA|CUDART|MUSART)\w*(?:ARCH|VERSION)|__(?:CUDA|MUSA)\w*__", text) is not None or any(
        alias in text for alias in context.guard_aliases
    )


def _shape(text: str, words: WordTable) -> str:
    """The condition with CUDA names as MUSA names and without numbers, to pair what belongs together."""
    renamed = re.sub(r"[A-Za-z_]\w*", lambda match: w.text if (w := words.get(match.group())) else match.group(), text)
    return re.sub(r"(?<![\w])\d+|[<>=!()\s]+", "", renamed)


def _kept(before: str, after: str) -> bool:
    """True where the comparison that decides stands unchanged, so that the translation reported it as kept."""
    kept = re.findall(r"\w+ ?(?:>=|<=|==|!=|<|>) ?\w+", before)
    return any(part in after and re.match(r"\w*(?:CUDA|CUDNN|NCCL|CU[A-Z]+_VER)", part) for part in kept)


def _asm(old: str, new: str, new_path: str) -> Iterator[Finding]:
    before = [row for row in asm.find_asm(old, _quiet(old)) if not row.is_compiler_barrier]
    if not before:
        return
    after = asm.find_asm(new, _quiet(new))
    left = Counter(_plain(row.template) for row in after)
    for statement in after:
        if _DEAD.search(new[max(0, statement.start - 60) : statement.start]):
            line = new.count("\n", 0, statement.start) + 1
            yield finding(
                "LP606", path=new_path, line=line, message="An asm statement sits behind a condition that is never true"
            )
            left[_plain(statement.template)] -= 1
        elif asm.PTX_OPCODE.search(statement.template) and not _is_stopped(new, statement.start):
            line = new.count("\n", 0, statement.start) + 1
            message = "A PTX statement has lost the guard that stops the MUSA compiler"
            yield finding("LP606", path=new_path, line=line, message=message)
    flat = " ".join(new.split())
    for statement in before:
        key = _plain(statement.template)
        if left[key] > 0:
            left[key] -= 1
            continue
        written = asm.replacement(statement)
        if written is not None and " ".join(written.split()).replace(" ", "") in flat.replace(" ", ""):
            continue
        line = old.count("\n", 0, statement.start) + 1
        shown = " ".join(statement.template.split())[:60]
        yield finding("LP606", path=new_path, line=line, message=f"{shown!r} (line {line} of the original) is gone")


def _is_stopped(text: str, start: int) -> bool:
    opening = text.find("(", start)
    return _HELPER in text[start : opening + 40] or "#error" in text[max(0, start - 300) : start]


def _plain(template: str) -> str:
    return "".join(template.split())


def _quiet(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _TOKEN.finditer(text) if match.group()[0] in "/\"'" or match.group()[-1] in "\"'"]


def _calls(old: str, new: str, new_path: str, words: WordTable) -> Iterator[Finding]:
    """Arguments of each call of a CUDA function, and every kernel launch, before and after."""
    before, after = _call_list(old), _call_list(new)
    expected: dict[str, list[tuple[int, int]]] = {}
    for name, line, count in before:
        word = words.get(name)
        if word is not None and word.kind != "own":
            expected.setdefault(word.text, []).append((line, count))
    actual: dict[str, list[tuple[int, int]]] = {}
    for name, line, count in after:
        actual.setdefault(name, []).append((line, count))
    for name, places in expected.items():
        found = actual.get(name, [])
        if len(found) != len(places):
            continue
        for (_, want), (line, got) in zip(places, found, strict=True):
            if want != got:
                message = f"{name} has {got} argument(s), the original call has {want}"
                yield finding("LP612", path=new_path, line=line, name=name, message=message)
    launches = [Counter(count for name, _, count in rows if name == "<<<") for rows in (before, after)]
    if launches[0] != launches[1]:
        first = next((line for name, line, _ in after if name == "<<<"), 1)
        message = f"{launches[0].total()} launches before, {launches[1].total()} after, or with other arguments"
        yield finding("LP615", path=new_path, line=first, message=message)


def _call_list(text: str) -> list[tuple[str, int, int]]:
    latin = _latin(text)
    rows = []
    for _, captures in QueryCursor(_CALLS).matches(parse(latin).root_node):
        if "launch" in captures:
            node = captures["launch"][0]
            parent = node.parent
            arguments = parent.child_by_field_name("arguments") if parent is not None else None
            inner = arguments.named_child_count if arguments is not None else 0
            rows.append(("<<<", node.start_point[0] + 1, node.named_child_count * 100 + inner))
        else:
            name = captures["name"][0]
            arguments = captures["arguments"][0]
            count = sum(child.type != "comment" for child in arguments.named_children)
            rows.append((latin[name.start_byte : name.end_byte], name.start_point[0] + 1, count))
    return sorted(rows, key=lambda row: row[1])


def _lanes(old: str, new: str, path: str, new_path: str, context: PortContext) -> Iterator[Finding]:
    """Places that assume 32 lanes, or 128, which the original does not have."""
    severity: Severity = "warning" if context.warp_lanes == 32 else "error"
    before = Counter(
        _lane_key(row) for row in assess(old, path=path, context=context).findings if row.code in _LANE_CODES
    )
    for row in assess(new, path=new_path, context=context).findings:
        if row.code not in _LANE_CODES:
            continue
        key = _lane_key(row)
        if before[key] > 0:
            before[key] -= 1
            continue
        yield finding("LP613", path=new_path, line=row.line, message=row.message, severity=severity)


def _lane_key(row: Finding) -> str:
    return f"{row.code} {row.message}"


_TARGET_MODULES = frozenset(
    "torch torch_musa torchada numpy triton torchvision torchaudio pymtml mate triton_musa setuptools wheel packaging pybind11".split()  # noqa: SIM905
)


def _python(old: str, new: str, *, path: str, new_path: str, context: PortContext) -> Iterator[Finding]:
    try:
        before = ast.parse(old)
    except (SyntaxError, ValueError):
        return
    try:
        after = ast.parse(new)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        yield finding("LP608", path=new_path, line=line, message=f"{path}: {error.args[0] if error.args else error}")
        return
    known = {name for name, _ in _imports(before)}
    for name, line in _imports(after):
        if name in known or name in sys.stdlib_module_names or name in _TARGET_MODULES or name in context.own_modules:
            continue
        if name in {_renamed for module in context.own_modules for _renamed in (module, _words(context).own(module))}:
            continue
        yield finding(
            "LP609",
            path=new_path,
            line=line,
            name=name,
            message=f"{name} is neither imported before nor known on the target",
        )


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".", 1)[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".", 1)[0], node.lineno
