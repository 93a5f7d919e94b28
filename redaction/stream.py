"""Text that arrives in pieces: what may be the beginning of a secret is held back until that is decided."""

import math
import re
import string
from collections.abc import Sequence
from typing import Final

from redaction.search import Deadline, SecretSearch
from redaction.spans import SecretSpan, masked

WINDOW: Final = 4096
# Held back: the last word, and before it whatever decides what the next word means: a name that is assigned to, an open
# quote after it, a header, an option, the BEGIN of a key.
_CONTEXT: Final = re.compile(
    rb"""(?ix)
    (?: (?:pass|pwd|secret|key|token|bearer|basic|auth|credential|login|user|cookie)[^\s]{0,128}[\ \t=:>"']{0,16}\S*+
      | (?:pass|pwd|secret|key|token|auth|credential)[\w.-]{0,40}[\\"'`]{0,17}[\ \t]{0,4}(?:=>|:=|=|:)[\ \t]{0,4}
        \\{0,15}(?:"[^"\r\n]{0,160}|'[^'\r\n]{0,160})
      | [a-z]{2,20}[\w.-]{0,40}[\ \t]{0,8}(?:=>|:=|=|:)[\ \t]{0,8}\S*+
      | \s-{1,2}[a-z][a-z-]{0,24}(?:[\ \t=]{1,4}\S*+)?
      | aws[^\n]{0,120}
      | -[-\ ]{0,5}B?E?G?I?N?[A-Z\ 0-9]{0,40}-{0,5}
      | BEGIN[A-Z\ 0-9]{0,40}
    )\Z"""
)
# Every match of `_CONTEXT` holds one of these; most texts do not, and this check costs a tenth.
_CONTEXT_SIGN: Final = re.compile(
    rb"(?i)pass|pwd|secret|key|token|bearer|basic|auth|credential|login|user|cookie|aws|BEGIN|[=:-]"
)
_CONTEXT_LENGTH: Final = 640
_SPAN_CONTEXT_LENGTH: Final = 160
_WORD_CHARACTERS: Final = (string.ascii_letters + string.digits + "_.-").encode()
_TOKEN_REST: Final = re.compile(rb"[A-Za-z0-9_.+/=~%-]*+")
_KEY_BEGIN: Final = re.compile(rb"BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY|PuTTY-User-Key-File-\d")
# The whole mark, which something follows.
_KEY_END: Final = re.compile(
    rb"(?s)(?:END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{2,}+|Private-MAC: [0-9a-f]{8,}+)(?=.)"
)
# Until these dashes have come the END does not count: the rule for whole keys would not see it.
_KEY_CLOSED: Final = re.compile(rb"END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{2}|Private-MAC: [0-9a-f]{8,}+")
_KEY_MATERIAL: Final = re.compile(rb"[A-Za-z0-9+/=]{16}")
_KEY_PROOF_LENGTH: Final = 400  # a BEGIN that this many characters without key material follow is no key
_KEY_END_LENGTH: Final = 128
_KEY_LINE_LENGTH: Final = 100  # of the line of a key that has only begun, with what stands before it
_NEVER: Final = Deadline(math.inf)


