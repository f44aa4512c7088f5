#!/usr/bin/env bash
# Measures tasks on each engine, beside the raw operations of its store, and many tasks that wait. See README.md.
# CALLS: the number of measured tasks. WAITING: the number of tasks that wait.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$here"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
cargo build --profile dist --quiet --locked -p bench-tasks
"$CARGO_TARGET_DIR/dist/bench-tasks" --calls "${CALLS:-1000}" --waiting "${WAITING:-10000}" --sqlite "$dir/tasks.db"
