"""Known values are gathered from where they are said to be, and harmless ones are never masked."""

import base64
import html
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from redaction.known import KnownValues, from_environ, from_files, is_worth_masking

GLOBS = ("*TOKEN*", "*SECRET*", "*_KEY")


def test_variables_are_chosen_by_name_whatever_the_case() -> None:
    environ = {"GH_TOKEN": "one", "my_secret_x": "two", "DEPLOY_KEY": "three", "KEYBOARD": "four", "HOME": "five"}

    assert from_environ(environ, GLOBS) == ["one", "two", "three"]


def test_files_give_their_lines_and_missing_ones_nothing(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"first-17-value\n\n  second-18-value \xff\n")
    (tmp_path / "huge").write_bytes(b"x" * 100_000)

    values = from_files([tmp_path / "token", tmp_path / "missing", tmp_path / "huge", tmp_path])

    assert values == ["first-17-value", "second-18-value \udcff"]


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "short",
            "12345678901",
            "1.234.567",
            "2026-11-18",
            "aaaaaaaaaaaa",
            "/home/made/path",
            "~/x/y/z1234",
            "C:\\Users\\me",
        ),
        *(
            "${TOKEN_FROM_VAULT}",
            "$MY_TOKEN_VALUE",
            "<your-token-here>",
            "changeme-please",
            "password",
            "production",
            "localhost",
        ),
    ],
)
def test_values_that_would_blank_a_log_are_ignored(value: str) -> None:
    assert not is_worth_masking(value)
    assert not KnownValues([value])


@pytest.mark.parametrize(
    "value", ["zz-made-env-value-12345", "correct horse 9 battery", "Xk29fjQ1", "garden-chair-", b"bytes-value-77"]
)
def test_values_that_look_like_secrets_are_known(value: str | bytes) -> None:
    known = KnownValues([value])
    data = value if isinstance(value, bytes) else value.encode()

    assert (2, 2 + len(data)) in list(known.find(b"a %b b %b" % (data, data)))


def test_a_value_of_the_environment_that_is_no_utf8_is_found_in_an_address() -> None:
    found = list(KnownValues([b"Xk29\xfffjQ1".decode("utf-8", "surrogateescape")]).find(b"?a=Xk29%FFfjQ1&b"))

    assert (3, 14) in found


def test_every_form_is_found() -> None:
    value = 'tok "en" ü/1&2'
    known = KnownValues([value])
    escaped = json.dumps(value)[1:-1]
    deeper = json.dumps(escaped)[1:-1]
    forms = [value, escaped, deeper, quote(value, safe=""), quote(value), quote(value).lower(), html.escape(value)]

    for form in forms:
        data = f"<{form}>".encode()
        assert (1, len(data) - 1) in list(known.find(data)), form


@pytest.mark.parametrize("shift", range(3))
def test_base64_at_every_alignment_is_found_up_to_its_end(shift: int) -> None:
    known = KnownValues(["zz-made-env-value-12345"])
    encoded = base64.b64encode(b"u" * shift + b"zz-made-env-value-12345" + b":tail")

    (start, end), *_ = known.find(b'"%b"' % encoded)
    assert base64.b64decode(encoded[: (start - 1) // 4 * 4]) in b"u" * 3
    assert b"12345" not in base64.b64decode(encoded[-(-(end - 1) // 4) * 4 :])


@pytest.mark.parametrize(("size", "count"), [(64 * 1024, 1), (64 * 1024 + 1, 0)])
def test_a_file_of_known_values_has_at_most_64_kib(tmp_path: Path, size: int, count: int) -> None:
    (tmp_path / "values").write_bytes(b"x" * size)

    assert len(from_files([tmp_path / "values"])) == count
