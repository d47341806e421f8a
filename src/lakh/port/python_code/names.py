"""Which names does a Python file bind, and which module does each come from?"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field

from lakh.port.own_words import has_own_word


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedName:
    """A name bound by an import statement."""

    target: str
    """Dotted path of what is bound: "torch.cuda.amp" for `from torch.cuda import amp`."""
    level: int
    """Leading dots of a relative import."""
    first_line: int
    line: int
    """Line where the statement ends."""
    top_level: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """Names of one file."""

    imported: dict[str, ImportedName] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()
    """Functions, classes, parameters, variables and attributes that the file binds itself, and what `__all__` lists."""
    exported: frozenset[str] = frozenset()
    """What `__all__` lists: the module's own interface, wherever a name comes from."""


def parse(text: str) -> ast.Module | None:
    """The syntax tree, or None where Python cannot read the text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def names_of(tree: ast.Module) -> Names:
    """Every name that a file binds."""
    imported: dict[str, ImportedName] = {}
    declared: set[str] = set()
    exported = _exported(tree)
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                target = alias.name if alias.asname else name
                imported[name] = _imported(node, target, 0, top)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:
                target = f"{module}.{alias.name}" if module else alias.name
                imported[alias.asname or alias.name] = _imported(node, target, node.level, top)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            declared.add(node.name)
        elif isinstance(node, ast.arg):
            declared.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            declared.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            declared.add(node.attr)
    return Names(imported=imported, declared=frozenset(declared | exported), exported=frozenset(exported))


def _exported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            names |= {
                item.value
                for item in ast.walk(node)
                if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value.isidentifier()
            }
    return names


def _imported(node: ast.Import | ast.ImportFrom, target: str, level: int, top: set[int]) -> ImportedName:
    last = node.end_lineno or node.lineno
    return ImportedName(target=target, level=level, first_line=node.lineno, line=last, top_level=id(node) in top)


def declared_names(text: str) -> frozenset[str]:
    """Names with a cuda word that a Python file binds itself (`PortContext.own_names`); none if it does not parse."""
    tree = parse(text) if has_own_word(text, {}) else None
    return (
        frozenset(name for name in names_of(tree).declared if has_own_word(name, {}))
        if tree is not None
        else frozenset()
    )
