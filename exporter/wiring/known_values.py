"""The values that must never leave, whatever they look like: our own tokens first, then what the settings name."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.token import read_token
from exporter.sources.files.cli_process import environment_of, lock_holders
from exporter.wiring.sinks.registry import configured
from redaction.known import from_environ, from_files

if TYPE_CHECKING:
    from config.settings import Settings


def known_values(settings: "Settings") -> set[str]:
    """Return everything that is known to be secret now."""
    rules = settings.redaction
    values = {*from_environ(os.environ, rules.known_env), *from_files(map(Path, rules.known_files))}
    return values | changing_values(settings)


def changing_values(settings: "Settings") -> set[str]:
    """Return the part of it that may change while the program runs: tokens in files, environments of CLIs."""
    values = set(_tokens(settings))
    if settings.redaction.known_env_of_cli:
        for pid in lock_holders(Path(settings.copilot_home) / "session-state"):
            values.update(from_environ(environment_of(pid), settings.redaction.known_env))
    return values


def may_change(settings: "Settings") -> bool:
    """Tell whether `changing_values` depends on anything outside the settings."""
    sinks = (kind.secret_file(one) for kind, _, one in configured(settings))
    return settings.redaction.known_env_of_cli or any(sinks) or any(one.token_file for one in settings.source)


def _tokens(settings: "Settings") -> Iterator[str]:
    """Yield the tokens and headers that are sent; a file that cannot be read is reported by whoever sends."""
    for kind, _, sink in configured(settings):
        with suppress(ConfigError):
            yield from kind.secrets(sink)
        yield from from_files([Path(file)] if (file := kind.secret_file(sink)) else [])
    for source in settings.source:
        with suppress(ConfigError):
            yield read_token(source) or ""
        yield from from_files([Path(source.token_file)] if source.token_file else [])
