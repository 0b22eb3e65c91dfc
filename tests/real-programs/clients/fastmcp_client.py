"""FastMCP's client, version 2 to 4."""

import logging

from calls import Plan, call_all, run
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport

logging.disable(logging.CRITICAL)


async def main():
    plan = Plan()

    async def answer(_message, _response_type, _params, _context):
        return ElicitResult(**plan.answer())

    transport = StdioTransport(plan.command, plan.args, env=plan.env)
    more = {"mode": "legacy"} if plan.revision == "pushed" else {}
    async with Client(transport, elicitation_handler=answer if plan.capable else None, timeout=120, **more) as client:
        tools = [tool.name for tool in await client.list_tools()]

        async def call(one):
            return await client.call_tool_mcp(one["tool"], one.get("arguments") or {})

        opened = getattr(client, "initialize_result", None)
        await call_all(plan, tools, call, getattr(client, "protocol_version", None) or getattr(opened, "protocolVersion", None))


run(main())
