"""Loads the settings: flags over environment over file over defaults, each with its origin."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final

from config.check import check_secret_files, checked
from config.errors import ConfigError
from config.fields import Field, Sinks, fields, leaves, members
from config.given.environment import found_in, from_text, read_environment, read_fallbacks
from config.given.file import read_file
from config.given.layer import DEFAULT_SINK, Given, Layer, SettingPath, field_at, over
from config.paths import Places, homes_of, is_pattern
from config.settings import Settings

_JSON_LOG: Final = re.compile(r"""\s*log_format\s*=\s*["']json["']""")
_DIRECTORIES = (("state_dir", "XDG_STATE_HOME"), ("cache_dir", "XDG_CACHE_HOME"))


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force.

    `origins` has every setting by its dotted path (a sink's with its name, `otel.default.endpoint`) and says
    `default`, `file:LINE`, `environment NAME`, `flag --x` or `fallback NAME`. `file` is the file that was read.
    `notes` are for `doctor`. `found_not_used` names variables of the CLI and of OpenTelemetry that had no effect.
    """

    settings: Settings
    origins: dict[str, str]
    notes: list[str] = field(default_factory=list)
    found_not_used: list[str] = field(default_factory=list)
    file: Path | None = None


def load(
    *,
    file: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, object],
    fallbacks: bool,
    secrets: bool = True,
    sessions: bool = False,
) -> Loaded:
    """The settings, or a ConfigError about the first that is wrong.

    `file` is the one that the person named, which must exist; without it the one in the XDG directory is read if there
    is one. `flags` are dotted paths with their values; None is a flag that was not given. `fallbacks` says whether the
    variables of the CLI and of OpenTelemetry may name sinks; COPILOT_HOME is obeyed in any case. Without `secrets`
    files of tokens and headers need not be there yet: the command sends nothing. With `sessions` a directory of the CLI
    that somebody named has to be there; the default one is waited for.
    """
    places = Places(environ)
    path = _file(file, places)
    from_file, file_notes = read_file(path) if path else ({}, [])
    from_environment, environment_notes = read_environment(environ, from_file)
    given = over(over(from_file, from_environment), _flags(flags))
    used: set[str] = set()
    if fallbacks:
        from_fallbacks, used = read_fallbacks(environ, given)
        given |= from_fallbacks
    given |= _directories(given, places)
    settings = checked(given, places)
    if secrets:
        check_secret_files(settings, given)
    if sessions and given["copilot_home",].origin != "default":
        _check_homes(settings, given["copilot_home",])
    return Loaded(
        settings=settings,
        origins=_origins(given),
        notes=file_notes + environment_notes,
        found_not_used=[name for name in found_in(environ) if name not in used],
        file=path,
    )


def wants_json_log(file: Path | None, environ: Mapping[str, str]) -> bool:
    """Tell whether `log_format` is json, also where the settings are wrong otherwise; raises nothing.

    In the file it is looked for line by line, because a file with a mistake is not read any further.
    """
    if (chosen := environ.get("EXPORTER_LOG_FORMAT")) is not None:
        return chosen == "json"
    try:
        path = _file(file, Places(environ))
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path and path.is_file() else []
    except (OSError, ConfigError):
        return False
    return any(map(_JSON_LOG.match, takewhile(lambda line: not line.startswith("["), lines)))


def _check_homes(settings: Settings, given: Given) -> None:
    """A directory that is named literally has to be there; a pattern waits for directories."""
    for home in homes_of(settings):
        if not os.path.isdir(home) and not is_pattern(home):  # noqa: PTH112  Path raises for a closed directory
            message = f"{home} is not a directory, and the sessions of the CLI are read from it"
            raise given.error(message, "correct the path, or start the CLI with this directory once")


def _file(named: Path | None, places: Places) -> Path | None:
    if named is not None:
        return named.absolute()
    default = places.default_file()
    if default is None:
        return None
    try:
        default.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return default  # and the reading reports why it cannot be read
    return default


def _flags(flags: Mapping[str, object]) -> Layer:
    layer: Layer = {}
    for key, value in flags.items():
        if value is None:
            continue
        path = _path(key)
        field = field_at(path)
        name = field.flag or "--" + key.replace(".", "-").replace("_", "-")
        layer[path] = Given(_typed(field, value), f"flag {name}", name, key)
    return layer


def _typed(field: Field, value: object) -> object:
    text = str(value) if isinstance(value, Path) else value
    if not isinstance(text, str):
        return value
    if text and field.path and field.kind == "text" and not text.startswith("~"):
        # A path typed on the command line is relative to where it was typed, as every other command has it.
        return str(Path(text).absolute())
    return from_text(field, text)


def _path(key: str) -> SettingPath:
    """The path of a dotted key; a sink's may leave the name out."""
    parts = tuple(key.split("."))
    if len(parts) == 2 and isinstance(members(Settings).get(parts[0]), Sinks):
        return (parts[0], DEFAULT_SINK, parts[1])
    return parts


def _directories(given: Layer, places: Places) -> Layer:
    """The directories that are not set: from variables of other programs, else the defaults below the home."""
    layer: Layer = {}
    home = places.environ.get("COPILOT_HOME")
    if home and ("copilot_home",) not in given:
        layer[("copilot_home",)] = Given(home, "fallback COPILOT_HOME", "COPILOT_HOME", "COPILOT_HOME")
    for name, variable in _DIRECTORIES:
        base = places.xdg(variable)
        if base and (name,) not in given:
            layer[(name,)] = Given(str(Path(base, "exporter")), f"fallback {variable}", variable, name)
    known = fields(Settings)
    for name in ("copilot_home", "state_dir", "cache_dir"):
        if (name,) not in given and (name,) not in layer:
            layer[(name,)] = Given(known[name].default, "default", "default", name)
    return layer


def _origins(given: Layer) -> dict[str, str]:
    origins: dict[str, str] = {}
    for name, member in members(Settings).items():
        if isinstance(member, Field):
            paths: list[SettingPath] = [(name,)]
        else:
            heads: set[SettingPath] = {(name,)}
            if isinstance(member, Sinks):
                heads = {path[:2] for path in given if path[0] == name}
            paths = [(*head, *below) for head in sorted(heads) for below in leaves(member.struct)]
        origins |= {".".join(path): given[path].origin if path in given else "default" for path in paths}
    return origins
