#!/usr/bin/env bash
# The step of action.yml. Its inputs are the variables CHECK_*; CHECK_PROGRAM is used in place of the npm package.
set -euo pipefail

fail_on=${CHECK_FAIL_ON:-fail}
case $fail_on in
  fail | warn | never) ;;
  *) echo "fail-on: $fail_on is not fail, warn or never" >&2; exit 2 ;;
esac
if [ -z "${CHECK_SERVER:-}" ]; then
  echo "server: name the command that starts the server, or its URL" >&2
  exit 2
fi

if [ -n "${CHECK_PROGRAM:-}" ]; then
  command=("$CHECK_PROGRAM" check)
else
  command=(npx --yes "mcp-elicit@${CHECK_VERSION:-latest}" check)
fi

named=0
while read -r name rest || [ -n "$name" ]; do
  [ -n "$name" ] || continue
  named=1
  command+=(--tool "$name")
  case $rest in
    '') ;;
    '{'*) command+=("$rest") ;;
    *) read -r -a arguments <<<"$rest"; command+=("${arguments[@]}") ;;
  esac
done <<<"${CHECK_TOOLS:-}"
[ "$named" -eq 1 ] || command+=(--all-read-only)
[ -z "${CHECK_EFFECT:-}" ] || command+=(--effect "$CHECK_EFFECT")

[ -z "${CHECK_TIME:-}" ] || command+=(--time "$CHECK_TIME")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command+=(--json --markdown "$folder/summary.md")
case $CHECK_SERVER in
  http://* | https://*) command+=(--url "$CHECK_SERVER") ;;
  # The shell splits the words, and is replaced by the server.
  *) command+=(-- bash -c "exec $CHECK_SERVER") ;;
esac

exit=0
"${command[@]}" >"$folder/cells.jsonl" || exit=$?
if [ -f "$folder/summary.md" ]; then
  cat "$folder/summary.md"
  [ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$folder/summary.md" >>"$GITHUB_STEP_SUMMARY"
fi
# The server did not start, or the inputs cannot be used: no verdict, which is never a success.
[ "$exit" -le 1 ] || exit "$exit"
case $fail_on in
  never) exit 0 ;;
  fail) exit "$exit" ;;
  warn) if tail -n 1 "$folder/cells.jsonl" | grep -qE '"verdict":"(warn|fail)"'; then exit 1; fi ;;
esac
