"""`exporter service`: installs, shows and removes the service that runs `exporter run` for good."""

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from exporter.cli.command import CommandContext, command, option
from exporter.cli.output.text import listing, plain
from exporter.errors import Exit, LockedError, UsageError

if TYPE_CHECKING:
    from config.load import Loaded
    from exporter.service.manager import Manager
    from exporter.service.plan import Installation

_system: Final = option(
    "--system", is_flag=True, help="a service of the system, which runs without a sign-in; needs sudo"
)


@dataclass(frozen=True, slots=True)
class _Service:
    loaded: "Loaded"
    installation: "Installation"
    manager: "Manager"
    lost: list[str]
    """Variables of this shell that act on an exporter here and that the service does not have."""


def _service(context: CommandContext, *, is_system: bool, keep_env: bool = False) -> _Service:
    from exporter.service.manager import manager_of
    from exporter.wiring.service import environment_of_account, installation_of, lost_variables

    environ = environment_of_account(os.environ, is_system=is_system)
    loaded = context.load(secrets=False, environ=environ)
    lost = lost_variables(loaded, environ)
    kept = lost if keep_env else []
    installation = installation_of(loaded, context.options, environ, is_system=is_system, kept=kept)
    return _Service(loaded, installation, manager_of(installation), [] if keep_env else lost)


@command()
@_system
@option("--keep-env", is_flag=True, help="keep the variables of this shell that act, in a file that only you read")
@option("--dry-run", is_flag=True, help="print the files and change nothing")
def install(context: CommandContext, system: bool, keep_env: bool, dry_run: bool) -> int:
    """Installs the exporter as a service that starts when you sign in, and starts it.

    A second call upgrades it in place. Marks and settings are not touched.

    Examples:
    exporter service install  # follow your sessions from now on, after every start of this machine too
    exporter service install --dry-run  # see what would be written
    """
    from exporter import app
    from exporter.service import manager as managing

    one = _service(context, is_system=system, keep_env=keep_env)
    files = one.manager.files(one.installation)
    if dry_run:
        document = {"files": [{"path": str(file.path), "content": file.content} for file in files]}
        return context.report(document, lambda _: "\n".join(f"# {file.path}\n{file.content}" for file in files))
    found = managing.look(one.installation, one.manager)
    running = asyncio.run(app.daemon_pid(one.loaded.settings))
    if running and running != found.pid:
        raise LockedError(
            f"an exporter runs already (process {running}); nothing was changed",
            hint=f"stop it (kill {running}), then install the service",
        )
    is_started = managing.install(one.installation, one.manager)
    written = {"files": [str(file.path) for file in files], "started": is_started, "not_kept": one.lost}
    lines = [plain(str(file.path)) for file in files]
    lines.append(_started(one, is_started=is_started))
    if one.manager.remark:
        lines.append(one.manager.remark)
    for line in _lost(one.lost):
        context.out.notice(f"{context.out.notice_palette.paint('warning:', 'warn')} {line}")
    return context.report(written, lambda _: "\n".join(lines))


def _started(one: _Service, *, is_started: bool) -> str:
    if is_started:
        return "started; see it with: exporter service status"
    return f"installed, not started: {one.manager.name} does not answer here, and starts it when it does"


def _lost(lost: list[str]) -> list[str]:
    if not lost:
        return []
    return [
        f"the service has not the variables of this shell: {plain(listing(lost))} will not act, and values that are "
        "masked because they are in a variable will not be masked. Keep them with --keep-env, or set "
        "redaction.known_env_of_cli = true for the values of the CLI's own variables"
    ]


@command()
@_system
def uninstall(context: CommandContext, system: bool) -> int:
    """Stops the service and removes what `service install` wrote. Marks, quarantine and settings stay.

    Examples:
    exporter service uninstall  # what was not delivered yet is delivered by the next exporter
    """
    from exporter.service import manager as managing

    one = _service(context, is_system=system)
    removed = [str(path) for path in managing.uninstall(one.installation, one.manager)]
    return context.report({"removed": removed}, lambda _: "\n".join(map(plain, removed)) or "not installed")


@command()
@_system
def status(context: CommandContext, system: bool) -> int:
    """Shows whether the service is installed, whether it runs, and what is wrong with it.

    Exits with 4 when something is wrong.

    Examples:
    exporter service status  # the files, the manager's word, the version
    """
    one = _service(context, is_system=system)
    from exporter.service.health import problems
    from exporter.service.manager import look

    found = look(one.installation, one.manager)
    wrong = problems(one.installation, found, lost=one.lost)
    document = {**found.document(), "problems": wrong, "exit": Exit.PARTIAL if wrong else Exit.DONE}
    lines = [f"{plain(str(found.path))}: {found.text}", *map(plain, wrong)]
    return context.report(document, lambda _: "\n".join(lines))


@command()
@_system
def restart(context: CommandContext, system: bool) -> int:
    """Stops and starts the service; what was under way goes on where it was.

    Examples:
    exporter service restart  # after a change of the settings file
    """
    from exporter.service import manager as managing

    one = _installed(context, is_system=system)
    managing.restart(one.manager)
    return context.report({"restarted": True}, lambda _: "restarted")


@command()
@_system
def logs(context: CommandContext, system: bool) -> int:
    """Shows the last hundred lines that the service wrote.

    Examples:
    exporter service logs  # what the manager kept
    """
    from exporter.service import manager as managing

    return managing.logs(_installed(context, is_system=system).manager)


def _installed(context: CommandContext, *, is_system: bool) -> _Service:
    from exporter.service.manager import look

    one = _service(context, is_system=is_system)
    if look(one.installation, one.manager).version is None:
        raise UsageError("the service is not installed", hint="install it with `exporter service install`")
    return one
