"""The floor engine keeps the contract, whatever wraps a secret, and finds all that detect-secrets' detectors find."""

import base64
import importlib
import json
import pkgutil
import random
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from redaction.allowlist import Allowed
from redaction.engine import CLEAN, Engine, Masked, Redactor, Refused
from redaction.known import is_worth_masking
from redaction.rules.detectors import is_credible
from redaction.rules.examples import expanded
from tests.redaction.contract import BUDGET_MS, RedactorContract
from tests.redaction.events import content_of, event
from tests.redaction.made_up import KINDS, MadeUp, make, survivors
from tests.shared import CACHE, REAL

KEY = b"a key of the tests"
ENGINE = Engine(KEY, cache_dir=CACHE)
ROOT = Path(__file__).parents[2]


class TestEngine(RedactorContract):
    """The contract on the floor engine."""

    def make_redactor(self, known_values: Sequence[str] = ()) -> Redactor:
        """Compiled once, unless it has values to know."""
        return ENGINE.with_known_values(known_values) if known_values else ENGINE


def _coloured(text: str) -> str:
    middle = len(text) // 2
    return f"\x1b[01;31m{text[:middle]}\x1b[m\x1b[K{text[middle:]}\x1b[0m"


WRAPPERS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "in a sentence": lambda text: f"The value is {text} as you see.",
    "JSON": lambda text: json.dumps({"out": text}),
    "JSON twice": lambda text: json.dumps({"x": json.dumps([text])}),
    "JSON three times": lambda text: json.dumps(json.dumps({"x": json.dumps([text])})),
    "JSON in ASCII": lambda text: json.dumps({"ü": f"☃{text}"}),
    "diff": lambda text: "@@ -1 +1 @@\n" + "".join(f"+{row}\n" for row in text.split("\n")),
    "coloured": _coloured,
    "coloured before": lambda text: f"\x1b[32m{text}\x1b[0m",
    "CRLF": lambda text: "a\r\n" + text.replace("\n", "\r\n") + "\r\nb",
    "line numbers": lambda text: "".join(f"{number:6}\t{row}\n" for number, row in enumerate(text.split("\n"), 1)),
    "numbered with a bar": lambda text: "".join(f"{number}. {row}\n" for number, row in enumerate(text.split("\n"), 1)),
    "in backticks": lambda text: f"`{text}`",
    "in brackets": lambda text: f"<{text}>,({text})",
}


@settings(max_examples=400)
@given(kind=st.sampled_from(sorted(KINDS)), wrapper=st.sampled_from(sorted(WRAPPERS)), seed=st.integers(0, 10**9))
def test_no_secret_survives_in_any_wrapper(kind: str, wrapper: str, seed: int) -> None:
    secret = make(kind, seed)
    raw = event(WRAPPERS[wrapper](secret.text))

    result = ENGINE.redact(raw, BUDGET_MS)

    assert isinstance(result, Masked)
    json.loads(result.line)
    # Colours cut a secret in two, so what may survive must be looked for without them.
    content = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", str(content_of(result.line)))
    assert survivors(secret, content) == []
    assert ENGINE.redact(result.line, BUDGET_MS) == CLEAN


@settings(max_examples=200)
@given(
    st.recursive(
        st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda items: st.lists(items) | st.dictionaries(st.text(), items),
    )
)
def test_arbitrary_json_never_fails_and_stays_json(value: object) -> None:
    raw = event([value, make("stripe", 1).text])

    result = ENGINE.redact(raw, BUDGET_MS)

    assert isinstance(result, Masked)
    json.loads(result.line)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_never_pass_with_a_secret_and_never_raise(noise: bytes) -> None:
    secret = make("github ghp", 1)

    result = ENGINE.redact(noise + b'"' + secret.text.encode() + b'"' + noise, BUDGET_MS)

    assert isinstance(result, Masked | Refused)
    assert not isinstance(result, Masked) or survivors(secret, result.line.decode()) == []


def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    plugins = importlib.import_module("detect_secrets.plugins")
    base = importlib.import_module("detect_secrets.plugins.base").RegexBasedDetector
    found: list[tuple[str, re.Pattern[str]]] = []
    for module in pkgutil.iter_modules(plugins.__path__):
        if module.name in {"base", "ip_public", "private_key", "jwt"}:
            continue
        loaded = importlib.import_module(f"{plugins.__name__}.{module.name}")
        for detector in vars(loaded).values():
            facts: Any = detector
            if isinstance(detector, type) and issubclass(detector, base) and detector is not base:
                found += [(module.name, pattern) for pattern in facts.denylist]
    return found


