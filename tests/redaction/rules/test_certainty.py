"""A finding says how sure it is: a passed check raises it, a failed one lowers it; neither decides what is masked."""

import json
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path

import pytest

from redaction.engine import CLEAN, Engine, Finding, Masked
from redaction.rules.checks import CHECKS
from redaction.rules.examples import expanded
from redaction.rules.rule import Certainty, Confidence, Rule, TokenCheck
from tests.redaction.events import event
from tests.shared import CACHE

ENGINE = Engine(b"a key of the tests", cache_dir=CACHE)
BUDGET_MS = 60_000
KEY = bytes(range(7, 71))
USERS = """
version = "1"

[[format]]
id = "acme-card"
provider = "Acme"
name = "card number"
pattern = 'acme-[0-9]{16}'
example = "acme-4539578763621486"
counter = "acme-000000000000"
source = "intranet"
check = "luhn"
"""


def findings(text: str, engine: Engine = ENGINE) -> tuple[Finding, ...]:
    """What is masked in an event with this text."""
    result = engine.redact(event(text), BUDGET_MS)
    assert isinstance(result, Masked), text
    return result.findings


def sure(text: str, engine: Engine = ENGINE) -> list[tuple[str, Certainty]]:
    """The rules and how sure they are."""
    return [(finding.rule, finding.confidence) for finding in findings(text, engine)]


def web_token(header: object) -> str:
    """A token with this header."""
    parts = (json.dumps(header), json.dumps({"sub": "1234509876", "iat": 1760000000}))
    body = [urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join((*body, expanded("<base64url:43>")))


@pytest.mark.parametrize("prefix", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_"])
def test_a_checksum_proves_a_token_and_a_wrong_one_makes_it_less_sure(prefix: str) -> None:
    token = expanded(f"{prefix}<base62:30><crc32:6>")
    wrong = token[:-1] + ("a" if token[-1] != "a" else "b")

    (right_rule, right), (wrong_rule, unsure) = sure(f"first {token} then {wrong} end")

    assert (right, unsure) == ("proven", "low")
    assert right_rule == wrong_rule


@pytest.mark.parametrize("at", range(4, 40))
def test_every_character_of_a_token_is_covered_by_its_checksum(at: int) -> None:
    token = expanded("ghp_<base62:30><crc32:6>")
    changed = token[:at] + ("Q" if token[at] != "Q" else "R") + token[at + 1 :]

    assert sure(changed) == [("github-pat-classic", "low")]


def test_a_token_is_checked_without_the_escapes_and_colours_of_its_line() -> None:
    token = expanded("ghp_<base62:30><crc32:6>")
    spelt = f"ghp_\\u{ord(token[4]):04x}{token[5:]}"

    assert sure(f"{token[:20]}\x1b[31m{token[20:]}")[0][1] == "proven"
    assert sure(json.dumps(json.dumps({"out": token})))[0][1] == "proven"
    assert sure(spelt)[0][1] == "proven"


def test_a_format_without_a_check_has_the_confidence_of_its_rule() -> None:
    assert sure(expanded("glpat-<base62:20>")) == [("gitlab-pat", "high")]


def test_the_header_of_a_web_token_proves_it() -> None:
    assert sure(web_token({"alg": "HS256", "typ": "JWT"})) == [("jwt", "proven")]
    assert sure(web_token({"purpose": "session", "v": "2"})) == [("jwt", "low")]


@pytest.mark.parametrize("name", ["alg", "typ", "enc", "kid", "cty"])
def test_any_one_name_of_a_header_proves_a_web_token(name: str) -> None:
    assert sure(web_token({name: "x"})) == [("jwt", "proven")]


def test_a_key_that_is_no_base64_is_less_sure() -> None:
    key = b64encode(KEY).decode()

    (_, right), (_, unsure) = sure(f"AZURE_STORAGE_KEY={key}\nOTHER=1\nAZURE_STORAGE_KEY={key[:-3]}/==\n")

    assert (right, unsure) == ("high", "low")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b64encode(KEY), True),
        (b64encode(KEY).rstrip(b"="), True),
        (urlsafe_b64encode(b"\xff\xfe\xfd\xfb"), True),
        (b64encode(KEY)[:-1], False),  # half of its padding
        (b64encode(KEY)[:-3] + b"/==", False),  # bits that no byte needs
        (b"AAAAA", False),
        (b"AA*A", False),
    ],
)
def test_base64_is_what_an_encoder_writes(text: bytes, *, expected: bool) -> None:
    assert CHECKS["base64"](text) is expected


@pytest.mark.parametrize(
    ("confidence", "proves", "passed", "expected"),
    [
        ("high", True, True, "proven"),
        ("low", True, True, "proven"),
        ("high", False, True, "high"),
        ("medium", False, True, "high"),
        ("low", False, True, "medium"),
        ("high", True, False, "low"),
        ("medium", False, False, "low"),
    ],
)
def test_what_a_check_makes_of_a_rules_confidence(
    confidence: Confidence, expected: Certainty, *, proves: bool, passed: bool
) -> None:
    check = TokenCheck(lambda secret: secret == b"right", proves)
    rule = Rule("mine", "me", "token", (), lambda _line, to: ((), to), confidence, check=check)

    assert rule.certainty_of(b"right" if passed else b"wrong") == expected


@pytest.mark.slow
def test_only_a_check_that_must_pass_keeps_a_rule_from_masking(tmp_path: Path) -> None:
    good, bad = "acme-4539578763621486", "acme-4539578763621487"
    may, must = tmp_path / "may.toml", tmp_path / "must.toml"
    may.write_text(USERS.replace('check = "luhn"', 'check = "luhn"\nconfidence = "medium"'), encoding="utf-8")
    must.write_text(USERS + "must = true\n", encoding="utf-8")

    lenient, strict = Engine(rule_files=[may]), Engine(rule_files=[must])

    assert sure(f"{good} {bad}", lenient) == [("acme-card", "high"), ("acme-card", "low")]
    assert sure(good, strict) == [("acme-card", "high")]
    assert strict.redact(event(bad), BUDGET_MS) is CLEAN


def test_a_users_rule_proves_as_ours_do(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    row = USERS.replace("acme-[0-9]{16}", r"acme:(eyJ[0-9A-Za-z_-]{20,})").replace("luhn", "jwt")
    row = row.replace("acme-4539578763621486", "acme:<jwt>").replace("acme-000000000000", "acme:eyJ")
    file.write_text(row, encoding="utf-8")
    header = urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")

    engine = Engine(rule_files=[file])

    assert sure(f"acme:{header}", engine) == [("acme-card", "proven")]
    assert sure(f"acme:eyJ{expanded('<base62:40>')}", engine) == [("acme-card", "low")]
