"""Secrets on command lines: options, arguments of known commands, pipes, and statements of SQL."""

import re

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.values import is_value
from redaction.rules.context.extractors import extract_value
from redaction.rules.rule import Extraction, Rule
from redaction.text.escapes import BLANK, after_escape

_VALUE_BYTES = 4
_FIRST = rf"[^\s\"'`\\=,;|&<>(){{}}$-][^\s\"'`\\;|&<>()]{{{_VALUE_BYTES - 1}}}"
_OPENED = r"(?:\\{0,15}[\"'])?"
_APART = rf"(?:[ \t]{{1,4}}|{BLANK}{{0,2}}\\{{0,15}}[\"'],? ?){_OPENED}"
_SQL = rf"\\{{0,15}}['\"][^\s\"'\\]{{{_VALUE_BYTES}}}"
_WITHIN = r"[^\n|;]{0,160}[\s\"']"
# Where an option may begin.
_BEFORE = r"(?:[\s\"'`]|\\[nt])"

_GIVEN = r"(?:[ \t=]|\\{0,15}[\"'],){1,3}(?:\\{0,15}[\"'])?"

# Commands, and how each takes a password.
_PASSWORDS = (
    rf"(?:mysql|mariadb|mycli)[a-z_-]{{0,10}}{_WITHIN}-p{_OPENED}{_FIRST}",
    rf"sshpass{_WITHIN}-p ?{_OPENED}{_FIRST}",
    rf"login{_WITHIN}-p{_APART}{_FIRST}",
    rf"(?:mongo[a-z]{{0,8}}|cqlsh|arangosh|evil-winrm|crackmapexec|netexec|nxc|cypher-shell){_WITHIN}-p{_APART}{_FIRST}",
    rf"redis-cli{_WITHIN}-a{_APART}{_FIRST}",
    rf"(?:sqlcmd|bcp|isql|ipmitool|mosquitto_[ps]ub|tsql|unzip|zip){_WITHIN}-P{_APART}{_FIRST}",
    rf"(?:ldap[a-z]{{5,8}}|smbpasswd){_WITHIN}-w{_APART}{_FIRST}",
    rf"(?:plink|pscp|psftp|putty)(?:\.exe)?{_WITHIN}-pw{_APART}{_FIRST}",
    rf"7z[ar]?{_WITHIN}-p{_OPENED}{_FIRST}",
    rf"(?:smbclient|rpcclient|net rpc|smbmap|smbget|winexe){_WITHIN}-U ?{_OPENED}[A-Za-z0-9_.\\/-]{{1,64}}%{_FIRST}",
    rf"lftp{_WITHIN}-u ?{_OPENED}[A-Za-z0-9_.@-]{{1,64}},{_FIRST}",
    rf"freerdp[23]?{_WITHIN}/p:{_OPENED}{_FIRST}",
    rf"net use{_WITHIN}/user:[^\s\"'|;]{{1,64}} {_OPENED}{_FIRST}",
    rf"net user [A-Za-z0-9_.-]{{1,64}} {_OPENED}{_FIRST}",
    rf"htpasswd{_WITHIN}-[A-Za-z]{{0,6}}b[A-Za-z]{{0,6}} [^\s|;]{{1,80}} [^\s|;]{{1,64}} {_OPENED}{_FIRST}",
    rf"-(?:passin|passout|pass) {_OPENED}pass:{_OPENED}{_FIRST}",
    rf"rabbitmqctl{_WITHIN}(?:add_user|change_password|authenticate_user) [A-Za-z0-9_.@-]{{1,64}} {_OPENED}{_FIRST}",
    rf"ConvertTo-SecureString(?: -String)? {_OPENED}{_FIRST}",
    rf"(?i:identified(?: with [a-z0-9_]{{1,40}})? by|with password|login password|encrypted password) ?{_SQL}",
    rf"(?i:(?:alter|create) (?:user|role|login) [^\n;]{{1,80}}password|set password[^\n;=]{{0,80}})[ =(]{{1,4}}{_SQL}",
)
_KEYS = (
    rf"configure set [a-z0-9_.-]{{0,60}}(?:secret_access_key|session_token) {_OPENED}{_FIRST}",
    rf"--(?:with-token|password-stdin)[^\n|;<]{{0,60}}<<< ?{_OPENED}{_FIRST}",
    rf"nuget push [^\s|;-][^\s|;]{{1,120}} {_OPENED}{_FIRST}",
    rf"(?:ngrok authtoken|add-authtoken) {_OPENED}{_FIRST}",
    rf"(?:vault login|snyk auth|auth init -t|npm token|nuget setapikey|setApiKey|config set-token) {_OPENED}{_FIRST}",
    rf"--from-literal[= ]{_OPENED}[A-Za-z0-9_.-]{{1,60}}={_OPENED}{_FIRST}",
    rf"(?:secrets?[ :]set|config:set){_WITHIN}[A-Za-z0-9_]{{1,60}}={_OPENED}{_FIRST}",
    rf"secret set [A-Za-z0-9_-]{{1,60}} (?:--body|-b)[= ]{_OPENED}{_FIRST}",
)
_USER = r"[^\s\"'`\\:;|<>()$/\[]"
_USERS = (
    rf"{_BEFORE}-u{_USER}{{1,80}}:",
    rf"{_BEFORE}(?:-[ua]|--(?:user|auth|proxy-user)){_GIVEN}{_USER}{{0,80}}:",
)
_USER_BACKWARDS = re.compile(rb":(?:[\"']\\{0,15})?([^\s\"'`\\:;|<>()$/\[]{0,80}+)")
_PASSWORD = re.compile(rb"(?:\\{0,15}[\"'])?([^\s\"'`\\|<>;&()$][^\s\"'`\\|<>]{0,255}+)")
_PIPE_ENDS = ("--password-stdin", "--with-token", "chpasswd", "sudo -S", "--passphrase-fd 0", "passwd --stdin")
_PIPED = re.compile(
    rb"(?:echo|printf|print)(?: -[neE]{1,3})? (?:\\{0,15}[\"']%s(?:\\{1,16}n)?\\{0,15}[\"'] )?(\\{0,15}[\"'])?"
    rb"(?:[A-Za-z0-9_.-]{1,64}:)?([^\s\"'`\\|;&<>(){}$][^\s\"'`\\|;&<>()]{3,256})"
    rb"(?:\\{1,16}n)?\\{0,15}[\"']? {0,3}\|[^\n|;]{0,160}\Z"
)
# Between an option and its value; in a list of arguments a quote, a comma and a quote.
_OPTION_END = r"""(?:[ \t=]|\\{0,15}["'`],?){1,6}"""
_PASSWORD_OPTIONS = (
    r"(?i:password|passwd|passphrase|passwort|passcode|[-]pass|[-]pwd|storepass|keypass|requirepass|pwd|[-]psk)"
)
_KEY_OPTIONS = (
    r"(?i:secret|token|(?:api|access|secret|account|auth|client|private|master|encryption|fernet|storage|shared|signing|function|license|app"
    r"|project|write|service|admin|webhook|deploy|session|subscription|registry|search|rest)-?key|credentials?|auth|sas)"
)
_OPTION = re.compile(rb"--([A-Za-z0-9-]{2,60}[Tt]okens?)(?:[ \t=]|\\{0,15}[\"'`],?){1,6}\Z")
_OF_PAGES = re.compile(rb"(?i)(?:starting|change|lock|if-match|resume|continuation|next)-?")
_OPTION_MAX = 100
_extract_token = extract_value(_VALUE_BYTES, Demand.TOKEN)


