"""Lines that are meant to hurt: each of about a megabyte, made to cost much or to break what reads it.

Those that are valid JSON say so; of the others a redactor may refuse any, but not slowly and not with an exception.
"""

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from redaction.rules.examples import expanded
from redaction.rules.formats import built_in_pack
from tests.redaction.events import event
from tests.shared import CACHE

LENGTH = 1_000_000
Make = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Hostile:
    """One line by its name; made when it is asked for, as all together are large."""

    name: str
    make: Make
    is_json: bool = True
    is_deep: bool = False
    """Deeper than parsers go."""


FLOODS = {
    "web token beginnings": "eyJ",
    "web token halves": "eyJ.eyJ.",
    "web tokens without an end": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.",
    "web token headers": "eyJhbGciOiJIUzI1NiJ9 ",
    "key beginnings": "-----BEGIN RSA PRIVATE KEY-----",
    "key beginnings in lines": "-----BEGIN RSA PRIVATE KEY-----\n",
    "key beginnings and key lines": "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n",
    "key ends": "-----END RSA PRIVATE KEY-----\n",
    "dashes": "-",
    "quotes": '"',
    "single quotes": "'",
    "escaped quotes": '\\"',
    "backslashes": "\\",
    "quotes and backslashes": '\\\\\\"\\"',
    "newlines": "\n",
    "blanks": " ",
    "tabs": "\t",
    "empty passwords": "password=",
    "passwords": "password=Xk29dLq8ZtRm ",
    "passwords in quotes": '"password": "Xk29dLq8ZtRm", ',
    "passwords that go on": "password=Xk29dLq8ZtRm",
    "passwords with open quotes": 'password="Xk29dLq8',
    "passwords in single quotes": "password='Xk29dLq8ZtRm' ",
    "names only": "secret_key_",
    "names and separators": "api_key = token : secret => ",
    "name, separator, separator": "token=:=:=",
    "names in a row": "password password ",
    "address beginnings": "://",
    "addresses with users": "://a:",
    "addresses with passwords": "://a:@",
    "addresses with long users": "https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:",
    "credentials in addresses": "postgres://u:Xk29dLq8ZtRm@h ",
    "ats": "@",
    "colons": ":",
    "equals signs": "=",
    "options": "-u ",
    "options with users": "curl -u a:b ",
    "options with passwords": "--password ",
    "mysql options": "mysql -pXk29dLq8Z ",
    "headers": "Authorization: ",
    "bearer words": "Bearer ",
    "bearer headers": "Authorization: Bearer Xk29dLq8ZtRmXk29dLq8ZtRm\n",
    "basic headers": "Authorization: Basic dXNlcjpYazI5ZExxOFp0Um0=\n",
    "cookies": "Cookie: a=b; ",
    "netrc words": "machine login password ",
    "npmrc lines": "//registry.example/:_authToken=",
    "colours": "\x1b[1m",
    "colours in words": "a\x1b[0m",
    "open colours": "\x1b[",
    "escapes of letters": "\\u0067",
    "escapes of escapes": "\\\\u0067",
    "escapes of a token": "\\u0067\\u0068\\u0070_",
    "control characters": "\x00",
    "our markers": "[REDACTED:password:00112233] ",
    "beginnings of our markers": "[REDACTED:",
    "markers of no rule": "[REDACTED:nobody:00112233] ",
    "markers after names": "password=[REDACTED:password:00112233] ",
    "brackets": "[",
    "braces": "{",
    "percent escapes": "%67%68%70_",
    "hex": "0123456789abcdef",
    "digits": "1234567890",
    "words that begin alike": "sk-sk-",
    "dots": ".",
    "underscores": "_",
    "kelvin signs and sharp s": "\u212a\u017f\u00df",
    "surrogate pairs": "\U0001f600",
    "placeholders": "password=${X} token=<your-token> ",
}


