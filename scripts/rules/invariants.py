"""The invariants of ARCHITECTURE.md that can be read off the sources, with the letters of its table."""
import pathlib
import re
import tomllib

from .tree import RUST, Plant, append, bare, code, replace, rule, section

SERVER, CLIENT, WIRE = "crates/antiphon-server/src", "crates/antiphon-client/src", "crates/antiphon-wire/src"
SOURCES = ("crates/*/src/**/*.rs",)
PLANTED = f"{WIRE}/planted.rs"


def within(path, *places):
    """Whether a file is one of the places, or in a folder of them (those end with a slash)."""
    return any(path == place or place.endswith("/") and path.startswith(place) for place in places)


@rule("size", Plant(f"{PLANTED} has 501 lines", {PLANTED: "//\n" * 501}), Plant(None, {PLANTED: "//\n" * 500 + "#[cfg(test)]\nmod tests {}\n"}))
def size(tree):
    for path in tree.glob(*RUST):
        lines = code(tree.text(path)).count("\n")
        if "tests" not in path.split("/")[:-1] and lines > 500:
            yield f"{path} has {lines} lines before its tests; 500 is the most"


@rule("share", Plant("(q) crates/antiphon-wire/src has", {PLANTED: "//\n" * 100_000}))
def share(tree):
    """(q) Tests beside the sources count too."""
    lines = {}
    for path in tree.glob(*SOURCES):
        crate = "/".join(path.split("/")[:3])
        lines[crate] = lines.get(crate, 0) + tree.text(path).count("\n")
    for crate, count in lines.items():
        if count * 3 > sum(lines.values()):
            yield f"(q) {crate} has {count} of {sum(lines.values())} lines; a third is the most"


PURE = (f"{WIRE}/", "crates/antiphon-seal/src/", "crates/antiphon-engine/src/", "crates/antiphon-schema/src/",
        f"{SERVER}/offer/list.rs", f"{SERVER}/outbox.rs", f"{SERVER}/serve/http/legacy/event_log.rs")


@rule("pure", *(Plant(f"(a) {PLANTED}", {PLANTED: line}) for line in
                ("async fn f() {}\n", "fn f() { g.await; }\n", "fn f() { SystemTime::now() }\n", "fn f() { Instant::now() }\n")),
      Plant(f"(a) {SERVER}/outbox.rs", {f"{SERVER}/outbox.rs": lambda old: "async fn planted() {}\n" + old}),
      Plant(None, {PLANTED: "// async\nfn f() {}\n#[cfg(test)]\nasync fn g() {}\n"}))
def pure(tree):
    """(a) What is pure has no async and no clock."""
    for place in PURE:
        if not tree.exists(place.rstrip("/")):
            yield f"(a) {place} is not there"
    for path in tree.glob(*SOURCES):
        if within(path, *PURE) and re.search(r"\basync\b|\.await\b|SystemTime::now|Instant::now", bare(tree.text(path))):
            yield f"(a) {path} is to be without async and without a clock"


@rule("versions", Plant(f"(d) {PLANTED} names", {PLANTED: 'const V: &str = "2025-11-25";\n'}),
      Plant("(d) the version table", {f"{WIRE}/version.rs": lambda old: "//\n"}))
def versions(tree):
    """(d) Only the version table compares versions."""
    table = f"{WIRE}/version.rs"
    found = set(re.findall(r'"20\d\d-\d\d-\d\d"', tree.text(table)))
    if not found:
        yield "(d) the version table has no versions"
        return
    for path in tree.glob(*SOURCES):
        if path != table and any(version in bare(tree.text(path)) for version in found):
            yield f"(d) {path} names a protocol version; only the version table does"


@rule("io", *(Plant(f"(f) {PLANTED}", {PLANTED: f"use {name};\n"}) for name in ("hyper::Request", "hyper_util::rt", "tokio::net", "tokio::process")))
def io(tree):
    """(f) Below serve/ and client/transport/ are antiphon-connect, the fetch of antiphon-jwt, and the requests and the loopback of antiphon-oauth, above them the demo's web pages and
    the listener of `serve-demo`."""
    for path in tree.glob(*SOURCES):
        if within(path, f"{SERVER}/serve/", f"{CLIENT}/transport/", "crates/antiphon-connect/src/", "crates/antiphon-jwt/src/keys.rs",
                  "crates/antiphon-oauth/src/net.rs", "crates/antiphon-oauth/src/loopback.rs", "crates/antiphon-oauth/src/testing/",
                  "crates/antiphon-demo/src/backend/", "crates/antiphon-demo/src/user.rs", "crates/antiphon-cli/src/commands/serve.rs"):
            continue
        if re.search(r"\bhyper(_util)?\b|tokio::(io|net|process)", bare(tree.text(path))):
            yield f"(f) {path} names hyper or tokio I/O; only serve/ and client/transport/ do"


