"""Ordinary sessions without secrets, and real source code that handles secrets, read from this machine; seeded."""

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.redaction.heldout.clean_texts import PLAIN, REPEATED
from tests.redaction.heldout.dice import Dice
from tests.redaction.heldout.slots import SLOTS, Session, encode
from tests.redaction.heldout.views import VIEWS

HOME = Path.home()
PYTHON = Path(functools.__file__).parent
CODE_ROOTS = (
    PYTHON,
    Path(__file__).parents[3] / ".venv/lib",
    HOME / ".cache/exporter-real/node-24/node_modules",
    Path("/usr/lib/node_modules"),
    Path("/usr/lib/google-cloud-sdk/lib"),
    Path("/usr/lib/google-cloud-sdk/platform"),
    Path("/usr/share/perl"),
    Path("/usr/share/perl5"),
    Path("/usr/share/php"),
)
DOC_ROOTS = (Path("/usr/share/doc"),)
CODE_SUFFIXES = frozenset(
    (".py", ".js", ".ts", ".mjs", ".go", ".pl", ".pm", ".php", ".sh", ".java", ".c", ".h", ".yaml")
)
DOC_SUFFIXES = frozenset(("", ".md", ".txt", ".rst", ".html"))
SCANNERS = ("detect_secrets", "kingfisher", "/redaction/", "/test/", "/tests/", "copilot")  # rules and sample keys
HANDLES = re.compile(r"(?i)secret|passw(?:or)?d|token|credential|api_?key|authorization|private_?key")
REAL_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----\s*\n[^\n]{40}")
WINDOW_CHARS = 6000
VIEWS_OF_FILES = ("plain", "numbered-dots", "numbered-tab", "diff-added", "grep-path", "in-json", "plain", "crlf")
FILES_MAX = 60_000


@functools.cache
def files(root: Path, suffixes: frozenset[str]) -> list[Path]:
    """The text files below the root, in a fixed order; those of other scanners left out."""
    every = (path for path in root.rglob("*") if path.suffix in suffixes)
    return sorted(path for path in every if not any(word in str(path) for word in SCANNERS))[:FILES_MAX]


def paths(dice: Dice, roots: tuple[Path, ...], suffixes: frozenset[str]) -> Iterator[Path]:
    """Files of all roots in turns of chance, without end: each file of a root once, then from the beginning."""
    shelves = [shelf for shelf in ([*files(root, suffixes)] for root in roots) if shelf]
    for shelf in shelves:
        dice.shuffle(shelf)
    for turn in itertools.count():
        shelf = dice.choice(shelves)
        yield shelf[turn % len(shelf)]


def read(path: Path) -> str | None:
    """The text of a file that is neither binary nor holds a real private key."""
    try:
        if not path.is_file() or path.stat().st_size > 2_000_000:
            return None
        text = path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return None if REAL_KEY.search(text) else text


def window(dice: Dice, text: str, near: re.Pattern[str] | None = None) -> str:
    """Some whole lines of the text, around what is looked for if there is something."""
    hits = [match.start() for match in near.finditer(text)] if near else []
    middle = dice.choice(hits) if hits else dice.randrange(max(1, len(text)))
    begin = text.rfind("\n", 0, max(0, middle - WINDOW_CHARS // 2)) + 1
    end = text.find("\n", begin + WINDOW_CHARS)
    return text[begin : end if 0 <= end < begin + 2 * WINDOW_CHARS else begin + WINDOW_CHARS]


def source_texts(dice: Dice) -> Iterator[str]:
    """Code that handles secrets."""
    for path in paths(dice, CODE_ROOTS, CODE_SUFFIXES):
        text = read(path)
        if text is not None and len(HANDLES.findall(text)) >= 5:
            yield window(dice, text, HANDLES)


def ordinary_code(dice: Dice) -> Iterator[str]:
    """Code of any other kind."""
    for path in paths(dice, CODE_ROOTS, CODE_SUFFIXES):
        text = read(path)
        if text and len(HANDLES.findall(text)) < 5:
            yield window(dice, text)


def prose(dice: Dice) -> Iterator[str]:
    """Documentation as packages bring it."""
    for path in paths(dice, DOC_ROOTS, DOC_SUFFIXES):
        text = read(path)
        if text and not HANDLES.search(text):
            yield window(dice, text)


def made_texts(dice: Dice) -> Iterator[str]:
    """Made-up outputs and configurations without a secret."""
    while True:
        if dice.random() < 0.25:
            yield dice.choice(list(PLAIN.values()))
            continue
        head, line, count = dice.choice(list(REPEATED.values()))
        lines = (dice.fill(line)[0] for _ in range(max(1, dice.randint(count // 2, count * 2))))
        yield "\n".join((dice.fill(head)[0], *lines))


def session_texts(dice: Dice) -> Iterator[str]:
    """What ordinary sessions consist of."""
    sources = (prose(dice), ordinary_code(dice), made_texts(dice), made_texts(dice))
    while True:
        yield next(dice.choice(sources))


def lines(dice: Dice, texts: Callable[[Dice], Iterator[str]], size_bytes: int) -> Iterator[bytes]:
    """Events around the texts, until there are so many bytes."""
    session, size = Session(dice), 0
    for text in texts(dice):
        view = VIEWS[dice.choice(VIEWS_OF_FILES)]
        slot = SLOTS[dice.choice(list(SLOTS))]
        event = slot(session, view(dice, text))
        if event["type"] == "assistant.message" and dice.random() < 0.3:
            event["data"]["reasoningOpaque"] = dice.piece("b64", 300, 900)
            event["data"]["encryptedContent"] = dice.piece("b64", 300, 900)
        line = encode(event, dice)
        yield line
        size += len(line)
        if size >= size_bytes:
            return
