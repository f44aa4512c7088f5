#!/usr/bin/env python3
"""Plays the `antiphon` program, written on the Python SDK, so that run.sh and its checks can be tried without it.

    ANTIPHON=interop/python/stand_in.py interop/python/run.sh

It keeps the contract that the checks rely on and nothing else: serve-demo, keygen and call.
"""

import argparse
import asyncio
import base64
import json
import os
import secrets
import sys
from typing import Any

import jsonschema
import uvicorn
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.server.mcpserver import AESGCMRequestStateCodec, Context, InvalidRequestState, MCPServer, RequestStateSecurity
from mcp.types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
)

from common import VERSION, Answers

RESOLUTIONS = ["Fixed", "Won't Fix", "Duplicate", "By Design"]
DONE, TOOL_ERROR, PENDING, PROTOCOL = 0, 1, 3, 4


# ---- serve-demo ------------------------------------------------------------------------------------------------------


class Codec:
    """The SDK's own codec under the prefix that our tokens have."""

    def __init__(self, keys: list[bytes]) -> None:
        self.inner = AESGCMRequestStateCodec(keys)

    def seal(self, payload: bytes) -> str:
        return "r" + self.inner.seal(payload).removeprefix("v")

    def unseal(self, token: str) -> bytes:
        if not token.startswith("r1."):
            raise InvalidRequestState("prefix")
        return self.inner.unseal("v" + token.removeprefix("r"))


class Ask(Exception):
    def __init__(self, result: InputRequiredResult) -> None:
        self.result = result


