"""What is written in the place of a secret: templates, references, words that say that something is to be put there."""

import re
from typing import Final

from redaction.heuristics.words import segments, share_of_words, words_of

_TEMPLATE: Final = re.compile(
    r"\$\{[\w.]|\$\([\w ]|\{\{.*\}\}|#\{\w|@\{\w|<%|%>|%\(\w+\)|\{(?:[a-z_][\w.:!\[\]'\"-]{2,64})?\}|</|://"
    r"|\)\s*=>|\\[wdsSWD][+*{]|\[\^?[aA0]-[zZ9]|\(\?[:=!<P]|[.)][+*]\??\)|&#?\w{2,6};|\[REDACTED|\[MASKED|\[FILTERED"
    r"|%0[aA]|\+\+\+"  # a text, encoded for an address
)
_VARIABLE: Final = re.compile(
    r"(?:\$\w+(?:[.:\[>-].*)?|\$\w*\(.*|%\w+%|!\w+!|<[^<>]*>?|\[[\w .:*-]*\]|\([\w .-]*\)|&\w+;?|@@?[\w./:-]+"
    r"|\*[\w*-]+\*?|:\w+|%?\{.*\}|__\w+__|[?*•#=._-]+"
    # references to secrets that are kept elsewhere, and what says that it is encrypted
    r"|(?:ref\+|\+)?(?:vault|ssm|secretsmanager|secretmanager|file|env|keyvault|akv|azkv|kms|gcpkms|awskms|op|keychain"
    r"|keyring|conjur|doppler|infisical|chamber|credstash|sops|bao|gcp-?sm|aws-?sm|asm|gsm|sm|k8s|secret|secrets)"
    r":(?:[/.~]|[A-Z][A-Z0-9]*_[A-Z0-9_]+$|[\w.-]+[/#]|v\d+:).*"
    r"|ENC[\[(].*|\{cipher\}.*|projects/[\w-]+/(?:locations/[\w-]+/)?secrets/.*)"
)
_CONVERSION: Final = re.compile(r"%[sdrxv](?![A-Za-z0-9])")  # generated passwords have it by chance
# In lower case; each begins with a letter of its own, which lets `re` skip what cannot begin one.
_STANDING_IN: Final = re.compile(
    r"example|placeholder|change[-_. ]?(?:me|this|it)|redacted|undefined|dummy|sample|xxxx|\*\*\*|\.\.\.|…|•"
    r"|your(?:s|p|[^a-z]|$)|my[-_]?(?:pass|secret|token|key|api)|insert|replace|todo|fixme|[-_]here|null|goes[-_]here"
    r"|not[-_]?(?:set|a[-_])|unset|omitted|masked|hidden|secret[-_]?key|dont[-_]?(?:tell|use)|super[-_]?secret|some[-_]"
)
DUMMIES: Final = words_of(
    "test tests testing tester pass password passwd pwd secret secrets key keys token tokens api app user users admin "
    "root foo bar baz qux quux abc abcd xyz aaa bbb my the your new old value val data name id auth access client "
    "server db database login default temp tmp fake mock none null true false demo string text field param arg var "
    "env hash salt invalid valid wrong bad good correct incorrect first second some any other another hello world "
    "this that is not and or a an of to in for with by no yes shared private public service account session cookie "
    "cred creds credential credentials bearer basic refresh bot oauth jwt type input output form query header body "
    "index next page prev last confirm confirmation repeat again sha md hmac aes rsa ed pbkdf scrypt bcrypt argon "
    "base utf ascii hex ssl tls ssh http https x v"
)
# What tests and guides say of the passwords that they make up.
_QUALITIES: Final = words_of(
    "secure insecure strong stronger weak weaker safe unsafe simple easy hard complex long short"
)
_QUALITY_DIGITS_MAX: Final = 3  # a person's own word may be `secure`, too, but hardly with so few digits
_DUMMY_RUN: Final = re.compile("(?:" + "|".join(word for word in DUMMIES if len(word) > 2) + ")+")
_SAID_RUN: Final = re.compile("(?:" + "|".join(word for word in DUMMIES | _QUALITIES if len(word) > 2) + ")+")
_NOISE_SYMBOLS_MIN: Final = 7
_NOISE_WORDS_SHARE_MAX: Final = 0.2


def stands_in(value: str) -> bool:
    """Whether the value is written in the place of another one."""
    if _STANDING_IN.search(value.lower()):
        return True
    if value.isalnum():
        return False  # all other forms have marks
    if _TEMPLATE.search(value) or _VARIABLE.fullmatch(value):
        return True
    if _CONVERSION.search(value):
        return not _is_noise(value)
    return value.startswith("^") and value.endswith("$")


def _is_noise(value: str) -> bool:
    """Whether the value has so many symbols and so few words that it was drawn at random."""
    symbols = {character for character in value if not character.isalnum()}
    return (
        len(symbols) >= _NOISE_SYMBOLS_MIN
        and " " not in symbols
        and all(any(map(kind, value)) for kind in (str.isdigit, str.islower, str.isupper))
        and share_of_words(value) < _NOISE_WORDS_SHARE_MAX
    )


def only_dummies(value: str) -> bool:
    """Whether the value has no words but those that stand for others, as in tests and documentation."""
    words = [segment.lower() for segment in segments(value)]
    if all(word in DUMMIES or _DUMMY_RUN.fullmatch(word) for word in words):
        return True
    return sum(map(str.isdigit, value)) <= _QUALITY_DIGITS_MAX and all(
        word in DUMMIES or _SAID_RUN.fullmatch(word) for word in words
    )
