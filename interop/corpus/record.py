#!/usr/bin/env python3
"""Records what servers of the peers answer to a client that does not know yet which revision they speak.

    record.py FOLDER            writes one file a peer into FOLDER
    record.py FOLDER --check    writes nothing; exit code 1 if a server answers otherwise than FOLDER says

PEERS.json, beside this script, says how each server is started; record.sh installs what they need and runs this. The
format of the files is told in the README of FOLDER. Needs nothing but Python.
"""

import argparse
import contextlib
import difflib
import http.client
import json
import os
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NEVER = "2099-01-01"
# Who says nothing for so long is silent. A server has to start in it.
SILENCE_SECONDS = 12.0
# A stream that is quiet for so long has told what it had.
QUIET_SECONDS = 1.0
KEPT_HEADERS = (
    "allow", "content-type", "location", "mcp-protocol-version", "mcp-session-id", "retry-after", "www-authenticate",
)  # fmt: skip
Json = dict[str, Any]


# ---- what is sent ----------------------------------------------------------------------------------------------------


def modern(method: str, revision: str = MODERN, **params: Any) -> Json:
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientInfo": {"name": "recorder", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def initialize(revision: str) -> Json:
    params = {
        "protocolVersion": revision,
        "capabilities": {"elicitation": {}, "roots": {}, "sampling": {}},
        "clientInfo": {"name": "recorder", "version": "1.0.0"},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def legacy(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}


ECHO = {"name": "echo", "arguments": {"text": "hello"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}

# Of the first thing that is said to a server, over any transport.
OPENINGS: dict[str, Json] = {
    "server/discover": modern("server/discover"),
    f"server/discover of {NEVER}": modern("server/discover", NEVER),
    "tools/list, modern": modern("tools/list"),
    "tools/call, modern": modern("tools/call", **ECHO),
    **{f"initialize {revision}": initialize(revision) for revision in (*HANDSHAKE, MODERN, NEVER)},
    "tools/list, legacy, before initialize": legacy("tools/list"),
}


def headers_of(body: Json, **more: str | None) -> dict[str, str]:
    """What a client sends with a POST of this body; a modern one repeats what is in it."""
    headers: dict[str, str | None] = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    meta = body.get("params", {}).get("_meta")
    if meta:
        headers["mcp-protocol-version"] = meta["io.modelcontextprotocol/protocolVersion"]
        headers["mcp-method"] = body["method"]
        headers["mcp-name"] = body["params"].get("name")
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    return {name: value for name, value in headers.items() if value is not None}


# ---- servers ---------------------------------------------------------------------------------------------------------


class Child:
    """A server: its lines, and when it has ended."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            text=True,
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def say(self, message: Json) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(message), file=self.process.stdin, flush=True)

    def hear(self) -> Json:
        """The next line, as an answer."""
        try:
            line = self.lines.get(timeout=SILENCE_SECONDS)
        except queue.Empty:
            return {"silence": True}
        if line is not None:
            return {"line": line}
        self.lines.put(None)
        return {"closed": True, "exit": self.process.wait(timeout=SILENCE_SECONDS)}


@contextlib.contextmanager
def started(command: list[str], folder: Path) -> Iterator[Child]:
    child = Child(command, folder)
    try:
        yield child
    finally:
        child.process.kill()
        child.process.wait()


def url_of(child: Child) -> str:
    while True:
        said = child.hear()
        if "listening on " in said.get("line", ""):
            return said["line"].split("listening on ")[1].strip()
        if "line" not in said:
            sys.exit(f"a server did not start: {child.process.args}")


# ---- what is answered ------------------------------------------------------------------------------------------------


class Reply:
    """A response that may go on."""

    def __init__(self, url: str, method: str, headers: dict[str, str], body: Json | None) -> None:
        parts = urlsplit(url)
        self.origin = parts.netloc
        self.line = http.client.HTTPConnection(self.origin, timeout=SILENCE_SECONDS)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        self.line.request(method, path, json.dumps(body) if body is not None else None, headers)
        self.socket = self.line.sock
        self.response = self.line.getresponse()
        self.pieces: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        # A connection that breaks has ended.
        with contextlib.suppress(OSError, http.client.HTTPException):
            while piece := self.response.read1():
                self.pieces.put(piece)
        self.pieces.put(None)

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def more(self) -> tuple[str, bool]:
        """What came until it ended or went quiet, and whether it is still open."""
        told = []
        while True:
            try:
                piece = self.pieces.get(timeout=QUIET_SECONDS)
            except queue.Empty:
                return b"".join(told).decode(), True
            if piece is None:
                self.pieces.put(None)
                return b"".join(told).decode(), False
            told.append(piece)

    def answer(self) -> Json:
        text, open_ = self.more()
        kept = {name: self.response.getheader(name) for name in KEPT_HEADERS}
        found: Json = {
            "status": self.response.status,
            "headers": {name: value for name, value in kept.items() if value is not None},
            "body": text,
        }
        return {**found, "open": True} if open_ else found


class Recording:
    """The entries of one peer, in the order they were made, with what changes from run to run by another name."""

    def __init__(self, peer: str, version: str) -> None:
        self.named = {"peer": peer, "version": version}
        self.entries: list[Json] = []

    def add(self, transport: str, probe: str, request: Json, answer: Json, before: list[Json] | None = None) -> None:
        entry = {**self.named, "transport": transport, "probe": probe}
        if before:
            entry["before"] = before
        self.entries.append({**entry, "request": request, "answer": answer})

    def text(self) -> str:
        text = json.dumps(self.entries, indent=1, ensure_ascii=False) + "\n"
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", text)
        for number, found in enumerate(dict.fromkeys(re.findall(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}", text)), 1):
            text = text.replace(found, f"session-{number:04}")
        # Event ids and times of day.
        return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z?", "2026-01-01T00:00:00Z", text)


def record_stdio(into: Recording, transport: str, command: list[str], folder: Path) -> None:
    for probe, message in OPENINGS.items():
        with started(command, folder) as child:
            child.say(message)
            into.add(transport, probe, {"line": json.dumps(message)}, child.hear())
    # What a client does whose probe was not understood: the handshake, on the same pipe.
    first, then = OPENINGS["server/discover"], {**initialize(HANDSHAKE[0]), "id": 2}
    with started(command, folder) as child:
        child.say(first)
        before = [{"request": {"line": json.dumps(first)}, "answer": child.hear()}]
        child.say(then)
        into.add(transport, "initialize after server/discover", {"line": json.dumps(then)}, child.hear(), before)


def record_http(into: Recording, transport: str, command: list[str], folder: Path) -> None:
    with started(command, folder) as child:
        url = url_of(child)

        def ask(probe: str, method: str, headers: dict[str, str], body: Json | None = None) -> Reply:
            reply = Reply(url, method, headers, body)
            request: Json = {"method": method, "headers": headers}
            if body is not None:
                request["body"] = json.dumps(body)
            into.add(transport, probe, request, reply.answer())
            return reply

        for probe, message in OPENINGS.items():
            ask(probe, "POST", headers_of(message), message)
        listing = legacy("tools/list")
        ask("tools/list, legacy, without a session", "POST", headers_of(listing, mcp_protocol_version=HANDSHAKE[0]), listing)
        foreign = {"mcp_session_id": "of-another-server", "mcp_protocol_version": HANDSHAKE[0]}
        ask("tools/list, legacy, with a foreign session", "POST", headers_of(listing, **foreign), listing)
        ask("GET, without a session", "GET", {"accept": "text/event-stream"})
        ask("GET, with a foreign session", "GET", {"accept": "text/event-stream", "mcp-session-id": "of-another-server"})
        ask("DELETE, without a session", "DELETE", {})
        ask("DELETE, with a foreign session", "DELETE", {"mcp-session-id": "of-another-server"})
        record_session(ask)


def record_session(ask: Any) -> None:
    opening = initialize(HANDSHAKE[0])
    opened = ask("a session: initialize", "POST", headers_of(opening), opening)
    session = opened.response.getheader("mcp-session-id")
    known = {"mcp_session_id": session, "mcp_protocol_version": HANDSHAKE[0]}
    listing, call = legacy("tools/list"), {**legacy("tools/call", **ECHO), "id": 3}
    ask("a session: notifications/initialized", "POST", headers_of(INITIALIZED, **known), INITIALIZED)
    ask("a session: tools/list", "POST", headers_of(listing, **known), listing)
    ask("a session: tools/call", "POST", headers_of(call, **known), call)
    unversioned, unknown = ({**known, "mcp_protocol_version": version} for version in (None, NEVER))
    ask("a session: tools/list without a revision", "POST", headers_of(listing, **unversioned), listing)
    ask(f"a session: tools/list of {NEVER}", "POST", headers_of(listing, **unknown), listing)
    probe = modern("server/discover")
    ask("a session: server/discover", "POST", headers_of(probe, mcp_session_id=session), probe)
    if session is None:
        return
    listen = {"accept": "text/event-stream", "mcp-session-id": session, "mcp-protocol-version": HANDSHAKE[0]}
    ask("a session: GET", "GET", listen).hang_up()
    ask("a session: DELETE", "DELETE", {"mcp-session-id": session, "mcp-protocol-version": HANDSHAKE[0]})
    ask("a session: tools/list after DELETE", "POST", headers_of(listing, **known), listing)


def record_sse(into: Recording, command: list[str], folder: Path) -> None:
    """HTTP+SSE of 2024-11-05: what is posted is answered on the stream."""
    with started(command, folder) as child:
        url = url_of(child)
        for probe in ("server/discover", f"initialize {HANDSHAKE[0]}"):
            message = OPENINGS[probe]
            headers = headers_of(message)
            answer = Reply(url, "POST", headers, message).answer()
            into.add("sse", f"{probe}, to the stream's URL", {"method": "POST", "headers": headers, "body": json.dumps(message)}, answer)
        accept = {"accept": "text/event-stream"}
        into.add("sse", "GET", {"method": "GET", "headers": accept}, Reply(url, "GET", accept, None).answer())
        into.add("sse", "DELETE", {"method": "DELETE", "headers": {}}, Reply(url, "DELETE", {}, None).answer())
        for probe, message in OPENINGS.items():
            stream = Reply(url, "GET", accept, None)
            first = stream.more()[0]
            endpoint = re.search(r"^data: (\S+)", first, re.MULTILINE)
            assert endpoint, first
            path = endpoint[1]
            post = path if "://" in path else f"http://{stream.origin}{path}"
            headers = headers_of(message)
            answer = Reply(post, "POST", headers, message).answer()
            text, open_ = stream.more()
            answer["stream"] = text
            if not open_:
                answer["stream_closed"] = True
            before = [{"request": {"method": "GET", "headers": accept}, "answer": {"status": 200, "body": first, "open": True}}]
            request = {"method": "POST", "path": path, "headers": headers, "body": json.dumps(message)}
            into.add("sse", f"{probe}, to the endpoint", request, answer, before)
            stream.hang_up()


def record(peer: Json) -> str:
    """One entry of PEERS.json, as the text of its file."""
    folder = HERE.parent / peer["folder"]
    into = Recording(peer["peer"], peer["version"])
    for transport, words in peer["servers"].items():
        command = [os.path.expandvars(word) for word in [*peer["command"], *words]]
        began = time.monotonic()
        if transport.startswith("stdio"):
            record_stdio(into, transport, command, folder)
        elif transport == "sse":
            record_sse(into, command, folder)
        else:
            record_http(into, transport, command, folder)
        print(f"{peer['file']}: {transport} in {time.monotonic() - began:.1f} s", file=sys.stderr)
    return into.text()


def main() -> int:
    parser = argparse.ArgumentParser(description="Records what servers of the peers answer")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", metavar="FILE", action="append")
    options = parser.parse_args()
    stale = False
    for peer in json.loads((HERE / "PEERS.json").read_text()):
        if options.only and peer["file"] not in options.only:
            continue
        path, text = options.folder / f"{peer['file']}.json", record(peer)
        if not options.check:
            path.write_text(text)
            continue
        there = path.read_text() if path.exists() else ""
        stale = stale or there != text
        for line in difflib.unified_diff(there.splitlines(), text.splitlines(), str(path), "today", lineterm=""):
            print(line)
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
