"""One HTML file, no network: what was found, what was changed, what is left, and what was verified and how."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape

from lakh.port.codes import CODES
from lakh.port.findings import Finding
from lakh.port.project import Port, PortedFile
from lakh.port.summary import VERDICT_MEANING, ModuleSummary, effort_lines, summarise

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--soft:#f3f5f8;--line:#d5dae1;--error:#c62828;--warning:#b26a00;--note:#2e6da4;
--add:#e3f6e5;--del:#fde7e7}
@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e4e7eb;--soft:#20252b;--line:#39414b;--error:#ff7b72;--warning:#e3b341;
--note:#79b8ff;--add:#143820;--del:#421c1f}}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1200px;padding:24px;background:var(--bg);color:var(--fg)}
h1{font-size:26px}h2{margin-top:36px;border-bottom:1px solid var(--line);padding-bottom:4px}
table{border-collapse:collapse;width:100%;font-size:14px}th,td{text-align:left;padding:4px 10px;border-bottom:1px solid var(--line);
vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
code,pre{font:12.5px/1.45 ui-monospace,monospace}.card{display:inline-block;background:var(--soft);border:1px solid var(--line);
border-radius:8px;padding:10px 16px;margin:4px 8px 4px 0}.card b{display:block;font-size:22px}
.error{color:var(--error)}.warning{color:var(--warning)}.note{color:var(--note)}
details{border:1px solid var(--line);border-radius:8px;margin:8px 0;background:var(--soft)}summary{cursor:pointer;padding:8px 12px}
details>div{padding:0 12px 12px;overflow-x:auto}
.diff{table-layout:fixed}.diff td{border:0;padding:0 6px;white-space:pre-wrap;word-break:break-all;font:12px/1.4 ui-monospace,monospace}
.diff td.l{width:44px;text-align:right;opacity:.6}.add{background:var(--add)}.del{background:var(--del)}
"""
_MOST_ROWS = 2000
_MOST_DIFF_LINES = 400


def report(port: Port, *, title: str, verified: Mapping[str, str], version: str) -> str:
    """The report of one run.

    Args:
        port: the run
        title: name of the code base
        verified: step to what came of it; a step that was not run says so
        version: of the tool
    """
    whole, modules = summarise(port)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{escape(title)}: port to MUSA</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}: port to MUSA</h1>",
        f"<p>Target {escape(port.context.arch)}, SDK {escape(port.context.sdk)}. Lakh {escape(version)}. "
        "Nothing was run on MUSA hardware.</p>",
        *_cards(whole),
        "<h2>Policy for the project's own names</h2>",
        f"<p><b>{escape(port.decision.rename)}</b>, chosen by the {escape(port.decision.chosen_by)}:</p><ul>",
        *(f"<li>{escape(reason)}</li>" for reason in port.decision.reasons),
        "</ul>",
        "<h2>Readiness by module</h2>",
        *_modules(modules),
        "<h2>Findings</h2>",
        *_findings(port.findings),
        "<h2>Coverage: CUDA names by status</h2>",
        *_coverage(port),
        "<h2>Remaining work by file</h2>",
        *_remaining(port),
        "<h2>What was verified, and how</h2><table><tr><th>Step</th><th>Result</th></tr>",
        *(f"<tr><td>{escape(step)}</td><td>{escape(result)}</td></tr>" for step, result in verified.items()),
        "</table>",
        "<h2>Before and after</h2>",
        *_diffs(port),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _cards(whole: ModuleSummary) -> Iterator[str]:
    severities = whole.finding_count_by_severity
    cards = [
        ("verdict", whole.verdict),
        ("files", f"{whole.file_count:,}"),
        ("lines", f"{whole.line_count:,}"),
        ("uses of CUDA", f"{whole.use_count:,}"),
        ("lines changed", f"{whole.changed_line_count:,}"),
        ("errors", f"{severities['error']:,}"),
        ("warnings", f"{severities['warning']:,}"),
        ("lines of work left (estimate)", f"{whole.effort_lines:,.0f}"),
    ]
    for name, value in cards:
        yield f"<div class='card'>{escape(name)}<b>{escape(value)}</b></div>"
    yield f"<p>{escape(whole.verdict)}: {escape(VERDICT_MEANING[whole.verdict])}.</p>"


