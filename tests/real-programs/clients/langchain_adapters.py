"""langchain-mcp-adapters, which has a callback for questions. Each call starts the server anew, as `get_tools` does."""

import datetime

from calls import Plan, call_all, run
from langchain_mcp_adapters.callbacks import Callbacks
# begin
from langchain_mcp_adapters.client import MultiServerMCPClient
# end
from mcp.types import ElicitResult


async def main():
    plan = Plan()

    async def answer(_context, _params, _callback_context):
        return ElicitResult(**plan.answer())

    callbacks = Callbacks(on_elicitation=answer if plan.capable else None)
    limit = {"read_timeout_seconds": datetime.timedelta(seconds=plan.limit)} if plan.limit else {}
    # begin
    server = {"transport": "stdio", "command": plan.command, "args": plan.args, "env": plan.env, "session_kwargs": limit}
    client = MultiServerMCPClient({"tickets": server}, callbacks=callbacks)
    tools = {tool.name: tool for tool in await client.get_tools()}
    # end

    async def call(one):
        return await tools[one["tool"]].ainvoke(one.get("arguments") or {})

    await call_all(plan, list(tools), call)


run(main())
