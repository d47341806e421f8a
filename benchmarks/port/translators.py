"""Translators for saved_lines.py, with the tool's policy or one that is asked for.

    python benchmarks/port/saved_lines.py PAIRS.csv --repositories FOLDER --whole-tree --translator translators:auto

`auto` lets the tool choose whether the project's own cuda words are renamed, `keep` and `rename` tell it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from lakh.port import build_files
from lakh.port.findings import PortContext, RenamePolicy
from lakh.port.maps import Maps
from lakh.port.policy import decide, gather
from lakh.port.project import make_context, translate_text
from lakh.port.project_names import own_python_and_build_names
from lakh.port.walk import Inventory, SourceFile, language_of


def auto(files: Mapping[str, str]) -> Mapping[str, str]:
    """Translate with the policy that the tool chooses."""
    return _translate(files, None)


def keep(files: Mapping[str, str]) -> Mapping[str, str]:
    """Translate with the project's own words kept."""
    return _translate(files, "keep")


def rename(files: Mapping[str, str]) -> Mapping[str, str]:
    """Translate with the project's own words renamed."""
    return _translate(files, "rename")


def _translate(files: Mapping[str, str], policy: RenamePolicy | None) -> Mapping[str, str]:
    maps = Maps.load()
    sources = tuple(
        SourceFile(
            path=path,
            language=language_of(path, is_build_file=build_files.is_build_file(path)),
            size_bytes=len(text),
            text=text,
        )
        for path, text in sorted(files.items())
    )
    evidence = {item.path: gather(item.text or "", maps) for item in sources if item.language == "cxx"}
    decision = decide(files, evidence, maps, policy)
    context = make_context(Inventory(root=Path(), files=sources, findings=()), evidence, decision, maps)
    return _OnDemand(files, own_python_and_build_names(files, context))


class _OnDemand(Mapping[str, str]):
    """Translates a file when it is asked for: a whole tree gives the names, only the pairs are scored."""

    def __init__(self, files: Mapping[str, str], context: PortContext) -> None:
        self.files, self.context = files, context

    def __getitem__(self, path: str) -> str:
        text = self.files[path]
        language = language_of(path, is_build_file=build_files.is_build_file(path))
        return translate_text(text, path=path, language=language, context=self.context, change=True).text

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)
