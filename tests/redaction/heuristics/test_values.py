"""What is told of a value without a decision: cut off, a digest, padding, words, code; and how long it must be."""

import pytest

from redaction.heuristics.certain import is_certain, is_told
from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.placeholders import is_mashed, is_monotonous, is_placeholder, only_dummies
from redaction.heuristics.secrecy import LENGTH_MAX, Placement, is_secret
from redaction.heuristics.values import (
    cut_end,
    in_marker,
    is_digest,
    is_padding,
    is_plain,
    is_salt,
    is_value,
    value_span,
)
from redaction.known import from_environ, is_worth_masking

_LEFT_OUT = (
    *(
        f" {mark}{word}"
        for mark in ("[", "((", "<<<", "{", "***", "#", "=", "---")
        for word in ("cut", " 7 lines omitted")
    ),
    *(
        f" [{word}]"
        for word in ("trunc", "omit", "more", "snip", "elided", "clipped", "exceeds", "too l", "limit", "7 chars")
    ),
    *(f" some {word}" for word in ("truncated", "omitted", "too long", "exceeded")),
    *(f"{gap}.." for gap in (" ", "\n", "\\n", "\\\\r", "\t \n ")),
    *(" (...)", "[ …", "<<<...", "\\\\u2026"),
)
RANDOM = "q7Zx2Lm9Vt4Kw8Rb3Nc6Hd1Fs5Jg0Py"


@pytest.mark.parametrize(
    ("demand", "least"),
    [(Demand.WEAK, 16), (Demand.TOKEN, 12), (Demand.KEY, 8), (Demand.SECRET, 7), (Demand.PASSWORD, 6)],
)
def test_the_less_sure_the_name_the_longer_its_value_must_be(demand: Demand, least: int) -> None:
    assert is_secret(RANDOM[:least], demand)
    assert not is_secret(RANDOM[: least - 1], demand)


def test_a_value_may_have_4096_characters() -> None:
    assert is_secret((RANDOM * 200)[:LENGTH_MAX], Demand.PASSWORD)
    assert not is_secret((RANDOM * 200)[: LENGTH_MAX + 1], Demand.PASSWORD)


@pytest.mark.parametrize(("length", "is_one"), [(128, True), (129, False)])
def test_a_value_with_blanks_is_no_longer_than_a_phrase(length: int, is_one: bool) -> None:
    assert is_secret(("x7#k " * 40)[: length - 1] + "9", Demand.PASSWORD) is False  # more than six parts
    assert is_secret((RANDOM + " " + RANDOM * 9)[:length], Demand.PASSWORD) is is_one


@pytest.mark.parametrize("control", ["\n", "\r", "\0"])
def test_a_value_is_on_one_line(control: str) -> None:
    assert not is_secret(RANDOM + control + RANDOM, Demand.PASSWORD)


@pytest.mark.parametrize(
    ("name", "demand"),
    [
        ("api_key", Demand.KEY), ("apikey", Demand.KEY), ("key", Demand.WEAK), ("public_key", Demand.NONE),
        ("access_token", Demand.KEY), ("my_token", Demand.KEY), ("token", Demand.TOKEN), ("next_token", Demand.NONE),
        ("mytoken", Demand.TOKEN), ("jsonwebtoken", Demand.NONE), ("secrets", Demand.SECRET), ("pw", Demand.SECRET),
        ("pin", Demand.WEAK), ("bearer", Demand.TOKEN), ("password_value", Demand.PASSWORD),
        ("password_2", Demand.PASSWORD),
        ("password_of_blue", Demand.TOKEN), ("password_length", Demand.NONE), ("hashed_password", Demand.NONE),
        ("sealed_secret", Demand.NONE), ("encrypted_key", Demand.NONE), ("ciphertext_secret", Demand.NONE),
        ("publishable_api_key", Demand.NONE), ("password.json", Demand.NONE), ("password_a_b_c_d", Demand.TOKEN),
        ("password_a_b_c_d_e", Demand.NONE), ("dbpass", Demand.PASSWORD), ("kennwort", Demand.PASSWORD),
        ("passphrase", Demand.PASSWORD), ("passcode", Demand.PASSWORD), ("authtoken", Demand.KEY), ("", Demand.NONE),
        ("authtokenizer", Demand.NONE),
    ],
)  # fmt: skip
def test_a_name_is_read_from_its_end(name: str, demand: Demand) -> None:
    assert demand_of(name.encode()) == demand


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("abcdef", 6), ("abcdef...", 6), ("abcdef..", 6), ("abcdef. More", -1), ("abcdef more", -1), ("abcdef…", 6),
        ("abcdef [truncated]", 6), ("abcdef <snip>", 6), ("abcdef (12 more)", 6), ("abcdef\\n... 4 lines", 6),
        ("abcdef [1]", -1), ("abcdef\\u2026", 6), ("abcdef output truncated", 6),
        ("abcdef OUTPUT TRUNCATED", 6), ('{"a":"abcdef"}', 12),
        ('a="abcdef"', -1),
        ('["abcdef"]', 8),
        *((f"abcdef{text}", 6) for text in _LEFT_OUT),
        *((f"abcdef{text}", -1) for text in (" {1}", "    \t..", " [x] cut", " it goes on", "\\u2027")),
    ],
)  # fmt: skip
def test_a_token_was_cut_off_where_the_text_ends_or_says_so(line: str, end: int) -> None:
    assert cut_end(line.encode(), line.index("abcdef")) == end


