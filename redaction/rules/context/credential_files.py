"""Files in which tools store credentials, and manifests of Kubernetes.

netrc, npm, PostgreSQL, Docker, WireGuard, PHP, hashes of passwords and cookie jars; the values of a manifest of kind
Secret under `data` and `stringData`, and keys of kubeconfig.
"""

import re

from redaction.heuristics.certain import is_weak
from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import Placement, is_secret
from redaction.heuristics.values import is_value, value_span
from redaction.rules.checks import decoded_base64
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction
from redaction.text.escapes import unescaped

_NETRC_OWNER = re.compile(rb"(?:machine|default)(?:\s|\\{1,15}[nrt])")
_ANONYMOUS = re.compile(rb"login(?:\s|\\{1,15}[nrt])+anonymous[\s\\]")
# The host of samples in manuals, itself.
_SAMPLE = re.compile(rb"example(?:\\{1,15}&)?\.(?:org|com|net)")
DISTANCE_MAX = 16 * 1024
ENTRIES_MAX = 256

_PASSWORD_NAME = re.compile(rb"PASS(?:WORD|WD)\\{0,15}[\"'] {0,2},\s{0,12}\\{0,15}[\"']\Z")
QUOTES = b"\"'"
_DATA_MEMBER = re.compile(rb"(?:[\s{,\"']|\\[nrt\"]|\A)(data|stringData)\\{0,15}[\"']?\s{0,4}:(?=[\s{\\])")
_ENTRY, _HASH_START = table_of(__file__).patterns("entry", "hash_start")
_DATA_VALUE = re.compile(rb"[A-Za-z0-9+/]{4,}+={0,2}")


def decoded(encoded: bytes) -> str:
    """The printable text that this base64 encodes; empty if it is something else."""
    try:
        text = (decoded_base64(encoded.replace(b"\\", b"")) or b"").decode()
    except UnicodeDecodeError:
        return ""
    return text if text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable() else ""


def extract_netrc_password(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The password of a `machine` in .netrc."""
    owners = list(_NETRC_OWNER.finditer(line, max(0, start - 400), start))
    if not owners or _ANONYMOUS.search(line, max(0, start - 60), start):
        return (), to
    if _SAMPLE.match(line, owners[-1].end()) and is_weak(found.group().decode("utf-8", "replace")):
        return (), to
    return ((found.span(),), found.end()) if is_value(found.group(), Demand.CERTAIN, Placement.BARE) else ((), to)


def extract_npm_auth(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """`_authToken`, and `_auth` and `_password` if they are base64 of text."""
    name = line[max(0, start - 24) : start]
    secret = is_value(found.group(), Demand.TOKEN) if b"oken" in name else decoded(found.group())
    return ((found.span(),) if secret else ()), max(to, found.end())


def extract_docker_auth(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """`auth` of a registry, which is base64 of user and password; or the identity token of a registry."""
    if b"oken" in line[max(0, start - 24) : start]:
        start, end = value_span(line, start)
        return (((start, end),), max(to, end)) if is_value(line[start:end], Demand.KEY) else ((), to)
    user, colon, password = decoded(found.group()).partition(":")
    if not user or not colon or not password or password == user:
        return (), to
    return (found.span(),), found.end()


def extract_pgpass(line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The last field of a line of .pgpass."""
    before = line[max(0, to - 160) : to]
    demand = Demand.PASSWORD if b":*:" in before else Demand.CERTAIN
    secret = (
        b"arn:" not in before
        and b":" not in found.group().replace(b"\\:", b"")
        and is_value(found.group(), demand, Placement.BARE)
    )
    return ((found.span(),) if secret else ()), found.end()


def extract_definition(line: bytes, to: int) -> Extraction:
    """The value of a PHP constant, as in wp-config."""
    start, end = value_span(line, to - 4)
    is_password = _PASSWORD_NAME.search(line, max(0, start - 60), start) is not None
    is_one = _is_definition(line[start:end]) or (is_password and _is_defined_password(line[start:end]))
    return (((start, end),) if is_one else ()), max(end, to)


def _is_defined_password(value: bytes) -> bool:
    return not value.endswith(b"_here") and is_value(value, Demand.CERTAIN)


def _is_definition(value: bytes) -> bool:
    is_salt = 48 <= len(value) <= 128 and len(set(value)) >= 24 and not value.isalnum() and value.count(b" ") < 8
    is_salt = is_salt and b"\\" not in value and b"[REDACTED:" not in value
    return is_salt or is_value(value, Demand.PASSWORD)


def extract_hash(line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The hash of a password with its salt."""
    starts = list(_HASH_START.finditer(line, max(0, to - 260), to))
    first = starts[-1] if starts else None
    end = found.end()
    if first is None or len(set(line[first.end() : end])) < 12:
        return (), to
    return ((first.start(), end),), end


def _bounds(line: bytes, to: int) -> tuple[int, int]:
    """Where other members of the manifest may be: between the previous and the next manifest of this kind."""
    lowest, highest = max(0, to - DISTANCE_MAX), min(len(line), to + DISTANCE_MAX)
    before = line.rfind(b"Secret", lowest, to - 6)
    while before >= 0 and b"kind" not in line[max(0, before - 24) : before] and before > to - 4096:
        before = line.rfind(b"Secret", lowest, before)
    after = line.find(b"kind", to, highest)
    while after >= 0 and b"Secret" not in line[after : after + 36] and after < to + 4096:
        after = line.find(b"kind", after + 4, highest)
    lowest = before if before >= 0 else lowest
    separator = max(line.rfind(b"\n---", lowest, to), line.rfind(b"n---", lowest, to))
    return max(lowest, separator), after if after >= 0 else highest


def _is_masked(name: bytes, value: bytes, *, encoded: bool) -> bool:
    demand = Demand.CERTAIN if demand_of(name) == Demand.PASSWORD else Demand.PASSWORD
    if not encoded:
        return is_secret(unescaped(value), demand if demand == Demand.CERTAIN else Demand.KEY)
    if _DATA_VALUE.fullmatch(value) is None or len(value) < 6 or len(value) % 4:
        return False
    text = decoded(value)
    return not text or is_secret(text.strip()[:512], demand) or "-----BEGIN" in text or len(text) > 64


def extract_secret_data(line: bytes, _start: int, _found: re.Match[bytes], to: int) -> Extraction:
    """The values of a manifest of kind Secret, decoded so that names and placeholders are not masked."""
    lowest, highest = _bounds(line, to)
    spans: list[tuple[int, int]] = []
    for data in _DATA_MEMBER.finditer(line, lowest, highest):
        at = data.end()
        for _ in range(ENTRIES_MAX):
            entry = _ENTRY.match(line, at, highest)
            if entry is None:
                break
            at = entry.end()
            if _is_masked(entry[1], entry[2], encoded=data[1] == b"data"):
                spans.append(entry.span(2))
            if line[entry.start(2) - 1] not in QUOTES and line[entry.end() - 1] in QUOTES:
                break  # the end of the text that the manifest is in
    return spans, to
