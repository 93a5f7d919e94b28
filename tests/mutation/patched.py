"""Mutants in a process that has all tests imported: a function gets the mutated code, a constant the mutated value.

A test that fails so would fail with the mutated file. That all pass proves less when the function was also called while
the tests were imported; such a mutant is tried again from its file.
"""

import ast
import gc
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Final, TypeAlias

from tests.mutation.places import Mutant, Place

OURS: Final = ("exporter", "redaction", "otel", "config", "deploy", "tests")
_FUNCTION: Final = 0x1  # CO_OPTIMIZED: the code of a function, not of a module or of a class
_Where: TypeAlias = tuple[str, str, int]


class Patcher:
    """Finds the functions of this process by their code."""

    def __init__(self) -> None:
        self.functions: dict[_Where, list[FunctionType]] = {}
        for one in gc.get_objects():
            if type(one) is FunctionType:
                self.functions.setdefault(_where(one.__code__), []).append(one)

    def patch(self, file: Path, mutant: Mutant) -> bool:
        """Give functions of this file their mutated code; false where more than functions differs, or none is there."""
        source, place = file.read_bytes(), mutant.place
        if place.function is None:
            return _set_constant(source, mutant)
        lines = source.count(b"\n", place.start, place.end) - mutant.text.count(b"\n")
        same_lines = replace(mutant, text=mutant.text + b"\n" * lines)
        try:
            old, new = (
                compile(text, str(file), "exec", dont_inherit=True) for text in (source, same_lines.source(source))
            )
            changed = list(_changed(old, new))
        except (SyntaxError, _MoreThanFunctionsError):
            return False
        patched = False
        for was, now in changed:
            for function in self.functions.get(_where(was), ()):
                if function.__code__.co_freevars != now.co_freevars:
                    return False
                function.__code__ = now
                patched = True
        return patched


def users_of(source: bytes, place: Place) -> set[str]:
    """The functions that read the constant in whose statement the place is; none where more than functions reads it."""
    tree = ast.parse(source)
    name = _constant(source, tree, place)[0]
    users: set[str] = set()
    for node, function in _reads(tree, (), None):
        if node.id == name:
            if function is None:
                return set()
            users.add(function)
    return users


def _set_constant(source: bytes, mutant: Mutant) -> bool:
    """Give a module's constant its mutated value; false where another module may have it too."""
    name, start, end = _constant(source, ast.parse(source), mutant.place)
    module = sys.modules.get(mutant.place.path.removesuffix(".py").replace("/", "."))
    if not name or module is None:
        return False
    value = vars(module)[name]
    if any(vars(one).get(name, _set_constant) is value for one in _modules() if one is not module):
        return False
    statement = mutant.source(source)[start : end + len(mutant.text) - mutant.place.end + mutant.place.start]
    exec(compile(statement, mutant.place.path, "exec", dont_inherit=True), vars(module))
    return True


def _modules() -> list[ModuleType]:
    return [one for name, one in sys.modules.items() if name.partition(".")[0] in OURS and isinstance(one, ModuleType)]


def _constant(source: bytes, tree: ast.Module, place: Place) -> tuple[str, int, int]:
    """The name that the statement with the place assigns to, and where the statement begins and ends."""
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for one in tree.body:
        start, end = (
            lines[one.lineno - 1] + one.col_offset,
            lines[(one.end_lineno or 0) - 1] + (one.end_col_offset or 0),
        )
        if start <= place.start < end:
            match one:
                case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                    return name, start, end
    return "", 0, 0


def _reads(node: ast.AST, names: tuple[str, ...], function: str | None) -> Iterator[tuple[ast.Name, str | None]]:
    """Every name that is read, with the function in whose body."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node, function
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        names = (*names, node.name)
    for field, value in ast.iter_fields(node):
        is_body = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and field == "body"
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _reads(child, names, ".".join(names) if is_body else function)


class _MoreThanFunctionsError(Exception):
    """Code of a module or of a class is different."""


def _where(code: CodeType) -> _Where:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The functions that differ, the outer ones first."""
    if old == new:
        return
    inner = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (old, new)]
    if old.co_flags & _FUNCTION:
        yield old, new
    elif [_where(one) for one in inner[0]] != [_where(one) for one in inner[1]] or _bare(old) != _bare(new):
        raise _MoreThanFunctionsError
    by_place = {_where(one): one for one in inner[1]}
    for one in inner[0]:
        if _where(one) in by_place:
            yield from _changed(one, by_place[_where(one)])


def _bare(code: CodeType) -> tuple[object, ...]:
    """What the code does itself, without the functions in it."""
    return code.co_code, code.co_names, [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
