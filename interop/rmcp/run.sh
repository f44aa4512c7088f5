#!/usr/bin/env bash
# antiphon and rmcp, both ways, over HTTP and stdio, on 2026-07-28 and on sessions of earlier revisions.
#
#   interop/run.sh rmcp
#
# ANTIPHON          the program under test (required)
# ANTIPHON_TABLE    antiphon-interop-table, our client library with every callback attached (required)
# ANTIPHON_WIDE     antiphon-interop-wide, our client library with tasks by hand (required)
# ANTIPHON_EVERYTHING  the everything server of conformance/ (required)
# ANTIPHON_LEGACY   antiphon-interop-legacy, our client library on sessions of earlier revisions (required)
# CARGO_TARGET_DIR  where the peers are built (default: target beside this script)
# INTEROP_RESULTS   a file to which each case appends a line of JSON
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../legacy/parts.sh
source "$here/../legacy/parts.sh"

antiphon=$(program ANTIPHON)
table=$(program ANTIPHON_TABLE)
wide=$(program ANTIPHON_WIDE)
everything=$(program ANTIPHON_EVERYTHING)
legacy=$(program ANTIPHON_LEGACY)
if [ -n "${INTEROP_RESULTS:-}" ]; then
    INTEROP_RESULTS=$(realpath "$INTEROP_RESULTS")
    export INTEROP_RESULTS
fi

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
cargo build --locked --manifest-path "$here/Cargo.toml" --quiet
peers=$(cd "$CARGO_TARGET_DIR/debug" && pwd)
expect=$here/server_for_ours.expect.json

use_demo
serve "${demo[@]}" --listen 127.0.0.1:0; one=$url
serve "${demo[@]}" --listen 127.0.0.1:0; two=$url
serve "$peers/interop-rmcp-ours" "$work/keys" 127.0.0.1:0; three=$url
serve "$peers/interop-rmcp-ours" "$work/keys" 127.0.0.1:0; four=$url
serve "$peers/interop-rmcp-server" --listen 127.0.0.1:0; streams=$url
serve "$peers/interop-rmcp-server" --listen-json 127.0.0.1:0; json=$url

client=$peers/interop-rmcp-client
part "rmcp's client, our demo, two replicas in turn" "$client" demo http "$one" "$two"
part "rmcp's client, our demo over stdio" "$client" demo stdio "${demo[@]}" --stdio
part "rmcp's client, everything else that asks, two replicas in turn" "$client" asks http "$three" "$four"
part "rmcp's client, everything else that asks, over stdio" "$client" asks stdio "$peers/interop-rmcp-ours" "$work/keys" --stdio
part "rmcp's client, our task tools over stdio" "$client" tasks stdio "$everything" --stdio
serve_everything; ours=$url
part "rmcp's client, our task tools over HTTP" "$client" tasks http "$ours"

drive=$peers/interop-rmcp-drive
part "our client library, rmcp's server, replies as event streams" "$drive" library "$table" "$expect" library "$streams"
part "our client library, rmcp's server, replies as JSON" "$drive" library "$table" "$expect" "library, JSON replies" "$json"
part "our client library, rmcp's server over stdio" "$drive" library "$table" "$expect" library -- "$peers/interop-rmcp-server" --stdio
part "antiphon's program, rmcp's server over HTTP" "$drive" cli "$antiphon" "$expect" cli "$streams"
part "antiphon's program, rmcp's server over stdio" "$drive" cli "$antiphon" "$expect" cli -- "$peers/interop-rmcp-server" --stdio

cd "$here"
INTEROP_PEER=rmcp INTEROP_VERSION=$(sed -n 's/^rmcp = { version = "=\([0-9.]*\)".*/\1/p' Cargo.toml)
export INTEROP_PEER INTEROP_VERSION
part "our client library, rmcp's tasks by hand, over HTTP" "$wide" --tasks "$streams"
part "our client library, rmcp's tasks by hand, over stdio" "$wide" --tasks -- "$peers/interop-rmcp-server" --stdio
legacy_clients "$peers/interop-rmcp-legacy" call
legacy_servers legacy "$peers/interop-rmcp-legacy" serve

total
