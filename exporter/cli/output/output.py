"""Where answers go: results to stdout, everything else to stderr, JSON for machines."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import IO

from exporter.cli.output.table import Palette, TerminalView
from exporter.cli.output.text import plain, safe_json
from exporter.core.notice import NoticeName


class ReaderGone(Exception):
    """Whoever read our stdout has closed it (`exporter sessions list | head`); not an error."""


class Output:
    """Writes results and notices the way the global flags and the two streams ask for.

    `view` is that of stdout, where nothing is cut in a file or a pipe; `notice_palette` colours stderr.
    """

    def __init__(self, *, as_json: bool, quiet: bool, color: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.logs_json = False
        self.on_terminal = sys.stdout.isatty()
        self.notices_on_terminal = sys.stderr.isatty()
        width = max(40, shutil.get_terminal_size().columns) if self.on_terminal else None
        self.view = TerminalView(width, Palette(color and self.on_terminal))
        self.notice_palette = Palette(color and self.notices_on_terminal)
        for stream in (sys.stdout, sys.stderr):
            if callable(reconfigure := getattr(stream, "reconfigure", None)):
                reconfigure(errors="backslashreplace")

    def log_as_json(self) -> None:
        """From now on every line on stderr is a JSON document, those of libraries too."""
        import logging

        from exporter.cli.output.library_log import LibraryLog

        if not self.logs_json:
            self.logs_json = True
            logging.getLogger().addHandler(LibraryLog(self))

    def log(self, name: str, level: str, message: str, facts: Mapping[str, object] = {}) -> None:
        """Write one line of the log as JSON."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": time, "level": level, "event": str(name), "message": message}
        _through(sys.stderr, to_json(line | {key: one for key, one in facts.items() if key not in line}) + "\n")

    def result(self, document: object, render: Callable[[TerminalView], str]) -> None:
        """The answer of a command: the document itself with --json, else what `render` makes of it."""
        if self.as_json:
            self.write(to_json(document, indent=2 if self.on_terminal else None))
        else:
            self.write(render(self.view))

    def write(self, text: str) -> None:
        """A result of at least one line on stdout, at once."""
        if text:
            _through(sys.stdout, text if text.endswith("\n") else text + "\n")

    def write_bytes(self, content: bytes, *, flush: bool = True) -> None:
        """Bytes on stdout exactly as given, now or, without `flush`, when enough have come together."""
        try:
            sys.stdout.buffer.write(content)
            if flush:
                sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise ReaderGone from None

    def notice(self, text: str) -> None:
        """A line for people on stderr; `--quiet` leaves it out."""
        if self.quiet:
            return
        if self.logs_json:
            self.log(NoticeName.NOTE, "info", text)
        else:
            self.urgent(text)

    def urgent(self, text: str) -> None:
        """A line for people on stderr, `--quiet` or not."""
        _through(sys.stderr, text + "\n")

    def failure(self, kind: str, message: str, hint: str) -> None:
        """The error a command ends with: a JSON document on stdout with --json, two lines on stderr without."""
        if self.as_json:
            self.write(to_json({"error": {"kind": kind, "message": message, "hint": hint}}))
            return
        if self.logs_json:
            self.log(NoticeName.FAILED, "error", message, {"kind": kind, "hint": hint} if hint else {"kind": kind})
            return
        lines = [f"{self.notice_palette.paint('error:', 'bad')} {plain(message)}"]
        if hint:
            lines.append(f"{self.notice_palette.paint('hint:', 'dim')}  {plain(hint)}")
        _through(sys.stderr, "\n".join(lines) + "\n")


def _through(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def let_go_of_stdout() -> None:
    """After the reader has gone: nothing may be flushed to the closed pipe when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def to_json(document: object, *, indent: int | None = None) -> str:
    """One JSON document, compact unless indented; what UTF-8 cannot hold, or a terminal might obey, is escaped."""
    separators = None if indent else (",", ":")
    text = safe_json(json.dumps(document, indent=indent, separators=separators, ensure_ascii=False))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(document, indent=indent, separators=separators)
    return text
