"""Which values are secrets, by what their names demand."""

import pytest

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import (
    Placement,
    is_joined_words,
    is_mixed_words,
    is_secret,
    is_words_and_number,
)
from redaction.rules.examples import expanded
from tests.rows import each

UNCERTAIN = tuple(demand for demand in Demand if demand is not Demand.CERTAIN)
DEMANDS = (
    ("password", Demand.PASSWORD),
    ("DB_PASSWORD", Demand.PASSWORD),
    ("spring.datasource.password", Demand.PASSWORD),
    ("MYSQL_ROOT_PASSWORD", Demand.PASSWORD),
    ("smtpPasswd", Demand.PASSWORD),
    ("SMTP_PASS", Demand.SECRET),
    ("client_secret", Demand.SECRET),
    ("clientSecret", Demand.SECRET),
    ("SECRET_KEY_BASE", Demand.SECRET),
    ("aws_secret_access_key", Demand.KEY),
    ("apiKey", Demand.KEY),
    ("x-api-key", Demand.KEY),
    ("GITHUB_TOKEN", Demand.KEY),
    ("token", Demand.TOKEN),
    ("session_cookie", Demand.TOKEN),
    ("MAPS_KEY", Demand.WEAK),
    ("PASSWORD_GITHUB", Demand.TOKEN),
)
HARMLESS_NAMES = (
    "max_tokens token_count tokenizer next_page_token primaryKey cacheKey keyboard monkey PASSWORD_MIN_LENGTH "
    "publicKey key_id password_hash secretName secretRef secretKeyRef AWS_ACCESS_KEY_ID passwordField token_type "
    "access_token_url credentialsId password_reset_url bypass compass secretary foreign_key sort_key partitionKey "
    "csrf_token"
)
SECRETS = (
    (Demand.PASSWORD, "hunter2"),
    (Demand.PASSWORD, "Summer2024!"),
    (Demand.PASSWORD, "Tr0ub4dor&3"),
    (Demand.PASSWORD, "korrekt-7-pferd"),
    (Demand.PASSWORD, "<base62:8>1"),
    (Demand.PASSWORD, "#9a, <base62:8>"),
    (Demand.SECRET, "#9a, <base62:8>"),
    (Demand.SECRET, "<hex:32>"),
    (Demand.SECRET, "ab12cd34ef56"),
    (Demand.KEY, "<base62:20>"),
    (Demand.KEY, "<uuid>"),
    (Demand.KEY, "<base64:40>="),
    (Demand.KEY, "<base36:24>"),
    (Demand.TOKEN, "<base62:24>"),
    (Demand.TOKEN, "<hex:40>"),
    (Demand.WEAK, "<base62:24>"),
    (Demand.PASSWORD, "GlacierPepper3307_"),
    (Demand.PASSWORD, "GlacierPepper3307."),
    (Demand.SECRET, "GlacierPepper3307-"),
    (Demand.SECRET, "<base62:16>…<base62:5>..."),
    (Demand.TOKEN, "1/<digits:16>:<hex:8>…"),
    (Demand.TOKEN, "<digits:32>"),
    (Demand.PASSWORD, "marble_harbour_4071"),
    (Demand.PASSWORD, "marble.harbour.window.407"),
    (Demand.PASSWORD, "Krestomitariu$"),
    (Demand.SECRET, "9`K'}/mYR)T;W5]EBqf;_&k>zX?G&3DF=;@wyr$%r"),
    (Demand.PASSWORD, "secure2024"),
    (Demand.SECRET, "<digits:30>"),
    (Demand.KEY, "prjfutAB"),
    (Demand.KEY, "80Marble056452pepperpaduyuf3"),
    (Demand.TOKEN, "Tk7VRCopper6rDtYnBhJcPeppercoppe"),
    (Demand.PASSWORD, "4.7-19-83kq"),
    (Demand.PASSWORD, "quuxabcdjwt7"),
    (Demand.PASSWORD, "kq7#x zw9$p marble 7f2q"),
)
OTHERS = (
    "${DB_PASSWORD} $DB_PASSWORD %DB_PASSWORD% {{password}} <your-password> ****** xxxxxxxx XXXX-XXXX changeme "
    "change-me your_password_here example-password [REDACTED:rule:12345678] REDACTED ... TODO null undefined None "
    "#{password} aaaaaaaaaa 12345678 abcdefgh 0123456789abcdef password Passwort secret my-secret-key "
    "test_password1 password123 string str Optional[str] SecretStr application/json kubernetes.io/tls us-east-1 "
    "user@example.org 2026-11-18 2026-11-18T12:00:00Z 1.2.3-beta4 10.0.0.1:5432 4096MB true #ff00aa "
    "#password-field input[name=password] /run/secrets/db_password ./config/token.txt ~/.ssh/id_rsa "
    "C:\\keys\\id.pem https://host.example/token "
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:thing-Ab12Cd sha256:0f343b0931126a20f133d67c2b018a3b "
    "rozhrani-value kuukausi-value "
    "ACGTACGTTTGACCA %s %(password)s {password} {0} required|min:8 @string/password1 ssh-rsa"
)
CODE = (
    "process.env.API_KEY os.environ['TOKEN_1'] config.database.password2 getPassword() self._token1 "
    "req.body.password settings.SECRET_KEY1 keys[0] std::string1 token?.value2 credentials!.password1 "
    "user_password_2 (password1) gtk_wdgt2_new(w1 k->harbour2 k?.harbour2 account.harbour2!"
)


