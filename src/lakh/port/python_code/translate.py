"""Translate or assess one Python file: libcst finds the places, edits of the original text change them.

Only top-level statements that contain a word of interest are parsed by libcst, so that a large file with one use of
CUDA costs little; Python's own parser says where statements begin and end and what each import binds.
"""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import cast

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from lakh.port.edits import Edit, Lines, apply_edits, newline_of
from lakh.port.findings import Finding, PortContext, Translation, Use, finding
from lakh.port.maps import MappedName, Maps
from lakh.port.nvcc_flags import LIBRARIES, nvcc_only_flags, toolkit_path, translate_flags
from lakh.port.own_words import has_own_word, project_words, rename_own_words, renamed_path, renamed_suffixes
from lakh.port.python_code import strings
from lakh.port.python_code.names import ImportedName, Names, names_of, parse
from lakh.port.python_code.torch_names import (
    ATTRIBUTES,
    CUDA_ONLY_PACKAGES,
    EXTENSION_MODULE,
    EXTENSION_NAMES,
    MODULES,
    MTML_FUNCTIONS,
    MTML_MODULE,
    MUSA_EXTENSION_MODULE,
    NVML_MODULE,
    RENAMED_MODULES,
    longest_row,
    missing_ops,
)

_TRIGGER = re.compile(
    r"cuda|nccl|nvcc|nvidia|cudnn|cublas|nvtx|nvml|triton|\.cuh?\b|TORCH_|" + "|".join(sorted(CUDA_ONLY_PACKAGES)),
    re.IGNORECASE,
)
_NATIVE = re.compile(r"(?<![A-Za-z])(?:musa|mccl|MUSA|MCCL)(?![a-z])|torch_musa|torchada|mthreads|pymtml")
_TORCH_PATH = re.compile(r"torch\.cuda(?:\.\w+)*")
_URL = re.compile(r"://|www\.|@|\.(?:com|org|io)\b")
_NVIDIA_TOOLS = frozenset(
    [
        "nvcc",
        "nvidia-smi",
        "nvprof",
        "nsys",
        "ncu",
        "cuobjdump",
        "nvdisasm",
        "ptxas",
        "fatbinary",
        "nvlink",
        "cuda-gdb",
        "compute-sanitizer",
    ]
)
_PUNCTUATION = frozenset(
    [
        "asynchronous",
        "colon",
        "comma",
        "dot",
        "equal",
        "footer",
        "header",
        "indent",
        "lbrace",
        "lbracket",
        "leading_lines",
        "lines_after_decorators",
        "lpar",
        "operator",
        "rbrace",
        "rbracket",
        "relative",
        "rpar",
        "semicolon",
        "star",
        "trailing_whitespace",
    ]
)
_TORCH_OPERATORS = frozenset({"aten", "prims", "quantized", "c10d", "_c10d_functional", "inductor", "profiler"})
"""Namespaces of torch.ops that PyTorch itself registers."""
_ENTRY_FILES = frozenset({"setup.py", "conftest.py", "__main__.py"})
_PARSE_ERRORS = (cst.ParserSyntaxError, cst.CSTValidationError, ValueError, RecursionError, TypeError)


def translate(text: str, *, path: str, context: PortContext) -> Translation:
    """Translate one Python file.

    The result is the input, byte for byte, where nothing has to change, where the file does not parse (finding LP317)
    and where what came out would not parse (finding LP509). A second run changes nothing.
    """
    return _run(text, path, context, apply=True)


def assess(text: str, *, path: str, context: PortContext) -> Translation:
    """What `translate` would find, with the text unchanged."""
    return _run(text, path, context, apply=False)


def _run(text: str, path: str, context: PortContext, *, apply: bool) -> Translation:
    words = project_words(context)
    if not _is_of_interest(text, context, words):
        return Translation(text=text)
    tree = parse(text)
    work = _Work(text, path, context, names_of(tree) if tree is not None else Names())
    try:
        chunks = _parsed_chunks(text, tree, context, words)
    except _PARSE_ERRORS as error:
        detail = getattr(error, "message", None) or str(error)
        place = min(max(getattr(error, "raw_line", 1), 1), len(work.lines.starts))
        unparsed = finding("LP317", path=path, line=place, message=f"Python file does not parse: {detail}")
        return Translation(text=text, findings=(unparsed,))
    for chunk, module in chunks:
        _Visitor(work, chunk, module).walk(module)
    if tree is not None:
        work.finish(tree)
    if work.edits and speaks_of_musa(text):
        work.edits.clear()
        work.findings.append(finding("LP318", path=path, line=1))
    findings = tuple(sorted(work.findings, key=lambda item: (item.line, item.column, item.code)))
    uses = tuple(work.uses)
    if not apply:
        return Translation(text=text, findings=findings, uses=uses)
    new, changed = apply_edits(text, work.edits)
    if new != text and not _parses_like(tree, new):
        broken = finding("LP509", path=path, line=1, message="The translation would not parse; the file was left alone")
        return Translation(text=text, findings=(*findings, broken), uses=uses)
    return Translation(text=new, findings=findings, uses=uses, changed_line_count=changed)


def speaks_of_musa(text: str) -> bool:
    """True for a file with MUSA code of its own or with branches for both: what is native must not be touched."""
    if not _NATIVE.search(text):
        return False
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    except (tokenize.TokenError, SyntaxError, UnicodeError):
        return True
    return any(token.type != tokenize.COMMENT and _NATIVE.search(token.string) for token in tokens)


def _is_of_interest(text: str, context: PortContext, words: Mapping[str, str]) -> bool:
    if _TRIGGER.search(text) or _ops_pattern(context.maps).search(text):
        return True
    return context.rename == "rename" and has_own_word(text, words)


def _parses_like(tree: ast.Module | None, new: str) -> bool:
    if tree is not None:
        return parse(new) is not None
    try:
        cst.parse_module(new)
    except _PARSE_ERRORS:
        return False
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class _Chunk:
    """A piece of the file that libcst can parse by itself."""

    first_line: int
    text: str
    prefix: str = ""
    """What has to stand before the text to make it a module, such as a class line before a method."""
    suffix: str = ""

    def parse(self) -> cst.Module:
        """The tree of prefix, text and suffix."""
        return cst.parse_module(self.prefix + self.text + self.suffix)


