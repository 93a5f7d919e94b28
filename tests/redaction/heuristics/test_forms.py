"""Values that look drawn by chance and are something else, in each form that the lists and expressions name."""

from typing import Final

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import Placement, is_secret
from redaction.known import is_worth_masking
from redaction.rules.examples import expanded
from tests.rows import each, with_each_choice

UNCERTAIN: Final = tuple(demand for demand in Demand if demand is not Demand.CERTAIN)
ANYWHERE: Final = (
    # References to secrets that are stored elsewhere.
    "«¦ref+¦+»«vault¦ssm¦secretsmanager¦secretmanager¦file¦env¦keyvault¦akv¦azkv¦kms¦gcpkms¦awskms¦op¦keychain¦keyring"
    "¦conjur¦doppler¦infisical¦chamber¦credstash¦sops¦bao¦gcpsm¦gcp-sm¦awssm¦aws-sm¦asm¦gsm¦sm¦k8s¦secret¦secrets»:"
    "«/¦.¦~¦app/¦app#¦v1:»<base62:24>",
    "vault:DEPLOY_TOKEN_7Q",
    "ENC«[¦(»<base62:24>",
    "{cipher}<base62:24>",
    "projects/<base36:12>/«¦locations/eu1/»secrets/<base62:20>",
    # Files.
    "<base62:20>.«py¦js¦ts¦go¦rs¦rb¦sh¦php¦java¦json¦yml¦yaml¦toml¦xml¦htm¦html¦css¦md¦txt¦pem¦crt¦cer¦key¦p12¦pfx¦jks¦env"
    "¦ini¦cfg¦conf¦log¦png¦svg¦jpg¦jpeg¦gif¦com¦org¦net¦io¦dev¦local¦internal»«¦:8080¦/x¦:80/<base62:8>»",
    # What is signed, hashed, addressed or public.
    "arn:<base62:24>",
    "urn:<base62:24>",
    "magnet:<base62:24>",
    "«sha256¦sha1»«-¦:»<base62:43>",
    "md5«-¦:»<hex:32>",
    "data:«image¦a»/png;base64,<base62:40>",
    "«~¦^»1.2.3-<base62:20>",
    "#<hex:8>",
    "x:1000:1000:<base62:24>",
    "Ag<base64:280>",
    "MIIBIjANBgkqhkiG9w0BAQEFAAO<base64:60>",
    "MIGfMA0GCSqGSIb3DQEBAQUAA4<base64:60>",
    "MFkwEwYHKoZIzj0C<base64:60>",
    "MHYwEAYHKoZIzj0C<base64:60>",
    "MCowBQYDK2V<base64:40>",
    "MIIDdTCCAl2gAwIBAg<base64:60>",
    "C:\\<base62:24>",
    "input[name«=¦^=¦$=¦*=¦~=¦|=»<base62:20>]",
    "«Bearer¦basic¦TOKEN»« ¦+¦%20»<base62:24>",
    "<base62:12>@<lower:8>«¦.example».org",
    # Variables and templates.
    "$<base62:20>",
    "$«¦run»(<base62:20>)",
    "%<base62:20>%",
    "!<base62:20>!",
    "<-<base62:20>>",
    "[<base62:20>]",
    "(<base62:20>)",
    "&<base62:20>;",
    "@«¦@»<base62:20>",
    "*<base62:20>*",
    ":<base62:20>",
    "«¦%»{<base62:20>}",
    "__<base62:20>__",
    "<base62:12>«${x}¦$(x)¦{{x}}¦#{x}¦@{x}¦<%¦%>¦%(name)s¦</¦://¦) =>¦[REDACTED¦[MASKED¦[FILTERED¦%0A»<base62:12>",
    # Placeholders.
    "<base62:8>«example¦placeholder¦changeme¦change-it¦change_this¦redacted¦undefined¦dummy¦sample¦xxxx¦***¦...¦…¦•"
    "¦your-¦mypass¦my_secret¦my-token¦my_key¦myapi¦insert¦replace¦todo¦fixme¦-here¦null¦goes-here¦not-set¦not_a_¦unset"
    "¦omitted¦masked¦hidden¦secret-key¦dont-tell¦dont_use¦super-secret¦some-»<base62:6>",
)
"""Any value of these means something else, wherever it stands."""
IN_CODE: Final = (
    "«self¦this¦cls¦os¦process¦env¦config¦settings¦props¦params¦request¦req¦args¦options¦opts¦ctx¦context¦data¦app¦window"
    "¦document¦event¦state¦module¦var¦local¦secrets¦import.meta¦vars¦user¦form¦body¦res¦response¦input»«.¦?.¦!.¦[»"
    "x<base62:20>",
    "<lower:6>9« < ¦ > ¦ = ¦ + ¦ * ¦ / ¦ | ¦ & ¦ ? ¦ - ¦ <= ¦ >= ¦ != ¦ == ¦ => ¦ && ¦ || »<base62:20>",
    "a1«&&¦||¦!=¦==¦===»<base62:20>",
    "run_<base62:16>(",
    "«str¦bytes¦int¦bool»|<base62:16>",
)
"""Any value of these is code where it stands by itself."""
HARMLESS: Final = (
    "«$¦%¦<¦{¦(¦[»<base62:20>",
    "<base62:8>«${¦{{¦your¦example¦placeholder¦changeme¦redacted»<base62:8>",
    "«¦-¦+»<digits:12>«¦%¦ms¦MiB»",
    "«¦~¦.¦..»/<base62:20>",
    "C:\\<base62:20>",
    "«https¦git+ssh¦s3»://host.example/<base62:20>",
    "«password¦localhost¦production¦development¦undefined¦disabled¦anonymous¦x-access-token»",
)
"""Known values that are not worth masking everywhere."""


def _values(templates: tuple[str, ...]) -> list[str]:
    return [expanded(one, "value") for template in templates for one in with_each_choice(template)]


@each(_values(ANYWHERE), list(Placement))
def test_a_value_of_another_form_is_no_secret_wherever_it_stands(value: str, placement: Placement) -> None:
    assert not any(is_secret(value, demand, placement) for demand in UNCERTAIN)


@each(_values(IN_CODE))
def test_a_value_that_is_code_is_no_secret(value: str) -> None:
    assert not any(is_secret(value, demand, Placement.BARE) for demand in UNCERTAIN)


@each(_values(HARMLESS))
def test_a_known_value_that_says_nothing_is_not_masked(value: str) -> None:
    assert not is_worth_masking(value)


def test_a_drawn_value_is_a_secret_in_the_same_places() -> None:
    value = expanded("<base62:24>", "value")

    assert all(is_secret(value, Demand.KEY, placement) for placement in Placement)
    assert is_worth_masking(value)
