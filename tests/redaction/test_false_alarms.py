"""What only looks like a secret, class by class, and beside it what is one in the same place."""

import json
import re

import pytest

from redaction.engine import CLEAN, Engine, Masked
from redaction.rules.examples import expanded as expanded_template
from tests.shared import CACHE

ENGINE = Engine(b"k" * 32, cache_dir=CACHE)
BUDGET_MS = 10_000.0

LEFT_ALONE = {
    "digests of files": (
        "MD5 (abc-password.txt) = <hex:32>\nSHA256(/etc/ssl/private/app.key)= <hex:64>",
        "checksum of client_password: <hex:64>",
        "secrets.tar.gz: <hex:64>\ncredentials.json = <hex:40>",
        "sha256 (secret) = <hex:64>",
    ),
    "placeholders of borrowed detectors": ("GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",),
    "code of packages that were fetched": (
        'privateKey: import("web3-types").HexString;\nencrypt(password: Uint8Array | string, f)',
        "def pods(passphrase:str|_A=_A)->str:\n\tpass",
        "const password = utils$1.getSafeProp(configAuth, 'password')",
        "forward pass (`forward_train()`).",
        """e("label",{for:"pw"},"password:"),x?O().createElement("code",null," * "):O""",
        '"adminPassword": "[parameters(\'publicKey\')]"',
        "user:{plain}pass:1000:1000::/home/user::userdb_mail=maildir:~/Maildir",
    ),
    "words and numbers": (
        "opgedaan\t32\npassword\t4\nestablished\t32\nbedrijfsgezondheid\t4\nfull-time\t32\n",
        "wait,pwd,3\nfull-time,<letters:12>,4\nsemi-annual,<letters:12>,5\n",
    ),
    "addresses and files": (
        "- source: salt://httpd/httpd.conf\n",
        '"secret": "unicode/3299.png?v8", "cookie": "unicode/1f36a.png?v8"',
    ),
    "code of packages for the cloud": (
        '@pulumi.type_token("aws:ec2/defaultVpcDhcpOptions:DefaultVpcDhcpOptions")',
        "values['ai21_api_key'] = ai21_api_key\ns3_aws_web_identity_token=s3_aws_web_identity_token,",
        'users.create_user({"user_email": "a@b.example", "user_role": "internal_user"})',
        "psk=entry.data[CONF_KEY],\npsk = safe_input(color(WHITE))",
        "const auto &password = is_proxy ? proxy_digest : digest;",
        "interface Clusters$Setmasterauth extends StandardParameters",
        "self.bindpw = bindpw; change to bindpw requirements",
        "Only runs if the user is using slack alerting",
        "f(db_user=user, db_password=settings, x=1)",
        '"pg-types": "2.2.0", "pgpass": "1.0.5"',
        "docker run --link my-mongo:mongo -v a:/b -p 1337:1337 image",
    ),
    "rules of sudo and lists of addresses": (
        "fred ALL=(ALL) NOPASSWD: ALL",
        "`2001:db8:1234:1a00:*:80,2001:db8:1234:1a02:*:80,2001:db8:1234:1a04:*:80`",
    ),
    "labels of translations": (
        'var Email = "E-mail";\nvar Password = "Wachtwoord";\nvar Password = "Jelszó";',
        '"admin_password": "Beheerderswachtwoord", "db_password": "Contraseña"',
        "<dt>auth/wrong-password</dt>\n<dd>Thrown if the password is wrong.</dd>",
        "Elimina la clave `legacy_templates` de la configuración; la parola chiave `entity_id` non fa",
    ),
    "what is not used as a password": (
        "sha256 as the password hash, ``passphrase`` is the passphrase. Words as the password.",
    ),
    "sentences and HTML of manuals": (
        "le mot de passe est g&eacute;n&eacute;r&eacute;e sous Windows",
        'La parola giapponese <span class="foreignphrase">',
        'en la palabra clave "vacaciones" y lee la documentación',
        "ftp://user[:password]@other.host[:port]/dir",
        "Env Var:     RCLONE_KOOFR_PASSWORD\n- Provider:    koofr7x\n- Type:        string",
    ),
    "biological sequences": (
        "GATTACAGATTACAACCAGGAGCTCAACTTGACCAGTA",
        ">seq\nACCAGTTGACCAGTTGACCATT\nTTAACCAGTTGACCAGTTGACCATT",
        "MKVLAAGIVGAKIAWERTYPLKNHGFDSAQWERT",
    ),
    "words of other languages": (
        '{"client_secret": "Kundengeheimnis", "password": "Zugangskennwort", "token": "Autentifizierungsmerkmal"}',
        '{"password": "contraseña", "apiKey": "clédinterface", "secret": "wachtwoordherstel"}',
        '{"password": "przekazanego", "db_password": "пароль", "passphrase": "密码设置确认完成"}',
    ),
    "references to what is kept elsewhere": (
        "db_password: !vault_ref prod/db/password\nsecret: !Ref AppSecret2\npassword: !Sub '{{resolve:ssm:/x/y:1}}'",
        "password: vault:secret/data/app1#password\nsecret: ssm:/prod/app1/secret\ntoken: env:APP_TOKEN_2024",
        "client_secret: secretsmanager:prod/app1\npassword: op://vault/item1/password",
        "password: projects/x1/secrets/y2/versions/3\npassword: ENC[AES256_GCM,data:<base64:24>,iv:x]",
        "spring.datasource.password=ENC(<base64:32>)\npassword={cipher}<hex:64>",
        "password: ${{ secrets.DB_PASSWORD1 }}\npassword = random_password.db1.result\npassword = var.db_password1",
    ),
    "types of resources": (
        '{"AWS::SecretsManager::Secret": "<hex:16>", "AWS::Location::APIKey": "<hex:16>"}',
        '{"AWS::Route53GlobalResolver::AccessToken": "<hex:16>"}',
    ),
    "sentences under the name of a check": (
        '{"pass": "要素のデフォルトのセマンティクスがrole=\\"presentation\\"で上書きされました", "fail": "x"}',
        '{"pass": "לאלמנט אין tabindex גדול מ-0", "fail": "x"}',
        '{"LOGIN_PASSWORD": "查看配置文件中的密码。", "MISS_PASSWORD": "รหัสผ่านหายไป"}',
        "To reset password for user creds 'test-user-creds-id' under database testdb.",
        "the user specified ``-v`` / ``--verbose``. Login with ada / --verbose",
    ),
    "versions, standards and addresses": (
        '{"@azure/keyvault-secrets":"^4.10.0","client-secret":"~2.11.4"}',
        "@GNUTLS_BAG_SECRET: PKCS-12 bag. ('2.5.4.35', 'userPassword', 'RFC4519'),",
        "Token=::1a:2b:3c:4d\nToken=static:::1a:2b:3c:4d\nToken=2001:db8:0:1a2b::4d",
    ),
    "files of a changelog": (
        "* common/get-passphrase.h, common/gettime.c, common/gpgrlhelp.c\n* common/x.h, common/y.c, common/z12.c",
    ),
    "addresses of documentation": (
        "http://proxyuser:password@proxyhost:3128 https://REDACTED:REDACTED@host.example/ redis://u:p@host.example",
        "socks5h://<username>:<password>@host.example http://{}:{}@{}:{}/ https://u:{password}@{host} ftp://u:$PASS@h",
        "default login anonymous password user@site",
    ),
    "code": (
        'e.user=r.username||"",e.password=r.password||"",e.pathname=r.pathname,e.hash=r.hash.slice(1);',
        'return e.isSecret?"secret":e.choices&&e.choices.length>0?"enum":e.format',
        're.match(r"^projects/(?P<project>.+?)/secrets/(?P<secret>.+?)/versions/(?P<version>.+?)$", path)',
        "client_secret = messages.MessageField('GoogleCloudAiplatformV1ApiAuthApiKeyConfig', 2)",
        "webhookSecret = messages.MessageField('WebhookSecret', 13)",
        "OPTIONS = ['FTPPORT', 'KEYPASSWD', 'KRB4LEVEL', 'SSH_HOST_PUBLIC_KEY_MD5', 'USERPWD', 'HTTP200ALIASES']",
        "F_GET_CLIENT_MASTER_KEY        OP_TLS_D5_BUG",
        "my $pwd = CPAN::anycwd();",
        "return!0}});var pw=z((cQ,hw)=>{var kB=Em()});this._password=!1;this.update({type:n})",
        "var messages = check.messages, pass = _check$messages.pass, fail = _check$messages.fail;",
        "mlkem_key: mlkem.MLKEM1024PublicKey,\nrsa_key: rsa.RSA2048PrivateKey",
        "from_key(\n    | MLKEM1024PrivateKey\n    | MLKEM768X25519PrivateKey\n    | MLKEM1024P384PrivateKey,",
        'x.patch(CHALLENGES, {"PASSWORD": mock_challenge}):\n  USERNAME_PASSWORD: 0x02,\n  B_PASSWORD: Incomplete',
        'SIGNED = ("authorization", "x-amz-content-sha256", "x-amz-date")',
        "support the --user and --password command\nswitches. Add missing -p, --password description to the usage",
        'zstyle -a ":completion:*:*:$service:*" tag-order tag_order',
        "zstyle -a :zle:$WIDGET editor editor\nzstyle -a :bracketed-paste-url-magic schema schema",
        "new AWS.STS.AssumeRoleWithWebIdentityCredentials(new AWS.STS.assumeRoleWithWebIdentity())",
        "#'-fdisable--pass=-[disables an optimization pass]:range'",
        "$token: `var(--global-z-index-app-portaled-overlay)`, Pw=`var(--global-z-index-app-portaled-overlay)`",
        "PRIVATE_KEYS: T1552.004",
    ),
    "public keys": ("key: 'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE<base64:80>=='",),
    "names of messages": (
        "semi_secret_thing:+bool,%0A++++%7D%0A",
        '{"NextLockToken": "<uuid>", "nextForwardToken": "f/<digits:40>"}',
    ),
    "lists": (
        "NAMES = [\n    'user_password',\n    'ssh2_sftp_stat2',\n    'V6FRAME',\n]\nf(\n  password,\n  port=3306,\n)",
    ),
    "labels and constants": (
        '"pin": "gpio17-pull-up-2"',
        "signingkey = <HEX:16>",
        "MAC_KEY: TR31_M6_ISO_9797_CMAC_KEY",
    ),
    "what says that it is encrypted": (
        'encrypted_password: "<base64:60>"',
        "encryptedData:\n  password: Ag<base64:300>",
    ),
    "commands": ("PASS=`pwgen 12 1`; PASSWORD=$(openssl rand -base64 32)",),
    "padding of base64": (
        "h:3:|1|kB3xq0Zf8mVtJw2nLr5YhRPw=|zxQQh7Tn4kLs9vBf2cDgWpYm6jTk= ssh-ed25519 AAAA",
        "iv:kB3xq0Zf8mVtJw2nLr5YhRPB68pw=,tag:RZkzQh7Tn4kLs9vBf2cDgW==,type:str",
    ),
    "salts of tests": ('derive("password", "<HEX:16>", 16, 1000)',),
    "members and sentences": (
        "password = m_creds.userPassword\npasswd = m_ui.lineEditPasswd\npassword = rng.nextBytes\n",
        "The password is auth-token-based now. The admin password is sha-hashed-twice",
    ),
    "typed on the middle row": (
        "access_token=sdlfkj452, token: 'lsdkfol23w54jlksdef'",
        "route53.key: askdjghsdfjkghWupUjasdflkdfklgjsdfjajkghs",
    ),
}
MASKED = (
    "GITHUB_TOKEN=ghp_<base62:30><crc32:6>",
    "password: <hex:32>",
    "md5=<hex:32> client_secret=<hex:31>1",
    "client_secret: <letters:15>q",
    "db_password: !unsafe '<base62:15>'",
    '{"db::password": "<base62:15>"}',
    "http://proxyuser:<base62:12>@proxyhost:3128",
    'x = f("app", "password", "<base62:14>")',
    'f("password", "<base62:14>", 1)',
    'const apiKey = "<base62:24>"',
    'e.password="",e.secret="<base62:20>"',
    "token: '<base36:24>'",
    "key AKIA<BASE36:16> ok",
    "password: 'Kundengeheimnis7!'",
    "config/app.yml:12:password: <letters:6>7x",
    "app.yml-5-    password: S0mmer!haus",
    "password: monkey_123",
    "encryption_key: <base64:43>=",
    '"pin": "<base62:20>"',
    '""password"": ""<base62:14>""',
    "password=GlacierPepper3307_",
    '"password": "GlacierPepper3307."',
    "postgres://bob:GlacierPepper3307_@db:5432/x",
    "mysql -pGlacierPepper3307_",
    "connect(password=GlacierPepper3307_, x=1)",
    "passwd = k_vbw.XTqmrhzepJ",
    "helm upgrade a b --set auth.password=GlacierPepper3307! --set x=1",
    "host=h password=GlacierPepper33! sslmode=require",
    'ADMIN_PASS="GlacierPepper3307-"',
    'APP_SECRET = "<base62:16>…<base62:5>..."',
    "The admin password is velvet-copper-lantern-copper41",
    "the password is GlacierPepper3307_",
    '"refresh_token": "1\\/\\/0<base62:40>"',
    "client_secret: q93Z\\/<base62:20>",
)


TEMPLATE = re.compile(r"<(?:\w+:\d+|uuid|crc32:6)>")


def expanded(text: str, seed: str = "") -> str:
    """The text with its templates filled in; other angle brackets are left."""
    parts = TEMPLATE.findall(text)
    made = expanded_template(" ".join(parts), seed).split(" ") if parts and "crc32" not in text else []
    if not made:
        return expanded_template(text, seed) if parts else text
    return TEMPLATE.sub(lambda _: made.pop(0), text)


def event(text: str) -> bytes:
    """A line that holds the text."""
    return json.dumps({"type": "tool.execution_complete", "data": {"result": {"content": text}}}).encode()


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in LEFT_ALONE.items() for text in texts])
def test_no_secret_is_left_alone(kind: str, text: str) -> None:
    for written in (text, json.dumps({"x": text})):
        result = ENGINE.redact(event(expanded(written, kind)), BUDGET_MS)
        assert result is CLEAN, result


@pytest.mark.parametrize("text", MASKED)
def test_secret_in_the_same_place_is_masked(text: str) -> None:
    for written in (text, json.dumps({"x": text})):
        assert isinstance(ENGINE.redact(event(expanded(written)), BUDGET_MS), Masked)
