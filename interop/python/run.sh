#!/usr/bin/env bash
# antiphon and the Python SDK, both ways: its client against `antiphon serve-demo`, `antiphon call` against its server.
#
#   interop/run.sh python
#
# ANTIPHON        the program under test (required)
# ANTIPHON_TABLE  antiphon-interop-table, our client library with every callback attached (required)
# ANTIPHON_WIDE   antiphon-interop-wide, our client library with what is not asking (required)
# ANTIPHON_EVERYTHING  the everything server of conformance/ (required)
# INTEROP_RESULTS a file for the lines that ../table.py reads
# ANTIPHON_VENV   where the virtual environment is or shall be made (default: .venv beside this script)
# INTEROP_SLOW=1  also the cases that wait
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${ANTIPHON:?set ANTIPHON to the path of the antiphon program}"
: "${ANTIPHON_TABLE:?set ANTIPHON_TABLE to the path of antiphon-interop-table}"
: "${ANTIPHON_WIDE:?set ANTIPHON_WIDE to the path of antiphon-interop-wide}"
: "${ANTIPHON_EVERYTHING:?set ANTIPHON_EVERYTHING to the path of conformance-server}"
antiphon=$(realpath "$ANTIPHON")
table=$(realpath "$ANTIPHON_TABLE")
wide=$(realpath "$ANTIPHON_WIDE")
everything=$(realpath "$ANTIPHON_EVERYTHING")
[ -x "$antiphon" ] || { echo "$ANTIPHON is not a program" >&2; exit 2; }
venv=${ANTIPHON_VENV:-$here/.venv}

umask 077
work=$(mktemp -d)
started=()
stop() {
    trap '' INT TERM # a second signal would leave the rest behind
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

wanted=$(sha256sum "$here/requirements.txt")
if [ "$(cat "$venv/.requirements" 2>/dev/null)" != "$wanted" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    printf '%s\n' "$wanted" >"$venv/.requirements"
fi
venv=$(cd "$venv" && pwd)
export PATH="$venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
INTEROP_PEER=Python INTEROP_VERSION=$(sed -n 's/^mcp==//p' "$here/requirements.txt")
export INTEROP_PEER INTEROP_VERSION
cd "$here"

# Starts a replica of the demo on a free port and sets `url`. A port that was taken meanwhile: the next one.
serve() {
    local log="$work/server-${#started[@]}.log" try port pid
    for try in 1 2 3; do
        port=$(python -c 'from common import free_port; print(free_port())')
        "$antiphon" serve-demo --listen "127.0.0.1:$port" --key-file "$work/keys" >"$log" 2>&1 </dev/null &
        pid=$!
        started+=("$pid")
        if python -c 'import sys; from common import wait_for_port; wait_for_port(int(sys.argv[1]), int(sys.argv[2]))' "$port" "$pid"; then
            url="http://127.0.0.1:$port/mcp"
            return
        fi
    done
    echo "FAILED to start: $antiphon serve-demo --listen 127.0.0.1:$port" >&2
    cat "$log" >&2
    return 1
}

# Starts a server of the SDK on a free port and sets `url` from the line it prints.
theirs() {
    local log="$work/$1.log"
    : >"$log"
    python "$1" --listen 127.0.0.1:0 >"$log" 2>"$work/theirs.err" </dev/null &
    started+=("$!")
    url=
    local try
    for try in $(seq 600); do
        url=$(sed -n 's/^listening on //p' "$log")
        [ -z "$url" ] || return 0
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAILED to start $1" >&2
    cat "$work/theirs.err" >&2
    return 1
}

passed=0 failed=0
# Runs one script, shows its lines and adds up its last one.
part() {
    local title=$1 out="$work/part.out" status=0 last
    shift
    echo "== $title"
    "$@" >"$out" 2>"$work/part.err" </dev/null &
    started+=("$!")
    wait "$!" || status=$?
    sed '$d' "$out"
    last=$(tail -n 1 "$out")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    else
        [ -z "$last" ] || echo "$last"
        echo "FAILED $title: ended with $status and no totals"
        failed=$((failed + 1))
    fi
    [ "$status" = 0 ] || tail -n 40 "$work/part.err" >&2
}

"$antiphon" keygen >"$work/keys" || { echo "FAILED antiphon keygen"; echo "0 passed, 1 failed"; exit 1; }
serve || { echo "0 passed, 1 failed"; exit 1; }
one=$url
serve || { echo "0 passed, 1 failed"; exit 1; }
two=$url

part "the SDK's client, one server over HTTP" python client_of_ours.py --http "$one"
part "the SDK's client, two replicas in turn" python client_of_ours.py --http "$one" --http "$two"
part "the SDK's client, stdio" python client_of_ours.py --stdio "$antiphon" serve-demo --stdio --key-file "$work/keys"
part "antiphon call, the SDK's server" python call_theirs.py "$antiphon"
part "our client library, the SDK's server over stdio" "$table" server_for_ours.expect.json -- python server_for_ours.py --stdio
theirs server_for_ours.py
part "our client library, the SDK's server over HTTP" "$table" server_for_ours.expect.json "$url"
part "the SDK's client with what is not asking" python wide_client_of_ours.py "$everything"
part "our client library with what is not asking, stdio" "$wide" -- python wide_server_for_ours.py --stdio
theirs wide_server_for_ours.py
part "our client library with what is not asking, HTTP" "$wide" "$url"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
