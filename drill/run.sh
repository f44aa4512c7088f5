#!/usr/bin/env bash
# The fleet drill: ./drill/run.sh [--calls N] [--seconds S] [--store sqlite|postgres|redis|memory|dbos] [--seed N] [--crash]
# [--tasks] [--mutant NAME] [--people N] [--lease MILLISECONDS]. DRILL_PROFILE=release builds with optimizations. See docs/drill.md.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
case " $* " in *" --mutant "*) cd "$(./drill/mutated)" ;; esac
features=""
case " $* " in *" --store dbos "*) features=dbos ;; esac
cargo build --quiet --locked --profile "${DRILL_PROFILE:-dev}" -p antiphon-drill --features "$features"
folder=${DRILL_PROFILE:-debug}
exec "$CARGO_TARGET_DIR/${folder/#dev/debug}/drill" "$@"
