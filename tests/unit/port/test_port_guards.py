"""Guards get the MUSA macro and a MUSA number, or stay word for word and are reported; none flips silently."""

from __future__ import annotations

import itertools

import pytest

from lakh.port.conditions import conditions, evaluate
from lakh.port.cpp import translate
from lakh.port.findings import PortContext

CONTEXT = PortContext()


def guard(text: str) -> str:
    return translate(f"#if {text}\n#endif\n", path="a.cu", context=CONTEXT).text.split("\n")[0].removeprefix("#if ")


@pytest.mark.parametrize(
    ("cuda", "musa"),
    [
        ("__CUDA_ARCH__ >= 800", "__MUSA_ARCH__ >= 220"),
        ("__CUDA_ARCH__ < 800", "__MUSA_ARCH__ < 220"),
        ("__CUDA_ARCH__ >= 900", "__MUSA_ARCH__ >= 310"),
        ("__CUDA_ARCH__ >= 350", "__MUSA_ARCH__ >= 210"),
        ("__CUDA_ARCH__ > 700", "__MUSA_ARCH__ >= 210"),
        ("__CUDA_ARCH__ <= 899", "__MUSA_ARCH__ < 310"),
        ("(__CUDA_ARCH__ >= 800)", "(__MUSA_ARCH__ >= 220)"),
        ("800 <= __CUDA_ARCH__", "220 <= __MUSA_ARCH__"),
        ("defined(__CUDA_ARCH__)", "defined(__MUSA_ARCH__)"),
        ("!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600", "!defined(__MUSA_ARCH__) || __MUSA_ARCH__ >= 210"),
        ("CUDA_VERSION >= 11000", "MUSA_VERSION >= 40300"),
        ("CUDART_VERSION < 9020", "MUSART_VERSION < 40300"),
        ("__CUDA_ARCH__ == 750", "__CUDA_ARCH__ == 750"),
        ("__CUDA_ARCH__ >= 1000", "__CUDA_ARCH__ >= 1000"),
        ("CUDA_VERSION >= 12040", "CUDA_VERSION >= 12040"),
        ("__CUDACC_VER_MAJOR__ >= 9", "__CUDACC_VER_MAJOR__ >= 9"),
        ("NCCL_VERSION_CODE >= NCCL_VERSION(2, 10, 3)", "NCCL_VERSION_CODE >= NCCL_VERSION(2, 10, 3)"),
    ],
)
def test_a_guard_is_translated_or_kept(cuda: str, musa: str) -> None:
    assert guard(cuda) == musa


def test_a_comparison_that_every_target_passes_is_dropped_beside_defined() -> None:
    assert guard("defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 530)") == "defined(__MUSA_ARCH__)"


@pytest.mark.parametrize("kept", ["__CUDA_ARCH__ == 750", "CUDA_VERSION >= 12040", "__CUDA_ARCH__ / 100 >= 8"])
def test_a_guard_that_is_kept_is_reported_with_its_line(kept: str) -> None:
    result = translate(f"\n#if {kept}\n#endif\n", path="a.cu", context=CONTEXT)
    assert [row.line for row in result.findings if row.code in ("LP121", "LP123")] == [2]


def test_a_macro_that_stands_for_the_architecture_gets_musa_numbers_too() -> None:
    context = PortContext(guard_aliases={"ACME_ARCH": "__CUDA_ARCH__"})
    result = translate("#if ACME_ARCH >= 350 // cuda\n#endif\n", path="a.cu", context=context)
    assert result.text.startswith("#if ACME_ARCH >= 210")


def test_the_target_takes_the_branch_of_its_reference_architecture() -> None:
    for number, operator in itertools.product(range(300, 1000, 10), (">=", "<", ">", "<=")):
        before = f"__CUDA_ARCH__ {operator} {number}"
        after = guard(before)
        for arch, capability in ((220, 800), (310, 900)):
            if number >= capability and number // 100 == capability // 100 and number != capability:
                continue  # a minor revision of the reference's own generation
            if operator in (">", "<=") and number == capability:
                continue  # "newer than 8.0" has no MUSA counterpart between 220 and 310
            old = evaluate(before, {"__CUDA_ARCH__": capability})
            new = evaluate(after, {"__MUSA_ARCH__": arch, "__CUDA_ARCH__": None})
            assert old == new, (before, after, arch)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 == 7", True),
        ("A || B", None),
        ("A || 1", True),
        ("A && 0", False),
        ("defined(X) && X >= 3", True),
        ("defined X", True),
        ("defined(Y)", False),
        ("Y >= 1", False),
        ("!defined(Z)", None),
        ("(1 << 4) > 15 && ~0 == -1", True),
        ("0x10 == 16 && 010 == 8", True),
        ("F(1) > 2", None),
        ("1 / 0", None),
        ("garbage @ 1", None),
        ("((1)", None),
    ],
)
def test_a_condition_is_true_false_or_unknown(text: str, value: bool | None) -> None:
    assert evaluate(text, {"X": 3, "Y": None}) is value


def test_conditions_span_continued_lines() -> None:
    found = list(conditions("#if defined(A) && \\\n    B > 2 // why\n#endif\n#ifndef C /* x */\n#endif\n"))
    assert [row.text for row in found] == ["defined(A) && B > 2", "!defined(C)"]
