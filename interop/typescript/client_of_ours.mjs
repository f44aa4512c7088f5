// Drives `antiphon serve-demo` with the client of the TypeScript SDK.
//
//   client_of_ours.mjs --http URL [--http URL]      two URLs: replicas that share a key file, the legs alternate
//   client_of_ours.mjs --stdio COMMAND ARGUMENT...
//
// One line per check; the last line is `N passed, N failed`, and any failure makes the exit code 1.

import { isDeepStrictEqual } from 'node:util';
import { Client, ProtocolError, SdkError, StreamableHTTPClientTransport, isInputRequiredResult } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Tally, VERSION, reasonOf } from '../node.mjs';

const PER_CHECK_MILLISECONDS = 30_000;
const MODES = { pinned: { pin: VERSION }, auto: 'auto' };
const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

const REFUSAL = { code: -32602, message: 'Invalid or expired requestState', data: { reason: 'invalid_request_state' } };
const REGION = 'Which region should the database live in?';
const IN_IRELAND = 'Provisioned "orders" in eu-west-1.';
const WEATHER = 'Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy';
const DUPLICATE = 'Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.';
const RESOLVED = { workItemId: 4522, fields: { 'System.State': 'Resolved' } };
const CHOICES = ['Fixed', "Won't Fix", 'Duplicate', 'By Design'];

const STRING = { type: 'string' };
const formOf = fields => ({ type: 'object', properties: fields, required: Object.keys(fields) });
/** What each question says, and its form without the words that only describe. */
const FORMS = {
    region: [REGION, formOf({ region: STRING })],
    github_login: ['Please provide your GitHub username', formOf({ name: STRING })],
    resolution: [
        'Resolving Bug #4522 requires a resolution. How was this bug resolved?',
        formOf({ resolution: { type: 'string', enum: CHOICES } }),
    ],
    duplicate_of: [
        'Since this is a duplicate, which work item is the original?',
        formOf({ duplicateOfId: { type: 'number' } }),
    ],
    audience: [undefined, formOf({ audience: STRING })],
};

// ---- words for checks ------------------------------------------------------------------------------------------------

const accept = content => ({ action: 'accept', content });
const DECLINE = { action: 'decline' };
const CANCEL = { action: 'cancel' };

function same(found, wanted) {
    if (!isDeepStrictEqual(found, wanted)) throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
}

function holds(truth, what, found) {
    if (!truth) throw new Error(`${what}: ${JSON.stringify(found)}`);
}

/** The text of a result that is over and no error. */
function textOf(result) {
    holds(!isInputRequiredResult(result), 'not a final result', result);
    holds(!result.isError, 'isError', result);
    const block = result.content?.[0] ?? result.messages?.[0]?.content ?? result.contents?.[0];
    same(block.type ?? 'text', 'text');
    return block.text;
}

/** A schema without the words that only describe. */
function bare({ title: _title, description: _description, $schema: _schema, ...told }) {
    if (!told.properties) return told;
    const properties = Object.entries(told.properties).map(([name, value]) => [name, bare(value)]);
    return { ...told, properties: Object.fromEntries(properties) };
}

/** The result asks exactly this, in full; its state. Asked again, the message may say why. */
function asks(result, key, { again = false } = {}) {
    holds(isInputRequiredResult(result), 'not a question', result);
    same(Object.keys(result.inputRequests ?? {}), [key]);
    const { method, params } = result.inputRequests[key];
    const [message, schema] = FORMS[key];
    same([method, params.mode], ['elicitation/create', 'form']);
    if (message) same(again ? params.message.slice(0, message.length) : params.message, message);
    same(bare(params.requestedSchema), schema);
    holds(/^r1\.[A-Za-z0-9_-]{40,}$/.test(result.requestState), 'requestState', result.requestState);
    return result.requestState;
}

async function refused(call, wanted = REFUSAL) {
    const caught = await call.then(result => holds(false, 'not refused', result), error => error);
    if (!(caught instanceof ProtocolError)) throw caught;
    same(Object.fromEntries(Object.keys(wanted).map(name => [name, caught[name]])), wanted);
}

