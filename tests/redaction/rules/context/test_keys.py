"""Private keys in all the forms in which a session shows them."""

import base64
import json
from collections.abc import Callable

import pytest

from redaction.rules.context import keys
from redaction.rules.examples import expanded
from redaction.rules.rule_set import rules_of_family
from tests.redaction.rules.context.extracting import DEPTHS, masked

RULES = tuple(rules_of_family(keys))
LINES = [expanded("<base64:64>", str(number)) for number in range(6)] + [expanded("<base64:23>") + "="]
KINDS = ("PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK")


def pem(kind: str = "RSA PRIVATE KEY", headers: str = "") -> str:
    return "\n".join((f"-----BEGIN {kind}-----{headers}", *LINES, f"-----END {kind}-----"))


def per_line(mark: Callable[[int, str], str]) -> str:
    return "\n".join(mark(number, line) for number, line in enumerate(pem().split("\n"), 8))


SHAPES = {
    "plain": pem(),
    "headers": pem(headers="\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n"),
    "pgp headers": pem("PGP PRIVATE KEY BLOCK", "\nVersion: GnuPG v2\nComment: none\n"),
    "added lines": per_line(lambda _, line: "+" + line),
    "removed lines": per_line(lambda _, line: "-" + line),
    "quoted mail": per_line(lambda _, line: "> " + line),
    "indented": per_line(lambda _, line: "      " + line),
    "numbers and arrows": per_line(lambda number, line: f"{number:6}→{line}"),
    "numbers and colons": per_line(lambda number, line: f"{number}:{line}"),
    "numbers and bars": per_line(lambda number, line: f"{number} | {line}"),
    "numbers and dots": per_line(lambda number, line: f"{number}. {line}"),
    "numbers and tabs": per_line(lambda number, line: f"{number:6}\t{line}"),
    "carriage returns": pem().replace("\n", "\r\n"),
    "one line with blanks": pem().replace("\n", " "),
    "one line": pem().replace("\n", ""),
    "escaped newlines": pem().replace("\n", "\\n"),
    "array of lines": json.dumps(pem().split("\n"), indent=2),
    "pieces of code": per_line(lambda _, line: f"    '{line}\\n' +"),
    "service account": json.dumps({"type": "service_account", "private_key": pem("PRIVATE KEY")}),
    "cut off": pem()[:300],
    "cut off with a note": pem()[:300] + "\n[output truncated]",
    "cut off after a prefix": "".join(f"at 12:00 {line}\n" for line in (*pem().split("\n")[:3], LINES[3][:32]))
    + "[output truncated]",
    "headers after a prefix": "\n".join(
        f"2026-11-20 at 12:00:00 {line}"
        for line in pem(headers="\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF").split("\n")
    ),
    "cut at the beginning": pem()[200:],
    "base64": "key: " + base64.b64encode(pem().encode()).decode(),
    "base64 in lines": base64.encodebytes(pem().encode()).decode(),
    "base64 further on": base64.b64encode(b"ab" + pem().encode()).decode(),
    "putty": "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\nAAAAC3Nz\n"
    "Private-Lines: 2\n" + "\n".join(LINES[:2]) + "\nPrivate-MAC: " + expanded("<hex:64>"),
}


def survivors(text: str) -> list[str]:
    """Pieces of the key's lines, of eight characters, that are still in the text."""
    pieces = (line[start : start + 8] for line in LINES for start in range(0, len(line) - 8))
    return [piece for piece in pieces if piece in text]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("depth", DEPTHS)
def test_nothing_of_a_key_is_left(shape: str, depth: int) -> None:
    text = f"before it\n{SHAPES[shape]}\nafter it"

    result = masked(RULES, text, depth)

    assert survivors(result) == []
    assert "*" in result
    assert result.startswith("before it\n")
    assert result.endswith("\nafter it")


