"""`exporter archive`: sessions kept as files."""

import asyncio
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from exporter.cli.commands import Example, Leaf
from exporter.cli.invocation import CommandContext
from exporter.cli.progress import ProgressBar
from exporter.cli.text import count, plain


def _build(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the whole id of the session")
    parser.add_argument("--sink", action="append", metavar="NAME", help="only in this archive; may be repeated")


def _run(invocation: CommandContext) -> int:
    args, settings = invocation.args, invocation.load().settings
    from exporter import app

    with ProgressBar(invocation.out) as progress:
        answer = asyncio.run(app.forget_archived(settings, args.session, args.sink, progress.update))
    invocation.out.result(answer, lambda: forgotten_text(answer))
    return int(answer.get("exit", 0))


def forgotten_text(answer: Mapping[str, Any]) -> str:
    """A line per archive."""
    lines = []
    for one in answer["archives"]:
        done = f"not deleted: {plain(one['why'])}" if one["why"] else f"{count(one['deleted'], 'file')} deleted"
        lines.append(f"{plain(one['sink'])}: {done}")
    return "\n".join(lines)


LEAVES = {
    "archive forget": Leaf(
        description=(
            "Deletes what the archives hold of a session: its objects and its manifest. It is not archived again "
            "by itself; `exporter backfill --session ID --from-start` does that."
        ),
        examples=(
            Example("exporter archive forget 3f2a77c1-1d1c-4a51-9d0e-0d7a8a7f0001", "in every archive"),
            Example("exporter archive forget 3f2a77c1-1d1c-4a51-9d0e-0d7a8a7f0001 --sink archive.nas", "in one"),
        ),
        build=_build,
        run=_run,
    )
}