def _modules(modules: list[ModuleSummary]) -> Iterator[str]:
    yield (
        "<table><tr><th>Module</th><th class=n>Files</th><th class=n>Lines</th><th class=n>Uses</th><th class=n>Changed</th>"
        "<th class=n>Errors</th><th class=n>Warnings</th><th class=n>Work left</th><th>Verdict</th></tr>"
    )
    for row in modules:
        numbers = (
            row.file_count,
            row.line_count,
            row.use_count,
            row.changed_line_count,
            row.finding_count_by_severity["error"],
            row.finding_count_by_severity["warning"],
        )
        cells = "".join(f"<td class=n>{number:,}</td>" for number in numbers)
        yield (
            f"<tr><td>{escape(row.name)}</td>{cells}<td class=n>{row.effort_lines:,.0f}</td>"
            f"<td title='{escape(VERDICT_MEANING[row.verdict], quote=True)}'>{escape(row.verdict)}</td></tr>"
        )
    yield "</table>"


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    groups: dict[str, list[Finding]] = {}
    for row in findings:
        groups.setdefault(row.code, []).append(row)
    order = {"error": 0, "warning": 1, "note": 2}
    worst = {code: min(rows, key=lambda row: order[row.severity]).severity for code, rows in groups.items()}
    for code, rows in sorted(groups.items(), key=lambda item: (order[worst[item[0]]], item[0])):
        about = CODES[code]
        yield (
            f"<details><summary><span class='{worst[code]}'>{worst[code]}</span> <b>{code}</b> {escape(about.title)} "
            f"({len(rows):,})</summary><div><p>{escape(about.explanation)}</p><p><i>{escape(about.suggestion)}</i></p><table>"
        )
        for row in rows[:_MOST_ROWS]:
            yield f"<tr><td><code>{escape(row.path)}:{row.line}</code></td><td>{escape(row.message)}</td></tr>"
        if len(rows) > _MOST_ROWS:
            yield f"<tr><td colspan=2>... {len(rows) - _MOST_ROWS:,} more in the JSON</td></tr>"
        yield "</table></div></details>"


def _coverage(port: Port) -> Iterator[str]:
    counted: Counter[tuple[str, str]] = Counter(
        (use.kind, use.status) for file in port.files for use in file.result.uses
    )
    statuses = ("same-semantics", "differs", "unknown", "unsupported")
    yield "<table><tr><th>Kind</th>" + "".join(f"<th class=n>{status}</th>" for status in statuses) + "</tr>"
    for kind in sorted({kind for kind, _ in counted}):
        cells = "".join(f"<td class=n>{counted[kind, status]:,}</td>" for status in statuses)
        yield f"<tr><td>{escape(kind)}</td>{cells}</tr>"
    yield "</table>"


def _remaining(port: Port) -> Iterator[str]:
    by_path: dict[str, list[Finding]] = {}
    for row in port.findings:
        if row.severity != "note":
            by_path.setdefault(row.path, []).append(row)
    rows = sorted(by_path.items(), key=lambda item: -effort_lines(item[1]))
    yield "<table><tr><th>File</th><th class=n>Errors</th><th class=n>Warnings</th><th class=n>Lines of work</th><th>Codes</th></tr>"
    for path, findings in rows[:_MOST_ROWS]:
        severities = Counter(row.severity for row in findings)
        codes = ", ".join(f"{code} x{count}" for code, count in Counter(row.code for row in findings).most_common(8))
        yield (
            f"<tr><td><code>{escape(path)}</code></td><td class=n>{severities['error']}</td><td class=n>{severities['warning']}</td>"
            f"<td class=n>{effort_lines(findings):,.0f}</td><td>{escape(codes)}</td></tr>"
        )
    yield "</table>"


def _diffs(port: Port) -> Iterator[str]:
    budget = 20_000
    for file in port.files:
        if not file.is_changed or file.source.text is None:
            continue
        lines = list(_side_by_side(file))[: _MOST_DIFF_LINES if budget > 0 else 0]
        budget -= len(lines)
        name = file.source.path if file.new_path == file.source.path else f"{file.source.path} -> {file.new_path}"
        shown = "".join(lines) or "<tr><td>not shown here; see the translated file</td></tr>"
        yield (
            f"<details><summary><code>{escape(name)}</code> ({file.result.changed_line_count:,} lines changed)</summary>"
            f"<div><table class=diff>{shown}</table></div></details>"
        )


def _side_by_side(file: PortedFile) -> Iterator[str]:
    before, after = (file.source.text or "").splitlines(), file.result.text.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=True)
    for op, i1, i2, j1, j2 in matcher.get_opcodes():
        if op == "equal":
            continue
        for offset in range(max(i2 - i1, j2 - j1)):
            i, j = i1 + offset, j1 + offset
            left = (str(i + 1), escape(before[i])) if i < i2 else ("", "")
            right = (str(j + 1), escape(after[j])) if j < j2 else ("", "")
            yield (
                f"<tr><td class=l>{left[0]}</td><td class=del>{left[1]}</td><td class=l>{right[0]}</td><td class=add>{right[1]}</td></tr>"
            )
