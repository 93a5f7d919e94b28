"""What the scripted model says: a scenario is a list of turns, a turn is one or more steps.

A prompt picks its scenario with `@@script NAME`. Every secret here is made up, and put together at run time so that
no scanner trips on this file.
"""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

WORKING_DIRECTORY = "{working_directory}"


@dataclass(frozen=True, slots=True)
class Say:
    """The model answers with text, after thinking if `reasoning` is given."""

    text: str
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """The model asks for a tool."""

    tool: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class Fail:
    """The model server answers with this HTTP status."""

    status: int


Step: TypeAlias = Say | Call | Fail
Turn: TypeAlias = tuple[Step, ...]


def prompt(scenario: str, working_directory: Path | str) -> str:
    """The prompt that plays this scenario."""
    return f"cwd={working_directory} @@script {scenario}"


def _letters(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(_random.choices(alphabet, k=count))


# Seeded, so that a run that failed can be repeated.
_random = random.Random(20261118)

SECRETS = {
    "github": "ghp" + "_" + _letters(36),
    "github_server": "ghs" + "_" + _letters(36),
    "aws": "AKIA" + _letters(16, string.ascii_uppercase + "234567"),
    "slack": "xoxb" + f"-{_letters(12, string.digits)}-{_letters(12, string.digits)}-{_letters(24)}",
    "stripe": "sk" + "_live_" + _letters(24),
    "openai": "sk-" + _letters(20) + "T3Blbk" + "FJ" + _letters(20),
    "token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJtYWRlLXVwIn0." + _letters(43),
    "address": _letters(14),
}


def _shell(command: str, description: str, **more: object) -> Call:
    return Call("bash", {"command": command, "description": description, **more})


def _wait(seconds: int) -> Call:
    return _shell(f"sleep {seconds}; echo waited", "Wait for the others", initial_wait=60)


def _agent(name: str, scenario: str, *, kind: str = "task", mode: str = "background") -> Call:
    arguments = {"name": name, "agent_type": kind, "description": f"Agent {name}", "mode": mode}
    return Call("task", {**arguments, "prompt": f"Play your part. @@script {scenario}"})


def _print_secrets() -> Call:
    lines = [f"{name} {value}" for name, value in SECRETS.items() if name != "address"]
    lines.append(f"postgres://clerk:{SECRETS['address']}@db.example/books")
    return _shell("printf '%s\\n' " + " ".join(f"'{line}'" for line in lines), "Print made-up secrets")


_ATTACHED = _shell("sleep 3; echo attached-end; exit 5", "Attached shell", mode="async", shellId="attached")
_DETACHED = _shell("sleep 3; echo detached-end", "Detached shell", mode="async", detach=True, shellId="detached")
_NOTED = (Say("Noted."), Say("Noted once more."))


def _turns(*turns: Step | Turn) -> Sequence[Turn]:
    return [turn if isinstance(turn, tuple) else (turn,) for turn in turns]


SCENARIOS: dict[str, Sequence[Turn]] = {
    "hello": _turns(Say("Good day. This is a scripted answer.")),
    "bash": _turns(_shell("echo out; echo err >&2; exit 3", "Write to both streams"), Say("It ended with 3.")),
    "secrets": _turns(_print_secrets(), Say(f"The GitHub token is {SECRETS['github']}, the other {SECRETS['slack']}.")),
    "slow": _turns(
        _shell("for n in 1 2 3 4; do echo tick $n; sleep 1; done", "Tick", initial_wait=30), Say("Four ticks.")
    ),
    "bgshell": _turns(_ATTACHED, Say("It runs in the background."), *_NOTED),
    "detach": _turns(_DETACHED, Say("It runs on its own."), *_NOTED),
    "bgboth": _turns((_ATTACHED, _DETACHED), _wait(6), Say("Both have ended."), *_NOTED),
    "sub_sync": _turns(_agent("at-once", "child_bash", mode="sync"), Say("The agent is done.")),
    "sub_bg": _turns(_agent("behind", "child_bash", kind="explore"), _wait(6), Say("Waited."), *_NOTED),
    "sub_two": _turns(
        (_agent("first", "child_bash"), _agent("second", "child_text", kind="general-purpose")),
        _wait(6),
        Say("Two agents ran."),
        *_NOTED,
    ),
    "sub_fail": _turns(_agent("doomed", "child_fail"), _wait(4), Say("It failed."), *_NOTED),
    "sub_nest": _turns(_agent("outer", "child_nest", kind="general-purpose", mode="sync"), Say("Two levels are done.")),
    "sub_nest_fail": _turns(
        _agent("outer", "child_nest_fail", kind="general-purpose", mode="sync"), Say("The inner one failed.")
    ),
    "par3": _turns(
        (
            _shell("sleep 1; echo one", "Last to end", initial_wait=30),
            _shell("echo two", "First to end"),
            _shell("sleep 0.5; echo three", "Second to end", initial_wait=30),
        ),
        Say("Three at once."),
    ),
    "mixed": _turns(
        (Say("I look at both.", reasoning="One first."), _shell("sleep 0.7; echo a", "Slow"), _shell("echo b", "Fast")),
        (Say("And once more.", reasoning="Then another."), _shell("echo c", "Third")),
        Say("Seen."),
    ),
    "bash_err": _turns((Say("I try."), _shell("echo tried", "Try")), Fail(400)),
    "mixed_slow": _turns(
        (Say("A quick one."), _shell("echo quick", "Quick")),
        (
            Say("Now a slow one."),
            _shell("sleep 20; echo slow", "Slow", initial_wait=30),
            _shell("echo beside", "Beside"),
        ),
        Say("Both ended."),
    ),
    "child_bash": _turns(_shell("echo from-the-agent", "Say something"), Say("The agent has spoken.")),
    "child_text": _turns(Say("The agent had nothing to do.")),
    "child_fail": _turns(Fail(400)),
    "child_nest": _turns(_agent("inner", "child_bash", mode="sync"), Say("The inner agent is done.")),
    "child_nest_fail": _turns(_agent("inner", "child_fail", mode="sync"), Say("The inner agent failed.")),
    "instr": _turns(Call("view", {"path": f"{WORKING_DIRECTORY}/ledger/entry.py"}), Say("Read.")),
    "edit": _turns(
        Call("create", {"path": f"{WORKING_DIRECTORY}/list.txt", "file_text": "one\ntwo\n"}),
        Call("edit", {"path": f"{WORKING_DIRECTORY}/list.txt", "old_str": "two", "new_str": "2\n3"}),
        Say("Changed."),
    ),
    "err500": _turns(Fail(500)),
    "err400": _turns(Fail(400)),
    "badtool": _turns(Call("tool_that_is_not", {"n": 1}), Say("There is no such tool.")),
    "report": _turns(Call("report_intent", {"intent": "Looking around"}), Say("Reported.")),
    "extsend": _turns(_wait(4), Say("An extension had four seconds.")),
    "big": _turns(Say("y" * 70_000)),
    "many": _turns(*(_shell(f"echo number {n}", f"Number {n}") for n in range(40)), Say("Forty commands.")),
    "views": _turns(*((Call("view", {"path": WORKING_DIRECTORY}),) * 100 for _ in range(3)), Say("Seen often.")),
    "reason": _turns(Say("So it is.", reasoning="If it were not, it would not be. It is.")),
    "odd": _turns(Say("Tab\there, null \u0000, line \u2028 paragraph \u2029, é, 😀, and \\ud800.")),
}

# Played on agent hosts only: some would keep the CLI for long, or are cancelled.
ON_HOSTS = ("par3", "err400", "mixed", "bash_err", "mixed_slow", "sub_nest_fail", "views")
TOP_LEVEL = [name for name in SCENARIOS if not name.startswith("child_") and name not in ON_HOSTS]
