"""`exporter dashboards export`: writes what the program brings for Grafana and Prometheus."""

from pathlib import Path
from typing import Final

from exporter.cli.command import CommandContext, argument, command, option
from exporter.cli.output.text import count, plain
from exporter.cli.values import DIRECTORY
from exporter.errors import UsageError

_SHIPPED: Final = Path(__file__).parents[2] / "grafana"


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
    paths = sorted(path for path in _SHIPPED.rglob("*") if path.is_file())
    shipped = {path.relative_to(_SHIPPED).as_posix(): path.read_bytes() for path in paths}
    try:
        there = {name: _content(directory / name) for name in shipped}
        others = [name for name, content in shipped.items() if there[name] not in (None, content)]
        if others and not force:
            more = f" and {count(len(others) - 1, 'more file')}" if others[1:] else ""
            said = f"{directory} has different content in {others[0]}{more}"
            raise UsageError(said, hint="use --force to overwrite, or choose another directory")
        written = [name for name, content in shipped.items() if there[name] != content]
        for name in written:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(shipped[name])
    except OSError as error:
        said = f"{error.filename or directory} cannot be written: {error.strerror}"
        raise UsageError(said, hint="choose a writable directory") from None
    document = {"directory": str(directory), "files": list(shipped), "written": written}
    return context.report(document, lambda _: _text(directory, written, len(shipped)))


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
