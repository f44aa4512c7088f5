"""Drives the task tools of `antiphon serve-demo` with the client of FastMCP.

    tasks_of_ours.py (--http URL | --stdio COMMAND ARGUMENT...)

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
from fastmcp_tasks import call_tool_task
from results import record

VERSION = "2026-07-28"
PER_CASE_SECONDS = 60
Case = Callable[[Client], Awaitable[Any]]
ACCEPTS = ElicitResult(action="accept", content={"value": True})
DECLINES = ElicitResult(action="decline")


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


CASES: dict[str, tuple[Case, ElicitResult]] = {
    "task: its question is accepted": (transparent, ACCEPTS),
    "task: its question is declined": (declined, DECLINES),
    "task: its result by a handle": (handle, ACCEPTS),
    "task: cancelled": (cancelled, DECLINES),
}


async def main(way: str, words: list[str]) -> int:
    passed = failed = 0
    for name, (case, answer) in CASES.items():

        async def answers(*_: Any, answer: ElicitResult = answer) -> ElicitResult:
            return answer

        server = words[0] if way == "http" else StdioTransport(words[0], words[1:])
        fault = ""
        try:
            async with asyncio.timeout(PER_CASE_SECONDS), Client(server, elicitation_handler=answers) as client:
                await case(client)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        passed, failed = passed + (not fault), failed + bool(fault)
        print(f"{'FAILED' if fault else 'ok    '} [{way}] {name}{': ' if fault else ''}{fault}")
        record("client of ours", way, VERSION, name, fault)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1].removeprefix("--"), sys.argv[2:])))
