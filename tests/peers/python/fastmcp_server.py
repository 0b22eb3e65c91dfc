"""FastMCP 4: a server for both eras, each with the API it has for it. `fastmcp_server.py [stdio | http PORT]`"""

from asking import QUESTIONS, add_tools, answered, asked_for, rounds, serve, told
from fastmcp import Context, FastMCP
from mcp.types import InputRequiredResult
from pydantic import BaseModel, Field


class Contact(BaseModel):
    name: str = Field(title="Name", description="Your full name", min_length=1)
    email: str = Field(title="Email", description="Where to write to you", json_schema_extra={"format": "email"})
    age: int = Field(default=30, title="Age", description="In years", ge=18, le=150)


server = FastMCP("fastmcp-server", version="1.0.0")


@server.tool(name="contact", description="Asks for a name, an email address and an age")
async def contact(ctx: Context) -> str | InputRequiredResult:
    if rounds(ctx):
        answers = ctx.input_responses
        return told(answered(answers["contact"])) if answers else asked_for(["contact"])
    outcome = await ctx.elicit(QUESTIONS["contact"]["message"], response_type=Contact)
    if outcome.action == "accept":
        return told({"action": "accept", "content": outcome.data.model_dump(exclude_unset=True)})
    return told({"action": outcome.action})


add_tools(server, Context)

if __name__ == "__main__":
    serve(lambda: server.run(transport="stdio", show_banner=False, log_level="error"), server.http_app)
