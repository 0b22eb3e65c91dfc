"""A scripted model on loopback, for the agents' programs.

It speaks Anthropic's messages, OpenAI's responses, OpenAI's chat completions and Gemini's generateContent, all streamed.
Its script: call the tool whose name ends with the wanted one, again while the result says that the question still waits,
at most AT_MOST times; then end. `model.py TOOL` prints `{"listening": PORT}`; every request is a line of its log.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AT_MOST = 12
TOOL = sys.argv[1]
LOG = open(sys.argv[2], "a") if len(sys.argv) > 2 else None  # noqa: SIM115 - open as long as the process lives
#: Words of a call that the gateway has handed back: an agent is told to call again.
WAITS = ("Call the tool again", "call the tool again", "the same arguments")


def texts(value):
    """Returns all strings within a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    return [text for part in value for text in texts(part)] if isinstance(value, list) else []


def next_move(tools, results):
    """Returns the name of the tool to call, or None to end."""
    wanted = next((name for name in tools if name.endswith(TOOL)), None)
    waits = bool(results) and any(words in text for text in texts(results[-1]) for words in WAITS)
    return wanted if len(results) < AT_MOST and (waits or not results) else None


def messages(body):
    tools = [tool.get("name", "") for tool in body.get("tools", [])]
    parts = [part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]]
    name = next_move(tools, [part for part in parts if part.get("type") == "tool_result"])
    yield "message_start", {"message": {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
                            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    if name:
        block, delta = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": name, "input": {}}, {"type": "input_json_delta", "partial_json": "{}"}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": {"stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 1}}
    yield "message_stop", {}


def responses(body):
    tools = []
    for tool in body.get("tools", []):
        inner = tool.get("tools", [tool])
        tools += [(one.get("name", ""), tool["name"] if "tools" in tool else None) for one in inner]
    results = [part for part in body["input"] if part.get("type") == "function_call_output"] if isinstance(body["input"], list) else []
    name = next_move([tool for tool, _ in tools], results)
    stamp = str(time.time_ns())
    if name:
        item = {"type": "function_call", "id": "fc_" + stamp, "call_id": "call_" + stamp, "name": name, "arguments": "{}", "status": "completed"}
        space = dict(tools)[name]
        if space:
            item["namespace"] = space
    else:
        item = {"type": "message", "id": "msg_" + stamp, "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
    answer = {"id": "resp_" + stamp, "object": "response", "created_at": 0, "model": body["model"], "output": []}
    yield "response.created", {"response": answer | {"status": "in_progress"}}
    yield "response.output_item.added", {"output_index": 0, "item": item}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    yield "response.completed", {"response": answer | {"status": "completed", "output": [item], "usage": usage}}


def completions(body):
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    name = next_move(tools, [message for message in body["messages"] if message["role"] == "tool"])
    call = {"index": 0, "id": f"call_{time.time_ns()}", "type": "function", "function": {"name": name, "arguments": "{}"}}
    delta = {"role": "assistant", "tool_calls": [call]} if name else {"role": "assistant", "content": "Done."}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
    yield None, chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield None, chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if name else "stop"}],
                         "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    yield None, "[DONE]"


def generate(body):
    tools = [one["name"] for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
    parts = [part for content in body["contents"] for part in content.get("parts", [])]
    name = next_move(tools, [part for part in parts if "functionResponse" in part])
    part = {"functionCall": {"name": name, "args": {}}} if name else {"text": "Done."}
    yield None, {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                 "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if LOG:
            print(json.dumps({"path": self.path, "body": body}), file=LOG, flush=True)
        path = self.path.partition("?")[0]
        if path.endswith("/messages"):
            self.stream(messages(body), typed=True, whole=not body.get("stream"))
        elif path.endswith("/responses"):
            self.stream(responses(body), typed=True)
        elif path.endswith("/chat/completions"):
            self.stream(completions(body))
        elif path.endswith(":streamGenerateContent"):
            self.stream(generate(body))
        elif path.endswith(":generateContent"):
            self.reply(200, next(generate(body))[1])
        elif path.endswith(("/count_tokens", ":countTokens")):
            self.reply(200, {"input_tokens": 1, "totalTokens": 1})
        else:
            self.reply(404, {"error": {"type": "not_found_error", "message": "not of this model"}})

    def do_GET(self):
        if LOG:
            print(json.dumps({"path": self.path}), file=LOG, flush=True)
        self.reply(404, {"error": {"type": "not_found_error", "message": "not of this model"}})

    def do_HEAD(self):
        self.reply(404, {})

    def stream(self, events, typed=False, whole=False):
        if whole:
            self.reply(200, {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [{"type": "text", "text": "Done."}],
                             "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}})
            return
        lines = []
        for name, data in events:
            if typed:
                data = {"type": name} | data
            text = data if isinstance(data, str) else json.dumps(data)
            lines.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
        self.send("text/event-stream", "".join(lines).encode())

    def reply(self, status, value):
        self.send("application/json", json.dumps(value).encode(), status)

    def send(self, kind, data, status=200):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(json.dumps({"listening": server.server_port}), flush=True)
    server.serve_forever()
