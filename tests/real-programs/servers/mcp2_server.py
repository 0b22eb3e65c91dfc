"""Python `mcp` 2: `ctx.elicit`, which asks in the pushed era only, and a resolver, which asks in both. `mcp2_server.py EFFECTS`"""

from typing import Annotated

from kinds import KINDS, Book, done
from mcp.server import MCPServer
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve

server = MCPServer("tickets")


def add(kind, form):
    @server.tool(name=kind)
    async def ask(ctx: Context) -> str:
        outcome = await ctx.elicit(message=f"Please answer: {kind}", schema=form)
        return done(kind, outcome.action, getattr(outcome, "data", None))


for kind, form in KINDS.items():
    add(kind, form)


async def question() -> Elicit[Book]:
    return Elicit("Please answer: resolved", Book)


@server.tool(name="resolved")
async def resolved(outcome: Annotated[ElicitationResult[Book], Resolve(question)]) -> str:
    return done("resolved", outcome.action, getattr(outcome, "data", None))


@server.tool(name="plain")
async def plain() -> str:
    return done("plain", "none")


server.run("stdio")
