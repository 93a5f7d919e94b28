"""What a workspace.yaml says is read as far as it is usable, and nothing in it can do harm."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.files.workspace import Workspace, plain_facts, read_workspace, yaml_facts

EXPORTED = """\
id: 650fd32e-b213-4bb7-b3ee-aa19129cb0b6
cwd: /home/dev/work
git_root: /home/dev/work
branch: master
client_name: sdk
name: Fix the build at 10:30
user_named: true
summary_count: 0
created_at: 2026-11-18T10:11:42.000Z
updated_at: 2026-11-18T10:11:42.170Z
repository: owner/name
host_type: github
remote_steerable: false
mc_task_id: 8d582ae0-f4cc-4c5e-a5d4-13287c91a0fa
mc_session_id: 85b4cafd-c016-4160-9b60-5b334586d3c1
mc_last_event_id: e4a5ca35-9a0d-4f93-943e-81459dec6cb7
"""
NOTHING = Workspace(
    title=None,
    cwd=None,
    git_root=None,
    repository=None,
    branch=None,
    mc_task_id=None,
    mc_session_id=None,
    mc_last_event_id=None,
)


def read(tmp_path: Path, content: str | bytes) -> Workspace | None:
    path = tmp_path / "workspace.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_workspace(str(path))


def test_an_exported_session_gives_all_its_facts(tmp_path: Path) -> None:
    workspace = read(tmp_path, EXPORTED.replace("Fix the build at 10:30", '"Fix: the build"'))

    assert workspace == Workspace(
        title="Fix: the build",
        cwd="/home/dev/work",
        git_root="/home/dev/work",
        repository="owner/name",
        branch="master",
        mc_task_id="8d582ae0-f4cc-4c5e-a5d4-13287c91a0fa",
        mc_session_id="85b4cafd-c016-4160-9b60-5b334586d3c1",
        mc_last_event_id="e4a5ca35-9a0d-4f93-943e-81459dec6cb7",
    )


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("plain words", "plain words"),
        ("123", "123"),
        ("1e3", "1e3"),
        ("2026-11-18", "2026-11-18"),
        ("yes", "yes"),
        ("true", "true"),
        ("C:\\work", "C:\\work"),
        ("a b # a comment", "a b"),
        ("a#b", "a#b"),
        ("'it''s: quoted'", "it's: quoted"),
        ('"tab\\t\\u00e9\\U0001F600"', "tab\té\U0001f600"),
        ("größe naïve 日本", "größe naïve 日本"),
        ("|\n  two\n  lines", "two\nlines\n"),
        (">-\n  folded\n  words", "folded words"),
        ("over\n  two lines", "over two lines"),
        ("null", None),
        ("NULL", None),
        ("~", None),
        ("", None),
        ('"null"', "null"),
        ("[a, list]", None),
        ("{a: mapping}", None),
    ],
)
def test_a_title_is_the_text_that_was_written(tmp_path: Path, written: str, title: str | None) -> None:
    workspace = read(tmp_path, f"cwd: /work\nname: {written}\nbranch: main\n")

    assert workspace is not None
    assert (workspace.cwd, workspace.title, workspace.branch) == ("/work", title, "main")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"- a\n- list\n",
        b"just words\n",
        b"name: [unclosed\n",
        b"name: 'unclosed\n",
        b"\tname: tab\n",
        b"name: a: b\n",
        b"name: \xff\xfe\n",
        b"name: a\0b\n",
        b"\0" * 4096,
        bytes(range(256)),
        b'name: "\\UFFFFFFFF"\n',
        b"name: *unknown\n",
        b"%YAML 9.9\n---\nname: a\n",
        b"name: " + b"[" * 100_000,
        b"[" * 100_000,
        b"{a: " * 50_000,
        b"? " * 50_000,
    ],
)
def test_what_is_not_yaml_with_keys_is_nothing(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content) is None


def test_a_mapping_without_known_keys_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "{}") == NOTHING
    assert read(tmp_path, "1: 2\n? [a]\n: b\nother: c\n") == NOTHING


def test_aliases_do_not_multiply(tmp_path: Path) -> None:
    levels = "".join(f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))

    workspace = read(tmp_path, f"k0: &a0 [x]\n{levels}name: &title fine\nbranch: *title\n")

    assert workspace is not None
    assert (workspace.title, workspace.branch) == ("fine", "fine")


def test_the_last_of_two_equal_keys_holds(tmp_path: Path) -> None:
    for first in ("one", "'one'"):
        workspace = read(tmp_path, f"name: {first}\nname: two\n")

        assert workspace is not None
        assert workspace.title == "two"


def test_a_byte_order_mark_is_not_part_of_a_key(tmp_path: Path) -> None:
    workspace = read(tmp_path, "\ufeffname: marked\n")

    assert workspace is not None
    assert workspace.title == "marked"


def test_a_file_beyond_one_mebibyte_is_not_read(tmp_path: Path) -> None:
    assert read(tmp_path, "name: a\n" + "#" * (1024 * 1024)) is None
    assert read(tmp_path, "name: a\n" + "#" * (1024 * 1024 - 8)) is not None


def test_what_is_not_a_regular_file_is_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)

    missing = (tmp_path / "missing", tmp_path / ("x" * 300), Path("with\0nul"))
    for path in (pipe, loop, tmp_path, Path("/dev/zero"), *missing):
        assert read_workspace(str(path)) is None


def test_the_files_of_the_real_program_take_the_short_way() -> None:
    assert plain_facts(EXPORTED) is not None


@given(
    st.lists(
        st.tuples(st.sampled_from(["name", "cwd", "user_named"]), st.text("ab/ :#-'\"0.[]{},&*!|>%@~\t\\é")), max_size=4
    )
)
def test_the_short_way_says_what_the_library_says(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in pairs)

    facts = plain_facts(text)

    assert facts is None or facts == yaml_facts(text)


@given(st.binary(max_size=200) | st.text("abn:{}[]-? |>&*!%'\"\\U0\n\t#,").map(str.encode))
def test_no_content_raises(content: bytes) -> None:
    text = content.decode("utf-8", errors="ignore")

    for read_facts in (plain_facts, yaml_facts):
        facts = read_facts(text)

        assert facts is None or all(isinstance(value, str) for value in facts.values())
