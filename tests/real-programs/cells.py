"""Runs one client before one server: directly, and with the gateway between them."""

import contextlib
import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from packages import HERE
from programs import as_line, got

#: Longest time of one call, without and with the gateway, and of starting both programs.
DIRECT, THROUGH, START = 15, 40, 60
GATEWAY = ["gateway", "--inbox", "127.0.0.1:0", "--questions-per-minute", "off"]
OK = "ok"


@dataclass
class Session:
    """What became of each call of one session."""

    results: dict[str, str] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)
    protocol: str | None = None


class Rig:
    def __init__(self, program, packages):
        self.program, self.packages = str(program), packages

    def server(self, server, folder):
        """Returns the server's command line, its files written to `folder`."""
        home = self.packages.folder(server.packages) if server.packages else ""
        is_python = server.packages and (home / "bin/python").exists()
        words = {
            "program": self.program, "here": HERE / "servers", "home": home, "folder": folder, "effects": folder / "effects",
            "python": home / "bin/python" if is_python else "", "node": self.packages.node(server.packages) if server.packages and not is_python else "",
        }
        for name, text in server.files.items():
            (folder / name).write_text(text.format(**words))
        return [word.format(**words) for word in server.command]

    def client(self, client):
        """Returns the client's command line."""
        if client.script.endswith(".py"):
            return [self.packages.python(client.packages), str(HERE / "clients" / client.script)]
        home = self.packages.folder(client.packages)
        return [self.packages.node(client.packages), str(home / client.script)]

    def play(self, server, client, calls, through, asked_in_client):
        """Makes these calls in one session, and returns what became of each. One that could not begin, as on a busy machine, is begun again."""
        session = self._session(server, client, calls, through, asked_in_client)
        return session if session.tools else self._session(server, client, calls, through, asked_in_client)

    def _session(self, server, client, calls, through, asked_in_client):
        with tempfile.TemporaryDirectory(prefix="real-programs-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            (folder / "home").mkdir()
            target = self.server(server, folder)
            state = folder / "state"
            if through:
                target = [self.program, *GATEWAY, *server.gateway, "--state", str(state), "--", *target]
            seconds = THROUGH if through else DIRECT
            command = self.client(client)
            command += [] if asked_in_client else ["--no-capability"]
            command += ["--revision", client.revision, "--calls", json.dumps([as_line(call, seconds) for call in calls]), "--", *target]
            env = environment(folder / "home") | client.env
            with Person(self.program, state, calls, env) if through else contextlib.nullcontext() as person:
                lines, trouble = run(command, env, START + seconds * len(calls), folder)
            inbox = person.answered if through else []
            return judge(calls, lines, trouble, inbox, through, asked_in_client, folder / "effects")


def environment(home):
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "NO_COLOR": "1"}


def run(command, env, seconds, folder):
    """Returns the lines of JSON that the command writes, and why it wrote no more."""
    with open(folder / "stderr", "w+") as stderr:
        process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end(process)
            output, _ = process.communicate()
        end(process)
        stderr.seek(0)
        said = stderr.read().strip().splitlines()
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return lines, said[-1] if said else "no result"


def end(process):
    """Ends the whole group: a client may leave its server behind."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass


def judge(calls, lines, trouble, inbox, through, asked_in_client, effects):
    """Compares what each call came to with what it had to come to."""
    session = Session()
    if lines and "tools" in lines[0]:
        session.protocol, session.tools = lines[0].get("protocol"), lines[0]["tools"]
    broken = next((line["error"] for line in lines if "error" in line), trouble)
    told = {line["tool"]: line for line in lines if "tool" in line}
    done = [json.loads(line)["kind"] for line in effects.read_text().splitlines()] if effects.exists() else []
    for call in calls:
        session.results[call.tool] = verdict(call, told.get(call.tool), broken, done, sum(tool == call.tool for tool in inbox), asked_in_client)
    return session


def verdict(call, line, broken, done, in_inbox, asked_in_client):
    if line is None:
        return f"not called: {short(broken)}"
    if not got(line["text"], call):
        return short(line["text"]) or "an empty result"
    wanted = len(call.answers)
    asked = (line["asked"], in_inbox)
    if asked != ((wanted, 0) if asked_in_client else (0, wanted)):
        return f"asked {asked[0]} times in the client and {asked[1]} times in the inbox"
    if call.counted and done.count(call.tool) != 1:
        return f"the work was done {done.count(call.tool)} times"
    return OK


def short(text):
    """Returns the beginning of a text, in one line that fits a table."""
    line = " ".join(str(text).split()).replace("|", "/")
    return line if len(line) <= 100 else line[:97] + "..."


class Person:
    """Answers each question of an inbox with `mcp-elicit inbox accept` or `decline`."""

    def __init__(self, program, state, calls, env, seconds=0):
        self.program, self.state, self.calls, self.env, self.seconds = program, str(state), calls, env, seconds
        self.answered = []
        self.refused = []

    def __enter__(self):
        Path(self.state).mkdir(exist_ok=True, mode=0o700)
        self.watch = subprocess.Popen(
            [self.program, "inbox", "watch", "--json", "--state", self.state], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.thread = threading.Thread(target=self._answer_all, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.watch.kill()
        self.watch.wait()
        # What was answered last may still be on its way into the list.
        self.thread.join(30)

    def _answer_all(self):
        for line in self.watch.stdout:
            question = json.loads(line) if line.startswith("{") else {}
            if "id" in question and not question.get("askedInClient"):
                self._answer(question)

    def _answer(self, question):
        call = self._call(question)
        time.sleep(self.seconds)
        at = self.answered.count(call.tool) if call else 0
        content = call.answers[at] if call and at < len(call.answers) else None
        if content is None:
            done = self._inbox("decline", question["id"])
        else:
            done = self._inbox("accept", question["id"], json.dumps(content))
        if done.returncode == 0:
            self.answered.append(call.tool if call else None)
        else:
            self.refused.append(done.stderr.strip())

    def _call(self, question):
        """Returns the call that asks, by the gateway's word or, before a server without that, by the message."""
        message = question["message"]
        named = (call for call in self.calls if message.endswith(f": {call.tool}"))
        aimed = (call for call in self.calls if question.get("target") == call.tool)
        return next(named, None) or next(aimed, None)

    def _inbox(self, *words):
        command = [self.program, "inbox", words[0], "--state", self.state, *words[1:]]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=30)
