"""JSON of a peer stays text.

`json!` panics if one of its values cannot be written as a `Value`, and not every JSON text is one: half of a surrogate pair
(`"\\ud83d"`) or a number beyond the range of `f64` (`1e400`) can be in any schema, argument or result of a peer. So the client and the
command line write such values with `Serialize`, as text: in their sources, before their tests, the values in a `json!` are literals and
names of constants, unless a comment `// own:` on the line before says whose the value is.
"""
import re

from .foreign_text import code
from .tree import Plant, rule

MACRO = re.compile(r"\bjson!\s*([(\[{])")
CLOSING = {"(": ")", "[": "]", "{": "}"}
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
# What is no literal, and no name of a constant.
VALUE = re.compile(r"\b(?!(?:true|false|null)\b|[A-Z][A-Z0-9_]*\b)[A-Za-z_]\w*")
SOURCES = ("crates/antiphon-cli/src/**/*.rs", "crates/antiphon-client/src/**/*.rs")


def content(text, start):
    """The text from the bracket at `start` to the one that closes it; strings in it are empty."""
    rest = STRING.sub('""', text[start:start + 4000])
    opening, closing = rest[0], CLOSING[rest[0]]
    depth = 0
    for at, char in enumerate(rest):
        depth += (char == opening) - (char == closing)
        if depth == 0:
            return rest[1:at]
    return rest


CLI, CLIENT = "crates/antiphon-cli/src/planted.rs", "crates/antiphon-client/src/planted.rs"
BAD = [
    # What `tools --json` and `listen --json` once were.
    'fn f() { json!({ "tools": tools.as_deref().unwrap_or_default() }) }',
    'fn f() { serde_json::json!({"event": "task",\n    "task": state}) }',
    "fn f() { json!(schema) }",
    "fn f() { json!([1, tool.input_schema]) }",
    'fn f() { // a comment\n json!({"a": 1, "b": {"c": [text]}}) }',
]
GOOD = [
    'fn f() { json!({"name": "orders", "n": 1.5, "yes": true, "none": null}) }',
    "fn f() { json!({ TASKS_EXTENSION: {} }) }",
    "fn f() {\n    // own: a number\n    json!(level)\n}",
    "// json!(schema)\nfn f() {}",
    "fn f() {}\n#[cfg(test)]\nmod tests { fn g() { json!(value) } }",
]


@rule("raw-json", *(Plant(f"{path}:", {path: text}) for path in (CLI, CLIENT) for text in BAD), *(Plant(None, {CLI: text}) for text in GOOD))
def raw_json(tree):
    for path in tree.glob(*SOURCES):
        if path.endswith("/tests.rs"):
            continue
        text = code(tree.text(path))
        for found in MACRO.finditer(text):
            own = re.search(r"// own:[^\n]*\n[^\n]*$", text[:found.start()])
            if VALUE.search(content(text, found.start(1)).replace('""', " ")) and not own:
                line = text.count("\n", 0, found.start()) + 1
                yield f"{path}:{line}: `json!` panics if a value is no `Value`: serialize it, or say `// own:`"
