"""FastMCP 4: a client of both eras (`--revision auto` or `pushed`). For its arguments see js/script.mjs."""

import logging

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from script import Script, failure, play_all


async def play(script: Script) -> None:
    logging.disable(logging.CRITICAL)

    async def answer(message, _response_type, params, _context):
        url = getattr(params, "url", None)
        return ElicitResult(**await script.answer(message, getattr(params, "requested_schema", None), url))

    if script.url:
        transport = StreamableHttpTransport(script.url)
    else:
        transport = StdioTransport(command=script.command, args=script.args)
    line = {}
    try:
        handler = answer if script.capable else None
        async with Client(transport, mode=script.mode, elicitation_handler=handler, timeout=120) as client:
            line = {"protocol": client.protocol_version, "server": client.server_info.name}
            result = await client.call_tool_mcp(script.tool, script.arguments)
            line["result"] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    except Exception as error:  # noqa: BLE001 - whatever happened is what we tell
        line["error"] = failure(error)
    script.tell("fastmcp-client", line)


play_all(play)
