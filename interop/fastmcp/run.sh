#!/usr/bin/env bash
# The client of FastMCP with `antiphon serve-demo`: tasks, and an error behind a charge.
#
#   interop/run.sh fastmcp
#
# ANTIPHON               the program under test (required)
# INTEROP_RESULTS        a file for the lines that ../table.py reads
# ANTIPHON_VENV_FASTMCP  where the virtual environment is or shall be made (default: .venv beside this script)
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../python.sh
source "$here/../python.sh"

antiphon=$(program ANTIPHON)

use_venv "$here" "${ANTIPHON_VENV_FASTMCP:-}"
export PATH="$venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$here/../python" FASTMCP_CHECK_FOR_UPDATES=off
INTEROP_PEER=FastMCP INTEROP_VERSION=$(sed -n 's/^fastmcp-tasks==//p' "$here/requirements.txt")
export INTEROP_PEER INTEROP_VERSION
cd "$here"

use_demo
serve "${demo[@]}" --store "$work/http.db" --listen 127.0.0.1:0
part "FastMCP's client, HTTP" python client_of_ours.py --http "$url"
part "FastMCP's client, stdio" python client_of_ours.py --stdio "${demo[@]}" --store "$work/stdio.db" --stdio

total
