"""Secrets of particular products, told by the text that their tools print or take around them."""

import re
from collections.abc import Sequence

from mnemonic import Mnemonic

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import Placement
from redaction.heuristics.values import is_value, value_span
from redaction.rules.checks import BASE58, base58_checked, has_phrase_checksum
from redaction.rules.context.extractors import UUID, extract_value
from redaction.rules.rule import Extraction
from redaction.text.escapes import starts_word

_FIRST_LENGTH = 4
_AWS_SECRET = re.compile(rb"(?:(?<![A-Za-z0-9/+])|(?<=\\[nrt]))[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")
_AWS_LENGTH = 40
_CIPHERTEXT = (b"AQICAH", b"AQECAH")
_PASSPHRASE_BYTES = 6
_PASSPHRASE_LENGTH_MIN = 8
_PLACEHOLDER = re.compile(rb"[$<{%*!&\[(]|your|my[-_]?pass|change|example|secret\b|password\b|xxx", re.IGNORECASE)
_IS_CODE = re.compile(rb"[A-Za-z_][\w.]*[\[(]")
_MIXED = re.compile(rb"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9!#$%&*@^?]*[0-9!#$%&*@^?]).")


def extract_decrypted_parameter(line: bytes, to: int) -> Extraction:
    """The decrypted value of a secret parameter."""
    return ((), to) if line.startswith(_CIPHERTEXT, to - _FIRST_LENGTH) else _extract_password(line, to)


def extract_aws_pair(line: bytes, to: int) -> Extraction:
    """The secret access key shortly after its id."""
    for found in _AWS_SECRET.finditer(line, max(0, to - _AWS_LENGTH - 1), min(len(line), to + _AWS_LENGTH)):
        if found.end() >= to and is_value(found.group(), Demand.KEY):
            return (found.span(),), found.end()
    return (), to


def extract_aws_secret(line: bytes, to: int) -> Extraction:
    """The secret access key under any name with aws in it. A digest has the same length, but only small letters."""
    spans, seen = extract_aws_pair(line, to)
    return [(start, end) for start, end in spans if not line[start:end].islower()], seen


def extract_network_password(line: bytes, to: int) -> Extraction:
    """The passphrase of a network. People choose them, so words with a digit count too."""
    start, end = value_span(line, to - _PASSPHRASE_BYTES)
    value = line[start:end]
    is_one = len(value) >= _PASSPHRASE_LENGTH_MIN and not _PLACEHOLDER.match(value) and _MIXED.match(value) is not None
    is_one = (is_one or is_value(value, Demand.PASSWORD)) and not _IS_CODE.match(value)
    return (((start, end),), max(to, end)) if is_one else ((), max(to, end))


def extract_braced(line: bytes, to: int) -> Extraction:
    """The words between the braces that are secrets."""
    begin = line.rfind(b"{", max(0, to - _BRACED_MAX), to) + 1
    end = line.rfind(b"}", begin, to)
    words = [one.span() for one in _BRACED_WORD.finditer(line, begin, end)] if 0 < begin < end else []
    is_one = [(start, last) for start, last in words if last - start >= _BRACED_MIN]
    return [span for span in is_one if is_value(line[slice(*span)], Demand.KEY) or UUID.fullmatch(line, *span)], to


def extract_kerberos(line: bytes, to: int) -> Extraction:
    """The whole hash."""
    begin = line.rfind(b"$krb5", max(0, to - _KERBEROS_MAX), to)
    rest = _HEX_REST.match(line, to)
    end = rest.end() if rest is not None else to
    return (((begin, end),) if begin >= 0 else ()), end


def extract_codes(line: bytes, to: int) -> Extraction:
    """The codes in the lines or words below, if there are two of them at least."""
    spans: list[tuple[int, int]] = []
    at = to
    while len(spans) < _CODES_MAX and (found := _CODE.match(line, at, min(len(line), at + 120))) is not None:
        spans.append(found.span("code"))
        at = found.end()
    is_list = len(spans) > 1 and all(_HAS_DIGIT.search(line, *span) for span in spans[:2])
    return (spans, at) if is_list else ((), to)


