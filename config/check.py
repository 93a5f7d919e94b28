"""Checks the given values, one setting after the other, and makes the settings of them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from config.errors import ConfigError
from config.fields import Field, Kind, SettingsTable, Sinks, fields, members
from config.given.layer import Given, Layer, unknown
from config.given.toml import written
from config.paths import Places
from config.settings import Settings, Source
from config.sinks import check_secret_file, check_sink
from config.source import AhpAddress, RpcAddress, address_of, check_source
from config.token import read_token
from config.url import fault, file_fault, mask_url, path_of

_SHOWN_LENGTH_MAX = 80
_AS_TEXT: dict[Kind, str] = {
    "texts": 'in the file ["one", "two"], in a variable one,two',
    "pairs": 'in the file { name = "value" }, in a variable name=value,name=value',
    "tables": "in a variable these are JSON",
}


def checked(given: Layer, places: Places) -> Settings:
    """The settings, or a ConfigError about the first that is wrong."""
    values: dict[str, Any] = {}
    for name, member in members(Settings).items():
        match member:
            case Field():
                if (name,) in given:
                    values[name] = _value(member, given[(name,)], places)
            case SettingsTable():
                found = {path[-1]: one for path, one in given.items() if path[0] == name}
                values[name] = member.struct(**_values(member, found, places))
            case Sinks():
                values[name] = _sinks(member, given, places)
    settings = Settings(**values)
    _check_archives(settings, given)
    return settings


def _check_archives(settings: Settings, given: Layer) -> None:
    """Two sinks in one directory would write over each other, and nothing is written below the CLI's own."""
    seen: dict[Path, str] = {}
    for name, archive in settings.archive.items():
        path, where = path_of(archive.url), given["archive", name, "url"].where
        if path in seen:
            message = f"archive.{name} and archive.{seen[path]} have the same directory"
            raise ConfigError(message, hint="give each its own", where=where, key=f"archive.{name}.url")
        if path.is_relative_to(settings.copilot_home):
            message = f"archive.{name} is below {settings.copilot_home}, where the exporter writes nothing"
            raise ConfigError(message, hint="name another directory", where=where, key=f"archive.{name}.url")
        seen[path] = name


def _sinks(group: Sinks, given: Layer, places: Places) -> dict[str, msgspec.Struct]:
    sinks: dict[str, msgspec.Struct] = {}
    for name in sorted({path[1] for path in given if path[0] == group.name}):
        found = {path[2]: one for path, one in given.items() if path[:2] == (group.name, name) and len(path) == 3}
        values = _values(group, found, places)
        for field in members(group.struct).values():
            if isinstance(field, Field) and field.required and field.name not in values:
                raise _missing(group, name, field, given)
        sinks[name] = group.struct(**values)
        check_sink(sinks[name], found)
    return sinks


def _values(table: SettingsTable | Sinks, found: Mapping[str, Given], places: Places) -> dict[str, object]:
    known = members(table.struct)
    values = {}
    for name, given in found.items():
        field = known[name]
        assert isinstance(field, Field), "a layer holds settings and no tables"
        values[name] = _value(field, given, places)
    return values


def _missing(group: Sinks, name: str, field: Field, given: Layer) -> ConfigError:
    one = next(one for path, one in given.items() if path[:2] == (group.name, name))
    others = sorted({path[1] for path in given if path[0] == group.name} - {name})
    return ConfigError(
        f"{group.name}.{name} has no {field.name}",
        hint=f"there is also {group.name}.{others[0]}; was that meant?" if others else f"set its {field.name} too",
        where=one.where,
        key=f"{group.name}.{name}.{field.name}",
    )


def _value(field: Field, given: Given, places: Places) -> object:
    if field.kind == "tables":
        return _tables(field, given, places)
    try:
        value = msgspec.convert(given.value, field.type)
    except msgspec.ValidationError:
        raise _wrong(field, given) from None
    if field.url:
        reason = fault(value)
        if reason:
            raise _wrong(field, given, reason)
        return value.rstrip("/")
    if field.file_url:
        reason = file_fault(value)
        if reason:
            raise _wrong(field, given, reason)
        return value.rstrip("/")
    if field.path and value is not None:
        return _absolute(value, given, places)
    return value


