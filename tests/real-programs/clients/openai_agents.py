"""The OpenAI Agents SDK. It cannot be asked."""

# begin
from agents.mcp import MCPServerStdio
# end
from calls import Plan, call_all, run


async def main():
    plan = Plan()
    # begin
    server = MCPServerStdio(
        params={"command": plan.command, "args": plan.args, "env": plan.env},
        **plan.limited("client_session_timeout_seconds"),
    )
    # end
    async with server:
        tools = [tool.name for tool in await server.list_tools()]

        async def call(one):
            return await server.call_tool(one["tool"], one.get("arguments") or {})

        await call_all(plan, tools, call)


run(main())
