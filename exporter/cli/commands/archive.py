"""`exporter archive`: sessions kept as files."""

from collections.abc import Mapping
from typing import Any

from exporter.cli.command import CommandContext, argument, command, option
from exporter.cli.output.text import count, plain


@command()
@argument("session", metavar="SESSION", help="whole id of the session")
@option("--sink", multiple=True, metavar="NAME", help="only in this archive; may be repeated")
def forget(context: CommandContext, session: str, sink: tuple[str, ...]) -> int:
    """Deletes a session in the archives: its objects and its manifest.

    The session is not archived again unless you ask for it with `exporter backfill --session ID --from-start`.

    Examples:
    exporter archive forget 3f2a77c1-1d1c-4a51-9d0e-0d7a8a7f0001  # in every archive
    exporter archive forget 3f2a77c1-1d1c-4a51-9d0e-0d7a8a7f0001 --sink archive.nas  # in one archive
    """
    answer = context.ask({"do": "archive_forget", "session": session, "sinks": list(sink) or None})
    return context.report(answer, lambda _: forgotten_text(answer))


def forgotten_text(answer: Mapping[str, Any]) -> str:
    """A line per archive."""
    lines = []
    for one in answer["archives"]:
        done = f"not deleted: {plain(one['why'])}" if one["why"] else f"{count(one['deleted'], 'file')} deleted"
        lines.append(f"{plain(one['sink'])}: {done}")
    return "\n".join(lines)
