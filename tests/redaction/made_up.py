"""Secrets made up at run time from random parts, so that nothing in the repository looks like a real one."""

import base64
import json
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "_-"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BASE64 = ALNUM + "+/"
MARKER = re.compile(r"\[REDACTED:[a-z0-9.-]+:[0-9a-f]{8}\]")


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A text with a secret and the random parts of it, of which nothing may survive."""

    text: str
    parts: tuple[str, ...]


Make = Callable[[random.Random], MadeUp]


def _mixed(rng: random.Random, alphabet: str, length: int) -> str:
    """Random characters that surely hold a digit and, where there are any, a letter of either case."""
    value = [rng.choice(alphabet) for _ in range(length)]
    for place, kind in ((1, string.digits), (3, string.ascii_lowercase), (5, string.ascii_uppercase)):
        usable = [character for character in kind if character in alphabet]
        if usable and place < length - 1:
            value[place] = rng.choice(usable)
    ends = [character for character in alphabet if character.isalnum()]
    return rng.choice(ends) + "".join(value[1:-1]) + rng.choice(ends)


def _of(template: str, alphabet: str, *lengths: int) -> Make:
    def make(rng: random.Random) -> MadeUp:
        parts = tuple(_mixed(rng, alphabet, length) for length in lengths)
        return MadeUp(template.format(*parts), parts)

    return make


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def web_token(rng: random.Random) -> MadeUp:
    """A signed token of three parts."""
    header = _encoded({"alg": "HS256", "typ": "JWT"})
    payload = _encoded({"sub": str(rng.randrange(10**9)), "n": _mixed(rng, ALNUM, 12)})
    signature = _mixed(rng, URLSAFE, 43)
    return MadeUp(f"{header}.{payload}.{signature}", (payload[8:], signature))


def app_token(rng: random.Random) -> MadeUp:
    """The long form of a GitHub App's token."""
    token = web_token(rng)
    return MadeUp(f"ghs_{rng.randrange(10**5, 10**6)}_{token.text}", token.parts)


def basic_header(rng: random.Random) -> MadeUp:
    """Credentials in an Authorization header."""
    value = base64.b64encode(f"user:{_mixed(rng, ALNUM, 18)}".encode()).decode()
    return MadeUp(f"Authorization: Basic {value}", (value[8:].rstrip("="),))


def private_key(kind: str) -> Make:
    """A key in armour."""

    def make(rng: random.Random) -> MadeUp:
        lines = tuple(_mixed(rng, BASE64, length) for length in (64, 64, 64, 31))
        return MadeUp("\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----")), lines)

    return make


KINDS: dict[str, Make] = {
    **{f"github {prefix}": _of(prefix + "_{}", ALNUM, 36) for prefix in ("ghp", "gho", "ghu", "ghs", "ghr")},
    "github app": app_token,
    "github pat": _of("github_pat_{}_{}", ALNUM, 22, 59),
    "gitlab": _of("glpat-{}", URLSAFE, 20),
    "gitlab runner": _of("GR1348941{}", URLSAFE, 20),
    "gitlab agent": _of("glagent-{}", URLSAFE, 60),
    "jwt": web_token,
    "rsa key": private_key("RSA PRIVATE KEY"),
    "openssh key": private_key("OPENSSH PRIVATE KEY"),
    "pgp key": private_key("PGP PRIVATE KEY BLOCK"),
    "stripe": _of("sk_live_{}", ALNUM, 24),
    "stripe restricted": _of("rk_live_{}", ALNUM, 99),
    "slack bot": _of("xoxb-{}-{}-{}", string.digits, 12, 12, 12),
    "slack": lambda rng: MadeUp(
        f"xoxp-{rng.randrange(10**11, 10**12)}-{(secret := _mixed(rng, ALNUM, 24))}", (secret,)
    ),
    "slack hook": _of("https://hooks.slack.com/services/T{}/B{}/{}", UPPER, 8, 8, 24),
    "aws id": _of("AKIA{}", UPPER, 16),
    "aws secret": _of('aws_secret_access_key = "{}"', BASE64, 40),
    "aws secret bare": _of("AWS_SECRET_ACCESS_KEY={}", BASE64, 40),
    "azure": _of("DefaultEndpointsProtocol=https;AccountName=made;AccountKey={}==;EndpointSuffix=x", BASE64, 86),
    "userinfo": _of("postgres://made:{}@db.example/made", ALNUM, 14),
    "npm": _of("npm_{}", ALNUM, 36),
    "npmrc": _of("//registry.example/:_authToken={}", ALNUM, 36),
    "pypi": _of("pypi-AgEIcHlwaS5vcmc{}", URLSAFE, 90),
    "sendgrid": _of("SG.{}.{}", URLSAFE, 22, 43),
    "twilio": _of("SK{}", HEX, 32),
    "telegram": _of("987654321:{}", URLSAFE, 35),
    "discord": _of("M{}.{}.{}", ALNUM, 23, 6, 27),
    "mailchimp": _of("{}-us12", HEX, 32),
    "openai old": _of("sk-{}T3BlbkFJ{}", ALNUM, 20, 20),
    "openai project": _of("sk-proj-{}", URLSAFE, 120),
    "anthropic": _of("sk-ant-api03-{}", URLSAFE, 90),
    "google": _of("AIza{}", URLSAFE, 35),
    "hugging face": _of("hf_{}", ALNUM, 34),
    "square": _of("sq0csp-{}", URLSAFE, 43),
    "softlayer": _of("softlayer_api_key: {}", LOWER, 64),
    "ibm": _of("ibm_cloud_api_key={}", URLSAFE, 44),
    "ibm storage": _of("cos_secret_access_key={}", HEX, 48),
    "cloudant": _of("cloudant_password={}", HEX, 64),
    "artifactory": _of("token = AKC{}", ALNUM, 40),
    "bearer": _of("Authorization: Bearer {}", URLSAFE, 30),
    "basic": basic_header,
    "password": _of("password={}", ALNUM, 14),
    "password quoted": _of('DB_PASSWORD: "{}"', ALNUM + "!#%*", 16),
    "api key": _of("export SERVICE_API_KEY={}", ALNUM, 32),
    "token": _of("deploy_token: {}", ALNUM, 32),
    "vault": _of("hvs.{}", URLSAFE, 90),
}


def make(kind: str, seed: int) -> MadeUp:
    """The secret of this kind that belongs to the seed."""
    return KINDS[kind](random.Random(f"{kind} {seed}"))


def survivors(secret: MadeUp, text: str, longest: int = 4) -> list[str]:
    """Runs of the secret's random parts, longer than allowed, that are still in the text."""
    text = MARKER.sub("", text)
    found = []
    for part in secret.parts:
        for start in range(len(part) - longest):
            run = part[start : start + longest + 1]
            if run in text:
                found.append(run)
    return found
