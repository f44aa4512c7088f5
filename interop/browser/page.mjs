// The part that runs in the page: one call with the client of the TypeScript SDK, and what the page may read of it.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

/** A `fetch` that notes what the page may read of each response, and how often the browser gave none. */
function noting(found) {
    return async (input, init) => {
        const response = await fetch(input, init).catch(error => {
            found.blocked.push(error.name);
            throw error;
        });
        const { headers, status } = response;
        found.responses.push({
            method: init?.method ?? 'GET',
            status,
            session: headers.get('mcp-session-id'),
            challenge: headers.get('www-authenticate'),
        });
        return response;
    };
}

async function connected({ url, bearer, mode, answers }, found) {
    const options = { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } };
    const client = new Client({ name: 'page', version: '1.0.0' }, options);
    client.setRequestHandler('elicitation/create', ({ params }) => {
        found.asked.push(Object.keys(params.requestedSchema.properties).join());
        return answers[found.asked.length - 1];
    });
    const headers = bearer && { authorization: `Bearer ${bearer}` };
    const transport = new StreamableHTTPClientTransport(new URL(url), {
        requestInit: { headers },
        fetch: noting(found),
    });
    await client.connect(transport);
    return { client, transport };
}

/** Connects, calls the tool, and leaves. `mode` is that of the SDK's negotiation of versions. */
globalThis.call = async job => {
    const found = { asked: [], responses: [], blocked: [] };
    try {
        const { client, transport } = await connected(job, found);
        found.version = client.getNegotiatedProtocolVersion();
        const result = await client.callTool({ name: job.tool, arguments: job.arguments });
        found.text = result.content[0].text;
        found.isError = Boolean(result.isError);
        await transport.terminateSession();
        await client.close();
    } catch (error) {
        found.error = `${error.name}: ${error.message}`;
    }
    return found;
};

/** One request without the SDK: the status and the body, or the name of the error. */
globalThis.send = async ({ url, ...init }) => {
    try {
        const response = await fetch(url, init);
        return { status: response.status, body: await response.text() };
    } catch (error) {
        return { error: error.name };
    }
};
