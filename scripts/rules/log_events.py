"""Each log event of the crates has a line in the guide's list, below the heading of its crate and level, and each line an event."""
import functools
import re

from .tree import Plant, append, replace, rule

LIST = "crates/antiphon/src/guide/log_events.md"
SOURCES = "crates/antiphon-*/src/**/*.rs"
# Programs, tests and the macro that log_refusal! is.
OTHERS = re.compile(r"^crates/antiphon-(cli|demo)/|(^|/)(\w+_)?tests?(/|\.rs$)|/refusal_log\.rs$")
MACRO = re.compile(r"\b(?:tracing::(trace|debug|info|warn|error)|(log_refusal))!\s*\(")
# The list has one sentence about all of these, and about events whose text is a value.
JSON = "cannot be written as JSON"
SOURCE = "crates/antiphon-server/src/server/mod.rs"


def arguments(text, start):
    """The arguments of a macro whose parenthesis is open at `start`."""
    parts, part, depth, quoted, at = [], "", 1, False, start
    while depth:
        char = text[at]
        if char == "\\" and quoted:
            part, at = part + text[at:at + 2], at + 2
            continue
        quoted ^= char == '"'
        if not quoted:
            depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 1 and not quoted:
            parts, part = [*parts, part.strip()], ""
        elif depth:
            part += char
        at += 1
    return [*parts, part.strip()] if part.strip() else parts


@functools.lru_cache(None)
def events_of(path, text):
    """(crate, level, text, fields) of each event of a file."""
    found, text = [], re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]
    crate = path.split("/")[1].replace("-", "_")
    for macro in MACRO.finditer(text):
        level, parts = macro[1] or "refusal", arguments(text, macro.end())
        if macro[2]:
            parts = [*arguments(parts[1], 1), "suppressed", parts[2]]
        message = [part for part in parts if part.startswith('"')]
        fields = [re.split(r"\s*=(?!=)", part)[0].strip("%?} ") for part in parts if not part.startswith('"')]
        words = re.sub(r"\\\s+", "", message[-1]).strip('"') if message else "?"
        if not words.endswith(JSON) and not re.fullmatch(r"\{\w+\}", words):
            found.append((crate, level, words, ", ".join(f"`{field}`" for field in fields)))
    return found


def line_of(words, fields):
    mark = "``" if "`" in words else "`"
    space = " " if words.startswith("`") else ""
    return f"* {mark}{space}{words}{space}{mark}" + (f": {fields}" if fields else "")


@rule("log-events", Plant(f"{LIST} has no line: * `planted`: `call`, `error`", {SOURCE: append('\nfn f() { tracing::warn!(call = %id, %error, "planted"); }\n')}),
      Plant(f"{LIST} names what is not logged: * `planted`", {LIST: append("\n* `planted`\n")}),
      Plant(f"{LIST} has no line: * `a request panicked`", {SOURCE: replace("tracing::error!(method", "tracing::warn!(method")}))
def log_events(tree):
    listed, heading = set(), ("", "")
    for line in tree.text(LIST).split("\n"):
        if title := re.match(r"## `(\w+)`: (\w+)", line):
            heading = title.groups()
        elif line.startswith("* "):
            listed.add((*heading, line))
    logged = set()
    for path in tree.glob(SOURCES):
        if not OTHERS.search(path):
            logged |= {(crate, level, line_of(words, fields)) for crate, level, words, fields in events_of(path, tree.text(path))}
    for crate, level, line in sorted(logged - listed):
        yield f"{LIST} has no line: {line} (`{crate}`: {level})"
    for crate, level, line in sorted(listed - logged):
        yield f"{LIST} names what is not logged: {line} (`{crate}`: {level})"
