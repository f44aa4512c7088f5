#!/usr/bin/env bash
# Runs the drill and the tests with each mutant, a defect on purpose, and prints what noticed it; docs/drill.md has a summary. Each mutant must
# be noticed, and the same build without one must pass; else the exit code is 1. A mutant whose name begins with `task_` runs in
# the drill of tasks, any other one in that of calls, and `none` in both. With `--store dbos` they run in the drill of tasks on
# DBOS, and no tests do: unless some are named, those that a short run there notices. ./drill/mutants.sh [--store dbos] [--seconds S] [MUTANT ..]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=15 store=sqlite
while :; do
    case ${1:-} in --seconds) seconds=$2 ;; --store) store=$2 ;; *) break ;; esac
    shift 2
done
mutants=("$@")
if [ "$store" = dbos ] && [ "${#mutants[@]}" -eq 0 ]; then
    mutants=(none task_answer_shown task_key_reused task_of_anybody)
fi
# Each mutant is a patch.
if [ "${#mutants[@]}" -eq 0 ]; then
    mutants=(none)
    for patch in drill/mutants/*.patch; do
        name=$(basename "$patch" .patch)
        [ "$name" = base ] || mutants+=("$name")
    done
fi

CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
cd "$(./drill/mutated)"
# The programs of this build, and no others: a build without mutants may run in the same folder meanwhile.
programs() { cargo test --quiet --locked --no-run --message-format json "$@" | grep -oE '"executable":"[^"]+"' | cut -d'"' -f4; }
cargo build --quiet --locked -p antiphon-drill --features "$([ "$store" != dbos ] || echo dbos)"
drill=$(mktemp)
trap 'rm -f "$drill"' EXIT
cp "$CARGO_TARGET_DIR/debug/drill" "$drill"
chmod +x "$drill"
calls="" tasks="" stores="" random=""
if [ "$store" != dbos ]; then
    calls=$(programs -p antiphon --test at_most_once)
    tasks=$(programs -p antiphon --test tasks)
    stores=$(programs -p antiphon-store --lib --test stores)
    random=$(programs -p antiphon --test interpreter)
fi

# The tests that fail. A model whose states grow without an end fails too.
failures() {
    local lines status=0
    lines=$(ANTIPHON_MUTANT=$1 timeout 45 "$2" "${@:3}" 2>/dev/null) || status=$?
    sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p' <<<"$lines"
    # 101 is the code of failed tests, which are listed; another one is of a program that did not get to its end.
    case $status in 0 | 101) ;; 124) echo "$(basename "${2%-*}"): no end" ;; *) echo "$(basename "${2%-*}"): ended with $status" ;; esac
}
missed=0
printf '| mutant | rules broken in the drill | tests that fail |\n|---|---|---|\n'
# What is run with a mutant: calls, tasks, or both.
rows=()
for mutant in "${mutants[@]}"; do
    if [ "$store" = dbos ]; then rows+=("tasks $mutant"); continue; fi
    case $mutant in none) rows+=("calls none" "tasks none") ;; task_*) rows+=("tasks $mutant") ;; *) rows+=("calls $mutant") ;; esac
done
for row in "${rows[@]}"; do
    mutant=${row#* } tests=$calls options=() family=stored
    if [ "${row%% *}" = tasks ]; then tests=$tasks options=(--tasks) family=tasks; fi
    output=$(timeout 180 "$drill" "${options[@]}" --store "$store" --seconds "$seconds" --seed 14 --mutant "$mutant") && status=0 || status=$?
    if [ "$status" = 124 ]; then
        rules="no end"
    elif [ "$status" -gt 1 ]; then
        # No evidence of anything: the run fails.
        rules="the drill did not run" missed=1
    else
        rules=$(sed -nE 's/^BROKEN ([IT][0-9]+) .*/\1/p' <<<"$output" | uniq | paste -sd' ')
    fi
    failed=$(
        for program in $tests; do failures "$mutant" "$program"; done
        # The random programs with a store.
        for program in $random; do failures "$mutant" "$program" "$family"; done
        for program in $stores; do failures "$mutant" "$program" --skip postgres:: --skip redis::; done
    )
    count=$(grep -c . <<<"$failed" || true) # grep fails if it counts none.
    printf '| `%s` | %s | %s |\n' "$mutant" "${rules:--}" "$([ "$count" = 0 ] && echo - || echo "$count, such as \`$(head -n 1 <<<"$failed")\`")"
    if [ "$mutant" = none ]; then
        if [ "$status" != 0 ] || [ "$count" != 0 ]; then missed=1; echo "$output" >&2; fi
    elif [ -z "$rules" ] && [ "$count" = 0 ]; then
        missed=1
    fi
done
[ "$missed" = 0 ] || { echo "a mutant was not noticed, or the build without a mutant fails" >&2; exit 1; }
