"""Python `mcp` 1: `ctx.elicit`. `mcp1_server.py EFFECTS`"""

from kinds import KINDS, done
from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("tickets", log_level="ERROR")


def add(kind, form):
    @server.tool(name=kind)
    async def ask(ctx: Context) -> str:
        outcome = await ctx.elicit(message=f"Please answer: {kind}", schema=form)
        return done(kind, outcome.action, getattr(outcome, "data", None))


for kind in ("book", "nullable", "either", "lines", "empty"):
    add(kind, KINDS[kind])


@server.tool(name="plain")
async def plain() -> str:
    return done("plain", "none")


server.run()
