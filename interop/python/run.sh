#!/usr/bin/env bash
# antiphon and the Python SDK, both ways: its client against `antiphon serve-demo`, `antiphon call` against its server.
#
#   interop/run.sh python
#
# ANTIPHON        the program under test (required)
# ANTIPHON_TABLE  antiphon-interop-table, our client library with every callback attached (required)
# ANTIPHON_WIDE   antiphon-interop-wide, our client library with what is not asking (required)
# ANTIPHON_EVERYTHING  the everything server of conformance/ (required)
# ANTIPHON_FLEET  the fleet of examples/ (required)
# ANTIPHON_LEGACY  antiphon-interop-legacy, our client library on sessions of earlier revisions (required)
# INTEROP_RESULTS a file for the lines that ../table.py reads
# ANTIPHON_VENV   where the virtual environment is or shall be made (default: .venv beside this script)
# INTEROP_SLOW=1  also the cases that wait
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
table=$(program ANTIPHON_TABLE)
wide=$(program ANTIPHON_WIDE)
everything=$(program ANTIPHON_EVERYTHING)
fleet=$(program ANTIPHON_FLEET)
legacy=$(program ANTIPHON_LEGACY)

use_venv "$here" "${ANTIPHON_VENV:-}"
export PATH="$venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
INTEROP_PEER=Python INTEROP_VERSION=$(sed -n 's/^mcp==//p' "$here/requirements.txt")
export INTEROP_PEER INTEROP_VERSION
cd "$here"

use_demo
serve "${demo[@]}" --listen 127.0.0.1:0
one=$url
serve "${demo[@]}" --listen 127.0.0.1:0
two=$url

part "the SDK's client, one server over HTTP" python client_of_ours.py --http "$one"
part "the SDK's client, two replicas in turn" python client_of_ours.py --http "$one" --http "$two"
part "the SDK's client, stdio" python client_of_ours.py --stdio "${demo[@]}" --stdio
part "the SDK's client, the examples on two replicas behind a proxy" python examples_of_ours.py "$fleet"
part "antiphon call, the SDK's server" python call_theirs.py "$antiphon"
part "our client library, the SDK's server over stdio" "$table" server_for_ours.expect.json -- python server_for_ours.py --stdio
serve python server_for_ours.py --listen 127.0.0.1:0
part "our client library, the SDK's server over HTTP" "$table" server_for_ours.expect.json "$url"
part "the SDK's client with what is not asking" python wide_client_of_ours.py "$everything"
part "our client library with what is not asking, stdio" "$wide" -- python wide_server_for_ours.py --stdio
serve python wide_server_for_ours.py --listen 127.0.0.1:0
part "our client library with what is not asking, HTTP" "$wide" "$url"

legacy_clients --fleet python legacy_client.py
legacy_servers --sse legacy python legacy_server.py

total
