"""Translate CMake files the way the vendor's ports do: FindMUSA and musa_add_* for FindCUDA and the language CUDA.

CMake knows no language MUSA, so a target with device code is made by `musa_add_library` or `musa_add_executable` of
the SDK's FindMUSA module (MooreThreads/tutorial_on_musa, muThrust, muAlg). Version tests keep CUDA's name and number
and are reported: MUSA counts its releases differently, and a renamed test would flip silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import PurePosixPath

from lakh.port.build_files.cmake_syntax import Argument, Command, commands
from lakh.port.build_files.work import Work
from lakh.port.edits import newline_of
from lakh.port.findings import PortContext, Translation
from lakh.port.nvcc_flags import (
    LIBRARIES,
    LIBRARIES_WITHOUT_COUNTERPART,
    nvcc_only_flags,
    toolkit_path,
    translate_flags,
)
from lakh.port.own_words import has_own_word, renamed_path, renamed_suffixes

_TRIGGER = re.compile(
    r"cuda|nvcc|nccl|cublas|cudnn|cufft|curand|cusparse|cusolver|cupti|nvrtc|nvtx|\.cuh?\b|sm_\d", re.I
)
_SOURCE = re.compile(r"\.cu(?:$|[\"'$)\s;])")
_REFERENCE = re.compile(r"\$\{(\w+)\}")
_NUMBER = re.compile(r"\d+(?:\.\d+)*\w*")
_COMPARISON = re.compile(r"(?:VERSION_)?(?:LESS|GREATER|EQUAL)(?:_EQUAL)?")
_MODULE_PATH = "/usr/local/musa/cmake"

_MODULE_VARIABLE = re.compile(
    r"(?<![A-Za-z0-9_])(?P<name>CUDA_(?:FOUND|INCLUDE_DIRS?|LIBRAR(?:Y|IES)|TOOLKIT_ROOT_DIR|TOOLKIT_INCLUDE|NVCC_FLAGS\w*|"
    r"NVCC_EXECUTABLE|CUDART_LIBRARY|CUDA_LIBRARY|\w+_LIBRAR(?:Y|IES)|SEPARABLE_COMPILATION|PROPAGATE_HOST_FLAGS|"
    r"HOST_COMPILER|VERBOSE_BUILD|SOURCE_PROPERTY_FORMAT|LINK_LIBRARIES_KEYWORD|BIN_PATH|HOME|PATH|HOME_DIRECTORY|ROOT)|"
    r"CUDAToolkit_\w+|CUDAToolkit|CMAKE_CUDA_ARCHITECTURES|CUDAHOSTCXX|CUDACXX)(?![A-Za-z0-9_])"
)
_VERSION_VARIABLE = re.compile(
    r"(?<![A-Za-z0-9_])(?:CUDA_VERSION(?:_\w+)?|CUDAToolkit_VERSION(?:_\w+)?|CMAKE_CUDA_COMPILER_VERSION|CUDA_COMPILER_VERSION)"
    r"(?![A-Za-z0-9_])"
)
_LANGUAGE_VARIABLE = re.compile(
    r"(?<![A-Za-z0-9_])CMAKE_CUDA_(?!ARCHITECTURES)\w+|\$<COMPILE_LANGUAGE:CUDA>|COMPILE_LANG_AND_ID:CUDA"
)
_TARGET = re.compile(r"\bCUDA::(\w+)")
_PROPERTIES = {
    "CUDA_SEPARABLE_COMPILATION": "MUSA_SEPARABLE_COMPILATION",
    "CUDA_ARCHITECTURES": "MUSA_ARCHITECTURES",
}
_KEYWORDS = ("PUBLIC", "PRIVATE", "INTERFACE")
_NO_SOURCES = frozenset({"INTERFACE", "ALIAS", "IMPORTED"})
_LANGUAGES = frozenset(
    ["C", "CXX", "CUDA", "OBJC", "OBJCXX", "Fortran", "HIP", "ISPC", "Swift", "CSharp", "ASM", "NONE"]
)


def translate_cmake(text: str, *, path: str, context: PortContext, apply: bool) -> Translation:
    """Translate or assess one CMake file."""
    work = Work(text, path, context)
    if not _TRIGGER.search(text) and not (work.renames and has_own_word(text, work.words)):
        return Translation(text=text)
    cmake = _CMake(work)
    cmake.run()
    work.leave_native("\n".join(text[command.start : command.end] for command in cmake.commands))
    return cmake.work.result(apply=apply)


def declared_cmake_names(text: str) -> frozenset[str]:
    """Functions, macros, options, variables and targets that a CMake file declares."""
    names: set[str] = set()
    for command in commands(text):
        if command.lower in (
            "function",
            "macro",
            "option",
            "set",
            "add_library",
            "add_executable",
            "add_custom_target",
        ):
            names |= {argument.text for argument in command.arguments[:1] if re.fullmatch(r"[\w.-]+", argument.text)}
    return frozenset(names)


class _CMake:
    def __init__(self, work: Work) -> None:
        self.work = work
        self.commands = commands(work.text)
        self.folder = str(PurePosixPath(work.path).parent).removeprefix(".")
        self.suffixes = renamed_suffixes(work.context)
        self.end_of_line = newline_of(work.text)
        self.device_variables = self._device_variables()
        self.link_keywords = self._link_keywords()
        self.own_variables = self._own_variables()
        self.generated_variables = self._generated_variables()
        self.makes_device_targets = False
        self.has_module = bool(re.search(r"find_package\s*\(\s*MUSA\b", work.text, re.IGNORECASE))
        self.has_module_path = "musa/cmake" in work.text
        self.settled: set[int] = set()

    def run(self) -> None:
        for command in self.commands:
            self._command(command)
        places = [command for command in self.commands if command.lower == "project" and self._drops_cuda(command)]
        finds = any(command.lower == "find_package" and self._first(command) == "CUDA" for command in self.commands)
        enables = any(
            command.lower == "enable_language" and self._first(command) == "CUDA" for command in self.commands
        )
        if self.makes_device_targets and places and not (self.has_module or finds or enables):
            place = places[0]
            lines = self._module_lines(place)
            self.work.edit(place.end, place.end, self.end_of_line + lines)

    # Facts about the file

    def _first(self, command: Command) -> str:
        return command.arguments[0].text if command.arguments else ""

    def _device_variables(self) -> set[str]:
        """Variables and parameters that may hold a .cu source, by following set, list, foreach, file and calls."""
        functions: dict[str, list[str]] = {}
        for command in self.commands:
            if command.lower in ("function", "macro") and command.arguments:
                functions[command.arguments[0].text.lower()] = [argument.text for argument in command.arguments[1:]]
        known: set[str] = set()
        if self._folder_is_device_only():
            for parameters in functions.values():
                known |= {name for name in parameters if re.search(r"src|source", name, re.IGNORECASE)}
        while True:
            before = len(known)
            for command in self.commands:
                arguments = command.arguments
                if not arguments:
                    continue
                if command.lower in ("set", "foreach"):
                    if self._holds_device(arguments[1:], known):
                        known.add(arguments[0].text)
                elif command.lower in ("list", "file", "string") and len(arguments) > 1:
                    if self._holds_device(arguments[2:], known):
                        known.add(arguments[1].text)
                elif command.lower in functions:
                    for parameter, argument in zip(functions[command.lower], arguments, strict=False):
                        if self._holds_device([argument], known):
                            known.add(parameter)
            if len(known) == before:
                return known

    def _folder_is_device_only(self) -> bool:
        """True where every C++ source under the folder is a .cu: what a helper function compiles is device code."""
        prefix = self.folder + "/" if self.folder else ""
        sources = [path for path in self.work.context.own_files if path.startswith(prefix)]
        device = any(path.endswith(".cu") for path in sources)
        return device and not any(path.endswith((".c", ".cc", ".cpp", ".cxx")) for path in sources)

    def _holds_device(self, arguments: Iterable[Argument], known: set[str]) -> bool:
        for argument in arguments:
            if _SOURCE.search(argument.text) or argument.text in known:
                return True
            if any(name in known for name in _REFERENCE.findall(argument.text)):
                return True
        return False

    def _generated_variables(self) -> set[str]:
        """Variables that name a device source which configure_file writes."""
        outputs = [command.arguments[1].text for command in self.commands if self._writes_file(command)]
        return {name for output in outputs for name in _REFERENCE.findall(output) if output == f"${{{name}}}"} & (
            self.device_variables
        )

    @staticmethod
    def _writes_file(command: Command) -> bool:
        return command.lower == "configure_file" and len(command.arguments) > 1

    def _link_keywords(self) -> dict[str, str]:
        """Target to the keyword with which it is linked: FindMUSA's own link call has to use one too."""
        keywords: dict[str, str] = {}
        for command in self.commands:
            if command.lower == "target_link_libraries" and len(command.arguments) > 1:
                second = command.arguments[1].text
                if second in _KEYWORDS:
                    keywords.setdefault(command.arguments[0].text, second)
        return keywords

    def _own_variables(self) -> frozenset[str]:
        """Variables that look like CUDA's but that the project declares by option() or a cache entry."""
        names = set()
        for command in self.commands:
            cached = command.lower == "set" and any(argument.text == "CACHE" for argument in command.arguments)
            if (command.lower == "option" or cached) and command.arguments:
                names.add(command.arguments[0].text)
        return frozenset(names)

    # Commands

    def _command(self, command: Command) -> None:
        work = self.work
        lower, first = command.lower, self._first(command)
        if lower == "find_package" and first in ("CUDA", "CUDAToolkit"):
            self._find_package(command, first)
        elif lower == "project":
            self._project(command)
        elif lower in ("enable_language", "check_language") and first == "CUDA":
            work.find("LP401", command.start)
            work.use(f"{lower}(CUDA)", command.start, "find_package(MUSA)" if lower == "enable_language" else None)
            if lower == "enable_language" and not self.has_module:
                work.edit(command.start, command.end, self._module_lines(command))
                self.has_module = True
            self.settled.update(argument.start for argument in command.arguments)
        elif lower in ("add_library", "add_executable"):
            self._add_target(command)
        elif lower in ("if", "elseif", "while"):
            self._condition(command)
        elif lower == "set" and first in self.generated_variables and len(command.arguments) == 2:
            self._generated_source(command.arguments[1])
        elif lower in ("set_target_properties", "set_property", "set_source_files_properties"):
            self._properties(command)
        elif lower == "find_program" and any(argument.text == "nvcc" for argument in command.arguments):
            work.find("LP405", command.start)
        if lower.startswith(("cuda_", "cudatoolkit_")):
            self._cuda_command(command)
        elif work.rename(command.name) != command.name:
            work.edit(command.start, command.start + len(command.name), work.rename(command.name))
        self._arguments(command)

    def _module_lines(self, command: Command, package: str = "find_package(MUSA REQUIRED)") -> str:
        start = self.work.lines.starts[self.work.lines.line(command.start) - 1]
        lead = self.work.text[start : command.start]
        indent = lead if not lead.strip() else ""
        lines = [] if self.has_module_path else [f"list(APPEND CMAKE_MODULE_PATH {_MODULE_PATH})"]
        self.has_module_path = True
        return (self.end_of_line + indent).join([*lines, package])

    def _find_package(self, command: Command, package: str) -> None:
        work = self.work
        new = "MUSA" if package == "CUDA" else "MUSAToolkit"
        row = work.context.maps.api(f"find_package({package})")
        work.find("LP404", command.start)
        work.use(f"find_package({package})", command.start, f"find_package({new})", row)
        parts = [new]
        for argument in command.arguments[1:]:
            if _NUMBER.fullmatch(argument.text):
                work.find("LP409", argument.start, f"Required CUDA version {argument.text} was dropped")
            else:
                parts.append(work.text[argument.start : argument.end])
        self.settled.update(argument.start for argument in command.arguments)
        call = f"{work.text[command.start : command.start + len(command.name)]}({' '.join(parts)})"
        work.edit(command.start, command.end, self._module_lines(command, call))

    def _drops_cuda(self, command: Command) -> bool:
        return any(argument.text == "CUDA" for argument in command.arguments[1:])

    def _project(self, command: Command) -> None:
        arguments = command.arguments
        index = next((i for i, argument in enumerate(arguments) if i and argument.text == "CUDA"), None)
        if index is None:
            return
        self.work.find("LP401", arguments[index].start)
        row = self.work.context.maps.api("project(... LANGUAGES CUDA) / enable_language(CUDA)")
        self.work.use("project(LANGUAGES CUDA)", arguments[index].start, None, row)
        self.settled.add(arguments[index].start)
        named = arguments[index - 1].text == "LANGUAGES"
        alone = not (index + 1 < len(arguments) and arguments[index + 1].text in _LANGUAGES)
        if named and alone:
            self.work.edit(arguments[index].start, arguments[index].end, "CXX")
        else:
            self.work.edit(arguments[index - 1].end, arguments[index].end, "")

    def _add_target(self, command: Command) -> None:
        arguments = command.arguments
        if len(arguments) < 2 or any(argument.text in _NO_SOURCES for argument in arguments[1:3]):
            return
        if not self._holds_device(arguments[1:], self.device_variables):
            return
        work = self.work
        work.find("LP401", command.start, f"{command.name} with device code becomes musa_{command.lower}")
        work.use(command.lower, command.start, f"musa_{command.lower}")
        self.makes_device_targets = True
        target = arguments[0].text
        name_end = command.start + len(command.name)
        keyword = self.link_keywords.get(target)
        musa = "musa_" + command.lower
        before = after = ""
        if keyword is not None:
            start = work.lines.starts[work.lines.line(command.start) - 1]
            lead = work.text[start : command.start]
            indent = lead if not lead.strip() else ""
            before = f"set(MUSA_LINK_LIBRARIES_KEYWORD {keyword}){self.end_of_line}{indent}"
            after = f"{self.end_of_line}{indent}set(MUSA_LINK_LIBRARIES_KEYWORD)"
        work.edit(command.start, name_end, before + musa)
        if arguments[1].text == "OBJECT":
            work.find("LP401", arguments[1].start, "OBJECT was dropped: musa_add_library makes no object libraries")
            work.edit(arguments[0].end, arguments[1].end, "")
            self.settled.add(arguments[1].start)
        if after:
            work.edit(command.end, command.end, after)

    def _generated_source(self, argument: Argument) -> None:
        """FindMUSA looks for relative sources in the source tree; configure_file writes to the build tree."""
        if re.match(r"[\w.-]+/", argument.text):
            self.work.edit(argument.inner_start, argument.inner_start, "${CMAKE_CURRENT_BINARY_DIR}/")

    def _condition(self, command: Command) -> None:
        arguments = command.arguments
        for index, argument in enumerate(arguments):
            if not _VERSION_VARIABLE.search(argument.text):
                continue
            following = arguments[index + 1].text if index + 1 < len(arguments) else ""
            if _COMPARISON.fullmatch(following) or any(_COMPARISON.fullmatch(item.text) for item in arguments):
                self.work.find("LP409", argument.start, name=argument.text)
                self.settled.update(item.start for item in arguments)

    def _properties(self, command: Command) -> None:
        for index, argument in enumerate(command.arguments):
            following = command.arguments[index + 1] if index + 1 < len(command.arguments) else None
            if argument.text in _PROPERTIES:
                self.work.find("LP402" if argument.text == "CUDA_ARCHITECTURES" else "LP401", argument.start)
                self.work.edit(argument.start, argument.end, _PROPERTIES[argument.text])
                self.settled.add(argument.start)
                if argument.text == "CUDA_ARCHITECTURES" and following is not None:
                    self._architectures([following])
            elif argument.text == "LANGUAGE" and following is not None and following.text == "CUDA":
                self.work.find("LP401", argument.start)
                self.settled.add(following.start)

    def _architectures(self, arguments: Iterable[Argument]) -> None:
        """Put the target's number in place of a list of NVIDIA's."""
        numbers = [
            a for a in arguments if re.fullmatch(r"(?:\d+\w?(?:-real|-virtual)?;?)+|native|all(?:-major)?", a.text)
        ]
        if not numbers:
            return
        new = self.work.context.arch.removeprefix("mp_")
        first, last = numbers[0], numbers[-1]
        self.work.edit(first.inner_start, first.inner_start + len(first.text), new)
        for previous, argument in pairwise(numbers):
            self.work.edit(previous.end, argument.end, "")
        self.settled.update(argument.start for argument in numbers)
        self.work.find("LP402", last.start)

    def _cuda_command(self, command: Command) -> None:
        work = self.work
        row = work.context.maps.api(command.lower)
        upper = command.name.isupper()
        new = (
            command.name.replace("CUDA", "MUSA") if upper else re.sub("cuda", "musa", command.name, count=1, flags=re.I)
        )
        own = command.name in work.context.own_names or command.lower in work.context.own_names
        if own and not work.renames:
            return
        work.use(command.lower, command.start, new.lower(), row, "FindMUSA follows FindCUDA's names")
        if row is None and not own:
            work.find("LP410", command.start, f"{command.name} was not seen in FindMUSA", name=command.name)
        work.edit(command.start, command.start + len(command.name), new)

    # Arguments

    def _arguments(self, command: Command) -> None:
        arguments = [item for item in command.arguments if item.kind != "paren"]
        if command.lower == "set" and arguments and arguments[0].text == "CMAKE_CUDA_ARCHITECTURES":
            self._architectures(arguments[1:])
        if command.lower == "set" and arguments and arguments[0].text == "TORCH_CUDA_ARCH_LIST" and len(arguments) > 1:
            number = self.work.context.arch.removeprefix("mp_")
            value = arguments[1]
            self.work.edit(value.inner_start, value.inner_start + len(value.text), f"{number[:-1]}.{number[-1]}")
            self.work.find("LP402", value.start)
            self.settled.add(value.start)
        libraries = command.lower in ("target_link_libraries", "link_libraries", "find_library", "musa_add_library")
        for argument in arguments:
            if argument.start in self.settled or argument.kind == "bracket":
                continue
            new = self._argument(argument.text, argument.inner_start, libraries=libraries)
            if new != argument.text:
                self.work.edit(argument.inner_start, argument.inner_start + len(argument.text), new)

    def _argument(self, text: str, offset: int, *, libraries: bool) -> str:
        work = self.work
        for match in _LANGUAGE_VARIABLE.finditer(text):
            # FindMUSA reads MUSA_MCC_FLAGS, a list; a renamed string of flags would reach mcc as one argument.
            work.find("LP401", offset + match.start(), f"{match[0]} has no effect on musa_add_* targets", name=match[0])
        for flag_offset, flag in nvcc_only_flags(text):
            work.find("LP403", offset + flag_offset, f"nvcc flag {flag} without a recorded mcc counterpart")
        if libraries and text in LIBRARIES_WITHOUT_COUNTERPART:
            work.find("LP406", offset, f"Library {text} has no recorded MUSA counterpart", name=text)
            return text
        if libraries and text in LIBRARIES:
            work.use(text, offset, LIBRARIES[text], work.context.maps.api(f"-l{text}"))
            return LIBRARIES[text]
        if text == "nvcc":
            return "mcc"
        kept: list[str] = []

        def keep(match: re.Match[str]) -> str:
            kept.append(match[0])
            return f"\0{len(kept) - 1}\0"

        path = renamed_path(text, folder=self.folder, context=work.context)
        new = path if path is not None else text
        new = _VERSION_VARIABLE.sub(keep, new)
        new = re.sub(r"CMAKE_CUDA_(?!ARCHITECTURES)\w+|COMPILE_LANG(?:UAGE|_AND_ID):CUDA", keep, new)
        new = _TARGET.sub(lambda match: self._target(match, offset), new)
        new = _MODULE_VARIABLE.sub(lambda match: self._variable(match, offset), new)
        new = translate_flags(new, work.context.arch) if "-" in new or "/" in new else toolkit_path(new)
        new = re.sub(r"(?<=ENV\{)(\w+)(?=\})", lambda match: self._environment(match[1]), new)
        for old_suffix, new_suffix in self.suffixes.items():
            if path is None:
                new = re.sub(rf"(?<=[*\w}}]){re.escape(old_suffix)}(?![\w.])", new_suffix, new)
        new = work.rename(new)
        return re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], new)

    def _target(self, match: re.Match[str], offset: int) -> str:
        row = self.work.context.maps.api(match[0])
        name = match[1]
        if row is not None and row.musa is not None:
            self.work.use(match[0], offset, row.musa, row)
            return row.musa
        if name in LIBRARIES:
            self.work.use(match[0], offset, f"MUSA::{LIBRARIES[name]}")
            return f"MUSA::{LIBRARIES[name]}"
        self.work.use(match[0], offset, None)
        self.work.find("LP406", offset, f"{match[0]} has no recorded MUSA counterpart", name=match[0])
        return match[0]

    def _variable(self, match: re.Match[str], offset: int) -> str:
        name = match["name"]
        if not self.work.renames and (name in self.own_variables or name in ("CUDACXX", "CUDAHOSTCXX")):
            return name
        row = self.work.context.maps.api(name)
        if row is not None and row.musa is not None:
            new = row.musa
        elif name.startswith("CUDAToolkit"):
            new = name.replace("CUDAToolkit", "MUSAToolkit").replace("NVCC", "MCC")
        else:
            new = name.replace("CUDA", "MUSA", 1).replace("NVCC", "MCC")
            library = re.fullmatch(r"CUDA_(\w+?)_(LIBRAR(?:Y|IES))", name)
            if library is not None:
                known = LIBRARIES.get(library[1]) or LIBRARIES.get(library[1].lower(), "").upper()
                if not known:
                    self.work.find("LP406", offset, f"{name} has no recorded MUSA counterpart", name=name)
                    return name
                new = f"MUSA_{known}_{library[2]}"
        self.work.use(name, offset, new, row, "FindMUSA follows FindCUDA's names")
        return new

    def _environment(self, name: str) -> str:
        row = self.work.context.maps.api(name)
        return row.musa if row is not None and row.library == "env" and row.musa else name
