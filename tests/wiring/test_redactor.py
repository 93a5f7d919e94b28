"""The redactor knows what the settings say, learns what changes meanwhile, and leaves exempt files alone."""

import json
import os
import random
import string
import subprocess
from collections.abc import Iterable, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Literal

import pytest

from config.settings import Settings
from exporter.core.events.redaction import Masked
from exporter.errors import SettingsError
from exporter.wiring import redactor as module
from exporter.wiring.redactor import make_redaction, make_redactor
from redaction import engine
from redaction.allowlist import Allowed
from redaction.engine import CLEAN, Refused
from redaction.engine import Masked as MaskedLine
from redaction.errors import RuleError
from redaction.prefilter.gate import EngineName
from redaction.rules.examples import expanded
from tests.core.made_events import event
from tests.wiring.conftest import Configure

TOKEN = expanded("ghp_<base62:30><crc32:6>")
CHANCE = random.Random(0)


def plain_secret() -> str:
    """A value that no rule knows by its looks, another one each time."""
    return (
        "".join(CHANCE.choices(string.ascii_lowercase, k=4)) + "-" + "".join(CHANCE.choices(string.ascii_letters, k=20))
    )


def said(text: str, kind: str = "user.message") -> bytes:
    return event("1", kind=kind, data=json.dumps({"content": text}))


def masked_by(settings: Settings, text: str) -> str:
    outcome = make_redaction(settings, with_key=False).event(said(text))
    return outcome.line.decode() if isinstance(outcome, Masked) else text


@pytest.mark.usefixtures("installed")
def test_our_own_tokens_and_headers_are_known(configure: Configure, own_home: Path) -> None:
    first, second, third, fourth = (plain_secret() for _ in range(4))
    directory = own_home / "config" / "exporter"
    (directory / "mc.token").write_text(f"\ufeff{first}\r\n", encoding="utf-8")
    (directory / "otel.headers").write_text(f"authorization=Bearer {second}\nx-team = {third}\n")
    settings = configure(
        '[mission_control.a]\nurl = "https://a"\ntoken_file = "mc.token"\n'
        f'[mission_control.b]\nurl = "https://b"\ntoken = "{fourth}"\n'
        '[otel]\nendpoint = "https://c"\nheaders_file = "otel.headers"\n'
    )

    for secret in (first, second, third, fourth):
        assert secret not in masked_by(settings, f"and then {secret} came")


