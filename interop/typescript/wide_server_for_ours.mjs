// A server on the TypeScript SDK for our client library: what is not asking.
//
//   wide_server_for_ours.mjs --listen HOST:PORT     prints `listening on URL` when it is ready
//   wide_server_for_ours.mjs --stdio
//
// ../table/wide is its client, and ../python/wide_server_for_ours.py offers the same.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
    InMemoryServerEventBus,
    McpServer,
    ProtocolError,
    ResourceTemplate,
    completable,
    createMcpHandler,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const WATCHED = 'watched://one';
const NAMES = ['anna', 'anton', 'berta'];
const FILES = { music: ['song', 'sonata', 'tune'], '': ['song', 'sonata', 'tune', 'sketch'] };
const PER_PAGE = 2;
const KEEP = { ttlMs: 3_600_000, cacheScope: 'public' };
const CACHE = { cacheHints: { 'tools/list': KEEP } };
const CAPABILITIES = {
    logging: {},
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
};

const INTEGER_TOTAL = { type: 'object', properties: { total: { type: 'integer' } }, required: ['total'] };
const BAD_HEADER = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'two words' } } };

/** What outlives a request: over HTTP each has a server of its own. */
const kept = { header: 'Region', comesAndGoes: false, asked: {} };
/** How the changes are told, and how the subscriptions end; set by the transport. */
const listeners = { tell: {}, count: () => 'unknown', end: () => {} };

const text = said => ({ content: [{ type: 'text', text: said }] });
const beginningWith = (values, typed) => values.filter(value => value.startsWith(typed));
const nothing = z.object({});

// ---- what a call tells, and what comes of it -------------------------------------------------------------------------

function callTools(server) {
    const tool = (name, inputSchema, run, more = {}) => server.registerTool(name, { inputSchema, ...more }, run);
    tool('progress', z.object({ to: z.number().int() }), async ({ to }, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let progress = 1; progressToken !== undefined && progress <= to; progress += 1) {
            const params = { progressToken, progress, total: to, message: `at ${progress}` };
            await ctx.mcpReq.notify({ method: 'notifications/progress', params });
        }
        return text(`counted to ${to}`);
    });
    tool('log', nothing, async (_, ctx) => {
        await ctx.mcpReq.log('debug', 'quiet');
        await ctx.mcpReq.log('info', { n: 1 });
        await ctx.mcpReq.log('warning', 'loud', 'wide');
        return text('logged');
    });
    tool(
        'sum',
        z.object({ a: z.number().int(), b: z.number().int() }),
        ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { total: a + b } }),
        { outputSchema: z.object({ total: z.number().int() }) },
    );
    // Its schema is added to the list: a server of the SDK does not let a result pass that breaks it.
    tool('wrong', nothing, () => ({ ...text('{"total": "many"}'), structuredContent: { total: 'many' } }));
    tool('route', z.object({ region: z.string().meta({ 'x-mcp-header': kept.header }) }), ({ region }, ctx) =>
        text(`${region} by ${ctx.http?.req?.headers.get(`mcp-param-${kept.header}`) ?? 'no header'}`),
    );
    const marked = (kind, header) => kind.meta({ 'x-mcp-header': header }).optional();
    const typed = z.object({
        count: marked(z.number().int(), 'Count'),
        sure: marked(z.boolean(), 'Sure'),
        place: z.object({ zone: marked(z.string(), 'Zone') }).optional(),
    });
    const seen = (ctx, name) => ctx.http?.req?.headers.get(`mcp-param-${name}`) ?? 'none';
    tool('typed', typed, (_, ctx) => text(['count', 'sure', 'zone'].map(name => seen(ctx, name)).join(' ')));
    tool('rename_header', nothing, () => text((kept.header = kept.header === 'Region' ? 'Area' : 'Region')));
    tool('wait', nothing, async (_, ctx) => {
        kept.asked.wait = (kept.asked.wait ?? 0) + 1;
        await once(ctx.mcpReq.signal, 'abort');
        kept.asked.wait -= 1;
        return text('never');
    });
    // Of `wait`, how many calls wait.
    tool('asked', z.object({ method: z.string() }), ({ method }) => text(`${kept.asked[method] ?? 0}`));
}

// ---- what changes ----------------------------------------------------------------------------------------------------

function changingTools(server) {
    const tool = (name, run) => server.registerTool(name, { inputSchema: nothing }, run);
    tool('change_tools', () => {
        kept.comesAndGoes = !kept.comesAndGoes;
        listeners.tell.toolsChanged(server);
        return text('changed');
    });
    tool('change_prompts', () => {
        listeners.tell.promptsChanged(server);
        return text('changed');
    });
    tool('change_resources', () => {
        listeners.tell.resourcesChanged(server);
        return text('changed');
    });
    tool('update_resource', () => {
        listeners.tell.resourceUpdated(server);
        return text('updated');
    });
    tool('open', () => text(`${listeners.count()}`));
    tool('end_listening', () => {
        setTimeout(listeners.end, 50); // the reply first: what ends the subscriptions ends the calls as well
        return text('ended');
    });
    tool('die', () => process.exit(1));
}

