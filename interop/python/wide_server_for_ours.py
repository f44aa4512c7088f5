"""A server on the Python SDK for our client library: what is not asking.

    wide_server_for_ours.py --listen 127.0.0.1:PORT   (0: any free port; the line `listening on URL` says which)
    wide_server_for_ours.py --stdio

../table/wide is its client, and ../typescript/wide_server_for_ours.mjs offers the same.
"""

import argparse
import asyncio
import logging
import os
import warnings
from collections import Counter
from typing import Annotated, Any

from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    Completion,
    ListPromptsResult,
    ListToolsResult,
    PaginatedRequestParams,
    PromptReference,
    SubscriptionsListenRequestParams,
    TextContent,
    Tool,
)
from pydantic import BaseModel, Field

from server_for_ours import serve_http

WATCHED = "watched://one"
NAMES = ["anna", "anton", "berta"]
FILES = {"music": ["song", "sonata", "tune"], None: ["song", "sonata", "tune", "sketch"]}
PER_PAGE = 2
HOUR = CacheHint(ttl_ms=3_600_000, scope="public")

bus = InMemorySubscriptionBus()
server = MCPServer("python-peer", version="1.0.0", subscriptions=bus, cache_hints={"tools/list": HOUR, "resources/read": HOUR})
listen = ListenHandler(bus)
asked: Counter[str] = Counter()


# ---- what a call tells, and what comes of it -------------------------------------------------------------------------


@server.tool()
async def progress(to: int, ctx: Context) -> str:
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"at {n}")
    return f"counted to {to}"


@server.tool()
async def log(ctx: Context) -> str:
    await ctx.log("debug", "quiet")
    await ctx.log("info", {"n": 1})
    await ctx.log("warning", "loud", logger_name="wide")
    return "logged"


class Total(BaseModel):
    total: int


@server.tool()
def sum(a: int, b: int) -> Total:
    return Total(total=a + b)


def by_region(name: str) -> Any:
    def route(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": name})], ctx: Context) -> str:
        return f"{region} by {(ctx.headers or {}).get(f'mcp-param-{name.lower()}', 'no header')}"

    return route


header = "Region"
server.add_tool(by_region(header), name="route")


@server.tool()
def rename_header() -> str:
    global header
    header = {"Region": "Area", "Area": "Region"}[header]
    server.remove_tool("route")
    server.add_tool(by_region(header), name="route")
    return header


@server.tool(name="asked")
def how_often(method: str) -> str:
    """How often this process was asked for it; of `wait`, how many calls wait."""
    return str(asked[method])


@server.tool()
async def wait() -> str:
    asked["wait"] += 1
    try:
        await asyncio.Event().wait()
    finally:
        asked["wait"] -= 1
    return "never"


# ---- what changes ----------------------------------------------------------------------------------------------------


def nothing() -> str:
    return "nothing"


@server.tool()
async def change_tools(ctx: Context) -> str:
    if any(tool.name == "comes_and_goes" for tool in await server.list_tools()):
        server.remove_tool("comes_and_goes")
    else:
        server.add_tool(nothing, name="comes_and_goes")
    await ctx.notify_tools_changed()
    return "changed"


@server.tool()
async def change_prompts(ctx: Context) -> str:
    await ctx.notify_prompts_changed()
    return "changed"


@server.tool()
async def change_resources(ctx: Context) -> str:
    await ctx.notify_resources_changed()
    return "changed"


@server.tool()
async def update_resource(ctx: Context) -> str:
    await ctx.notify_resource_updated(WATCHED)
    return "updated"


@server.tool(name="open")
def how_many_listen() -> str:
    return str(len(bus._listeners))


@server.tool()
def end_listening() -> str:
    listen.close()
    return "ended"


@server.tool()
def die() -> str:
    os._exit(1)


# ---- prompts and resources -------------------------------------------------------------------------------------------


def named_prompt(name: str) -> None:
    @server.prompt(name=name)
    def prompt(who: str) -> str:
        return f"{name} {who}"


for name in ("greet", "thank", "scold", "praise", "leave"):
    named_prompt(name)


@server.resource(WATCHED)
def watched() -> str:
    asked["resources/read"] += 1
    return f"read {asked['resources/read']} times"


@server.resource("files://{dir}/{name}")
def file(dir: str, name: str) -> str:
    return f"{name} of {dir}"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion | None:
    if isinstance(ref, PromptReference):
        values = NAMES if argument.name == "who" else []
    else:
        known = (context.arguments or {}).get("dir") if context else None
        values = FILES.get(known, []) if argument.name == "name" else []
    found = [value for value in values if value.startswith(argument.value)]
    return Completion(values=found, total=len(found), has_more=False)


# ---- what the comfortable half of the SDK does not let a server do ---------------------------------------------------

INTEGER_TOTAL = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
BAD_HEADER = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "two words"}}}


TYPED = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "sure": {"type": "boolean", "x-mcp-header": "Sure"},
        "place": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
    },
}
TYPED_HEADERS = ("count", "sure", "zone")


async def list_tools(ctx: Any, params: PaginatedRequestParams) -> ListToolsResult:
    asked["tools/list"] += 1
    wrong = Tool(name="wrong", input_schema={"type": "object"}, output_schema=INTEGER_TOTAL)
    bad_header = Tool(name="bad_header", input_schema=BAD_HEADER)
    typed = Tool(name="typed", input_schema=TYPED)
    return ListToolsResult(tools=[*await server.list_tools(), wrong, bad_header, typed])


async def call_tool(ctx: Any, params: CallToolRequestParams) -> Any:
    if params.name == "wrong":
        content = [TextContent(type="text", text='{"total": "many"}')]
        return CallToolResult(content=content, structured_content={"total": "many"})
    if params.name == "typed":
        headers = getattr(ctx.request, "headers", {})
        seen = " ".join(headers.get(f"mcp-param-{name}", "none") for name in TYPED_HEADERS)
        return CallToolResult(content=[TextContent(type="text", text=seen)])
    return await server._handle_call_tool(ctx, params)


async def list_prompts(ctx: Any, params: PaginatedRequestParams) -> ListPromptsResult:
    asked["prompts/list"] += 1
    prompts = await server.list_prompts()
    try:
        first = int(params.cursor or "0")
    except ValueError as fault:
        raise MCPError(code=INVALID_PARAMS, message="no such page") from fault
    after = first + PER_PAGE
    cursor = str(after) if after < len(prompts) else None
    return ListPromptsResult(prompts=prompts[first:after], next_cursor=cursor)


def schema_of(name: str) -> Any:
    return TYPED if name == "typed" else server._tool_input_schema(name)


server._lowlevel_server.get_tool_input_schema = schema_of
for method, params, handler in (
    ("tools/list", PaginatedRequestParams, list_tools),
    ("tools/call", CallToolRequestParams, call_tool),
    ("prompts/list", PaginatedRequestParams, list_prompts),
    ("subscriptions/listen", SubscriptionsListenRequestParams, listen),
):
    server._lowlevel_server.add_request_handler(method, params, handler)


def main() -> None:
    parser = argparse.ArgumentParser(description="MCP server on the Python SDK: what is not asking")
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--listen", metavar="HOST:PORT")
    way.add_argument("--stdio", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # logging is deprecated, and tried all the same
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    if options.stdio:
        asyncio.run(server.run_stdio_async())
    else:
        host, _, port = options.listen.rpartition(":")
        asyncio.run(serve_http(host, int(port), server))


if __name__ == "__main__":
    main()