class DeltaStream:
    """One text in pieces; all that `feed` and `flush` return, joined, is the text with its secrets masked.

    At most a few kilobytes are held back. Of a secret longer than that the part that was seen is masked, and the rest
    is dropped.
    """

    __slots__ = ("_held", "_past", "_rest", "_search", "key")

    def __init__(self, search: SecretSearch, key: str) -> None:
        self.key = key
        self._search = search
        self._held = b""
        self._past = b""  # the input that was released last: the context of what follows
        self._rest: re.Pattern[bytes] | None = None  # what is dropped: up to the end of a token or the END of a key

    def feed(self, text: str) -> str:
        """The part of the text so far that can be released now."""
        self._held = self._without_rest(self._held + text.encode("utf-8", "surrogatepass"))
        if not self._held or self._rest is not None:
            return ""
        spans = self._spans(self._held)
        cut = self._safe_length()
        for span in reversed(spans):  # each may move the place to cut into the one before it
            if span.end > cut or span.end == len(self._held):
                # The context that made it a secret is held with it, so that the next search finds it again.
                line = self._held.rfind(b"\n", 0, span.start) + 1
                cut = min(cut, max(line, span.start - _SPAN_CONTEXT_LENGTH))
        if len(self._held) - cut > WINDOW:
            cut = max(cut, self._forced(spans))
        return self._release(cut, spans)

    def flush(self) -> str:
        """The rest of the text; the stream is empty afterwards and can be used again."""
        data = self._held if self._rest is None else b""
        self._held, self._rest = b"", None
        shown = self._shown(data, self._spans(data))
        self._past = b""
        return shown

    def _spans(self, data: bytes) -> list[SecretSpan]:
        """The secrets in the data, searched with the input before it as context."""
        base = len(self._past)
        return [
            SecretSpan(max(span.start - base, 0), span.end - base, span.rule)
            for span in self._search.spans(self._past + data, _NEVER)
            if span.end > base
        ]

    def _release(self, cut: int, spans: Sequence[SecretSpan]) -> str:
        while 0 < cut < len(self._held) and self._held[cut] & 0xC0 == 0x80:
            cut -= 1  # never within a character
        data, self._held = self._held[:cut], self._held[cut:]
        self._past = (self._past + data)[-_CONTEXT_LENGTH:]
        return self._shown(data, [span for span in spans if span.end <= cut])

    def _shown(self, data: bytes, spans: Sequence[SecretSpan]) -> str:
        return masked(data, self._search.replacements(data, spans)).decode("utf-8", "surrogatepass")

    def _safe_length(self) -> int:
        """The length up to which no unfinished secret can begin."""
        held = self._held
        begin = max(_KEY_BEGIN.finditer(held), key=lambda match: match.start(), default=None)
        if begin is not None and _KEY_CLOSED.search(held, begin.end()) is None and self._may_continue(begin.end()):
            # Text right before a key is decided together with the key.
            held = held[: begin.start()].rstrip(b"- ")
        cut = max(held.rfind(blank) for blank in (b" ", b"\n", b"\r", b"\t")) + 1
        start = max(0, len(held) - _CONTEXT_LENGTH)
        context = _CONTEXT.search(held, start) if _CONTEXT_SIGN.search(held, start) else None
        if context is not None:
            word = len(held[: context.start()].rstrip(_WORD_CHARACTERS))
            cut = min(cut, max(word, context.start() - _CONTEXT_LENGTH))
        return min(cut, self._search.known.safe_length(self._held))

    def _may_continue(self, key_begin_end: int) -> bool:
        rest = self._held[key_begin_end:]
        return len(rest) < _KEY_PROOF_LENGTH or _KEY_MATERIAL.search(rest) is not None

    def _forced(self, spans: Sequence[SecretSpan]) -> int:
        """A place to cut although a secret may continue there; the continuation is dropped."""
        least = len(self._held) - WINDOW // 2
        for span in spans:
            if span.start < least < span.end or span.end == len(self._held):
                if self._is_open_key(span):
                    self._rest = _KEY_END
                elif span.end == len(self._held):
                    self._rest = _TOKEN_REST
                return span.end
        return least

    def _is_open_key(self, span: SecretSpan) -> bool:
        """Whether the secret is a key of which further lines may come."""
        begin = _KEY_BEGIN.search(self._held, span.start, span.start + 48)
        is_closed = begin is None or _KEY_CLOSED.search(self._held, begin.end(), span.end) is not None
        return not is_closed and len(self._held) - span.end < _KEY_LINE_LENGTH

    def _without_rest(self, text: bytes) -> bytes:
        if self._rest is _KEY_END:
            end = _KEY_END.search(text)
            if end is None:
                return text[-_KEY_END_LENGTH:]
            self._rest = None
            return text[end.end() :]
        if self._rest is _TOKEN_REST:
            rest = _TOKEN_REST.match(text)
            text = text[rest.end() :] if rest is not None else text
            self._rest = None if text else _TOKEN_REST
        return text
