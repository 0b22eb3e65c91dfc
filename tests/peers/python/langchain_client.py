"""LangChain 1.5: an agent's tool call whose questions are LangGraph interrupts. For its arguments see js/script.mjs.

LangGraph goes on by running the step again, so the call is made again from its first round. Each time another adapter and
graph do that, as after the agent's process ended; only the checkpoints stay.
"""

import warnings
from typing import Any, TypedDict

warnings.filterwarnings("ignore")

from fastmcp.client.transports import StdioTransport  # noqa: E402
from langchain.mcp import MCPAdapter  # noqa: E402
from langgraph.checkpoint.memory import MemorySaver  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.types import Command  # noqa: E402
from script import Script, failure, play_all  # noqa: E402


class State(TypedDict, total=False):
    content: Any


async def run(script: Script, saver: MemorySaver, given: Any) -> dict[str, Any]:
    target = script.url or StdioTransport(command=script.command, args=script.args)
    async with MCPAdapter(target) as adapter:
        tools = {tool.name: tool for tool in await adapter.list_tools()}

        async def call(_state: State) -> State:
            return {"content": await tools[script.tool].ainvoke(script.arguments)}

        graph = StateGraph(State)
        graph.add_node("call", call)
        graph.add_edge(START, "call")
        graph.add_edge("call", END)
        compiled = graph.compile(checkpointer=saver)
        return await compiled.ainvoke(given, {"configurable": {"thread_id": "1"}})


async def play(script: Script) -> None:
    saver = MemorySaver()
    line: dict[str, Any] = {}
    try:
        state = await run(script, saver, {})
        while waiting := state.get("__interrupt__"):
            responses = {}
            for asked in waiting[0].value["requests"]:
                schema, url = asked.get("requested_schema"), asked.get("url")
                responses[asked["key"]] = await script.answer(asked["message"], schema, url)
            state = await run(script, saver, Command(resume={"responses": responses}))
        content = state["content"]
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        line["result"] = {"content": [{"type": "text", "text": text}]}
    except Exception as error:  # noqa: BLE001 - whatever happened is what we tell
        line["error"] = failure(error)
    script.tell("langchain", line)


play_all(play)
