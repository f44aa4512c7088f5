"""Drives the task tools of `antiphon serve-demo` with the client of FastMCP, and a tool that fails after it has charged.

    client_of_ours.py (--http URL | --stdio COMMAND ARGUMENT...)

FastMCP sends no `Mcp-Name` with its requests about a task. One line per case; the last line is `N passed, N failed`, and any
failure makes the exit code 1.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import McpError
from fastmcp_tasks import call_tool_task
from results import record

VERSION, OF_SESSIONS = "2026-07-28", "2025-11-25"
PER_CASE_SECONDS = 60
Case = Callable[[Client], Awaitable[Any]]
ACCEPTS = ElicitResult(action="accept", content={"value": True})
DECLINES = ElicitResult(action="decline")
# It charges, and gives an address that is none.
ERRS = ElicitResult(action="accept", content={"ok": True, "email": "nowhere"})


def text_of(result: Any) -> str:
    return result.content[0].text


def same(found: Any, wanted: Any) -> None:
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


async def transparent(client: Client) -> None:
    same(text_of(await client.call_tool("confirm_delete", {"filename": "q1.txt"})), "Deleted q1.txt.")


async def declined(client: Client) -> None:
    same(text_of(await client.call_tool("confirm_delete", {"filename": "q2.txt"})), "Kept q2.txt.")


async def handle(client: Client) -> None:
    task = await call_tool_task(client, "confirm_delete", {"filename": "q2.txt"})
    assert task.task_id
    same(text_of(await task.result()), "Deleted q2.txt.")


async def cancelled(client: Client) -> None:
    task = await call_tool_task(client, "confirm_delete", {"filename": "q3.txt"})
    await task.cancel()
    while (status := (await task.status()).status) != "cancelled":
        assert status in ("working", "input_required"), status
        await asyncio.sleep(0.1)


async def charged(client: Client) -> None:
    try:
        result = await client.call_tool("charge_once", {"amount": 3})
    except McpError as error:
        same(error.data["done"], ["charge"])
        assert "Completed before that: `charge`." in str(error) and "a new call repeats" in str(error), error
    else:
        raise AssertionError(f"no error: {result}")


CASES: list[tuple[str, str, Case, ElicitResult]] = [
    ("task: its question is accepted", VERSION, transparent, ACCEPTS),
    ("task: its question is declined", VERSION, declined, DECLINES),
    ("task: its result by a handle", VERSION, handle, ACCEPTS),
    ("task: cancelled", VERSION, cancelled, DECLINES),
    ("charge_once: an error behind the charge says that it is done", VERSION, charged, ERRS),
    ("charge_once: an error behind the charge says that it is done", OF_SESSIONS, charged, ERRS),
]


async def main(way: str, words: list[str]) -> int:
    passed = failed = 0
    for name, era, case, answer in CASES:

        async def answers(_: str, form: Any, *rest: Any, answer: ElicitResult = answer) -> ElicitResult:
            wanted = set(rest[0].requested_schema["properties"]) if answer is ERRS else None
            content = answer.content and {k: v for k, v in answer.content.items() if wanted is None or k in wanted}
            return ElicitResult(action=answer.action, content=content)

        server = words[0] if way == "http" else StdioTransport(words[0], words[1:])
        fault = ""
        mode = "auto" if era == VERSION else "legacy"
        try:
            client = Client(server, elicitation_handler=answers, mode=mode)
            async with asyncio.timeout(PER_CASE_SECONDS), client:
                await case(client)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        passed, failed = passed + (not fault), failed + bool(fault)
        print(f"{'FAILED' if fault else 'ok    '} [{way}, {era}] {name}{': ' if fault else ''}{fault}")
        record("client of ours", way, era, name, fault)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1].removeprefix("--"), sys.argv[2:])))
