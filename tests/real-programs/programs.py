"""The published servers and clients, and what is called and answered."""

import json
from dataclasses import dataclass, field
from typing import Any

#: What a person answers to each kind of question of the small servers.
ANSWERS: dict[str, Any] = {
    "book": {"name": "Ada", "seats": 2, "window": True},
    "resolved": {"name": "Ada", "seats": 2, "window": True},
    "pushed": {"name": "Ada", "seats": 2, "window": True},
    "nullable": {"name": "Ada", "note": "none"},
    "numbers": {"level": 2},
    "either": {"value": 7},
    "lines": {"tags": ["a", "b"]},
    "choice": {"color": "red", "speed": "fast"},
    "several": {"colors": ["blue"]},
    "formats": {"id": "123e4567-e89b-42d3-a456-426614174000", "at": "10:30:00"},
    "empty": {},
    "slips": {"phone": "+44 20 7946 0000", "color": "blue"},
}


@dataclass
class Call:
    """A call, the content given to each of its questions, and a text of its result that shows that the server got it."""

    tool: str
    answers: list[Any] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)
    #: A text of the result; None: the JSON of the outcome.
    text: str | None = None
    outcome: Any = None
    #: Whether the tool's work is a line in the file of effects.
    counted: bool = True


def asks(kind, **more):
    """A call of a small server that asks one question of this kind."""
    content = ANSWERS.get(kind)
    return Call(kind, [content], outcome={"action": "accept", "content": content}, **more)


PLAIN = Call("plain", outcome={"action": "none"})


def kinds(*names):
    return [PLAIN, *(asks(name) for name in names)]


def scalar(tool, value):
    """FastMCP wraps one scalar as the field `value`, and unwraps its answer."""
    return Call(tool, [{"value": value}], outcome={"action": "accept", "content": value})


@dataclass
class Server:
    name: str
    packages: str
    package: str
    #: `{effects}` is the file of effects, `{here}` the folder of the servers, `{home}` that of the packages.
    command: list[str]
    calls: list[Call]
    #: The tools that CI calls; none: not before this server.
    quick: tuple[str, ...] = ()
    #: Whether every client is tried before it, not only the SDKs' own.
    wide: bool = False
    #: More options of the gateway before it.
    gateway: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)


# Forms that an SDK's server refuses to send are left out.
FASTMCP = [*kinds("book", "numbers", "either", "choice", "several", "formats"), scalar("word", "x"), scalar("list", "red"), scalar("delete", True)]
SCRIPTS = ("book", "numbers", "choice", "several", "empty", "slips")

