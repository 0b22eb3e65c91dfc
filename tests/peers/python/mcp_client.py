"""Python `mcp` 2: a client of both eras (`--revision auto` or `pushed`). For its arguments see js/script.mjs."""

from mcp import Client, StdioServerParameters
from mcp.types import ElicitRequestURLParams, ElicitResult
from script import Script, failure, play_all


async def play(script: Script) -> None:
    async def answer(_context, params):
        url = params.url if isinstance(params, ElicitRequestURLParams) else None
        schema = None if url else params.requested_schema
        return ElicitResult(**await script.answer(params.message, schema, url))

    target = script.url or StdioServerParameters(command=script.command, args=script.args)
    line = {}
    try:
        async with Client(target, mode=script.mode, elicitation_callback=answer if script.capable else None) as client:
            line = {"protocol": client.session.protocol_version, "server": client.session.server_info.name}
            result = await client.call_tool(script.tool, script.arguments, read_timeout_seconds=120)
            line["result"] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    except Exception as error:  # noqa: BLE001 - whatever happened is what we tell
        line["error"] = failure(error)
    script.tell("mcp-client", line)


play_all(play)
