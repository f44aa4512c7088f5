# Sourced by the runners of the peers that run on Node, after parts.sh. It sets nothing but functions.
#
# INTEROP_CACHE  where Node is kept, if the one on the PATH is too old (default: antiphon-interop in the user's cache)

NODE_PINNED=22.23.3
NODE_OLDEST=22.19.0

# Puts a Node that is new enough first on the PATH.
use_node() {
    local found cache
    command -v npm >/dev/null || { echo "npm is not installed" >&2; return 2; }
    found=$(node --version 2>/dev/null | tr -d v) || found=0 # Not there: one is installed below.
    [ "$(printf '%s\n' "$NODE_OLDEST" "$found" | sort -V | head -n 1)" != "$NODE_OLDEST" ] || return 0
    cache=${INTEROP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/antiphon-interop}/node-$NODE_PINNED
    mkdir -p "$cache"
    # Two peers may need Node at once.
    (
        flock 9
        [ -x "$cache/node_modules/.bin/node" ] \
            || npm install --prefix "$cache" --no-save --no-audit --no-fund --loglevel=error "node@$NODE_PINNED" >&2
    ) 9>"$cache/lock"
    export PATH="$cache/node_modules/.bin:$PATH"
}

# Installs what the lock file of this folder says, once.
use_packages() {
    local wanted
    wanted=$(sha256sum package-lock.json)
    # Two peers may need one folder at once.
    (
        flock 9
        [ "$(cat node_modules/.lock 2>/dev/null)" != "$wanted" ] || exit 0
        npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
        printf '%s\n' "$wanted" >node_modules/.lock
    ) 9<package-lock.json
}

# The version of a package that is installed in this folder.
version_of() { node -p "require('./node_modules/$1/package.json').version"; }
