"""Places in Python: the usual kinds of small mistakes, taken from the syntax tree and cut out of the text.

Left out is what no run of a program can show: annotations, docstrings, `assert` and `assert_never`, the arguments of
decorators and of classes, names of types, `strict=` of `zip`, and the texts of a `raise`.
"""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, TypeAlias

from tests.mutation.places import Place
from tests.mutation.regex import regex_choices

_COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_SPELLED: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_COUNTED: Final[dict[type[ast.operator], str]] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "*",
    ast.BitAnd: "|", ast.BitOr: "&", ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip
_SIGNS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%",
    ast.BitAnd: "&", ast.BitOr: "|", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_SILENT: Final = {"assert_never"}
_SKIPPED_FIELDS: Final = {"annotation", "returns", "decorator_list", "type_comment"}
_UNSEEN_KEYWORDS: Final = {"strict"}


def places(path: str, source: bytes) -> Iterator[Place]:
    return _Finder(path, source).found(ast.parse(source))


class _Between:
    """What stands between two expressions: an operator, blanks, parentheses."""

    def __init__(self, left: ast.expr, right: ast.expr) -> None:
        assert left.end_lineno is not None and left.end_col_offset is not None
        self.lineno, self.col_offset = left.end_lineno, left.end_col_offset
        self.end_lineno, self.end_col_offset = right.lineno, right.col_offset


_Node: TypeAlias = ast.expr | ast.stmt | _Between
_Change: TypeAlias = tuple[str, _Node, tuple[bytes, ...]]


class _Finder:
    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def found(self, tree: ast.Module) -> Iterator[Place]:
        for kind, node, choices, function in self._walk(tree, (), None):
            start, end = self._span(node)
            was = self.source[start:end]
            different = tuple(choice for choice in choices if choice != was)
            if different:
                yield Place(self.path, node.lineno, start, end, kind, different, function)

    def _span(self, node: _Node) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr | ast.stmt) -> bytes:
        start, end = self._span(node)
        return self.source[start:end]

    def _walk(
        self, node: ast.AST, names: tuple[str, ...], function: str | None
    ) -> Iterator[tuple[*_Change, str | None]]:
        for change in self._of(node):
            yield *change, function
        if isinstance(node, (ast.Assert, ast.JoinedStr, ast.Raise)) or _is_silent(node) or _is_type(node):
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = (*names, node.name)
            function = None if isinstance(node, ast.ClassDef) else ".".join(names)
        for name, value in ast.iter_fields(node):
            if name in _SKIPPED_FIELDS or (isinstance(node, ast.ClassDef) and name in ("bases", "keywords")):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_text_alone(child) and not _is_unseen(child):
                    yield from self._walk(child, names, function)

    def _of(self, node: ast.AST) -> Iterator[_Change]:
        yield from self._conditions(node)
        match node:
            case ast.Compare(left=left, ops=[operation], comparators=[right]):
                start, end = self._span(_Between(left, right))
                was = _SPELLED[type(operation)].encode().replace(b" ", rb"\s+")
                new = re.sub(was, _COMPARED[type(operation)].encode(), self.source[start:end], count=1)
                yield "comparison", _Between(left, right), (new,)
            case ast.BoolOp(op=operation, values=values):
                for one, other in pairwise(values):
                    start, end = self._span(_Between(one, other))
                    was, new = (b"and", b"or") if isinstance(operation, ast.And) else (b"or", b"and")
                    yield "and, or", _Between(one, other), (self.source[start:end].replace(was, new),)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield "not", node, (b"(" + self._text(operand) + b")",)
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _COUNTED:
                if not _is_text(left):
                    start, end = self._span(_Between(left, right))
                    yield "arithmetic", _Between(left, right), (_operator(self.source[start:end], operation),)
            case ast.Constant(value=value):
                yield from self._constant(node, value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant() as regex, *_]):
                for choices in regex_choices(self._text(regex)):
                    yield "regex", regex, choices
            case _:
                yield from self._statements(node)

    def _conditions(self, node: ast.AST) -> Iterator[_Change]:
        tests: list[ast.expr] = []
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                tests = [test]
            case ast.comprehension(ifs=ifs):
                tests = ifs
            case ast.match_case(guard=ast.expr() as guard):
                tests = [guard]
        for test in tests:
            if not isinstance(test, ast.Constant):
                yield "condition", test, (b"(not (" + self._text(test) + b"))",)

    def _constant(self, node: ast.Constant, value: object) -> Iterator[_Change]:
        if isinstance(value, bool):
            yield "constant", node, (str(not value).encode(),)
        elif isinstance(value, (int, float)):
            yield "constant", node, (repr(value + 1).encode(), b"(%s)" % repr(value - 1).encode())
        elif value == "utf-8":  # without its last sign it is another name of the same
            yield "text", node, (b'"ascii"',)
        elif isinstance(value, (str, bytes)) and value:
            yield "text", node, (repr(value[:-1] if len(value) > 1 else value * 2).encode(),)

    def _statements(self, node: ast.AST) -> Iterator[_Change]:
        match node:
            case ast.Break():
                yield "break", node, (b"continue",)
            case ast.Continue():
                yield "continue", node, (b"break",)
            case ast.Return(value=ast.expr() as value):
                if not (isinstance(value, ast.Constant) and value.value in (None, True, False)):
                    yield "return", node, (b"return None",)
            case ast.Raise():
                yield "dropped", node, (b"pass",)
            case ast.Expr(value=ast.Call() | ast.Await() | ast.YieldFrom() | ast.Yield() as value):
                if not _is_silent(value):
                    dropped = (ast.Yield, ast.YieldFrom)
                    yield "dropped", node, (b"()" if isinstance(value, dropped) else b"pass",)
            case ast.AugAssign() | ast.Delete() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield "dropped", node, (b"pass",)


def _operator(text: bytes, operation: ast.operator) -> bytes:
    return text.replace(_SIGNS[type(operation)].encode(), _COUNTED[type(operation)].encode(), 1)


def _is_text_alone(node: ast.AST) -> bool:
    """A docstring, of whatever it is one."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_type(node: ast.AST) -> bool:
    """A name for a type, which only a type checker reads."""
    return (
        isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def _is_silent(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SILENT


def _is_unseen(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg in _UNSEEN_KEYWORDS


def is_python(source: bytes) -> bool:
    """Whether this can be compiled: a mutant that cannot is none."""
    try:
        compile(re.sub(rb"^\xef\xbb\xbf", b"", source), "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
