"""FastMCP 4 as most servers use it: `ctx.elicit` whatever the era, which works only in a session. A question that cannot
be asked is skipped, and the work is done. `fastmcp_elicit_server.py [stdio | http PORT]`"""

from asking import QUESTIONS, serve, told
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel, Field


class Contact(BaseModel):
    name: str = Field(title="Name", description="Your full name", min_length=1)
    email: str = Field(title="Email", description="Where to write to you", json_schema_extra={"format": "email"})
    age: int = Field(default=30, title="Age", description="In years", ge=18, le=150)


server = FastMCP("fastmcp-elicit-server", version="1.0.0")


@server.tool(name="contact", description="Asks for a name, an email address and an age")
async def contact(ctx: Context) -> str:
    try:
        outcome = await ctx.elicit(QUESTIONS["contact"]["message"], response_type=Contact)
    except ToolError as error:
        return f"done without asking: {error}"
    if outcome.action == "accept":
        return told({"action": "accept", "content": outcome.data.model_dump(exclude_unset=True)})
    return told({"action": outcome.action})


if __name__ == "__main__":
    serve(lambda: server.run(transport="stdio", show_banner=False, log_level="error"), server.http_app)
