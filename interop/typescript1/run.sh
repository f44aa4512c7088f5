#!/usr/bin/env bash
# antiphon and the TypeScript SDK 1, which knows no revision after 2025-11-25, both ways: on sessions.
#
#   interop/run.sh typescript1
#
# ANTIPHON         the program under test (required)
# ANTIPHON_EVERYTHING  the everything server of conformance/ (required)
# ANTIPHON_FLEET   the fleet of examples/ (required)
# ANTIPHON_LEGACY  antiphon-interop-legacy, our client library on sessions of earlier revisions (required)
# INTEROP_RESULTS  a file for the lines that ../table.py reads
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../legacy/parts.sh
source "$here/../legacy/parts.sh"
# shellcheck source=../node.sh
source "$here/../node.sh"

antiphon=$(program ANTIPHON)
everything=$(program ANTIPHON_EVERYTHING)
fleet=$(program ANTIPHON_FLEET)
legacy=$(program ANTIPHON_LEGACY)

cd "$here"
use_node
use_packages
INTEROP_PEER="TypeScript 1" INTEROP_VERSION=$(version_of @modelcontextprotocol/sdk)
export INTEROP_PEER INTEROP_VERSION
cd "$here"

use_demo
part "the SDK's client of tasks, on a session" node tasks_client_of_ours.mjs "$everything"
legacy_clients --fleet node legacy_client.mjs
legacy_servers --sse auto node legacy_server.mjs

total