@pytest.mark.usefixtures("installed")
def test_a_token_that_has_changed_is_known_soon(
    configure: Configure, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(module, "_LOOK_SHARE", 0)
    before, after = plain_secret(), plain_secret()
    file = own_home / "config" / "exporter" / "mc.token"
    file.write_text(before)
    redact = make_redaction(
        configure('[mission_control]\nurl = "https://a"\ntoken_file = "mc.token"'), with_key=False
    ).event
    unknown = redact(said(after))
    file.write_text(after)

    assert unknown == said(after)
    for secret in (before, after):
        outcome = redact(said(secret))
        assert isinstance(outcome, Masked)
        assert secret.encode() not in outcome.line


@pytest.mark.usefixtures("installed")
def test_values_of_a_cli_process_are_known_before_its_first_event(configure: Configure, own_home: Path) -> None:
    secret = plain_secret()
    settings = configure("[redaction]\nknown_env_of_cli = true")
    redact = make_redaction(settings, with_key=False).event
    session = own_home / ".copilot" / "session-state" / "one"
    session.mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "THEIR_TOKEN": secret, "HARMLESS": "their-own-words-here"}
    with subprocess.Popen(["cat"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        (session / f"inuse.{process.pid}.lock").write_text(str(process.pid))
        redact(said("", "session.start"))
        outcome = redact(said(f"{secret} is not their-own-words-here"))

    assert isinstance(outcome, Masked)
    assert secret.encode() not in outcome.line
    assert b"their-own-words-here" in outcome.line


@pytest.mark.usefixtures("installed")
def test_without_the_setting_nobody_elses_environment_is_read(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "environment_of", lambda _: pytest.fail("read"))

    make_redactor(configure(), None).redact(said("", "session.start"), 1000.0)


@pytest.mark.usefixtures("installed")
def test_nothing_passes_while_a_redactor_that_knows_more_cannot_be_made(
    configure: Configure, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(module, "_LOOK_SHARE", 0)
    file = own_home / "config" / "exporter" / "mc.token"
    file.write_text(plain_secret())
    redactor = make_redactor(configure('[mission_control]\nurl = "https://a"\ntoken_file = "mc.token"'), None)
    file.write_text(plain_secret())
    with monkeypatch.context() as patch:
        patch.setattr(engine, "KnownValues", lambda *_: 1 / 0)
        refused = redactor.redact(said("good day"), 1000.0)

    assert refused == Refused("redactor_failed")
    assert redactor.redact(said("good day"), 1000.0) is CLEAN


def call(identity: str, path: str, **more: str) -> bytes:
    data = {"toolCallId": identity, "toolName": "create", "arguments": {"path": path, **more}}
    return event("2", kind="tool.execution_start", data=json.dumps(data))


def result(identity: str, **data: object) -> bytes:
    return event("3", kind="tool.execution_complete", data=json.dumps({"toolCallId": identity, **data}))


@pytest.mark.usefixtures("installed")
def test_what_a_call_reads_from_an_exempt_file_stays_byte_for_byte(configure: Configure) -> None:
    redactor = make_redactor(configure('[[redaction.allow]]\npath = "fixtures/**"'), None)
    started, ended = call("1", "fixtures/a", file_text=TOKEN), result("1", result={"content": f'"{TOKEN}"'})

    assert redactor.redact(started, 1000.0) is CLEAN
    assert redactor.redact(ended, 1000.0) is CLEAN
    assert isinstance(redactor.redact(call("2", ".env", file_text=TOKEN), 1000.0), MaskedLine)
    assert isinstance(redactor.redact(result("2", result={"content": TOKEN}), 1000.0), MaskedLine)


@pytest.mark.usefixtures("installed")
def test_everything_else_of_the_event_is_masked(configure: Configure) -> None:
    redactor = make_redactor(configure('[[redaction.allow]]\npath = "fixtures/**"'), None)
    redactor.redact(call("1", "fixtures/a"), 1000.0)

    outcome = redactor.redact(result("1", result={"a": TOKEN, "b": f"\n{TOKEN}"}, note=f"see {TOKEN}"), 1000.0)

    assert isinstance(outcome, MaskedLine)
    data = json.loads(outcome.line)["data"]
    assert data["result"] == {"a": TOKEN, "b": f"\n{TOKEN}"}
    assert TOKEN not in data["note"]
    assert [finding.path for finding in outcome.findings] == ["/data/note"]
    assert outcome.rules == tuple(finding.rule for finding in outcome.findings)


@pytest.mark.usefixtures("installed")
def test_a_known_value_is_masked_in_an_exempt_file_too(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = plain_secret()
    monkeypatch.setenv("MY_TOKEN", secret)
    redactor = make_redactor(configure('[[redaction.allow]]\npath = "fixtures/**"'), None)

    outcome = redactor.redact(call("1", "fixtures/a", file_text=f"{TOKEN} {secret}"), 1000.0)

    assert isinstance(outcome, MaskedLine)
    assert secret.encode() not in outcome.line


@pytest.mark.usefixtures("installed")
def test_a_rule_that_cannot_be_used_is_an_error_of_the_settings(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuleError("rules.toml", "in-house", "matches the empty string")

    monkeypatch.setattr(engine, "Engine", refuse)

    with pytest.raises(SettingsError, match=r"rules\.toml: rule in-house: matches the empty string") as raised:
        make_redactor(configure(), None)
    assert "redaction.extra_rules" in raised.value.hint


def test_everything_that_the_settings_say_reaches_the_engine(
    configure: Configure, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, object] = {}

    class Recording(engine.Engine):
        def __init__(
            self,
            key: bytes | None = None,
            known_values: Iterable[bytes | str] = (),
            allowed: Iterable[Allowed] = (),
            *,
            rule_files: Sequence[Path] = (),
            cache_dir: Path | None = None,
            marker: Literal["tag", "stars"] = "tag",
            opaque: Literal["pass", "drop"] = "pass",
            weak_passwords: Literal["mask", "leave"] = "mask",
            plugins: Sequence[Path] = (),
            baselines: Sequence[Path] = (),
            engine: EngineName | None = None,
        ) -> None:
            super().__init__(key)
            given.update(locals())

    monkeypatch.setattr(engine, "Engine", Recording)
    settings = configure(
        '[redaction]\nextra_rules = ["r.toml"]\nmarker = "stars"\nopaque = "drop"\nplugins = ["p.py"]\n'
        'weak_passwords = "leave"\n'
        'baselines = ["b"]\n[[redaction.allow]]\nvalue = "x"\n[[redaction.allow]]\npath = "y"\n'
    )
    here, state = own_home / "config" / "exporter", Path(settings.state_dir)
    make_redactor(settings, None)
    without_key = dict(given)
    state.mkdir(parents=True)
    make_redaction(settings)

    assert (given["rule_files"], given["plugins"], given["baselines"]) == (
        [here / "r.toml"],
        [here / "p.py"],
        [here / "b"],
    )
    assert (given["marker"], given["opaque"], given["allowed"]) == ("stars", "drop", [Allowed("x", None, None)])
    assert given["weak_passwords"] == "leave"
    assert (without_key["key"], without_key["cache_dir"]) == (None, Path(settings.cache_dir))
    assert given["key"] == (state / "redaction.key").read_bytes()
    assert given["cache_dir"] == Path(settings.cache_dir)


@pytest.mark.usefixtures("installed")
def test_places_of_secrets_are_worked_out_for_nobody_who_delivers(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_findings", lambda *_: pytest.fail("worked out"))

    outcome = make_redaction(configure(), with_key=False).event(said(TOKEN))

    assert isinstance(outcome, Masked)
    assert len(outcome.rules) == 1


@pytest.mark.usefixtures("installed")
def test_rules_are_compiled_once_for_all_threads(
    configure: Configure, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = own_home / "config" / "exporter" / "mc.token"
    file.write_text(plain_secret())
    first = make_redaction(configure('[mission_control]\nurl = "https://a"\ntoken_file = "mc.token"'))
    monkeypatch.setattr(engine, "all_rules", lambda *_, **__: pytest.fail("read again"))
    file.write_text(secret := plain_secret())

    second = first.another()

    assert first.event(said(TOKEN)) == second.event(said(TOKEN)) != said(TOKEN)
    assert isinstance(second.event(said(secret)), Masked), "it knows what is known when it is made"


@pytest.mark.usefixtures("installed")
def test_a_baseline_of_the_settings_is_used(configure: Configure, own_home: Path) -> None:
    found = {"hashed_secret": sha1(TOKEN.encode()).hexdigest(), "is_secret": False}
    file = own_home / "config" / "exporter" / "b.json"
    file.write_text(json.dumps({"version": "1.5.0", "results": {"a": [found]}}))
    settings = configure('[redaction]\nbaselines = ["b.json"]')

    assert make_redaction(settings, with_key=False).event(said(TOKEN)) == said(TOKEN)
    file.write_text("{}")
    with pytest.raises(SettingsError, match=r"b\.json: is no baseline"):
        make_redaction(settings, with_key=False)


def test_compiled_rules_are_kept_for_this_user_alone(configure: Configure) -> None:
    settings = configure()
    make_redaction(settings, with_key=False)

    assert not Path(settings.state_dir).exists()
    kept = [Path(settings.cache_dir), *Path(settings.cache_dir).iterdir()]
    assert len(kept) > 1
    assert not any(path.stat().st_mode & 0o077 for path in kept)
