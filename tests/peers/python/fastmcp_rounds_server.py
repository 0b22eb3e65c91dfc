"""FastMCP 4 with a question written by hand for 2026-07-28, which a session does not have.
`fastmcp_rounds_server.py [stdio | http PORT]`"""

from asking import answered, asked_for, serve, told
from fastmcp import Context, FastMCP
from mcp.types import InputRequiredResult

server = FastMCP("fastmcp-rounds-server", version="1.0.0")


@server.tool(name="contact", description="Asks for a name, an email address and an age")
async def contact(ctx: Context) -> str | InputRequiredResult:
    answers = ctx.input_responses
    return told(answered(answers["contact"])) if answers else asked_for(["contact"])


if __name__ == "__main__":
    serve(lambda: server.run(transport="stdio", show_banner=False, log_level="error"), server.http_app)
