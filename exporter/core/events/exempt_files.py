"""Finds the parts of an event that hold content of files which the user has exempted from redaction.

The file is the one that a tool call's arguments name. A result names only its tool call, so the calls seen before are
remembered. Uncertain cases are not exempt: an unknown call, an id that calls with other files share, a call
that also names a file that is not exempt.
"""

import posixpath
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from exporter.core.events.envelope import REFUSALS
from exporter.core.events.json_scanner import NotJsonError, elements, members

FILE_ARGUMENTS: Final = frozenset(
    ("path", "paths", "file", "files", "filename", "fileName", "file_name", "file_path", "filePath")
)
_CALL_ID: Final = b'"toolCallId"'
_CALLS_MAX: Final = 16_384
_NAME_LENGTH_MAX: Final = 4_096
_GLOB: Final = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|[^*?/]+|/")
_OF_GLOB: Final = {"**/": "(?:[^/]+/)*", "/**": "/.+", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class _Call(msgspec.Struct):
    toolCallId: str = ""  # noqa: N815  the wire's own name
    arguments: Any = None


class _Data(_Call):
    toolRequests: list[_Call] | None = None  # noqa: N815  the wire's own name


class _Event(msgspec.Struct):
    type: str
    data: _Data


_decode: Final = msgspec.json.Decoder(_Event).decode


class ExemptFiles:
    """Remembers tool calls and says what of an event is exempt; `patterns` are globs of file names.

    A pattern that does not begin at the root may begin at any directory; `**` stands for any number of them.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._pattern = re.compile("|".join(_expression(pattern) for pattern in patterns), re.DOTALL)
        self._calls: OrderedDict[str, bool] = OrderedDict()

    def places(self, line: bytes) -> tuple[str, ...]:
        """Return the JSON Pointers of the exempt parts of an event, and remember its tool calls."""
        if _CALL_ID not in line:
            return ()
        try:
            event = _decode(line)
        except REFUSALS:
            return ()
        return tuple(self._places(event.type, event.data))

    def _places(self, kind: str, data: _Data) -> Iterator[str]:
        if data.toolCallId and data.arguments is not None:
            if self._remember(data):
                yield "/data/arguments"
        elif data.toolCallId and kind == "tool.execution_complete" and self._calls.get(data.toolCallId):
            yield "/data/result"
        for number, call in enumerate(data.toolRequests or ()):
            if self._remember(call):
                yield f"/data/toolRequests/{number}/arguments"

    def _remember(self, call: _Call) -> bool:
        exempt = self._names_exempt_files(call.arguments)
        before = self._calls.pop(call.toolCallId, exempt)
        self._calls[call.toolCallId] = exempt and before
        if len(self._calls) > _CALLS_MAX:
            self._calls.popitem(last=False)
        return exempt and before

    def _names_exempt_files(self, arguments: Any) -> bool:
        names = list(_file_names(arguments))
        return bool(names) and all(
            isinstance(name, str)
            and len(name) <= _NAME_LENGTH_MAX
            and self._pattern.fullmatch(posixpath.normpath(name.replace("\\", "/"))) is not None
            for name in names
        )


def _file_names(arguments: Any) -> Iterator[Any]:
    if isinstance(arguments, dict):
        for key, value in arguments.items():
            if key in FILE_ARGUMENTS:
                yield from value if isinstance(value, list) else (value,)


def _expression(pattern: str) -> str:
    pattern = pattern.replace("\\", "/").removeprefix("./")
    expression = "".join(_OF_GLOB.get(part) or re.escape(part) for part in _GLOB.findall(pattern))
    return expression if pattern.startswith("/") else f"(?:.*/)?{expression}"


def span_at(line: bytes, place: str) -> tuple[int, int] | None:
    """Return where the value of a JSON Pointer stands in the line, None where there is none."""
    start, end = 0, len(line)
    try:
        for step in place.split("/")[1:]:
            if line[start : start + 1] == b"[":
                start, end = elements(line, start)[0][int(step)]
            else:
                start, end = members(line, start)[0][step.encode()]
    except (NotJsonError, LookupError, ValueError):
        return None
    return start, end
