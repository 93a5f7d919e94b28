"""What was said stays readable in Markdown, and nothing in it is loaded or run where the document is read."""

import pytest

from exporter.missioncontrol.pages.export import entry_markdown
from exporter.missioncontrol.pages.timeline.entry import Entry


def said(text: str) -> str:
    """Return the quotation of a message, without its marks."""
    entry = Entry("user", "e", "2026-11-18T10:00:00Z", None, (0, 0), "user.message", "User", text=text)
    lines = entry_markdown(entry, {}).splitlines()
    return "\n".join(line.removeprefix("> ") for line in lines if line.startswith("> "))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[click](javascript:alert(1))", r"[click]\(javascript:alert(1))"),
        ("[click]( data:text/html,x)", r"[click]\( data:text/html,x)"),
        ("[click](\njavascript:x)", "[click]\\(\njavascript:x)"),
        ("[click](&#106;avascript:x)", r"[click]\(&#106;avascript:x)"),
        ("[click](https:javascript)", r"[click]\(https:javascript)"),
        ("![](http://evil.example/t.png)", r"!\[](http://evil.example/t.png)"),
        ("![a][b]\n\n[b]: javascript:x", "!\\[a][b]\n\n[b]\\: javascript:x"),
        ("<img src=x>", "&lt;img src=x>"),
        ("<javascript:x>", "&lt;javascript:x>"),
    ],
)
def test_what_would_load_or_run_something_is_text(text: str, shown: str) -> None:
    assert said(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a [page](https://example.org/a_(b)) and [HTTP](HTTP://example.org), [mail](mailto:a@example.org)",
        "[1]: https://example.org",
        "`a[i](x)` and ``![`](y)``",
        "```\na[i](x) ![]\n```\nthen",
        "~~~ text\na[i](x)\n```\n~~~",
        "```\nnever closed [a](b)",
        "**bold** list:\n- [ ] task (one)\n- [x] done",
    ],
)
def test_what_does_no_harm_stays_as_it_was(text: str) -> None:
    assert said(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "# a `\nb ` c ` [x](javascript:y) `",
        "a `\n` [x](javascript:y) ` b",
        r"\` [x](javascript:y) `",
        "``` [x](javascript:y) ``",
        "- ```\n  code\n  ```\n[x](javascript:y)",
        " ```\ncode\n```\n[x](javascript:y)",
        "> ```\n[x](javascript:y)\n```",
        "```\ncode\n````\n[x](javascript:y)",
        "~~~\n```\n~~~\n[x](javascript:y)",
        "``` a`b\n[x](javascript:y)",
        "~~~ a`b\n~~~\n[x](javascript:y)",
    ],
)
def test_what_only_looks_like_code_is_text(text: str) -> None:
    assert "](javascript" not in said(text)
