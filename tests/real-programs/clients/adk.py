"""Google ADK's toolset of an MCP server, which has a callback for questions."""

import os
import warnings

warnings.filterwarnings("ignore")
from calls import Plan, call_all, run  # noqa: E402
# begin
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams  # noqa: E402
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset  # noqa: E402
from mcp import StdioServerParameters  # noqa: E402
# end
from mcp.types import ElicitResult  # noqa: E402


async def main():
    plan = Plan()

    async def answer(_context, _params):
        return ElicitResult(**plan.answer())

    more = {"errlog": open(os.devnull, "w")}
    # begin
    server = StdioServerParameters(command=plan.command, args=plan.args, env=plan.env)
    connection = StdioConnectionParams(server_params=server, **plan.limited("timeout"))
    toolset = McpToolset(connection_params=connection, elicitation_callback=answer if plan.capable else None, **more)
    # end
    tools = {tool.name: tool for tool in await toolset.get_tools()}
    session = await next(iter(tools.values()))._mcp_session_manager.create_session()

    async def call(one):
        return await session.call_tool(one["tool"], arguments=one.get("arguments") or {})

    await call_all(plan, list(tools), call)


run(main())
