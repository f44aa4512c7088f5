#!/usr/bin/env bash
# Measures one leg with each store, beside a leg without and the raw operations. Starts Debian's PostgreSQL and Redis in
# a folder of its own, with their usual durability. See README.md. CALLS: the number of measured legs.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
redis=
postgres=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
# PostgreSQL refuses to run as root: Debian's package creates a user.
as_postgres() { if [ "$(id -u)" = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups "$@"; else "$@"; fi; }

stop() {
    as_postgres "$postgres/pg_ctl" -D "$dir/postgres/data" stop -m immediate >/dev/null 2>&1 || true
    [ -z "$redis" ] || kill "$redis" 2>/dev/null || true
    wait
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

mkdir -p "$dir/postgres" "$dir/redis"
chmod 755 "$dir"
if [ "$(id -u)" = 0 ]; then chown postgres "$dir/postgres"; fi
cd /
as_postgres "$postgres/initdb" --auth=trust --username=postgres -D "$dir/postgres/data" >/dev/null
as_postgres "$postgres/pg_ctl" -D "$dir/postgres/data" start -w -l "$dir/postgres/log" \
    -o "-c listen_addresses= -c unix_socket_directories=$dir/postgres" >/dev/null
redis-server --port 0 --unixsocket "$dir/redis/socket" --dir "$dir/redis" --appendonly yes --save "" >"$dir/redis/log" &
redis=$!
until redis-cli -s "$dir/redis/socket" ping >/dev/null 2>&1; do sleep 0.1; done

cd "$here"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
cargo build --profile dist --quiet --locked -p bench-stores
"$CARGO_TARGET_DIR/dist/bench-stores" --calls "${CALLS:-1000}" --sqlite "$dir/calls.db" \
    --postgres "host=$dir/postgres user=postgres dbname=postgres" --redis "redis+unix://$dir/redis/socket"
