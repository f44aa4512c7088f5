// The client of the TypeScript SDK 1. ../legacy/client.mjs says how it is called.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ElicitationCompleteNotificationSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
    ProgressNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { CAPABILITIES, drive } from '../legacy/client.mjs';

function transportOf({ http, sse, bearer, command }) {
    if (command) return new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'ignore' });
    if (sse) return new SSEClientTransport(sse);
    return new StreamableHTTPClientTransport(http, { requestInit: { headers: bearer && { authorization: `Bearer ${bearer}` } } });
}

await drive(async (target, person) => {
    const client = new Client({ name: 'typescript-peer', version: '1.0.0' }, { capabilities: CAPABILITIES });
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => person.elicit(params));
    client.setRequestHandler(CreateMessageRequestSchema, () => person.sample());
    client.setRequestHandler(ListRootsRequestSchema, () => person.roots());
    client.setNotificationHandler(ProgressNotificationSchema, () => person.hear('progress'));
    client.setNotificationHandler(LoggingMessageNotificationSchema, () => person.hear('logs'));
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) => person.complete(params.elicitationId));
    // The SDK of this generation tells the transport alone which revision was agreed on.
    const transport = transportOf(target);
    let revision = '2025-11-25';
    const told = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = agreed => {
        revision = agreed;
        told?.(agreed);
    };
    const { callTool } = client;
    client.callTool = (params, options) => callTool.call(client, params, undefined, options);
    await client.connect(transport);
    const close = async () => {
        if (target.http) await transport.terminateSession();
        await client.close();
    };
    return { client, revision, close };
});
