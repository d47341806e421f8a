"""Which places compile, or nearly so, and may still be wrong on MUSA? Names and patterns that a person should look at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

HAZARD_NAMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (r"(?:cuda|cu)Graph\w*|CUgraph\w*|(?:cuda|cu)Stream(?:Begin|End|Is)?Captur\w*|CUDAGraph", "LP133"),
        (
            r"tex[123]D(?:fetch|Lod|Grad|Layered\w*)?|tex1Dfetch|texCubemap\w*|surf[123]D\w*|(?:cuda|cu)Tex\w*|CUtex\w*|cudaSurf\w*"
            r"|cuSurf\w*|cuda(?:Create|Destroy|Get)(?:Texture|Surface)\w*|cuda(?:Unb|B)ind(?:Texture|Surface)\w*|cudaMipmappedArray\w*"
            r"|cudaReadMode\w*|cudaAddressMode\w*|cudaFilterMode\w*",
            "LP132",
        ),
        (
            r"cuda(?:Malloc|Free)(?:From)?(?:Pool)?Async|cudaMemPool\w*|cuMemPool\w*|cuda\w*MemPool\w*|cuMem(?:Alloc|Free)Async",
            "LP135",
        ),
        (r"wmma|nvcuda|load_matrix_sync|store_matrix_sync|mma_sync|fill_fragment", "LP136"),
        (r"_*nv_bfloat162?\w*|_*nv_fp[84]\w*|_*nv_fp4\w*|_*nv_cvt_\w*fp8\w*|__nv_fp6\w*", "LP137"),
        (
            r"memcpy_async|__pipeline_\w+|make_pipeline|pipeline_shared_state|cp_async\w*|cudaTensorMap\w*|cuTensorMap\w*|CUtensorMap\w*",
            "LP138",
        ),
        (r"atomic[A-Z]\w*_system", "LP139"),
        (r"__ldg|__byte_perm|__launch_bounds__", "LP141"),
        (
            r"__cluster_dims__|this_cluster|cluster_group|cluster_sync|map_shared_rank|cudaLaunchAttributeCluster\w*|cudaFuncAttributeNonPortableCluster\w*",
            "LP142",
        ),
        (
            r"cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion|cudaLaunchAttributeProgrammatic\w*",
            "LP134",
        ),
        (r"this_grid|grid_group|this_multi_grid|multi_grid_group|cudaLaunchCooperativeKernel\w*", "LP130"),
        (r"cudnn\w+|CUDNN_\w+|cudnn_frontend", "LP210"),
        (r"nvrtc\w+|NVRTC_\w+", "LP211"),
        (r"nvtx\w+|NVTX\w+", "LP212"),
        (r"nccl[A-Z]\w*|NCCL_\w+", "LP213"),
        (r"nvml\w+|NVML_\w+", "LP215"),
        (
            r"cuFile\w+|CUfile\w*|cutensor\w+|CUTENSOR_\w+|optix\w+|OPTIX_\w+|NvEnc\w*|nvEnc\w*|cusparseLt\w*|nvcomp\w*|cuvid\w*|NvCV\w*"
            r"|nvgraph\w*|cublasDx\w*|cufftDx\w*|cudss\w*|nvimgcodec\w*|nvof\w*|NvOF\w*",
            "LP214",
        ),
    )
)

UNMAPPED = re.compile(
    r"\b(?:memcpy_async|__pipeline_\w+|make_pipeline|pipeline_shared_state|load_matrix_sync|store_matrix_sync|mma_sync|__cluster_dims__"
    r"|this_cluster|cluster_group|cluster_sync|map_shared_rank|this_multi_grid|multi_grid_group)\b"
)
"""Hazards whose name is in no map."""
UNMAPPED_HINTS = ("memcpy_async", "pipeline", "_matrix_sync", "mma_sync", "cluster", "multi_grid", "map_shared_rank")

DEVICE_WORD = re.compile(r"__global__|__device__|threadIdx|blockIdx|<<<|__shared__|_sync\b")
"""A file that holds device code."""

FULL_MASK = re.compile(r"(?<![\w.])0x[fF]{8}[uU]?[lL]*(?!\w)|(?<![\w.])(?:\(unsigned\)\s*)?-1\s*,(?=[^;]*\bshfl)")
MASK_CALL = re.compile(
    r"\b__(?:shfl(?:_up|_down|_xor)?|ballot|any|all|match_any|match_all|reduce_\w+)_sync\s*\(|\b__syncwarp\s*\(\s*0x"
)
WARP_WIDTH: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"#[ \t]*define[ \t]+\w*(?:WARP|LANE)\w*[ \t]+\(?(?:32|31|5)[uU]?\)?(?!\w)"), ("WARP", "LANE")),
    (
        re.compile(
            r"\b(?:constexpr|const|static)\b[^;{}()\n]*\b\w*(?:[wW]arp|WARP|[lL]ane|LANE)\w*\s*(?:=\s*|\{\s*)(?:32|31|5)[uU]?(?!\w)"
        ),
        ("warp", "Warp", "WARP", "lane", "Lane", "LANE"),
    ),
    (
        re.compile(
            r"\b(?:threadIdx\s*\.\s*[xyz]|tid|tidx|thread_idx|threadId|lane\w*|thread_id)\s*(?:%\s*32|/\s*32|&\s*31|&\s*0x1[fF]|>>\s*5)(?!\w)"
            r"|\bblockDim\s*\.\s*[xyz]\s*(?:/\s*32|>>\s*5|\+\s*31)(?!\w)"
        ),
        ("% 32", "%32", "/ 32", "/32", "& 31", "&31", "0x1f", "0x1F", ">> 5", ">>5", "+ 31", "+31"),
    ),
    (re.compile(r"\btiled_partition\s*<\s*32\s*>"), ("tiled_partition",)),
)
"""Patterns that write 32 as the warp size, each with words without which it cannot match (a scan for words is cheap)."""
SHUFFLE = re.compile(r"\b__shfl(?:_up|_down|_xor)?_sync\s*\(")
BALLOT = re.compile(r"\b(?:__ballot_sync|__activemask|__match_any_sync|__match_all_sync|__ballot)\s*\(")
WIDE_DIVISION = re.compile(r"\b(?:unsigned\s+)?__u?int128(?:_t)?\b")
GRID_SYNC = re.compile(r"this_grid\s*\(\s*\)\s*\.\s*sync\s*\(|\bgrid\w*\s*\.\s*sync\s*\(")
NAMED_BARRIER = re.compile(r"\bbar(?:rier)?(?:\.cta)?\.(?:sync|arrive)\b(?:\.aligned)?\s+(?!0\b)(?:%?\w+)")
CAPABILITY: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(r"(?<=\w)(?:\.|->)(?:major|minor)\s*(?:>=|<=|==|!=|<|>(?!>))\s*\d"),
        (".major", ".minor", ">major", ">minor"),
    ),
    (re.compile(r"\bcomputeCapability(?:Major|Minor)\s*(?:>=|<=|==|<|>)\s*\d"), ("computeCapability",)),
    (
        re.compile(
            r"\b(?:cc|sm|sm_version|smVersion|compute_capability|arch)\s*(?:>=|<=|==|!=|<|>(?!>))\s*(?:[5-9]\d|1[0-2]\d)\b"
        ),
        tuple(
            f"{name}{operator}"
            for name in ("cc", "sm", "ersion", "capability", "arch")
            for operator in (" ", "<", ">", "=")
        ),
    ),
)
PASTE = re.compile(
    r"\b(?:cuda|cu|CUDA|CU|cublas|CUBLAS|nccl|cudnn|cufft|cusparse|cusolver|curand)\w*\s*##|##\s*(?:cuda|CUDA|cublas)\w*"
)
PASTED_PREFIX: Mapping[str, str] = {
    "cuda": "musa",
    "cu": "mu",
    "CUDA": "MUSA",
    "CUDA_": "MUSA_",
    "CU": "MU",
    "CU_": "MU_",
    "cublas": "mublas",
    "CUBLAS": "MUBLAS",
    "CUBLAS_": "MUBLAS_",
    "nccl": "mccl",
    "cufft": "mufft",
    "cusparse": "musparse",
    "cusolver": "musolver",
    "curand": "murand",
}
"""Prefixes that a macro glues a name to; the naming rule is the same for every name of the library."""

LoadKind = Literal["symbol", "library"]
LIBRARY_STRING = re.compile(r"\"lib(cudart|cuda|cublas|cublasLt|cufft|curand|cusparse|cusolver|nccl|cupti)\.so[\w.]*\"")
JIT_STRING = re.compile(r"__global__|__device__|<<<|threadIdx")


def hazard_of(name: str) -> str | None:
    """The code of the hazard that a name stands for, or None."""
    for pattern, code in HAZARD_NAMES:
        if pattern.fullmatch(name):
            return code
    return None


def found(patterns: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...], text: str) -> list[re.Match[str]]:
    """Every match, in order; a pattern is run only where one of its words is in the text."""
    matches = [
        match for pattern, words in patterns if any(word in text for word in words) for match in pattern.finditer(text)
    ]
    return sorted(matches, key=lambda match: match.start())
