"""What an exporter may tell of its settings, so that those of many can be compared: no secret, nothing of a machine."""

import json
from pathlib import Path
from typing import Any

import msgspec

from config.fields import Field, SettingsTable, Sinks, members
from config.settings import Settings
from config.url import mask_url

_OF_A_MACHINE = ("host_name",)


def comparable(settings: Settings) -> dict[str, str]:
    """Every setting that is no secret by its dotted path, as JSON, with `~` for the home directory.

    An address has no credentials, and what is meant to differ on every machine is left out.
    """
    home = str(Path("~").expanduser())
    found = _below(settings, "")
    for name in _OF_A_MACHINE:
        del found[name]
    return {path: text.replace(f'"{home}/', '"~/') for path, text in found.items()}


def _below(struct: msgspec.Struct, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, member in members(type(struct)).items():
        value, path = getattr(struct, name), f"{prefix}{name}"
        match member:
            case Field():
                if not member.secret:
                    found[path] = json.dumps(_plain(member, value), sort_keys=True)
            case SettingsTable():
                found |= _below(value, f"{path}.")
            case Sinks():
                for sink, held in value.items():
                    found |= _below(held, f"{path}.{sink}.")
    return found


def _plain(field: Field, value: object) -> Any:
    if field.address in ("http", "proxy") and isinstance(value, str):
        return mask_url(value)
    return msgspec.to_builtins(value)
