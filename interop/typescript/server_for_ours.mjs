// An MCP server on the TypeScript SDK, for antiphon's client to call.
//
//   server_for_ours.mjs --listen HOST:PORT     prints `listening on URL` when it is ready
//   server_for_ours.mjs --stdio
//
// server_for_ours.expect.json says what each call does.

import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
    McpServer,
    ProtocolError,
    ResourceTemplate,
    acceptedContent,
    createMcpHandler,
    createRequestStateCodec,
    inputRequired,
    inputResponse,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const FOLDERS = { '/tmp/empty': 0, '/tmp/full': 3 };
const CARRIERS = { Japan: 'Yamato', Italy: 'Poste' };

/** One key for the life of this process: every HTTP request has a server instance of its own. */
const states = createRequestStateCodec({ key: randomBytes(32), bind: ctx => ctx.mcpReq.method });

const text = said => ({ content: [{ type: 'text', text: said }] });
const message = said => ({ messages: [{ role: 'user', content: { type: 'text', text: said } }] });
const contents = (uri, said) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: said }] });

/** A form with one required text. */
const form = (question, field) =>
    inputRequired.elicit({
        message: question,
        requestedSchema: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] },
    });

const answer = (ctx, key) => inputResponse(ctx.mcpReq.inputResponses, key);
/** The one field of an accepted form, or what was done instead. */
const word = (said, field) => (said.action === 'accept' ? said.content[field] : said.action);

// ---- tools that ask nothing ------------------------------------------------------------------------------------------

function quietTools(server) {
    server.registerTool('echo', { description: 'Say it back.', inputSchema: z.object({ text: z.string() }) }, said =>
        text(said.text),
    );
    server.registerTool(
        'add',
        {
            description: 'Add, with structured output.',
            inputSchema: z.object({ a: z.number(), b: z.number() }),
            outputSchema: z.object({ total: z.number(), note: z.string().nullable() }),
        },
        ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { total: a + b, note: null } }),
    );
    server.registerTool('fail', { inputSchema: z.object({ reason: z.string() }) }, ({ reason }) => ({
        ...text(`failed: ${reason}`),
        isError: true,
    }));
    server.registerTool('crash', { inputSchema: z.object({}) }, () => {
        throw new Error('out of order');
    });
    server.registerTool('refuse', { inputSchema: z.object({}) }, () => {
        throw new ProtocolError(1000, 'No tea here', { kind: 'teapot' });
    });
    server.registerTool(
        'count',
        { description: 'Progress, if a token was sent: then the reply is an event stream.', inputSchema: z.object({ to: z.number() }) },
        async ({ to }, ctx) => {
            const progressToken = ctx.mcpReq._meta?.progressToken;
            for (let progress = 1; progressToken !== undefined && progress <= to; progress += 1) {
                await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: to } });
            }
            return text(`counted to ${to}`);
        },
    );
    server.registerTool(
        'route',
        {
            description: 'An argument that over HTTP is repeated in the header `Mcp-Param-Region`.',
            inputSchema: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
        },
        ({ region }) => text(`routed to ${region}`),
    );
}

// ---- forms -----------------------------------------------------------------------------------------------------------

const confirmation = z.object({ ok: z.boolean() });
const party = z.object({ guests: z.number().int().min(1).max(12) });

const FIELDS = {
    name: { type: 'string', minLength: 2, maxLength: 20, title: 'Your name', description: 'As on the passport' },
    email: { type: 'string', format: 'email' },
    site: { type: 'string', format: 'uri' },
    born: { type: 'string', format: 'date' },
    seen: { type: 'string', format: 'date-time' },
    age: { type: 'integer', minimum: 0, maximum: 150 },
    height: { type: 'number' },
    member: { type: 'boolean' },
    colour: { type: 'string', enum: ['red', 'green', 'blue'] },
    size: { type: 'string', oneOf: [{ const: 'S', title: 'Small' }, { const: 'L', title: 'Large' }] },
    rank: { type: 'string', enum: ['1', '2'], enumNames: ['First', 'Second'] },
    toppings: { type: 'array', items: { type: 'string', enum: ['ham', 'olives', 'basil'] }, minItems: 1, maxItems: 2 },
    extras: {
        type: 'array',
        items: { anyOf: [{ const: 'nap', title: 'Napkins' }, { const: 'cut', title: 'Cutlery' }] },
    },
    nickname: { type: 'string', default: 'none' },
};
const OPTIONAL = ['extras', 'nickname'];
const everyField = {
    type: 'object',
    properties: FIELDS,
    required: Object.keys(FIELDS).filter(name => !OPTIONAL.includes(name)),
};

