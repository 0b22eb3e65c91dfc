#!/usr/bin/env bash
# Runs the official conformance suite against our server (crates/server/examples/conformance_server) on every revision it knows,
# with the tasks extension, and prints one line per scenario. Needs node and npm. Exits 1 if anything failed.
#
#   tests/conformance/run.sh            install the suite if it is not there, build, run
#   CONFORMANCE_HOME=DIR ...            where the suite is installed (default: ~/.cache/mcp-peers/npm/conf)
set -euo pipefail
cd "$(dirname "$0")/../.."

version=0.2.0-alpha.12
home=${CONFORMANCE_HOME:-$HOME/.cache/mcp-peers/npm/conf}
suite=$home/node_modules/@modelcontextprotocol/conformance/dist/index.js
if [ ! -f "$suite" ]; then
  mkdir -p "$home"
  (cd "$home" && { [ -f package.json ] || npm init -y >/dev/null; } && npm install --no-audit --no-fund "@modelcontextprotocol/conformance@$version")
  # fs.globSync is there from Node 22 on; only the suite's `tier-check` calls it, but older Nodes stop at the import.
  sed -i -E '0,/globSync as [a-zA-Z_$]+,/s///' "$suite"
fi

cargo build --quiet -p mcp-elicit-server --example conformance_server
port=${PORT:-18765}
out=$(mktemp -d)
"${CARGO_TARGET_DIR:-target}/debug/examples/conformance_server" --listen "127.0.0.1:$port" &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$out"' EXIT
url=http://127.0.0.1:$port/mcp
for _ in $(seq 50); do curl -s -o /dev/null "$url" && break; sleep 0.1; done

failed=0
for revision in 2025-06-18 2025-11-25 2026-07-28; do
  echo "== $revision"
  node "$suite" server --url "$url" --suite all --spec-version $revision -o "$out/$revision" >"$out/$revision.txt" 2>&1 || failed=1
  sed -n '/=== SUMMARY ===/,$p' "$out/$revision.txt" | grep -E '^(✓|✗|Total)'
done
echo "== tasks extension"
for scenario in tasks-lifecycle tasks-capability-negotiation tasks-wire-fields tasks-request-state-removal tasks-mrtr-input \
  tasks-request-headers tasks-dispatch-and-envelope tasks-required-task-error tasks-mrtr-composition; do
  node "$suite" server --url "$url" --scenario $scenario -o "$out/tasks" >"$out/$scenario.txt" 2>&1 || failed=1
  echo "$scenario: $(grep -E '^Passed:' "$out/$scenario.txt")"
done
exit $failed
