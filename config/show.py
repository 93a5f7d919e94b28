"""The settings in force as rows of text."""

from typing import NamedTuple

import msgspec

from config.fields import Field, SettingsTable, Sinks, masked_items, members
from config.given.toml import written
from config.load import Loaded
from config.settings import Settings

NOT_SET = "(not set)"


class SettingRow(NamedTuple):
    """One setting: its dotted path, its value as TOML with secrets masked, and its origin."""

    path: str
    value: str
    origin: str


def rows(loaded: Loaded) -> list[SettingRow]:
    """Every setting in force, in the order of the example file."""
    found: list[tuple[str, object]] = []
    for name, value in masked_items(loaded.settings):
        match members(Settings)[name]:
            case Field():
                found.append((name, value))
            case SettingsTable():
                found += _below(name, value)
            case Sinks():
                found += [row for sink, held in value.items() for row in _below(f"{name}.{sink}", held)]
    return [SettingRow(path, _written(value), loaded.origins[path]) for path, value in found]


def _below(path: str, struct: msgspec.Struct) -> list[tuple[str, object]]:
    return [(f"{path}.{name}", value) for name, value in masked_items(struct)]


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return written([_entry(one) if isinstance(one, msgspec.Struct) else one for one in value])
    return NOT_SET if value is None else written(value)


def _entry(struct: msgspec.Struct) -> dict[str, object]:
    return {name: value for name, value in masked_items(struct) if value is not None}
