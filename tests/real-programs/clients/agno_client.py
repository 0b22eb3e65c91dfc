"""Agno's tools of an MCP server. It cannot be asked."""

# begin
from agno.tools.mcp import MCPTools
# end
from calls import Plan, call_all, run
# begin
from mcp import StdioServerParameters
# end


async def main():
    plan = Plan()
    # begin
    server = StdioServerParameters(command=plan.command, args=plan.args, env=plan.env)
    async with MCPTools(server_params=server, **plan.limited("timeout_seconds")) as toolkit:
        # end

        async def call(one):
            result = await toolkit.functions[one["tool"]].entrypoint(**(one.get("arguments") or {}))
            return getattr(result, "content", result)

        await call_all(plan, list(toolkit.functions), call)


run(main())
