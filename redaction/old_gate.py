"""May a line hold a secret at all? Answered on the raw bytes, without decoding, for the price of a few passes in C.

Every rule must be let through by one of the checks here. Each expression begins with one rare literal byte, because
`re` looks for that with memchr, and looks back from there; that makes them several times faster than alternatives.
Token formats have no check each: they all hold 24 or more characters of `[A-Za-z0-9_-]` in a row, which in an
ordinary line only the UUIDs do.
"""

import re
from collections.abc import Collection

WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
WORDS_AS_A = bytes.maketrans(WORD, b"a" * len(WORD))
HEX_AS_H = bytes.maketrans(b"0123456789abcdef", b"h" * 16)
RUN_LENGTH = 24
RUN = b"a" * RUN_LENGTH
# A long known value in base64 needs a run that ordinary text does not have.
BASE64 = WORD + b"+/"
BASE64_AS_A = bytes.maketrans(BASE64, b"a" * len(BASE64))
LONG = 40
UUID = b"hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"

VALUE = (
    rb"""["'`\\\]]{0,6}[ \t]{0,8}(?:=>|:=|==?|:)[ \t]{0,8}["'`\\]{0,8}"""
    rb"""(?!\d{1,20}[,}\]]|null|true|false)[^\s,;]{6}"""
)
NAMED = rb"[\w-]{0,21}" + VALUE
# On the lower-cased line.
KEYS = re.compile(
    rb"k(?:(?<=tok)en"
    + VALUE
    + rb"|(?<=[a-z0-9_.\- ]k)ey"
    + NAMED
    + rb"|(?<=_authtok)en\s*=|(?<=private k)ey|(?<=user-k)ey-file|(?<=slack)\.com/)"
)
WORDS = re.compile(rb"w(?:(?<=passw)(?:or)?d" + NAMED + rb"|(?<=pw)d" + NAMED + rb"|(?<=aw)s.{0,120}?[0-9a-z/+]{40})")
BEARERS = re.compile(rb"b(?:earer[\s%\"'\\]{1,8}[^\s\"'\\]{6}|asic[ \\t]{1,4}[a-z0-9+/_-]{8})")
PASSES = re.compile(rb"pass(?:phrase)?" + NAMED)
SECRETS = re.compile(rb"secret" + NAMED)
# On the line as it is.
WEB_TOKENS = re.compile(rb"J(?<=eyJ)[A-Za-z0-9_=-]")
ACCESS_KEYS = re.compile(rb"A(?:[KSBC][IC]A[0-9A-Z]{16}|3T[A-Z0-9]{17}|KC[a-zA-Z0-9]{10}|P[0-9A-F][a-zA-Z0-9]{8})")
USERINFO = re.compile(rb"(?:/|\\/)/[^\s:/?#\[\]@]{0,256}+:[^\s@/]{1,256}+@")
REST_OF_RUN = re.compile(rb"a++")
PREFIX = re.compile(
    rb"gh[pousr]_|github_pat_|gl[a-z]{1,5}-|GR1348941|[rs]k_[a-z]{4}_|whsec_|xapp-|npm_|pypi-|sk-|T3BlbkFJ|sq0|AIza|GOCSPX-|hf_|gsk_|xai-"
    rb"|pplx-|dapi|do[por]_v1_|shp[a-z]{2}_|gl(?:sa|c)_|dckr_|sbp_|sb_secret_|ntn_|lin_api_|rubygems_|PMAK-|AGE-|age-"
    rb"|(?:AC|SK)[a-z0-9]{32}|[0-9a-z]{32}-us[0-9]"
)
NAMES = (b"key", b"pwd", b"pw", b"pass", b"password", b"token")
ADDRESSES = (b"webhooks/", b"soap/v3")
BEFORE_LENGTH = 96
INTRODUCED = (b".", b":")
LETTERS_ONLY_MIN = 34  # no shorter token can be without a digit or a hyphen
CALL_ID = re.compile(rb"(?:call|toolu|chatcmpl|msg|resp|fc|req)[_-][A-Za-z0-9]{20,48}+")
HIDDEN = re.compile(rb"\\u00(?:1[bB]|[2-7])")
ANSI = re.compile(rb"(?<!\\)\\++u001[bB]\[[0-9;?]{0,24}[A-Za-z]")
ESCAPED = re.compile(rb"(?<!\\)\\++u00([2-7][0-9a-fA-F])")


