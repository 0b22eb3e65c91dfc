"""LlamaIndex' tools of an MCP server. It cannot be asked."""

from calls import Plan, call_all, run
# begin
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
# end


async def main():
    plan = Plan()
    # begin
    client = BasicMCPClient(plan.command, args=plan.args, env=plan.env, **plan.limited("timeout"))
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client=client).to_tool_list_async()}
    # end

    async def call(one):
        return (await tools[one["tool"]].acall(**(one.get("arguments") or {}))).raw_output

    await call_all(plan, list(tools), call)


run(main())
