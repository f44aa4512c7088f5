#!/usr/bin/env bash
# antiphon and rmcp 2, which knows no revision after 2025-11-25, both ways: on sessions.
#
#   interop/run.sh rmcp2
#
# ANTIPHON         the program under test (required)
# ANTIPHON_FLEET   the fleet of examples/ (required)
# ANTIPHON_LEGACY  antiphon-interop-legacy, our client library on sessions of earlier revisions (required)
# INTEROP_RMCP2_TARGET  where the peer is built (default: target beside this script)
# INTEROP_RESULTS  a file for the lines that ../table.py reads
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../legacy/parts.sh
source "$here/../legacy/parts.sh"

antiphon=$(program ANTIPHON)
fleet=$(program ANTIPHON_FLEET)
legacy=$(program ANTIPHON_LEGACY)

target=${INTEROP_RMCP2_TARGET:-$here/target}
CARGO_TARGET_DIR=$target cargo build --locked --manifest-path "$here/Cargo.toml" --quiet
peer=$(cd "$target/debug" && pwd)/interop-rmcp2
INTEROP_PEER="rmcp 2" INTEROP_VERSION=$(sed -n 's/^rmcp = { version = "=\([0-9.]*\)".*/\1/p' "$here/Cargo.toml")
export INTEROP_PEER INTEROP_VERSION
cd "$here"

use_demo
legacy_clients "$peer" call
legacy_servers auto "$peer" serve

total
