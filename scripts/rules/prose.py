"""Rules of prose. They warn: a reviewer decides. The glossary's length is no prose, and fails."""
import functools
import re

from .tree import RUST, Plant, append, rule, section

PLANTED, DOCUMENT = "crates/antiphon-wire/src/planted.rs", "docs/planted.md"
QUESTIONS = "What|How|Whether|Where|Who|Why|Which|So many|So long|With what"
# Conditions, places and pronouns that a sentence above would have to begin.
BEGINNINGS = ("If|Of|Without|Nobody|It|Over|By|With|For|As|In|To|From|There|Also|Among|After|At|Never|Neither|Whoever|Whatever|However")
DOC = re.compile(r" *//[/!]")


def openers(tree, words, also_after_an_empty_line):
    begins = re.compile(rf" *//[/!] ({words})([ ,.:?]|$)")
    for path in tree.glob(*RUST):
        text, was_doc = tree.text(path), False
        if not re.search(rf"(?m)^{begins.pattern}", text):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            is_doc = bool(DOC.match(line))
            if is_doc and not was_doc and begins.match(line):
                yield f"{path}:{number}: a doc comment begins with what the thing is or does"
            was_doc = is_doc and not (also_after_an_empty_line and re.fullmatch(r" *//[/!] *", line))


@rule("questions", Plant(f"{PLANTED}:1: ", {PLANTED: "//! What this is.\n"}), Plant(f"{PLANTED}:3: ", {PLANTED: "/// A thing.\n///\n/// How many.\nfn f() {}\n"}),
      warns=True)
def questions(tree):
    for fault in openers(tree, QUESTIONS, True):
        yield f"{fault}, not with a question word"


@rule("beginnings", Plant(f"{PLANTED}:2: ", {PLANTED: "\n/// If this is.\nfn f() {}\n"}), Plant(None, {PLANTED: "/// A thing.\n/// If so.\nfn f() {}\n"}), warns=True)
def beginnings(tree):
    for fault in openers(tree, BEGINNINGS, False):
        yield f"{fault}, not with a condition, a place or a pronoun"


# Words of our own that were replaced by the field's terms, as names in code and as words in documents (CHANGELOG.md says what
# replaced them).
TYPES = ("AskedOnce|AskedNow|AskedLive|Pusher|Footing|Desk|Warden|Jar|Stamp|Hub|Marks|Shares?|Hearers?|Ear|Told|Heard|Came|Ran|Kept|Held|Says|Waited|"
         "Surroundings|Witness|World|Deeds|Rung|Passed|Pause|Patient|Wanted|Said|Got|Gone|Goes|How|What|Where|Won")
FUNCTIONS = "told|tells?|telling|said|hears?|heard|judged?|converse|attend|talk|plays?|may_pass|in_words_of|torture|surroundings"
NAMES = "unmet|footing|warden|witness|surroundings|patience|REPLAY_PATIENCE|hearers?|deaf"
WORDS = "unmet|footing|warden|witness|surroundings|hearers?|deaf|torture|journals?|through the house|leaves the house"
OLD_NAME = re.compile(rf"\b(struct|enum|union|trait|type) ({TYPES})\b|\bfn ({FUNCTIONS})\b|\b({NAMES})\b")
OLD_WORD = re.compile(rf"(?<!\w)({WORDS})(?!\w)", re.I)


@rule("vocabulary", Plant(f"{PLANTED}:1: `struct Told`", {PLANTED: "struct Told;\n"}), Plant(f"{PLANTED}:1: `fn hears`", {PLANTED: "fn hears() {}\n"}),
      Plant(f"{PLANTED}:2: `warden`", {PLANTED: "fn f() {\n    let warden = 1;\n}\n"}),
      Plant(f"{PLANTED}:1: `Journal`", {PLANTED: "fn f() {} // A Journal.\n"}), Plant(f"{DOCUMENT}:1: `torture`", {DOCUMENT: "a torture test\n"}),
      Plant(None, {PLANTED: "fn journal() {}\n"}), warns=True)
def vocabulary(tree):
    for path in tree.glob(*RUST, "**/*.md"):
        if not path.endswith("CHANGELOG.md"):
            for number, word in old_vocabulary(tree.text(path), path.endswith(".rs")):
                yield f"{path}:{number}: `{word}` is of the old vocabulary; ARCHITECTURE.md has the glossary"


@functools.lru_cache(None)
def old_vocabulary(text, is_rust):
    if not OLD_NAME.search(text) and not OLD_WORD.search(text):
        return []
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        matches = [OLD_NAME.search(re.sub(r"//.*", "", line)), OLD_WORD.search(line) if "//" in line else None] if is_rust else [OLD_WORD.search(line)]
        found += [(number, match.group()) for match in matches if match]
    return found


@rule("glossary", Plant("the glossary of ARCHITECTURE.md has", {"ARCHITECTURE.md": lambda old: old.replace("## Glossary\n", "## Glossary\n" + "| a | b |\n" * 26)}))
def glossary(tree):
    """A glossary that nobody reads to its end is none."""
    rows = [row for row in re.findall(r"(?m)^\| .*", section(tree.text("ARCHITECTURE.md"), "## Glossary")) if not row.startswith("| word |")]
    if len(rows) > 25:
        yield f"the glossary of ARCHITECTURE.md has {len(rows)} rows; 25 is the most"


# The first commit for whose successors the rule holds, and the last one whose subject may have 72 characters.
BASE, LONGER = "bbc462212412b0496081638acaa063320c65cd4f", "79ca36ba6271ea5351ac70fe07c7fb2fdc005be4"


def commit(subject, body="", parents="1"):
    return {"git log": lambda old: f"c0ffee0\0{parents}\0{subject}\0{body}\1\n" + old}


@rule("commits", Plant("c0ffee0 has a subject of 72 characters", {}, commit("ü" * 72, "A reason.")), Plant("c0ffee0 has no body", {}, commit("A subject", " \n")),
      Plant(None, {}, commit("ü" * 71, "A reason.")), Plant(None, {}, commit("A merge", "", "1 2")), warns=True)
def commits(tree):
    """A subject of at most 71 characters, and a body that gives the reason. Merges need no body."""
    if not (tree.root / ".git").exists():
        yield "not looked at: no git history here"
        return
    if BASE not in tree.run("git", "rev-list", "HEAD").split():
        yield f"not looked at: the history does not reach back to {BASE[:7]}"
        return
    before = tree.run("git", "rev-list", f"{BASE}..{LONGER}").split()
    for record in tree.run("git", "log", "--format=%h%x00%P%x00%s%x00%b%x01%H", f"{BASE}..HEAD").split("\1")[:-1]:
        name, parents, subject, body = record.split("\0")
        name = name.split("\n")[-1]
        most = 72 if any(one.startswith(name) for one in before) else 71
        if len(subject) > most:
            yield f"{name} has a subject of {len(subject)} characters; {most} is the most: {subject}"
        if " " not in parents and not body.strip():
            yield f"{name} has no body: {subject}"