@rule("rounds", Plant(f"(g) rounds are made in: {SERVER}/planted.rs", {f"{SERVER}/planted.rs": "InputRequiredResult::new()\n"}),
      Plant("(g) rounds are made in: nowhere", {f"{SERVER}/request/admit.rs": lambda old: "//\n"}))
def rounds(tree):
    """(g) A round leaves in one place, and there it is sealed."""
    places = [path for path in tree.glob(f"{SERVER}/**/*.rs") if "InputRequiredResult::new" in tree.text(path)]
    place = f"{SERVER}/request/admit.rs"
    if places != [place]:
        yield f"(g) rounds are made in: {', '.join(path for path in places if path != place) or 'nowhere'}"


CARRIER = f"{SERVER}/request/carrier.rs"
# What has an implementation for each carrier: the exchange of the driver, the questions in a session, and the loop of legs.
BY_CARRIER = (CARRIER, *(f"{SERVER}/call/{name}" for name in ("exchange.rs", "leg.rs", "in_session.rs")))
DECIDES = r"\bsession(\(\))?\s*\.is_(some|none)\(|\bcaller\s*\.task\b|\btask_leg\(\)\s*\.is_(some|none)\("


@rule("carriers", Plant(f"(i) {SERVER}/planted.rs looks at", {f"{SERVER}/planted.rs": "Carrier::Sealed\n"}),
      Plant(f"(i) {SERVER}/planted.rs looks at", {f"{SERVER}/planted.rs": "fn f(a: Pushed) {}\n"}),
      *(Plant(f"(i) {SERVER}/call/leg.rs decides", {f"{SERVER}/call/leg.rs": append(f"fn f() {{ {code}; }}\n")})
        for code in ("request.session.is_some()", "leg.request.session\n    .is_none()", "request.session().is_none()", "leg.caller.task.is_some()",
                     "match caller.task {}", "carrier.task_leg().is_none()")),
      Plant(None, {f"{SERVER}/planted.rs": "carrier.task_leg(); request.session.as_ref();\n"}))
def carriers(tree):
    """(i) The carrier of a call is decided in one file, which others ask by methods that name the reason."""
    for path in tree.glob(f"{SERVER}/**/*.rs"):
        text = bare(tree.text(path))
        if not within(path, *BY_CARRIER) and re.search(r"Carrier::(Sealed|Pushed|Task)|\bPushed\b", text):
            yield f"(i) {path} looks at the carrier; only {CARRIER} and the code of each carrier do"
        if path != CARRIER and re.search(DECIDES, text):
            yield f"(i) {path} decides by the session or the task of a request: ask the carrier of the call ({CARRIER})"


def depends(package, *others):
    """A plant: a package depends on others, in its manifest and in Cargo.lock."""
    def locked(text):
        begin = text.index(f'name = "{package}"\n')
        end = text.index("\n]\n", begin)
        return text[:end] + "".join(f'\n "{other}",' for other in others) + text[end:]
    lines = "".join(f'{other} = {{ path = "../{other}" }}\n' if other.startswith("antiphon") else f'{other} = "1"\n' for other in others)
    return {f"crates/{package}/Cargo.toml": replace("[dependencies]\n", "[dependencies]\n" + lines), "Cargo.lock": locked}


@rule("engine", Plant("(j) antiphon-engine depends on tokio", depends("antiphon-engine", "tokio")))
def engine(tree):
    """(j) The engine stands alone."""
    for crate in sorted(tree.crates_of("-p", "antiphon-engine", "--edges", "normal")):
        if crate.split()[0] in ("tokio", "hyper", "tracing"):
            yield f"(j) antiphon-engine depends on {crate}"


@rule("sides", Plant("(k) antiphon-client depends on antiphon-seal", depends("antiphon-client", "antiphon-seal")),
      Plant("(k) antiphon-client depends on antiphon-server", depends("antiphon-client", "antiphon-server")),
      Plant("(k) antiphon-server depends on antiphon-client", depends("antiphon-server", "antiphon-client")))
def sides(tree):
    """(k) Server and client do not know each other; `rooms` looks into them."""
    for crate, others in {"antiphon-server": ["antiphon-client"], "antiphon-client": ["antiphon-server", "antiphon-seal"]}.items():
        found = {name.split()[0] for name in tree.crates_of("-p", crate, "--all-features", "--edges", "normal")}
        for other in others:
            if other in found:
                yield f"(k) {crate} depends on {other}"


BUILDS = ("-p antiphon-server --all-features", "-p antiphon", "-p antiphon-store")


DEFAULT_SQLITE = replace("\ndefault = [", '\ndefault = ["sqlite", ')


