"""Drives a server of the handshake revisions with the client of the Python SDK, 1 or 2.

    legacy_client.py TABLE (--http URL | --sse URL | --stdio COMMAND ARGUMENT...)     a table of ../legacy
    legacy_client.py ../examples.json --fleet FLEET      the program `fleet` of antiphon-examples, one of its replicas

One line per case; the last line is `N passed, N failed`, and any failure makes the exit code 1.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import types
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters

from results import record

try:
    from mcp import Client, MCPError

    NEW = True
except ImportError:
    from mcp import ClientSession, McpError as MCPError
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client
    from pydantic import AnyUrl

    NEW = False

PER_CASE_SECONDS = 30
URL_ELICITATION_REQUIRED = -32042
Json = dict[str, Any]


# ---- whoever sits at the client --------------------------------------------------------------------------------------


@dataclass
class Person:
    """What the case says they answer, and what they were asked and told."""

    case: Json = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    heard: collections.Counter[str] = field(default_factory=collections.Counter)
    completed: list[str] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    def sit_down(self, case: Json) -> None:
        self.case, self.asked, self.completed, self.url = case, [], [], ""
        self.heard.clear()

    def key_of(self, message: str, fields: set[str]) -> str:
        """Which of the case's questions this is. A question whose message is not written down is known by its fields."""
        messages = self.case.get("messages", {})
        waiting = [key for keys in self.case.get("asks", []) for key in keys if key not in self.asked]
        fitting = [key for key in waiting if (messages[key] == message if key in messages else self.fits(key, fields))]
        assert fitting, f"not expected: {message!r}"
        named = [key for key in fitting if key.split("_")[0] in message.lower()]
        # What is answered with an action alone would fit any form.
        filled = [key for key in fitting if any(line.startswith(f"{key}.") for line in self.case["answers"])]
        return [*named, *filled, *fitting][0]

    def fits(self, key: str, fields: set[str]) -> bool:
        answered = {line.removeprefix(f"{key}.").split("=")[0] for line in self.case["answers"] if line.startswith(f"{key}.")}
        return answered <= fields

    async def elicit(self, context: Any, params: Any) -> Any:
        asked = params.model_dump(by_alias=True)
        fields = asked.get("requestedSchema", {}).get("properties", {})
        try:
            key = self.key_of(asked["message"], set(fields))
        except AssertionError as error:
            return types.ErrorData(code=-32600, message=str(error))
        self.asked.append(key)
        self.url = asked.get("url", self.url)
        for action in ("accept", "decline", "cancel"):
            if f"{key}={action}" in self.case["answers"]:
                return types.ElicitResult(action=action)
        content = {}
        for line in self.case["answers"]:
            name, _, value = line.removeprefix(f"{key}.").partition("=")
            if line.startswith(f"{key}.") and name in fields:
                content[name] = value if fields[name].get("type") == "string" else json.loads(value)
        return types.ElicitResult(action="accept", content=content)

    async def sample(self, context: Any, params: Any) -> Any:
        self.asked.append("sample")
        text = types.TextContent(type="text", text=self.case.get("sample", ""))
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def roots(self, context: Any) -> Any:
        self.asked.append("roots")
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in self.case.get("roots", [])]})

    async def log(self, params: Any) -> None:
        self.hear("logs")

    async def progress(self, *told: Any) -> None:
        self.hear("progress")

    async def message(self, message: Any) -> None:
        notification = getattr(message, "root", message)
        if getattr(notification, "method", "") == "notifications/elicitation/complete":
            self.completed.append(notification.model_dump(by_alias=True)["params"]["elicitationId"])
            self.news.set()

    def hear(self, what: str) -> None:
        self.heard[what] += 1
        self.news.set()

    async def until(self, heard: Callable[[], bool]) -> None:
        """What is told arrives beside the result, before it or after."""
        while not heard():
            self.news.clear()
            await self.news.wait()


# ---- the two generations of the SDK ----------------------------------------------------------------------------------


@dataclass
class Server:
    client: Any
    revision: str

    async def call(self, case: Json, person: Person) -> tuple[str, bool]:
        """The first text of the result, and whether it is an error of the tool."""
        arguments = case.get("arguments")
        if case["kind"] == "prompt":
            return (await self.client.get_prompt(case["name"], arguments)).messages[0].content.text, False
        if case["kind"] == "resource":
            uri = case["name"] if NEW else AnyUrl(case["name"])
            return (await self.client.read_resource(uri)).contents[0].text, False
        result = await self.client.call_tool(case["name"], arguments or {}, progress_callback=person.progress)
        return result.content[0].text, bool(result.model_dump(by_alias=True).get("isError"))


