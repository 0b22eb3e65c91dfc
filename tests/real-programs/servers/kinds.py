"""The forms that the Python servers ask, written as their SDKs' documentation writes them, and what becomes of an answer."""

import datetime
import enum
import json
import sys
import uuid
from typing import Any, Literal, Optional, Union

from pydantic import BaseModel, Field


class Book(BaseModel):
    name: str = Field(description="Who travels")
    seats: int = Field(default=1, ge=1, le=9)
    window: bool = False


class Nullable(BaseModel):
    name: str
    note: Optional[str] = None
    age: Optional[int] = Field(default=None, ge=0, le=150)


class Numbers(BaseModel):
    level: Literal[1, 2, 3]


class Either(BaseModel):
    value: Union[int, str]


class Lines(BaseModel):
    tags: list[str]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Choice(BaseModel):
    color: Color
    speed: Literal["slow", "fast"] = "slow"


class Several(BaseModel):
    colors: list[Literal["red", "blue"]]


class Formats(BaseModel):
    id: uuid.UUID
    at: datetime.time


class Empty(BaseModel):
    pass


KINDS: dict[str, Any] = {
    "book": Book,
    "nullable": Nullable,
    "numbers": Numbers,
    "either": Either,
    "lines": Lines,
    "choice": Choice,
    "several": Several,
    "formats": Formats,
    "empty": Empty,
}


def done(kind: str, action: str, data: Any = None) -> str:
    """Does the tool's work, which is a line in the file of the first argument, and returns the tool's text."""
    outcome: dict[str, Any] = {"action": action}
    if action == "accept":
        dump = getattr(data, "model_dump", None)
        outcome["content"] = dump(mode="json", exclude_unset=True) if dump else data
    with open(sys.argv[1], "a") as effects:
        print(json.dumps({"kind": kind, **outcome}), file=effects)
    return json.dumps(outcome)
