"""The tables of differences that have a reason."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from tests.parity.everything import Difference
from tests.parity.oracle import Session

CLI: Final = "differences.toml"
"""How we differ from the CLI's own telemetry."""
LATEST: Final = "latest.toml"
"""How `semconv = "latest"` differs from `cli`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One reason, and the differences that it explains."""

    signal: str
    where: tuple[str, ...]
    what: str
    reason: str
    name: tuple[str, ...] = ("",)
    version: str | None = None
    sessions: tuple[str, ...] | None = None
    fresh: bool = False
    at_times: bool = False

    def explains(self, one: Difference, session: Session) -> bool:
        """Whether a difference that a session has is one of these."""
        return (
            (self.signal, self.what) == (one.signal, one.what)
            and any(fnmatchcase(one.where, pattern) for pattern in self.where)
            and any(fnmatchcase(one.name, pattern) for pattern in self.name)
            and self.version in (None, session.version)
            and (self.sessions is None or session.name in self.sessions)
        )


@cache
def rows(table: str = CLI) -> tuple[Row, ...]:
    """Every row, in the order of the table."""
    tables = tomllib.loads(Path(__file__).with_name(table).read_text("utf-8"))["row"]
    return tuple(msgspec.convert(tables, list[Row]))


def unexplained(found: Iterable[Difference], session: Session, table: str = CLI) -> list[Difference]:
    """Return the differences that no row explains."""
    return sorted(one for one in found if not any(row.explains(one, session) for row in rows(table)))
