"""What C, C++ and CUDA text becomes, and what is left alone."""

from __future__ import annotations

import pytest

from lakh.port.cpp import assess, translate
from lakh.port.findings import PortContext

KEEP = PortContext()
RENAME = PortContext(rename="rename")


def run(text: str, context: PortContext = KEEP, path: str = "a.cu") -> str:
    return translate(text, path=path, context=context).text


@pytest.mark.parametrize(
    ("cuda", "musa"),
    [
        ("cudaMalloc(&p, 4);", "musaMalloc(&p, 4);"),
        ("cuMemAlloc(&p, 4);", "muMemAlloc(&p, 4);"),
        ("cublasCreate(&h);", "mublasCreate(&h);"),
        ("cufftPlan1d(&p, 8, CUFFT_C2C, 1);", "mufftPlan1d(&p, 8, MUFFT_C2C, 1);"),
        ("ncclAllReduce(a, b, n, ncclFloat, ncclSum, c, s);", "mcclAllReduce(a, b, n, mcclFloat, mcclSum, c, s);"),
        ("#include <cuda_runtime.h>", "#include <musa_runtime.h>"),
        ("#include <cublas_v2.h>", "#include <mublas.h>"),
        ("#include <thrust/device_vector.h>", "#include <thrust/device_vector.h>"),
        ("#include <thrust/system/cuda/execution_policy.h>", "#include <thrust/system/musa/execution_policy.h>"),
        ("#include <cutlass/gemm/gemm.h>", "#include <mutlass/gemm/gemm.h>"),
        ("using namespace cute; CUTE_UNROLL", "using namespace mute; MUTE_UNROLL"),
        ("nvcuda::wmma::fragment<A> f;", "mtmusa::wmma::fragment<A> f;"),
        ("cub::DeviceScan::ExclusiveSum(a, b);", "cub::DeviceScan::ExclusiveSum(a, b);"),
        ("__nv_bfloat16 x;", "__mt_bfloat16 x;"),
        ("k<<<grid, block, 0, s>>>(a);", "k<<<grid, block, 0, s>>>(a);"),
        ("x.device().type() == at::kCUDA;", "x.device().type() == at::kPrivateUse1;"),
        ("c10::DeviceType::CUDA", "c10::DeviceType::PrivateUse1"),
        ("#define CALL(name) cuda##name()", "#define CALL(name) musa##name()"),
        ('dlsym(h, "cudaMemcpyAsync");', 'dlsym(h, "musaMemcpyAsync");'),
        ('dlopen("libcudart.so", 1);', 'dlopen("libmusart.so", 1);'),
    ],
)
def test_a_name_becomes_its_musa_name(cuda: str, musa: str) -> None:
    assert run(cuda + "\n") == musa + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "// cudaMalloc is slow\n",
        "/* cudaFree(p); */\n",
        'printf("cudaMalloc failed for %d\\n", n);\n',
        'auto s = R"x(cudaMalloc // )x";\n',
        "musaMalloc(&p, 4);\n",
        "int barracuda = 1; customCuda();\n",
        "curl_easy_init(); current = cursor;\n",
        'asm volatile("" ::: "memory");\n',
        "#if defined(USE_MUSA)\ncudaMalloc(&p, 4);\n#endif\n",
        "#ifdef __HIP_PLATFORM_AMD__\n#define gpuMalloc cudaMalloc\n#endif\n",
    ],
)
def test_text_that_is_not_cuda_code_is_left_alone(text: str) -> None:
    assert run(text, path="a.cpp") == text


def test_a_header_that_maps_the_names_itself_is_left_alone() -> None:
    text = "#define cudaMalloc musaMalloc\n#define cudaFree musaFree\n#define cudaError_t musaError_t\ncudaError_t e;\n"
    assert run(text, path="vendors/musa.h") == text


def test_x86_assembly_is_left_alone() -> None:
    text = 'int cuda; void f() { asm volatile("rdtsc" : "=a"(a), "=d"(d)); __asm__("pause"); }\n'
    assert "LAKH" not in run(text, path="a.cpp")


def test_own_words_stay_under_keep_and_change_under_rename() -> None:
    text = "class AcmeCudaPool {}; void acme_cuda_check(); #define ACME_CUDA 1\n"
    assert run(text) == text
    assert run(text, RENAME) == "class AcmeMusaPool {}; void acme_musa_check(); #define ACME_MUSA 1\n"


def test_constants_of_other_interfaces_keep_their_cuda_word() -> None:
    text = "f(EGL_CUDA_DEVICE_NV, AV_PIX_FMT_CUDA);\n"
    assert run(text, RENAME) == text


def test_a_name_that_the_project_defines_stays_under_keep() -> None:
    context = PortContext(own_names=frozenset({"cudaCheck"}))
    assert run("cudaCheck(cudaFree(p));\n", context) == "cudaCheck(musaFree(p));\n"


def test_own_includes_follow_their_file() -> None:
    files = frozenset({"src/cuda/pool.cuh", "src/main.cu", "include/acme/cuda_pool.h"})
    renames = {"src/cuda/pool.cuh": "src/musa/pool.muh", "include/acme/cuda_pool.h": "include/acme/musa_pool.h"}
    context = PortContext(rename="rename", own_files=files, file_renames=renames)
    text = '#include "cuda/pool.cuh"\n#include <acme/cuda_pool.h>\n#include <other/cuda_pool.h>\n'
    expected = '#include "musa/pool.muh"\n#include <acme/musa_pool.h>\n#include <other/cuda_pool.h>\n'
    assert run(text, context, "src/main.cu") == expected


