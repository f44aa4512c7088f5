// Drives a server of the handshake revisions with a client of the TypeScript SDK, without the SDK itself: what is called,
// what is answered, what is to come of it.
//
//   legacy_client.mjs TABLE (--http URL | --sse URL | --stdio COMMAND ARGUMENT...)     a table of this folder
//   legacy_client.mjs ../examples.json --fleet FLEET      the program `fleet` of antiphon-examples, one of its replicas
//
// One line per case; the last line is `N passed, N failed`, and any failure makes the exit code 1.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { Tally, reasonOf, start } from '../node.mjs';

const PER_CASE_MILLISECONDS = 30_000;
const URL_ELICITATION_REQUIRED = -32042;
export const CAPABILITIES = { elicitation: { form: {}, url: {} }, roots: {}, sampling: {} };

function assert(holds, said) {
    if (!holds) throw new Error(said);
}

function same(found, wanted) {
    assert(isDeepStrictEqual(found, wanted), `found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
}

/** Whoever sits at the client: what the case says they answer, and what they were asked and told. */
export class Person {
    sitDown(one) {
        Object.assign(this, { one, asked: [], completed: [], heard: { progress: 0, logs: 0 }, url: '' });
    }

    /** Which of the case's questions this is. A question whose message is not written down is known by its fields. */
    keyOf(message, fields) {
        const { asks = [], messages = {} } = this.one;
        const fits = key => this.lines(key).every(([name]) => name in fields);
        const waiting = asks.flat().filter(key => !this.asked.includes(key));
        const fitting = waiting.filter(key => (key in messages ? messages[key] === message : fits(key)));
        assert(fitting.length, `not expected: ${message}`);
        const named = fitting.find(key => message.toLowerCase().includes(key.split('_')[0]));
        // What is answered with an action alone would fit any form.
        return named ?? fitting.find(key => this.lines(key).length) ?? fitting[0];
    }

    /** The fields of an answer, as they are written. */
    lines(key) {
        const own = this.one.answers.filter(line => line.startsWith(`${key}.`)).map(line => line.slice(key.length + 1));
        return own.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]);
    }

    elicit({ message, url = this.url, requestedSchema }) {
        const fields = requestedSchema?.properties ?? {};
        const key = this.keyOf(message, fields);
        this.asked.push(key);
        this.url = url;
        const action = ['accept', 'decline', 'cancel'].find(word => this.one.answers.includes(`${key}=${word}`));
        if (action) return { action };
        const typed = (name, value) => (fields[name]?.type === 'string' ? value : JSON.parse(value));
        return { action: 'accept', content: Object.fromEntries(this.lines(key).map(([name, value]) => [name, typed(name, value)])) };
    }

    sample() {
        this.asked.push('sample');
        return { role: 'assistant', content: { type: 'text', text: this.one.sample ?? '' }, model: 'none' };
    }

    roots() {
        this.asked.push('roots');
        return { roots: (this.one.roots ?? []).map(uri => ({ uri })) };
    }

    hear(what) {
        this.heard[what] += 1;
        this.news?.();
    }

    complete(id) {
        this.completed.push(id);
        this.news?.();
    }

    /** What is told arrives beside the result, before it or after. */
    async until(heard) {
        while (!heard()) await new Promise(resolve => (this.news = resolve));
    }
}

async function call(client, one) {
    const { kind, name, arguments: given } = one;
    if (kind === 'prompt') return [(await client.getPrompt({ name, arguments: given })).messages[0].content.text, false];
    if (kind === 'resource') return [(await client.readResource({ uri: name })).contents[0].text, false];
    // It is counted by a handler of notifications: the SDK's own forgets progress that is read together with the response.
    const result = await client.callTool({ name, arguments: given ?? {} }, { onprogress: () => {} });
    return [result.content[0].text, Boolean(result.isError)];
}

function checkResult([text, isError], outcome) {
    if ('text' in outcome) return same([text, isError], [outcome.text, false]);
    if ('tool_error' in outcome) return same([text, isError], [outcome.tool_error, true]);
    const wanted = outcome.tool_error_ends ?? outcome.refused;
    const holds = outcome.refused ? text.includes(wanted) : text.endsWith(wanted);
    return assert(wanted && isError && holds, `found ${text}, wanted ${JSON.stringify(outcome)}`);
}

function checkError(error, { refused, urls }) {
    if (urls) same([error.code, error.data?.elicitations?.map(({ url }) => url)], [URL_ELICITATION_REQUIRED, urls]);
    else if (!refused || !error.message?.includes(refused)) throw error;
}

async function play(client, person, one) {
    person.sitDown(one);
    const came = await call(client, one).then(
        said => () => checkResult(said, one.outcome),
        error => () => checkError(error, one.outcome),
    );
    came();
    // Those that come together, in any order.
    const wanted = one.asks ?? ['sample', 'roots'].filter(kind => kind in one).map(kind => [kind]);
    const rounds = wanted.map(keys => person.asked.splice(0, keys.length).sort());
    same([rounds, person.asked], [wanted.map(keys => [...keys].sort()), []]);
    const { progress = 0, logs = 0, completed = [] } = one;
    await person.until(() => person.heard.progress >= progress && person.heard.logs >= logs);
    await person.until(() => person.completed.length >= completed.length);
    same(person.completed, completed);
}

// ---- the examples, on a replica of a fleet ---------------------------------------------------------------------------

class Fleet {
    static async start(program) {
        const fleet = new Fleet();
        fleet.process = start([program], { stdio: ['pipe', 'pipe', 'inherit'] });
        const lines = createInterface(fleet.process.stdout)[Symbol.asyncIterator]();
        await lines.next();
        fleet.backend = (await lines.next()).value.replace('backend at ', '');
        fleet.process.stdin.write('addresses\n');
        fleet.url = (await lines.next()).value.split(' ')[0];
        return fleet;
    }

    async do(operation) {
        const headers = { 'content-type': 'application/json' };
        const reply = await fetch(this.backend, { method: 'POST', headers, body: JSON.stringify(operation) });
        assert(reply.ok, `the backend says ${reply.status}`);
        return reply.json();
    }
}

/** How often what was done since, by kind. */
function since(before, after) {
    const grown = counts => ([key, count]) => count - (counts[key] ?? 0);
    const done = Object.entries(after).map(([kind, counts]) => [kind, Object.entries(counts).map(grown(before[kind]))]);
    return Object.fromEntries(done.map(([kind, counts]) => [kind, counts.filter(Boolean).sort()]).filter(([, counts]) => counts.length));
}

/** Opens the page, and pays there, as the case says who does. */
async function visit(url, visits = []) {
    for (const { user, status } of visits) {
        const headers = user ? { cookie: `user=${user}` } : {};
        for (const method of ['GET', 'POST']) same([method, user, (await fetch(url, { method, headers })).status], [method, user, status]);
    }
}

/** A session lives on one replica, and ends with it: it outlives no other build. Without a fleet there is no backend. */
function isPlayed(example, onFleet) {
    const needsWorld = ['before', 'page', 'bearer'].some(member => member in example) || example.tool === 'deposit_status';
    return !example.deploy && (onFleet || !needsWorld);
}

/** A case of examples.json with the members of a table. */
function asOfTable(example) {
    const { case: id, tool: name, asked: asks, messages = [], text, is_error: isError } = example;
    const byKey = Object.fromEntries(asks.flat().slice(0, messages.length).map((key, at) => [key, messages[at]]));
    return { ...example, id, kind: 'tool', name, asks, messages: byKey, outcome: isError ? { tool_error: text } : { text } };
}

async function playExample(our, connect, example) {
    for (const operation of example.before ?? []) await our.do(operation);
    const before = await our.do({ operation: 'count' });
    const person = new Person();
    const session = await connect({ http: new URL(our.url), bearer: example.bearer }, person);
    await play(session.client, person, asOfTable(example)).finally(() => session.close());
    await visit(person.url, example.page);
    same(since(before, await our.do({ operation: 'count' })), example.effects ?? {});
    return session.revision;
}

// ---- all cases -------------------------------------------------------------------------------------------------------

function inTime(work) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('no end in time')), PER_CASE_MILLISECONDS);
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function runTable(tally, table, target, transport, connect) {
    const label = 'legacy';
    const person = new Person();
    try {
        const { client, revision: era, close } = await inTime(connect(target, person));
        for (const one of table) {
            const fault = await inTime(play(client, person, one)).then(() => '', reasonOf);
            tally.add({ label, transport, era, name: one.id, fault });
        }
        await close();
    } catch (error) {
        tally.add({ label, transport, era: '2025-11-25', name: 'the session begins and ends', fault: reasonOf(error) });
    }
}

async function runExamples(tally, examples, program, connect) {
    const our = await Fleet.start(program);
    for (const one of examples) {
        let era = '2025-11-25';
        const fault = await inTime(playExample(our, connect, one)).then(spoken => ((era = spoken), ''), reasonOf);
        tally.add({ label: 'legacy', transport: 'http', era, name: one.case, fault });
    }
    our.process.stdin.end();
}

/**
 * `connect(target, person)` resolves to `{ client, revision, close }`; of `target` one member is there: `http` or `sse`, URLs,
 * `http` with or without `bearer`, or `command`, words.
 */
export async function drive(connect) {
    const [path, way, ...words] = process.argv.slice(2);
    const written = JSON.parse(readFileSync(path, 'utf8'));
    const table = written.cases ?? written.filter(one => isPlayed(one, way === '--fleet'));
    const cases = written.cases ?? table.map(asOfTable);
    const tally = new Tally('client of ours');
    if (way === '--fleet') await runExamples(tally, table, words[0], connect);
    else if (way === '--stdio') await runTable(tally, cases, { command: words }, 'stdio', connect);
    else await runTable(tally, cases, { [way.slice(2)]: new URL(words[0]) }, 'http', connect);
    tally.end();
}
