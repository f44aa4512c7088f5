#!/usr/bin/env bash
# The MCP Inspector's two command lines against `antiphon serve-demo`, over HTTP and stdio.
#
#   ANTIPHON=target/release/antiphon interop/inspector/run.sh
#
# ANTIPHON         the program under test (required)
# INTEROP_RESULTS  a file for the lines that ../table.py reads
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${ANTIPHON:?set ANTIPHON to the path of the antiphon program}"
antiphon=$(realpath "$ANTIPHON")
[ -x "$antiphon" ] || { echo "$ANTIPHON is not a program" >&2; exit 2; }

# shellcheck source=../node.sh
source "$here/../node.sh"
cd "$here"
use_node
use_packages
INTEROP_PEER=Inspector INTEROP_VERSION=$(version_of @modelcontextprotocol/inspector)
export INTEROP_PEER INTEROP_VERSION

# What it keeps, and the daemon behind `mcpdo`, belong to this run and end with it.
mkdir "$work/home" "$work/daemon"
mcpdo() {
    node node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js --format json "$@"
}
end_daemon() {
    local pid
    pid=$(mcpdo daemon status 2>/dev/null | sed -n 's/^ *"pid": \([0-9]*\),*$/\1/p')
    [ -n "$pid" ] || return 0
    mcpdo daemon stop >/dev/null 2>&1 || kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null || true
}
trap 'end_daemon || true; stop' EXIT
export HOME="$work/home" MCP_INSPECTOR_SECRET_STORE=memory MCP_INSPECTOR_DAEMON_DIR="$work/daemon"
MCP_INSPECTOR_DAEMON_TOKEN=$(node -p 'crypto.randomBytes(32).toString("base64url")')
export MCP_INSPECTOR_DAEMON_TOKEN

"$antiphon" keygen >"$work/keys" 2>/dev/null || { echo "FAILED antiphon keygen"; echo "0 passed, 1 failed"; exit 1; }
demo=("$antiphon" serve-demo --key-file "$work/keys")
serve "${demo[@]}" --listen 127.0.0.1:0 || { echo "0 passed, 1 failed"; exit 1; }

part "the Inspector, HTTP" node client_of_ours.mjs --http "$url"
part "the Inspector, stdio" node client_of_ours.mjs --stdio "${demo[@]}" --stdio

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
