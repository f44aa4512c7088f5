#!/usr/bin/env bash
# antiphon with every peer that is here, two at a time, and the table of README.md from what came of it.
#
#   interop/run.sh            all peers; writes the table of README.md
#   interop/run.sh --check    all peers; fails if README.md is not what it would write
#   interop/run.sh PEER ...   these alone (python, typescript, ..); README.md stays as it is
#
# INTEROP_PROGRAMS  the folder of the programs under test (default: target/debug)
# INTEROP_AT_ONCE  the number of peers that run at once (default: 2, because a peer mostly waits)
#
# A peer is a folder with a run.sh. It gets these variables as absolute paths, and INTEROP_RESULTS, the file to append
# its lines to (see table.py). Its last line is `N passed, N failed`. The exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
mode=write
case "${1:-}" in
    --check) mode=check; shift ;;
    -*) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
[ "$#" -eq 0 ] || [ "$mode" = write ] || { echo "--check is for all peers" >&2; exit 2; }

peers=("$@")
if [ "$#" -eq 0 ]; then
    # Those that are known in this order, the longest first, then the others.
    for peer in rmcp python typescript tower-mcp rmcp2 python1 typescript1 inspector browser "$here"/*/run.sh; do
        case "$peer" in /*) peer=$(basename "$(dirname "$peer")") ;; esac
        [ -x "$here/$peer/run.sh" ] || continue
        [[ " ${peers[*]-} " == *" $peer "* ]] || peers+=("$peer")
    done
else
    mode=none
fi

programs=$(realpath "${INTEROP_PROGRAMS:-$root/target/debug}")
ANTIPHON=$programs/antiphon ANTIPHON_FLEET=$programs/fleet ANTIPHON_EVERYTHING=$programs/conformance-server
ANTIPHON_TABLE=$programs/antiphon-interop-table ANTIPHON_WIDE=$programs/antiphon-interop-wide ANTIPHON_LEGACY=$programs/antiphon-interop-legacy ANTIPHON_OAUTH=$programs/antiphon-interop-oauth
for program in "$ANTIPHON" "$ANTIPHON_TABLE" "$ANTIPHON_WIDE" "$ANTIPHON_EVERYTHING" "$ANTIPHON_FLEET" "$ANTIPHON_LEGACY" "$ANTIPHON_OAUTH"; do
    [ -x "$program" ] || {
        echo "$program is not there: cargo build --workspace --bins" >&2
        exit 2
    }
done
export ANTIPHON ANTIPHON_TABLE ANTIPHON_WIDE ANTIPHON_EVERYTHING ANTIPHON_FLEET ANTIPHON_LEGACY ANTIPHON_OAUTH
# The table is of the cases that every run has.
[ "$mode" = none ] || unset INTEROP_SLOW

at_once=${INTEROP_AT_ONCE:-2}
work=$(mktemp -d)
# The peers that run now, by process id.
declare -A running=() began=()
stop() {
    trap '' INT TERM # a second signal would leave the rest behind
    # A peer may have ended by itself.
    for pid in "${!running[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${!running[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

summary=() bad=0 next=0
while [ "$next" -lt "${#peers[@]}" ] || [ "${#running[@]}" -gt 0 ]; do
    if [ "$next" -lt "${#peers[@]}" ] && [ "${#running[@]}" -lt "$at_once" ]; then
        peer=${peers[next]}
        next=$((next + 1))
        INTEROP_RESULTS="$work/$peer.results" "$here/$peer/run.sh" >"$work/$peer.out" 2>&1 </dev/null &
        running[$!]=$peer began[$!]=$SECONDS
        continue
    fi
    status=0
    wait -n -p ended "${!running[@]}" || status=$?
    peer=${running[$ended]}
    unset "running[$ended]"
    echo "==== $peer"
    cat "$work/$peer.out"
    last=$(tail -n 1 "$work/$peer.out")
    [ "$status" = 0 ] || { bad=1; last="$last (exit code $status)"; }
    summary+=("$(printf '%-12s %s, %ss' "$peer" "$last" "$((SECONDS - began[$ended]))")")
done
results=$work/all
# A peer that failed at its start has no results, and has counted above.
for peer in "${peers[@]}"; do [ ! -f "$work/$peer.results" ] || cat "$work/$peer.results"; done >"$results"

echo "==== all"
printf '%s\n' "${summary[@]}"
case "$mode" in
    write) "$here/table.py" "$results" "$here/README.md" ;;
    check) "$here/table.py" "$results" "$here/README.md" --check || bad=1 ;;
esac
exit "$bad"
