"""Kubernetes' secrets: what a manifest of kind Secret holds under `data` and `stringData`, and keys of kubeconfig."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import is_secret
from redaction.rules.context.credential_files import decoded
from redaction.rules.rule import Rule, Spans
from redaction.text.escapes import unescaped

DISTANCE_MAX = 16 * 1024
ENTRIES_MAX = 256

_SPACE = rb"(?:\s|\\{1,15}[nrt])"
_QUOTE = rb"(?:\\{0,15}[\"'])?"
_KIND_END = re.compile(rb"Secret\\{0,15}[\"'\s,}]|Secret\\{1,15}[nr]|Secret\Z")
_DATA = re.compile(rb"(?:[\s{,\"']|\\[nrt\"]|\A)(data|stringData)\\{0,15}[\"']?\s{0,4}:(?=[\s{\\])")
_ENTRY = re.compile(
    rb"(?:"
    + _SPACE
    + rb"|[{,]|[+>|] ){1,64}+"
    + _QUOTE
    + rb"([A-Za-z0-9_.-]{1,253}+)"
    + _QUOTE
    + rb"[ \t]{0,4}:[ \t]{0,4}"
    + _QUOTE
    + rb"([^\s\"'\\,{}]+)"
    + _QUOTE
)
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{4,}+={0,2}")
_KEY_DATA_BYTES = 16
_KEY_DATA = re.compile(rb"[A-Za-z0-9+/]{64,}+={0,2}")


def _bounds(line: bytes, to: int) -> tuple[int, int]:
    """How far a manifest's other members may be from its kind: to the next and the previous of that kind."""
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


def _is_masked(value: bytes, *, encoded: bool) -> bool:
    if not encoded:
        return is_secret(unescaped(value), Demand.KEY)
    if _BASE64.fullmatch(value) is None or len(value) < 6 or len(value) % 4:
        return False
    text = decoded(value)
    return not text or is_secret(text.strip()[:512], Demand.PASSWORD) or "-----BEGIN" in text or len(text) > 64


def find_secret_data(line: bytes, to: int) -> tuple[Spans, int]:
    """The values of a manifest of kind Secret, decoded to leave names and placeholders alone."""
    if _KIND_END.match(line, to - 6) is None:
        return (), to
    lowest, highest = _bounds(line, to)
    spans: list[tuple[int, int]] = []
    for data in _DATA.finditer(line, lowest, highest):
        at = data.end()
        for _ in range(ENTRIES_MAX):
            entry = _ENTRY.match(line, at, highest)
            if entry is None:
                break
            at = entry.end()
            if _is_masked(entry[2], encoded=data[1] == b"data"):
                spans.append(entry.span(2))
    return spans, to


def find_key_data(line: bytes, to: int) -> tuple[Spans, int]:
    """The client's key of a kubeconfig."""
    found = _KEY_DATA.match(line, to - _KEY_DATA_BYTES)
    return ((found.span(),), found.end()) if found else ((), to)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return (
        Rule(
            "kubernetes-secret",
            "Kubernetes",
            "value of a secret",
            (r"kind(?:\\{0,15}[\"'])?\s{0,2}:\s{0,2}(?:\\{0,15}[\"'])?Secret",),
            find_secret_data,
            example="apiVersion: v1\nkind: Secret\ndata:\n  password: a29ycmVrdC03LXBmZXJk\n",
            counter="apiVersion: v1\nkind: Secret\ndata:\n  username: dXNlcm5hbWU=\n",
        ),
        Rule(
            "kubeconfig-key",
            "Kubernetes",
            "client's key",
            (r"client-key-data(?:\\{0,15}[\"'])?\s{0,2}:\s{0,4}(?:\\{0,15}[\"'])?[A-Za-z0-9+/]{16}",),
            find_key_data,
            example="client-key-data: <base64:120>",
            counter="client-key-data: REDACTED",
        ),
    )
