"""Entries as Markdown, for a review or an issue; text of theirs cannot end the fence it stands in.

What was said keeps its own Markdown, but for what would load or run something where the document is read.
"""

import re
from typing import Any, Final

from exporter.missioncontrol.pages.figures import SOURCES, Figures, exact
from exporter.missioncontrol.pages.formats import IN_UTC, clock, duration
from exporter.missioncontrol.pages.timeline.entry import Entry

_FACTS: Final = (
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
)
_SPECIAL: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "&#96;", **{one: f"\\{one}" for one in "\\*_[]#|!"}}
)
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_IMAGE: Final = re.compile(r"!(?=\[)")
_LINK: Final = re.compile(r"\](?=[(:])(?![(:][ \t]*(?:https?://|mailto:))", re.IGNORECASE)
_FENCE: Final = re.compile(r"(`{3,}|~{3,})([^\n]*)")
_FENCE_INSIDE: Final = re.compile(r"[ \t>*+0-9.)-]+(?:```|~~~)")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(?:.*?[^`])\1(?!`)")


def head_markdown(session: dict[str, Any], figures: Figures) -> str:
    """Return the beginning of the document: what the session is, and its figures with their sources."""
    lines = [f"# {_plain(str(session['title'] or session['id']))}", ""]
    for name in _FACTS:
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
        facts.append("no result")
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
        told += "\n_truncated; the JSON lines export has all of it_\n" if block.is_cut or not block.text else ""
    return told


def _plain(text: str) -> str:
    return " ".join(text.split()).translate(_SPECIAL)


def _quoted(text: str) -> str:
    """Return what was said as a quotation; its HTML, if any, is text."""
    return "\n".join(f"> {line}" for line in _defused(_TAG.sub("&lt;", text).splitlines()))


def _defused(lines: list[str]) -> list[str]:
    """Return lines whose images are text, and whose links lead to the web or to a mailbox.

    Code stays as it is where it certainly is code: in fences at the beginning of a line, and between backticks, of
    which none is left over in any line. Where that is not so, readers of Markdown may see code elsewhere than we do.
    """
    fenced = _fenced_lines(lines)
    prose = [line for line, is_code in zip(lines, fenced, strict=True) if not is_code]
    has_code = not any("`" in _CODE.sub("", line) or "\\`" in line for line in prose)
    return [
        line if is_code else _without_links(line, has_code=has_code)
        for line, is_code in zip(lines, fenced, strict=True)
    ]


def _fenced_lines(lines: list[str]) -> list[bool]:
    """Tell of each line whether it is code in a fence; of none when a fence may be inside of something else."""
    if any(_FENCE_INSIDE.match(line) for line in lines):
        return [False] * len(lines)
    fenced: list[bool] = []
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if fence:
            fenced.append(True)
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        else:
            fence = match[1] if match and not (match[1][0] == "`" and "`" in match[2]) else ""
            fenced.append(bool(fence))
    return fenced


def _without_links(line: str, *, has_code: bool) -> str:
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(line) if has_code else ():
        parts += (_text_only(line[end : code.start()]), code[0])
        end = code.end()
    return "".join((*parts, _text_only(line[end:])))


def _text_only(text: str) -> str:
    return _LINK.sub(r"]\\", _IMAGE.sub(r"!\\", text))


def _code(text: str) -> str:
    ticks = "`" * (_longest_run(text) + 1)
    return f"{ticks} {text} {ticks}"


def _fenced(text: str) -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}\n"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
