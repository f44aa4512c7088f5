#!/usr/bin/env python3
"""Writes docs/interop.md from the lines that the runners of the peers append.

    table.py RESULTS DOCUMENT           writes the document
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
         "FastMCP", "mcp-remote", "supergateway")
# What is not older has no sessions.
MODERN = "2026-07-28"

# The rows. A case belongs to the first one whose words its name holds.
GROUPS = {
    "the examples that ask with `await`": r"^example ",
    "a web page of another origin": r"^page: ",
    "tasks": r"(^|: )task: ",
    "discovery and lists": r"server/discover|(tools|prompts|resources|templates)/list",
    "log messages": r"^log: ",
    "completion": r"^complete: ",
    "lists in pages": r"^pages: ",
    "structured results and their schemas": r"^structured: ",
    "arguments that are repeated in headers": r"^headers: |repeated in a header",
    "caching hints": r"^cache: ",
    "subscriptions": r"^listen: ",
    "calls that the client gives up": r"^given up: ",
    "a session, and where it lives": r"older revision|the session begins",
    "bytes on the wire": r"^HTTP:",
    "state that was tampered with, or is of another call": r"tampered|a state belongs",
    "a missing capability is named": r"cannot be asked|did not declare",
    "asking without end is given up": r"for ?ever",
    "questions in URL mode": r"URL mode|^pay\b|^ledger",
    "several questions at once": r"forms side by side|book_table|rhyme|everything",
    "sampling": r"sampl|summarize",
    "roots": r"roots",
    "every kind of form field": r"survey|pizza|multiple choice",
    "rounds of state only": r"state only|^shed",
    "declined and cancelled questions": r"declin|cancel",
    "answers that are missing or do not fit": r"unanswered|asked again|ignored|does not fit|missing answer",
    "a call goes on elsewhere": r"process of its own|begun by hand|same leg twice|side by side|given up at",
    "several rounds": r"two forms|two rounds|five rounds|later round|travels|recorded|ship_order|spell",
    "progress": r"progress",
    "tools and resources that ask nothing": r"\becho|structured|asks nothing|nothing to ask|states take none",
    "errors of tools and of the protocol": r"error|crash|unknown|missing argument",
    "prompts that ask": r"briefing|prompt",
    "resources that ask": r"report|resource",
    "tools that ask": r"confirm|provision|get_weather|update_work_item|delete_folder|pick_file",
    "names beyond ASCII": r"beyond ASCII",
    "other cases": r"",
}

ERAS = {"modern": "Revision 2026-07-28", "legacy": "Sessions of 2025-11-25 and before"}

HEAD = """\
# Tests with other implementations

<!-- Written by interop/run.sh. Change the scripts in interop/, not this file. -->

A cell is the number of cases that passed; an empty cell was not tried. *Client* columns are the peer's client against
`antiphon serve-demo` and, for tasks and for cases without questions, against the everything server of [conformance/](../conformance).
*Server* columns are `antiphon` and the client library against a server made with the peer's SDK. Over HTTP, on 2026-07-28,
the clients of the SDKs run the cases with questions twice: against one server, and against two replicas with a shared key
file, with alternating legs. The examples that ask with `await` run in the same two ways. A session lives on one replica.
*TypeScript in Chromium* is the SDK's client in a web page of another origin than the server. *mcp-remote* and *supergateway* are
bridges between `antiphon call` and `antiphon serve-demo`, which has the transport of the column.
The cases are in [interop/](../interop), together with a list of a peer's differences from the specification.

"""


class Column(NamedTuple):
    era: str
    peer: str
    direction: str
    transport: str

    def place(self) -> tuple[Any, ...]:
        known = PEERS.index(self.peer) if self.peer in PEERS else len(PEERS)
        return known, self.peer, list(DIRECTIONS).index(self.direction), list(TRANSPORTS).index(self.transport)

    def title(self) -> str:
        return f"{self.peer} {DIRECTIONS[self.direction]}, {TRANSPORTS[self.transport]}"


def era_of(line: dict[str, str]) -> str:
    """The revisions that are told in one table."""
    return "modern" if line["era"] >= MODERN else "legacy"


def group_of(case: str) -> str:
    return next(name for name, words in GROUPS.items() if re.search(words, case, re.IGNORECASE))


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


def peers_table(lines: list[dict[str, str]]) -> str:
    versions, eras = defaultdict(set), defaultdict(set)
    for line in lines:
        versions[line["peer"]].add(line["version"])
        eras[line["peer"]].add(line["era"])
    peers = sorted(versions, key=lambda peer: Column("", peer, "client of ours", "http").place())
    body = [row([peer, ", ".join(sorted(versions[peer])), ", ".join(sorted(eras[peer]))]) for peer in peers]
    return row(["peer", "version", "revisions it spoke"]) + "|---|---|---|\n" + "".join(body)


def cases_table(found: dict[tuple[Column, str], dict[str, str]], era: str) -> str:
    columns = sorted({column for column, _ in found if column.era == era}, key=Column.place)
    cells = defaultdict(list)
    for (column, case), line in found.items():
        cells[group_of(case), column].append(line)
        cells["**all**", column].append(line)
    text = row(["", *(column.title() for column in columns)]) + "|---|" + "---:|" * len(columns) + "\n"
    for group in [*GROUPS, "**all**"]:
        if any((group, column) in cells for column in columns):
            text += row([group, *(cell(cells[group, column]) for column in columns)])
    return text


def notes(found: dict[tuple[Column, str], dict[str, str]], outcome: str, title: str) -> str:
    """What a table of numbers cannot say. A note that cases share stands once."""
    shared = defaultdict(set)
    for (column, case), line in found.items():
        if line["outcome"] == outcome:
            shared[column.place()[:3], f"{column.peer} {DIRECTIONS[column.direction]}", line["note"]].add(f"`{case}`")
    said = [f"- {who}: {'; '.join(sorted(cases))}: {note}\n" for (_, who, note), cases in sorted(shared.items())]
    return f"\n## {title}\n\n{''.join(said)}" if said else ""


def document(lines: list[dict[str, str]]) -> str:
    found = worst(lines)
    eras = [(era, title) for era, title in ERAS.items() if any(column.era == era for column, _ in found)]
    tables = "".join(f"\n## {title}\n\n{cases_table(found, era)}" for era, title in eras)
    absent, failed = notes(found, "not supported by peer", "Not supported by the peer"), notes(found, "fail", "Failed")
    return HEAD + peers_table(lines) + tables + absent + failed


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the table of peers")
    parser.add_argument("results", type=Path)
    parser.add_argument("document", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = document(read(options.results))
    if not options.check:
        options.document.write_text(text)
        return 0
    there = options.document.read_text() if options.document.exists() else ""
    difference = difflib.unified_diff(there.splitlines(), text.splitlines(), str(options.document), "this run", lineterm="")
    for line in difference:
        print(line)
    if there != text:
        print(f"{options.document} is out of date: run interop/run.sh", file=sys.stderr)
    return int(there != text)


if __name__ == "__main__":
    sys.exit(main())