function tampered(state) {
    const middle = Math.floor(state.length / 2);
    const other = state[middle] === 'A' ? 'B' : 'A';
    return {
        'one character changed': state.slice(0, middle) + other + state.slice(middle + 1),
        'cut short': state.slice(0, -5),
        'made longer': `${state}AAAA`,
        'another prefix': `v${state.slice(1)}`,
        'prefix only': 'r1.',
        empty: '',
        'not a token': 'nonsense',
    };
}

// ---- the server, or two of them --------------------------------------------------------------------------------------

/** The replicas under test. Every leg goes to the next of them, those of the SDK's own loop included. */
class Fleet {
    legs = 0;
    answers = {};
    asked = [];

    constructor(targets, mode) {
        this.targets = targets;
        this.mode = mode;
    }

    /** One client. Over HTTP each of its requests goes to the next replica, whichever it was connected to. */
    async connect(capabilities = ALL) {
        const client = new Client({ name: 'typescript-peer', version: '1.0.0' }, { capabilities, versionNegotiation: { mode: this.mode } });
        if (capabilities.elicitation) client.setRequestHandler('elicitation/create', (request, ctx) => this.answer(ctx.mcpReq.id));
        if (capabilities.sampling) client.setRequestHandler('sampling/createMessage', () => holds(false, 'asked for sampling'));
        if (capabilities.roots) client.setRequestHandler('roots/list', () => holds(false, 'asked for roots'));
        await client.connect(this.transport());
        return client;
    }

    transport() {
        const [first] = this.targets;
        if (first instanceof URL) return new StreamableHTTPClientTransport(first, { fetch: (_, init) => fetch(this.next(), init) });
        const [command, ...args] = first;
        return new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' });
    }

    next() {
        this.legs += 1;
        return this.targets[this.legs % this.targets.length];
    }

    answer(key) {
        this.asked.push(key);
        holds(key in this.answers, 'no answer for', key);
        return this.answers[key];
    }

    /** One leg, whose question comes back as it is. */
    tool(name, args, retry = {}) {
        return this.client.callTool({ name, arguments: args, ...retry }, { allowInputRequired: true });
    }

    prompt(retry = {}) {
        return this.client.getPrompt({ name: 'briefing', ...retry }, { allowInputRequired: true });
    }

    resource(uri, retry = {}) {
        return this.client.readResource({ uri, ...retry }, { allowInputRequired: true });
    }

    /** A whole call by the SDK's own loop: its text and the keys that were asked, in order. */
    async driven(call, answers = {}) {
        this.answers = answers;
        this.asked = [];
        const result = await call(this.client);
        return [textOf(result), this.asked];
    }

    drivenTool(name, args, answers) {
        return this.driven(client => client.callTool({ name, arguments: args }), answers);
    }
}

const retry = (state, inputResponses) => ({ requestState: state, ...(inputResponses && { inputResponses }) });

// ---- what the server says of itself ----------------------------------------------------------------------------------

