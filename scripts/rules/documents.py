"""What documents list is complete, and what scripts write is up to date."""
import json
import re
import tomllib

from drawings import bench, carriers, demo, two_instances

from .tree import Plant, append, replace, rule

GUIDE, FACADE = "crates/antiphon/src/guide", "crates/antiphon/src/lib.md"


@rule("guide", Plant("the guide's table has no chapter planted", {f"{GUIDE}/planted.md": "# Planted\n"}),
      Plant(f"{FACADE} has no chapter planted", {f"{GUIDE}/planted.md": "# Planted\n"}),
      Plant(f"{FACADE} does not name the feature planted", {"crates/antiphon/Cargo.toml": replace("[features]\n", "[features]\nplanted = []\n")}))
def guide(tree):
    """Each chapter is in the tables of the guide and of the crate, and each feature in that of the crate."""
    facade = tree.text(FACADE)
    for path in tree.glob(f"{GUIDE}/*.md"):
        name = path.removeprefix(f"{GUIDE}/").removesuffix(".md")
        if name in ("carriers_picture", "log_events"):
            continue
        if f"| [`{name}`] |" not in tree.text(f"{GUIDE}/mod.rs"):
            yield f"the guide's table has no chapter {name}"
        if f"[`guide::{name}`]" not in facade:
            yield f"{FACADE} has no chapter {name}"
    for feature in tomllib.loads(tree.text("crates/antiphon/Cargo.toml"))["features"]:
        if feature != "default" and f"| `{feature}` |" not in facade:
            yield f"{FACADE} does not name the feature {feature}"


# The most bytes of what is read first.
MOST = {"README.md": 6 * 1024, "ARCHITECTURE.md": 24 * 1024, "SECURITY.md": 8 * 1024}
PEER = "interop/rmcp/readme/src/main.rs"


@rule("first-pages", *(Plant(f"{document} has", {document: append("a" * most)}) for document, most in MOST.items()),
      Plant("README.md does not have the lines of", {"README.md": replace("impl Databases {", "impl Planted {")}),
      Plant("README.md does not have the lines of", {PEER: replace("enum Stage {", "enum Planted {")}))
def first_pages(tree):
    """What is read first is short, and its comparison with rmcp is code that compiles."""
    for document, most in MOST.items():
        bytes_of_document = len(tree.text(document).encode())
        if bytes_of_document > most:
            yield f"{document} has {bytes_of_document} bytes; {most} is the most"
    compared = re.search(r"(?s)// README: begin\n(.*?)\n// README: end", tree.text(PEER)).group(1)
    if compared not in tree.text("README.md"):
        yield f"README.md does not have the lines of {PEER} between its marks"


@rule("examples", Plant("examples/README.md has no row for planted", {"examples/planted/main.rs": "fn main() {}\n"}),
      Plant("examples/Cargo.toml has no program planted", {"examples/planted/main.rs": "fn main() {}\n"}),
      Plant("examples/README.md names planted", {"examples/README.md": append("\n| `planted` | a | b |\n")}))
def examples(tree):
    """examples/README.md has one row for each example, with its command and its file."""
    table, manifest = tree.text("examples/README.md"), tree.text("examples/Cargo.toml")
    for path in tree.glob("examples/*/main.rs"):
        name = path.split("/")[1]
        if not re.search(rf"(?m)^\| `{name}` \| .+ \| `.*\b{name}\b.*` \| \[{name}/main\.rs\]\({name}/main\.rs\) \|$", table):
            yield f"examples/README.md has no row for {name}, with a command and the file"
        if f'\nname = "{name}"' not in manifest:
            yield f"examples/Cargo.toml has no program {name}"
    for name in re.findall(r"(?m)^\| `([a-z_]+)` \|", table):
        # A program, or a workspace of its own.
        if not tree.exists(f"examples/{name}/main.rs") and not tree.exists(f"examples/{name}/Cargo.toml"):
            yield f"examples/README.md names {name}, which is not there"


@rule("scripts", Plant("CONTRIBUTING.md has no row for scripts/planted", {"scripts/planted": "#!/bin/sh\n"}))
def scripts(tree):
    for path in tree.glob("scripts/*"):
        if f"| `{path.removeprefix('scripts/')}` |" not in tree.text("CONTRIBUTING.md"):
            yield f"CONTRIBUTING.md has no row for {path}"