def _parsed_chunks(
    text: str, tree: ast.Module | None, context: PortContext, words: Mapping[str, str]
) -> list[tuple[_Chunk, cst.Module]]:
    """The pieces that are worth parsing; the whole file where it cannot be cut. Raises what libcst raises."""
    whole = _Chunk(first_line=1, text=text)
    if tree is None:
        return [(whole, whole.parse())]
    chunks = [chunk for chunk in _chunks(text, tree) if _is_of_interest(chunk.text, context, words)]
    try:
        return [(chunk, chunk.parse()) for chunk in chunks]
    except _PARSE_ERRORS:
        return [(whole, whole.parse())]


def _chunks(text: str, tree: ast.Module) -> Iterator[_Chunk]:
    """Top-level statements; of a class its head and each member."""
    starts = Lines(text).starts

    def lines(first: int, last: int) -> str:
        return text[starts[first - 1] : starts[last] if last < len(starts) else len(text)]

    for first, last, nodes in _line_spans(tree.body):
        node = nodes[0]
        members = _line_spans(node.body) if len(nodes) == 1 and isinstance(node, ast.ClassDef) else []
        if not members or members[0][0] <= node.lineno:
            yield _Chunk(first_line=first, text=lines(first, last))
            continue
        body = lines(members[0][0], members[0][0])
        indent = body[: len(body) - len(body.lstrip())]
        yield _Chunk(first_line=first, text=lines(first, members[0][0] - 1), suffix=f"{indent}pass\n")
        for member_first, member_last, _ in members:
            yield _Chunk(first_line=member_first, text=lines(member_first, member_last), prefix="class _:\n")


def _line_spans(body: list[ast.stmt]) -> list[tuple[int, int, list[ast.stmt]]]:
    """First and last line of each statement; statements that share a line are one."""
    spans: list[tuple[int, int, list[ast.stmt]]] = []
    for node in body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        last = node.end_lineno or node.lineno
        if spans and first <= spans[-1][1]:
            start, end, nodes = spans[-1]
            spans[-1] = (start, max(last, end), [*nodes, node])
        else:
            spans.append((first, last, [node]))
    return spans


@lru_cache(maxsize=256)
def _child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """Fields of a node that hold names, strings or what contains them; spaces and punctuation are passed over."""
    return tuple(
        field.name
        for field in dataclasses.fields(kind)
        if field.name not in _PUNCTUATION and not field.name.startswith("whitespace")
    )


@lru_cache(maxsize=4)
def _missing(maps: Maps) -> frozenset[str]:
    return missing_ops(maps)


@lru_cache(maxsize=4)
def _ops_pattern(maps: Maps) -> re.Pattern[str]:
    names = {name.removeprefix("special_").removeprefix("linalg_").lstrip("_") for name in _missing(maps)}
    return re.compile(r"torch\.[\w.]*(?:" + "|".join(sorted(names, key=len, reverse=True)) + r")\b")


class _Work:
    """What is known of the file and what was found so far."""

    def __init__(self, text: str, path: str, context: PortContext, names: Names) -> None:
        self.text, self.path, self.context, self.names = text, path, context, names
        self.lines = Lines(text)
        self.edits: list[Edit] = []
        self.findings: list[Finding] = []
        self.uses: list[Use] = []
        self.needed_imports: dict[str, str] = {}
        self.native = context.python_mode == "torch_musa"
        self.renames = context.rename == "rename"
        self.words = project_words(context)
        self.has_extension = EXTENSION_MODULE in text or "extra_compile_args" in text
        foreign = frozenset(name for name, source in names.imported.items() if not self.is_own_import(source))
        self.external = foreign - names.exported
        self.re_exported = foreign & names.exported
        self.own = (context.own_names | names.declared) - self.external
        self.folder = str(PurePosixPath(path).parent).removeprefix(".")
        self.suffixes = renamed_suffixes(context)
        self.module_renames = self._module_renames() if self.renames else {}
        self.extension_names = self._extension_names()

    def is_own_import(self, source: ImportedName) -> bool:
        return source.level > 0 or source.target.split(".")[0] in self.context.own_modules

    def new_module(self, dotted: str, level: int = 0) -> str | None:
        """The new dotted path of one of the project's modules whose file is renamed."""
        if not self.context.file_renames:
            return None
        parts = dotted.split(".") if dotted else []
        if level:
            folder = PurePosixPath(self.path).parts[:-1]
            base = folder[: len(folder) - level + 1]
            wanted = ["/".join((*base, *parts))]
        else:
            wanted = ["/".join(parts)]
        for old, new in self.context.file_renames.items():
            if not old.endswith(".py"):
                continue
            stem = old.removesuffix("/__init__.py").removesuffix(".py")
            if any(stem == want or (not level and stem.endswith("/" + want)) for want in wanted):
                new_parts = new.removesuffix("/__init__.py").removesuffix(".py").split("/")
                return ".".join(new_parts[-len(parts) :]) if parts else None
        return None

    def _module_renames(self) -> dict[str, str]:
        """Local names of the project's renamed modules, such as cuda_utils after `from pkg import cuda_utils`."""
        renames = {}
        for local, source in self.names.imported.items():
            last = source.target.split(".")[-1]
            if local == last and (new := self.new_module(source.target, source.level)) is not None:
                renames[local] = new.split(".")[-1]
        return renames

    def _extension_names(self) -> dict[str, str]:
        """Local names from torch.utils.cpp_extension that move to torch_musa, such as CUDAExtension."""
        found = {
            local: source.target.removeprefix(EXTENSION_MODULE + ".")
            for local, source in self.names.imported.items()
            if source.target.startswith(EXTENSION_MODULE + ".") and source.level == 0
        }
        if not {"CUDAExtension", "CUDA_HOME"} & set(found.values()):
            return {}
        return {
            local: EXTENSION_NAMES[name] for local, name in found.items() if local == name and name in EXTENSION_NAMES
        }

    def edit(self, start: int, end: int, new: str) -> None:
        self.edits.append(Edit(start, end, new))

    def find(self, code: str, offset: int, **details: object) -> None:
        self.findings.append(
            finding(code, path=self.path, line=self.lines.line(offset), column=self.lines.column(offset), **details)  # type: ignore[arg-type]
        )

    def use(
        self, name: str, kind: str, offset: int, musa: str | None, row: MappedName | None, reason: str = ""
    ) -> None:
        self.uses.append(
            Use(
                name=name,
                kind=kind,
                status=row.status if row is not None else ("same-semantics" if musa else "unknown"),
                path=self.path,
                line=self.lines.line(offset),
                reason=row.reason if row is not None else reason or "no map has it",
                musa=musa,
            )
        )

    def new_own_name(self, name: str) -> str | None:
        """What one of the project's own identifiers becomes, None where it stays."""
        if not self.renames or name in self.external:
            return None
        new = rename_own_words(name, self.words)
        if (
            name not in self.own and new not in self.context.own_names
        ):  # the project may re-export one and define the other
            return None
        taken = new in self.names.declared or new in self.names.imported  # code for both stays code for both
        return new if new != name and not taken else None

    def finish(self, tree: ast.Module) -> None:
        """Add the imports that the translation needs."""
        torch_imports = [
            source
            for source in self.names.imported.values()
            if source.top_level and source.level == 0 and source.target.split(".")[0] == "torch"
        ]
        if not torch_imports:
            return
        end_of_line = newline_of(self.text)
        if not self.native:
            if self._is_entry(tree) and "torchada" not in self.names.imported:
                first = min(source.first_line for source in torch_imports)
                start = self.lines.starts[first - 1]
                self.edit(start, start, f"import torchada  # noqa: F401{end_of_line}")
            return
        # PyTorch 2.5 and newer load torch_musa by its entry point torch.backends; older stacks need the import.
        if self.context.sdk == "4.3" and self._is_entry(tree):
            self.needed_imports["torch_musa"] = "import torch_musa"
        wanted = [line for name, line in self.needed_imports.items() if name not in self.names.imported]
        if wanted:
            last = max(source.line for source in torch_imports)
            start = self.lines.starts[last] if last < len(self.lines.starts) else len(self.text)
            head = "" if self.text[:start].endswith(("\n", "\r")) else end_of_line
            self.edit(start, start, head + "".join(line + end_of_line for line in wanted))

    def _is_entry(self, tree: ast.Module) -> bool:
        file = PurePosixPath(self.path)
        if file.name in _ENTRY_FILES:
            return True
        if file.name == "__init__.py":
            return file.parent.name in self.context.own_modules
        return any(isinstance(node, ast.If) and "__main__" in ast.dump(node.test) for node in tree.body)


