"""A Slack workspace. Blocks and views are checked with the models of `slack_sdk`; requests are signed with its `SignatureVerifier`.

The Web API is under /api/. POST /sign with {"payload": .., "age": SECONDS} gives a signed request: {timestamp, signature, body}.
POST /deliver with {"to": URL, "payload": .., "age": SECONDS, "times": N, "also": [URL, ..], "secret": ..} sends it, as often, and the same
request to the others, and returns the replies.
GET /got returns the calls so far, GET /refused the number of those that were too many: all messages to the channel CBUSY. Users are in USERS; a trigger works once.
"""

import json
import os
import time
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlparse
from urllib.request import Request, urlopen

from slack_sdk.models.blocks import Block, InputBlock
from slack_sdk.models.views import View
from slack_sdk.signature import SignatureVerifier

from web import serve

TOKEN = "xoxb-token"
verifier = SignatureVerifier(os.environ["SIGNING_SECRET"])
got = []
refused = []
triggers = set()
EVERYONE = {"type": "section", "text": {"type": "mrkdwn", "text": "<!channel>"}}
TEXT_LIMITS = {"header": 150, "section": 3000}


def user(name, **flags):
    sound = {
        "id": f"U{name.upper()}",
        "team_id": "T0123",
        "deleted": False,
        "is_bot": False,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "tz": "Europe/Berlin",
        "profile": {"email": f"{name}@example.com"},
    }
    return sound | flags


USERS = [user("ops1"), user("ops2"), user("eve"), user("zoe"), user("guest", is_restricted=True), user("other", team_id="T9", is_stranger=True)]


def check_same(made, sent, where):
    """The models keep every part that we sent: one that they drop is one that Slack does not know."""
    if isinstance(sent, dict):
        for name, value in sent.items():
            assert name in made, f"{where}.{name} is unknown"
            check_same(made[name], value, f"{where}.{name}")
    elif isinstance(sent, list):
        assert len(made) == len(sent), where
        for index, value in enumerate(sent):
            check_same(made[index], value, f"{where}[{index}]")
    else:
        assert made == sent, f"{where}: {made!r} is not {sent!r}"


def check_options(element):
    for option in element.get("options", []):
        assert 1 <= len(option["text"]["text"]) <= 75 and len(option["value"]) <= 150, option
        if "description" in option:
            assert 1 <= len(option["description"]["text"]) <= 75, option
    values = [option["value"] for option in element.get("options", [])]
    assert len(values) == len(set(values)), values
    if element["type"] in ("checkboxes", "radio_buttons"):
        assert 1 <= len(values) <= 10, values
    initial = element.get("initial_options", []) + ([element["initial_option"]] if "initial_option" in element else [])
    for option in initial:
        assert option in element["options"] or element["type"].endswith("external_select"), option


def check_blocks(blocks, most):
    assert 1 <= len(blocks) <= most, len(blocks)
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    assert len(ids) == len(set(ids)), ids
    parsed = Block.parse_all(blocks)
    for index, (block, made) in enumerate(zip(blocks, parsed, strict=True)):
        check_same(made.to_dict(), block, f"blocks[{index}]")
        if "text" in block:
            assert 1 <= len(block["text"]["text"]) <= TEXT_LIMITS[block["type"]], index
        for element in block.get("elements", []):
            if element["type"] == "button":
                assert 1 <= len(element["text"]["text"]) <= 75, element
        actions = [element.get("action_id") for element in block.get("elements", []) if "action_id" in element]
        assert len(actions) == len(set(actions)), actions
        if isinstance(made, InputBlock):
            check_options(block["element"])
            assert len(block["label"]["text"]) <= 2000
    # Nothing of a server is markup; the gateway's own mention is.
    assert '"mrkdwn"' not in json.dumps([block for block in blocks if block != EVERYONE])


def check_view(view):
    check_same(View(**view).to_dict(), view, "view")
    check_blocks(view["blocks"], 100)
    assert len(json.dumps(view)) <= 250_000
    has_input = any(block["type"] == "input" for block in view["blocks"])
    assert not has_input or "submit" in view


def api(method, query, body):
    if method == "users.lookupByEmail":
        found = [user for user in USERS if user["profile"]["email"] == query["email"]]
        return {"ok": True, "user": found[0]} if found else {"ok": False, "error": "users_not_found"}
    if method == "users.info":
        found = [user for user in USERS if user["id"] == query["user"]]
        return {"ok": True, "user": found[0]} if found else {"ok": False, "error": "user_not_found"}
    if method == "chat.postMessage":
        check_blocks(body["blocks"], 50)
        if body["channel"] == "CGONE":
            return {"ok": False, "error": "is_archived"}
        channel = body["channel"].replace("U", "D", 1)
        return {"ok": True, "channel": channel, "ts": f"1795341600.{len(got):06}"}
    if method == "chat.update":
        check_blocks(body["blocks"], 50)
        return {"ok": True, "channel": body["channel"], "ts": body["ts"]}
    if method == "chat.postEphemeral":
        assert body["user"] and body["channel"] and body["text"]
        return {"ok": True}
    if method == "views.open":
        check_view(body["view"])
        if body["trigger_id"] in triggers:
            return {"ok": False, "error": "exchanged_trigger_id"}
        triggers.add(body["trigger_id"])
        return {"ok": True, "view": body["view"] | {"id": f"V{len(triggers)}"}}
    if method == "views.update":
        check_view(body["view"])
        return {"ok": True, "view": body["view"] | {"id": body["view_id"]}}
    return {"ok": False, "error": "unknown_method"}


def signed(body, secret=None):
    text = urlencode({"payload": json.dumps(body["payload"])})
    timestamp = str(int(time.time()) - body.get("age", 0))
    signer = SignatureVerifier(secret) if secret else verifier
    signature = signer.generate_signature(timestamp=timestamp, body=text)
    return {"timestamp": timestamp, "signature": signature, "body": text}


def post(to, request):
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": request["timestamp"],
        "X-Slack-Signature": request["signature"],
    }
    try:
        with urlopen(Request(to, request["body"].encode(), headers), timeout=60) as reply:
            status, text = reply.status, reply.read()
    except HTTPError as error:
        status, text = error.code, error.read()
    try:
        return {"status": status, "body": json.loads(text) if text else None}
    except ValueError:
        return {"status": status, "body": text.decode()}


def handle(method, path, headers, body):
    url = urlparse(path)
    if url.path == "/got":
        return 200, {}, got
    if url.path == "/refused":
        return 200, {}, len(refused)
    body = json.loads(body) if body else {}
    if url.path == "/sign":
        return 200, {}, signed(body)
    if url.path == "/deliver":
        request = signed(body, body.get("secret"))
        to = [body["to"]] * body.get("times", 1) + body.get("also", [])
        return 200, {}, [post(at, request) for at in to]
    if url.path == "/check":
        check_view(body["view"])
        return 200, {}, {"ok": True}
    name = url.path.removeprefix("/api/")
    if headers.get("authorization") != f"Bearer {TOKEN}":
        return 200, {}, {"ok": False, "error": "invalid_auth"}
    if name == "chat.postMessage" and body["channel"] == "CBUSY":
        refused.append(body)
        return 429, {"Retry-After": "3600"}, {"ok": False, "error": "ratelimited"}
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    reply = api(name, query, body)
    got.append({"method": name, "body": body, "ok": reply["ok"]})
    if reply.get("error") == "is_archived":
        return 200, {}, reply
    return 200, {}, reply


serve(handle)
