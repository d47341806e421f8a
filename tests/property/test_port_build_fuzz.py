"""What a build-file translation never does, whatever it is given."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lakh.port.build_files import assess, translate
from lakh.port.findings import PortContext

CONTEXTS = (
    PortContext(),
    PortContext(
        rename="rename", file_renames={"a.cu": "a.mu", "src/cuda.h": "src/musa.h"}, word_renames={"acme": "bcme"}
    ),
)
PATHS = ("CMakeLists.txt", "Makefile", "requirements.txt", "pyproject.toml", "BUILD", "sub/x.cmake", "other.txt")
PIECES = [
    "find_package(CUDA REQUIRED)\n",
    "find_package(CUDAToolkit 12)\n",
    "project(x LANGUAGES CXX CUDA)\n",
    "project(x CUDA)\n",
    "enable_language(CUDA)\n",
    "add_library(a a.cu)\n",
    "add_executable(b ${SRC})\n",
    "set(SRC a.cu)\n",
    "cuda_add_library(a a.cu)\n",
    "target_link_libraries(a PRIVATE CUDA::cudart cudart acme)\n",
    "set(CMAKE_CUDA_ARCHITECTURES 80 90)\n",
    "if(CUDA_VERSION VERSION_LESS 11)\n",
    "endif()\n",
    "# cuda\n",
    "#[[ cuda ]]\n",
    "configure_file(x ${SRC})\n",
    "find_package(MUSA)\n",
    "NVCC ?= nvcc -gencode arch=compute_80,code=sm_80\n",
    "L = -lcudart -L/usr/local/cuda/lib\n",
    "cupy-cuda12x\n",
    "cuda_library(\n",
    "set_target_properties(a PROPERTIES CUDA_ARCHITECTURES 80)\n",
    "project(x NONE)\n",
    "add_library(c OBJECT a.cu)\n",
    "$(CUDA)",
    "(",
    ")",
    '"',
    "[[",
    "]]",
    "${",
    "}",
    "\\",
    ";",
    "\r\n",
    "\r",
    "\t",
    "\0",
    "é",
    "\ud800",
    " ",
    "acme",
    "a.cu",
    "src/cuda.h",
]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(CONTEXTS), st.sampled_from(PATHS))
def test_any_build_text_in_text_out_and_a_second_run_changes_nothing(
    text: str, context: PortContext, path: str
) -> None:
    once = translate(text, path=path, context=context)
    assert translate(once.text, path=path, context=context).text == once.text
    looked = assess(text, path=path, context=context)
    assert looked.text == text
    assert all(1 <= item.line <= text.count("\n") + text.count("\r") + 1 for item in (*looked.findings, *looked.uses))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES[:26]), max_size=8).map("".join), st.sampled_from(PATHS))
def test_build_lines_without_a_word_of_cuda_stay_byte_equal(text: str, path: str) -> None:
    marker = "set( UNTOUCHED  1 )  # \t spacing\n"
    result = translate(f"{marker}{text}{marker}", path=path, context=CONTEXTS[0]).text
    assert result.startswith(marker)
    assert result.endswith(marker)
