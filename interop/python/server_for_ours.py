"""A small MCP server on the Python SDK, for antiphon's client to call.

    server_for_ours.py --listen 127.0.0.1:PORT   (0: any free port; the line `listening on URL` says which)
    server_for_ours.py --stdio

Every way in which the SDK asks is here once. What each call answers is written down in
server_for_ours.expect.json, which test_server_for_ours.py proves with the SDK's own client.

Run as a script, as here, the module is `__main__`, and so are the wire keys of the resolvers:
`__main__:confirm_delete`. Keep the names of the resolvers: they are on the wire.
"""

import argparse
import asyncio
import logging
import socket
from typing import Annotated, Literal

import uvicorn
from mcp import MCPError
from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field

FOLDERS: dict[str, list[str]] = {"/tmp/full": ["a.txt", "b.txt", "c.txt"], "/tmp/empty": []}
CARRIERS: dict[str, str] = {"Austria": "Post", "Japan": "Yamato"}

server = MCPServer("python-peer", version="1.0.0", instructions="A peer for interoperability tests.")


# ---- no questions ----------------------------------------------------------------------------------------------------


@server.tool()
def echo(text: str) -> str:
    """Say it back."""
    return text


class Total(BaseModel):
    total: int
    note: str | None = None


@server.tool()
def add(a: int, b: int) -> Total:
    """Add two numbers; the answer is structured and holds a null."""
    return Total(total=a + b)


@server.tool()
def fail(reason: str) -> str:
    """Fail in the way a tool may: an error the model can read."""
    raise ToolError(reason)


@server.tool()
def crash() -> str:
    """Fail in a way the author did not expect; the SDK withholds the text."""
    raise ZeroDivisionError("not for the caller")


@server.tool()
def refuse() -> str:
    """Fail as a protocol error."""
    raise MCPError(code=-32050, message="No tea here", data={"kind": "teapot"})


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count with progress notifications: over HTTP the reply is an event stream, if a progress token was sent."""
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"at {n}")
    return f"counted to {to}"


@server.tool()
async def wait(seconds: float) -> str:
    """Wait in silence. After 15 s the reply over HTTP becomes an event stream, which begins with comment lines."""
    await asyncio.sleep(seconds)
    return f"waited {seconds:g} s"


@server.tool()
def route(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument that over HTTP must be repeated in the header `Mcp-Param-Region`."""
    return f"routed to {region}"


# ---- questions by resolvers ------------------------------------------------------------------------------------------


class Confirm(BaseModel):
    ok: bool


async def confirm_delete(path: str) -> Confirm | Elicit[Confirm]:
    files = FOLDERS.get(path, [])
    if not files:
        return Confirm(ok=True)
    return Elicit(f"{path} holds {len(files)} files. Delete them?", Confirm)


@server.tool()
async def delete_folder(path: str, confirm: Annotated[ElicitationResult[Confirm], Resolve(confirm_delete)]) -> str:
    """Delete a folder; asks only when it is not empty, and takes no for an answer."""
    match confirm:
        case AcceptedElicitation(data=Confirm(ok=True)):
            return f"Deleted {path}."
        case AcceptedElicitation():
            return f"Kept {path}."
        case DeclinedElicitation():
            return f"Kept {path}: declined."
        case _:
            return f"Kept {path}: cancelled."


@server.tool()
async def delete_folder_strict(path: str, confirm: Annotated[Confirm, Resolve(confirm_delete)]) -> str:
    """The same with the bare model: a decline ends the call with a tool error of the SDK."""
    return f"Deleted {path}." if confirm.ok else f"Kept {path}."


class Day(BaseModel):
    day: str


class Party(BaseModel):
    guests: int = Field(ge=1, le=12)


async def ask_day() -> Elicit[Day]:
    return Elicit("Which day?", Day)


async def ask_party() -> Elicit[Party]:
    return Elicit("How many guests?", Party)


@server.tool()
async def book_table(
    place: str, day: Annotated[Day, Resolve(ask_day)], party: Annotated[Party, Resolve(ask_party)]
) -> str:
    """Two independent questions: they share one round."""
    return f"{place}: {day.day}, {party.guests} guests."


