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
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../legacy/parts.sh
source "$here/../legacy/parts.sh"
# shellcheck source=../python.sh
source "$here/../python.sh"

antiphon=$(program ANTIPHON)
fleet=$(program ANTIPHON_FLEET)
legacy=$(program ANTIPHON_LEGACY)

use_venv "$here" "${ANTIPHON_VENV1:-}"
export PATH="$venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
INTEROP_PEER="Python 1" INTEROP_VERSION=$(sed -n 's/^mcp==//p' "$here/requirements.txt")
export INTEROP_PEER INTEROP_VERSION
cd "$here"

use_demo
legacy_clients --fleet python ../python/legacy_client.py
legacy_servers --sse auto python ../python/legacy_server.py

total
