"""Everything that a document names exists: paths, links, tests, functions, quoted lines of code, and names.

Looks at the text in backquotes of each document, outside of code blocks.

* A path is in the tree: from the root, from `crates/`, from the document's folder, or with an abbreviation of
  ARCHITECTURE.md and docs/conformance/spec.md. `file.rs::name` names a function of the file.
* `Type::member` is a member of a type of the sources.
* Beside a path (`path` (`function`), `function` in `path`, the table "the line that" of ARCHITECTURE.md), a function or a
  quoted line is in that file.
* Anything else occurs in the sources as it is written, or each of its words does.
"""
import functools
import os
import re

from .tree import Plant, append, rule

ABBREVIATIONS = {
    "server/": "crates/antiphon-server/src/", "client/": "crates/antiphon-client/src/",
    "engine/": "crates/antiphon-engine/src/", "cli/": "crates/antiphon-cli/src/", "tests/": "crates/antiphon/tests/",
    "wire/": "crates/antiphon-wire/src/", "schema/": "crates/antiphon-schema/src/", "seal/": "crates/antiphon-seal/src/",
}
SUFFIX = re.compile(r"\.(rs|md|toml|sh|py|mjs|json|svg|txt|stderr|lock|jwt)$")
PATH = re.compile(r"[\w.@-]+(/[\w.@*-]+)*/?")
MEDIA = re.compile(r"(application|text|image|audio)/[\w.+*-]+")
# Names of others, which no source here has: crates and formats that lost, parts of other SDKs, words of the specification.
FOREIGN = {
    "aws", "ConnectionClosed",
    # Functions of rmcp.
    "notify_tool_list_changed", "with_allowed_hosts", "with_allowed_origins",
    # Settings of Redis, PostgreSQL and PgBouncer.
    "everysec", "synchronous_standby_names", "wal_writer_delay", "max_prepared_statements", "ignore_startup_parameters",
}
# Files that the programs of a document write.
WRITTEN = {"corpus/", "results.md", ".results/summary.md", ".results/summary.json"}


WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
SOURCE = (".rs", ".patch", ".toml", ".sh", ".py", ".mjs", ".json", ".yml", ".txt", ".lock", ".sql", ".lua", ".cfg", ".conf", "Caddyfile")
# This file has the names of others, and the plants.
THIS = "scripts/rules/paths.py"


def squeeze(text):
    return re.sub(r"\s+", "", text)


@functools.lru_cache(None)
def squeezed(text):
    return squeeze(text)


@functools.lru_cache(None)
def words_of(text):
    return frozenset(WORD.findall(text))


