"""Secrets of chat, mail, telephony, payment and office services, by their providers' documentation."""

import base64

from tests.redaction.heldout.dice import Dice, Make, Secret, parse, segment


def discord_bot(dice: Dice) -> Secret:
    """A bot's token: its number in base64, a time, and a hash."""
    number = base64.b64encode(str(dice.randint(10**17, 10**18)).encode()).decode().rstrip("=")
    middle, tail = dice.of("u", 6), dice.of("u", 38)
    return Secret(f"{number}.{middle}.{tail}", (tail,), ("DISCORD_TOKEN", "DISCORD_BOT_TOKEN"))


def mapbox(dice: Dice) -> Secret:
    """A secret token of Mapbox: a claim and a signature."""
    payload, tail = segment({"u": dice.word(), "a": "c" + dice.of("l", 24)}), dice.of("u", 22)
    return Secret(f"sk.{payload}.{tail}", (payload[30:], tail), ("MAPBOX_SECRET_TOKEN", "MAPBOX_ACCESS_TOKEN"))


SERVICES: dict[str, Make] = {"discord-bot": discord_bot, "mapbox-secret": mapbox} | parse("""
+slack-bot | xoxb-{~d:12}-{~d:13}-{w:24} | SLACK_BOT_TOKEN SLACK_TOKEN
+slack-user | xoxp-{~d:11}-{~d:12}-{~d:13}-{x:32} | SLACK_USER_TOKEN
+slack-app | xapp-1-A{~U:10}-{~d:13}-{x:64} | SLACK_APP_TOKEN
+slack-refresh | xoxe-1-{b:146} | SLACK_REFRESH_TOKEN
+slack-rotating | xoxe.xoxb-1-{b:160} | SLACK_BOT_TOKEN
+slack-client-cookie | xoxd-{w:140}%3D%3D | SLACK_COOKIE
=slack-signing-secret | {x:32} | SLACK_SIGNING_SECRET
+slack-webhook | https://hooks.slack.com/services/T{~U:10}/B{~U:10}/{w:24} | SLACK_WEBHOOK_URL
+discord-webhook | https://discord.com/api/webhooks/{~d:19}/{u:68} | DISCORD_WEBHOOK
+telegram-bot | {~d:10}:AA{u:33} | TELEGRAM_BOT_TOKEN TELEGRAM_TOKEN
+teams-webhook | https://a.webhook.office.com/webhookb2/{~uuid:1}@{~uuid:1}/IncomingWebhook/{x:32}/{~uuid:1} | TEAMS_URL
=mattermost-token | {l:26} | MATTERMOST_TOKEN MM_ACCESS_TOKEN
=zulip-key | {w:32} | ZULIP_API_KEY
+twilio-key | SK{x:32} | TWILIO_API_KEY
=twilio-auth-token | {x:32} | TWILIO_AUTH_TOKEN
+sendgrid-key | SG.{u:22}.{u:43} | SENDGRID_API_KEY
+mailgun-key-old | key-{x:32} | MAILGUN_API_KEY
=mailgun-key | {x:32}-{x:8}-{x:8} | MAILGUN_API_KEY
+mailchimp-key | {x:32}-us21 | MAILCHIMP_API_KEY
=postmark-token | {uuid:1} | POSTMARK_SERVER_TOKEN POSTMARK_API_TOKEN
+resend-key | re_{w:8}_{w:24} | RESEND_API_KEY
+brevo-key | xkeysib-{x:64}-{w:16} | BREVO_API_KEY
+brevo-smtp | xsmtpsib-{x:64}-{w:16} | BREVO_SMTP_KEY
=mailjet-secret | {x:32} | MJ_APIKEY_PRIVATE MAILJET_SECRET_KEY
=vonage-secret | {w:16} | VONAGE_API_SECRET NEXMO_API_SECRET
=pusher-secret | {x:20} | PUSHER_APP_SECRET PUSHER_SECRET
=line-channel-token | {b:170}= | LINE_CHANNEL_ACCESS_TOKEN
=intercom-token | {b:58}= | INTERCOM_ACCESS_TOKEN
+airtable-pat | pat{w:14}.{x:64} | AIRTABLE_API_KEY AIRTABLE_PAT
=zendesk-token | {w:40} | ZENDESK_API_TOKEN
+hubspot-pat | pat-na1-{uuid:1} | HUBSPOT_ACCESS_TOKEN
+typeform-pat | tfp_{u:44}_{w:14} | TYPEFORM_TOKEN
+clickup-token | pk_{~d:8}_{U:32} | CLICKUP_API_TOKEN
+linear-key | lin_api_{w:40} | LINEAR_API_KEY
+notion-token | ntn_{d:11}{w:35} | NOTION_TOKEN
+notion-token-old | secret_{w:43} | NOTION_API_KEY
+figma-pat | figd_{u:40} | FIGMA_TOKEN
+contentful-pat | CFPAT-{u:43} | CONTENTFUL_MANAGEMENT_TOKEN
+dropbox-token | sl.B{u:134} | DROPBOX_ACCESS_TOKEN
+postman-key | PMAK-{x:24}-{x:34} | POSTMAN_API_KEY
=algolia-admin-key | {x:32} | ALGOLIA_ADMIN_KEY ALGOLIA_API_KEY
+shopify-admin | shpat_{x:32} | SHOPIFY_ACCESS_TOKEN
+shopify-shared-secret | shpss_{x:32} | SHOPIFY_API_SECRET
+shopify-custom-app | shpca_{x:32} | SHOPIFY_TOKEN
+stripe-live | sk_live_51{w:97} | STRIPE_SECRET_KEY STRIPE_API_KEY
+stripe-test-old | sk_test_{w:24} | STRIPE_SECRET_KEY
+stripe-restricted | rk_live_51{w:97} | STRIPE_RESTRICTED_KEY
+stripe-webhook | whsec_{w:32} | STRIPE_WEBHOOK_SECRET
+square-token | EAAA{u:60} | SQUARE_ACCESS_TOKEN
+square-oauth-secret | sq0csp-{u:43} | SQUARE_APPLICATION_SECRET
=paypal-client-secret | E{u:79} | PAYPAL_CLIENT_SECRET PAYPAL_SECRET
+braintree-token | access_token$production${l:16}${x:32} | BRAINTREE_ACCESS_TOKEN
+plaid-access-token | access-production-{uuid:1} | PLAID_ACCESS_TOKEN
=plaid-secret | {x:30} | PLAID_SECRET
=razorpay-secret | {w:24} | RAZORPAY_KEY_SECRET
+flutterwave-secret | FLWSECK-{x:32}-X | FLW_SECRET_KEY
+paystack-secret | sk_live_{x:40} | PAYSTACK_SECRET_KEY
+mollie-key | live_{w:30} | MOLLIE_API_KEY
+paddle-key | pdl_live_apikey_01{l:24}_{w:22}_{w:3} | PADDLE_API_KEY
=binance-secret | {w:64} | BINANCE_API_SECRET BINANCE_SECRET_KEY
=coinbase-secret | {b64:64} | COINBASE_API_SECRET
+facebook-token | EAA{w:170-200} | FACEBOOK_ACCESS_TOKEN FB_PAGE_TOKEN
=facebook-app-secret | {x:32} | FACEBOOK_APP_SECRET FB_APP_SECRET
=twitter-api-secret | {w:50} | TWITTER_API_SECRET TWITTER_CONSUMER_SECRET
+twitter-bearer | AAAAAAAAAAAAAAAAAAAAA{w:10}%3D{w:80} | TWITTER_BEARER_TOKEN
=spotify-client-secret | {x:32} | SPOTIFY_CLIENT_SECRET
=okta-token | 00{u:40} | OKTA_API_TOKEN OKTA_CLIENT_TOKEN
=auth0-client-secret | {u:64} | AUTH0_CLIENT_SECRET
=zoom-client-secret | {w:32} | ZOOM_CLIENT_SECRET
=recaptcha-secret | 6L{u:38} | RECAPTCHA_SECRET_KEY
+easypost-key | EZAK{w:54} | EASYPOST_API_KEY
+shippo-key | shippo_live_{x:40} | SHIPPO_TOKEN
+frameio-token | fio-u-{u:64} | FRAMEIO_TOKEN
""")
