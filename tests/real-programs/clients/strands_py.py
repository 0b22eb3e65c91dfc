"""Strands Agents for Python, which has a callback for questions. Only the call itself takes a time limit."""

import datetime

from calls import Plan, call_all, run
# begin
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
# end
from mcp.types import ElicitResult
# begin
from strands.tools.mcp import MCPClient
# end


async def main():
    plan = Plan()

    async def answer(_context, _params):
        return ElicitResult(**plan.answer())

    # begin
    server = StdioServerParameters(command=plan.command, args=plan.args, env=plan.env)
    client = MCPClient(lambda: stdio_client(server), elicitation_callback=answer if plan.capable else None)
    # end
    with client:
        tools = [tool.tool_name for tool in client.list_tools_sync()]
        limit = {"read_timeout_seconds": datetime.timedelta(seconds=plan.limit)} if plan.limit else {}

        async def call(one):
            result = await client.call_tool_async("1", one["tool"], one.get("arguments") or {}, **limit)
            return "\n".join(part.get("text", "") for part in result["content"])

        await call_all(plan, tools, call)


run(main())