@functools.lru_cache(None)
def spans(document_text):
    """Each text in backquotes with its line, and each line, outside of code blocks."""
    fence = None
    lines = []
    for number, line in enumerate(document_text.split("\n"), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = None if fence else mark.group(1)
            line = ""
        lines.append("" if fence else line)
    # A text may go over a line's end, but not over a paragraph's.
    text = "\n".join(lines)
    found = []
    for match in re.finditer(r"(?<!`)(``?)(?!`)((?:[^`\n]|\n(?!\n)|(?<!`)`(?!`))+?)(?<!`)\1(?!`)", text):
        found.append((text.count("\n", 0, match.start()) + 1, " ".join(match.group(2).split())))
    blocks = "\n".join(set(document_text.split("\n")) - set(lines))
    return found, text, blocks


def with_member(kind, member, text):
    if re.search(rf"\b(fn|const|type) (r#)?{member}\b", text):
        return True
    return bool(re.search(rf"(?m)^\s*(pub(\([a-z]+\))? )?{member}\b\s*[,({{:=]|^\s*{member}$|[,{{(|:]\s*{member}\b", text))


def in_file(span, text):
    """Whether a file has this function, member or line."""
    name = span.rstrip("()")
    if re.fullmatch(r"(\w+)(::\w+)+", name):
        kind, member = name.split("::")[-2:]
        return re.search(rf"\b{kind}\b", text) and re.search(rf"\b{member}\b", text)
    if re.fullmatch(r"[a-z_][a-z_0-9]*", name):
        return re.search(rf"\b{name}\b", text)
    return squeeze(span) in squeeze(text)


class Sources:
    """The sources of a tree, as documents are compared with them."""

    def __init__(self, tree):
        self.tree = tree
        files = [path for path in tree.files if "seeds" not in path.split("/")]
        self.names = {os.path.basename(path) for path in files}
        self.folders = {os.path.basename(os.path.dirname(path)) for path in files}
        sources = [path for path in files if path.endswith(SOURCE) or os.path.dirname(path) == "scripts"]
        self.texts = {path: tree.text(path) for path in sources if path != THIS}
        self.rust = [text for path, text in self.texts.items() if path.endswith(".rs")]
        self.words = frozenset().union(*map(words_of, self.texts.values()))
        self.lines = "\n".join(map(squeezed, self.texts.values()))
        self.methods = set(re.findall(r'"([a-z_]+(?:/[a-zA-Z_]+)+)"', tree.text("crates/antiphon-wire/src/method.rs")))
        self.members = {}
        self.faults = {}

    def resolve(self, document, name):
        """The file or folder that a path names, if there is one."""
        name = name.rstrip("/") if len(name) > 1 else name
        here = os.path.dirname(document)
        # The packages' folders of the crate that a document belongs to.
        crate = here
        while crate and not self.tree.exists(f"{crate}/Cargo.toml"):
            crate = os.path.dirname(crate)
        places = [name, f"crates/{name}", f"{here}/{name}", f"{crate}/{name}", f"{crate}/src/{name}"]
        places += [long + (name + "/")[len(short):] for short, long in ABBREVIATIONS.items() if (name + "/").startswith(short)]
        for place in places:
            place = os.path.normpath(place.lstrip("/"))
            if "*" in name:
                if self.tree.glob(place) or any(re.fullmatch(re.escape(place).replace(r"\*", "[^/]*"), folder) for folder in self.tree.folders):
                    return os.path.dirname(place)
            elif self.tree.exists(place):
                return place
        return None

    def is_path(self, document, name):
        if name in self.methods or name.startswith("notifications/") or MEDIA.fullmatch(name) or not PATH.fullmatch(name):
            return False
        if SUFFIX.search(name):
            return True
        head = name.split("/")[0]
        return "/" in name and (name.endswith("/") or head + "/" in ABBREVIATIONS or head in self.tree.folders
                                or os.path.normpath(f"{os.path.dirname(document)}/{head}") in self.tree.folders)

    def has_member(self, kind, member):
        if (kind, member) not in self.members:
            self.members[kind, member] = any(
                kind in text and member in text and re.search(rf"\b{kind}\b", text) and with_member(kind, member, text) for text in self.rust)
        return self.members[kind, member]


def pairs(sources, document, text):
    """What stands beside a path is in that file."""
    tree = sources.tree

    def missing(match, name, path):
        found = sources.resolve(document, path)
        if found in tree.file_set and found.endswith(".rs") and not in_file(name, tree.text(found)):
            yield text.count("\n", 0, match.start()) + 1, f"`{name}` is not in {path}"

    for match in re.finditer(r"`([\w/.-]+\.rs)`(?:\*\*)?\s+\(((?:`[^`]+`(?:, | and )?)+)\)", text):
        for name in re.findall(r"`([^`]+)`", match.group(2)):
            if not sources.is_path(document, name):
                yield from missing(match, name, match.group(1))
    for match in re.finditer(r"`([^`]+)`\s+(?:in|of)\s+`([\w/.-]+\.rs)`", text):
        if not sources.is_path(document, match.group(1)):
            yield from missing(match, match.group(1), match.group(2))
    inside = False
    for line, row in enumerate(text.split("\n"), 1):
        inside = row.startswith("| the line that") or (inside and row.startswith("|"))
        cells = row.split(" | ")
        if inside and len(cells) == 3 and ".rs`" in cells[1]:
            path = re.search(r"`([^`]+)`", cells[1]).group(1)
            names = re.findall(r"`([^`]+)`", cells[2])
            found = {sources.resolve(document, name) for name in [path, *names] if name == path or sources.is_path(document, name)}
            texts = "\n".join(tree.text(one) for one in sorted(found & tree.file_set))
            for name in names:
                if not sources.is_path(document, name) and not in_file(name, texts):
                    # A type of another file may stand in the sentence around the line.
                    if not (re.fullmatch(r"\w+(::\w+)*", name) and squeeze(name.split("::")[-1]) in squeezed(texts)):
                        yield line, f"`{name}` is not in {path}"


def is_known(sources, word, span, blocks):
    # In a command, a word in capitals stands for a value.
    if word.isupper() and "--" in span or word in sources.words or word in FOREIGN or re.search(rf"\b{word}\b", blocks):
        return True
    # The dots and the star stand for the rest of a name.
    return (f"..{word}" in span and any(other.endswith(word) for other in sources.words)
            or f"*{word}" in span and any(other.endswith(word) for other in sources.words | sources.folders)
            or f"{word}*" in span and any(other.startswith(word) for other in sources.words))


def span_fault(sources, document, span, blocks):
    """What is wrong with a text in backquotes, if anything is."""
    braces = re.fullmatch(r"([\w./@-]+/)\{[\w ,./-]+\}[\w./-]*", span)
    if braces and sources.resolve(document, braces.group(1)) is not None:
        return f"`{span}`: each file has a path of its own, without braces"
    path, _, test = span.partition("::")
    if sources.is_path(document, path):
        target = sources.resolve(document, path)
        if target is None:
            return None if path in WRITTEN or "/" not in path and path in sources.names else f"{path} is not there"
        if test and not re.search(rf"\bfn {test}\b", sources.tree.text(target)):
            return f"{path} has no function {test}"
        return None
    member = re.fullmatch(r"(?:\w+::)*([A-Z]\w*)::(\w+)(\(.*\))?!?", span)
    if member and member.group(1) not in FOREIGN and f"{member.group(1)}::{member.group(2)}" not in FOREIGN:
        if not sources.has_member(member.group(1), member.group(2)):
            return f"`{span}`: no source has this member"
        return None
    if squeeze(span) in sources.lines or squeeze(span) in squeezed(blocks):
        return None
    return next((f"`{span}`: no source has `{word}`" for word in WORD.findall(span) if not is_known(sources, word, span, blocks)), None)


def faults(sources, document):
    found, text, blocks = spans(sources.tree.text(document))
    for line, span in found:
        fault = span_fault(sources, document, span, blocks)
        if fault:
            yield line, fault
    for match in re.finditer(r"\]\(([^)#\s]+)(#[^)]*)?\)", text):
        link = match.group(1)
        if re.match(r"[a-z]+:", link) or re.match(r"(crate|super|self|Self|[A-Za-z_@]+)(::|$)", link):
            continue
        if not sources.tree.exists(os.path.normpath(f"{os.path.dirname(document) or '.'}/{link}")):
            yield text.count("\n", 0, match.start()) + 1, f"the link {link} leads nowhere"
    yield from pairs(sources, document, text)


DOCUMENT = "docs/planted.md"
ENVELOPE = "crates/antiphon-wire/src/version.rs"


@rule("paths", *(Plant(f"{DOCUMENT}:1: {fault}", {DOCUMENT: text + "\n"}) for text, fault in [
    ("`docs/gone.md`", "docs/gone.md is not there"),
    ("`crates/{antiphon,antiphon-wire}/src`", "`crates/{antiphon,antiphon-wire}/src`: each file has a path"),
    (f"`{ENVELOPE}::plantless`", f"{ENVELOPE} has no function plantless"),
    ("`Server::plantless`", "`Server::plantless`: no source has this member"),
    ("`plantless`", "`plantless`: no source has `plantless`"),
    ("`let plantless = 1;`", "`let plantless = 1;`: no source has `plantless`"),
    ("[a link](gone.md)", "the link gone.md leads nowhere"),
    (f"`{ENVELOPE}` (`plantless`)", f"`plantless` is not in {ENVELOPE}"),
    (f"`elicit` in `{ENVELOPE}`", f"`elicit` is not in {ENVELOPE}"),
]), Plant(f"{DOCUMENT}:3: `in_transaction` is not in {ENVELOPE}", {DOCUMENT: f"| the line that | is in | as |\n|---|---|---|\n| a | `{ENVELOPE}` | `in_transaction` |\n"}),
      Plant("ARCHITECTURE.md:", {"ARCHITECTURE.md": append("\n`plantless`\n")}),
      Plant(None, {DOCUMENT: f"`plantless`\n\n```text\nplantless\n```\n\n`docs/`, `{ENVELOPE}`, [a link](limits.md), `Server::builder`\n"}))
def paths(tree):
    sources = tree.memo.get("paths") or Sources(tree)
    tree.memo["paths"], sources.tree = sources, tree
    for document in tree.glob("**/*.md"):
        if os.path.basename(document) not in ("CHANGELOG.md", "carriers_picture.md"):
            key = document, tree.text(document)
            if key not in sources.faults:
                sources.faults[key] = [f"{document}:{line}: {fault}" for line, fault in faults(sources, document)]
            yield from sources.faults[key]
