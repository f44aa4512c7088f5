// Drives `antiphon serve-demo` with the MCP Inspector: `mcp-inspector --cli`, which asks nobody, and `mcpdo`, its command
// line with connections, which hands a question back and takes the answer with the next command.
//
//   client_of_ours.mjs --http URL
//   client_of_ours.mjs --stdio COMMAND ARGUMENT...
//
// HOME and MCP_INSPECTOR_DAEMON_DIR are to be folders of this run. One line per check; the last line is
// `N passed, N failed`, and any failure makes the exit code 1.

import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { Tally, VERSION, reasonOf, run } from '../node.mjs';

const CLIENTS = 'node_modules/@modelcontextprotocol/inspector/clients';
const program = path => [process.execPath, fileURLToPath(new URL(`${CLIENTS}/${path}`, import.meta.url))];
const CLI = [...program('launcher/build/index.js'), '--cli', '--format', 'json'];
const MCPDO = [...program('mcpdo/build/mcp-bin.js'), '--format', 'json'];

const OLD = '2025-11-25';
const UNASKABLE = 'The client did not declare a required capability: elicitation.form';
const TOOLS = [
    'echo',
    'provision',
    'get_weather',
    'update_work_item',
    'book_table',
    'delete_folder',
    'pick_file',
    'pay_deposit',
    'deposit_status',
    'charge_once',
    'load_shedding',
    'ask_the_model',
    'rolling_upgrade',
];
const ORDER = { name: 'orders' };
const RESOLVED = { workItemId: 4522, fields: { 'System.State': 'Resolved' } };
const DUPLICATE = 'Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.';

function same(found, wanted) {
    if (!isDeepStrictEqual(found, wanted)) throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
}

const textOf = result => (result.content?.[0] ?? result.messages?.[0]?.content ?? result.contents?.[0])?.text;

function parsed(done) {
    const said = done.code === 0 ? done.stdout : done.stderr.split('\n').findLast(line => line.startsWith('{'));
    try {
        return JSON.parse(said);
    } catch {
        throw new Error(`exit code ${done.code}: ${done.stdout.slice(-300)} ${done.stderr.slice(-300)}`);
    }
}

// ---- mcp-inspector --cli ---------------------------------------------------------------------------------------------

/** One command of the CLI; `era` is what it is told to speak. */
async function cli(server, era, ...words) {
    const eras = era ? ['--protocol-era', era] : [];
    return parsed(await run([...CLI, ...eras, '--method', ...words, ...server]));
}

