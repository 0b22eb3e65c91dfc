"""Microsoft Agent Framework's MCP tool. It cannot be asked."""

# begin
from agent_framework import MCPStdioTool
# end
from calls import Plan, call_all, run


async def main():
    plan = Plan()
    # begin
    server = MCPStdioTool(name="tickets", command=plan.command, args=plan.args, env=plan.env, **plan.limited("request_timeout"))
    # end
    async with server:
        tools = [tool.name for tool in server.functions]

        async def call(one):
            return await server.call_tool(one["tool"], **(one.get("arguments") or {}))

        await call_all(plan, tools, call)


run(main())
