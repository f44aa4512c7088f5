#!/usr/bin/env bash
# antiphon and the TypeScript SDK, both ways: its client against `antiphon serve-demo`, `antiphon` against its server.
#
#   interop/run.sh typescript
#
# ANTIPHON         the program under test (required)
# ANTIPHON_TABLE   antiphon-interop-table, our client library with every callback attached (required)
# ANTIPHON_WIDE    antiphon-interop-wide, our client library with what is not asking (required)
# ANTIPHON_EVERYTHING  the everything server of conformance/ (required)
# ANTIPHON_FLEET  the fleet of examples/ (required)
# ANTIPHON_LEGACY  antiphon-interop-legacy, our client library on sessions of earlier revisions (required)
# INTEROP_RESULTS  a file for the lines that ../table.py reads
# INTEROP_SLOW=1   also the cases that wait
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
table=$(program ANTIPHON_TABLE)
wide=$(program ANTIPHON_WIDE)
everything=$(program ANTIPHON_EVERYTHING)
fleet=$(program ANTIPHON_FLEET)
legacy=$(program ANTIPHON_LEGACY)

cd "$here"
use_node
use_packages
INTEROP_PEER=TypeScript INTEROP_VERSION=$(version_of @modelcontextprotocol/client)
export INTEROP_PEER INTEROP_VERSION

use_demo
serve "${demo[@]}" --listen 127.0.0.1:0
one=$url
serve "${demo[@]}" --listen 127.0.0.1:0
two=$url
serve node server_for_ours.mjs --listen 127.0.0.1:0
theirs=$url
serve node wide_server_for_ours.mjs --listen 127.0.0.1:0
theirs_wide=$url

part "the SDK's client, one server over HTTP" node client_of_ours.mjs --http "$one"
part "the SDK's client, two replicas in turn" node client_of_ours.mjs --http "$one" --http "$two"
part "the SDK's client, stdio" node client_of_ours.mjs --stdio "${demo[@]}" --stdio
part "the SDK's client, the examples on two replicas behind a proxy" node examples_of_ours.mjs "$fleet"
part "antiphon, the SDK's server" node call_theirs.mjs "$antiphon"
part "our client library, the SDK's server over stdio" "$table" server_for_ours.expect.json -- node server_for_ours.mjs --stdio
part "our client library, the SDK's server over HTTP" "$table" server_for_ours.expect.json "$theirs"
part "the SDK's client with what is not asking" node wide_client_of_ours.mjs "$everything"
part "the client of ext-tasks" node tasks_client_of_ours.mjs "$everything"
part "our client library with what is not asking, stdio" "$wide" -- node wide_server_for_ours.mjs --stdio
part "our client library with what is not asking, HTTP" "$wide" "$theirs_wide"

legacy_clients --fleet node legacy_client.mjs
legacy_servers legacy node legacy_server.mjs

total
