"""A measured figure stands in a section that names its command.

A section is a heading with everything below it, up to the next heading of its level. A table has figures if a number with a unit
of measurement (µs, ms, KiB, MiB, a ratio, a rate) stands in a cell, or a unit in a heading above numbers. A sentence has one if a
number with such a unit stands beside a word of measuring (takes, measured, median, faster, ..). Limits and settings, which other
sentences name, are not measured. A command is code that starts a program: `cargo ..`, `./..`, a script.
"""
import re

from .tree import Plant, append, rule

DOCUMENTS = ("README.md", "DESIGN.md", "bench/README.md", "interop/README.md", "conformance/README.md", "examples/README.md", "fuzz/README.md",
             "docs/*.md", "crates/*/README.md", "crates/*/src/lib.md", "crates/antiphon/src/guide/*.md")
# Limits are chosen, not measured.
LIMITS = "docs/limits.md"
UNIT = r"(?:µs|us|ns|ms|KiB|MiB|GiB|kB|KB|MB|GB|requests/s|calls/s)"
FIGURE = re.compile(rf"\b\d[\d,.]*\s?{UNIT}(?![\w/])|\b\d[\d,.]*\s?[x×](?!\w)")
HEADED = re.compile(rf"(?:^|[\s,(]){UNIT}(?:$|[\s,)/])|(?:^|\s)[x×](?:$|\s)|ratio")
MEASURING = re.compile(
    r"\b(measured?|measurements?|takes?|took|median|minimum of|average|faster|slower|as fast|costs?|need(?:ed|s)?|grew|grows)\b", re.I)
COMMAND = re.compile(r"(?:^|[\s`;&|=])(?:cargo (?:\+\w+ )?(?:run|bench|test|nextest|tree|fuzz|build)|\./[\w./-]+|[\w/-]+\.sh|scripts/[\w-]+|antiphon [a-z])")


def sections(lines):
    """Each line's section: the lines from its heading of level two (or one) to the next, code included."""
    parts, fence = [[]], False
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
        elif not fence and re.match(r"##? ", line):
            parts.append([])
        parts[-1].append((number, line, fence))
    return parts


def commands(part):
    code = [line for _, line, fence in part if fence]
    text = "\n".join(line for _, line, fence in part if not fence)
    return COMMAND.search("\n".join(code + re.findall(r"`([^`]+)`", text)))


def figures(part):
    """The lines of a section that have a figure."""
    header, paragraph, start = None, "", 0
    for number, line, fence in [*part, (0, "", False)]:
        if fence:
            line = ""
        if line.startswith("|"):
            if header is None:
                header = [cell.strip(" `*") for cell in line.strip("|").split("|")]
                continue
            cells = [cell.strip(" `*") for cell in line.strip("|").split("|")]
            headed = any(HEADED.search(name) and re.match(r"[\d.,]+$", cell) for name, cell in zip(header, cells))
            if headed or any(FIGURE.search(cell) and MEASURING.search(cell) or FIGURE.fullmatch(cell) for cell in cells):
                yield number
            continue
        header = None
        if line.strip():
            start = start if paragraph else number
            paragraph += " " + line
            continue
        for sentence in re.split(r"(?<=[.:;?])\s", paragraph):
            if FIGURE.search(sentence) and MEASURING.search(sentence):
                yield start
                break
        paragraph = ""


PLANTED = "docs/planted.md"


@rule("figures", *(Plant(f"{document}:", {document: append(f"\n## Planted\n\n{text}\n")}) for document in ("README.md", "DESIGN.md", "bench/README.md")
                   for text in ("A call takes 3.5 ms.", "| a | ms |\n|---|---|\n| b | 12.5 |", "| a | b |\n|---|---|\n| b | 12.5 ms |")),
      Plant(f"{PLANTED}:3", {PLANTED: "# Planted\n\nIt is 3x faster.\n\n## Another\n\n`cargo bench`\n"}),
      Plant(None, {PLANTED: "# Planted\n\nIt is 3x faster: `cargo bench`.\n\n## Another\n\nThe limit is 10 ms.\n"}))
def check(tree):
    for document in tree.glob(*DOCUMENTS):
        if document == LIMITS:
            continue
        for part in sections(tree.text(document).split("\n")):
            if not commands(part):
                for number in figures(part):
                    yield f"{document}:{number}: a measured figure, and no command in its section"
