"""What every redactor promises; an engine's tests inherit the class and say how one is made."""

import base64
import json
import random
from collections.abc import Sequence
from urllib.parse import quote

import pytest

from redaction.engine import CLEAN, Engine, Masked, Redaction, Redactor, Refused
from tests.redaction.events import EVENT, SESSION, content_of, event, line
from tests.redaction.made_up import KINDS, MARKER, MadeUp, make, survivors

BUDGET_MS = 60_000.0

CLEAN_TEXTS = (
    "The build passed: 214 tests, 3 warnings.",
    "Set PASSWORD_MIN_LENGTH=12 and max_tokens: 4096, then run again.",
    'Use "password": "${DB_PASSWORD}" or password: <your-password> in the file.',
    "const apiKey = process.env.API_KEY; if (apiKey === '') throw new Error('no key')",
    "curl -H 'Authorization: Bearer ${TOKEN}' https://api.example/v1",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 by dev@example.org",
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "see https://example.org:8443/a/b?page=2#top and git@example.org:team/repo.git",
    "def authenticate(password: str, token: str | None = None) -> None: ...",
    "primaryKey: userId, cacheKey: String, monkey = banana, token_count: 1200",
    'snowman ☃, line separator \u2028, quote " and backslash \\ and tab \t',
)


class RedactorContract:
    """Inherit it as a test class and define `make_redactor`."""

    def make_redactor(self, known_values: Sequence[str] = ()) -> Redactor:
        """A redactor of the kind under test."""
        raise NotImplementedError

    @pytest.mark.parametrize("text", CLEAN_TEXTS)
    def test_text_that_people_need_is_left_alone(self, text: str) -> None:
        redactor = self.make_redactor()

        assert redactor.redact(event(text), BUDGET_MS) is CLEAN
        assert redactor.redact_text(text) == text

    @pytest.mark.parametrize("kind", KINDS)
    def test_secret_is_masked_whole(self, kind: str) -> None:
        secret = make(kind, 1)

        result = self.make_redactor().redact(event(f"before {secret.text} after"), BUDGET_MS)

        assert isinstance(result, Masked)
        content = content_of(result.line)
        assert isinstance(content, str)
        assert survivors(secret, content) == []
        assert content.startswith("before ")
        assert content.endswith(" after")
        assert MARKER.search(content)

    @pytest.mark.parametrize("kind", KINDS)
    def test_its_own_output_is_clean(self, kind: str) -> None:
        redactor = self.make_redactor()
        result = redactor.redact(event(f"x {make(kind, 2).text}\ny {make(kind, 3).text}"), BUDGET_MS)
        assert isinstance(result, Masked)

        assert redactor.redact(result.line, BUDGET_MS) == CLEAN
        assert redactor.redact_text(result.line.decode()) == result.line.decode()

    @pytest.mark.parametrize("kind", KINDS)
    def test_everything_but_the_secret_keeps_its_bytes(self, kind: str) -> None:
        secret = make(kind, 4)
        odd = b'{"type":"t", "data" : {"n":9223372036854775809,"e":1e400,"n":1.0,"s":"\\ud800 \\/ \\u0041",\t"content":'
        rest = b', "u":"\xe2\x80\xa8"} ,"id":"e","ephemeral":false}\n'
        raw = odd + json.dumps(f"a {secret.text} b").encode() + rest

        result = self.make_redactor().redact(raw, BUDGET_MS)

        assert isinstance(result, Masked)
        assert result.line.startswith(odd + b'"a ')
        assert result.line.endswith(b' b"' + rest)
        json.loads(result.line)

    def test_linkage_is_never_touched(self) -> None:
        data = {"toolCallId": "call_0a1b2c3d4e5f60718293a4b5", "parentToolCallId": EVENT, "turnId": "12"}
        raw = line({"type": "tool.execution_start", "agentId": SESSION, "data": data})

        assert self.make_redactor([SESSION, EVENT, data["toolCallId"]]).redact(raw, BUDGET_MS) == CLEAN

    def test_a_users_own_id_is_text_like_any_other(self) -> None:
        token = make("github ghp", 1)
        raw = line(
            {"type": "tool.execution_start", "data": {"arguments": {"id": token.text, "toolCallId": token.text}}}
        )

        result = self.make_redactor().redact(raw, BUDGET_MS)

        assert isinstance(result, Masked)
        assert survivors(token, result.line.decode()) == []
        envelope = json.loads(result.line)
        assert (envelope["id"], envelope["parentId"]) == (EVENT, SESSION)

    def test_opaque_fields_pass_whole(self) -> None:
        opaque = make("sendgrid", 1).text
        data = {"encryptedContent": opaque, "reasoningOpaque": opaque}

        assert self.make_redactor().redact(line({"type": "assistant.message", "data": data}), BUDGET_MS) == CLEAN

    def test_keys_are_scanned_and_shown_masked_in_paths(self) -> None:
        token = make("github ghp", 1)
        raw = event({token.text: {"inner": make("stripe", 1).text}})

        result = self.make_redactor().redact(raw, BUDGET_MS)

        assert isinstance(result, Masked)
        assert survivors(token, result.line.decode()) == []
        assert len(result.findings) == 2
        assert survivors(token, repr(result.findings)) == []
        assert result.findings[0].path.startswith("/data/content/[REDACTED:")
        assert result.findings[1].path.endswith("/inner")

    def test_a_members_name_makes_its_value_a_secret(self) -> None:
        raw = event({"password": "korrekt-7-pferd", "client_secret": "ab12cd34ef56", "password_hint": "my first pet"})

        result = self.make_redactor().redact(raw, BUDGET_MS)

        assert isinstance(result, Masked)
        content = content_of(result.line)
        assert isinstance(content, dict)
        assert MARKER.fullmatch(content["password"])
        assert MARKER.fullmatch(content["client_secret"])
        assert content["password_hint"] == "my first pet"

    def test_finding_says_where_in_the_decoded_string(self) -> None:
        token = make("github ghp", 1).text
        text = f'"☃\n\\ {token} ☃'

        result = self.make_redactor().redact(event([{"a/b": text}]), BUDGET_MS)

        assert isinstance(result, Masked)
        (finding,) = result.findings
        assert finding.path == "/data/content/0/a~1b"
        assert text[finding.start : finding.end] == token

    def test_json_in_json_stays_valid(self) -> None:
        secrets = [make(kind, 5) for kind in KINDS]
        inner = json.dumps({"a": [secret.text for secret in secrets], "tail": '\\ " \n ☃'})
        doubled = json.dumps({"nested": inner, "after": 1})

        result = self.make_redactor().redact(event(doubled), BUDGET_MS)

        assert isinstance(result, Masked)
        content = content_of(result.line)
        assert isinstance(content, str)
        outer = json.loads(content)
        again = json.loads(outer["nested"])
        assert outer["after"] == 1
        assert again["tail"] == '\\ " \n ☃'
        assert [item for secret, item in zip(secrets, again["a"], strict=True) if survivors(secret, item)] == []

    def test_secret_spelt_with_escapes_is_found(self) -> None:
        secret = make("github ghp", 6)
        spelt = "".join(f"\\u{ord(character):04x}" for character in secret.text)
        raw = event("PLACE").replace(b"PLACE", spelt.encode())

        result = self.make_redactor().redact(raw, BUDGET_MS)

        assert isinstance(result, Masked)
        assert MARKER.fullmatch(str(content_of(result.line)))

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n+", "\n-", "\n> ", "\n  12\t", "\n 7 | ", " "])
    @pytest.mark.parametrize("kind", ["rsa key", "openssh key", "pgp key"])
    def test_private_key_is_masked_however_its_lines_are_broken(self, kind: str, newline: str) -> None:
        secret = make(kind, 1)
        text = "start" + newline + secret.text.replace("\n", newline) + newline + "stop"

        result = self.make_redactor().redact(event(text), BUDGET_MS)

        assert isinstance(result, Masked)
        content = str(content_of(result.line))
        assert survivors(secret, content) == []
        assert (content[:5], content[-4:]) == ("start", "stop")

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n+", "\n  12\t"])
    def test_private_key_that_was_cut_is_masked_to_where_it_ends(self, newline: str) -> None:
        secret = make("rsa key", 2)
        text = secret.text[: secret.text.index(secret.parts[3]) + 9].replace("\n", newline)

        result = self.make_redactor().redact(event(json.dumps({"out": text})), BUDGET_MS)

        assert isinstance(result, Masked)
        inner = json.loads(str(content_of(result.line)))
        assert survivors(secret, inner["out"]) == []

    def test_same_secret_has_the_same_tag_and_another_has_not(self) -> None:
        first, second = make("github ghp", 1).text, make("github ghp", 2).text
        redactor = self.make_redactor()

        one, two, three = (MARKER.findall(redactor.redact_text(text))[0] for text in (first, f"{{{first}}}", second))

        assert one == two
        assert one != three

    @pytest.mark.parametrize(
        "raw",
        [
            b"{%s",
            b"%s",
            b'{"a":"%s"',
            b'{"a":"%s"}}',
            b'{"a" "%s"}',
            b'["%s",]',
            b'{"a":"%s"}{"b":1}',
            b'{"a":"%s',
            b'"\xff%s"',
        ],
    )
    def test_what_no_parser_accepts_is_refused(self, raw: bytes) -> None:
        token = make("github ghp", 1).text.encode()

        assert self.make_redactor().redact(raw % token, BUDGET_MS) == Refused("not_json")

    @pytest.mark.parametrize("kind", KINDS)
    def test_without_time_nothing_that_needs_work_passes(self, kind: str) -> None:
        redactor = self.make_redactor()

        assert redactor.redact(event(make(kind, 1).text), 0) == Refused("time_budget")
        assert redactor.redact(event(make(kind, 1).text), -1) == Refused("time_budget")
        assert redactor.redact(event("nothing here"), 0) is CLEAN

    def test_deep_nesting_is_read(self) -> None:
        secret = make("github ghp", 1)
        depth = 10_000
        raw = b"[" * depth + json.dumps(secret.text).encode() + b"]" * depth

        result = self.make_redactor().redact(raw, BUDGET_MS)

        assert isinstance(result, Masked)
        assert survivors(secret, result.line.decode()) == []

    @pytest.mark.parametrize(
        "flood",
        [
            *(
                '"',
                '\\"',
                "eyJ",
                "eyJ.",
                "ghp_",
                "sk-",
                "-----BEGIN RSA PRIVATE KEY-----",
                "://",
                "//a:_authToken=",
                "glagent-",
            ),
            *(
                "aws key ",
                "key = ",
                "password=",
                "\\\\",
                "\\u0067",
                "\x1b[1m",
                "A",
                "a:",
                "AKIA",
                "Bearer ",
                "[REDACTED:",
            ),
        ],
    )
    def test_hostile_floods_are_answered_in_time(self, flood: str) -> None:
        text = flood * (100_000 // len(flood)) + make("github ghp", 1).text

        result = self.make_redactor().redact(event(text), 5_000)

        assert result != CLEAN
        assert not isinstance(result, Refused) or result.reason == "time_budget"

    def test_no_result_holds_the_secret(self) -> None:
        results: list[Redaction] = []
        secrets: list[MadeUp] = [make(kind, 7) for kind in KINDS]
        redactor = self.make_redactor()
        for secret in secrets:
            results += [redactor.redact(event(secret.text), budget) for budget in (0.0, 0.01, BUDGET_MS)]
            results.append(redactor.redact(event(secret.text)[:-3], BUDGET_MS))

        assert [secret for secret in secrets if survivors(secret, repr(results))] == []

    @pytest.mark.parametrize("shift", range(3))
    def test_known_value_is_masked_in_every_form(self, shift: int) -> None:
        value = 'Zeil"e/mit&Ümlaut 4711\\x'
        secret = MadeUp(value, (value,))
        encoded = base64.b64encode(b"p" * shift + value.encode() + b"tail").decode()
        texts = [
            value,
            json.dumps(value),
            json.dumps({"x": json.dumps(value)}),
            quote(value, safe=""),
            f"a {encoded} b",
        ]

        redactor = self.make_redactor([value, "12345678", "/usr/local/bin", "${HOME_TOKEN}", "short", "password"])

        for text in texts:
            result = redactor.redact(event(text), BUDGET_MS)
            assert isinstance(result, Masked), text
            content = str(content_of(result.line))
            assert survivors(secret, content) == []
            assert survivors(MadeUp("", (quote(value, safe=""), encoded[6:-8])), content) == []
        for text in ("12345678", "/usr/local/bin", "${HOME_TOKEN}", "short", "password"):
            assert redactor.redact(event(text), BUDGET_MS) is CLEAN

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("seed", range(3))
    def test_stream_holds_back_what_may_become_a_secret(self, kind: str, seed: int) -> None:
        secret = make(kind, seed)
        text = f"Here it is:\n{secret.text}\nand more words follow it."
        rng = random.Random(seed)
        stream = self.make_redactor().stream("message")
        shown = []
        position = 0
        while position < len(text):
            step = rng.choice((1, 2, 3, 7, 20))
            shown.append(stream.feed(text[position : position + step]))
            position += step

        whole = "".join(shown) + stream.flush()

        assert survivors(secret, whole) == []
        assert whole.startswith("Here it is:\n")
        assert whole.endswith("\nand more words follow it.")

    def test_stream_gives_clean_text_back_whole_and_soon(self) -> None:
        stream = self.make_redactor().stream("message")
        text = "Some words, then others. " * 400

        shown = [stream.feed(text[start : start + 5]) for start in range(0, len(text), 5)]

        assert all(len("".join(shown[: count + 1])) > 5 * count - 80 for count in range(0, len(shown), 50))
        assert "".join(shown) + stream.flush() == text

    def test_stream_never_holds_more_than_its_window(self) -> None:
        stream = self.make_redactor().stream("message")
        secret = make("jwt", 1)
        long = secret.text + "".join(random.Random(1).choices("abcdefghij0123456789", k=20_000))

        shown = "".join(stream.feed(long[start : start + 100]) for start in range(0, len(long), 100))
        rest = stream.feed(" end") + stream.flush()

        assert survivors(secret, shown + rest) == []
        assert len(rest) < 8192
        assert (shown + rest).endswith(" end")


def unused(engine: Engine) -> Redactor:
    """The type checker's proof that the engine is a redactor."""
    return engine