@contextlib.asynccontextmanager
async def connect(target: Any, person: Person, bearer: str | None = None) -> AsyncIterator[Server]:
    """`target` is a URL, ("sse", URL) or a command."""
    callbacks: Json = {
        "elicitation_callback": person.elicit,
        "sampling_callback": person.sample,
        "list_roots_callback": person.roots,
        "logging_callback": person.log,
        "message_handler": person.message,
    }
    headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
    async with contextlib.AsyncExitStack() as stack:
        if NEW:
            server = target
            if isinstance(target, tuple):
                server = sse_client(target[1])
            elif bearer:
                import httpx2
                from mcp.client.streamable_http import streamable_http_client

                server = streamable_http_client(target, http_client=httpx2.AsyncClient(headers=headers))
            client = await stack.enter_async_context(Client(server, mode="legacy", **callbacks))
            yield Server(client, client.protocol_version)
            return
        if isinstance(target, tuple):
            streams = await stack.enter_async_context(sse_client(target[1]))
        elif isinstance(target, str):
            streams = await stack.enter_async_context(streamablehttp_client(target, headers=headers))
        else:
            streams = await stack.enter_async_context(stdio_client(target))
        client = await stack.enter_async_context(ClientSession(streams[0], streams[1], **callbacks))
        yield Server(client, (await client.initialize()).protocolVersion)


# ---- one case --------------------------------------------------------------------------------------------------------


def same(found: Any, wanted: Any) -> None:
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


async def play(server: Server, person: Person, case: Json) -> None:
    person.sit_down(case)
    outcome = case["outcome"]
    try:
        text, is_error = await server.call(case, person)
    except MCPError as error:
        check_error(error.error, outcome)
    else:
        check_result(text, is_error, outcome)
    check_asked(person, case)
    await person.until(lambda: all(person.heard[what] >= case.get(what, 0) for what in ("progress", "logs")))
    await person.until(lambda: len(person.completed) >= len(case.get("completed", [])))
    same(person.completed, case.get("completed", []))


def check_result(text: str, is_error: bool, outcome: Json) -> None:
    match outcome:
        case {"text": wanted}:
            same((text, is_error), (wanted, False))
        case {"tool_error": wanted}:
            same((text, is_error), (wanted, True))
        case {"tool_error_ends": wanted}:
            assert is_error and text.endswith(wanted), f"found {text!r}, wanted an error that ends with {wanted!r}"
        case {"refused": wanted}:
            assert is_error and wanted in text, f"found {text!r}, wanted an error with {wanted!r}"
        case _:
            raise AssertionError(f"found {text!r}, wanted {outcome!r}")


def check_error(error: Any, outcome: Json) -> None:
    match outcome:
        case {"refused": wanted}:
            assert wanted in error.message, f"found {error!r}, wanted {wanted!r}"
        case {"urls": wanted}:
            same((error.code, [ask["url"] for ask in error.data["elicitations"]]), (URL_ELICITATION_REQUIRED, wanted))
        case _:
            raise AssertionError(f"found {error!r}, wanted {outcome!r}")


def check_asked(person: Person, case: Json) -> None:
    """Those that come together, in any order."""
    wanted = [*case.get("asks", [])]
    if "asks" not in case:
        wanted = [[kind] for kind in ("sample", "roots") if kind in case]
    asked = iter(person.asked)
    same([sorted(next(asked, "") for _ in keys) for keys in wanted], [sorted(keys) for keys in wanted])
    same(list(asked), [])


# ---- the examples, on a replica of a fleet ---------------------------------------------------------------------------


