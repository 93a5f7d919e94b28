"""The package `redaction` made into what the core asks of a redactor, as the settings say.

An engine is wrapped only in what the settings ask for: values that are learned while the program runs, files that are
exempt. With neither, nothing stands between the core and the engine.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from exporter.core.events.exempt_files import ExemptFiles, span_at
from exporter.core.events.redaction import Masked, Redacted, Refused
from exporter.daemon.running import Redactors
from exporter.errors import SettingsError
from exporter.state.redaction_key import existing_key, has_key, redaction_key
from exporter.wiring.known_values import changing_values, known_values, may_change
from redaction import engine as results
from redaction.allowlist import Allowed
from redaction.errors import RuleError

if TYPE_CHECKING:
    from config.settings import Settings
    from redaction.engine import Redactor
    from redaction.stream import DeltaStream

_LOOK_SECONDS: Final = 2.0
_LOOK_SHARE: Final = 100
_FIRST_EVENTS: Final = (b'{"type":"session.start"', b'{"type":"session.resume"')
_KNOWN: Final = "known-value"


def make_redaction(settings: "Settings") -> Redactors:
    """Compile the redactor with this installation's key and the values that must never leave."""
    return _redaction(settings, redaction_key(Path(settings.state_dir)))


def make_redaction_without_key(settings: "Settings") -> Redactors:
    """Compile a redactor whose markers hold for this run only."""
    return _redaction(settings, None)


def _redaction(settings: "Settings", key: bytes | None) -> Redactors:
    engine = make_engine(settings, key)

    def made() -> Redactors:
        return adapt(_wrapped(settings, engine), settings.redaction.budget_ms, made)

    return made()


def make_redactor_for_reading(settings: "Settings") -> "Redactor":
    """Compile a redactor with this installation's key; where there is none yet, for this run only, writing nothing."""
    return make_redactor(settings, existing_key(Path(settings.state_dir)))


def make_redactor(settings: "Settings", key: bytes | None) -> "Redactor":
    """Compile a redactor; raises `SettingsError` for a rule that cannot be used."""
    return _wrapped(settings, make_engine(settings, key))


def _wrapped(settings: "Settings", engine: results.Engine) -> "Redactor":
    """Return a redactor of one thread that has the engine's rules and knows what must never leave."""
    values = known_values(settings)
    redactor: Redactor = engine.with_known_values(values)
    if may_change(settings):
        redactor = _Learning(redactor, values, look=lambda: changing_values(settings), make=engine.with_known_values)
    if patterns := [str(Path(one.path).expanduser()) for one in settings.redaction.allow if one.path]:
        redactor = _Exempting(redactor, ExemptFiles(patterns))
    return redactor


def make_engine(settings: "Settings", key: bytes | None) -> results.Engine:
    """Compile the rules, which know no values yet; what was compiled is kept once this installation has a key."""
    rules = settings.redaction
    allowed = [
        Allowed(one.value, re.compile(one.regex) if one.regex else None, one.rule)
        for one in rules.allow
        if not one.path
    ]
    try:
        return results.Engine(
            key,
            allowed=allowed,
            rule_files=[Path(name) for name in rules.extra_rules],
            cache_dir=Path(settings.cache_dir) if has_key(Path(settings.state_dir)) else None,
            marker=rules.marker,
            opaque=rules.opaque,
            plugins=[Path(name) for name in rules.plugins],
            baselines=[Path(name) for name in rules.baselines],
        )
    except RuleError as error:
        raise SettingsError(
            str(error), hint="mend the rule, or take its file out of redaction.extra_rules, plugins or baselines"
        ) from None


class _Learning:
    """A redactor that is made again when there are further values to know, looked for every few seconds.

    Also before the first event of a CLI process, so that nothing of it is read without the values of its environment.
    """

    def __init__(
        self,
        redactor: "Redactor",
        values: set[str],
        *,
        look: Callable[[], set[str]],
        make: Callable[[set[str]], "Redactor"],
    ) -> None:
        self._redactor = redactor
        self._values = values
        self._look = look
        self._make = make
        self._next = time.monotonic() + _LOOK_SECONDS

    def redact(self, line: bytes, budget_ms: float) -> results.Redaction:
        """Redact with what is known now; refuse if a redactor that knows it cannot be made."""
        if time.monotonic() >= self._next or line.startswith(_FIRST_EVENTS):
            try:
                self._learn()
            except Exception:
                return results.Refused("redactor_failed")
        return self._redactor.redact(line, budget_ms)

    def redact_text(self, text: str) -> str:
        """Redact with what was known at the last event."""
        return self._redactor.redact_text(text)

    def stream(self, key: str) -> "DeltaStream":
        """Begin a stream with what was known at the last event."""
        return self._redactor.stream(key)

    def _learn(self) -> None:
        begun = time.monotonic()
        if not (found := self._look()) <= self._values:
            values = self._values | found
            self._redactor = self._make(values)
            self._values = values
        now = time.monotonic()
        self._next = now + max(_LOOK_SECONDS, (now - begun) * _LOOK_SHARE)


class _Exempting:
    """A redactor that leaves the content of exempt files as it is, but for values known to be secret."""

    def __init__(self, redactor: "Redactor", files: ExemptFiles) -> None:
        self._redactor = redactor
        self._files = files
        self.redact_text = redactor.redact_text
        self.stream = redactor.stream

    def redact(self, line: bytes, budget_ms: float) -> results.Redaction:
        """Redact the event, then put back what is exempt."""
        result = self._redactor.redact(line, budget_ms)
        places = self._files.places(line)
        if not places or not isinstance(result, results.Masked):
            return result
        masked, left = result.line, result.findings  # only here: an event that tells of an exempt file
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


def adapt(engine: "Redactor", budget_ms: float, make_another: Callable[[], Redactors]) -> Redactors:
    """Return an engine in the form that the core asks for."""
    clean, masked, redact = results.CLEAN, results.Masked, engine.redact

    def event(line: bytes, /) -> Redacted:
        result = redact(line, budget_ms)
        if result is clean:
            return line
        if isinstance(result, masked):
            return Masked(result.line, result.rules)
        return Refused(result.reason if isinstance(result, results.Refused) else "redactor_failed")

    return Redactors(event, engine.redact_text, make_another, lambda key: _Careful(engine.stream(key)))


class _Careful:
    """A stream that shows nothing any more once something went wrong in it."""

    def __init__(self, stream: "DeltaStream") -> None:
        self._stream: DeltaStream | None = stream

    def feed(self, text: str) -> str:
        """See `DeltaStream.feed`."""
        return self._guarded(lambda stream: stream.feed(text))

    def flush(self) -> str:
        """See `DeltaStream.flush`."""
        return self._guarded(lambda stream: stream.flush())

    def _guarded(self, step: "Callable[[DeltaStream], str]") -> str:
        if self._stream is None:
            return ""
        try:
            return step(self._stream)
        except Exception:
            self._stream = None
            return ""
