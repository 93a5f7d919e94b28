"""One check: what was looked at, what was found, and what to do about it."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

Verdict: TypeAlias = Literal["ok", "note", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """`remedy` is empty where nothing needs to be done."""

    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """The checks of one sink, and how many seconds its clock is ahead of ours, if it sent the time."""

    checks: tuple[Check, ...]
    ahead_seconds: float | None = None


def attempt(name: str, look: Callable[[], Iterable[Check]]) -> list[Check]:
    """Return what a look finds; one that breaks is itself a failed check, so that the others are still made."""
    try:
        return list(look())
    except Exception as error:  # the edge: whatever is broken here is what the doctor was called for
        return [broken(name, error)]


def broken(name: str, error: BaseException) -> Check:
    """Return the check that stands for one that could not be made."""
    return Check(
        name, "failed", f"could not be checked: {described(error)}", "run it again with --bundle FILE and report it"
    )


def described(error: BaseException) -> str:
    """Say an error in one line; the system's own words where it is one of the system's."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def shown_url(url: str) -> str:
    """Return an address without anything in it that may be secret: no user, no password, no parameters."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "(not an address)"
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}"


def counted(amount: int, noun: str) -> str:
    """Return `1 session`, `2 sessions`."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def existing(path: Path) -> Path:
    """Return the path, or the nearest above it that is there."""
    return next(one for one in (path, *path.absolute().parents) if _exists(one))


def _exists(path: Path) -> bool:
    with suppress(PermissionError):
        return path.exists()
    return False


def shown_size(number: int) -> str:
    """Return `12 KiB`, `1.5 GiB`."""
    value, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