def extract_import_key(line: bytes, to: int) -> Extraction:
    """A Bitcoin key whose checksum is right."""
    start = to - _IMPORT_KEY_BYTES
    found = _IMPORT_KEY.match(line, start)
    if found is None or not starts_word(line, start):
        return (), to
    number = 0
    for digit in found.group():
        number = number * len(BASE58) + BASE58.index(digit)
    body = number.to_bytes(38, "big").lstrip(b"\0")[:-4]
    return ((found.span(),), found.end()) if base58_checked(body) == found.group() else ((), to)


def extract_phrase(line: bytes, to: int) -> Extraction:
    """Words of BIP 39 whose checksum is right; words of the list may stand before them in the same sentence."""
    begin = max(0, to - _PHRASE_BEFORE)
    words = list(_PHRASE_WORD.finditer(line, begin, min(len(line), to + _PHRASE_AFTER)))
    last = next((at for at, word in enumerate(words) if word.end() >= to), len(words))
    run = _run_of_words(line, words, last)
    numbers = [_PHRASE_NUMBERS.get(word.group(), -1) for word in run]
    begins = [at for at, number in enumerate(numbers) if number >= 0 and (at == 0 or numbers[at - 1] < 0)]
    for first in (begin + more for begin in begins for more in range(_WORDS_BEFORE_MAX + 1)):
        for count in _PHRASE_LENGTHS:
            chosen = numbers[first : first + count]
            is_drawn = len(set(chosen)) > count // 2  # a word that is said again and again is no phrase
            if len(chosen) == count and min(chosen) >= 0 and is_drawn and has_phrase_checksum(chosen):
                return ((run[first].start(), run[first + count - 1].end()),), max(to, run[first + count - 1].end())
    return (), max(to, run[-1].end() if run else to)


def _run_of_words(line: bytes, words: Sequence[re.Match[bytes]], at: int) -> list[re.Match[bytes]]:
    """The words around this one that nothing but blanks, commas and line ends separate."""
    first = last = min(at, len(words) - 1)
    while first > 0 and _PHRASE_GAP.fullmatch(line, words[first - 1].end(), words[first].start()):
        first -= 1
    while 0 <= last < len(words) - 1 and _PHRASE_GAP.fullmatch(line, words[last].end(), words[last + 1].start()):
        last += 1
    return list(words[first : last + 1])


