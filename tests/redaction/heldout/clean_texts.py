"""Texts without a secret that look as if they held one: a head, a line to repeat, and how often."""

REPEATED = {
    "git-log": (
        "$ git log",
        "commit {x:40}\nAuthor: {word:1} <{word:1}@example.com>\n\n    Fix {word:1} token handling\n",
        9,
    ),
    "git-oneline": ("$ git log --oneline", "{x:8} Rotate password of {word:1} store (#{d:4})", 30),
    "git-diff-index": (
        "",
        "diff --git a/src/{word:1}.py b/src/{word:1}.py\nindex {x:7}..{x:7} 100644\n@@ -1 +1 @@\n-a\n+b",
        8,
    ),
    "npm-lock": (
        '{\n  "lockfileVersion": 3,\n  "packages": {',
        '    "node_modules/{word:1}-token": {\n      "version": "{d:1}.{d:2}.{d:1}",\n      "resolved": '
        '"https://npm.example.com/{word:1}/-/{word:1}-{d:1}.1.0.tgz",\n      "integrity": "sha512-{b64:64}"\n    },',
        14,
    ),
    "yarn-lock": (
        "",
        '"@{word:1}/auth@^{d:1}.1.0":\n  version "{d:1}.1.4"\n  integrity sha1-{b64:20}\n  checksum {x:128}',
        10,
    ),
    "cargo-lock": ("", '[[package]]\nname = "{word:1}-secret"\nversion = "0.{d:1}.{d:1}"\nchecksum = "{x:64}"\n', 15),
    "poetry-lock": ("files = [", '    {file = "{word:1}-1.0-py3-none-any.whl", hash = "sha256:{x:64}"},', 15),
    "pip-hashes": ("", "{word:1}-auth==1.{d:1}.{d:1} \\\n    --hash=sha256:{x:64} \\\n    --hash=sha256:{x:64}", 12),
    "go-sum": (
        "",
        "github.com/{word:1}/{word:1} v1.{d:1}.{d:1} h1:{b64:32}\ngithub.com/{word:1}/oauth2 v0.1.0/go.mod h1:{b64:32}",
        15,
    ),
    "checksums": ("$ sha256sum *", "{x:64}  {word:1}.key.pub", 15),
    "md5": ("", "MD5 ({word:1}-password.txt) = {x:32}", 10),
    "docker-build": (
        "",
        "#{d:1} [internal] load build context\n#{d:1} sha256:{x:64} 1.{d:2}MB / 3.2MB 0.{d:1}s done",
        12,
    ),
    "docker-ps": (
        "CONTAINER ID   IMAGE",
        "{x:12}   {word:1}:latest   Up {d:1} hours   0.0.0.0:{d:4}->80/tcp   {word:1}",
        12,
    ),
    "image-digest": ("", "    image: ghcr.io/acme/{word:1}@sha256:{x:64}", 8),
    "kubectl-pods": ("NAME   READY", "{word:1}-auth-{l:10}-{l:5}   1/1   Running   0   {d:1}d", 25),
    "kubectl-secrets": ("NAME   TYPE   DATA   AGE", "{word:1}-credentials   Opaque   {d:1}   {d:2}d", 12),
    "uuids": ("", '{"id": "{uuid:1}", "tokenId": "{uuid:1}", "name": "{word:1}"},', 18),
    "http-answer": (
        "HTTP/2 200",
        'etag: W/"{x:32}"\nx-request-id: {uuid:1}\nx-github-request-id: {X:4}:{X:6}:{X:7}:{X:7}\ncf-ray: {x:16}-FRA\n'
        "x-amz-cf-id: {u:54}==\ntraceparent: 00-{x:32}-{x:16}-01\ncontent-md5: {b64:16}\n",
        5,
    ),
    "access-log": ("", '10.0.{d:1}.{d:2} - - "POST /oauth/token HTTP/1.1" 200 {d:4} "-" "curl/8.1" rid={uuid:1}', 25),
    "json-log": (
        "",
        '{"level":"info","msg":"token refreshed","trace_id":"{x:32}","span_id":"{x:16}","tokens":{d:4}}',
        20,
    ),
    "usage": (
        "",
        '{"max_tokens": {d:4}, "prompt_tokens": {d:4}, "completion_tokens": {d:3}, "token_count": {d:5}},',
        20,
    ),
    "github-api": (
        "",
        '{"node_id": "MDEwOlJlcG9zaXRvcnk{w:12}", "sha": "{x:40}", "url": "https://api.github.com/repos/acme/{word:1}/'
        'git/commits/{x:40}", "gravatar_id": ""},',
        8,
    ),
    "base64-image": ("", "![chart](data:image/png;base64,iVBORw0KGgo{b64:1200})", 1),
    "svg-path": (
        "",
        '<path d="M{d:2}.{d:1} {d:2}c-{d:1}.5 0-{d:1}.{d:2}.{d:1}-1.{d:2}l{d:2}.{d:1}-{d:1}z" fill="#{x:6}"/>',
        20,
    ),
    "font": ("", "src: url(data:font/woff2;base64,d09GMgABAAAAA{b64:900}) format('woff2');", 1),
    "source-map": (
        "",
        "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpb{b64:600}",
        1,
    ),
    "ssh-public": ("", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC{b64:360} {word:1}@laptop", 2),
    "ssh-ed25519-public": ("", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b:43} {word:1}@laptop", 4),
    "fingerprints": ("", "256 SHA256:{b:43} {word:1}@host (ED25519)", 8),
    "known-hosts": ("", "|1|{b64:20}|{b64:20} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b:43}", 6),
    "certificate": ("-----BEGIN CERTIFICATE-----", "{b:64}", 18),
    "public-key": ("-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA{b:20}", "{b:64}", 5),
    "dna": (">seq{d:4}", "ACGTTGCAAGCT{dna:58}", 12),
    "protein": (">sp|P{d:5}|KEY_HUMAN", "M{protein:59}", 10),
    "hexdump": ("", "000{x:5}  {x:2} {x:2} {x:2} {x:2} {x:2} {x:2} {x:2} {x:2}  |........|", 20),
    "nix-store": ("", "/nix/store/{l:32}-{word:1}-1.{d:1}.drv", 14),
    "chunks": ("", "dist/assets/{word:1}-{u:8}.js   {d:2}.{d:2} kB | gzip: {d:1}.{d:2} kB", 18),
    "arns": (
        "",
        '"arn:aws:secretsmanager:eu-west-1:{d:12}:secret:prod/{word:1}/password-{w:6}",\n'
        '"arn:aws:iam::{d:12}:role/{word:1}-token-broker",\n"arn:aws:kms:us-east-1:{d:12}:key/{uuid:1}",',
        6,
    ),
    "aws-ids": ("", "i-0{x:16}  subnet-0{x:16}  sg-0{x:16}  vpc-0{x:16}  ami-0{x:16}", 10),
    "terraform-plan": (
        "",
        '  + password   = (sensitive value)\n  + id = (known after apply)\n  ~ etag = "{x:32}" -> null',
        8,
    ),
    "css": (
        "",
        ".{word:1}-password__input--{x:5} { color: #{x:6}; background: url(#{word:1}); margin: {d:1}px {d:2}px; }",
        14,
    ),
    "html": ("", '<input type="password" name="password" autocomplete="current-password" id="{word:1}-{d:4}">', 6),
    "test-output": ("", "tests/test_{word:1}.py::test_token_is_refreshed[{word:1}-{d:2}] PASSED   [ {d:2}%]", 25),
    "timings": ("", "{d:2}.{d:6}s call     tests/test_{word:1}_password.py::test_{word:1}", 20),
    "ls": ("$ ls -la", "-rw------- 1 dev dev {d:5} Aug 11 10:{d:2} {word:1}_secret.key", 20),
    "message-ids": ("", "Message-ID: <{u:24}.{d:10}@mail.example.com>\nIn-Reply-To: <CA{w:50}@mail.gmail.com>", 8),
    "build-ids": ("", "BuildID[sha1]={x:40}, stripped: /usr/lib/lib{word:1}.so.{d:1}", 12),
    "addresses": ("", "0x7f{x:10} in {word:1}_set_password (ctx=0x55{x:10}, key=0x0, len={d:2})", 12),
    "cursor": (
        "",
        '{"pageInfo": {"hasNextPage": true, "endCursor": "Y3Vyc29yOnYyOpH{w:12}=="}, "totalCount": {d:3}}',
        6,
    ),
    "sri-tag": (
        "",
        '<script src="https://cdn.example.com/{word:1}.min.js" integrity="sha384-{b64:48}" crossorigin></script>',
        8,
    ),
    "csp": ("", "Content-Security-Policy: script-src 'sha256-{b64:32}' 'self'", 5),
    "migrations": ("", "{d:14}_add_password_digest_to_{word:1}.rb   up", 14),
    "dotnet-guids": (
        "",
        '<ProjectReference Include="..\\{word:1}.csproj" /> <!-- {{uuid:1}} PublicKeyToken=b77a5c561934e089 -->',
        8,
    ),
    "maven-tree": ("", "[INFO] +- com.{word:1}.security:spring-security-oauth2-token:jar:{d:1}.{d:1}.0:compile", 15),
    "mac-addresses": ("", "{x:2}:{x:2}:{x:2}:{x:2}:{x:2}:{x:2}  fe80::{x:4}:{x:4}:{x:4}:{x:4}", 10),
    "scores": ("", '{"key": "user:{d:6}", "score": 0.{d:16}, "keyword": "{word:1}", "keyspace": "{word:1}"}', 14),
    "bcrypt-free": ("", "pass {d:2}: lr={d:1}e-{d:1} loss=0.{d:8} token/s={d:5}.{d:1} pass@1=0.{d:3}", 18),
}
PLAIN = {
    "placeholders": """API_KEY=your-api-key-here
OPENAI_API_KEY=<your-openai-key>
DATABASE_PASSWORD=changeme
SECRET_KEY=${SECRET_KEY}
GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
STRIPE_SECRET_KEY=sk_test_...
AWS_SECRET_ACCESS_KEY=********
TOKEN=$(cat /run/secrets/token)
PASSWORD=
JWT_SECRET=replace-me-with-a-long-random-string
SLACK_BOT_TOKEN=xoxb-your-token""",
    "references": """  password: ${{ secrets.NPM_TOKEN }}
  token: {{ .Values.auth.token }}
  apiKey: op://Private/service/credential
  clientSecret: vault:secret/data/app#client_secret
  db_password: !vault_ref prod/db/password
  secretName: app-tls-secret
  valueFrom:
    secretKeyRef:
      name: database-credentials
      key: password
  passwordFile: /run/secrets/db_password
  token: "@Microsoft.KeyVault(SecretUri=https://acme.vault.azure.net/secrets/api-token/)"
  password: ssm:/prod/app/db-password
  secret: projects/acme-prod/secrets/signing-key/versions/latest
  api_key: env:SERVICE_API_KEY
  password: !Ref DatabasePassword
  password: "{{resolve:secretsmanager:prod/db:SecretString:password}}"
""",
    "typescript-types": """
interface Session { accessToken: string; refreshToken?: string; apiKey: Readonly<ApiKeyOptions>; }
type Credentials = { password: SecretString; token: Promise<TokenResponse>; privateKey: CryptoKey | undefined };
export const selectAuthToken = (state: RootState): string | undefined => state.session.accessToken;
const password = form.elements.namedItem("password") as HTMLInputElement;
if (credentials?.password === undefined || !options.apiKey) throw new MissingCredentialsError("password");
const token = await this.tokenProvider.getAccessToken({ scopes: ["https://graph.microsoft.com/.default"] });
const { accessToken, expiresIn } = useAuthentication();
headers: { Authorization: `Bearer ${session.accessToken}`, "X-Api-Key": config.apiKey },""",
    "python-types": """
def connect(host: str, password: Optional[SecretStr] = None, *, token: str | None = None) -> Link: ...
api_key: Annotated[str, Header(alias="X-API-Key")]
password = getpass.getpass("Password for deploy: ")
token = os.environ["GITHUB_TOKEN"]
self.client_secret = settings.oauth.client_secret.get_secret_value()
PASSWORD_MIN_LENGTH = 12
TOKEN_REFRESH_INTERVAL_SECONDS = 300
secret_key_base = Rails.application.credentials.secret_key_base
private_key = serialization.load_pem_private_key(data, password=None)
token_type = "urn:ietf:params:oauth:token-type:access_token"
PASSWORD_RESET_TEMPLATE = "registration/password_reset_form.html"
AUTH_USER_MODEL = "accounts.CustomUser"
password_validators = "django.contrib.auth.password_validation.MinimumLengthValidator"
""",
    "other-types": """func NewClient(apiKey string, opts ...ClientOption) (*Client, error) {
    token, err := source.Token(ctx)
    if password := os.Getenv("DB_PASSWORD"); password == "" { return nil, errMissingPassword }
pub struct Config { pub api_key: Option<SecretString>, pub token: Arc<RwLock<AccessToken>> }
private final Supplier<String> passwordSupplier = () -> vault.read("secret/app").get("password");
public string ClientSecret { get; init; } = string.Empty;
val apiKey: String by lazy { BuildConfig.API_KEY }
#define SECRET_SIZE_MAX 128
my $password = <STDIN>; chomp $password;
$token = $request->headers->get('X-Auth-Token');""",
    "documentation": """## Authentication

Every request carries a bearer token: `Authorization: Bearer <token>`. Tokens start with `ghp_` or `github_pat_`;
npm's start with `npm_`, Slack's with `xoxb-`, and AWS access key IDs with `AKIA`. Never commit a token or a password.
The password must be at least 12 characters long, and the secret is stored hashed. Set the variable `API_KEY`,
or pass `--api-key=KEY`. Use `curl -u user:password` only over TLS, and `--password-stdin` rather than `-p`.
Private keys begin with `-----BEGIN RSA PRIVATE KEY-----`; keep them at mode 0600. Basic authentication is
`Basic base64(user:password)`. A connection string looks like `postgresql://user:password@host/database`.
The token expires after one hour; secrets: inherit passes them on. See also: key rotation, token exchange.""",
    "translations": """{
  "login.password": "Passwort", "login.forgotPassword": "Passwort vergessen?",
  "token": "Zugriffstoken", "secret": "Geheimnis", "apiKey": "API-Schlüssel",
  "password_confirmation": "Mot de passe (confirmation)", "new_password": "Nouveau mot de passe",
  "password": "Contraseña", "passwordTooShort": "La contraseña es demasiado corta",
  "private_key": "Clave privada", "auth_token": "Autentifizierungsmerkmal", "client_secret": "Kundengeheimnis",
  "password.label": "Wachtwoordherstelformulier", "access_token": "Toegangssleutel",
  "passwordHint": "パスワードは八文字以上で入力してください", "secretKey": "Секретныйключдоступа" }""",
    "shell-safe": """read -rsp 'Password: ' DB_PASSWORD
export GITHUB_TOKEN="$(gh auth token)"
docker login -u "$REGISTRY_USER" --password-stdin < "$TOKEN_FILE"
curl -sS -H "Authorization: Bearer $TOKEN" "$API_URL/v1/me" | jq -r .login
mysql -u root -p"$MYSQL_ROOT_PASSWORD" shop < dump.sql
PGPASSWORD=$(vault kv get -field=password secret/db) psql -h db
aws secretsmanager get-secret-value --secret-id prod/db --query SecretString
kubectl create secret generic db --from-file=password=./password.txt
ssh -i ~/.ssh/id_ed25519 deploy@host 'echo ok'
mkdir -p /var/lib/app/secrets && chmod 700 /var/lib/app/secrets
openssl rand -hex 32 > .session_secret
git config credential.helper 'cache --timeout=3600'
echo "::add-mask::$TOKEN"
python -m pytest -k "password and not token" -p no:cacheprovider""",
    "errors": """error: authentication failed: token expired at 2026-08-11T10:00:00Z
fatal: could not read Password for 'https://deploy@git.example.com': terminal prompts disabled
E       AssertionError: assert password == expected_password
TypeError: Cannot read properties of undefined (reading 'accessToken')
warning: secret `DEPLOY_TOKEN` is not set; skipping publication
remote: Invalid username or password.
401 Unauthorized: {"error":"invalid_token","error_description":"The access token is malformed"}
psql: error: FATAL:  password authentication failed for user "app"
KeyError: 'SECRET_KEY'
token: unexpected end of input, expected identifier""",
    "masked-already": """Authorization: Bearer ****
password: ******
::add-mask::***
DB_PASSWORD=[REDACTED]
token=<redacted>
https://user:****@git.example.com/acme/app.git
Authorization: Basic [Filtered]
"apiKey": "sk-...abcd"
SECRET=(hidden)""",
    "grammar": """token : IDENTIFIER | NUMBER | STRING ;
keyword: 'async' 'await' 'private' 'public'
key = lambda item: item.created_at
sorted(values, key=operator.attrgetter("position"))
for key, value in mapping.items():
primary key (tenant_id, user_id), foreign key (account_id) references accounts (id)
<li key={item.identifier} className="password-strength-indicator">
map<string, SecretReference> secrets = 7;
auth: method=scram-sha-256 pass=2 passes=3 passwd_file=/etc/passwd
Tokenizer(vocab_size=32000, pad_token="<pad>", eos_token="</s>", bos_token="<s>", unk_token="[UNK]")
password_hash_algorithm = PBKDF2PasswordHasher
secret-scanning: enabled; push-protection: enabled""",
}
