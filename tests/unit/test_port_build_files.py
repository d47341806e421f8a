"""What a build file becomes on MUSA."""

from dataclasses import replace

import pytest

from lakh.port.build_files import assess, declared_names, is_build_file, translate
from lakh.port.build_files.cmake_syntax import commands
from lakh.port.findings import PortContext, Translation
from lakh.port.nvcc_flags import nvcc_only_flags, translate_flags

KEEP = PortContext()
RENAME = PortContext(rename="rename")


def cmake(text: str, context: PortContext = KEEP, path: str = "CMakeLists.txt") -> Translation:
    return translate(text, path=path, context=context)


def codes(translation: Translation) -> set[str]:
    return {finding.code for finding in translation.findings}


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("CMakeLists.txt", True),
        ("cmake/FindX.cmake", True),
        ("a/Makefile", True),
        ("rules.mk", True),
        ("requirements-dev.txt", True),
        ("pyproject.toml", True),
        ("BUILD.bazel", True),
        ("setup.py", False),
        ("notes.txt", False),
        ("main.cu", False),
    ],
)
def test_build_files_are_known_by_their_names(path: str, known: bool) -> None:
    assert is_build_file(path) is known


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "find_package(CUDA REQUIRED)\n",
            "list(APPEND CMAKE_MODULE_PATH /usr/local/musa/cmake)\nfind_package(MUSA REQUIRED)\n",
        ),
        (
            "  find_package(CUDAToolkit 11.4 REQUIRED)\n",
            "  list(APPEND CMAKE_MODULE_PATH /usr/local/musa/cmake)\n  find_package(MUSAToolkit REQUIRED)\n",
        ),
        (
            "enable_language(CUDA)\nfind_package(CUDAToolkit)\n",
            "list(APPEND CMAKE_MODULE_PATH /usr/local/musa/cmake)\nfind_package(MUSA REQUIRED)\n"
            "find_package(MUSAToolkit)\n",
        ),
        ("project(acme LANGUAGES CXX CUDA)\n", "project(acme LANGUAGES CXX)\n"),
        ("project(acme LANGUAGES CUDA)\n", "project(acme LANGUAGES CXX)\n"),
        ("project(acme LANGUAGES CUDA CXX)\n", "project(acme LANGUAGES CXX)\n"),
        ("cuda_add_library(a a.cu)\n", "musa_add_library(a a.cu)\n"),
        ("CUDA_ADD_EXECUTABLE(a a.cu)\n", "MUSA_ADD_EXECUTABLE(a a.cu)\n"),
        ("add_library(a STATIC a.cu b.cpp)\n", "musa_add_library(a STATIC a.cu b.cpp)\n"),
        ("add_library(a a.cpp)\n", "add_library(a a.cpp)\n"),
        ("add_library(a INTERFACE)\n", "add_library(a INTERFACE)\n"),
        (
            "file(GLOB SRC *.cu)\nforeach(s IN LISTS SRC)\n  add_one(${s})\nendforeach()\n"
            "function(add_one src)\n  add_executable(x ${src})\nendfunction()\n",
            "file(GLOB SRC *.cu)\nforeach(s IN LISTS SRC)\n  add_one(${s})\nendforeach()\n"
            "function(add_one src)\n  musa_add_executable(x ${src})\nendfunction()\n",
        ),
        (
            "add_executable(a a.cu)\ntarget_link_libraries(a PRIVATE CUDA::cudart CUDA::cublas m)\n",
            "set(MUSA_LINK_LIBRARIES_KEYWORD PRIVATE)\nmusa_add_executable(a a.cu)\nset(MUSA_LINK_LIBRARIES_KEYWORD)\n"
            "target_link_libraries(a PRIVATE MUSA::musart MUSA::mublas m)\n",
        ),
        (
            "target_link_libraries(a cudart nccl ${CUDA_LIBRARIES})\n",
            "target_link_libraries(a musart mccl ${MUSA_LIBRARIES})\n",
        ),
        ("target_link_libraries(a ${CUDA_CUBLAS_LIBRARIES})\n", "target_link_libraries(a ${MUSA_MUBLAS_LIBRARIES})\n"),
        ("set(CMAKE_CUDA_ARCHITECTURES 70 80 90)\n", "set(MUSA_ARCHITECTURES 31)\n"),
        ('set(CMAKE_CUDA_ARCHITECTURES "70;80")\n', 'set(MUSA_ARCHITECTURES "31")\n'),
        ('list(APPEND CUDA_NVCC_FLAGS "-O3")\n', 'list(APPEND MUSA_MCC_FLAGS "-O3")\n'),
        (
            'set(F "-gencode arch=compute_80,code=sm_80 --use_fast_math")\n',
            'set(F "--offload-arch=mp_31 -ffast-math")\n',
        ),
        ("include_directories($ENV{CUDA_HOME}/include)\n", "include_directories($ENV{MUSA_HOME}/include)\n"),
        ("link_directories(/usr/local/cuda-12/lib64)\n", "link_directories(/usr/local/musa/lib64)\n"),
    ],
)
def test_cmake_follows_find_musa(before: str, after: str) -> None:
    assert cmake(before).text == after


