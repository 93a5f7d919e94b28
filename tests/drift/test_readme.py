"""What the documents tell people to type exists, and what exists is documented."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from config.load import load
from exporter.cli.command import GLOBAL_OPTIONS
from exporter.cli.registry import COMMANDS, find
from exporter.errors import Exit
from tests.cli.command_line import parse
from tests.drift.repository import ROOT, pyproject, text
from tests.parity.reasons import SPANS, TOKENS

PLACEHOLDERS: Final = {
    "ID": "00000000-0000-4000-8000-000000000000",
    "FILE": "exporter.toml",
    "ADDRESS": "127.0.0.1",
    "N": "1",
    "DIR": "backup",
    "URL": "sqlite:///srv/mc.db",
}
DOCUMENTS: Final = (
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "deploy/README.md",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md"))),
)
CODE: Final = re.compile(r"`([^`\n]+)`|^(?:\$ )?((?:exporter|make) .+)$", re.MULTILINE)


def _typed(document: str, program: str) -> Iterator[str]:
    for inline, block in CODE.findall(text(document)):
        for line in re.split(r" {2,}", (inline or block).partition("#")[0]):
            if line.startswith(f"{program} "):
                yield line.strip()


def _examples() -> list[str]:
    return sorted({line for document in DOCUMENTS for line in _typed(document, "exporter")})


@pytest.mark.parametrize("example", _examples())
def test_a_command_of_the_documents_can_be_typed(example: str) -> None:
    ctx = parse(*(PLACEHOLDERS.get(word, word) for word in example.split()[1:]))

    assert find(ctx.command_path.removeprefix("exporter ")) is not None


@pytest.mark.parametrize("words", [command.words for command in COMMANDS])
def test_every_command_is_documented(words: str) -> None:
    assert any(re.match(rf"exporter {words}\b", line) for line in _typed("docs/commands.md", "exporter"))


def test_a_flag_that_is_named_alone_belongs_to_some_command() -> None:
    named = {flag for document in DOCUMENTS for flag in re.findall(r"`(--[a-z-]+)`", text(document))}
    known = {name for command in COMMANDS for param in (*command.load().params, *GLOBAL_OPTIONS) for name in param.opts}

    assert named - known == set()


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", text("Makefile")))
    named = {line.split()[1] for document in DOCUMENTS for line in _typed(document, "make")}

    assert named <= targets
    assert targets - {"help"} <= named


def test_the_exit_codes_are_those_of_the_help() -> None:
    told = {
        int(code): words for code, words in re.findall(r"(?<=\| )(\d) \| ([^|]+?) (?=\|)", text("docs/commands.md"))
    }

    assert set(told) == {int(code) for code in Exit}
    assert all(told[int(code)].split()[0].strip(":") in code.meaning for code in Exit)


def test_the_files_that_documents_name_exist() -> None:
    named = {
        name
        for document in DOCUMENTS
        for name in re.findall(
            r"`((?:docs|tests|exporter|config|redaction|deploy|changelog\.d|\.ci)/[\w./-]+)`", text(document)
        )
    }

    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_the_bench_can_fill_its_table() -> None:
    before, begin, rest = text("docs/benchmarks.md").partition("<!-- bench:begin -->\n")
    table, end, after = rest.partition("<!-- bench:end -->\n")

    assert all((before, begin, table, end, after))


def test_every_runtime_dependency_has_its_licence_and_its_reason_told() -> None:
    rows = [line for line in text("docs/decisions/dependencies.md").lower().splitlines() if line.startswith("| ")]
    names = {Requirement(line).name.lower() for line in pyproject()["project"]["dependencies"]}

    assert {name for name in names if not any(name in row.split("|")[1] for row in rows)} == set()


def test_the_configuration_of_the_readme_is_accepted(own_home: Path) -> None:
    example = "".join(re.findall(r"```toml\n(.+?)```", text("README.md"), re.DOTALL))
    file = own_home / "config" / "exporter" / "exporter.toml"
    file.parent.mkdir(parents=True)
    file.write_text(example, encoding="utf-8")
    (file.parent / "mc.token").write_text("made-up", encoding="utf-8")
    (own_home / ".config").symlink_to(own_home / "config")

    loaded = load(file=file, environ=os.environ, flags={}, fallbacks=False)

    (receiver,) = loaded.settings.mission_control.values()
    assert receiver.url == "https://mc.example.com/agents"
    (endpoint,) = loaded.settings.otel.values()
    assert endpoint.endpoint == "http://localhost:4318"


def test_what_telemetry_cannot_give_is_in_its_document() -> None:
    told = text("docs/parity.md")

    assert [name for name in (*SPANS, *(key for _, key in TOKENS)) if name not in told] == []
