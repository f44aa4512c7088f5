#!/usr/bin/env bash
# antiphon and tower-mcp, both ways, over HTTP and stdio: tasks and calls that ask, on 2026-07-28; tasks on sessions.
#
#   interop/run.sh tower-mcp
#
# ANTIPHON          the program under test (required)
# ANTIPHON_TABLE    antiphon-interop-table, our client library with every callback attached (required)
# ANTIPHON_WIDE     antiphon-interop-wide, our client library with tasks by hand (required)
# ANTIPHON_EVERYTHING  the everything server of conformance/ (required)
# CARGO_TARGET_DIR  where the peer is built (default: target beside this script)
# INTEROP_RESULTS   a file to which each case appends a line of JSON
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"

antiphon=$(program ANTIPHON)
table=$(program ANTIPHON_TABLE)
wide=$(program ANTIPHON_WIDE)
everything=$(program ANTIPHON_EVERYTHING)

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
cargo build --locked --manifest-path "$here/Cargo.toml" --quiet
peers=$(cd "$CARGO_TARGET_DIR/debug" && pwd)
client=$peers/interop-tower-mcp-client server=$peers/interop-tower-mcp-server
INTEROP_PEER=tower-mcp INTEROP_VERSION=$(sed -n 's/^tower-mcp = { version = "=\([0-9.]*\)".*/\1/p' "$here/Cargo.toml")
export INTEROP_PEER INTEROP_VERSION

use_demo
serve "${demo[@]}" --listen 127.0.0.1:0; ours=$url
serve "$server" --listen 127.0.0.1:0; theirs=$url
serve_everything; tasks=$url

part "tower-mcp's client, our demo over HTTP" "$client" demo http "$ours"
part "tower-mcp's client, our demo over stdio" "$client" demo stdio "${demo[@]}" --stdio
part "tower-mcp's client, our task tools over HTTP" "$client" tasks http "$tasks"
part "tower-mcp's client, our task tools over stdio" "$client" tasks stdio "$everything" --stdio
part "our client library, tower-mcp's server over HTTP" "$table" "$here/server_for_ours.expect.json" "$theirs"
part "our client library, tower-mcp's server over stdio" "$table" "$here/server_for_ours.expect.json" -- "$server" --stdio
part "our client library, tower-mcp's tasks by hand, over HTTP" "$wide" --reported-tasks "$theirs"
part "our client library, tower-mcp's tasks by hand, over stdio" "$wide" --reported-tasks -- "$server" --stdio

total
