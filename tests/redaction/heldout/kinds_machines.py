"""Secrets of monitoring, artificial intelligence and data services, by their providers' documentation."""

import base64
import json

from tests.redaction.heldout.dice import Dice, Make, Secret, parse


def sentry_org(dice: Dice) -> Secret:
    """An organisation's token: claims in base64 and a hash."""
    claims = {
        "iat": dice.randint(1, 9) + 0.5,
        "url": "https://sentry.io",
        "region_url": "https://us.sentry.io",
        "org": dice.word(),
    }
    tail = dice.of("b", 43)
    return Secret(
        f"sntrys_{base64.b64encode(json.dumps(claims).encode()).decode()}_{tail}", (tail,), ("SENTRY_AUTH_TOKEN",)
    )


def grafana_cloud(dice: Dice) -> Secret:
    """A policy token: its name and key as JSON in base64."""
    key = dice.of("w", 24)
    claims = {"o": dice.of("d", 6), "n": "ci-" + dice.word(), "k": key, "m": {"r": "eu"}}
    body = base64.b64encode(json.dumps(claims, separators=(",", ":")).encode()).decode()
    return Secret("glc_" + body, (body[36:].rstrip("="),), ("GRAFANA_CLOUD_TOKEN",))


MACHINES: dict[str, Make] = {"sentry-organisation": sentry_org, "grafana-cloud": grafana_cloud} | parse("""
=datadog-api-key | {x:32} | DD_API_KEY DATADOG_API_KEY
=datadog-app-key | {x:40} | DD_APP_KEY DD_APPLICATION_KEY
+newrelic-user | NRAK-{U:27} | NEW_RELIC_API_KEY
+newrelic-licence | {x:36}FFFFNRAL | NEW_RELIC_LICENSE_KEY
+newrelic-insert | NRII-{u:32} | NEW_RELIC_INSERT_KEY
+grafana-service | glsa_{w:32}_{x:8} | GRAFANA_TOKEN GRAFANA_SERVICE_ACCOUNT_TOKEN
+sentry-user | sntryu_{x:64} | SENTRY_AUTH_TOKEN
+sentry-dsn | https://{x:32}@o{~d:6}.ingest.us.sentry.io/{d:4} | SENTRY_DSN
=pagerduty-key | u+{u:18} | PAGERDUTY_API_KEY PAGERDUTY_TOKEN
=rollbar-token | {x:32} | ROLLBAR_ACCESS_TOKEN
+honeycomb-ingest | hcaik_01{l:56} | HONEYCOMB_API_KEY
=honeycomb-old | {w:22} | HONEYCOMB_API_KEY
+dynatrace-token | dt0c01.{t:24}.{t:64} | DT_API_TOKEN DYNATRACE_TOKEN
=opsgenie-key | {uuid:1} | OPSGENIE_API_KEY
=splunk-hec | {uuid:1} | SPLUNK_HEC_TOKEN
+posthog-personal | phx_{w:43} | POSTHOG_PERSONAL_API_KEY
=bugsnag-key | {x:32} | BUGSNAG_API_KEY
+launchdarkly-sdk | sdk-{uuid:1} | LAUNCHDARKLY_SDK_KEY LD_SDK_KEY
+launchdarkly-api | api-{uuid:1} | LAUNCHDARKLY_ACCESS_TOKEN
=logzio-token | {m:32} | LOGZIO_TOKEN
+logfire-token | pylf_v1_us_{w:43} | LOGFIRE_TOKEN
+langfuse-secret | sk-lf-{uuid:1} | LANGFUSE_SECRET_KEY
+langsmith-key | lsv2_pt_{x:32}_{x:10} | LANGSMITH_API_KEY LANGCHAIN_API_KEY
=elastic-api-key | {b64:44} | ELASTIC_API_KEY ES_API_KEY
+openai-project | sk-proj-{u:74}T3BlbkFJ{u:74} | OPENAI_API_KEY
+openai-service | sk-svcacct-{u:74}T3BlbkFJ{u:74} | OPENAI_API_KEY
+openai-admin | sk-admin-{u:74}T3BlbkFJ{u:74} | OPENAI_ADMIN_KEY
+openai-old | sk-{w:20}T3BlbkFJ{w:20} | OPENAI_API_KEY
+anthropic-key | sk-ant-api03-{u:93}AA | ANTHROPIC_API_KEY CLAUDE_API_KEY
+anthropic-admin | sk-ant-admin01-{u:93}AA | ANTHROPIC_ADMIN_KEY
+anthropic-oauth | sk-ant-oat01-{u:93}AA | CLAUDE_CODE_OAUTH_TOKEN
+huggingface-token | hf_{m:34} | HF_TOKEN HUGGING_FACE_HUB_TOKEN
+groq-key | gsk_{w:52} | GROQ_API_KEY
+xai-key | xai-{w:80} | XAI_API_KEY
+perplexity-key | pplx-{w:48} | PERPLEXITY_API_KEY
+replicate-token | r8_{w:37} | REPLICATE_API_TOKEN
=mistral-key | {w:32} | MISTRAL_API_KEY
=cohere-key | {w:40} | COHERE_API_KEY CO_API_KEY
=together-key-old | {x:64} | TOGETHER_API_KEY
+together-key | tgp_v1_{u:43} | TOGETHER_API_KEY
+openrouter-key | sk-or-v1-{x:64} | OPENROUTER_API_KEY
+deepseek-key | sk-{x:32} | DEEPSEEK_API_KEY
+fireworks-key | fw_{w:22} | FIREWORKS_API_KEY
+elevenlabs-key | sk_{x:48} | ELEVENLABS_API_KEY ELEVEN_API_KEY
+tavily-key | tvly-dev-{w:32} | TAVILY_API_KEY
+pinecone-key | pcsk_{w:6}_{w:63} | PINECONE_API_KEY
+voyage-key | pa-{u:43} | VOYAGE_API_KEY
+jina-key | jina_{x:32}{u:28} | JINA_API_KEY
+nvidia-key | nvapi-{u:64} | NVIDIA_API_KEY
+cerebras-key | csk-{l:48} | CEREBRAS_API_KEY
+firecrawl-key | fc-{x:32} | FIRECRAWL_API_KEY
+llamacloud-key | llx-{w:48} | LLAMA_CLOUD_API_KEY
+cursor-key | key_{x:64} | CURSOR_API_KEY
+modal-secret | as-{w:22} | MODAL_TOKEN_SECRET
=wandb-key | {x:40} | WANDB_API_KEY
+e2b-key | e2b_{x:40} | E2B_API_KEY
=assemblyai-key | {x:32} | ASSEMBLYAI_API_KEY
=deepgram-key | {x:40} | DEEPGRAM_API_KEY
+runpod-key | rpa_{U:42} | RUNPOD_API_KEY
=serpapi-key | {x:64} | SERPAPI_API_KEY
=confluent-secret | {b:64} | CONFLUENT_CLOUD_API_SECRET
=aiven-token | {b:180} | AIVEN_TOKEN
=snowflake-password | {w:18} | SNOWFLAKE_PASSWORD
=rails-secret-key-base | {x:128} | SECRET_KEY_BASE
=rails-master-key | {x:32} | RAILS_MASTER_KEY
=django-secret-key | django-insecure-{k:50} | DJANGO_SECRET_KEY SECRET_KEY
=laravel-app-key | base64:{b64:32} | APP_KEY
=nextauth-secret | {b64:32} | NEXTAUTH_SECRET AUTH_SECRET
=jwt-signing-secret | {w:48} | JWT_SECRET JWT_SIGNING_KEY
=fernet-key | {b64u:32}= | FERNET_KEY AIRFLOW__CORE__FERNET_KEY
=symfony-secret | {x:32} | APP_SECRET
=encryption-key | {x:64} | ENCRYPTION_KEY N8N_ENCRYPTION_KEY
=ethereum-private-key | 0x{x:64} | PRIVATE_KEY DEPLOYER_PRIVATE_KEY
=generic-api-key | {w:32} | API_KEY SERVICE_API_KEY INTERNAL_API_KEY
=generic-client-secret | {u:40} | CLIENT_SECRET OAUTH_CLIENT_SECRET
=generic-access-token | {w:43} | ACCESS_TOKEN AUTH_TOKEN
=webhook-secret | {x:40} | WEBHOOK_SECRET GITHUB_WEBHOOK_SECRET
""")