def test_own_includes_stay_under_keep() -> None:
    context = PortContext(own_files=frozenset({"cuda_runtime.h", "main.cu"}))
    assert run('#include "cuda_runtime.h"\n', context, "main.cu") == '#include "cuda_runtime.h"\n'


@pytest.mark.parametrize(
    ("ptx", "musa"),
    [
        ('asm("mov.u32 %0, %%laneid;" : "=r"(x));', "x = __get_laneid() & 0x1f;"),
        ('asm volatile("bfe.u32 %0, %1, %2, %3;" : "=r"(x) : "r"(a), "r"(b), "r"(c));', "x = __bfe_u32(a, b, c);"),
        ('asm volatile("exit;");', "__musa_exit();"),
        ('asm volatile("membar.gl;" ::: "memory");', "__threadfence();"),
        ('asm volatile("bar.sync 0;");', "__syncthreads();"),
        ('asm("xor.b32 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(b + 1));', "x = a ^ (b + 1);"),
        ('asm("mul.hi.u32 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(b));', "x = __umulhi(a, b);"),
        (
            'asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(x) : "l"(p));',
            "x = *reinterpret_cast<const unsigned int*>(p);",
        ),
        (
            'asm volatile("shfl.sync.down.b32 %0, %1, %2, 0x1f, %3;" : "=r"(x) : "r"(a), "r"(d), "r"(m));',
            "x = __shfl_down_sync(m, a, d, 32);",
        ),
    ],
)
def test_a_recorded_ptx_idiom_is_replaced(ptx: str, musa: str) -> None:
    result = translate(f"__device__ void f() {{ {ptx} }}\n", path="a.cu", context=KEEP)
    assert result.text == f"__device__ void f() {{ {musa} }}\n"
    assert "LP102" in {row.code for row in result.findings}


@pytest.mark.parametrize(
    "ptx",
    [
        'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
        'asm("{\\n" ".reg .b32 t;\\n" "lop3.b32 %0, %1, %2, %3, 0x96;\\n" "}" : "=r"(x) : "r"(a), "r"(b), "r"(c));',
        'asm volatile(PTX_TEXT(1) : : "r"(a));',
    ],
)
def test_other_ptx_stays_behind_a_guard_and_is_reported(ptx: str) -> None:
    result = translate(f"__device__ void f() {{ {ptx} }}\n", path="a.cu", context=KEEP)
    assert "asm" in result.text and ptx.split('"')[1] in result.text
    assert "LAKH_PTX_NOT_PORTED" in result.text.split("asm", 1)[1]
    assert "GCC error" in result.text
    assert {row.code for row in result.findings} & {"LP101"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('__device__ void f() { asm volatile("bar.sync 1, 64;"); }', "LP103"),
        ("__device__ int w = threadIdx.x / warpSize;", "LP112"),
        ("__device__ int v = __shfl_sync(m, x, 0);", "LP113"),
        ("__device__ int v = __shfl_sync(0xffffffff, x, 0, 32);", "LP111"),
        ("#define WARP_SIZE 32\n__global__ void k();", "LP110"),
        ("__device__ void f() { cg::this_grid().sync(); }", "LP130"),
        ("__global__ void k() { child<<<1, 1>>>(); }", "LP131"),
        ("cudaTextureObject_t t;", "LP132"),
        ("cudaGraphLaunch(g, s);", "LP133"),
        ("cudaGridDependencySynchronize();", "LP134"),
        ("cudaMallocAsync(&p, 4, s);", "LP135"),
        ("nvcuda::wmma::fragment<A> f;", "LP136"),
        ("__nv_fp8_e4m3 x;", "LP137"),
        ("cuda::memcpy_async(g, a, b, n, p);", "LP138"),
        ("__device__ void f() { atomicAdd_system(p, 1); }", "LP139"),
        ("__device__ __int128 f(__int128 a) { return a / 3; }", "LP140"),
        ("__device__ float f(float *p) { return __ldg(p); }", "LP141"),
        ("#define CALL(n) cuda##n()", "LP150"),
        ("if (prop.major >= 8) use_cuda();", "LP124"),
        ("cudnnCreate(&h);", "LP210"),
        ("nvrtcCompileProgram(p, 0, 0);", "LP211"),
        ("#include <nvToolsExt.h>", "LP212"),
        ("ncclCommInitAll(&c, 1, d);", "LP213"),
        ("cudaNotInAnyMapAtAll(1);", "LP205"),
        ("int f( { cudaFree(p);", "LP506"),
    ],
)
def test_a_hazard_is_reported_with_its_code(text: str, code: str) -> None:
    result = assess(text + "\n", path="a.cu", context=PortContext(arch="mp_22"))
    assert code in {row.code for row in result.findings}
    assert result.text == text + "\n"


def test_every_name_without_a_musa_name_is_listed_with_its_line() -> None:
    result = translate("\ncudaGetDeviceProperties_v2(&p, 0);\n", path="a.cu", context=KEEP)
    assert [(row.code, row.line, row.status) for row in result.findings if row.name] == [("LP201", 2, "unsupported")]


def test_crlf_and_bytes_that_are_not_utf8_come_out_as_they_went_in() -> None:
    text = b"// \xff caf\xc3\xa9\r\ncudaFree(p);\r\n".decode("utf-8", errors="surrogateescape")
    assert run(text) == text.replace("cudaFree", "musaFree")


def test_an_include_in_angle_brackets_is_the_toolkits_although_the_project_has_a_file_of_that_name() -> None:
    context = PortContext(own_files=frozenset({"vendors/cuda.h", "vendors/main.cu"}))
    assert run("#include <cuda.h>\n", context, "vendors/main.cu") == "#include <musa.h>\n"
    assert run('#include "cuda.h"\n', context, "vendors/main.cu") == '#include "cuda.h"\n'
