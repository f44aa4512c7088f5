"""Text from a peer reaches a log or a terminal only escaped and cut.

In the sources of the crates, before their tests:

* a field of a log macro is printed with `%` only as `escaped(..)`, as a `ForeignText`, or as one of OWN, which no peer chooses;
* the message of a log macro has no value in it, unless a comment `// own:` on the line before says whose the value is;
* `print!`, `println!`, `eprint!`, `eprintln!` and `dbg!` are only in the console of the command line;
* the command line names the terminal's streams only in its console, and the library of prompts only in its prompts. Both escape
  what they print, so that a text which a caller forgot to escape reaches no terminal;
* `escape_debug` and tests of characters for control characters are only in the escape itself, and where OWN_RULES lists them.
"""
import functools
import re

from .tree import Plant, rule

CONSOLE = "crates/antiphon-cli/src/console.rs"
MACRO = re.compile(r"\b(?:tracing::)?(?:(?:trace|debug|info|warn|error|event)(?:_span)?|span|log_refusal)!\s*\(")
# What no peer chooses: numbers, addresses, times, and identifiers that this side made.
OWN = (
    re.compile(r"escaped\("),
    re.compile(r"ForeignText::"),
    # A `StatusCode` and an `ErrorCode` are numbers.
    re.compile(r"(?:response\.status\(\)|status|code)$"),
)
# Names that a `let` of the same function binds to `escaped(..)` or a `ForeignText`.
BOUND = r"let (?:\w+|\([\w, ]*\b{name}\b[\w, ]*\)) = [^;]*(?:escaped\(|ForeignText::)"
PRINT = re.compile(r"\b(?:e?print(?:ln)?|dbg)!\s*[(\[{]")
# The ways of the command line to its terminal. The module of each escapes every text.
TERMINAL = {
    CONSOLE: re.compile(r"\b(?:stdout|stderr)\(\)|/dev/(?:tty|std)"),
    "crates/antiphon-cli/src/ask/prompt.rs": re.compile(r"\binquire\b"),
}
CHARACTERS = re.compile(r"escape_debug|is_control\(\)")
OWN_RULES = {
    # The escape itself.
    "crates/antiphon-wire/src/foreign_text.rs": "the classes",
    # The schemas' crate stands alone; those who show its texts escape them.
    "crates/antiphon-schema/src/fault.rs": "parts of a schema in quotes, cut",
    # Rules of formats and headers: the text is refused, not shown.
    "crates/antiphon-wire/src/form/check.rs": "an email address or a URI with control characters is none",
}


@functools.lru_cache(None)
def code(text):
    """The source before its tests, with comments blanked (strings stay)."""
    text = re.split(r"\n#\[cfg\(test\)\]\s*\n(?:#\[[^\n]*\]\s*\n)*mod ", text)[0]
    return re.sub(r"(?m)^(\s*)//(?! own:).*$", r"\1", text)


def arguments(text, start):
    """The text between the parenthesis at `start` and the one that closes it, and the arguments at its top level."""
    depth, at, parts, begin, string = 0, start, [], start + 1, False
    while at < len(text):
        char = text[at]
        if string:
            at += char == "\\"
            string = char != '"'
        elif char == '"':
            string = True
        elif char == "'" and re.match(r"'(?:\\.[^']*|[^'\\])'", text[at:]):
            at += re.match(r"'(?:\\.[^']*|[^'\\])'", text[at:]).end() - 1
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                parts.append(text[begin:at])
                return [part.strip() for part in parts if part.strip()]
        elif char == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
        at += 1
    return []


def is_own(expression, before):
    if any(rule.match(expression) for rule in OWN):
        return True
    name = expression if re.fullmatch(r"\w+", expression) else None
    function = before[max(before.rfind("\nfn "), before.rfind(" fn "), 0):]
    return bool(name and re.search(BOUND.format(name=name).replace(r"\w+|", name + "|", 1), function, re.S))


def field_faults(part, before):
    part = re.sub(r"^\{|\}$", "", part).strip()
    shorthand = re.match(r"%\s*(.+)$", part, re.S)
    named = re.match(r"[\w.]+\s*=\s*%\s*(.+)$", part, re.S)
    found = shorthand or named
    if found and not is_own(found.group(1).strip(), before):
        yield f"`{' '.join(part.split())}` is printed as it is: write `= %escaped(..)`"


@functools.lru_cache(None)
def faults(path, text):
    return list(_faults(path, text))


