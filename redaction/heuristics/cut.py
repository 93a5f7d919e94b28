"""Tokens of which only the beginning is left, because the text they stand in was cut off there."""

import re
from typing import Final

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import is_secret
from redaction.text.escapes import unescaped

_RUN: Final = re.compile(rb"[0-9A-Za-z_+/=.~%-]{0,1024}+")
# What tells that something was left out here.
_LEFT_OUT: Final = re.compile(
    rb"(?:\s|\\{1,15}[nrt]){0,4}+(?:\.\.|\xe2\x80\xa6|\\{1,15}u2026"
    rb"|[\[(<{*#=-]{1,5} ?[\w ,.:%+-]{0,40}?(?i:trunc|cut|omit|more|snip|elid|clip|exceed|too l|limit|chars)"
    rb"|[\[(<{]{1,3} ?(?:\.\.\.|\xe2\x80\xa6)"
    rb"|(?i:[\w ]{0,20}(?:truncated|omitted|too long|exceeded)))"
)
_JSON: Final = (b"{", b"[", b'"')


def cut_end(line: bytes, at: int) -> int:
    """Where the token ends that goes on at `at`, if the text ends with it or says that it was cut; else -1."""
    run = _RUN.match(line, at)
    end = run.end() if run is not None else at
    last = end
    while last > at and line[last - 1 : last] == b".":
        last -= 1
    if end == len(line) or end - last > 1 or _LEFT_OUT.match(line, end):
        return last
    return last if line[end : end + 1] == b'"' and line.startswith(_JSON) else -1


def looks_drawn(part: bytes) -> bool:
    """Whether what is left of a token was drawn at random."""
    return is_secret(unescaped(part), Demand.TOKEN)
