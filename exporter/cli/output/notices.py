"""Shows what `up` and `run` have to say while they work.

A notice is one of the core's, or a mapping with one of these keys:
`progress` (the report of the control socket) · `ready` (see `ready_text`; said once by `up`) ·
`message` (a constant text, with `event`, `level` = info | warning | error and any further fields as variables).
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from exporter.cli.output.output import Output, to_json
from exporter.cli.output.progress import ProgressBar
from exporter.cli.output.table import Cell, Palette, TerminalView, Tone, Value, pairs
from exporter.cli.output.text import count, listing, plain, size, words
from exporter.core.notice import Notice

_RANKS: Final = {"debug": 0, "info": 1, "warning": 2, "error": 3}
_TONES: Final[dict[str, Tone]] = {"warning": "warn", "error": "bad"}


class Notices:
    """Takes every notice of a running command: JSON lines on stdout with --json, else readable lines.

    Messages below `level` are left out, and with --quiet all but errors.
    """

    def __init__(self, out: Output, *, level: str = "info") -> None:
        self._out = out
        self._level = _RANKS["error"] if out.quiet else _RANKS[level]
        self._progress = ProgressBar(out)

    def close(self) -> None:
        """Ends the bar of progress, if there is one."""
        self._progress.close()

    def __call__(self, notice: Mapping[str, Any] | Notice) -> None:
        if isinstance(notice, Notice):
            notice = as_mapping(notice)
        if "progress" in notice:
            if not self._out.logs_json:
                self._progress.update(notice["progress"])
            return
        if "message" in notice and _RANKS[str(notice.get("level", "info"))] < self._level:
            return
        self._progress.close()
        if self._out.as_json:
            self._out.write(to_json(notice))
        elif "ready" in notice:
            self._out.write(ready_text(notice["ready"], self._out.view))
        elif self._out.logs_json:
            facts = {name: value for name, value in notice.items() if value not in (None, "")}
            self._out.log(str(notice["event"]), str(notice["level"]), str(notice["message"]), facts)
        else:
            stamp = self._out.notice_palette.paint(time.strftime("%H:%M:%S"), "dim")
            self._out.urgent(f"{stamp} {notice_text(notice, self._out.notice_palette)}")


def as_mapping(notice: Notice) -> dict[str, Any]:
    """A notice of the core in the form that is shown."""
    level = notice.level.name.lower()
    named = {"session": notice.session, "sink": notice.sink, "url": notice.url}
    what = {"event": str(notice.name), "message": notice.message, "level": level}
    return {**what, **{name: text for name, text in named.items() if text}, **notice.fields}


def notice_text(notice: Mapping[str, Any], palette: Palette) -> str:
    """One line: the message, then its fields as `name value`."""
    level = str(notice.get("level", "info"))
    named = {name: value for name, value in notice.items() if name not in ("event", "message", "level")}
    fields = [f"{words(name)} {_shown(value)}" for name, value in named.items() if value not in (None, "", {})]
    text = f"{plain(notice.get('message', ''))}{' · ' if fields else ''}{', '.join(fields)}"
    tone = _TONES.get(level, "")
    return f"{palette.paint(f'{level}:', tone)} {text}" if tone else text


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return listing(f"{plain(name)} {plain(one)}" for name, one in value.items())
    return listing(map(plain, value)) if isinstance(value, list | tuple) else plain(value)


def ready_text(ready: Mapping[str, Any], view: TerminalView) -> str:
    """What `up` says once it is up.

    Fields, all but `url` optional: `attached` (a daemon was running already, and nothing is known but its answer),
    `demo`, `days`, `sessions`, `events`, `bytes`, `masked`, `leaves` (where events go besides this machine, as texts),
    `found_not_used` (names of variables).
    """
    if ready.get("demo") and not ready.get("attached"):
        return _demo_text(ready, view)
    rows: list[tuple[str, Value]] = [
        ("Mission Control", Cell(ready["url"], "strong")),
        ("sessions", _sessions(ready)),
        ("secrets redacted", _masked(ready)),
        ("leaves the machine", _leaves(ready)),
        ("found, not used", _unused(ready.get("found_not_used", ()))),
    ]
    return f"{pairs(rows, view)}\n\n{_closing(ready)}"


def _demo_text(ready: Mapping[str, Any], view: TerminalView) -> str:
    rows: list[tuple[str, Value]] = [
        (
            "Mission Control",
            Cell(f"{ready['url']} (a fortnight of made-up sessions, and one that plays live)", "strong"),
        ),
        ("leaves the machine", _leaves(ready)),
        ("try next", "exporter up shows your own sessions; press Ctrl-C first"),
    ]
    return pairs(rows, view)


def _sessions(ready: Mapping[str, Any]) -> str:
    if not ready.get("sessions"):
        return "" if _is_unknown(ready, "sessions") else "none yet"
    since = f" from the last {count(ready['days'], 'day')}" if ready.get("days") else ""
    return f"{ready['sessions']:,}{since}, {count(ready.get('events', 0), 'event')} ({size(ready.get('bytes', 0))})"


def _masked(ready: Mapping[str, Any]) -> Cell:
    if _is_unknown(ready, "masked"):
        return Cell("")
    return Cell(f"{ready.get('masked', 0):,}", "good" if ready.get("masked") else "")


def _is_unknown(ready: Mapping[str, Any], name: str) -> bool:
    """Whether a running exporter of an earlier version did not report this: the value is unknown then, not nothing."""
    return bool(ready.get("attached")) and name not in ready


def _leaves(ready: Mapping[str, Any]) -> Cell:
    if _is_unknown(ready, "leaves"):
        return Cell("")
    if sinks := ready.get("leaves", ()):
        return Cell(f"redacted events to {listing(map(plain, sinks))}", "warn")
    return Cell("nothing", "good")


def _unused(names: Sequence[str]) -> str:
    return f"{listing(map(plain, names))} (used by exporter run and exporter backfill)" if names else ""


def _closing(ready: Mapping[str, Any]) -> str:
    if ready.get("attached"):
        return "An exporter is already running; this is its page."
    if not ready.get("sessions"):
        return (
            "No Copilot CLI sessions yet. Start one to see it here, or try: exporter up --demo\nPress Ctrl-C to stop."
        )
    return "Following live. Press Ctrl-C to stop; the next start continues here and nothing is lost."