def test_a_device_target_gets_the_module_where_the_language_was() -> None:
    before = "project(acme LANGUAGES CXX CUDA)\nadd_executable(a a.cu)\n"
    after = (
        "project(acme LANGUAGES CXX)\nlist(APPEND CMAKE_MODULE_PATH /usr/local/musa/cmake)\n"
        "find_package(MUSA REQUIRED)\n"
        "musa_add_executable(a a.cu)\n"
    )
    assert cmake(before).text == after


def test_a_generated_device_source_gets_an_absolute_path() -> None:
    before = 'set(src "gen/a.cu")\nconfigure_file(in "${src}")\nadd_library(a OBJECT ${src})\n'
    after = 'set(src "${CMAKE_CURRENT_BINARY_DIR}/gen/a.cu")\nconfigure_file(in "${src}")\nmusa_add_library(a ${src})\n'
    assert cmake(before).text == after


@pytest.mark.parametrize(
    "text",
    [
        "if(CUDA_VERSION VERSION_GREATER_EQUAL 11.4)\nendif()\n",
        "if(NOT CUDAToolkit_VERSION VERSION_LESS 12)\nendif()\n",
    ],
)
@pytest.mark.parametrize("context", [KEEP, RENAME])
def test_a_version_test_never_flips(text: str, context: PortContext) -> None:
    result = cmake(text, context)
    assert result.text == text
    assert "LP409" in codes(result)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("enable_language(CUDA)\n", "LP401"),
        ("set(CMAKE_CUDA_STANDARD 17)\n", "LP401"),
        ('set(CMAKE_CUDA_FLAGS "-O3")\n', "LP401"),
        ("set(CMAKE_CUDA_ARCHITECTURES 80)\n", "LP402"),
        ("list(APPEND CUDA_NVCC_FLAGS --expt-relaxed-constexpr)\n", "LP403"),
        ("find_package(CUDA)\n", "LP404"),
        ("find_program(NVCC nvcc)\n", "LP405"),
        ("target_link_libraries(a CUDA::nvToolsExt)\n", "LP406"),
        ("target_link_libraries(a cudadevrt)\n", "LP406"),
        ("cuda_select_nvcc_arch_flags(F)\n", "LP410"),
    ],
)
def test_what_does_not_carry_over_in_cmake_is_a_finding(text: str, code: str) -> None:
    assert code in codes(cmake(text))


@pytest.mark.parametrize(
    "text",
    [
        "# find_package(CUDA)\n#[[ cuda_add_library(a a.cu) ]]\n",
        'option(ACME_USE_CUDA "Use CUDA" ON)\nif(ACME_USE_CUDA)\nendif()\n',
        "find_package(MUSA REQUIRED)\nmusa_add_library(a a.cu)\n",
        "if(ACME_CUDA OR ACME_MUSA)\nendif()\n",
        "acme_cuda_module(a)\n",
    ],
)
def test_cmake_comments_own_words_and_native_musa_stay(text: str) -> None:
    assert cmake(text).text == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("CMakeLists.txt", "if(ACME_MUSA)\n  find_package(MUSA)\nelse()\n  find_package(CUDAToolkit)\nendif()\n"),
        ("Makefile", "ifdef MUSA\nCC = mcc\nelse\nCC = nvcc\nendif\n"),
    ],
)
def test_a_build_with_a_branch_for_each_toolkit_is_left_alone_and_reported(path: str, text: str) -> None:
    result = translate(text, path=path, context=KEEP)
    assert result.text == text
    assert "LP411" in codes(result)


def test_the_rename_policy_renames_own_words_in_cmake_but_not_in_comments() -> None:
    text = 'option(ACME_USE_CUDA "Use CUDA")  # CUDA\nacme_cuda_module(acme_cuda src/cuda_pool.cu)\n'
    expected = 'option(ACME_USE_MUSA "Use MUSA")  # CUDA\nacme_musa_module(acme_musa src/musa_pool.mu)\n'
    context = replace(RENAME, file_renames={"src/cuda_pool.cu": "src/musa_pool.mu"})
    assert cmake(text, context).text == expected


def test_the_projects_vocabulary_is_renamed_too() -> None:
    context = replace(RENAME, word_renames={"acmecu": "acmemu"})
    assert cmake("add_subdirectory(acmecu)\n", context).text == "add_subdirectory(acmemu)\n"


def test_cmake_keeps_line_ends_and_spacing() -> None:
    text = "PROJECT( acme )\r\n\tCUDA_ADD_LIBRARY (a   a.cu )  # x\r\n"
    assert cmake(text).text == text.replace("CUDA_ADD", "MUSA_ADD")


