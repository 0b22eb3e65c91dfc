"""A server that asks nothing, for mcp-elicitation-proxy, which asks for its missing argument. `greeting.py EFFECTS`"""

from kinds import done
from mcp.server.fastmcp import FastMCP

server = FastMCP("greeting", log_level="ERROR")


@server.tool(name="greet")
async def greet(name: str) -> str:
    return done("greet", "greeted", None).replace("}", f', "content": "{name}"}}')


@server.tool(name="plain")
async def plain() -> str:
    return done("plain", "none")


server.run()
