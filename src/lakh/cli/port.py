"""`lakh port`: will my code move to MUSA, and what is left? Parses, calls the Python API, formats."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lakh import __version__
from lakh.errors import CouldNotError, LakhError, Problem, RequestError
from lakh.port.baseline import new_findings, write_baseline
from lakh.port.check import check_folder
from lakh.port.codes import CODES
from lakh.port.findings import Finding, explain
from lakh.port.html import report
from lakh.port.output import read_manifest, unified_diff, write_folder, write_in_place
from lakh.port.project import Port, port
from lakh.port.summary import VERDICT_MEANING, finding_json, module_json, sarif, summarise, use_json
from lakh.port.sync import sync as sync_folder

app = typer.Typer(
    name="port",
    help="Move a CUDA code base to MUSA: assess, translate, check, keep in step, explain.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

_out = Console()
_err = Console(stderr=True)

Arch = Annotated[Literal["mp_22", "mp_31"], typer.Option("--arch", help="Target: mp_22 (S4000) or mp_31 (S5000).")]
Sdk = Annotated[Literal["4.3", "5.x"], typer.Option("--sdk", help="Target SDK.")]
Rename = Annotated[
    Literal["auto", "keep", "rename"],
    typer.Option(
        "--rename", help="The project's own cuda words: keep them, rename them, or let the tool choose from evidence."
    ),
]
PythonMode = Annotated[
    Literal["torch_musa", "torchada"],
    typer.Option("--python", help="Native torch_musa, or cuda names through torchada."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object with schema, inputs, result and evidence.")]
Maps = Annotated[
    list[str] | None, typer.Option("--map", help="CSV with further mappings; may be given more than once.")
]
EVIDENCE = {
    "names": "api-map and python-map of 2026-11-30: vendor tables and ports, public MUSA code; a source a row",
    "hardware": "nothing was run on MUSA hardware",
    "effort": "estimate: lines per finding kind, see `lakh port explain CODE`",
}


def _fail(error: LakhError) -> NoReturn:
    _err.print(f"[bold red]error[/]: {_plain(str(error))}", soft_wrap=True)
    raise typer.Exit(error.exit_code)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


class _Bar:
    """A progress bar that appears after two seconds, on the error stream of a terminal only."""

    def __init__(self, *, quiet: bool) -> None:
        self._start = time.monotonic()
        self._quiet = quiet or not sys.stderr.isatty()
        self._progress: Progress | None = None
        self._task: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self._quiet:
            return
        if self._progress is None:
            if time.monotonic() - self._start < 2:
                return
            columns = (TextColumn("files"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=_err, transient=True)
            self._progress.start()
            self._task = self._progress.add_task("files", total=total)
        self._progress.update(self._task, completed=done)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


def _run(call: Callable[[_Bar], Any], *, quiet: bool) -> Any:
    bar = _Bar(quiet=quiet)
    try:
        return call(bar)
    except LakhError as error:
        bar.close()
        _fail(error)
    except KeyboardInterrupt:
        bar.close()
        _err.print("interrupted; nothing half-written is left")
        raise typer.Exit(130) from None
    finally:
        bar.close()


def _print_json(schema: str, inputs: dict[str, Any], result: dict[str, Any]) -> None:
    body = {"schema": schema, "inputs": inputs, "result": result, "evidence": EVIDENCE}
    sys.stdout.write(json.dumps(body, indent=1, ensure_ascii=True) + "\n")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise CouldNotError(f"{path}: {error.strerror or error}") from error


def _result(found: Port) -> dict[str, Any]:
    whole, modules = summarise(found)
    return {
        "policy": {
            "rename": found.decision.rename,
            "chosen_by": found.decision.chosen_by,
            "reasons": list(found.decision.reasons),
            "word_renames": dict(found.decision.word_renames),
        },
        "summary": module_json(whole),
        "modules": [module_json(row) for row in modules],
        "findings": [finding_json(row) for row in found.findings],
    }


@app.command()
def assess(
    path: Annotated[Path, typer.Argument(help="Folder or file.")],
    arch: Arch = "mp_31",
    sdk: Sdk = "5.x",
    rename: Rename = "auto",
    python_mode: PythonMode = "torch_musa",
    html: Annotated[Path | None, typer.Option(help="Write a report as one HTML file.")] = None,
    sarif_path: Annotated[Path | None, typer.Option("--sarif", help="Write SARIF 2.1.0 for editors and CI.")] = None,
    baseline: Annotated[Path | None, typer.Option(help="Fail (exit 1) on findings beyond this baseline.")] = None,
    write_baseline_path: Annotated[
        Path | None, typer.Option("--write-baseline", help="Write the findings of today as a baseline.")
    ] = None,
    maps: Maps = None,
    as_json: Json = False,
) -> None:
    """List each use of CUDA, the hazards, an estimate of the work and a verdict. Nothing is written.

    Example: `lakh port assess src/ --arch mp_22 --html report.html`
    """

    def call(bar: _Bar) -> None:
        found = port(
            path,
            arch=arch,
            sdk=sdk,
            rename=None if rename == "auto" else rename,
            python_mode=python_mode,
            added_maps=tuple(maps or ()),
            # A report shows before and after, so that it needs the translation; it is not written anywhere else.
            change=html is not None,
            progress=bar,
        )
        bar.close()
        if html is not None:
            steps = {
                "assessment": "done on every file",
                "translation": "previewed here; not written",
                "check": "not run (lakh port translate, then lakh port check)",
                "MUSA hardware": "not run",
            }
            _write(html, report(found, title=path.resolve().name, verified=steps, version=__version__))
        if sarif_path is not None:
            _write(sarif_path, json.dumps(sarif(found.findings, version=__version__), indent=1) + "\n")
        if write_baseline_path is not None:
            count = write_baseline(write_baseline_path, found.findings)
            _err.print(f"wrote {count} finding(s) to {write_baseline_path}")
        fresh = new_findings(baseline, found.findings) if baseline is not None else []
        if as_json:
            result = _result(found)
            result["uses"] = [use_json(use) for file in found.files for use in file.result.uses]
            if baseline is not None:
                result["beyond_baseline"] = [finding_json(row) for row in fresh]
            _print_json(
                "lakh.port.assess/1", {"path": str(path), "arch": arch, "sdk": sdk, "python": python_mode}, result
            )
        else:
            _show(found)
        if fresh:
            _err.print(f"{len(fresh)} finding(s) beyond the baseline:")
            _list(fresh, console=_err)
            raise typer.Exit(1)

    _run(call, quiet=as_json)


def _show(found: Port) -> None:
    whole, modules = summarise(found)
    table = Table(title=f"{found.inventory.root.resolve().name} on {found.context.arch}, SDK {found.context.sdk}")
    for column in ("module", "files", "lines", "uses", "errors", "warnings", "work left (lines)", "verdict"):
        table.add_column(column, justify="left" if column in ("module", "verdict") else "right")
    shown = modules if len(modules) > 1 else []
    for row in [*shown, whole]:
        severities = row.finding_count_by_severity
        table.add_row(
            _plain(row.name),
            f"{row.file_count:,}",
            f"{row.line_count:,}",
            f"{row.use_count:,}",
            f"{severities['error']:,}",
            f"{severities['warning']:,}",
            f"~{row.effort_lines:,.0f}",
            row.verdict,
        )
    _out.print(table)
    _out.print(f"{whole.verdict}: {VERDICT_MEANING[whole.verdict]}.")
    by_status = ", ".join(f"{status} {count:,}" for status, count in whole.use_count_by_status.items())
    _out.print(f"CUDA names by status: {by_status}")
    _out.print(f"Own cuda words: {found.decision.rename} (chosen by the {found.decision.chosen_by})")
    for reason in found.decision.reasons:
        _out.print(f"  - {_plain(reason)}", soft_wrap=True)
    counted = Counter(row.code for row in found.findings)
    for code in sorted(counted):
        _out.print(
            f"[{_colour(CODES[code].severity)}]{code}[/] {counted[code]:>6,}  {_plain(CODES[code].title)}",
            soft_wrap=True,
        )


def _colour(severity: str) -> str:
    return {"error": "red", "warning": "yellow"}.get(severity, "blue")


def _list(findings: Iterable[Finding], *, console: Console, most: int = 200) -> None:
    rows = list(findings)
    for row in rows[:most]:
        place = f"{row.path}:{row.line}"
        console.print(
            f"{_plain(place)}: [{_colour(row.severity)}]{row.severity} {row.code}[/] {_plain(row.message)}",
            soft_wrap=True,
            highlight=False,
        )
    if len(rows) > most:
        console.print(f"... {len(rows) - most:,} more (--json lists all)")


@app.command()
def translate(
    path: Annotated[Path, typer.Argument(help="Folder or file.")],
    out: Annotated[Path | None, typer.Option(help="Write the port into this new folder.")] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace files where they are; a backup is kept.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print a patch and write nothing.")] = False,
    allow_dirty: Annotated[bool, typer.Option("--allow-dirty", help="In place although git sees changes.")] = False,
    arch: Arch = "mp_31",
    sdk: Sdk = "5.x",
    rename: Rename = "auto",
    python_mode: PythonMode = "torch_musa",
    html: Annotated[Path | None, typer.Option(help="Write a report as one HTML file.")] = None,
    maps: Maps = None,
    as_json: Json = False,
) -> None:
    """Translate C, C++, CUDA, Python and build files. The input stays as it is unless --in-place is given.

    Example: `lakh port translate src/ --out ../src-musa`
    """

    def call(bar: _Bar) -> None:
        if (out is not None) + in_place + diff != 1:
            given = [name for name, value in (("--out", out), ("--in-place", in_place), ("--diff", diff)) if value]
            raise RequestError(
                Problem(
                    where="lakh port translate",
                    found=given or None,
                    accepted="exactly one of --out DIR, --in-place, --diff",
                )
            )
        if in_place and path.is_file():
            raise RequestError(Problem(where="--in-place", found=str(path), accepted="a folder"))
        choice = None if rename == "auto" else rename
        words = None
        if (path / ".lakh-port").is_dir():
            # A port is being translated again: the words and the policy of its first run still hold.
            earlier = read_manifest(path)
            words = earlier.word_renames
            choice = choice or ("rename" if earlier.rename == "rename" else "keep")
        found = port(
            path,
            arch=arch,
            sdk=sdk,
            rename=choice,
            python_mode=python_mode,
            added_maps=tuple(maps or ()),
            word_renames=words,
            progress=bar,
        )
        bar.close()
        inputs = {
            "path": str(path),
            "arch": arch,
            "sdk": sdk,
            "python": python_mode,
            "out": None if out is None else str(out),
        }
        changed = [file for file in found.files if file.is_changed]
        if diff:
            if as_json:
                result = _result(found)
                result["diff"] = "".join(unified_diff(found))
                _print_json("lakh.port.translate/1", inputs, result)
            else:
                sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
                sys.stdout.writelines(unified_diff(found))
            return
        backup = None
        if out is not None:
            written = write_folder(found, out)
        else:
            written = len(changed)
            backup = write_in_place(found, allow_dirty=allow_dirty) if changed else None
        if html is not None:
            steps = {
                "translation": f"{len(changed)} of {len(found.files)} files changed",
                "check": "not run yet (lakh port check)",
                "MUSA hardware": "not run",
            }
            _write(html, report(found, title=path.resolve().name, verified=steps, version=__version__))
        if as_json:
            result = _result(found)
            result["written_file_count"] = written
            result["changed_files"] = [
                {
                    "path": file.source.path,
                    "new_path": file.new_path,
                    "changed_line_count": file.result.changed_line_count,
                }
                for file in changed
            ]
            result["backup"] = None if backup is None else str(backup)
            _print_json("lakh.port.translate/1", inputs, result)
            return
        _show(found)
        where = (
            f"written to {out}"
            if out is not None
            else f"changed in place, backup in {backup}"
            if backup
            else "nothing to change"
        )
        _out.print(f"{len(changed):,} of {len(found.files):,} files changed; {where}", soft_wrap=True)

    _run(call, quiet=as_json or diff)


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="A folder that `lakh port translate --out` wrote.")],
    original: Annotated[
        Path | None, typer.Option(help="The source; the manifest of the port names it otherwise.")
    ] = None,
    compile_files: Annotated[
        bool, typer.Option("--compile/--no-compile", help="Ask clang or nvcc as well, where they are installed.")
    ] = True,
    cuda_include: Annotated[
        Path | None, typer.Option("--cuda-include", help="Where the CUDA headers (before 13.0) for clang are.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Verify a port without a GPU: syntax, names, guards, asm, includes, calls, and a compiler where there is one.

    Example: `lakh port check ../src-musa`
    """

    def call(bar: _Bar) -> None:
        checked = check_folder(
            folder, original=original, use_compiler=compile_files, cuda_folder=cuda_include, progress=bar
        )
        bar.close()
        result = {
            "is_clean": checked.is_clean,
            "file_count": checked.file_count,
            "pair_count": checked.pair_count,
            "steps": checked.steps,
            "findings": [finding_json(row) for row in checked.findings],
        }
        if as_json:
            _print_json("lakh.port.check/1", {"folder": str(folder)}, result)
        else:
            for step, done in checked.steps.items():
                _out.print(f"{step}: {_plain(done)}", soft_wrap=True)
            _list(checked.findings, console=_out)
            counted = Counter(row.severity for row in checked.findings)
            _out.print(
                f"{checked.pair_count:,} files checked against their original: "
                f"{counted['error']} error(s), {counted['warning']} warning(s)"
            )
        if not checked.is_clean:
            raise typer.Exit(1)

    _run(call, quiet=as_json)


