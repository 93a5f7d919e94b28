"""Entries as Markdown, for a review or an issue; text of theirs cannot end the fence it stands in."""

import re
from typing import Any, Final

from exporter.missioncontrol.web.entries import CUT, NO_RESULT
from exporter.missioncontrol.web.entry import Entry
from exporter.missioncontrol.web.facts import SOURCES, exact
from exporter.missioncontrol.web.markup import IN_UTC, clock, duration
from exporter.missioncontrol.web.reading import Figures

_SPECIAL: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "&#96;", **{one: f"\\{one}" for one in "\\*_[]#|!"}}
)
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")


def head_markdown(session: dict[str, Any], figures: Figures) -> str:
    """Return the beginning of the document: what the session is, and its figures with their sources."""
    lines = [f"# {_plain(str(session['title'] or session['id']))}", ""]
    for name in (
        "id",
        "state",
        "repository",
        "branch",
        "cwd",
        "model",
        "host",
        "started",
        "last_activity",
        "events",
        "masked",
    ):
        if session.get(name):
            lines.append(f"- {name.replace('_', ' ')}: {_plain(str(session[name]))}")
    for name, told in figures.items():
        values = ", ".join(f"{exact(value)} ({SOURCES[source]})" for source, value in told.items())
        lines.append(f"- {name.replace('_', ' ')}{'' if name == 'cost' else ' tokens'}: {values}")
    return "\n".join([*lines, "", IN_UTC]) + "\n"


def entry_markdown(entry: Entry, names: dict[str, str]) -> str:
    """Return one entry, under the day that begins with it."""
    day = f"\n## {_plain(entry.day)}\n" if entry.day else ""
    return day + _entry(entry, names)


def _entry(entry: Entry, names: dict[str, str]) -> str:
    facts = [fact for fact in entry.facts if fact]
    if entry.seconds is not None:
        facts.append(duration(entry.seconds))
    if entry.is_running:
        facts.append(NO_RESULT)
    if entry.level in ("warning", "error"):
        facts.append(entry.level)
    said = f" — {_plain(', '.join(facts))}" if facts else ""
    who = "" if entry.agent is None else f"({names.get(entry.agent) or entry.agent}) "
    head = _plain(f"{who}{entry.title or entry.type}")
    at = _plain(clock(entry.at))
    if entry.kind == "turn":
        return f"\n### {head}{said} · {at}\n"
    if entry.kind in ("user", "assistant"):
        return f"\n## {head} · {at}{said}\n\n{_quoted(entry.text)}\n{_blocks(entry)}"
    line = f" {_code(entry.line)}" if entry.line else ""
    text = f"\n{_quoted(entry.text)}\n" if entry.text else ""
    return f"\n- **{head}**{line}{said} · {at}\n{text}{_blocks(entry)}"


def _blocks(entry: Entry) -> str:
    told = ""
    for block in entry.blocks:
        told += f"\n{block.label}:\n\n{_fenced(block.text)}\n" if block.text else ""
        told += f"\n_{CUT}_\n" if block.is_cut or not block.text else ""
    return told


def _plain(text: str) -> str:
    return " ".join(text.split()).translate(_SPECIAL)


def _quoted(text: str) -> str:
    """Return what was said as a quotation; its HTML, if any, is text."""
    return "\n".join(f"> {line}" for line in _TAG.sub("&lt;", text).splitlines())


def _code(text: str) -> str:
    ticks = "`" * (_longest_run(text) + 1)
    return f"{ticks} {text} {ticks}"


def _fenced(text: str) -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}\n"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