def _absolute(value: str | tuple[str, ...], given: Given, places: Places) -> object:
    if isinstance(value, str):
        return places.absolute(value, given)
    return tuple(places.absolute(one, given.element(index, one)) for index, one in enumerate(value))


def _tables(field: Field, given: Given, places: Places) -> object:
    """An array of tables."""
    assert field.tables_of is not None
    if not isinstance(given.value, list | tuple) or not all(isinstance(table, Mapping) for table in given.value):
        raise _wrong(field, given)
    known = fields(field.tables_of)
    made: list[object] = []
    for index, table in enumerate(given.value):
        for name in table:
            if name not in known:
                element = given.element(index, None, name)
                raise unknown(element.key, known, where=element.where)
        if field.tables_of is Source:
            made.append(_source(known, given, index, table, places))
            continue
        if len(table) != 1:
            message = f"expected each {given.key} to have one of {', '.join(known)}, given {len(table)} of them"
            raise given.element(index, table).error(message)
        ((name, value),) = table.items()
        made.append(_entry(field.tables_of, name, given.element(index, value, name)))
    return tuple(made)


def _source(
    known: Mapping[str, Field], given: Given, index: int, table: Mapping[str, object], places: Places
) -> Source:
    """A source whose address is checked and has no parameters; those are in its other settings."""

    def value(name: str, held: object) -> Any:
        return _value(known[name], given.element(index, held, name), places)

    url, token_file = given.element(index, None, "url"), given.element(index, None, "token_file")
    if "url" not in table:
        raise url.error(f"expected each {given.key} to have a url")
    source = Source(**{name: value(name, held) for name, held in table.items()})
    try:
        address = address_of(source)
        check_source(address, source)
    except ValueError as error:
        raise url.error(f"{url.key}: {error}") from None
    if isinstance(address, RpcAddress | AhpAddress):
        file = value("token_file", address.token_file) if address.token_file else None
        source = Source(url=address.name, token_file=file, push=source.push)
        check_secret_file(lambda: read_token(source), token_file)
    return source


def _entry(struct: type[msgspec.Struct], name: str, given: Given) -> object:
    key, value = given.key, given.value
    if not isinstance(value, str) or not value:
        raise given.error(f"expected {key} to be a text that is not empty, given {_shown(value)}")
    if name == "regex":
        _check_regex(value, given)
    if name == "path" and not value.strip("*?/."):
        raise given.error(f"expected {key} to name some files, given one that names every file")
    return struct(**{name: value})


def _check_regex(pattern: str, given: Given) -> None:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise given.error(f"expected {given.key} to be a regular expression: {error}") from None
    if compiled.search("") is not None:
        raise given.error(
            f"expected {given.key} to match some text, given one that matches the empty text and so everything"
        )


def _wrong(field: Field, given: Given, reason: str = "") -> ConfigError:
    expected = "an http:// or https:// address" if field.url else field.expected
    expected = "a file:// address" if field.file_url else expected
    shown = "another value" if field.secret else _shown(given.value, url=field.url)
    message = f"expected {given.key} to be {expected}, given {shown}" + (f": {reason}" if reason else "")
    hint = _AS_TEXT.get(field.kind, "") if isinstance(given.value, str) else ""
    return given.error(message, hint)


def _shown(value: object, *, url: bool = False) -> str:
    """A value in an error message: short, and without the credentials of an address."""
    if isinstance(value, str) and url and "://" not in value:
        return "a text that is none"  # perhaps a token in the wrong place
    if isinstance(value, str):
        text = written(mask_url(value) if url else value)
        return text if len(text) <= _SHOWN_LENGTH_MAX else f'{text[:_SHOWN_LENGTH_MAX]}…"'
    if isinstance(value, bool | int | float):
        return written(value)
    names: dict[type, str] = {list: "an array", tuple: "an array", dict: "a table"}
    return names.get(type(value), "another value")
