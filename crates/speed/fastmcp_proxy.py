"""FastMCP's own proxy as a gateway: fastmcp_proxy.py (stdio | PORT) (--url URL | -- PROGRAM...)."""

import os
import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

front, how, *rest = sys.argv[1:]
backend = rest[0] if how == "--url" else StdioTransport(rest[0], rest[1:], env=dict(os.environ))
gateway = create_proxy(backend)
if front == "stdio":
    gateway.run(transport="stdio", show_banner=False)
else:
    gateway.run(transport="http", host="127.0.0.1", port=int(front), show_banner=False)
