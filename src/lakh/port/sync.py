"""Upstream moved on: how is the port brought up to date without losing hand edits? A three-way merge by file.

Base is what the last run wrote, ours is the file as it is now, theirs is the translation of the new upstream file. Only
files whose source changed are touched; a conflict is written with markers and reported.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from lakh.errors import CouldNotError, Problem, SpecError
from lakh.port.findings import Arch, Finding, PythonMode, RenamePolicy, Sdk, finding
from lakh.port.output import (
    Manifest,
    digest,
    encoded,
    interrupts_held,
    manifest_of,
    read_base,
    read_manifest,
    write_atomically,
    write_state,
)
from lakh.port.project import Port, Progress, port

Action = Literal["written", "merged", "conflict", "added", "removed", "kept", "unchanged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sync:
    """What a sync did."""

    actions: dict[str, Action]
    """New path to what was done with it, without those that stayed."""
    unchanged_count: int
    findings: tuple[Finding, ...]
    port: Port


def sync(source: Path, folder: Path, *, dry_run: bool = False, progress: Progress | None = None) -> Sync:
    """Bring `folder`, an earlier port of `source`, up to date.

    Raises:
        RequestError: `folder` is no port
        CouldNotError: git, which merges, is not installed, or conflict markers of an earlier sync are left
    """
    manifest = read_manifest(folder)
    base = read_base(folder)
    new = port(
        source,
        arch=cast(Arch, _closed(folder, "arch", manifest.arch, get_args(Arch))),
        sdk=cast(Sdk, _closed(folder, "sdk", manifest.sdk, get_args(Sdk))),
        rename=cast(RenamePolicy, _closed(folder, "rename", manifest.rename, get_args(RenamePolicy))),
        python_mode=cast(PythonMode, _closed(folder, "python_mode", manifest.python_mode, get_args(PythonMode))),
        word_renames=manifest.word_renames,
        progress=progress,
    )
    actions: dict[str, Action] = {}
    findings: list[Finding] = []
    writes: dict[Path, bytes] = {}
    removals: list[Path] = []
    next_base = dict(base)
    for file in new.files:
        path = file.new_path
        target = folder / path
        if file.source.text is None:
            full = new.inventory.root / file.source.path
            if file.source.skip != "unreadable" and (not target.exists() or target.read_bytes() != full.read_bytes()):
                writes[target] = full.read_bytes()
                actions[path] = "written" if target.exists() else "added"
            continue
        theirs = encoded(file)
        old = base.get(path)
        next_base[path] = theirs
        ours = target.read_bytes() if target.is_file() else None
        if ours is not None and b"\n<<<<<<< edited\n" in b"\n" + ours:
            raise CouldNotError(f"{target}: conflict markers of an earlier sync are left; resolve them first")
        if old == theirs and ours is not None:
            continue
        if ours is None:
            if old is None:
                writes[target], actions[path] = theirs, "added"
            elif old != theirs:
                findings.append(finding("LP703", path=path, line=1))
                actions[path] = "kept"
        elif ours in (old, theirs):
            if ours != theirs:
                writes[target], actions[path] = theirs, "written"
        else:
            merged, conflict_count = merge(base=old or b"", ours=ours, theirs=theirs)
            writes[target] = merged
            actions[path] = "conflict" if conflict_count else "merged"
            if conflict_count:
                line = merged[: merged.find(b"<<<<<<< ")].count(b"\n") + 1
                message = f"{conflict_count} conflict(s) between a hand edit and the upstream update"
                findings.append(finding("LP701", path=path, line=line, message=message))
    present = {file.new_path for file in new.files}
    for path in sorted(set(manifest.files) - present):
        target = folder / path
        next_base.pop(path, None)
        if not target.is_file():
            continue
        if target.read_bytes() == base.get(path) or digest(target.read_bytes()) == manifest.files[path]["sha256"]:
            removals.append(target)
            actions[path] = "removed"
        else:
            findings.append(finding("LP702", path=path, line=1))
            actions[path] = "kept"
    if not dry_run and (writes or removals):
        with interrupts_held():
            for target, data in writes.items():
                write_atomically(target, data)
            for target in removals:
                target.unlink()
            write_state(folder, _merged_manifest(new, source), next_base)
    return Sync(
        actions=actions,
        unchanged_count=len(new.files) - sum(path in actions for path in present),
        findings=tuple(findings),
        port=new,
    )


def _merged_manifest(new: Port, source: Path) -> Manifest:
    return manifest_of(new, source=source.resolve())


def _closed(folder: Path, name: str, value: str, accepted: tuple[str, ...]) -> str:
    if value not in accepted:
        raise SpecError(Problem(where=f"{folder}: manifest: {name}", found=value, accepted=", ".join(accepted)))
    return value


def merge(*, base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, int]:
    """Three-way merge of texts by `git merge-file`; the merged text and the number of conflicts."""
    with tempfile.TemporaryDirectory(prefix="lakh-merge-") as name:
        folder = Path(name)
        for label, data in (("edited", ours), ("base", base), ("upstream", theirs)):
            (folder / label).write_bytes(data)
        try:
            run = subprocess.run(
                [
                    "git",
                    "merge-file",
                    "-p",
                    "-L",
                    "edited",
                    "-L",
                    "base",
                    "-L",
                    "upstream",
                    "edited",
                    "base",
                    "upstream",
                ],
                cwd=folder,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise CouldNotError("git is not installed; sync merges with `git merge-file`") from error
    if run.returncode < 0 or run.returncode >= 128:
        raise CouldNotError(f"git merge-file failed: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout, run.returncode
