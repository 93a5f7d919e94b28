"""What the rules extract from raw bytes, and what they leave alone, at every depth of JSON in JSON."""

import pytest

from redaction.rules.context import addresses, command_line, credential_files, headers, keys, pairs, products
from redaction.rules.examples import expanded
from redaction.rules.rule import Rule
from redaction.rules.rule_set import rules_of_family
from tests.redaction.rules.context.extracting import DEPTHS, masked
from tests.rows import each

MODULES = (addresses, command_line, credential_files, headers, keys, pairs, products)
RULES: tuple[Rule, ...] = tuple(rule for module in MODULES for rule in rules_of_family(module))
HIDDEN = (
    ("url-userinfo", "cvs://:pserver:app:{}@cvs.example:/sources", "<base62:16>"),
    ("url-userinfo", "postgres://app:{}@db.internal:5432/shop", "<base62:16>"),
    ("url-userinfo", "DB=amqps://svc:{}@mq/vhost and more", "<base62:12>%21"),
    ("url-userinfo", "git clone https://{}:x-oauth-basic@github.example/a.git", "<base62:40>"),
    ("url-userinfo", "git clone https://x-access-token:{}@github.example/a.git", "<base62:36>"),
    ("url-userinfo", "git clone https://{}@github.example/a.git", "<base62:40>"),
    ("connection-password", 'cs = "Server=tcp:x,1433;User ID=app;Password={};Encrypt=True"', "<base62:18>"),
    ("connection-password", "jdbc:mysql://h/db?user=app&password={}&ssl=1", "<base62:18>"),
    ("signed-url", "GET https://b/k?X-Amz-Date=20260101T000000Z&X-Amz-Signature={} HTTP", "<hex:64>"),
    ("signed-url", "https://storage/k?X-Goog-Expires=9&X-Goog-Signature={}&x=1", "<hex:256>"),
    ("azure-sas", "https://a/c?sv=2022-11-02&sig={}&se=2026-01-01", "<base62:43>%3D"),
    ("azure-sas", "https://a/c?x=1\\u0026sig={}\\u0026se=2026-01-01", "<base62:43>%3D"),
    ("bearer", "curl -H 'Authorization: Bearer {}' https://h", "<base62:40>"),
    ("bearer", '{{"headers": {{"Authorization": "Bearer {}"}}}}', "<base62:40>"),
    ("authorization", '{{"Authorization": "{}"}}', "<base62:40>"),
    ("authorization", "Authorization: SSWS {}", "<base64url:42>"),
    ("authorization", "setRequestHeader('Authorization', 'Token {}')", "<hex:40>"),
    ("header-key", "-H 'PRIVATE-TOKEN: {}' -v", "<base64url:20>"),
    ("header-key", "x-api-key:{}", "<base62:32>"),
    ("cookie", "Cookie: theme=dark; sessionid={}; lang=en", "<base36:32>"),
    ("cookie", "Set-Cookie: connect.sid={}; Path=/; HttpOnly", "s%3A<base62:32>"),
    ("option-password", "tool --password {} -v", "<base62:14>"),
    ("option-password", "tool --db-password='{}' -v", "<base62:14>"),
    ("option-password", '["tool", "--password", "{}", "-v"]', "<base62:14>"),
    ("option-token", "tool --api-key {} -v", "<base62:32>"),
    ("option-token", "tool --token={}", "<base62:32>"),
    ("command-password", "mysql -u root -p{} shop", "<base62:14>"),
    ("command-password", "sshpass -p '{}' ssh h", "<base62:14>"),
    ("command-password", "docker login -u me -p {} registry", "<base62:14>"),
    ("command-password", "redis-cli -h h -a {} ping", "<base62:14>"),
    ("command-password", "openssl rsa -in k -passin pass:{} -out o", "<base62:14>"),
    ("option-password", "keytool -list -storepass {} -v", "<base62:14>"),
    ("command-password", "htpasswd -b /etc/f me {}", "<base62:14>"),
    ("command-password", "CREATE USER 'me'@'%' IDENTIFIED BY '{}';", "<base62:14>"),
    ("command-key", "aws configure set aws_secret_access_key {}", "<base64:40>"),
    ("command-key", "kubectl create secret generic x --from-literal=k={}", "<base62:24>"),
    ("command-input", "echo {} | docker login -u me --password-stdin", "<base62:24>"),
    ("netrc", "machine h\n  login me\n  password {}\n", "<base62:16>"),
    ("npm-auth", "//r.example/:_authToken={}", "<base62:36>"),
    ("pgpass", "h:5432:db:me:{}", "<base62:16>"),
    ("wireguard-key", "PrivateKey = {}\nAddress = 10.0.0.1/24", "<base64:42>A="),
    ("php-definition", "define( 'DB_PASSWORD', '{}' );", "<base62:16>"),
    ("password-hash", "root:{}:19000:0:99999:7:::", "$6$<base62:16>$<base62:86>"),
    ("jwk-private", '{{"kty":"RSA","n":"AQAB","d":"{}"}}', "<base64url:342>"),
    ("jwt", "token {} end", "<jwt>"),
    ("jwt", "Cookie: t={}; x=1", "<jwt>"),
    ("jwt", "cut off: {}", "eyJhbGciOiJIUzI1NiJ9.eyJzdWI<base62:9>"),
    ("jwt", "JWE {} end", "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..<base62:16>.<base62:30>.<base62:22>"),
    ("jwt", "blanks {} end", "eyAiYWxnIiA6ICJIUzI1NiIgfQ.<base62:30>.<base62:43>"),
    ("basic-auth-call", "requests.get(u, auth=('me', '{}'))", "<base62:14>"),
    ("command-user", "curl -sS -u {} https://h", "me:<base62:14>"),
    ("command-user", '["curl", "-u", "{}"]', "me:<base62:14>"),
    ("docker-auth", '{{"auths": {{"h": {{"auth": "{}"}}}}}}', "bWU6a29ycmVrdC03LXBmZXJk"),
    ("kubernetes-secret", "kind: Secret\ndata:\n  user: YWRtaW4=\n  pw: {}\ntype: Opaque", "a29ycmVrdC03LXBmZXJk"),
    ("kubernetes-secret", "data:\n  pw: {}\nkind: Secret\nmetadata:\n  name: x", "a29ycmVrdC03LXBmZXJk"),
    ("kubernetes-secret", '{{"kind":"Secret","data":{{"pw":"{}","n":"YWRtaW4="}}}}', "a29ycmVrdC03LXBmZXJk"),
    ("command-input", "echo 'root:{}' | chpasswd", "<base62:14>"),
)
LEFT_ALONE = (
    "Authorization: Bearer ${env.TOKEN}, Authorization: Bearer <token>, Bearer token, Basic auth",
    "Bearer your-token-here and `Authorization: Basic dXNlcjpwYXNzd29yZA==`",
    "if '-----BEGIN PRIVATE KEY-----' in text and '-----END PRIVATE KEY-----' in text: raise ValueError",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA...\n-----END RSA PRIVATE KEY-----",
    "postgres://user:password@localhost/db https://user:pass@host redis://:${PASSWORD}@h https://me@example.org",
    "http://127.0.0.1:8080/path@2x.png ssh://git@github.com/a/b.git pip install git+https://github.com/a/b@v1.2",
    "docker run -u 1000:1000 -p 8080:80 --user www-data:www-data image",
    "mysql -p shop; mkdir -p some/directory; docker login --password-stdin < file",
    "tool --password-file /run/secret --token-count 12345 --max-tokens 4096 --password $PASSWORD",
    "apiVersion: v1\nkind: SecretStore\ndata:\n  key: dmFsdWUtb2YtdGhpcw==\n",
    "kind: Secret\nmetadata:\n  name: something-long-1234\ntype: Opaque\n",
    "Cookie: lang=en; theme=dark; consent=yes",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
    "sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=",
    "arn:aws:secretsmanager:*:*:secret:MyThing-a1b2c3",
    "cache:x-api-key:q7Zx2Lm9Vt4Kw8Rb3Nc6Hd1Fs5Jg0Py",
    "X-Public-Key: q7Zx2Lm9Vt4Kw8Rb3Nc6Hd1Fs5Jg0Py\nX-Cache-Key: q7Zx2Lm9Vt4Kw8Rb3Nc6Hd1Fs5Jg0Py",
    "X-Next-Page-Token: q7Zx2Lm9Vt4Kw8Rb3Nc6Hd1Fs5Jg0Py\nX-Continuation-Token: q7Zx2Lm9Vt4Kw8Rb3Nc6Hd1Fs5Jg0Py",
    "X-Idempotency-Key: q7Zx2Lm9Vt4Kw8Rb3Nc6Hd1Fs5Jg0Py\nX-Lock-Token: q7Zx2Lm9Vt4Kw8Rb3Nc6Hd1Fs5Jg0Py",
    "self._auth = get_authentication(); self._password = something_else",
)


@each(RULES, DEPTHS)
def test_example_is_found_and_counter_is_not(rule: Rule, depth: int) -> None:
    example, counter = expanded(rule.example), expanded(rule.counter)

    assert masked((rule,), example, depth) != example
    assert masked((rule,), counter, depth) == counter


@pytest.mark.parametrize(("rule_id", "wrapper", "template"), HIDDEN)
@pytest.mark.parametrize("depth", DEPTHS)
def test_secret_is_masked_and_nothing_else(rule_id: str, wrapper: str, template: str, depth: int) -> None:
    rules = tuple(rule for rule in RULES if rule.id == rule_id)
    secret = expanded(template, wrapper)

    result = masked(rules, f"before\n\t{wrapper.format(secret)}\nafter", depth)

    assert secret not in result
    assert result == f"before\n\t{wrapper.format('*')}\nafter"


@each(LEFT_ALONE, DEPTHS)
def test_text_that_people_need_is_left_alone(text: str, depth: int) -> None:
    assert masked(RULES, text, depth) == text


def test_every_rule_has_an_id_of_its_own() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
