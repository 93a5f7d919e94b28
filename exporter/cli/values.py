"""What options and arguments accept: numbers, moments, paths and session ids; each says what it expected instead."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from exporter.core.names import JOURNALS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from config.settings import Settings

WHEN_EXPECTED: Final = "an ISO time (2026-11-18 or 2026-11-18T09:30:00Z), a span (90m, 36h, 7d, 2w), today or yesterday"
_SPAN: Final = re.compile(r"(\d{1,6})\s*(s|m|min|h|d|w)")
_UNITS: Final = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class WholeNumber(click.ParamType[int]):
    """A whole number within these bounds."""

    name = "n"

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        if not text.isascii() or not text.isdigit() or not self._low <= int(text) <= self._high:
            self.fail(f"expected a whole number from {self._low} to {self._high}, got {text!r}", param, ctx)
        return int(text)


class When(click.ParamType[datetime]):
    """A moment in the past, as people write it after `--since`."""

    name = "when"

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            return parse_when(str(value), datetime.now().astimezone())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parse_when(text: str, now: datetime) -> datetime:
    """The moment that is meant, in the zone of `now` when it names none; ValueError says what is expected."""
    wanted = text.strip().lower()
    if wanted == "now":
        return now
    if wanted in ("today", "yesterday"):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=1 if wanted == "yesterday" else 0)
    try:
        if span := _SPAN.fullmatch(wanted.removesuffix(" ago")):
            return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
        when = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ValueError(f"expected {WHEN_EXPECTED}, got {text!r}") from None
    return when if when.tzinfo else when.replace(tzinfo=now.tzinfo)


class PathName(click.ParamType[str]):
    """A path as it was typed: whether it can be used is for the command to say."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.name)]


FILE: Final = PathName("file")
DIRECTORY: Final = PathName("dir")


class SessionId(click.ParamType[str]):
    """A session id or any unique beginning of one; the shell completes those whose files are on this machine."""

    name = "id"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        from config.errors import ConfigError

        try:
            known = sessions_on_disk(ctx.obj.load().settings)
        except (ConfigError, OSError):
            return []
        return [CompletionItem(one) for one in sorted(set(known)) if one.startswith(incomplete)]


def sessions_on_disk(settings: "Settings") -> Iterable[str]:
    """The ids of the sessions that have a file of events here, of the CLI or of our journals; without opening any."""
    from exporter.wiring.sources import homes_in

    roots = (*homes_in(settings).roots(), Path(settings.state_dir) / JOURNALS)
    return (file.parent.name for root in roots for file in root.glob("*/events.jsonl"))
