"""The "changed lines saved" measure counts what porting.md says it counts."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def saved_lines() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "port" / "saved_lines.py"
    spec = importlib.util.spec_from_file_location("saved_lines", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["saved_lines"] = module  # dataclasses with slots look their module up
    spec.loader.exec_module(module)
    return module


BEFORE = "a = 1  # one\n\nx.cuda()\nkeep()\n"
AFTER = "a=1\nx.musa()\nkeep()\nextra()\n"


def test_untouched_file_saves_nothing(saved_lines: ModuleType) -> None:
    score = saved_lines.score_file(BEFORE, AFTER, BEFORE, "py")
    assert (score.changed_line_count, score.left_line_count, score.saved_ratio) == (3, 3, 0)


def test_the_port_itself_saves_everything(saved_lines: ModuleType) -> None:
    score = saved_lines.score_file(BEFORE, AFTER, AFTER, "py")
    assert (score.saved_ratio, score.exact_file_count) == (1, 1)


def test_one_right_line_saves_its_removal_and_its_addition(saved_lines: ModuleType) -> None:
    score = saved_lines.score_file(BEFORE, AFTER, BEFORE.replace("cuda", "musa"), "py")
    assert (score.changed_line_count, score.left_line_count) == (3, 1)


def test_a_wrong_change_counts_as_worse_than_untouched(saved_lines: ModuleType) -> None:
    score = saved_lines.score_file(BEFORE, AFTER, BEFORE.replace("keep", "kept"), "py")
    assert score.worse_file_count == 1
    assert score.saved_ratio < 0


def test_no_ratio_where_the_port_changed_nothing(saved_lines: ModuleType) -> None:
    assert saved_lines.score_file(BEFORE, BEFORE, BEFORE, "py").saved_ratio is None


@pytest.mark.parametrize(
    ("kind", "text", "lines"),
    [
        ("cxx", 'f("//no");  // yes\n/* a\n b */ g ( 1 );\n', ['f("//no");', "g(1);"]),
        ("cxx", 'auto r = R"x(// kept)x";\n', ['autor=R"x(//kept)x";']),
        ("py", "s = '#no'  # yes\n", ["s='#no'"]),
        ("py", "print 'old'  # python 2\n", ["print'old'"]),
        ("cmake", 'set(A "#no") # yes\n#[[ block\n]] set(B)\n', ['set(A"#no")', "set(B)"]),
    ],
)
def test_comments_and_spacing_do_not_count(saved_lines: ModuleType, kind: str, text: str, lines: list[str]) -> None:
    assert saved_lines.code_lines(text, kind) == lines


def test_a_set_is_translated_together_and_missing_files_count_as_untouched(saved_lines: ModuleType) -> None:
    names = {"set_name": "s", "kind": "py", "cuda_repository": "r", "cuda_commit": "1", "musa_repository": "r"}
    pairs = [saved_lines.Pair(**names, musa_commit="2", cuda_path=path, musa_path=path) for path in ("a.py", "b.py")]
    seen: list[set[str]] = []

    def translate(files: dict[str, str]) -> dict[str, str]:
        seen.append(set(files))
        return {"a.py": AFTER}

    scores = saved_lines.score_set([(pair, BEFORE, AFTER) for pair in pairs], translate)
    assert seen == [{"a.py", "b.py"}]
    assert [score.left_line_count for score in scores.values()] == [0, 3]
    total = sum(scores.values(), start=saved_lines.Score())
    assert (total.file_count, total.saved_ratio) == (2, 0.5)
