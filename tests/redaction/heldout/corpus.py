"""The held-out corpus: made-up secrets of every kind in every place, as session events with labels; seeded."""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.redaction.heldout.dice import Dice, Make, Secret
from tests.redaction.heldout.kinds_cloud import CLOUD
from tests.redaction.heldout.kinds_code import CODE
from tests.redaction.heldout.kinds_keys import KEYS, SIGNED
from tests.redaction.heldout.kinds_machines import MACHINES
from tests.redaction.heldout.kinds_places import PLACES
from tests.redaction.heldout.kinds_services import SERVICES
from tests.redaction.heldout.settings import SETTINGS, Setting
from tests.redaction.heldout.slots import SLOTS, Event, Session, encode
from tests.redaction.heldout.views import BREAKS_LINES, CUT_ENDS, VIEWS, View, cut

TOKENS: dict[str, Make] = CLOUD | CODE | SERVICES | MACHINES | SIGNED
FRAGMENTS: dict[str, Make] = KEYS | PLACES
NEUTRAL = ("VALUE", "RESULT", "OUT", "DATA", "FIELD")
CUT_SHARE, STRUCTURED_SHARE, NEUTRAL_SHARE = 0.06, 0.14, 0.15
PLAIN_SHARE = 0.25  # of texts are shown as they are


@dataclass(frozen=True, slots=True)
class Case:
    """A line with a secret: what kind, where it stands, and the random runs that must be gone."""

    line: bytes
    kind: str
    setting: str
    view: str
    slot: str
    parts: tuple[str, ...]


def cases(seed: int, per_kind: int) -> Iterator[Case]:
    """So many lines of every kind; the same seed gives the same lines."""
    dice = Dice(seed)
    session = Session(dice)
    for kind, make in (TOKENS | FRAGMENTS).items():
        for at in range(per_kind):
            if at % 40 == 0:
                session = Session(dice)
            secret = make(dice)
            yield from itertools.islice(_attempts(dice, session, kind, secret), 1)


def _attempts(dice: Dice, session: Session, kind: str, secret: Secret) -> Iterator[Case]:
    while True:
        case = one_case(dice, session, kind, secret)
        if case is not None:
            yield case


def one_case(dice: Dice, session: Session, kind: str, secret: Secret) -> Case | None:
    """The secret in one place drawn at random; None where it does not fit there."""
    if secret.names and dice.random() < STRUCTURED_SHARE:
        return structured(dice, session, kind, secret)
    text, setting = secret.value, "itself"
    if secret.names:
        place = dice.choice(SETTINGS)
        if not place.holds(secret.value) or (place.bare and not secret.bare):
            return None
        setting, text = place.name, place.put(dice, key_of(dice, secret, place), secret.value)
    if secret.bare and secret.names and dice.random() < CUT_SHARE:
        return cut_case(dice, session, kind, setting, text, secret)
    view = View("plain" if dice.random() < PLAIN_SHARE else dice.choice(list(VIEWS)))
    if view.name in BREAKS_LINES and ("\n" in text or (view.name == "percent" and not secret.names)):
        return None
    slot = dice.choice(list(SLOTS))
    event = SLOTS[slot](session, view.show(dice, text))
    return Case(encode(event, dice), kind, setting, view.name, slot, tuple(map(view.changed, secret.parts)))


def key_of(dice: Dice, secret: Secret, place: Setting) -> str:
    """A name that the secret goes by; for one known by its form, sometimes a name that says nothing."""
    neutral = secret.bare and not place.bare and dice.random() < NEUTRAL_SHARE
    return dice.choice(NEUTRAL if neutral else secret.names)


def cut_case(dice: Dice, session: Session, kind: str, setting: str, text: str, secret: Secret) -> Case | None:
    """The secret at the end of an output that stops within it."""
    cut_text = cut(dice, text, secret.parts[-1])
    if cut_text is None:
        return None
    parts = (*secret.parts[:-1], cut_text[1])
    event = SLOTS["tool-result-again"](session, cut_text[0])
    event["data"]["result"]["content"] = cut_text[0]
    return Case(encode(event, dice), kind, setting, f"cut-{len(CUT_ENDS)}-ways", "tool-result", parts)


def structured(dice: Dice, session: Session, kind: str, secret: Secret) -> Case | None:
    """The secret as a member, an element or a key of a tool's arguments, not within a text."""
    name = dice.choice(secret.names)
    words = name.lower().split("_")
    camel = words[0] + "".join(word.title() for word in words[1:])
    arguments: dict[str, Event] = {
        "member": {"action": "configure", name: secret.value},
        "member-camel": {"settings": {"host": dice.word(), camel: secret.value, "port": 443}},
        "member-lower": {"env": {name.lower(): secret.value}, "retries": 3},
        "name-value-members": {"variables": [{"name": name, "value": secret.value, "masked": False}]},
        "key-value-members": {"key": name, "value": secret.value, "environment": "production"},
        "headers-member": {
            "url": "https://api.example.com",
            "headers": {"-".join(map(str.title, words)): secret.value},
        },
        "argv": {"argv": [f"{dice.word()}-cli", f"--{'-'.join(words)}", secret.value]},
        "argv-equals": {"argv": [f"{dice.word()}-cli", f"--{'-'.join(words)}={secret.value}"]},
        "object-key": {"tokens": {secret.value: {"uses": 3}}},
        "element": {"items": [dice.word(), secret.value, 3]},
        "id-member": {"id": secret.value, "type": "deploy"},
    }
    form = dice.choice(list(arguments))
    if form in ("object-key", "element", "id-member") and not secret.bare:
        return None
    data = {"toolCallId": session.call(), "toolName": "mcp-call", "arguments": arguments[form]} | session.common()
    event = session.event("tool.execution_start", data)
    return Case(encode(event, dice), kind, form, "structured", "mcp-arguments", secret.parts)


def main(argv: list[str]) -> int:
    """Write the lines and the labels into a directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-kind", type=int, default=24)
    given = parser.parse_args(argv)
    given.directory.mkdir(parents=True, exist_ok=True)
    with (given.directory / "events.jsonl").open("wb") as lines, (given.directory / "labels.jsonl").open("w") as labels:
        for at, case in enumerate(cases(given.seed, given.per_kind)):
            label = {"event": at, **asdict(case)}
            label.pop("line")
            lines.write(case.line + b"\n")
            labels.write(json.dumps(label) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
