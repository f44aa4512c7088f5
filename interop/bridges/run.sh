#!/usr/bin/env bash
# Calls that become tasks, from `antiphon call` to `antiphon serve-demo`, over mcp-remote and supergateway.
#
#   interop/run.sh bridges
#
# ANTIPHON         the program under test (required)
# INTEROP_RESULTS  a file for the lines that ../table.py reads
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../node.sh
source "$here/../node.sh"

antiphon=$(program ANTIPHON)

cd "$here"
use_node
use_packages

# What mcp-remote keeps belongs to this run.
mkdir "$work/home"
export HOME="$work/home" MCP_REMOTE_CONFIG_DIR="$work/home"

use_demo
serve "${demo[@]}" --store "$work/http.db" --listen 127.0.0.1:0
for bridge in mcp-remote supergateway; do
    INTEROP_PEER=$bridge INTEROP_VERSION=$(version_of "$bridge")
    export INTEROP_PEER INTEROP_VERSION
    part "$bridge, a client over stdio" node tasks_of_ours.mjs "$antiphon" --http "$url"
done
# It starts a process for each request: each one continues the task of the last one.
part "supergateway, a client over HTTP" node tasks_of_ours.mjs "$antiphon" --stdio "${demo[@]}" --store "$work/stdio.db" --stdio

total
