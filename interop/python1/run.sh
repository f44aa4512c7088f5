#!/usr/bin/env bash
# antiphon and the Python SDK 1, which knows no revision after 2025-11-25, both ways: on sessions.
#
#   interop/run.sh python1
#
# ANTIPHON         the program under test (required)
# ANTIPHON_FLEET   the fleet of examples/ (required)
# ANTIPHON_LEGACY  antiphon-interop-legacy, our client library on sessions of earlier revisions (required)
# ANTIPHON_VENV1   where the virtual environment is or shall be made (default: .venv beside this script)
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
# shellcheck source=../python.sh
source "$here/../python.sh"
use_venv "$here" "${ANTIPHON_VENV1:-}"
export PATH="$venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
INTEROP_PEER="Python 1" INTEROP_VERSION=$(sed -n 's/^mcp==//p' "$here/requirements.txt")
export INTEROP_PEER INTEROP_VERSION
cd "$here"

"$antiphon" keygen >"$work/keys" 2>/dev/null || { echo "FAILED antiphon keygen"; echo "0 passed, 1 failed"; exit 1; }
demo=("$antiphon" serve-demo --key-file "$work/keys")
legacy_clients --fleet python ../python/legacy_client.py
legacy_servers --sse auto python ../python/legacy_server.py

total