EXPECTED = "conformance/runner/expected.json"


def one_more(text):
    content = json.loads(text)
    first = next(iter(content.values()))
    first["server"] = {**first["server"], "planted": "pass"} if isinstance(first["server"], dict) else [*first["server"], "planted"]
    return json.dumps(content)


@rule("scenarios", Plant("conformance/README.md: ", {EXPECTED: one_more}), Plant("README.md does not say that there are", {EXPECTED: one_more}))
def scenarios(tree):
    table, number = tree.text("conformance/README.md"), 0
    for revision, ends in json.loads(tree.text(EXPECTED)).items():
        server, client = len(ends["server"]), len(ends["client"])
        number += server + client
        of_server = f"{server} scenarios " if server else ""
        if not re.search(rf"\| {revision} \| {of_server}\| {client} scenarios ", table):
            yield f"conformance/README.md: {revision} has {server} and {client} scenarios"
    for document in ("README.md", "conformance/README.md"):
        if not re.search(rf"\b{number} scenarios", tree.text(document)):
            yield f"{document} does not say that there are {number} scenarios"


def pictures_of(tree):
    """The text of each file that scripts/pictures writes."""
    of_carriers, recording = carriers.draw(), tree.text("docs/pictures/demo.cast")
    files = {
        "docs/pictures/two-instances.svg": two_instances.draw(),
        "docs/pictures/carriers.svg": of_carriers,
        "docs/pictures/demo.svg": demo.draw(recording),
        f"{GUIDE}/carriers_picture.md": carriers.link_definition("carriers", of_carriers),
    }
    if tree.exists("bench/results.md"):
        results = tree.text("bench/results.md")
        files["docs/pictures/bench.svg"] = bench.draw(results)
        files["bench/README.md"] = bench.fill(tree.text("bench/README.md"), results)
    return files


PICTURES = ("docs/pictures/two-instances.svg", "docs/pictures/carriers.svg", "docs/pictures/demo.svg", f"{GUIDE}/carriers_picture.md", "docs/pictures/bench.svg")


@rule("pictures", *(Plant(f"{path} is not up to date", {path: lambda old: "planted" + old}) for path in PICTURES),
      Plant("bench/README.md is not up to date", {"bench/README.md": lambda old: old.replace("<!-- end of results -->", "planted\n<!-- end of results -->")}))
def pictures(tree):
    """The pictures, and the passages that are written with them, are as the scripts draw them."""
    for path, text in pictures_of(tree).items():
        if not tree.exists(path) or tree.text(path) != text:
            yield f"{path} is not up to date: run scripts/pictures"


@rule("changelog", Plant("a breaking change without *Migration:*", {"CHANGELOG.md": append("\n### Planted: breaking\n\n* A change.\n")}))
def changelog(tree):
    """Each item of CHANGELOG.md under a heading with "breaking" has a migration line."""
    text, heading, items = tree.text("CHANGELOG.md"), "", []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            heading = line
        elif re.match(r"[*-] ", line):
            items.append([number, "breaking" in heading, line])
        elif items and line.strip():
            items[-1][2] += " " + line.strip()
    for number, is_breaking, item in items:
        if is_breaking and "*Migration:*" not in item:
            yield f"CHANGELOG.md:{number}: a breaking change without *Migration:*"
    if not any(is_breaking for _, is_breaking, _ in items) and "breaking" in text:
        yield "CHANGELOG.md: no item stands under a heading with `breaking`"


def sentences(text):
    paragraphs = []
    for line in text.split("\n"):
        if line.startswith("#"):
            paragraphs.append("")
        elif not line.strip() or re.match(r"\s*([*-]|\d+\.) ", line):
            paragraphs.append(re.sub(r"^\s*([*-]|\d+\.) ", "", line))
        else:
            paragraphs[-1] += " " + line.strip()
    for paragraph in paragraphs:
        for sentence in re.split(r"(?<=[.?])\*{0,2}\s+(?=[A-Z`(\[*])", paragraph):
            sentence = " ".join(sentence.replace("**", "").split())
            if sentence:
                yield sentence


