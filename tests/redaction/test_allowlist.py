"""What a baseline of detect-secrets calls no secret stays; whatever else it says, or is, hides nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from detect_secrets.core import baseline
from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import transient_settings

from redaction.engine import CLEAN, Engine, Masked
from redaction.errors import RuleError
from redaction.rules.examples import expanded
from tests.redaction.events import event
from tests.shared import CACHE

# Without their filters, one of which would ask the services whether a token is valid.
SETTINGS = {"plugins_used": [{"name": "KeywordDetector"}, {"name": "BasicAuthDetector"}], "filters_used": []}
PASSWORD = expanded("<base62:20>", "baseline")
OTHER = expanded("<base62:20>", "other")
TEXT = f'password = "{PASSWORD}"'
OTHER_TEXT = f"see https://someone:{OTHER}@host.example/ there"


def made(tmp_path: Path, verdicts: dict[str, bool | None]) -> Path:
    """A baseline of a file with both texts, as detect-secrets makes it and its audit marks it."""
    scanned = tmp_path / "settings.ini"
    scanned.write_text(f"{TEXT}\n{OTHER_TEXT}\n", encoding="utf-8")
    with transient_settings(SETTINGS):
        found = SecretsCollection()
        found.scan_file(str(scanned))
        for _, secret in found:
            secret.is_secret = verdicts[str(secret.secret_value)]
        assert {secret.secret_value for _, secret in found} == {PASSWORD, OTHER}
        file = tmp_path / "secrets.baseline"
        baseline.save_to_file(found, str(file))
    return file


def test_what_was_audited_as_no_secret_is_not_masked(tmp_path: Path) -> None:
    file = made(tmp_path, {PASSWORD: False, OTHER: True})
    assert PASSWORD not in file.read_text()
    engine = Engine(baselines=[file], cache_dir=CACHE)

    assert engine.redact(event(TEXT), 1000) is CLEAN
    assert isinstance(engine.redact(event(OTHER_TEXT), 1000), Masked)
    assert isinstance(engine.redact(event(f"{TEXT}{TEXT[::-1]}x {OTHER_TEXT}"), 1000), Masked)
    assert isinstance(Engine(cache_dir=CACHE).redact(event(TEXT), 1000), Masked)


def test_it_is_known_however_it_is_escaped(tmp_path: Path) -> None:
    engine = Engine(baselines=[made(tmp_path, {PASSWORD: False, OTHER: None})], cache_dir=CACHE)

    assert engine.redact(event(json.dumps({"said": json.dumps({"password": PASSWORD})})), 1000) is CLEAN


def test_what_nobody_audited_is_masked(tmp_path: Path) -> None:
    engine = Engine(baselines=[made(tmp_path, {PASSWORD: None, OTHER: None})], cache_dir=CACHE)

    assert isinstance(engine.redact(event(TEXT), 1000), Masked)


def test_of_two_verdicts_the_stricter_holds(tmp_path: Path) -> None:
    files = []
    for number, verdict in enumerate((False, True)):
        (tmp_path / str(number)).mkdir()
        files.append(made(tmp_path / str(number), {PASSWORD: verdict, OTHER: False}))
    engine = Engine(baselines=files, cache_dir=CACHE)

    assert isinstance(engine.redact(event(TEXT), 1000), Masked)
    assert engine.redact(event(OTHER_TEXT), 1000) is CLEAN


def test_a_known_value_is_masked_all_the_same(tmp_path: Path) -> None:
    file = made(tmp_path, {PASSWORD: False, OTHER: False})
    engine = Engine(known_values=[PASSWORD], baselines=[file], cache_dir=CACHE)

    result = engine.redact(event(TEXT), 1000)

    assert isinstance(result, Masked)
    assert result.rules == ("known-value",)
    assert PASSWORD.encode() not in result.line


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"results": []}',
        '{"results": {"a": [{"is_secret": false}]}}',
        '{"results": {"a": [{"hashed_secret": "ab", "is_secret": false}]}}',
        '{"results": {"a": [{"hashed_secret": "' + "0" * 40 + '", "is_secret": "no"}]}}',
        '{"results": {"a": "' + PASSWORD + '"}}',
        b"\xff\xfe",
    ],
)
def test_a_file_that_is_none_is_refused_by_its_name(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "own.baseline"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(RuleError, match=r"own\.baseline: is no baseline of detect-secrets: ") as refused:
        Engine(baselines=[file], cache_dir=CACHE)
    assert PASSWORD not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"gone\.baseline: cannot be read: No such file"):
        Engine(baselines=[tmp_path / "gone.baseline"], cache_dir=CACHE)
