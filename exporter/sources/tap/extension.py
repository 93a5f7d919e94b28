"""Installs the tap's extension for the CLI, reports its state, and removes it.

It writes only in one directory of its own, which it knows by a marker with the hash of what it wrote. A file
without such a marker, or changed since, is not ours: it is neither overwritten nor removed.
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from exporter.errors import ExporterError, UsageError
from exporter.version import VERSION

NAME: Final = "session-exporter-tap"
PROGRAM: Final = "extension.mjs"
MARKER: Final = "session-exporter.json"
POINTER: Final = "tap.json"
"""Says to the extension of one user where that user's exporter keeps its state; never in a project."""
EXPERIMENTAL: Final = "The CLI loads extensions only when started with --experimental, which it then remembers."
_PROMPT_MODE: Final = (
    "With `copilot -p` a project's extension is loaded only in a trusted folder and with "
    "GITHUB_COPILOT_PROMPT_MODE_EXTENSIONS=true."
)


@dataclass(frozen=True, slots=True)
class Installed:
    """The state of a tap: absent, installed, outdated, changed (since we wrote it) or foreign (not ours)."""

    directory: Path
    state: str
    notes: tuple[str, ...] = ()


class NotOursError(UsageError):
    """The directory of the tap has files that are not ours."""


def program() -> bytes:
    """Return the extension of this version."""
    return files("exporter.sources.tap").joinpath(PROGRAM).read_bytes()


def project_root(directory: Path) -> Path:
    """Return the git root above a directory, which is where the CLI looks; raise `UsageError` when there is none."""
    for one in (directory, *directory.parents):
        if (one / ".git").exists():
            return one
    raise UsageError(
        f"{directory} is in no git repository", hint="run it inside one, or leave --project out to install it for you"
    )


def user_directory(copilot_home: Path) -> Path:
    """Return where the tap of a user is."""
    return copilot_home / "extensions" / NAME


def project_directory(root: Path) -> Path:
    """Return where the tap of a project is."""
    return root / ".github" / "extensions" / NAME


def look(directory: Path, *, shadowing: Path | None = None, is_project: bool = False) -> Installed:
    """Return the state of the tap in a directory; `shadowing` is where a project's tap would take precedence."""
    state = _state(directory)
    notes = [EXPERIMENTAL, *([_PROMPT_MODE] if is_project else [])]
    if shadowing is not None and shadowing != directory and (shadowing / PROGRAM).exists():
        # 1.0.102 loads both, though its guide says that a project's extension shadows a user's of the same name.
        notes.append(f"In this project {shadowing} is loaded in its place, or beside it: events are shown once.")
    return Installed(directory, state, tuple(notes))


def install(directory: Path, *, state_dir: Path | None) -> bool:
    """Write the tap, or bring it up to date; return whether anything was written. Raises `NotOursError`.

    `state_dir` is written beside it for the tap of a user; a project's must not contain the path of a user.
    """
    _refuse_foreign(directory, "written")
    content = program()
    marker = {"by": "session-exporter", "version": VERSION, "sha256": hashlib.sha256(content).hexdigest()}
    wanted = {PROGRAM: content, MARKER: json.dumps(marker, indent=2).encode() + b"\n"}
    if state_dir is not None:
        wanted[POINTER] = json.dumps({"state_dir": str(state_dir)}).encode() + b"\n"
    if all(_read(directory / name) == content for name, content in wanted.items()):
        return False
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # The marker goes last and comes off first: what a crash leaves is not mistaken for a foreign file.
        for name in (POINTER, PROGRAM, MARKER):
            if name in wanted:
                beside = directory / f".{name}.new"
                beside.write_bytes(wanted[name])
                beside.replace(directory / name)
    except OSError as error:
        raise ExporterError(f"the tap cannot be written to {directory}: {error.strerror}") from error
    return True


def uninstall(directory: Path) -> bool:
    """Remove what `install` wrote and nothing else; return whether it was there. Raises `NotOursError`."""
    if _state(directory) == "absent":
        return False
    _refuse_foreign(directory, "removed")
    for name in (PROGRAM, POINTER, MARKER):
        (directory / name).unlink(missing_ok=True)
    if not any(directory.iterdir()):
        directory.rmdir()
    return True


def _refuse_foreign(directory: Path, what: str) -> None:
    state = _state(directory)
    if state == "foreign":
        raise NotOursError(f"{directory} is not ours and is not {what}", hint="move it away, then try again")
    if state == "changed":
        raise NotOursError(
            f"{directory / PROGRAM} was changed since it was installed, and is not {what}",
            hint="keep your changes elsewhere and remove the directory yourself",
        )


def _state(directory: Path) -> str:
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        return "foreign"
    if not directory.exists() or not any(directory.iterdir()):
        return "absent"
    content, marker = _read(directory / PROGRAM), _read(directory / MARKER)
    is_current = content == program()
    if marker is None:
        return "installed" if is_current else "foreign"
    try:
        found = json.loads(marker)
        author, written = found["by"], found["sha256"]
    except (ValueError, KeyError, TypeError):
        return "foreign"
    if author != "session-exporter":
        return "foreign"
    if content is not None and not is_current and hashlib.sha256(content).hexdigest() != written:
        return "changed"
    return "installed" if is_current else "outdated"


def _read(path: Path) -> bytes | None:
    try:
        return None if path.is_symlink() else path.read_bytes()
    except OSError:
        return None
