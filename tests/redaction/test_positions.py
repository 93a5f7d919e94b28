"""Values told by their place or by the form of their name, through the whole engine, at several depths of JSON."""

import json

import pytest

from redaction.engine import CLEAN, Engine, Masked
from tests.redaction.test_false_alarms import event, expanded
from tests.shared import CACHE

ENGINE = Engine(b"k" * 32, cache_dir=CACHE)
BUDGET_MS = 10_000.0
DEPTHS = range(3)
# Each with one secret between the braces.
MASKED = (
    ("Unseal Key 1: {}", "<base64:43>="),
    ("vault operator unseal {}", "<base64:44>"),
    ("vault operator unseal -address=prod -migrate '{}'", "<base64:43>="),
    ("bao operator unseal {}", "<hex:66>"),
    ("use the following password to proceed to installation:\n\n{}\n\nThis", "<hex:32>"),
    ("use the following password to proceed to installation:\r\n\r\n\t{}\r\n", "<hex:32>"),
    ("BUILD_TOKEN ::= {}\n", "<base62:24>"),
    ("BUILD_TOKEN :::= {}\n", "<base62:24>"),
    ("DB_PASSWORD::={}\n", "<base62:14>"),
    ("SNYK_TOKEN ::= {}\n", "<uuid>"),
    ("FlyV1 {}", "fm2_<base64:90>,fm2_<base64:90>,fo1_<base64url:43>"),
    ("sv_licenseKey {}", "<base36:32>"),
    ("sv_licenseKey {}", "cfxk_<base62:21>"),
    ("bundle config --local gems.contribsys.com {}", "<hex:8>:<hex:8>"),
    ("ngrok config add-authtoken {}", "<base62:27>_<base62:21>"),
    ("requirepass {}", "<base62:12>"),
    ("| client_secret | `{}` |", "<base62:32>"),
    ("I have set `DD_API_KEY` to `{}` for now.", "<hex:32>"),
    ("`SHOP_SECRET_KEY` is `{}`.", "<base62:24>"),
    ("`GEM_HOST_API_KEY` to `{}…`", "rubygems_<hex:14>"),
    ("use `{}…` here", "sq0csp-<base62:18>"),
    (r"Bearer 1\/{}", "<digits:16>:<hex:32>"),
    ("tok \x1b[38;5;214m{}\x1b[0m", "1//0<base62:60>"),
    ('new NetworkCredential("u", "{}")', "<base62:14>"),
    ('new DirectoryEntry("LDAP://HOST",\n        "u@host.example",\n        "{}");', "<base62:14>"),
    ("the password is {}.", "marble_harbour_<digits:4>"),
    ("Password is: {}\n", "marble.harbour.window.<digits:3>"),
    ("mysql -u root -p{} app", "marble_harbour_<digits:4>"),
    ("$mail->Password = '{}';", "un!kestwhooar"),
    ('DriverManager.getConnection(url,"system","{}")', "<base62:14>"),
    ("new mysqli('h', 'u', '{}', 'db')", "<base62:14>"),
    ("DBI->connect($dsn, 'u', '{}')", "<base62:14>"),
    ('"Name": "/a/db/password",\n "Type": "SecureString",\n "Value": "{}",', "<base62:11>"),
    ('"keyName":"key1","permissions":"FULL","value":"{}"', "<base64:86>=="),
    ("ACCESSKEY\tAK\tAKIA0\t{}", "AKIA<base32:16>\t<base64:40>"),
)
LEFT_ALONE = (
    "vault operator unseal -reset -migrate",
    "the password is stored_in_2024 or marble_harbour_4 or marble_harbour_4071/next",
    "tool --password secret --username=user2",
    "new DirectoryEntry(path, user, password)",
    "vault operator unseal <unseal key from the first step of the guide>",
    "Use the following password to proceed to installation: see below",
    "password to proceed to installation:\n\n<hex:40>\n",
    "BUNDLE_GEMS__CONTRIBSYS__COM=username:password bundle config gems.contribsys.com username:password",
    "enum token::=literal, password ::= Sequence of characters, TOKEN ::= secret_token_rule",
    "Authorization: FlyV1 your-token-here",
    "sv_licenseKey your_key_goes_here_in_the_file",
    "Set `REDDIT_CLIENT_ID` and `REDDIT_USER_AGENT`.",
    'f("REDDIT_CLIENT_ID", "REDDIT_USER_AGENT")',
    "reddit_client_id = get_from_dict_or_env(\n  values,\n)",
    "    password,\n    reserve_space_for_menu=(reserve_space2,\n    port=3306,\n",
    "f(\n  client_id, client_secret,\n  client_kwargs={\n  'a3': 4},\n)",
    "message://%3c<hex:40>@mail.gmail.com and ssh://<hex:32>@host.example/",
    "<clientToken><hex:32></clientToken>",
    "<secret>@[::1]:6379 redis://:<secret>@[::1]:6379",
    '"cache:api-key:8788:quota", "cache:api-key:<digits:6>a8:quota"',
    "$ANSIBLE_VAULT;1.1;AES256\n<hex:80>\n<hex:80>",
    "x\npg_verifybackup y",
    "<base64:120>/EAAD<base62:100>+/",
    "aws x --next-token <base62:24> --starting-token <base64:30> --lock-token <uuid>",
    "checksum of client_secret: <hex:32>",
    "x_mm_broadcastss_ps0Ag_mm512_something_more_words",
    '"Type": "SecureString", "Value": "AQICAH<base62:80>"',
    "`primary_key` is `customer_order_id_2`, `token` to `next_token`",
)


def nested(text: str, depth: int) -> str:
    """The text within that many levels of JSON."""
    for _ in range(depth):
        text = json.dumps({"x": text})
    return text


@pytest.mark.parametrize("text", LEFT_ALONE)
@pytest.mark.parametrize("depth", DEPTHS)
def test_no_secret_is_left_alone(text: str, depth: int) -> None:
    result = ENGINE.redact(event(nested(expanded(text, text), depth)), BUDGET_MS)

    assert result is CLEAN, result


@pytest.mark.parametrize(("wrapper", "template"), MASKED)
@pytest.mark.parametrize("depth", DEPTHS)
def test_secret_is_masked_whole(wrapper: str, template: str, depth: int) -> None:
    secret = expanded(template, wrapper)

    result = ENGINE.redact(event(nested(wrapper.format(secret), depth)), BUDGET_MS)

    assert isinstance(result, Masked)
    left = result.line.decode()
    assert [part for part in secret.replace("\t", " ").replace(":", " ").split() if part in left] == []
