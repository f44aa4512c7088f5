"""Drives `antiphon serve-demo` with the client of the Python SDK.

    client_of_ours.py --http URL [--http URL]     two URLs: replicas that share a key file, the legs alternate
    client_of_ours.py --stdio COMMAND ARGUMENT...
    --mode 2026-07-28 | auto                      (both, unless given)

One line per check; the last line is `N passed, N failed`, and any failure makes the exit code 1.
"""

import argparse
import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult, ElicitResult, ErrorData, GetPromptResult, InputRequiredResult, ListRootsResult

from common import VERSION, post, record

PER_CHECK_SECONDS = 30
REFUSAL = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
REGION = "Which region should the database live in?"
RESOLUTION = "Resolving Bug #4522 requires a resolution. How was this bug resolved?"
ORIGINAL = "Since this is a duplicate, which work item is the original?"
RESOLVED = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
DUPLICATE = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
IN_IRELAND = 'Provisioned "orders" in eu-west-1.'
CHOICES = ["Fixed", "Won't Fix", "Duplicate", "By Design"]

CHECKS: list[tuple[str, Callable[["Fleet"], Awaitable[None]]]] = []


def check(name: str) -> Callable[[Any], Any]:
    def register(run: Any) -> Any:
        CHECKS.append((name, run))
        return run

    return register


# ---- the server, or two of them --------------------------------------------------------------------------------------


@dataclass
class Script:
    """What the callbacks answer, by key, and what they were asked."""

    answers: dict[str, ElicitResult] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def elicit(self, context: Any, params: Any) -> ElicitResult | ErrorData:
        self.asked.append(context.request_id)
        return self.answers.get(
            context.request_id, ErrorData(code=-32600, message=f"no answer for {context.request_id}")
        )


@dataclass
class Fleet:
    """The replicas under test. Every leg goes to the next of them."""

    targets: list[Any]
    mode: str
    clients: list[Client]
    script: Script
    legs: int = 0

    @property
    def urls(self) -> list[str]:
        return [target for target in self.targets if isinstance(target, str)]

    def next(self) -> Client:
        self.legs += 1
        return self.clients[self.legs % len(self.clients)]

    async def tool(self, name: str, arguments: dict[str, Any] | None, **retry: Any) -> Any:
        return await self.next().session.call_tool(name, arguments, allow_input_required=True, **retry)

    async def prompt(self, arguments: dict[str, str] | None = None, **retry: Any) -> Any:
        return await self.next().session.get_prompt("briefing", arguments, allow_input_required=True, **retry)

    async def resource(self, uri: str, **retry: Any) -> Any:
        return await self.next().session.read_resource(uri, allow_input_required=True, **retry)

    async def driven(
        self, name: str, arguments: dict[str, Any], **answers: ElicitResult
    ) -> tuple[CallToolResult, list[str]]:
        """A whole call by the SDK's own loop: its result and the keys that were asked, in order."""
        self.script.answers, self.script.asked = answers, []
        result = await self.next().call_tool(name, arguments)
        return result, self.script.asked


@contextlib.asynccontextmanager
async def fleet(targets: list[Any], mode: str) -> AsyncIterator[Fleet]:
    script = Script()
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for target in targets:
            clients.append(
                await stack.enter_async_context(Client(target, mode=mode, elicitation_callback=script.elicit))
            )
        yield Fleet(targets, mode, clients, script)


# ---- words for checks ------------------------------------------------------------------------------------------------


