"""Every format finds its example and not its counter example, wherever it stands; and no fact of a row is idle."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from redaction.engine import Engine, Masked
from redaction.errors import RuleError
from redaction.rules.checks import CHECKS
from redaction.rules.examples import expanded
from redaction.rules.formats import Format, checked, read_table
from redaction.rules.shape import ShapeError, parsed, sample
from tests.redaction.events import content_of, event
from tests.redaction.rules.finding import GOES_ON, ROWS, changed, found_by
from tests.redaction.rules.forms import is_found, kept
from tests.rows import each
from tests.shared import CACHE

ENGINE = Engine(b"a key of the tests", cache_dir=CACHE)
SEED = 20261118
FORMS = kept()
ASSIGNED = re.compile(r"[A-Za-z0-9_]+=<|[A-Za-z0-9_]+=[^<>= ]*<[a-zA-Z0-9]+:\d+>\Z")
ENDS = {
    **{"api": "API_KEY", "key": "KEY", "token": "TOKEN", "secret": "SECRET", "access": "ACCESS_TOKEN"},
    **{"auth": "AUTH_TOKEN", "pat": "PAT", "password": "PASSWORD", "client": "CLIENT_SECRET"},
}
"""How a variable ends, by the end of a name in a row."""
USUAL = (ENDS.keys() - {"client"}, ENDS.keys() - {"auth", "pat", "password"})
"""The ends that the table has for a provider, of either kind."""
DELIBERATELY_LACKING = {
    **{"asana-client-secret": {"access"}, "bitly-token": {"client"}, "datadog-app-key": {"client"}},
    **{"dropbox-app-secret": {"access"}, "etsy-keystring": {"access"}, "eventbrite-token": {"client"}},
    **{"facebook-app-secret": {"access"}, "genius-token": {"key"}, "infura-key": {"access"}},
    **{"keeper-one-time-token": {"key", "pat"}, "launchdarkly-token-named": {"client"}, "mux-token-secret": {"client"}},
    **{"rollbar-token": {"secret"}, "sourcegraph-token-old": {"client"}, "sumologic-key": {"client"}},
    **{"trello-key": {"access"}, "twitter-access-secret": {"client"}, "unsplash-key-old": {"token"}},
    **{"vercel-token-old": {"client"}, "ynab-token": {"key"}, "zendesk-token": {"client"}},
}
"""Ends that a provider uses for something else than what the row is of."""

WRAPPERS: dict[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "sentence": lambda text: f"The value is {text}, as you see.",
    "quotes": lambda text: f"x = '{text}'",
    "backticks": lambda text: f"Use `{text}` here",
    "brackets": lambda text: f"f({text})[{text}]<{text}>",
    "JSON": lambda text: json.dumps({"out": text}),
    "JSON twice": lambda text: json.dumps([json.dumps({"out": f"a\n{text}\nb"})]),
    "JSON three times": lambda text: json.dumps(json.dumps([json.dumps({"out": f"\t{text}\n"})])),
    "diff": lambda text: f"@@ -1 +1 @@\n-{text}\n+{text}\n",
    "CRLF": lambda text: f"a\r\n{text}\r\nb",
    "line number": lambda text: f"    12\t{text}\n    13\tend",
    "grep": lambda text: f"src/app.py:12:{text}",
    "environment": lambda text: f"export VALUE={text};",
    "query": lambda text: f"https://host.example/?v={text}&w=1",
    "encoded query": lambda text: f"a%3D{text}%26b",
    "coloured": lambda text: f"\x1b[01;31m{text[: len(text) // 2]}\x1b[m\x1b[K{text[len(text) // 2 :]}\x1b[0m",
    "YAML": lambda text: f"- name: x\n  value: {text}\n",
    "HTML": lambda text: f"<code>{text}</code>",
    "CSV": lambda text: f"1,{text},2",
}


def drawn(row: Format, chooser: random.Random) -> tuple[str, str]:
    """A random secret of the row's shape, and a text in which it is one."""
    while True:
        text = sample(row.pattern, chooser)
        group = re.compile(row.pattern).match(text)
        assert group is not None
        secret = group[group.re.groups]
        if len(set(secret[-16:])) >= 5 and (not row.must or CHECKS[row.check or ""](secret.encode())):
            break
    return secret, f"{row.example.partition('=')[0]}={text}" if row.near else text