PATTERNS = _patterns()
# Groups of detectors' patterns that are the secret; elsewhere the whole match is.
SECRET_IN_GROUP = {"aws", "basic_auth", "cloudant", "ibm_cloud_iam", "ibm_cos_hmac", "softlayer", "npm"}
ASCII = st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\')


def _secret_of(name: str, match: re.Match[str]) -> str:
    secret = match[1] if name in SECRET_IN_GROUP and match.re.groups and match[1] else match[0]
    if name == "azure_storage_key":
        secret = secret.partition("=")[2]
    # What stands after the first blank or quote belongs to the line, not to the secret.
    words = re.split(r"""[\s"'=:]+""", secret.strip(" \"'=:")) if name in {"npm", "artifactory"} else [secret]
    return words[0]


@pytest.mark.parametrize("number", range(len(PATTERNS)), ids=[f"{name}-{n}" for n, (name, _) in enumerate(PATTERNS)])
def test_everything_that_detect_secrets_matches_is_masked(number: int) -> None:
    name, pattern = PATTERNS[number]

    # By chance nearly all of the first examples may be single digits, which are no passwords of addresses.
    @settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
    @given(st.from_regex(pattern, alphabet=ASCII))
    def check(text: str) -> None:
        match = pattern.search(text)
        assert match is not None
        secret = _secret_of(name, match)
        assume(secret != "npm_")  # a prefix with nothing behind it is no secret
        in_group = name in SECRET_IN_GROUP and pattern.groups > 0 and bool(match[1])
        start = text.index(secret, match.start(1 if in_group else 0))
        assume(is_credible(name, text.encode(), start, start + len(secret)))  # nor is a placeholder
        result = ENGINE.redact(event(text), BUDGET_MS)
        assert isinstance(result, Masked), text
        content = str(content_of(result.line))
        assert not content.startswith(text[: start + len(secret)])

    check()


@settings(max_examples=500)
@given(
    value=st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=8, max_size=90).filter(
        is_worth_masking
    ),
    before=st.binary(max_size=7),
    form=st.sampled_from(("plain", "JSON", "address", "base64", "address-safe base64")),
)
def test_known_values_are_found_whatever_they_are_made_of(value: str, before: bytes, form: str) -> None:
    engine = ENGINE.with_known_values([value])
    data = before + value.encode() + b"after"
    written = {
        "plain": value,
        "JSON": json.dumps({"x": json.dumps(value)}),
        "address": quote(value, safe=""),
        "base64": base64.b64encode(data).decode(),
        "address-safe base64": base64.urlsafe_b64encode(data).decode(),
    }[form]

    result = engine.redact(event(f"see {written} there"), BUDGET_MS)

    assert isinstance(result, Masked)
    assert written not in str(content_of(result.line))


def test_nothing_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)

    engine = Engine(KEY, ["a value to know 17"])

    for kind in KINDS:
        assert isinstance(engine.redact(event(make(kind, 8).text), BUDGET_MS), Masked)
        engine.redact_text(make(kind, 9).text)


