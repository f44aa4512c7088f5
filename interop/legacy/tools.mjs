// The server that asks in the ways of the handshake revisions, for both generations of the TypeScript SDK: what it
// offers, without the SDK itself. peers.json says what each call does.
//
// `sdk` has: z, ResourceTemplate, and functions `ask(extra, method, params)`, `tell(extra, method, params)`,
// `progressToken(extra)`, `protocolError(code, message, data)`, `urlRequired(asks)`.

const text = said => ({ content: [{ type: 'text', text: said }] });
const urlAsk = page => ({
    mode: 'url',
    message: `Please visit ${page}.`,
    url: `https://example.com/${page}`,
    elicitationId: `id-${page}`,
});

/** A form with one field. */
const form = (message, field, type = 'string') => ({
    message,
    requestedSchema: { type: 'object', properties: { [field]: { type } }, required: [field] },
});

function quiet(server, { z }) {
    const said = { description: 'Says it back.', inputSchema: { text: z.string() } };
    server.registerTool('echo', said, ({ text: it }) => text(it));
}

function failing(server, { z, protocolError, urlRequired }) {
    server.registerTool('fail', { description: 'A tool error.', inputSchema: { reason: z.string() } }, ({ reason }) => {
        throw new Error(reason);
    });
    server.registerTool('refuse', { description: 'An error of the protocol, where the SDK lets a tool make one.' }, () => {
        throw protocolError(1000, 'No tea here', { kind: 'teapot' });
    });
    server.registerTool(
        'must_visit',
        { description: 'The error -32042 at first; then it is content.', inputSchema: { page: z.string() } },
        ({ page }) => {
            if (visited.has(page)) return text(`${page} was visited.`);
            visited.add(page);
            throw urlRequired([urlAsk(page)]);
        },
    );
}
const visited = new Set();

function asking(server, { z, ask, tell }) {
    const elicit = (extra, params) => ask(extra, 'elicitation/create', params);
    server.registerTool('confirm', { description: 'One form.' }, async extra => {
        const said = await elicit(extra, form('Go on?', 'ok', 'boolean'));
        return text(said.action === 'accept' ? `confirmed: ${said.content.ok}` : `not confirmed: ${said.action}`);
    });
    server.registerTool('two_forms', { description: 'A form, and then another.' }, async extra => {
        const first = await elicit(extra, form('What is your name?', 'name'));
        if (first.action !== 'accept') return text(`no name: ${first.action}`);
        const { name } = first.content;
        const second = await elicit(extra, form(`Which colour, ${name}?`, 'colour'));
        if (second.action !== 'accept') return text(`no colour for ${name}: ${second.action}`);
        return text(`${name} likes ${second.content.colour}.`);
    });
    server.registerTool('side_by_side', { description: 'Two forms at once.' }, async extra => {
        const asks = [form('Left?', 'name'), form('Right?', 'colour')];
        const [left, right] = await Promise.all(asks.map(params => elicit(extra, params)));
        const word = (said, field) => (said.action === 'accept' ? said.content[field] : said.action);
        return text(`left ${word(left, 'name')}, right ${word(right, 'colour')}`);
    });
    server.registerTool(
        'visit',
        { description: 'A question in URL mode, and the notification that it is complete.', inputSchema: { page: z.string() } },
        async ({ page }, extra) => {
            const params = urlAsk(page);
            const said = await elicit(extra, params);
            if (said.action === 'accept') {
                await tell(extra, 'notifications/elicitation/complete', { elicitationId: params.elicitationId });
            }
            return text(`visit: ${said.action}`);
        },
    );
    server.registerTool(
        'sample',
        { description: "A question to the client's model.", inputSchema: { prompt: z.string() } },
        async ({ prompt }, extra) => {
            const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
            const said = await ask(extra, 'sampling/createMessage', { messages, maxTokens: 50 });
            return text(`the model said: ${said.content.text}`);
        },
    );
    server.registerTool('roots', { description: "The client's roots." }, async extra => {
        const said = await ask(extra, 'roots/list', {});
        return text(`roots: ${said.roots.map(root => root.uri).join(', ')}`);
    });
}

function telling(server, { z, tell, progressToken }) {
    server.registerTool(
        'count',
        { description: 'Progress and log messages.', inputSchema: { to: z.number().int() } },
        async ({ to }, extra) => {
            const token = progressToken(extra);
            for (let at = 1; at <= to; at += 1) {
                const progress = { progressToken: token, progress: at, total: to, message: `at ${at}` };
                if (token !== undefined) await tell(extra, 'notifications/progress', progress);
                await tell(extra, 'notifications/message', { level: 'info', data: `counted ${at}` });
            }
            return text(`counted to ${to}`);
        },
    );
}

function others(server, { ask, ResourceTemplate }) {
    const name = async (extra, message) => {
        const said = await ask(extra, 'elicitation/create', form(message, 'name'));
        return said.action === 'accept' ? { name: said.content.name } : said;
    };
    server.registerPrompt('greeting', { description: 'A prompt that asks.' }, async extra => {
        const said = await name(extra, 'Whom do I greet?');
        const greeting = said.name ? `Greet ${said.name}.` : `Greet nobody: ${said.action}.`;
        return { messages: [{ role: 'user', content: { type: 'text', text: greeting } }] };
    });
    const template = new ResourceTemplate('note://{day}', { list: undefined });
    server.registerResource('note', template, { description: 'A resource that asks.' }, async (uri, { day }, extra) => {
        const said = await name(extra, `Who reads the note of ${day}?`);
        const note = said.name ? `The note of ${day} for ${said.name}.` : `No note: ${said.action}.`;
        return { contents: [{ uri: uri.href, mimeType: 'text/plain', text: note }] };
    });
}

/** Adds everything to a server; `minimal` is one tool, which asks nothing. */
export function offer(server, sdk, minimal) {
    for (const add of minimal ? [quiet] : [quiet, failing, asking, telling, others]) add(server, sdk);
    return server;
}

/** What the servers' command lines have in common. */
export const OPTIONS = {
    listen: { type: 'string' },
    stdio: { type: 'boolean' },
    sse: { type: 'boolean' },
    stateless: { type: 'boolean' },
    json: { type: 'boolean' },
    minimal: { type: 'boolean' },
};

/** Listens, and says where. */
export function listen(http, address, path) {
    const colon = address.lastIndexOf(':');
    const host = address.slice(0, colon);
    http.listen(Number(address.slice(colon + 1)), host, () =>
        console.log(`listening on http://${host}:${http.address().port}${path}`),
    );
}