function formTools(server) {
    server.registerTool(
        'delete_folder',
        { description: 'Asks only when the folder is not empty.', inputSchema: z.object({ path: z.string() }) },
        ({ path }, ctx) => {
            const said = answer(ctx, 'confirm');
            if (!FOLDERS[path]) return text(`Deleted ${path}.`);
            if (said.kind === 'missing') {
                const question = `${path} holds ${FOLDERS[path]} files. Delete them?`;
                return inputRequired({
                    inputRequests: { confirm: inputRequired.elicit({ message: question, requestedSchema: confirmation }) },
                });
            }
            if (said.action !== 'accept') return text(`Kept ${path}: ${said.action}.`);
            const confirmed = acceptedContent(ctx.mcpReq.inputResponses, 'confirm', confirmation);
            return text(confirmed?.ok ? `Deleted ${path}.` : `Kept ${path}.`);
        },
    );
    server.registerTool(
        'provision',
        { description: 'One round without state.', inputSchema: z.object({ name: z.string() }) },
        ({ name }, ctx) => {
            const said = answer(ctx, 'region');
            if (said.kind === 'missing') {
                return inputRequired({ inputRequests: { region: form('Which region should the database live in?', 'region') } });
            }
            if (said.action !== 'accept') return text(`Provisioning "${name}" ended: ${said.action}.`);
            return text(`Provisioned "${name}" in ${said.content.region}.`);
        },
    );
    server.registerTool(
        'book_table',
        { description: 'Two questions in one round.', inputSchema: z.object({ place: z.string() }) },
        ({ place }, ctx) => {
            const [day, guests] = [answer(ctx, 'day'), answer(ctx, 'party')];
            if (day.kind === 'missing' || guests.kind === 'missing') {
                return inputRequired({
                    inputRequests: {
                        day: form('Which day?', 'day'),
                        party: inputRequired.elicit({ message: 'How many guests?', requestedSchema: party }),
                    },
                });
            }
            return text(`${place}: ${word(day, 'day')}, ${word(guests, 'guests')} guests.`);
        },
    );
    server.registerTool(
        'rhyme',
        { description: 'Keys with dots, brackets and signs.', inputSchema: z.object({}) },
        (_, ctx) => {
            const keys = ['first.word', 'first.word#2', 'ünï "quoted" <key>'];
            const said = keys.map(key => answer(ctx, key));
            if (said.some(one => one.kind === 'missing')) {
                return inputRequired({ inputRequests: Object.fromEntries(keys.map(key => [key, form(`${key}, please`, 'word')])) });
            }
            return text(said.map(one => word(one, 'word')).join(' / '));
        },
    );
    server.registerTool('survey', { description: 'Every kind of field.', inputSchema: z.object({}) }, (_, ctx) => {
        const said = answer(ctx, 'survey');
        if (said.kind === 'missing') {
            const ask = inputRequired.elicit({ message: 'A few questions', requestedSchema: everyField });
            return inputRequired({ inputRequests: { survey: ask } });
        }
        if (said.action !== 'accept') return text(`No survey: ${said.action}.`);
        return text(JSON.stringify(said.content, Object.keys(FIELDS)));
    });
}

// ---- rounds ----------------------------------------------------------------------------------------------------------

