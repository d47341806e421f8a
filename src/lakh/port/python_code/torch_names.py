"""What does a PyTorch name become under torch_musa?

The map (python-map.csv) answers for single names. Import statements need more: `torch.musa` is an attribute that
torch_musa sets on torch, not an importable module, so `from torch.cuda.amp import autocast` has to import from
torch_musa itself (torch_musa/__init__.py of 2.7.1).
"""

from __future__ import annotations

from collections.abc import Mapping

from lakh.port.maps import MappedName, Maps

MODULES: Mapping[str, str] = {
    "torch.cuda": "torch_musa",
    "torch.cuda.amp": "torch_musa.core.amp",
    "torch.cuda.amp.autocast_mode": "torch_musa.core.amp.autocast_mode",
    "torch.cuda.amp.common": "torch_musa.core.amp.common",
    "torch.cuda.amp.grad_scaler": "torch_musa.core.amp.grad_scaler",
    "torch.cuda.graphs": "torch_musa.musa_graph",
    "torch.cuda.memory": "torch_musa.core.memory",
    "torch.cuda.nccl": "torch_musa.core.mccl",
    "torch.cuda.random": "torch_musa.core.random",
    "torch.cuda.streams": "torch_musa.core.stream",
}
"""Importable module of each torch.cuda module (files of torch_musa 2.7.1)."""

EXTENSION_MODULE = "torch.utils.cpp_extension"
MUSA_EXTENSION_MODULE = "torch_musa.utils.musa_extension"
EXTENSION_NAMES: Mapping[str, str] = {
    "CUDAExtension": "MUSAExtension",
    "CUDA_HOME": "MUSA_HOME",
    "BuildExtension": "BuildExtension",
}
"""Names of torch.utils.cpp_extension that musa_extension offers (torch_musa/utils/README.md)."""

ATTRIBUTES: Mapping[str, str] = {"is_cuda": "is_musa", "cuda_stream": "musa_stream"}
"""Attributes of tensors and streams (python-map.csv)."""

CUDA_ONLY_PACKAGES: Mapping[str, str] = {
    "apex": "torch_musa has multi_tensor_apply; build the rest from source",
    "bitsandbytes": "no MUSA build was seen",
    "cuda": "cuda-python binds the CUDA driver; use torch.musa or ctypes on libmusart",
    "cuml": "no MUSA build was seen",
    "cudf": "no MUSA build was seen",
    "cupy": "no MUSA build was seen; torch on musa covers most array code",
    "flash_attn": "the mate package supplies compatible entry points (MooreThreads/mate)",
    "flash_attn_interface": "the mate package supplies compatible entry points (MooreThreads/mate)",
    "flashinfer": "no MUSA build was seen",
    "nvidia": "NVIDIA's own packages have no MUSA counterpart",
    "nvtx": "MUSA has no NVTX",
    "pycuda": "no MUSA build was seen",
    "tensorrt": "no MUSA build was seen",
    "transformer_engine": "MT-TransformerEngine is named as its counterpart; it was not read",
    "xformers": "memory-efficient attention has no torch_musa kernel",
}
"""Top-level packages that come with CUDA binaries (finding LP308) and what is known about a replacement."""


NVML_MODULE, MTML_MODULE = "pynvml", "pymtml"
"""`import pymtml as pynvml` is the vendor's idiom (MooreThreads/mthreads-ml-py, examples/09_nvml_compatibility.py)."""
_MTML_NAMES = """
    DeviceGetBAR1MemoryInfo DeviceGetBrand DeviceGetClockInfo DeviceGetComputeInstanceId DeviceGetComputeMode
    DeviceGetComputeRunningProcesses DeviceGetCount DeviceGetCpuAffinity DeviceGetCpuAffinityWithinScope
    DeviceGetCudaComputeCapability DeviceGetCurrentDriverModel DeviceGetCurrentEccMode DeviceGetDecoderUtilization
    DeviceGetDeviceHandleFromMigDeviceHandle DeviceGetDisplayActive DeviceGetDisplayMode DeviceGetEccMode
    DeviceGetEncoderUtilization DeviceGetFanSpeed DeviceGetFanSpeed_v2 DeviceGetFieldValues DeviceGetGpuInstanceId
    DeviceGetGraphicsRunningProcesses DeviceGetHandleByIndex DeviceGetHandleByPciBusId DeviceGetHandleByUuid
    DeviceGetIndex DeviceGetMaxClockInfo DeviceGetMaxMigDeviceCount DeviceGetMemoryAffinity DeviceGetMemoryBusWidth
    DeviceGetMemoryInfo DeviceGetMigDeviceHandleByIndex DeviceGetMigMode DeviceGetMinorNumber DeviceGetName
    DeviceGetNumGpuCores DeviceGetNvLinkCapability DeviceGetNvLinkRemotePciInfo DeviceGetNvLinkState
    DeviceGetP2PStatus DeviceGetPciInfo DeviceGetPcieThroughput DeviceGetPendingEccMode DeviceGetPerformanceState
    DeviceGetPersistenceMode DeviceGetPowerManagementLimit DeviceGetPowerUsage DeviceGetProcessUtilization
    DeviceGetRetiredPagesPendingStatus DeviceGetSerial DeviceGetTemperature DeviceGetTopologyCommonAncestor
    DeviceGetTopologyNearestGpus DeviceGetTotalEccErrors DeviceGetUUID DeviceGetUtilizationRates
    DeviceGetVbiosVersion DeviceIsMigDeviceHandle Init InitWithFlags Shutdown SystemGetCudaDriverVersion
    SystemGetDriverVersion
"""
MTML_FUNCTIONS = frozenset(f"nvml{name}" for name in _MTML_NAMES.split())
"""Functions of pynvml that pymtml defines (MooreThreads/mthreads-ml-py at 12828461, pymtml.py)."""

RENAMED_MODULES: Mapping[str, str] = {"triton.language.extra.cuda": "triton.language.extra.musa"}
"""Modules of packages that have a MUSA build under the same name (python-map.csv)."""


def longest_row(maps: Maps, dotted: str) -> tuple[MappedName, str] | None:
    """The row of the longest known prefix of a dotted path and that prefix, at least as deep as torch.x.y."""
    parts = dotted.split(".")
    for count in range(len(parts), 2, -1):
        prefix = ".".join(parts[:count])
        row = maps.python(prefix)
        if row is not None:
            return row, prefix
    return None


def missing_ops(maps: Maps) -> frozenset[str]:
    """Names of aten ops with a CUDA kernel and no torch_musa kernel, none of whose overloads has one."""
    status: dict[str, bool] = {}
    for name in maps.python_names():
        if name.startswith("aten::"):
            row = maps.python(name)
            base = name[len("aten::") :].partition(".")[0]
            status[base] = status.get(base, False) or (row is not None and row.status != "unsupported")
    return frozenset(base for base, known in status.items() if not known)
