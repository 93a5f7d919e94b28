"""Recall by class and by shape of people's passwords, and what is masked of what is no secret.

`python -m tests.redaction.corpus.report --seed N --half held` prints both; misses are shown of the tuned halves only.
"""

import argparse
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from redaction.engine import Engine
from tests.redaction.corpus.made import HALVES, Case, cases
from tests.redaction.heldout.check import Outcome, redacted, strings, survival
from tests.redaction.heldout.report import KEY
from tests.shared import CACHE

PER_TEMPLATE = 12


@dataclass
class Figures:
    """How many lines there were and how many of them came out right, by class, and by shape at certain positions."""

    total: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    partial: list[Case] = field(default_factory=list)
    wrongs: Counter[str] = field(default_factory=Counter)
    wrong_templates: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, case: Case, outcome: Outcome) -> None:
        """Count one line."""
        left = survival(case.line, outcome.line, case.secrets)
        is_right = left.state == "gone" if case.secrets else outcome.line == case.line
        names = [case.group]
        if case.secrets:
            names.append("all positions" if case.group.startswith("positions: ") else "all classes")
        if case.group.startswith("positions: "):
            names.append(f"shape: {case.shape}")
        self.total.update(names)
        if is_right:
            self.right.update(names)
        else:
            self.wrong_templates[case.group].append(case.text)
        # Whole words of a password may be words of its text, so only what lost some of its runs is partial.
        if left.state == "part" and any(secret not in "\n".join(strings_of(outcome.line)) for secret in case.secrets):
            self.partial.append(case)
        self.wrongs.update(outcome.wrongs)

    def share(self, name: str) -> float:
        """The share of right ones; of a class without lines, all."""
        return self.right[name] / self.total[name] if self.total[name] else 1.0

    def shares(self, start: str = "") -> dict[str, float]:
        """The shares of all classes whose names begin so."""
        return {name: self.share(name) for name in self.total if name.startswith(start)}


def strings_of(line: bytes) -> list[str]:
    """All strings of a line."""
    return list(strings(json.loads(line)))


def measured(engine: Engine, seed: int, half: str, per_template: int = PER_TEMPLATE) -> Figures:
    """The figures of one half."""
    figures = Figures()
    for case in cases(seed, half, per_template):
        call = {"arguments": {"command": case.command}}
        rule = engine.rule_of_call(json.dumps(call).encode()) if case.command else None
        figures.add(case, redacted(engine, case.line, rule))
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--half", choices=HALVES, default="held")
    parser.add_argument("--misses", default="", help="show the misses of this class, of the tuned halves")
    options = parser.parse_args()
    figures = measured(Engine(key=KEY, cache_dir=CACHE), options.seed, options.half)
    for name, share in figures.shares().items():
        print(f"{name:26} {share:6.3f} of {figures.total[name]}")
    print("partial leaks", len(figures.partial), "broken promises", dict(figures.wrongs))
    if options.half.startswith("tuned") and options.misses:
        for group, texts in figures.wrong_templates.items():
            if group.startswith(options.misses):
                print(f"## {group}", *sorted(set(texts)), sep="\n  ")


if __name__ == "__main__":
    main()
