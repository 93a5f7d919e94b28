"""Templates to HTML, and what every page has: its headers, parts for the script, and the files it loads.

Every value is escaped where a template writes it; there is no way around that, nor is one needed. A line break in a
template is nothing on the page where a tag or a statement stands on either side of it, and a space elsewhere, so that
templates can be laid out and pages stay small.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.permissions import holder_of, pages_of
from exporter.missioncontrol.http.responses import ApiError, tagged_answer
from exporter.missioncontrol.pages import figures, formats
from exporter.missioncontrol.pages.agents import agent_name
from exporter.missioncontrol.pages.timeline.entry import one_line
from exporter.missioncontrol.store.amounts import amount

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
    environment.globals |= {"states": formats.STATES, "in_utc": formats.IN_UTC, "local": formats.local}
    environment.filters |= {made.__name__: made for made in _FILTERS}
    return environment


def marked(text: str) -> object:
    """Return text whose redaction markers say their rule; mostly it has none."""
    return _redacted()(text) if formats.MARK in text else text


def style_hash(name: str) -> str:
    """Return the hash with which a policy permits a style sheet that stands in the page."""
    return b64encode(sha256(render(name).encode()).digest()).decode()


@cache
def _redacted() -> Callable[[str], object]:
    macro: Callable[[str], object] = vars(_environment().get_template("text.html").module)["redacted"]
    return macro


_FILTERS: Final[tuple[Callable[..., object], ...]] = (
    *(formats.address, formats.anchor, formats.clock, formats.counted, formats.duration, formats.event_address),
    *(formats.figure, formats.moment, formats.session_path, formats.size),
    *(figures.cost, figures.lag_text, figures.tokens),
    *(formats.colour_of, formats.paragraphs, formats.redactions, formats.spans),
    *(agent_name, amount, marked, one_line, style_hash),
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


POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    # With "no-referrer" a browser hides from us that a form is ours: its Origin would be "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_HINTS: Final = {
    "unknown_session": "No events of it have been received, or the address is incomplete.",
    "deleted_session": "It was deleted here. The session file of Copilot CLI is not deleted.",
    "expired_session": "The retention settings removed it. The session file of Copilot CLI is not deleted.",
}
"""What helps a person; the error's own hint is for who writes programs."""


def page(request: Request, template: str, *parts: str, **values: object) -> Response:
    """Return a whole page; to the script, which asks for a part of it, only these blocks of its template."""
    pages = pages_of(holder_of(request))
    content = render(template, *(parts if is_fragment(request) else ()), pages=pages, **values)
    return _answer(request, content.encode("utf-8", "replace"), "text/html")


def error_page(request: Request, error: ApiError) -> Response:
    """Return an error as a page."""
    answer = page(request, "error.html", message=error.message, hint=_HINTS.get(error.kind, error.hint))
    answer.status_code = error.status
    answer.headers["Cache-Control"] = "no-store"
    return answer


def is_fragment(request: Request) -> bool:
    """Tell whether the script asks for a part of the page only."""
    return request.query_params.get("part") == "1"


def static_file(name: str) -> bytes:
    """Return a file that pages load."""
    return files("exporter.missioncontrol.pages").joinpath("static", name).read_bytes()


def give(name: str, media_type: str) -> Callable[[Request], Response]:
    """Return an endpoint that gives a file that pages load."""
    return lambda request: _answer(request, static_file(name), media_type)


def _answer(request: Request, content: bytes, media_type: str) -> Response:
    answer = tagged_answer(request, content, media_type=media_type)
    answer.headers.update(HEADERS)
    return answer