const CHECKS = {
    'server/discover names the version and the capabilities': async our => {
        same(our.client.getNegotiatedProtocolVersion(), VERSION);
        same(our.client.getProtocolEra(), 'modern');
        const found = our.client.getDiscoverResult();
        same(found.supportedVersions, [VERSION]);
        same(Object.keys(found.capabilities).sort(), ['prompts', 'resources', 'tools']);
        same(our.client.getServerVersion().name, 'antiphon-demo');
        holds(our.client.getInstructions().startsWith('Tools that ask'), 'instructions', our.client.getInstructions());
    },

    'tools/list has the tools; what is asked is not an argument': async our => {
        const { tools } = await our.client.listTools();
        const found = tools.map(({ name, inputSchema }) => [name, inputSchema.type, Object.keys(inputSchema.properties).sort()]);
        same(found, [
            ['echo', 'object', ['text']],
            ['provision', 'object', ['name']],
            ['get_weather', 'object', ['location']],
            ['update_work_item', 'object', ['fields', 'workItemId']],
            ['book_table', 'object', ['date', 'party_size']],
            ['delete_folder', 'object', ['path']],
            ['pick_file', 'object', ['path']],
            ['pay_deposit', 'object', ['booking_id']],
            ['deposit_status', 'object', ['booking_id']],
            ['charge_once', 'object', ['amount']],
            ['load_shedding', 'object', ['portions']],
            ['ask_the_model', 'object', ['question']],
            ['rolling_upgrade', 'object', []],
        ]);
    },

    'prompts/list has briefing, which requires nothing': async our => {
        const { prompts } = await our.client.listPrompts();
        same(prompts.map(prompt => prompt.name), ['briefing']);
        same(prompts[0].arguments.map(({ name, required }) => [name, Boolean(required)]), [['topic', false]]);
    },

    'resources/list is empty': async our => same((await our.client.listResources()).resources, []),

    'resources/templates/list has report://{id}': async our => {
        const { resourceTemplates } = await our.client.listResourceTemplates();
        same(resourceTemplates.map(one => [one.name, one.uriTemplate]), [['report', 'report://{id}']]);
    },

    // ---- whole calls, driven by the SDK's loop -----------------------------------------------------------------------

    echo: async our => {
        for (const text of ['hello', '', 'Grüße, "you"\n\u2028 \u{1f600} \\u0041']) {
            same(await our.drivenTool('echo', { text }), [text, []]);
        }
    },

    'provision, accepted': async our => {
        const answers = { region: accept({ region: 'eu-west-1' }) };
        same(await our.drivenTool('provision', { name: 'orders' }, answers), [IN_IRELAND, ['region']]);
    },

    'get_weather, accepted': async our => {
        const answers = { github_login: accept({ name: 'octocat' }) };
        same(await our.drivenTool('get_weather', { location: 'New York' }, answers), [WEATHER, ['github_login']]);
    },

    'update_work_item, a duplicate takes two rounds': async our => {
        const answers = { resolution: accept({ resolution: 'Duplicate' }), duplicate_of: accept({ duplicateOfId: 4301 }) };
        same(await our.drivenTool('update_work_item', RESOLVED, answers), [DUPLICATE, ['resolution', 'duplicate_of']]);
    },

    'update_work_item, other resolutions take one round': async our => {
        for (const resolution of CHOICES.filter(choice => choice !== 'Duplicate')) {
            const answers = { resolution: accept({ resolution }) };
            same(await our.drivenTool('update_work_item', RESOLVED, answers), [
                `Bug #4522 resolved as ${resolution}. State set to Resolved.`,
                ['resolution'],
            ]);
        }
    },

    'update_work_item, other states take none': async our => {
        const active = { workItemId: 4522, fields: { 'System.State': 'Active' } };
        same(await our.drivenTool('update_work_item', active), ['Bug #4522 updated. State set to Active.', []]);
    },

    'briefing, accepted': async our => {
        const call = client => client.getPrompt({ name: 'briefing', arguments: { topic: 'the release' } });
        const found = await our.driven(call, { audience: accept({ audience: 'the board' }) });
        same(found, ['Write a briefing on the release for the board.', ['audience']]);
    },

    'report://q3, accepted': async our => {
        const call = client => client.readResource({ uri: 'report://q3' });
        const found = await our.driven(call, { audience: accept({ audience: 'engineers' }) });
        same(found, ['Report q3, for engineers: all is well.', ['audience']]);
    },
};

const SAID = { decline: 'declined', cancel: 'cancelled' };
const REFUSABLE = [
    ['provision', { name: 'orders' }, {}, 'region', 'Nothing was provisioned: the question was'],
    ['get_weather', { location: 'New York' }, {}, 'github_login', 'No weather: the question was'],
    ['update_work_item', RESOLVED, {}, 'resolution', undefined],
    ['update_work_item', RESOLVED, { resolution: accept({ resolution: 'Duplicate' }) }, 'duplicate_of', undefined],
];
for (const no of [DECLINE, CANCEL]) {
    for (const [name, args, before, key, begins] of REFUSABLE) {
        CHECKS[`${name}, ${no.action} of ${key}: said so, never asked again`] = async our => {
            const [text, asked] = await our.drivenTool(name, args, { ...before, [key]: no });
            same(asked, [...Object.keys(before), key]);
            if (begins) same(text, `${begins} ${SAID[no.action]}.`);
            else holds(/declin|cancel/i.test(text), 'what it said', text);
        };
    }
    CHECKS[`briefing, ${no.action}: said so, never asked again`] = async our => {
        const found = await our.driven(client => client.getPrompt({ name: 'briefing' }), { audience: no });
        same(found, [`There is no briefing to write: the question was ${SAID[no.action]}.`, ['audience']]);
    };
    CHECKS[`report://q3, ${no.action}: said so, never asked again`] = async our => {
        const found = await our.driven(client => client.readResource({ uri: 'report://q3' }), { audience: no });
        same(found, [`Report q3 was not written: the question was ${SAID[no.action]}.`, ['audience']]);
    };
}

