#!/usr/bin/env bash
# Runs two replicas behind HAProxy, nginx and Caddy, one proxy after the other, with the configurations of this folder, and
# checks each. Needs Debian's haproxy, nginx and caddy, openssl, curl, and the folder of the program `antiphon`:
#     examples/proxies/run.sh target/debug
# Uses the ports 18101, 18102, 18110, 18120 and 18130 of 127.0.0.1. Leaves nothing running.
set -euo pipefail
PATH=$PATH:/usr/sbin
antiphon="$(realpath "${1:-target/debug}")/antiphon"
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d)"
pids=()
stop() {
    # How they end after the signal is no outcome.
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap stop EXIT
cd "$work"
fail() { echo "$proxy: $1" >&2; tail -n 20 ./*.log >&2; exit 1; }
# Waits until a command succeeds, for at most 15 seconds.
until_true() {
    local tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 150 ] || return 1
        sleep 0.1
    done
}

proxy=replicas
cp "$here"/{haproxy.cfg,nginx.conf,Caddyfile} .
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out cert.pem 2>openssl.log || fail "openssl failed"
cat cert.pem key.pem > haproxy.pem

# Two replicas with the same keys: each can continue the calls of the other.
ANTIPHON_KEYS="$("$antiphon" --quiet keygen 2>keygen.log)" || fail "keygen failed"
export ANTIPHON_KEYS SSL_CERT_FILE="$work/cert.pem"
for replica in a:18101 b:18102; do
    name=${replica%%:*}
    "$antiphon" -v serve-demo --listen "127.0.0.1:${replica#*:}" --session-prefix "$name-" 2>"$name.log" >&2 &
    pids+=($!)
    until_true grep -q "listening on" "$name.log" || fail "replica $name does not start"
done

curl=(curl --silent --show-error --cacert cert.pem --max-time 30 --http2)
json=(-H "Content-Type: application/json" -H "Accept: application/json, text/event-stream")
# The number of calls that a replica began and that asked.
asked() { grep -c "a round leaves" "$1.log" || [ "$?" = 1 ]; } # 1: it counted none.

check() {
    proxy=$1
    local url="https://localhost:$2/mcp" out before_a before_b session stream id legacy
    until_true "${curl[@]}" -o /dev/null "$url" || fail "does not answer"

    # HTTP/2 to the client, and a plain call.
    out=$("${curl[@]}" -o /dev/null -w '%{http_version} %{http_code}' "$url")
    [ "$out" = "2 405" ] || fail "HTTP version and status of a GET: $out"
    out=$("$antiphon" call echo --args '{"text":"hello"}' "$url" </dev/null) || fail "a plain call failed: $out"
    [ "$out" = hello ] || fail "a plain call: $out"

    # Calls that ask. With a plain call between them, they begin on one replica and the other, and continue on the other one.
    before_a=$(asked a)
    before_b=$(asked b)
    for _ in 1 2; do
        out=$("$antiphon" call provision --args '{"name":"orders"}' --answer region.region=eu-west-1 "$url" </dev/null)
        [ "$out" = 'Provisioned "orders" in eu-west-1.' ] || fail "a call that asks: $out"
        "$antiphon" --quiet call echo --args '{"text":"between"}' "$url" </dev/null >/dev/null
    done
    [ "$(asked a)" -gt "$before_a" ] && [ "$(asked b)" -gt "$before_b" ] || fail "only one replica had calls that ask"

    # A session of 2025-11-25, whose question arrives on the stream of the call, and whose answer is another request.
    "${curl[@]}" "${json[@]}" -D head.txt -o /dev/null "$url" -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
        "protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"curl","version":"1"}}}'
    session=$(tr -d '\r' <head.txt | awk 'tolower($1) == "mcp-session-id:" { print $2 }')
    [ -n "$session" ] || fail "no session"
    legacy=("${json[@]}" -H "MCP-Protocol-Version: 2025-11-25" -H "Mcp-Session-Id: $session")
    "${curl[@]}" "${legacy[@]}" "$url" -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    "${curl[@]}" "${legacy[@]}" --no-buffer -o stream.txt "$url" -d '{"jsonrpc":"2.0","id":2,"method":"tools/call",
        "params":{"name":"provision","arguments":{"name":"orders"}}}' &
    stream=$!
    # The event is here while the call still runs: nothing buffers it.
    until_true grep -q elicitation/create stream.txt || fail "no question arrived on the stream"
    id=$(grep elicitation/create stream.txt | grep -o '"id":[^,}]*' | head -1)
    # Each request of the session reaches its replica.
    for _ in 1 2 3 4; do
        out=$("${curl[@]}" "${legacy[@]}" -o /dev/null -w '%{http_code}' "$url" -d '{"jsonrpc":"2.0","id":9,"method":"ping"}')
        [ "$out" = 200 ] || fail "a request of the session has status $out"
    done
    "${curl[@]}" "${legacy[@]}" "$url" \
        -d '{"jsonrpc":"2.0",'"$id"',"result":{"action":"accept","content":{"region":"eu-west-1"}}}'
    wait "$stream" || fail "the stream of the session broke"
    grep -q 'Provisioned .*orders.* in eu-west-1' stream.txt || fail "the session's call: $(cat stream.txt)"
    "${curl[@]}" "${legacy[@]}" -X DELETE "$url" >/dev/null
    rm -f stream.txt

    # A body over the limit has an answer.
    head -c 6000000 /dev/zero | tr '\0' ' ' > large.json
    # Over HTTP/1.1: over HTTP/2, curl reports the reset of the rest of the upload in the place of the response.
    # A proxy may close the connection while curl still sends, and curl may then miss the response: it tries again.
    for _ in 1 2 3 4 5; do
        out=$("${curl[@]}" --http1.1 --expect100-timeout 20 -H "Expect: 100-continue" "${json[@]}" -o /dev/null \
            -w '%{http_code}' --data-binary @large.json "$url" 2>large.log) && break
    done
    [ "$out" = 413 ] || fail "a large body has status $out: $(cat large.log)"
    echo "$proxy: plain call, asking call on two replicas, session, stream, 413"
}

haproxy -db -f haproxy.cfg >haproxy.log 2>&1 & pids+=($!)
check haproxy 18110
nginx -p "$work" -c nginx.conf -e stderr >nginx.log 2>&1 & pids+=($!)
check nginx 18120
XDG_DATA_HOME="$work" XDG_CONFIG_HOME="$work" caddy run --config Caddyfile --adapter caddyfile >caddy.log 2>&1 & pids+=($!)
check caddy 18130
