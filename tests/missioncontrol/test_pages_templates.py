"""HTML stands in templates alone, where every value is escaped; Python has none of it."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from jinja2 import DictLoader, UndefinedError

from exporter import missioncontrol
from exporter.missioncontrol.pages import rendering

Render = Callable[..., str]
ROOT: Final = Path(missioncontrol.__file__).parent
TAG: Final = re.compile(r"<[a-z/!]", re.IGNORECASE)
LOOKBEHIND: Final = re.compile(r"\(\?<[=!]")
"""Of a regular expression; no tag."""
WAYS_AROUND: Final = re.compile(r"\|\s*safe\b|autoescape")


def tags_in(source: str) -> list[int]:
    """Lines on which a string, a part of an f-string among them, or bytes hold a tag."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str | bytes)
        and TAG.search(LOOKBEHIND.sub("", node.value if isinstance(node.value, str) else node.value.decode("latin-1")))
    ]


def modules() -> Iterator[Path]:
    yield from ROOT.rglob("*.py")


def templates() -> list[Path]:
    return sorted((ROOT / "pages/templates").iterdir())


def test_no_tag_stands_in_a_string_of_python() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}" for path in modules() for line in tags_in(path.read_text("utf-8"))]

    assert len(list(modules())) > 50
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'page = "<p>"',
        'page = f"{title}</b>"',
        'def page(title):\n    return f"<{title}>" + f"<!doctype {title}>"',
        'page = b"<svg viewBox>"',
        '"""A docstring with a <br> in it."""',
        'page = ("a"\n  "<H1>")',
    ],
)
def test_a_tag_in_a_string_is_found(source: str) -> None:
    assert tags_in(source)


def test_a_comparison_and_an_expression_of_a_pattern_are_no_tags() -> None:
    assert not tags_in('a = "1 < 2" if b <c else r"(?<!x)(?<=y)(?=<)"')


def test_nothing_goes_round_the_escaping() -> None:
    in_templates = [path.name for path in templates() if WAYS_AROUND.search(path.read_text("utf-8"))]
    in_modules = [path.name for path in modules() if re.search(r"\bMarkup\b|markupsafe", path.read_text("utf-8"))]

    assert len(templates()) > 12
    assert (in_templates, in_modules) == ([], [])


@pytest.mark.parametrize(
    "line", ["{{ title|safe }}", "{{ title | safe }}", "{% autoescape false %}{{ title }}{% endautoescape %}"]
)
def test_a_way_round_the_escaping_is_found(line: str) -> None:
    assert WAYS_AROUND.search(line)


@pytest.fixture
def render(monkeypatch: pytest.MonkeyPatch) -> Render:
    """Renders any text as if it were a template of ours."""
    environment = rendering._environment()

    def rendered(template: str, **values: object) -> str:
        monkeypatch.setattr(environment, "loader", DictLoader({"text.html": template}))
        monkeypatch.setattr(environment, "cache", None)
        return rendering.render("text.html", **values)

    return rendered


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{ x }}", "&lt;i&gt;\ufffd&amp;&#34;&#39;"),
        ('<a title="{{ x }}">', '<a title="&lt;i&gt;\ufffd&amp;&#34;&#39;">'),
        ("{% set y %}{{ x }}{% endset %}{{ y }}", "&lt;i&gt;\ufffd&amp;&#34;&#39;"),
        ("{% macro m(y) %}<b>{{ y }}</b>{% endmacro %}{{ m(x) }}", "<b>&lt;i&gt;\ufffd&amp;&#34;&#39;</b>"),
        ("{{ x ~ '<' }}", "&lt;i&gt;\ufffd&amp;&#34;&#39;&lt;"),
        ("{{ [x]|join('<br>') }}", "&lt;i&gt;\ufffd&amp;&#34;&#39;"),
    ],
)
def test_every_value_is_escaped(render: Render, template: str, shown: str) -> None:
    assert render(template, x="<i>\u202e&\"'") == shown


def test_a_value_that_is_not_there_is_an_error(render: Render) -> None:
    with pytest.raises(UndefinedError):
        render("{{ missing }}")
    with pytest.raises(UndefinedError):
        render("{{ x.missing }}", x={"there": 1})


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("<ul>\n  <li>{{ x }}</li>\n</ul>\n", "<ul><li>1</li></ul>"),
        ("<p>\n  Some words\n  on two lines.\n</p>", "<p>Some words on two lines.</p>"),
        ("{% if x %}\n  words {{ x }}\n{% endif %}\n", "words 1"),
        ('<a\n  class="b">{{ x }} <b>c</b></a>', '<a class="b">1 <b>c</b></a>'),
    ],
)
def test_line_breaks_of_a_template_are_not_on_the_page(render: Render, template: str, shown: str) -> None:
    assert render(template, x=1) == shown


def test_line_breaks_of_what_is_shown_stay(render: Render) -> None:
    assert render("<pre>{{ x }}</pre>\n", x="a\n  b\n") == "<pre>a\n  b\n</pre>"
