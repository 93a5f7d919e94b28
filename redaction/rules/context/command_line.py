"""Secrets on command lines: options, arguments of known commands, pipes, and statements of SQL."""

import re

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import Placement
from redaction.heuristics.values import is_value
from redaction.rules.context.extractors import extract_value
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction
from redaction.text.escapes import after_escape

_VALUE_BYTES = 4


_LETTER = rb"\\{1,15}u(?!00[0-7])[0-9a-fA-F]{4}"  # beyond ASCII
_PASSWORD = re.compile(
    rb"(?:\\{0,15}[\"'])?((?:[^\s\"'`\\|<>;&()$]|" + _LETTER + rb")(?:[^\s\"'`\\|<>]|" + _LETTER + rb"){0,255}+)"
)
(_PIPED,) = table_of(__file__).patterns("piped")
_OPTION = re.compile(rb"--([A-Za-z0-9-]{2,60}[Tt]okens?)(?:[ \t=]|\\{0,15}[\"'`],?){1,6}\Z")
_OF_PAGES = re.compile(rb"(?i)(?:starting|change|lock|if-match|resume|continuation|next)-?")
_OPTION_MAX = 100
# Programs whose `-u` takes a user and a password; for others it is an account or a group.
_CLIENT = re.compile(
    rb"(?:curl|curlie|wget|https?|xh|lftp|ftp|svn|aria2c|ab|wrk|hey|siege|grpcurl|skopeo|crane|etcdctl|jfrog|jf)(?:\.exe)?[\s\"'][^\n|;]*\Z"
)
_CLIENT_MAX = 240
_extract_token = extract_value(_VALUE_BYTES, Demand.TOKEN)


def extract_option_token(line: bytes, to: int) -> Extraction:
    """The value of an option with the name of a token or key, unless the token is for paging, locking or lexing."""
    start = to - _VALUE_BYTES
    option = _OPTION.search(line, max(0, start - _OPTION_MAX), start)
    if option is not None and (_OF_PAGES.match(option[1]) or demand_of(option[1]) == Demand.NONE):
        return (), to
    return _extract_token(line, to)


def extract_user(line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """User and password together, because either may be the key."""
    start = after_escape(line, to - found.end(1))
    start += 2 * line.startswith(b"-u", start)
    password = _PASSWORD.match(line, to, min(len(line), to + 300))
    if password is None:
        return (((start, to),), to) if is_value(line[start : to - found.start(1)], Demand.KEY) else ((), to)
    if password[1].startswith(b"//") or (not found[1] and b":" in password[1]):
        return (), to  # an address; the name of a style of zsh
    demand = Demand.CERTAIN if _CLIENT.search(line, max(0, start - _CLIENT_MAX), start) else Demand.PASSWORD
    is_one = is_value(password[1], demand, Placement.BARE)
    return (((start, password.end()),), password.end()) if is_one else ((), to)


def extract_piped(line: bytes, to: int) -> Extraction:
    """The secret that `echo` pipes into a command."""
    lowest = max(0, to - 480)
    echo = max(line.rfind(word, lowest, to) for word in (b"echo ", b"printf ", b"print "))
    found = _PIPED.match(line[echo:to]) if echo >= 0 else None
    if found is None or not is_value(found[2], Demand.CERTAIN, Placement.BARE):
        return (), to
    return ((echo + found.start(2), echo + found.end(2)),), to
