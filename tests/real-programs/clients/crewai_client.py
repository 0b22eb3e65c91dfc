"""CrewAI's own tools of an MCP server. It cannot be asked, and each call starts the server anew. Its time limit cannot be set."""

import asyncio
import logging
import os

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TRACKING": "true"}
from calls import Plan, call_all, run  # noqa: E402
# begin
from crewai import Agent  # noqa: E402
# end
from crewai.llms.base_llm import BaseLLM  # noqa: E402
# begin
from crewai.mcp import MCPServerStdio  # noqa: E402
# end

logging.disable(logging.CRITICAL)


class NoModel(BaseLLM):
    """An agent has to have a model; this one is never called."""

    def call(self, *_args, **_kwargs):
        raise NotImplementedError


plan = Plan()
# begin
server = MCPServerStdio(command=plan.command, args=plan.args, env=plan.env)
agent = Agent(role="clerk", goal="book", backstory="books", llm=NoModel(model="none"), mcps=[server])
# end
found = {tool.original_tool_name: tool for tool in agent.get_mcp_tools(agent.mcps)}


async def call(one):
    result = await asyncio.to_thread(found[one["tool"]].run, **(one.get("arguments") or {}))
    return getattr(result, "message", result)


run(call_all(plan, list(found), call))