def test_importing_the_engine_imports_neither_detectors_nor_requests() -> None:
    code = (
        "import sys, redaction.engine; print([n for n in ('detect_secrets', 'requests', 'config') if n in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert shown.stdout.strip() == "[]"


def test_a_failure_inside_is_a_refusal_without_content(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(KEY, cache_dir=CACHE)
    secret = make("github ghp", 1)

    class Broken:
        def spans(self, line: bytes, deadline: object) -> NoReturn:
            raise ValueError(line)

    monkeypatch.setattr(engine, "_search", Broken())

    assert engine.redact(event(secret.text), BUDGET_MS) == Refused("redactor_failed")


def test_tags_depend_on_the_key() -> None:
    text = make("github ghp", 1).text

    assert Engine(b"one", cache_dir=CACHE).redact_text(text) == Engine(b"one", cache_dir=CACHE).redact_text(text)
    assert Engine(b"one", cache_dir=CACHE).redact_text(text) != Engine(b"two", cache_dir=CACHE).redact_text(text)
    assert Engine(cache_dir=CACHE).redact_text(text) != Engine(cache_dir=CACHE).redact_text(text)


def test_what_is_allowed_passes() -> None:
    sample = make("aws id", 1).text
    allowed = [Allowed(value=sample), Allowed(pattern=re.compile("ghp_.*")), Allowed(rule="assigned-secret")]
    engine = Engine(KEY, allowed=allowed, cache_dir=CACHE)

    assert engine.redact(event(sample), BUDGET_MS) == CLEAN
    assert engine.redact(event(make("github ghp", 1).text), BUDGET_MS) == CLEAN
    assert engine.redact(event(make("password", 1).text), BUDGET_MS) == CLEAN
    assert isinstance(engine.redact(event(make("github gho", 1).text), BUDGET_MS), Masked)


def test_every_rule_has_an_id_a_provider_and_a_marker_that_it_accepts() -> None:
    rules = ENGINE.rules()

    assert len(rules) > 1000
    assert all(re.fullmatch(r"[a-z0-9.-]{1,48}", rule.id) and rule.provider and rule.name for rule in rules)
    for rule in rules:
        marker = f"token = [REDACTED:{rule.id}:0123abcd]"
        assert ENGINE.redact(event(marker), BUDGET_MS) == CLEAN


def _captured_lines() -> list[bytes]:
    """The secrets scenario of the real CLI where it is at hand, else the same made up."""
    capture = REAL / "captures" / "secrets" / "events.jsonl"
    if capture.exists():
        return capture.read_bytes().split(b"\n")[:-1]
    secrets = [make(kind, 11).text for kind in KINDS]
    printed = "printf '%b\\n' " + " ".join(f"'{secret}'" for secret in secrets)
    return [event("", arguments={"command": printed}), event("\n".join(secrets)), event(f"It holds {secrets[0]} .")]


def test_a_recorded_session_leaves_without_its_secrets() -> None:
    lines = _captured_lines()
    prefixes = (
        rb"ghp_|ghs_|github_pat_|AKIA|eyJ|xoxb-|sk-proj|npm_|AIza|sk_live_|AccountKey=[A-Za-z]"
        rb"|BEGIN RSA|hunter2|s3cr3tpw"
    )
    assert re.search(prefixes, b"".join(lines))

    results = [ENGINE.redact(line, BUDGET_MS) for line in lines]

    assert not [result for result in results if isinstance(result, Refused)]
    left = [result.line if isinstance(result, Masked) else line for result, line in zip(results, lines, strict=True)]
    assert re.search(prefixes, b"".join(left)) is None
    for line, kept in zip(lines, left, strict=True):
        before, after = json.loads(line), json.loads(kept)
        assert {key: before[key] for key in before if key != "data"} == {
            key: after[key] for key in after if key != "data"
        }


@settings(max_examples=300)
@given(
    kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 10**9), lengths=st.lists(st.integers(1, 60), min_size=1)
)
def test_no_split_of_a_stream_leaks(kind: str, seed: int, lengths: list[int]) -> None:
    secret: MadeUp = make(kind, seed)
    text = f"before\n{secret.text}\n" + "".join(random.Random(seed).choices("lorem ipsum ", k=40))
    stream = ENGINE.stream("x")
    shown, position, turn = "", 0, 0
    while position < len(text):
        step = lengths[turn % len(lengths)]
        shown += stream.feed(text[position : position + step])
        position, turn = position + step, turn + 1

    shown += stream.flush()

    assert survivors(secret, shown) == []


def test_a_list_of_the_bytes_of_a_key_becomes_a_list_of_one_text_where_a_text_holds_json() -> None:
    numbers = json.loads(expanded("[<bytes:64>]", "key"))

    results = [
        ENGINE.redact(event(text), BUDGET_MS) for text in (json.dumps({"key": numbers}), f"the key is {numbers}")
    ]

    in_json, in_words = (str(content_of(one.line)) for one in results if isinstance(one, Masked))
    [marker] = json.loads(in_json)["key"]
    assert re.fullmatch(r"\[REDACTED:wallet-key-bytes:[0-9a-f]+\]", marker)
    assert re.fullmatch(r"the key is \[\[REDACTED:wallet-key-bytes:[0-9a-f]+\]\]", in_words)
