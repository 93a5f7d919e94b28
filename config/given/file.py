"""The settings file: TOML, every key optional, unknown keys refused, every error with its line."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.errors import ConfigError, nearest
from config.fields import Field, Member, SettingsTable, Sinks, fields, members
from config.given.layer import DEFAULT_SINK, Given, Layer, check_sink_name, field_at, unknown
from config.given.toml import Place, key_lines
from config.reading import read_regular
from config.settings import Settings

_SIZE_BYTES_MAX = 1024 * 1024
_NAMED_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


def read_file(path: Path) -> tuple[Layer, list[str]]:
    """The layer of the file, and notes on it.

    Raises ConfigError if it cannot be read, is not TOML, or has unknown keys.
    """
    content, mode = _read(path)
    layer = _Reading(path, _text(path, content)).layer
    secrets = [given for at, given in layer.items() if given.value is not None and field_at(at).secret]
    if not secrets or os.name == "nt" or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return layer, []
    return layer, [f"{secrets[0].where}: other users can read {secrets[0].key}; chmod 600 {path}"]


def _read(path: Path) -> tuple[bytes, int]:
    try:
        content, mode = read_regular(path, _SIZE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise ConfigError(f"the settings file cannot be read: {reason}", where=str(path)) from None
    if len(content) > _SIZE_BYTES_MAX:
        raise ConfigError(f"the settings file is larger than {_SIZE_BYTES_MAX} bytes", where=str(path))
    return content, mode


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("expected UTF-8, given other bytes", where=f"{path}:{line}") from None


class _Reading:
    """One reading of one file; what it found is in `layer`."""

    def __init__(self, path: Path, text: str) -> None:
        self.layer: Layer = {}
        self._path = path
        document, self._lines = self._parsed(text)
        for name, value in document.items():
            match members(Settings).get(name):
                case SettingsTable() as member:
                    self._table(member, (name,), value)
                case Sinks() as member:
                    self._sinks(member, self._as_table((name,), value))
                case _:
                    self._give(members(Settings), (), (name,), value)

    def _parsed(self, text: str) -> tuple[dict[str, Any], dict[Place, int]]:
        # tomllib reads CR LF as LF, and a lone CR is not TOML: in both a line ends with LF.
        try:
            return tomllib.loads(text), key_lines(text)
        except tomllib.TOMLDecodeError as error:
            found = _NAMED_LINE.search(str(error))
            line = int(found[1]) if found else text.rstrip().count("\n") + 1
            reason = _NAMED_LINE.sub("", str(error)).removesuffix(" (at end of document)")
            hint = "put text in quotes, and write true and false in lower case" if "Invalid value" in reason else ""
            raise ConfigError(f"not TOML: {reason}", hint=hint, where=f"{self._path}:{line}") from None
        except RecursionError:
            raise ConfigError("not TOML: nested too deeply", where=str(self._path)) from None

    def _as_table(self, place: tuple[str, ...], value: object) -> Mapping[str, object]:
        if isinstance(value, Mapping):
            return value
        name = ".".join(place)
        message, hint = f"expected {name} to be a table, given another value", f"write [{name}] on a line of its own"
        raise self._error(place, message, f"{hint}, and its settings below")

    def _table(self, table: SettingsTable, place: tuple[str, ...], value: object) -> None:
        known = members(table.struct)
        for key, held in self._as_table(place, value).items():
            below = known.get(key)
            if isinstance(below, SettingsTable):
                self._table(below, (*place, key), held)
            else:
                self._give(known, place, (*place, key), held)

    def _sinks(self, group: Sinks, values: Mapping[str, object]) -> None:
        known = fields(group.struct)
        own = [name for name in values if name in known]
        tables = [name for name, value in values.items() if name not in known and isinstance(value, Mapping)]
        if own and tables:
            raise self._mixed(group, own[0], tables[0])
        if not tables:
            for name, value in values.items():
                self._give(known, (group.name, DEFAULT_SINK), (group.name, name), value)
            return
        for name, table in values.items():
            place = (group.name, name)
            if not isinstance(table, Mapping):
                raise unknown(".".join(place), known, where=self._where(place))
            check_sink_name(group, name, where=self._where(place))
            self.layer[place] = self._given(place, None, {})
            for key, value in table.items():
                self._give(known, place, (*place, key), value)

    def _mixed(self, group: Sinks, setting: str, table: str) -> ConfigError:
        message = (
            f"{group.name}.{setting} makes [{group.name}] one sink, {group.name}.{table} makes it a table of sinks"
        )
        move = f"move the settings below [{group.name}] to [{group.name}.{DEFAULT_SINK}]"
        return self._error((group.name, table), message, nearest(table, fields(group.struct)) or move)

    def _give(
        self, known: Mapping[str, Member], parent: tuple[str, ...], place: tuple[str, ...], value: object
    ) -> None:
        """Take the value that stands at `place` for the setting of that name below `parent`."""
        member = known.get(place[-1])
        if not isinstance(member, Field):
            raise unknown(".".join(place), known, where=self._where(place))
        inside: dict[Place, str] = {}
        if member.kind in ("tables", "texts", "pairs"):
            below = (at for at in self._lines if at[: len(place)] == place and at != place)
            inside = {at[len(place) :]: self._where(at) for at in below}
        self.layer[(*parent, place[-1])] = self._given(place, value, inside)

    def _given(self, place: tuple[str, ...], value: object, inside: Mapping[Place, str]) -> Given:
        origin = f"file:{self._lines[place]}"
        return Given(value, origin, self._where(place), ".".join(place), self._path.parent, inside)

    def _error(self, place: tuple[str, ...], message: str, hint: str) -> ConfigError:
        return ConfigError(message, hint=hint, where=self._where(place), key=".".join(place))

    def _where(self, place: Place) -> str:
        return f"{self._path}:{self._lines[place]}"
