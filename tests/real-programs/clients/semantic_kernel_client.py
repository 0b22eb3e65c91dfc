"""Semantic Kernel's plugin of an MCP server. It cannot be asked."""

from calls import Plan, call_all, run
# begin
from semantic_kernel.connectors.mcp import MCPStdioPlugin
# end


async def main():
    plan = Plan()
    # begin
    plugin = MCPStdioPlugin(name="tickets", command=plan.command, args=plan.args, env=plan.env, **plan.limited("request_timeout"))
    # end
    async with plugin:
        tools = [tool.name for tool in (await plugin.session.list_tools()).tools]

        async def call(one):
            return "\n".join(str(part) for part in await plugin.call_tool(one["tool"], **(one.get("arguments") or {})))

        await call_all(plan, tools, call)


run(main())
