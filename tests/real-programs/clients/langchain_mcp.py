"""LangChain's MCPAdapter, which turns a round's question into an interrupt of the graph, and refuses pushed ones.

No model is needed: the graph's one node calls the tool, and the interrupt is resumed with the person's answer. A tool of a
client without the adapter declares nothing.
"""

import uuid

from calls import Plan, call_all, run
# begin
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from langchain.mcp import MCPAdapter, as_langchain_tool
# end
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.types import Command


async def main():
    plan = Plan()
    # begin
    client = Client(StdioTransport(command=plan.command, args=plan.args, env=plan.env), **plan.limited("timeout"))
    # end
    if plan.capable:
        async with MCPAdapter(client) as adapter:
            await play(plan, await adapter.list_tools())
    async with client:
        # begin
        tools = [await as_langchain_tool(tool, client) for tool in await client.list_tools()]
        # end
        await play(plan, tools)


async def play(plan, tools):
    graph = one_call({tool.name: tool for tool in tools})

    async def call(one):
        thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
        state = await graph.ainvoke({"call": one}, thread)
        while "__interrupt__" in state:
            requests = state["__interrupt__"][0].value["requests"]
            responses = {request["key"]: plan.answer() for request in requests}
            state = await graph.ainvoke(Command(resume={"responses": responses}), thread)
        return state["result"]

    await call_all(plan, [tool.name for tool in tools], call)


def one_call(tools):
    """Returns a graph that calls one tool."""

    async def node(state):
        return state | {"result": await tools[state["call"]["tool"]].ainvoke(state["call"].get("arguments") or {})}

    return StateGraph(dict).add_node("call", node).set_entry_point("call").set_finish_point("call").compile(checkpointer=InMemorySaver())


run(main())
