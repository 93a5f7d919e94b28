"""Checks what was given, one setting after the other, and makes the settings of it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from config.errors import ConfigError
from config.fields import Field, Kind, SettingsTable, Sinks, fields, members
from config.given.layer import Given, Layer, unknown
from config.given.toml import written
from config.masking import mask_url
from config.paths import Places
from config.settings import Settings, Source
from config.sinks import check_sink
from config.source import AhpAddress, RpcAddress, address_of, check_source
from config.token import read_token
from config.url import fault, file_fault, path_of

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
        return places.absolute(value, relative_to=given.relative_to, where=given.where, key=given.key)
    return tuple(
        places.absolute(
            one, relative_to=given.relative_to, where=given.inside.get((index,), given.where), key=given.key
        )
        for index, one in enumerate(value)
    )


def _tables(field: Field, given: Given, places: Places) -> object:
    """An array of tables."""
    assert field.tables_of is not None
    if not isinstance(given.value, list | tuple):
        raise _wrong(field, given)
    known = fields(field.tables_of)
    made: list[object] = []
    for index, table in enumerate(given.value):
        where = given.inside.get((index,), given.where)
        if not isinstance(table, Mapping):
            raise _wrong(field, given)
        for name in table:
            if name not in known:
                raise unknown(f"{given.key}.{name}", known, where=given.inside.get((index, name), where))
        if field.tables_of is Source:
            made.append(_source(known, given, index, table, places))
            continue
        if len(table) != 1:
            message = f"expected each {given.key} to have one of {', '.join(known)}, given {len(table)} of them"
            raise ConfigError(message, where=where, key=given.key)
        made.append(_entry(field, given, index, table))
    return tuple(made)


def _source(
    known: Mapping[str, Field], given: Given, index: int, table: Mapping[str, object], places: Places
) -> Source:
    """A source, its address checked and without parameters: what it needs of them is in its other settings."""
    where, key = given.inside.get((index,), given.where), f"{given.key}.url"
    if "url" not in table:
        raise ConfigError(f"expected each {given.key} to have a url", where=where, key=key)

    def value(name: str, held: object) -> Any:
        at = given.inside.get((index, name), where)
        return _value(known[name], Given(held, given.origin, at, f"{given.key}.{name}", given.relative_to), places)

    source = Source(**{name: value(name, held) for name, held in table.items()})
    try:
        address = address_of(source)
        check_source(address, source)
    except ValueError as error:
        at = given.inside.get((index, "url"), where)
        raise ConfigError(f"{key}: {error}", where=at, key=key) from None
    if isinstance(address, RpcAddress | AhpAddress):
        file = value("token_file", address.token_file) if address.token_file else None
        source = Source(url=address.name, token_file=file, push=source.push)
        _check_token_file(source, given.inside.get((index, "token_file"), where), f"{given.key}.token_file")
    return source


def _check_token_file(source: Source, where: str, key: str) -> None:
    """Read the token once, so that a file that cannot be used is reported at start, with where it was named."""
    try:
        read_token(source)
    except ConfigError as error:
        raise ConfigError(f"{error.message} ({error.where})", hint=error.hint, where=where, key=key) from None


def _entry(field: Field, given: Given, index: int, table: Mapping[str, object]) -> object:
    assert field.tables_of is not None
    ((name, value),) = table.items()
    where = given.inside.get((index, name), given.where)
    key = f"{given.key}.{name}"
    if not isinstance(value, str) or not value:
        raise ConfigError(f"expected {key} to be a text that is not empty, given {_shown(value)}", where=where, key=key)
    if name == "regex":
        _check_regex(value, where=where, key=key)
    if name == "path" and not value.strip("*?/."):
        raise ConfigError(f"expected {key} to name some files, given one that names every file", where=where, key=key)
    return field.tables_of(**{name: value})


def _check_regex(pattern: str, *, where: str, key: str) -> None:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"expected {key} to be a regular expression: {error}", where=where, key=key) from None
    if compiled.search("") is not None:
        raise ConfigError(
            f"expected {key} to match some text, given one that matches no text at all, and so everything",
            where=where,
            key=key,
        )


def _wrong(field: Field, given: Given, reason: str = "") -> ConfigError:
    expected = "an http:// or https:// address" if field.url else field.expected
    expected = "a file:// address" if field.file_url else expected
    shown = "another value" if field.secret else _shown(given.value, url=field.url)
    message = f"expected {given.key} to be {expected}, given {shown}" + (f": {reason}" if reason else "")
    hint = _AS_TEXT.get(field.kind, "") if isinstance(given.value, str) else ""
    return ConfigError(message, hint=hint, where=given.where, key=given.key)


def _shown(value: object, *, url: bool = False) -> str:
    """A value in an error: short, and of an address no credentials."""
    if isinstance(value, str) and url and "://" not in value:
        return "a text that is none"  # perhaps a token in the wrong place
    if isinstance(value, str):
        text = written(mask_url(value) if url else value)
        return text if len(text) <= _SHOWN_LENGTH_MAX else f'{text[:_SHOWN_LENGTH_MAX]}…"'
    if isinstance(value, bool | int | float):
        return written(value)
    names: dict[type, str] = {list: "an array", tuple: "an array", dict: "a table"}
    return names.get(type(value), "another value")
