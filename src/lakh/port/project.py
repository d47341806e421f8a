"""One run over a code base: walk, gather evidence, choose the policy, translate every file on all cores."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from lakh.port import build_files, cpp, python_code
from lakh.port.cpp.headers import rename_path
from lakh.port.cpp.words import word_table
from lakh.port.findings import (
    Arch,
    Finding,
    PortContext,
    PythonMode,
    RenamePolicy,
    Sdk,
    Translation,
    finding,
)
from lakh.port.maps import Maps
from lakh.port.policy import Decision, FileEvidence, decide, gather
from lakh.port.project_names import own_python_and_build_names
from lakh.port.walk import Inventory, Language, SourceFile, walk

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")

Progress = Callable[[int, int], None]
"""Called with files done and files in all."""

SMALL = 60
"""Files; fewer are translated in this process, since starting workers takes longer."""
_CHUNK_BYTES = 400_000


@dataclass(frozen=True, kw_only=True, slots=True)
class PortedFile:
    """One file after the run."""

    source: SourceFile
    new_path: str
    result: Translation

    @property
    def is_changed(self) -> bool:
        """True where the text or the path differs."""
        return self.source.text is not None and (
            self.result.text != self.source.text or self.new_path != self.source.path
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Port:
    """What one run made of a code base."""

    inventory: Inventory
    decision: Decision
    context: PortContext
    files: tuple[PortedFile, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of the walk and of every file, by path and line."""
        rows = [*self.inventory.findings, *(row for file in self.files for row in file.result.findings)]
        return tuple(sorted(rows, key=lambda row: (row.path, row.line, row.column, row.code)))


def port(
    root: Path,
    *,
    arch: Arch = "mp_31",
    sdk: Sdk = "5.x",
    rename: RenamePolicy | None = None,
    python_mode: PythonMode = "torch_musa",
    added_maps: tuple[str, ...] = (),
    change: bool = True,
    word_renames: Mapping[str, str] | None = None,
    only: frozenset[str] | None = None,
    worker_count: int | None = None,
    progress: Progress | None = None,
) -> Port:
    """Translate (or, with `change=False`, assess) a code base.

    Args:
        root: folder or file; it is only read
        arch: target architecture
        sdk: target SDK
        rename: the policy for the project's own words; None lets the tool choose
        python_mode: native torch_musa, or cuda names through torchada
        added_maps: CSV files with further rows of the API map
        change: False leaves every text alone
        word_renames: words of an earlier run, so that a second run follows it
        only: paths to translate; None is all (the policy still sees all)
        worker_count: processes; None is one a core
        progress: told how many files are done

    Raises:
        RequestError: `root` is not there, or an added map is wrong
    """
    maps = Maps.load(added_maps)
    inventory = walk(root, build_file=build_files.is_build_file)
    files = inventory.files
    workers = worker_count or os.cpu_count() or 1
    with _Pool(workers if len(files) > SMALL else 1, added_maps) as pool:
        cxx = [file for file in files if file.language == "cxx" and file.text is not None]
        evidence = dict(
            zip((file.path for file in cxx), pool.run(_gather, [file.text or "" for file in cxx]), strict=True)
        )
        decision = decide([file.path for file in files], evidence, maps, rename)
        if word_renames is not None:
            decision = replace(decision, word_renames=dict(word_renames))
        context = make_context(inventory, evidence, decision, maps, arch=arch, sdk=sdk, python_mode=python_mode)
        other = {
            file.path: file.text for file in files if file.text is not None and file.language in ("python", "build")
        }
        context = own_python_and_build_names(other, context)
        todo = [file for file in files if file.text is not None and (only is None or file.path in only)]
        pool.context = context
        jobs = [(file.path, file.language, file.text or "", change) for file in todo]
        done: dict[str, Translation] = {}
        for file, result in zip(todo, pool.run(_translate, jobs), strict=True):
            done[file.path] = result
            if progress is not None:
                progress(len(done), len(todo))
    ported = tuple(
        PortedFile(
            source=file,
            new_path=context.file_renames.get(file.path, file.path),
            result=done.get(file.path) or Translation(text=file.text or ""),
        )
        for file in files
    )
    return Port(inventory=inventory, decision=decision, context=context, files=ported)


