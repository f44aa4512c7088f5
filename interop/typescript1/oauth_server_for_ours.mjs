// An MCP server on the TypeScript SDK 1 that is its own authorization server, by `mcpAuthRouter`.
//
//   oauth_server_for_ours.mjs      prints `listening on URL` when it is ready
//
// The first access token of a sign-in expires after a second. `end_token` ends the caller's token, as an operator does.

import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import express from 'express';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { getOAuthProtectedResourceMetadataUrl, mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const PAGE = '<form method="post" action=""><input name="login"><button>Agree</button></form>';
const secret = () => randomBytes(20).toString('hex');
const seconds = () => Math.floor(Date.now() / 1000);

/** Keeps everything in memory. */
class Provider {
    clients = new Map();
    asked = new Map();
    codes = new Map();
    access = new Map();
    refresh = new Map();

    clientsStore = {
        getClient: id => this.clients.get(id),
        registerClient: client => {
            const known = { ...client, client_id: randomUUID(), client_id_issued_at: seconds() };
            this.clients.set(known.client_id, known);
            return known;
        },
    };

    async authorize(client, params, response) {
        const transaction = secret();
        this.asked.set(transaction, { clientId: client.client_id, params });
        response.redirect(`/sign-in?transaction=${transaction}`);
    }

    signIn(request, response) {
        const { clientId, params } = this.asked.get(request.query.transaction);
        const code = secret();
        this.codes.set(code, {
            challenge: params.codeChallenge,
            grant: { clientId, scopes: params.scopes ?? [], resource: params.resource, extra: { subject: request.body.login } },
        });
        const back = new URL(params.redirectUri);
        back.searchParams.set('code', code);
        if (params.state) back.searchParams.set('state', params.state);
        response.redirect(303, back.href);
    }

    async challengeForAuthorizationCode(_, code) {
        return this.codes.get(code).challenge;
    }

    async exchangeAuthorizationCode(_, code) {
        const { grant } = this.codes.get(code);
        this.codes.delete(code);
        return this.issue(grant, 1);
    }

    async exchangeRefreshToken(_, token) {
        const grant = this.refresh.get(token);
        this.refresh.delete(token);
        return this.issue(grant, 3600);
    }

    issue(grant, life) {
        const [access_token, refresh_token] = [secret(), secret()];
        this.access.set(access_token, { ...grant, token: access_token, expiresAt: seconds() + life });
        this.refresh.set(refresh_token, grant);
        return { access_token, refresh_token, token_type: 'Bearer', expires_in: life, scope: grant.scopes.join(' ') };
    }

    async verifyAccessToken(token) {
        const known = this.access.get(token);
        if (!known) throw new InvalidTokenError('unknown');
        return known;
    }

    async revokeToken(client) {
        for (const kept of [this.access, this.refresh]) {
            for (const [token, { clientId }] of kept) if (clientId === client.client_id) kept.delete(token);
        }
    }
}

function build(provider) {
    const server = new McpServer({ name: 'typescript-peer-1', version: '1.0.0' });
    const said = text => ({ content: [{ type: 'text', text }] });
    server.registerTool('who', {}, ({ authInfo }) => said(authInfo.extra.subject));
    server.registerTool('end_token', {}, ({ authInfo }) => {
        provider.access.delete(authInfo.token);
        return said('ended');
    });
    return server;
}

const http = createServer();
http.listen(0, '127.0.0.1', () => {
    const issuer = new URL(`http://127.0.0.1:${http.address().port}`);
    const resource = new URL('/mcp', issuer);
    const provider = new Provider();
    const app = express();
    app.use(mcpAuthRouter({ provider, issuerUrl: issuer, resourceServerUrl: resource, scopesSupported: ['mcp'] }));
    app.get('/sign-in', (_, response) => response.send(PAGE));
    app.post('/sign-in', express.urlencoded(), (request, response) => provider.signIn(request, response));
    const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resource);
    app.use('/mcp', requireBearerAuth({ verifier: provider, requiredScopes: ['mcp'], resourceMetadataUrl, expectedResource: resource }));
    app.post('/mcp', express.json(), async (request, response) => {
        const server = build(provider);
        const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
        response.on('close', () => server.close());
        await server.connect(transport);
        await transport.handleRequest(request, response, request.body);
    });
    http.on('request', app);
    console.log(`listening on ${resource}`);
});
