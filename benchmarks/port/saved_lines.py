"""How much of the work of a port does a translation save? The "changed lines saved" measure on before/after pairs.

    changed = lines added + removed between the file before the port and the same file after it (by hand or vendor)
    left    = the same count between the translated file and the file after the port
    saved   = (changed - left) / changed

Both sides are compared without comments, blank lines and spacing. 1 means the translation is the port; 0 means that it
helped as much as leaving the file alone; below 0 the file had better been left alone. The measure tells likeness to one
port, not correctness.

A pair list is a CSV file with the columns set, cuda_repo, cuda_commit, cuda_path, musa_repo, musa_commit, musa_path and
kind, which is `cxx`, `py` or `cmake` (any build file). Repositories are git directories under one folder, named
`owner+name` or `owner+name/repo`.

    python benchmarks/port/saved_lines.py PAIRS.csv --repositories FOLDER --translator MODULE:FUNCTION [--kind py]

FUNCTION takes the files of one set, path to text, and returns path to translated text; files that it leaves out count
as untouched. Without --translator the files are scored as they are: 0 % by definition, a check on the pairs themselves.
"""

import argparse
import csv
import difflib
import importlib
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["cxx", "py", "cmake"]
Translate = Callable[[Mapping[str, str]], Mapping[str, str]]

TREE_SUFFIXES = (
    *(
        [
            ".py",
            ".toml",
            ".txt",
            ".cfg",
            ".cmake",
            ".mk",
            ".bazel",
            ".bzl",
            "CMakeLists.txt",
            "Makefile",
            "BUILD",
            ".in",
        ]
    ),
    *([".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl"]),
)
"""Files that belong to a project, for --whole-tree."""

