"""Secrets are read when they are needed and are never shown."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rich.pretty
from hypothesis import given
from hypothesis import strategies as st

from config.errors import ConfigError
from config.load import Loaded
from config.settings import MissionControl, Otel
from config.show import rows
from config.token import read_headers, read_token
from config.url import mask_url
from tests.config.loading import Loading

SECRET = "s3cr3t-v4lu3"
FULL_OF_SECRETS = f"""
[mission_control.one]
url = "https://me:{SECRET}@mc.example.com/agents"
token = "{SECRET}"
[otel]
endpoint = "https://{SECRET}@otel.example.com"
headers = {{ authorization = "Bearer {SECRET}", x = "{SECRET}" }}
resource_attributes = {{ "deployment.environment" = "laptop" }}
[[redaction.allow]]
regex = "EXAMPLE"
[receiver]
store = "postgresql://mc:{SECRET}@db.example.com/mc"
"""


@pytest.fixture
def loaded(loading: Loading) -> Loaded:
    return loading(FULL_OF_SECRETS)


def test_no_way_of_printing_settings_shows_a_secret(loaded: Loaded) -> None:
    sink = loaded.settings.mission_control["one"]
    printed = [
        *(f"{value!r} {value} {rich.pretty.pretty_repr(value)}" for value in (loaded, loaded.settings, sink)),
        rich.pretty.pretty_repr(loaded.settings, max_depth=10),
    ]

    assert sink.token == SECRET
    assert not [text for text in printed if SECRET in text]
    assert "token='******'" in repr(sink)


def test_rows_show_every_setting_with_its_origin_and_no_secret(loaded: Loaded) -> None:
    shown = {row.path: row for row in rows(loaded)}

    assert set(shown) == set(loaded.origins)
    assert (shown["mission_control.one.url"].text, shown["mission_control.one.url"].origin) == (
        '"https://******@mc.example.com/agents"',
        "file:3",
    )
    assert (shown["mission_control.one.token"].text, shown["mission_control.one.token"].origin) == (
        '"******"',
        "file:4",
    )
    assert shown["otel.default.headers"].text == '{ authorization = "******", x = "******" }'
    assert shown["otel.default.resource_attributes"].text == '{ "deployment.environment" = "laptop" }'
    assert shown["redaction.allow"].text == '[{ regex = "EXAMPLE" }]'
    assert (shown["host_name"].text, shown["host_name"].origin) == ("(not set)", "default")
    assert SECRET not in str(shown)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://x/agents", "https://x/agents"),
        ("https://me@x", "https://******@x"),
        ("https://me:a@b:c/d?e#f@x/y", "https://******@x/y"),
        ("me:password@x", "******@x"),
        ("https://x/?key=1#top", "https://x/?******"),
        ("https://x/#top", "https://x/#******"),
        ("", ""),
    ],
)
def test_credentials_in_an_address_are_masked(url: str, shown: str) -> None:
    assert mask_url(url) == shown


@given(st.text(max_size=30), st.text(max_size=10))
def test_what_stands_before_the_last_at_sign_is_never_shown(before: str, after: str) -> None:
    shown = mask_url(f"https://{before}{SECRET}@{after}")

    assert SECRET not in shown


def test_a_changed_token_file_is_picked_up(loading: Loading) -> None:
    file = loading.home / "mc.token"
    file.write_text("first\n")
    text = '[mission_control]\nurl = "https://x"\ntoken_file = "~/mc.token"\n'
    sink = loading(text).settings.mission_control["default"]

    before = read_token(sink)
    file.write_text("\ufeff second \r\n")

    assert (before, read_token(sink)) == ("first", "second")


def test_a_token_is_the_one_given_or_none() -> None:
    assert read_token(MissionControl(url="https://x", token="t")) == "t"
    assert read_token(MissionControl(url="https://x")) is None


def test_a_token_file_that_went_away_is_reported_by_name(tmp_path: Path) -> None:
    file = str(tmp_path / "gone")

    with pytest.raises(ConfigError, match="token_file cannot be read: No such file") as raised:
        read_token(MissionControl(url="https://x", token_file=file))

    assert raised.value.where == file


def test_headers_are_read_from_a_file_of_lines(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("authorization=Bearer abc==\n\nx = y\n")

    assert read_headers(Otel(endpoint="https://x", headers_file=str(file))) == {
        "authorization": "Bearer abc==",
        "x": "y",
    }
    assert read_headers(Otel(endpoint="https://x", headers={"a": "b"})) == {"a": "b"}


@pytest.mark.parametrize("content", ["", SECRET, f"a b={SECRET}", f"a={SECRET}%0d%0ab", "a=\u00e9"])
def test_a_file_without_headers_is_refused_without_being_shown(tmp_path: Path, content: str) -> None:
    file = tmp_path / "headers"
    file.write_text(content)

    with pytest.raises(ConfigError) as raised:
        read_headers(Otel(endpoint="https://x", headers_file=str(file)))

    assert SECRET not in str(raised.value)


LIGHT = """
import json, sys
import config.load
loaded = config.load.load(file=None, environ={"HOME": "/nowhere"}, flags={}, fallbacks=True)
json.dump(sorted(sys.modules), sys.stdout)
"""


@pytest.fixture(scope="module")
def imported() -> Iterator[set[str]]:
    result: Any = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, check=True, text=True)
    yield set(json.loads(result.stdout))


def test_loading_imports_nothing_that_takes_long(imported: set[str]) -> None:
    heavy = {"asyncio", "httpx", "rich", "yaml", "opentelemetry", "detect_secrets", "starlette", "logging", "difflib"}

    assert not heavy & imported


def test_loading_imports_nothing_of_ours_outside_config(imported: set[str]) -> None:
    assert not {"exporter", "redaction", "otel"} & imported
