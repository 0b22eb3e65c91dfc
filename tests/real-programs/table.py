"""The verdict on each pair of a server and a client, and the table of all."""

import platform
import re
import subprocess
import time
from dataclasses import dataclass, field

from cells import OK, Session
from programs import CHECK_ARGUMENTS

BEGIN, END = "<!-- written by `just real-programs` from here -->", "<!-- to here -->"


@dataclass
class Row:
    server: str
    client: str
    direct: Session = field(default_factory=Session)
    in_client: Session | None = None
    in_inbox: Session = field(default_factory=Session)
    #: The commit that was tried.
    commit: str = ""
    #: What works directly and fails through the gateway: `wiring: tool: what happened`.
    broken: list[str] = field(default_factory=list)
    #: Tools that work only through the gateway.
    gained: list[str] = field(default_factory=list)


def judge(rows):
    """Fills in the verdicts. A question has to reach the inbox if any client could answer it directly."""
    for row in rows:
        row.broken, row.gained = [], []
        same = [other for other in rows if other.server == row.server]
        possible = {tool for other in same for session in (other.direct, other.in_client) if session for tool, result in session.results.items() if result == OK}
        for wiring, session in (("in the client", row.in_client), ("in the inbox", row.in_inbox)):
            if session is None:
                continue
            for tool, result in session.results.items():
                direct = row.direct.results.get(tool)
                refused = tool == "greet" and row.client in CHECK_ARGUMENTS
                must = direct == OK if wiring == "in the client" else tool in possible and not refused
                if must and result != OK:
                    row.broken.append(f"{wiring}: {tool}: {result}")
                elif result == OK and direct != OK and tool not in row.gained:
                    row.gained.append(tool)
            missing = set(row.direct.tools) - set(session.tools)
            if missing and not any(text.startswith("not called") for text in session.results.values()):
                row.broken.append(f"{wiring}: not listed: {', '.join(sorted(missing))}")


def line(row):
    """Returns one line on a finished pair."""
    return f"{row.server} x {row.client}: " + ", ".join(f"{name} {count(session)}" for name, session in columns(row))


def columns(row):
    return (("direct", row.direct), ("client", row.in_client), ("inbox", row.in_inbox))


def count(session):
    if session is None:
        return "-"
    good = sum(result == OK for result in session.results.values())
    return f"{good}/{len(session.results)}"


def counted(session):
    """Returns a cell: how many calls worked, and the tools of those that did not."""
    if session is None:
        return "cannot be asked"
    failed = [tool for tool, result in session.results.items() if result != OK]
    return count(session) if not failed or len(failed) == len(session.results) else f"{count(session)}, not {', '.join(failed)}"


def eras(row):
    direct = row.direct.protocol or "?"
    through = (row.in_client or row.in_inbox).protocol or "?"
    return "" if direct == through == "?" else direct if direct == through else f"{direct}; {through}"


def markdown(rows, gave_up, agents, versions, absent):
    """Returns the tables."""
    parts = []
    if rows:
        calls = sum(len(session.results) for row in rows for _, session in columns(row) if session)
        broken = sum(bool(row.broken) for row in rows)
        parts.append(f"{len(rows)} pairs, {calls} calls; {broken} pairs work without the gateway and fail with it.\n")
    for server in dict.fromkeys(row.server for row in rows):
        parts += [f"### {server} {versions[server]}\n"]
        parts += ["| client | revision | directly | through: asked in the client | through: asked in the inbox | only through |", "| --- | --- | --- | --- | --- | --- |"]
        for row in (row for row in rows if row.server == server):
            cells = [f"{row.client} ({versions[row.client]})", eras(row), *(counted(session) for _, session in columns(row)), ", ".join(row.gained)]
            if not row.in_client:
                cells[2] = f"{cells[2]} without a question" if row.direct.results else "no call without a question"
            parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    problems = grouped(rows)
    if problems:
        parts += ["### Works directly and fails through the gateway\n", *problems, ""]
    if gave_up:
        parts += ["### Clients that give a call up without a word, and call again\n", "| client | server | answered in the inbox after it gave up |", "| --- | --- | --- |"]
        parts += [f"| {one.client} | {one.server} | {one.result} |" for one in gave_up] + [""]
    if agents:
        parts += ["### Agents\n", "| agent | server | directly | through the gateway, answered in the inbox |", "| --- | --- | --- | --- |"]
        parts += [f"| {agent.name} ({agent.version}) | {agent.server} | {agent.direct} | {agent.result} |" for agent in agents] + [""]
    if absent:
        parts += ["Not run here: " + "; ".join(absent) + ".", ""]
    return "\n".join(parts)


def grouped(rows):
    """Returns one line for each problem of a server, with the clients that have it."""
    problems = {}
    for row in rows:
        for text in row.broken:
            problems.setdefault((row.server, text), []).append(row.client)
    return [f"- {server}, {text} ({', '.join(clients)})" for (server, text), clients in problems.items()]


def failures(row):
    """Returns one line for each call that failed."""
    return [f"    {name}: {tool}: {result}" for name, session in columns(row) if session for tool, result in session.results.items() if result != OK]


def own_version(root):
    """Returns the version of rmcp in the lock file, on which this project's demo server is built."""
    lock = (root / "Cargo.lock").read_text()
    return re.search(r'name = "rmcp"\nversion = "([^"]+)"', lock)[1]


def commit(root):
    """Returns the commit that is checked out."""
    return subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=root, capture_output=True, text=True).stdout.strip()


def write(page, text, commits, marks=(BEGIN, END)):
    """Replaces the generated part of the page, which is between these marks."""
    begin, end = marks
    before, rest = page.read_text().split(begin)
    after = rest.split(end)[1]
    run = f"Run on {time.strftime('%Y-%m-%d')}, commit {' and '.join(sorted(commits))}, python {platform.python_version()}, {platform.system()}."
    page.write_text(f"{before}{begin}\n\n{run}\n\n{text}\n{end}{after}")
