"""The content of exempt files is told from everything else, and what is not certain is not exempt."""

import json
from typing import Any

import pytest

from exporter.core.events import exempt_files
from exporter.core.events.exempt_files import ExemptFiles, span_at
from tests.core.made_events import event


def start(call: str, **arguments: Any) -> bytes:
    return event("s", kind="tool.execution_start", data=json.dumps({"toolCallId": call, "arguments": arguments}))


def complete(call: str) -> bytes:
    data = {"toolCallId": call, "result": {"content": "text"}}
    return event("c", kind="tool.execution_complete", data=json.dumps(data))


def message(**files_by_call: str) -> bytes:
    requests = [{"toolCallId": call, "arguments": {"path": file}} for call, file in files_by_call.items()]
    return event("m", kind="assistant.message", data=json.dumps({"content": "", "toolRequests": requests}))


@pytest.mark.parametrize(
    ("pattern", "name", "is_exempt"),
    [
        ("fixtures/**", "fixtures/a/b.json", True),
        ("fixtures/**", "/home/me/project/fixtures/a.json", True),
        ("fixtures/**", "C:\\project\\fixtures\\a.json", True),
        ("./fixtures/**", "./fixtures/a.json", True),
        ("fixtures/**", "fixtures", False),
        ("fixtures/**", "my-fixtures/a.json", False),
        ("fixtures/**", "fixtures/../.env", False),
        ("fixtures/**", "fixtures/../../fixtures/../.env", False),
        ("*.example", "/home/me/.env.example", True),
        ("*.example", "/home/me/a.example/.env", False),
        ("tests/**/*.json", "tests/a/b/c.json", True),
        ("tests/**/*.json", "tests/c.json", True),
        ("tests/**/*.json", "tests/c.json5", False),
        ("/srv/**", "/srv/a", True),
        ("/srv/**", "/home/srv/a", False),
        ("fixtures\\*.json", "fixtures/a.json", True),
        ("a?.txt", "a1.txt", True),
        ("a?.txt", "a/.txt", False),
        ("a[1].txt", "a[1].txt", True),
        ("fixtures/**", "fixtures/a\nb", True),
    ],
)
def test_a_pattern_names_these_files_and_no_others(pattern: str, name: str, is_exempt: bool) -> None:
    assert bool(ExemptFiles([pattern]).places(start("1", path=name))) is is_exempt


@pytest.mark.parametrize(
    ("arguments", "is_exempt"),
    [
        ({"path": "fixtures/a", "file_text": "x"}, True),
        ({"paths": ["fixtures/a", "fixtures/b"]}, True),
        ({"paths": ["fixtures/a", ".env"]}, False),
        ({"path": "fixtures/a", "file": ".env"}, False),
        ({"path": "fixtures/a", "paths": []}, True),
        ({"path": 1}, False),
        ({"paths": []}, False),
        ({"command": "cat fixtures/a"}, False),
        ({}, False),
    ],
)
def test_every_file_that_the_call_names_must_be_exempt(arguments: dict[str, Any], is_exempt: bool) -> None:
    assert bool(ExemptFiles(["fixtures/**"]).places(start("1", **arguments))) is is_exempt


def test_the_result_of_an_exempt_call_is_exempt_and_no_other() -> None:
    files = ExemptFiles(["fixtures/**"])
    files.places(start("1", path="fixtures/a"))
    files.places(start("2", path=".env"))

    assert [files.places(complete(call)) for call in "123"] == [("/data/result",), (), ()]


def test_of_a_message_only_the_arguments_of_exempt_calls_are() -> None:
    files = ExemptFiles(["fixtures/**"])

    assert files.places(message(one=".env", two="fixtures/a")) == ("/data/toolRequests/1/arguments",)
    assert files.places(complete("two")) == ("/data/result",)


@pytest.mark.parametrize("names", [("fixtures/a", ".env"), (".env", "fixtures/a")])
def test_an_id_that_two_calls_share_is_not_exempt(names: tuple[str, str]) -> None:
    files = ExemptFiles(["fixtures/**"])
    for name in names:
        files.places(start("1", path=name))

    assert files.places(complete("1")) == ()
    assert files.places(start("1", path="fixtures/a")) == ()


@pytest.mark.parametrize(
    "line",
    [b"", b'"toolCallId"', b'{"toolCallId":', b"\xff" + start("1", path="fixtures/a"), b"[" * 9999 + b'"toolCallId"'],
)
def test_what_is_no_event_has_nothing_exempt(line: bytes) -> None:
    assert ExemptFiles(["fixtures/**"]).places(line) == ()


def test_a_place_is_found_in_the_raw_line() -> None:
    line = b'{"data" : {"x":[1, {"arguments":{"a":"\\"}"}}], "x2":0}}'

    assert [span_at(line, place) for place in ("/data/y", "/data/x/2", "/data/x/y", "/data/x2/y")] == [None] * 4
    span = span_at(line, "/data/x/1/arguments")
    assert span is not None
    assert line[slice(*span)] == b'{"a":"\\"}"}'


def test_as_many_calls_as_may_be_open_are_remembered_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exempt_files, "_CALLS_MAX", 2)
    files = ExemptFiles(["fixtures/**"])
    for call in "121":
        files.places(start(call, path="fixtures/a"))

    assert [files.places(complete(call)) for call in "12"] == [("/data/result",)] * 2
    files.places(start("3", path="fixtures/a"))
    assert [files.places(complete(call)) for call in "213"] == [(), ("/data/result",), ("/data/result",)]


@pytest.mark.parametrize(("length", "is_exempt"), [(4_096, True), (4_097, False)])
def test_a_name_may_have_4096_characters(length: int, is_exempt: bool) -> None:
    name = "fixtures/" + "a" * (length - len("fixtures/"))

    assert bool(ExemptFiles(["fixtures/**"]).places(start("1", path=name))) is is_exempt


@pytest.mark.parametrize(
    "key", ["paths", "file", "files", "filename", "fileName", "file_name", "file_path", "filePath"]
)
def test_a_file_is_named_under_any_of_these_keys(key: str) -> None:
    assert ExemptFiles(["fixtures/**"]).places(start("1", **{key: "fixtures/a"})) == ("/data/arguments",)
    assert ExemptFiles(["fixtures/**"]).places(start("1", path="fixtures/a", **{key: ".env"})) == ()


def test_only_the_end_of_an_exempt_call_is_exempt_by_its_id() -> None:
    files = ExemptFiles(["fixtures/**"])
    files.places(start("1", path="fixtures/a"))
    progress = event("p", kind="tool.execution_progress", data='{"toolCallId":"1","result":{"content":"text"}}')

    assert files.places(progress) == ()
