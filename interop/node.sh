# Sourced by the runners of the peers that run on Node. It sets nothing but functions and the arrays they keep.
#
# INTEROP_CACHE  where Node is kept, if the one on the PATH is too old (default: antiphon-interop in the user's cache)

NODE_PINNED=22.23.3
NODE_OLDEST=22.19.0

# Puts a Node that is new enough first on the PATH.
use_node() {
    local found cache
    command -v npm >/dev/null || { echo "npm is not installed" >&2; return 2; }
    found=$(node --version 2>/dev/null | tr -d v) || found=0
    [ "$(printf '%s\n' "$NODE_OLDEST" "$found" | sort -V | head -n 1)" != "$NODE_OLDEST" ] || return 0
    cache=${INTEROP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/antiphon-interop}/node-$NODE_PINNED
    if [ ! -x "$cache/node_modules/.bin/node" ]; then
        mkdir -p "$cache"
        npm install --prefix "$cache" --no-save --no-audit --no-fund --loglevel=error "node@$NODE_PINNED" >&2
    fi
    export PATH="$cache/node_modules/.bin:$PATH"
}

# Installs what the lock file of this folder says, once.
use_packages() {
    local wanted
    wanted=$(sha256sum package-lock.json)
    [ "$(cat node_modules/.lock 2>/dev/null)" != "$wanted" ] || return 0
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    printf '%s\n' "$wanted" >node_modules/.lock
}

# The version of a package that is installed in this folder.
version_of() { node -p "require('./node_modules/$1/package.json').version"; }

umask 077
work=$(mktemp -d)
started=()
# What was started last ends first: it may lean on what was there before.
stop() {
    trap '' INT TERM # a second signal would leave the rest behind
    local at
    for ((at = ${#started[@]} - 1; at >= 0; at--)); do
        kill "${started[at]}" 2>/dev/null || true
        wait "${started[at]}" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts a server that prints `listening on URL`, and sets `url`.
serve() {
    local log="$work/server-${#started[@]}.log"
    : >"$log" # there before it is looked into
    "$@" >>"$log" 2>&1 </dev/null &
    started+=("$!")
    local _
    for _ in $(seq 600); do
        url=$(sed -n 's/^listening on //p' "$log")
        [ -z "$url" ] || return 0
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAILED to start: $*" >&2
    cat "$log" >&2
    return 1
}

passed=0 failed=0
# Runs one script, shows its lines and adds up its last one.
part() {
    local title=$1 out="$work/part.out" status=0 last
    shift
    echo "== $title"
    "$@" >"$out" 2>"$work/part.err" </dev/null &
    started+=("$!")
    wait "$!" || status=$?
    sed '$d' "$out"
    last=$(tail -n 1 "$out")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    else
        [ -z "$last" ] || echo "$last"
        echo "FAILED $title: ended with $status and no totals"
        failed=$((failed + 1))
    fi
    [ "$status" = 0 ] || tail -n 40 "$work/part.err" >&2
}
