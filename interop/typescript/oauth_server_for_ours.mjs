// An MCP server on the TypeScript SDK, by `requireBearerAuth` and `oauthMetadataResponse`, with oidc-provider as its authorization
// server: version 2 of the SDK has none of its own.
//
//   oauth_server_for_ours.mjs ISSUER      prints `listening on URL` when it is ready
//
// `end_token` ends the caller's token, as an operator does.

import { createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    McpServer,
    OAuthError,
    OAuthErrorCode,
    createMcpHandler,
    getOAuthProtectedResourceMetadataUrl,
    oauthMetadataResponse,
    requireBearerAuth,
} from '@modelcontextprotocol/server';

const issuer = process.argv[2];
const json = async url => (await fetch(url)).json();
const oauthMetadata = await json(`${issuer}/.well-known/openid-configuration`);
const { keys } = await json(oauthMetadata.jwks_uri);
const ended = new Set();

/** Verifies a token of oidc-provider, which signs with RS256. */
async function verifyAccessToken(token) {
    const [head, body, signature] = token.split('.');
    const read = part => JSON.parse(Buffer.from(part, 'base64url'));
    const jwk = keys.find(({ kid }) => kid === read(head).kid);
    const signed = jwk && verify('sha256', Buffer.from(`${head}.${body}`), createPublicKey({ key: jwk, format: 'jwk' }), Buffer.from(signature, 'base64url'));
    if (!signed || ended.has(token)) throw new OAuthError(OAuthErrorCode.InvalidToken, 'not a valid token');
    const { sub, aud, client_id, scope, exp } = read(body);
    return { token, clientId: client_id, scopes: scope.split(' '), expiresAt: exp, resource: new URL(aud), extra: { subject: sub } };
}

function build() {
    const server = new McpServer({ name: 'typescript-peer', version: '1.0.0' });
    const said = text => ({ content: [{ type: 'text', text }] });
    server.registerTool('who', {}, ({ http }) => said(http.authInfo.extra.subject));
    server.registerTool('end_token', {}, ({ http }) => {
        ended.add(http.authInfo.token);
        return said('ended');
    });
    return server;
}

const http = createServer();
http.listen(0, '127.0.0.1', () => {
    const resource = new URL(`http://127.0.0.1:${http.address().port}/mcp`);
    const metadata = { oauthMetadata, resourceServerUrl: resource, scopesSupported: ['mcp'] };
    const gate = requireBearerAuth({
        verifier: { verifyAccessToken },
        requiredScopes: ['mcp'],
        resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
        expectedResource: resource,
    });
    const mcp = createMcpHandler(build, { legacy: 'reject' });
    const fetched = async (request, options) => {
        const found = oauthMetadataResponse(request, metadata);
        if (found) return found;
        const authInfo = await gate(request);
        return authInfo instanceof Response ? authInfo : mcp.fetch(request, { ...options, authInfo });
    };
    http.on('request', toNodeHandler({ fetch: fetched }));
    console.log(`listening on ${resource}`);
});
