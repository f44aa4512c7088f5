#!/usr/bin/env bash
# The MCP Inspector's two command lines against `antiphon serve-demo`, over HTTP and stdio.
#
#   interop/run.sh inspector
#
# ANTIPHON         the program under test (required)
# INTEROP_RESULTS  a file for the lines that ../table.py reads
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../node.sh
source "$here/../node.sh"

antiphon=$(program ANTIPHON)

cd "$here"
use_node
use_packages
INTEROP_PEER=Inspector INTEROP_VERSION=$(version_of @modelcontextprotocol/inspector)
export INTEROP_PEER INTEROP_VERSION

# What the Inspector keeps belongs to this run, and so does the daemon behind `mcpdo`: started here, it ends here.
mkdir "$work/home" "$work/daemon"
export HOME="$work/home" MCP_INSPECTOR_SECRET_STORE=memory MCP_INSPECTOR_DAEMON_DIR="$work/daemon"
MCP_INSPECTOR_DAEMON_TOKEN=$(node -p 'crypto.randomBytes(32).toString("base64url")')
export MCP_INSPECTOR_DAEMON_TOKEN
start_daemon() {
    node node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcpdod.js >"$work/daemon.log" 2>&1 </dev/null &
    started+=("$!")
    for _ in $(seq 600); do
        [ ! -S "$work/daemon/mcpdod.sock" ] || return 0
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAILED to start the daemon of mcpdo" >&2
    cat "$work/daemon.log" >&2
    return 1
}

use_demo
serve "${demo[@]}" --listen 127.0.0.1:0
start_daemon || { echo "0 passed, 1 failed"; exit 1; }

part "the Inspector, HTTP" node client_of_ours.mjs --http "$url"
part "the Inspector, stdio" node client_of_ours.mjs --stdio "${demo[@]}" --stdio

total
