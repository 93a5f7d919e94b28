"""The strings of an event that are a tool's answer: its result, its error, pieces of its output, and a hook's copy."""

import re
from typing import Final, NamedTuple

from redaction.protected import DATA
from redaction.text.json_strings import PathStep, paths

# A string, and the colon if it is a key.
_STRING: Final = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"([ \t\r\n]*+:)?', re.DOTALL)
_ANSWERS: Final = frozenset(("result", "error", "partialOutput", "text"))
_OF_HOOK: Final = (DATA, "input", "toolResult")
# The kind of an error is a word of the CLI's own.
_ERROR_CODE: Final = (DATA, "error", "code")


class AnswerString(NamedTuple):
    """Where the text of a string is in the line, and its path."""

    start: int
    end: int
    path: tuple[PathStep, ...]


def answer_strings(line: bytes) -> list[AnswerString]:
    """The strings of an answer that are not empty, in order; raises `InvalidJsonError` for a line that is not JSON."""
    values = {found.start(1): found.end(1) for found in _STRING.finditer(line) if not found[2] and found[1]}
    places = paths(line, values)
    return [AnswerString(start, values[start], path) for start, path in places.items() if _is_answer(path)]


def _is_answer(path: tuple[PathStep, ...]) -> bool:
    names = tuple(step.name for step in path[:3])
    if names == _OF_HOOK:
        return True
    return names[:1] == (DATA,) and names[1:2] != () and names[1] in _ANSWERS and names != _ERROR_CODE
