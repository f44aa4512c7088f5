#!/usr/bin/env bash
# A web page in Chromium that calls `antiphon serve-demo` with the client of the TypeScript SDK, from another origin.
#
#   interop/run.sh browser
#
# ANTIPHON         the program under test (required)
# CHROMIUM         the browser (default: chromium on the PATH, as Debian's package `chromium` installs it)
# INTEROP_RESULTS  a file for the lines that ../table.py reads
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../node.sh
source "$here/../node.sh"

antiphon=$(program ANTIPHON)
chromium=$(command -v "${CHROMIUM:-chromium}") || { echo "Chromium is not installed: apt-get install chromium, or set CHROMIUM" >&2; exit 2; }

cd "$here"
use_node
use_packages
# The version is the SDK's: the browser is whichever the system has.
INTEROP_PEER="TypeScript in Chromium" INTEROP_VERSION=$(version_of @modelcontextprotocol/client)
export INTEROP_PEER INTEROP_VERSION

# What the browser writes belongs to this run.
mkdir "$work/home" "$work/tmp"
export HOME="$work/home" TMPDIR="$work/tmp"

use_demo
part "a page in Chromium" node client_of_ours.mjs "$chromium" "${demo[@]}"

total
