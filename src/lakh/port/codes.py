"""What does each finding code mean? One row a code; `lakh port explain CODE` prints it.

LP1xx device and host C++, LP2xx names and libraries, LP3xx Python, LP4xx build files, LP5xx files, LP6xx check, LP7xx sync.
A code is never reused for something else: baselines and CI configurations hold them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
"""error: will not build or gives wrong results until a person acts; warning: may; note: done or harmless, good to know."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """One kind of finding."""

    code: str
    severity: Severity
    """The usual severity; a finding may say another where it knows more."""
    title: str
    """What is seen, in one sentence without a final full stop."""
    explanation: str
    """Why it matters on MUSA, with the source of the fact."""
    suggestion: str
    """What to do."""
    effort_lines: float = 1.0
    """Lines a person has to look at or write for one finding of this kind; an estimate (docs/port-results.md)."""


def _code(
    code: str, severity: Severity, title: str, explanation: str, suggestion: str, effort_lines: float = 1.0
) -> Code:
    return Code(
        code=code,
        severity=severity,
        title=title,
        explanation=explanation,
        suggestion=suggestion,
        effort_lines=effort_lines,
    )


_DEVICE = (
    _code(
        "LP101",
        "error",
        "Inline PTX has no recorded MUSA replacement",
        "mcc does not assemble PTX; it has its own asm syntax. The statement is kept, and a guard stops the MUSA compiler with "
        "a message, so that it can never become dead code. (muAlg cub/util_ptx.cuh, Mooncake, torchada#87)",
        "Rewrite the statement with CUDA intrinsics or plain C++, then translate again.",
        8,
    ),
    _code(
        "LP102",
        "note",
        "Inline PTX was replaced by its recorded MUSA equivalent",
        "A vendor port or a public MUSA code base uses this replacement for the same instruction. The behaviour was not run on "
        "hardware here.",
        "Compare the replacement with the intent of the original, above all for memory order and rounding.",
        1,
    ),
    _code(
        "LP103",
        "error",
        "Named barrier (bar.sync id, count)",
        "MUSA has no named barriers. Mooncake replaces them by a full block barrier, which is only right where every thread of "
        "the block arrives.",
        "Restructure so that the whole block meets at __syncthreads(), or use an mp_31 async barrier.",
        15,
    ),
    _code(
        "LP110",
        "warning",
        "32 is written as the warp size",
        "mp_21 and mp_22 have hardware warps of 128 lanes, mp_31 of 32. Vendor ports keep 32-lane code on 128-lane hardware: "
        "shuffles with an explicit width and lane ids masked to five bits work; code that mixes 32 with warpSize does not.",
        "Keep 32 everywhere (explicit shuffle width, lane = thread & 31) and never mix it with warpSize.",
        1,
    ),
    _code(
        "LP111",
        "warning",
        "Full-warp lane mask of 32 bits",
        "The mask covers 32 lanes. It is accepted on 128-lane hardware together with an explicit width of 32; ballots and "
        "population counts over it see 32 lanes only.",
        "Keep the mask only where the shuffle or vote has an explicit width of 32.",
        1,
    ),
    _code(
        "LP112",
        "error",
        "Code derives a value from warpSize",
        "warpSize is 128 on mp_21 and mp_22 and 32 on mp_31. Array sizes, loop bounds and masks derived from it change, while "
        "constants of 32 nearby do not.",
        "Use one named constant of 32 for the logical warp; keep warpSize only in reports.",
        4,
    ),
    _code(
        "LP113",
        "warning",
        "Lane mask, ballot or active-mask result held in 32 bits",
        "On 128-lane hardware a vote over the hardware warp has more than 32 lanes.",
        "Work on logical warps of 32 lanes, or use a type that holds every lane.",
        3,
    ),
    _code(
        "LP120",
        "note",
        "Architecture guard translated with a number for the target",
        "__CUDA_ARCH__ has NVIDIA's numbers and __MUSA_ARCH__ has MUSA's (220 for mp_22, 310 for mp_31). Renaming the macro and "
        "keeping the number flips the branch silently (torchada#90). The branch that CUDA took keeps being taken.",
        "Check that the feature which the guard protects exists on the target.",
        1,
    ),
    _code(
        "LP121",
        "warning",
        "Architecture guard kept as it was",
        "No MUSA number can be derived. On MUSA __CUDA_ARCH__ is not defined, so the condition is what it is for the host.",
        "Decide which branch MUSA takes and write it down with __MUSA_ARCH__.",
        2,
    ),
    _code(
        "LP122",
        "note",
        "Version guard translated with a number for the target",
        "CUDA_VERSION, CUDART_VERSION and friends count CUDA releases; MUSA_VERSION counts MUSA's (torchada#100: MUSA 5.2 is "
        "50200 and passes every CUDA 5 guard but no CUDA 11 guard).",
        "Check that the API which the guard protects exists in the SDK.",
        1,
    ),
    _code(
        "LP123",
        "warning",
        "Version guard kept as it was",
        "The condition compares a CUDA release with something that is not a plain number.",
        "Decide which branch MUSA takes and write it down.",
        2,
    ),
    _code(
        "LP124",
        "warning",
        "Compute capability compared with an NVIDIA number",
        "Device properties report MUSA's numbers (2.2 for mp_22, 3.1 for mp_31), so a host-side threshold such as major >= 8 flips.",
        "Ask for the feature, or compare with MUSA's numbers.",
        2,
    ),
    _code(
        "LP130",
        "error",
        "Grid-wide cooperative synchronisation",
        "Reported unavailable in MUSA device code; the host launch call exists (Mooncake).",
        "Split the kernel at the grid barrier, or synchronise through global-memory counters.",
        20,
    ),
    _code(
        "LP131",
        "error",
        "Dynamic parallelism: a kernel launches a kernel",
        "No MUSA source was seen that launches from device code.",
        "Launch from the host, or turn the recursion into a work queue.",
        30,
    ),
    _code(
        "LP132",
        "warning",
        "Texture or surface object",
        "Texture names are mapped and used in vendor ports, but coverage differs by SDK and 1D/3D/layered variants were not seen.",
        "Test the result against a plain load path; fall back to __ldg or plain loads where performance allows.",
        3,
    ),
    _code(
        "LP133",
        "warning",
        "CUDA graphs",
        "Graphs start at mp_22, and a process holds about 2,048 live executables (torch_musa tests, torchada).",
        "Bound the number of live graph executables; keep an eager path.",
        2,
    ),
    _code(
        "LP134",
        "warning",
        "Programmatic dependent launch",
        "MUSA has none; torchada turns it into a no-op. Order is still that of the stream.",
        "Remove the launch attribute and the device-side wait, or guard them.",
        2,
    ),
    _code(
        "LP135",
        "warning",
        "Stream-ordered allocation or memory pools",
        "Stubbed in torch_musa 2.7.1.",
        "Use a caching allocator on top of musaMalloc until the SDK supports pools.",
        3,
    ),
    _code(
        "LP136",
        "warning",
        "Tensor-core intrinsics (wmma)",
        "The header has the same name; the namespace is mtmusa (ggml). fp16 from mp_22, bf16 and fp8 from mp_31.",
        "Check tile shapes and types against the target.",
        3,
    ),
    _code(
        "LP137",
        "warning",
        "fp8, fp4 or bf16 type",
        "bf16 matrix units and fp8 exist from mp_31; names differ between sources (mt_bfloat16 in a table, __mt_bfloat16 in use).",
        "Keep an fp16 or fp32 path for mp_22.",
        1,
    ),
    _code(
        "LP138",
        "error",
        "Asynchronous copy, TMA or wgmma builtin",
        "MUSA has __musa_memcpy_g2s, __musa_async_*, __musa_tme_* and SQMMA with other operands (tilelang-musa).",
        "Rewrite with the MUSA builtins on mp_31, or with plain loads and __syncthreads().",
        20,
    ),
    _code(
        "LP139",
        "error",
        "System-scope atomic",
        "atomicAdd_system meets a compiler bug in SDK 4.3.3 (Mooncake).",
        "Use a device-scope atomic and __threadfence_system(), or a newer SDK.",
        3,
    ),
    _code(
        "LP140",
        "error",
        "Division of 128-bit integers in device code",
        "mcc crashes on it (4.3.6 and 5.2.0; torch_musa#153).",
        "Divide in 64-bit steps.",
        8,
    ),
    _code(
        "LP141",
        "note",
        "Sources disagree: depends on the SDK",
        "Mooncake avoids __ldg, __byte_perm and __launch_bounds__ on MUSA; vendor kernels use them.",
        "Compile with the SDK that will be used.",
        0.5,
    ),
    _code(
        "LP142",
        "warning",
        "Thread-block cluster or distributed shared memory",
        "No MUSA counterpart was seen.",
        "Use one block, or exchange through global memory.",
        15,
    ),
    _code(
        "LP150",
        "warning",
        "A macro builds names with ##",
        "The tool cannot see the names that come out, so it cannot map them.",
        "Look at each expansion; write the MUSA prefix in the macro.",
        2,
    ),
    _code(
        "LP151",
        "warning",
        "A CUDA symbol or library name inside a string",
        "A string that reaches dlopen, dlsym or a JIT compiler is code; any other string is text. Only the first is translated.",
        "Check what reads the string.",
        1,
    ),
    _code(
        "LP152",
        "warning",
        "Launch configuration uses more than the target may hold",
        "Shared memory and threads of a block differ between CUDA and MUSA devices.",
        "Query the device properties instead of writing numbers.",
        1,
    ),
    _code(
        "LP153",
        "warning",
        "Include of a project file whose name contains cuda",
        "Only the project's own files may be renamed, and only together with the include.",
        "Nothing, unless the file is generated at build time.",
        0.5,
    ),
    _code(
        "LP154",
        "note",
        "The file maps CUDA names to another platform itself",
        "It defines CUDA names as macros (for MUSA, HIP or the like); translating it would map them twice.",
        "Nothing; check that a MUSA branch exists there.",
        0.5,
    ),
)

_NAMES = (
    _code(
        "LP201",
        "error",
        "CUDA name that a source reports missing, stubbed or broken on MUSA",
        "The row of the map has status unsupported; its note and evidence say why, often tied to an SDK version.",
        "Use the alternative in the note, or leave the feature out on MUSA.",
        5,
    ),
    _code(
        "LP202",
        "error",
        "CUDA name without any MUSA name in any source",
        "Neither a naming table, a vendor port, nor MUSA code shows a counterpart.",
        "Look in the SDK headers; add the row (docs/how-to/add-a-mapping.md) or rewrite the call.",
        3,
    ),
    _code(
        "LP203",
        "warning",
        "MUSA name known from a naming table only",
        "The spelling comes from the vendor's table, made for CUDA 11; the symbol was not seen in MUSA code.",
        "Compile against the SDK; if the symbol exists, add evidence to the map.",
        0.2,
    ),
    _code(
        "LP204",
        "warning",
        "MUSA name differs in meaning or between sources",
        "The note of the row says how.",
        "Read the note.",
        1,
    ),
    _code(
        "LP205",
        "error",
        "CUDA-looking name that is in no map and not declared in the project",
        "It may be newer than the maps, come from another library, or be misspelt.",
        "Add the row (docs/how-to/add-a-mapping.md), or pass --map with the library's names.",
        2,
    ),
    _code(
        "LP206",
        "note",
        "Deprecated CUDA macro, gone since CUDA 11",
        "__CUDACC_RDC__-era and __CUDA_FTZ-era macros keep their CUDA names where MUSA defines nothing.",
        "Remove the macro.",
        0.5,
    ),
    _code(
        "LP210",
        "error",
        "cuDNN C API",
        "muDNN is a C++ library (musa::dnn); there is no drop-in (torch_musa, paddle_musa).",
        "Rewrite the calls with musa::dnn, or call the operator through torch_musa.",
        10,
    ),
    _code(
        "LP211",
        "error",
        "NVRTC run-time compilation",
        "Stubbed as unsupported in paddle_musa.",
        "Compile ahead of time with mcc, or load fat binaries.",
        25,
    ),
    _code(
        "LP212",
        "warning",
        "NVTX ranges",
        "MUSA has no NVTX (torchada).",
        "Compile the ranges out, or use the MUPTI tools.",
        0.5,
    ),
    _code(
        "LP213",
        "note",
        "NCCL becomes MCCL",
        "Names map one to one; MCCL is absent on mp_21, and features of NCCL 2.19 and later were not seen.",
        "Check user-buffer registration, communicator split and NVLS use.",
        0.2,
    ),
    _code(
        "LP214",
        "error",
        "Library without a MUSA counterpart",
        "No source names one (for example cuFile, nvJPEG, cuTENSOR, OptiX, NVENC, NVSHMEM, cuBLASDx).",
        "Replace the library or leave the feature out.",
        15,
    ),
    _code(
        "LP215",
        "warning",
        "NVIDIA management library",
        "NVML becomes MTML with other names and structures.",
        "Rewrite with MTML or parse mthreads-gmi.",
        5,
    ),
)

_PYTHON = (
    _code(
        "LP301",
        "note",
        "torch.cuda use",
        "torch_musa offers torch.musa with most of the same functions.",
        "Nothing where the status is same-semantics.",
        0.1,
    ),
    _code(
        "LP302",
        "error",
        "PyTorch op without a torch_musa kernel",
        "PyTorch 2.7.1 has 1,230 ops with a CUDA kernel; torch_musa 2.7.1 registers 1,101 and 3 have a composite fallback.",
        "Run the op on the CPU, compose it from others, or write a kernel.",
        10,
    ),
    _code(
        "LP303",
        "note",
        'Hard-coded "cuda" device string',
        "The device type is musa (PrivateUse1).",
        "Take the device from one place.",
        0.2,
    ),
    _code(
        "LP304",
        "note",
        'Hard-coded "nccl" backend string',
        "The backend is mccl.",
        "Take the backend from one place.",
        0.2,
    ),
    _code(
        "LP305",
        "error",
        "Subprocess call to nvcc, nvidia-smi or another NVIDIA tool",
        "The tools are mcc and mthreads-gmi; their options and output differ.",
        "Replace the call and the parser of its output.",
        4,
    ),
    _code(
        "LP306",
        "note",
        "CUDA environment variable",
        "The variable has a MUSA or MCCL name.",
        "Rename it in launch scripts too.",
        0.2,
    ),
    _code(
        "LP307",
        "error",
        "CUDA shared library opened by name (ctypes, cffi)",
        "libcudart.so is libmusart.so and its symbols are named musa*.",
        "Open the MUSA library and map each symbol.",
        5,
    ),
    _code(
        "LP308",
        "error",
        "Python package that exists for CUDA only",
        "cupy, numba.cuda, pycuda, pynvml, cuda-python, nvidia-dali, transformer-engine, bitsandbytes, flash-attn wheels and the "
        "like ship CUDA binaries.",
        "Replace the package or port its source first.",
        10,
    ),
    _code(
        "LP309",
        "note",
        "CUDAExtension in a build script",
        "torch_musa.utils.musa_extension offers MUSAExtension and its BuildExtension.",
        "Check the sources and the flags.",
        1,
    ),
    _code(
        "LP310",
        "warning",
        "nvcc flag without a recorded mcc counterpart",
        "mcc accepts clang's flags, not nvcc's.",
        "Remove it or find the clang spelling.",
        1,
    ),
    _code(
        "LP311",
        "error",
        "torch.cuda attribute that torch_musa does not export",
        "Static reading of torch_musa 2.7.1; a later release or torchada may add it.",
        "Guard the use with hasattr, or replace it.",
        2,
    ),
    _code(
        "LP312",
        "warning",
        "Compute-capability comparison",
        "torch.musa.get_device_capability returns MUSA's numbers (2, 2) and (3, 1); a CUDA threshold flips.",
        "Ask for the feature, not for the number.",
        2,
    ),
    _code(
        "LP313",
        "warning",
        "torch.backends.cudnn or cuda setting",
        "torch_musa has torch.backends.mudnn with fewer settings.",
        "Check the setting.",
        0.5,
    ),
    _code(
        "LP314",
        "warning",
        "torch.version.cuda",
        "It is None under torch_musa; torch.version.musa has another numbering.",
        "Compare features, not versions.",
        1,
    ),
    _code(
        "LP315",
        "warning",
        "Name built at run time (getattr, importlib, f-string)",
        "The tool cannot see what it becomes.",
        "Check by hand.",
        1,
    ),
    _code(
        "LP316",
        "warning",
        "Triton kernel or inductor option",
        "Triton for MUSA is a separate build; warp counts and shared memory differ.",
        "Test each kernel.",
        3,
    ),
    _code(
        "LP317",
        "error",
        "Python file does not parse",
        "The file was left as it is.",
        "Fix the syntax first (a Python 2 file, a template, or cut off).",
        2,
    ),
    _code(
        "LP318",
        "warning",
        "Python file that already has MUSA code: its CUDA uses were left alone",
        "Code with a branch for each device, or native MUSA code, is damaged when its CUDA half is renamed (torchada#87).",
        "Look at the CUDA uses that are left; port them by hand where no MUSA branch covers them.",
        2,
    ),
)

_BUILD = (
    _code(
        "LP401",
        "warning",
        "CMake language CUDA",
        "CMake has no MUSA language; use FindMUSA with musa_add_*, CXX with -x musa, or language files of one's own (ggml, xllm).",
        "Check the generated target.",
        3,
    ),
    _code(
        "LP402",
        "note",
        "CUDA architecture list",
        "MUSA_ARCHITECTURES is a project variable with values 21;22;31.",
        "Check the list.",
        0.5,
    ),
    _code(
        "LP403",
        "warning",
        "nvcc flag without a recorded mcc counterpart",
        "mcc accepts clang's flags.",
        "Remove it or find the clang spelling.",
        1,
    ),
    _code(
        "LP404",
        "note",
        "find_package of the CUDA toolkit",
        "FindMUSA and FindMUSAToolkit live in the SDK: add /usr/local/musa/cmake to CMAKE_MODULE_PATH.",
        "Check the module path.",
        0.5,
    ),
    _code(
        "LP405",
        "error",
        "Build calls nvcc, cuobjdump, nvprune, fatbinary or ptxas directly",
        "mcc replaces nvcc; the others have no recorded counterpart.",
        "Replace or remove the step.",
        3,
    ),
    _code(
        "LP406",
        "error",
        "Build links a CUDA library without a recorded MUSA counterpart",
        "No source names one.",
        "Remove the library or the feature.",
        3,
    ),
    _code(
        "LP407",
        "error",
        "Required Python package that exists for CUDA only",
        "The wheel contains CUDA binaries.",
        "Remove it, or require the MUSA build.",
        3,
    ),
    _code(
        "LP408",
        "warning",
        "Bazel CUDA rules",
        "rules_cuda has no MUSA counterpart that was seen.",
        "Write a toolchain that calls mcc.",
        20,
    ),
    _code(
        "LP409",
        "warning",
        "CUDA version or compiler test in a build file",
        "A CUDA threshold means nothing for MUSA's numbering.",
        "Decide which branch MUSA takes.",
        2,
    ),
    _code(
        "LP410",
        "warning",
        "CUDA-looking build variable or command without a recorded MUSA counterpart",
        "No source names one.",
        "Check by hand.",
        1,
    ),
    _code(
        "LP411",
        "warning",
        "Build file that already has MUSA code: its CUDA parts were left alone",
        "A build with a branch for each toolkit is damaged when its CUDA branch is renamed.",
        "Look at the CUDA parts that are left.",
        2,
    ),
)

_FILES = (
    _code("LP501", "note", "Binary file skipped", "It has NUL bytes.", "Nothing.", 0),
    _code(
        "LP502",
        "note",
        "File is not UTF-8",
        "It was read byte for byte (Latin-1), so that untouched parts stay equal.",
        "Nothing.",
        0,
    ),
    _code(
        "LP503",
        "note",
        "Symbolic link not followed",
        "It leads outside the root, back to a parent, or nowhere.",
        "Nothing.",
        0,
    ),
    _code(
        "LP504",
        "note",
        "Generated file",
        "Its head says so. It is translated like any other, but the generator would overwrite it.",
        "Port the generator.",
        2,
    ),
    _code(
        "LP505",
        "warning",
        "Very long line",
        "A line of over 20,000 characters is data rather than code; the file was copied unchanged.",
        "Nothing, unless the line is code.",
        1,
    ),
    _code(
        "LP506",
        "warning",
        "The syntax tree has error nodes",
        "Unbalanced code, a macro that hides syntax, or a dialect. Names were translated; structure rules were not applied "
        "inside the error.",
        "Look at the region.",
        2,
    ),
    _code("LP507", "warning", "File too large", "Over 8 MB: copied unchanged.", "Split or exclude the file.", 1),
    _code("LP508", "warning", "File could not be read", "The system refused.", "Check permissions.", 1),
    _code(
        "LP509",
        "error",
        "File could not be translated",
        "The translator failed; the file was copied unchanged.",
        "Report it.",
        5,
    ),
)

_CHECK = (
    _code(
        "LP601",
        "error",
        "New syntax error after translation",
        "The translated file has error nodes that the original has not.",
        "Look at the region; restore or rewrite it.",
        3,
    ),
    _code(
        "LP602",
        "error",
        "MUSA-looking name that no map has",
        "It is neither a target of the maps nor declared in the project.",
        "Correct the name or add the mapping.",
        2,
    ),
    _code(
        "LP603", "warning", "MUSA name known from a naming table only", "See LP203.", "Compile against the SDK.", 0.2
    ),
    _code(
        "LP604",
        "error",
        "Include does not resolve",
        "The original's include resolved inside the project, the translated one does not; or a MUSA header is in no map.",
        "Correct the path.",
        1,
    ),
    _code(
        "LP605",
        "error",
        "Guard changed its value for the target",
        "The branch that the original takes on a current NVIDIA device is not the one that the translated file takes on the target.",
        "Correct the number or the macro.",
        2,
    ),
    _code(
        "LP606",
        "error",
        "Inline asm disappeared without a recorded replacement",
        "An asm statement of the original is neither kept under a compile-stopping guard nor replaced by a recorded idiom, or it sits behind a condition that is never true.",
        "Restore it.",
        8,
    ),
    _code(
        "LP607",
        "error",
        "Header that a MUSA name needs is missing",
        "The name is declared in a header that is not included, or the included header belongs to another library.",
        "Correct the include.",
        1,
    ),
    _code("LP608", "error", "Python file does not compile", "compile() refused it.", "Correct the syntax.", 2),
    _code(
        "LP609",
        "error",
        "Python import does not resolve",
        "Neither the project, the standard library, the declared target nor the original imports it.",
        "Correct the import.",
        1,
    ),
    _code(
        "LP610",
        "error",
        "Reverse-header compile failed where the original passes",
        "With each MUSA name defined back to its CUDA name, a CUDA front end refuses the translated file.",
        "Read the compiler message.",
        2,
    ),
    _code(
        "LP611",
        "error",
        "CUDA name left in a translated file",
        "It is not in a guarded CUDA branch, a comment or a string.",
        "Translate it.",
        1,
    ),
    _code(
        "LP612",
        "error",
        "Wrong number of arguments",
        "The call has fewer or more arguments than the declared function, or than the original call.",
        "Correct the call.",
        1,
    ),
    _code(
        "LP613",
        "error",
        "32 lanes assumed where the target has 128",
        "A mask, shift or width of 32 together with warpSize or an implicit shuffle width.",
        "State the width of 32, or use the lane count of the target.",
        3,
    ),
    _code(
        "LP614",
        "note",
        "Reverse-header compile skipped",
        "clang or the CUDA headers are not installed.",
        "Install them to run this step.",
        0,
    ),
    _code(
        "LP615",
        "error",
        "Launch configuration lost or changed",
        "The launch has another kernel or another number of arguments than the original.",
        "Restore it.",
        2,
    ),
    _code(
        "LP616",
        "error",
        "Translated file is missing or cut off",
        "The original has a file that the port does not have, or the port's file is empty.",
        "Translate again.",
        2,
    ),
)

_SYNC = (
    _code(
        "LP701",
        "error",
        "Conflict between a hand edit and the upstream update",
        "Both changed the same lines of the translated file; conflict markers were written.",
        "Resolve the markers, then run sync again.",
        5,
    ),
    _code(
        "LP702",
        "warning",
        "File edited by hand and removed upstream",
        "The edited copy was kept.",
        "Remove it if it is not needed.",
        2,
    ),
    _code(
        "LP703",
        "warning",
        "File removed by hand and changed upstream",
        "It was not written again.",
        "Restore it if it is needed.",
        2,
    ),
)

CODES: Mapping[str, Code] = {row.code: row for row in (*_DEVICE, *_NAMES, *_PYTHON, *_BUILD, *_FILES, *_CHECK, *_SYNC)}
"""Every code, in order."""
