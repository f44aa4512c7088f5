// Drives our everything server with the client of the TypeScript SDK: what is not asking.
//
//   wide_client_of_ours.mjs CONFORMANCE-SERVER [--only WORD]
//
// Every check has a server of its own, over HTTP and over stdio. One line per check; the last line is `N passed, N failed`,
// and any failure makes the exit code 1.

import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Tally, VERSION, reasonOf, start } from '../node.mjs';

const PER_CHECK_MILLISECONDS = 30_000;
const SOON_MILLISECONDS = 10_000; // for what must come
const WATCHED = 'test://watched-resource';
const COMES_AND_GOES = 'test_comes_and_goes';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

const CHECKS = [];
const check = (name, run, { ways = ['http', 'stdio'] } = {}) => CHECKS.push({ name, run, ways });

// ---- the server ------------------------------------------------------------------------------------------------------

/** One way to our server. Over HTTP the clients of a check share a server, over stdio each has its own. */
class Ours {
    open = [];

    constructor(program, way) {
        this.program = program;
        this.way = way;
    }

    /** A connected client, of a server with these options. */
    async client(words = [], settings = {}) {
        const client = new Client({ name: 'typescript-peer', version: '1.0.0' }, { versionNegotiation: { mode: { pin: VERSION } }, ...settings });
        await client.connect(await this.transport(['--more', ...words]));
        this.open.push(() => client.close());
        return client;
    }

    async transport(words) {
        if (this.way === 'stdio') return new StdioClientTransport({ command: this.program, args: ['--stdio', ...words], stderr: 'ignore' });
        if (!this.url) {
            this.process = start([this.program, ...words], { stdio: ['ignore', 'pipe', 'ignore'] });
            this.open.push(() => this.process.kill('SIGKILL'));
            [this.url] = await once(createInterface({ input: this.process.stdout }), 'line');
        }
        return new StreamableHTTPClientTransport(new URL(this.url));
    }

    async close() {
        for (const close of this.open.reverse()) await close();
    }
}

// ---- words for checks ------------------------------------------------------------------------------------------------

function same(found, wanted) {
    if (!isDeepStrictEqual(found, wanted)) throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
}

const call = (client, name, args = {}, options) => client.callTool({ name, arguments: args }, options);

function textOf(result) {
    if (result.isError) throw new Error(`isError: ${JSON.stringify(result.content)}`);
    return result.content[0].text;
}

async function refused(asked, code) {
    const caught = await asked.then(result => new Error(`not refused: ${JSON.stringify(result)}`), error => error);
    if (!(caught instanceof ProtocolError)) throw caught;
    same(caught.code, code);
}

