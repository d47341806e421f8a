"""Which Python packages that a project requires exist for CUDA only? Their files are read, not rewritten.

Package names are a project's contract with an index; a wrong guess breaks the installation, so they are reported.
"""

from __future__ import annotations

import re

from lakh.port.build_files.work import Work
from lakh.port.findings import PortContext, Translation

_CUDA_ONLY = re.compile(
    r"(?<![\w.-])(?P<name>cupy(?:-cuda\w+)?|nvidia-[\w-]+|pynvml|nvidia-ml-py\d*|flash[-_]attn|flashinfer[\w-]*|bitsandbytes|"
    r"xformers|tensorrt[\w-]*|transformer[-_]engine|cuda-python|cuda-bindings|pycuda|apex|cudf[\w-]*|cuml[\w-]*|"
    r"onnxruntime-gpu|vllm-flash-attn|nvtx|numba-cuda|deepspeed-kernels|tensorflow\[and-cuda\])(?![\w.])",
    re.IGNORECASE,
)
_CUDA_WHEEL = re.compile(r"\+cu\d{2,3}\b|/whl/(?:nightly/)?cu\d{2,3}\b|download\.pytorch\.org/whl/cu\w+")


def assess_packages(text: str, *, path: str, context: PortContext) -> Translation:
    """Report every requirement that is a CUDA binary; the text stays as it is."""
    work = Work(text, path, context)
    for match in re.finditer(r"[^\r\n]+", text):
        code = re.sub(r"(?:^|\s)#.*", "", match[0])
        for found in _CUDA_ONLY.finditer(code):
            work.use(found["name"], match.start() + found.start(), None, None, "ships CUDA binaries")
            work.find(
                "LP407", match.start() + found.start(), f"{found['name']} ships CUDA binaries", name=found["name"]
            )
        for found in _CUDA_WHEEL.finditer(code):
            work.find("LP407", match.start() + found.start(), f"{found[0]} selects a wheel that was built for CUDA")
    return work.result(apply=False)