def extract_option_token(line: bytes, to: int) -> Extraction:
    """The value of an option with the name of a token or key, unless the token is for paging, locking or lexing."""
    start = to - _VALUE_BYTES
    option = _OPTION.search(line, max(0, start - _OPTION_MAX), start)
    if option is not None and (_OF_PAGES.match(option[1]) or demand_of(option[1]) == Demand.NONE):
        return (), to
    return _extract_token(line, to)


def extract_user(line: bytes, to: int) -> Extraction:
    """User and password together, because either may be the key."""
    before = _USER_BACKWARDS.match(line[max(0, to - 100) : to][::-1])
    if before is None:
        return (), to
    start = after_escape(line, to - before.end(1))
    start += 2 * line.startswith(b"-u", start)
    password = _PASSWORD.match(line, to, min(len(line), to + 300))
    if password is None:
        return (((start, to),), to) if is_value(line[start : to - before.start(1)], Demand.KEY) else ((), to)
    return (((start, password.end()),), password.end()) if is_value(password[1], Demand.PASSWORD) else ((), to)


def extract_piped(line: bytes, to: int) -> Extraction:
    """The secret that `echo` pipes into a command."""
    lowest = max(0, to - 480)
    echo = max(line.rfind(word, lowest, to) for word in (b"echo ", b"printf ", b"print "))
    found = _PIPED.match(line[echo:to]) if echo >= 0 else None
    if found is None or not is_value(found[2], Demand.PASSWORD):
        return (), to
    return ((echo + found.start(2), echo + found.end(2)),), to


RULES = (
    Rule(
        "option-password",
        "command line",
        "password given to an option",
        (rf"{_BEFORE}--?[A-Za-z0-9-]{{0,24}}{_PASSWORD_OPTIONS}{_OPTION_END}{_FIRST}",),
        extract_value(_VALUE_BYTES, Demand.PASSWORD),
        example="tool --db-password <base62:12> --verbose",
        counter="tool --db-password password --verbose",
    ),
    Rule(
        "option-token",
        "command line",
        "token or key given to an option",
        (
            rf"{_BEFORE}--[A-Za-z0-9-]{{0,24}}{_KEY_OPTIONS}{_OPTION_END}{_FIRST}",
            # As in PowerShell.
            rf"{_BEFORE}-(?:[A-Z][a-z]{{2,11}})?(?:ApiKey|Token|Secret|AccessKey|AuthKey) {_OPENED}{_FIRST}",
        ),
        extract_option_token,
        "medium",
        example="tool --token <base62:24> --verbose",
        counter="tool --token your-token-here --verbose",
    ),
    Rule(
        "command-password",
        "command line",
        "password given to a command",
        _PASSWORDS,
        extract_value(_VALUE_BYTES, Demand.PASSWORD),
        example="sshpass -p <base62:12> ssh host",
        counter="sshpass -p password ssh host",
    ),
    Rule(
        "command-key",
        "command line",
        "key or token given to a command",
        _KEYS,
        extract_value(_VALUE_BYTES, Demand.KEY),
        example="aws configure set aws_secret_access_key <base62:40>",
        counter="aws configure set aws_secret_access_key YOUR_KEY_HERE",
    ),
    Rule(
        "command-user",
        "command line",
        "user and password",
        _USERS,
        extract_user,
        example="curl -u someone:<base62:12> https://host.example",
        counter="docker run -u 1000:1000 image",
    ),
    Rule(
        "command-input",
        "command line",
        "secret piped into a command",
        _PIPE_ENDS,
        extract_piped,
        example="echo <base62:24> | docker login -u someone --password-stdin",
        counter="echo $TOKEN | docker login -u someone --password-stdin",
    ),
)
