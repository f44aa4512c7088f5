# Sourced by the runners of all peers: a folder for their files, the programs they need, what they start, and the parts
# they are made of.
# Whatever is started goes into `started`, and ends with the runner.

umask 077
work=$(mktemp -d)
started=()
# What was started last ends first: it may lean on what was there before.
stop() {
    trap '' INT TERM # a second signal would leave the rest behind
    local at
    for ((at = ${#started[@]} - 1; at >= 0; at--)); do
        # It may have ended by itself, and how it ends after the signal is no outcome.
        kill "${started[at]}" 2>/dev/null || true
        wait "${started[at]}" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The absolute path of the program that a variable names.
program() {
    [ -x "${!1:-}" ] || { echo "set $1 to the path of the program, as ../run.sh says" >&2; return 2; }
    realpath "${!1}"
}

# Sets `demo`, the command of the demo server with a key of this run. Needs `antiphon`.
use_demo() {
    "$antiphon" --quiet keygen >"$work/keys" || { echo "FAILED antiphon keygen"; echo "0 passed, 1 failed"; exit 1; }
    demo=("$antiphon" serve-demo --key-file "$work/keys")
}

# Starts a server that prints `listening on URL` on either stream, and sets `url`.
serve() {
    local log="$work/server-${#started[@]}.log" _
    : >"$log" # there before it is looked into
    "$@" >>"$log" 2>&1 </dev/null &
    started+=("$!")
    for _ in $(seq 600); do
        url=$(sed -n 's/.*listening on //p' "$log" | head -n 1)
        [ -z "$url" ] || return 0
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAILED to start: $*" >&2
    cat "$log" >&2
    echo "0 passed, 1 failed"
    exit 1
}

# Starts the everything server of conformance/, whose only line is its URL, and sets `url`. Needs `everything`.
serve_everything() {
    local out="$work/everything-${#started[@]}" _
    : >"$out"
    "$everything" >"$out" 2>"$out.err" </dev/null &
    started+=("$!")
    for _ in $(seq 600); do
        url=$(head -n 1 "$out")
        [ -z "$url" ] || return 0
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAILED to start: $everything" >&2
    cat "$out.err" >&2
    echo "0 passed, 1 failed"
    exit 1
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
        if [ "$status" != 0 ] && [ "${BASH_REMATCH[2]}" = 0 ]; then
            echo "FAILED $title: ended with $status"
            failed=$((failed + 1))
        fi
    else
        cat "$out"
        echo "FAILED $title: ended with $status and no totals"
        failed=$((failed + 1))
    fi
    [ "$status" = 0 ] || tail -n 40 "$work/part.err" >&2
}

# The last line, and the exit code that goes with it.
total() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
