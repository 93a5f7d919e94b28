"""Values given to secrets' names, in the languages of sessions and at every depth of JSON in JSON."""

import json

import pytest

from redaction.rules.context import assignments, pairs
from redaction.rules.examples import expanded
from redaction.rules.rule import Rule
from redaction.rules.rule_set import rules_of_family
from tests.redaction.rules.context.extracting import DEPTHS, masked, spans
from tests.rows import each

RULES: tuple[Rule, ...] = (*rules_of_family(assignments), *rules_of_family(pairs))
HIDDEN = (
    '{{"user":"bob","password":"{}","x":1}}',
    '{{\n  "clientSecret": "{}",\n  "x": 1\n}}',
    "db:\n  password: {}\n  port: 1",
    "db:\n  password: '{}'\n  port: 1",
    'password: "{}"  # comment',
    'password = "{}"\nx = 1',
    "A=1\nDB_PASSWORD={}\nB=2",
    'A=1\nDB_PASSWORD="{}"\nB=2',
    "export API_KEY={}\nrun",
    "spring.datasource.password={}\r\nx=y",
    "$env:API_KEY = '{}'",
    '$apiKey = "{}"',
    "set API_KEY={}\r\necho",
    "ENV API_KEY={}\nRUN x",
    "ENV API_KEY {}\nRUN x",
    "ARG NPM_TOKEN={}\n",
    "<cfg><password>{}</password></cfg>",
    '<entry key="db.password">{}</entry>',
    '<db user="x" password="{}"/>',
    "GET /a?x=1&api_key={}&y=2 HTTP/1.1",
    "https://api.acme.example/v1?access_token={}",
    "grant_type=x&client_secret={}",
    'connect(host="h", password="{}", port=1)',
    'password: str = "{}"\n',
    "const apiKey: string = '{}';",
    "{{ user: 'x', password: `{}`, y: 1 }}",
    'connection.setPassword("{}");',
    ':password => "{}",',
    "define('DB_PASSWORD', '{}');",
    'val password: String = "{}"',
    'password := "{}"',
    'var password string = "{}"',
    'const SECRET_KEY: &\'static str = "{}";',
    'let secret = String::from("{}");',
    'private static final String API_KEY = "{}";',
    'public const string ApiKey = @"{}";',
    'char password[32] = "{}";',
    'config["secret"] = "{}"',
    "os.environ['API_KEY'] = '{}'",
    'os.getenv("API_KEY", "{}")',
    "process.env.API_KEY || '{}'",
    "${{API_KEY:-{}}}",
    '@Value("${{db.password:{}}}")',
    'if password == "{}":',
    'token = SecretStr("{}")',
    '#define API_KEY "{}"',
    '[{{"name":"DB_PASSWORD","value":"{}"}}]',
    '{{\n  "name": "DB_PASSWORD",\n  "value": "{}"\n}}',
    '{{"value": "{}", "name": "DB_PASSWORD"}}',
    "env:\n  - name: DB_PASSWORD\n    value: {}\n",
    '<add key="DbPassword" value="{}"/>',
    "CREATE USER x IDENTIFIED BY '{}';",
    "ALTER ROLE x WITH PASSWORD '{}';",
    "username: bob\nAPI key: {}\nhost: x",
    "Password .......: {}",
    "| user | bob |\n| password | {} |\n",
    "user\tbob\npassword\t{}\n",
    "user        bob\npassword    {}\n",
    "Server=h;User=x;Password={};Timeout=3",
    "- **password**: `{}`\n",
    "the password is {}, ok",
    "Your API key is: `{}`",
    "password: |\n  {}\nnext: 1\n",
    'password = """{}"""\n',
)
QUOTED_ONLY = ('A9#x, 7$kq"w2', "A9 x'7,kq#w2", "A9\\x,7&k;q2", "q7é€☃Ax9w")
LEFT_ALONE = (
    "max_tokens: 4096, token_count: 128000, next_page_token: CAoSDGFiYzEyMzQ1Njc4OQ",
    "primaryKey: userId1, cacheKey: 'user:123:profile', monkey = banana77, PASSWORD_MIN_LENGTH=12",
    'publicKey = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A", key_id: 9f86d081884c7d65, secretName: my-app-tls-2',
    'if (apiKey === "") throw new Error("no key"); credentials?.password',
    '{"password": "Passwort", "token": "Jeton", "forgotPassword": "Mot de passe oublié ?"}',
    "def login(password: str, token: str | None = None, secret: Optional[str] = None) -> None: ...",
    "interface Login {{ password: string; apiKey?: SecretStr }}",
    'password = getpass("Password: "); api_key = os.environ["EXAMPLE_KEY_1"]',
    'password: ${DB_PASSWORD}, password: <your-password>, API_KEY="$API_KEY_2"',
    "'password' => 'required|string|min:8|confirmed', password: z.string().min(8)",
    "secretKeyRef:\n  name: app-secrets-v2\n  key: password\n",
    '<label for="password">Password1:</label> <input type="password" name="password"/>',
    "the password is required, the token is a JWT, the secret is out",
    "password_hash = hashlib.sha256(password.encode()).hexdigest()",
    "self.client_token: str = client_token2",
)


@each(RULES, DEPTHS)
def test_example_is_found_and_counter_is_not(rule: Rule, depth: int) -> None:
    example, counter = expanded(rule.example), expanded(rule.counter)

    assert masked((rule,), example, depth) != example
    assert masked((rule,), counter, depth) == counter


@each(HIDDEN, ["<base62:16>", "<hex:32>"], DEPTHS)
def test_value_is_masked_and_nothing_else(wrapper: str, template: str, depth: int) -> None:
    secret = expanded(template, wrapper)

    assert (
        masked(RULES, f"before\n\t{wrapper.format(secret)}\nafter", depth) == f"before\n\t{wrapper.format('*')}\nafter"
    )


@pytest.mark.parametrize("secret", QUOTED_ONLY)
@pytest.mark.parametrize("depth", DEPTHS)
def test_quoted_value_is_masked_whole(secret: str, depth: int) -> None:
    text = json.dumps({"password": secret, "x": [1]})

    assert json.loads(masked(RULES, text, depth)) == {"password": "*", "x": [1]}


@pytest.mark.parametrize("depth", DEPTHS)
def test_value_that_was_cut_off_is_masked_to_its_end(depth: int) -> None:
    secret = expanded("<base62:12>", "cut")

    for start in ('{"user": "x", "password": "', "password='", "API_KEY="):
        assert masked(RULES, start + secret, depth) == start + "*"


@each(LEFT_ALONE, DEPTHS)
def test_text_that_people_need_is_left_alone(text: str, depth: int) -> None:
    assert masked(RULES, text, depth) == text


def test_marker_of_a_masked_value_is_left_alone() -> None:
    assert spans(RULES, b'{"password":"[REDACTED:assigned-secret:0123abcd]","token":"******"}') == []


def test_members_of_the_event_itself_are_seen() -> None:
    line = json.dumps({"password": expanded("<base62:16>")}).encode()

    assert [line[start:end].decode() for start, end in spans(RULES, line)] == [expanded("<base62:16>")]