@pytest.mark.parametrize(("gap", "inside"), [(0, True), (60, True), (90, False)])
def test_a_place_within_a_marker_is_known(gap: int, inside: bool) -> None:
    line = b"[REDACTED:" + b"x" * gap

    assert in_marker(line, len(line)) is inside
    assert not in_marker(line + b"] y", len(line) + 2)


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("sha256 key: {}", True), ("md5sum(token) = {}", True), ("key.sha1 = {}", True),
        ("checksum of token: {}", True),
        ("key = {}", False), ("password: {}", False), ("mysha256key: {}", False),
    ],
)  # fmt: skip
def test_what_follows_the_name_of_a_digest_is_the_digest_of_a_file(line: str, is_one: bool) -> None:
    raw = line.format("0123456789abcdef0123456789abcdef").encode()
    start = raw.index(b"0123")
    name = b"token" if b"token" in raw else b"password" if b"password" in raw else b"key"
    at = raw.index(name)

    assert is_digest(raw, start, at, at + len(name)) is is_one
    assert not is_digest(raw[:start] + b"no digest!", start, at, at + len(name))


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("form.passwordField;", True), ("config.get(x)", True), ("Kx.qZtRwmLpVb;", False), ("Kx.qZtRwmL;", True),
        ("summer holiday;", True), ("q7Zx2Lm9Vt;", False), ("e(function(t){", True), ("e((t)=>", True),
    ],
)  # fmt: skip
def test_a_member_of_an_object_is_code_unless_its_name_is_scrambled(line: str, is_one: bool) -> None:
    assert is_plain(line.encode(), 0, Demand.PASSWORD, is_quoted=False) is is_one


def test_a_member_is_code_for_a_name_that_is_no_password() -> None:
    assert is_plain(b"Kx.qZtRwmLpVb;", 0, Demand.KEY, is_quoted=False)
    assert is_value(b"aB.cD.tokenx", Demand.KEY, Placement.BARE)
    assert not is_value(b"aB.cD.token", Demand.KEY, Placement.BARE)
    assert is_value(b"aB.cD.token", Demand.KEY, Placement.QUOTED)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("kruFoSanAbXySanTim", True), ("KruFoSanAbXySanTim", True), ("userSessionHandlerStore", False)],
)
def test_letters_whose_case_changes_more_often_than_in_a_name_are_a_key(text: str, is_one: bool) -> None:
    assert is_value(text.encode(), Demand.KEY) is is_one


def test_a_password_of_words_has_no_more_than_eight() -> None:
    words = "harbour marble window glacier pepper lantern meadow anchor"

    assert is_certain(words, quoted=True)
    assert not is_certain(words + " river", quoted=True)
    assert not is_certain(words, quoted=False)


@pytest.mark.parametrize("value", ["mypassword", "yoursecret", "thepwd", "my-admin-password-here", "yourpasswordhere"])
def test_what_is_said_of_a_password_is_none_at_any_place(value: str) -> None:
    assert not is_certain(value, quoted=True)


def test_a_string_that_numbers_follow_is_salt() -> None:
    assert is_salt(b'0123456789abcdef", 1000, 32)', 0)
    assert is_salt(b"01234567', 1)", 0)
    assert is_salt(b"01234567', 1234567)", 0)
    assert not is_salt(b"01234567', 12345678)", 0)
    for other in (b'0123456", 1)', b'0123456789abcdef", x)', b'0123456789abcdef" 1000)', b'0123456789abcdeg", 1)'):
        assert not is_salt(other, 0)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("aGVsbG8gd29ybGQ5=", True), ("Zm9vYmFyMTIzNDU=", True), ("passwordkey=", False), ("Zm9vYmFyMTIz=", False),
     ("ABCDEFGH1234567=", False), ("abcdefgh1234567=", False)],
)  # fmt: skip
def test_padding_of_base64_is_no_operator(text: str, is_one: bool) -> None:
    assert is_padding(text.encode(), len(text)) is is_one


