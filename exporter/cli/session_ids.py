"""Session ids as people write and read them: any unique beginning will do, and no more is shown than is needed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from exporter.cli.command import CommandContext
from exporter.cli.output.table import TerminalView
from exporter.errors import UsageError

SHORTEST: Final = 8
_WHOLE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def shown_ids(rows: Iterable[Mapping[str, Any]], view: TerminalView, *, key: str = "session") -> dict[str, str]:
    """How the ids of these rows are shown: short on a terminal, else whole."""
    ids = [str(row[key]) for row in rows]
    return short_ids(ids) if view.width else {one: one for one in ids}


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """The shortest beginning of each id, of at least eight characters, that no other id here shares."""
    ordered = sorted(set(ids))
    shared = [_shared(one, other) for one, other in pairwise(ordered)]
    around = zip(ordered, [0, *shared], [*shared, 0], strict=True) if ordered else ()
    return {one: one[: max(SHORTEST, before + 1, after + 1)] for one, before, after in around}


def _shared(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def resolve_id(given: str, known: Iterable[str]) -> str:
    """The one known id that is or begins with what was given; UsageError when there is none, or more than one."""
    ids = sorted(set(known))
    matches = [given] if given in ids else [one for one in ids if one.startswith(given.lower())]
    match matches:
        case [only]:
            return only
        case []:
            raise UsageError(f"no session id starts with {given!r}", hint="see: exporter sessions list")
        case _:
            some = ", ".join(short_ids(ids)[one] for one in matches[:4])
            more = ", …" if len(matches) > 4 else ""
            raise UsageError(
                f"{len(matches)} session ids start with {given!r}: {some}{more}", hint="use a longer prefix"
            )


def whole_ids(context: CommandContext, given: Sequence[str]) -> list[str]:
    """The full ids for what a person typed; sessions are only listed when something is not a whole id already."""
    if all(_WHOLE.fullmatch(one) for one in given):
        return list(dict.fromkeys(given))
    known: list[dict[str, Any]] = context.ask({"do": "sessions"})["sessions"]
    ids = [session["id"] for session in known]
    return list(dict.fromkeys(resolve_id(one, ids) for one in given))
