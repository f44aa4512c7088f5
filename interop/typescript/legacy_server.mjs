// A server on the TypeScript SDK 2 that asks in the ways of the handshake revisions, on sessions; what speaks 2026-07-28
// is served beside it.
//
//   legacy_server.mjs --stdio
//   legacy_server.mjs --listen HOST:PORT [--stateless | --json | --modern]    prints `listening on URL` when it is ready
//   legacy_server.mjs ... --minimal                                one tool, which asks nothing
//
// ../legacy/peers.json says what each call does. With --stateless it is the SDK's own handler of both eras, and what
// speaks an older revision has no session and cannot be asked; with --modern, no older revision is spoken.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
    McpServer,
    ProtocolError,
    ResourceTemplate,
    UrlElicitationRequiredError,
    createMcpHandler,
    isInitializeRequest,
    isLegacyRequest,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { OPTIONS, listen, offer } from '../legacy/tools.mjs';

const SDK = {
    z,
    ResourceTemplate,
    ask: (extra, method, params) => extra.mcpReq.send({ method, params }),
    tell: (extra, method, params) => extra.mcpReq.notify({ method, params }),
    progressToken: extra => extra.mcpReq._meta?.progressToken,
    protocolError: (code, message, data) => new ProtocolError(code, message, data),
    urlRequired: asks => new UrlElicitationRequiredError(asks),
};
const { values: options } = parseArgs({ options: { ...OPTIONS, modern: { type: 'boolean' } } });

const build = () =>
    offer(new McpServer({ name: 'typescript-peer', version: '2.0.0' }, { capabilities: { logging: {} } }), SDK, options.minimal);

/** The whole body, once: it is asked for the era, and then handed on. */
async function bodyOf(request) {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    try {
        return JSON.parse(Buffer.concat(pieces));
    } catch {
        return undefined;
    }
}

/** Sessions for what is legacy, as the SDK says to keep them; the rest is the SDK's own handler. */
function serveHttp() {
    const sessions = new Map();
    const modern = toNodeHandler(createMcpHandler(build, { legacy: options.stateless ? 'stateless' : 'reject' }));
    const refuse = (response, status, code, message) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
    };
    const onSession = async (request, response, body) => {
        const id = request.headers['mcp-session-id'];
        let transport = sessions.get(id);
        if (!transport && id) return refuse(response, 404, -32001, 'Session not found');
        if (!transport && !isInitializeRequest(body)) return refuse(response, 400, -32000, 'Bad Request: Session ID required');
        if (!transport) {
            transport = new NodeStreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                enableJsonResponse: options.json,
                onsessioninitialized: made => void sessions.set(made, transport),
                onsessionclosed: gone => void sessions.delete(gone),
            });
            await build().connect(transport);
        }
        return transport.handleRequest(request, response, body);
    };
    return createServer(async (request, response) => {
        const body = request.method === 'POST' ? await bodyOf(request) : undefined;
        if (options.stateless || options.modern) return modern(request, response, body);
        const legacy = await isLegacyRequest(await toWebRequest(request, body));
        return legacy ? onSession(request, response, body) : modern(request, response, body);
    });
}

if (options.stdio) {
    serveStdio(build, { legacy: options.modern ? 'reject' : 'serve' });
} else if (options.listen) {
    listen(serveHttp(), options.listen, '/mcp');
} else {
    console.error('give --listen HOST:PORT or --stdio');
    process.exitCode = 2;
}
