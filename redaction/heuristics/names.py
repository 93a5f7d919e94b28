"""What a name asks of the value it is given: a password may be short, a `key` must look like nothing else."""

import re
from enum import IntEnum
from functools import lru_cache

from redaction.heuristics.words import words_of

PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class Demand(IntEnum):
    """How certain the name makes it that the value is a secret; the less, the more the value itself must show."""

    NONE = 0
    WEAK = 1
    TOKEN = 2
    KEY = 3
    SECRET = 4
    PASSWORD = 5


PASSWORDS = re.compile(
    r"(?:pass(?:word|wort|wd|w|phrase|code|key)|pwd|kennwort|contrasena|contrase|passwrd|passwords?|pword|userpass|dbpass)s?$"
)
SECRETS = re.compile(r"secrets?$")
KEYS = re.compile(
    r"(?:api|access|account|auth|private|client|service|secret|storage|encryption|encrypt|signing|signature|master|admin"
    r"|shared|license|app|application|consumer|deploy|webhook|crypto|cipher|aes|hmac|jwt|session|cookie|sdk|integration"
    r"|ingestion|write|vault|unseal|root|decryption|developer|server|project|team|org|site|user|restricted|live|test)"
    r"keys?$"
)
KEY_OWNERS = words_of(
    "api access account auth private client service secret storage encryption encrypt signing signature master admin "
    "shared license licence app application consumer deploy webhook crypto cipher aes hmac jwt session cookie sdk "
    "integration ingestion write vault unseal root decryption developer server restricted stream"
)
TOKENS = re.compile(r"(?:api|access|auth|authentication|authorization|bearer|refresh|id|bot|oauth|jwt|secret)tokens?$")
OTHERS = {
    **dict.fromkeys(("pass", "pw", "psw"), Demand.SECRET),
    **dict.fromkeys(
        words_of("auth credential credentials creds salt cookie cookies jwt bearer otp psk pat"),
        Demand.TOKEN,
    ),
    **dict.fromkeys(("pin", "session", "sas"), Demand.WEAK),
}
# What such names belong to instead of a secret.
HARMLESS_BEFORE_KEY = words_of(
    "primary foreign public pub publishable cache partition sort row object map dict i18n 3 lambda translation hot "
    "shortcut arrow group idempotency registry react query search index column json child parent item data routing "
    "sequence host lookup sorting order unique composite natural surrogate range hash meta message label locale lang "
    "config setting settings property event metric dedupe dedup bucket s3 storage_object file path resource state "
    "store tag feature flag any no by with keyboard press down up enter escape return tab esc ctrl alt shift cmd "
    "function num node entry field section legend answer art kms ssh gpg pgp dns error text attr attribute context "
    "option params param body tracking link page view test-id react-query fingerprint kid recipient verification "
    "verify verifying"
)
HARMLESS_BEFORE_TOKEN = words_of(
    "next page paging pagination continuation continue cancellation cancel max min sync stop per design syntax start "
    "end num total prompt completion input output separator sep pad eos bos unk cls mask special first last current "
    "prev previous new line change lookup left right open close begin count lex lexer parser string comment keyword "
    "operator n request idempotency scroll cursor resume nextpage starting marker public identifier punctuation "
    "template regex word sub expected unexpected ctx csrf xsrf antiforgery concurrency fencing etag lock "
    "forward backward update synced"
)
# Behind a secret's noun these say that the value is something about the secret.
HARMLESS_AFTER = words_of(
    "length len min max minimum maximum count limit id ids name names ref refs reference uri url href link path paths "
    "file files filename dir directory folder type types kind field fields label hint placeholder policy policies "
    "expires expired expiry expiration ttl age at date time timeout lifetime hash hashes hashed digest sha sha256 md5 "
    "fingerprint algorithm alg algo provider manager service prompt reset strength validator validation regex pattern "
    "rule rules format input param params parameter parameters header headers prefix suffix env var vars variable "
    "variables version arn size bits enabled disabled required optional show visible hidden generator index column "
    "columns scope scopes status state error errors message messages msg title description help class use usage "
    "endpoint store ring chain issuer audience iss aud rotation rotate source location method mode changed change "
    "updated created last attempts attempt check checker confirm confirmation encoder encoding encoded hasher option "
    "options config cfg settings schema list map set table group handler helper factory builder callback fn func "
    "function cmd command action event events page screen form view button icon style css selector xpath element "
    "locator stdin tokenizer position pos line number num offset user username owner email host port "
    "domain keys usages per ms sec seconds minutes hours days latency budget limits cost costs price rate is has "
    "reset_url forgot forgotten recovery exists valid invalid match matches mismatch less first contract spec backend "
    "plugin engine resolver store_path santa sauce server manager_name mount mounts lister volume volumes projection "
    "alias label_text md crc etag checksum checksums cksum integrity"
)
# Behind a secret's noun these change nothing.
QUALIFIERS = words_of(
    "value val str string text plain plaintext clear cleartext raw base data secret key token password prod "
    "production dev development test testing stage staging live old new current default main primary secondary local "
    "remote global v b64 base64 bytes hex for of the my db database admin root user app api"
) - {"user"}
FILE = re.compile(
    rb".*\.(?:txt|json5?|jsonl|ya?ml|toml|xml|html?|css|scss|md|rst|csv|tsv|log|lock|tpl|tmpl|j2|py|pyi|js|mjs|cjs|jsx|ts|tsx"
    rb"|vue|go|rs|rb|php|java|kt|cs|cpp|sh|bash|ps1|sql|proto|tf|hcl|pem|crt|cer|der|p12|pfx|jks|gpg|asc|enc|zip|tar|t?gz"
    rb"|bz2|xz|whl|deb|rpm|exe|dll|png|svg|jpe?g|gif|pdf|docx?|xlsx?|cfg|conf|ini|bak|bin|dat|jar|war|class|properties"
    rb"|gradle|swift|ipynb|keystore|pub|csr|kdbx|sqlite|iso|img|sha\d+|md5)",
    re.IGNORECASE,
)
SAYS_OTHERWISE = frozenset({"public", "publishable", "encrypted", "hashed", "sealed", "ciphertext"})
LIBRARIES = frozenset({"jsonwebtoken"})
AFTER_MAX = 4
NOUNS_OF_KEY = frozenset({"key", "keys"})
NOUNS_OF_TOKEN = frozenset({"token", "tokens"})


