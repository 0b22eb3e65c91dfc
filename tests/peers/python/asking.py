"""The questions that the Python servers ask by hand, the same on both eras, and how they are served."""

import asyncio
import json
import socket
import sys
import uuid
from pathlib import Path
from typing import Any

import uvicorn
from mcp import UrlElicitationRequiredError
from mcp.types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
)

QUESTIONS = json.loads((Path(__file__).parent.parent / "questions.json").read_text())


def told(answers: Any) -> str:
    """The text of a tool's result: the answer, or the answers, as JSON."""
    return json.dumps(answers, separators=(",", ":"))


def answered(result: Any) -> dict[str, Any]:
    """Just the part of an ElicitResult that the tests compare."""
    given = {"action": result.action}
    if result.content is not None:
        given["content"] = result.content
    return given


def rounds(ctx: Any) -> bool:
    return (ctx.request_context.protocol_version or "") >= "2026-07-28"


def request(name: str) -> ElicitRequest:
    """The question as it travels in `inputRequests`."""
    question = QUESTIONS[name]
    if "url" in question:
        return ElicitRequest(params=ElicitRequestURLParams(message=question["message"], url=question["url"]))
    params = ElicitRequestFormParams(message=question["message"], requested_schema=question["requestedSchema"])
    return ElicitRequest(params=params)


async def push(ctx: Any, name: str) -> dict[str, Any]:
    """Asks on the pushed era and waits."""
    question = QUESTIONS[name]
    if "url" in question:
        elicitation_id = str(uuid.uuid4())
        result = await ctx.session.elicit_url(question["message"], question["url"], elicitation_id, ctx.request_id)
        if result.action == "accept":
            await ctx.session.send_elicit_complete(elicitation_id, ctx.request_id)
    else:
        result = await ctx.session.elicit_form(question["message"], question["requestedSchema"], ctx.request_id)
    return answered(result)


def asked_for(names: list[str], state: str | None = None) -> InputRequiredResult:
    return InputRequiredResult(input_requests={name: request(name) for name in names}, request_state=state)


def add_tools(server: Any, context: type) -> None:
    """Adds every tool but `contact`, which each SDK asks in its own typed way."""
    visited: set[str] = set()

    async def one(ctx: Any, name: str) -> str | InputRequiredResult:
        if not rounds(ctx):
            return told(await push(ctx, name))
        answers = ctx.input_responses
        return told(answered(answers[name])) if answers else asked_for([name])

    @server.tool(name="echo", description="Asks nothing")
    async def echo(text: str = "") -> str:
        return told({"echo": text})

    @server.tool(name="every-kind", description="Asks a form with one field of every kind")
    async def every_kind(ctx: context) -> str | InputRequiredResult:
        return await one(ctx, "every-kind")

    @server.tool(name="visit", description="Asks the person to visit a link")
    async def visit(ctx: context) -> str | InputRequiredResult:
        return await one(ctx, "visit")

    @server.tool(name="require-visit", description="Cannot go on before a link was visited")
    async def require_visit(ctx: context) -> str | InputRequiredResult:
        if rounds(ctx):
            return await one(ctx, "visit")
        if visited:
            return told({"visited": True})
        elicitation_id = str(uuid.uuid4())
        visited.add(elicitation_id)
        link = ElicitRequestURLParams(**QUESTIONS["visit"], elicitation_id=elicitation_id)
        raise UrlElicitationRequiredError([link])

    @server.tool(name="two-steps", description="Asks for a contact, then for a seat")
    async def two_steps(ctx: context) -> str | InputRequiredResult:
        if not rounds(ctx):
            first = await push(ctx, "contact")
            return told([first, await push(ctx, "seat")] if first["action"] == "accept" else [first])
        answers = ctx.input_responses
        if not answers:
            return asked_for(["contact"])
        if "contact" in answers:
            first = answered(answers["contact"])
            return asked_for(["seat"], json.dumps(first)) if first["action"] == "accept" else told([first])
        return told([json.loads(ctx.request_state), answered(answers["seat"])])

    @server.tool(name="both", description="Asks for a contact and a seat at once")
    async def both(ctx: context) -> str | InputRequiredResult:
        names = ["contact", "seat"]
        if not rounds(ctx):
            return told(await asyncio.gather(*(push(ctx, name) for name in names)))
        answers = ctx.input_responses
        return told([answered(answers[name]) for name in names]) if answers else asked_for(names)


def serve(stdio: Any, http_app: Any) -> None:
    """`stdio` (the default), or `http PORT`: says where it listens in one line of JSON on stdout."""
    if sys.argv[1:2] != ["http"]:
        stdio()
        return
    # The protocol is named since asyncio sets TCP_NODELAY on nothing else.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    listener.listen()
    print(json.dumps({"listening": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    config = uvicorn.Config(http_app(), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