class _Visitor:
    """Walks one chunk with the ancestors of each node at hand.

    libcst's own visitor rebuilds every node on the way, which takes most of the time where nothing is rebuilt.
    """

    def __init__(self, work: _Work, chunk: _Chunk, module: cst.Module) -> None:
        self.work = work
        # resolve() would first walk the tree once more for providers that share a walk; there is only this one.
        found = PositionProvider()._gen(MetadataWrapper(module, unsafe_skip_copy=True))
        self.positions = cast(Mapping[cst.CSTNode, CodeRange], found)
        self.base = work.lines.starts[chunk.first_line - 1] - len(chunk.prefix)
        self.lines = Lines(chunk.prefix + chunk.text + chunk.suffix)
        self.stack: list[cst.CSTNode] = []
        self.handlers: dict[type, Callable[[cst.CSTNode], bool | None]] = {
            cst.Attribute: self._attribute,  # type: ignore[dict-item]
            cst.Name: self._name,  # type: ignore[dict-item]
            cst.Import: self._import,  # type: ignore[dict-item]
            cst.ImportFrom: self._import_from,  # type: ignore[dict-item]
            cst.SimpleString: self._string,  # type: ignore[dict-item]
            cst.FormattedStringText: self._format_text,  # type: ignore[dict-item]
            cst.Call: self._call,  # type: ignore[dict-item]
            cst.List: self._list,  # type: ignore[dict-item]
        }

    def walk(self, node: cst.CSTNode) -> None:
        """Handle a node and what is in it."""
        handler = self.handlers.get(type(node))
        if handler is not None and handler(node) is False:
            return
        self.stack.append(node)
        for name in _child_fields(type(node)):
            value = getattr(node, name)
            if isinstance(value, cst.CSTNode):
                self.walk(value)
            elif isinstance(value, list | tuple):
                for item in value:
                    if isinstance(item, cst.CSTNode):
                        self.walk(item)
        self.stack.pop()

    # Places

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Offsets of a node in the whole text."""
        place = self.positions[node]
        start = self.lines.offset(place.start.line, place.start.column)
        end = self.lines.offset(place.end.line, place.end.column)
        return self.base + start, self.base + end

    def code(self, node: cst.CSTNode) -> str:
        """Source of a node."""
        start, end = self.span(node)
        return self.work.text[start:end]

    def replace(self, node: cst.CSTNode, new: str, *, old: str | None = None) -> None:
        """Replace a node's source; a node whose place cannot be trusted is left alone."""
        start, end = self.span(node)
        if old is None or self.work.text[start:end] == old:
            self.work.edit(start, end, new)

    # Names

    def _name(self, node: cst.Name) -> None:
        parent = self.stack[-1] if self.stack else None
        if isinstance(parent, cst.Attribute):
            return
        value = node.value
        if self.work.native and value in self.work.extension_names and not isinstance(parent, cst.Arg | cst.Param):
            self.replace(node, self.work.extension_names[value], old=value)
            return
        if isinstance(parent, cst.Arg) and parent.keyword is node:
            call = self.stack[-2]
            if isinstance(call, cst.Call) and self._is_external(call.func):
                return
        elif self.work.native and value in self.work.extension_names:
            self.replace(node, self.work.extension_names[value], old=value)
            return
        if isinstance(parent, cst.FunctionDef) and parent.name is node and self._is_method():
            new = {"cuda": "musa", **ATTRIBUTES}.get(value)
            if new is not None and self.work.native and f"def {new}(" not in self.work.text:
                self.replace(node, new, old=value)
                return
        self._rename(node)

    def _rename(self, node: cst.Name) -> None:
        value = node.value
        new = self.work.module_renames.get(value) or self.work.new_own_name(value)
        if new is not None:
            self.replace(node, new, old=value)

    def _is_method(self) -> bool:
        """True for a function that stands directly in a class body."""
        frames = [item for item in self.stack[:-1] if isinstance(item, cst.FunctionDef | cst.ClassDef)]
        return bool(frames) and isinstance(frames[-1], cst.ClassDef)

    def _is_external(self, node: cst.BaseExpression) -> bool:
        while isinstance(node, cst.Attribute):
            node = node.value
        return isinstance(node, cst.Name) and node.value in self.work.external

    def _attribute(self, node: cst.Attribute) -> bool | None:
        parent = self.stack[-1] if self.stack else None
        if isinstance(parent, cst.Attribute) and parent.value is node:
            return None
        parts: list[cst.Name] = []
        base: cst.BaseExpression = node
        while isinstance(base, cst.Attribute):
            parts.insert(0, base.attr)
            base = base.value
        is_called = isinstance(parent, cst.Call) and parent.func is node
        if isinstance(base, cst.Name):
            source = self.work.names.imported.get(base.value)
            prefix = None
            if source is not None and source.level == 0:
                prefix = source.target.split(".")
            elif source is None and base.value == "torch":
                prefix = ["torch"]
            if prefix is not None and prefix[0] == "torch":
                self._torch_chain(prefix, [base, *parts])
                return None
            if source is not None and source.target.split(".")[0] == NVML_MODULE:
                self._nvml_function(parts[0].value, self.span(parts[0])[0])
            if source is not None and base.value in self.work.external:
                return None
            self._rename(base)
        if isinstance(base, cst.Call) and _dotted(base.func).endswith("cudart") and self._runtime_function(parts[0]):
            return None
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            if self._tensor_attribute(part, is_called=last and is_called):
                continue
            self._rename(part)
        return None

    def _nvml_function(self, name: str, offset: int) -> None:
        if re.match(r"nvml[A-Z]", name) and not name.startswith("nvmlError"):
            known = name in MTML_FUNCTIONS
            self.work.use(name, "python", offset, name if known else None, None, "a function of pymtml")
            if not known:
                self.work.find("LP308", offset, name=name, message=f"pymtml does not define {name}")

    def _runtime_function(self, part: cst.Name) -> bool:
        """`torch.cuda.cudart().cudaProfilerStart`: the module's functions carry the runtime's names."""
        row = self.work.context.maps.api(part.value)
        if row is None or row.musa is None or row.kind != "runtime":
            return False
        self.work.use(part.value, "runtime", self.span(part)[0], row.musa, row)
        if self.work.native:
            self.replace(part, row.musa, old=part.value)
        return True

    def _tensor_attribute(self, part: cst.Name, *, is_called: bool) -> bool:
        """`x.cuda()`, `x.is_cuda` and the like; True where the name is such."""
        value = part.value
        offset = self.span(part)[0]
        if value == "cuda" and is_called:
            new = "musa"
        elif value in ATTRIBUTES and not is_called:
            new = ATTRIBUTES[value]
        else:
            return False
        self.work.use(f"tensor.{value}", "python", offset, new, self.work.context.maps.python(f"tensor.{value}"))
        if self.work.native:
            self.replace(part, new, old=value)
        return True

    def _torch_chain(self, prefix: list[str], nodes: list[cst.Name]) -> None:
        """A dotted name that starts at torch: `prefix` is what the first node stands for."""
        dotted = [*prefix, *(node.value for node in nodes[1:])]
        literal: list[cst.Name | None] = [None] * (len(prefix) - 1)
        literal.append(nodes[0] if prefix == [nodes[0].value] else None)
        literal += nodes[1:]
        name = ".".join(dotted)
        offset = self.span(nodes[0])[0]
        if dotted[1:2] == ["ops"] and len(dotted) > 3 and dotted[2] not in _TORCH_OPERATORS:
            self._own_operator(literal[2:])
            return
        self._missing_op(name, offset)
        if not _TRIGGER.search(name):
            return
        if name.startswith(EXTENSION_MODULE + "."):
            self._extension_attribute(dotted[3], nodes, literal, offset)
            return
        if dotted[1] == "cuda":
            self._cuda_chain(dotted, literal, offset)
            return
        row_and_prefix = longest_row(self.work.context.maps, name)
        if dotted[:3] == ["torch", "version", "cuda"]:
            self.work.find("LP314", offset, name=name)
            self._put(dotted, literal, ["torch", "version", "musa"])
        elif dotted[:3] == ["torch", "backends", "cudnn"]:
            self.work.find("LP313", offset, name=name)
            self._put(dotted, literal, ["torch", "backends", "mudnn"])
        elif dotted[:3] == ["torch", "backends", "cuda"]:
            # torch_musa 2.7.1 sets no torch.backends.musa; the switches of torch.backends.cuda stay callable.
            self.work.find("LP313", offset, name=name)
        elif row_and_prefix is not None and row_and_prefix[0].musa:
            row, known = row_and_prefix
            new = (row.musa or "").split(".")
            self.work.use(known, "python", offset, row.musa, row)
            if new[0] == "torch_musa":
                self.work.needed_imports["torch_musa"] = "import torch_musa"
            if row.status == "differs":
                self.work.find("LP204", offset, name=known, status=row.status, message=f"{known}: {row.reason}")
            self._put(dotted, literal, new)
        elif dotted[-1] in ("ProcessGroupNCCL",) or "cuda" in dotted[-1].lower() or "nccl" in dotted[-1].lower():
            self.work.use(name, "python", offset, None, None)
            self.work.find("LP311", offset, name=name, message=f"{name} has no recorded torch_musa counterpart")

    def _own_operator(self, nodes: list[cst.Name | None]) -> None:
        """`torch.ops.acme.cuda_version`: C++ registers the operator by a string, which follows the policy too."""
        for node in nodes:
            if node is not None and self.work.renames:
                new = rename_own_words(node.value, self.work.words)
                if new != node.value:
                    self.replace(node, new, old=node.value)

    def _cuda_chain(self, dotted: list[str], literal: list[cst.Name | None], offset: int) -> None:
        name = ".".join(dotted)
        if len(dotted) == 2:
            self.work.use(name, "python", offset, "torch.musa", None, "torch_musa sets torch.musa")
            self._put(dotted, literal, ["torch", "musa"])
            return
        found = longest_row(self.work.context.maps, name)
        if found is None:
            self.work.use(name, "python", offset, None, None)
            message = f"{name} was not seen in torch_musa"
            self.work.find("LP311", offset, severity="warning", name=name, message=message)
            self._put(dotted, literal, ["torch", "musa"])
            return
        row, known = found
        self.work.use(known, "python", offset, row.musa, row)
        if row.musa is None:
            code = "LP212" if known.startswith("torch.cuda.nvtx") else "LP311"
            self.work.find(code, offset, name=known, status=row.status, message=f"{known}: {row.reason}")
            return
        if dotted[2] == "get_device_capability":
            self.work.find("LP312", offset, name=known)
        elif row.status == "differs":
            code = "LP133" if "raph" in known else "LP301"
            self.work.find(code, offset, severity="warning", name=known, status=row.status, message=row.reason)
        self._put(dotted, literal, row.musa.split("."))

    def _put(self, dotted: list[str], literal: list[cst.Name | None], new: list[str]) -> None:
        """Write `new` over the first components of a chain, where they are spelt out in the source."""
        if not self.work.native:
            return
        for old, node, value in zip(dotted, literal, new, strict=False):
            if node is not None and old != value:
                self.replace(node, value, old=old)

    def _extension_attribute(
        self, attribute: str, nodes: list[cst.Name], literal: list[cst.Name | None], offset: int
    ) -> None:
        new = EXTENSION_NAMES.get(attribute)
        if new is None or ("CUDAExtension" not in self.work.text and "CUDA_HOME" not in self.work.text):
            return
        known = f"{EXTENSION_MODULE}.{attribute}"
        self.work.use(known, "python", offset, f"{MUSA_EXTENSION_MODULE}.{new}", self.work.context.maps.python(known))
        if attribute == "CUDAExtension":
            self.work.find("LP309", offset, name=known)
        last = literal[3]
        if self.work.native and last is not None:
            self.work.needed_imports["musa_extension"] = "from torch_musa.utils import musa_extension"
            self.work.edit(offset, self.span(last)[1], f"musa_extension.{new}")

    def _missing_op(self, name: str, offset: int) -> None:
        parts = name.split(".")[1:]
        if parts[:2] in (["ops", "aten"], ["nn", "functional"], ["_C", "_nn"]):
            parts = parts[2:]
        if not parts:
            return
        missing = _missing(self.work.context.maps)
        base = "_".join(parts[:2]) if parts[0] in ("special", "linalg") else parts[0]
        op = next((item for item in (base, "_" + base) if item in missing), None)
        if op is not None and not base.startswith("cudnn"):
            row = self.work.context.maps.python(f"aten::{op}")
            self.work.use(f"aten::{op}", "op", offset, None, row)
            self.work.find("LP302", offset, name=f"aten::{op}", message=f"{name} has no torch_musa kernel")

    # Imports

    def _import(self, node: cst.Import) -> bool:
        for alias in node.names:
            dotted = _dotted(alias.name)
            offset = self.span(alias.name)[0]
            if dotted.split(".")[:2] == ["torch", "cuda"]:
                self._import_torch_cuda(alias, dotted, offset)
            elif dotted == "torch.backends.cudnn":
                self.work.find("LP313", offset, name=dotted)
                if self.work.native and alias.asname is not None and len(node.names) == 1:
                    name = self.code(alias.asname.name)
                    self.replace(node, f"from torch.backends import mudnn as {name}")
            elif dotted == NVML_MODULE:
                self._nvml_import(offset)
                if self.work.native:
                    self.replace(alias.name, MTML_MODULE + ("" if alias.asname else f" as {NVML_MODULE}"), old=dotted)
            elif not self._cuda_only(dotted, offset):
                self._import_own(alias.name, dotted, 0)
                if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                    self._rename(alias.asname.name)
        return False

    def _nvml_import(self, offset: int) -> None:
        self.work.use(NVML_MODULE, "python", offset, MTML_MODULE, self.work.context.maps.python(NVML_MODULE))
        message = f"{NVML_MODULE} becomes {MTML_MODULE}, which defines {len(MTML_FUNCTIONS)} of its functions"
        self.work.find("LP308", offset, severity="warning", name=NVML_MODULE, message=message)

    def _import_torch_cuda(self, alias: cst.ImportAlias, dotted: str, offset: int) -> None:
        new = MODULES.get(dotted)
        self.work.use(dotted, "python", offset, new, None, "a module of torch_musa 2.7.1")
        if new is None:
            self.work.find("LP311", offset, name=dotted, message=f"torch_musa 2.7.1 has no counterpart of {dotted}")
        elif self.work.native:
            if alias.asname is None:  # the statement also binds torch
                source = self.work.names.imported.get("torch")
                separate = re.search(r"^\s*import torch\s*(?:$|[,;#])", self.work.text, re.MULTILINE)
                new = "torch_musa" if source is not None and separate else "torch, torch_musa"
            self.replace(alias.name, new, old=dotted)

    def _cuda_only(self, dotted: str, offset: int) -> bool:
        top = dotted.split(".")[0]
        reason = CUDA_ONLY_PACKAGES.get(top)
        if dotted.startswith("numba.cuda"):
            top, reason = "numba.cuda", "numba has no MUSA target"
        if top == "triton" and top not in self.work.context.own_modules:
            self.work.find("LP316", offset, name=dotted)
            return False
        if reason is None or top in self.work.context.own_modules or top in self.work.names.declared:
            return False
        self.work.use(dotted, "python", offset, None, None, reason)
        self.work.find("LP308", offset, name=dotted, suggestion=reason)
        return True

    def _import_from(self, node: cst.ImportFrom) -> bool:
        level = len(node.relative)
        module = _dotted(node.module) if node.module is not None else ""
        if node.module is None or isinstance(node.names, cst.ImportStar):
            names: list[cst.ImportAlias] = [] if isinstance(node.names, cst.ImportStar) else list(node.names)
        else:
            names = list(node.names)
        offset = self.span(node)[0]
        if level == 0 and module.split(".")[:2] == ["torch", "cuda"]:
            self._import_from_torch_cuda(node, module, names, offset)
        elif level == 0 and module in ("torch", "torch.backends"):
            for alias in names:
                self._import_torch_name(alias, module)
        elif level == 0 and module == EXTENSION_MODULE:
            self._import_extension(node, names, offset)
        elif level == 0 and module.split(".")[0] == "torch":
            for alias in names:
                self._torch_member(alias, module)
        elif level == 0 and module == NVML_MODULE and node.module is not None:
            self._nvml_import(offset)
            for alias in names:
                self._nvml_function(_dotted(alias.name), self.span(alias.name)[0])
            if self.work.native:
                self.replace(node.module, MTML_MODULE, old=NVML_MODULE)
        elif level == 0 and module in RENAMED_MODULES and node.module is not None:
            self.work.find("LP316", offset, name=module)
            self.work.use(module, "python", offset, RENAMED_MODULES[module], self.work.context.maps.python(module))
            if self.work.native:
                self.replace(node.module, RENAMED_MODULES[module], old=module)
        elif level == 0 and module == "numba":
            for alias in names:
                self._cuda_only(f"numba.{_dotted(alias.name)}", self.span(alias.name)[0])
        elif level or not self._cuda_only(module, offset):
            if node.module is not None:
                self._import_own(node.module, module, level)
            own = level > 0 or module.split(".")[0] in self.work.context.own_modules
            for alias in names:
                if own and isinstance(alias.name, cst.Name):
                    self._rename(alias.name)
                elif alias.asname is None and isinstance(alias.name, cst.Name):
                    self._re_export(alias.name)
                if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                    self._rename(alias.asname.name)
        return False

    def _re_export(self, node: cst.Name) -> None:
        """A foreign name that the module offers as its own: the module's name for it changes, the foreign one stays."""
        old = node.value
        new = self.work.new_own_name(old) if old in self.work.re_exported else None
        if new is not None:
            self.replace(node, f"{old} as {new}", old=old)

    def _import_from_torch_cuda(
        self, node: cst.ImportFrom, module: str, names: list[cst.ImportAlias], offset: int
    ) -> None:
        new = MODULES.get(module)
        if new is None:
            self.work.use(module, "python", offset, None, self.work.context.maps.python(module))
            code = "LP212" if module.startswith("torch.cuda.nvtx") else "LP311"
            self.work.find(code, offset, name=module, message=f"torch_musa 2.7.1 has no counterpart of {module}")
            return
        rows = [(alias, self._member_row(module, alias)) for alias in names]
        for alias, row in rows:
            name = f"{module}.{_dotted(alias.name)}"
            self.work.use(name, "python", self.span(alias.name)[0], row.musa if row else None, row)
            if row is None or row.musa is None:
                message = f"{name}: " + (row.reason if row is not None else "not seen in torch_musa")
                self.work.find("LP311", self.span(alias.name)[0], name=name, message=message)
        if any(row is not None and row.musa is None for _, row in rows):
            return  # the whole statement would fail
        if not self.work.native or node.module is None:
            return
        self.replace(node.module, new, old=module)
        for alias, row in rows:
            old = _dotted(alias.name)
            last = (row.musa or old).split(".")[-1] if row is not None else old
            if last != old:
                self.replace(alias.name, last if alias.asname is not None else f"{last} as {old}", old=old)

    def _member_row(self, module: str, alias: cst.ImportAlias) -> MappedName | None:
        name = _dotted(alias.name)
        maps = self.work.context.maps
        return maps.python(f"{module}.{name}") or maps.python(f"torch.cuda.{name}")

    def _import_torch_name(self, alias: cst.ImportAlias, module: str) -> None:
        name = _dotted(alias.name)
        new = {"torch.cuda": "musa", "torch.backends.cudnn": "mudnn"}.get(f"{module}.{name}")
        if new is None:
            self._torch_member(alias, module)
            return
        self.work.use(
            f"{module}.{name}", "python", self.span(alias.name)[0], f"{module}.{new}", None, "set by torch_musa"
        )
        if name == "cudnn":
            self.work.find("LP313", self.span(alias.name)[0], name=f"{module}.{name}")
        if self.work.native:
            self.replace(alias.name, new if alias.asname is not None else f"{new} as {name}", old=name)

    def _torch_member(self, alias: cst.ImportAlias, module: str) -> None:
        """A name of another torch module: nothing to write, but its absence is worth a word."""
        name = f"{module}.{_dotted(alias.name)}"
        row = self.work.context.maps.python(name)
        offset = self.span(alias.name)[0]
        if row is not None and row.musa is not None and row.musa.rpartition(".")[0] == module:
            old, new = _dotted(alias.name), row.musa.rpartition(".")[2]
            self.work.use(name, "python", offset, row.musa, row)
            if self.work.native and old != new:
                self.replace(alias.name, new if alias.asname is not None else f"{new} as {old}", old=old)
        elif re.search("cuda|nccl", _dotted(alias.name), re.IGNORECASE):
            self.work.use(name, "python", offset, None, row)
            self.work.find("LP311", offset, name=name, message=f"{name} has no recorded torch_musa counterpart")

    def _import_extension(self, node: cst.ImportFrom, names: list[cst.ImportAlias], offset: int) -> None:
        moved = self.work.extension_names
        staying: list[str] = []
        moving: list[str] = []
        for alias in names:
            name = _dotted(alias.name)
            known = f"{EXTENSION_MODULE}.{name}"
            if alias.asname is None and name in moved:
                moving.append(moved[name])
                musa = f"{MUSA_EXTENSION_MODULE}.{moved[name]}"
                self.work.use(known, "python", offset, musa, self.work.context.maps.python(known))
                if name == "CUDAExtension":
                    self.work.find("LP309", offset, name=known)
            else:
                staying.append(self.code(alias).rstrip(", \t\r\n"))
        if not moving or not self.work.native or node.module is None:
            return
        if not staying:
            self.replace(node.module, MUSA_EXTENSION_MODULE, old=EXTENSION_MODULE)
            for alias in names:
                old = _dotted(alias.name)
                if moved[old] != old:
                    self.replace(alias.name, moved[old], old=old)
            return
        start = self.work.lines.starts[self.work.lines.line(offset) - 1]
        lead = self.work.text[start:offset]
        if lead.strip():  # `try: from ... import ...` on one line
            return
        end_of_line = newline_of(self.work.text)
        first = f"from {EXTENSION_MODULE} import {', '.join(staying)}"
        second = f"from {MUSA_EXTENSION_MODULE} import {', '.join(moving)}"
        self.replace(node, f"{first}{end_of_line}{lead}{second}")

    def _import_own(self, node: cst.Attribute | cst.Name, dotted: str, level: int) -> None:
        """Follow the renaming of the project's own module files."""
        if not self.work.renames or not dotted:
            return
        parts = dotted.split(".")
        new_parts = list(parts)
        for count in range(1, len(parts) + 1):
            new = self.work.new_module(".".join(parts[:count]), level)
            if new is not None:
                new_parts[count - 1] = new.split(".")[-1]
        if new_parts != parts:
            self.replace(node, ".".join(new_parts), old=dotted)

    # Strings and calls

    def _call(self, node: cst.Call) -> None:
        function = _tail(node.func)
        if function == "getattr" and node.args and _dotted(node.args[0].value) in ("torch.cuda", "torch"):
            if len(node.args) > 1 and not isinstance(node.args[1].value, cst.SimpleString):
                self.work.find("LP315", self.span(node)[0])
        elif function in ("import_module", "__import__") and node.args:
            text = node.args[0].value
            if not isinstance(text, cst.SimpleString) and _TRIGGER.search(self.code(text)):
                self.work.find("LP315", self.span(node)[0])

    def _list(self, node: cst.List) -> None:
        """Flags that nvcc takes as two arguments, and flags that become equal for one target."""
        if not self.work.native:
            return
        offload = f"--offload-arch={self.work.context.arch}"
        elements = list(node.elements)
        seen = False
        index = 0
        while index < len(elements):
            value = elements[index].value
            text = _literal(value)
            if text is None:
                index += 1
                continue
            last = index
            if text in ("-gencode", "--generate-code", "-arch", "--gpu-architecture") and index + 1 < len(elements):
                following = _literal(elements[index + 1].value)
                if following is None or not re.match(r"(?:arch=)?(?:compute|sm)_", following):
                    index += 1
                    continue
                last = index + 1
            elif translate_flags(text, self.work.context.arch) != offload:
                index += 1
                continue
            start, end = self.span(value)[0], self.span(elements[last].value)[1]
            if not self.work.text[start:end].startswith(("'", '"')):
                break
            if seen:
                self.work.edit(self.span(elements[index - 1].value)[1], end, "")
            else:
                quote = self.work.text[start]
                self.work.edit(start, end, f"{quote}{offload}{quote}")
            seen = True
            index = last + 1

    def _format_text(self, node: cst.FormattedStringText) -> None:
        whole = self.stack[-1]
        start, end = self.span(node)
        value = self.work.text[start:end]
        if value != node.value or not isinstance(whole, cst.FormattedString):
            return
        if self._is_documentation(whole):
            return
        if value == "cuda:" and whole.parts[0] is node and len(whole.parts) == 2:
            self.work.use("device string", "device-string", start, "musa:", None, "device type of torch_musa")
            self.work.find("LP303", start, message=f'Device string "{value}"')
            if self.work.native:
                self.work.edit(start, end, "musa:")
            return
        file = self._file(value) if whole.parts[-1] is node else None
        if file is not None:
            self._write(start, end, file)
            return
        self._text(value, start, end)

    def _string(self, node: cst.SimpleString) -> None:
        if "b" in node.prefix.lower():
            return
        start, end = self.span(node)
        head = len(node.prefix) + len(node.quote)
        start, end = start + head, end - len(node.quote)
        value = self.work.text[start:end]
        if value != node.raw_value or not value:
            return
        if self._is_documentation(node):
            if self.work.renames:
                self._text(value, start, end)
            return
        if not self._value(value, start, end):
            self._text(value, start, end)

    def _is_documentation(self, node: cst.CSTNode) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1], cst.Expr)

    def _value(self, value: str, start: int, end: int) -> bool:
        """A string with a meaning to torch, the system or a compiler; True where it is settled."""
        work, maps = self.work, self.work.context.maps
        if self._is_for_people():
            return False
        device = strings.device(value, work.context.arch)
        if device is not None:
            if not self._is_device_place():
                return False
            work.use("device string", "device-string", start, device, None, "device type of torch_musa")
            work.find("LP303", start, message=f'Device string "{value}"')
            return self._write(start, end, device)
        backend = strings.backend(value)
        if backend is not None:
            if not self._is_device_place():
                return False
            work.use("backend string", "device-string", start, backend, None, "backend of torch_musa")
            work.find("LP304", start, message=f'Backend string "{value}"')
            return self._write(start, end, backend)
        variable = strings.environment_variable(value, maps)
        if variable is not None and variable.musa is not None:
            work.use(value, "env", start, variable.musa, variable)
            work.find("LP306", start, name=value, status=variable.status)
            if value.endswith("_ARCH_LIST"):
                work.find("LP306", start, severity="warning", message=f"{variable.musa} holds MUSA numbers such as 31")
            return self._write(start, end, variable.musa)
        library = strings.library(value)
        if library is not None:
            work.use(value, "library", start, library, None, "library of the MUSA SDK")
            work.find("LP307", start, name=value)
            return self._write(start, end, library)
        if _TORCH_PATH.fullmatch(value):
            found = longest_row(maps, value) if value.count(".") > 1 else None
            new = value.replace("torch.cuda", "torch.musa", 1)
            if found is not None:
                new = found[0].musa + value[len(found[1]) :] if found[0].musa else value
            return self._write(start, end, new)
        file = self._file(value)
        if file is not None:
            return self._write(start, end, file)
        if value in strings.DISPATCH_KEYS and self._function() in strings.DISPATCH_FUNCTIONS:
            work.find("LP204", start, message=f'Dispatch key "{value}" becomes "{strings.DISPATCH_KEYS[value]}"')
            return self._write(start, end, strings.DISPATCH_KEYS[value])
        return self._tool_or_flag(value, start, end)

    def _file(self, value: str) -> str | None:
        """The path of a project file that the port renames, or a pattern for such files."""
        if not self.work.context.file_renames or not re.fullmatch(r"[\w./*{}$-]*\.\w+", value):
            return None
        path = renamed_path(value, folder=self.work.folder, context=self.work.context)
        if path is not None:
            return path
        suffix = "." + value.rpartition(".")[2]
        if suffix not in self.work.suffixes:
            return None
        new = value.removesuffix(suffix) + self.work.suffixes[suffix]
        return rename_own_words(new, self.work.words) if self.work.renames else new

    def _tool_or_flag(self, value: str, start: int, end: int) -> bool:
        work = self.work
        words = value.split()
        tool = words[0].rpartition("/")[2] if words else ""
        if value == "nvcc" and work.has_extension and self._is_key():
            return self._write(start, end, "mcc")
        if tool in _NVIDIA_TOOLS and (self._is_command() or words[0].endswith("/bin/" + tool)):
            work.find("LP305", start, name=tool, message=f"Call of {tool}")
            work.use(tool, "python", start, {"nvcc": "mcc", "nvidia-smi": "mthreads-gmi"}.get(tool), None, "a tool")
            if tool == "nvcc":
                new = toolkit_path(value.replace("nvcc", "mcc", 1))
                return self._write(start, end, rename_own_words(new, work.words) if work.renames else new)
            return True
        keyword = self._keyword()
        if keyword in ("libraries", "extra_libraries") and value in LIBRARIES:
            return self._write(start, end, LIBRARIES[value])
        if value.startswith("-"):
            for offset, flag in nvcc_only_flags(value):
                if work.has_extension or "nvcc" in work.text:
                    work.find("LP310", start + offset, message=f"nvcc flag {flag} without a recorded mcc counterpart")
            new = translate_flags(value, work.context.arch)
        else:
            new = toolkit_path(value)
        return self._write(start, end, new) if new != value else False

    def _text(self, value: str, start: int, end: int) -> None:
        """A string that means nothing outside the project: its words are renamed where the policy says so."""
        if not self.work.renames or _URL.search(value) or _NATIVE.search(value):
            return
        if re.fullmatch(r"[A-Z][A-Z0-9_]*", value) and re.match(r"(?:CUDA|NCCL|CUDNN|NVIDIA)_", value):
            return  # an environment variable or macro of the CUDA stack that no map has
        if re.fullmatch(r"[\w.]+", value) and value.split(".")[0] in self.work.external:
            return
        new = rename_own_words(value, self.work.words)
        if new != value:
            self.work.edit(start, end, new)

    def _write(self, start: int, end: int, new: str) -> bool:
        if self.work.native:
            self.work.edit(start, end, new)
        return True

    def _function(self) -> str:
        """Last name of the function whose argument this is, "" elsewhere."""
        for node in reversed(self.stack):
            if isinstance(node, cst.Call):
                return _tail(node.func)
            if isinstance(node, cst.BaseStatement | cst.SimpleStatementLine | cst.Lambda):
                return ""
        return ""

    def _keyword(self) -> str:
        """Nearest keyword argument around, "" where there is none."""
        for node in reversed(self.stack):
            if isinstance(node, cst.Arg) and node.keyword is not None:
                return node.keyword.value
            if isinstance(node, cst.Call | cst.BaseStatement):
                return ""
        return ""

    def _is_for_people(self) -> bool:
        parent = self.stack[-1] if self.stack else None
        if isinstance(parent, cst.Arg):
            if parent.keyword is not None and parent.keyword.value in strings.TEXT_KEYWORDS:
                return True
            return parent.keyword is None and self._function() in strings.TEXT_FUNCTIONS
        return isinstance(parent, cst.Raise)

    def _is_key(self) -> bool:
        parent = self.stack[-1] if self.stack else None
        return isinstance(parent, cst.DictElement | cst.Index | cst.Arg | cst.Comparison)

    def _is_device_place(self) -> bool:
        """False for a key of a dictionary that is not a table by device type, and for the name of a package."""
        parent = self.stack[-1] if self.stack else None
        if isinstance(parent, cst.DictElement) and self.stack[-2:]:
            table = self.stack[-2]
            value = parent.value
            if isinstance(table, cst.Dict) and not isinstance(value, cst.SimpleString):
                keys = {_literal(element.key) for element in table.elements if isinstance(element, cst.DictElement)}
                if any(_literal(element.value) == "cuda" for element in table.elements):
                    return True
                return bool((keys - {"cuda", None}) & DEVICE_WORDS) or self.work.renames
        if isinstance(parent, cst.Index):
            return self.work.renames
        return self._function() not in ("import_module", "importorskip", "__import__", "find_spec")

    def _is_command(self) -> bool:
        """True where the string is, or is in, the command of a subprocess call or a search for a program."""
        for node in reversed(self.stack):
            if isinstance(node, cst.Call):
                name = _dotted(node.func)
                if name.split(".")[0] in ("subprocess", "sp", "os", "shutil") or name.split(".")[-1] in (
                    "which",
                    "check_output",
                    "run",
                    "Popen",
                    "check_call",
                    "system",
                ):
                    return True
            if isinstance(node, cst.SimpleStatementLine | cst.BaseStatement):
                return False
        return False


DEVICE_WORDS = strings.DEVICE_TYPES - {"cuda"}


def _dotted(node: cst.CSTNode) -> str:
    """a.b.c of a name or attribute chain; "" for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr.value}" if head else ""
    return ""


def _tail(node: cst.CSTNode) -> str:
    """Last name of a callee."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def _literal(node: cst.CSTNode | None) -> str | None:
    """Raw value of a plain string, None for anything else."""
    if isinstance(node, cst.SimpleString) and "b" not in node.prefix.lower():
        return node.raw_value
    return None
