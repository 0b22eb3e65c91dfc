"""The agents' own programs, with a scripted model on loopback and no network: nobody sits before them, so the inbox is asked.

`agents.py NAME PROGRAM COMMAND...` is the part that runs within the network namespace.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cells import GATEWAY, OK, Person, environment, run, short
from packages import HERE, Absent
from programs import ANSWERS, SERVERS, asks

PROMPT = "Book a seat."
SECONDS = 150


@dataclass
class Agent:
    name: str
    packages: str
    package: str
    #: Where the program is within the packages; npm's own launchers only choose it.
    program: str
    #: Which small servers it is tried before.
    servers: tuple[str, ...]
    quick: bool = False


AGENTS = [
    Agent("Claude Code, -p", "claude-code", "@anthropic-ai/claude-code", "@anthropic-ai/claude-code-linux-x64/claude", ("mcp 1 (Python)", "@modelcontextprotocol/server 2"), quick=True),
    Agent("Codex, exec", "codex", "@openai/codex", "@openai/codex-linux-x64/vendor/*/*/codex", ("mcp 1 (Python)", "@modelcontextprotocol/server 2")),
    Agent("opencode, run", "opencode", "opencode-linux-x64", "opencode-linux-x64/bin/opencode", ("mcp 1 (Python)",)),
    Agent("Gemini CLI, -p", "gemini-cli", "@google/gemini-cli", "@google/gemini-cli/bundle/gemini.js", ("mcp 1 (Python)",)),
]


@dataclass
class Played:
    name: str
    version: str
    server: str
    direct: str
    result: str
    commit: str = ""


def play_all(rig, absent, quick, wanted=()):
    """Plays every agent before its servers; returns what became of each."""
    played = []
    chosen = [agent for agent in AGENTS if (agent.quick or not quick) and (not wanted or any(word in agent.name for word in wanted))]
    if not chosen:
        return played
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        absent.append("agents: no network namespace can be made here")
        return played
    for agent in chosen:
        try:
            home, version = rig.packages.folder(agent.packages), rig.packages.version(agent.packages, agent.package)
        except Absent as why:
            absent.append(f"{agent.name}: {why}")
            continue
        for server in (server for server in SERVERS if server.name in agent.servers):
            direct = "" if quick else play(rig, agent, home, server, through=False)[0]
            action, trouble = play(rig, agent, home, server, through=True)
            played.append(Played(agent.name, version, server.name, direct, trouble or action))
            print(f"{agent.name} x {server.name}: directly {direct}; through {played[-1].result}", file=sys.stderr, flush=True)
    return played


def play(rig, agent, home, server, through):
    """Returns what the server got, or why that is not the one answer of the inbox."""
    with tempfile.TemporaryDirectory(prefix="real-programs-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / "project").mkdir()
        target, state = rig.server(server, folder), folder / "state"
        if through:
            target = [rig.program, *GATEWAY, "--state", str(state), "--", *target]
        program = next((home / "node_modules").glob(agent.program))
        command = [str(program)] if program.suffix != ".js" else [rig.packages.node(agent.packages), str(program)]
        inner = [sys.executable, str(HERE / "agents.py"), agent.name, json.dumps(command), json.dumps(target)]
        env = environment(folder / "home") | {"PATH": f"{Path(rig.packages.node('agents')).parent}:{os.environ['PATH']}"}
        person = Person(rig.program, state, [asks("book")], env) if through else None
        with person or contextlib.nullcontext():
            _, said = run(["unshare", "-rn", sys.executable, str(HERE / "alone.py"), *inner], env, SECONDS, folder / "project")
        effects = folder / "effects"
        got = [json.loads(line) for line in effects.read_text().splitlines()] if effects.exists() else []
        return what_came(got, person, said)


def what_came(got, person, said):
    actions = ", ".join(one["action"] for one in got) or "nothing done"
    if person is None:
        return actions, None
    wanted = [{"kind": "book", "action": "accept", "content": ANSWERS["book"]}]
    if got == wanted and person.answered == ["book"]:
        return OK, None
    return actions, short(f"the server got {actions}, the inbox was asked {len(person.answered)} times: {said}")


def within(name, program, target):
    """Starts the scripted model and the agent, which finds both in its own configuration."""
    model = subprocess.Popen([sys.executable, str(HERE / "model.py"), "book"], stdout=subprocess.PIPE, text=True)
    port = json.loads(model.stdout.readline())["listening"]
    command, more = CONFIGURE[name.partition(",")[0]](Path.home(), f"http://127.0.0.1:{port}", target)
    try:
        return subprocess.run([*program, *command], env=dict(os.environ) | more, stdin=subprocess.DEVNULL).returncode
    finally:
        model.kill()


def claude_code(_home, model, target):
    servers = {"mcpServers": {"tickets": {"type": "stdio", "command": target[0], "args": target[1:]}}}
    Path("mcp.json").write_text(json.dumps(servers))
    words = ["-p", PROMPT, "--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", "mcp__tickets__book"]
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "ENABLE_TOOL_SEARCH": "false"}
    return words, quiet | {"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "scripted"}


def codex(home, model, target):
    (home / ".codex").mkdir()
    provider = f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{model}/v1"\nwire_api = "responses"\n'
    server = f"[mcp_servers.tickets]\ncommand = {json.dumps(target[0])}\nargs = {json.dumps(target[1:])}\ntool_timeout_sec = 120\nstartup_timeout_sec = 60\nrequired = true\n"
    (home / ".codex" / "config.toml").write_text(f'model = "scripted"\nmodel_provider = "scripted"\n{provider}{server}')
    return ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT], {}


def opencode(_home, model, target):
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{model}/v1", "apiKey": "scripted"}, "models": {"m": {"name": "m"}}}
    config = {
        "model": "scripted/m", "small_model": "scripted/m", "autoupdate": False, "share": "disabled", "provider": {"scripted": provider},
        "mcp": {"tickets": {"type": "local", "command": target, "enabled": True, "timeout": 120_000}},
    }
    Path("opencode.json").write_text(json.dumps(config))
    return ["run", PROMPT], {}


def gemini(home, model, target):
    (home / ".gemini").mkdir()
    settings = {
        "mcpServers": {"tickets": {"command": target[0], "args": target[1:], "trust": True, "timeout": 120_000}},
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return ["-y", "-m", "gemini-2.5-flash", "-p", PROMPT], {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": model, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


CONFIGURE = {"Claude Code": claude_code, "Codex": codex, "opencode": opencode, "Gemini CLI": gemini}

if __name__ == "__main__":
    sys.exit(within(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])))
