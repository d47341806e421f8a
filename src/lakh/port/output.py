"""How do the translated files reach the disk, whole or not at all? Folder, in place with backup, or a diff.

Every file is written beside its place and then renamed; a new output folder is built under another name and renamed at
the end. An interrupt therefore leaves the old state, or the new one, and never half a file.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakh.errors import CouldNotError, Problem, RequestError, SpecError
from lakh.port.project import Port, PortedFile

STATE_FOLDER = ".lakh-port"
MANIFEST = "manifest.json"
BASE = "base.zip"
SCHEMA = "lakh.port.manifest/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What an earlier run wrote: its settings, and each file with the digests of its source and of what was written."""

    source: str
    arch: str
    sdk: str
    rename: str
    python_mode: str
    word_renames: dict[str, str]
    files: dict[str, dict[str, str]]
    """New path to {"source", "source_sha256", "sha256"}."""

    def to_json(self) -> str:
        """The manifest file."""
        body = {
            "schema": SCHEMA,
            "source": self.source,
            "arch": self.arch,
            "sdk": self.sdk,
            "rename": self.rename,
            "python_mode": self.python_mode,
            "word_renames": self.word_renames,
            "files": self.files,
        }
        return json.dumps(body, indent=1, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a ported folder; RequestError where there is none, SpecError where it cannot be read."""
    path = folder / STATE_FOLDER / MANIFEST
    if not path.is_file():
        raise RequestError(
            Problem(where=str(folder), found="no port manifest", accepted="a folder that `lakh port translate` wrote")
        )
    try:
        body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if body["schema"] != SCHEMA:
            raise SpecError(Problem(where=f"{path}: schema", found=body["schema"], accepted=SCHEMA))
        return Manifest(**{key: body[key] for key in Manifest.__dataclass_fields__})
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(
            Problem(where=str(path), found=str(error), accepted="a manifest that this tool wrote")
        ) from error


def digest(data: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def encoded(file: PortedFile) -> bytes:
    """The bytes of a translated file, in the encoding that it came in."""
    return file.result.text.encode(file.source.encoding, errors="surrogateescape")


def source_bytes(file: PortedFile) -> bytes:
    """The bytes that the file was read from."""
    return (file.source.text or "").encode(file.source.encoding, errors="surrogateescape")


def write_atomically(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write beside the file, then rename over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".lakh-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        Path(name).chmod(0o644 if mode is None else mode | 0o200)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def manifest_of(port: Port, *, source: Path) -> Manifest:
    """The manifest of one run."""
    context = port.context
    return Manifest(
        source=str(source),
        arch=context.arch,
        sdk=context.sdk,
        rename=context.rename,
        python_mode=context.python_mode,
        word_renames=dict(context.word_renames),
        files={
            file.new_path: {
                "source": file.source.path,
                "source_sha256": digest(source_bytes(file)),
                "sha256": digest(encoded(file)),
            }
            for file in port.files
            if file.source.text is not None
        },
    )


def write_state(folder: Path, manifest: Manifest, base: dict[str, bytes]) -> None:
    """Write the manifest and the base texts that a later sync merges against."""
    state = folder / STATE_FOLDER
    state.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".lakh-", dir=state)
    os.close(handle)
    try:
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(base):
                archive.writestr(zipfile.ZipInfo(path), base[path], zipfile.ZIP_DEFLATED)
        Path(name).replace(state / BASE)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    write_atomically(state / MANIFEST, manifest.to_json().encode())


def read_base(folder: Path) -> dict[str, bytes]:
    """The texts as the last run wrote them."""
    path = folder / STATE_FOLDER / BASE
    if not path.is_file():
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile as error:
        raise SpecError(
            Problem(where=str(path), found=str(error), accepted="the archive that this tool wrote")
        ) from error


def write_folder(port: Port, out: Path) -> int:
    """Write the whole port into a new folder and return the number of files written.

    Raises:
        RequestError: the folder is inside the source or the other way round, or holds something
    """
    root = port.inventory.root.resolve()
    target = out.resolve()
    if target == root or target.is_relative_to(root) or root.is_relative_to(target):
        raise RequestError(
            Problem(
                where="--out", found=str(out), accepted="a folder outside the source", hint="Use --in-place for that."
            )
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        hint = "Use `lakh port sync` to bring an earlier port up to date."
        raise RequestError(
            Problem(where="--out", found=f"{out} holds something", accepted="a new or empty folder", hint=hint)
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=f".{target.name}.lakh-", dir=target.parent))
    try:
        base: dict[str, bytes] = {}
        for file in port.files:
            full = root / file.source.path
            destination = stage / file.new_path
            destination.parent.mkdir(parents=True, exist_ok=True)
            if file.source.text is None:
                if file.source.skip != "unreadable":
                    shutil.copyfile(full, destination)
                    destination.chmod(full.stat().st_mode & 0o777 | 0o200)
                continue
            data = encoded(file)
            destination.write_bytes(data)
            destination.chmod(full.stat().st_mode & 0o777 | 0o200)
            base[file.new_path] = data
        write_state(stage, manifest_of(port, source=root), base)
        stage.chmod(0o755)
        if out.exists():
            out.rmdir()
        stage.replace(target)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    return len(port.files)


def write_in_place(port: Port, *, allow_dirty: bool = False) -> Path:
    """Replace the changed files where they are and return the folder of their backup.

    Raises:
        CouldNotError: the folder is a git work tree with changes
    """
    root = port.inventory.root
    if not allow_dirty:
        refuse_dirty(root)
    changed = [file for file in port.files if file.is_changed]
    state = root / STATE_FOLDER
    number = 1 + sum(1 for _ in (state / "backup").glob("*")) if (state / "backup").is_dir() else 1
    backup = state / "backup" / f"{number:04d}"
    stage = Path(tempfile.mkdtemp(prefix=".lakh-", dir=root))
    try:
        for file in changed:
            staged = stage / file.new_path
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_bytes(encoded(file))
            staged.chmod((root / file.source.path).stat().st_mode & 0o777 | 0o200)
            kept = backup / file.source.path
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file.source.path, kept)
        with interrupts_held():
            for file in changed:
                destination = root / file.new_path
                destination.parent.mkdir(parents=True, exist_ok=True)
                (stage / file.new_path).replace(destination)
                if file.new_path != file.source.path:
                    (root / file.source.path).unlink()
            write_state(root, manifest_of(port, source=root), {file.new_path: encoded(file) for file in changed})
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return backup


def refuse_dirty(root: Path) -> None:
    """CouldNotError where git sees changes under the folder that are not committed."""
    run = subprocess.run(
        ["git", "-C", str(root), "status", "--porcelain", "--", "."], capture_output=True, text=True, check=False
    )
    lines = [line for line in run.stdout.splitlines() if f"{STATE_FOLDER}/" not in line]
    if run.returncode == 0 and lines:
        raise CouldNotError(
            f"{root}: git sees {len(lines)} change(s) that are not committed, the first one {lines[0].strip()!r}; "
            "commit or stash them first"
        )


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while renames are under way; it is raised afterwards."""
    pending: list[int] = []
    try:
        old = signal.signal(signal.SIGINT, lambda number, _frame: pending.append(number))
    except ValueError:  # not the main thread: nobody can interrupt it that way
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
    if pending:
        raise KeyboardInterrupt


def unified_diff(port: Port) -> Iterator[str]:
    """The changes as one patch that `git apply` and `patch -p1` accept."""
    for file in port.files:
        if not file.is_changed or file.source.text is None:
            continue
        old, new = file.source.text, file.result.text
        if file.new_path != file.source.path:
            yield f"diff --git a/{file.source.path} b/{file.new_path}\n"
            yield f"rename from {file.source.path}\nrename to {file.new_path}\n"
        lines = difflib.unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            f"a/{file.source.path}",
            f"b/{file.new_path}",
        )
        for line in lines:
            yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