def _faults(path, text):
    text = code(text)
    line = lambda at: text.count("\n", 0, at) + 1
    for found in MACRO.finditer(text):
        before = text[: found.start()]
        if re.search(r"macro_rules! \w+ \{[^}]*$", before[-400:]) or "macro_rules" in before[-400:]:
            continue
        parts = arguments(text, found.end() - 1)
        if found.group().startswith("log_refusal"):
            parts = [inner for part in parts for inner in (arguments("(" + part[1:-1] + ")", 0) if part.startswith("{") else [part])]
        for part in parts:
            for fault in field_faults(part, before):
                yield line(found.start()), fault
            message = re.match(r'"(?:[^"\\]|\\.)*"', part, re.S)
            own = re.search(r"// own:[^\n]*\n\s*(?:return )?$", before)
            if message and re.search(r"(?<!\{)\{[^{]", message.group()) and not own:
                inline = re.findall(r"(?<!\{)\{(\w*)[^}]*\}", message.group())
                if not all(name and is_own(name, before) for name in inline):
                    yield line(found.start()), "a value in the message of a log: make it a field, `= %escaped(..)`"
    if path != CONSOLE:
        for found in PRINT.finditer(text):
            yield line(found.start()), f"prints beside {CONSOLE}"
    if path.startswith("crates/antiphon-cli/src/"):
        for guard, way in TERMINAL.items():
            for found in way.finditer(text) if path != guard else ():
                yield line(found.start()), f"writes to the terminal beside {guard}, which escapes"
    if path not in OWN_RULES:
        for found in CHARACTERS.finditer(text):
            yield line(found.start()), "escapes by itself: use `antiphon_wire::escaped` or `is_escaped`"


# Shapes that must be found.
BAD = [
    # The method of a server's request, the name of a tool, the name of a server.
    'fn f() { tracing::warn!(method = %shortened(&request.method), "the server sent a request: ignored"); }',
    'fn f() { tracing::warn!(tool = %name, reason = %fault, "a tool of the server is left out"); }',
    'fn f() { tracing::debug!(server = %self.server, "an unknown URL is finished: ignored"); }',
    'fn f() { tracing::debug!(%error, "a text"); }',
    'fn f() { tracing::info!(server, "{line}"); }',
    'fn f() { tracing::warn!("missing: {}", missing.join(", ")); }',
    'fn f() { warn!(\n    a = 1,\n    fault = %fault,\n    "text"\n); }',
    'fn f() { log_refusal!(loudness, { %cause, method }, "refused"); }',
    'fn f() { println!("{name}"); }',
    'fn f() { eprint!("x"); }',
    'fn f() { text.chars().filter(|c| !c.is_control()) }',
    'fn f() { let other = escaped(&x); tracing::warn!(%name, "text"); }',
]
# And some that must not be.
GOOD = [
    'fn f() { tracing::warn!(method = %escaped(&request.method), "ignored"); }',
    'fn f() { let method = escaped(&request.method);\n tracing::warn!(%method, "ignored"); }',
    'fn f() { let (a, cause) = (1, escaped(&x));\n log_refusal!(loudness, { %cause, reason }, "refused"); }',
    'fn f() { tracing::warn!(status = %response.status(), count = 3, ?wait, "a message with {{braces}}"); }',
    'fn f() { let line = escaped(line).limit(9);\n tracing::info!("{line}"); }',
    '// tracing::warn!(%name, "in a comment");\nfn f() {}',
    'fn f() {}\n#[cfg(test)]\nmod tests { fn g() { println!("{x}"); } }',
]
# Ways of the command line to its terminal that must be found: the log of legs once had a function that printed a text as it is.
BAD_IN_CLI = [
    'fn f() { let log: fn(&str) = |line| drop(writeln!(std::io::stderr(), "{line}")); }',
    'fn f() { io::stdout().lock().write_all(text.as_bytes()) }',
    'use inquire::Text;',
    'fn f() { std::fs::write("/dev/tty", text) }',
]
PLANTED = "crates/antiphon-wire/src/planted.rs"
PLANTED_IN_CLI = "crates/antiphon-cli/src/planted.rs"


@rule(
    "foreign-text",
    *(Plant(f"{PLANTED}:", {PLANTED: text}) for text in BAD),
    *(Plant(f"{PLANTED_IN_CLI}:", {PLANTED_IN_CLI: text}) for text in BAD_IN_CLI),
    *(Plant(None, {PLANTED: text}) for text in GOOD),
)
def foreign_text(tree):
    for path in tree.glob("crates/*/src/**/*.rs"):
        if not path.endswith("/tests.rs"):
            for line, fault in faults(path, tree.text(path)):
                yield f"{path}:{line}: {fault}"