class Country(BaseModel):
    country: str


class Carrier(BaseModel):
    carrier: str


async def ask_country() -> Elicit[Country]:
    return Elicit("Ship to which country?", Country)


async def ask_carrier(where: Annotated[Country, Resolve(ask_country)]) -> Elicit[Carrier]:
    usual = CARRIERS.get(where.country, "any")
    return Elicit(f"Which carrier to {where.country}? Usual: {usual}.", Carrier)


@server.tool()
async def ship_order(
    order: str,
    country: Annotated[Country, Resolve(ask_country)],
    carrier: Annotated[Carrier, Resolve(ask_carrier)],
) -> str:
    """A question that depends on an earlier answer: two rounds."""
    return f"{order} goes to {country.country} by {carrier.carrier}."


class Word(BaseModel):
    word: str


def asks_for(what: str):
    async def ask() -> Elicit[Word]:
        return Elicit(f"{what}, please", Word)

    return ask


@server.tool()
async def rhyme(
    first: Annotated[Word, Resolve(asks_for("First"))], second: Annotated[Word, Resolve(asks_for("Second"))]
) -> str:
    """Two closures of one factory: their keys hold dots, angle brackets and `#1`."""
    return f"{first.word} / {second.word}"


class Survey(BaseModel):
    name: str = Field(min_length=2, title="Your name", description="As on the passport")
    age: int = Field(ge=0, le=150)
    height: float
    member: bool
    colour: Literal["red", "green", "blue"]
    size: Literal["S", "M", "L"] = "M"
    nickname: str | None = None


async def ask_survey() -> Elicit[Survey]:
    return Elicit("A few questions", Survey)


@server.tool()
async def survey(answers: Annotated[Survey, Resolve(ask_survey)]) -> str:
    """A form with one field of each kind, one with a default and one that may be left out."""
    return answers.model_dump_json()


class Toppings(BaseModel):
    toppings: list[Literal["ham", "olives", "basil"]]


async def ask_toppings() -> Elicit[Toppings]:
    return Elicit("Which toppings?", Toppings)


@server.tool()
async def order_pizza(chosen: Annotated[Toppings, Resolve(ask_toppings)]) -> str:
    """A form with a multiple choice."""
    return "Pizza with " + ", ".join(chosen.toppings) + "."


async def ask_summary(text: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=f"Summarize: {text}"))
    return Sample([message], max_tokens=50, system_prompt="Be brief.")


