"""Quotes, newlines and words in raw bytes, where each may be written at any depth of escapes.

Nothing here decodes a line. The constants are parts of the expressions of rules.
"""

import re

_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_ESCAPE_BEFORE = re.compile(
    rb"(?:\\[nrtbfav]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9A-Fa-f]{2}|\[[0-9;?]{0,16}[A-Za-z])\Z"
)
_OPENING = re.compile(rb"(\\*)([\"'`])\Z")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
DEPTH_MAX = 4
# From a quote to a list: what is neither a string nor a word of another language than JSON.
_BEFORE_LIST = re.compile(
    rb'(?<!\\)(?P<slashes>\\{0,15})"(?:[ \t\r\n]|\\{1,15}[nrt])*+(?P<mark>[:,\]}\[{])'
    rb"(?:[ \t\r\n\[\]{},:0-9.+eE-]|\\{1,15}[nrt]|true|false|null)*+\Z"
)
_BEFORE_LIST_LENGTH = 4096
_ESCAPE_LETTERS = re.compile(rb"[nrtbf]|u[0-9a-fA-F]{4}")


def starts_word(line: bytes, start: int) -> bool:
    """Whether a word may begin here: no letter or digit comes before, except as the end of an escape."""
    if start == 0 or line[start - 1] not in _WORD:
        return True
    return _ESCAPE_BEFORE.search(line, max(0, start - 20), start) is not None


def after_escape(line: bytes, start: int) -> int:
    """`start`, or the end of the escape that the byte there is part of."""
    if line[start - 2 : start] == b"\\u":
        start -= 1
    if line[start - 1 : start] != b"\\":
        return start
    escape = _ESCAPE_LETTERS.match(line, start)
    return escape.end() if escape else start


def opening_quote(line: bytes, start: int) -> bytes:
    """The quote that ends right before `start`, with its backslashes; empty if there is none."""
    match = _OPENING.search(line, max(0, start - 16), start)
    return match.group() if match else b""


def closing_quote(line: bytes, start: int, quote: bytes, limit: int) -> int:
    """The place of the same quote at the same depth between `start` and `limit`; -1 if there is none."""
    at = line.find(quote, start, limit)
    while at > start and line[at - 1] == 0x5C:
        run = at
        while run > start and line[run - 1] == 0x5C:
            run -= 1
        # An even number of backslashes of the text itself (each is as long as the quote) does not escape it. The depth
        # of other quotes is not known, because JSON does not escape them.
        if quote.endswith(b'"') and (at - run) % (2 * len(quote)) == 0:
            return at
        at = line.find(quote, at + len(quote), limit)
    return at


def quote_in_list(line: bytes, start: int) -> bytes:
    """The quote of a string that may stand at `start`, in a list of JSON; empty in other texts.

    Before a list is the quote of a name or a string, or that of the string that the document is in, which has fewer
    backslashes; between the two are other lists and numbers at most.
    """
    found = _BEFORE_LIST.search(line, max(0, start - _BEFORE_LIST_LENGTH), start)
    if found is None:
        return b""
    depth = len(found["slashes"])
    return b"\\" * (2 * depth + 1 if found["mark"] in b"[{" else depth) + b'"'


def unescaped(raw: bytes) -> str:
    """The text without the escapes of any depth, to be examined only."""
    text = raw.decode("utf-8", "replace")
    for _ in range(DEPTH_MAX):
        if "\\" not in text:
            break
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _SIMPLE.get(found[2], found[2]), text)
    return text
