"""Compares two outputs case by case, and says what differs first."""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, TypeAlias

from tests.golden.facts import WORDED
from tests.golden.store import Goldens, Kind

WORDS: Final = Path(__file__).with_name("words.toml")
Reword: TypeAlias = Callable[[str], str]
_CONTEXT: Final = 60
_LINES_SHOWN: Final = 6


@dataclass(slots=True)
class Outcome:
    """How the cases of one group compare. `told` describes those that are not equal, in order."""

    group: str
    equal: int = 0
    reworded: int = 0
    """Of the equal ones, those that are equal once words are replaced."""
    different: int = 0
    missing: int = 0
    new: int = 0
    told: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing differs, and no case is on one side only."""
        return not (self.different or self.missing or self.new)


def tables_of(group: str) -> tuple[str, ...]:
    """Return the tables of words that hold for a group: texts of commands repeat some of the pages'."""
    return ("pages",) if group.removeprefix("state-") in ("pages", "assets") else ("pages", "commands")


def read_words(path: Path = WORDS, tables: Sequence[str] = ("pages", "commands")) -> Reword:
    """Return what replaces old words by new ones, the longest first, and only whole words."""
    known = tomllib.loads(path.read_text(encoding="utf-8"))
    words: dict[str, str] = {old: new for table in tables for old, new in known.get(table, {}).items()}
    if not words:
        return lambda text: text
    either = "|".join(re.escape(old) for old in sorted(words, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)")
    return lambda text: pattern.sub(lambda found: words[found[0]], text)


def words_of(group: str) -> Reword:
    """Return what replaces the words of a group that the project changed on purpose."""
    return read_words(tables=tables_of(group))


def compare(
    before: Goldens, after: Goldens, words: Callable[[str], Reword], groups: Sequence[str] = ()
) -> Iterator[Outcome]:
    """Yield an outcome per group of either side; `words` gives what replaces old words in a group."""
    names = {*before.groups(), *after.groups()}
    for group in sorted(names.intersection(groups) if groups else names):
        outcome, ours, theirs = Outcome(group), before.cases(group), after.cases(group)
        reword = words(group)
        for name, (kind, digest) in ours.items():
            if name not in theirs:
                outcome.missing += 1
                outcome.told.append(f"{name}: only before")
            elif digest == theirs[name][1]:
                outcome.equal += 1
            else:
                told = difference(kind, before.content(digest), after.content(theirs[name][1]), reword)
                if told is None:
                    outcome.equal += 1
                    outcome.reworded += 1
                else:
                    outcome.different += 1
                    outcome.told.append(f"{name}:\n{told}")
        new = [name for name in theirs if name not in ours]
        outcome.new = len(new)
        outcome.told += [f"{name}: only after" for name in new]
        yield outcome


def difference(kind: Kind, before: bytes, after: bytes, reword: Reword) -> str | None:
    """Say where two contents differ first; None when they are equal once words are replaced."""
    if kind == "bytes":
        return None if before == after else _of_bytes(before, after)
    ours, theirs = (side.decode("utf-8", "backslashreplace").split("\n") for side in (before, after))
    same = _same_fact if kind == "facts" else _same_line
    if len(ours) == len(theirs) and all(same(*pair, reword) for pair in zip(ours, theirs, strict=True)):
        return None
    # Lines that are equal once words are replaced are the same for what follows.
    told = set(theirs)
    ours = [new if (new := reword(line)) in told and same(line, new, reword) else line for line in ours]
    for step, first, end, other_first, other_end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if step != "equal":
            lines = [f"  line {first + 1}"]
            lines += [f"  - {_short(line)}" for line in ours[first:end][:_LINES_SHOWN]]
            lines += [f"  + {_short(line)}" for line in theirs[other_first:other_end][:_LINES_SHOWN]]
            return "\n".join(lines)
    return "  the same lines with other space"


def _same_fact(before: str, after: str, reword: Reword) -> bool:
    return before == after or (before.partition("\t")[0] in WORDED and reword(before) == after)


def _same_line(before: str, after: str, reword: Reword) -> bool:
    """Columns of a table are as wide as their words, so that with other words the space between them is another."""
    return before == after or reword(before).split() == after.split() != before.split()


def _of_bytes(before: bytes, after: bytes) -> str:
    at = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    start = max(0, at - _CONTEXT)
    return (
        f"  byte {at} of {len(before)} and {len(after)}\n"
        f"  - {before[start : at + _CONTEXT]!r}\n  + {after[start : at + _CONTEXT]!r}"
    )


def _short(line: str) -> str:
    return line if len(line) <= 200 else f"{line[:200]}…"
