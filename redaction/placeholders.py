"""What is written in the place of a secret: templates, references, words that say that something is to be put there."""

import re
from typing import Final

from redaction.words import segments, words_of

_TEMPLATE: Final = re.compile(
    r"\$\{[\w.]|\$\([\w ]|\{\{.*\}\}|#\{\w|@\{\w|<%|%>|%\(\w+\)|%[sdrxv](?![A-Za-z0-9])|\{(?:[a-z_][\w.:!\[\]'\"-]{2,64})?\}|</|://"
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
_DUMMY_RUN: Final = re.compile("(?:" + "|".join(word for word in DUMMIES if len(word) > 2) + ")+")


def stands_in(value: str) -> bool:
    """Whether the value is written in the place of another one."""
    if _TEMPLATE.search(value) or _VARIABLE.fullmatch(value) or _STANDING_IN.search(value.lower()):
        return True
    return value.startswith("^") and value.endswith("$")


def only_dummies(value: str) -> bool:
    """Whether the value has no words but those that stand for others, as in tests and documentation."""
    return all(segment in DUMMIES or _DUMMY_RUN.fullmatch(segment) for segment in map(str.lower, segments(value)))