_C_COMMENT = re.compile(
    r"""(?P<keep>R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
      | /\*.*?\*/ | //(?:\\\n|[^\n])*""",
    re.DOTALL | re.VERBOSE,
)
_HASH_COMMENT = re.compile(
    r"""(?P<keep>"(?:\\.|[^"\\])*" | \[(?P<fence>=*)\[.*?\](?P=fence)\])
      | \#\[(?P<block>=*)\[.*?\](?P=block)\] | \#[^\n]*""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One file before and after a port."""

    set_name: str
    kind: Kind
    cuda_repository: str
    cuda_commit: str
    cuda_path: str
    musa_repository: str
    musa_commit: str
    musa_path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The measure over one file or many: counts add up, ratios are taken at the end."""

    file_count: int = 0
    changed_line_count: int = 0
    left_line_count: int = 0
    exact_file_count: int = 0
    worse_file_count: int = 0

    @property
    def saved_ratio(self) -> float | None:
        """(changed - left) / changed; None where the port changed nothing."""
        if not self.changed_line_count:
            return None
        return (self.changed_line_count - self.left_line_count) / self.changed_line_count

    def __add__(self, other: "Score") -> "Score":
        return Score(
            file_count=self.file_count + other.file_count,
            changed_line_count=self.changed_line_count + other.changed_line_count,
            left_line_count=self.left_line_count + other.left_line_count,
            exact_file_count=self.exact_file_count + other.exact_file_count,
            worse_file_count=self.worse_file_count + other.worse_file_count,
        )


def code_lines(text: str, kind: Kind) -> list[str]:
    """Lines of code as the measure sees them: no comments, no spacing, no blank lines."""
    return [line for line in ("".join(line.split()) for line in _without_comments(text, kind).splitlines()) if line]


def changed_line_count(before: Sequence[str], after: Sequence[str]) -> int:
    """Lines removed plus lines added between two versions."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return len(before) + len(after) - 2 * sum(block.size for block in matcher.get_matching_blocks())


def score_file(before: str, after: str, translated: str, kind: Kind) -> Score:
    """Score one translated file against the port of the same file."""
    goal = code_lines(after, kind)
    changed = changed_line_count(code_lines(before, kind), goal)
    left = changed if translated == before else changed_line_count(code_lines(translated, kind), goal)
    return Score(
        file_count=1,
        changed_line_count=changed,
        left_line_count=left,
        exact_file_count=int(left == 0),
        worse_file_count=int(left > changed),
    )


def read_pairs(path: Path) -> list[Pair]:
    """Read a pair list."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    pairs = []
    for number, row in enumerate(rows, start=2):
        if row["kind"] not in get_args(Kind):
            raise ValueError(f"{path}:{number}: kind: found {row['kind']!r}; accepted: {', '.join(get_args(Kind))}")
        pairs.append(
            Pair(
                set_name=row["set"],
                kind=row["kind"],  # type: ignore[arg-type]  # checked above
                cuda_repository=row["cuda_repo"],
                cuda_commit=row["cuda_commit"],
                cuda_path=row["cuda_path"],
                musa_repository=row["musa_repo"],
                musa_commit=row["musa_commit"],
                musa_path=row["musa_path"],
            )
        )
    return pairs


def git_directory(folder: Path, repository: str) -> Path | None:
    """Where a repository lies under `folder`, or None."""
    base = folder / repository.replace("/", "+")
    return next((path for path in (base / "repo", base) if path.is_dir()), None)


def read_files(git_dir: Path, wanted: Iterable[tuple[str, str]]) -> Iterator[str | None]:
    """Text of each (commit, path) in order, None where there is no such file; bytes that are not UTF-8 survive."""
    with subprocess.Popen(
        ["git", "-C", str(git_dir), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("git cat-file gave no pipes")
        for commit, path in wanted:
            process.stdin.write(f"{commit}:{path}\n".encode())
            process.stdin.flush()
            header = process.stdout.readline().split()
            if len(header) != 3:
                yield None
                continue
            yield process.stdout.read(int(header[2]) + 1)[:-1].decode("utf-8", "surrogateescape")
        process.stdin.close()


def load_texts(pairs: Sequence[Pair], folder: Path) -> list[tuple[Pair, str, str]]:
    """Pairs with the text before and after; pairs whose repository or file is not here are left out."""
    sides: list[dict[int, str]] = []
    for side in ("cuda", "musa"):
        texts: dict[int, str] = {}
        by_repository: dict[str, list[int]] = {}
        for index, pair in enumerate(pairs):
            by_repository.setdefault(getattr(pair, f"{side}_repository"), []).append(index)
        for repository, indices in by_repository.items():
            git_dir = git_directory(folder, repository)
            if git_dir is None:
                continue
            wanted = [
                (getattr(pairs[index], f"{side}_commit"), getattr(pairs[index], f"{side}_path")) for index in indices
            ]
            found = read_files(git_dir, wanted)
            texts |= {index: text for index, text in zip(indices, found, strict=True) if text is not None}
        sides.append(texts)
    before, after = sides
    return [
        (pair, before[index], after[index]) for index, pair in enumerate(pairs) if index in before and index in after
    ]


def read_tree(git_dir: Path, commit: str, suffixes: Sequence[str]) -> dict[str, str]:
    """Every file of a commit whose name ends with one of `suffixes`."""
    listing = subprocess.run(
        ["git", "-C", str(git_dir), "ls-tree", "-r", "-z", "--name-only", commit], capture_output=True, check=True
    )
    paths = [
        path for path in listing.stdout.decode("utf-8", "surrogateescape").split("\0") if path.endswith(tuple(suffixes))
    ]
    found = read_files(git_dir, [(commit, path) for path in paths])
    return {path: text for path, text in zip(paths, found, strict=True) if text is not None}


def without_kept_originals(texts: Sequence[tuple[Pair, str, str]]) -> list[tuple[Pair, str, str]]:
    """Without the originals that a port keeps beside the ported file: the same source is paired twice, and this one did
    not change."""
    ported: dict[str, int] = {}
    for pair, _, _ in texts:
        ported[pair.cuda_path] = ported.get(pair.cuda_path, 0) + 1
    return [
        (pair, before, after)
        for pair, before, after in texts
        if ported[pair.cuda_path] == 1 or code_lines(before, pair.kind) != code_lines(after, pair.kind)
    ]


def score_set(
    texts: Sequence[tuple[Pair, str, str]], translate: Translate | None, tree: Mapping[str, str] | None = None
) -> dict[Pair, Score]:
    """Score the files of one set. The translator sees them together, so that it can choose the set's policy itself;
    with `tree` it sees the rest of the project too."""
    texts = without_kept_originals(texts)
    before = dict(tree or {}) | {pair.cuda_path: text for pair, text, _ in texts}
    translated = translate(before) if translate else {}
    return {
        pair: score_file(text, after, translated.get(pair.cuda_path, text), pair.kind) for pair, text, after in texts
    }


def _without_comments(text: str, kind: Kind) -> str:
    if kind == "cxx":
        return _C_COMMENT.sub(lambda match: match["keep"] or " ", text)
    if kind == "py":
        return _without_python_comments(text)
    return _HASH_COMMENT.sub(lambda match: match["keep"] or "", text)


def _without_python_comments(text: str) -> str:
    lines = text.splitlines(keepends=True)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column] + "\n"
    except (
        tokenize.TokenError,
        SyntaxError,
        IndexError,
    ):  # not Python 3: `#` starts a comment unless a quote comes before it
        return re.sub(r"""(?m)^([^"'#\n]*)#.*$""", r"\1", text)
    return "".join(lines)


def main() -> int:
    """Print the measure per set and kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--translator", metavar="MODULE:FUNCTION")
    parser.add_argument("--kind", choices=get_args(Kind), action="append")
    parser.add_argument("--set", dest="sets", action="append")
    parser.add_argument(
        "--whole-tree", action="store_true", help="show the translator the whole project, not the pairs only"
    )
    parser.add_argument("--files", action="store_true", help="print every file, the most lines left first")
    arguments = parser.parse_args()

    translate: Translate | None = None
    if arguments.translator:
        module, _, function = arguments.translator.partition(":")
        translate = getattr(importlib.import_module(module), function)
    pairs = [pair for pair in read_pairs(arguments.pairs) if not arguments.sets or pair.set_name in arguments.sets]
    texts = load_texts(pairs, arguments.repositories)
    missing = len(pairs) - len(texts)
    if missing:
        print(
            f"{missing} of {len(pairs)} pairs left out: repository or file not under {arguments.repositories}",
            file=sys.stderr,
        )

    totals: dict[tuple[str, str], Score] = {}
    for set_name in dict.fromkeys(pair.set_name for pair, _, _ in texts):
        members = [entry for entry in texts if entry[0].set_name == set_name]
        tree: dict[str, str] = {}
        if translate and arguments.whole_tree:
            for repository, commit in {(pair.cuda_repository, pair.cuda_commit) for pair, _, _ in members}:
                git_dir = git_directory(arguments.repositories, repository)
                if git_dir is not None:
                    tree |= read_tree(git_dir, commit, TREE_SUFFIXES)
        scores = score_set(members, translate, tree)
        shown = {pair: score for pair, score in scores.items() if not arguments.kind or pair.kind in arguments.kind}
        for pair, score in shown.items():
            for name in (set_name, "all"):
                totals[pair.kind, name] = totals.get((pair.kind, name), Score()) + score
        if arguments.files:
            for pair, score in sorted(shown.items(), key=lambda entry: (-entry[1].left_line_count, entry[0].cuda_path)):
                mark = "  worse" if score.worse_file_count else ""
                counts = f"{score.changed_line_count:7,} changed {score.left_line_count:7,} left"
                print(f"{counts}  {set_name} {pair.cuda_path}{mark}")
    print(f"{'kind':6}{'set':24}{'files':>7}{'changed':>9}{'left':>9}{'saved':>8}{'exact':>7}{'worse':>7}")
    for (kind, name), score in sorted(totals.items(), key=lambda entry: (entry[0][0], entry[0][1] == "all")):
        saved = "-" if score.saved_ratio is None else f"{score.saved_ratio:.1%}"
        print(
            f"{kind:6}{name:24}{score.file_count:7,}{score.changed_line_count:9,}{score.left_line_count:9,}{saved:>8}"
            f"{score.exact_file_count:7,}{score.worse_file_count:7,}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
