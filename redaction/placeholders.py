"""Is a value a real secret, or does it only stand where one would: a variable, a type, an example, a word."""

import re

PLACEHOLDER = re.compile(
    r"""(?ix)^(?:
      [$%<{(\[&*].*                                                           # a variable, a template, an expression
    | .*(?:\$\{|\$\(|\{\{|\#\{|<[a-z_ -]+>|\(\)|=>|->).*                      # interpolation, calls, types
    | .*[({\[]                                                                # the beginning of an expression
    | (?:process|os|env|import|self|this|config|settings|secrets|vars|args|request|props|params|options|local|var|data)
      [.\[].*
    | .*(?:example|placeholder|changeme|change[-_]me|redacted|undefined).*
    | .*(?<![a-z0-9])(?:your|replace|dummy|insert|todo|sample).*
    | .*(?:x{8}|(?<![a-z0-9])x{4}|\*\*\*|\.\.\.).*
    | [a-z_$]+\d{0,2}(?:\.[a-z_$]+\d{0,2})+                                   # attributes of attributes
    | (.)\1*                                                                  # one character repeated
    | [-+]?\d+(?:[.,:_/-]\d+)*[a-z%]{0,3}                                       # numbers, dates, sizes
    | (?:~|\.{1,2})?/[\w./~-]* | [a-z]:\\.*                                   # paths
    | [a-z_$][\w$]*(?:\.[a-z_$][\w$]*)+\(?.*[()\[\]]                          # calls
    )$"""
)
IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z_$.\-?]*[0-9]?")
UNIQUE_MIN = 5
STRICT_LENGTH_MIN = 16


def looks_made(value: str) -> bool:
    """Whether the value is a placeholder, an expression, a path or a number rather than a value of its own."""
    return PLACEHOLDER.match(value) is not None


def looks_secret(value: str, *, strict: bool = False) -> bool:
    """Whether a value that stands in a secret's place is worth masking; `strict` asks for a long one of mixed
    characters."""
    if looks_made(value) or len(set(value)) < UNIQUE_MIN or IDENTIFIER.fullmatch(value):
        return False
    if not any(character.isalpha() for character in value):
        return not strict and any(not character.isdigit() for character in value)
    if strict:
        return len(value) >= STRICT_LENGTH_MIN and any(character.isdigit() for character in value)
    return any(not character.isalpha() for character in value)
