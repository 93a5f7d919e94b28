"""`exporter tap`: installs, shows and removes the extension that sends live events, which are never on disk."""

from pathlib import Path
from typing import Any, Final

from exporter.cli.command import CommandContext, command, option
from exporter.cli.output.text import plain
from exporter.errors import UsageError

_project: Final = option(
    "--project", is_flag=True, help="in this git repository (.github/extensions) instead of ~/.copilot"
)


@command()
@_project
def install(context: CommandContext, project: bool) -> int:
    """Installs a CLI extension that sends live events to a running exporter.

    Live events are streamed text, progress and permission requests. The extension adds no tool and no hook, and it
    writes nothing into a session.

    Examples:
    exporter tap install  # for all your sessions started with --experimental
    exporter tap install --project  # for everyone who works in this repository
    """
    from exporter.sources.tap.extension import install

    directory, state_dir = _directory(context, is_project=project)
    is_new = install(directory, state_dir=state_dir)
    return _show(context, "written" if is_new else "already installed", is_project=project)


@command()
@_project
def status(context: CommandContext, project: bool) -> int:
    """Shows whether the extension is installed, unmodified and up to date, and what it requires.

    Examples:
    exporter tap status  # your extension, and a project extension that overrides it
    """
    return _show(context, None, is_project=project)


@command()
@_project
def uninstall(context: CommandContext, project: bool) -> int:
    """Removes what `tap install` wrote. Files changed since then are kept.

    Examples:
    exporter tap uninstall  # your extension; use --project for the one of this repository
    """
    from exporter.sources.tap.extension import uninstall

    directory, _ = _directory(context, is_project=project)
    was_there = uninstall(directory)
    document = {"directory": str(directory), "removed": was_there}
    said = f"{plain(str(directory))}: {'removed' if was_there else 'not installed'}"
    return context.report(document, lambda _: said)


def _directory(context: CommandContext, *, is_project: bool) -> tuple[Path, Path | None]:
    """Return the directory of the tap, and the state directory to write beside it; none in a shared repository."""
    from exporter.sources.tap.extension import project_directory, project_root, user_directory

    if is_project:
        return project_directory(project_root(Path.cwd())), None
    from config.paths import is_pattern

    settings = context.load(fallbacks=False).settings
    if not isinstance(home := settings.copilot_home, str) or is_pattern(home):
        raise UsageError("the settings name many directories of the CLI", hint="name one with --copilot-home")
    return user_directory(Path(home)), Path(settings.state_dir)


def _show(context: CommandContext, done: str | None, *, is_project: bool) -> int:
    from exporter.sources.tap.extension import look, project_directory, project_root

    directory, _ = _directory(context, is_project=is_project)
    try:
        shadowing = project_directory(project_root(Path.cwd()))
    except UsageError:
        shadowing = None
    found = look(directory, shadowing=shadowing, is_project=is_project)
    document: dict[str, Any] = {"directory": str(directory), "state": found.state, "notes": list(found.notes)}
    if done is not None:
        document["written"] = done == "written"
    lines = [f"{plain(str(directory))}: {done or found.state}", *map(plain, found.notes)]
    return context.report(document, lambda _: "\n".join(lines))