// ---- rounds by hand; with two replicas the legs alternate ------------------------------------------------------------

const ORDER = { name: 'orders' };
const IRELAND = { region: accept({ region: 'eu-west-1' }) };
const TO_4301 = { duplicate_of: accept({ duplicateOfId: 4301 }) };

async function toRoundTwo(our) {
    const state = asks(await our.tool('update_work_item', RESOLVED), 'resolution');
    const answers = { resolution: accept({ resolution: 'Duplicate' }) };
    const second = asks(await our.tool('update_work_item', RESOLVED, retry(state, answers)), 'duplicate_of');
    holds(second !== state, 'the state did not move on', second);
    return second;
}

Object.assign(CHECKS, {
    'by hand: provision': async our => {
        const state = asks(await our.tool('provision', ORDER), 'region');
        same(textOf(await our.tool('provision', ORDER, retry(state, IRELAND))), IN_IRELAND);
    },

    'by hand: get_weather': async our => {
        const place = { location: 'New York' };
        const state = asks(await our.tool('get_weather', place), 'github_login');
        const answers = { github_login: accept({ name: 'octocat' }) };
        same(textOf(await our.tool('get_weather', place, retry(state, answers))), WEATHER);
    },

    'by hand: update_work_item, the earlier answer travels in the state': async our => {
        const state = await toRoundTwo(our);
        same(textOf(await our.tool('update_work_item', RESOLVED, retry(state, TO_4301))), DUPLICATE);
    },

    'by hand: a recorded answer is not replaced by one sent later': async our => {
        const answers = { ...TO_4301, resolution: accept({ resolution: 'Fixed' }) };
        const state = await toRoundTwo(our);
        same(textOf(await our.tool('update_work_item', RESOLVED, retry(state, answers))), DUPLICATE);
    },

    'by hand: briefing, with absent and with empty arguments': async our => {
        const state = asks(await our.prompt(), 'audience');
        const answers = { audience: accept({ audience: 'the board' }) };
        const said = textOf(await our.prompt({ arguments: {}, ...retry(state, answers) }));
        same(said, 'Write a briefing on the current state of the project for the board.');
    },

    'by hand: report://q3': async our => {
        const state = asks(await our.resource('report://q3'), 'audience');
        const result = await our.resource('report://q3', retry(state, { audience: accept({ audience: 'engineers' }) }));
        same(result.contents, [{ uri: 'report://q3', mimeType: 'text/plain', text: 'Report q3, for engineers: all is well.' }]);
    },

    'by hand: a retry without answers is asked again, and can be answered then': async our => {
        let state = asks(await our.tool('provision', ORDER), 'region');
        for (const nothing of [undefined, {}]) {
            state = asks(await our.tool('provision', ORDER, retry(state, nothing)), 'region', { again: true });
        }
        same(textOf(await our.tool('provision', ORDER, retry(state, IRELAND))), IN_IRELAND);
    },

    'by hand: in a later round a missing answer alone is asked again': async our => {
        let state = await toRoundTwo(our);
        state = asks(await our.tool('update_work_item', RESOLVED, retry(state)), 'duplicate_of', { again: true });
        same(textOf(await our.tool('update_work_item', RESOLVED, retry(state, TO_4301))), DUPLICATE);
    },

    'by hand: answers under unknown keys are ignored': async our => {
        const stray = { zone: accept({ region: 'nowhere' }), roots: { roots: [] } };
        let state = asks(await our.tool('provision', ORDER), 'region');
        state = asks(await our.tool('provision', ORDER, retry(state, stray)), 'region', { again: true });
        const answers = { ...stray, region: accept({ region: 'eu-west-1', zone: 'nowhere' }) };
        same(textOf(await our.tool('provision', ORDER, retry(state, answers))), IN_IRELAND);
    },

    'by hand: answers without the state that asked for them are ignored': async our => {
        asks(await our.tool('provision', ORDER, { inputResponses: IRELAND }), 'region');
    },

    'by hand: the same leg twice gives the same result': async our => {
        const state = asks(await our.tool('provision', ORDER), 'region');
        for (let times = 0; times < 2; times += 1) {
            same(textOf(await our.tool('provision', ORDER, retry(state, IRELAND))), IN_IRELAND);
        }
    },

    "by hand: a call begun by hand is finished by the SDK's loop": async our => {
        const state = asks(await our.tool('update_work_item', RESOLVED), 'resolution');
        const first = retry(state, { resolution: accept({ resolution: 'Duplicate' }) });
        const call = client => client.callTool({ name: 'update_work_item', arguments: RESOLVED, ...first });
        same(await our.driven(call, TO_4301), [DUPLICATE, ['duplicate_of']]);
    },

    "by hand: calls side by side do not see each other's answers": async our => {
        const one = async n => {
            const order = { name: `db-${n}` };
            const state = asks(await our.tool('provision', order), 'region');
            const answers = { region: accept({ region: `zone-${n}` }) };
            same(textOf(await our.tool('provision', order, retry(state, answers))), `Provisioned "db-${n}" in zone-${n}.`);
        };
        await Promise.all(Array.from({ length: 20 }, (_, n) => one(n)));
    },
});

