"""Signs in at our resource server with the client of the Python SDK, which finds the way by our answers alone.

    oauth_client_of_ours.py URL PERSON

The server trusts oidc-provider: `read` needs the scope `mcp`, `write` another one. A GET of PERSON?url=URL opens a page there
as a person does who agrees, and returns the address to which the browser leaves it. One line per case; the last line is
`N passed, N failed`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import Request, urlopen

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from results import record

VERSION, OF_SESSIONS = "2026-07-28", "2025-11-25"
CASE_SECONDS = 30
URL, PERSON = sys.argv[1:3]
CALLBACK = "http://127.0.0.1:9/callback"


def same(found: Any, wanted: Any) -> None:
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


async def fetch(request: str | Request) -> str:
    def read() -> str:
        with urlopen(request) as response:
            return response.read().decode()

    return await asyncio.to_thread(read)


class Store:
    """Keeps everything in memory, and what the person was asked."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self.asked: list[dict[str, list[str]]] = []
        self.returned = ""

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def open(self, page: str) -> None:
        self.asked.append(parse_qs(urlsplit(page).query))
        self.returned = await fetch(f"{PERSON}?{urlencode({'url': page})}")

    async def code(self) -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(self.returned).query)
        return AuthorizationCodeResult(**{name: query[name][0] for name in ("code", "state", "iss")})

    def provider(self) -> OAuthClientProvider:
        metadata = OAuthClientMetadata(
            client_name="Python",
            redirect_uris=[CALLBACK],  # type: ignore[list-item]
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",
        )
        return OAuthClientProvider(URL, metadata, self, redirect_handler=self.open, callback_handler=self.code)


async def call(provider: OAuthClientProvider, *tools: str, mode: str = VERSION) -> None:
    """Calls tools over a connection of its own."""
    async with httpx2.AsyncClient(auth=provider) as http, Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
        for tool in tools:
            same((await client.call_tool(tool, {})).content[0].text, "ada")


async def sign_in(mode: str) -> None:
    store = Store()
    for _ in range(2):
        await call(store.provider(), "read", mode=mode)
    # It adds what renews a token.
    same([(query["resource"], query["scope"]) for query in store.asked], [([URL], ["mcp offline_access"])])


async def expired(mode: str) -> None:
    store = Store()
    provider = store.provider()
    await call(provider, "read", mode=mode)
    before = store.tokens
    provider.context.token_expiry_time = 1  # the token is old for this client only
    await call(provider, "read", mode=mode)
    same(len(store.asked), 1)
    assert before != store.tokens


async def step_up(mode: str) -> None:
    store = Store()
    provider = store.provider()
    # The SDK registers for the first scopes only, and oidc-provider grants no other ones then: this registration names none.
    issuer = json.loads(await fetch(urljoin(URL, "/.well-known/oauth-protected-resource/mcp")))["authorization_servers"][0]
    endpoint = json.loads(await fetch(f"{issuer}/.well-known/openid-configuration"))["registration_endpoint"]
    wanted = provider.context.client_metadata.model_dump_json(exclude_none=True)
    known = json.loads(await fetch(Request(endpoint, wanted.encode(), {"content-type": "application/json"})))
    store.client = OAuthClientInformationFull.model_validate({**known, "issuer": issuer})
    await call(provider, "read", "write", "read", mode=mode)
    same(len(store.asked), 2)


CASES: list[tuple[str, str, Callable[[str], Awaitable[None]]]] = [
    ("sign-in: challenge, metadata, registration, PKCE", VERSION, sign_in),
    ("sign-in: challenge, metadata, registration, PKCE", OF_SESSIONS, sign_in),
    ("an expired token is renewed", VERSION, expired),
    ("step up", VERSION, step_up),
]


async def main() -> int:
    passed = failed = 0
    for name, era, case in CASES:
        fault = ""
        try:
            async with asyncio.timeout(CASE_SECONDS):
                await case(era if era == VERSION else "legacy")
        except Exception as error:
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            fault = f"{type(error).__name__}: {error}"
        passed, failed = passed + (not fault), failed + bool(fault)
        print(f"{'FAILED' if fault else 'ok    '} [http, {era}] {name}{': ' if fault else ''}{fault}")
        record("client of ours", "http", era, name, fault)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
