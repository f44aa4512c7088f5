#!/usr/bin/env bash
# Records the corpus anew: installs the peers, starts their servers, and writes crates/antiphon/tests/corpus.
#
#   interop/corpus/record.sh             writes
#   interop/corpus/record.sh --check     fails if a server answers otherwise than what was recorded
#
# INTEROP_RMCP2_TARGET, CARGO_TARGET_DIR  where the servers on rmcp are built (default: target beside their sources)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
interop=$(dirname "$here")
cells=$(dirname "$interop")/crates/antiphon/tests/corpus

# shellcheck source=../parts.sh
source "$interop/parts.sh"
# shellcheck source=../node.sh
source "$interop/node.sh"
# shellcheck source=../python.sh
source "$interop/python.sh"
use_node
for folder in typescript typescript1; do (cd "$interop/$folder" && use_packages); done
use_venv "$interop/python1"
PYTHON1=$venv/bin/python
use_venv "$interop/python" "${ANTIPHON_VENV:-}"
PYTHON2=$venv/bin/python
rmcp2=${INTEROP_RMCP2_TARGET:-$interop/rmcp2/target}
rmcp3=${CARGO_TARGET_DIR:-$interop/rmcp/target}
CARGO_TARGET_DIR=$rmcp2 cargo build --locked --manifest-path "$interop/rmcp2/Cargo.toml" --quiet
CARGO_TARGET_DIR=$rmcp3 cargo build --locked --manifest-path "$interop/rmcp/Cargo.toml" --quiet -p interop-rmcp-legacy
export PYTHON1 PYTHON2 RMCP2=$rmcp2/debug/interop-rmcp2 RMCP3=$rmcp3/debug/interop-rmcp-legacy

"$here/handmade.py" "$cells" "$@"
"$here/record.py" "$cells" "$@"