class Call:
    """One call: answers that were asked for and fit are kept in the state, all else is asked again."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        state = json.loads(ctx.request_state or '{"asked": null, "kept": {}}')
        self.asked, self.kept = state["asked"], state["kept"]

    def ask(self, key: str, message: str, field: str, schema: dict[str, Any]) -> tuple[str, Any]:
        form = {"type": "object", "properties": {field: schema}, "required": [field]}
        if key in self.kept:
            action, value = self.kept[key]
            return action, value
        answer = (self.ctx.input_responses or {}).get(key) if self.asked == key else None
        reason = ""
        if isinstance(answer, ElicitResult):
            if answer.action != "accept":
                self.kept[key] = [answer.action, None]
                return answer.action, None
            try:
                jsonschema.validate(answer.content, form)
                self.kept[key] = ["accept", answer.content[field]]
                return "accept", answer.content[field]
            except jsonschema.ValidationError:
                reason = f" ({field}: not valid)"
        capabilities = self.ctx.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            raise MCPError(
                -32021, "form elicitation is missing", {"requiredCapabilities": {"elicitation": {"form": {}}}}
            )
        ask = ElicitRequest(params=ElicitRequestFormParams(message=message + reason, requested_schema=form))
        raise Ask(
            InputRequiredResult(input_requests={key: ask}, request_state=json.dumps({"asked": key, "kept": self.kept}))
        )


class Demo(MCPServer):
    async def call_tool(self, name, arguments, context=None):
        if name not in {tool.name for tool in await self.list_tools()}:
            raise MCPError(-32602, f"Unknown tool: {name}")
        return await super().call_tool(name, arguments, context)

    async def get_prompt(self, name, arguments=None, context=None):
        if name not in {prompt.name for prompt in await self.list_prompts()}:
            raise MCPError(-32602, f"Unknown prompt: {name}")
        return await super().get_prompt(name, arguments, context)


def demo(keys: list[bytes] | None) -> MCPServer:
    codec = Codec(keys or [secrets.token_bytes(32)])
    server = Demo("stand-in", version="0", request_state_security=RequestStateSecurity(codec=codec))
    text = {"type": "string"}

    @server.tool()
    async def echo(text: str) -> str:
        return text

    @server.tool()
    async def provision(name: str, ctx: Context) -> str | InputRequiredResult:
        try:
            said, region = Call(ctx).ask("region", "Which region should the database live in?", "region", text)
        except Ask as ask:
            return ask.result
        return f'Provisioned "{name}" in {region}.' if said == "accept" else f"Nothing provisioned: {said} by the user."

    @server.tool()
    async def get_weather(location: str, ctx: Context) -> str | InputRequiredResult:
        try:
            said, _ = Call(ctx).ask("github_login", "Please provide your GitHub username", "name", text)
        except Ask as ask:
            return ask.result
        return f"Current weather in {location}: mild" if said == "accept" else f"No weather: {said}."

    @server.tool()
    async def update_work_item(workItemId: int, fields: dict[str, Any], ctx: Context) -> str | InputRequiredResult:
        state, bug, call = fields.get("System.State"), f"Bug #{workItemId}", Call(ctx)
        if state != "Resolved":
            return f"{bug} updated. State set to {state}."
        try:
            said, how = call.ask(
                "resolution",
                f"Resolving {bug} requires a resolution. How was this bug resolved?",
                "resolution",
                {"type": "string", "enum": RESOLUTIONS},
            )
            if said != "accept":
                return f"{bug} not changed: {said}."
            if how != "Duplicate":
                return f"{bug} resolved as {how}. State set to Resolved."
            message = "Since this is a duplicate, which work item is the original?"
            said, original = call.ask("duplicate_of", message, "duplicateOfId", {"type": "number"})
        except Ask as ask:
            return ask.result
        if said != "accept":
            return f"{bug} not changed: {said}."
        return f"{bug} resolved as Duplicate of Bug #{original}. State set to Resolved and duplicate link created."

    @server.prompt()
    async def briefing(ctx: Context) -> str | InputRequiredResult:
        try:
            said, audience = Call(ctx).ask("audience", "Who is the audience?", "audience", text)
        except Ask as ask:
            return ask.result
        return f"Brief {audience}." if said == "accept" else f"No briefing: {said}."

    @server.resource("report://{id}")
    async def report(id: str, ctx: Context) -> str | InputRequiredResult:
        try:
            said, audience = Call(ctx).ask("audience", "Who is the audience?", "audience", text)
        except Ask as ask:
            return ask.result
        return f"Report {id} for {audience}." if said == "accept" else f"No report: {said}."

    return server


def serve_demo(options: argparse.Namespace) -> int:
    keys = None
    if options.key_file:
        with open(options.key_file) as file:
            keys = [base64.urlsafe_b64decode(line.strip() + "=") for line in file]
    server = demo(keys)
    if options.stdio:
        asyncio.run(server.run_stdio_async())
    else:
        host, _, port = options.listen.rpartition(":")
        uvicorn.run(server.streamable_http_app(host=host), host=host, port=int(port), log_level="warning")
    return 0


# ---- call ------------------------------------------------------------------------------------------------------------


async def call(options: argparse.Namespace, command: list[str]) -> int:
    target: Any = options.url or StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    answers = Answers(options.answer)

    async def never(context, params):
        return ErrorData(code=-32600, message="not reached")

    def say(status: str, result: Any, rounds: int, code: int) -> int:
        print(json.dumps({"status": status, "result": result, "rounds": rounds}))
        return code

    # Two requests in one: `elicitation_callback` declares the capability, the rounds are driven here.
    async with Client(target, mode=VERSION, elicitation_callback=never) as client:
        await client.session.list_tools()
        retry: dict[str, Any] = {}
        for rounds in range(11):
            arguments = json.loads(options.args)
            result = await client.session.call_tool(options.tool, arguments, allow_input_required=True, **retry)
            wire = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            if result.result_type != "input_required":
                failed = result.is_error
                return say("error" if failed else "done", wire, rounds, TOOL_ERROR if failed else DONE)
            given, missing = {}, []
            for key, ask in (result.input_requests or {}).items():
                if ask.method != "elicitation/create":
                    raise MCPError(-32600, f"{ask.method} for {key}: not supported")
                answer = answers.to(key, ask.params)
                given[key] = answer
                if answer is None:
                    missing.append(key)
            if missing:
                print(f"no answer for {', '.join(missing)}", file=sys.stderr)
                return say("pending", wire, rounds + 1, PENDING)
            retry = {"input_responses": given or None, "request_state": result.request_state}
        raise MCPError(-32600, "more than 10 rounds")


def call_and_report(options: argparse.Namespace, command: list[str]) -> int:
    try:
        return asyncio.run(call(options, command))
    except Exception as caught:
        error: BaseException = caught
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        print(error, file=sys.stderr)
        print(json.dumps({"status": "error", "result": None, "rounds": 0}))
        return PROTOCOL


def main() -> int:
    words, command = sys.argv[1:], []
    if "--" in words:
        words, command = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(description="Plays the antiphon program")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("keygen")
    serving = verbs.add_parser("serve-demo")
    serving.add_argument("--listen")
    serving.add_argument("--stdio", action="store_true")
    serving.add_argument("--key-file")
    calling = verbs.add_parser("call")
    calling.add_argument("--json", action="store_true")
    calling.add_argument("--args", default="{}")
    calling.add_argument("--answer", action="append", default=[])
    calling.add_argument("tool")
    calling.add_argument("url", nargs="?")
    options = parser.parse_args(words)
    match options.verb:
        case "keygen":
            print(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("="))
            return 0
        case "serve-demo":
            return serve_demo(options)
        case _:
            return call_and_report(options, command)


if __name__ == "__main__":
    sys.exit(main())
