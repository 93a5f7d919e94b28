"""A secret that arrives character by character is held back until all that makes it one is there."""

import re
from typing import Final

import pytest

from redaction.engine import Engine
from redaction.rules.examples import expanded
from tests.redaction.rules.context.test_forms import FOUND
from tests.rows import each, with_each_choice
from tests.shared import CACHE

ENGINE: Final = Engine(b"a key of the tests", cache_dir=CACHE)
LINES: Final = (
    'my «db_pass¦pwd¦secret¦api_key¦token¦credential¦auth_key¦PASSWORD»«=¦ = ¦: ¦ := ¦ => ¦="¦ : \'¦ => \\"»@@ end',
    'x = {"db_password": "of three words @@',
    "Authorization«: Bearer ¦: Token ¦: ¦=»@@ end",
    "«Cookie¦Set-Cookie»: lang=en; session_id=@@; path=/",
    "log in as «login¦user» ada / @@7 now",
    "«https¦postgres»://user:@@@host.example/path end",
    "tool «--db-pass¦--token¦-password»« ¦=»@@ --verbose",
    "curl -u me:@@ https://host.example",
    "the «login¦user¦cookie¦credential¦basic¦auth¦secret»   @@ end",
    "aws_sec: @@@@ end",
    "AKIA<base32:16>\t<base64:40> end",
)
_STEPS: Final = (1, 7)
# What makes these a secret comes behind them, or stands lines or sentences before.
_DECIDED_ELSEWHERE: Final = (
    "command-input",
    "paired-secret",
    "told-",
    "column-",
    "inserted-",
    "copied-",
    "tagged-secret.next",
    "recorded-cookie",
    "recovery-codes",
    "wallet-key-bytes",
)


def shown(text: str, step: int) -> str:
    """All that a stream shows of the text when it comes in steps."""
    stream = ENGINE.stream("x")
    return "".join(stream.feed(text[at : at + step]) for at in range(0, len(text), step)) + stream.flush()


@each([one for line in LINES for one in with_each_choice(line)], _STEPS)
def test_a_secret_in_pieces_is_shown_as_the_whole_would_be(line: str, step: int) -> None:
    text = expanded(line.replace("@@", "<base62:20>"), "stream")

    assert shown(text, step) == shown(text, len(text))


@each([form for form in FOUND if not form[0].startswith(_DECIDED_ELSEWHERE)][::8])
def test_each_form_of_a_secret_in_pieces_is_redacted(form: tuple[str, str, str]) -> None:
    _, line, template = form
    secret = expanded(with_each_choice(template)[0], line)

    assert secret not in shown(line.replace("@@", secret), 1)


def test_a_key_is_held_from_its_first_dash_to_its_last() -> None:
    for kind in ("", "RSA ", "OPENSSH ", "EC "):
        key = f"-----BEGIN {kind}PRIVATE KEY-----\n<base64:64>\n<base64:64>\n-----END {kind}PRIVATE KEY-----"

        told = shown(f"before {expanded(key, 'stream')} after", 1)

        assert told.startswith("before [REDACTED:private-key:")
        assert told.endswith("] after")


@pytest.mark.parametrize("step", [64, 5_000])
def test_of_a_secret_too_long_to_be_held_the_rest_is_dropped_and_what_follows_is_shown(step: int) -> None:
    secret = expanded("<base62:7000>", "stream")

    told = shown(f"before Authorization: Bearer {secret} and then my_password=hunter2x more of it", step)

    assert not any(secret[at : at + 8] in told for at in range(len(secret) - 8))
    assert told.startswith("before Authorization: Bearer [REDACTED:")
    assert " and then my_password=[REDACTED:" in told
    assert told.endswith("] more of it")


def test_after_its_end_a_stream_is_used_again_and_forgets_what_came_before() -> None:
    stream = ENGINE.stream("x")

    assert stream.feed("für den Zugang password=") + stream.flush() == "für den Zugang password="
    assert stream.feed("Blau7Garten3x für alle ") + stream.flush() == "Blau7Garten3x für alle "
    assert stream.feed("The new password is ") + stream.flush() == "The new password is "
    assert stream.feed("Blau7Garten3x for all ") + stream.flush() == "Blau7Garten3x for all "


def test_a_key_without_an_end_is_held_however_long_it_is() -> None:
    text = expanded("-----BEGIN RSA PRIVATE KEY-----\n" + "<base64:64>\n" * 30, "stream")

    assert not any(line in shown(text, 7) for line in text.splitlines())
    assert "no key" in shown("-----BEGIN RSA PRIVATE KEY-----\n" + "this is no key\n" * 60, 7)


@pytest.mark.parametrize(("length", "is_held"), [(399, True), (400, False)])
def test_the_beginning_of_a_key_is_held_for_400_characters_without_key_material(length: int, is_held: bool) -> None:
    told = ENGINE.stream("x").feed("-----BEGIN RSA PRIVATE KEY" + ("-----" + "this is no key\n" * 60)[:length])

    assert (told == "") is is_held


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("before", ["", "at 12:00 "])
@pytest.mark.parametrize("step", [58, 64, 65, 78, 5_000])
def test_of_a_key_too_long_to_be_held_the_rest_is_dropped_up_to_its_end(kind: str, before: str, step: int) -> None:
    lines = (
        f"-----BEGIN {kind}-----",
        *(expanded("<base64:64>", str(at)) for at in range(120)),
        f"-----END {kind}-----",
    )

    told = shown("It is " + "\n".join(before + line for line in lines) + " and so on", step)

    assert told.startswith(f"It is {before}[REDACTED:private-key:")
    assert told.endswith("] and so on")
    assert not any(line[at : at + 8] in told for line in lines[1:-1] for at in range(0, 64, 8))


@pytest.mark.parametrize("step", [1, 64, 65])
def test_of_a_long_key_of_putty_the_rest_is_dropped_up_to_its_proof(step: int) -> None:
    body = expanded("<base64:64>\n" * 120, "stream")
    head = (
        "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: me\nPublic-Lines: 1\nAAAAC3Nz\nPrivate-Lines: 120\n"
    )

    told = shown(f"It is {head}{body}Private-MAC: {expanded('<hex:64>')}\nand so on", step)

    assert re.fullmatch(r"It is \[REDACTED:putty-private-key:\w+\]\nand so on", told)


def test_nothing_is_shown_of_a_long_key_that_does_not_end() -> None:
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *(expanded("<base64:64>", str(at)) for at in range(120))]

    assert re.fullmatch(r"It is \[REDACTED:private-key:\w+\]", shown("It is " + "\n".join(lines), 64))


def test_what_follows_a_long_key_that_is_complete_is_shown() -> None:
    body = expanded("<base64:64>\n" * 90, "stream")
    stream = ENGINE.stream("x")

    told = stream.feed(f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----")
    told += stream.feed(" and so on") + stream.flush()

    assert told.startswith("[REDACTED:private-key:")
    assert told.endswith("] and so on")
