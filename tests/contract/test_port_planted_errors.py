"""Errors planted in a translated file are each found by the check, and the clean translation has none."""

from __future__ import annotations

import pytest

from lakh.port.check import check_pair
from lakh.port.findings import PortContext
from lakh.port.project import translate_text

CUDA = """\
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <nccl.h>
#include "own/reduce.cuh"

#if __CUDA_ARCH__ >= 800
#define FAST_PATH 1
#elif __CUDA_ARCH__ < 700
#define FAST_PATH 0
#endif
#if CUDART_VERSION >= 11000
#define HAS_GRAPHS 1
#endif
#if defined(__CUDACC__)
#define DEVICE __device__
#endif

DEVICE unsigned lane() {
  unsigned value;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(value));
  return value;
}

__device__ void fence_and_mma(float *d, unsigned a) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1}, {%1}, {%0};" : "+f"(d[0]) : "r"(a));
  asm volatile("cp.async.wait_all;" ::: "memory");
}

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    value += __shfl_down_sync(0xffffffff, value, offset, 32);
  }
  return value;
}

__global__ void sum(const float *input, float *output, int count) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  float value = index < count ? input[index] : 0.0f;
  value = warp_sum(value);
  if ((threadIdx.x & 31) == 0) atomicAdd(output, value);
}

int run(const float *host, int count, ncclComm_t comm, cublasHandle_t handle) {
  float *device = nullptr, *total = nullptr;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaError_t error = cudaMalloc(&device, count * sizeof(float));
  if (error != cudaSuccess) return 1;
  cudaMalloc(&total, sizeof(float));
  cudaMemcpyAsync(device, host, count * sizeof(float), cudaMemcpyHostToDevice, stream);
  sum<<<(count + 255) / 256, 256, 0, stream>>>(device, total, count);
  cublasSetStream(handle, stream);
  ncclAllReduce(total, total, 1, ncclFloat, ncclSum, comm, stream);
  cudaStreamSynchronize(stream);
  cudaFree(device);
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
"""

CONTEXT = PortContext(arch="mp_22", own_files=frozenset({"src/run.cu", "src/own/reduce.cuh"}))
PORTED = frozenset({"src/run.cu", "src/own/reduce.cuh"})


def translated() -> str:
    return translate_text(CUDA, path="src/run.cu", language="cxx", context=CONTEXT, change=True).text


def codes(text: str) -> set[str]:
    found = check_pair(
        CUDA, text, path="src/run.cu", new_path="src/run.cu", language="cxx", context=CONTEXT, ported=PORTED
    )
    return {row.code for row in found if row.severity == "error"}


def test_the_translation_itself_has_no_error() -> None:
    assert codes(translated()) == set()


PLANTED = [
    ("a misspelt runtime function", "musaMalloc(&device", "musaMaloc(&device", "LP602"),
    ("a misspelt type", "musaStream_t stream;", "musaStream stream;", "LP602"),
    ("a misspelt enum", "musaMemcpyHostToDevice", "musaMemcpyHostToDevise", "LP602"),
    ("a misspelt library function", "mublasSetStream(handle", "mublasSetStreem(handle", "LP602"),
    ("a misspelt collective", "mcclAllReduce(", "mcclAllReduces(", "LP602"),
    ("a runtime function left behind", "musaFree(device", "cudaFree(device", "LP611"),
    ("an enum left behind", "!= musaSuccess", "!= cudaSuccess", "LP611"),
    ("a type left behind", "musaError_t error", "cudaError_t error", "LP611"),
    ("a collective left behind", "mcclSum", "ncclSum", "LP611"),
    ("a macro left behind", "defined(__MUSACC__)", "defined(__CUDACC__)", "LP605"),
    ("one argument too few", "musaMemcpyAsync(device, host, ", "musaMemcpyAsync(device, ", "LP612"),
    ("one argument too many", "musaStreamSynchronize(stream)", "musaStreamSynchronize(stream, 0)", "LP612"),
    ("a collective without its stream", "mcclSum, comm, stream)", "mcclSum, comm)", "LP612"),
    ("a wrong header", "#include <mublas.h>", "#include <mufft.h>", "LP607"),
    ("a header that does not exist", "#include <mublas.h>", "#include <mublas_v2.h>", "LP604"),
    ("a missing header", "#include <mccl.h>\n", "", "LP607"),
    ("a project include renamed to nothing", "own/reduce.cuh", "own/reduce.muh", "LP604"),
    ("an architecture number of NVIDIA", "__MUSA_ARCH__ >= 220", "__MUSA_ARCH__ >= 800", "LP605"),
    ("an architecture guard turned round", "__MUSA_ARCH__ < 210", "__MUSA_ARCH__ < 700", "LP605"),
    ("an architecture guard of a newer target", "__MUSA_ARCH__ >= 220", "__MUSA_ARCH__ >= 310", "LP605"),
    ("a version guard negated", "MUSART_VERSION >= 40300", "MUSART_VERSION < 40300", "LP605"),
    ("a version guard beyond the SDK", "MUSART_VERSION >= 40300", "MUSART_VERSION >= 110000", "LP605"),
    ("asm removed", 'asm volatile(LAKH_PTX_NOT_PORTED "cp.async.wait_all;" ::: "memory");', "", "LP606"),
    (
        "asm behind if (0)",
        'asm volatile(LAKH_PTX_NOT_PORTED "cp',
        'if (0) asm volatile(LAKH_PTX_NOT_PORTED "cp',
        "LP606",
    ),
    ("asm without its guard", 'LAKH_PTX_NOT_PORTED "cp.async', '"cp.async', "LP606"),
    ("a recorded idiom removed", "value = __get_laneid() & 0x1f;", "value = 0;", "LP606"),
    ("the other asm removed", 'asm volatile(LAKH_PTX_NOT_PORTED "mma', '(void)("mma', "LP606"),
    ("a shuffle without its width", "value, offset, 32)", "value, offset)", "LP613"),
    ("warpSize where 32 stood", "(threadIdx.x & 31) == 0", "threadIdx.x % warpSize == 0", "LP613"),
    ("a ballot in 32 bits", "value = warp_sum(value);", "unsigned b = __ballot_sync(0xffffffff, value > 0);", "LP613"),
    (
        "a new mask of 32 lanes",
        "return value;\n}\n\n__global__",
        "__syncwarp(0xffffffff); return value;\n}\n\n__global__",
        "LP613",
    ),
    ("a launch removed", "sum<<<(count + 255) / 256, 256, 0, stream>>>(device, total, count);", "", "LP615"),
    ("a launch without its stream", "256, 0, stream>>>", "256>>>", "LP615"),
    ("a launch with fewer arguments", "(device, total, count);", "(device, total);", "LP615"),
    ("a closing brace lost", "  return musaGetLastError", "  {{ return musaGetLastError", "LP601"),
    ("a parenthesis lost", "musaFree(device);", "musaFree(device;", "LP601"),
]


@pytest.mark.parametrize(("before", "after", "code"), [row[1:] for row in PLANTED], ids=[row[0] for row in PLANTED])
def test_a_planted_error_is_caught(before: str, after: str, code: str) -> None:
    text = translated()
    assert before in text, "the planted place is not there"
    assert code in codes(text.replace(before, after, 1))


def test_at_least_thirty_kinds_of_error_are_planted() -> None:
    assert len({row[0] for row in PLANTED}) >= 30
    assert len({row[3] for row in PLANTED}) >= 9
