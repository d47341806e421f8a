"""What a Python file becomes on MUSA."""

import ast
from dataclasses import replace

import pytest

from lakh.port.findings import PortContext, Translation
from lakh.port.python_code import assess, declared_names, translate

KEEP = PortContext()
RENAME = PortContext(rename="rename", own_names=frozenset({"use_cuda", "CudaPool", "requires_cuda"}))


def port(text: str, context: PortContext = KEEP, path: str = "pkg/module.py") -> Translation:
    return translate(text, path=path, context=context)


def codes(translation: Translation) -> set[str]:
    return {finding.code for finding in translation.findings}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\ntorch.cuda.synchronize()\n", "import torch\ntorch.musa.synchronize()\n"),
        ("import torch as th\nth.cuda.empty_cache()\n", "import torch as th\nth.musa.empty_cache()\n"),
        ("import torch\ng = torch.cuda.CUDAGraph()\n", "import torch\ng = torch.musa.MUSAGraph()\n"),
        ("import torch\nm = torch.cuda\n", "import torch\nm = torch.musa\n"),
        ("import torch\nx = y.cuda()\n", "import torch\nx = y.musa()\n"),
        ("x = y.cuda(non_blocking=True).half()\n", "x = y.musa(non_blocking=True).half()\n"),
        ("ok = x.is_cuda and y.is_cuda\n", "ok = x.is_musa and y.is_musa\n"),
        ("s = stream.cuda_stream\n", "s = stream.musa_stream\n"),
        ("torch.cuda.cudart().cudaProfilerStart()\n", "torch.musa.musart().musaProfilerStart()\n"),
        ("import torch\nv = torch.version.cuda\n", "import torch\nv = torch.version.musa\n"),
        (
            "import torch\ntorch.backends.cudnn.allow_tf32 = True\n",
            "import torch\ntorch.backends.mudnn.allow_tf32 = True\n",
        ),
        (
            "import torch\na = torch.profiler.ProfilerActivity.CUDA\n",
            "import torch\na = torch.profiler.ProfilerActivity.MUSA\n",
        ),
    ],
)
def test_torch_names_follow_the_map(before: str, after: str) -> None:
    assert port(before).text == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("d = 'cuda'\n", "d = 'musa'\n"),
        ('d = "cuda:1"\n', 'd = "musa:1"\n'),
        ('d = f"cuda:{rank}"\n', 'd = f"musa:{rank}"\n'),
        ('d = "cuda:" + str(rank)\n', 'd = "musa:" + str(rank)\n'),
        ('d = "cuda:{}".format(rank)\n', 'd = "musa:{}".format(rank)\n'),
        ('ok = x.device.type == "cuda"\n', 'ok = x.device.type == "musa"\n'),
        ('def f(device="cuda"): ...\n', 'def f(device="musa"): ...\n'),
        ('init(backend="nccl")\n', 'init(backend="mccl")\n'),
        ('init("cpu:gloo,cuda:nccl")\n', 'init("cpu:gloo,musa:mccl")\n'),
        ('t = {"cpu": f, "cuda": g}\n', 't = {"cpu": f, "musa": g}\n'),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = "0"\n', 'os.environ["MUSA_VISIBLE_DEVICES"] = "0"\n'),
        ('ctypes.CDLL("libcudart.so")\n', 'ctypes.CDLL("libmusart.so")\n'),
        ('p = "/usr/local/cuda-12.4/lib64"\n', 'p = "/usr/local/musa/lib64"\n'),
        ('t = Target("cuda -arch=sm_80")\n', 't = Target("musa -arch=mp_31")\n'),
        ('m.impl("op", f, "CUDA")\n', 'm.impl("op", f, "PrivateUse1")\n'),
        ('patch("torch.cuda.is_available")\n', 'patch("torch.musa.is_available")\n'),
    ],
)
def test_strings_with_a_meaning_to_torch_or_the_system_are_translated(before: str, after: str) -> None:
    assert port(before).text == after