async function within(milliseconds, promise, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${what}: not after ${milliseconds} ms`)), milliseconds);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** What the client was told of changes, in order; `next` waits for the one that was not taken yet. */
class Told {
    #events = [];
    #wake = () => {};

    constructor(client) {
        for (const kind of ['tools/list_changed', 'prompts/list_changed', 'resources/list_changed', 'resources/updated']) {
            client.setNotificationHandler(`notifications/${kind}`, ({ params }) => {
                this.#events.push(params?.uri ? `${kind} ${params.uri}` : kind);
                this.#wake();
            });
        }
    }

    async next() {
        while (!this.#events.length) {
            await within(SOON_MILLISECONDS, new Promise(wake => (this.#wake = wake)), 'a change');
        }
        return this.#events.shift();
    }
}

const closed = subscription => within(SOON_MILLISECONDS, subscription.closed, 'the end of a subscription');

// ---- progress, log messages, completion ------------------------------------------------------------------------------

check('progress: three reports, in order', async our => {
    const heard = [];
    const client = await our.client();
    textOf(await call(client, 'test_tool_with_progress', {}, { onprogress: report => heard.push(report) }));
    const sent = [
        { progress: 0, total: 100, message: 'Begun' },
        { progress: 50, total: 100, message: 'Half way' },
        { progress: 100, total: 100, message: 'Done' },
    ];
    // Over stdio the client forgets a report that it reads together with the response: the last one may be missing.
    const wanted = our.way === 'stdio' && heard.length === 2 ? sent.slice(0, 2) : sent;
    same(heard, wanted);
});

async function logged(our, level) {
    const heard = [];
    const client = await our.client();
    client.setNotificationHandler('notifications/message', ({ params }) => void heard.push([params.level, params.logger, params.data]));
    textOf(await client.callTool({ name: 'test_logging_tool', arguments: {}, ...(level && { _meta: { [LOG_LEVEL]: level } }) }));
    return heard;
}

check('log: the messages of a call, at the level that was asked for', async our => {
    same(await logged(our, 'info'), [
        ['info', undefined, 'Tool execution started'],
        ['info', undefined, 'Tool processing data'],
        ['info', 'conformance', 'Tool execution completed'],
    ]);
});

check('log: nothing below the level, and nothing unless asked for', async our => {
    same([await logged(our, 'warning'), await logged(our)], [[], []]);
});

async function completed(client, ref, name, value, known) {
    const context = known && { arguments: known };
    return (await client.complete({ ref, argument: { name, value }, ...(context && { context }) })).completion.values;
}

check('complete: an argument of a prompt', async our => {
    const client = await our.client();
    const prompt = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
    same(await completed(client, prompt, 'arg1', 'te'), ['test', 'testing']);
    same(await completed(client, prompt, 'arg1', 'o'), ['other']);
    same(await completed(client, prompt, 'arg1', 'x'), []);
    same(await completed(client, prompt, 'arg2', ''), []);
});

check('complete: a variable of a template, with what is known of the others', async our => {
    const client = await our.client();
    const files = { type: 'ref/resource', uri: 'test://files/{dir}/{name}' };
    same(await completed(client, files, 'name', 's'), ['song', 'sonata', 'sketch']);
    same(await completed(client, files, 'name', 's', { dir: 'music' }), ['song', 'sonata']);
    same(await completed(client, files, 'name', 's', { dir: 'empty' }), []);
});

check('complete: a prompt that is not there is refused', async our => {
    const client = await our.client();
    await refused(completed(client, { type: 'ref/prompt', name: 'nobody' }, 'a', ''), -32602);
});

// ---- pages -----------------------------------------------------------------------------------------------------------

const LISTS = {
    tools: (client, ...params) => client.listTools(...params),
    prompts: (client, ...params) => client.listPrompts(...params),
    resources: (client, ...params) => client.listResources(...params),
    resourceTemplates: (client, ...params) => client.listResourceTemplates(...params),
};

const namesOf = entries => entries.map(entry => entry.name);

check('pages: two entries each, and the whole list in the end', async our => {
    const client = await our.client(['--page-size', '2']);
    const other = new Ours(our.program, our.way);
    our.open.push(() => other.close());
    const whole = await other.client();
    for (const [kind, read] of Object.entries(LISTS)) {
        // The first page has no cursor, and without one the client reads all pages: ask for the page itself.
        const method = { resourceTemplates: 'resources/templates/list' }[kind] ?? `${kind}/list`;
        const first = await client.request({ method, params: {} });
        const names = namesOf(first[kind]);
        for (let cursor = first.nextCursor; cursor !== undefined; ) {
            const page = await read(client, { cursor });
            same(page[kind].length >= 1 && page[kind].length <= 2, true);
            names.push(...namesOf(page[kind]));
            cursor = page.nextCursor;
        }
        const all = namesOf((await read(whole))[kind]);
        same(names, all);
        same(namesOf((await read(client))[kind]), all);
    }
});

check('pages: a cursor of nobody is refused', async our => {
    const client = await our.client(['--page-size', '2']);
    for (const read of Object.values(LISTS)) await refused(read(client, { cursor: 'nonsense' }), -32602);
});

// ---- structured results ----------------------------------------------------------------------------------------------

check('structured: a result that fits its schema', async our => {
    const client = await our.client();
    const listed = (await client.listTools()).tools.find(tool => tool.name === 'test_structured');
    same(listed.outputSchema.required, ['total', 'note']);
    const result = await call(client, 'test_structured', { a: 40, b: 2 });
    same([result.isError ?? false, result.structuredContent], [false, { total: 42, note: null }]);
});

check('structured: our result that does not fit never arrives', async our => {
    const client = await our.client();
    const result = await call(client, 'test_wrong_structured');
    same([result.isError, result.structuredContent], [true, undefined]);
});

// ---- arguments in headers --------------------------------------------------------------------------------------------

const REGIONS = ['us-west1', 'Zürich', ' padded ', '', '=?base64?eA==?=', 'two\nlines'];

check('headers: arguments are repeated in them', async our => {
    const client = await our.client();
    await client.listTools();
    for (const region of REGIONS) same(textOf(await call(client, 'test_x_mcp_header', { region })), `The region is ${region}.`);
    same(textOf(await call(client, 'test_x_mcp_header')), 'There is no region.');
});

const TYPED = [
    [{ count: 42, sure: true, place: { zone: 'eu' } }, '42 true eu'],
    [{ count: -7, sure: false, place: {} }, '-7 false none'],
    [{ count: Number.MAX_SAFE_INTEGER, sure: null }, '9007199254740991 none none'],
    [{ place: { zone: 'Zürich' } }, 'none none Zürich'],
    [{}, 'none none none'],
];

check('headers: numbers, yes and no, nothing, and what is nested', async our => {
    const client = await our.client();
    await client.listTools();
    for (const [args, said] of TYPED) same(textOf(await call(client, 'test_typed_headers', args)), said);
});

check('headers: a tool that was not listed yet', async our => {
    const client = await our.client();
    same(textOf(await call(client, 'test_x_mcp_header', { region: 'eu' })), 'The region is eu.');
});

check('headers: one that was renamed since the list', async our => {
    const client = await our.client(['--cache', '600']);
    await client.listTools();
    same(textOf(await call(client, 'test_renamed_header', { value: 'one' })), 'The value is one.');
    await call(client, 'test_trigger_header_rename');
    same(textOf(await call(client, 'test_renamed_header', { value: 'two' })), 'The value is two.');
});

// ---- caching hints ---------------------------------------------------------------------------------------------------

const toolsOf = async (client, options) => namesOf((await client.listTools(undefined, options)).tools);
const without = (names, before) => names.filter(name => !before.includes(name));

check('cache: a list that may be kept is not asked for again', async our => {
    const client = await our.client(['--cache', '600']);
    const listed = await client.listTools();
    same([listed.ttlMs, listed.cacheScope], [600_000, 'public']);
    const before = await toolsOf(client);
    await call(client, 'test_trigger_tool_change');
    same(await toolsOf(client), before);
    same(without(await toolsOf(client, { cacheMode: 'refresh' }), before), [COMES_AND_GOES]);
});

check('cache: nothing is kept without a hint', async our => {
    const client = await our.client();
    const listed = await client.listTools();
    same([listed.ttlMs, listed.cacheScope], [0, 'private']);
    const before = await toolsOf(client);
    await call(client, 'test_trigger_tool_change');
    same(without(await toolsOf(client), before), [COMES_AND_GOES]);
});

check('cache: who listens asks again for what changed', async our => {
    const client = await our.client(['--cache', '600']);
    const told = new Told(client);
    const before = await toolsOf(client);
    const subscription = await client.listen({ toolsListChanged: true });
    await call(client, 'test_trigger_tool_change');
    same(await told.next(), 'tools/list_changed');
    same(without(await toolsOf(client), before), [COMES_AND_GOES]);
    await subscription.close();
});

check('cache: a resource that may be kept is not read again before it changes', async our => {
    const uri = 'test://counted';
    const client = await our.client();
    const told = new Told(client);
    const read = async () => (await client.readResource({ uri })).contents[0].text;
    same([await read(), await read()], ['Read 1 times.', 'Read 1 times.']);
    await client.listen({ resourceSubscriptions: [uri] });
    await call(client, 'test_trigger_resource_update');
    same(await told.next(), `resources/updated ${uri}`);
    same([await read(), await read()], ['Read 2 times.', 'Read 2 times.']);
});

// ---- calls that are given up -----------------------------------------------------------------------------------------

check('given up: a call that the client ends is ended here', async our => {
    const client = await our.client();
    const untilWaiting = async wanted => {
        while (textOf(await call(client, 'test_waiting')) !== wanted) await new Promise(go => setTimeout(go, 20));
    };
    const giveUp = new AbortController();
    const ended = call(client, 'test_wait', {}, { signal: giveUp.signal }).catch(() => 'ended');
    await within(SOON_MILLISECONDS, untilWaiting('1'), 'the call');
    giveUp.abort();
    await within(SOON_MILLISECONDS, untilWaiting('0'), 'the end of the call');
    same(await ended, 'ended');
});

// ---- subscriptions ---------------------------------------------------------------------------------------------------

check('listen: the tools changed', async our => {
    const client = await our.client();
    const told = new Told(client);
    const subscription = await client.listen({ toolsListChanged: true });
    same(subscription.honoredFilter, { toolsListChanged: true });
    for (let time = 0; time < 2; time += 1) {
        await call(client, 'test_trigger_tool_change');
        same(await told.next(), 'tools/list_changed');
    }
});

check('listen: by the option listChanged, which lists again', async our => {
    let heard;
    const changed = new Promise(done => (heard = done));
    const onChanged = (error, tools) => heard(error ?? namesOf(tools));
    const client = await our.client([], { listChanged: { tools: { onChanged, debounceMs: 0 } } });
    if (!client.autoOpenedSubscription) throw new Error('no subscription was opened');
    await call(client, 'test_trigger_tool_change');
    same((await within(SOON_MILLISECONDS, changed, 'a list')).includes(COMES_AND_GOES), true);
});

check('listen: the prompts changed, and only what was asked for is told', async our => {
    const client = await our.client();
    const told = new Told(client);
    await client.listen({ promptsListChanged: true });
    for (const trigger of ['tool_change', 'resource_update', 'prompt_change']) await call(client, `test_trigger_${trigger}`);
    same(await told.next(), 'prompts/list_changed');
});

check('listen: the resources changed', async our => {
    const client = await our.client();
    const told = new Told(client);
    await client.listen({ resourcesListChanged: true });
    for (const there of [true, false]) {
        await call(client, 'test_trigger_resource_change');
        same(await told.next(), 'resources/list_changed');
        const { resources } = await client.listResources();
        same(resources.some(resource => resource.uri === 'test://comes-and-goes'), there);
    }
});

check('listen: a resource was updated', async our => {
    const client = await our.client();
    const told = new Told(client);
    const subscription = await client.listen({ resourceSubscriptions: [WATCHED, 'test://static-text'] });
    same(subscription.honoredFilter, { resourceSubscriptions: [WATCHED, 'test://static-text'] });
    await call(client, 'test_trigger_resource_update');
    same(await told.next(), `resources/updated ${WATCHED}`);
});

check('listen: several at once, each told its own', async our => {
    const client = await our.client();
    const told = new Told(client);
    await client.listen({ toolsListChanged: true });
    await client.listen({ promptsListChanged: true });
    await client.listen({ toolsListChanged: true, resourceSubscriptions: [WATCHED] });
    await call(client, 'test_trigger_tool_change');
    same([await told.next(), await told.next()], ['tools/list_changed', 'tools/list_changed']);
    await call(client, 'test_trigger_resource_update');
    same(await told.next(), `resources/updated ${WATCHED}`);
    await call(client, 'test_trigger_prompt_change');
    same(await told.next(), 'prompts/list_changed');
});

check('listen: ended by the client; the others and the calls go on', async our => {
    const client = await our.client();
    const told = new Told(client);
    const stays = await client.listen({ promptsListChanged: true });
    const goes = await client.listen({ toolsListChanged: true });
    await call(client, 'test_trigger_tool_change');
    same(await told.next(), 'tools/list_changed');
    await goes.close();
    same(await closed(goes), 'local');
    await call(client, 'test_trigger_tool_change');
    await call(client, 'test_trigger_prompt_change');
    same(await told.next(), 'prompts/list_changed');
    await stays.close();
});

check('listen: a hundred, one after the other', async our => {
    const client = await our.client();
    for (let time = 0; time < 100; time += 1) await (await client.listen({ toolsListChanged: true })).close();
});

check('listen: the server shuts down, and says so', async our => {
    const client = await our.client();
    const told = new Told(client);
    const one = await client.listen({ toolsListChanged: true });
    const two = await client.listen({ promptsListChanged: true });
    await call(client, 'test_trigger_tool_change');
    await call(client, 'test_trigger_shutdown');
    same(await told.next(), 'tools/list_changed');
    same([await closed(one), await closed(two)], ['graceful', 'graceful']);
});

check(
    'listen: the server is gone without a word',
    async our => {
        const client = await our.client();
        const subscription = await client.listen({ toolsListChanged: true });
        our.process.kill('SIGKILL');
        same(await closed(subscription), 'remote');
    },
    { ways: ['http'] },
);

// ---- running ---------------------------------------------------------------------------------------------------------

const { values, positionals } = parseArgs({ options: { only: { type: 'string', default: '' } }, allowPositionals: true });
const tally = new Tally('client of ours');
for (const way of ['http', 'stdio']) {
    for (const { name, run, ways } of CHECKS) {
        if (!ways.includes(way) || !name.includes(values.only)) continue;
        const our = new Ours(positionals[0], way);
        const outcome = { label: way, transport: way, name };
        try {
            await within(PER_CHECK_MILLISECONDS, run(our), 'the end of the check');
        } catch (error) {
            outcome.fault = reasonOf(error);
        }
        await within(SOON_MILLISECONDS, our.close(), 'the end of the clients').catch(() => {});
        tally.add(outcome);
    }
}
tally.end();
process.exit();
