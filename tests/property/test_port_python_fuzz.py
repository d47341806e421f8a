"""What a Python translation never does, whatever it is given."""

import ast
import warnings

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakh.port.findings import PortContext
from lakh.port.python_code import assess, translate

CONTEXTS = (
    PortContext(),
    PortContext(rename="rename", own_names=frozenset({"use_cuda", "cuda_pool"}), sdk="4.3"),
    PortContext(python_mode="torchada"),
)
LINES = [
    "import torch\n",
    "import torch.cuda\n",
    "from torch import cuda\n",
    "from torch.cuda.amp import autocast\n",
    "torch.cuda.synchronize()\n",
    "torch.cuda.nvtx.mark('x')\n",
    "x = y.cuda()\n",
    "d = 'cuda'\n",
    'd = f"cuda:{r}"\n',
    "use_cuda = True\n",
    "'''cuda'''\n",
    "# cuda\n",
    "import torch_musa\n",
    "__all__ = ['cuda']\n",
    "print 'cuda'\n",
    "from torch.utils.cpp_extension import CUDAExtension, CppExtension\n",
    "e = {'nvcc': ['-gencode', 'arch=sm_80']}\n",
    'if __name__ == "__main__": pass\n',
    "from .cuda_pool import *\n",
    "lambda cuda: cuda.cuda()\n",
    "x: 'cuda' = 1\n",
    "async def f(): await x.cuda()\n",
    "with torch.cuda.device(0), x.cuda() as cuda: pass\n",
    "del x.is_cuda, torch\n",
    "[torch.cuda for cuda in 'cuda']\n",
    "match cuda:\n case 'cuda': pass\n",
    "class A:\n def cuda(self): return self\n",
    "def f(cuda='cuda', *, use_cuda): return f'{cuda}cuda'\n",
    "if is_musa(): torch.musa.seed()\nelse: torch.cuda.seed()\n",
    "x = ('cuda'\n     'cuda')\n",
    "global use_cuda\n",
    "try: import cupy\nexcept ImportError: cupy = None\n",
]
MARKS = [
    "    ",
    "\t",
    "\\\n",
    "\r\n",
    "\r",
    "\f",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'",
    '"',
    "f'{",
    "}'",
    ";",
    ":",
    "\0",
    "é",
    "\ud800",
]
TEXTS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(LINES), max_size=12).map("".join),
    st.lists(st.sampled_from(LINES + MARKS), max_size=12).map("".join),
)


def parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(CONTEXTS))
@example("import torch.cuda\rtorch.cuda.seed()\r", CONTEXTS[0])
@example("if 1: from torch.utils.cpp_extension import CUDAExtension, CppExtension\n", CONTEXTS[0])
def test_any_text_in_text_out_and_a_second_run_changes_nothing(text: str, context: PortContext) -> None:
    once = translate(text, path="pkg/a.py", context=context)
    assert translate(once.text, path="pkg/a.py", context=context).text == once.text
    assert "LP509" not in {finding.code for finding in once.findings}
    if parses(text):
        assert parses(once.text)
    else:
        assert once.text == text
    looked = assess(text, path="pkg/a.py", context=context)
    assert looked.text == text
    assert all(1 <= item.line <= text.count("\n") + text.count("\r") + 1 for item in (*looked.findings, *looked.uses))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=8).map("".join))
def test_lines_without_a_word_of_cuda_stay_byte_equal(text: str) -> None:
    marker = "untouched = [ 1,2 ,3 ]   # \t spacing\n"
    result = translate(f"{marker}{text}{marker}", path="a.py", context=CONTEXTS[0]).text
    assert result.startswith(marker)
    assert result.endswith(marker)
