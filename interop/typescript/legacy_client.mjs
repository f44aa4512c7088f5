// The client of the TypeScript SDK 2, which speaks a handshake revision unless it is told otherwise. ../legacy/client.mjs
// says how it is called.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { CAPABILITIES, drive } from '../legacy/client.mjs';

function transportOf({ http, sse, bearer, command }) {
    if (command) return new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'ignore' });
    if (sse) return new SSEClientTransport(sse);
    return new StreamableHTTPClientTransport(http, { requestInit: { headers: bearer && { authorization: `Bearer ${bearer}` } } });
}

await drive(async (target, person) => {
    const client = new Client({ name: 'typescript-peer', version: '2.0.0' }, { capabilities: CAPABILITIES });
    client.setRequestHandler('elicitation/create', ({ params }) => person.elicit(params));
    client.setRequestHandler('sampling/createMessage', () => person.sample());
    client.setRequestHandler('roots/list', () => person.roots());
    client.setNotificationHandler('notifications/progress', () => person.hear('progress'));
    client.setNotificationHandler('notifications/message', () => person.hear('logs'));
    client.setNotificationHandler('notifications/elicitation/complete', ({ params }) => person.complete(params.elicitationId));
    const transport = transportOf(target);
    await client.connect(transport);
    const close = async () => {
        if (target.http) await transport.terminateSession();
        await client.close();
    };
    return { client, revision: client.getNegotiatedProtocolVersion(), close };
});