def test_a_value_that_was_cut_off_ends_with_the_string_around_it() -> None:
    line = rb'{"a":"key=\"abc","b":1}'
    start = line.index(b"abc")

    assert line[slice(*value_span(line, start))] == b"abc"
    assert value_span(b'k="abc" d', 3) == (3, 6)
    assert value_span(b'k="abc\\', 3) == (3, 6)
    assert value_span(b"k=abc d", 2) == (2, 5)


def test_letters_of_changing_case_are_random_for_a_sure_name() -> None:
    assert is_value(b"qWxRtZpLkV", Demand.KEY)
    assert not is_value(b"qWxRtZpLkV", Demand.TOKEN)
    assert not is_value(b"qwxrtzp", Demand.KEY)


@pytest.mark.parametrize(
    ("value", "is_one"),
    [("aaaabbbbcccc", True), ("abcdefghijkl", True), ("lkjihgfedcba", True), ("98765432", True), ("q7zx2lm9", False),
     ("abcdef1x9", True), ("abcd1x9zq7k", False)],
)  # fmt: skip
def test_few_characters_and_sequences_are_monotonous(value: str, is_one: bool) -> None:
    assert is_monotonous(value) is is_one


@pytest.mark.parametrize(
    ("value", "is_one"),
    [("asdkjhfkl", True), ("asdfgh", True), ("asdfg", False), ("qwertzuiop", False), ("asdfghqwe", False),
     ("asdfghjkq", True), ("fadfadfad", False), ("ASDFGHJKL", False), ("aSdfghjklasdfghjklasd", True),
     ("aSdfghjklasdfghjklas", False)],
)  # fmt: skip
def test_what_resting_hands_type_is_no_key(value: str, is_one: bool) -> None:
    assert is_mashed(value) is is_one


@pytest.mark.parametrize(
    ("value", "is_one"),
    [("${X}", True), ("%s", True), ("^a+$", True), ("^a+", False), ("a=%s!", True), ("a%sB9", False),
     ("changeme", True), (RANDOM, False)],
)  # fmt: skip
def test_a_placeholder_stands_for_another_value(value: str, is_one: bool) -> None:
    assert is_placeholder(value) is is_one


@pytest.mark.parametrize(("value", "is_one"), [("secure123", True), ("secure1234", False), ("test1234", True)])
def test_a_quality_with_few_digits_is_a_dummy(value: str, is_one: bool) -> None:
    assert only_dummies(value) is is_one


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("q7zx2lm9", True), ("q7zx2lm", False), ("aaaabbbc", False), ("q7zx\0lm92", False), ("q7zx\nlm92", False),
        ("localhost", False), ("horsebattery", False), ("Horsebattery", False), ("horseBattery", True),
        ("horsebatterystaple", True), ("/var/lib/thing", False), ("2026-11-18", False), ("${SECRET_1}", False),
        ("https://host.example/x", False), ("https://me:q7zx@host", True), ("C:\\keys\\id.pem", False),
    ],
)  # fmt: skip
def test_a_known_value_is_masked_where_that_does_no_harm(value: str, is_one: bool) -> None:
    assert is_worth_masking(value) is is_one


def test_variables_are_chosen_by_name_whatever_its_case() -> None:
    assert from_environ({"MY_TOKEN": "1", "token_my": "2", "other": "3"}, ["*_token", "OTH*"]) == ["1", "3"]


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("zqkur_9k", False), ("_zqkur_9k", True), ("zqkur_", False), ("ZQKUR_9K", False),
        ("_ZQKUR_9K", True), ("zqkur9k", True), ("k9xab:2cd:", False), ("k9xab:2cd", True),
        ("me9@host-1.org", False), ("me9@.host1", True), ("obj9.memb", False), ("obj9.2memb", True),
        (".9obj.memb", True), ("ab9/cdef", False), ("ab9=cdef", False), ("v1.2.3abc", False),
        ("x8664", False), ("x86_64", False), ("x8664_abc", True), ("sha256abc", False),
        ("sha2a5b6c7", True), ("pkcs#12", False), ("zqk9a", False),
    ],
)  # fmt: skip
def test_a_word_of_a_sentence_is_told_as_a_password_unless_it_is_a_name_a_part_or_a_version(
    value: str, is_one: bool
) -> None:
    assert is_told(value) is is_one
