"""Drives our everything server with the client of the Python SDK: what is not asking.

    wide_client_of_ours.py CONFORMANCE-SERVER [--only WORD]

Every check has a server of its own, over HTTP and over stdio. One line per check; the last line is `N passed, N failed`,
and any failure makes the exit code 1.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp.types import PromptReference, ResourceTemplateReference

from common import VERSION, child, record

PER_CHECK_SECONDS = 30
SOON_SECONDS = 10  # for what must come
WATCHED = "test://watched-resource"
COMES_AND_GOES = "test_comes_and_goes"

CHECKS: list[tuple[str, tuple[str, ...], Any]] = []


def check(name: str, *ways: str) -> Callable[[Any], Any]:
    def register(run: Any) -> Any:
        CHECKS.append((name, ways or ("http", "stdio"), run))
        return run

    return register


# ---- the server ------------------------------------------------------------------------------------------------------


@dataclass
class Ours:
    """One way to our server. Over HTTP the clients of a check share a server, over stdio each has its own."""

    program: str
    way: str
    stack: contextlib.AsyncExitStack
    process: subprocess.Popen[str] | None = None
    url: str = ""

    async def client(self, *options: str, **settings: Any) -> Client:
        """A connected client, of a server with these options."""
        words = ["--more", *options]
        if self.way == "stdio":
            target: Any = StdioServerParameters(command=self.program, args=["--stdio", *words])
        else:
            target = self.url or self.start(words)
        return await self.stack.enter_async_context(Client(target, mode=VERSION, **settings))

    def start(self, words: list[str]) -> str:
        started = child([self.program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process = self.stack.enter_context(started)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://"), f"the server said {self.url!r}"
        return self.url


def same(found: Any, wanted: Any) -> None:
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


def text_of(result: Any) -> str:
    assert not result.is_error, f"isError: {result.content!r}"
    return result.content[0].text


async def refused(call: Any, code: int) -> None:
    try:
        result = await call
    except MCPError as caught:
        same(caught.error.code, code)
    else:
        raise AssertionError(f"not refused: {result!r}")


async def soon(awaited: Any) -> Any:
    try:
        return await asyncio.wait_for(awaited, SOON_SECONDS)
    except TimeoutError:
        raise AssertionError(f"nothing came within {SOON_SECONDS} s") from None


async def ended(subscription: Any) -> None:
    """The stream ends, and nothing comes before."""
    with contextlib.suppress(StopAsyncIteration):
        raise AssertionError(f"an event instead of the end: {await soon(anext(subscription))!r}")


# ---- progress, log messages, completion ------------------------------------------------------------------------------


@check("progress: three reports, in order")
async def _(our: Ours) -> None:
    heard: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    client = await our.client()
    text_of(await client.call_tool("test_tool_with_progress", progress_callback=hear))
    same(heard, [(0, 100, "Begun"), (50, 100, "Half way"), (100, 100, "Done")])


@check("log: the messages of a call, at the level that was asked for")
async def _(our: Ours) -> None:
    heard: list[Any] = []

    async def hear(params: Any) -> None:
        heard.append((params.level, params.logger, params.data))

    client = await our.client(log_level="info", logging_callback=hear)
    text_of(await client.call_tool("test_logging_tool"))
    said = ["Tool execution started", "Tool processing data", "Tool execution completed"]
    same(heard, list(zip(["info"] * 3, [None, None, "conformance"], said)))


@check("log: nothing below the level, and nothing unless asked for")
async def _(our: Ours) -> None:
    heard: list[Any] = []

    async def hear(params: Any) -> None:
        heard.append(params)

    for settings in ({"log_level": "warning"}, {}):
        client = await our.client(logging_callback=hear, **settings)
        text_of(await client.call_tool("test_logging_tool"))
    same(heard, [])


@check("complete: an argument of a prompt")
async def _(our: Ours) -> None:
    client = await our.client()
    prompt = PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    for typed, wanted in (("te", ["test", "testing"]), ("o", ["other"]), ("x", [])):
        found = (await client.complete(prompt, {"name": "arg1", "value": typed})).completion
        same((found.values, found.has_more or False), (wanted, False))
    same((await client.complete(prompt, {"name": "arg2", "value": ""})).completion.values, [])


@check("complete: a variable of a template, with what is known of the others")
async def _(our: Ours) -> None:
    client = await our.client()
    files = ResourceTemplateReference(type="ref/resource", uri="test://files/{dir}/{name}")
    typed = {"name": "name", "value": "s"}
    same((await client.complete(files, typed)).completion.values, ["song", "sonata", "sketch"])
    same((await client.complete(files, typed, {"dir": "music"})).completion.values, ["song", "sonata"])
    same((await client.complete(files, typed, {"dir": "empty"})).completion.values, [])


@check("complete: a prompt that is not there is refused")
async def _(our: Ours) -> None:
    client = await our.client()
    await refused(client.complete(PromptReference(type="ref/prompt", name="nobody"), {"name": "a", "value": ""}), -32602)


# ---- pages -----------------------------------------------------------------------------------------------------------

LISTS = {
    "tools": lambda client, cursor: client.list_tools(cursor=cursor),
    "prompts": lambda client, cursor: client.list_prompts(cursor=cursor),
    "resources": lambda client, cursor: client.list_resources(cursor=cursor),
    "resource_templates": lambda client, cursor: client.list_resource_templates(cursor=cursor),
}


@check("pages: two entries each, and the whole list in the end")
async def _(our: Ours) -> None:
    client = await our.client("--page-size", "2")
    whole = await Ours(our.program, our.way, our.stack).client()
    for kind, read in LISTS.items():
        names, cursor = [], None
        while True:
            page = await read(client, cursor)
            entries = getattr(page, kind)
            assert 1 <= len(entries) <= 2, f"{len(entries)} entries on a page of {kind}"
            names += [entry.name for entry in entries]
            if page.next_cursor is None:
                break
            cursor = page.next_cursor
        same(names, [entry.name for entry in getattr(await read(whole, None), kind)])


@check("pages: a cursor of nobody is refused")
async def _(our: Ours) -> None:
    client = await our.client("--page-size", "2")
    for read in LISTS.values():
        await refused(read(client, "nonsense"), -32602)


# ---- structured results ----------------------------------------------------------------------------------------------


@check("structured: a result that fits its schema")
async def _(our: Ours) -> None:
    client = await our.client()
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    same(listed["test_structured"].output_schema["required"], ["total", "note"])
    result = await client.call_tool("test_structured", {"a": 40, "b": 2})
    same((result.is_error or False, result.structured_content), (False, {"total": 42, "note": None}))


@check("structured: our result that does not fit never arrives")
async def _(our: Ours) -> None:
    client = await our.client()
    result = await client.call_tool("test_wrong_structured")
    same((result.is_error, result.structured_content), (True, None))


# ---- arguments in headers --------------------------------------------------------------------------------------------

REGIONS = ["us-west1", "Zürich", " padded ", "", "=?base64?eA==?=", "two\nlines"]


@check("headers: arguments are repeated in them")
async def _(our: Ours) -> None:
    client = await our.client()
    await client.list_tools()
    for region in REGIONS:
        found = await client.call_tool("test_x_mcp_header", {"region": region})
        same(text_of(found), f"The region is {region}.")
    same(text_of(await client.call_tool("test_x_mcp_header")), "There is no region.")


TYPED: list[tuple[dict[str, Any], str]] = [
    ({"count": 42, "sure": True, "place": {"zone": "eu"}}, "42 true eu"),
    ({"count": -7, "sure": False, "place": {}}, "-7 false none"),
    ({"count": 2**53 - 1, "sure": None}, "9007199254740991 none none"),
    ({"place": {"zone": "Zürich"}}, "none none Zürich"),
    ({}, "none none none"),
]


@check("headers: numbers, yes and no, nothing, and what is nested")
async def _(our: Ours) -> None:
    client = await our.client()
    await client.list_tools()
    for arguments, said in TYPED:
        same(text_of(await client.call_tool("test_typed_headers", arguments)), said)


@check("headers: a tool that was not listed yet")
async def _(our: Ours) -> None:
    client = await our.client()
    same(text_of(await client.call_tool("test_x_mcp_header", {"region": "eu"})), "The region is eu.")


@check("headers: one that was renamed since the list")
async def _(our: Ours) -> None:
    client = await our.client("--cache", "600")
    await client.list_tools()
    same(text_of(await client.call_tool("test_renamed_header", {"value": "one"})), "The value is one.")
    await client.call_tool("test_trigger_header_rename")
    same(text_of(await client.call_tool("test_renamed_header", {"value": "two"})), "The value is two.")


# ---- caching hints ---------------------------------------------------------------------------------------------------


async def tools_of(client: Client, **how: Any) -> set[str]:
    return {tool.name for tool in (await client.list_tools(**how)).tools}


@check("cache: a list that may be kept is not asked for again")
async def _(our: Ours) -> None:
    client = await our.client("--cache", "600")
    listed = await client.list_tools()
    same((listed.ttl_ms, listed.cache_scope), (600_000, "public"))
    before = await tools_of(client)
    await client.call_tool("test_trigger_tool_change")
    same(await tools_of(client), before)
    same(await tools_of(client, cache_mode="refresh") - before, {COMES_AND_GOES})


@check("cache: nothing is kept without a hint")
async def _(our: Ours) -> None:
    client = await our.client()
    listed = await client.list_tools()
    same((listed.ttl_ms, listed.cache_scope), (0, "private"))
    before = await tools_of(client)
    await client.call_tool("test_trigger_tool_change")
    same(await tools_of(client) - before, {COMES_AND_GOES})


@check("cache: who listens asks again for what changed")
async def _(our: Ours) -> None:
    client = await our.client("--cache", "600")
    before = await tools_of(client)
    async with client.listen(tools_list_changed=True) as subscription:
        await client.call_tool("test_trigger_tool_change")
        same(await soon(anext(subscription)), ToolsListChanged())
        same(await tools_of(client) - before, {COMES_AND_GOES})


COUNTED = "test://counted"


@check("cache: a resource that may be kept is not read again before it changes")
async def _(our: Ours) -> None:
    client = await our.client()

    async def read() -> str:
        return (await client.read_resource(COUNTED)).contents[0].text

    same([await read(), await read()], ["Read 1 times."] * 2)
    async with client.listen(resource_subscriptions=[COUNTED]) as subscription:
        await client.call_tool("test_trigger_resource_update")
        same(str((await soon(anext(subscription))).uri), COUNTED)
        same([await read(), await read()], ["Read 2 times."] * 2)


# ---- calls that are given up -----------------------------------------------------------------------------------------


@check("given up: a call that the client ends is ended here")
async def _(our: Ours) -> None:
    client = await our.client()

    async def until_waiting(wanted: str) -> None:
        while text_of(await client.call_tool("test_waiting")) != wanted:
            await asyncio.sleep(0.02)

    call = asyncio.create_task(client.call_tool("test_wait"))
    await soon(until_waiting("1"))
    call.cancel()
    await soon(until_waiting("0"))


# ---- subscriptions ---------------------------------------------------------------------------------------------------


@check("listen: the tools changed")
async def _(our: Ours) -> None:
    client = await our.client()
    async with client.listen(tools_list_changed=True) as subscription:
        same(subscription.honored.model_dump(exclude_none=True), {"tools_list_changed": True})
        for _ in range(2):
            await client.call_tool("test_trigger_tool_change")
            same(await soon(anext(subscription)), ToolsListChanged())


@check("listen: the prompts changed, and only what was asked for is told")
async def _(our: Ours) -> None:
    client = await our.client()
    async with client.listen(prompts_list_changed=True) as subscription:
        for trigger in ("test_trigger_tool_change", "test_trigger_resource_update", "test_trigger_prompt_change"):
            await client.call_tool(trigger)
        same(await soon(anext(subscription)), PromptsListChanged())


@check("listen: the resources changed")
async def _(our: Ours) -> None:
    client = await our.client()
    async with client.listen(resources_list_changed=True) as subscription:
        for there in (True, False):
            await client.call_tool("test_trigger_resource_change")
            same(await soon(anext(subscription)), ResourcesListChanged())
            uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
            same("test://comes-and-goes" in uris, there)


@check("listen: a resource was updated")
async def _(our: Ours) -> None:
    client = await our.client()
    async with client.listen(resource_subscriptions=[WATCHED, "test://static-text"]) as subscription:
        same(subscription.honored.resource_subscriptions, [WATCHED, "test://static-text"])
        await client.call_tool("test_trigger_resource_update")
        event = await soon(anext(subscription))
        same((type(event), str(event.uri)), (ResourceUpdated, WATCHED))


@check("listen: several at once, each told its own")
async def _(our: Ours) -> None:
    client = await our.client()
    async with (
        client.listen(tools_list_changed=True) as tools,
        client.listen(prompts_list_changed=True) as prompts,
        client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as both,
    ):
        assert len({tools.subscription_id, prompts.subscription_id, both.subscription_id}) == 3
        await client.call_tool("test_trigger_tool_change")
        same((await soon(anext(tools)), await soon(anext(both))), (ToolsListChanged(), ToolsListChanged()))
        await client.call_tool("test_trigger_resource_update")
        same(type(await soon(anext(both))), ResourceUpdated)
        await client.call_tool("test_trigger_prompt_change")
        same(await soon(anext(prompts)), PromptsListChanged())


@check("listen: ended by the client; the others and the calls go on")
async def _(our: Ours) -> None:
    client = await our.client()
    async with client.listen(tools_list_changed=True) as stays:
        async with client.listen(tools_list_changed=True) as goes:
            await client.call_tool("test_trigger_tool_change")
            same((await soon(anext(stays)), await soon(anext(goes))), (ToolsListChanged(), ToolsListChanged()))
        await client.call_tool("test_trigger_tool_change")
        same(await soon(anext(stays)), ToolsListChanged())
        await ended(goes)


@check("listen: a hundred, one after the other")
async def _(our: Ours) -> None:
    client = await our.client()
    for _ in range(100):
        async with client.listen(tools_list_changed=True):
            pass


@check("listen: the server shuts down, and says so")
async def _(our: Ours) -> None:
    client = await our.client()
    async with client.listen(tools_list_changed=True) as one, client.listen(prompts_list_changed=True) as two:
        await client.call_tool("test_trigger_tool_change")
        await client.call_tool("test_trigger_shutdown")
        same(await soon(anext(one)), ToolsListChanged())
        await ended(one)
        await ended(two)


@check("listen: the server is gone without a word", "http")
async def _(our: Ours) -> None:
    client = await our.client()
    async with client.listen(tools_list_changed=True) as subscription:
        assert our.process is not None
        our.process.send_signal(signal.SIGKILL)
        with contextlib.suppress(SubscriptionLost):
            raise AssertionError(f"not lost: {await soon(anext(subscription))!r}")


# ---- running ---------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def ours(program: str, way: str) -> AsyncIterator[Ours]:
    async with contextlib.AsyncExitStack() as stack:
        yield Ours(program, way, stack)


def leaves(fault: BaseException) -> list[BaseException]:
    """The task groups of the SDK wrap what fails inside of them."""
    if isinstance(fault, BaseExceptionGroup):
        return [leaf for one in fault.exceptions for leaf in leaves(one)]
    return [fault]


async def fault_of(program: str, way: str, run: Any) -> str:
    try:
        async with asyncio.timeout(PER_CHECK_SECONDS), ours(program, way) as our:
            await run(our)
    except TimeoutError:
        return f"no end after {PER_CHECK_SECONDS} s"
    except Exception as fault:
        return "; ".join(f"{type(one).__name__}: {one}" for one in leaves(fault))
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Drives our everything server with the SDK's client")
    parser.add_argument("server")
    parser.add_argument("--only", metavar="WORD", default="", help="only the checks whose name holds WORD")
    options = parser.parse_args()
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers end with us
    passed = failed = 0
    for way in ("http", "stdio"):
        for name, ways, run in CHECKS:
            if way not in ways or options.only not in name:
                continue
            fault = asyncio.run(fault_of(options.server, way, run)).replace("\n", " ")
            record("client of ours", way, name, fault)
            passed, failed = passed + (not fault), failed + bool(fault)
            print(f"FAILED [{way}] {name}: {fault}" if fault else f"ok     [{way}] {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
