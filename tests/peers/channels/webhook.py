"""A receiver of webhooks that verifies with the `standardwebhooks` package. Its secrets come from the environment.

POST /in verifies and keeps; POST /status/CODE answers with that status; POST /redirect answers with a redirect to /in.
GET /got returns what was kept.
"""

import json
import os

from standardwebhooks import Webhook

from web import serve

verifiers = [Webhook(secret) for secret in os.environ["SECRETS"].split()]
got = []


def handle(method, path, headers, body):
    if (method, path) == ("GET", "/got"):
        return 200, {}, got
    if path.startswith("/status/"):
        return int(path.rsplit("/", 1)[1]), {"Retry-After": "7"}, {}
    if path == "/redirect":
        return 302, {"Location": "/in"}, {}
    for verifier in verifiers:
        verifier.verify(body, headers)
    got.append({"id": headers["webhook-id"], "body": json.loads(body)})
    return 204, {}, b""


serve(handle)
