"""An MCP server on the Python SDK that is its own authorization server: everything of the SDK's `auth_server_provider`.

    oauth_server_for_ours.py       prints `listening on URL` when it is ready

The first access token of a sign-in expires after a second. `end_token` ends the caller's token, as an operator does.
"""

import asyncio
import logging
import secrets
import socket
import time
from typing import Any

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, AuthorizationCode, AuthorizationParams, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

PAGE = """<form method="post" action=""><input name="login"><button>Agree</button></form>"""


class Provider:
    """Keeps everything in memory."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.asked: dict[str, tuple[str, AuthorizationParams]] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        assert client.client_id
        transaction = secrets.token_hex(16)
        self.asked[transaction] = client.client_id, params
        return f"{self.url}/sign-in?transaction={transaction}"

    async def sign_in(self, request: Request) -> Response:
        if request.method == "GET":
            return HTMLResponse(PAGE)
        client_id, params = self.asked.pop(request.query_params["transaction"])
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=str((await request.form())["login"]),
        )
        self.codes[code.code] = code
        back = construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)
        return RedirectResponse(back, status_code=303)

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.issue(authorization_code, authorization_code.scopes, life=1)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self.issue(refresh_token, scopes, life=3600)

    def issue(self, grant: AuthorizationCode | RefreshToken, scopes: list[str], life: int) -> OAuthToken:
        token, again = secrets.token_hex(20), secrets.token_hex(20)
        of: dict[str, Any] = {"client_id": grant.client_id, "scopes": scopes, "resource": grant.resource, "subject": grant.subject}
        self.access[token] = AccessToken(token=token, expires_at=int(time.time()) + life, **of)
        self.refresh[again] = RefreshToken(token=again, **of)
        return OAuthToken(access_token=token, expires_in=life, refresh_token=again, scope=" ".join(scopes))

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        for kept in (self.access, self.refresh):
            for key in [key for key, one in kept.items() if one.client_id == token.client_id]:
                del kept[key]


def build(url: str) -> MCPServer:
    provider = Provider(url)
    server = MCPServer(
        "python-peer",
        auth_server_provider=provider,
        auth=AuthSettings(
            issuer_url=url,  # type: ignore[arg-type]
            resource_server_url=f"{url}/mcp",  # type: ignore[arg-type]
            required_scopes=["mcp"],
            client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["mcp"], default_scopes=["mcp"]),
            revocation_options=RevocationOptions(enabled=True),
            validate_token_resource=True,
        ),
    )
    server.custom_route("/sign-in", methods=["GET", "POST"])(provider.sign_in)

    @server.tool()
    def who() -> str:
        """The person who has signed in."""
        token = get_access_token()
        return (token and token.subject) or "nobody"

    @server.tool()
    def end_token() -> str:
        """Ends the token of this call."""
        token = get_access_token()
        assert token
        del provider.access[token.token]
        return "ended"

    return server


async def main() -> None:
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app = build(url).streamable_http_app()
    print(f"listening on {url}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main())
