#!/usr/bin/env bash
# Builds the three servers, measures them side by side, prints the table. See README.md.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
server_cpu=${SERVER_CPU:-0}
load_cpu=${LOAD_CPU:-1}
port=${PORT:-38470}
rounds=${ROUNDS:-5}
read -r -a plans <<<"${PLANS:-1x6000 16x24000}"
jobs=${JOBS:-$(nproc)}
dir=$(mktemp -d)
pids=()

stop() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

# start NAME PORT PROGRAM ARGUMENT..: `taskset` becomes the server, so $! is the server's id.
start() {
    local name=$1 port=$2
    shift 2
    taskset -c "$server_cpu" "$@" --listen "127.0.0.1:$port" >"$dir/$name.log" 2>&1 &
    pids+=("$!")
    servers+=(--server "$name=127.0.0.1:$port=$!")
}

# load ARGUMENT..: shows the servers' output if it fails.
load() {
    taskset -c "$load_cpu" "$bin/load" "$@" &
    pids+=("$!")
    # In the background, so that a signal is not held back until it ends.
    wait "$!" || {
        tail -n 20 "$dir"/*.log >&2
        exit 1
    }
    unset 'pids[-1]'
}

profile() {
    sed -n '/^\[profile.release\]/,/^$/p' "$1" | sed '1d;/^ *#/d;/^$/d' | sort | paste -sd' '
}

export CARGO_TARGET_DIR
if [ -n "${CARGO_TARGET_DIR:-}" ]; then
    CARGO_TARGET_DIR=$(realpath -m "$CARGO_TARGET_DIR")
    ours=$CARGO_TARGET_DIR/release/antiphon
else
    CARGO_TARGET_DIR=$here/target
    ours=$here/../target/release/antiphon
fi
bin=$CARGO_TARGET_DIR/release

# One package at a time: no server gets features that only another one asks for.
for package in bench-bare bench-rmcp-server bench-load; do
    (cd "$here" && cargo build --release --locked -j "$jobs" -p "$package")
done

# ANTIPHON: a built binary, or `none` to try the harness without it.
subject=antiphon
case ${ANTIPHON:-} in
none) subject=rmcp ours= ;;
'') (cd "$here/.." && CARGO_TARGET_DIR=$(dirname "$(dirname "$ours")") \
    cargo build --release -j "$jobs" -p antiphon-cli) ;;
*) ours=$ANTIPHON ;;
esac

# The order of the turns is bare, antiphon, rmcp; bare starts last: it needs the recorded answers.
servers=()
recorded=$((port + 2))
if [ -n "$ours" ]; then
    recorded=$((port + 1))
    start antiphon "$recorded" "$ours" serve-demo
fi
start rmcp $((port + 2)) "$bin/rmcp-server"
load record --addr "127.0.0.1:$recorded" --out "$dir/answers"
rest=("${servers[@]}")
servers=()
start bare "$port" "$bin/bare" --answers "$dir/answers"

cat <<END

Date: $(date -u +%Y-%m-%dT%H:%MZ), load average $(cut -d' ' -f1-3 /proc/loadavg)
Machine: $(nproc) processors, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -sr)
Compiler: $(rustc --version)
Peers: $(cd "$here" && cargo tree --locked -p bench-rmcp-server --depth 1 --prefix none |
    sed -n 's/^\(rmcp\|hyper\|tokio\) v\([^ ]*\).*/\1 \2/p' | paste -sd,)
Commit: $(git -C "$here" describe --always --dirty 2>/dev/null || echo none)
Server: ${ours:-none}
Release profile, bench: $(profile "$here/Cargo.toml")
Release profile, main:  $([ -f "$here/../Cargo.toml" ] && profile "$here/../Cargo.toml")
Command: servers "taskset -c $server_cpu", load "taskset -c $load_cpu", $rounds rounds, plans ${plans[*]}

END
load compare "${servers[@]}" "${rest[@]}" --subject "$subject" --rounds "$rounds" "${plans[@]/#/--plan=}"
