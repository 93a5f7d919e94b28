"""Templates to HTML. Every value is escaped where a template writes it; there is no way around that, nor is one needed.

A line break in a template is nothing on the page where a tag or a statement stands on either side of it, and a space
elsewhere, so that templates can be laid out and pages stay small.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from exporter.missioncontrol.pages import figures, formats, rich_text
from exporter.missioncontrol.pages.timeline.axis import colour_of

_PACKAGE: Final = __package__
_BREAK_AT_TAG: Final = re.compile(r"(?:\A|(?<=>))\s*\n\s*|\s*\n\s*(?=<|\Z)")
_BREAK: Final = re.compile(r"\s*\n\s*")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of what follows."""


def render(template: str, *blocks: str, **values: object) -> str:
    """Return the page, or only these blocks of it."""
    made = _environment().get_template(template)
    if blocks:
        context = made.new_context(values)
        text = "".join(part for block in blocks for part in made.blocks[block](context))
    else:
        text = made.render(values)
    return _CONTROLS.sub("\ufffd", text)


@cache
def _environment() -> Environment:
    environment = _Environment(
        loader=ChoiceLoader([PackageLoader(_PACKAGE, folder) for folder in ("templates", "static")]),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=[_Compact],
        auto_reload=False,
        keep_trailing_newline=True,
    )
    environment.globals["states"] = formats.STATES
    environment.filters |= {made.__name__: made for made in _FILTERS}
    return environment


def marked(text: str) -> object:
    """Return text whose redaction markers say their rule; mostly it has none."""
    return _redacted()(text) if rich_text.MARK in text else text


@cache
def _redacted() -> Callable[[str], object]:
    macro: Callable[[str], object] = vars(_environment().get_template("text.html").module)["redacted"]
    return macro


_FILTERS: Final[tuple[Callable[..., object], ...]] = (
    *(formats.address, formats.anchor, formats.clock, formats.counted, formats.duration, formats.event_address),
    *(formats.figure, formats.moment, formats.session_path, formats.size),
    *(figures.cost, figures.lag_text, figures.tokens),
    *(rich_text.paragraphs, rich_text.redactions, rich_text.spans, colour_of, marked),
)
"""What templates make of values; each filter has the name of its function."""


class _Environment(Environment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a value of a dictionary, which most that is written comes from, or what has this name elsewhere."""
        try:
            return obj[attribute] if type(obj) is dict else getattr(obj, attribute)
        except (AttributeError, LookupError):
            return super().getattr(obj, attribute)


class _Compact(Extension):
    """Leaves out the line breaks of templates; style sheets stay as they are."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        is_page = (stream.name or "").endswith(".html")
        for token in stream:
            if is_page and token.type == "data":
                text = _BREAK.sub(" ", _BREAK_AT_TAG.sub("", token.value))
                yield Token(token.lineno, token.type, text)
            else:
                yield token
