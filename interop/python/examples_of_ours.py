"""Drives the examples that ask with `await`, on two replicas behind a proxy, with the client of the Python SDK.

    examples_of_ours.py FLEET      the program `fleet` of antiphon-examples

The cases stand in ../examples.json. One line per case; the last line is `N passed, N failed`, and any failure makes the
exit code 1.
"""

import asyncio
import collections
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CreateMessageResult, ElicitResult, ErrorData, ListRootsResult, Root, TextContent

from common import HERE, VERSION, Answers, child, record

PER_CASE_SECONDS = 30


@dataclass
class Fleet:
    """The URLs of the replicas, and of their backend."""

    process: subprocess.Popen[str]
    url: str
    backend: str

    def tell(self, line: str) -> set[str]:
        """Has the line obeyed; the names of the replicas."""
        print(line, file=self.process.stdin, flush=True)
        assert self.process.stdout is not None
        return set(self.process.stdout.readline().split())

    def do(self, operation: dict[str, Any]) -> Any:
        return httpx2.post(self.backend, json=operation).raise_for_status().json()

    def effects(self) -> dict[str, collections.Counter[str]]:
        """How often what was done, by kind and idempotency key."""
        return {kind: collections.Counter(counts) for kind, counts in self.do({"operation": "count"}).items()}


@contextlib.contextmanager
def fleet(program: str) -> Iterator[Fleet]:
    with child([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        said = [process.stdout.readline().rstrip("\n") for _ in range(2)]
        yield Fleet(process, said[0].removeprefix("listening on "), said[1].removeprefix("backend at "))


@dataclass
class Person:
    """Whoever sits at the client: what the case says they answer, and what they were asked."""

    our: Fleet
    case: dict[str, Any]
    asked: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    url: str = ""

    async def elicit(self, context: Any, params: Any) -> ElicitResult | ErrorData:
        key = context.request_id
        self.asked.append(key)
        self.messages.append(params.message)
        self.url = getattr(params, "url", self.url)
        deploy = self.case.get("deploy", {})
        if deploy.get("key") == key:
            await asyncio.to_thread(self.our.tell, f"deploy {deploy['then']}")
        answer = Answers(self.case["answers"]).to(key, params)
        return answer or ErrorData(code=-32600, message=f"no answer for {key}")

    async def sample(self, context: Any, params: Any) -> CreateMessageResult:
        self.asked.append(context.request_id)
        text = TextContent(type="text", text=self.case["sample"])
        return CreateMessageResult(role="assistant", content=text, model="none")

    async def roots(self, context: Any) -> ListRootsResult:
        self.asked.append(context.request_id)
        return ListRootsResult(roots=[Root(uri=uri) for uri in self.case["roots"]])

    def client(self, mode: str) -> Client:
        callbacks: dict[str, Any] = {"elicitation_callback": self.elicit}
        if "sample" in self.case:
            callbacks["sampling_callback"] = self.sample
        if "roots" in self.case:
            callbacks["list_roots_callback"] = self.roots
        server: Any = self.our.url
        if bearer := self.case.get("bearer"):
            caller = httpx2.AsyncClient(headers={"authorization": f"Bearer {bearer}"})
            server = streamable_http_client(server, http_client=caller)
        return Client(server, mode=mode, **callbacks)

    def visit(self) -> None:
        """Opens the page, and pays there, as the case says who does."""
        for visit in self.case.get("page", []):
            cookies = {"cookie": f"user={visit['user']}"} if visit["user"] else {}
            for method in ("GET", "POST"):
                reply = httpx2.request(method, self.url, headers=cookies)
                assert reply.status_code == visit["status"], f"{method} as {visit['user']}: {reply.status_code}"


def same(found: Any, wanted: Any) -> None:
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


async def check(our: Fleet, case: dict[str, Any], mode: str) -> None:
    if deploy := case.get("deploy"):
        our.tell(f"deploy {deploy['before']}")
    for operation in case.get("before", []):
        our.do(operation)
    before, replicas = our.effects(), our.tell("replicas")
    person = Person(our, case)
    async with person.client(mode) as client:
        result = await client.call_tool(case["tool"], case["arguments"])
    same((result.content[0].text, bool(result.is_error)), (case["text"], case.get("is_error", False)))
    await asyncio.to_thread(person.visit)
    # Of one round, in any order.
    asked = iter(person.asked)
    same([{next(asked, None) for _ in keys} for keys in case["asked"]], [set(keys) for keys in case["asked"]])
    same(list(asked), [])
    if messages := case.get("messages"):
        same(person.messages, messages)
    done = {kind: sorted((counts - before[kind]).values()) for kind, counts in our.effects().items()}
    same({kind: counts for kind, counts in done.items() if counts}, case.get("effects", {}))
    same(len(replicas - our.tell("replicas")), case.get("replaced", 0))


async def run(our: Fleet, mode: str) -> list[str]:
    faults = []
    for case in json.loads((HERE.parent / "examples.json").read_text()):
        fault = ""
        try:
            await asyncio.wait_for(check(our, case, mode), PER_CASE_SECONDS)
        except Exception as error:
            fault = reason_of(error)
        faults.append(fault)
        label = f"[examples, {mode}] {case['case']}"
        print(f"FAILED {label}: {fault}" if fault else f"ok     {label}", flush=True)
        record("client of ours", "http", case["case"], fault)
    return faults


def reason_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:600]


def main() -> int:
    faults = []
    for mode in (VERSION, "auto"):
        with fleet(sys.argv[1]) as our:
            faults += asyncio.run(run(our, mode))
    failed = sum(map(bool, faults))
    print(f"{len(faults) - failed} passed, {failed} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