@pytest.mark.parametrize(
    "text",
    [
        'print("cuda")\n',
        'log.info("no cuda device")\n',
        '"""Runs on cuda."""\n',
        'def f():\n    """cuda"""\n',
        'parser.add_argument("--fast", help="cuda")\n',
        'options = {"cuda": load_options(), "colour": "red"}\n',
        "use_cuda = True\n",
        "cuda_pool = CudaPool()\n",
        'importlib.import_module("cuda")\n',
        'b = b"cuda"\n',
        "# torch.cuda and cuda:0\nx = 1\n",
        "from numba import cuda\n\n\n@cuda.jit\ndef f(x): ...\n",
        "import pytest\n\n\n@pytest.mark.cuda()\ndef test(): ...\n",
    ],
)
def test_text_and_the_projects_own_words_stay(text: str) -> None:
    assert port(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        'device = "musa" if torch.musa.is_available() else "cuda"\n',
        'backends = {"cuda": "nccl", "musa": "mccl"}\n',
        "if is_musa():\n    torch.musa.synchronize()\nelse:\n    torch.cuda.synchronize()\n",
        "if is_cuda():\n    torch.cuda.synchronize()\nelif is_musa():\n    torch.musa.synchronize()\n",
        "import torch, torch_musa\nok = torch.cuda.is_available() or torch.musa.is_available()\n",
    ],
)
def test_code_that_already_speaks_of_musa_is_left_alone_and_reported(text: str) -> None:
    result = port(text)
    assert result.text == text
    assert "LP318" in codes(result)


def test_a_comment_about_musa_does_not_make_a_file_native() -> None:
    text = "# not yet on musa\nd = 'cuda'  # musa\n"
    assert port(text).text == text.replace("'cuda'", "'musa'")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch.cuda.amp import autocast\n", "from torch_musa.core.amp import autocast\n"),
        ("from torch.cuda import Stream\n", "from torch_musa import Stream\n"),
        ("from torch.cuda import CUDAGraph\n", "from torch_musa import MUSAGraph as CUDAGraph\n"),
        ("from torch import cuda\ncuda.synchronize()\n", "from torch import musa as cuda\ncuda.synchronize()\n"),
        ("import torch.cuda as tc\ntc.synchronize()\n", "import torch_musa as tc\ntc.synchronize()\n"),
        ("import torch.cuda\ntorch.cuda.seed()\n", "import torch, torch_musa\ntorch.musa.seed()\n"),
        ("import pynvml\npynvml.nvmlInit()\n", "import pymtml as pynvml\npynvml.nvmlInit()\n"),
        ("from pynvml import nvmlInit\n", "from pymtml import nvmlInit\n"),
        ("from triton.language.extra.cuda import libdevice\n", "from triton.language.extra.musa import libdevice\n"),
        ("import torch.backends.cudnn as cudnn\n", "from torch.backends import mudnn as cudnn\n"),
    ],
)
def test_imports_name_modules_that_exist(before: str, after: str) -> None:
    assert port(before).text == after


def test_an_extension_build_moves_to_musa_extension() -> None:
    before = (
        "from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension\n"
        "ext = CUDAExtension('a', ['a.cu'], extra_compile_args={'cxx': ['-O3'], 'nvcc': ['-O3', '--use_fast_math',\n"
        "    '-gencode', 'arch=compute_80,code=sm_80', '-gencode', 'arch=compute_90,code=sm_90']},\n"
        "    libraries=['cudart'])\n"
        "setup(cmdclass={'build_ext': BuildExtension})\n"
    )
    after = (
        "from torch.utils.cpp_extension import CppExtension\n"
        "from torch_musa.utils.musa_extension import BuildExtension, MUSAExtension\n"
        "ext = MUSAExtension('a', ['a.cu'], extra_compile_args={'cxx': ['-O3'], 'mcc': ['-O3', '-ffast-math',\n"
        "    '--offload-arch=mp_31']},\n"
        "    libraries=['musart'])\n"
        "setup(cmdclass={'build_ext': BuildExtension})\n"
    )
    assert port(before, path="setup.py").text == after


