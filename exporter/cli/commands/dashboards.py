"""`exporter dashboards`: writes what the program brings for Grafana and Prometheus, by itself or with backends."""

import json
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from exporter.cli.command import CommandContext, argument, command, option
from exporter.cli.output.text import count, plain
from exporter.cli.values import DIRECTORY
from exporter.errors import UsageError

_PACKAGE: Final = Path(__file__).parents[2]
_GRAFANA: Final = _PACKAGE / "grafana"
_STACK: Final = _PACKAGE / "stack"
_STACK_DIRECTORY: Final = "session-exporter-dashboards"
_PAGE: Final = "http://127.0.0.1:8411"
"""Where links to sessions lead in the dashboards as they are shipped: the address of the embedded page."""


@command()
@argument("target", type=DIRECTORY, metavar="DIR", help="target directory; created if missing")
@option("--force", is_flag=True, help="overwrite existing files that differ")
def export(context: CommandContext, target: str, force: bool) -> int:
    """Writes Grafana dashboards (JSON, to import or to provision), Prometheus alert rules, and provisioning files.

    Existing files that differ are overwritten only with --force.

    Examples:
    exporter dashboards export ./grafana  # write all files
    exporter dashboards export --force /etc/grafana/session-exporter  # update existing files
    """
    directory = Path(target)
    shipped = _shipped(_GRAFANA)
    written = _write(directory, shipped, force)
    document = {"directory": str(directory), "files": list(shipped), "written": written}
    return context.report(document, lambda _: _text(directory, written, len(shipped)))


@command()
@argument(
    "target", type=DIRECTORY, metavar="DIR", required=False, help=f"target directory (default: {_STACK_DIRECTORY})"
)
@option("--force", is_flag=True, help="overwrite existing files that differ")
@option("--mission-control", "address", metavar="URL", help=f"where links to sessions lead (default: {_PAGE})")
def up(context: CommandContext, target: str | None, force: bool, address: str | None) -> int:
    """Writes a directory that starts Grafana with the dashboards and the stores for them, in containers.

    Starts nothing: the last line is the command that does. Existing files that differ are overwritten only with
    --force.

    Examples:
    exporter dashboards up  # write the files
    exporter dashboards up --mission-control https://mc.example.com  # link to sessions there
    """
    directory = Path(target or _STACK_DIRECTORY)
    grafana = _shipped(_GRAFANA)
    if address is not None:
        leads_to = json.dumps(_checked(address)).encode()
        grafana = {name: content.replace(json.dumps(_PAGE).encode(), leads_to) for name, content in grafana.items()}
    files = {
        **_shipped(_STACK),
        **{f"grafana/{name}": content for name, content in grafana.items()},
        ".env": b"COMPOSE_PROFILES=full\n",
    }
    written = _write(directory, files, force)
    start = f"docker compose --project-directory {shlex.quote(str(directory))} up"
    document = {"directory": str(directory), "files": list(files), "written": written, "start": start}
    return context.report(document, lambda _: f"{_text(directory, written, len(files))}\n{_then(start)}")


def _then(start: str) -> str:
    return (
        "The containers were not run by us: neither Docker nor the images are where this program is tested.\n"
        "They take telemetry on 127.0.0.1:4318 and show it on http://127.0.0.1:3000. Start them with:\n"
        f"{plain(start)}"
    )


def _checked(address: str) -> str:
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        known = None
    if not known:
        raise UsageError(
            f"--mission-control: {address!r} is not a URL", hint="give one such as https://mc.example.com/mc"
        )
    return address.rstrip("/")


def _shipped(directory: Path) -> dict[str, bytes]:
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def _write(directory: Path, files: dict[str, bytes], force: bool) -> list[str]:
    """Write the files that are not there as they should be, and return their names; refuse to overwrite unasked."""
    try:
        there = {name: _content(directory / name) for name in files}
        others = [name for name, content in files.items() if there[name] not in (None, content)]
        if others and not force:
            more = f" and {count(len(others) - 1, 'more file')}" if others[1:] else ""
            said = f"{directory} has different content in {others[0]}{more}"
            raise UsageError(said, hint="use --force to overwrite, or choose another directory")
        written = [name for name, content in files.items() if there[name] != content]
        for name in written:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(files[name])
    except OSError as error:
        said = f"{error.filename or directory} cannot be written: {error.strerror}"
        raise UsageError(said, hint="choose a writable directory") from None
    return written


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _text(directory: Path, written: list[str], total: int) -> str:
    lines = [plain(str(directory / name)) for name in written]
    unchanged = total - len(written)
    lines.append(f"{count(len(written), 'file')} written" + (f", {unchanged} unchanged" if unchanged else ""))
    return "\n".join(lines)