// ---- prompts and resources -------------------------------------------------------------------------------------------

function promptsAndResources(server) {
    const who = completable(z.string(), typed => beginningWith(NAMES, typed));
    for (const name of ['greet', 'thank', 'scold', 'praise', 'leave']) {
        server.registerPrompt(name, { argsSchema: z.object({ who }) }, given => ({
            messages: [{ role: 'user', content: { type: 'text', text: `${name} ${given.who}` } }],
        }));
    }
    server.registerResource('watched', WATCHED, { cacheHint: KEEP }, uri => {
        kept.asked['resources/read'] = (kept.asked['resources/read'] ?? 0) + 1;
        return { contents: [{ uri: uri.href, text: `read ${kept.asked['resources/read']} times` }] };
    });
    const complete = { name: (typed, known) => beginningWith(FILES[known?.arguments?.dir ?? ''] ?? [], typed) };
    server.registerResource('files', new ResourceTemplate('files://{dir}/{name}', { list: undefined, complete }), {}, uri => ({
        contents: [{ uri: uri.href, text: uri.href }],
    }));
}

/** What McpServer does not let a server do: pages, promises that are not kept, annotations that break the rules. */
function lists(server) {
    const handlers = server.server._requestHandlers;
    const toolsList = handlers.get('tools/list');
    handlers.set('tools/list', async (request, ctx) => {
        kept.asked['tools/list'] = (kept.asked['tools/list'] ?? 0) + 1;
        const result = await toolsList(request, ctx);
        const tools = result.tools.map(tool => (tool.name === 'wrong' ? { ...tool, outputSchema: INTEGER_TOTAL } : tool));
        tools.push({ name: 'bad_header', inputSchema: BAD_HEADER });
        if (kept.comesAndGoes) tools.push({ name: 'comes_and_goes', inputSchema: { type: 'object' } });
        return { ...result, tools };
    });
    const promptsList = handlers.get('prompts/list');
    handlers.set('prompts/list', async (request, ctx) => {
        kept.asked['prompts/list'] = (kept.asked['prompts/list'] ?? 0) + 1;
        const first = Number(request.params?.cursor ?? '0');
        if (!Number.isInteger(first)) throw new ProtocolError(-32602, 'no such page');
        const result = await promptsList(request, ctx);
        const after = first + PER_PAGE;
        const more = after < result.prompts.length ? { nextCursor: `${after}` } : {};
        return { ...result, prompts: result.prompts.slice(first, after), ...more };
    });
}

// ---- transports ------------------------------------------------------------------------------------------------------

function build() {
    const server = new McpServer({ name: 'typescript-peer', version: '1.0.0' }, { capabilities: CAPABILITIES, ...CACHE });
    for (const add of [callTools, changingTools, promptsAndResources, lists]) add(server);
    return server;
}

function overHttp(host, port) {
    let handler, handle;
    const renew = () => {
        const bus = new InMemoryServerEventBus();
        handler = createMcpHandler(build, { legacy: 'reject', bus });
        handle = toNodeHandler(handler);
        listeners.count = () => bus.listenerCount;
    };
    renew();
    const tell = kind => () => handler.notify[kind](kind === 'resourceUpdated' ? WATCHED : undefined);
    for (const kind of ['toolsChanged', 'promptsChanged', 'resourcesChanged', 'resourceUpdated']) listeners.tell[kind] = tell(kind);
    listeners.end = () => {
        const closing = handler.close();
        renew(); // a handler that was closed serves no more
        return closing;
    };
    const [hosts, origins] = [localhostHostValidation(), localhostOriginValidation()];
    const http = createServer((request, response) => {
        if (hosts(request, response) && origins(request, response)) handle(request, response);
    });
    http.listen(Number(port), host, () => console.log(`listening on http://${host}:${http.address().port}/mcp`));
}

function overStdio() {
    listeners.tell = {
        toolsChanged: server => server.sendToolListChanged(),
        promptsChanged: server => server.sendPromptListChanged(),
        resourcesChanged: server => server.sendResourceListChanged(),
        resourceUpdated: server => server.server.sendResourceUpdated({ uri: WATCHED }),
    };
    const handle = serveStdio(build, { legacy: 'reject' });
    listeners.end = () => handle.close();
}

const { values } = parseArgs({ options: { listen: { type: 'string' }, stdio: { type: 'boolean' } } });
if (values.stdio) {
    overStdio();
} else if (values.listen) {
    const colon = values.listen.lastIndexOf(':');
    overHttp(values.listen.slice(0, colon), values.listen.slice(colon + 1));
} else {
    console.error('give --listen HOST:PORT or --stdio');
    process.exitCode = 2;
}
