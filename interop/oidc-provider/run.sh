#!/usr/bin/env bash
# oidc-provider, an authorization server, with antiphon's OAuth client and antiphon's resource server.
#
#   interop/run.sh oidc-provider
#
# ANTIPHON_OAUTH  the program under test: client and resource server in one (required)
# It has no place in the table of README.md, which is about MCP.
# The last line is `N passed, N failed`; the exit code is not zero if anything failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../parts.sh
source "$here/../parts.sh"
# shellcheck source=../node.sh
source "$here/../node.sh"

oauth=$(program ANTIPHON_OAUTH)

cd "$here"
use_node
use_packages
serve node provider.mjs
# shellcheck disable=SC2086 # two words: the issuer, and who signs in there
part "oidc-provider $(version_of oidc-provider)" "$oauth" $url

total
