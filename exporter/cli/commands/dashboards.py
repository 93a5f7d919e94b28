"""`exporter dashboards export`: writes what the program brings for Grafana and Prometheus."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from exporter.cli.context import CommandContext
from exporter.cli.output.text import count, plain
from exporter.cli.registry import Example, Leaf
from exporter.errors import Exit, UsageError

_SHIPPED: Final = Path(__file__).parents[2] / "grafana"


def _build(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="where to write; made if it is not there")
    parser.add_argument("--force", action="store_true", help="overwrite files of these names that differ")


def _run(invocation: CommandContext) -> int:
    args, out = invocation.args, invocation.out
    directory = Path(args.directory)
    paths = sorted(path for path in _SHIPPED.rglob("*") if path.is_file())
    shipped = {path.relative_to(_SHIPPED).as_posix(): path.read_bytes() for path in paths}
    try:
        there = {name: _content(directory / name) for name in shipped}
        others = [name for name, content in shipped.items() if there[name] not in (None, content)]
        if others and not args.force:
            said = f"{directory} holds other content in {others[0]}" + _and_more(len(others) - 1)
            raise UsageError(said, hint="--force overwrites; or give another directory")
        written = [name for name, content in shipped.items() if there[name] != content]
        for name in written:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(shipped[name])
    except OSError as error:
        said = f"{error.filename or directory} cannot be written: {error.strerror}"
        raise UsageError(said, hint="give a directory that you may write to") from None
    document = {"directory": str(directory), "files": list(shipped), "written": written}
    out.result(document, lambda: _text(directory, written, len(shipped)))
    return Exit.DONE


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _and_more(more: int) -> str:
    return f" and {count(more, 'more file')}" if more else ""


def _text(directory: Path, written: list[str], total: int) -> str:
    lines = [plain(str(directory / name)) for name in written]
    unchanged = total - len(written)
    lines.append(f"{count(len(written), 'file')} written" + (f", {unchanged} already there" if unchanged else ""))
    return "\n".join(lines)


LEAVES = {
    "dashboards export": Leaf(
        description=(
            "Writes the dashboards for Grafana (JSON, to import or to provision), alert rules for Prometheus, and "
            "provisioning files for data sources and dashboards. Changes nothing else, and overwrites what differs "
            "only with --force."
        ),
        examples=(
            Example("exporter dashboards export ./grafana", "write everything there"),
            Example("exporter dashboards export --force /etc/grafana/session-exporter", "bring them up to date"),
        ),
        build=_build,
        run=_run,
    )
}
