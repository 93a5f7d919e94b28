"""`exporter completion`: scripts for the shell, made from the same parsers that read the command line."""

import re
import shlex
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from exporter.cli.completion_scripts import BASH, ZSH
from exporter.cli.context import CommandContext
from exporter.cli.parser import GLOBAL_WITH_VALUE, build
from exporter.cli.registry import COMMANDS, GROUPS, Command, Example, Leaf, first_words, members

# `sessions list --json` writes one compact document; the pattern picks the ids out of it without a JSON tool.
_SESSION_IDS: Final = r"""exporter sessions list --json 2>/dev/null | grep -o '"id":"[^"]*"' | cut -d'"' -f4"""
_FILES: Final = ("FILE", "DIR")


@dataclass(frozen=True, slots=True)
class Flag:
    """One option of a command: its spellings, what it says of itself, and the kind of value it takes."""

    spellings: tuple[str, ...]
    help: str
    value: str  # the metavar; empty when it takes none
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One command with its options; `takes_session` when its argument is a session id."""

    command: Command
    flags: tuple[Flag, ...]
    takes_session: bool


def entries() -> list[Entry]:
    """Every command as its parser defines it."""
    found = []
    for command in COMMANDS:
        actions = build(command.words, command.leaf())._actions
        flags = tuple(_flag(action) for action in actions if action.option_strings)
        takes_session = any(action.metavar == "ID" and not action.option_strings for action in actions)
        found.append(Entry(command, flags, takes_session))
    return found


def _flag(action: Action) -> Flag:
    value = "" if action.nargs == 0 else str(action.metavar or "VALUE")
    said = "" if action.help in (None, SUPPRESS) else str(action.help)
    return Flag(tuple(action.option_strings), said, value, tuple(action.choices or ()))


def _group_words(group: str) -> list[str]:
    return [command.words.split()[1] for command in members(group)]


def bash() -> str:
    """A completion function for bash 3.2 and later."""
    known = entries()
    flags = [(entry, flag, spelling) for entry in known for flag in entry.flags for spelling in flag.spellings]
    parts = {
        "WORDS": " ".join(first_words()),
        "GROUPS": "\n".join(f"    {group}) words={shlex.quote(' '.join(_group_words(group)))} ;;" for group in GROUPS),
        "FLAGS": "\n".join(_bash_flags(entry) for entry in known),
        "SESSION_COMMANDS": "|".join(shlex.quote(entry.command.words) for entry in known if entry.takes_session),
        "SESSION_IDS": _SESSION_IDS,
        "GLOBAL_WITH_VALUE": "|".join(GLOBAL_WITH_VALUE),
        "WITH_VALUE": "|".join(dict.fromkeys(spelling for _, flag, spelling in flags if flag.value)),
        "WITH_FILE": "|".join(dict.fromkeys(spelling for _, flag, spelling in flags if flag.value in _FILES)),
        "CHOICES": "\n".join(
            f'    {spelling}) COMPREPLY=($(compgen -W {shlex.quote(" ".join(flag.choices))} -- "$cur")); return ;;'
            for _, flag, spelling in flags
            if flag.choices
        ),
    }
    return _filled(BASH, parts)


def _filled(script: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda found: parts[found[1]], script)


def _bash_flags(entry: Entry) -> str:
    spellings = " ".join(spelling for flag in entry.flags for spelling in flag.spellings)
    return f"    {shlex.quote(entry.command.words)}) flags={shlex.quote(spellings)} ;;"


def zsh() -> str:
    """A completion function for zsh."""
    parts = {
        "SESSION_IDS": _SESSION_IDS,
        "COMMANDS": "\n".join(f"    {_zsh_pair(word, _summary(word))}" for word in first_words()),
        "GROUPS": "\n".join(f"    {group}) subcommands=({_zsh_members(group)}) ;;" for group in GROUPS),
        "SPECS": "\n".join(_zsh_specs(entry) for entry in entries()),
    }
    return _filled(ZSH, parts)


def _zsh_specs(entry: Entry) -> str:
    session = [shlex.quote("1:session:_exporter_sessions")] if entry.takes_session else []
    specs = " ".join([*(_zsh_spec(flag) for flag in entry.flags), *session])
    return f"    {shlex.quote(entry.command.words)}) specs=({specs}) ;;"


def _zsh_members(group: str) -> str:
    return " ".join(_zsh_pair(command.words.split()[1], command.summary) for command in members(group))


def _zsh_pair(word: str, said: str) -> str:
    return shlex.quote(f"{word}:{said.replace(':', ' -')}")


def _zsh_spec(flag: Flag) -> str:
    said = flag.help.translate({ord("["): "(", ord("]"): ")", ord(":"): " -"})
    what = "_files" if flag.value in _FILES else "_exporter_sessions" if flag.value == "ID" else ""
    what = f"({' '.join(flag.choices)})" if flag.choices else what
    value = f":{flag.value}:{what}" if flag.value else ""
    return " ".join(shlex.quote(f"*{spelling}[{said}]{value}") for spelling in flag.spellings)


def fish() -> str:
    """Completions for fish."""
    lines = [
        "# fish completion for exporter; load it with: exporter completion fish | source",
        "complete -c exporter -f",
    ]
    top = "__fish_use_subcommand"
    lines += [f"complete -c exporter -n {top} -a {word} -d {shlex.quote(_summary(word))}" for word in first_words()]
    for group in GROUPS:
        words = _group_words(group)
        test = shlex.quote(
            f"__fish_seen_subcommand_from {group}; and not __fish_seen_subcommand_from {' '.join(words)}"
        )
        lines += [
            f"complete -c exporter -n {test} -a {c.words.split()[1]} -d {shlex.quote(c.summary)}"
            for c in members(group)
        ]
    for entry in entries():
        test = shlex.quote("; and ".join(f"__fish_seen_subcommand_from {word}" for word in entry.command.words.split()))
        lines += [f"complete -c exporter -n {test} {_fish_flag(flag)}" for flag in entry.flags]
        if entry.takes_session:
            lines.append(f"complete -c exporter -n {test} -a {shlex.quote(f'({_SESSION_IDS})')}")
    return "\n".join(lines) + "\n"


def _fish_flag(flag: Flag) -> str:
    names = " ".join(f"-l {s[2:]}" if s.startswith("--") else f"-s {s[1:]}" for s in flag.spellings)
    value = " -r" if flag.value else ""
    value += " -F" if flag.value in _FILES else ""
    value += f" -a {shlex.quote(' '.join(flag.choices))}" if flag.choices else ""
    value += f" -a {shlex.quote(f'({_SESSION_IDS})')}" if flag.value == "ID" else ""
    return f"{names}{value} -d {shlex.quote(flag.help)}"


def _summary(word: str) -> str:
    return GROUPS.get(word) or next(command.summary for command in COMMANDS if command.words == word)


def _build(_: ArgumentParser) -> None:
    """`completion` takes no arguments of its own."""


def _leaf(shell: str, script: Callable[[], str], example: Example) -> Leaf:
    def run(invocation: CommandContext) -> int:
        invocation.out.write(script())
        return 0

    return Leaf(f"Writes the completion script for {shell}.", (example,), _build, run)


LEAVES = {
    "completion bash": _leaf(
        "bash", bash, Example("source <(exporter completion bash)", "for this shell; put it into ~/.bashrc to keep it")
    ),
    "completion zsh": _leaf(
        "zsh", zsh, Example("source <(exporter completion zsh)", "for this shell; put it into ~/.zshrc to keep it")
    ),
    "completion fish": _leaf(
        "fish", fish, Example("exporter completion fish | source", "for this shell; put it into config.fish to keep it")
    ),
}
