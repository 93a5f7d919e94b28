"""Text that arrives in pieces: what may be the beginning of a secret is held back until it is known to be one or
not."""

import math
import re
import string

from redaction.finders import KEY_BEGIN, KEY_END, KEY_MATERIAL
from redaction.search import Deadline, Search, Span, masked

WINDOW = 4096
# What is held: the last word, and before it whatever gives a word after it its meaning: a name that is assigned, a
# header, a key's BEGIN.
CONTEXT = re.compile(
    r"""(?ix)
    (?: (?:pass|pwd|secret|key|token|bearer|basic)[^\s]{0,128}[\ \t=:>]{0,16}\S*+
      | aws[^\n]{0,120}
      | -[-\ ]{0,5}B?E?G?I?N?[A-Z\ 0-9]{0,40}-{0,5}
      | BEGIN[A-Z\ 0-9]{0,40}
    )\Z"""
)
CONTEXT_LENGTH = 640
SPAN_CONTEXT_LENGTH = 160
WORD_CHARACTERS = string.ascii_letters + string.digits + "_.-"
TOKEN_REST = re.compile(r"[A-Za-z0-9_.+/=~%-]*+")
KEY_PROOF_LENGTH = 400  # after so many characters without key material a BEGIN is mere talk
KEY_END_LENGTH = 64
NEVER = Deadline(math.inf)


class DeltaStream:
    """One text in pieces; what `feed` and `flush` return is, joined, the text with its secrets masked.

    At most a few kilobytes are held back. A secret longer than that is masked by what was seen of it and the rest
    is swallowed.
    """

    __slots__ = ("_held", "_rest", "_search", "key")

    def __init__(self, search: Search, key: str) -> None:
        self.key = key
        self._search = search
        self._held = ""
        self._rest: re.Pattern[str] | None = None  # what is swallowed: to the end of a token, or up to the END of a key

    def feed(self, text: str) -> str:
        """The part of the text so far that is safe to show now."""
        self._held = self._without_rest(self._held + text)
        if not self._held:
            return ""
        spans = self._search.text_spans(self._held, NEVER)
        cut = self._safe_length()
        for span in reversed(spans):  # each may move the place to cut into the one before it
            if span.end > cut or span.end == len(self._held):
                # What made it a secret stays with it, else the next look would not know it again.
                line = self._held.rfind("\n", 0, span.start) + 1
                cut = min(cut, max(line, span.start - SPAN_CONTEXT_LENGTH))
        if len(self._held) - cut > WINDOW:
            cut = max(cut, self._forced(spans))
        return self._release(cut, spans)

    def flush(self) -> str:
        """The rest; the stream is empty afterwards and can be used again."""
        text, self._held, self._rest = self._held, "", None
        return masked(text, self._search.text_spans(text, NEVER))

    def _release(self, cut: int, spans: list[Span]) -> str:
        text, self._held = self._held[:cut], self._held[cut:]
        return masked(text, [span for span in spans if span.end <= cut])

    def _safe_length(self) -> int:
        """Up to where no secret can have begun that is not yet whole."""
        held = self._held
        cut = max(held.rfind(blank) for blank in " \n\r\t") + 1
        context = CONTEXT.search(held, max(0, len(held) - CONTEXT_LENGTH))
        if context is not None:
            word = len(held[: context.start()].rstrip(WORD_CHARACTERS))
            cut = min(cut, max(word, context.start() - CONTEXT_LENGTH))
        begin = max(KEY_BEGIN.finditer(held), key=lambda match: match.start(), default=None)
        if begin is not None and KEY_END.search(held, begin.end()) is None and self._may_go_on(begin.end()):
            cut = min(cut, begin.start())
        return min(cut, self._search.known.safe_length(held))

    def _may_go_on(self, key_begin_end: int) -> bool:
        rest = self._held[key_begin_end:]
        return len(rest) < KEY_PROOF_LENGTH or KEY_MATERIAL.search(rest) is not None

    def _forced(self, spans: list[Span]) -> int:
        """A place to cut although something may go on there; what goes on is swallowed."""
        least = len(self._held) - WINDOW // 2
        for span in spans:
            if span.start < least < span.end or span.end == len(self._held):
                if span.end == len(self._held):
                    self._rest = KEY_END if KEY_BEGIN.match(self._held, span.start) else TOKEN_REST
                return span.end
        return least

    def _without_rest(self, text: str) -> str:
        if self._rest is KEY_END:
            end = KEY_END.search(text)
            if end is None:
                return text[-KEY_END_LENGTH:]
            self._rest = None
            return text[end.end() :]
        if self._rest is TOKEN_REST:
            rest = TOKEN_REST.match(text)
            text = text[rest.end() :] if rest is not None else text
            self._rest = None if text else TOKEN_REST
        return text