def make_context(
    inventory: Inventory,
    evidence: Mapping[str, FileEvidence],
    decision: Decision,
    maps: Maps,
    *,
    arch: Arch = "mp_31",
    sdk: Sdk = "5.x",
    python_mode: PythonMode = "torch_musa",
) -> PortContext:
    """The context that every file of one run shares."""
    own = frozenset().union(*(row.own_names for row in evidence.values())) if evidence else frozenset()
    aliases: dict[str, str] = {}
    for row in evidence.values():
        aliases.update(row.aliases)
    context = PortContext(
        arch=arch,
        sdk=sdk,
        rename=decision.rename,
        python_mode=python_mode,
        own_names=own,
        own_files=inventory.paths,
        own_modules=python_modules(inventory.paths),
        word_renames=decision.word_renames,
        guard_aliases=aliases,
        maps=maps,
    )
    words = word_table(maps, rename=decision.rename == "rename", own_names=own, word_renames=decision.word_renames)
    renames: dict[str, str] = {}
    taken = set(inventory.paths)
    for file in inventory.files:
        if file.text is None or file.language not in ("cxx", "build", "python"):
            continue
        new = rename_path(file.path, words) if file.language == "cxx" else _rename_folders(file.path, words.own)
        if new != file.path and new not in taken:
            renames[file.path] = new
            taken.add(new)
    return replace(context, file_renames=renames)


def _rename_folders(path: str, own: Callable[[str], str]) -> str:
    """Build files and Python files move with their folder and keep their name where tools look for it."""
    folder, slash, name = path.rpartition("/")
    new = "/".join(own(part) for part in folder.split("/")) + slash + name
    if name in ("CMakeLists.txt", "Makefile", "setup.py", "__init__.py", "BUILD", "BUILD.bazel") or "." not in name:
        return new
    return new[: len(new) - len(name)] + own(name)


def python_modules(paths: Iterable[str]) -> frozenset[str]:
    """Top-level names that Python files of the project can be imported by."""
    names = set()
    paths = list(paths)
    packages = {path.rpartition("/")[0] for path in paths if path.endswith("__init__.py")}
    for path in paths:
        if path.endswith(".py"):
            folder, _, name = path.rpartition("/")
            if folder not in packages:
                names.add(name.removesuffix(".py"))
    for folder in packages:
        parent, _, name = folder.rpartition("/")
        if parent not in packages:
            names.add(name)
    return frozenset(names - {""})


def translate_text(text: str, *, path: str, language: Language, context: PortContext, change: bool) -> Translation:
    """Translate one text of any language; a translator that fails leaves the text alone and says so."""
    if language == "other":
        return Translation(text=text)
    try:
        if language == "cxx":
            run = cpp.translate if change else cpp.assess
            return run(text, path=path, context=context)
        if language == "python":
            run = python_code.translate if change else python_code.assess
            return run(text, path=path, context=context)
        run = build_files.translate if change else build_files.assess
        return run(text, path=path, context=context)
    except Exception as error:
        message = f"The translator failed ({type(error).__name__}: {error}); the file is left as it is"
        return Translation(text=text, findings=(finding("LP509", path=path, line=1, message=message),))


_worker_maps: Maps | None = None
_worker_context: PortContext | None = None


def _start(added_maps: tuple[str, ...]) -> None:
    global _worker_maps  # noqa: PLW0603 a worker process has no other place for what it loads once
    _worker_maps = Maps.load(added_maps)


def _start_worker(added_maps: tuple[str, ...]) -> None:
    """In a worker, Ctrl-C belongs to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _start(added_maps)


def _gather(text: str) -> FileEvidence:
    if _worker_maps is None:
        raise RuntimeError("the worker was not started")
    return gather(text, _worker_maps)


def _set_context(context: PortContext) -> None:
    global _worker_context  # noqa: PLW0603
    _worker_context = context


def _translate(job: tuple[str, Language, str, bool]) -> Translation:
    if _worker_context is None:
        raise RuntimeError("the worker has no context")
    path, language, text, change = job
    return translate_text(text, path=path, language=language, context=_worker_context, change=change)


def _batch(call: Callable[[_Job], _Result], context: PortContext | None, jobs: list[_Job]) -> list[_Result]:
    if context is not None:
        _set_context(context)
    return [call(job) for job in jobs]


class _Pool:
    """Runs a function over jobs in order, in worker processes where there are several."""

    def __init__(self, worker_count: int, added_maps: tuple[str, ...]) -> None:
        self.context: PortContext | None = None
        self._added = added_maps
        self._executor: ProcessPoolExecutor | None = None
        if worker_count > 1:
            self._executor = ProcessPoolExecutor(worker_count, initializer=_start_worker, initargs=(added_maps,))

    def __enter__(self) -> _Pool:
        if self._executor is None:
            _start(self._added)
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def run(self, call: Callable[[_Job], _Result], jobs: Sequence[_Job]) -> Iterator[_Result]:
        if self._executor is None:
            if self.context is not None:
                _set_context(self.context)
            yield from map(call, jobs)
            return
        futures = [self._executor.submit(_batch, call, self.context, batch) for batch in _batches(jobs)]
        for future in futures:
            yield from future.result()


def _batches(jobs: Sequence[_Job]) -> Iterator[list[_Job]]:
    batch: list[_Job] = []
    size = 0
    for job in jobs:
        text = job if isinstance(job, str) else job[2] if isinstance(job, tuple) else ""
        batch.append(job)
        size += len(text)
        if size > _CHUNK_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
