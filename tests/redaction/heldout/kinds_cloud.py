"""Secrets of clouds, hosting and infrastructure, by their providers' documentation."""

from tests.redaction.heldout.dice import parse

CLOUD = parse("""
+aws-access-key-id | AKIA{t:16} | AWS_ACCESS_KEY_ID
+aws-temporary-key-id | ASIA{t:16} | AWS_ACCESS_KEY_ID
=aws-secret-access-key | {b:40} | AWS_SECRET_ACCESS_KEY aws_secret_access_key
=aws-session-token | IQoJb3JpZ2luX2Vj{b:300-600}== | AWS_SESSION_TOKEN aws_session_token
+aws-mws | amzn.mws.{x:8}-{x:4}-{x:4}-{x:4}-{x:12} | MWS_AUTH_TOKEN
+aws-bedrock-key | ABSKQmVkcm9ja0FQSUtleS{b:109}= | AWS_BEARER_TOKEN_BEDROCK
+gcp-api-key | AIza{u:35} | GOOGLE_API_KEY GEMINI_API_KEY MAPS_KEY
+gcp-oauth-client-secret | GOCSPX-{u:28} | GOOGLE_CLIENT_SECRET
+gcp-access-token | ya29.a0A{u:160-220} | GOOGLE_OAUTH_ACCESS_TOKEN
=gcp-refresh-token | 1//0{u:95-110} | GOOGLE_REFRESH_TOKEN
+gcp-vertex-express | AQ.Ab8{u:47} | GEMINI_API_KEY
+firebase-fcm-server | AAAA{u:7}:APA91b{u:134} | FCM_SERVER_KEY
+azure-client-secret | {w:3}8Q~{p:34} | AZURE_CLIENT_SECRET ARM_CLIENT_SECRET
+azure-storage-key | {b:76}+ASt{b:6}== | AZURE_STORAGE_KEY AZURE_STORAGE_ACCOUNT_KEY
=azure-storage-key-old | {b64:64} | AZURE_STORAGE_KEY AccountKey
+azure-cosmos-key | {b:76}ACDb{b:6}== | COSMOS_KEY
+azure-function-key | {u:44}AzFu{u:6}== | AZURE_FUNCTION_KEY
+azure-search-key | {w:42}AzSe{w:6} | AZURE_SEARCH_ADMIN_KEY
+azure-redis-key | {w:33}AzCa{w:7} | AZURE_REDIS_KEY
+azure-registry-password | {b:42}+ACR{w:6} | ACR_PASSWORD
+azure-devops-pat | {w:76}AZDO{w:4} | AZURE_DEVOPS_EXT_PAT SYSTEM_ACCESSTOKEN
=azure-devops-pat-old | {T:52} | AZURE_DEVOPS_EXT_PAT AZDO_PERSONAL_ACCESS_TOKEN
=azure-subscription-key | {x:32} | AZURE_SPEECH_KEY OCP_APIM_SUBSCRIPTION_KEY AZURE_OPENAI_API_KEY
+digitalocean-pat | dop_v1_{x:64} | DIGITALOCEAN_TOKEN DO_API_TOKEN
+digitalocean-oauth | doo_v1_{x:64} | DO_OAUTH_TOKEN
+digitalocean-refresh | dor_v1_{x:64} | DO_REFRESH_TOKEN
=digitalocean-spaces | {b:43} | SPACES_SECRET_ACCESS_KEY
+alibaba-access-key-id | LTAI5t{w:18} | ALIBABA_CLOUD_ACCESS_KEY_ID
=alibaba-access-key-secret | {w:30} | ALIBABA_CLOUD_ACCESS_KEY_SECRET ALICLOUD_SECRET_KEY
+tencent-secret-id | AKID{w:32} | TENCENTCLOUD_SECRET_ID
=tencent-secret-key | {w:32} | TENCENTCLOUD_SECRET_KEY
=ibm-cloud-key | {u:44} | IBMCLOUD_API_KEY IC_API_KEY
=hetzner-token | {w:64} | HCLOUD_TOKEN
=linode-token | {x:64} | LINODE_TOKEN LINODE_CLI_TOKEN
=scaleway-secret | {uuid:1} | SCW_SECRET_KEY
=vultr-key | {U:36} | VULTR_API_KEY
=ovh-consumer-key | {w:32} | OVH_CONSUMER_KEY OVH_APPLICATION_SECRET
=cloudflare-token | {u:40} | CLOUDFLARE_API_TOKEN CF_API_TOKEN
=cloudflare-global-key | {x:37} | CLOUDFLARE_API_KEY
+cloudflare-origin-ca | v1.0-{x:24}-{x:146} | CLOUDFLARE_API_USER_SERVICE_KEY
=fastly-token | {u:32} | FASTLY_API_TOKEN FASTLY_API_KEY
=akamai-client-secret | {b:43}= | AKAMAI_CLIENT_SECRET
+fly-token | fo1_{u:43} | FLY_API_TOKEN
+fly-macaroon | fm2_{b:240-420}= | FLY_API_TOKEN FLY_ACCESS_TOKEN
=heroku-key-old | {uuid:1} | HEROKU_API_KEY
+heroku-key | HRKU-AA{u:58} | HEROKU_API_KEY
+netlify-token | nfp_{w:36} | NETLIFY_AUTH_TOKEN
=vercel-token | {w:24} | VERCEL_TOKEN
+vercel-blob | vercel_blob_rw_{w:16}_{w:30} | BLOB_READ_WRITE_TOKEN
+render-key | rnd_{w:28} | RENDER_API_KEY
=railway-token | {uuid:1} | RAILWAY_TOKEN
+supabase-pat | sbp_{x:40} | SUPABASE_ACCESS_TOKEN
+supabase-secret | sb_secret_{u:22}_{u:8} | SUPABASE_SECRET_KEY
+neon-key | napi_{l:64} | NEON_API_KEY
+planetscale-token | pscale_tkn_{u:43} | PLANETSCALE_SERVICE_TOKEN
+planetscale-password | pscale_pw_{u:43} | DATABASE_PASSWORD
+doppler-personal | dp.pt.{w:43} | DOPPLER_TOKEN
+doppler-service | dp.st.prd.{w:43} | DOPPLER_TOKEN
+pulumi-token | pul-{x:40} | PULUMI_ACCESS_TOKEN
+terraform-cloud | {w:14}.atlasv1.{u:67} | TFE_TOKEN TF_TOKEN_app_terraform_io
+vault-service | hvs.{u:90-110} | VAULT_TOKEN
+vault-batch | hvb.{u:138-160} | VAULT_TOKEN
=vault-old | s.{w:24} | VAULT_TOKEN
=consul-token | {uuid:1} | CONSUL_HTTP_TOKEN
+onepassword-key | A3-{U:6}-{U:6}-{U:5}-{U:5}-{U:5}-{U:5} | OP_SECRET_KEY
+onepassword-service | ops_eyJ{b64u:240} | OP_SERVICE_ACCOUNT_TOKEN
+databricks-pat | dapi{x:32} | DATABRICKS_TOKEN
+yandex-cloud-key | AQVN{u:36} | YC_API_KEY
+tailscale-auth | tskey-auth-{w:17}-{w:32} | TS_AUTHKEY
+tailscale-api | tskey-api-{w:17}-{w:32} | TAILSCALE_API_KEY
=ngrok-token | {w:27}_{w:21} | NGROK_AUTHTOKEN
+openshift-token | sha256~{u:43} | OC_TOKEN
""")
