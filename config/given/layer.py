"""What one place (the file, the environment, the command line) gives: settings by path, each with where it stands."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from config.errors import ConfigError, nearest
from config.fields import Field, Member, Sinks, fields, members
from config.settings import Settings

SettingPath: TypeAlias = tuple[str, ...]

DEFAULT_SINK = "default"
"""The name of the sink of a table that is one sink, `[mission_control]`."""

_SINK_NAME = re.compile(r"[a-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Given:
    """A value that somebody gave, not yet checked.

    `origin` is what `config show --origin` says; `where` and `key` are what an error names. `relative_to` is the
    directory that a relative path in the value is relative to, if there is one. `inside` has the places of an array's
    elements and of their keys, where those are known.
    """

    value: object = field(repr=False)
    origin: str
    where: str
    key: str
    relative_to: Path | None = None
    inside: Mapping[tuple[str | int, ...], str] = field(default_factory=dict)


Layer: TypeAlias = dict[SettingPath, Given]
"""Settings by path: `("port",)`, `("limits", "open_files")`, `("otel", NAME, "endpoint")`. A path `("otel", NAME)`
holds no value and says that the table of that sink stands there."""


def over(lower: Layer, upper: Layer) -> Layer:
    """Both, where the upper one wins; `token` in the upper one also displaces `token_file` in the lower one."""
    displaced = {_other(path) for path in upper}
    return {path: given for path, given in lower.items() if path not in displaced} | upper


def field_at(path: SettingPath) -> Field:
    """The field of a path that is known to lead to one."""
    member: Member = members(Settings)[path[0]]
    if isinstance(member, Field):
        return member
    return fields(member.struct)[path[-1]]


def check_sink_name(group: Sinks, name: str, *, where: str) -> None:
    """Raises if a sink cannot be called that."""
    if not _SINK_NAME.fullmatch(name):
        raise ConfigError(
            f'expected a name of a-z, 0-9, "_" and "-" after {group.name}, given "{name}"',
            hint=f"for example [{group.name}.team]",
            where=where,
            key=f"{group.name}.{name}",
        )


def unknown(key: str, known: Iterable[str], *, where: str, prefix: str = "") -> ConfigError:
    """The error for a key that is none of the known ones."""
    known = list(known)
    last = key.removeprefix(prefix).rpartition(".")[2]
    hint = nearest(last, known, prefix=prefix) or f"expected one of {', '.join(known)}"
    return ConfigError(f"{key} is not a setting", hint=hint, where=where, key=key)


def _other(path: SettingPath) -> SettingPath | None:
    if len(path) == 3 and field_at(path).instead_of:
        return (*path[:-1], field_at(path).instead_of)
    return None
