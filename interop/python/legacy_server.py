"""A server on the Python SDK, 1 or 2, that asks in the ways of the handshake revisions.

    legacy_server.py --stdio
    legacy_server.py --listen HOST:PORT [--sse | --stateless | --json]    prints `listening on URL` when it is ready
    legacy_server.py ... --minimal                                        one tool, which asks nothing

../legacy/peers.json says what each call does.
"""

import argparse
import asyncio
import socket
import sys
from typing import Any

import uvicorn
from mcp import types
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import BaseModel

try:
    from mcp import MCPError
    from mcp.server.mcpserver import Context as Lent
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    NEW = True
except ImportError:
    from mcp.server.fastmcp import Context as Lent
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError
    from mcp.shared.exceptions import McpError

    NEW = False

    def MCPError(code: int, message: str, data: Any) -> McpError:  # noqa: N802
        return McpError(types.ErrorData(code=code, message=message, data=data))


class Confirmation(BaseModel):
    ok: bool


class Name(BaseModel):
    name: str


class Colour(BaseModel):
    colour: str


def quiet(server: MCPServer) -> None:
    @server.tool()
    def echo(text: str) -> str:
        """Says it back."""
        return text


def failing(server: MCPServer) -> None:
    @server.tool()
    def fail(reason: str) -> str:
        """A tool error."""
        raise ToolError(reason)

    @server.tool()
    def refuse() -> str:
        """An error of the protocol, where the SDK lets a tool make one."""
        raise MCPError(1000, "No tea here", {"kind": "teapot"})

    visited: set[str] = set()

    @server.tool()
    def must_visit(page: str) -> str:
        """The error -32042 at first; then it is content."""
        if page in visited:
            return f"{page} was visited."
        visited.add(page)
        raise UrlElicitationRequiredError([url_ask(page)])


def url_ask(page: str) -> types.ElicitRequestURLParams:
    ask = {"mode": "url", "message": f"Please visit {page}.", "url": f"https://example.com/{page}", "elicitationId": f"id-{page}"}
    return types.ElicitRequestURLParams.model_validate(ask)


def asking(server: MCPServer) -> None:
    @server.tool()
    async def confirm(ctx: Lent) -> str:
        """One form."""
        said = await ctx.elicit("Go on?", Confirmation)
        return f"confirmed: {str(said.data.ok).lower()}" if said.action == "accept" else f"not confirmed: {said.action}"

    @server.tool()
    async def two_forms(ctx: Lent) -> str:
        """A form, and then another."""
        first = await ctx.elicit("What is your name?", Name)
        if first.action != "accept":
            return f"no name: {first.action}"
        second = await ctx.elicit(f"Which colour, {first.data.name}?", Colour)
        if second.action != "accept":
            return f"no colour for {first.data.name}: {second.action}"
        return f"{first.data.name} likes {second.data.colour}."

    @server.tool()
    async def side_by_side(ctx: Lent) -> str:
        """Two forms at once."""
        name, colour = await asyncio.gather(ctx.elicit("Left?", Name), ctx.elicit("Right?", Colour))
        left = name.data.name if name.action == "accept" else name.action
        right = colour.data.colour if colour.action == "accept" else colour.action
        return f"left {left}, right {right}"

    @server.tool()
    async def visit(page: str, ctx: Lent) -> str:
        """A question in URL mode, and the notification that it is complete."""
        ask, id_ = url_ask(page), f"id-{page}"
        said = await ctx.session.elicit_url(ask.message, ask.url, id_, related_request_id=ctx.request_id)
        if said.action == "accept":
            await ctx.session.send_elicit_complete(id_, related_request_id=ctx.request_id)
        return f"visit: {said.action}"

    @server.tool()
    async def sample(prompt: str, ctx: Lent) -> str:
        """A question to the client's model."""
        content = types.TextContent(type="text", text=prompt)
        said = await ctx.session.create_message(
            [types.SamplingMessage(role="user", content=content)], max_tokens=50, related_request_id=ctx.request_id
        )
        return f"the model said: {said.content.text}"

    @server.tool()
    async def roots(ctx: Lent) -> str:
        """The client's roots."""
        said = await ctx.session.list_roots()
        return f"roots: {', '.join(str(root.uri) for root in said.roots)}"


def telling(server: MCPServer) -> None:
    @server.tool()
    async def count(to: int, ctx: Lent) -> str:
        """Progress and log messages."""
        for at in range(1, to + 1):
            await ctx.report_progress(at, to, f"at {at}")
            await ctx.info(f"counted {at}")
        return f"counted to {to}"


def others(server: MCPServer) -> None:
    @server.prompt()
    async def greeting(ctx: Lent) -> str:
        """A prompt that asks."""
        said = await ctx.elicit("Whom do I greet?", Name)
        return f"Greet {said.data.name}." if said.action == "accept" else f"Greet nobody: {said.action}."

    # A template, as the resources of this SDK are lent no context.
    @server.resource("note://{day}")
    async def note(day: str, ctx: Lent) -> str:
        """A resource that asks."""
        said = await ctx.elicit(f"Who reads the note of {day}?", Name)
        return f"The note of {day} for {said.data.name}." if said.action == "accept" else f"No note: {said.action}."


def build(options: argparse.Namespace) -> MCPServer:
    settings = {"stateless_http": options.stateless, "json_response": options.json}
    server = MCPServer("python-peer", **({} if NEW else settings))
    for add in [quiet] if options.minimal else [quiet, failing, asking, telling, others]:
        add(server)
    return server


def serve_http(server: MCPServer, options: argparse.Namespace) -> None:
    settings = {"stateless_http": options.stateless, "json_response": options.json}
    host, _, port = options.listen.rpartition(":")
    listener = socket.create_server((host, int(port)))
    if options.sse:
        path, app = "/sse", server.sse_app()
    else:
        path, app = "/mcp", server.streamable_http_app(**(settings if NEW else {}))
    print(f"listening on http://{host}:{listener.getsockname()[1]}{path}", flush=True)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


def main() -> int:
    parser = argparse.ArgumentParser(description="A server on the Python SDK")
    parser.add_argument("--stdio", action="store_true")
    parser.add_argument("--listen", metavar="HOST:PORT")
    parser.add_argument("--sse", action="store_true", help="HTTP+SSE, as of 2024-11-05")
    parser.add_argument("--stateless", action="store_true", help="no sessions")
    parser.add_argument("--json", action="store_true", help="replies as JSON, not as event streams")
    parser.add_argument("--minimal", action="store_true")
    options = parser.parse_args()
    server = build(options)
    if options.stdio:
        server.run("stdio")
    elif options.listen:
        serve_http(server, options)
    else:
        parser.error("give --stdio or --listen")
    return 0


if __name__ == "__main__":
    sys.exit(main())
