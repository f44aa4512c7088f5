// Requests that the TypeScript SDK does not send by itself, on the connection of its client: one JSON-RPC request, its
// response as it arrived. `@modelcontextprotocol/ext-tasks` needs that for the extension of tasks.

/** Over HTTP: each request is one POST, with the headers that repeat what its body says. */
export const overHttp = url => {
    let id = 0;
    return async ({ method, params }, { signal, context } = {}) => {
        id += 1;
        const name = params.name ?? params.taskId;
        const headers = new Headers(context?.headers);
        headers.set('content-type', 'application/json');
        headers.set('accept', 'application/json, text/event-stream');
        headers.set('mcp-protocol-version', params._meta['io.modelcontextprotocol/protocolVersion']);
        headers.set('mcp-method', method);
        if (name !== undefined) headers.set('mcp-name', name);
        const body = JSON.stringify({ jsonrpc: '2.0', id: `raw-${id}`, method, params });
        const response = await fetch(url, { method: 'POST', headers, body, signal });
        const text = await response.text();
        const json = response.headers.get('content-type')?.startsWith('text/event-stream') ? lastEvent(text) : text;
        return outcomeOf(JSON.parse(json));
    };
};

/** Over stdio: beside the client, which does not see the responses to these requests. */
export const overStdio = transport => {
    const waiting = new Map();
    const through = transport.onmessage;
    transport.onmessage = (message, extra) => {
        const done = waiting.get(message.id);
        if (!done || message.method) return through(message, extra);
        waiting.delete(message.id);
        done(outcomeOf(message));
    };
    let id = 0;
    return async ({ method, params }, { signal } = {}) => {
        signal?.throwIfAborted();
        id += 1;
        const response = new Promise((done, fail) => {
            waiting.set(`raw-${id}`, done);
            signal?.addEventListener('abort', () => fail(signal.reason), { once: true });
        });
        await transport.send({ jsonrpc: '2.0', id: `raw-${id}`, method, params });
        return response;
    };
};

/** The data of the last event of a stream, which is the response. */
function lastEvent(stream) {
    const event = stream.trimEnd().split(/\r?\n\r?\n/).at(-1);
    return event.split(/\r?\n/).filter(line => line.startsWith('data:')).map(line => line.slice(5).trim()).join('\n');
}

const outcomeOf = ({ result, error }) => (error ? { kind: 'error', error } : { kind: 'result', result });
