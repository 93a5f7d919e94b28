"""What can be mutated, by package, and a sample of it."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Place:
    """A span of a file with the texts that may stand there instead; `function` is where it is called from, if known."""

    path: str
    line: int
    start: int
    end: int
    kind: str
    choices: tuple[bytes, ...]
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Mutant:
    """One place with one of its choices."""

    place: Place
    package: str
    text: bytes

    def source(self, original: bytes) -> bytes:
        return original[: self.place.start] + self.text + original[self.place.end :]

    def told(self, original: bytes) -> str:
        """The place and what differs in it."""
        was, now = original[self.place.start : self.place.end], self.text
        before = _alike(was, now)
        after = _alike(was[before:][::-1], now[before:][::-1])
        begin, stop = max(0, before - 12), max(0, after - 8)
        changed = f"{_short(was[begin : len(was) - stop])} -> {_short(now[begin : len(now) - stop])}"
        return f"{self.place.path}:{self.place.line} {self.place.kind}: {changed}"


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes at the beginning are the same."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _short(text: bytes) -> str:
    one_line = " ".join(text.decode(errors="replace").split())
    return (one_line if len(one_line) <= 80 else one_line[:70] + "…" + one_line[-9:]) or "nothing"


SHARES: Final = {"core": 25, "machines": 25, "engine": 20, "rules": 20, "formats": 10}
"""Of a hundred mutants. The rows of formats are data with more places than all the code, and each is alike."""


def package_of(path: str) -> str | None:
    if path.startswith("redaction/rules/tables/"):
        return "formats"
    if path.startswith("redaction/rules/") or path == "redaction/heuristics/words.toml":
        return "rules"
    for folder, package in {"exporter/core/": "core", "otel/machines/": "machines", "redaction/": "engine"}.items():
        if path.startswith(folder):
            return package
    return None


def places(root: Path) -> Iterator[Place]:
    """Every place of the packages below this tree."""
    from tests.mutation import python, tables

    for folder in ("exporter/core", "otel/machines", "redaction"):
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix == ".py":
                yield from python.places(path, file.read_bytes())
            elif file.suffix == ".toml":
                yield from tables.places(path, file.read_bytes())


def sample(found: Iterable[Place], count: int, seed: int, only: str = "") -> list[Mutant]:
    """A seeded sample without repetition: a share for each package, uniform over the places of a package."""
    by_package: dict[str, list[Place]] = {package: [] for package in SHARES}
    for place in found:
        package = package_of(place.path)
        if package is not None and place.path.startswith(only):
            by_package[package].append(place)
    mutants = []
    present = {package: there for package, there in by_package.items() if there}
    whole = sum(SHARES[package] for package in present)
    for package, there in present.items():
        dice = random.Random(f"{seed} {package}")
        chosen = dice.sample(there, min(len(there), round(count * SHARES[package] / whole)))
        mutants += [Mutant(place, package, dice.choice(place.choices)) for place in chosen]
    random.Random(seed).shuffle(mutants)  # so that the first of them say as much as all
    return mutants