def flood(text: str, length: int = LENGTH) -> str:
    """So much of the same."""
    return text * (length // len(text.encode("utf-8", "surrogatepass")))


def prefixes() -> list[str]:
    """The fixed beginning of each format's example."""
    rows = [row.example.partition("<")[0] for row, _ in built_in_pack(CACHE).rows]
    return sorted({row for row in rows if len(row) > 2})


def hostile() -> Iterator[Hostile]:
    """All of them."""
    for name, text in FLOODS.items():
        yield Hostile(f"flood of {name}", partial(_flooded, text, LENGTH))
    for name, make in _STRINGS.items():
        yield Hostile(name, partial(_holding, make))
    for name, make_line in _LINES.items():
        yield Hostile(name, make_line, is_deep="nesting" in name)
    for name, make_line in _BROKEN.items():
        yield Hostile(name, make_line, is_json=False)


def prefix_floods(length: int = LENGTH) -> Iterator[Hostile]:
    """A flood of each format's beginning alone."""
    for prefix in prefixes():
        yield Hostile(f"flood of {prefix}", partial(_flooded, prefix, length))


def _flooded(text: str, length: int) -> bytes:
    return event(flood(text, length))


def _holding(make: Callable[[], object]) -> bytes:
    return event(make())


def _letters(length: int, alphabet: str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") -> str:
    return "".join(random.Random(1).choices(alphabet, k=length))


def _tokens(every: int) -> str:
    source = random.Random(2)
    words = ("password=" + "".join(source.choices("abcdefghkmnpqr23456789", k=8)) for _ in range(LENGTH // every))
    return " ".join(words)


def _all_examples() -> str:
    """Every format's example over and over, each time another."""
    rows = [row.example for row, _ in built_in_pack(CACHE).rows] or ["password=<base62:14>"]
    texts: list[str] = []
    size = number = 0
    while size < LENGTH:
        texts.append(expanded(rows[number % len(rows)], str(number)))
        size += len(texts[-1]) + 1
        number += 1
    return "\n".join(texts)


def _private_key() -> str:
    body = "\n".join(_letters(64) for _ in range(LENGTH // 65))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"


def _nested(depth: int) -> object:
    text: object = "password=Xk29dLq8ZtRm"
    for _ in range(depth):
        text = json.dumps({"a": text})
    return text


_STRINGS: dict[str, Callable[[], object]] = {
    "every format's beginning, one after the other": lambda: flood("".join(prefixes()) or "x"),
    "every format's beginning, blanks between": lambda: flood(" ".join(prefixes()) or "x"),
    "every format's example": _all_examples,
    "a token of a megabyte": lambda: "ghp_" + _letters(LENGTH),
    "a web token of a megabyte": lambda: "eyJhbGciOiJIUzI1NiJ9." + _letters(LENGTH) + "." + _letters(100),
    "a password of a megabyte": lambda: "password=" + _letters(LENGTH),
    "a quoted password of a megabyte": lambda: 'password="' + _letters(LENGTH) + '"',
    "a private key of a megabyte": _private_key,
    "a private key that never ends": lambda: "-----BEGIN PRIVATE KEY-----" + _letters(LENGTH),
    "a name of a megabyte": lambda: "password_" * (LENGTH // 9) + "=Xk29dLq8ZtRm",
    "a user of a megabyte": lambda: "https://" + _letters(LENGTH) + ":Xk29dLq8ZtRm@host",
    "base64": lambda: base64.b64encode(random.Random(3).randbytes(LENGTH * 3 // 4)).decode(),
    "base64 in lines": lambda: base64.encodebytes(random.Random(3).randbytes(LENGTH * 3 // 4)).decode(),
    "a token every 18 bytes": lambda: _tokens(18),
    "one letter": lambda: "A" * LENGTH,
    "random letters and blanks": lambda: _letters(LENGTH, "abcdefgh   "),
    "JSON in JSON, sixteen deep": lambda: _nested(16),
    "100,000 short strings": lambda: ["password"] * 100_000,
    "40,000 short pairs": lambda: [{"password": "Xk29dLq8"} for _ in range(40_000)],
    "100,000 members": lambda: {f"k{number}": "v" for number in range(100_000)},
    "keys that are secrets": lambda: {f"password=Xk29dL{number}": 1 for number in range(40_000)},
    "ids that are secrets": lambda: [{"id": expanded("ghp_<base62:36>", str(number))} for number in range(500)],
    "models that are secrets": lambda: [{"model": expanded("ghp_<base62:36>", str(number))} for number in range(500)],
    "very long keys": lambda: {_letters(LENGTH // 4) + f"password{number}": "Xk29dLq8ZtRm" for number in range(4)},
    "40,000 numbers": lambda: [12345678901234567890123] * 40_000,
    "a colour within each token": lambda: ("ghp_" + _letters(18) + "\x1b[0m" + _letters(18) + " ") * 20_000,
}
_ENVELOPE_END = b',"id":"d7a4c0de-1111-4222-8333-944455556666","timestamp":"2026-11-18T09:58:19.660Z","parentId":null}'


def _raw(content: bytes) -> bytes:
    return b'{"type":"tool.execution_complete","data":{"content":' + content + b"}" + _ENVELOPE_END


_LINES: dict[str, Make] = {
    "10,000 nesting levels of lists": lambda: _raw(b"[" * 10_000 + b'"password=Xk29dLq8ZtRm"' + b"]" * 10_000),
    "10,000 nesting levels of objects": lambda: _raw(b'{"a":' * 10_000 + b'"password=Xk29dLq8ZtRm"' + b"}" * 10_000),
    "200,000 nesting levels": lambda: _raw(b"[" * 200_000 + b'"password=Xk29dLq8ZtRm"' + b"]" * 200_000),
    "a megabyte of blanks between members": lambda: _raw(b" " * LENGTH + b'"password=Xk29dLq8ZtRm"'),
    "lone surrogates": lambda: _raw(b'"' + b"\\ud800 " * (LENGTH // 7) + b'password=Xk29dLq8ZtRm"'),
    "lone surrogates in a password": lambda: _raw(b'"password=Xk29' + b"\\udc00dLq8ZtRm" * (LENGTH // 14) + b'"'),
    "every character an escape": lambda: _raw(b'"' + b"\\u0070\\u0061\\u0073\\u0073=" * (LENGTH // 25) + b'"'),
    "upper case escapes": lambda: _raw(b'"' + b"\\u004B\\u006b" * (LENGTH // 12) + b'"'),
    "slashes with backslashes": lambda: _raw(b'"' + b"\\/" * (LENGTH // 2) + b'"'),
    "the same key over and over": lambda: _raw(b"{" + b'"password":"Xk29dLq8ZtRm",' * 38_000 + b'"a":1}'),
    "a number of a megabyte": lambda: _raw(b"[" + b"1" * LENGTH + b',"password=Xk29dLq8ZtRm"]'),
    "ids over and over": lambda: _raw(
        b'[{"id":"ghp_0123456789abcdefABCDEF0123456789ab12"}' + b',{"id":"x"}' * 90_000 + b"]"
    ),
}
_BROKEN: dict[str, Make] = {
    "invalid UTF-8": lambda: _raw(b'"' + b"\xff\xfe" * (LENGTH // 2) + b'"'),
    "invalid UTF-8 after names": lambda: _raw(b'"' + b"password=\xc3(" * (LENGTH // 11) + b'"'),
    "half characters": lambda: _raw(b'"' + b"\xe2\x82" * (LENGTH // 2) + b'password=Xk29dLq8ZtRm"'),
    "surrogates as bytes": lambda: _raw(b'"' + b"\xed\xa0\x80" * (LENGTH // 3) + b'password=Xk29dLq8ZtRm"'),
    "zero bytes": lambda: b"\x00" * LENGTH,
    "no JSON at all": lambda: b"password=Xk29dLq8ZtRm " * (LENGTH // 22),
    "an open string": lambda: b'{"a":"' + b"password=Xk29dLq8ZtRm " * (LENGTH // 22),
    "open strings": lambda: b'{"password":"Xk29dLq8ZtRm' * (LENGTH // 25),
    "open lists": lambda: b"[" * LENGTH + b'"password=Xk29dLq8ZtRm"',
    "closed lists": lambda: b'"password=Xk29dLq8ZtRm"' + b"]" * LENGTH,
    "escapes cut short": lambda: _raw(b'"' + b"\\u00" * (LENGTH // 4) + b'password=Xk29dLq8ZtRm"'),
    "raw quotes": lambda: b'"' * LENGTH,
    "raw backslashes": lambda: b"\\" * LENGTH,
    "raw key beginnings": lambda: b"-----BEGIN RSA PRIVATE KEY-----\n" * (LENGTH // 32),
}
