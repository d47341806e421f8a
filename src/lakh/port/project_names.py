"""Which cuda words do a project's Python and build files declare as the project's own?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakh.port import build_files, python_code
from lakh.port.findings import PortContext


def own_python_and_build_names(texts: Mapping[str, str], context: PortContext) -> PortContext:
    """The context with the names that Python and build files declare added to its own names.

    Names of the API map are left out: a Python wrapper called cudaMemcpy does not make the runtime's function the
    project's. Where the words are kept the names are not needed, and the context comes back as it is.
    """
    if context.rename != "rename":
        return context
    names: set[str] = set()
    for path, text in texts.items():
        if path.endswith((".py", ".pyi")):
            names |= python_code.declared_names(text)
        elif build_files.is_build_file(path):
            names |= build_files.declared_names(text, path=path)
    names = {name for name in names if not context.maps.is_api(name)}
    return replace(context, own_names=context.own_names | names)