const UNFIT = {
    'not one of the choices': accept({ resolution: 'Later' }),
    'another type': accept({ resolution: 7 }),
    'field missing': accept({}),
    'accepted without content': { action: 'accept' },
    'another kind of answer': { roots: [] },
};
for (const [what, answer] of Object.entries(UNFIT)) {
    CHECKS[`by hand: an answer that does not fit is asked again (${what})`] = async our => {
        let state = asks(await our.tool('update_work_item', RESOLVED), 'resolution');
        const again = await our.tool('update_work_item', RESOLVED, retry(state, { resolution: answer }));
        state = asks(again, 'resolution', { again: true });
        const answers = { resolution: accept({ resolution: 'Fixed' }) };
        const text = textOf(await our.tool('update_work_item', RESOLVED, retry(state, answers)));
        same(text, 'Bug #4522 resolved as Fixed. State set to Resolved.');
    };
}

// ---- refusals --------------------------------------------------------------------------------------------------------

Object.assign(CHECKS, {
    'a state that was tampered with is refused in one way': async our => {
        const state = asks(await our.tool('provision', ORDER), 'region');
        for (const wrong of Object.values(tampered(state))) {
            await refused(our.tool('provision', ORDER, retry(wrong, IRELAND)));
            await refused(our.tool('echo', { text: 'hi' }, retry(wrong)));
            await refused(our.prompt(retry(wrong)));
            await refused(our.resource('report://q3', retry(wrong)));
        }
    },

    'a state belongs to its tool, arguments, prompt and URI': async our => {
        const region = asks(await our.tool('provision', ORDER), 'region');
        await refused(our.tool('provision', { name: 'other' }, retry(region)));
        await refused(our.tool('echo', { text: 'orders' }, retry(region)));
        await refused(our.tool('get_weather', { location: 'New York' }, retry(region)));
        await refused(our.prompt(retry(region)));
        const q3 = asks(await our.resource('report://q3'), 'audience');
        await refused(our.resource('report://q4', retry(q3)));
        await refused(our.prompt(retry(q3)));
    },

    'an unknown tool, prompt or resource is a protocol error': async our => {
        await refused(our.tool('no_such_tool', {}), { code: -32602 });
        await refused(our.client.getPrompt({ name: 'no_such_prompt' }), { code: -32602 });
        await refused(our.client.readResource({ uri: 'nothing://here' }), { code: -32602 });
    },

    'a name beyond ASCII arrives as it is': async our => {
        const uri = 'report://gr\u00f6\u00dfe \u{1f600}';
        await refused(our.tool('gr\u00f6\u00dfe', {}), { code: -32602, message: 'Unknown tool: gr\u00f6\u00dfe' });
        const state = asks(await our.resource(uri), 'audience');
        const result = await our.resource(uri, retry(state, { audience: accept({ audience: 'engineers' }) }));
        same(textOf(result), 'Report gr\u00f6\u00dfe \u{1f600}, for engineers: all is well.');
    },

    'a missing argument is refused before anything is asked': async our => {
        const result = await our.tool('provision', {});
        holds(result.isError && !isInputRequiredResult(result), 'not a tool error', result);
    },

    'a client that cannot be asked is told which capability is missing': async our => {
        const mute = await our.connect({});
        try {
            for (const call of [
                () => mute.callTool({ name: 'provision', arguments: ORDER }),
                () => mute.getPrompt({ name: 'briefing' }),
                () => mute.readResource({ uri: 'report://q3' }),
            ]) {
                await refused(call(), { code: -32021, data: { requiredCapabilities: { elicitation: { form: {} } } } });
            }
            same(textOf(await mute.callTool({ name: 'echo', arguments: { text: 'hi' } })), 'hi');
        } finally {
            await mute.close();
        }
    },

    'a call that is given up at its question leaves the connection in order': async our => {
        const controller = new AbortController();
        const giveUp = () => (controller.abort(), DECLINE);
        our.answers = Object.defineProperty({}, 'region', { get: giveUp });
        const call = our.client.callTool({ name: 'provision', arguments: ORDER }, { signal: controller.signal });
        const caught = await call.then(result => holds(false, 'not given up', result), error => error);
        holds(caught instanceof SdkError, 'not an error of the SDK', reasonOf(caught));
        same(await our.drivenTool('provision', ORDER, IRELAND), [IN_IRELAND, ['region']]);
    },

    'an older revision has a session, on one replica': async our => {
        const old = new Client({ name: 'typescript-peer', version: '1.0.0' });
        const listed = old.connect(our.transport()).then(() => old.listTools());
        const [tools, error] = await listed.then(({ tools: found }) => [found], caught => [undefined, caught]);
        await old.close();
        if (our.targets.length === 1) return holds(tools?.some(({ name }) => name === 'provision'), 'not served', tools, error && reasonOf(error));
        // The next replica does not know it, and says so.
        return holds(error?.data?.status === 404 || /404|session/i.test(reasonOf(error)), 'not refused', tools, reasonOf(error));
    },
});

