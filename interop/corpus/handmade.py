#!/usr/bin/env python3
"""Writes the cells of the corpus that no server of a peer gives, but something on the way to one may.

    handmade.py FOLDER [--check]    writes FOLDER/handmade.json, or compares

Each has a member `means` beside those of the recorded ones: what a client of both eras is to make of it.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import record

Json = dict[str, Any]
PROBE = record.OPENINGS["server/discover"]
HTML = "<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n"
JSON, TEXT, PAGE, STREAM = "application/json", "text/plain", "text/html; charset=utf-8", "text/event-stream"
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
    "resultType": "complete",
}


def error(code: int, message: str, data: Any = None, id_: Any = 1) -> str:
    said = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "error": said})


def unsupported(*supported: str) -> str:
    return error(-32022, "Unsupported protocol version", {"supported": supported, "requested": "2026-07-28"})


def result(members: Json, id_: Any = 1) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": members})


def reply(status: int, kind: str | None = None, body: str = "", **headers: str) -> Json:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"status": status, "headers": {**({"content-type": kind} if kind else {}), **named}, "body": body}


# What it means: `modern` and `legacy`, the eras; `another revision`, of `supported`; `no revision` in common; `fault`, to be
# told as it is, as it says nothing of the era.
HTTP: list[tuple[str, str, Json]] = [
    ("silence", "fault", {"silence": True}),
    ("the connection is closed without an answer", "fault", {"closed": True}),
    (
        "401 with a challenge",
        "fault",
        reply(401, www_authenticate='Bearer resource_metadata="https://example.com/.well-known/oauth-protected-resource"'),
    ),
    ("401 with a challenge and a JSON-RPC error", "fault", reply(401, JSON, error(-32001, "Unauthorized"), www_authenticate="Bearer")),
    ("401 without a challenge", "fault", reply(401, TEXT, "Unauthorized")),
    ("403", "fault", reply(403, TEXT, "Forbidden")),
    ("403 with insufficient scope", "fault", reply(403, www_authenticate='Bearer error="insufficient_scope", scope="mcp:tools"')),
    ("an HTML page with 200", "fault", reply(200, PAGE, HTML)),
    ("an HTML page with 400", "legacy", reply(400, PAGE, HTML)),
    ("an HTML page with 404", "legacy", reply(404, PAGE, HTML)),
    ("an HTML page with 405", "legacy", reply(405, PAGE, HTML, allow="GET, HEAD")),
    ("405 without a body", "legacy", reply(405, allow="GET")),
    ("404 without a body", "legacy", reply(404)),
    ("400 without a body", "legacy", reply(400)),
    ("400 with text", "legacy", reply(400, TEXT, "Bad Request: No valid session ID provided")),
    ("400 with JSON that is no JSON-RPC", "legacy", reply(400, JSON, '{"error":"invalid_request"}')),
    ("400 with JSON that is broken", "legacy", reply(400, JSON, '{"jsonrpc":"2.0","id":1,"err')),
    ("400 with the error -32600", "legacy", reply(400, JSON, error(-32600, "Invalid Request", id_=None))),
    ("400 with the error -32601", "legacy", reply(400, JSON, error(-32601, "Method not found"))),
    ("400 with the error -32700", "legacy", reply(400, JSON, error(-32700, "Parse error", id_=None))),
    ("400 with the error -32000", "legacy", reply(400, JSON, error(-32000, "Server not initialized", id_=None))),
    ("404 with the error -32601", "legacy", reply(404, JSON, error(-32601, "Method not found"))),
    ("406", "legacy", reply(406, JSON, error(-32000, "Not Acceptable", id_=None))),
    ("415", "legacy", reply(415, TEXT, "Unsupported Media Type")),
    ("422 with text", "legacy", reply(422, TEXT, "Unexpected message, expect initialize request")),
    ("400 with -32022, and another modern revision", "another revision", reply(400, JSON, unsupported("2027-01-15", "2026-07-28"))),
    ("400 with -32022, and none that is known", "no revision", reply(400, JSON, unsupported("2027-01-15"))),
    ("400 with -32022, and handshake revisions alone", "legacy", reply(400, JSON, unsupported("2025-11-25", "2025-06-18"))),
    ("400 with -32022, and no list", "fault", reply(400, JSON, error(-32022, "Unsupported protocol version"))),
    ("400 with -32022, and an empty list", "no revision", reply(400, JSON, unsupported())),
    ("400 with -32022, and a list of numbers", "fault", reply(400, JSON, error(-32022, "?", {"supported": [1, 2]}))),
    (
        "400 with -32021",
        "modern",
        reply(400, JSON, error(-32021, "Missing required client capability", {"requiredCapabilities": {"elicitation": {}}})),
    ),
    ("400 with -32020", "modern", reply(400, JSON, error(-32020, "Header mismatch"))),
    ("200 with the error -32601", "legacy", reply(200, JSON, error(-32601, "Method not found"))),
    ("200 with the error -32602", "legacy", reply(200, JSON, error(-32602, "Invalid params"))),
    ("200 with the error -32601, as a stream", "legacy", reply(200, STREAM, f"data: {error(-32601, 'Method not found')}\n\n")),
    ("200 with what is discovered", "modern", reply(200, JSON, result(DISCOVERED))),
    ("200 with what is discovered, as a stream", "modern", reply(200, STREAM, f"event: message\ndata: {result(DISCOVERED)}\n\n")),
    (
        "200 with what is discovered: handshake revisions alone",
        "legacy",
        reply(200, JSON, result({**DISCOVERED, "supportedVersions": ["2025-11-25"]})),
    ),
    (
        "200 with what is discovered: no revision that is known",
        "no revision",
        reply(200, JSON, result({**DISCOVERED, "supportedVersions": ["2027-01-15"]})),
    ),
    ("200 with a result of another shape", "legacy", reply(200, JSON, result({"tools": []}))),
    ("200 with a result of another id", "fault", reply(200, JSON, result(DISCOVERED, 99))),
    ("200 with a batch", "fault", reply(200, JSON, f"[{error(-32601, 'Method not found')}]")),
    ("200 without a body", "fault", reply(200)),
    ("200 with a stream that ends without an answer", "fault", reply(200, STREAM, ": nothing\n\n")),
    ("202 without a body", "fault", reply(202)),
    ("307 to another path", "fault", reply(307, location="/elsewhere")),
    ("429", "fault", reply(429, TEXT, "Too Many Requests", retry_after="1")),
    ("500 with a page", "fault", reply(500, PAGE, HTML)),
    ("502 with a page", "fault", reply(502, PAGE, HTML)),
    ("503", "fault", reply(503, TEXT, "Service Unavailable", retry_after="1")),
]

STDIO: list[tuple[str, str, Json]] = [
    ("silence", "legacy", {"silence": True}),
    ("the pipe is closed", "legacy", {"closed": True, "exit": 1}),
    ("the pipe is closed, without an error", "legacy", {"closed": True, "exit": 0}),
    ("-32601", "legacy", {"line": error(-32601, "Method not found")}),
    ("-32602", "legacy", {"line": error(-32602, "Invalid request parameters", "")}),
    ("-32600", "legacy", {"line": error(-32600, "Invalid Request")}),
    ("-32600 without an id", "legacy", {"line": error(-32600, "Invalid Request", id_=None)}),
    ("-32700 without an id", "legacy", {"line": error(-32700, "Parse error", id_=None)}),
    ("-32002, not initialized", "legacy", {"line": error(-32002, "Server not initialized")}),
    ("-32603", "legacy", {"line": error(-32603, "Internal error")}),
    ("-32022, and another modern revision", "another revision", {"line": unsupported("2027-01-15", "2026-07-28")}),
    ("-32022, and none that is known", "no revision", {"line": unsupported("2027-01-15")}),
    ("-32022, and handshake revisions alone", "legacy", {"line": unsupported("2025-11-25")}),
    ("-32022, and no list", "fault", {"line": error(-32022, "Unsupported protocol version")}),
    ("-32021", "modern", {"line": error(-32021, "Missing required client capability", {"requiredCapabilities": {"roots": {}}})}),
    ("what is discovered", "modern", {"line": result(DISCOVERED)}),
    ("what is discovered: handshake revisions alone", "legacy", {"line": result({**DISCOVERED, "supportedVersions": ["2025-11-25"]})}),
    ("a result of another shape", "legacy", {"line": result({})}),
    ("a line that is no JSON, and then silence", "legacy", {"line": "INFO starting"}),
]


def entries() -> list[Json]:
    named = {"peer": "made by hand", "version": ""}
    sent = {
        "http": {"method": "POST", "headers": record.headers_of(PROBE), "body": json.dumps(PROBE)},
        "stdio": {"line": json.dumps(PROBE)},
    }
    return [
        {**named, "transport": transport, "probe": f"server/discover: {probe}", "means": means, "request": sent[transport], "answer": answer}
        for transport, cells in (("http", HTTP), ("stdio", STDIO))
        for probe, means, answer in cells
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the cells that are made by hand")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    path, text = options.folder / "handmade.json", json.dumps(entries(), indent=1, ensure_ascii=False) + "\n"
    if options.check:
        return int(path.read_text() != text)
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