def extract_wallet_keys(line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The key, and those that follow it in a list."""
    spans = [found.span()]
    while len(spans) < _CODES_MAX and (following := _NEXT_WALLET_KEY.match(line, spans[-1][1])) is not None:
        spans.append(following.span("key"))
    return spans, max(to, spans[-1][1])


def extract_key_bytes(line: bytes, to: int) -> Extraction:
    """A list of 64 bytes that are as different as random ones."""
    begin = line.rfind(b"[", max(0, to - _KEY_BYTES_BEFORE), to)
    found = _KEY_BYTES.match(line, begin) if begin >= 0 else None
    if found is None:
        return (), to
    numbers = [int(one) for one in _NUMBER.findall(found["bytes"])]
    is_key = max(numbers) < 256 and len(set(numbers)) >= _KEY_BYTES_DIFFERENT_MIN and numbers != sorted(numbers)
    return ((found.span("bytes"),) if is_key else ()), found.end()


def extract_code(line: bytes, to: int) -> Extraction:
    """A code of a device, which is random, or what its user types, which has a form of its own."""
    lowest = max(0, to - _DEVICE_MAX)
    start = lowest + max(map(line[lowest:to].rfind, (b"=", b":", b'"', b"'", b" "))) + 1
    found = _DEVICE_CODE.match(line, start)
    if found is None:
        return (), to
    is_one = _USER_CODE.fullmatch(found.group()) or is_value(found.group(), Demand.TOKEN)
    return ((found.span(),), found.end()) if is_one else ((), to)


def extract_product_key(line: bytes, to: int) -> Extraction:
    """Groups of capitals and digits."""
    begin = max(0, to - _PRODUCT_KEY_BEFORE)
    found = next((one for one in _PRODUCT_KEY.finditer(line, begin, to + 80) if one.end() >= to), None)
    if found is None or len(set(found.group())) < _PRODUCT_KEY_DIFFERENT_MIN or not _HAS_DIGIT.search(found.group()):
        return (), to
    return (found.span(),), found.end()


def extract_first_passwords(line: bytes, to: int) -> Extraction:
    """The passwords in a list of users and passwords."""
    spans: list[tuple[int, int]] = []
    at = to
    while len(spans) < _CODES_MAX and (found := _USER_PASSWORD.match(line, at, min(len(line), at + 400))) is not None:
        if found["password"] not in (b"RANDOM", b"R") and is_value(found["password"], Demand.CERTAIN, Placement.BARE):
            spans.append(found.span("password"))
        at = found.end()
    return spans, max(to, at)


_CODES_MAX = 32
_BRACED_MAX, _BRACED_MIN = 240, 8
_BRACED_WORD = re.compile(rb"[^\s{}]{1,200}+")
_KERBEROS_MAX = 300
_HEX_REST = re.compile(rb"[0-9a-fA-F$]*+")
_PHRASE_NUMBERS = {word.encode(): number for number, word in enumerate(Mnemonic("english").wordlist)}
_WORDS_BEFORE_MAX = 2
_PHRASE_LENGTHS = (24, 21, 18, 15, 12)
_PHRASE_BEFORE, _PHRASE_AFTER = 360, 240
_PHRASE_WORD = re.compile(rb"(?:(?<![A-Za-z\\])|(?<=\\[nrt]))[a-z]{3,8}(?![A-Za-z])")
_PHRASE_GAP = re.compile(rb" {1,2}|(?:[\n,]|\\{1,15}n) ?")
_KEY_BYTES_BEFORE = 400
_KEY_BYTES_DIFFERENT_MIN = 40
_BLANKS = rb"(?:\s|\\{1,15}[nrt]){0,12}+"
_KEY_BYTES = re.compile(
    rb"\[" + _BLANKS + rb"(?P<bytes>\d{1,3}(?:," + _BLANKS + rb"\d{1,3}){63}+),?" + _BLANKS + rb"\]"
)
_NUMBER = re.compile(rb"\d{1,3}")
_NEXT_WALLET_KEY = re.compile(
    rb"\\{0,15}[\"'`]," + _BLANKS + rb"\\{0,15}[\"'`](?P<key>0x[0-9a-fA-F]{64})(?![0-9a-zA-Z])"
)
_BETWEEN = rb"(?:[\s:,;.*\[\]\"'`()|>=-]|\\{1,15}[nrt\"']|\d{1,2}[.)] )"
_CODE = re.compile(_BETWEEN + rb"{1,40}(?P<code>[0-9A-Za-z]{4,8}(?:-[0-9A-Za-z]{4,8}){0,4}+)(?![\w-])")
_PRODUCT_KEY_BEFORE = 24
_PRODUCT_KEY_DIFFERENT_MIN = 8
_PRODUCT_KEY = re.compile(rb"(?<![0-9A-Za-z-])[0-9A-Z]{4,8}(?:-[0-9A-Z]{4,8}){2,7}(?![0-9A-Za-z-])")
_HAS_DIGIT = re.compile(rb"[0-9]")
_IMPORT_KEY = re.compile(rb"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![0-9A-Za-z])")
_IMPORT_KEY_BYTES = 15
_DEVICE_MAX = 24
_DEVICE_CODE = re.compile(rb"[A-Za-z0-9_.-]{7,2048}")
_USER_CODE = re.compile(rb"[A-Z0-9]{3,4}-[A-Z0-9]{3,4}")
_USER_PASSWORD = re.compile(
    rb"(?:[\s|>\"'-]|\\{1,15}[nrt]){1,60}[a-z_][\w.-]{0,31}:(?P<password>[^\s\"'`\\:]{3,128})(?=[\s\"'\\]|\Z)"
)
_extract_password = extract_value(_FIRST_LENGTH, Demand.CERTAIN)
