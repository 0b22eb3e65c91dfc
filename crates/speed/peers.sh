#!/usr/bin/env bash
# Installs the gateways that ours is measured beside, pinned, into target/speed. Needs node 20 and python 3.11.
set -euo pipefail
cd "$(dirname "$0")/../.."
into=${CARGO_TARGET_DIR:-target}/speed
mkdir -p "$into"

npm install --silent --no-fund --no-audit --no-package-lock --prefix "$into" mcp-proxy@6.7.19 supergateway@4.0.0 mcp-remote@0.15.1

[ -x "$into/mcp-proxy/bin/python" ] || python3 -m venv "$into/mcp-proxy"
"$into/mcp-proxy/bin/pip" install --quiet --disable-pip-version-check mcp-proxy==0.13.0

# FastMCP asks for a certifi newer than the one that is published: the pinned list is installed without resolving.
[ -x "$into/fastmcp/bin/python" ] || python3 -m venv "$into/fastmcp"
"$into/fastmcp/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/peers/python/requirements.txt
