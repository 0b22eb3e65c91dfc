"""A push service and a browser: checks the VAPID token with PyJWT, decrypts with `http_ece`.

GET /subscription makes a subscription; POST /send/N takes a message for it; GET /got returns what was shown. POST /gone is 410.
"""

import base64
import os
import re

import http_ece
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from web import serve

subscriptions = []
got = []


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def point(key):
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def handle(method, path, headers, body):
    if path == "/subscription":
        private, auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        subscriptions.append((private, auth))
        endpoint = f"http://{headers['host']}/send/{len(subscriptions) - 1}"
        keys = {"p256dh": text(point(private.public_key())), "auth": text(auth)}
        return 200, {}, {"endpoint": endpoint, "keys": keys}
    if path == "/got":
        return 200, {}, got
    if path == "/gone":
        return 410, {}, {}
    private, auth = subscriptions[int(path.rsplit("/", 1)[1])]
    token, key = re.fullmatch(r"vapid t=([^,]+), k=(.+)", headers["authorization"]).groups()
    raw = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)
    claims = jwt.decode(token, public, algorithms=["ES256"], audience=f"http://{headers['host']}")
    assert headers["content-encoding"] == "aes128gcm"
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,32}", headers["topic"]), headers["topic"]
    plain = http_ece.decrypt(body, private_key=private, auth_secret=auth, version="aes128gcm")
    kept = {name: headers[name] for name in ("ttl", "topic", "urgency")}
    got.append({"key": key, "claims": claims, "content": plain.decode(), **kept})
    return 201, {}, b""


serve(handle)
