"""What is wrong with an installed service, in words."""

from collections.abc import Sequence
from pathlib import Path

from exporter.service.manager import Found
from exporter.service.plan import Installation


def problems(installation: Installation, found: Found, *, lost: Sequence[str] = ()) -> list[str]:
    """Return a sentence for each thing that is wrong, with what to do; empty where it is not installed.

    `lost` are variables of the shell that act on an exporter; those that the service keeps are no problem. Where the
    file of those cannot be read, as that of a service of the system, nothing is said of any.
    """
    if found.version is None:
        return []
    wrong = []
    if found.version != installation.version:
        wrong.append(
            f"the service was installed by version {found.version}, and this is {installation.version}: "
            "run `exporter service install` again"
        )
    if installation.command[0].replace("%", "%%") not in (_text(found.path) or ""):
        wrong.append(
            f"the service starts another program than {installation.command[0]}: run `exporter service install` again"
        )
    if found.state and found.state not in ("active", "activating", "reloading"):
        wrong.append(f"the service does not run ({found.state}): see `exporter service logs`")
    kept = _text(installation.environment_file)
    if kept is not None and (missing := [name for name in lost if f"\n{name}=" not in kept]):
        wrong.append(
            f"the service has not the variables of this shell that act on an exporter ({', '.join(missing)}): "
            "run `exporter service install --keep-env`"
        )
    return wrong


def _text(path: Path) -> str | None:
    """Return what a file holds, nothing where there is none, None for one that this user cannot read."""
    try:
        return path.read_text("utf-8", "replace")
    except PermissionError:
        return None
    except OSError:
        return ""
