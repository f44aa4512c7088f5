#!/usr/bin/env bash
# Sign-in with the SDKs: `antiphon login` at their servers, and their clients at our resource server.
#
#   interop/run.sh oauth
#
# ANTIPHON         the program under test (required)
# ANTIPHON_OAUTH   antiphon-interop-oauth, our resource server (required)
# INTEROP_RESULTS  a file for the lines that ../table.py reads
# ANTIPHON_VENV, ANTIPHON_VENV_FASTMCP  where the virtual environments are or shall be made (default: those of ../python and ../fastmcp)
# The programs and packages are those of ../python, ../typescript, ../typescript1, ../fastmcp and ../oidc-provider.
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../node.sh
source "$here/../node.sh"
# shellcheck source=../python.sh
source "$here/../python.sh"

antiphon=$(program ANTIPHON)
oauth=$(program ANTIPHON_OAUTH)

cd "$here/.."
use_node
for folder in typescript typescript1 oidc-provider; do
    cd "$here/../$folder"
    use_packages
done
cd "$here/.."
use_venv "$PWD/fastmcp" "${ANTIPHON_VENV_FASTMCP:-}"
fastmcp=$venv/bin/python
use_venv "$PWD/python" "${ANTIPHON_VENV:-}"
python=$venv/bin/python
export PYTHONDONTWRITEBYTECODE=1 FASTMCP_CHECK_FOR_UPDATES=off ANTIPHON_TOKENS="$work/tokens"

# of NAME FOLDER PACKAGE: whose row the next parts are.
of() {
    INTEROP_PEER="$1, OAuth"
    case "$2" in
        typescript*) INTEROP_VERSION=$(cd "$2" && version_of "$3") ;;
        *) INTEROP_VERSION=$(sed -n "s/^$3==//p" "$2/requirements.txt") ;;
    esac
    export INTEROP_PEER INTEROP_VERSION
}

serve node oidc-provider/provider.mjs
read -r issuer person <<<"$url"
serve "$oauth" "$issuer"
ours=$url

of Python python mcp
part "the Python SDK's client, our resource server" "$python" python/oauth_client_of_ours.py "$ours" "$person"
serve "$python" python/oauth_server_for_ours.py
part "antiphon login, the Python SDK's authorization server" node oauth/calls_theirs.mjs "$antiphon" "$url" 2026-07-28 --expires

of TypeScript typescript @modelcontextprotocol/client
part "the TypeScript SDK's client, our resource server" node typescript/oauth_client_of_ours.mjs "$ours"
serve node typescript/oauth_server_for_ours.mjs "$issuer"
# oidc-provider revokes no JWT.
part "antiphon login, the TypeScript SDK's resource server" node oauth/calls_theirs.mjs "$antiphon" "$url" 2026-07-28 --lives

of "TypeScript 1" typescript1 @modelcontextprotocol/sdk
serve node typescript1/oauth_server_for_ours.mjs
part "antiphon login, the TypeScript SDK 1's authorization server" node oauth/calls_theirs.mjs "$antiphon" "$url" 2025-11-25 --expires

of FastMCP fastmcp fastmcp
serve "$fastmcp" fastmcp/oauth_proxy_for_ours.py "$issuer"
# FastMCP 4.1.4 registers clients without a secret only, and the handler of the Python SDK demands one in order to revoke.
part "antiphon login, FastMCP's OAuthProxy" node oauth/calls_theirs.mjs "$antiphon" "$url" 2026-07-28 --lives --removed

total
