#!/usr/bin/env python3
"""Counts the instructions of a gateway's process for one call, and for one question, over stdio (valgrind --tool=callgrind).

    crates/speed/instructions.py PROGRAM..

Each PROGRAM is an `mcp-elicit`; with several, each is compared with the first. A figure is the difference of 320 calls one at a
time and 20, divided by 300. The server and the client are this file."""

import json
import os
import re
import subprocess
import sys
import tempfile

FEW, MANY = 20, 320
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "ok": {"type": "boolean"},
    },
    "required": ["name"],
}


def write(stream, message):
    stream.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
    stream.flush()


def serve():
    """A server with the tools `plain` and `ask`."""
    waiting = {}
    for line in sys.stdin:
        message = json.loads(line)
        method, key = message.get("method"), message.get("id")
        if method == "initialize":
            info = {"name": "raw", "version": "1"}
            write(sys.stdout, {"id": key, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}})
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("plain", "ask")]
            write(sys.stdout, {"id": key, "result": {"tools": tools}})
        elif method == "tools/call" and message["params"]["name"] == "plain":
            write(sys.stdout, {"id": key, "result": {"content": [{"type": "text", "text": "x" * 100}]}})
        elif method == "tools/call":
            question = f"q{key}"
            waiting[question] = key
            write(sys.stdout, {"id": question, "method": "elicitation/create", "params": {"message": "Deploy?", "requestedSchema": FORM}})
        elif method is None and key in waiting:
            text = json.dumps(message.get("result"))
            write(sys.stdout, {"id": waiting.pop(key), "result": {"content": [{"type": "text", "text": text}]}})
        elif key is not None:
            write(sys.stdout, {"id": key, "error": {"code": -32601, "message": "no such method"}})


def instructions(program, tool, calls):
    with tempfile.TemporaryDirectory() as folder:
        counted, said = os.path.join(folder, "callgrind"), os.path.join(folder, "stderr")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counted}", program, "gateway"]
        command += ["--state", os.path.join(folder, "state"), "--inbox", "127.0.0.1:0", "--questions-per-minute", "off"]
        command += ["--", sys.executable, os.path.abspath(__file__), "--serve"]
        environment = {**os.environ, "MCP_ELICIT_LOG": "off", "TOKIO_WORKER_THREADS": "1"}
        with open(said, "w") as stderr:
            gateway = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment)
        try:
            drive(gateway, tool, calls)
        except Exception as error:
            gateway.kill()
            sys.exit(f"{program}: {error!r}\n{open(said).read()}")
        gateway.stdin.close()
        gateway.wait()
        return int(re.search(r"^(?:summary|totals): (\d+)", open(counted).read(), re.M).group(1))


def drive(gateway, tool, calls):
    """A client that makes these calls one at a time and answers each question at once."""

    def read():
        line = gateway.stdout.readline()
        if not line:
            raise EOFError("the gateway ended")
        return json.loads(line)

    client = {"name": "instructions", "version": "1"}
    capabilities = {"elicitation": {}}
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
    write(gateway.stdin, {"id": 0, "method": "initialize", "params": params})
    while read().get("id") != 0:
        pass
    write(gateway.stdin, {"method": "notifications/initialized"})
    for key in range(1, calls + 1):
        write(gateway.stdin, {"id": key, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
        asked = 0
        while True:
            message = read()
            if message.get("method") == "elicitation/create":
                asked += 1
                content = {"name": "ada", "count": 3, "ok": True}
                write(gateway.stdin, {"id": message["id"], "result": {"action": "accept", "content": content}})
            elif message.get("id") == key and "method" not in message:
                text = message["result"]["content"][0]["text"]
                assert asked == (tool == "ask") and ('"accept"' in text) == (tool == "ask"), message
                break


def main():
    if sys.argv[1:] == ["--serve"]:
        return serve()
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    first = {}
    for program in sys.argv[1:]:
        for tool, what in (("plain", "a call"), ("ask", "a question")):
            print(f"{program}: counting {what} ..", file=sys.stderr)
            each = (instructions(program, tool, MANY) - instructions(program, tool, FEW)) // (MANY - FEW)
            before = first.setdefault(tool, each)
            print(f"{program}: {each:,} instructions for {what}, {each / before - 1:+.1%}")


main()
