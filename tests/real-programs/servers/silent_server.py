"""A server that never responds to a call, and notes each. `silent_server.py EFFECTS`"""

import json
import sys

TOOL = {"name": "refund", "description": "Never ends", "inputSchema": {"type": "object", "properties": {"order": {"type": "string"}}}}
ANSWERS = {"tools/list": {"tools": [TOOL]}, "ping": {}, "prompts/list": {"prompts": []}, "resources/list": {"resources": []}}

for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "silent", "version": "1"}}
    elif method in ANSWERS:
        result = ANSWERS[method]
    else:
        if method == "tools/call":
            with open(sys.argv[1], "a") as effects:
                print(json.dumps({"method": method}), file=effects)
        if ident is not None and method != "tools/call":
            print(json.dumps({"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "Method not found"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}), flush=True)