function roundTools(server) {
    server.registerTool(
        'ship_order',
        { description: 'The second question depends on the first answer, which travels in the state.', inputSchema: z.object({ order: z.string() }) },
        async ({ order }, ctx) => {
            const known = ctx.mcpReq.requestState()?.country;
            const first = answer(ctx, 'country');
            if (known === undefined) {
                if (first.kind === 'missing') {
                    return inputRequired({ inputRequests: { country: form('Ship to which country?', 'country') } });
                }
                if (first.action !== 'accept') return text(`${order} stays here: ${first.action}.`);
                const { country } = first.content;
                const question = `Which carrier to ${country}? Usual: ${CARRIERS[country] ?? 'any'}.`;
                return inputRequired({
                    inputRequests: { carrier: form(question, 'carrier') },
                    requestState: await states.mint({ country }, ctx),
                });
            }
            const second = answer(ctx, 'carrier');
            return text(
                second.action === 'accept'
                    ? `${order} goes to ${known} by ${second.content.carrier}.`
                    : `${order} waits for a carrier to ${known}: ${second.action}.`,
            );
        },
    );
    server.registerTool(
        'spell',
        { description: 'As many rounds as there are letters.', inputSchema: z.object({ letters: z.number() }) },
        async ({ letters }, ctx) => {
            const so_far = ctx.mcpReq.requestState()?.so_far ?? '';
            const said = answer(ctx, `letter_${so_far.length + 1}`);
            const now = said.kind === 'missing' ? so_far : so_far + word(said, 'letter');
            if (now.length >= letters) return text(now);
            const next = now.length + 1;
            return inputRequired({
                inputRequests: { [`letter_${next}`]: form(`Letter ${next}?`, 'letter') },
                requestState: await states.mint({ so_far: now }, ctx),
            });
        },
    );
    server.registerTool(
        'shed',
        { description: 'State only, then the result.', inputSchema: z.object({ job: z.string() }) },
        async ({ job }, ctx) => {
            const kept = ctx.mcpReq.requestState();
            if (kept === undefined) return inputRequired({ requestState: await states.mint({ half: job }, ctx) });
            const answers = Object.keys(ctx.mcpReq.inputResponses ?? {}).length;
            return text(`${job} done after half of ${kept.half}, ${answers} answers.`);
        },
    );
    server.registerTool(
        'shed_then_ask',
        { description: 'State only, then a question, then the result.', inputSchema: z.object({}) },
        async (_, ctx) => {
            const step = ctx.mcpReq.requestState()?.step ?? 0;
            const said = answer(ctx, 'go');
            if (step === 0) return inputRequired({ requestState: await states.mint({ step: 1 }, ctx) });
            if (said.kind === 'missing') {
                return inputRequired({
                    inputRequests: { go: form('Go on?', 'go') },
                    requestState: await states.mint({ step: 2 }, ctx),
                });
            }
            return text(`step ${step}, said ${word(said, 'go')}`);
        },
    );
    server.registerTool('insist', { description: 'The same question for ever.', inputSchema: z.object({}) }, () =>
        inputRequired({ inputRequests: { more: form('One more time?', 'more') } }),
    );
    server.registerTool('shed_forever', { description: 'State only for ever.', inputSchema: z.object({}) }, async (_, ctx) =>
        inputRequired({ requestState: await states.mint({ again: true }, ctx) }),
    );
    server.registerTool(
        'count_then_ask',
        { description: 'Progress, if a token was sent, then a question on the same stream.', inputSchema: z.object({ to: z.number() }) },
        async ({ to }, ctx) => {
            const progressToken = ctx.mcpReq._meta?.progressToken;
            for (let progress = 1; progressToken !== undefined && progress <= to; progress += 1) {
                await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: to } });
            }
            const said = answer(ctx, 'again');
            if (said.kind === 'missing') return inputRequired({ inputRequests: { again: form('Count again?', 'again') } });
            return text(`counted twice to ${to}, said ${word(said, 'again')}`);
        },
    );
}

// ---- URL mode, sampling, roots ---------------------------------------------------------------------------------------

const sampling = (prompt, more = {}) =>
    inputRequired.createMessage({
        messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
        maxTokens: 50,
        ...more,
    });

function otherTools(server) {
    server.registerTool(
        'pay',
        { description: 'Sends the person to a page.', inputSchema: z.object({ amount: z.number() }) },
        async ({ amount }, ctx) => {
            const said = answer(ctx, 'checkout');
            if (said.kind === 'missing') {
                const page = { message: `Pay ${amount} EUR on our page`, url: `https://pay.example.com/?amount=${amount}` };
                return inputRequired({
                    inputRequests: { checkout: inputRequired.elicitUrl(page) },
                    requestState: await states.mint({ amount }, ctx),
                });
            }
            const owed = ctx.mcpReq.requestState().amount;
            return text(said.action === 'accept' ? `Consent to pay ${owed} EUR, content ${said.content}.` : `Not paid: ${said.action}.`);
        },
    );
    server.registerTool(
        'summarize',
        { description: "Asks the client's model.", inputSchema: z.object({ text: z.string() }) },
        (given, ctx) => {
            const said = answer(ctx, 'summary');
            if (said.kind === 'missing') {
                const ask = sampling(`Summarize: ${given.text}`, { systemPrompt: 'Be brief.', temperature: 0.5 });
                return inputRequired({ inputRequests: { summary: ask } });
            }
            return text(`${said.result.model} says: ${said.result.content.text}`);
        },
    );
    server.registerTool('list_my_roots', { description: "Asks for the client's roots.", inputSchema: z.object({}) }, (_, ctx) => {
        const said = answer(ctx, 'roots');
        if (said.kind === 'missing') return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
        return text(`Roots: ${said.roots.map(root => root.uri).join(', ')}`);
    });
    server.registerTool(
        'everything',
        { description: 'One round with a question of each kind, then one more.', inputSchema: z.object({}) },
        async (_, ctx) => {
            const kept = ctx.mcpReq.requestState();
            const [note, page, model, roots] = ['note', 'page', 'model', 'roots'].map(key => answer(ctx, key));
            if (kept !== undefined) return text(`${kept.seen}; ${word(answer(ctx, 'last'), 'word')}`);
            if ([note, page, model, roots].some(one => one.kind === 'missing')) {
                return inputRequired({
                    inputRequests: {
                        note: form('A note?', 'note'),
                        page: inputRequired.elicitUrl({ message: 'Please look', url: 'https://example.com/look' }),
                        model: sampling('Hello'),
                        roots: inputRequired.listRoots(),
                    },
                });
            }
            const seen = `${word(note, 'note')}, ${page.action}, ${model.result.content.text}, ${roots.roots.length} roots`;
            return inputRequired({
                inputRequests: { last: form('A last word?', 'word') },
                requestState: await states.mint({ seen }, ctx),
            });
        },
    );
}

