"""Python `mcp` 2: a server for both eras, whose `contact` is asked by a resolver. `mcp_server.py [stdio | http PORT]`"""

from typing import Annotated

from asking import QUESTIONS, add_tools, serve, told
from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel, EmailStr, Field


class Contact(BaseModel):
    name: str = Field(title="Name", description="Your full name", min_length=1)
    email: EmailStr = Field(title="Email", description="Where to write to you")
    age: int | None = Field(default=None, title="Age", description="In years", ge=18, le=150)


server = MCPServer("mcp-server", version="1.0.0")


async def ask_contact() -> Elicit[Contact]:
    return Elicit(QUESTIONS["contact"]["message"], Contact)


@server.tool(name="contact", description="Asks for a name, an email address and an age")
async def contact(outcome: Annotated[ElicitationResult[Contact], Resolve(ask_contact)]) -> str:
    if isinstance(outcome, AcceptedElicitation):
        return told({"action": "accept", "content": outcome.data.model_dump(exclude_unset=True)})
    return told({"action": outcome.action})


add_tools(server, Context)

if __name__ == "__main__":
    serve(lambda: server.run("stdio"), server.streamable_http_app)
