"""An MCP server on FastMCP behind its `OAuthProxy`, with oidc-provider as the upstream, where the proxy has one registration.

    oauth_proxy_for_ours.py ISSUER       prints `listening on URL` when it is ready

The person agrees on the page of the proxy, then on those of the upstream. `end_token` ends the caller's token, as an operator does.
"""

import asyncio
import socket
import sys

import httpx2
import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.oauth_proxy import OAuthProxy
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token, get_http_headers
from key_value.aio.stores.memory import MemoryStore
from mcp.server.auth.provider import AccessToken


class Proxy(OAuthProxy):
    ended: set[str] = set()

    async def load_access_token(self, token: str) -> AccessToken | None:  # type: ignore[override]
        return None if token in self.ended else await super().load_access_token(token)


def build(issuer: str, url: str) -> FastMCP:
    metadata = httpx2.get(f"{issuer}/.well-known/openid-configuration").json()
    wanted = {"redirect_uris": [f"{url}/auth/callback"], "grant_types": ["authorization_code", "refresh_token"]}
    client = httpx2.post(metadata["registration_endpoint"], json=wanted).json()
    proxy = Proxy(
        upstream_authorization_endpoint=metadata["authorization_endpoint"],
        upstream_token_endpoint=metadata["token_endpoint"],
        upstream_revocation_endpoint=metadata["revocation_endpoint"],
        upstream_client_id=client["client_id"],
        upstream_client_secret=client["client_secret"],
        token_verifier=JWTVerifier(jwks_uri=metadata["jwks_uri"], issuer=issuer, audience=f"{url}/mcp", required_scopes=["mcp"]),
        base_url=url,
        client_storage=MemoryStore(),
    )
    server = FastMCP("fastmcp-peer", auth=proxy)

    @server.tool
    def who() -> str:
        token = get_access_token()
        return token.claims["sub"] if token else "nobody"

    @server.tool
    def end_token() -> str:
        """Of the proxy, whose tokens stand for those of the upstream."""
        Proxy.ended.add(get_http_headers(include_all=True)["authorization"].removeprefix("Bearer "))
        return "ended"

    return server


async def main(issuer: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app = build(issuer, url).http_app()
    print(f"listening on {url}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
