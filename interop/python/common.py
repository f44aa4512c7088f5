"""What the scripts in this folder share: answers in the syntax of the command line, and servers as child processes."""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

import results

HERE = Path(__file__).resolve().parent
VERSION = "2026-07-28"
ACTIONS = ("accept", "decline", "cancel")


class Answers:
    """Answers written as KEY.FIELD=VALUE, KEY=accept|decline|cancel or KEY=accept@HOST. Keys may hold dots and `#`, values anything."""

    def __init__(self, written: Sequence[str]) -> None:
        self.written = list(written)

    def to(self, key: str, ask: ElicitRequestParams) -> ElicitResult | None:
        for action in ACTIONS:
            if any(line.split("@")[0] == f"{key}={action}" for line in self.written):
                return ElicitResult(action=action)
        if not isinstance(ask, ElicitRequestFormParams):
            return None
        content: dict[str, Any] = {}
        for field, schema in ask.requested_schema["properties"].items():
            for line in self.written:
                if line.startswith(f"{key}.{field}="):
                    content[field] = typed(line.removeprefix(f"{key}.{field}="), schema)
        return ElicitResult(action="accept", content=content) if content else None


def typed(text: str, schema: dict[str, Any]) -> Any:
    """A value as its field's schema wants it: text stays text, all else is JSON."""
    return text if schema.get("type") == "string" else json.loads(text)


def record(direction: str, transport: str, case: str, fault: str = "") -> None:
    """A case of this revision."""
    results.record(direction, transport, VERSION, case, fault)


@contextlib.contextmanager
def child(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def python_peer_over_http() -> Iterator[str]:
    """server_for_ours.py on a free port; yields its URL."""
    with child([*PYTHON_PEER, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = re.fullmatch(r"listening on (http://\S+)\n", line)
        assert ready, f"server_for_ours.py said {line!r}"
        yield ready[1]


PYTHON_PEER = [sys.executable, str(HERE / "server_for_ours.py")]


def expectations() -> list[dict[str, Any]]:
    return json.loads((HERE / "server_for_ours.expect.json").read_text())["cases"]


def post(
    url: str, method: str, params: dict[str, Any], *, meta: dict[str, Any] | None = None, **headers: str
) -> httpx2.Response:
    """One modern request as bytes; `headers` replace the right ones, an empty value leaves one out."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
        **(meta or {}),
    }
    sent = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": method,
        "mcp-name": params.get("name", params.get("uri", "")),
    }
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"jsonrpc": "2.0", "id": "one", "method": method, "params": {**params, "_meta": envelope}}
    return httpx2.post(url, json=body, headers={name: value for name, value in sent.items() if value})