SERVERS = [
    Server("FastMCP 4", "mcp2", "fastmcp", ["{python}", "{here}/fastmcp_server.py", "{effects}"], FASTMCP, wide=True),
    Server("FastMCP 3", "mcp1-more", "fastmcp", ["{python}", "{here}/fastmcp_server.py", "{effects}"], FASTMCP),
    Server("FastMCP 2", "mcp1", "fastmcp", ["{python}", "{here}/fastmcp_server.py", "{effects}"], FASTMCP, ("plain", "book", "numbers", "either", "delete")),
    Server("mcp 2 (Python)", "mcp2", "mcp", ["{python}", "{here}/mcp2_server.py", "{effects}"], kinds("book", "nullable", "numbers", "several", "empty", "resolved"), ("plain", "book", "numbers", "resolved")),
    Server("mcp 1 (Python)", "mcp1", "mcp", ["{python}", "{here}/mcp1_server.py", "{effects}"], kinds("book", "nullable", "either", "lines", "empty"), ("plain", "book", "nullable", "lines", "empty"), wide=True),
    Server("@modelcontextprotocol/server 2", "node", "@modelcontextprotocol/server", ["{node}", "{home}/ts2_server.mjs", "{effects}"], kinds(*SCRIPTS, "pushed"), ("plain", "book", "pushed"), wide=True),
    Server("@modelcontextprotocol/sdk 1", "node", "@modelcontextprotocol/sdk", ["{node}", "{home}/ts1_server.mjs", "{effects}"], kinds(*SCRIPTS), ("plain", "book", "slips"), wide=True),
    Server("fastmcp (npm)", "node", "fastmcp", ["{node}", "{home}/tsfastmcp_server.mjs", "{effects}"], kinds(*SCRIPTS), ("plain", "book")),
    Server(
        "server-everything", "node", "@modelcontextprotocol/server-everything",
        ["{node}", "{home}/node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio"],
        [
            Call("echo", arguments={"message": "plain"}, text="plain", counted=False),
            Call("trigger-elicitation-request", [{"name": "Ada", "check": True}], text="Ada", counted=False),
        ],
        ("echo", "trigger-elicitation-request"),
    ),
    Server(
        "mongodb-mcp-server", "node-more", "mongodb-mcp-server",
        ["{node}", "{home}/node_modules/mongodb-mcp-server/dist/index.js", "--connectionString", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300", "--telemetry", "disabled"],
        [Call("drop-database", [None], {"connectionId": "preconfigured", "database": "shop"}, text="did not confirm", counted=False)],
        wide=True,
    ),
    Server(
        "okta-mcp-server", "mcp1-more", "okta-mcp-server", ["{python}", "{here}/okta_server.py"],
        [Call("delete_group", [{"confirm": False}], {"group_id": "g1"}, text="cancelled by user", counted=False)],
    ),
    Server(
        "mcp-elicitation-proxy", "mcp1-more", "mcp-elicitation-proxy", ["{python}", "{home}/bin/mcp-elicitation-proxy", "--config", "{folder}/proxy.yaml"],
        [PLAIN, Call("greet", [{"name": "Ada"}], outcome={"action": "greeted", "content": "Ada"})],
        files={"proxy.yaml": 'upstream:\n  command: "{python}"\n  args: ["{here}/greeting.py", "{effects}"]\n'},
    ),
    Server(
        "@azure-devops/mcp", "node-more", "@azure-devops/mcp", ["{node}", "{home}/azure_server.mjs", "{effects}"],
        [
            Call("hundred", [{"project": "Project 7"}, {"team": "team-2"}], outcome={"action": "accept", "content": {"project": "Project 7", "team": "team-2"}}),
            Call("twins", [{"project": "Project 0"}, {"team": "team-2"}], outcome={"action": "accept", "content": {"project": "Project 0", "team": "team-2"}}),
        ],
    ),
    Server(
        "rmcp (mcp-elicit demo-server)", "", "", ["{program}", "demo-server"],
        [Call("deploy", [{"environment": "staging"}], text="Deployed to staging", counted=False)],
        ("deploy",),
    ),
]


@dataclass
class Client:
    name: str
    packages: str
    package: str
    script: str
    #: Whether it can be asked; one that cannot is asked in the inbox only.
    can_ask: bool = True
    revision: str = "auto"
    #: Whether it is an SDK's own client, which is tried before every server.
    core: bool = False
    env: dict[str, str] = field(default_factory=dict)


CLIENTS = [
    Client("@modelcontextprotocol/sdk 1", "node", "@modelcontextprotocol/sdk", "ts1.mjs", core=True),
    Client("@modelcontextprotocol/client 2", "node", "@modelcontextprotocol/client", "ts2.mjs", core=True),
    Client("@modelcontextprotocol/client 2, pushed", "node", "@modelcontextprotocol/client", "ts2.mjs", revision="pushed"),
    Client("AI SDK 2", "node", "@ai-sdk/mcp", "aisdk.mjs", core=True),
    Client("AI SDK 1", "node", "ai-sdk-mcp-1", "aisdk.mjs", env={"AI_SDK": "ai-sdk-mcp-1"}),
    Client("Mastra 0 (declares always)", "mastra-0", "@mastra/mcp", "mastra.mjs"),
    Client("Mastra 2", "mastra-2", "@mastra/mcp", "mastra.mjs"),
    Client("Strands Agents", "node-more", "@strands-agents/sdk", "strands.mjs"),
    Client("mcp 1 (Python)", "mcp1", "mcp", "mcp1.py", core=True),
    Client("mcp 2 (Python)", "mcp2", "mcp", "mcp2.py", core=True),
    Client("mcp 2 (Python), pushed", "mcp2", "mcp", "mcp2.py", revision="pushed"),
    Client("FastMCP 2", "mcp1", "fastmcp", "fastmcp_client.py", core=True),
    Client("FastMCP 3", "mcp1-more", "fastmcp", "fastmcp_client.py"),
    Client("FastMCP 4", "mcp2", "fastmcp", "fastmcp_client.py", core=True),
    Client("mcpadapt", "mcp1-more", "mcpadapt", "mcpadapt_client.py", can_ask=False),
    Client("Semantic Kernel", "mcp1-more", "semantic-kernel", "semantic_kernel_client.py", can_ask=False),
    Client("LlamaIndex", "mcp2", "llama-index-tools-mcp", "llamaindex.py", can_ask=False),
    Client("Google ADK", "mcp2", "google-adk", "adk.py", can_ask=False),
    Client("Agno", "mcp2", "agno", "agno_client.py", can_ask=False),
]

#: Clients that refuse a tool's missing arguments themselves, so that mcp-elicitation-proxy never gets the call.
CHECK_ARGUMENTS = ("Mastra 0 (declares always)", "Mastra 2")

#: What CI runs: each kind of difference once, from packages that install in seconds.
QUICK = {
    ("FastMCP 2", "AI SDK 2"),
    ("mcp 1 (Python)", "@modelcontextprotocol/sdk 1"),
    ("mcp 1 (Python)", "AI SDK 2"),
    ("mcp 1 (Python)", "mcp 2 (Python)"),
    ("mcp 2 (Python)", "@modelcontextprotocol/client 2"),
    ("mcp 2 (Python)", "mcp 1 (Python)"),
    ("@modelcontextprotocol/server 2", "AI SDK 2"),
    ("@modelcontextprotocol/server 2", "mcp 2 (Python)"),
    ("@modelcontextprotocol/sdk 1", "@modelcontextprotocol/client 2"),
    ("fastmcp (npm)", "@modelcontextprotocol/sdk 1"),
    ("server-everything", "@modelcontextprotocol/client 2"),
    ("rmcp (mcp-elicit demo-server)", "mcp 1 (Python)"),
}


def reply(content):
    """Returns an answer as it travels: no content is a decline."""
    return {"action": "decline"} if content is None else {"action": "accept", "content": content}


def as_line(call, seconds):
    """Returns the call as a client's script reads it."""
    return {"tool": call.tool, "arguments": call.arguments, "answers": [reply(content) for content in call.answers], "seconds": seconds}


def got(text, call):
    """Returns whether a result's text shows that the server got the answers."""
    if call.text is not None:
        return call.text in text
    decoder = json.JSONDecoder()
    for at, letter in enumerate(text):
        if letter == "{":
            try:
                found, _ = decoder.raw_decode(text[at:])
            except ValueError:
                continue
            if found == call.outcome:
                return True
    return False
