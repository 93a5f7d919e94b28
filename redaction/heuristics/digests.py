"""What is computed of something and stands behind a secret's name: digests of files, salts, the padding of base64."""

import re

from redaction.heuristics.words import share_of_words

# Before a name: what makes it a file's whose digest follows.
_DIGESTS = (
    rb"(?i)(?:\A|[^A-Za-z0-9]|\\[nrt])"
    rb"(?:md[245]|sha[-_]?\d{0,3}(?:[-_/]\d{3})?|blake\w{0,4}|rmd160|ripemd-?160|sm3|crc\d{0,2}|"
    rb"cksum|checksums?|digests?|integrity|etag|fingerprint)[-_]?(?:sum|digest)?"
)
DIGEST_NAME = re.compile(_DIGESTS + rb"(?![A-Za-z0-9])")
DIGESTED = re.compile(_DIGESTS + rb"[ \t]{0,4}(?:(?:of|for) |\([ \t]?)?[\w./~*+-]{0,100}\Z")
DIGESTED_LENGTH_MAX = 140
DIGEST = re.compile(rb"(?:[0-9a-fA-F]{8,128}|[A-Za-z0-9+/]{22,88}={0,2})(?![A-Za-z0-9+/_-])")
BASE64 = re.compile(rb"([A-Za-z0-9+/]{14,80})=\Z")
BASE64_LENGTH_MAX = 81
BASE64_WORDS_SHARE_MAX = 0.6
# The arguments of a function that derives keys, in its tests.
SALT = re.compile(rb"[0-9a-fA-F]{8,64}\\{0,15}[\"'],[ \t]{0,4}\d{1,7}[ \t]{0,4}[,)]")


def is_digest(line: bytes, start: int, name_start: int, name_end: int) -> bool:
    """Whether the value at `start`, given to the name that stands there, is a file's digest."""
    return DIGEST.match(line, start) is not None and (
        DIGESTED.search(line, max(0, name_start - 1 - DIGESTED_LENGTH_MAX), name_start) is not None
        or DIGEST_NAME.search(line, name_end, start) is not None
    )


def is_salt(line: bytes, start: int) -> bool:
    """Whether the string at `start` is salt, as numbers follow it."""
    return SALT.match(line, start) is not None


def is_padding(line: bytes, end: int) -> bool:
    """Whether the `=` before `end` closes encoded bytes, which may end like a name."""
    run = BASE64.search(line, max(0, end - BASE64_LENGTH_MAX), end)
    if run is None:
        return False
    text = run[1].decode("ascii")
    is_mixed = text.lower() != text != text.upper() and any(map(str.isdigit, text))
    return is_mixed and share_of_words(text) < BASE64_WORDS_SHARE_MAX
