#!/usr/bin/env bash
# antiphon with every peer that is here, one after the other, and docs/interop.md from what came of it.
#
#   interop/run.sh            all peers; writes docs/interop.md
#   interop/run.sh --check    all peers; fails if docs/interop.md is not what it would write
#   interop/run.sh PEER ...   these alone (python, typescript, ..); docs/interop.md stays as it is
#
# ANTIPHON        the program under test (default: target/release/antiphon)
# ANTIPHON_TABLE  antiphon-interop-table (default: target/release/antiphon-interop-table)
# ANTIPHON_WIDE   antiphon-interop-wide (default: target/release/antiphon-interop-wide)
# ANTIPHON_EVERYTHING  the everything server of conformance/ (default: target/release/conformance-server)
# ANTIPHON_FLEET  the fleet of examples/ (default: target/release/fleet)
# ANTIPHON_LEGACY  antiphon-interop-legacy (default: target/release/antiphon-interop-legacy)
#
# A peer is a folder with a run.sh. It gets these variables as absolute paths, and INTEROP_RESULTS, the file to append
# its lines to (see table.py). Its last line is `N passed, N failed`. The exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
mode=write
case "${1:-}" in
    --check) mode=check; shift ;;
    -*) sed -n '2,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
[ "$#" -eq 0 ] || [ "$mode" = write ] || { echo "--check is for all peers" >&2; exit 2; }

peers=("$@")
if [ "$#" -eq 0 ]; then
    # Those that are known in this order, then the others.
    for peer in python python1 typescript typescript1 rmcp rmcp2 inspector browser "$here"/*/run.sh; do
        case "$peer" in /*) peer=$(basename "$(dirname "$peer")") ;; esac
        [ -x "$here/$peer/run.sh" ] || continue
        [[ " ${peers[*]-} " == *" $peer "* ]] || peers+=("$peer")
    done
else
    mode=none
fi

ANTIPHON=$(realpath "${ANTIPHON:-$root/target/release/antiphon}")
ANTIPHON_TABLE=$(realpath "${ANTIPHON_TABLE:-$root/target/release/antiphon-interop-table}")
ANTIPHON_WIDE=$(realpath "${ANTIPHON_WIDE:-$root/target/release/antiphon-interop-wide}")
ANTIPHON_EVERYTHING=$(realpath "${ANTIPHON_EVERYTHING:-$root/target/release/conformance-server}")
ANTIPHON_FLEET=$(realpath "${ANTIPHON_FLEET:-$root/target/release/fleet}")
ANTIPHON_LEGACY=$(realpath "${ANTIPHON_LEGACY:-$root/target/release/antiphon-interop-legacy}")
for program in "$ANTIPHON" "$ANTIPHON_TABLE" "$ANTIPHON_WIDE" "$ANTIPHON_EVERYTHING" "$ANTIPHON_FLEET" "$ANTIPHON_LEGACY"; do
    [ -x "$program" ] || {
        echo "$program is not there: cargo build --release -p antiphon-cli -p antiphon-interop-table -p antiphon-conformance -p antiphon-examples" >&2
        exit 2
    }
done
export ANTIPHON ANTIPHON_TABLE ANTIPHON_WIDE ANTIPHON_EVERYTHING ANTIPHON_FLEET ANTIPHON_LEGACY
# The table is of the cases that every run has.
[ "$mode" = none ] || unset INTEROP_SLOW

results=$(mktemp)
running=
stop() {
    trap '' INT TERM # a second signal would leave the rest behind
    [ -z "$running" ] || { kill "$running" 2>/dev/null || true; wait "$running" 2>/dev/null || true; }
    rm -f "$results" "$results.out"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export INTEROP_RESULTS="$results"

summary=() bad=0
for peer in "${peers[@]}"; do
    echo "==== $peer"
    began=$SECONDS status=0
    "$here/$peer/run.sh" >"$results.out" 2>&1 </dev/null &
    running=$!
    wait "$running" || status=$?
    running=
    cat "$results.out"
    last=$(tail -n 1 "$results.out")
    [ "$status" = 0 ] || { bad=1; last="$last (exit code $status)"; }
    summary+=("$(printf '%-12s %s, %ss' "$peer" "$last" "$((SECONDS - began))")")
done

echo "==== all"
printf '%s\n' "${summary[@]}"
case "$mode" in
    write) "$here/table.py" "$results" "$root/docs/interop.md" ;;
    check) "$here/table.py" "$results" "$root/docs/interop.md" --check || bad=1 ;;
esac
exit "$bad"