@dataclass
class Fleet:
    """A replica, and the backend of all replicas."""

    url: str
    backend: str

    def do(self, operation: Json) -> Any:
        request = urllib.request.Request(self.backend, json.dumps(operation).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def effects(self) -> dict[str, collections.Counter[str]]:
        return {kind: collections.Counter(counts) for kind, counts in self.do({"operation": "count"}).items()}


@contextlib.contextmanager
def fleet(program: str) -> Iterator[Fleet]:
    process = subprocess.Popen([program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    try:
        said = [process.stdout.readline().rstrip("\n") for _ in range(2)]
        print("addresses", file=process.stdin, flush=True)
        addresses = process.stdout.readline().split()
        yield Fleet(addresses[0], said[1].removeprefix("backend at "))
    finally:
        process.stdin.close()
        process.wait(10)


def visit(url: str, visits: list[Json]) -> None:
    """Opens the page, and pays there, as the case says who does."""
    for one in visits:
        for method in ("GET", "POST"):
            request = urllib.request.Request(url, method=method, headers={"cookie": f"user={one['user']}"} if one["user"] else {})
            try:
                with urllib.request.urlopen(request) as reply:
                    status = reply.status
            except urllib.error.HTTPError as error:
                status = error.code
            same((method, one["user"], status), (method, one["user"], one["status"]))


def is_played(example: Json, on_fleet: bool) -> bool:
    """A session lives on one replica, and ends with it: it outlives no other build. Without a fleet there is no backend."""
    needs_backend = {"before", "page", "bearer"} & set(example) or example["tool"] == "deposit_status"
    return "deploy" not in example and (on_fleet or not needs_backend)


def as_of_table(example: Json) -> Json:
    """A case of examples.json with the members of a table."""
    keys = [key for keys in example["asked"] for key in keys]
    return {
        **example,
        "id": example["case"],
        "kind": "tool",
        "name": example["tool"],
        "asks": example["asked"],
        "messages": dict(zip(keys, example.get("messages", []))),
        "outcome": {"tool_error" if example.get("is_error") else "text": example["text"]},
    }


async def play_example(our: Fleet, example: Json) -> str:
    for operation in example.get("before", []):
        await asyncio.to_thread(our.do, operation)
    before, person = our.effects(), Person()
    async with connect(our.url, person, example.get("bearer")) as server:
        await play(server, person, as_of_table(example))
    await asyncio.to_thread(visit, person.url, example.get("page", []))
    done = {kind: sorted((counts - before[kind]).values()) for kind, counts in our.effects().items()}
    same({kind: counts for kind, counts in done.items() if counts}, example.get("effects", {}))
    return server.revision


# ---- all cases -------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    transport: str
    passed: int = 0
    failed: int = 0

    def add(self, case: str, revision: str, fault: str) -> None:
        self.passed, self.failed = self.passed + (not fault), self.failed + bool(fault)
        print(f"FAILED [{self.transport}] {case}: {fault}" if fault else f"ok     [{self.transport}] {case}", flush=True)
        record("client of ours", self.transport, revision, case, fault)


def reason_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:600]


async def run(target: Any, cases: list[Json], tally: Tally) -> None:
    person = Person()
    async with connect(target, person) as server:
        for case in cases:
            fault = ""
            try:
                await asyncio.wait_for(play(server, person, case), PER_CASE_SECONDS)
            except Exception as error:
                fault = reason_of(error)
            tally.add(case["id"], server.revision, fault)


async def run_examples(our: Fleet, examples: list[Json], tally: Tally) -> None:
    for example in examples:
        fault, revision = "", "2025-11-25"
        try:
            revision = await asyncio.wait_for(play_example(our, example), PER_CASE_SECONDS)
        except Exception as error:
            fault = reason_of(error)
        tally.add(example["case"], revision, fault)


def main() -> int:
    parser = argparse.ArgumentParser(description="Drives a server of the handshake revisions")
    parser.add_argument("table", type=Path)
    parser.add_argument("--http", metavar="URL")
    parser.add_argument("--sse", metavar="URL")
    parser.add_argument("--fleet", metavar="PROGRAM")
    parser.add_argument("--stdio", nargs=argparse.REMAINDER, metavar="COMMAND")
    options = parser.parse_args()
    table = json.loads(options.table.read_text())
    if isinstance(table, list):
        table = [one for one in table if is_played(one, bool(options.fleet))]
    tally = Tally("stdio" if options.stdio else "http")
    if options.fleet:
        with fleet(options.fleet) as our:
            asyncio.run(run_examples(our, table, tally))
    else:
        command = options.stdio and StdioServerParameters(command=options.stdio[0], args=options.stdio[1:])
        target = command or (("sse", options.sse) if options.sse else options.http)
        cases = table["cases"] if isinstance(table, dict) else [as_of_table(one) for one in table]
        try:
            asyncio.run(run(target, cases, tally))
        except Exception as error:
            tally.add("the session begins and ends", "2025-11-25", reason_of(error))
    print(f"{tally.passed} passed, {tally.failed} failed")
    return int(bool(tally.failed) or not tally.passed)


if __name__ == "__main__":
    sys.exit(main())
