"""The JSON Schema of the settings file, for editors. `python -m config.schema` writes it."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from config.fields import Field, SettingsTable, Sinks, documented, fields, members
from config.settings import Settings

SINK_NAME = "^[a-z0-9_-]+$"


def schema() -> dict[str, Any]:
    """The schema of the parsed TOML document."""
    whole = _without_null(msgspec.json.schema(Settings))
    definitions = whole["$defs"]
    for struct in set(_structs(Settings)):
        definition = definitions[struct.__name__]
        del definition["required"]  # a variable may give what the file omits
        definition["description"], meanings = documented(struct)
        described = definition["properties"]
        definition["properties"] = {name: {"description": meanings[name]} | one for name, one in described.items()}
    for name, member in members(Settings).items():
        if isinstance(member, Sinks):
            definitions["Settings"]["properties"][name] = _sinks(member)
        if not isinstance(member, Field):
            _one_of_two(definitions[member.struct.__name__], member)
    definitions["Allow"] |= {"minProperties": 1, "maxProperties": 1}
    top = definitions.pop("Settings")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **top,
        "title": "exporter.toml",
        "$defs": definitions,
    }


def schema_text() -> str:
    """The text of exporter.schema.json."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _structs(struct: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """The struct and those of its tables."""
    yield struct
    for member in members(struct).values():
        below = member.tables_of if isinstance(member, Field) else member.struct
        if below is not None:
            yield from _structs(below)


def _sinks(group: Sinks) -> dict[str, Any]:
    """One sink or a table of sinks; the name of a setting cannot be the name of a sink."""
    sink = {"$ref": f"#/$defs/{group.struct.__name__}"}
    names = {"pattern": SINK_NAME, "not": {"enum": list(fields(group.struct))}}
    many = {"type": "object", "propertyNames": names, "additionalProperties": sink}
    return {"description": group.meaning, "anyOf": [sink, many]}


def _one_of_two(definition: dict[str, Any], group: Sinks | SettingsTable) -> None:
    pairs = {
        tuple(sorted((name, field.instead_of))) for name, field in fields(group.struct).items() if field.instead_of
    }
    if pairs:
        definition["allOf"] = [{"not": {"required": list(pair)}} for pair in sorted(pairs)]


def _without_null(node: Any) -> Any:
    """The same schema without null, which TOML does not have."""
    if isinstance(node, list):
        return [_without_null(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept = {name: _without_null(value) for name, value in node.items() if not (name == "default" and value is None)}
    if {"type": "null"} in kept.get("anyOf", []):
        alternatives = [one for one in kept.pop("anyOf") if one != {"type": "null"}]
        assert len(alternatives) == 1, "a setting is one type or not given"
        kept |= alternatives[0]
    return kept


if __name__ == "__main__":
    sys.stdout.write(schema_text())
