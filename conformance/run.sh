#!/usr/bin/env bash
# The official conformance suite against our server and our client, every scenario by its own call, strictly.
# Installs the pinned suite and the Node.js it needs into .node (nothing outside of this folder, no install scripts),
# builds the two programs, and leaves .results behind: summary.md, summary.json, and what the suite wrote.
#
#   ./run.sh                     everything
#   ./run.sh --only caching      the scenarios whose name contains this
#   ./run.sh --revision R        one revision
#   ./run.sh --server-url URL    another server, already running (--only and the table work the same)
#   ./run.sh --client COMMAND    another client
#   ./run.sh --tier              the suite's own tier check, without the network
#
# CONFORMANCE_PROGRAMS  the folder of programs that are built already (default: they are built, in the debug profile)
set -euo pipefail
programs=${CONFORMANCE_PROGRAMS:+$(realpath "$CONFORMANCE_PROGRAMS")}
cd "$(dirname "$0")"

# Installed once for each lock file.
if ! cmp -s package-lock.json .node/installed.lock; then
    rm -rf .node
    mkdir -p .node
    cp package.json package-lock.json .node/
    (cd .node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    cp package-lock.json .node/installed.lock
fi
# Elsewhere than on Linux nothing was installed: any Node.js from 22 on will do there.
node=$(ls .node/node_modules/node-linux-*/bin/node 2>/dev/null | head -n 1) || true
node=${node:-node}
"$node" -e 'process.exit(parseInt(process.versions.node) >= 22 ? 0 : 1)' \
    || { echo "the suite needs Node.js 22 or newer" >&2; exit 2; }

"$node" --test --test-reporter=dot runner/judge.test.mjs >/dev/null || { "$node" --test runner/judge.test.mjs; exit 2; }

if [ -z "$programs" ]; then
    cargo build --locked -p antiphon-conformance ${CARGO_BUILD_ARGS:-}
    programs=$(cargo metadata --format-version 1 --no-deps --locked | "$node" -e '
        let text = ""; process.stdin.on("data", (part) => text += part)
            .on("end", () => console.log(JSON.parse(text).target_directory));')/debug
fi
runner=main
if [ "${1:-}" = --tier ]; then
    runner=tier
    shift
fi
exec "$node" "runner/$runner.mjs" --programs "$programs" "$@"