def _noun(parts: list[str], at: int) -> Demand | None:
    """What the part at this place asks for; None if it is no noun of ours."""
    part = parts[at]
    before = parts[at - 1] if at else ""
    if PASSWORDS.search(part):
        return Demand.PASSWORD
    if SECRETS.search(part):
        return Demand.SECRET
    if part in NOUNS_OF_KEY:
        if before in KEY_OWNERS:
            return Demand.KEY
        return Demand.NONE if before in HARMLESS_BEFORE_KEY else Demand.WEAK
    if part in NOUNS_OF_TOKEN:
        if before in HARMLESS_BEFORE_TOKEN:
            return Demand.NONE
        return Demand.KEY if at else Demand.TOKEN
    if KEYS.search(part) or TOKENS.search(part):
        return Demand.KEY
    if part.endswith(("token", "tokens")) and part not in LIBRARIES:
        return Demand.TOKEN
    return OTHERS.get(part)


@lru_cache(maxsize=4096)
def demand_of(name: bytes) -> Demand:
    """What the name asks of its value; NONE where the value is no secret whatever it looks like."""
    if FILE.fullmatch(name):
        return Demand.NONE
    parts = [part.lower() for part in PART.findall(name.decode("latin-1"))]
    unknown = 0
    for at in range(len(parts) - 1, max(-1, len(parts) - 2 - AFTER_MAX), -1):
        demand = _noun(parts, at)
        if demand is not None:
            if not SAYS_OTHERWISE.isdisjoint(parts):
                return Demand.NONE
            return demand if not unknown else min(demand, Demand.TOKEN)
        if parts[at] in HARMLESS_AFTER:
            return Demand.NONE
        if parts[at] not in QUALIFIERS and not parts[at].isdigit():
            unknown += 1
    return Demand.NONE
