#!/usr/bin/env bash
# Builds the servers, measures them in turn, and writes the tables to results.md. See README.md.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cpu=${SERVER_CPU:-0}
port=${PORT:-38470}
rounds=${ROUNDS:-5}
jobs=${JOBS:-$(nproc)}
results=${RESULTS:-$here/results.md}
# The numbers of requests are divided by this one: for a quick look.
less=${LESS:-1}
dir=$(mktemp -d)
pids=()
# One processor for all, and no process interrupts the one that wakes it.
pinned=(chrt --batch 0 taskset -c "$cpu")

stop() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

# One package at a time: no server gets features that only another one asks for.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
CARGO_TARGET_DIR=$(realpath -m "$CARGO_TARGET_DIR")
bin=$CARGO_TARGET_DIR/bench-fat
for package in bench-bare bench-server bench-rmcp-server bench-load; do
    (cd "$here" && cargo build --profile bench-fat --locked -j "$jobs" -p "$package") >&2
done
# ANTIPHON, BEFORE: other builds of antiphon-server, the second one for a column of its own. LOGGED=1: a column of antiphon that logs to nowhere.
antiphon=${ANTIPHON:-$bin/antiphon-server}

servers=()
# start NAME PORT PROGRAM ARGUMENT..: `chrt` and `taskset` become the server, so $! is the server's id.
start() {
    local name=$1 port=$2
    shift 2
    "${pinned[@]}" "$@" --listen "127.0.0.1:$port" >"$dir/$name.log" 2>&1 &
    pids+=("$!")
    servers+=(--server "$name=127.0.0.1:$port=$!")
}

# end: ends all servers.
end() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    pids=() servers=()
}

# load ARGUMENT..: shows the servers' output if it fails.
load() {
    "${pinned[@]}" "$bin/load" "$@" &
    local load=$!
    pids+=("$load")
    # In the background, so that a signal is not held back until it ends.
    wait "$load" || {
        tail -n 20 "$dir"/*.log >&2
        exit 1
    }
    unset 'pids[-1]'
}

# compare TITLE "CASE.." PLAN..
compare() {
    local title=$1 cases=$2
    shift 2
    local options=(--subject antiphon --rounds "$rounds" --cpu "$cpu")
    for case in $cases; do options+=(--case "$case"); done
    for plan in "$@"; do
        local connections=${plan%x*} requests=$((${plan#*x} / less))
        options+=(--plan "${connections}x$((requests > connections ? requests : connections))")
    done
    printf '\n## %s\n\n' "$title"
    load compare "${servers[@]}" "${options[@]}"
}

all='echo hand-1 hand-2 await-1 await-2'
large='progress text records'

begin() {
    start antiphon $((port + 1)) "$antiphon"
    start rmcp $((port + 2)) "$bin/rmcp-server"
    if [ -n "${BEFORE:-}" ]; then start before $((port + 3)) "$BEFORE"; fi
    if [ -n "${LOGGED:-}" ]; then start logged $((port + 4)) "$antiphon" --log; fi
    # The order of the turns is bare first; it starts last, for it needs the recorded answers.
    local options=()
    for case in $all $large; do options+=(--case "$case"); done
    load record --addr "127.0.0.1:$((port + 1))" --out "$dir/answers" "${options[@]}"
    local rest=("${servers[@]}")
    servers=()
    start bare "$port" "$bin/bare" --answers "$dir/answers"
    servers+=("${rest[@]}")
}

starts() {
    printf '\n## Start and memory\n\n'
    printf 'Median of %s starts, [lowest-highest]: from the start of the process to its first answer, and its resident memory then.\n\n' "$rounds"
    printf '| server | ready ms | resident MiB | of it anonymous MiB |\n|---|--:|--:|--:|\n'
    for tools in 0 10000; do
        load start --addr "127.0.0.1:$port" --runs "$rounds" --name "antiphon, $((tools + 6)) tools" \
            -- "$antiphon" --listen "127.0.0.1:$port" --tools "$tools"
        load start --addr "127.0.0.1:$port" --runs "$rounds" --name "rmcp, $((tools + 6)) tools" \
            -- "$bin/rmcp-server" --listen "127.0.0.1:$port" --tools "$tools"
    done
}

machine() {
    # Not in the text below, where the exit code of a command is lost.
    local peers compiler model commit
    peers=$(cd "$here" && cargo tree --locked -p bench-rmcp-server --depth 1 --prefix none |
        sed -n 's/^\(rmcp\|hyper\|tokio\) v\([^ ]*\).*/\1 \2/p' | paste -sd, | sed 's/,/, /g')
    compiler=$(rustc --version)
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    commit=$(git -C "$here" describe --always --dirty 2>/dev/null || echo none) # An unpacked archive has none.
    cat <<END
# Results of run.sh

Written by \`bench/run.sh\`; README.md says what the columns mean.

- Date: $(date -u +%Y-%m-%dT%H:%MZ), load average before $(cut -d' ' -f1-3 /proc/loadavg)
- Command: \`ROUNDS=$rounds LESS=$less bench/run.sh\`, servers and load generator pinned to processor $cpu, policy SCHED_BATCH
- Machine: $(nproc) processors, $model, $(uname -sr)
- Compiler: $compiler, profile bench-fat: $(sed -n '/^\[profile.bench-fat\]/,/^$/p' "$here/Cargo.toml" | sed '1d;/^$/d' | paste -sd, | sed 's/,/, /g')
- Peers: $peers
- Commit: $commit
END
}

measure() {
    machine
    begin
    compare 'Small calls' "$all" 16x48000
    compare 'Connections' echo 1x12000 64x48000 256x48000
    compare '100 progress notifications in one call' progress 16x1600
    compare 'Arguments of 1 MiB, one text' text 4x800
    compare 'Arguments of 1 MiB, small objects' records 4x60
    end
    starts
    start antiphon $((port + 1)) "$antiphon" --tools 10000
    start rmcp $((port + 2)) "$bin/rmcp-server" --tools 10000
    compare '10,000 tools' echo 16x48000
    compare 'A page of 10,000 tools' list 1x300
    end
}

# Not in a pipe: `end` waits for the servers of this very shell.
exec 3>&1 >"$dir/results.md"
measure
exec >&3
mv "$dir/results.md" "$results"
cat "$results"
# The plot, and the figures in README.md.
if [ "$(realpath "$results")" = "$(realpath "$here/results.md")" ]; then "$here/../scripts/pictures"; fi