def test_a_renamed_source_is_followed_in_the_build_script() -> None:
    context = replace(KEEP, file_renames={"csrc/a.cu": "csrc/a.mu", "csrc/b.cu": "csrc/b.mu"})
    text = "sources = ['csrc/a.cu', *glob('csrc/*.cu'), 'csrc/c.cpp']\n"
    assert port(text, context, "setup.py").text == "sources = ['csrc/a.mu', *glob('csrc/*.mu'), 'csrc/c.cpp']\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import torch\ntorch.cuda.nvtx.range_push('x')\n", "LP212"),
        ("import torch\ntorch.cuda.FloatTensor(3)\n", "LP311"),
        ("import torch\nmajor, _ = torch.cuda.get_device_capability()\n", "LP312"),
        ("import torch\ntorch.segment_reduce(x, 'sum')\n", "LP302"),
        ("import torch\ntorch.special.bessel_j0(x)\n", None),
        ("import torch\ntorch.special.spherical_bessel_j0(x)\n", "LP302"),
        ("import subprocess\nsubprocess.run(['nvidia-smi', '-q'])\n", "LP305"),
        ("import ctypes\nctypes.CDLL('libnccl.so.2')\n", "LP307"),
        ("import cupy\n", "LP308"),
        ("import pynvml\n", "LP308"),
        ("import pynvml\npynvml.nvmlDeviceSetGpuLockedClocks(h, 1, 2)\n", "LP308"),
        ("from flash_attn import flash_attn_func\n", "LP308"),
        ("import torch\ngetattr(torch.cuda, name)()\n", "LP315"),
        ("import triton\n", "LP316"),
        ("print 'cuda'\n", "LP317"),
        ("import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n", "LP313"),
    ],
)
def test_what_does_not_carry_over_is_a_finding_with_its_line(text: str, code: str | None) -> None:
    result = port(text)
    if code is None:
        assert codes(result) == set()
        return
    found = [finding for finding in result.findings if finding.code == code]
    assert found
    assert all(1 <= finding.line <= text.count("\n") for finding in found)


@pytest.mark.parametrize("name", ["nvtx.range_pop()", "FloatTensor(2)", "comm.broadcast(x)"])
def test_a_name_that_torch_musa_lacks_is_not_invented(name: str) -> None:
    text = f"import torch\ntorch.cuda.{name}\n"
    assert port(text).text == text


@pytest.mark.parametrize("text", ["x = torch.cuda.(\n", "def f(:\n  'cuda'\n", "x = 'cuda\n", "\0cuda"])
def test_a_file_that_does_not_parse_comes_back_byte_equal_with_a_finding(text: str) -> None:
    result = port(text)
    assert result.text == text
    assert codes(result) == {"LP317"}


def test_line_ends_tabs_and_comments_stay() -> None:
    before = "import torch  # cuda\r\n\r\nif x:\r\n\ttorch.cuda.synchronize( )   # wait for cuda\r\n"
    assert port(before).text == before.replace("torch.cuda.s", "torch.musa.s")


def test_the_last_line_needs_no_newline() -> None:
    assert port("x = y.cuda()").text == "x = y.musa()"


def test_torchada_keeps_cuda_names_and_imports_torchada_first_in_entry_files() -> None:
    context = replace(KEEP, python_mode="torchada")
    text = 'import os\nimport torch\n\nif __name__ == "__main__":\n    x = torch.ones(3, device="cuda").cuda()\n'
    expected = text.replace("import torch\n", "import torchada  # noqa: F401\nimport torch\n")
    result = port(text, context)
    assert result.text == expected
    assert port(expected, context).text == expected
    library = 'import torch\nd = "cuda"\n'
    assert port(library, context).text == library


def test_an_older_stack_gets_the_import_that_newer_torch_does_by_itself() -> None:
    text = 'import torch\n\nif __name__ == "__main__":\n    torch.cuda.synchronize()\n'
    old = port(text, replace(KEEP, sdk="4.3")).text
    assert old.startswith("import torch\nimport torch_musa\n")
    assert port(old, replace(KEEP, sdk="4.3")).text == old
    assert "torch_musa" not in port(text).text


def test_the_rename_policy_follows_the_projects_own_names() -> None:
    text = (
        "from acme.testing import requires_cuda\n\n\n@requires_cuda\ndef test_cuda_pool(use_cuda):\n"
        '    pool = CudaPool(use_cuda=use_cuda)\n    pytest.skip("CUDA not available")\n'
    )
    context = replace(RENAME, own_modules=frozenset({"acme"}))
    assert port(text, context).text == text.replace("cuda", "musa").replace("Cuda", "Musa").replace("CUDA", "MUSA")


