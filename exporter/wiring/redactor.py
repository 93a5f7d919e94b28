"""The package `redaction` made into what the core asks of a redactor, from the settings.

The engine is wrapped only if the settings ask for it: for values that change while the program runs, and for exempt
files. Known values are never sent whatever they look like: the exporter's own tokens, and those the settings name.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from config.errors import ConfigError
from config.settings import Metrics, Settings, Source
from config.token import read_token
from exporter.core.events.exempt_files import ExemptFiles, span_at
from exporter.core.events.redaction import Masked, Redacted, RedactEvent, Refused
from exporter.core.notice import Notice
from exporter.errors import SettingsError
from exporter.pipeline.redactors import Redactors
from exporter.sources.files.cli_process import environment_of, lock_holders
from exporter.state.redaction_key import existing_key, redaction_key
from exporter.wiring.sinks.registry import configured
from redaction import engine as results
from redaction.allowlist import Allowed
from redaction.engine import Redactor
from redaction.errors import RuleError
from redaction.known import from_environ, from_files
from redaction.stream import DeltaStream

if TYPE_CHECKING:
    from exporter.pipeline.redaction_helper import Lines, RedactionHelper, Values

_LOOK_SECONDS: Final = 2.0
_LOOK_SHARE: Final = 100
_FIRST_EVENTS: Final = (b'{"type":"session.start"', b'{"type":"session.resume"')
_KNOWN: Final = "known-value"
_FLOORS_MAX: Final = 64
_log: Final = logging.getLogger(__name__)


def make_redaction(
    settings: Settings, *, with_key: bool = True, say: Callable[[Notice], None] = lambda one: _log.error(one.message)
) -> Redactors:
    """Compile the redactor with this installation's key; without it, its markers are valid for this run only."""
    return _joined(settings, make_engine(settings, redaction_key(Path(settings.state_dir), say) if with_key else None))


def make_floor(settings: Settings) -> Callable[[bytes], Redactors]:
    """Compile the redactor of a receiver, and return what makes one out of it for a tenant's key.

    All that it makes are for one thread, that of the floor.
    """
    engine = make_engine(settings, None)
    return lru_cache(_FLOORS_MAX)(lambda key: _joined(settings, engine.with_key(key)))


def _joined(settings: Settings, engine: results.Engine) -> Redactors:
    budget_ms, commands = settings.redaction.budget_ms, _Commands(engine)

    def for_values(values: Collection[str]) -> RedactEvent:
        return _events(_exempting(settings, engine.with_known_values(values)), budget_ms)

    def another() -> Redactors:
        learning = _Learning.of(settings, engine)
        redactor = _exempting(settings, learning if learning.may_change else learning.redactor)
        return Redactors(
            _events(redactor, budget_ms),
            redactor.redact_text,
            another,
            lambda key: _Careful(redactor.stream(key)),
            commands,
            start_helper=lambda: _start_helper(for_values, learning.known),
        )

    return another()


def _start_helper(
    for_values: "Callable[[Values], RedactEvent]", known: "Callable[[Lines], Values | None]"
) -> "RedactionHelper | None":
    from exporter.pipeline.redaction_helper import start_helper  # only what follows sessions has a helper

    return start_helper(for_values, known)


def _events(redactor: Redactor, budget_ms: float) -> RedactEvent:
    """Return what the core asks of a redactor about one event."""
    redact, clean, masked = redactor.redact, results.CLEAN, results.Masked

    def event(line: bytes, /) -> Redacted:
        result = redact(line, budget_ms)
        if result is clean:
            return line
        if isinstance(result, masked):
            return Masked(result.line, result.rules)
        return Refused(result.reason if isinstance(result, results.Refused) else "redactor_failed")

    return event


