"""mcpadapt, through which smolagents and CrewAI reach MCP servers. It cannot be asked."""

import asyncio

from calls import Plan, call_all, run
from mcp import StdioServerParameters
from mcpadapt.core import MCPAdapt, ToolAdapter


class Plain(ToolAdapter):
    def adapt(self, func, mcp_tool):
        return mcp_tool.name, func

    def async_adapt(self, afunc, mcp_tool):
        return mcp_tool.name, afunc


plan = Plan()
with MCPAdapt(StdioServerParameters(command=plan.command, args=plan.args, env=plan.env), Plain()) as adapted:
    tools = dict(adapted)

    async def call(one):
        return await asyncio.to_thread(tools[one["tool"]], one.get("arguments") or {})

    run(call_all(plan, list(tools), call))
