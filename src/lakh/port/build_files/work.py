"""What every build-file translator needs: edits, findings and uses of one text."""

from __future__ import annotations

import re

from lakh.port.codes import Severity
from lakh.port.edits import Edit, Lines, apply_edits
from lakh.port.findings import Finding, PortContext, Translation, Use, finding
from lakh.port.maps import MappedName
from lakh.port.own_words import has_own_word, project_words, rename_own_words

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
        self.words = project_words(context)

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
        if not self.renames or URL.search(text) or not has_own_word(text, self.words):
            return text
        return rename_own_words(text, self.words)

    def leave_native(self, code: str) -> None:
        """Drop every edit where `code`, the text without comments, already speaks of MUSA."""
        if self.edits and NATIVE.search(code):
            self.edits.clear()
            self.find("LP411", 0)

    def result(self, *, apply: bool) -> Translation:
        findings = tuple(sorted(self.findings, key=lambda item: (item.line, item.column, item.code)))
        if not apply:
            return Translation(text=self.text, findings=findings, uses=tuple(self.uses))
        new, changed = apply_edits(self.text, self.edits)
        return Translation(text=new, findings=findings, uses=tuple(self.uses), changed_line_count=changed)