def test_the_rename_policy_leaves_foreign_names() -> None:
    text = "from other import use_cuda\n\nother_fn(use_cuda)\n"
    assert port(text, RENAME).text == text


def test_a_foreign_name_that_a_module_offers_as_its_own_gets_an_alias() -> None:
    text = 'from tvm.testing import requires_cuda\n\n__all__ = ["requires_cuda"]\nrequires_cuda.marks()\n'
    expected = (
        'from tvm.testing import requires_cuda as requires_musa\n\n__all__ = ["requires_musa"]\nrequires_musa.marks()\n'
    )
    assert port(text, RENAME).text == expected


def test_a_renamed_module_is_followed_in_imports() -> None:
    context = replace(
        RENAME,
        own_modules=frozenset({"acme"}),
        file_renames={"src/acme/cuda_pool.py": "src/acme/musa_pool.py"},
    )
    text = (
        "from acme import cuda_pool\nfrom acme.cuda_pool import grow\nfrom .cuda_pool import shrink\ncuda_pool.grow()\n"
    )
    assert port(text, context, "src/acme/use.py").text == text.replace("cuda_pool", "musa_pool")


def test_urls_and_unknown_cuda_variables_stay_under_the_rename_policy() -> None:
    text = 'a = "https://docs.nvidia.com/cuda/index.html"\nb = "CUDA_DEVICE_MAX_CONNECTIONS"\n'
    assert port(text, RENAME).text == text


def test_a_source_name_that_is_put_together_follows_the_new_suffix() -> None:
    context = replace(RENAME, file_renames={"csrc/cuda/a_cuda.cu": "csrc/musa/a_musa.mu"})
    text = "path = join('csrc', 'cuda', f'{name}_cuda.cu')\nis_device = path.endswith('.cu')\n"
    once = port(text, context, "setup.py").text
    assert once == "path = join('csrc', 'musa', f'{name}_musa.mu')\nis_device = path.endswith('.mu')\n"
    assert port(once, context, "setup.py").text == once


def test_an_operator_of_the_project_follows_the_string_that_registers_it() -> None:
    text = "import torch\nv = torch.ops.acme.cuda_version()\nw = torch.ops.aten.cudnn_convolution(x)\n"
    assert port(text, RENAME).text == text.replace("cuda_version", "musa_version")
    assert port(text).text == text


def test_a_command_is_renamed_at_once() -> None:
    text = 'template = "${cuda_path}/bin/nvcc -o x"\n'
    once = port(text, RENAME).text
    assert once == 'template = "${musa_path}/bin/mcc -o x"\n'
    assert port(once, RENAME).text == once


def test_assess_finds_the_same_and_changes_nothing() -> None:
    text = "import torch\nimport cupy\ntorch.cuda.synchronize()\nd = 'cuda'\n"
    looked = assess(text, path="a.py", context=KEEP)
    assert looked.text == text
    assert looked.changed_line_count == 0
    assert looked.findings == port(text, path="a.py").findings
    assert {use.name for use in looked.uses} >= {"torch.cuda.synchronize", "device string", "cupy"}


def test_changed_lines_are_counted() -> None:
    assert port("import torch\nx = y.cuda().cuda()\nz = 1\nd = 'cuda'\n").changed_line_count == 2


def test_declared_names_are_functions_classes_parameters_variables_and_attributes_with_a_cuda_word() -> None:
    text = "class CudaA:\n    def f(self, p_cuda):\n        self.q_cuda = local_cuda = p_cuda\n\n__all__ = ['r_cuda']\n"
    assert declared_names(text) == {"CudaA", "p_cuda", "q_cuda", "local_cuda", "r_cuda"}
    assert declared_names("def cuda(") == frozenset()


def test_the_result_parses() -> None:
    text = "import torch\nfrom torch.cuda import amp, nccl\nwith amp.autocast(): x = f'{d}cuda:{r}'\n"
    ast.parse(port(text).text)