class _Commands:
    """The commands that print secrets, as the core asks for them."""

    def __init__(self, engine: results.Engine) -> None:
        self.rule_of = engine.rule_of_call
        self._mask = engine.mask_answer

    def mask(self, line: bytes, redacted: Redacted, rule: str, /) -> Redacted:
        """See `Commands.mask`."""
        if isinstance(redacted, Refused):
            return redacted
        before, rules = (redacted.line, redacted.rules) if isinstance(redacted, Masked) else (line, ())
        result = self._mask(before, rule)
        if isinstance(result, results.Masked):
            return Masked(result.line, rules + result.rules)
        return Refused(result.reason) if isinstance(result, results.Refused) else redacted


def make_redactor_for_reading(settings: Settings) -> Redactor:
    """Compile a redactor with this installation's key, or without one if there is none yet; writes only the cache."""
    return make_redactor(settings, existing_key(Path(settings.state_dir)))


def make_redactor(settings: Settings, key: bytes | None) -> Redactor:
    """Compile a redactor; raises `SettingsError` for a rule that cannot be used."""
    return _wrapped(settings, make_engine(settings, key))


def _wrapped(settings: Settings, engine: results.Engine) -> Redactor:
    """Return a redactor for one thread that has the engine's rules and the known values."""
    learning = _Learning.of(settings, engine)
    return _exempting(settings, learning if learning.may_change else learning.redactor)


def _exempting(settings: Settings, redactor: Redactor) -> Redactor:
    if patterns := [str(Path(one.path).expanduser()) for one in settings.redaction.allow if one.path]:
        return _Exempting(redactor, ExemptFiles(patterns))
    return redactor


def make_engine(settings: Settings, key: bytes | None) -> results.Engine:
    """Compile the rules, without known values; the cache directory holds what was compiled."""
    rules = settings.redaction
    values = [one for one in rules.allow if not one.path]
    allowed = [Allowed(one.value, re.compile(one.regex) if one.regex else None, one.rule) for one in values]
    try:
        return results.Engine(
            key,
            allowed=allowed,
            rule_files=[Path(name) for name in rules.extra_rules],
            cache_dir=Path(settings.cache_dir),
            marker=rules.marker,
            opaque=rules.opaque,
            weak_passwords=rules.weak_passwords,
            plugins=[Path(name) for name in rules.plugins],
            baselines=[Path(name) for name in rules.baselines],
        )
    except RuleError as error:
        raise SettingsError(
            str(error), hint="mend the rule, or take its file out of redaction.extra_rules, plugins or baselines"
        ) from None


def _secret_files(settings: Settings) -> list[Path]:
    """Return the files that hold tokens or headers, which may change while the program runs."""
    files = [kind.secret_file(one) for kind, _, one in configured(settings)]
    return [
        Path(file)
        for file in (*files, *(one.token_file for one in settings.source), settings.metrics.token_file)
        if file
    ]


def _changing_values(settings: Settings) -> set[str]:
    """Return the known values that may change while the program runs: tokens in files, environments of CLIs.

    A file that cannot be read is skipped here; it is reported by the code that sends its content.
    """
    values = set(from_files(_secret_files(settings)))
    for kind, _, sink in configured(settings):
        with suppress(ConfigError):
            values.update(kind.secrets(sink))
    tokens: tuple[Source | Metrics, ...] = (*settings.source, settings.metrics)
    for one in tokens:
        with suppress(ConfigError):
            values.add(read_token(one) or "")
    if settings.redaction.known_env_of_cli:
        from exporter.wiring.sources import homes_in

        for pid in chain.from_iterable(map(lock_holders, homes_in(settings).roots())):
            values.update(from_environ(environment_of(pid), settings.redaction.known_env))
    return values


