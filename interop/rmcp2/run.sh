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
: "${ANTIPHON:?set ANTIPHON to the path of the antiphon program}"
: "${ANTIPHON_FLEET:?set ANTIPHON_FLEET to the path of fleet}"
: "${ANTIPHON_LEGACY:?set ANTIPHON_LEGACY to the path of antiphon-interop-legacy}"
antiphon=$(realpath "$ANTIPHON")
fleet=$(realpath "$ANTIPHON_FLEET")
legacy=$(realpath "$ANTIPHON_LEGACY")

# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../legacy/parts.sh
source "$here/../legacy/parts.sh"
target=${INTEROP_RMCP2_TARGET:-$here/target}
CARGO_TARGET_DIR=$target cargo build --manifest-path "$here/Cargo.toml" --quiet
peer=$(cd "$target/debug" && pwd)/interop-rmcp2
INTEROP_PEER="rmcp 2" INTEROP_VERSION=$(sed -n 's/^rmcp = { version = "=\([0-9.]*\)".*/\1/p' "$here/Cargo.toml")
export INTEROP_PEER INTEROP_VERSION
cd "$here"

"$antiphon" keygen >"$work/keys" 2>/dev/null || { echo "FAILED antiphon keygen"; echo "0 passed, 1 failed"; exit 1; }
demo=("$antiphon" serve-demo --key-file "$work/keys")
legacy_clients "$peer" call
legacy_servers auto "$peer" serve

total
