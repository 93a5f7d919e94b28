"""Secrets of version control, continuous integration and package registries, by their providers' documentation."""

from collections.abc import Callable

from tests.redaction.heldout.dice import Dice, Make, Secret, crc_tail, parse, segment


def checked(prefix: str, *names: str) -> Make:
    """A token of 30 characters and the checksum of all before it."""

    def make(dice: Dice) -> Secret:
        body = dice.of("w", 30)
        return Secret(prefix + body + crc_tail(body), (body,), names)

    return make


def installation_jwt(dice: Dice) -> Secret:
    """The installation token of GitHub Apps since 2026: the application's number, then a JWT."""
    claims = {
        "iss": "github",
        "jti": dice.guid(),
        "scp": dice.of("w", 80),
        "exp": dice.randint(1_790_000_000, 1_799_999_999),
    }
    payload, signature = segment(claims), dice.piece("b64u", 256, 256)
    value = f"ghs_{dice.of('d', 7)}_{segment({'alg': 'RS256', 'typ': 'JWT'})}.{payload}.{signature}"
    return Secret(value, (payload[24:], signature), ("GITHUB_TOKEN", "GH_TOKEN"))


def teamcity(dice: Dice) -> Secret:
    """An access token of TeamCity: a fixed header and two random segments."""
    body, tail = dice.of("u", 36), dice.piece("b64u", 36, 36)
    return Secret(f"{segment({'typ': 'TCV2'})}.{body}.{tail}", (body, tail), ("TEAMCITY_TOKEN",))


CODE: dict[str, Callable[[Dice], Secret]] = {
    "github-classic": checked("ghp_", "GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PAT"),
    "github-oauth": checked("gho_", "GH_TOKEN", "GITHUB_OAUTH_TOKEN"),
    "github-user-to-server": checked("ghu_", "COPILOT_TOKEN", "GH_USER_TOKEN"),
    "github-server-to-server": checked("ghs_", "GITHUB_TOKEN"),
    "github-refresh": checked("ghr_", "GH_REFRESH_TOKEN"),
    "github-installation-jwt": installation_jwt,
    "npm-token": checked("npm_", "NPM_TOKEN", "NODE_AUTH_TOKEN"),
    "teamcity-token": teamcity,
} | parse("""
+github-fine-grained | github_pat_{w:22}_{w:59} | GITHUB_TOKEN GH_PAT
+gitlab-pat | glpat-{u:20} | GITLAB_TOKEN CI_GITLAB_TOKEN
+gitlab-pat-routable | glpat-{u:27}.01.{l:9} | GITLAB_TOKEN
+gitlab-deploy | gldt-{u:20} | CI_DEPLOY_PASSWORD
+gitlab-runner | glrt-{u:20} | RUNNER_TOKEN
+gitlab-runner-routable | glrt-t1_{u:27}.01.{l:9} | RUNNER_TOKEN
+gitlab-job | glcbt-64_{u:20} | CI_JOB_TOKEN
+gitlab-trigger | glptt-{x:40} | TRIGGER_TOKEN
+gitlab-feed | glft-{u:20} | FEED_TOKEN
+gitlab-scim | glsoat-{u:20} | SCIM_TOKEN
+gitlab-mail | glimt-{l:25} | INCOMING_MAIL_TOKEN
+gitlab-agent | glagent-{u:50} | AGENT_TOKEN
+gitlab-oauth-app | gloas-{x:64} | GITLAB_OAUTH_SECRET
+gitlab-feature-flags | glffct-{u:20} | UNLEASH_CLIENT_TOKEN
+gitlab-registration | GR1348941{u:20} | REGISTRATION_TOKEN
+bitbucket-app-password | ATBB{w:32} | BITBUCKET_APP_PASSWORD
+bitbucket-repository | ATCTT3xFfGN0{u:160-180}={X:8} | BITBUCKET_ACCESS_TOKEN
+atlassian-api-token | ATATT3xFfGF0{u:160-180}={X:8} | JIRA_API_TOKEN ATLASSIAN_API_TOKEN
=gitea-token | {x:40} | GITEA_TOKEN FORGEJO_TOKEN
+sourcegraph-token | sgp_{x:16}_{x:40} | SRC_ACCESS_TOKEN
+circleci-pat | CCIPAT_{w:22}_{x:40} | CIRCLE_TOKEN CIRCLECI_CLI_TOKEN
=circleci-token-old | {x:40} | CIRCLE_TOKEN
+buildkite-user | bkua_{x:40} | BUILDKITE_API_TOKEN
=buildkite-agent | {x:50} | BUILDKITE_AGENT_TOKEN
=travis-token | {u:22} | TRAVIS_TOKEN TRAVIS_API_TOKEN
=jenkins-token | 11{x:32} | JENKINS_API_TOKEN JENKINS_TOKEN
+harness-pat | pat.{u:22}.{x:24}.{w:20} | HARNESS_API_KEY
+octopus-key | API-{U:27} | OCTOPUS_API_KEY OCTOPUS_CLI_API_KEY
=codecov-token | {uuid:1} | CODECOV_TOKEN
+sonarqube-user | squ_{x:40} | SONAR_TOKEN
+sonarqube-project | sqp_{x:40} | SONAR_TOKEN
=snyk-token | {uuid:1} | SNYK_TOKEN
=drone-token | {w:32} | DRONE_TOKEN DRONE_RPC_SECRET
+pypi-token | pypi-AgEIcHlwaS5vcmc{u:150-170} | TWINE_PASSWORD PYPI_TOKEN UV_PUBLISH_TOKEN
+pypi-test-token | pypi-AgENdGVzdC5weXBpLm9yZw{u:150-170} | TEST_PYPI_TOKEN
+rubygems-key | rubygems_{x:48} | GEM_HOST_API_KEY RUBYGEMS_API_KEY
+nuget-key | oy2{T:43} | NUGET_API_KEY NUGET_AUTH_TOKEN
+crates-io-token | cio{w:32} | CARGO_REGISTRY_TOKEN
+jfrog-reference | cmVmdGtu{w:56} | ARTIFACTORY_TOKEN JFROG_ACCESS_TOKEN
+jfrog-api-key | AKCp8{w:68} | ARTIFACTORY_API_KEY
+docker-pat | dckr_pat_{u:27} | DOCKERHUB_TOKEN DOCKER_PASSWORD
+docker-org | dckr_oat_{u:32} | DOCKERHUB_TOKEN
+clojars-token | CLOJARS_{x:60} | CLOJARS_PASSWORD
=hex-pm-key | {x:32} | HEX_API_KEY
=cloudsmith-key | {x:40} | CLOUDSMITH_API_KEY
=turbo-token | {w:24} | TURBO_TOKEN
=argocd-admin | {u:16} | ARGOCD_PASSWORD ARGOCD_ADMIN_PASSWORD
""")
