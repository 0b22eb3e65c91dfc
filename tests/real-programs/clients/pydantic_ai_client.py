"""Pydantic AI's MCPToolset, which takes FastMCP's handler for questions."""

import json

from calls import Plan, call_all, run
from fastmcp.client.elicitation import ElicitResult
# begin
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset
# end


async def main():
    plan = Plan()

    async def answer(_message, _response_type, _params, _context):
        return ElicitResult(**plan.answer())

    # begin
    transport = StdioTransport(command=plan.command, args=plan.args, env=plan.env)
    toolset = MCPToolset(transport, init_timeout=60, **plan.limited("read_timeout"), elicitation_handler=answer if plan.capable else None)
    # end
    async with toolset:
        tools = [tool.name for tool in await toolset.list_tools()]

        async def call(one):
            result = await toolset.direct_call_tool(one["tool"], one.get("arguments") or {})
            return result if isinstance(result, str) else json.dumps(result)

        await call_all(plan, tools, call)


run(main())
