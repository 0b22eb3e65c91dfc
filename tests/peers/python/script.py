"""What a scripted client is told to do, and what it tells at the end. The arguments are those of `js/script.mjs`."""

import argparse
import asyncio
import json
import os
import sys
from typing import Any

WRONG = {"name": "", "email": "not an address", "age": 3, "environment": "the moon"}


class Script:
    def __init__(self) -> None:
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
        parser.add_argument("--url")
        given = parser.parse_args(ours)
        self.mode = "legacy" if given.revision == "pushed" else "auto"
        self.tool, self.arguments, self.url = given.tool, given.arguments, given.url
        self.command, self.args = (theirs[0], theirs[1:]) if theirs else (None, [])
        self.capable = not given.no_capability
        self.replies = given.answers or [reply(given.answer, given.content)]
        self.delay = given.delay / 1000
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
        """Prints the one line and ends the process."""
        line = {"peer": peer, **line, "asked": self.asked, "answered": self.answered}
        print(json.dumps(line, separators=(",", ":"), default=str), flush=True)
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