@pytest.mark.parametrize("shape", [shape for shape, text in SHAPES.items() if "END RSA" in text])
@pytest.mark.parametrize("depth", DEPTHS)
def test_nothing_is_left_of_a_key_whose_beginning_was_cut_off(shape: str, depth: int) -> None:
    text = SHAPES[shape][len(SHAPES[shape]) // 3 :]

    result = masked(RULES, f"before it\n{text}\nafter it", depth)

    assert survivors(result) == []
    assert "*" in result
    assert result.endswith("\nafter it")


@pytest.mark.parametrize("kind", KINDS)
def test_block_of_any_kind_is_masked_whole(kind: str) -> None:
    assert masked(RULES, f"a {pem(kind)} b") == "a * b"


@pytest.mark.parametrize(
    "text",
    [
        "PEM = '-----BEGIN PRIVATE KEY-----\\n' + body + '\\n-----END PRIVATE KEY-----'",
        "if data.startswith(b'-----BEGIN RSA PRIVATE KEY-----'): return load_pem_private_key_from(data, password)",
        "-----BEGIN PRIVATE KEY-----\n${base64EncodedPrivateKeyOfTheServer}\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n<your private key goes here>\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj...\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n" + "x" * 64 + "\n-----END PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\n" + "\n".join(LINES) + "\n-----END PUBLIC KEY-----",
        "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t",
        "grep -rn 'PRIVATE KEY-----' . | wc -l; Private-Lines: 14",
    ],
)
@pytest.mark.parametrize("depth", DEPTHS)
def test_mere_mention_is_left_alone(text: str, depth: int) -> None:
    assert masked(RULES, text, depth) == text


@pytest.mark.parametrize(("length", "is_one"), [(39, False), (40, True)])
def test_a_whole_block_needs_forty_characters_of_material(length: int, is_one: bool) -> None:
    body = expanded(f"<base64:{length}>", "material").replace("+", "a").replace("/", "b")
    text = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"

    assert masked(RULES, text, 0) == ("*" if is_one else text)


@pytest.mark.parametrize(
    ("material", "is_one"),
    [("Ab1cdefghijk", True), ("Ab1cdefghij", False), ("ab1cdefghijk", False),
      ("AbCdefghijkl", False)],
    ids=["twelve characters", "eleven", "lower case only", "no digit"],
)  # fmt: skip
def test_material_has_many_characters_of_every_kind(material: str, is_one: bool) -> None:
    line = ((material * 8)[:64]).encode()

    assert keys.is_key_material(line, 0, len(line)) is is_one


def test_material_is_counted_in_runs_of_sixteen() -> None:
    run = "Ab1cdEfgh2jklMno"

    assert keys.is_key_material(f"{run} {run} {run}".encode(), 0, 50)
    assert not keys.is_key_material(f"{run} {run} {run[:15]}".encode(), 0, 49)
    assert not keys.is_key_material(f"{run} {run} {run}".encode(), 0, 49)
    assert keys.is_key_material(f"{run}{run[:8]}".encode(), 0, 24, 24)
    assert not keys.is_key_material(f"{run}{run[:8]}".encode(), 0, 23, 24)


@pytest.mark.parametrize("mark", ["...", "…", "***", "\n...", "[...]"])
def test_a_beginning_before_an_ellipsis_is_an_example_unless_much_is_shown(mark: str) -> None:
    begin = "-----BEGIN PRIVATE KEY-----\n"
    short = begin + LINES[0][:60] + mark
    assert masked(RULES, short, 0) == short

    long = begin + "\n".join(LINES[:2]) + mark
    assert survivors(masked(RULES, long, 0)) == []


def test_a_key_of_putty_is_masked_from_the_beginning_of_its_file() -> None:
    assert masked(RULES, SHAPES["putty"], 0) == "*"


def test_two_keys_one_after_the_other_are_two() -> None:
    assert masked(RULES, f"a {pem()} b {pem()} c") == "a * b * c"
    assert masked(RULES, f"a {pem()[:300]}\n{pem()} c", 0).endswith(" c")


@pytest.mark.parametrize("name", ["d", "p", "q", "dp", "dq", "qi", "k"])
def test_private_members_of_a_web_key_are_masked_and_public_ones_stay(name: str) -> None:
    value, public = expanded("<base64url:86>", name), expanded("<base64url:86>", "public")
    text = json.dumps({"kty": "oct" if name == "k" else "RSA", "n": public, name: value})

    result = masked(RULES, text)

    assert value not in result
    assert public in result
    other = json.dumps({"n": public, name: value})
    assert masked(RULES, other) == other


@pytest.mark.parametrize(
    ("header", "rest", "is_one"),
    [
        ({"alg": "HS256"}, ".e30.c2ln", True),
        *(({name: "JWT"}, ".e30", True) for name in ("typ", "enc", "kid", "cty", "x5t", "x5c", "jku", "jwk")),
        ({"alg": "HS256"}, "", False),
        ({"alg": "HS256"}, ".", False),
        ({"name": "x"}, ".e30", False),
        ({"name": "x"}, ".e30.c2lnbmF0dXJlLWxvbmctZW5v", True),
        ({"name": "x"}, ".e30.c2ln", False),
    ],
)
def test_a_web_token_has_a_header_that_says_so_or_a_signature(header: object, rest: str, is_one: bool) -> None:
    encoded = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    text = f"t {encoded}{rest} end"

    assert masked(RULES, text) == ("t * end" if is_one else text)


def test_a_key_at_the_end_of_a_string_leaves_the_name_of_the_next_member() -> None:
    text = "PuTTY-User-Key-File-3: x\nPrivate-Lines: 2\n" + "\n".join(LINES[:2])
    names = ("interactionId", "id", "theNameOfAnotherLongMember")

    for name in names:
        line = json.dumps({"message": text, name: "a"})
        assert masked(RULES, line, 0) == json.dumps({"message": "*", name: "a"})
