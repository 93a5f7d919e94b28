"""Settings in environment variables: EXPORTER_, then the setting's path in capitals joined by two underscores."""

from collections.abc import Iterable, Mapping

from config.errors import ConfigError, nearest
from config.fields import Field, SettingsTable, Sinks, fields, members
from config.given.layer import DEFAULT_SINK, Given, Layer, SettingPath, check_sink_name, unknown
from config.given.text import from_text
from config.settings import Settings

PREFIX = "EXPORTER_"
_JOINT = "__"


def read_environment(environ: Mapping[str, str], lower: Iterable[SettingPath]) -> tuple[Layer, list[str]]:
    """The layer of the variables, and a note for each that only looks like a setting; an empty variable is not set.

    `lower` are the paths of the file: a variable cannot be named `my-team`, so MY_TEAM means that sink of the file.
    """
    layer: Layer = {}
    notes: list[str] = []
    named = {path[:2] for path in lower if len(path) > 1}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        parts = variable.removeprefix(PREFIX).lower().split(_JOINT)
        match members(Settings).get(parts[0]) if variable.isupper() else None:
            case Field() as member if len(parts) == 1:
                path: SettingPath = (member.name,)
            case SettingsTable() as table if len(parts) > 1:
                path, member = _in_table(table, parts, variable)
            case Sinks() as group if len(parts) > 1:
                path, member = _in_sinks(group, parts, variable, named)
            case _:
                notes.append(_note(variable))
                continue
        if environ[variable]:
            value = from_text(member, environ[variable])
            layer[path] = Given(value, f"environment {variable}", variable, ".".join(parts))
    return layer, notes


def variable_of(path: SettingPath) -> str:
    """The variable of the setting at this path."""
    parts = path[:1] + path[2:] if path[1:2] == (DEFAULT_SINK,) else path
    return PREFIX + _JOINT.join(parts).upper().replace("-", "_")


def _in_table(table: SettingsTable, parts: list[str], variable: str) -> tuple[SettingPath, Field]:
    known = fields(table.struct)
    if len(parts) > 2 or parts[1] not in known:
        raise _unknown(variable, known)
    return (table.name, parts[1]), known[parts[1]]


def _in_sinks(group: Sinks, parts: list[str], variable: str, named: set[SettingPath]) -> tuple[SettingPath, Field]:
    known = fields(group.struct)
    if parts[-1] not in known:
        raise _unknown(variable, known)
    name = _JOINT.join(parts[1:-1]) if len(parts) > 2 else DEFAULT_SINK
    check_sink_name(group, name, where=variable)
    alike = [path[1] for path in named if path[0] == group.name and path[1].replace("-", "_") == name]
    if len(alike) > 1 and name not in alike:
        raise ConfigError(f"this may mean {' or '.join(sorted(alike))}", where=variable, key=f"{group.name}.{name}")
    if alike and name not in alike:
        name = alike[0]
    return (group.name, name, parts[-1]), known[parts[-1]]


def _unknown(variable: str, known: Iterable[str]) -> ConfigError:
    prefix = variable.rpartition(_JOINT)[0] + _JOINT
    return unknown(variable, [name.upper() for name in known], where=variable, prefix=prefix)


def _note(variable: str) -> str:
    names = [variable_of((name,)) for name, member in members(Settings).items() if isinstance(member, Field)]
    guess = nearest(variable, names)
    return f"{variable} is not a setting" + (f"; {guess}" if guess else "")
