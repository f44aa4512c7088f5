// Drives the examples that ask with `await`, on two replicas behind a proxy, with the client of the TypeScript SDK.
//
//   examples_of_ours.mjs FLEET      the program `fleet` of antiphon-examples
//
// The cases stand in ../examples.json. One line per case; the last line is `N passed, N failed`, and any failure makes the
// exit code 1.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Tally, VERSION, reasonOf, start } from '../node.mjs';

const PER_CASE_MILLISECONDS = 30_000;
const MODES = { pinned: { pin: VERSION }, auto: 'auto' };
const CASES = JSON.parse(readFileSync(new URL('../examples.json', import.meta.url), 'utf8'));

function same(found, wanted) {
    if (!isDeepStrictEqual(found, wanted)) throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
}

/** The URLs of the replicas, and of their backend. */
class Fleet {
    static async start(program) {
        const fleet = new Fleet();
        fleet.process = start([program], { stdio: ['pipe', 'pipe', 'inherit'] });
        fleet.lines = createInterface(fleet.process.stdout)[Symbol.asyncIterator]();
        fleet.url = new URL((await fleet.line()).replace('listening on ', ''));
        fleet.backend = (await fleet.line()).replace('backend at ', '');
        return fleet;
    }

    async line() {
        const { value, done } = await this.lines.next();
        if (done) throw new Error('the fleet has ended');
        return value;
    }

    /** Has the line obeyed; the names of the replicas. */
    async tell(line) {
        this.process.stdin.write(`${line}\n`);
        return (await this.line()).split(' ');
    }

    async do(operation) {
        const headers = { 'content-type': 'application/json' };
        const reply = await fetch(this.backend, { method: 'POST', headers, body: JSON.stringify(operation) });
        if (!reply.ok) throw new Error(`the backend says ${reply.status}: ${await reply.text()}`);
        return reply.json();
    }

    effects() {
        return this.do({ operation: 'count' });
    }
}

/** The answer that is written as KEY.FIELD=VALUE or KEY=accept|decline|cancel. Keys may hold dots and `#`, values anything. */
function answerOf(written, key, params) {
    const action = ['accept', 'decline', 'cancel'].find(word => written.includes(`${key}=${word}`));
    if (action) return { action };
    const content = {};
    for (const [field, schema] of Object.entries(params.requestedSchema?.properties ?? {})) {
        const begin = `${key}.${field}=`;
        const text = written.find(line => line.startsWith(begin))?.slice(begin.length);
        if (text !== undefined) content[field] = schema.type === 'string' ? text : JSON.parse(text);
    }
    if (!Object.keys(content).length) throw new Error(`no answer for ${key}`);
    return { action: 'accept', content };
}

/** How often what was done since, by kind. */
function since(before, after) {
    const done = {};
    for (const [kind, counts] of Object.entries(after)) {
        const grown = Object.entries(counts).map(([key, count]) => count - (before[kind][key] ?? 0));
        const some = grown.filter(count => count).sort((a, b) => a - b);
        if (some.length) done[kind] = some;
    }
    return done;
}

/** A client of whoever the case says sits there; what they are asked is added to `asked` and `messages`. */
async function connect(our, mode, one, heard) {
    const { asked, messages } = heard;
    const capabilities = { elicitation: { form: {}, url: {} }, ...(one.sample && { sampling: {} }), ...(one.roots && { roots: {} }) };
    const client = new Client({ name: 'typescript-peer', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
    client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq: { id } }) => {
        asked.push(id);
        messages.push(params.message);
        heard.url = params.url ?? heard.url;
        if (one.deploy?.key === id) await our.tell(`deploy ${one.deploy.then}`);
        return answerOf(one.answers, id, params);
    });
    if (one.sample) {
        client.setRequestHandler('sampling/createMessage', (_, { mcpReq: { id } }) => {
            asked.push(id);
            return { role: 'assistant', content: { type: 'text', text: one.sample }, model: 'none' };
        });
    }
    if (one.roots) {
        client.setRequestHandler('roots/list', (_, { mcpReq: { id } }) => {
            asked.push(id);
            return { roots: one.roots.map(uri => ({ uri })) };
        });
    }
    const headers = one.bearer && { authorization: `Bearer ${one.bearer}` };
    await client.connect(new StreamableHTTPClientTransport(our.url, { requestInit: { headers } }));
    return client;
}

/** Opens the page, and pays there, as the case says who does. */
async function visit(url, visits = []) {
    for (const { user, status } of visits) {
        const headers = user ? { cookie: `user=${user}` } : {};
        for (const method of ['GET', 'POST']) same([method, user, (await fetch(url, { method, headers })).status], [method, user, status]);
    }
}

async function check(our, mode, one) {
    if (one.deploy) await our.tell(`deploy ${one.deploy.before}`);
    for (const operation of one.before ?? []) await our.do(operation);
    const [before, replicas] = [await our.effects(), await our.tell('replicas')];
    const heard = { asked: [], messages: [] };
    const client = await connect(our, mode, one, heard);
    const result = await client.callTool({ name: one.tool, arguments: one.arguments });
    await client.close();
    same([result.content[0].text, Boolean(result.isError)], [one.text, Boolean(one.is_error)]);
    await visit(heard.url, one.page);
    // Of one round, in any order.
    const rounds = one.asked.map(keys => heard.asked.splice(0, keys.length).sort());
    same([rounds, heard.asked], [one.asked.map(keys => [...keys].sort()), []]);
    if (one.messages) same(heard.messages, one.messages);
    same(since(before, await our.effects()), one.effects ?? {});
    const left = await our.tell('replicas');
    same(replicas.filter(name => !left.includes(name)).length, one.replaced ?? 0);
}

function inTime(work) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('no end in time')), PER_CASE_MILLISECONDS);
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

const tally = new Tally('client of ours');
for (const [name, mode] of Object.entries(MODES)) {
    const our = await Fleet.start(process.argv[2]);
    for (const one of CASES) {
        const fault = await inTime(check(our, mode, one)).then(() => '', reasonOf);
        tally.add({ label: `examples, ${name}`, transport: 'http', name: one.case, fault });
    }
    our.process.stdin.end();
}
tally.end();
