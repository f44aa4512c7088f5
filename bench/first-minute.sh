#!/usr/bin/env bash
# Measures what somebody waits for who tries the project: README's first command from an empty target folder, and README's example in a
# crate of its own. Prints tables in Markdown; with --write, they replace those of bench/README.md.
#
#     bench/first-minute.sh [--write]
#
# What is downloaded is fetched before. CPU is user and system time of cargo and all compilers: other programs of the machine change it
# less than the wall time. It needs bash, awk and Python 3, and leaves nothing behind.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
first=(cargo run -p antiphon-cli -- demo --answer region.region=eu-west-1)
unset CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR CARGO_INCREMENTAL RUSTFLAGS

# The compiler, and a file with its time for each crate: `times` prints the times of the shell, then those of its children.
cat >"$dir/rustc" <<'WRAPPER'
#!/usr/bin/env bash
name= previous=
for word; do
    if [ "$previous" = --crate-name ]; then name=$word; fi
    previous=$word
done
"$@"
code=$?
if [ "${name:-___}" != ___ ]; then times >"$TIMES/$name.$$"; fi
exit $code
WRAPPER
chmod +x "$dir/rustc"
export RUSTC_WRAPPER="$dir/rustc"

exec 3>&2
# measured NAME COMMAND..: its output goes to standard error; wall and CPU seconds to $dir/NAME.
measured() {
    local name=$1 TIMEFORMAT='%R %U %S'
    shift
    mkdir "$dir/$name.crates"
    { time TIMES="$dir/$name.crates" "$@" >&3 2>"$dir/$name.log"; } 2>"$dir/$name" || { cat "$dir/$name.log" >&2; exit 1; }
}
# row NAME TEXT: one line of the first table.
row() {
    local crates
    crates=$(grep -c '^ *Compiling ' "$dir/$1.log" || true)
    awk -v text="$2" -v crates="$crates" '{ printf "| %s | %.1f | %.1f | %d |\n", text, $1, $2 + $3, crates }' "$dir/$1"
}
# expensive NAME: "seconds crate" of each, the most expensive one first. Build scripts count as one.
expensive() {
    for file in "$dir/$1.crates"/*; do
        name=$(basename "${file%.*}")
        if [ "$name" = build_script_build ]; then name='(build scripts)'; fi
        awk -v name="$name" 'NR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); print u[1] * 60 + u[2] + s[1] * 60 + s[2], name }' "$file"
    done | awk '{ seconds = $1; $1 = ""; sum[$0] += seconds } END { for (name in sum) printf "%.1f%s\n", sum[name], name }' | sort -rn
}
cd "$root"
cargo fetch --locked --quiet
export CARGO_TARGET_DIR="$dir/target"
measured first "${first[@]}"
measured again "${first[@]}"
expensive first >"$dir/crates"
rm -rf "$dir/target"

# A crate as `cargo add antiphon` makes it, with README's example. Cargo compiles what comes from a registry without the data for
# incremental builds, but not what comes from a folder: the profile says so here.
mkdir -p "$dir/databases/src"
cd "$dir/databases"
cat >Cargo.toml <<MANIFEST
[package]
name = "databases"
version = "0.1.0"
edition = "2024"
[dependencies]
antiphon = { path = "$root/crates/antiphon" }
serde = { version = "1", features = ["derive"] }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
[profile.dev.package."*"]
incremental = false
[workspace]
MANIFEST
awk '/^```rust/ { inside = 1; next } /^```/ { if (inside) exit } inside' "$root/README.md" >src/main.rs
cp "$root/Cargo.lock" .
cargo fetch --quiet
# Without the wrapper, whose shell costs seconds of its own: only the first command's crates are listed.
unset RUSTC_WRAPPER
measured cold cargo build
sed -i 's/Which region should/In which region should/' src/main.rs
measured changed cargo build

{
    echo "Measured on $(date -u +%F) by \`bench/first-minute.sh\`, on $(nproc) processors ($(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)), load average before"
    echo "and after the runs included in the wall time: $(cut -d' ' -f1-3 /proc/loadavg). Compiler: $(rustc --version). Commit: $(git -C "$root" rev-parse --short HEAD)."
    echo
    echo "| what | wall s | CPU s | crates compiled |"
    echo "|---|--:|--:|--:|"
    row first "\`${first[*]}\`, empty target folder, until it ends"
    row again "the same command again"
    row cold "README's example as a crate of its own, \`cargo build\`, empty target folder"
    row changed "the same after a change of its tool"
    echo
    echo "The most expensive crates of the first command, in CPU seconds of $(awk '{ sum += $1 } END { printf "%.0f", sum }' "$dir/crates") of all compilers:"
    head -n 10 "$dir/crates" | awk '{ seconds = $1; $1 = ""; printf "%s`%s` %s", (NR > 1 ? ", " : ""), substr($0, 2), seconds } END { print "." }'
} >"$dir/table"
cat "$dir/table"
[ "${1:-}" = --write ] || exit 0
python3 - "$root/bench/README.md" "$dir/table" <<'PASTE'
import re, sys
readme, table = (open(path).read() for path in sys.argv[1:])
begin, end = "<!-- first-minute.sh writes this passage -->\n", "<!-- end of first-minute.sh -->"
before, rest = readme.split(begin)
open(sys.argv[1], "w").write(before + begin + "\n" + table + "\n" + end + rest.split(end, 1)[1])
PASTE
