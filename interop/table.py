#!/usr/bin/env python3
"""Writes a passage of interop/README.md from the lines that the runners of the peers append.

    table.py RESULTS DOCUMENT           writes the passage of the document
    table.py RESULTS DOCUMENT --check   exit code 1 if the document is not what it would write

A line of RESULTS is one case, a JSON object of texts:
    peer, version   who, as `Python` and `2.3.0`
    direction       `client of ours` (their client, our server) or `server for ours`
    transport       `http`, `stdio` or `sse` (HTTP+SSE, as of 2024-11-05)
    era             the revision that was spoken
    case            its name; the same case may have run more than once, and then the worst outcome counts
    outcome         `pass`, `fail` or `not supported by peer`
    note            what happened; may be empty
"""

import argparse
import difflib
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

MEMBERS = ("peer", "version", "direction", "transport", "era", "case", "outcome", "note")
OUTCOMES = ("pass", "not supported by peer", "fail")  # the worst last
DIRECTIONS = {"client of ours": "client", "server for ours": "server"}
TRANSPORTS = {"http": "HTTP", "stdio": "stdio", "sse": "HTTP+SSE"}
PEERS = ("Python", "Python 1", "TypeScript", "TypeScript 1", "rmcp", "rmcp 2", "tower-mcp", "Inspector", "TypeScript in Chromium",
         "FastMCP", "mcp-remote", "supergateway", "Python, OAuth", "TypeScript, OAuth", "TypeScript 1, OAuth", "FastMCP, OAuth")
# What is not older has no sessions.
MODERN = "2026-07-28"

# The columns of the table.
COLUMNS = {("modern", "http"): "HTTP", ("modern", "stdio"): "stdio", ("legacy", "http"): "session, HTTP", ("legacy", "stdio"): "session, stdio",
           ("legacy", "sse"): "session, HTTP+SSE"}

# The passage of the document, without its marks.
PASSAGE = re.compile(r"(?<=^<!-- run.sh writes this passage -->\n).*?(?=^<!-- end of run.sh -->$)", re.M | re.S)


class Column(NamedTuple):
    era: str
    peer: str
    direction: str
    transport: str

    def place(self) -> tuple[Any, ...]:
        known = PEERS.index(self.peer) if self.peer in PEERS else len(PEERS)
        return known, self.peer, list(DIRECTIONS).index(self.direction), list(TRANSPORTS).index(self.transport)


def era_of(line: dict[str, str]) -> str:
    """The revisions of one column."""
    return "modern" if line["era"] >= MODERN else "legacy"


def read(path: Path) -> list[dict[str, str]]:
    lines = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        line = json.loads(text)
        faults = [member for member in MEMBERS if not isinstance(line.get(member), str)]
        for member, allowed in (("outcome", OUTCOMES), ("direction", DIRECTIONS), ("transport", TRANSPORTS)):
            if line.get(member) not in allowed:
                faults.append(f"{member} {line.get(member)!r}")
        if faults:
            sys.exit(f"{path}:{number}: {', '.join(faults)}")
        lines.append(line)
    return lines


def worst(lines: list[dict[str, str]]) -> dict[tuple[Column, str], dict[str, str]]:
    """The line that counts, for each case of each column."""
    found: dict[tuple[Column, str], dict[str, str]] = {}
    for line in lines:
        key = Column(era_of(line), line["peer"], line["direction"], line["transport"]), line["case"]
        if key not in found or OUTCOMES.index(line["outcome"]) > OUTCOMES.index(found[key]["outcome"]):
            found[key] = line
    return found


def cell(lines: list[dict[str, str]]) -> str:
    passed, absent, failed = (sum(line["outcome"] == outcome for line in lines) for outcome in OUTCOMES)
    said = [f"**{failed} failed**"] if failed else []
    said += [str(passed)] if passed else []
    said += [f"{absent} not supported"] if absent else []
    return ", ".join(said)


def row(cells: list[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |\n"


def peers_table(lines: list[dict[str, str]], found: dict[tuple[Column, str], dict[str, str]]) -> str:
    versions, cells = defaultdict(set), defaultdict(list)
    for line in lines:
        versions[line["peer"]].add(line["version"])
    for (column, _), line in found.items():
        cells[column.place()[:3], column.peer, DIRECTIONS[column.direction], (column.era, column.transport)].append(line)
    text = row(["peer", "version", "", *COLUMNS.values()]) + "|---|---|---|" + "---:|" * len(COLUMNS) + "\n"
    for side in sorted({key[:3] for key in cells}):
        text += row([side[1], ", ".join(sorted(versions[side[1]])), side[2], *(cell(cells.get((*side, column), [])) for column in COLUMNS)])
    return text


def notes(found: dict[tuple[Column, str], dict[str, str]], outcome: str, title: str) -> str:
    """What a table of numbers cannot say. A note that cases share stands once."""
    shared = defaultdict(set)
    for (column, case), line in found.items():
        if line["outcome"] == outcome:
            shared[column.place()[:3], f"{column.peer} {DIRECTIONS[column.direction]}", line["note"]].add(f"`{case}`")
    said = [f"- {who}: {'; '.join(sorted(cases))}: {note}\n" for (_, who, note), cases in sorted(shared.items())]
    return f"\n### {title}\n\n{''.join(said)}" if said else ""


def filled(document: str, lines: list[dict[str, str]]) -> str:
    found = worst(lines)
    absent, failed = notes(found, "not supported by peer", "Not supported by the peer"), notes(found, "fail", "Failed")
    text, passages = PASSAGE.subn(lambda _: f"\n{peers_table(lines, found)}{absent}{failed}\n", document)
    if passages != 1:
        sys.exit("the document has no passage for the table")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the table of peers")
    parser.add_argument("results", type=Path)
    parser.add_argument("document", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    there = options.document.read_text()
    text = filled(there, read(options.results))
    if not options.check:
        options.document.write_text(text)
        return 0
    difference = difflib.unified_diff(there.splitlines(), text.splitlines(), str(options.document), "this run", lineterm="")
    for line in difference:
        print(line)
    if there != text:
        print(f"{options.document} is out of date: run interop/run.sh", file=sys.stderr)
    return int(there != text)


if __name__ == "__main__":
    sys.exit(main())
