"""What an agent of a framework can be before a server that asks, each played once with one framework's client.

- It asks itself: its handler answers, and the server gets that answer.
- It cannot ask: the call is handed back, the person answers, the same call again gets the result.
- It dies between the question and the answer: the answer is kept for the same call, and no other call gets it.
- It has its own defaults: how long it waits for a call, and what comes of a question that is answered after that.
"""

import contextlib
import json
import queue
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from cells import GATEWAY, OK, end, environment, short
from programs import SERVERS, Server

#: Seconds in which a client has to be ready, a question has to appear, and a call of a client that waits has to end.
READY, SOON, CALL = 180, 60, 100
#: Seconds for which a client is watched that never gets a result. The longest default that was seen is 300.
WATCHED = 320
#: A call is handed back after two seconds, so that no run waits for the default.
HOLD = ("--hold", "2")

ROUNDS = ("--server-revision", "2026-07-28")
REFUNDS = {
    "pushed": Server("refunds, pushed", "mcp2", "fastmcp", ["{python}", "{here}/refund_server.py", "{effects}"], []),
    "rounds": Server("refunds, rounds", "node", "@modelcontextprotocol/server", ["{node}", "{home}/refund_server.mjs", "{effects}"], [], gateway=ROUNDS),
}
#: Starts within five seconds also on a busy machine, which is as long as one framework waits for it.
DEFAULTS = replace(REFUNDS["rounds"], gateway=())
SILENT = Server("silent", "mcp2", "mcp", ["{python}", "{here}/silent_server.py", "{effects}"], [])


def asking(name, tool, rename="", **more):
    """Returns a server of the other tables with the one call that is made here."""
    server = next(server for server in SERVERS if server.name == name)
    return replace(server, name=rename or name, calls=[call for call in server.calls if call.tool == tool], **more)


ASKING = [
    asking("FastMCP 4", "book"),
    asking("@modelcontextprotocol/sdk 1", "book"),
    asking("rmcp (mcp-elicit demo-server)", "deploy"),
    asking("@modelcontextprotocol/server 2", "book", "@modelcontextprotocol/server 2, 2026-07-28", gateway=ROUNDS),
]


class Failed(Exception):
    """A role did not come to its end."""


@dataclass
class Played:
    """What became of one framework. Each role has `ok` or what happened; None was not played."""

    name: str
    version: str
    #: For each server: without the gateway, and with it.
    itself: dict[str, tuple[str, str]] = field(default_factory=dict)
    cannot: dict[str, str] = field(default_factory=dict)
    dies: dict[str, str] = field(default_factory=dict)
    #: Seconds after which a call of a silent server ended, and how often it was made.
    waits: tuple[int, int] | None = None
    #: What came first with the defaults of both, and what came of the answer.
    first: str = ""
    defaults: str = ""
    commit: str = ""

    @property
    def failures(self):
        """Returns one line for each failure that is the gateway's."""
        named = [(f"cannot ask, {era}", result) for era, result in self.cannot.items()] + [(f"dies, {era}", result) for era, result in self.dies.items()]
        named += [(f"itself, {server}", through) for server, (direct, through) in self.itself.items() if direct == OK]
        named += [("its defaults", self.defaults)] if self.defaults else []
        return [f"{what}: {result}" for what, result in named if result != OK]


class Inbox:
    """The questions of a state folder, as they come, and their answers."""

    def __init__(self, program, state, env):
        self.program, self.state, self.env = program, str(state), env
        self.questions = queue.Queue()
        self.seen = set()

    def __enter__(self):
        Path(self.state).mkdir(exist_ok=True, mode=0o700)
        command = [self.program, "inbox", "watch", "--json", "--state", self.state]
        self.watch = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.watch.kill()
        self.watch.wait()

    def _read(self):
        for line in self.watch.stdout:
            question = json.loads(line) if line.startswith("{") else {}
            if "id" in question and question["id"] not in self.seen:
                self.seen.add(question["id"])
                self.questions.put(question)

    def next(self, order):
        """Returns the id of the next question, which has to be about this order."""
        try:
            question = self.questions.get(timeout=SOON)
        except queue.Empty:
            raise Failed("no question came to the inbox") from None
        if order not in question["message"]:
            raise Failed(f"another question came: {question['message']}")
        return question["id"]

    def accept(self, question, reason):
        command = [self.program, "inbox", "accept", "--state", self.state, question, json.dumps({"reason": reason})]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=SOON)
        if "cannot be reached" in done.stderr:
            # The gateway that served the inbox has just ended with its client: a person types the command again.
            done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=SOON)
        if done.returncode:
            raise Failed(f"the answer was not taken: {done.stderr}")