@app.command()
def sync(
    source: Annotated[Path, typer.Argument(help="The upstream code after its update.")],
    folder: Annotated[Path, typer.Argument(help="The port to bring up to date.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done and write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Re-apply a port after an upstream update: only changed files, hand edits kept by a three-way merge.

    Example: `lakh port sync src/ ../src-musa`
    """

    def call(bar: _Bar) -> None:
        done = sync_folder(source, folder, dry_run=dry_run, progress=bar)
        bar.close()
        conflicts = [path for path, action in done.actions.items() if action == "conflict"]
        if as_json:
            result = {
                "actions": done.actions,
                "unchanged_count": done.unchanged_count,
                "conflicts": conflicts,
                "findings": [finding_json(row) for row in done.findings],
            }
            _print_json("lakh.port.sync/1", {"source": str(source), "folder": str(folder), "dry_run": dry_run}, result)
        else:
            for path, action in sorted(done.actions.items()):
                _out.print(f"{action:>9}  {_plain(path)}", soft_wrap=True, highlight=False)
            _list(done.findings, console=_out)
            _out.print(
                f"{len(done.actions):,} files {'to change' if dry_run else 'handled'}, "
                f"{done.unchanged_count:,} as they were"
            )
        if conflicts:
            raise typer.Exit(1)

    _run(call, quiet=as_json)


@app.command("explain")
def explain_command(
    code: Annotated[str | None, typer.Argument(help="A finding code; without one all are listed.")] = None,
    as_json: Json = False,
) -> None:
    """Say what a finding means and what to do about it.

    Example: `lakh port explain LP101`
    """

    def call(_bar: _Bar) -> None:
        rows = [explain(code)] if code is not None else list(CODES.values())
        if as_json:
            fields = ("code", "severity", "title", "explanation", "suggestion", "effort_lines")
            result = {"codes": [{name: getattr(row, name) for name in fields} for row in rows]}
            _print_json("lakh.port.explain/1", {"code": code}, result)
            return
        if code is None:
            for row in rows:
                _out.print(f"[{_colour(row.severity)}]{row.code}[/]  {_plain(row.title)}", soft_wrap=True)
            return
        row = rows[0]
        _out.print(
            f"[bold]{row.code}[/] [{_colour(row.severity)}]{row.severity}[/]: {_plain(row.title)}", soft_wrap=True
        )
        _out.print(f"\n{_plain(row.explanation)}\n\nWhat to do: {_plain(row.suggestion)}", soft_wrap=True)

    _run(call, quiet=True)


if __name__ == "__main__":
    app()