def test_cmake_syntax_gives_names_arguments_and_places() -> None:
    text = 'if(A AND (B OR "c d")) # x\nset(V [[ raw ]] ${W}/x)\n'
    first, second = commands(text)
    assert (first.name, [item.text for item in first.arguments]) == ("if", ["A", "AND", "(", "B", "OR", "c d", ")"])
    assert [item.text for item in second.arguments] == ["V", "[[ raw ]]", "${W}/x"]
    assert text[second.start : second.end] == "set(V [[ raw ]] ${W}/x)"


def test_unbalanced_cmake_stays() -> None:
    text = "find_package(CUDA REQUIRED\n"
    assert cmake(text).text == text


def test_a_makefile_calls_mcc() -> None:
    before = (
        "# built with nvcc\nNVCC ?= nvcc\nCUDA_PATH ?= /usr/local/cuda\n"
        "FLAGS = -O3 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 --use_fast_math\n"
        "LIBS = -L$(CUDA_PATH)/lib64 -lcudart -lcublas -lm\n%.o: %.cu\n\t$(NVCC) $(FLAGS) -c $< -o $@\n"
    )
    after = (
        "# built with nvcc\nNVCC ?= mcc\nCUDA_PATH ?= /usr/local/musa\n"
        "FLAGS = -O3 --offload-arch=mp_31 -ffast-math\n"
        "LIBS = -L$(CUDA_PATH)/lib64 -lmusart -lmublas -lm\n%.o: %.cu\n\t$(NVCC) $(FLAGS) -c $< -o $@\n"
    )
    assert translate(before, path="Makefile", context=KEEP).text == after
    renamed = translate(before, path="Makefile", context=replace(RENAME, file_renames={"a.cu": "a.mu"})).text
    assert "MCC ?= mcc" in renamed
    assert "MUSA_PATH ?= /usr/local/musa" in renamed
    assert "%.o: %.mu" in renamed


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("Makefile", "V = $(shell nvcc --version)\n", "LP409"),
        ("Makefile", "x:\n\tcuobjdump a.o\n", "LP405"),
        ("Makefile", "L = -lcudadevrt\n", "LP406"),
        ("Makefile", "F = nvcc -Xptxas -v\n", "LP403"),
        ("requirements.txt", "cupy-cuda12x>=13\n", "LP407"),
        ("requirements.txt", "torch==2.3.0+cu121\n", "LP407"),
        ("requirements/gpu.txt", "numpy\n", None),
        ("requirements.txt", "# pynvml\nnumpy\n", None),
        ("pyproject.toml", 'dependencies = ["nvidia-nccl-cu12", "numpy"]\n', "LP407"),
        ("BUILD", 'cuda_library(name = "a")\n', "LP408"),
        ("defs.bzl", "# cuda_library\nx = 1\n", None),
    ],
)
def test_make_packages_and_bazel_report_what_does_not_carry_over(path: str, text: str, code: str | None) -> None:
    result = translate(text, path=path, context=KEEP)
    assert codes(result) == ({code} if code else set())
    if code not in ("LP406", "LP403"):
        assert result.text == text


@pytest.mark.parametrize("path", ["CMakeLists.txt", "Makefile"])
def test_assess_of_a_build_file_changes_nothing(path: str) -> None:
    text = "find_package(CUDA)\nnvcc -lcudart a.cu\n"
    looked = assess(text, path=path, context=KEEP)
    assert looked.text == text
    assert looked.findings == translate(text, path=path, context=KEEP).findings
    assert looked.uses


def test_declared_names_of_build_files() -> None:
    text = 'option(A_CUDA "")\nfunction(add_cuda_test x)\nendfunction()\nset(B_CUDA 1)\n'
    assert declared_names(text, path="CMakeLists.txt") == {"A_CUDA", "add_cuda_test", "B_CUDA"}
    assert declared_names("NVCC = x\nCUDA_HOME ?= y\n", path="Makefile") == {"NVCC", "CUDA_HOME"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("-gencode=arch=compute_80,code=sm_80", "--offload-arch=mp_22"),
        ("-gencode arch=compute_80,code=[sm_80,compute_80]", "--offload-arch=mp_22"),
        ("-arch=sm_90", "--offload-arch=mp_22"),
        ("-arch sm_90", "--offload-arch=mp_22"),
        ("--gpu-architecture=sm_90a", "--offload-arch=mp_22"),
        ("-x cu", "-x musa"),
        ("-lcudart -lcudnn -lm", "-lmusart -lmudnn -lm"),
        ("-O3 -lcurandom -larch=sm", "-O3 -lcurandom -larch=sm"),
        ("/usr/local/cuda/bin:/usr/local/cudax", "/usr/local/musa/bin:/usr/local/cudax"),
    ],
)
def test_flags_follow_the_recorded_counterparts(before: str, after: str) -> None:
    assert translate_flags(before, "mp_22") == after


def test_flags_without_a_counterpart_are_found_where_they_stand() -> None:
    assert nvcc_only_flags("-O3 --ptxas-options=-v -Xcompiler -fPIC") == [(4, "--ptxas-options"), (23, "-Xcompiler")]
