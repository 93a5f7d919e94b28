"""Where a value ends, with and without quotes, at any depth of escapes."""

import pytest

from redaction.text.escapes import after_escape, closing_quote, opening_quote, starts_word, unescaped
from redaction.text.extent import PLAIN_LENGTH_MAX, QUOTED_LENGTH_MAX, extent


@pytest.mark.parametrize(
    ("line", "quote", "value"),
    [
        ('abc" rest', '"', "abc"),
        ("abc' rest", "'", "abc"),
        (r"a\"c\" rest", '"', r"a\"c\" rest"),
        (r"a\"c\" rest", r"\"", "a"),
        ('a\\\\" rest"', '"', "a\\\\"),
        (r"abc\n" + '"', '"', r"abc\n"),
        (r"abc\\ndef\" rest", r"\"", r"abc\\ndef"),
        (r"abc\ndef\" rest", r"\"", "abc"),
        ("abc\ndef' rest", "'", "abc"),
        (r"abc\ndef' rest", "'", "abc"),
        ("abc", '"', "abc"),
        ("abc\\\\", '"', "abc\\\\"),
        ("abc def; rest", "", "abc"),
        ("abc,def", "", "abc,def"),
        ("abc,name=def", "", "abc"),
        ("abc,d:e", "", "abc"),
        ("abc, def", "", "abc"),
        ("abc&name=1", "", "abc"),
        ("abc;", "", "abc"),
        ("abc).", "", "abc"),
        ("abc);", "", "abc"),
        ("abc}}", "", "abc"),
        ("abc|def", "", "abc|def"),
        ("abc| def", "", "abc"),
        ("abc${X}", "", "abc"),
        ("abc<b>", "", "abc"),
        ("abc`", "", "abc"),
        (r"a\/b\/c d", "", r"a\/b\/c"),
        (r"abc\ndef", "", "abc"),
        (r"abc\\xdef", "", r"abc\\xdef"),
        ("abc...", "", "abc"),
        ("", "", ""),
    ],
)
def test_a_value_ends_where_a_reader_would_end_it(line: str, quote: str, value: str) -> None:
    whole = (quote + line).encode()
    found = extent(whole, len(quote), quote.encode())

    assert whole[found.start : found.end].decode() == value
    assert found.quoted is bool(quote)


@pytest.mark.parametrize(("quote", "most"), [("", PLAIN_LENGTH_MAX), ('"', QUOTED_LENGTH_MAX)])
@pytest.mark.parametrize("length", [90, 100, 159, 160, 161, 4095])
def test_a_long_value_is_one_up_to_a_limit(quote: str, most: int, length: int) -> None:
    assert extent(b"a" * length + quote.encode() + b" b", 0, quote.encode()).end == length
    assert extent(b"a" * 2 * most, 0, quote.encode()).end == most


def test_a_value_in_a_json_line_ends_at_the_latest_with_its_string() -> None:
    line = rb'{"a":"x=' + b"'" + rb'abc","b":"it' + b"'" + rb's"}'
    start = line.index(b"abc")

    assert line[start : extent(line, start, b"'").end] == b"abc"
    cut_off = rb'{"a":"x=\"abc","b":"d"}'
    start = cut_off.index(b"abc")
    assert cut_off[start : extent(cut_off, start, rb"\"").end] == b"abc"


@pytest.mark.parametrize(
    ("before", "is_start"),
    [
        ("", True), (" ", True), ("=", True), ("_", True), ("a", False), ("9", False), (r"\n", True), (r"\q", False),
        (r"\u001b", True), (r"\u01b", False), (r"\x1b", True), ("%3D", True), ("%D", False), ("\x1b[01;31m", True),
        ("[K", True), ("n", False),
    ],
)  # fmt: skip
def test_a_word_begins_after_what_is_no_letter_or_digit(before: str, is_start: bool) -> None:
    assert starts_word(before.encode() + b"word", len(before)) is is_start


@pytest.mark.parametrize(
    ("line", "start", "after"),
    [(r"\nabc", 1, 2), (r"\u0041bc", 1, 6), (r"\u0041bc", 2, 6), ("abc", 1, 1), (r"\qbc", 1, 1)],
)  # fmt: skip
def test_half_an_escape_is_passed_over(line: str, start: int, after: int) -> None:
    assert after_escape(line.encode(), start) == after


@pytest.mark.parametrize(
    ("line", "quote"), [('a="', '"'), (r"a=\"", r"\""), (r"a=\\\"", r"\\\""), ("a=`", "`"), ("a=", ""), ('a="b', "")]
)
def test_the_quote_before_a_value_has_its_backslashes(line: str, quote: str) -> None:
    assert opening_quote(line.encode(), len(line)) == quote.encode()


@pytest.mark.parametrize(
    ("line", "quote", "at"),
    [
        ('ab"', '"', 2), (r"ab\"c" + '"', '"', 5), ('ab\\\\"', '"', 4), ("ab", '"', -1), (r"ab\'c'", "'", 5),
        (r"ab\"", r"\"", 2), (r"ab\\\"c\"", r"\"", 7),
    ],
)  # fmt: skip
def test_a_quote_closes_at_its_own_depth(line: str, quote: str, at: int) -> None:
    assert closing_quote(line.encode(), 0, quote.encode(), len(line)) == at
    assert closing_quote(line.encode(), 0, quote.encode(), max(at, 0)) == -1


def test_four_levels_of_escapes_are_taken_off_and_no_more() -> None:
    assert unescaped(rb"a\u0062\n\t\"") == 'ab\n\t"'
    assert unescaped(b"a" + b"\\" * 16 + b"q") == "a\\q"
    assert unescaped(b"a" + b"\\" * 8 + b"q") == "aq"
