"""Python `mcp` 2, in either era."""

from calls import Plan, call_all, run
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult


async def main():
    plan = Plan()

    async def answer(_context, _params):
        return ElicitResult(**plan.answer())

    server = StdioServerParameters(command=plan.command, args=plan.args, env=plan.env)
    mode = "legacy" if plan.revision == "pushed" else "auto"
    async with Client(server, mode=mode, elicitation_callback=answer if plan.capable else None) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]

        async def call(one):
            return await client.call_tool(one["tool"], one.get("arguments") or {}, read_timeout_seconds=one["seconds"])

        await call_all(plan, tools, call, client.session.protocol_version)


run(main())
