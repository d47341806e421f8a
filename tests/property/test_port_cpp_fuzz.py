"""Any text in, text out: no crash, a second run changes nothing, untouched parts stay equal byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakh.port.check import check_pair
from lakh.port.conditions import evaluate
from lakh.port.cpp import assess, translate
from lakh.port.findings import PortContext

# One fragment a cell, cells divided by |; ~ stands for a new line.
CELLS = """\
cudaMalloc|cudaFree(p);|cuda|##|CUDA_VERSION|>=|11000|__CUDA_ARCH__|&&|defined(|#if |#ifdef |#else~|#elif |#endif~|\
#define X |#include <|cuda_runtime.h|>|"|'|R"(|)"|/*|*/|//|{|}|(|)|asm volatile(|"mma.sync;"|"bar.sync 0;"|:|::|\
"=r"(x)|<<<1, 2>>>(|__global__ void k|__shfl_sync(|0xffffffff|warpSize|ncclSum|USE_MUSA|__HIP_PLATFORM_AMD__|!|800|\
<|\\~|~|\r~|\t|é|\udcff|\0|namespace |Tensor x.is_cuda()"""
FRAGMENTS = st.sampled_from(CELLS.replace("~", "\n").split("|"))
PIECES = st.lists(FRAGMENTS, max_size=40)
TEXT = st.one_of(st.text(max_size=200), PIECES.map("".join), PIECES.map(" ".join))
CONTEXTS = [
    PortContext(arch="mp_22", guard_aliases={"X": "__CUDA_ARCH__"}),
    PortContext(rename="rename", word_renames={"cuacme": "muacme"}),
]


def encodable(text: str) -> str:
    lost = "surrogateescape" if "\udcff" in text else "replace"
    return text.encode("utf-8", errors=lost).decode("utf-8", errors="surrogateescape")


@settings(max_examples=300, deadline=None)
@given(TEXT)
def test_any_text_comes_out_as_text_and_a_second_run_changes_nothing(text: str) -> None:
    text = encodable(text)
    for context in CONTEXTS:
        once = translate(text, path="a.cu", context=context)
        assert translate(once.text, path="a.cu", context=context).text == once.text
        assert assess(text, path="a.cu", context=context).text == text


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_lines_without_an_edit_are_equal(text: str) -> None:
    text = encodable(text)
    result = translate(text, path="a.cu", context=CONTEXTS[0])
    if not result.uses and not result.findings:
        assert result.text == text


@settings(max_examples=100, deadline=None)
@given(TEXT, TEXT)
def test_the_check_survives_any_pair(old: str, new: str) -> None:
    check_pair(
        encodable(old),
        encodable(new),
        path="a.cu",
        new_path="a.cu",
        language="cxx",
        context=CONTEXTS[0],
        ported=frozenset({"a.cu"}),
    )


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ABX01 ()!&|<>=+-*/%?:defined\"'", max_size=60))
def test_a_condition_never_crashes(text: str) -> None:
    assert evaluate(text, {"A": 1, "B": None}) in (True, False, None)


@pytest.mark.parametrize(
    "piece", ["cuda((((\n", "asm(cuda\n", 'R"(cuda\n', "/* cuda\n", "#if __CUDA_ARCH__ \\\n", "cuda'\"\n"]
)
def test_unbalanced_text_takes_no_more_than_its_length(piece: str) -> None:
    text = piece * 3_000
    result = translate(text, path="a.cu", context=CONTEXTS[0])
    assert len(result.text) >= len(text)
