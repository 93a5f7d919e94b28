"""Made-up secrets for the corpus by class and shape: people's passwords in every shape, from word lists of our own."""

import base64
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mnemonic import Mnemonic

from tests.redaction.heldout.dice import Dice
from tests.redaction.heldout.slots import SLOTS, Session, completed, completed_blocks, encode, failed

HALVES: Final = ("tuned", "held", "tuned-2", "held-2", "tuned-3", "held-3", "tuned-4", "held-4")
_WORDS: Final[dict[str, str]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
WORDS: Final = _WORDS["words"].split()
FOREIGN: Final = _WORDS["foreign"].split()
ALIKE: Final = {"a": "4", "e": "3", "i": "1", "o": "0", "s": "5"}
SIGNS: Final = "!#*.-"
REFERENCES: Final = _WORDS["references"].split()
PLACEHOLDERS: Final = _WORDS["placeholders"].split()
SLOT: Final = re.compile("\u2039(~?)(\\w+)(?::(\\d+))?\u203a")
DEPTHS: Final = 4
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _digits(dice: Dice, low: int, high: int) -> str:
    return dice.of("d", dice.randint(low, high))


SHAPES: Final[Mapping[str, Callable[[Dice], str]]] = {
    "word_Word999": lambda dice: f"{dice.choice(WORDS)}_{dice.choice(WORDS).title()}{_digits(dice, 2, 3)}",
    "one word": lambda dice: dice.choice(WORDS),
    "changeme123": lambda dice: dice.choice(("changeme", "welcome", "letmein", "admin", *WORDS)) + _digits(dice, 1, 4),
    "four words": lambda dice: "-".join(dice.choice(WORDS) for _ in range(4)),
    "underscores": lambda dice: "_".join(dice.choice(WORDS) for _ in range(dice.randint(2, 3))),
    "unicode": lambda dice: dice.choice(FOREIGN) + dice.choice(WORDS).title() + _digits(dice, 0, 3),
    "Word999!": lambda dice: dice.choice(WORDS).title() + _digits(dice, 2, 4) + dice.choice(SIGNS[:3]),
    "l3tters": lambda dice: "".join(ALIKE.get(letter, letter) for letter in dice.choice(WORDS) + dice.choice(WORDS)),
    "WordWord9": lambda dice: dice.choice(WORDS).title() + dice.choice(WORDS).title() + _digits(dice, 1, 4),
    "random": lambda dice: dice.of("m", 2) + dice.of("w", dice.randint(8, 16)) + dice.of("d", 1),
    "symbols": lambda dice: (
        dice.of("m", 3) + dice.of("w", 6) + dice.choice("!#*+^~") + dice.of("w", 4) + dice.of("d", 2)
    ),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A line with secrets (none for a negative): its class and template, the shape of the password, the depth.

    `command` is what the tool call ran whose answer the line is.
    """

    line: bytes
    group: str
    shape: str
    text: str
    secrets: tuple[str, ...]
    command: str = ""


def _wif(dice: Dice) -> str:
    body = b"\x80" + dice.randbytes(32) + b"\x01"
    body += hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4]
    number, text = int.from_bytes(body, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = _BASE58[rest] + text
    return text


def _made(dice: Dice, kind: str, size: int, shape: str) -> str:
    match kind:
        case "human":
            return SHAPES[shape](dice)
        case "basic":
            return base64.b64encode(f"{dice.word()}:{SHAPES[shape](dice)}".encode()).decode()
        case "b64human":
            return base64.b64encode((SHAPES[shape](dice) + "7q").encode()).decode()
        case "dockerconfig":
            auth = base64.b64encode(f"robot:{dice.of('w', 20)}".encode()).decode()
            return base64.b64encode(json.dumps({"auths": {"quay.example.net": {"auth": auth}}}).encode()).decode()
        case "phrase":
            return " ".join(dice.choice(WORDS) for _ in range(size))
        case "bip39":
            return Mnemonic("english").to_mnemonic(dice.randbytes(size * 4 // 3))
        case "keyarray":
            return dice.choice((",", ", ")).join(str(byte) for byte in dice.randbytes(64))
        case "hexlines":
            return ":\n    ".join(":".join(dice.of("x", 2) for _ in range(15)) for _ in range(8))
        case "wif":
            return _wif(dice)
        case "reference":
            return dice.choice(REFERENCES)
        case "placeholder":
            return dice.choice(PLACEHOLDERS)
        case _:
            return dice.of(kind, size)


def filled(dice: Dice, template: str, shape: str) -> tuple[str, tuple[str, ...]]:
    """The text of a template, and its secrets."""
    secrets: list[str] = []

    def one(slot: re.Match[str]) -> str:
        made = _made(dice, slot[2], int(slot[3] or 1), shape)
        if not slot[1]:
            secrets.append(made)
        return made

    return SLOT.sub(one, template), tuple(secrets)


def line_of(dice: Dice, session: Session, text: str) -> bytes:
    """An event that holds the text, sometimes as JSON within JSON."""
    for _ in range(dice.randrange(DEPTHS) if dice.random() < 0.3 else 0):
        text = json.dumps({"ok": True, "text": text}, ensure_ascii=False)
    return encode(dice.choice(list(SLOTS.values()))(session, text), dice)


def _answers(dice: Dice, session: Session, group: str, templates: list[list[str]], per_template: int) -> Iterator[Case]:
    """What tools answer to commands: pairs of a command and its output; without secrets the command prints none."""
    for command, template in templates:
        for shape in dice.choices(list(SHAPES), k=per_template):
            text, secrets = filled(dice, template, shape)
            line = encode(dice.choice((completed, failed, completed_blocks))(session, text), dice)
            yield Case(line, group, shape, f"$ {command}\n{text}", secrets, command)


def cases(seed: int, half: str, per_template: int) -> Iterator[Case]:
    """The lines of a half: of `positions` each template in every shape, of the rest so many with shapes by chance."""
    dice = Dice(seed)
    table = tomllib.loads(Path(__file__).with_name(f"{half}.toml").read_text("utf-8"))
    for kind, groups in table.items():
        for group, templates in groups.items():
            session = Session(dice)
            if kind == "answers":
                yield from _answers(dice, session, group, templates, per_template)
                continue
            for template in templates:
                shapes = list(SHAPES) if kind == "positions" else dice.choices(list(SHAPES), k=per_template)
                for shape in shapes:
                    text, secrets = filled(dice, template, shape)
                    name = f"{kind}: {group}" if kind != "classes" else group
                    yield Case(line_of(dice, session, text), name, shape, text, secrets)
