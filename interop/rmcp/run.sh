#!/usr/bin/env bash
# antiphon and rmcp, both ways, over HTTP and stdio, on 2026-07-28.
#
#   ANTIPHON=target/release/antiphon ANTIPHON_TABLE=target/release/antiphon-interop-table interop/rmcp/run.sh
#
# ANTIPHON          the program under test (required)
# ANTIPHON_TABLE    antiphon-interop-table, our client library with every callback attached (required)
# CARGO_TARGET_DIR  where the peers are built (default: target beside this script)
# INTEROP_RESULTS   a file to which each case appends a line of JSON
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${ANTIPHON:?set ANTIPHON to the path of the antiphon program}"
: "${ANTIPHON_TABLE:?set ANTIPHON_TABLE to the path of antiphon-interop-table}"
antiphon=$(realpath "$ANTIPHON")
table=$(realpath "$ANTIPHON_TABLE")
for program in "$antiphon" "$table"; do
    [ -x "$program" ] || { echo "$program is not a program" >&2; exit 2; }
done
if [ -n "${INTEROP_RESULTS:-}" ]; then
    INTEROP_RESULTS=$(realpath "$INTEROP_RESULTS")
    export INTEROP_RESULTS
fi

umask 077
work=$(mktemp -d)
started=()
stop() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
cargo build --manifest-path "$here/Cargo.toml" --quiet
peers=$(cd "$CARGO_TARGET_DIR/debug" && pwd)
expect=$here/server_for_ours.expect.json

# Starts a server on a free port and sets `url` from the line it prints, on whichever stream.
serve() {
    local log="$work/server-${#started[@]}.log"
    # It has to be there before the first look at it.
    : >"$log"
    "$@" >"$log" 2>&1 </dev/null &
    started+=("$!")
    url=
    local try
    for try in $(seq 600); do
        url=$(sed -n 's/.*listening on //p' "$log")
        [ -z "$url" ] || return 0
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAILED to start: $*" >&2
    cat "$log" >&2
    return 1
}

passed=0 failed=0
# Runs one part, shows its lines and adds up its last one.
part() {
    local title=$1 out="$work/part.out" status=0 last
    shift
    echo "== $title"
    "$@" >"$out" 2>"$work/part.err" </dev/null &
    started+=("$!")
    wait "$!" || status=$?
    last=$(tail -n 1 "$out")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        sed '$d' "$out"
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
        # A part that says nothing failed and still ends badly has failed.
        [ "$status" = 0 ] || [ "${BASH_REMATCH[2]}" != 0 ] || failed=$((failed + 1))
    else
        cat "$out"
        echo "FAILED $title: ended with $status and no totals"
        failed=$((failed + 1))
    fi
    [ "$status" = 0 ] || tail -n 40 "$work/part.err" >&2
}

"$antiphon" keygen >"$work/keys" 2>/dev/null
demo=("$antiphon" serve-demo --key-file "$work/keys")
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

drive=$peers/interop-rmcp-drive
part "our client library, rmcp's server, replies as event streams" "$drive" library "$table" "$expect" library "$streams"
part "our client library, rmcp's server, replies as JSON" "$drive" library "$table" "$expect" "library, JSON replies" "$json"
part "our client library, rmcp's server over stdio" "$drive" library "$table" "$expect" library -- "$peers/interop-rmcp-server" --stdio
part "antiphon's program, rmcp's server over HTTP" "$drive" cli "$antiphon" "$expect" cli "$streams"
part "antiphon's program, rmcp's server over stdio" "$drive" cli "$antiphon" "$expect" cli -- "$peers/interop-rmcp-server" --stdio

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