def accept(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


DECLINE, CANCEL = ElicitResult(action="decline"), ElicitResult(action="cancel")


def same(found: Any, wanted: Any) -> None:
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


def text_of(result: Any) -> str:
    assert isinstance(result, CallToolResult), f"not a final result: {result!r}"
    same(result.result_type, "complete")
    assert not result.is_error, f"isError: {result.content!r}"
    return result.content[0].text


def bare(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the words that only describe."""
    told = {name: value for name, value in schema.items() if name not in ("title", "description", "$schema")}
    if "properties" in told:
        told["properties"] = {name: bare(value) for name, value in told["properties"].items()}
    return told


def form_of(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


STRING = {"type": "string"}
FORMS = {
    "region": (REGION, form_of(region=STRING)),
    "github_login": ("Please provide your GitHub username", form_of(name=STRING)),
    "resolution": (RESOLUTION, form_of(resolution={"type": "string", "enum": CHOICES})),
    "duplicate_of": (ORIGINAL, form_of(duplicateOfId={"type": "number"})),
    "audience": (None, form_of(audience=STRING)),
}


def asks(result: Any, key: str, *, again: bool = False) -> str:
    """The result asks exactly this question, in full; its state. Asked again, the message may say why."""
    assert isinstance(result, InputRequiredResult), f"not a question: {result!r}"
    same(result.result_type, "input_required")
    same(list(result.input_requests or {}), [key])
    ask = result.input_requests[key]
    message, schema = FORMS[key]
    same(ask.method, "elicitation/create")
    same(ask.params.mode, "form")
    if message is not None:
        same(ask.params.message[: len(message)] if again else ask.params.message, message)
    same(bare(ask.params.requested_schema), schema)
    assert result.request_state is not None, "no requestState"
    assert re.fullmatch(r"r1\.[A-Za-z0-9_-]{40,}", result.request_state), f"requestState is {result.request_state!r}"
    return result.request_state


async def refused(call: Awaitable[Any], error: dict[str, Any] = REFUSAL) -> None:
    try:
        result = await call
    except MCPError as caught:
        found = caught.error.model_dump(exclude_none=True)
        same({name: found.get(name) for name in error}, error)
    else:
        raise AssertionError(f"not refused: {result!r}")


def tampered(state: str) -> dict[str, str]:
    middle = len(state) // 2
    other = "A" if state[middle] != "A" else "B"
    return {
        "one character changed": state[:middle] + other + state[middle + 1 :],
        "cut short": state[:-5],
        "made longer": state + "AAAA",
        "another prefix": "v" + state[1:],
        "prefix only": "r1.",
        "empty": "",
        "not a token": "nonsense",
    }


# ---- what the server says of itself ----------------------------------------------------------------------------------


@check("server/discover names the version and the capabilities")
async def _(our: Fleet) -> None:
    for client in our.clients:
        same(client.protocol_version, VERSION)
        found = await client.session.send_discover(VERSION)
        same(found["resultType"], "complete")
        assert VERSION in found["supportedVersions"], found
        assert {"tools", "prompts", "resources"} <= found["capabilities"].keys(), found["capabilities"]
        assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], found
        if our.mode == "auto":
            assert client.server_info is not None and client.server_info.name


@check("tools/list has the tools; what is asked is not an argument")
async def _(our: Fleet) -> None:
    listed = {tool.name: tool.input_schema for tool in (await our.next().list_tools()).tools}
    wanted = {
        "echo": {"text"},
        "provision": {"name"},
        "get_weather": {"location"},
        "update_work_item": {"workItemId", "fields"},
        "book_table": {"date", "party_size"},
        "delete_folder": {"path"},
        "pick_file": {"path"},
        "pay_deposit": {"booking_id"},
        "deposit_status": {"booking_id"},
        "charge_once": {"amount"},
        "load_shedding": {"portions"},
        "ask_the_model": {"question"},
    }
    for name, arguments in wanted.items():
        assert name in listed, f"{name} is missing from {sorted(listed)}"
        same(listed[name]["type"], "object")
        same(set(listed[name]["properties"]), arguments)
        same(set(listed[name]["required"]), arguments)


@check("prompts/list has briefing, which requires nothing")
async def _(our: Fleet) -> None:
    prompts = {prompt.name: prompt for prompt in (await our.next().list_prompts()).prompts}
    assert not [argument for argument in prompts["briefing"].arguments or [] if argument.required]


@check("resources/templates/list has report://{id}")
async def _(our: Fleet) -> None:
    templates = (await our.next().list_resource_templates()).resource_templates
    assert "report://{id}" in [template.uri_template for template in templates], templates


# ---- whole calls, driven by the SDK's loop ---------------------------------------------------------------------------


@check("echo")
async def _(our: Fleet) -> None:
    for text in ("hello", "", 'Grüße, "you"\n\u2028 \U0001f600 \\u0041'):
        result, asked = await our.driven("echo", {"text": text})
        same((text_of(result), asked), (text, []))


@check("provision, accepted")
async def _(our: Fleet) -> None:
    result, asked = await our.driven("provision", {"name": "orders"}, region=accept(region="eu-west-1"))
    same((text_of(result), asked), (IN_IRELAND, ["region"]))


@check("get_weather, accepted")
async def _(our: Fleet) -> None:
    result, asked = await our.driven("get_weather", {"location": "New York"}, github_login=accept(name="octocat"))
    assert text_of(result).startswith("Current weather in New York:"), result
    same(asked, ["github_login"])


@check("update_work_item, a duplicate takes two rounds")
async def _(our: Fleet) -> None:
    answers = {"resolution": accept(resolution="Duplicate"), "duplicate_of": accept(duplicateOfId=4301)}
    result, asked = await our.driven("update_work_item", RESOLVED, **answers)
    same((text_of(result), asked), (DUPLICATE, ["resolution", "duplicate_of"]))


@check("update_work_item, other resolutions take one round")
async def _(our: Fleet) -> None:
    for choice in CHOICES:
        if choice != "Duplicate":
            result, asked = await our.driven("update_work_item", RESOLVED, resolution=accept(resolution=choice))
            assert choice in text_of(result) and "4522" in text_of(result), result
            same(asked, ["resolution"])


@check("update_work_item, other states take none")
async def _(our: Fleet) -> None:
    result, asked = await our.driven("update_work_item", {"workItemId": 4522, "fields": {"System.State": "Active"}})
    text_of(result)
    same(asked, [])


REFUSABLE: list[tuple[str, dict[str, Any], dict[str, ElicitResult], str]] = [
    ("provision", {"name": "orders"}, {}, "region"),
    ("get_weather", {"location": "New York"}, {}, "github_login"),
    ("update_work_item", RESOLVED, {}, "resolution"),
    ("update_work_item", RESOLVED, {"resolution": accept(resolution="Duplicate")}, "duplicate_of"),
]


def refusal_check(
    name: str, arguments: dict[str, Any], before: dict[str, ElicitResult], key: str, no: ElicitResult
) -> None:
    @check(f"{name}, {no.action} of {key}: said so, never asked again")
    async def _(our: Fleet) -> None:
        result, asked = await our.driven(name, arguments, **before, **{key: no})
        assert re.search("declin|cancel", text_of(result), re.IGNORECASE), result
        same(asked, [*before, key])


for refusable in REFUSABLE:
    for no in (DECLINE, CANCEL):
        refusal_check(*refusable, no)


@check("briefing, accepted")
async def _(our: Fleet) -> None:
    our.script.answers, our.script.asked = {"audience": accept(audience="the board")}, []
    result = await our.next().get_prompt("briefing")
    assert "the board" in result.messages[0].content.text, result
    same(our.script.asked, ["audience"])


@check("report://q3, accepted")
async def _(our: Fleet) -> None:
    our.script.answers, our.script.asked = {"audience": accept(audience="engineers")}, []
    content = (await our.next().read_resource("report://q3")).contents[0]
    assert "q3" in content.text and "engineers" in content.text, content
    same((str(content.uri), our.script.asked), ("report://q3", ["audience"]))


@check("briefing and report://q3, declined and cancelled: over, not asked again")
async def _(our: Fleet) -> None:
    for no in (DECLINE, CANCEL):
        for call in (our.prompt, lambda **retry: our.resource("report://q3", **retry)):
            state = asks(await call(), "audience")
            with contextlib.suppress(MCPError):
                result = await call(input_responses={"audience": no}, request_state=state)
                assert not isinstance(result, InputRequiredResult), result


# ---- rounds by hand; with two replicas the legs alternate ------------------------------------------------------------


@check("by hand: provision")
async def _(our: Fleet) -> None:
    state = asks(await our.tool("provision", {"name": "orders"}), "region")
    result = await our.tool(
        "provision", {"name": "orders"}, input_responses={"region": accept(region="eu-west-1")}, request_state=state
    )
    same(text_of(result), IN_IRELAND)


@check("by hand: get_weather")
async def _(our: Fleet) -> None:
    place = {"location": "New York"}
    state = asks(await our.tool("get_weather", place), "github_login")
    answers = {"github_login": accept(name="octocat")}
    result = await our.tool("get_weather", place, input_responses=answers, request_state=state)
    assert text_of(result).startswith("Current weather in New York:"), result


async def to_round_two(our: Fleet) -> str:
    state = asks(await our.tool("update_work_item", RESOLVED), "resolution")
    answers = {"resolution": accept(resolution="Duplicate")}
    second = asks(
        await our.tool("update_work_item", RESOLVED, input_responses=answers, request_state=state), "duplicate_of"
    )
    assert second != state, "the state did not move on"
    return second


@check("by hand: update_work_item, the earlier answer travels in the state")
async def _(our: Fleet) -> None:
    state = await to_round_two(our)
    answers = {"duplicate_of": accept(duplicateOfId=4301)}
    same(text_of(await our.tool("update_work_item", RESOLVED, input_responses=answers, request_state=state)), DUPLICATE)


@check("by hand: a recorded answer is not replaced by one sent later")
async def _(our: Fleet) -> None:
    state = await to_round_two(our)
    answers = {"duplicate_of": accept(duplicateOfId=4301), "resolution": accept(resolution="Fixed")}
    same(text_of(await our.tool("update_work_item", RESOLVED, input_responses=answers, request_state=state)), DUPLICATE)


@check("by hand: briefing, with absent and with empty arguments")
async def _(our: Fleet) -> None:
    state = asks(await our.prompt(None), "audience")
    answers = {"audience": accept(audience="the board")}
    result = await our.prompt({}, input_responses=answers, request_state=state)
    assert isinstance(result, GetPromptResult) and "the board" in result.messages[0].content.text, result


@check("by hand: report://q3")
async def _(our: Fleet) -> None:
    state = asks(await our.resource("report://q3"), "audience")
    answers = {"audience": accept(audience="engineers")}
    text = (await our.resource("report://q3", input_responses=answers, request_state=state)).contents[0].text
    assert "q3" in text and "engineers" in text, text


@check("by hand: a retry without answers is asked again, and can be answered then")
async def _(our: Fleet) -> None:
    order = {"name": "orders"}
    state = asks(await our.tool("provision", order), "region")
    for nothing in ({}, {"input_responses": {}}):
        state = asks(await our.tool("provision", order, request_state=state, **nothing), "region", again=True)
    answers = {"region": accept(region="eu-west-1")}
    same(text_of(await our.tool("provision", order, input_responses=answers, request_state=state)), IN_IRELAND)


@check("by hand: in a later round a missing answer alone is asked again")
async def _(our: Fleet) -> None:
    state = await to_round_two(our)
    state = asks(await our.tool("update_work_item", RESOLVED, request_state=state), "duplicate_of", again=True)
    answers = {"duplicate_of": accept(duplicateOfId=4301)}
    same(text_of(await our.tool("update_work_item", RESOLVED, input_responses=answers, request_state=state)), DUPLICATE)


@check("by hand: answers under unknown keys are ignored")
async def _(our: Fleet) -> None:
    order, stray = {"name": "orders"}, {"zone": accept(region="nowhere"), "roots": ListRootsResult(roots=[])}
    state = asks(await our.tool("provision", order), "region")
    state = asks(await our.tool("provision", order, input_responses=stray, request_state=state), "region", again=True)
    answers = {**stray, "region": accept(region="eu-west-1", zone="nowhere")}
    same(text_of(await our.tool("provision", order, input_responses=answers, request_state=state)), IN_IRELAND)


@check("by hand: answers without the state that asked for them are ignored")
async def _(our: Fleet) -> None:
    answers = {"region": accept(region="eu-west-1")}
    asks(await our.tool("provision", {"name": "orders"}, input_responses=answers), "region")


def unfit_check(what: str, answer: Any) -> None:
    @check(f"by hand: an answer that does not fit is asked again ({what})")
    async def _(our: Fleet) -> None:
        state = asks(await our.tool("update_work_item", RESOLVED), "resolution")
        answers: dict[str, Any] = {"resolution": answer}
        again = await our.tool("update_work_item", RESOLVED, input_responses=answers, request_state=state)
        state = asks(again, "resolution", again=True)
        answers = {"resolution": accept(resolution="Fixed")}
        result = await our.tool("update_work_item", RESOLVED, input_responses=answers, request_state=state)
        assert "Fixed" in text_of(result), result


unfit_check("not one of the choices", accept(resolution="Later"))
unfit_check("another type", accept(resolution=7))
unfit_check("field missing", accept())
unfit_check("accepted without content", ElicitResult(action="accept"))
unfit_check("another kind of answer", ListRootsResult(roots=[]))


@check("by hand: the same leg twice gives the same result")
async def _(our: Fleet) -> None:
    state = asks(await our.tool("provision", {"name": "orders"}), "region")
    retry = {"input_responses": {"region": accept(region="eu-west-1")}, "request_state": state}
    for _ in range(2):
        same(text_of(await our.tool("provision", {"name": "orders"}, **retry)), IN_IRELAND)


@check("by hand: a call begun by hand is finished by the SDK's loop")
async def _(our: Fleet) -> None:
    state = asks(await our.tool("update_work_item", RESOLVED), "resolution")
    our.script.answers, our.script.asked = {"duplicate_of": accept(duplicateOfId=4301)}, []
    answers = {"resolution": accept(resolution="Duplicate")}
    result = await our.next().call_tool("update_work_item", RESOLVED, input_responses=answers, request_state=state)
    same((text_of(result), our.script.asked), (DUPLICATE, ["duplicate_of"]))


@check("by hand: calls side by side do not see each other's answers")
async def _(our: Fleet) -> None:
    async def one(n: int) -> None:
        order = {"name": f"db-{n}"}
        state = asks(await our.tool("provision", order), "region")
        await asyncio.sleep(0.001 * (n % 5))
        answers = {"region": accept(region=f"zone-{n}")}
        result = await our.tool("provision", order, input_responses=answers, request_state=state)
        same(text_of(result), f'Provisioned "db-{n}" in zone-{n}.')

    await asyncio.gather(*(one(n) for n in range(20)))


# ---- refusals --------------------------------------------------------------------------------------------------------


@check("a state that was tampered with is refused in one way")
async def _(our: Fleet) -> None:
    order, answers = {"name": "orders"}, {"region": accept(region="eu-west-1")}
    state = asks(await our.tool("provision", order), "region")
    for what, wrong in tampered(state).items():
        try:
            await refused(our.tool("provision", order, input_responses=answers, request_state=wrong))
            await refused(our.tool("echo", {"text": "hi"}, request_state=wrong))
            await refused(our.prompt(request_state=wrong))
            await refused(our.resource("report://q3", request_state=wrong))
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None


@check("a state belongs to its tool, arguments, prompt and URI")
async def _(our: Fleet) -> None:
    region = asks(await our.tool("provision", {"name": "orders"}), "region")
    await refused(our.tool("provision", {"name": "other"}, request_state=region))
    await refused(our.tool("echo", {"text": "orders"}, request_state=region))
    await refused(our.tool("get_weather", {"location": "New York"}, request_state=region))
    await refused(our.prompt(request_state=region))
    q3 = asks(await our.resource("report://q3"), "audience")
    await refused(our.resource("report://q4", request_state=q3))
    await refused(our.prompt(request_state=q3))


@check("an unknown tool, prompt or resource is a protocol error")
async def _(our: Fleet) -> None:
    wrong = {"code": -32602}
    await refused(our.tool("no_such_tool", {}), wrong)
    await refused(our.next().session.get_prompt("no_such_prompt"), wrong)
    await refused(our.next().session.read_resource("nothing://here"), wrong)


@check("a missing argument is refused before anything is asked")
async def _(our: Fleet) -> None:
    try:
        result = await our.tool("provision", {})
    except MCPError as error:
        same(error.code, -32602)
    else:
        assert isinstance(result, CallToolResult) and result.is_error, result


@check("a client that cannot be asked is told which capability is missing")
async def _(our: Fleet) -> None:
    async with Client(our.targets[0], mode=our.mode) as mute:
        for call in (
            mute.session.call_tool("provision", {"name": "orders"}, allow_input_required=True),
            mute.session.get_prompt("briefing", allow_input_required=True),
            mute.session.read_resource("report://q3", allow_input_required=True),
        ):
            try:
                result = await call
            except MCPError as error:
                same(error.code, -32021)
                assert "elicitation" in error.error.data["requiredCapabilities"], error.error
            else:
                raise AssertionError(f"not refused: {result!r}")
        same(text_of(await mute.call_tool("echo", {"text": "hi"})), "hi")


# ---- HTTP, as bytes --------------------------------------------------------------------------------------------------


@check("HTTP: status and content type of results, questions and refusals")
async def _(our: Fleet) -> None:
    order = {"name": "provision", "arguments": {"name": "orders"}}
    wanted: list[tuple[dict[str, Any], dict[str, str], int, int | None]] = [
        ({"name": "echo", "arguments": {"text": "hi"}}, {}, 200, None),
        (order, {}, 200, None),
        (order | {"inputResponses": None}, {}, 200, None),
        (order | {"requestState": "r1.AAAA"}, {}, 400, -32602),
        (order | {"inputResponses": []}, {}, 400, -32602),
        ({"name": "no_such_tool", "arguments": {}}, {}, 400, -32602),
        (order, {"mcp_name": "echo"}, 400, -32020),
        (order, {"mcp_name": ""}, 400, -32020),
        (order, {"mcp_method": "tools/list"}, 400, -32020),
    ]
    for url in our.urls:
        for params, headers, status, code in wanted:
            reply = await asyncio.to_thread(post, url, "tools/call", params, **headers)
            body = reply.json()
            found = (reply.status_code, body.get("error", {}).get("code"), body["id"])
            assert found == (status, code, "one"), f"{params} {headers}: found {found}, wanted {(status, code, 'one')}"
            assert reply.headers["content-type"].startswith("application/json"), reply.headers
            if code is None:
                assert body["result"]["resultType"] in ("complete", "input_required"), body
        unknown = await asyncio.to_thread(post, url, "tools/frobnicate", {})
        same((unknown.status_code, unknown.json()["error"]["code"]), (404, -32601))


@check("HTTP: a question as it is on the wire")
async def _(our: Fleet) -> None:
    for url in our.urls:
        reply = await asyncio.to_thread(post, url, "tools/call", {"name": "provision", "arguments": {"name": "orders"}})
        result = reply.json()["result"]
        assert {"resultType", "inputRequests", "requestState"} <= result.keys(), result
        assert not {"content", "isError", "structuredContent"} & result.keys(), result
        ask = result["inputRequests"]["region"]
        same(set(ask), {"method", "params"})
        same((ask["method"], ask["params"]["mode"], ask["params"]["message"]), ("elicitation/create", "form", REGION))


# ---- the run ---------------------------------------------------------------------------------------------------------


def reason_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:600]


async def run(label: str, targets: list[Any], mode: str) -> tuple[int, int]:
    passed = failed = 0
    over_http = all(isinstance(target, str) for target in targets)

    def tell(name: str, fault: str = "") -> None:
        print(f"FAILED [{label}] {name}: {fault}" if fault else f"ok     [{label}] {name}", flush=True)
        record("client of ours", "http" if over_http else "stdio", name, fault)

    try:
        async with fleet(targets, mode) as our:
            for name, body in CHECKS:
                if name.startswith("HTTP:") and not over_http:
                    continue
                try:
                    await asyncio.wait_for(body(our), PER_CHECK_SECONDS)
                except Exception as error:
                    failed += 1
                    tell(name, reason_of(error))
                else:
                    passed += 1
                    tell(name)
    except Exception as error:
        failed += 1
        tell("connection", reason_of(error))
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description="Drives `antiphon serve-demo` with the client of the Python SDK")
    parser.add_argument("--mode", action="append", choices=[VERSION, "auto"])
    parser.add_argument("--http", action="append", default=[], metavar="URL")
    parser.add_argument("--stdio", nargs=argparse.REMAINDER, metavar="COMMAND")
    options = parser.parse_args()
    if bool(options.http) == bool(options.stdio):
        parser.error("give --http URL (once or twice) or --stdio COMMAND")
    passed = failed = 0
    for mode in options.mode or [VERSION, "auto"]:
        if options.stdio:
            command, *arguments = options.stdio
            where, targets = "stdio", [StdioServerParameters(command=command, args=arguments, env=dict(os.environ))]
        else:
            where, targets = ("http", "two replicas")[len(options.http) > 1], options.http
        done = asyncio.run(run(f"{where}, {mode}", targets, mode))
        passed, failed = passed + done[0], failed + done[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
