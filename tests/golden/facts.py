"""What a page says, without how it is written: texts, links, ids, numbers and their order; one fact per line.

Tags, classes and the white space between elements are no facts, so that a template may write them as it likes. The
text between two tags is one, with its white space folded, but for preformatted text.
"""

from html.parser import HTMLParser
from typing import Final

WORDED: Final = frozenset({"text", "title", "aria-label", "placeholder", "alt", "value", "data-name", "content"})
"""Facts that hold words of ours, which a rename may change; all others are ids, addresses and numbers."""
_ATTRIBUTES: Final = frozenset({
    "href", "src", "action", "method", "name", "value", "type", "id", "for", "title", "aria-label", "aria-current",
    "alt", "datetime", "placeholder", "content", "download", "style", "open", "hidden", "x", "y", "width", "height",
})  # fmt: skip
_UNREAD: Final = frozenset({"style", "script"})
_EXACT: Final = frozenset({"pre", "textarea"})
_EMPTY: Final = frozenset({"meta", "link", "br", "hr", "img", "input", "wbr", "source", "area", "base", "col"})


def facts_of(page: str) -> list[str]:
    """Return the facts of a page in order, each as `kind<TAB>value` with line ends escaped."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    reader.end_text()
    return reader.facts


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.facts: list[str] = []
        self._text: list[str] = []
        self._unread = self._exact = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.end_text()
        for name, value in sorted(attrs, key=lambda one: one[0]):
            if name in _ATTRIBUTES or name.startswith("data-"):
                self._add(name, value or "")
        if tag not in _EMPTY:
            self._unread += tag in _UNREAD
            self._exact += tag in _EXACT

    def handle_endtag(self, tag: str) -> None:
        self.end_text()
        self._unread -= tag in _UNREAD and self._unread > 0
        self._exact -= tag in _EXACT and self._exact > 0

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self._text.append(data)

    def end_text(self) -> None:
        """Keep the text since the last tag."""
        text, self._text = "".join(self._text), []
        if text.strip():
            self._add("text", text if self._exact else " ".join(text.split()))

    def _add(self, kind: str, value: str) -> None:
        self.facts.append(f"{kind}\t{value}".replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"))
