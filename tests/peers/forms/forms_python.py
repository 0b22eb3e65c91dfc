"""A server that asks for every kind of answer with the SDK's own `ctx.elicit`: `forms_python.py SDK [stdio | http PORT]`.

`SDK` is `mcp1`, `mcp2`, `fastmcp2`, `fastmcp3` or `fastmcp4`. The tool `kinds` lists the kinds; `ask` asks for one and says
what the handler was given: `{"action":"accept","is":TYPE,"value":REPR}`.
"""

import json
import os
import socket
import sys
from typing import Any

import uvicorn
from kinds import MODELS, SHORT

sdk, *sys.argv[1:] = sys.argv[1:]
# Refused kinds would each leave a page of traceback on stderr.
os.environ["FASTMCP_LOG_LEVEL"] = "CRITICAL"
takes = dict(MODELS)
if sdk == "mcp1":
    from mcp.server.fastmcp import Context, FastMCP

    server = FastMCP("forms", log_level="CRITICAL")
elif sdk == "mcp2":
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context

    server = MCPServer("forms", log_level="CRITICAL")
else:
    from fastmcp import Context, FastMCP

    server = FastMCP("forms")
    takes |= SHORT

if sdk.startswith("mcp"):

    async def elicit(ctx: Context, kind: str) -> Any:
        return await ctx.elicit(message=f"Please give: {kind}", schema=takes[kind])
else:

    async def elicit(ctx: Context, kind: str) -> Any:
        return await ctx.elicit(f"Please give: {kind}", response_type=takes[kind])


@server.tool(name="kinds", description="Lists the kinds")
def kinds() -> str:
    return json.dumps(list(takes))


@server.tool(name="ask", description="Asks for one kind")
async def ask(ctx: Context, kind: str) -> str:
    result = await elicit(ctx, kind)
    if result.action != "accept":
        return json.dumps({"action": result.action})
    given = result.data
    if kind in MODELS and hasattr(given, "value"):
        given = given.value
    return json.dumps({"action": "accept", "is": type(given).__name__, "value": repr(given)})


def serve() -> None:
    """`stdio` (the default), or `http PORT`: says where it listens in one line of JSON on stdout."""
    if sys.argv[1:2] != ["http"]:
        server.run("stdio")
        return
    app = server.http_app() if sdk.startswith("fastmcp") else server.streamable_http_app()
    # The protocol is named since asyncio sets TCP_NODELAY on nothing else.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    listener.listen()
    print(json.dumps({"listening": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    serve()
