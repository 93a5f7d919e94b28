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
