# Sourced by the runners of the peers, after parts.sh: sessions of the revisions before 2026-07-28, both ways. It sets
# nothing but functions. They need `antiphon`, `fleet` and `legacy` (the programs), and `demo`, the command of the demo
# server. They run in the folder of a peer, beside this one.

# Their client against ours: the demo, and the examples that ask with `await`. `--fleet` first says that the client can
# drive these on a replica of the fleet, whose backend is compared as well.
#
#   legacy_clients [--fleet] CLIENT ..
legacy_clients() {
    local on_fleet=
    if [ "$1" = --fleet ]; then on_fleet=yes; shift; fi
    serve "${demo[@]}" --listen 127.0.0.1:0
    part "the SDK's client on a session, HTTP" "$@" ../legacy/demo.json --http "$url"
    part "the SDK's client on a session, stdio" "$@" ../legacy/demo.json --stdio "${demo[@]}" --stdio
    part "the SDK's client on a session, the examples over stdio" "$@" ../examples.json --stdio "${demo[@]}" --stdio
    if [ -n "$on_fleet" ]; then
        part "the SDK's client on a session, the examples on a replica" "$@" ../examples.json --fleet "$fleet"
    else
        part "the SDK's client on a session, the examples over HTTP" "$@" ../examples.json --http "$url"
    fi
}

# Our client library against a server of theirs that asks. `auto` is for servers that know no later revision, `legacy` for
# the others; `--sse` first, for those that have HTTP+SSE of 2024-11-05 as well.
#
#   legacy_servers [--sse] (auto | legacy) SERVER ..
legacy_servers() {
    local sse=
    if [ "$1" = --sse ]; then sse=yes; shift; fi
    local mode=$1
    shift
    part "our client library on a session, the SDK's server over stdio" "$legacy" ../legacy/peers.json "$mode" -- "$@" --stdio
    serve "$@" --listen 127.0.0.1:0
    part "our client library on a session, the SDK's server over HTTP" "$legacy" ../legacy/peers.json "$mode" "$url"
    [ -n "$sse" ] || return 0
    serve "$@" --listen 127.0.0.1:0 --sse
    part "our client library on a session, the SDK's server over HTTP+SSE" "$legacy" ../legacy/peers.json "$mode" "$url"
}
