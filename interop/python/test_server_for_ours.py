"""Proves server_for_ours.expect.json with the Python SDK's own client, over HTTP and stdio, and pins the HTTP framing.

pytest test_server_for_ours.py      (INTEROP_SLOW=1 for the cases that wait)
"""

import asyncio
import os
from typing import Any

import pytest
from mcp import Client, InputRequiredRoundsExceededError, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.types import CreateMessageResult, ErrorData, ListRootsResult, Root, TextContent

from common import HERE, PYTHON_PEER, VERSION, Answers, expectations, post, python_peer_over_http

NO_ANSWER = -32099


@pytest.fixture(scope="module")
def url():
    with python_peer_over_http() as url:
        yield url


class Recorder:
    """Callbacks that answer from one case, and what they saw."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.answers = Answers(case["answers"])
        self.unanswered: list[str] = []
        self.progress = 0

    async def elicit(self, context, params):
        answer = self.answers.to(context.request_id, params)
        if answer is None:
            self.unanswered.append(context.request_id)
            return ErrorData(code=NO_ANSWER, message="no answer")
        return answer

    async def sample(self, context, params):
        text = TextContent(type="text", text=self.case["sample"])
        return CreateMessageResult(role="assistant", content=text, model="test-model")

    async def roots(self, context):
        return ListRootsResult(roots=[Root(uri=uri) for uri in self.case["roots"]])

    async def on_progress(self, done, total, message):
        self.progress += 1

    def callbacks(self) -> dict[str, Any]:
        given: dict[str, Any] = {"elicitation_callback": self.elicit}
        if "sample" in self.case:
            given["sampling_callback"] = self.sample
        if "roots" in self.case:
            given["list_roots_callback"] = self.roots
        return given


async def call(client: Client, case: dict[str, Any], recorder: Recorder):
    match case["kind"]:
        case "tool":
            return await client.call_tool(case["name"], case["arguments"], progress_callback=recorder.on_progress)
        case "prompt":
            return await client.get_prompt(case["name"], case["arguments"])
        case "resource":
            return await client.read_resource(case["name"])


def text_of(result: Any, kind: str) -> str:
    match kind:
        case "tool":
            return result.content[0].text
        case "prompt":
            return result.messages[0].content.text
        case _:
            return result.contents[0].text


async def asks_of(client: Client, case: dict[str, Any]) -> list[list[str]]:
    """The rounds of a case, driven by hand on the same connection: the keys of each, in wire order."""
    session, recorder = client.session, Recorder(case)
    asks: list[list[str]] = []
    retry: dict[str, Any] = {}
    while True:
        match case["kind"]:
            case "tool":
                result = await session.call_tool(case["name"], case["arguments"], allow_input_required=True, **retry)
            case "prompt":
                result = await session.get_prompt(case["name"], case["arguments"], allow_input_required=True, **retry)
            case _:
                result = await session.read_resource(case["name"], allow_input_required=True, **retry)
        if result.result_type != "input_required":
            return asks
        questions = result.input_requests or {}
        asks.append(list(questions))
        responses = {}
        for key, question in questions.items():
            match question.method:
                case "elicitation/create":
                    answer = recorder.answers.to(key, question.params)
                case "sampling/createMessage":
                    answer = await recorder.sample(None, question.params)
                case _:
                    answer = await recorder.roots(None)
            if answer is None:
                return asks
            responses[key] = answer
        retry = {"input_responses": responses or None, "request_state": result.request_state}


async def play(target: Any, mode: str, case: dict[str, Any]) -> None:
    recorder, outcome = Recorder(case), case["outcome"]
    async with Client(target, mode=mode, **recorder.callbacks()) as client:
        if case["kind"] == "tool":
            await client.session.list_tools()  # for the header of `route`; the SDK lists by itself only after a refusal
        if "pending" in outcome:
            with pytest.raises(MCPError) as refused:
                await call(client, case, recorder)
            assert refused.value.error.code == NO_ANSWER
            assert recorder.unanswered == outcome["pending"]
        elif "gives_up" in outcome:
            with pytest.raises(InputRequiredRoundsExceededError):
                await call(client, case, recorder)
            return
        elif "error" in outcome:
            with pytest.raises(MCPError) as refused:
                await call(client, case, recorder)
            assert refused.value.error.model_dump(exclude_none=True) == outcome["error"]
            return
        else:
            result = await call(client, case, recorder)
            if "tool_error_begins" in outcome:
                assert result.is_error and text_of(result, "tool").startswith(outcome["tool_error_begins"])
            elif "tool_error" in outcome:
                assert result.is_error and text_of(result, "tool") == outcome["tool_error"]
            else:
                assert text_of(result, case["kind"]) == outcome["text"]
                assert case["kind"] != "tool" or not result.is_error
            if "structured" in case:
                assert result.structured_content == case["structured"]
            assert recorder.progress == case.get("progress", 0)
        if not case.get("slow"):
            assert await asks_of(client, case) == case["asks"]
            assert case["rounds"] == len(case["asks"])
    if "without_capability" in case:
        async with Client(target, mode=mode) as client:
            with pytest.raises(MCPError) as refused:
                await client.call_tool(case["name"], case["arguments"])
            assert refused.value.error.model_dump(exclude_none=True) == case["without_capability"]


@pytest.mark.parametrize("transport", ["http-pinned", "http-auto", "stdio"])
@pytest.mark.parametrize("case", expectations(), ids=lambda case: case["id"])
def test_expectation(case, transport, url):
    if case.get("slow") and not os.environ.get("INTEROP_SLOW"):
        pytest.skip("INTEROP_SLOW is not set")
    mode = "auto" if transport == "http-auto" else VERSION
    stdio = StdioServerParameters(command=PYTHON_PEER[0], args=[*PYTHON_PEER[1:], "--stdio"], cwd=HERE)
    asyncio.run(play(stdio if transport == "stdio" else url, mode, case))


# ---- the framing over HTTP, as bytes ---------------------------------------------------------------------------------


def test_silent_calls_are_answered_as_json(url):
    reply = post(url, "tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json() == {
        "jsonrpc": "2.0",
        "id": "one",
        "result": {
            "content": [{"type": "text", "text": "hi"}],
            "isError": False,
            "structuredContent": {"result": "hi"},
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "python-peer", "version": "1.0.0"}},
        },
    }


def test_a_question_is_answered_as_json(url):
    result = post(url, "tools/call", {"name": "provision", "arguments": {"name": "orders"}}).json()["result"]
    assert "requestState" not in result and "content" not in result
    assert result["resultType"] == "input_required"
    assert result["inputRequests"]["region"]["params"]["mode"] == "form"


def test_a_state_only_result_has_no_input_requests(url):
    result = post(url, "tools/call", {"name": "shed", "arguments": {"job": "backup"}}).json()["result"]
    assert "inputRequests" not in result and result["requestState"].startswith("v1.")


def test_progress_makes_an_event_stream(url):
    reply = post(url, "tools/call", {"name": "count", "arguments": {"to": 2}}, meta={"progressToken": 7})
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream")
    assert "content-length" not in reply.headers
    frames = reply.content.split(b"\r\n\r\n")
    assert frames.pop() == b"" and len(frames) == 3
    assert all(frame.startswith(b"event: message\r\ndata: {") for frame in frames)  # CRLF, no id, no retry
    assert b'"method":"notifications/progress"' in frames[0] and b'"progressToken":7' in frames[0]
    assert b'"result":' in frames[2]


def test_without_a_token_there_is_no_progress(url):
    reply = post(url, "tools/call", {"name": "count", "arguments": {"to": 2}})
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("params", "headers", "status", "code", "message"),
    [
        ({"name": "provision", "requestState": "v1.x"}, {}, 400, -32602, "Invalid or expired requestState"),
        ({"name": "provision", "requestState": ""}, {}, 400, -32602, "Invalid or expired requestState"),
        ({"name": "provision", "inputResponses": []}, {}, 400, -32602, "Invalid request parameters"),
        ({"name": "provision", "inputResponses": {"a": {}}}, {}, 400, -32602, "Invalid request parameters"),
        ({"name": "echo"}, {"mcp_name": "other"}, 400, -32020, None),
        ({"name": "echo"}, {"mcp_name": ""}, 400, -32020, None),
        ({"name": "echo"}, {"mcp_method": ""}, 400, -32020, None),
        ({"name": "route", "arguments": {"region": "eu"}}, {}, 400, -32020, None),
        ({"name": "route", "arguments": {"region": "eu"}}, {"mcp_param_region": "us"}, 400, -32020, None),
        ({"name": "echo"}, {"mcp_protocol_version": "2099-01-01"}, 400, -32020, None),
        ({"name": "refuse", "arguments": {}}, {}, 200, -32050, "No tea here"),
    ],
)
def test_errors_have_their_status(url, params, headers, status, code, message):
    reply = post(url, "tools/call", params, **headers)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (status, code), error
    assert message in (None, error["message"])


def test_unknown_method_is_404(url):
    reply = post(url, "tools/frobnicate", {})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, -32601)


def test_accept_must_name_both(url):
    assert post(url, "tools/list", {}, accept="application/json").status_code == 406
