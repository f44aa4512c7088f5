"""The numbers of crates in the documents, and the largest crates in DESIGN.md, are those of `cargo tree`."""
import functools
import json
import pathlib
import re

from .tree import Plant, replace, rule

SIDE = ["--no-default-features", "--features"]
# The sentence of a document, with the build that its number is of.
NUMBERS = [
    ("DESIGN.md", r"default build compiles (\d+) crates", "antiphon", []),
    ("DESIGN.md", r"a server with HTTP, stdio and macros (\d+)", "antiphon", [*SIDE, "server,http,stdio,macros"]),
    ("DESIGN.md", r"a client with HTTP and stdio (\d+)", "antiphon", [*SIDE, "client,http,stdio"]),
    ("crates/antiphon-dbos/README.md", r"The crate is (\d+) crates", "antiphon-dbos", []),
]
# The most crates that a build may compile.
LIMITS = [("default", [], 115), ("server,http,stdio,macros", [*SIDE, "server,http,stdio,macros"], 106), ("client,http,stdio", [*SIDE, "client,http,stdio"], 77)]
MORE = [("DESIGN.md", r"\((\d+) more crates"), ("ARCHITECTURE.md", r"its validator needs (\d+) crates more")]
DBOS = "crates/antiphon-dbos/README.md"


def plants():
    """Each sentence with another number, and each without it."""
    for document, sentence in [*((document, sentence) for document, sentence, _, _ in NUMBERS), *MORE, (DBOS, r"(\d+) of them are not among")]:
        found = re.compile(sentence.replace(" ", r"\s+"))
        yield Plant("9999", {document: lambda old, found=found: found.sub(lambda one: one.group().replace(one.group(1), "9999"), old)})
        yield Plant(f"{document} has no sentence `{sentence}`", {document: lambda old, found=found: found.sub("planted", old)})


@rule("crates", *plants(), Plant("DESIGN.md: the largest crates are", {"DESIGN.md": replace("| `hyper`", "| `serde`")}),
      *(Plant(f"a build with {name} compiles", {}, {f"cargo tree --prefix none -p antiphon --edges normal,build {' '.join(features)}".strip():
                                                      lambda old: old + "".join(f"planted{number} v1.0.0\n" for number in range(99))})
        for name, features, _ in LIMITS),
      Plant("cargo tree has", {}, {"cargo tree --prefix none -p antiphon --edges": lambda old: old + "planted v1.0.0\n"}))
def crates(tree):
    def of(package, *features):
        """The crates that a build compiles, this project's among them."""
        return tree.crates_of("-p", package, "--edges", "normal,build", *features)

    def compare(document, sentence, right):
        found = re.search(sentence.replace(" ", r"\s+"), tree.text(document))
        if not found:
            yield f"{document} has no sentence `{sentence}`"
        elif int(found.group(1)) != right:
            yield f"{document}: `{' '.join(found.group().split())}`, and cargo tree has {right}"

    default = of("antiphon")
    for name, features, most in LIMITS:
        count = len(of("antiphon", *features))
        if count > most:
            yield f"a build with {name} compiles {count} crates; {most} is the most"
    for document, sentence, package, features in NUMBERS:
        yield from compare(document, sentence, len(of(package, *features)))
    yield from compare(DBOS, r"(\d+) of them are not among", len(of("antiphon-dbos") - of("antiphon", "--features", "postgres")))
    # Those of the validator, without antiphon-schema.
    more = len(of("antiphon", "--features", "schema") - default) - 1
    for document, sentence in MORE:
        yield from compare(document, sentence, more)
    # The largest crates by the bytes of their sources.
    sizes = {}
    for package in json.loads(tree.cargo("metadata", "--format-version", "1"))["packages"]:
        if package["source"] and f"{package['name']} v{package['version']}" in default:
            sizes[package["name"]] = sizes.get(package["name"], 0) + bytes_of(pathlib.Path(package["manifest_path"]).parent / "src")
    section = re.search(r"The (\w+) largest crates of the default build.*?(?=\n\n##|\Z)", tree.text("DESIGN.md"), re.S)
    named = [name for row in re.findall(r"(?m)^\| (`.*?) \| ", section.group()) for name in re.findall(r"`([\w-]+)`", row)]
    words = ["ten", "eleven", "twelve", "thirteen"]
    if section.group(1) not in words or words.index(section.group(1)) + 10 != len(named):
        yield f"DESIGN.md speaks of {section.group(1)} largest crates, and names {len(named)}"
    largest = sorted(sizes, key=sizes.get, reverse=True)[: len(named)]
    if sorted(named) != sorted(largest):
        yield f"DESIGN.md: the largest crates are {', '.join(largest)}"


@functools.cache
def bytes_of(sources):
    return sum(path.stat().st_size for path in sources.rglob("*.rs"))