@rule("security", Plant("no row for: Planted words are safe.", {"SECURITY.md": append("\nPlanted words are safe.\n")}),
      Plant("SECURITY.md has no sentence that begins: Planted words", {"docs/conformance/security.md": append("\n- Planted words ..: a test\n")}))
def security(tree):
    """docs/conformance/security.md lists each sentence of SECURITY.md with what holds it. A row begins with the first words of a sentence."""
    listed = list(sentences(tree.text("SECURITY.md")))
    rows = [" ".join(row.split()) for row in re.findall(r"(?m)^- (.+?) \.\.: .+$", tree.text("docs/conformance/security.md"))]
    for sentence in listed:
        if not any(sentence.startswith(row) for row in rows):
            yield f"docs/conformance/security.md: no row for: {sentence}"
    for row in rows:
        if not any(sentence.startswith(row) for sentence in listed):
            yield f"docs/conformance/security.md: SECURITY.md has no sentence that begins: {row}"


INDEX = "crates/antiphon/tests/README.md"
TEST = re.compile(r"#\[(tokio::)?test\b|#\[test_case|\bproptest!|^family!", re.M)
REAL = re.compile(r"\b(TcpListener|TcpStream|UnixListener|UnixStream|serve_http|socket::|Command::new|thread::spawn|multi_thread|PostgresServer|RedisServer)\b")


@rule("tests", Plant("server/planted.rs uses sockets", {"crates/antiphon/tests/planted/server/planted.rs": "#[test]\nfn f() { TcpListener::bind() }\n"}),
      Plant("planted.rs is not in the index", {"crates/antiphon/tests/planted.rs": "#[test]\nfn f() {}\n"}),
      Plant("antiphon-wire/tests/planted is not in the index", {"crates/antiphon-wire/tests/planted/main.rs": "#[test]\nfn f() {}\n"}))
def tests(tree):
    """The index of the tests has each file and folder with tests, and its section on the wall clock each file that uses sockets,
    child processes, databases or threads, by its own name or by that of its folder."""
    text = tree.text(INDEX)
    wall = text[text.index("## Tests on the wall clock"):]
    for path in tree.glob("crates/*/tests/**/*.rs"):
        if not TEST.search(tree.text(path)):
            continue
        crate, rest = path.split("/")[1], path.split("/")[3:]
        # The paths of the index begin in its own folder, or else in crates/.
        parts = rest if crate == "antiphon" else [crate, "tests", *rest]
        entry = len(parts) - len(rest) + 1
        if "/".join(parts[:entry]) + "/" * (len(rest) > 1) not in text:
            yield f"{INDEX}: {'/'.join(parts[:entry])} is not in the index"
        names = ["`" + "/".join(parts[:length]) + "/`" for length in range(1, len(parts))] + ["`" + "/".join(parts) + "`"]
        if REAL.search(tree.text(path)) and not any(name in wall for name in names):
            yield f"{INDEX}: {'/'.join(parts)} uses sockets, processes or threads, and is not in the section on the wall clock"


def first_sentence(text):
    """The first sentence of a file's documentation."""
    found = []
    for line in text.split("\n"):
        if not line.startswith("//!") or line.strip() == "//!":
            if found or not line.startswith("//!"):
                break
            continue
        found.append(line[3:].strip())
    joined = re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", " ".join(found))
    sentence = re.match(r"(.*?[.:])(\s|$)", joined)
    return sentence.group(1) if sentence else joined


@rule("files", Plant("crates/antiphon-wire/src/planted.rs has no documentation", {"crates/antiphon-wire/src/planted.rs": "fn f() {}\n"}),
      Plant("the documentation of crates/antiphon-wire/src/planted.rs has no sentence", {"crates/antiphon-wire/src/planted.rs": "//! A plant\n"}))
def files(tree):
    """Each source file begins with a sentence that says what it is."""
    for path in tree.glob("crates/*/src/**/*.rs", "drill/src/**/*.rs"):
        parts = path.removesuffix(".rs").split("/")
        if "tests" in parts or parts[-1] in ("lib", "main"):
            continue
        sentence = first_sentence(tree.text(path))
        if not sentence:
            yield f"{path} has no documentation"
        elif not sentence.endswith((".", ":")):
            yield f"the documentation of {path} has no sentence"
