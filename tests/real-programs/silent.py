"""Clients of Python's `mcp` 1 give a call up without a word to the server when their time-out ends, and agents call again."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cells import GATEWAY, OK, Person, environment, run, short
from programs import as_line, asks, got

#: Seconds after which the client gives up, and after which the person answers.
PATIENCE, THINKING = 5, 8
TIMES = 8
SERVERS = ("mcp 2 (Python)", "@modelcontextprotocol/server 2")


@dataclass
class GaveUp:
    client: str
    server: str
    result: str
    commit: str = ""


def play_all(rig, pairs):
    """Plays such a client before a server that pushes, and before one of both eras, where these are among the pairs to try."""
    played = []
    for server, client in pairs:
        if client.name == "mcp 1 (Python)" and server.name in SERVERS:
            version = rig.packages.version(client.packages, client.package)
            played.append(GaveUp(f"{client.name} ({version}), {PATIENCE} s", server.name, play(rig, client, server)))
    return played


def play(rig, client, server):
    """Makes the same call until its result comes. The question has to be answered once, and the work done once."""
    with tempfile.TemporaryDirectory(prefix="real-programs-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "home").mkdir()
        state, call = folder / "state", asks("book")
        line = as_line(call, PATIENCE) | {"times": TIMES, "until": '"accept"'}
        env = environment(folder / "home") | {"PATIENCE": str(PATIENCE)}
        target = [rig.program, *GATEWAY, "--state", str(state), "--", *rig.server(server, folder)]
        with Person(rig.program, state, [call], env, THINKING) as person:
            lines, said = run([*rig.client(client), "--no-capability", "--calls", json.dumps([line]), "--", *target], env, 120, folder)
        text = next((line["text"] for line in lines if "text" in line), said)
        effects = folder / "effects"
        done = len(effects.read_text().splitlines()) if effects.exists() else 0
        if got(text, call) and done == 1 and len(person.answered) == 1:
            return OK
        return short(f"asked {len(person.answered)} times, done {done} times: {text}")