def revealed(line: bytes) -> bytes:
    """The line with escapes of printable characters resolved and colours taken out, for looking at only."""
    if HIDDEN.search(line) is None:
        return line
    return ESCAPED.sub(lambda match: bytes((int(match[1], 16),)), ANSI.sub(b"", line))


def _is_introduced(line: bytes, start: int) -> bool:
    before = line[max(0, start - BEFORE_LENGTH) : start].lower()
    if before.endswith(INTRODUCED):
        return True
    name = before.rstrip(b" \t\"'`\\=:>[]")[-8:]
    return name.endswith(NAMES) or (before.endswith(b"/") and any(address in before for address in ADDRESSES))


def _is_token(run: bytes) -> bool:
    # Identifiers of code and ids of calls are by far the most frequent runs, and quick to tell.
    if (len(run) < LETTERS_ONLY_MIN and run.isalpha()) or CALL_ID.fullmatch(run):
        return False
    return PREFIX.search(run) is not None


def _has_token(line: bytes, words: bytes, shape: bytes) -> bool:
    """Whether one of the long runs, which `words` shows as runs of `a`, begins or is introduced as a token is."""
    start = words.find(RUN)
    while start >= 0:
        run = REST_OF_RUN.match(words, start)
        end = run.end() if run is not None else start
        is_uuid = end - start == len(UUID) and shape.startswith(UUID, start)
        if not is_uuid and (_is_introduced(line, start) or _is_token(line[start:end])):
            return True
        start = words.find(RUN, end)
    return False


def assigns(lowered: bytes) -> bool:
    """Whether the lower-cased line gives a value to a name that looks secret."""
    return (
        KEYS.search(lowered) is not None
        or WORDS.search(lowered) is not None
        or (b"pass" in lowered and PASSES.search(lowered) is not None)
        or (b"secret" in lowered and SECRETS.search(lowered) is not None)
    )


class Gate:
    """Answers whether a line needs a closer look; never says no to a line in which a rule would find something."""

    __slots__ = ("_known", "_long")

    def __init__(self, known: Collection[bytes] = ()) -> None:
        self._long = tuple(value for value in known if len(value) >= LONG and not value.translate(None, BASE64))
        self._known = tuple(value for value in known if value not in self._long)

    def suspects(self, line: bytes) -> bool:
        """Whether anything in the line resembles a secret or holds a known value."""
        if (self._known or self._long) and self._holds_known(line):
            return True
        recorded, line = line, revealed(line)
        if line is not recorded and self._holds_known(line):
            return True
        words = line.translate(WORDS_AS_A)
        # Every UUID is one run, so with equal counts there is no run besides them.
        shape = line.translate(HEX_AS_H)
        if words.count(RUN) != shape.count(UUID) and _has_token(line, words, shape):
            return True
        lowered = line.lower()
        return (
            assigns(lowered)
            or BEARERS.search(lowered) is not None
            or b"xox" in lowered
            or WEB_TOKENS.search(line) is not None
            or ACCESS_KEYS.search(line) is not None
            or (b"@" in line and USERINFO.search(line) is not None)
        )

    def _holds_known(self, line: bytes) -> bool:
        if any(map(line.__contains__, self._known)):
            return True
        has_run = bool(self._long) and b"a" * LONG in line.translate(BASE64_AS_A)
        return has_run and any(map(line.__contains__, self._long))
