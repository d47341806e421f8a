"""What does mcc take where nvcc took this flag?

mcc is a clang driver. Only flags with a recorded counterpart are translated (api-map.csv, kind flag); flags that clang
shares are left alone; nvcc's own flags without a counterpart are left in place and reported, so that the build stops on
them instead of losing their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

FlagStatus = Literal["translated", "unsupported", "foreign"]

LIBRARIES: Mapping[str, str] = {
    "cuda": "musa",
    "cudart": "musart",
    "cudart_static": "musart_static",
    "cublas": "mublas",
    "cublasLt": "mublasLt",
    "cudnn": "mudnn",
    "cufft": "mufft",
    "curand": "murand",
    "cusolver": "musolver",
    "cusparse": "musparse",
    "cupti": "mupti",
    "nccl": "mccl",
    "nvshmem": "mtshmem",
    "c10_cuda": "c10_musa",
    "torch_cuda": "torch_musa",
}
"""Link name of a CUDA library and of its MUSA counterpart (api-map.csv; python-map.csv for ctypes)."""

LIBRARIES_WITHOUT_COUNTERPART = frozenset(
    [
        "cudadevrt",
        "nvrtc",
        "nvToolsExt",
        "nvjpeg",
        "nvjitlink",
        "cufile",
        "cutensor",
        "nvinfer",
        "nvonnxparser",
        "nvidia-ml",
        "nvvm",
        "cuvid",
        "nvcuvid",
        "nppc",
        "nppial",
        "nppicc",
        "nppidei",
        "nppif",
        "nppig",
        "nppim",
        "nppist",
        "nppisu",
        "nppitc",
        "npps",
        "culibos",
        "cublas_device",
        "nvptxcompiler_static",
    ]
)

_GENCODE = re.compile(
    r"(?:--?gencode(?:=|\s+))\"?'?arch=compute_\w+(?:,\s*code=(?:\[[^\]]*\]|[\w,\s]*?\w))?'?\"?(?=$|[\s;\"'\\)])"
)
_ARCH = re.compile(r"(?:--?(?:gpu-)?(?:arch|code)|--gpu-architecture|--gpu-code)(?:=|\s+)(?:sm|compute|lto)_\w+")
_CUDA_ARCH = re.compile(r"--(?:cuda-gpu-arch|offload-arch)=sm_\w+")
_LIBRARY = re.compile(r"(?<![\w-])-l(\w+)\b")
_FAST_MATH = re.compile(r"(?<![\w-])-{1,2}use_fast_math\b")
_LANGUAGE = re.compile(r"(?<![\w-])-x[ =]?cu(?:da)?\b(?!\w)")
_TOOLKIT = re.compile(r"/usr/local/cuda(?:-\d+(?:\.\d+)*)?(?=$|[/\"';:,\s)}\]])")
_NVCC_ONLY = re.compile(
    r"(?<![\w-])(?:--?(?:expt-relaxed-constexpr|expt-extended-lambda|extended-lambda|ptxas-options|Xptxas|Xcudafe|Xnvlink|Xfatbin|"
    r"diag-suppress|diag_suppress|compiler-bindir|ccbin|default-stream|maxrregcount|relocatable-device-code|"
    r"rdc|dlto|lineinfo|generate-line-info|threads|split-compile|keep-dir|resource-usage|ftz|prec-div|prec-sqrt|fmad|"
    r"Xcompiler|compiler-options|cudart|forward-unknown-to-host-compiler|use-local-env|source-in-ptx|res-usage))(?![\w-])"
)


def translate_flags(text: str, arch: str) -> str:
    """Every flag of a command line or of one argument; `arch` is the target such as "mp_31"."""
    offload = f"--offload-arch={arch}"
    text = _GENCODE.sub(offload, text)
    text = _CUDA_ARCH.sub(offload, text)
    text = _ARCH.sub(offload, text)
    text = _FAST_MATH.sub("-ffast-math", text)
    text = _LANGUAGE.sub("-x musa", text)
    text = _LIBRARY.sub(lambda match: f"-l{LIBRARIES.get(match[1], match[1])}", text)
    return _TOOLKIT.sub("/usr/local/musa", text)


def toolkit_path(text: str) -> str:
    """The SDK's default path where the text names the toolkit's."""
    return _TOOLKIT.sub("/usr/local/musa", text)


def nvcc_only_flags(text: str) -> list[tuple[int, str]]:
    """Offset and text of each flag that only nvcc takes and that has no recorded counterpart."""
    return [(match.start(), match[0]) for match in _NVCC_ONLY.finditer(text)]