@pytest.mark.parametrize(("name", "demand"), DEMANDS)
def test_name_says_how_much_its_value_must_show(name: str, demand: Demand) -> None:
    assert demand_of(name.encode()) == demand


@pytest.mark.parametrize("name", HARMLESS_NAMES.split())
def test_names_of_other_things_demand_nothing(name: str) -> None:
    assert demand_of(name.encode()) == Demand.NONE


@pytest.mark.parametrize(("demand", "template"), SECRETS)
def test_made_value_is_a_secret(demand: Demand, template: str) -> None:
    assert is_secret(expanded(template, "judge"), demand)


@each(["Battery-Horse-42", "maple7-harbour", "maple-7-harbour", "maple-harbour.42"], list(Placement))
def test_words_with_dashes_and_digits_are_a_password_wherever_they_stand(value: str, placement: Placement) -> None:
    demands = [demand for demand in UNCERTAIN if is_secret(value, demand, placement)]

    assert demands == [Demand.PASSWORD]


@each(OTHERS.split(" "), list(Placement))
def test_value_with_another_meaning_is_no_secret(value: str, placement: Placement) -> None:
    assert not any(is_secret(value, demand, placement) for demand in UNCERTAIN)


@pytest.mark.parametrize("value", CODE.split(" "))
def test_code_is_no_secret(value: str) -> None:
    assert not any(is_secret(value, demand, Placement.BARE) for demand in UNCERTAIN)


@pytest.mark.parametrize("value", ["GlacierPepper3307_", "GlacierPepper33!", "Glacier3307_", "GlacierPepper3307-"])
@pytest.mark.parametrize("placement", list(Placement))
def test_words_and_a_number_with_a_symbol_are_a_password_wherever_they_stand(value: str, placement: Placement) -> None:
    if value != "Glacier3307_" or placement is not Placement.BARE:
        assert is_secret(value, Demand.PASSWORD, placement)


@pytest.mark.parametrize(
    "value", ["HmacSha256_", "UserPassword10_", "TestUser2024_", "UserBytesLength128_", "Base64Bytes12_"]
)
def test_names_with_sizes_are_no_passwords(value: str) -> None:
    assert not any(is_secret(value, Demand.PASSWORD, placement) for placement in (Placement.QUOTED, Placement.BARE))


@pytest.mark.parametrize(
    "value",
    [
        "eyJhbGciOiJIUzI1NiIsInR5cCI...",
        "sk-1a2b...",
        "a1b2c3d4e5f6g7h8i9...",
        "1x2q3m4k5z6w7p8f9v...",
        "Loading keys…",
        "harbourtablegardenKXRBLZwr3NQxuEstPSZ8snsj2eyqVWsQ...",
    ],
)
def test_what_is_cut_to_nothing_drawn_is_no_secret(value: str) -> None:
    assert not any(is_secret(value, demand) for demand in UNCERTAIN)


@pytest.mark.parametrize("template", ["<digits:20>", "<digits:29>", "<digits:77>", "1" + "0" * 31, "1234567890" * 4])
def test_a_number_as_programs_count_is_no_secret(template: str) -> None:
    assert not any(is_secret(expanded(template, "number"), demand) for demand in UNCERTAIN)


@pytest.mark.parametrize(
    "value", ["secure2", "Secure12", "strongpass1", "MySecurePass1", "weak-password-3", "insecure_secret1", "Pass$"]
)
@pytest.mark.parametrize("placement", list(Placement))
def test_what_says_how_good_a_made_up_password_is_is_none(value: str, placement: Placement) -> None:
    assert not any(is_secret(value, demand, placement) for demand in UNCERTAIN)