@rule("databases",
      Plant(f"(p) cargo build {BUILDS[0]} compiles rusqlite", {"crates/antiphon-store/Cargo.toml": replace("\nengine = [", '\nengine = ["sqlite", ')}),
      Plant(f"(p) cargo build {BUILDS[1]} compiles rusqlite", {"crates/antiphon/Cargo.toml": DEFAULT_SQLITE}),
      Plant(f"(p) cargo build {BUILDS[2]} compiles rusqlite", {"crates/antiphon-store/Cargo.toml": DEFAULT_SQLITE}))
def databases(tree):
    """(p) Databases are behind features: neither the server nor a default build has one."""
    for build in BUILDS:
        for crate in sorted(tree.crates_of(*build.split(), "--edges", "normal")):
            if crate.split()[0] in ("rusqlite", "tokio-postgres", "redis", "sqlx"):
                yield f"(p) cargo build {build} compiles {crate}"


@rule("tasks", Plant(f"(r) {PLANTED} spawns", {PLANTED: "fn f() { tokio::spawn(g()); }\n"}),
      Plant(f"(r) {PLANTED} spawns", {PLANTED: "fn f() { spawn_blocking(g); }\n"}),
      Plant("(r) crates/antiphon-client/src", {"ARCHITECTURE.md": replace("## Tasks of tokio\n", "## Tasks\n\n## Tasks of tokio\n\n## Others\n")}))
def tasks(tree):
    """(r) Each file that spawns a task of tokio is in the section about them."""
    table = section(tree.text("ARCHITECTURE.md"), "## Tasks of tokio")
    for path in tree.glob(*SOURCES):
        if path.endswith("/tests.rs") or within(path, f"{CLIENT}/transport/child/", "crates/antiphon-dbos/", "crates/antiphon-demo/", "crates/antiphon-cli/"):
            continue
        shown = path.replace(SERVER, "server", 1).replace(CLIENT, "client", 1).removeprefix("crates/")
        text = bare(tree.text(path))
        if re.search(r"\b(tokio::spawn|spawn_blocking|runtime\.spawn|tasks\.spawn|connections\.spawn)\(", text) and shown not in table:
            yield f"(r) {path} spawns a task, which is not in the section of ARCHITECTURE.md about them"


@rule("secrets", Plant("form/secret.rs differs", {f"{WIRE}/form/secret.rs": append("// planted\n")}))
def secrets(tree):
    """The names that suggest a secret are the same for derived forms and for all others."""
    if tree.text("crates/antiphon-macros/src/form/secret.rs") != tree.text(f"{WIRE}/form/secret.rs"):
        yield "form/secret.rs differs between antiphon-macros and antiphon-wire: copy one over the other"


UNFINISHED = {"serde(untagged": "#[serde(untagged)]", "#[ignore": "#[ignore]", "thread::sleep": "std::thread::sleep(d);", "todo!(": "todo!();",
              "unimplemented!(": "unimplemented!();"}


@rule("unfinished", *(Plant(f"{path} has `{word}`", {path: line + "\n"}) for word, line in UNFINISHED.items()
                      for path in (PLANTED, "crates/antiphon/tests/planted.rs")))
def unfinished(tree):
    for path in tree.glob(*RUST):
        if "tests" in path.split("/")[:-1] and not path.startswith("crates/"):
            continue
        for word in UNFINISHED:
            if word in bare(tree.text(path)):
                yield f"{path} has `{word}`: untagged, ignored, sleeping or unfinished code"


@rule("lints", Plant("antiphon-wire/src/lib.rs does not share", {"crates/antiphon-wire/Cargo.toml": replace("[lints]\nworkspace = true\n", "")}))
def lints(tree):
    for path in tree.glob("crates/*/src/lib.rs"):
        manifest = tomllib.loads(tree.text(path.removesuffix("src/lib.rs") + "Cargo.toml"))
        if manifest.get("lints", {}).get("workspace") is not True:
            yield f"{path} does not share the lints"


@rule("never-run", Plant("conformance/server/planted.rs has tests", {"conformance/server/planted.rs": "#[test]\nfn f() {}\n"}))
def never_run(tree):
    """A target of which no test program is built has no test that would never run."""
    for manifest in tree.glob("**/Cargo.toml"):
        content = tomllib.loads(tree.text(manifest))
        for target in content.get("bin", []) + [content.get("lib", {})]:
            if target.get("test", True) or "path" not in target or ".." in target["path"]:
                continue  # What is of another package is tested there.
            root = pathlib.PurePosixPath(manifest).parent / target["path"]
            # The sources beside a main file are its modules, unless they are those of a library.
            library = root.name == "main.rs" and tree.exists(str(root.parent / "lib.rs"))
            for source in [str(root)] if library else tree.glob(f"{root.parent}/**/*.rs"):
                if re.search(r"#\[(tokio::)?test\b|cfg\(test\)", tree.text(source)):
                    yield f"{source} has tests, and `test = false` in its manifest"
