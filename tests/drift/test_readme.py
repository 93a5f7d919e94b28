"""What the README tells people to type exists, and what exists is told."""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from exporter.cli.commands import COMMANDS, find
from exporter.cli.help import EXIT_MEANINGS
from exporter.cli.parser import build, option_strings, split
from tests.drift.repository import ROOT, text

PLACEHOLDERS: Final = {"ID": "00000000-0000-4000-8000-000000000000", "FILE": "exporter.toml", "ADDRESS": "127.0.0.1"}
DOCUMENTS: Final = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "deploy/README.md")
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
    words, rest = split([PLACEHOLDERS.get(word, word) for word in example.split()[1:]])
    command = find(words)

    assert command is not None
    build(words, command.leaf()).parse_args(rest)


@pytest.mark.parametrize("words", [command.words for command in COMMANDS])
def test_every_command_is_in_the_readme(words: str) -> None:
    assert any(re.match(rf"exporter {words}\b", line) for line in _typed("README.md", "exporter"))


def test_a_flag_that_is_named_alone_belongs_to_some_command() -> None:
    named = {flag for document in DOCUMENTS for flag in re.findall(r"`(--[a-z-]+)`", text(document))}
    known = {option for command in COMMANDS for option in option_strings(build(command.words, command.leaf()))}

    assert named - known == set()


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", text("Makefile")))
    named = {line.split()[1] for document in DOCUMENTS for line in _typed(document, "make")}

    assert named <= targets
    assert targets - {"help"} <= named


def test_the_exit_codes_are_those_of_the_help() -> None:
    told = {int(code): words for code, words in re.findall(r"(?<=\| )(\d) \| ([^|]+?) (?=\|)", text("README.md"))}

    assert set(told) == {int(code) for code in EXIT_MEANINGS}
    assert all(told[int(code)].split()[0].strip(":") in meaning for code, meaning in EXIT_MEANINGS.items())


def test_the_files_that_documents_name_exist() -> None:
    named = {
        name
        for document in DOCUMENTS
        for name in re.findall(
            r"`((?:docs|tests|exporter|config|redaction|deploy|changelog\.d|\.ci)/[\w./-]+)`", text(document)
        )
    }

    assert {name for name in named if not (ROOT / name).exists()} == set()
