"""What can go wrong? The whole tree of exceptions:

LakhError                 anything Lakh refuses or could not do; the CLI prints it without a traceback
+-- RequestError          asked wrongly: exit code 2; carries one or more Problems
|   +-- SpecError         a file we refuse (cluster.yaml, job.yaml, config.json, a CSV of measurements)
|   +-- UnknownNameError  a catalogue name that is not there
+-- CouldNotError         asked rightly, but it could not be done: exit code 1
    +-- InfeasibleError   no layout fits; says by how much and what would help
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing wrong with one input: where, what was found, what is accepted, and what to do about it."""

    where: str
    """File, line and field, such as "cluster.yaml:12: sites[0].nodes.count"."""
    found: object
    accepted: str
    hint: str = ""

    def __str__(self) -> str:
        found = "nothing" if self.found is None else repr(self.found)
        if len(found) > 120:
            found = found[:117] + "..."
        text = f"{self.where}: found {found}; accepted: {self.accepted}."
        return f"{text} {self.hint}" if self.hint else text


class LakhError(Exception):
    """Anything Lakh refuses or could not do."""

    exit_code = 1


class RequestError(LakhError, ValueError):
    """Asked wrongly. Every problem found is listed, not only the first."""

    exit_code = 2

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SpecError(RequestError):
    """A file we refuse."""


class UnknownNameError(RequestError):
    """A name that the catalogue does not hold."""

    def __init__(self, kind: str, found: str, accepted: Sequence[str], *, where: str = "", also: str = "") -> None:
        names = f"{also}, or one of {list_names(accepted)}" if also else list_names(accepted)
        super().__init__(Problem(where=where or kind, found=found, accepted=names, hint=nearest_hint(found, accepted)))


class CouldNotError(LakhError):
    """Asked rightly, but it could not be done."""


class InfeasibleError(CouldNotError):
    """No layout fits the request."""


def list_names(names: Sequence[str], *, most: int = 12) -> str:
    """The first names of a closed list, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names) - most} more)"


def nearest_hint(found: object, accepted: Sequence[str]) -> str:
    """ "Did you mean 'H100-SXM'?" where a name is close enough, else nothing."""
    if not isinstance(found, str):
        return ""
    folded = {name.casefold(): name for name in accepted}
    close = difflib.get_close_matches(found.casefold(), list(folded), n=1, cutoff=0.6)
    return f"Did you mean {folded[close[0]]!r}?" if close else ""
