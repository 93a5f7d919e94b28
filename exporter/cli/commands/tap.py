"""`exporter tap`: the extension that shows live what is never on disk; put in place, looked at, taken away."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from exporter.cli.command import command, option
from exporter.cli.context import CommandContext
from exporter.cli.output.text import plain
from exporter.errors import UsageError

if TYPE_CHECKING:
    from exporter.sources.tap.extension import Installed

_project: Final = option(
    "--project",
    is_flag=True,
    help="the one of this git repository, in .github/extensions, instead of yours in ~/.copilot",
)


@command(
    examples={
        "exporter tap install": "for all your sessions that are started with --experimental",
        "exporter tap install --project": "for everybody who works in this repository",
    }
)
@_project
def install(context: CommandContext, project: bool) -> int:
    """Writes one extension of the CLI that shows a running exporter what happens in a session: text as it is typed,
    progress, waiting for permission. It adds no tool and no hook and writes nothing into a session.
    """
    from exporter.sources.tap.extension import install

    directory, state_dir = _directory(context, is_project=project)
    is_new = install(directory, state_dir=state_dir)
    return _show(context, _look(context, is_project=project), "written" if is_new else "was there already")


@command(examples={"exporter tap status": "yours; a project's that stands in its place is named"})
@_project
def status(context: CommandContext, project: bool) -> int:
    """Says whether the extension is there, whether it is ours and up to date, and what it needs."""
    return _show(context, _look(context, is_project=project), None)


@command(examples={"exporter tap uninstall": "yours; with --project the one of this repository"})
@_project
def uninstall(context: CommandContext, project: bool) -> int:
    """Removes what `tap install` wrote, and nothing else; what was changed since is left."""
    from exporter.sources.tap.extension import uninstall

    directory, _ = _directory(context, is_project=project)
    was_there = uninstall(directory)
    document = {"directory": str(directory), "removed": was_there}
    said = f"{plain(str(directory))}: {'removed' if was_there else 'was not there'}"
    return context.report(document, lambda _: said)


def _directory(context: CommandContext, *, is_project: bool) -> tuple[Path, Path | None]:
    """Return where the tap goes, and the state directory that is written beside it where that is nobody else's."""
    from exporter.sources.tap.extension import project_directory, project_root, user_directory

    if is_project:
        return project_directory(project_root(Path.cwd())), None
    settings = context.load(fallbacks=False).settings
    return user_directory(Path(settings.copilot_home)), Path(settings.state_dir)


def _look(context: CommandContext, *, is_project: bool) -> "Installed":
    from exporter.sources.tap.extension import look, project_directory, project_root

    directory, _ = _directory(context, is_project=is_project)
    try:
        shadowing = project_directory(project_root(Path.cwd()))
    except UsageError:
        shadowing = None
    return look(directory, shadowing=shadowing, is_project=is_project)


def _show(context: CommandContext, found: "Installed", done: str | None) -> int:
    document: dict[str, Any] = {"directory": str(found.directory), "state": found.state, "notes": list(found.notes)}
    if done is not None:
        document["written"] = done == "written"
    lines = [f"{plain(str(found.directory))}: {done or found.state}", *map(plain, found.notes)]
    return context.report(document, lambda _: "\n".join(lines))
