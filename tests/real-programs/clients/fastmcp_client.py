"""FastMCP's client, version 2 to 4."""

import logging

from calls import Plan, call_all, run
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport

logging.disable(logging.CRITICAL)


def as_asked(reply, params):
    """Gives texts where the form asks for texts, as a handler does that fills FastMCP's `response_type`: version 4 checks its handler's content."""
    form = getattr(params, "requested_schema", None) or getattr(params, "requestedSchema", None) or {}
    fields = form.get("properties", {})
    content = reply.get("content")
    if not isinstance(content, dict):
        return reply

    def spelled(name, value):
        if fields.get(name, {}).get("type") != "string":
            return value
        if isinstance(value, list):
            return "\n".join(value)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    return reply | {"content": {name: spelled(name, value) for name, value in content.items()}}


async def main():
    plan = Plan()

    async def answer(_message, _response_type, params, _context):
        return ElicitResult(**as_asked(plan.answer(), params))

    transport = StdioTransport(plan.command, plan.args, env=plan.env)
    more = {"mode": "legacy"} if plan.revision == "pushed" else {}
    async with Client(transport, elicitation_handler=answer if plan.capable else None, timeout=120, **more) as client:
        tools = [tool.name for tool in await client.list_tools()]

        async def call(one):
            return await client.call_tool_mcp(one["tool"], one.get("arguments") or {})

        opened = getattr(client, "initialize_result", None)
        await call_all(plan, tools, call, getattr(client, "protocol_version", None) or getattr(opened, "protocolVersion", None))


run(main())
