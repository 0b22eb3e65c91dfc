"""What a scripted client is told to do, and what it tells of it. The arguments are those of `js/script.mjs`."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

WRONG = {"name": "", "email": "not an address", "age": 3, "environment": "the moon"}


class Script:
    def __init__(self, told: dict[str, Any]) -> None:
        self.name = told.get("name")
        self.mode = "legacy" if told["revision"] == "pushed" else "auto"
        self.tool, self.arguments = told["tool"], told.get("arguments", {})
        self.url = told.get("url")
        command = told.get("command") or [None]
        self.command, self.args = command[0], command[1:]
        self.capable = told.get("capable", True)
        self.replies = told["answers"]
        self.delay = told.get("delay", 0) / 1000
        self.asked: list[dict[str, Any]] = []
        self.answered: list[dict[str, Any]] = []

    async def answer(self, message: str, schema: Any, url: str | None) -> dict[str, Any]:
        """Remembers the question and gives the next scripted answer, the last one again and again."""
        if url is None:
            self.asked.append({"mode": "form", "message": message, "schema": schema})
        else:
            self.asked.append({"mode": "url", "message": message, "url": url})
        given = dict(self.replies[min(len(self.answered), len(self.replies) - 1)])
        if url is not None:
            given.pop("content", None)
        self.answered.append(given)
        await asyncio.sleep(self.delay)
        return given

    def tell(self, peer: str, line: dict[str, Any]) -> None:
        """Prints the one line."""
        line = {"peer": peer, "name": self.name, **line, "asked": self.asked, "answered": self.answered}
        print(json.dumps(line, separators=(",", ":"), default=str), flush=True)


def scripts() -> list[Script]:
    ours, _, theirs = split(sys.argv[1:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--revision", default="auto", choices=["auto", "pushed"])
    parser.add_argument("--tool", default="contact")
    parser.add_argument("--arguments", type=json.loads, default={})
    parser.add_argument("--no-capability", action="store_true")
    parser.add_argument("--answer", default="accept", choices=["accept", "decline", "cancel", "wrong"])
    parser.add_argument("--content", type=json.loads)
    parser.add_argument("--answers", type=json.loads)
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--plays", type=json.loads)
    parser.add_argument("--url")
    given = parser.parse_args(ours)
    if given.plays is not None:
        return [Script(play) for play in given.plays]
    told = vars(given) | {"command": theirs, "capable": not given.no_capability}
    return [Script(told | {"answers": given.answers or [reply(given.answer, given.content)]})]


def play_all(play: Callable[[Script], Awaitable[None]]) -> None:
    """Plays every script and ends the process, whatever an SDK still has open."""

    async def main() -> None:
        for script in scripts():
            await play(script)

    asyncio.run(main())
    os._exit(0)


def split(argv: list[str]) -> tuple[list[str], str, list[str]]:
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], "--", argv[at + 1 :]


def reply(answer: str, content: Any) -> dict[str, Any]:
    if answer == "wrong":
        return {"action": "accept", "content": WRONG}
    if answer == "accept" and content is not None:
        return {"action": "accept", "content": content}
    return {"action": answer}


def failure(error: BaseException) -> dict[str, Any]:
    """What a task group wraps is what happened."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    inner = getattr(error, "error", error)
    return {"code": getattr(inner, "code", None), "message": str(error), "data": getattr(inner, "data", None)}
