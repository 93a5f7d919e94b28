"""Values that are secret because of the name they are assigned to: `password = x`, `"api_key": "x"`, a JSON
member's key."""

import re

from redaction.old_gate import assigns
from redaction.placeholders import looks_secret
from redaction.old_rules import Hits, Rule

PASSWORD_NAMES = r"pass(?:word|wd|phrase)|pwd|(?<![a-z])pass(?![a-z])|secret"
KEY_NAMES = (
    r"api[_\-. ]?key|(?:access|auth|account|private|secret|client|service|db|database|encryption|signing|master|admin"
    r"|shared|license)[_\-.]?key"
)
TOKEN_NAMES = r"token"
# Names that end in `token` and hold a position, not a secret.
HARMLESS_TOKENS = ("next", "page", "continuation", "cancellation", "cancel", "sync", "max", "stop", "design", "per")
VALUE_LENGTH_MAX = 512
ASSIGNMENT = re.compile(
    rf"""(?ix)
    (?P<name>(?:{PASSWORD_NAMES}|{KEY_NAMES})(?:[_\-]?(?!id\b)\w{{0,20}}?)|{TOKEN_NAMES})
    ["'`\\\]]{{0,6}} [\ \t]{{0,8}} (?:=>|:=|==?|:) [\ \t]{{0,8}} \\{{0,6}}
    (?: (?P<quote>["'`])(?P<quoted>(?:(?!(?P=quote))[^\\\s\x00]){{6,{VALUE_LENGTH_MAX}}}+)
      | (?P<bare>[^\s"'`\\,;\x00<>(){{}}|&\[\]]{{8,{VALUE_LENGTH_MAX}}}+) (?![(\[{{<]) )
    """
)
MEMBER = re.compile(rf"(?i)(?:{PASSWORD_NAMES}|{KEY_NAMES})(?:[_\-]?(?!id$)\w{{0,20}})?$|{TOKEN_NAMES}$")
NEEDLES = ("pass", "pwd", "secret", "key", "token")
PASSWORD_LENGTH_MIN = 8


def _is_token(name: str) -> bool:
    return name.lower() == TOKEN_NAMES


def find_assignments(text: str) -> Hits:
    """Values assigned to a secret's name; placeholders, words, numbers and short values are left alone."""
    for match in ASSIGNMENT.finditer(text):
        group = "quoted" if match["quoted"] is not None else "bare"
        value = match[group].strip("\"'`")
        is_token = _is_token(match["name"])
        if is_token and text[max(0, match.start() - 16) : match.start()].lower().rstrip("_-").endswith(HARMLESS_TOKENS):
            continue
        if len(value) >= PASSWORD_LENGTH_MIN and looks_secret(value, strict=is_token):
            yield match.span(group)


def is_secret_member(key: str, value: str) -> bool:
    """Whether the JSON member's key makes its whole value a secret."""
    match = MEMBER.search(key)
    if match is None or not PASSWORD_LENGTH_MIN <= len(value) <= VALUE_LENGTH_MAX or re.search(r"[\s\x00]", value):
        return False
    is_token = _is_token(match.group())
    if is_token and key[: match.start()].lower().rstrip("_-").endswith(HARMLESS_TOKENS):
        return False
    return looks_secret(value, strict=is_token)


def _hint(line: str) -> bool:
    return assigns(line.lower().encode("utf-8", "surrogatepass"))


KEYWORD_RULE = Rule("keyword", "assignment", "password = D", NEEDLES, find_assignments, "medium", _hint)
