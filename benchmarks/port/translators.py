"""Translators for saved_lines.py: the Python and build-file halves with the policy fixed from outside.

    python benchmarks/port/saved_lines.py PAIRS.csv --repositories FOLDER --whole-tree --translator translators:rename

`keep` keeps the project's own cuda words, `rename` renames them; the tool chooses between the two by itself.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from lakh.port import build_files, python_code
from lakh.port.findings import PortContext, RenamePolicy
from lakh.port.own_words import rename_own_words

sys.setrecursionlimit(10_000)


def keep(files: Mapping[str, str]) -> Mapping[str, str]:
    """Translate with the project's own words kept."""
    return _translate(files, "keep")


def rename(files: Mapping[str, str]) -> Mapping[str, str]:
    """Translate with the project's own words renamed."""
    return _translate(files, "rename")


def _translate(files: Mapping[str, str], policy: RenamePolicy) -> Mapping[str, str]:
    own_names: set[str] = set()
    for path, text in files.items():
        if path.endswith(".py"):
            own_names |= python_code.declared_names(text)
        elif build_files.is_build_file(path):
            own_names |= build_files.declared_names(text, path=path)
    roots = {PurePosixPath(path).parent for path in files if path.endswith("/__init__.py")}
    own_modules = {root.name for root in roots if root.parent not in roots}
    own_modules |= {PurePosixPath(path).stem for path in files if path.endswith(".py") and "/" not in path}
    renames = {path: _renamed(path) for path in files} if policy == "rename" else {}
    context = PortContext(
        rename=policy,
        own_names=frozenset(own_names),
        own_files=frozenset(files),
        own_modules=frozenset(own_modules),
        file_renames={old: new for old, new in renames.items() if old != new},
    )
    return _OnDemand(files, context)


def _renamed(path: str) -> str:
    return re.sub(r"\.cu(h?)$", r".mu\1", rename_own_words(path, {}))


class _OnDemand(Mapping[str, str]):
    """Translates a file when it is asked for: a whole tree gives the names, only the pairs are scored."""

    def __init__(self, files: Mapping[str, str], context: PortContext) -> None:
        self.files, self.context = files, context

    def __getitem__(self, path: str) -> str:
        text = self.files[path]
        if path.endswith(".py"):
            return python_code.translate(text, path=path, context=self.context).text
        if build_files.is_build_file(path):
            return build_files.translate(text, path=path, context=self.context).text
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)