// ---- the run ---------------------------------------------------------------------------------------------------------

const OLDER = 'an older revision has a session, on one replica';

function inTime(work) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('no end in time')), PER_CHECK_MILLISECONDS);
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

function targetsOf(words) {
    if (words[0] === '--stdio' && words.length > 1) return ['stdio', 'stdio', [words.slice(1)]];
    const urls = words.filter(word => word !== '--http').map(word => new URL(word));
    if (!urls.length) throw new Error('give --http URL (once or twice) or --stdio COMMAND');
    return ['http', urls.length > 1 ? 'two replicas' : 'http', urls];
}

const tally = new Tally('client of ours');
const [transport, where, targets] = targetsOf(process.argv.slice(2));
for (const [mode, negotiated] of Object.entries(MODES)) {
    const label = `${where}, ${mode}`;
    const our = new Fleet(targets, negotiated);
    try {
        our.client = await inTime(our.connect());
        for (const [name, check] of Object.entries(CHECKS)) {
            const fault = await inTime(check(our)).then(() => '', reasonOf);
            tally.add({ label, transport, name, fault, era: name === OLDER ? '2025-11-25' : VERSION });
        }
        await our.client.close();
    } catch (error) {
        tally.add({ label, transport, name: 'connection', fault: reasonOf(error) });
    }
}
tally.end();
