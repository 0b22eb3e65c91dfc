"""FastMCP 2 to 4: `ctx.elicit`, as its documentation shows it. `fastmcp_server.py EFFECTS`"""

from fastmcp import Context, FastMCP
from kinds import KINDS, done

server = FastMCP("tickets")


def add(kind, form):
    @server.tool(name=kind, description=f"Asks: {kind}")
    async def ask(ctx: Context) -> str:
        outcome = await ctx.elicit(f"Please answer: {kind}", response_type=form)
        return done(kind, outcome.action, getattr(outcome, "data", None))


for kind, form in (KINDS | {"word": str, "list": ["red", "blue"]}).items():
    add(kind, form)


@server.tool(name="plain")
async def plain() -> str:
    """Asks nothing."""
    return done("plain", "none")


@server.tool(name="delete")
async def delete(ctx: Context) -> str:
    """Goes on when it cannot ask, as servers do that are older than clients which can be asked."""
    try:
        outcome = await ctx.elicit("Delete it for good?", response_type=bool)
    except Exception:  # noqa: BLE001 - what is tested
        return done("delete", "deleted without asking")
    return done("delete", outcome.action, getattr(outcome, "data", None))


server.run(show_banner=False)