@dataclass(slots=True)
class _Learning:
    """A redactor that is made again when there are new known values; it looks for them every few seconds.

    It also looks before the first event of a CLI process, so that the values of its environment are known by then.
    """

    redactor: Redactor
    values: set[str]
    look: Callable[[], set[str]]
    make: Callable[[set[str]], Redactor]
    may_change: bool
    next_look: float = field(default_factory=lambda: time.monotonic() + _LOOK_SECONDS)

    @classmethod
    def of(cls, settings: Settings, engine: results.Engine) -> "_Learning":
        """Return a redactor for one thread that has the engine's rules and the known values."""
        rules, make = settings.redaction, engine.with_known_values
        values = _changing_values(settings).union(
            from_environ(os.environ, rules.known_env), from_files(map(Path, rules.known_files))
        )
        may_change = bool(rules.known_env_of_cli or _secret_files(settings))
        return cls(make(values), values, lambda: _changing_values(settings), make, may_change)

    def known(self, lines: "Lines") -> set[str]:
        """Return the values that these lines are redacted with."""
        is_due = time.monotonic() >= self.next_look
        if self.may_change and (
            is_due or any(one.startswith(_FIRST_EVENTS) for one in lines if isinstance(one, bytes))
        ):
            self._learn()
        return self.values

    def redact(self, line: bytes, budget_ms: float, call: str | None = None) -> results.Redaction:
        """Redact with the values known now; refuse if a redactor with them cannot be made."""
        if time.monotonic() >= self.next_look or line.startswith(_FIRST_EVENTS):
            try:
                self._learn()
            except Exception:
                return results.Refused("redactor_failed")
        return self.redactor.redact(line, budget_ms, call)

    def rule_of_call(self, data: bytes) -> str | None:
        """See `Redactor.rule_of_call`."""
        return self.redactor.rule_of_call(data)

    def redact_text(self, text: str) -> str:
        """Redact with the values known at the last event."""
        return self.redactor.redact_text(text)

    def stream(self, key: str) -> DeltaStream:
        """Begin a stream with the values known at the last event."""
        return self.redactor.stream(key)

    def _learn(self) -> None:
        begun = time.monotonic()
        if not (found := self.look()) <= self.values:
            values = self.values | found
            self.redactor = self.make(values)
            self.values = values
        now = time.monotonic()
        self.next_look = now + max(_LOOK_SECONDS, (now - begun) * _LOOK_SHARE)


class _Exempting:
    """A redactor that leaves the content of exempt files as it is, except known values."""

    def __init__(self, redactor: Redactor, files: ExemptFiles) -> None:
        self._redactor = redactor
        self._files = files
        self.redact_text = redactor.redact_text
        self.rule_of_call = redactor.rule_of_call
        self.stream = redactor.stream

    def redact(self, line: bytes, budget_ms: float, call: str | None = None) -> results.Redaction:
        """Redact the event, then restore the exempt parts; nothing is exempt of what a command printed."""
        result = self._redactor.redact(line, budget_ms, call)
        if call is not None:
            return result
        places = self._files.places(line)
        if not places or not isinstance(result, results.Masked):
            return result
        masked, left = result.line, result.findings  # reached only by events about an exempt file
        for place in reversed(places):
            inside = [finding for finding in left if f"{finding.path}/".startswith(f"{place}/")]
            before, after = span_at(line, place), span_at(masked, place)
            if not inside or before is None or after is None or any(one.rule == _KNOWN for one in inside):
                continue
            masked = masked[: after[0]] + line[before[0] : before[1]] + masked[after[1] :]
            left = tuple(finding for finding in left if finding not in inside)
        if masked == line:
            return results.CLEAN
        return results.Masked(masked, tuple(finding.rule for finding in left), lambda: left)


class _Careful:
    """A stream that returns nothing more after an error in it."""

    def __init__(self, stream: DeltaStream) -> None:
        self._stream: DeltaStream | None = stream

    def feed(self, text: str) -> str:
        """See `DeltaStream.feed`."""
        return self._guarded(lambda stream: stream.feed(text))

    def flush(self) -> str:
        """See `DeltaStream.flush`."""
        return self._guarded(lambda stream: stream.flush())

    def _guarded(self, step: Callable[[DeltaStream], str]) -> str:
        if self._stream is None:
            return ""
        try:
            return step(self._stream)
        except Exception:
            self._stream = None
            return ""
