"""A layer: the settings that one place (file, environment, command line) gives, by path, each with its place."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from config.errors import ConfigError, nearest
from config.fields import Field, Member, Sinks, members
from config.settings import Settings

SettingPath: TypeAlias = tuple[str, ...]

DEFAULT_SINK = "default"
"""The name of the sink of a table that is one sink, `[mission_control]`."""

_SINK_NAME = re.compile(r"[a-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Given:
    """A given value, not yet checked.

    `origin` is what `config show --origin` says; `where` and `key` are what an error names. `relative_to` is the
    directory that a relative path in the value is relative to, if there is one. `inside` has the places of the
    elements of an array and of their keys, if they are known.
    """

    value: object = field(repr=False)
    origin: str
    where: str
    key: str
    relative_to: Path | None = None
    inside: Mapping[tuple[str | int, ...], str] = field(default_factory=dict)

    def element(self, index: int, value: object, name: str = "") -> "Given":
        """An element of an array that was given, or with a name the member of a table in an array."""
        where = self.inside.get((index, name)) or self.inside.get((index,), self.where)
        return Given(value, self.origin, where, f"{self.key}.{name}" if name else self.key, self.relative_to)

    def error(self, message: str, hint: str = "") -> ConfigError:
        """An error about this value."""
        return ConfigError(message, hint=hint, where=self.where, key=self.key)


Layer: TypeAlias = dict[SettingPath, Given]
"""Settings by path: `("port",)`, `("limits", "open_files")`, `("otel", NAME, "endpoint")`. A path `("otel", NAME)`
holds no value: it is the place of the table of that sink."""


def over(lower: Layer, upper: Layer) -> Layer:
    """Both layers; the upper one wins, and its `token` also displaces `token_file` of the lower one, and so on."""
    displaced = {_other(path) for path in upper}
    return {path: given for path, given in lower.items() if path not in displaced} | upper


def field_at(path: SettingPath) -> Field:
    """The field at a path that has one."""
    member = _member_at(path)
    assert isinstance(member, Field)
    return member


def _member_at(path: SettingPath) -> Member:
    member: Member = members(Settings)[path[0]]
    for name in path[2:] if isinstance(member, Sinks) else path[1:]:
        assert not isinstance(member, Field)
        member = members(member.struct)[name]
    return member


def check_sink_name(group: Sinks, name: str, *, where: str) -> None:
    """Raise ConfigError if this cannot be the name of a sink."""
    if not _SINK_NAME.fullmatch(name):
        raise ConfigError(
            f'expected a name of a-z, 0-9, "_" and "-" after {group.name}, given "{name}"',
            hint=f"for example [{group.name}.team]",
            where=where,
            key=f"{group.name}.{name}",
        )


def unknown(key: str, known: Iterable[str], *, where: str, prefix: str = "") -> ConfigError:
    """The error for an unknown key."""
    known = list(known)
    last = key.removeprefix(prefix).rpartition(".")[2]
    hint = nearest(last, known, prefix=prefix) or f"expected one of {', '.join(known)}"
    return ConfigError(f"{key} is not a setting", hint=hint, where=where, key=key)


def _other(path: SettingPath) -> SettingPath | None:
    member = _member_at(path)
    return (*path[:-1], member.instead_of) if isinstance(member, Field) and member.instead_of else None
