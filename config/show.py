"""The settings in force as rows of text."""

from typing import Any, NamedTuple

import msgspec

from config.fields import masked_items
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
    settings = loaded.settings
    return [SettingRow(path, _written(_value(settings, path)), origin) for path, origin in loaded.origins.items()]


def _value(settings: Settings, path: str) -> object:
    *tables, name = path.split(".")
    held: Any = settings
    for table in tables:
        held = held[table] if isinstance(held, dict) else getattr(held, table)
    return dict(masked_items(held))[name]


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return written([_entry(one) if isinstance(one, msgspec.Struct) else one for one in value])
    return NOT_SET if value is None else written(value)


def _entry(struct: msgspec.Struct) -> dict[str, object]:
    return {name: value for name, value in masked_items(struct) if value is not None}