const cliTool = (name, args) => ['tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)];

const BY_CLI = {
    '--cli: its own era is an older revision: tools/list on a session': {
        era: OLD,
        check: async server => same((await cli(server, undefined, 'tools/list')).result.tools.map(tool => tool.name), TOOLS),
    },
    '--cli: its own era is an older revision: echo on a session': {
        era: OLD,
        check: async server => same(textOf((await cli(server, undefined, ...cliTool('echo', { text: 'hello' }))).result), 'hello'),
    },
    '--cli --protocol-era auto: tools/list': async server =>
        same((await cli(server, 'auto', 'tools/list')).result.tools.map(tool => tool.name), TOOLS),
    '--cli: server/discover': async server => {
        const { result } = await cli(server, 'modern', 'initialize');
        same([result.protocolVersion, result.serverInfo.name], [VERSION, 'antiphon-demo']);
    },
    '--cli: tools/list': async server =>
        same((await cli(server, 'modern', 'tools/list')).result.tools.map(tool => tool.name), TOOLS),
    '--cli: prompts/list': async server =>
        same((await cli(server, 'modern', 'prompts/list')).result.prompts.map(prompt => prompt.name), ['briefing']),
    '--cli: resources/list': async server => same((await cli(server, 'modern', 'resources/list')).result.resources, []),
    '--cli: resources/templates/list': async server => {
        const { resourceTemplates } = (await cli(server, 'modern', 'resources/templates/list')).result;
        same(resourceTemplates.map(one => one.uriTemplate), ['report://{id}']);
    },
    '--cli: echo': async server => {
        const { result } = await cli(server, 'modern', ...cliTool('echo', { text: 'Grüße, "you" \u{1f600}' }));
        same(textOf(result), 'Grüße, "you" \u{1f600}');
    },
    '--cli: an unknown prompt is a protocol error': async server => {
        const { error } = await cli(server, 'modern', 'prompts/get', '--prompt-name', 'no_such_prompt');
        same(error.message, 'Unknown prompt: no_such_prompt');
    },
    '--cli: an unknown resource is a protocol error': async server => {
        const { error } = await cli(server, 'modern', 'resources/read', '--uri', 'nothing://here');
        same(error.message, 'Resource not found');
    },
};
for (const [what, words] of Object.entries({
    'provision': cliTool('provision', ORDER),
    'briefing': ['prompts/get', '--prompt-name', 'briefing'],
    'report://q3': ['resources/read', '--uri', 'report://q3'],
})) {
    BY_CLI[`--cli: ${what}, which asks`] = {
        absent: 'it declares no elicitation, and our server says so (-32021)',
        check: async server => same((await cli(server, 'modern', ...words)).error?.message, UNASKABLE),
    };
}

// ---- mcpdo -----------------------------------------------------------------------------------------------------------

/** One command on the connection. */
async function mcpdo(connection, ...words) {
    return parsed(await run([...MCPDO, '--connection', connection, ...words]));
}

const call = (name, args) => ['tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)];
const BRIEFING = ['prompts/get', '--prompt-name', 'briefing'];
const REPORT = ['resources/read', 'report://q3'];

/** A call, and an answer to each question it asks; each question is in full what is expected. */
async function conversation(connection, command, rounds, text) {
    let reply = await mcpdo(connection, ...command);
    for (const { message, schema, answer } of rounds) {
        const asked = reply.elicitationPending;
        if (!asked) same(reply, 'a question');
        same([asked.mode, asked.origin, asked.message], ['form', 'input-required', message]);
        if (schema) same(asked.requestedSchema, schema);
        reply = await mcpdo(connection, 'elicitation/respond', asked.elicitationId, ...[answer].flat());
    }
    same(textOf(reply), text);
}

const form = fields => ({ type: 'object', properties: fields, required: Object.keys(fields) });
const text = title => ({ type: 'string', title });
const content = fields => JSON.stringify(fields);
const REGION = { message: 'Which region should the database live in?', schema: form({ region: text('Region') }) };
const LOGIN = { message: 'Please provide your GitHub username', schema: form({ name: text('Name') }) };
const RESOLUTION = { message: 'Resolving Bug #4522 requires a resolution. How was this bug resolved?' };
const ORIGINAL = { message: 'Since this is a duplicate, which work item is the original?' };
const AUDIENCE = { message: 'Who is the briefing for?', schema: form({ audience: text('Audience') }) };
const READER = { message: 'Who will read report q3?', schema: form({ audience: text('Audience') }) };
const WEATHER = 'Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy';

const CONVERSATIONS = {
    'mcpdo: provision, accepted': [
        call('provision', ORDER),
        [{ ...REGION, answer: content({ region: 'eu-west-1' }) }],
        'Provisioned "orders" in eu-west-1.',
    ],
    'mcpdo: get_weather, accepted': [
        call('get_weather', { location: 'New York' }),
        [{ ...LOGIN, answer: content({ name: 'octocat' }) }],
        WEATHER,
    ],
    'mcpdo: update_work_item, a duplicate takes two rounds': [
        call('update_work_item', RESOLVED),
        [
            { ...RESOLUTION, answer: content({ resolution: 'Duplicate' }) },
            { ...ORIGINAL, answer: content({ duplicateOfId: 4301 }) },
        ],
        DUPLICATE,
    ],
    'mcpdo: an answer that does not fit is asked again': [
        call('provision', ORDER),
        [
            { ...REGION, answer: content({ zone: 'eu-west-1' }) },
            { message: `${REGION.message}\n\nRegion must be filled in.`, answer: content({ region: 'eu-west-1' }) },
        ],
        'Provisioned "orders" in eu-west-1.',
    ],
    'mcpdo: briefing, accepted': [
        BRIEFING,
        [{ ...AUDIENCE, answer: content({ audience: 'the board' }) }],
        'Write a briefing on the current state of the project for the board.',
    ],
    'mcpdo: report://q3, accepted': [
        REPORT,
        [{ ...READER, answer: content({ audience: 'engineers' }) }],
        'Report q3, for engineers: all is well.',
    ],
};
for (const [flag, said] of Object.entries({ '--decline': 'declined', '--cancel': 'cancelled' })) {
    const over = `the question was ${said}.`;
    CONVERSATIONS[`mcpdo: provision, ${said}`] = [call('provision', ORDER), [{ ...REGION, answer: flag }], `Nothing was provisioned: ${over}`];
    CONVERSATIONS[`mcpdo: briefing, ${said}`] = [BRIEFING, [{ ...AUDIENCE, answer: flag }], `There is no briefing to write: ${over}`];
    CONVERSATIONS[`mcpdo: report://q3, ${said}`] = [REPORT, [{ ...READER, answer: flag }], `Report q3 was not written: ${over}`];
}

const BY_MCPDO = {
    'mcpdo: server/discover': async connection => {
        const shown = await mcpdo(connection, 'connections/show');
        same(
            [shown.protocolVersion, shown.protocolEra, shown.supportedVersions, shown.serverInfo.name],
            [VERSION, 'modern', [VERSION], 'antiphon-demo'],
        );
    },
    'mcpdo: tools/list': async connection => {
        const listed = await mcpdo(connection, 'tools/list');
        same(listed.tools.map(tool => tool.name), TOOLS);
    },
    'mcpdo: echo': async connection => same(textOf(await mcpdo(connection, ...call('echo', { text: 'hi' }))), 'hi'),
    ...Object.fromEntries(
        Object.entries(CONVERSATIONS).map(([name, told]) => [name, connection => conversation(connection, ...told)]),
    ),
};

// ---- the run ---------------------------------------------------------------------------------------------------------

function targetOf([flag, ...words]) {
    if (flag === '--http' && words.length === 1) return ['http', words];
    if (flag === '--stdio' && words.length) return ['stdio', words];
    throw new Error('give --http URL or --stdio COMMAND');
}

const tally = new Tally('client of ours');
const [transport, server] = targetOf(process.argv.slice(2));

async function add(name, told, target) {
    const { check, ...more } = typeof told === 'function' ? { check: told } : told;
    const fault = await check(target).then(() => '', reasonOf);
    tally.add({ label: transport, transport, name, fault, ...more });
}

for (const [name, told] of Object.entries(BY_CLI)) await add(name, told, server);
try {
    const target = transport === 'stdio' ? ['--', ...server] : server;
    const connected = await mcpdo(transport, 'connect', '--era', 'modern', ...target);
    same(connected.protocolEra, 'modern');
    for (const [name, told] of Object.entries(BY_MCPDO)) await add(name, told, transport);
    await mcpdo(transport, 'disconnect');
} catch (error) {
    tally.add({ label: transport, transport, name: 'mcpdo: connection', fault: reasonOf(error) });
}
tally.end();
