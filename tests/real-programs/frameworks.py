#!/usr/bin/env python3
"""Frameworks for agents, without a model, before servers that ask, with the gateway between them.

Installs the pinned packages, plays each role of roles.py with each framework, and prints the table of docs/agents.md. A role
that fails through the gateway makes it fail. `--help` lists the options.
"""

import argparse
import concurrent.futures
import os
import pickle
import platform
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import roles
import table
from cells import OK, Rig
from packages import HERE, Absent, Packages
from programs import Client
from run import ROOT, target_folder

PAGE = ROOT / "docs" / "agents.md"
BEGIN, END = "<!-- written by `just frameworks` from here -->", "<!-- to here -->"


@dataclass
class Framework:
    client: Client
    #: The name of its handler for questions, if it has one.
    handler: str
    #: What a person sets, beside the command.
    set: str


def framework(name, packages, package, script, handler="", set="", **more):
    return Framework(Client(name, packages, package, script, can_ask=bool(handler), **more), handler, set)


FRAMEWORKS = [
    framework("LangChain, MCPAdapter", "frameworks-2", "langchain", "langchain_mcp.py", "`interrupt()` of the graph", "nothing; to ask in the inbox, see below"),
    framework("langchain-mcp-adapters", "frameworks-1", "langchain-mcp-adapters", "langchain_adapters.py", "`Callbacks(on_elicitation=..)`", "nothing"),
    framework("OpenAI Agents SDK", "frameworks-2", "openai-agents", "openai_agents.py", set="`client_session_timeout_seconds=120`"),
    framework("Google ADK", "mcp2", "google-adk", "adk.py", "`elicitation_callback`", "`timeout=120` of `StdioConnectionParams`"),
    framework("Strands Agents", "frameworks-2", "strands-agents", "strands_py.py", "`elicitation_callback`", "nothing"),
    framework("Strands Agents (npm)", "node-more", "@strands-agents/sdk", "strands.mjs", "`elicitationCallback`", "nothing"),
    framework("Pydantic AI", "frameworks-2", "pydantic-ai-slim", "pydantic_ai_client.py", "`elicitation_handler`", "nothing; `init_timeout` if the server starts slowly"),
    framework("CrewAI", "frameworks-crewai", "crewai", "crewai_client.py", set="nothing"),
    framework("Microsoft Agent Framework", "frameworks-2", "agent-framework-core", "agent_framework_client.py", set="nothing"),
    framework("AI SDK 2", "node", "@ai-sdk/mcp", "aisdk.mjs", "`onElicitationRequest`", "nothing"),
    framework("Mastra 2", "mastra-2", "@mastra/mcp", "mastra.mjs", "`inputRequests` of the server", "`timeout: 120_000`"),
    framework("LlamaIndex", "mcp2", "llama-index-tools-mcp", "llamaindex.py", set="`timeout=120`"),
    framework("Semantic Kernel", "mcp1-more", "semantic-kernel", "semantic_kernel_client.py", set="nothing"),
    framework("Agno", "mcp2", "agno", "agno_client.py", set="`timeout_seconds=120`"),
]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=target_folder() / "debug" / "mcp-elicit", help="the built mcp-elicit")
    parser.add_argument("--cache", type=Path, default=target_folder() / "real-programs", help="where the packages are installed")
    parser.add_argument("--have", action="append", default=[], metavar="SET=FOLDER", help="a set of packages that is installed elsewhere")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="frameworks at a time")
    parser.add_argument("--framework", action="append", default=[], help="only frameworks whose name contains this")
    parser.add_argument("--part", choices=["all", "roles", "limits"], default="all", help="what is played; the limits take minutes")
    parser.add_argument("--keep", action="store_true", help="take what is not played from the last run's results")
    parser.add_argument("--verbose", action="store_true", help="say what everything came to that is not ok, without the gateway too")
    parser.add_argument("--write", action="store_true", help="write the table and the configurations into docs/agents.md")
    parser.add_argument("--check-page", action="store_true", help="only compare the page's configurations with those that are run")
    return parser.parse_args()