// ---- prompts and resources -------------------------------------------------------------------------------------------

function prompts(server) {
    server.registerPrompt('hello', { description: 'Asks nothing.', argsSchema: z.object({ name: z.string() }) }, ({ name }) =>
        message(`Say hello to ${name}.`),
    );
    server.registerPrompt('refuse', { description: 'A protocol error.' }, () => {
        throw new ProtocolError(1000, 'No tea here', { kind: 'teapot' });
    });
    server.registerPrompt('briefing', { description: 'For an audience that is asked for.' }, ctx => {
        const said = answer(ctx, 'audience');
        if (said.kind === 'missing') {
            return inputRequired({ inputRequests: { audience: form('Who is the briefing for?', 'audience') } });
        }
        return message(said.action === 'accept' ? `Brief ${said.content.audience} on the release.` : `No briefing: ${said.action}.`);
    });
    server.registerPrompt('minutes', { description: "Asks the client's model and for its roots." }, ctx => {
        const [model, roots] = [answer(ctx, 'model'), answer(ctx, 'roots')];
        if (model.kind === 'missing' || roots.kind === 'missing') {
            return inputRequired({ inputRequests: { model: sampling('The minutes, please'), roots: inputRequired.listRoots() } });
        }
        return message(`${model.result.content.text}, filed under ${roots.roots[0].uri}.`);
    });
}

function resources(server) {
    server.registerResource('hello', 'plain://hello', { mimeType: 'text/plain' }, uri => contents(uri, 'Hello.'));
    server.registerResource('report', new ResourceTemplate('report://{id}', { list: undefined }), {}, async (uri, { id }, ctx) => {
        const said = answer(ctx, 'audience');
        if (said.kind === 'missing') {
            return inputRequired({
                inputRequests: { audience: form(`Who reads report ${id}?`, 'audience') },
                requestState: await states.mint({ id }, ctx),
            });
        }
        const asked = ctx.mcpReq.requestState().id;
        return contents(uri, said.action === 'accept' ? `Report ${asked} for ${said.content.audience}.` : `Report ${asked}: ${said.action}.`);
    });
    server.registerResource('ledger', 'ledger://today', {}, async (uri, ctx) => {
        const opened = ctx.mcpReq.requestState()?.opened;
        const said = answer(ctx, 'page');
        if (opened === undefined) return inputRequired({ requestState: await states.mint({ opened: true }, ctx) });
        if (said.kind === 'missing') {
            return inputRequired({
                inputRequests: { page: inputRequired.elicitUrl({ message: 'Sign in', url: 'https://example.com/sign-in' }) },
                requestState: await states.mint({ opened }, ctx),
            });
        }
        return contents(uri, `Ledger: ${said.action}.`);
    });
}

// ---- transports ------------------------------------------------------------------------------------------------------

function build() {
    const server = new McpServer({ name: 'typescript-peer', version: '1.0.0' }, { requestState: { verify: states.verify } });
    for (const add of [quietTools, formTools, roundTools, otherTools, prompts, resources]) add(server);
    return server;
}

function serveHttp(host, port) {
    const handle = toNodeHandler(createMcpHandler(build, { legacy: 'reject' }));
    const [hosts, origins] = [localhostHostValidation(), localhostOriginValidation()];
    const http = createServer((request, response) => {
        if (hosts(request, response) && origins(request, response)) handle(request, response);
    });
    http.listen(Number(port), host, () => console.log(`listening on http://${host}:${http.address().port}/mcp`));
}

const { values } = parseArgs({ options: { listen: { type: 'string' }, stdio: { type: 'boolean' } } });
if (values.stdio) {
    serveStdio(build, { legacy: 'reject' });
} else if (values.listen) {
    const colon = values.listen.lastIndexOf(':');
    serveHttp(values.listen.slice(0, colon), values.listen.slice(colon + 1));
} else {
    console.error('give --listen HOST:PORT or --stdio');
    process.exitCode = 2;
}
