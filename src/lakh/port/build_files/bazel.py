"""What in a Bazel file depends on CUDA? It is reported only: no rules for MUSA were seen."""

from __future__ import annotations

import re

from lakh.port.build_files.work import Work
from lakh.port.findings import PortContext, Translation

_CUDA = re.compile(
    r"(?<![A-Za-z])(?:cuda_library|cuda_binary|cuda_test|cuda_objects|rules_cuda|local_cuda|if_cuda\w*|local_config_cuda)\b|@\w*cuda\w*//|\bnvcc\b"
)


def assess_bazel(text: str, *, path: str, context: PortContext) -> Translation:
    """Report CUDA rules, repositories and compilers; the text stays as it is."""
    work = Work(text, path, context)
    for match in re.finditer(r"[^\r\n]+", text):
        code = re.sub(r"(?:^|\s)#.*", "", match[0])
        for found in _CUDA.finditer(code):
            work.use(found[0], match.start() + found.start(), None, None, "rules for CUDA")
            work.find("LP408", match.start() + found.start(), f"{found[0]} has no MUSA counterpart", name=found[0])
    return work.result(apply=False)