def play(rig, one, part, known):
    """Plays the roles of one framework; what is not played is as it is known."""
    started, client = time.monotonic(), one.client
    played = replace(known) if known else roles.Played(client.name, "")
    played.version, played.commit = rig.packages.version(client.packages, client.package), table.commit(ROOT)
    if part != "limits":
        played.itself = {server.name: roles.itself(rig, client, server) for server in roles.ASKING} if client.can_ask else {}
        played.cannot = {era: roles.cannot_ask(rig, client, era) for era in roles.REFUNDS}
        played.dies = {era: roles.dies(rig, client, era) for era in roles.REFUNDS}
    if part != "roles":
        played.first, played.defaults = roles.with_defaults(rig, client)
    print(f"{client.name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return played


def measure(rig, one):
    """Returns how long this framework waits; these runs wait most of their time, so all run at once."""
    try:
        return roles.waits(rig, one.client)
    except roles.Failed as why:
        print(f"{one.client.name}: the time limit: {why}", file=sys.stderr, flush=True)
        return None


def install(rig, chosen, absent):
    """Returns those frameworks whose packages can be installed here, and the servers' packages too."""
    here = []
    for one in chosen:
        try:
            for name in (one.client.packages, "mcp2", "node"):
                if not (rig.packages.folder(name) / "bin/python").exists():
                    rig.packages.node(name)
            here.append(one)
        except Absent as why:
            absent.append(f"{one.client.name}: {why}")
    return here


def cell(results):
    """Returns `ok` if all are, or those that are not."""
    bad = {name: result for name, result in results.items() if result != OK}
    return OK if not bad else "; ".join(f"{name}: {result}" for name, result in bad.items())


def counted(played, at):
    """Returns how many servers were answered by the framework's handler, and which were not."""
    failed = [server for server, results in played.itself.items() if results[at] != OK]
    good = f"{len(played.itself) - len(failed)}/{len(played.itself)}"
    return f"{good}, not {', '.join(failed)}" if failed else good


def waited(played):
    if played.waits is None:
        return ""
    seconds, times = played.waits
    if seconds >= roles.WATCHED:
        return f"more than {roles.WATCHED} s"
    return f"{seconds} s, {times} tries" if times > 1 else f"{seconds} s"


def markdown(results, absent):
    """Returns the tables."""
    head = ["framework", "version", "its handler for questions", "waits for a call", "set", "cannot ask", "dies", "with its defaults"]
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for one in FRAMEWORKS:
        played = results.get(one.client.name)
        if played is None:
            continue
        defaults = f"{played.first}, then {played.defaults}" if played.first else played.defaults
        cells = [played.name, played.version, one.handler or "none", waited(played), one.set, cell(played.cannot), cell(played.dies), defaults]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Where the framework's own handler answers, instead of the inbox:", ""]
    lines += ["| framework | directly | through the gateway |", "| --- | --- | --- |"]
    asked = [results[one.client.name] for one in FRAMEWORKS if one.client.name in results and results[one.client.name].itself]
    lines += [f"| {played.name} | {counted(played, 0)} | {counted(played, 1)} |" for played in asked]
    if absent:
        lines += ["", "Not run here: " + "; ".join(absent) + "."]
    return "\n".join(lines)


#: What stands in a client for what a reader writes.
WRITTEN = [
    (r"plan\.command", "COMMAND"), (r"plan\.args", "ARGS"),
    (r",? ?\benv=plan\.env", ""), (r', "env": plan\.env', ""), (r" env: process\.env,", ""),
    (r"\*\*plan\.limited\(\"(\w+)\"\)", r"\1=120"),
    (r', "session_kwargs": limit', ""), (r", callbacks=callbacks", ""), (r" \.\.\.limit, \.\.\.handler", " timeout: 120_000"),
    (r", elicitation_(callback|handler)=answer if plan\.capable else None", ""), (r", \*\*more", ""),
    (r"  # noqa: E402", ""), (r"MCPAdapter, ", ""), (r', llm=NoModel\(model="none"\)', ""), (r"await create\(", "await createMCPClient("),
    (r"\n *capabilities: plan\.capable .*", ""), (r"\n *\.\.\.\(plan\.capable .*", ""), (r", stderr: 'ignore'", ""),
]


def shown(script):
    """Returns the lines of a client that docs/agents.md shows, as a reader writes them."""
    text = (HERE / "clients" / script).read_text()
    parts = re.findall(r"^( *)(?:#|//) begin\n(.*?)^ *(?:#|//) end$", text, re.M | re.S)
    blocks = ["\n".join(line.removeprefix(indent) for line in part.splitlines()) for indent, part in parts]
    imports = [block for block in blocks if block.startswith(("from ", "import "))]
    code = "\n".join([*imports, *([""] if imports else []), *(block for block in blocks if block not in imports)])
    for pattern, instead in WRITTEN:
        code = re.sub(pattern, instead, code)
    return f"```{'python' if script.endswith('.py') else 'js'}\n{code}\n```"


def page_with(results, absent):
    """Returns the page, with its table and configurations written anew."""
    text = PAGE.read_text()
    if results:
        before, rest = text.split(BEGIN)
        commits = sorted({played.commit for played in results.values()})
        run = f"Run on {time.strftime('%Y-%m-%d')}, commit {' and '.join(commits)}, python {platform.python_version()}, {platform.system()}."
        text = f"{before}{BEGIN}\n\n{run}\n\n{markdown(results, absent)}\n\n{END}{rest.split(END)[1]}"
    return re.sub(r"(<!-- (\w+\.\w+) -->\n)```\w+\n.*?```", lambda found: found[1] + shown(found[2]), text, flags=re.S)


def stored(given):
    file = given.cache / "frameworks.pickle"
    return pickle.loads(file.read_bytes()) if file.exists() else {}


def store(given, results):
    (given.cache / "frameworks.pickle").write_bytes(pickle.dumps(results))


def main():
    given = options()
    if given.check_page:
        sys.exit(0 if page_with({}, []) == PAGE.read_text() else "docs/agents.md shows other lines than those that are run: just frameworks --write")
    if not given.program.is_file():
        sys.exit(f"{given.program} is not built: cargo build -p mcp-elicit --features full")
    started, absent = time.monotonic(), []
    rig = Rig(given.program.resolve(), Packages(given.cache, given.have))
    wanted = [one for one in FRAMEWORKS if not given.framework or any(word in one.client.name for word in given.framework)]
    chosen = install(rig, wanted, absent)
    print(f"installed in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    results = stored(given) if given.keep else {}
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool, concurrent.futures.ThreadPoolExecutor(len(FRAMEWORKS)) as waiting:
        limits = {one.client.name: waiting.submit(measure, rig, one) for one in chosen if given.part != "roles"}
        work = [pool.submit(play, rig, one, given.part, results.get(one.client.name)) for one in chosen]
        for done in concurrent.futures.as_completed(work):
            played = done.result()
            results[played.name] = played
            store(given, results)
            print(f"{played.name} {played.version}: {'; '.join(played.failures) or OK}", file=sys.stderr, flush=True)
            if given.verbose:
                print("\n".join(f"    {server}: {direct}; {through}" for server, (direct, through) in played.itself.items()), file=sys.stderr, flush=True)
        for name, limit in limits.items():
            results[name].waits = limit.result()
    store(given, results)
    print(markdown(results, absent))
    print(f"{time.monotonic() - started:.0f} s in all", file=sys.stderr)
    if given.write:
        PAGE.write_text(page_with(results, absent))
    broken = [failure for played in results.values() for failure in played.failures]
    if broken:
        sys.exit(f"{len(broken)} roles fail through the gateway")


if __name__ == "__main__":
    main()
