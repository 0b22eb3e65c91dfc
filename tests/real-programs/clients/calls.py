"""What a client is told to do, and what it tells of it. The arguments and the lines are those of `calls.mjs`.

A call may also have `times`, how often it is made at most, and `until`, a text of the result that ends this.

The lines between `# begin` and `# end` of a client are what docs/agents.md shows.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any


class Plan:
    def __init__(self) -> None:
        cut = sys.argv.index("--")
        parser = argparse.ArgumentParser()
        parser.add_argument("--no-capability", action="store_true")
        parser.add_argument("--revision", default="auto")
        parser.add_argument("--limit", type=int, default=120)
        parser.add_argument("--calls", type=json.loads)
        given = parser.parse_args(sys.argv[1:cut])
        self.command, *self.args = sys.argv[cut + 1 :]
        self.capable, self.revision, self._calls = not given.no_capability, given.revision, given.calls
        #: Seconds that the framework's client is told to wait for a call; None leaves its default.
        self.limit = given.limit or None
        self.env = dict(os.environ)
        self._answers: list[Any] = []
        self.asked = 0

    async def calls(self) -> AsyncIterator[dict[str, Any]]:
        """Gives the calls of the command line or, without any, each line of stdin as it comes."""
        for call in self._calls or ():
            yield call
        while self._calls is None and (line := await asyncio.to_thread(sys.stdin.readline)):
            yield json.loads(line)

    def limited(self, name: str) -> dict[str, Any]:
        """Returns the time limit as a keyword argument, or none to leave the framework's default."""
        return {name: self.limit} if self.limit else {}

    def begin(self, call: dict[str, Any]) -> None:
        self.asked, self._answers = 0, list(call.get("answers") or [])

    def answer(self) -> dict[str, Any]:
        """Gives the next answer of the call at work."""
        self.asked += 1
        return self._answers.pop(0) if self._answers else {"action": "cancel"}


def tell(line: dict[str, Any]) -> None:
    print(json.dumps(line, default=str), flush=True)


def text_of(result: Any) -> str:
    """Returns the text of a tool's result, whatever the framework makes of it."""
    if isinstance(result, str):
        return result
    if isinstance(result, dict) and "text" in result:
        return result["text"]
    parts = getattr(result, "content", result)
    if isinstance(parts, str):
        return parts
    if isinstance(parts, (list, tuple)):
        return "\n".join(text_of(getattr(part, "text", part)) for part in parts)
    return str(parts)


async def call_all(plan: Plan, tools: list[str], call: Callable[[dict[str, Any]], Awaitable[Any]], protocol: Any = None) -> None:
    """Makes all calls and ends the process, whatever an SDK still has open."""
    tell({"protocol": protocol, "tools": tools})
    async for one in plan.calls():
        plan.begin(one)
        for _ in range(one.get("times", 1)):
            line = {"tool": one["tool"], **await result_of(call, one)}
            if one.get("until", "") in line["text"]:
                break
        tell(line | {"asked": plan.asked})
    os._exit(0)


async def result_of(call: Callable[[dict[str, Any]], Awaitable[Any]], one: dict[str, Any]) -> dict[str, Any]:
    started = time.monotonic()
    line = await outcome_of(call, one)
    return line | {"took": time.monotonic() - started}


async def outcome_of(call: Callable[[dict[str, Any]], Awaitable[Any]], one: dict[str, Any]) -> dict[str, Any]:
    try:
        result = await asyncio.wait_for(call(one), one["seconds"] + 1)
        failed = getattr(result, "is_error", None) or getattr(result, "isError", None)
        return {"text": text_of(result), "failed": bool(failed)}
    except Exception as error:  # noqa: BLE001 - whatever happened is what we tell
        return {"text": str(failure(error)) or repr(error), "failed": True}


def failure(error: BaseException) -> BaseException:
    """What a task group wraps is what happened."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def run(main: Awaitable[None]) -> None:
    try:
        asyncio.run(main)
    except BaseException as error:  # noqa: BLE001
        tell({"error": str(failure(error)) or repr(failure(error))})
    os._exit(0)
