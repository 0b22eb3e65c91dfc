"""Every kind of answer that a Python server may declare: the types that are given to `ctx.elicit`, by name."""

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import pathlib

import uuid
from typing import Annotated, Any, Literal, Optional, Union

import typing_extensions
from pydantic import AnyUrl, BaseModel, ConfigDict, EmailStr, Field, HttpUrl, SecretStr, create_model


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(str, enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Number(enum.Enum):
    ONE = 1
    TWO = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    AUTO = "auto"
    ONE = 1


class Only(enum.Enum):
    ONE = "one"


class Person(BaseModel):
    name: str
    age: int


class Tree(BaseModel):
    value: str
    children: list["Tree"] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: str


@dataclasses.dataclass
class Booking:
    name: str
    guests: int = 3
    vegetarian: bool = False


@dataclasses.dataclass
class Ticket:
    color: Color
    extras: list[Literal["meal", "bed"]]


class Trip(typing_extensions.TypedDict):
    to: str
    days: int


class Documented(BaseModel):
    """Where to deliver."""

    model_config = ConfigDict(extra="forbid", title="Delivery")
    street: str = Field(description="Street and number", examples=["Main Street 1"])
    floor: int = Field(default=0, title="Floor", deprecated=True)


def one(kind: Any, default: Any = ...) -> type[BaseModel]:
    """A model with one field."""
    return create_model("Answer", value=(kind, default))


#: Models, which every SDK takes.
MODELS: dict[str, Any] = {
    "text": one(str),
    "text default": one(str, "x"),
    "text bounds": one(Annotated[str, Field(min_length=2, max_length=20)]),
    "text pattern": one(Annotated[str, Field(pattern=r"^[A-Z]{3}-\d+$", examples=["ABC-1"])]),
    "text any case": one(Annotated[str, Field(pattern=r"(?i)\A[a-z]+\z")]),
    "integer": one(int),
    "integer bounds": one(Annotated[int, Field(gt=0, lt=10)]),
    "number": one(float),
    "number bounds": one(Annotated[float, Field(gt=0, lt=1, multiple_of=0.01)]),
    "decimal": one(decimal.Decimal),
    "boolean": one(bool),
    "boolean default": one(bool, False),
    "optional text": one(Optional[str], None),
    "optional text, required": one(Optional[str]),
    "optional integer": one(Annotated[Optional[int], Field(ge=0, le=150)], None),
    "optional number": one(Optional[float], None),
    "optional boolean": one(Optional[bool], None),
    "optional enum": one(Optional[Color], None),
    "optional literal": one(Optional[Literal["a", "b"]], None),
    "optional literal of integers": one(Optional[Literal[1, 2]], None),
    "optional list of text": one(Optional[list[str]], None),
    "optional date": one(Optional[datetime.date], None),
    "optional union": one(Union[int, str, None], None),
    "enum": one(Color),
    "enum default": one(Color, Color.RED),
    "enum described": one(Annotated[Color, Field(title="Colour", description="Of the car")]),
    "enum of one": one(Only),
    "text enum": one(Size),
    "enum of integers": one(Number),
    "integer enum": one(Level),
    "integer enum default": one(Level, Level.LOW),
    "enum of both": one(Mixed),
    "literal": one(Literal["a", "b"]),
    "literal default": one(Literal["a", "b"], "a"),
    "literal of one": one(Literal["deploy"]),
    "literal of integers": one(Literal[1, 2, 3]),
    "literal of one integer": one(Literal[7]),
    "literal of booleans": one(Literal[True, False]),
    "literal of all": one(Literal["auto", 1, True]),
    "literal or none": one(Literal["a", "b", None]),
    "union integer text": one(Union[int, str]),
    "union text integer": one(Union[str, int]),
    "union number boolean": one(Union[float, bool]),
    "union of literals": one(Union[Literal["auto"], int]),
    "uuid": one(uuid.UUID),
    "date": one(datetime.date),
    "datetime": one(datetime.datetime),
    "time": one(datetime.time),
    "duration": one(datetime.timedelta),
    "email": one(EmailStr),
    "url": one(HttpUrl),
    "any url": one(AnyUrl),
    "path": one(pathlib.Path),
    "ip address": one(ipaddress.IPv4Address),
    "secret": one(SecretStr),
    "bytes": one(bytes),
    "anything": one(Any),
    "list of text": one(list[str]),
    "list of text bounds": one(Annotated[list[str], Field(min_length=1, max_length=3)]),
    "list of integers": one(list[int]),
    "list of enum": one(list[Color]),
    "list of literal": one(list[Literal["a", "b"]]),
    "list of integer literal": one(list[Literal[1, 2, 3]]),
    "list of anything": one(list),
    "list of lists": one(list[list[str]]),
    "list of models": one(list[Person]),
    "set of text": one(set[str]),
    "tuple": one(tuple[int, str]),
    "dictionary": one(dict[str, str]),
    "nested model": one(Person),
    "optional nested model": one(Optional[Person], None),
    "union of models": one(Annotated[Union[Cat, Dog], Field(discriminator="kind")]),
    "tree": Tree,
    "documented": Documented,
    "two fields": Person,
    "no fields": create_model("Nothing"),
    "options in the schema": one(
        Annotated[str, Field(json_schema_extra={"enum": ["a", "b"], "enumNames": ["First", "Second"]})]
    ),
    "titled options in the schema": one(
        Annotated[
            str,
            Field(json_schema_extra={"oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]}),
        ]
    ),
    "list options in the schema": one(
        Annotated[list[str], Field(json_schema_extra={"items": {"type": "string", "enum": ["a", "b"]}})]
    ),
}

#: What FastMCP takes besides models.
SHORT: dict[str, Any] = {
    "bare text": str,
    "bare integer": int,
    "bare number": float,
    "bare boolean": bool,
    "bare nothing": None,
    "bare enum": Color,
    "bare integer enum": Level,
    "bare enum of integers": Number,
    "bare literal": Literal["a", "b"],
    "bare literal of integers": Literal[1, 2, 3],
    "bare date": datetime.date,
    "bare list of enum": list[Color],
    "bare list of literal": list[Literal["a", "b"]],
    "bare list of text": list[str],
    "bare union": Union[int, str],
    "bare optional": Optional[str],
    "options": ["a", "b"],
    "one option": ["a"],
    "titled options": {"low": {"title": "Low"}, "high": {"title": "High"}},
    "several options": [["a", "b", "c"]],
    "several titled options": [{"low": {"title": "Low"}, "high": {"title": "High"}}],
    "dataclass": Booking,
    "dataclass with enum": Ticket,
    "typed dictionary": Trip,
}