class Agent:
    """A running client of a framework, which makes each call when it is told to."""

    def __init__(self, command, env, folder):
        self.stderr = open(folder / "stderr", "a+")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.stderr}
        self.process = subprocess.Popen(command, env=env, cwd=folder, text=True, start_new_session=True, **pipes)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        opened = self._line(READY)
        if "tools" not in opened:
            raise Failed(f"could not start: {opened.get('error')}")
        return self

    def __exit__(self, *_):
        # Before the process is waited for: its number stands for nothing else until then.
        end(self.process)
        self.process.wait()
        self.stderr.close()

    def kill(self):
        """Ends the client alone: what it started learns of it as it would of a crash."""
        self.process.kill()

    def begin(self, order, seconds=CALL):
        line = {"tool": "refund", "arguments": {"order": order}, "seconds": seconds}
        print(json.dumps(line), file=self.process.stdin, flush=True)

    def result(self, seconds=CALL):
        """Returns the line of the call at work."""
        return self._line(seconds + SOON)

    def call(self, order):
        self.begin(order)
        return self.result()["text"]

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def _line(self, seconds):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"nothing came for {seconds} s") from None
        if line is None:
            self.stderr.seek(0)
            raise Failed(f"the client ended: {(self.stderr.read().strip().splitlines() or ['no word'])[-1]}")
        return line


class Place:
    """A folder for one role: the server's effects, the gateway's state, and the person's home."""

    def __init__(self, rig, client, server, folder):
        self.rig, self.client, self.folder = rig, client, folder
        (folder / "home").mkdir()
        self.env = environment(folder / "home") | client.env
        self.server, self.gateway = rig.server(server, folder), server.gateway

    def agent(self, *options, limit=None, through=True):
        state = ["--state", str(self.folder / "state")]
        target = [self.rig.program, *GATEWAY, *self.gateway, *options, *state, "--", *self.server] if through else self.server
        words = ["--no-capability", *(["--limit", str(limit)] if limit is not None else []), "--", *target]
        return Agent([*self.rig.client(self.client), *words], self.env, self.folder)

    def inbox(self):
        return Inbox(self.rig.program, self.folder / "state", self.env)

    def effects(self):
        file = self.folder / "effects"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextlib.contextmanager
def place(rig, client, server):
    with tempfile.TemporaryDirectory(prefix="real-programs-", ignore_cleanup_errors=True) as name:
        yield Place(rig, client, server, Path(name))


def told(role):
    """Makes a role return `ok` or what went wrong."""

    def play(*given):
        try:
            role(*given)
        except (Failed, subprocess.TimeoutExpired, OSError) as failure:
            return short(failure)
        return OK

    return play


def must(condition, text):
    if not condition:
        raise Failed(text)


def itself(rig, client, server):
    """The client's own handler answers: without the gateway, and with it."""
    def play(through):
        session = rig.play(server, client, server.calls, through=through, asked_in_client=True)
        return next(iter(session.results.values()))

    return play(through=False), play(through=True)


@told
def cannot_ask(rig, client, era):
    with place(rig, client, REFUNDS[era]) as here, here.inbox() as inbox, here.agent(*HOLD) as agent:
        agent.begin("A1")
        question = inbox.next("A1")
        first = agent.result()["text"]
        must("Not done yet" in first, f"not handed back: {first}")
        inbox.accept(question, "late")
        again = agent.call("A1")
        must("refunded A1: late" in again, f"called again: {again}")
        must(here.effects() == [{"order": "A1", "reason": "late"}], f"the work: {here.effects()}")
        must(len(inbox.seen) == 1, f"{len(inbox.seen)} questions")


@told
def dies(rig, client, era):
    with place(rig, client, REFUNDS[era]) as here, here.inbox() as inbox:
        with here.agent() as agent:
            agent.begin("A1")
            first = inbox.next("A1")
            agent.kill()
        inbox.accept(first, "first")
        with here.agent() as agent:
            agent.begin("B2")
            inbox.accept(inbox.next("B2"), "second")
            other = agent.result()["text"]
            must("refunded B2: second" in other, f"another call: {other}")
            again = agent.call("A1")
            must("refunded A1: first" in again, f"the same call: {again}")
        must(here.effects() == [{"order": "B2", "reason": "second"}, {"order": "A1", "reason": "first"}], f"the work: {here.effects()}")
        must(len(inbox.seen) == 2, f"{len(inbox.seen)} questions")


def waits(rig, client):
    """Returns after how many seconds a call of a silent server ends, and how often it was made."""
    with place(rig, client, SILENT) as here, here.agent(limit=0, through=False) as agent:
        agent.begin("A1", WATCHED)
        took = round(agent.result(WATCHED)["took"])
        return took, len(here.effects())


def with_defaults(rig, client):
    """The person answers once the first call has ended. Returns how it ended, and what came of the answer."""
    ended = [""]

    @told
    def play():
        with place(rig, client, DEFAULTS) as here, here.inbox() as inbox, here.agent(limit=0) as agent:
            agent.begin("A1")
            question = inbox.next("A1")
            first = agent.result()
            how = "handed back" if "Not done yet" in first["text"] else "given up"
            ended[0] = f"{how} after {round(first['took'])} s"
            inbox.accept(question, "late")
            again = agent.call("A1")
            must("refunded A1: late" in again, f"called again: {again}")
            must(here.effects() == [{"order": "A1", "reason": "late"}], f"the work: {here.effects()}")
            must(len(inbox.seen) == 1, f"{len(inbox.seen)} questions")

    came = play()
    return ended[0], came
