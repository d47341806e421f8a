"""Which branch does `#if` take? A preprocessor condition evaluated with some macros known and the rest not.

Three values: true, false, and None where the answer depends on a macro that nobody stated. Only what is certain on both
sides is ever compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[uUlL]*|([A-Za-z_]\w*)|(\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%<>!~()?:,&|^])|('(?:\\.|[^'])+')|(.))"
)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)\b((?:[^\n\\/]|\\[\s\S]|/(?![/*])|/\*.*?\*/)*)", re.M)

Macros = Mapping[str, int | None]
"""Macro to its value; None is "not defined". A macro that is absent is unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One condition of a text."""

    line: int
    text: str
    """On one line, single-spaced, without comments."""


def conditions(text: str) -> Iterator[Condition]:
    """Every #if, #ifdef, #ifndef and #elif of a text, `#ifdef X` as `defined(X)`."""
    for match in _CONDITION.finditer(text):
        word, rest = match.groups()
        rest = " ".join(re.sub(r"/\*.*?\*/", " ", rest.replace("\\\r\n", " ").replace("\\\n", " ")).split())
        if word in ("ifdef", "ifndef"):
            name = rest.split(" ", 1)[0]
            rest = f"defined({name})" if word == "ifdef" else f"!defined({name})"
        yield Condition(line=text.count("\n", 0, match.start()) + 1, text=rest)


class _UnknownError(Exception):
    """The value depends on something that is not known."""


class _Parser:
    """Precedence climbing over a C integer expression; `&&` and `||` decide where one side is enough."""

    _LEVELS: tuple[tuple[str, ...], ...] = (
        ("|",),
        ("^",),
        ("&",),
        ("==", "!="),
        ("<", ">", "<=", ">="),
        ("<<", ">>"),
        ("+", "-"),
        ("*", "/", "%"),
    )

    def __init__(self, text: str, macros: Macros) -> None:
        self.tokens = [match.group().strip() for match in _TOKEN.finditer(text) if match.group().strip()]
        self.position = 0
        self.macros = macros

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def either(self) -> int | None:
        left = self.both()
        while self.peek() == "||":
            self.take()
            right = self.both()
            if (left is not None and left) or (right is not None and right):
                left = 1
            else:
                left = None if left is None or right is None else 0
        return left

    def both(self) -> int | None:
        left = self.level(0)
        while self.peek() == "&&":
            self.take()
            right = self.level(0)
            if left == 0 or right == 0:
                left = 0
            else:
                left = None if left is None or right is None else int(bool(left) and bool(right))
        return left

    def level(self, depth: int) -> int | None:
        if depth == len(self._LEVELS):
            return self.unary()
        left = self.level(depth + 1)
        while self.peek() in self._LEVELS[depth]:
            operator = self.take()
            left = _apply(operator, left, self.level(depth + 1))
        return left

    def unary(self) -> int | None:
        token = self.take()
        if token == "!":
            value = self.unary()
            return None if value is None else int(not value)
        if token in ("-", "+", "~"):
            value = self.unary()
            if value is None:
                return None
            return -value if token == "-" else ~value if token == "~" else value
        if token == "(":
            value = self.either()
            if self.take() != ")":
                raise _UnknownError
            return value
        if token == "defined":
            name = self.take()
            if name == "(":
                name = self.take()
                self.take()
            return int(self.macros[name] is not None) if name in self.macros else None
        if re.match(r"\d", token):
            digits = token.rstrip("uUlL")
            return int(digits, 0) if not re.fullmatch(r"0\d+", digits) else int(digits, 8)
        if re.match(r"[A-Za-z_]", token):
            if self.peek() == "(":
                depth = 0
                while self.position < len(self.tokens):
                    depth += {"(": 1, ")": -1}.get(self.take(), 0)
                    if depth == 0:
                        break
                return None
            return (self.macros[token] or 0) if token in self.macros else None
        raise _UnknownError


def _apply(operator: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    if operator in ("/", "%"):
        if right == 0:
            return None
        return left // right if operator == "/" else left % right
    if operator in ("<<", ">>"):
        if not 0 <= right < 64:
            return None
        return left << right if operator == "<<" else left >> right
    table = {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        ">": left > right,
        "<=": left <= right,
        ">=": left >= right,
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "|": left | right,
        "&": left & right,
        "^": left ^ right,
    }
    return int(table[operator])


def evaluate(condition: str, macros: Macros) -> bool | None:
    """True, false, or None where it cannot be known (also for a condition that is no C expression)."""
    parser = _Parser(condition, macros)
    try:
        value = parser.either()
    except (_UnknownError, RecursionError, ValueError):
        return None
    if parser.position < len(parser.tokens) and parser.peek() != "?":
        return None
    if parser.peek() == "?":
        return None
    return None if value is None else bool(value)
