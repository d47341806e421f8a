"""What does a file say, and on which line? YAML read into plain values, with a mark for every field.

Everything that can be wrong with a file before its fields are looked at ends here: missing, a folder, too large, not
text, not YAML, a key twice, an anchor that expands without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lakh.errors import Problem, SpecError

MOST_BYTES = 16 * 2**20
"""A file larger than this is refused before it is read."""
MOST_VALUES = 200_000
"""Values a file may hold, aliases expanded."""

Location = tuple[str | int, ...]
"""Keys and indices from the top of a file to a value: ("sites", 0, "pools")."""

_YamlLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT_TAGS = {"tag:yaml.org,2002:timestamp"}  # dates are read as text, the field that wants one checks it


def field_path(location: Location) -> str:
    """A location as people write it: "sites[0].pools[2].count"."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One file as it was read."""

    path: Path
    content: Mapping[str, Any]
    lines: Mapping[Location, int]
    """First line of every value and key, counted from 1."""

    def line(self, location: Location) -> int:
        """Line of a field, or of the nearest thing around it that the file does hold."""
        for end in range(len(location), -1, -1):
            found = self.lines.get(location[:end])
            if found is not None:
                return found
        return 1

    def where(self, location: Location) -> str:
        """ "cluster.yaml:12: sites[0].pools[0].count", as errors print it."""
        path = field_path(location)
        return f"{self.path}:{self.line(location)}" + (f": {path}" if path else "")

    def value(self, location: Location) -> Any:
        """What the file holds there; None where it holds nothing."""
        found: Any = self.content
        for part in location:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                return None
        return found


def _refuse(where: str, found: object, accepted: str, hint: str = "") -> SpecError:
    return SpecError(Problem(where=where, found=found, accepted=accepted, hint=hint))


def read_text(path: Path, what: str) -> str:
    """The text of a file that a user named.

    Raises:
        SpecError: it is missing, a folder, not readable, larger than `MOST_BYTES`, empty, or not UTF-8
    """
    accepted = f"{what}, a file of UTF-8 text"
    if "\0" in str(path):
        raise _refuse(repr(str(path)), "a name with a NUL character", accepted)
    try:
        if path.is_dir():
            raise _refuse(str(path), "a folder", accepted)
        if not path.exists():
            beside = sorted(p.name for p in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
            hint = f"Beside it: {', '.join(beside[:8])}." if beside else ""
            raise _refuse(str(path), "no such file", accepted, hint)
        if not path.is_file():
            raise _refuse(str(path), "not a regular file", accepted)
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise _refuse(str(path), f"{size / 2**20:.1f} MiB", f"{what} of at most {MOST_BYTES // 2**20} MiB")
        raw = path.read_bytes()
    except OSError as error:
        raise _refuse(str(path), error.strerror or str(error), accepted) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise _refuse(f"{path}:{line}", f"byte 0x{raw[error.start]:02x}", f"{what} in UTF-8") from None
    if not text.strip():
        raise _refuse(f"{path}:1", "an empty file", what)
    return text


class _Reader:
    """Turns YAML nodes into values and notes their lines; collects what is wrong with keys on the way."""

    def __init__(self, path: Path, loader: Any) -> None:
        self.path, self.loader = path, loader
        self.lines: dict[Location, int] = {}
        self.problems: list[Problem] = []
        self.value_count = 0
        self.open_nodes: set[int] = set()

    def read(self, node: Any, location: Location) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(location, line)
        self.value_count += 1
        if self.value_count > MOST_VALUES:
            raise _refuse(
                f"{self.path}:{line}", f"more than {MOST_VALUES} values", "a file whose aliases expand to less"
            )
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, location, line)
        if id(node) in self.open_nodes:
            raise _refuse(f"{self.path}:{line}", "an alias inside its own anchor", "aliases that end")
        self.open_nodes.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.read(child, (*location, index)) for index, child in enumerate(node.value)]
            return self._mapping(node, location)
        finally:
            self.open_nodes.discard(id(node))

    def _scalar(self, node: Any, location: Location, line: int) -> Any:
        if node.tag in _TEXT_TAGS:
            return node.value
        try:
            return self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError):
            where = f"{self.path}:{line}" + (f": {field_path(location)}" if location else "")
            self.problems.append(
                Problem(where=where, found=node.value, accepted="a number, text, true, false or a list")
            )
            return None

    def _mapping(self, node: Any, location: Location) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            here = f"{self.path}:{line}" + (f": {field_path(location)}" if location else "")
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(
                    Problem(where=here, found="a list or mapping as a key", accepted="a name as a key")
                )
                continue
            key = str(key_node.value)
            if key_node.tag == "tag:yaml.org,2002:merge":
                self.problems.append(
                    Problem(where=here, found="<<", accepted="fields written out, or an alias as a value")
                )
                continue
            if key in content:
                first = self.lines[(*location, key)]
                where = f"{self.path}:{line}: {field_path((*location, key))}"
                self.problems.append(
                    Problem(where=where, found=f"{key} again", accepted=f"each field once; first on line {first}")
                )
                continue
            self.lines[(*location, key)] = line
            content[key] = self.read(value_node, (*location, key))
        return content


def read_document(path: str | Path, what: str) -> Document:
    """Read a YAML (or JSON) file whose top level is a mapping.

    Args:
        path: the file
        what: what it should be, for messages: "a cluster description"

    Raises:
        SpecError: it cannot be read as such a file; names file, line, what was found and what is accepted
    """
    path = Path(path)
    text = read_text(path, what)
    try:
        loader = _YamlLoader(text)
        try:
            top = loader.get_single_node()
            if top is None:
                raise _refuse(f"{path}:1", "nothing but comments", what)
            if not isinstance(top, yaml.MappingNode):
                kind = "a list" if isinstance(top, yaml.SequenceNode) else "one value"
                raise _refuse(f"{path}:{top.start_mark.line + 1}", kind, f"{what}: 'field: value' lines")
            reader = _Reader(path, loader)
            content = reader.read(top, ())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        said = " ".join(part for part in (error.context, error.problem) if part)
        if error.context_mark and error.context_mark.line + 1 != line:
            said += f", begun on line {error.context_mark.line + 1}"
        source_line = text.splitlines()[line - 1].strip() if line <= len(text.splitlines()) else ""
        raise _refuse(f"{path}:{line}", source_line or "end of file", "YAML", f"The reader says: {said}.") from None
    except yaml.YAMLError as error:
        raise _refuse(f"{path}:1", str(error).splitlines()[0], "YAML") from None
    except RecursionError:
        raise _refuse(f"{path}:1", "values nested too deep", what) from None
    if reader.problems:
        raise SpecError(reader.problems)
    return Document(path=path, content=content, lines=reader.lines)