@pytest.mark.parametrize(
    "value", ["user_table_2024", "sha_digest_256", "marble_harbour_4", "marble_password_4071", "test.case.1001"]
)
def test_joined_words_of_programs_are_no_password(value: str) -> None:
    assert not any(is_secret(value, demand) for demand in UNCERTAIN)


def test_joined_words_are_a_password_only_where_nothing_else_is_around() -> None:
    assert is_secret("marble_harbour_4071", Demand.PASSWORD, Placement.LINE)
    assert not is_secret("marble_harbour_4071", Demand.PASSWORD, Placement.BARE)
    assert not is_secret("marble_harbour_4071", Demand.SECRET, Placement.QUOTED)


@pytest.mark.parametrize("value", ["<%=x['%s']%>{}/2", "%s:%r@(%s)/[%d]?x=1&y", "([0-9a-f]{32})", "/^a+(b)*1|[^c]$/%s"])
def test_template_with_many_symbols_is_no_secret(value: str) -> None:
    assert not any(is_secret(value, demand) for demand in UNCERTAIN)


def test_among_few_characters_words_and_dummies_are_no_chance() -> None:
    assert not is_secret("Tk7VRCopper6rDtYnBhJcPeppercopp", Demand.TOKEN)
    assert not is_secret("b9crGardenrqGlacierPTqdRivertablest", Demand.TOKEN)
    assert not is_secret("quuxabcdjwt", Demand.PASSWORD)


def test_sentence_is_no_secret() -> None:
    assert not is_secret("kq7#x zw9$p marble", Demand.PASSWORD)
    assert not is_secret("Must be at least 8 characters long", Demand.PASSWORD)
    assert not is_secret("Enter your password", Demand.PASSWORD)


def test_weak_name_leaves_hashes_ids_and_files_alone() -> None:
    for template in ("<hex:40>", "<uuid>", "some/dir/build-<digits:6>.tar"):
        assert not is_secret(expanded(template, "weak"), Demand.WEAK)


def test_word_with_digits_is_a_password_where_the_line_ends_and_a_name_elsewhere() -> None:
    assert is_secret("hunter2", Demand.PASSWORD, Placement.LINE)
    assert not is_secret("hunter2", Demand.PASSWORD, Placement.BARE)
    assert is_secret("harbour2?@", Demand.PASSWORD, Placement.LINE)
    assert not is_secret("harbour2?@", Demand.PASSWORD, Placement.BARE)


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("kur_Bla99", True),
        ("kurmelibator_Blatoritesk9901&", True),
        ("ku_Blat99", False),
        ("kurmelibatorx_Blat99", False),
        ("kur_Bl99", False),
        ("kur_Blatoriteskas99", False),
        ("kur_Blat9", False),
        ("kur_Blat99012", False),
        ("kur_Blat99&&", False),
        ("kur-bla-tor-mes", True),
        ("kurmelibat-blatorites-kurmelibas-blatoritem", True),
        ("ku-bla-tor-mes", False),
        ("kurmelibator-bla-tor-mes", False),
        ("kur-bla-tor", False),
        ("kur-bla-tor-mes-lit", False),
    ],
)
def test_a_password_of_two_or_four_words_has_this_form(value: str, is_one: bool) -> None:
    assert is_mixed_words(value) is is_one


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("kur_blat_990", True),
        ("kur.blat.990199", True),
        ("kurmelibator.blat_tor_mes_lit_990", True),
        ("ku_blat_990", False),
        ("kurmelibatorx_blat_990", False),
        ("kur_990", False),
        ("kur_blat_99", False),
        ("kur_blat_9901990", False),
        ("kur_bla_tor_mes_lit_kal_990", False),
        ("kur-blat-990", False),
    ],
)
def test_a_password_of_joined_words_has_this_form(value: str, is_one: bool) -> None:
    assert is_joined_words(value) is is_one


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("KurBla99", True),
        ("KurBlaTorMesLit990199__", True),
        ("Kurm990&", True),
        ("Kurm990199?!", True),
        ("KuBla99", False),
        ("KurBlaTorMesLitKal99", False),
        ("KurBla9", False),
        ("KurBla9901990", False),
        ("KurBla99&&&", False),
        ("Kurm990", False),
        ("Kur990&", False),
        ("Kurm99&", False),
        ("Kurm9901990&", False),
    ],
)
def test_a_password_of_words_and_a_number_has_this_form(value: str, is_one: bool) -> None:
    assert is_words_and_number(value) is is_one
