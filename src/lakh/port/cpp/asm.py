"""What does this PTX do, and how is it written on MUSA? Inline assembly, statement by statement.

mcc does not assemble PTX. A statement whose instruction has a recorded MUSA spelling (library `ptx` of the map), or a plain
C++ meaning by the PTX ISA manual, is replaced; any other stays, behind a guard that stops the MUSA compiler.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b(?:[\s\\]*\b(?:volatile|__volatile__|__volatile|goto|inline)\b)*[\s\\]*\(")

PTX_OPCODE = re.compile(
    r"(?:^|[;{\s])(?:@!?%?\w+\s+)?(?:mov|ld|st|cvt|cvta|add|sub|mul|mad|fma|div|rem|abs|neg|min|max|setp|set|selp|and|or|xor|not|shl|shr|shf"
    r"|prmt|bfe|bfi|bfind|popc|clz|brev|lop3|vote|shfl|match|activemask|redux|bar|barrier|membar|fence|atom|red|mbarrier"
    r"|cp|ldmatrix|stmatrix|mma|wmma|wgmma|tcgen05|setmaxnreg|griddepcontrol|nanosleep|elect|createpolicy|prefetch|prefetchu"
    r"|discard|applypriority|multimem|isspacep|mapa|getctarank|tex|suld|sust|tld4|ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh|copysign|sad"
    r"|dp4a|dp2a|vadd|vsub|vabsdiff|vmin|vmax|vshl|vshr|vmad|vset|video|addc|subc|madc|pmevent|brkpt|istypep|tensormap|clusterlaunchcontrol)"
    r"\d?\d?(?:\.[a-z0-9_:]+)+|\.reg\s|^\s*\{?\s*(?:trap|exit|ret)\s*;|%%(?:laneid|lanemask|smid|nsmid|clock|globaltimer|warpid|tid|ctaid|"
    r"cluster|dynamic_smem|total_smem|envreg|pm\d)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AsmStatement:
    """One asm statement of a text."""

    start: int
    end: int
    """After the closing parenthesis; the semicolon follows or not."""
    template: str
    """The concatenated string literals, or "" where it is built by the preprocessor."""
    outputs: tuple[tuple[str, str], ...]
    """Constraint and expression."""
    inputs: tuple[tuple[str, str], ...]
    is_plain: bool
    """True where the template is made of string literals alone."""

    @property
    def is_compiler_barrier(self) -> bool:
        """An empty template orders memory accesses for the compiler and assembles to nothing."""
        return self.is_plain and not self.template.strip()


LONGEST_STATEMENT = 8_000
"""Characters of the longest asm statement or call that is looked at."""


def find_asm(text: str, skip: list[tuple[int, int]]) -> list[AsmStatement]:
    """Every asm statement outside comments and strings.

    Args:
        text: the file
        skip: start and end of each comment and string, in order
    """
    statements = []
    position = 0
    for match in _ASM.finditer(text):
        if match.start() < position or _inside(match.start(), skip):
            continue
        close = closing(text, match.end() - 1)
        if close is None:
            continue
        statements.append(_parse(text, match.start(), match.end(), close))
        position = close
    return statements


def closing(text: str, opening: int) -> int | None:
    """Position of the parenthesis that closes the one at `opening`, strings and comments skipped; None if there is none
    within LONGEST_STATEMENT, so that unbalanced text costs no more than a line of it."""
    depth = 0
    for match in _PAREN.finditer(text, opening, opening + LONGEST_STATEMENT):
        token = match.group()
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
            if depth == 0:
                return match.start()
    return None


_PAREN = re.compile(r'[()]|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def _inside(position: int, spans: list[tuple[int, int]]) -> bool:
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        if spans[middle][1] <= position:
            low = middle + 1
        else:
            high = middle
    return low < len(spans) and spans[low][0] <= position


def _parse(text: str, start: int, body: int, close: int) -> AsmStatement:
    parts = _split(text[body:close], ":")
    head = re.sub(r"//[^\n]*|/\*.*?\*/", " ", parts[0], flags=re.S)
    literals = _STRING.findall(head)
    rest = _STRING.sub("", head).replace("\\", "").strip()
    template = "".join(literals)
    template = template.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
    return AsmStatement(
        start=start,
        end=close + 1,
        template=template,
        outputs=_operands(parts[1]) if len(parts) > 1 else (),
        inputs=_operands(parts[2]) if len(parts) > 2 else (),
        is_plain=not rest,
    )


def _split(text: str, separator: str) -> list[str]:
    """Split at top level; `::` counts as two colons here, as it does in asm, unless it qualifies a name."""
    parts, depth, last = [], 0, 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|\w::(?=[A-Za-z_])|//[^\n]*|/\*.*?\*/|[()\[\]{}:,]', text, re.S):
        token = match.group()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == separator and depth == 0:
            parts.append(text[last : match.start()])
            last = match.end()
    parts.append(text[last:])
    return parts


def _operands(text: str) -> tuple[tuple[str, str], ...]:
    operands = []
    for part in _split(text, ","):
        match = re.match(r'[\s\\]*(?:\[\w+\][\s\\]*)?"([^"]*)"[\s\\]*\((.*)\)[\s\\]*\Z', part, re.S)
        if match:
            operands.append((match[1], " ".join(match[2].replace("\\\n", " ").split())))
    return tuple(operands)


_UNSIGNED = {"8": "unsigned char", "16": "unsigned short", "32": "unsigned int", "64": "unsigned long long"}
_SIGNED = {"8": "signed char", "16": "short", "32": "int", "64": "long long"}

_BINARY = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}

_FIXED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Recorded in the map (library ptx).
        (r"mov\.u32 %0, %%laneid", "{0} = __get_laneid() & 0x1f"),
        (r"mov\.u32 %0, %%lanemask_(lt|le|gt|ge)", "{0} = __get_lanemask_\\1()"),
        (r"bfe\.u32 %0, %1, %2, %3", "{0} = __bfe_u32({1}, {2}, {3})"),
        (r"exit", "__musa_exit()"),
        (r"vshr\.u32\.u32\.u32\.clamp\.add %0, %1, %2, %3", "{0} = ({1} >> {2}) + {3}"),
        (r"vshl\.u32\.u32\.u32\.clamp\.add %0, %1, %2, %3", "{0} = ({1} << {2}) + {3}"),
        (
            r"\{ \.reg \.pred (\w+) ; setp\.ne\.u32 \1 , %1 , 0 ; vote(?:\.sync)?\.ballot(?:\.sync)?\.b32 %0 , \1 , %2 ; \}",
            "{0} = __ballot_sync({2}, {1})",
        ),
        (r"shfl\.sync\.(up|down)\.b32 %0, %1, %2, %3, %4", "{0} = __shfl_\\1_sync({4}, {1}, {2}, 32 - ({3} >> 8))"),
        (r"shfl\.sync\.idx\.b32 %0, %1, %2, %3, %4", "{0} = __shfl_sync({4}, {1}, {2}, 32 - ({3} >> 8))"),
        (r"shfl\.sync\.bfly\.b32 %0, %1, %2, %3, %4", "{0} = __shfl_xor_sync({4}, {1}, {2}, 32 - ({3} >> 8))"),
        (r"shfl\.sync\.(up|down)\.b32 %0, %1, %2, (?:0x0|0|0x1f|31), %3", "{0} = __shfl_\\1_sync({3}, {1}, {2}, 32)"),
        (r"shfl\.sync\.idx\.b32 %0, %1, %2, (?:0x1f|31), %3", "{0} = __shfl_sync({3}, {1}, {2}, 32)"),
        (r"shfl\.sync\.bfly\.b32 %0, %1, %2, (?:0x1f|31), %3", "{0} = __shfl_xor_sync({3}, {1}, {2}, 32)"),
        # The CUDA intrinsic that the PTX ISA manual names for the same instruction.
        (r"(?:bar|barrier)\.(?:cta\.)?sync(?:\.aligned)? 0", "__syncthreads()"),
        (r"bar\.warp\.sync %0", "__syncwarp({0})"),
        (r"membar\.cta|fence\.(?:acq_rel|sc)\.cta", "__threadfence_block()"),
        (r"membar\.gl|fence\.(?:acq_rel|sc)\.gpu", "__threadfence()"),
        (r"membar\.sys|fence\.(?:acq_rel|sc)\.sys", "__threadfence_system()"),
        (r"popc\.b32 %0, %1", "{0} = __popc({1})"),
        (r"popc\.b64 %0, %1", "{0} = __popcll({1})"),
        (r"clz\.b32 %0, %1", "{0} = __clz({1})"),
        (r"brev\.b32 %0, %1", "{0} = __brev({1})"),
        (r"prmt\.b32 %0, %1, %2, %3", "{0} = __byte_perm({1}, {2}, {3})"),
        (r"shf\.l\.wrap\.b32 %0, %1, %2, %3", "{0} = __funnelshift_l({1}, {2}, {3})"),
        (r"shf\.r\.wrap\.b32 %0, %1, %2, %3", "{0} = __funnelshift_r({1}, {2}, {3})"),
        (r"mul\.hi\.u32 %0, %1, %2", "{0} = __umulhi({1}, {2})"),
        (r"mul\.hi\.s32 %0, %1, %2", "{0} = __mulhi({1}, {2})"),
        (r"mul\.hi\.u64 %0, %1, %2", "{0} = __umul64hi({1}, {2})"),
        (r"mul\.rz\.f32 %0, %1, %2", "{0} = __fmul_rz({1}, {2})"),
        (r"mul\.rn\.f32 %0, %1, %2", "{0} = __fmul_rn({1}, {2})"),
        (r"add\.rn\.f32 %0, %1, %2", "{0} = __fadd_rn({1}, {2})"),
        (r"add\.rz\.f32 %0, %1, %2", "{0} = __fadd_rz({1}, {2})"),
        (r"fma\.rn\.f32 %0, %1, %2, %3", "{0} = __fmaf_rn({1}, {2}, {3})"),
        (r"fma\.rz\.f32 %0, %1, %2, %3", "{0} = __fmaf_rz({1}, {2}, {3})"),
        (r"mov\.u64 %0, %%clock64", "{0} = clock64()"),
        (r"mov\.u32 %0, %%clock", "{0} = clock()"),
        (r"not\.b(?:16|32|64) %0, %0", "{0} = ~{0}"),
        (r"not\.b(?:16|32|64) %0, %1", "{0} = ~({1})"),
        # Cache hints have no counterpart: a plain load or store (map row `asm: ld.nc / L1::no_allocate`).
    )
)
_LOAD = re.compile(
    r"ld\.(?:global\.)?(?:(?:ca|cg|cs|lu|cv|nc)\.)?(?:nc\.)?(?:L1::no_allocate\.)?(?:L2::(?:\w+)\.)?([usfb])(8|16|32|64) %0, \[ ?%1 ?\]"
)
_STORE = re.compile(r"st\.(?:global\.)?(?:(?:wb|cg|cs|wt)\.)?(?:L1::no_allocate\.)?([usfb])(8|16|32|64) \[ ?%0 ?\], %1")
_ACQUIRE = re.compile(r"ld\.acquire\.(sys|gpu|cta)(?:\.global)?\.([usb])(32|64) %0, \[ ?%1 ?\]")
_RELEASE = re.compile(r"st\.release\.(sys|gpu|cta)(?:\.global)?\.([usb])(32|64) \[ ?%0 ?\], %1")
_FENCE = {"sys": "__threadfence_system()", "gpu": "__threadfence()", "cta": "__threadfence_block()"}
"""Recorded for .sys (map row `asm: ld.acquire / st.release .sys`); the narrower scopes have the narrower fence."""
_ARITHMETIC = re.compile(r"(add|sub|and|or|xor|min|max)\.([usb])(16|32|64) %0, %1, %2")


def replacement(statement: AsmStatement) -> str | None:
    """The MUSA statement, without its semicolon, or None where none is recorded."""
    if not statement.is_plain:
        return None
    template = re.sub(r"//[^\n]*|/\*.*?\*/", " ", statement.template, flags=re.S)
    template = " ".join(template.split()).strip()
    if template.count(";") <= 1:
        template = template.rstrip("; ").strip()
        if template.startswith("{") and template.endswith("}"):
            template = template[1:-1].rstrip("; ").strip()
        template = re.sub(r" ?, ?", ", ", template)
    else:
        template = re.sub(r" ?([,;{}]) ?", r" \1 ", template).strip()
        template = " ".join(template.split())
    operands = [_group(expression) for _, expression in (*statement.outputs, *statement.inputs)]
    raw = [expression for _, expression in (*statement.outputs, *statement.inputs)]
    for pattern, form in _FIXED:
        match = pattern.fullmatch(template)
        if match:
            return _fill(match.expand(form) if "\\1" in form else form, operands, raw)
    return _memory(template, operands, raw)


def _memory(template: str, operands: list[str], raw: list[str]) -> str | None:
    if len(operands) < 2:
        return None
    match = _LOAD.fullmatch(template)
    if match:
        return f"{raw[0]} = *reinterpret_cast<const {_type(match[1], match[2])}*>({raw[1]})"
    match = _STORE.fullmatch(template)
    if match:
        return f"*reinterpret_cast<{_type(match[1], match[2])}*>({raw[0]}) = {raw[1]}"
    match = _ACQUIRE.fullmatch(template)
    if match:
        kind = _type(match[2], match[3])
        return f"{raw[0]} = *reinterpret_cast<const volatile {kind}*>({raw[1]}), {_FENCE[match[1]]}"
    match = _RELEASE.fullmatch(template)
    if match:
        kind = _type(match[2], match[3])
        return f"{_FENCE[match[1]]}, *reinterpret_cast<volatile {kind}*>({raw[0]}) = {raw[1]}"
    match = _ARITHMETIC.fullmatch(template)
    if match and len(operands) == 3:
        if match[1] in _BINARY:
            return f"{raw[0]} = {operands[1]} {_BINARY[match[1]]} {operands[2]}"
        if match[2] in "us":
            kind = _type(match[2], match[3])
            return f"{raw[0]} = {match[1]}(static_cast<{kind}>({raw[1]}), static_cast<{kind}>({raw[2]}))"
    return None


def _type(letter: str, bits: str) -> str:
    if letter == "f":
        return "double" if bits == "64" else "float"
    return (_SIGNED if letter == "s" else _UNSIGNED)[bits]


def _group(expression: str) -> str:
    return expression if re.fullmatch(r"[\w.\->\[\]:]+|\(.*\)|\w+\([^()]*\)", expression) else f"({expression})"


def _fill(form: str, operands: list[str], raw: list[str]) -> str | None:
    wanted = {int(digit) for digit in re.findall(r"\{(\d)\}", form)}
    if any(index >= len(operands) for index in wanted):
        return None

    def expand(match: re.Match[str]) -> str:
        index = int(match[1])
        is_whole = match.start() == 0 or form[match.end() : match.end() + 1] in (",", ")")
        return raw[index] if is_whole else operands[index]

    return re.sub(r"\{(\d)\}", expand, form)
