"""Where the place proves a password, anything is one that stands for no other value."""

import pytest

from redaction.engine import Engine
from redaction.heuristics.certain import is_certain
from tests.shared import CACHE

KEY = b"\x07" * 32
POSITIONS = (
    "postgres://app:{}@localhost/shop",
    "app:{}@tcp(db:3306)/shop",
    "Driver={{SQL}};Server=db;Uid=app;Pwd={};",
    "host=db user=app password={} dbname=shop",
    "mysql -u root -p{} shop",
    "sshpass -p {} ssh root@h",
    "curl -u ada:{} https://host.example/x",
    "docker login -u ada -p {} quay.example",
    "redis-cli -a {} info",
    "machine host.example login ada password {}",
    "POSTGRES_PASSWORD={}",
    "    MYSQL_ROOT_PASSWORD: {}",
    "spring.datasource.password={}",
)
PASSWORDS = ("maple", "changeme123", "maple_Velvet88", "four-word-pass-phrase", "under_scored_words", "blümchenTag7")
STANDINS = (
    "$PW",
    "${PW}",
    "{{.Values.pw}}",
    "%PW%",
    "changeme",
    "Password",
    "your_password",
    "<password>",
    "xxxx",
    "****",
    "process.env.PW",
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(key=KEY, cache_dir=CACHE)


@pytest.mark.parametrize("position", POSITIONS)
def test_any_password_is_masked(engine: Engine, position: str) -> None:
    kept = [password for password in PASSWORDS if password in engine.redact_text(position.format(password))]

    assert kept == []


@pytest.mark.parametrize("position", POSITIONS)
def test_what_stands_for_a_password_is_not(engine: Engine, position: str) -> None:
    texts = [position.format(value) for value in STANDINS]

    assert [engine.redact_text(text) for text in texts] == texts


@pytest.mark.parametrize("rest", ["pw||''", "pw;", "db?.pw", "pw+x"])
@pytest.mark.parametrize(
    "read_by_code",
    ["self", "this", "cls", "os", "process.env", "env", "config", "settings", "args", "options", "opts", "e", "req",
     "request"],
)  # fmt: skip
def test_a_member_that_code_reads_is_no_password_unless_it_is_quoted(read_by_code: str, rest: str) -> None:
    assert not is_certain(f"{read_by_code}.{rest}", quoted=False)
    assert is_certain(f"{read_by_code}.{rest}", quoted=True)


@pytest.mark.parametrize("position", POSITIONS)
def test_single_words_are_left_where_the_setting_says_so(position: str) -> None:
    engine = Engine(key=KEY, cache_dir=CACHE, weak_passwords="leave")
    weak, other = (position.format("maple"), position.format("changeme123")), position.format("maple_Velvet88")

    assert tuple(map(engine.redact_text, weak)) == weak
    assert "maple_Velvet88" not in engine.redact_text(other)


def test_a_known_value_is_masked_although_it_is_a_word() -> None:
    engine = Engine(known_values=["velveteen7"], key=KEY, cache_dir=CACHE, weak_passwords="leave")

    assert "velveteen7" not in engine.redact_text("postgres://app:velveteen7@localhost/shop")


def test_documented_form_and_letters_beyond_ascii_are_read_in_escapes(engine: Engine) -> None:
    assert "u3055" not in engine.redact_text('{"x":"mysql://root:\\\\u3055\\\\u304f\\\\u3089Timber@db/app"}')
