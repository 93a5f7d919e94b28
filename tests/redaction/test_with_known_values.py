"""An engine made from another has its rules without compiling them, and what it knows alone."""

import re
from math import inf
from threading import Thread

import pytest

from redaction.allowlist import Allowed
from redaction.engine import CLEAN, Clean, Engine, Masked
from redaction.prefilter import gate
from redaction.prefilter.gate import EngineName
from redaction.rules.examples import expanded
from redaction.search import Deadline
from tests.redaction.events import event
from tests.shared import CACHE

TOKEN = expanded("ghp_<base62:30><crc32:6>")
VALUE = expanded("<lower:4>-<letters:20>", "known")
ENGINES: tuple[EngineName, ...] = ("hyperscan", "re")


@pytest.mark.parametrize("engine", ENGINES)
def test_another_finds_the_same_and_what_it_knows(engine: EngineName) -> None:
    pytest.importorskip(engine)
    one = Engine(engine=engine, cache_dir=CACHE)
    other = one.with_known_values([VALUE])

    assert one.redact(event(f"so {VALUE}"), 10_000) is CLEAN
    result = other.redact(event(f"so {VALUE}"), 10_000)
    assert isinstance(result, Masked)
    assert result.rules == ("known-value",)
    assert one.redact_text(TOKEN) == other.redact_text(TOKEN) != TOKEN, "also the tags are the same"
    assert other.with_known_values([]).redact(event(f"so {VALUE}"), 10_000) is CLEAN


def test_nothing_is_compiled_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Engine(cache_dir=CACHE)
    for name in ("HyperscanGate", "SlowGate"):
        monkeypatch.setattr(getattr(gate, name), "__init__", lambda *_, **__: pytest.fail("compiled"))

    assert isinstance(one.with_known_values([]).redact(event(TOKEN), 1000), Masked)


def test_threads_do_not_disturb_each_other() -> None:
    one = Engine(cache_dir=CACHE)
    lines = [event(f"{text} {TOKEN}" * 20) for text in ("a", "b", "c")]
    wanted = [one.redact(line, 10_000) for line in lines]
    strange: list[object] = []

    def work(engine: Engine) -> None:
        for line, expected in list(zip(lines, wanted, strict=True)) * 20:
            result = engine.redact(line, 10_000)
            if not isinstance(result, Masked) or not isinstance(expected, Masked) or result.line != expected.line:
                strange.append(result)

    threads = [Thread(target=work, args=(one.with_known_values([VALUE]),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert strange == []


def test_an_allowed_expression_means_the_whole_secret() -> None:
    of_all, of_part = (
        Engine(allowed=[Allowed(pattern=re.compile(f"ghp_{rest}"))], cache_dir=CACHE) for rest in ("[0-9A-Za-z]+", "")
    )

    assert isinstance(of_all.redact(event(TOKEN), 1000), Clean)
    assert isinstance(of_part.redact(event(TOKEN), 1000), Masked)


def test_a_known_value_is_called_so_wherever_it_stands() -> None:
    result = Engine(known_values=[VALUE], cache_dir=CACHE).redact(
        event(f"export PASSWORD={VALUE} and password: '{VALUE}+more'"), 1000
    )

    assert isinstance(result, Masked)
    assert result.rules == ("known-value", "known-value")


def test_nothing_shows_a_secret_when_it_is_printed() -> None:
    engine = Engine(known_values=[VALUE], cache_dir=CACHE)
    result = engine.redact(event(f"{VALUE} {TOKEN}"), 1000)
    stream = engine.stream("key")
    stream.feed(f"password={TOKEN[:20]}")

    assert isinstance(result, Masked)
    search = engine._search
    spans = search.spans(event(f"{VALUE} {TOKEN}"), Deadline(inf))
    for shown in (engine, search, search.known, result, result.findings, stream, spans, *engine.rules()):
        assert VALUE not in repr(shown)
        assert TOKEN not in repr(shown)
        assert TOKEN[:20] not in repr(shown)
