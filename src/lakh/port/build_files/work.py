"""What every build-file translator needs: edits, findings and uses of one text."""

from __future__ import annotations

import re

from lakh.port.edits import Edit, Lines, apply_edits
from lakh.port.codes import Severity
from lakh.port.findings import Finding, PortContext, Translation, Use, finding
from lakh.port.maps import MappedName
from lakh.port.own_words import has_own_word, rename_own_words

NATIVE = re.compile(r"(?<![A-Za-z])(?:musa|mccl|mcc|mthreads)(?![a-z])|FindMUSA|MUSAToolkit", re.IGNORECASE)
"""Words of MUSA: what already speaks of it is left alone."""
URL = re.compile(r"https?://|git@|ftp://")


class Work:
    """One build file in progress."""

    def __init__(self, text: str, path: str, context: PortContext) -> None:
        self.text, self.path, self.context = text, path, context
        self.lines = Lines(text)
        self.edits: list[Edit] = []
        self.findings: list[Finding] = []
        self.uses: list[Use] = []
        self.renames = context.rename == "rename"

    def edit(self, start: int, end: int, new: str) -> None:
        self.edits.append(Edit(start, end, new))

    def find(
        self,
        code: str,
        offset: int,
        message: str | None = None,
        *,
        name: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        self.findings.append(
            finding(
                code,
                path=self.path,
                line=self.lines.line(offset),
                column=self.lines.column(offset),
                message=message,
                name=name,
                severity=severity,
            )
        )

    def use(self, name: str, offset: int, musa: str | None, row: MappedName | None = None, reason: str = "") -> None:
        self.uses.append(
            Use(
                name=name,
                kind=row.kind if row is not None else "build",
                status=row.status if row is not None else ("differs" if musa else "unknown"),
                path=self.path,
                line=self.lines.line(offset),
                reason=row.reason if row is not None else reason or "no map has it",
                musa=musa,
            )
        )

    def rename(self, text: str) -> str:
        """The project's words renamed where the policy says so; addresses and native MUSA words stay."""
        if not self.renames or URL.search(text) or not has_own_word(text, self.context.word_renames):
            return text
        return rename_own_words(text, self.context.word_renames)

    def result(self, *, apply: bool) -> Translation:
        findings = tuple(sorted(self.findings, key=lambda item: (item.line, item.column, item.code)))
        if not apply:
            return Translation(text=self.text, findings=findings, uses=tuple(self.uses))
        new, changed = apply_edits(self.text, self.edits)
        return Translation(text=new, findings=findings, uses=tuple(self.uses), changed_line_count=changed)


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