@server.tool()
async def summarize(text: str, summary: Annotated[CreateMessageResult, Resolve(ask_summary)]) -> str:
    """Ask the client's model."""
    content = summary.content
    return f"{summary.model} says: {content.text if isinstance(content, TextContent) else content}"


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def list_my_roots(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Ask for the client's roots."""
    return "Roots: " + ", ".join(str(root.uri) for root in roots.roots)


# ---- questions by hand -----------------------------------------------------------------------------------------------


def form(message: str, field: str) -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def answer_to(ctx: Context, key: str) -> ElicitResult | None:
    answer = (ctx.input_responses or {}).get(key)
    return answer if isinstance(answer, ElicitResult) else None


@server.tool()
async def provision(name: str, ctx: Context) -> str | InputRequiredResult:
    """Order a database; asks for its region, in one round without state."""
    answer = answer_to(ctx, "region")
    if answer is None:
        return InputRequiredResult(
            input_requests={"region": form("Which region should the database live in?", "region")}
        )
    if answer.action != "accept" or not answer.content:
        return f'Provisioning "{name}" ended: {answer.action}.'
    return f'Provisioned "{name}" in {answer.content["region"]}.'


@server.tool()
async def count_then_ask(to: int, ctx: Context) -> str | InputRequiredResult:
    """Progress first, then a question: the question is the last event of its stream."""
    answer = answer_to(ctx, "again")
    for n in range(1, to + 1):
        await ctx.report_progress(n, to)
    if answer is None:
        return InputRequiredResult(
            input_requests={"again": form("Count again?", "again")}, request_state="counted once"
        )
    said = (answer.content or {}).get("again", answer.action)
    return f"counted twice to {to}, said {said}, state {ctx.request_state}"


@server.tool()
async def pay(amount: int, ctx: Context) -> str | InputRequiredResult:
    """Send the user to a page (URL mode)."""
    answer = answer_to(ctx, "checkout")
    if answer is None:
        page = ElicitRequestURLParams(
            message=f"Pay {amount} EUR on our page", url=f"https://pay.example.com/?amount={amount}"
        )
        return InputRequiredResult(
            input_requests={"checkout": ElicitRequest(params=page)}, request_state=f"owes {amount}"
        )
    if answer.action != "accept":
        return f"Not paid: {answer.action}."
    return f"Consent to pay {amount} EUR noted; content {answer.content}."


@server.tool()
async def shed(job: str, ctx: Context) -> str | InputRequiredResult:
    """End the first leg with state only."""
    if ctx.request_state is None:
        return InputRequiredResult(request_state=f"half of {job}")
    return f"{job} done after {ctx.request_state}, answers {ctx.input_responses}."


@server.tool()
async def insist(ctx: Context) -> str | InputRequiredResult:
    """Ask the same question for ever: the client has to stop."""
    turn = int(ctx.request_state or "0") + 1
    return InputRequiredResult(input_requests={"more": form("One more time?", "more")}, request_state=str(turn))


@server.tool()
async def shed_forever() -> str | InputRequiredResult:
    """Answer with state only for ever: the client has to stop."""
    return InputRequiredResult(request_state="not yet")


@server.tool()
async def sample_unasked(ctx: Context) -> str | InputRequiredResult:
    """Ask for sampling without a look at the client's capabilities, which the SDK lets a hand-built result do."""
    answer = (ctx.input_responses or {}).get("model")
    if answer is None:
        message = SamplingMessage(role="user", content=TextContent(type="text", text="Hello"))
        ask = CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=5))
        return InputRequiredResult(input_requests={"model": ask})
    return f"got a {type(answer).__name__}"


# ---- prompt and resource ---------------------------------------------------------------------------------------------


@server.prompt()
async def briefing(ctx: Context) -> str | InputRequiredResult:
    """A briefing for an audience that is asked for."""
    answer = answer_to(ctx, "audience")
    if answer is None:
        return InputRequiredResult(input_requests={"audience": form("Who is the briefing for?", "audience")})
    if answer.action != "accept" or not answer.content:
        return f"No briefing: {answer.action}."
    return f"Brief {answer.content['audience']} on the release."


@server.resource("report://{id}")
async def report(id: str, ctx: Context) -> str | InputRequiredResult:
    """A report, worded for an audience that is asked for."""
    answer = answer_to(ctx, "audience")
    if answer is None:
        return InputRequiredResult(
            input_requests={"audience": form(f"Who reads report {id}?", "audience")}, request_state=f"report {id}"
        )
    if answer.action != "accept" or not answer.content:
        return f"Report {id}: {answer.action}."
    return f"Report {id} for {answer.content['audience']}."


# ---- transports ------------------------------------------------------------------------------------------------------


async def serve_http(host: str, port: int, server: MCPServer = server) -> None:
    listener = socket.create_server((host, port))
    bound = listener.getsockname()[1]
    config = uvicorn.Config(server.streamable_http_app(host=host), log_level="warning")
    http = uvicorn.Server(config)

    async def announce() -> None:
        while not http.started:
            await asyncio.sleep(0.01)
        print(f"listening on http://{host}:{bound}/mcp", flush=True)

    await asyncio.gather(http.serve(sockets=[listener]), announce())


def main() -> None:
    parser = argparse.ArgumentParser(description="MCP server on the Python SDK, for antiphon's client to call")
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--listen", metavar="HOST:PORT")
    way.add_argument("--stdio", action="store_true")
    options = parser.parse_args()
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # the failing tools fail on purpose
    if options.stdio:
        asyncio.run(server.run_stdio_async())
    else:
        host, _, port = options.listen.rpartition(":")
        asyncio.run(serve_http(host, int(port)))


if __name__ == "__main__":
    main()
