// A server on the TypeScript SDK 1 that asks in the ways of the handshake revisions.
//
//   legacy_server.mjs --stdio
//   legacy_server.mjs --listen HOST:PORT [--sse | --stateless | --json]    prints `listening on URL` when it is ready
//   legacy_server.mjs ... --minimal                                        one tool, which asks nothing
//
// ../legacy/peers.json says what each call does.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
    CreateMessageResultSchema,
    ElicitResultSchema,
    ListRootsResultSchema,
    McpError,
    UrlElicitationRequiredError,
    isInitializeRequest,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { OPTIONS, listen, offer } from '../legacy/tools.mjs';

const RESULTS = {
    'elicitation/create': ElicitResultSchema,
    'sampling/createMessage': CreateMessageResultSchema,
    'roots/list': ListRootsResultSchema,
};
const SDK = {
    z,
    ResourceTemplate,
    ask: (extra, method, params) => extra.sendRequest({ method, params }, RESULTS[method]),
    tell: (extra, method, params) => extra.sendNotification({ method, params }),
    progressToken: extra => extra._meta?.progressToken,
    protocolError: (code, message, data) => new McpError(code, message, data),
    urlRequired: asks => new UrlElicitationRequiredError(asks),
};
const { values: options } = parseArgs({ options: OPTIONS });

const build = () =>
    offer(new McpServer({ name: 'typescript-peer', version: '1.0.0' }, { capabilities: { logging: {} } }), SDK, options.minimal);

/** As in the examples of the SDK: a transport for each session, found by the header. */
function streamable(app) {
    const sessions = new Map();
    const refuse = (response, status, code, message) =>
        response.status(status).json({ jsonrpc: '2.0', error: { code, message }, id: null });
    app.post('/mcp', async (request, response) => {
        const id = request.headers['mcp-session-id'];
        let transport = sessions.get(id);
        if (!transport && id) return refuse(response, 404, -32001, 'Session not found');
        if (!transport && !isInitializeRequest(request.body)) {
            return refuse(response, 400, -32000, 'Bad Request: No valid session ID provided');
        }
        if (!transport) {
            transport = new StreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                enableJsonResponse: options.json,
                onsessioninitialized: made => sessions.set(made, transport),
                onsessionclosed: gone => sessions.delete(gone),
            });
            await build().connect(transport);
        }
        return transport.handleRequest(request, response, request.body);
    });
    const onSession = async (request, response) => {
        const transport = sessions.get(request.headers['mcp-session-id']);
        if (!transport) return response.status(400).send('Invalid or missing session ID');
        return transport.handleRequest(request, response);
    };
    app.get('/mcp', onSession);
    app.delete('/mcp', onSession);
}

/** As in the examples of the SDK: a server and a transport for each request. */
function stateless(app) {
    app.post('/mcp', async (request, response) => {
        const server = build();
        const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: options.json });
        response.on('close', () => server.close());
        await server.connect(transport);
        await transport.handleRequest(request, response, request.body);
    });
    const refused = (request, response) =>
        response.status(405).json({ jsonrpc: '2.0', error: { code: -32000, message: 'Method not allowed.' }, id: null });
    app.get('/mcp', refused);
    app.delete('/mcp', refused);
}

/** HTTP+SSE, as of 2024-11-05. */
function sse(app) {
    const sessions = new Map();
    app.get('/sse', async (request, response) => {
        const transport = new SSEServerTransport('/messages', response);
        sessions.set(transport.sessionId, transport);
        response.on('close', () => sessions.delete(transport.sessionId));
        await build().connect(transport);
    });
    app.post('/messages', async (request, response) => {
        const transport = sessions.get(request.query.sessionId);
        if (!transport) return response.status(404).send('Session not found');
        return transport.handlePostMessage(request, response, request.body);
    });
}

if (options.stdio) {
    await build().connect(new StdioServerTransport());
} else if (options.listen) {
    const app = createMcpExpressApp();
    (options.sse ? sse : options.stateless ? stateless : streamable)(app);
    listen(createServer(app), options.listen, options.sse ? '/sse' : '/mcp');
} else {
    console.error('give --listen HOST:PORT or --stdio');
    process.exitCode = 2;
}
