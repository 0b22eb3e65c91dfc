"""Python `mcp` 1. With `PATIENCE` in the environment a call is given up after so many seconds, without a word to the server."""

import datetime
import os

from calls import Plan, call_all, run
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult


async def main():
    plan = Plan()

    async def answer(_context, _params):
        return ElicitResult(**plan.answer())

    server = StdioServerParameters(command=plan.command, args=plan.args, env=plan.env)
    async with stdio_client(server, errlog=open(os.devnull, "w")) as streams:
        async with ClientSession(*streams, elicitation_callback=answer if plan.capable else None) as session:
            opened = await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            patience = os.environ.get("PATIENCE")

            async def call(one):
                seconds = float(patience or one["seconds"])
                return await session.call_tool(one["tool"], one.get("arguments"), read_timeout_seconds=datetime.timedelta(seconds=seconds))

            await call_all(plan, tools, call, opened.protocolVersion)


run(main())
