"""Passwords whose names are in the head of a column, in a statement, around them, or in a sentence."""

import json

import pytest

from redaction.engine import Clean, Engine, Masked
from tests.shared import CACHE

TOLD = (
    " user | password \n------+----------\n bo   | {}\n(1 row)",
    "+------+----------+\n| user | password |\n+------+----------+\n| bo   | {} |\n+------+----------+",
    "│ user │ password │\n├──────┼──────────┤\n│ bo   │ {} │\n",
    "user\tpassword\trole\nbo\t{}\tx\n",
    "INSERT INTO users (name, password) VALUES ('bo', '{}'), ('al', 'x');",
    "COPY users (name, password) FROM stdin;\nbo\t{}\n\\.\n",
    '{{"db_password": {{"sensitive": true, "value": "{}"}}}}',
    'variable "db_password" {{\n  default = "{}"\n}}',
    "<Password>\n  <Value>{}</Value>\n</Password>",
    "db_password: >-\n    {}\n",
    "password: &pw {}\n",
    '-- {{"Name":"/p","Type":"SecureString","Value":"{}"}}',
    "jwt.sign(x, '{}')",
    "cookieParser('{}')",
    "page.fill('#password', '{}')",
    'key := []byte("{}")',
    'the admin password is "{}"',
    "I set the password to `{}` for now",
    "la contraseña es «{}»",
    "le mot de passe est '{}'",
    "パスワードは「{}」です",
    "пароль: '{}'",
    "You can use {} as the password.",
    "The archive is encrypted with {} as password",
    "Try it with the password {} and tell me",
    "Mit dem Kennwort „{}“ kommst du rein.",
    "Le mot de passe de l'admin : {}",
    "Zugangsdaten: ada / {}",
    "id|login|password\n1|ada|{}\n",
    "name | pw\n-----+----\nada | {}\n",
    "stats auth ops:{}\n",
    "[client]\nuser = app\npassword = {}\n",
    "dbPassword = '{}'",
    "hash_hmac('sha256', $body, '{}')",
)
LEFT = (
    "| Option | Password | Default |\n|---|---|---|\n| --user | required | none |",
    "INSERT INTO t (id, password) VALUES (?, ?), ($1, crypt($2, gen_salt('bf')));",
    'variable "db_password" {\n  default = var.password\n}',
    "jwt.sign(payload, privateKey); cookieParser(secret); page.fill('#password', password)",
    "the password is required; set the password to `null`; la contraseña es obligatoria",
    "PASS: ld-elf/pr25022",
    "AWS.STS.assumeRoleWithWebIdentity(params)",
    "clientToken: 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    '"x-goog-api-key":e.apiKey',
    "password = decoded.decode('utf-8')",
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(key=b"\x07" * 32, cache_dir=CACHE)


def event(text: str) -> bytes:
    line = {"type": "tool.execution_complete", "data": {"result": {"content": text}}}
    return json.dumps(line, ensure_ascii=False).encode()


@pytest.mark.parametrize("template", TOLD)
def test_a_password_of_words_is_masked_and_nothing_else(engine: Engine, template: str) -> None:
    result = engine.redact(event(template.format("velvet_Harbor88")), 10_000)

    assert isinstance(result, Masked)
    masked = json.loads(result.line)["data"]["result"]["content"]
    before, after = template.format("\0").split("\0")
    assert masked.startswith(before + "[REDACTED:")
    assert masked.endswith("]" + after)


@pytest.mark.parametrize("text", LEFT)
def test_what_only_speaks_of_passwords_is_left(engine: Engine, text: str) -> None:
    assert engine.redact(event(text), 10_000) == Clean()


def test_both_halves_of_a_joined_string_are_masked(engine: Engine) -> None:
    first, second = "qZ7mK2xW9pLr", "tB4vN8cYhS3d"

    masked = engine.redact_text(f'const apiToken = "{first}" +\n  "{second}";')

    assert first not in masked
    assert second not in masked


def test_a_star_in_a_quoted_password_does_not_end_it(engine: Engine) -> None:
    text = 'le mot de passe est "yDaFW4*dpqj19", le mot de passe est **velvet4*Har** .'

    masked = engine.redact_text(text)

    assert "dpqj19" not in masked
    assert "velvet4" not in masked
