"""The exporter as a service, from the settings: what to install, and which variables of the shell it will not have."""

import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from config.load import Loaded
from config.paths import homes_of, is_pattern
from exporter.errors import UsageError
from exporter.service.health import problems
from exporter.service.manager import Found, look, manager_of
from exporter.service.plan import Installation
from exporter.service.variables import acting
from exporter.version import VERSION

if sys.platform != "win32":
    import pwd

_OPTIONS: Final = ("config", "state_dir", "copilot_home")
_PASSING: Final = (
    (("uv", "archive-v0"), "uv tool install session-exporter"),
    (("uv", "environments-v2"), "uv tool install session-exporter"),
    (("pipx", ".cache"), "pipx install session-exporter"),
)
"""Directories of environments that are deleted without asking, and the command that makes one that stays."""


def environment_of_account(environ: Mapping[str, str], *, is_system: bool) -> dict[str, str]:
    """Return the environment to read settings from: with sudo, of the account that called it.

    Raises `UsageError` for a service of the system that would run as root.
    """
    if not is_system or sys.platform == "win32":
        return dict(environ)
    name = environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    account = pwd.getpwnam(name)
    if account.pw_uid == 0:
        raise UsageError(
            "a service of the system runs as the user whose sessions it follows, and this would be root",
            hint="call it with sudo as that user",
        )
    kept = {name: value for name, value in environ.items() if not name.startswith("XDG_")}
    return {**kept, "HOME": account.pw_dir, "USER": name}


def installation_of(
    loaded: Loaded,
    options: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    is_system: bool = False,
    kept: Collection[str] = (),
) -> Installation:
    """Return what is to be installed for these settings; `options` are the global ones that were given.

    `environ` is what the settings were read from, `kept` are the names of those variables that the service gets too.
    """
    settings = loaded.settings
    command = [*program(), "run"]
    for name in _OPTIONS:
        if name in options:
            command += [f"--{name.replace('_', '-')}", str(Path(options[name]).absolute())]
    home = Path(environ.get("HOME") or Path.home())
    config_home = Path(environ.get("XDG_CONFIG_HOME", ""))
    archives = [Path(url2pathname(urlsplit(one.url).path)) for one in settings.archive.values()]
    return Installation(
        tuple(command),
        VERSION,
        home,
        config_home if config_home.is_absolute() else home / ".config",
        reads=tuple(map(Path, homes_of(settings))),
        writes=(Path(settings.state_dir), Path(settings.cache_dir), *archives),
        stop_seconds=settings.drain_seconds + settings.linger_seconds,
        user=environ["USER"] if is_system else None,
        environment=tuple((name, environ[name]) for name in sorted(kept)),
        reads_environment=settings.redaction.known_env_of_cli,
        of_many=len(homes_of(settings)) > 1 or any(map(is_pattern, homes_of(settings))),
    )


def program() -> tuple[str, ...]:
    """Return the words that start this program, by absolute paths; raises `UsageError` where it will not stay."""
    found = Path(sys.argv[0]).absolute()
    parts = Path(sys.prefix).parts
    for directories, advice in _PASSING:
        if any(parts[at : at + 2] == directories for at in range(len(parts))):
            raise _passing(Path(sys.prefix), advice)
    if found.is_file() and found.suffix == ".pyz" and found.is_relative_to(tempfile.gettempdir()):
        raise _passing(found, f"mv {found} ~/.local/bin/exporter")
    script = Path(sys.executable).absolute().parent / ("exporter.exe" if sys.platform == "win32" else "exporter")
    if found.suffix == ".pyz":
        return (str(Path(sys.executable).absolute()), str(found))
    if shutil.which(str(script)):
        return (str(script),)
    return (str(Path(sys.executable).absolute()), "-m", "exporter")


def _passing(place: Path, advice: str) -> UsageError:
    return UsageError(f"this program runs from {place}, which will be deleted", hint=f"install it first: {advice}")


def lost_variables(loaded: Loaded, environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that act now and that a service does not have."""
    from redaction.known import from_environ, is_worth_masking  # `status` imports it where a service is installed

    patterns = loaded.settings.redaction.known_env

    def masks(name: str, value: str) -> bool:
        return is_worth_masking(value) and bool(from_environ({name: value}, patterns))

    return acting(environ, loaded.origins.values(), masks)


def health(loaded: Loaded, environ: Mapping[str, str]) -> tuple[Found, list[str]] | None:
    """Return the installed service, the user's before the system's, and what is wrong with it; None without one."""
    with suppress(UsageError):
        installation = installation_of(loaded, {}, environ)
        for one in (installation, replace(installation, user=environ.get("USER", ""))):
            found = look(one, manager_of(one))
            if found.version is not None:
                return found, problems(one, found, lost=lost_variables(loaded, environ))
            if sys.platform != "linux":
                break
    return None
