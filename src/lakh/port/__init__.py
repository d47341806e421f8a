"""Will my code move, and what is left? Assess, translate, check and keep in step a CUDA code base on MUSA."""

from importlib.util import find_spec

from lakh.errors import CouldNotError

_missing = [name for name in ("libcst", "tree_sitter", "tree_sitter_cuda") if find_spec(name) is None]
if _missing:
    raise CouldNotError(f"lakh port needs {', '.join(_missing)}: pip install '.[port]' in a checkout of Lakh")
