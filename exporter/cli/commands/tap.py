"""`exporter tap`: the extension that shows live what is never on disk; put in place, looked at, taken away."""

from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporter.cli.context import CommandContext
from exporter.cli.output.text import plain
from exporter.cli.registry import Example, Leaf
from exporter.errors import UsageError

if TYPE_CHECKING:
    from exporter.sources.tap.extension import Installed


def _build(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--project",
        action="store_true",
        help="the one of this git repository, in .github/extensions, instead of yours in ~/.copilot",
    )


def _install(invocation: CommandContext) -> int:
    from exporter.sources.tap.extension import install

    directory, state_dir = _directory(invocation)
    is_new = install(directory, state_dir=state_dir)
    _show(invocation, _look(invocation), "written" if is_new else "was there already")
    return 0


def _status(invocation: CommandContext) -> int:
    _show(invocation, _look(invocation), None)
    return 0


def _uninstall(invocation: CommandContext) -> int:
    from exporter.sources.tap.extension import uninstall

    directory, _ = _directory(invocation)
    was_there = uninstall(directory)
    document = {"directory": str(directory), "removed": was_there}
    invocation.out.result(document, lambda: f"{plain(str(directory))}: {'removed' if was_there else 'was not there'}")
    return 0


def _directory(invocation: CommandContext) -> tuple[Path, Path | None]:
    """Return where the tap goes, and the state directory that is written beside it where that is nobody else's."""
    from exporter.sources.tap.extension import project_directory, project_root, user_directory

    if invocation.args.project:
        return project_directory(project_root(Path.cwd())), None
    settings = invocation.load(fallbacks=False).settings
    return user_directory(Path(settings.copilot_home)), Path(settings.state_dir)


def _look(invocation: CommandContext) -> "Installed":
    from exporter.sources.tap.extension import look, project_directory, project_root

    directory, _ = _directory(invocation)
    try:
        shadowing = project_directory(project_root(Path.cwd()))
    except UsageError:
        shadowing = None
    return look(directory, shadowing=shadowing, is_project=invocation.args.project)


def _show(invocation: CommandContext, found: "Installed", done: str | None) -> None:
    document: dict[str, Any] = {"directory": str(found.directory), "state": found.state, "notes": list(found.notes)}
    if done is not None:
        document["written"] = done == "written"
    lines = [f"{plain(str(found.directory))}: {done or found.state}", *map(plain, found.notes)]
    invocation.out.result(document, lambda: "\n".join(lines))


LEAVES = {
    "tap install": Leaf(
        description=(
            "Writes one extension of the CLI that shows a running exporter what happens in a session: text as it is "
            "typed, progress, waiting for permission. It adds no tool and no hook and writes nothing into a session."
        ),
        examples=(
            Example("exporter tap install", "for all your sessions that are started with --experimental"),
            Example("exporter tap install --project", "for everybody who works in this repository"),
        ),
        build=_build,
        run=_install,
    ),
    "tap status": Leaf(
        description="Says whether the extension is there, whether it is ours and up to date, and what it needs.",
        examples=(Example("exporter tap status", "yours; a project's that stands in its place is named"),),
        build=_build,
        run=_status,
    ),
    "tap uninstall": Leaf(
        description="Removes what `tap install` wrote, and nothing else; what was changed since is left.",
        examples=(Example("exporter tap uninstall", "yours; with --project the one of this repository"),),
        build=_build,
        run=_uninstall,
    ),
}