def survivors(secret: str, text: str) -> list[str]:
    """Runs of five characters of the secret's second half that are still in the text."""
    tail = secret[len(secret) // 2 :]
    text = re.sub(r"\[REDACTED:[^\]]*\]", "", text)
    return [tail[at : at + 5] for at in range(len(tail) - 4) if tail[at : at + 5] in text]


def test_there_are_three_hundred_formats_with_a_source_each() -> None:
    assert len(ROWS) >= 300
    assert all(row.source and row.provider and row.name for row in ROWS.values())


@each(ROWS)
def test_example_is_found_and_counter_example_is_not(name: str) -> None:
    row = ROWS[name]

    for seed in "abc":
        assert found_by(row, expanded(row.example, seed)), expanded(row.example, seed)
        assert found_by(row, expanded(row.example, seed) + GOES_ON), "only at the end, where it may be cut off"
        assert not found_by(row, expanded(row.counter, seed) + GOES_ON), expanded(row.counter, seed)


@each(ROWS)
def test_nothing_of_a_random_secret_survives_in_any_wrapper(name: str) -> None:
    chooser = random.Random(f"{SEED}/{name}")
    for wrapper, wrap in WRAPPERS.items():
        secret, text = drawn(ROWS[name], chooser)
        if ROWS[name].near and wrapper == "coloured":
            continue  # the name is cut, and with it what makes the value a secret

        result = ENGINE.redact(event(wrap(text)), 60_000)

        assert isinstance(result, Masked), wrapper
        assert survivors(secret, str(content_of(result.line))) == [], wrapper
        assert not isinstance(ENGINE.redact(result.line, 60_000), Masked), wrapper


@each(FORMS)
def test_every_other_form_is_found_or_not_as_on_record(name: str) -> None:
    """After a row was changed on purpose: `python -m tests.redaction.rules.forms`, and look at the difference."""
    assert name in ROWS
    for form in FORMS[name].found:
        assert is_found(ROWS[name], form), f"not found: {form}"
    for form in FORMS[name].not_found:
        assert not is_found(ROWS[name], form), f"found: {form}"


@each([name for name, row in ROWS.items() if row.near and ASSIGNED.match(row.example)])
def test_a_value_is_not_found_by_its_shape_alone_where_a_name_is_asked_for(name: str) -> None:
    value = ROWS[name].example.partition("=")[2]

    assert not is_found(ROWS[name], f"VALUE={value}")


@each([name for name, row in ROWS.items() if row.near and ASSIGNED.match(row.example)])
def test_every_usual_name_of_a_provider_is_known_where_most_are(name: str) -> None:
    row = ROWS[name]
    value = row.example.partition("=")[2]
    ends: dict[str, set[str]] = {}
    for provider, _, end in (one.rpartition(" ") for one in row.near):
        ends.setdefault(provider, set()).add(end)
    for provider, known in ends.items():
        usual = next((usual for usual in USUAL if len(usual & known) >= len(usual) - 1), set[str]())
        for end in usual - DELIBERATELY_LACKING.get(name, set()):
            variable = f"{provider.replace(' ', '_').upper()}_{ENDS[end]}"
            assert is_found(row, f"{variable}={value}"), variable


def _longer(count: re.Match[str]) -> str:
    most = str(int(count[3]) + 1000) if count[3] else ""
    return f"{{{int(count[1]) + 1000}{count[2]}{most}}}"


def _mutants(row: Format) -> list[Format]:
    """The row with one fact changed, in ways after which its example is no example."""
    longer = re.sub(r"\{(\d+)(,?)(\d*)\}", _longer, row.pattern)
    mutants = [changed(row, pattern=longer)]
    if row.near:
        mutants.append(changed(row, near=("quite another name",)))
    return mutants


@each(ROWS)
def test_a_changed_fact_is_noticed(name: str) -> None:
    for mutant in _mutants(ROWS[name]):
        assert not found_by(mutant, expanded(mutant.example, "a") + GOES_ON)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("pattern", "ab(", "not closed"),
        ("pattern", "a*", "'*' here"),
        ("pattern", "(a|b)(c)", "second capturing"),
        ("pattern", "[^a]{8}", "negated"),
        ("pattern", r"\d{8}", "'d' here"),
        ("pattern", "(?=a)b", "another kind"),
        ("pattern", "a{3,1}", "count"),
        ("pattern", "a{3,}b", "count"),
        ("pattern", "a?", "empty text"),
        ("pattern", "a'b", '"\'" here'),
        ("check", "luck", "no check is called luck"),
        ("left", "wrod", "neither"),
    ],
)
def test_a_bad_row_is_refused_with_its_name_and_the_reason(field: str, value: str, reason: str) -> None:
    row = changed(ROWS[next(iter(ROWS))], id="my-rule", **{field: value})

    with pytest.raises(RuleError) as refused:
        checked(row, "mine.toml")
    assert str(refused.value).startswith("mine.toml: rule my-rule: ")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("version = 1", "version"),
        ("version = '1'\n[[format]]\nid = 'x'", "provider"),
        ("version = '1'\n[[format]]\nid = 'X y'", "id"),
        ("version = '1'\n[[format]]\nidd = 'x'", "idd"),
        ("= 3", "line 1"),
    ],
)
def test_a_table_that_cannot_be_read_names_its_file(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "mine.toml").write_text(content)

    with pytest.raises(RuleError, match=r"^mine\.toml: ") as refused:
        read_table(tmp_path / "mine.toml")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "pattern", ["gh[pousr]_[0-9A-Za-z]{36}", "(?:a|bc){2,3}x?", "(?i:ab)[0-9]{4,}", r"a\.(b[x-z]{2})"]
)
def test_samples_have_the_shape_they_are_drawn_from(pattern: str) -> None:
    chooser = random.Random(SEED)
    shape = parsed(pattern)
    for _ in range(100):
        text = sample(pattern, chooser)

        assert re.fullmatch(pattern, text)
        assert shape.shortest <= len(text) <= shape.longest


def test_errors_say_where() -> None:
    with pytest.raises(ShapeError, match=r"at character 3 of 'ab\*'"):
        parsed("ab*")
