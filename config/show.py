"""The settings in force as rows."""

from typing import Any, NamedTuple

import msgspec

from config.fields import masked_items
from config.given.toml import written
from config.load import Loaded
from config.settings import Settings


class SettingRow(NamedTuple):
    """One setting: its dotted path, its value as JSON has it, with secrets masked, and its origin."""

    path: str
    value: object
    origin: str

    @property
    def text(self) -> str:
        """The value as TOML, on one line."""
        return "(not set)" if self.value is None else written(self.value)


def rows(loaded: Loaded) -> list[SettingRow]:
    """Every setting in force, in the order of the example file."""
    settings = loaded.settings
    return [SettingRow(path, _value(settings, path), origin) for path, origin in loaded.origins.items()]


def _value(settings: Settings, path: str) -> object:
    *tables, name = path.split(".")
    held: Any = settings
    for table in tables:
        held = held[table] if isinstance(held, dict) else getattr(held, table)
    value = dict(masked_items(held))[name]
    if not isinstance(value, tuple):
        return value
    return [_entry(one) if isinstance(one, msgspec.Struct) else one for one in value]


def _entry(struct: msgspec.Struct) -> dict[str, object]:
    return {name: value for name, value in masked_items(struct) if value is not None}
