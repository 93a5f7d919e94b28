"""The same settings come out, whether a file, the environment or flags give them."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from config.fields import Field, SettingsTable, Sinks, fields, members
from config.given.environment import variable_of
from config.given.layer import field_at
from config.given.toml import written
from config.load import load
from config.settings import Settings, Source

PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
ASCII = st.text("abcXYZ019-._~", min_size=1, max_size=12)
PATHS = ASCII.map(lambda name: f"/tmp/{name}x")
URLS = st.builds(
    "https://{}.example.com{}".format, st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.sampled_from(["", "/a"])
)
DIRECTORIES = st.uuids().map("file:///archives/{}".format)
PROXIES = st.one_of(st.sampled_from(["env", "none"]), URLS)
LISTENING = st.builds("{}:{}".format, st.sampled_from(["127.0.0.1", "[::1]", "localhost"]), st.integers(0, 65_535))
NAMING = PLAIN.map(lambda text: f"{text}x")
ENTRIES = st.dictionaries(st.sampled_from(["value", "rule", "path"]), NAMING, min_size=1, max_size=1)
SOURCES = st.fixed_dictionaries({"url": st.sampled_from(["file", "tap", "rpc://[::1]:1", "rpc://a.example.com:4321"])})


def value_of(field: Field) -> st.SearchStrategy[Any]:
    """A value that is sound for this field."""
    if field.address:
        return {"http": URLS, "file": DIRECTORIES, "proxy": PROXIES, "listen": LISTENING}[field.address]
    if field.many:
        return PATHS | st.lists(PATHS, min_size=1, max_size=3)
    if field.path:
        return PATHS if field.kind == "text" else st.lists(PATHS, max_size=3)
    described = msgspec.json.schema(field.type)
    described = described.get("anyOf", [described])[0]
    if "enum" in described:
        return st.sampled_from(described["enum"])
    match field.kind:
        case "integer":
            return st.integers(described["minimum"], described.get("maximum"))
        case "number":
            return st.floats(described["minimum"], described.get("maximum"))
        case "truth":
            return st.booleans()
        case "texts" if "enum" in described["items"]:
            return st.lists(st.sampled_from(described["items"]["enum"]), min_size=1, max_size=3)
        case "texts":
            return st.lists(PLAIN, max_size=3)
        case "tables":
            return st.lists(SOURCES if field.tables_of is Source else ENTRIES, max_size=3)
        case "pairs":
            return st.dictionaries(ASCII, ASCII, max_size=3)
        case _:
            return ASCII if field.secret else PLAIN


def table_of(struct: type[msgspec.Struct]) -> st.SearchStrategy[dict[str, Any]]:
    """A table with some of the settings, all that are required, and none that excludes another or needs a file."""
    known = [field for field in fields(struct).values() if field.name not in NEEDS_OTHERS]
    tables = [member for member in members(struct).values() if isinstance(member, SettingsTable)]
    below = {table.name: table_of(table.struct) for table in tables if struct is not Settings}
    return st.fixed_dictionaries(
        {field.name: value_of(field) for field in known if field.required},
        optional={field.name: value_of(field) for field in known if not field.required} | below,
    )


NEEDS_OTHERS = {
    "store_file", "token_file", "headers_file", "append_path",
    "certificate_file", "client_certificate_file", "client_key_file",
}  # fmt: skip
NAMES = st.from_regex(r"[a-z0-9]{1,6}", fullmatch=True).map(lambda name: f"s{name}")


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = draw(table_of(Settings))
    for name, member in members(Settings).items():
        match member:
            case SettingsTable():
                document[name] = draw(table_of(member.struct))
            case Sinks():
                one = st.fixed_dictionaries({"default": table_of(member.struct)})
                document[name] = draw(st.dictionaries(NAMES, table_of(member.struct), max_size=2) | one)
            case Field():
                pass
    directories = [one["url"] for one in document["archive"].values()]
    assume(len(set(directories)) == len(directories))  # else they are refused
    return document


def leaves(document: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Field, Any]]:
    for name, value in document.items():
        match members(Settings)[name]:
            case Field() as field:
                yield (name,), field, value
            case SettingsTable() as table:
                yield from ((path, field_at(path), held) for path, held in below(table, (name,), value))
            case Sinks() as group:
                for sink, settings_of_it in value.items():
                    known = fields(group.struct)
                    yield from (((name, sink, key), known[key], held) for key, held in settings_of_it.items())


def below(
    table: SettingsTable, place: tuple[str, ...], values: dict[str, Any]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, held in values.items():
        member = members(table.struct)[key]
        if isinstance(member, SettingsTable):
            yield from below(member, (*place, key), held)
        else:
            yield (*place, key), held


def from_file(text: str) -> Settings:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "exporter.toml")
        file.write_bytes(text.encode())
        return load(file=file, environ={"HOME": "/home/me"}, flags={}, fallbacks=True).settings


def from_environment(document: dict[str, Any]) -> Settings:
    environ = {"HOME": "/home/me"}
    for path, field, value in leaves(document):
        as_json = field.kind in ("texts", "pairs", "tables") or not isinstance(value, str)
        environ[variable_of(path)] = json.dumps(value) if as_json else value
    return load(file=None, environ=environ, flags={}, fallbacks=True).settings


def from_flags(document: dict[str, Any]) -> Settings:
    flags = {".".join(path): value for path, _field, value in leaves(document)}
    return load(file=None, environ={"HOME": "/home/me"}, flags=flags, fallbacks=True).settings


@settings(max_examples=60)
@given(documents())
def test_file_environment_and_flags_give_the_same_settings(document: dict[str, Any]) -> None:
    inline = from_file("".join(f"{name} = {written(value)}\n" for name, value in document.items()))

    assert from_environment(document) == inline
    assert from_flags(document) == inline


@settings(max_examples=60)
@given(documents())
def test_settings_written_as_tables_load_as_they_were(document: dict[str, Any]) -> None:
    once = from_file("".join(f"{name} = {written(value)}\n" for name, value in document.items()))

    assert from_file(as_tables(without_none(msgspec.to_builtins(once)))) == once


def as_tables(document: dict[str, Any]) -> str:
    plain: list[str] = []
    tables: list[str] = []
    for name, value in document.items():
        match members(Settings)[name]:
            case Field():
                plain.append(f"{name} = {written(value)}\n")
            case SettingsTable():
                tables.append(table_text(name, value))
            case Sinks():
                tables += [table_text(f"{name}.{sink}", held) for sink, held in value.items()]
    return "".join(plain + tables)


def table_text(name: str, values: dict[str, Any]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {written(value)}\n" for key, value in values.items())


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_none(held) for key, held in value.items() if held is not None}
    return [without_none(held) for held in value] if isinstance(value, list | tuple) else value


def test_every_setting_has_a_variable_of_its_own() -> None:
    paths: list[tuple[str, ...]] = []
    for name, member in members(Settings).items():
        match member:
            case Field():
                paths.append((name,))
            case SettingsTable():
                paths += [(name, key) for key in fields(member.struct)]
            case Sinks():
                paths += [(name, sink, key) for sink in ("default", "team") for key in fields(member.struct)]

    variables = [variable_of(path) for path in paths]

    assert len(set(variables)) == len(variables)
    assert {"EXPORTER_STATE_DIR", "EXPORTER_MISSION_CONTROL__URL", "EXPORTER_LIMITS__OPEN_FILES"} <= set(variables)
