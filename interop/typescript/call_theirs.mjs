// Runs `antiphon` against server_for_ours.mjs, over HTTP and stdio, and compares with server_for_ours.expect.json.
//
//   call_theirs.mjs PATH-TO-ANTIPHON      (INTEROP_SLOW=1 for the cases that wait)
//
// One line per check; the last line is `N passed, N failed`, and any failure makes the exit code 1.

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { Tally, VERSION, inTurns, reasonOf, run } from '../node.mjs';
import { PEER, peerOverHttp } from './peer.mjs';

const COMMANDS = { tool: 'call', prompt: 'prompt', resource: 'read' };
// The command line agrees to a page with its host.
const HOSTS = { 'checkout=accept': 'pay.example.com', 'page=accept': 'example.com' };
const NO_RESULT = [2, 4]; // usage, protocol: what stdout holds then is not laid down

const [antiphon] = process.argv.slice(2);
const { cases } = JSON.parse(readFileSync(new URL('server_for_ours.expect.json', import.meta.url), 'utf8'));

function commandFor(one, server) {
    const args = one.kind === 'resource' ? [] : ['--args', JSON.stringify(one.arguments ?? {})];
    const given = (one.answers ?? []).map(answer => (HOSTS[answer] ? `${answer}@${HOSTS[answer]}` : answer));
    const answers = given.flatMap(answer => ['--answer', answer]);
    return [antiphon, COMMANDS[one.kind], '--json', ...args, ...answers, one.name, ...server];
}

const textOf = result =>
    (result.content?.[0] ?? result.messages?.[0]?.content ?? result.contents?.[0])?.text;

function resultFaults({ outcome, structured }, result) {
    const found = [];
    const wanted = outcome.text ?? outcome.tool_error ?? outcome.tool_error_begins;
    const said = textOf(result);
    if (said !== wanted && !(outcome.tool_error_begins && said?.startsWith(wanted))) {
        found.push(`text ${JSON.stringify(said)}, wanted ${JSON.stringify(wanted)}`);
    }
    if (Boolean(result.isError) === (outcome.text !== undefined)) found.push(`isError is ${result.isError}`);
    if (structured !== undefined && !isDeepStrictEqual(result.structuredContent, structured)) {
        found.push(`structuredContent ${JSON.stringify(result.structuredContent)}`);
    }
    return found;
}

function faults(one, done) {
    const { cli } = one;
    const codes = cli.exit_any ?? [cli.exit];
    const found = codes.includes(done.code) ? [] : [`exit code ${done.code ?? done.signal}, wanted ${codes}`];
    const said = done.stdout + done.stderr;
    found.push(...(cli.names ?? []).filter(name => !said.includes(name)).map(name => `${name} is not mentioned`));
    if (cli.names_any && !cli.names_any.some(name => said.includes(name))) found.push(`none of ${cli.names_any} is mentioned`);
    if (found.length || NO_RESULT.includes(done.code) || cli.exit_any) return found;
    const reply = JSON.parse(done.stdout);
    if (reply.status !== cli.status) found.push(`status ${reply.status}, wanted ${cli.status}`);
    if (reply.rounds !== one.rounds) found.push(`rounds ${reply.rounds}, wanted ${one.rounds}`);
    if (cli.status !== 'pending') found.push(...resultFaults(one, reply.result ?? {}));
    return found;
}

async function play(one, server) {
    const done = await run(commandFor(one, server));
    const found = faults(one, done);
    if (found.length) found.push(`stdout: ${done.stdout.trim().slice(0, 400)}`, `stderr: ${done.stderr.trim().slice(-400)}`);
    return found;
}

// ---- what is not in the table ----------------------------------------------------------------------------------------

const CALL_TWICE = ['ship_order', '--args', '{"order":"A-1"}'];

/** The result of a command that ends well. */
async function asked(words, options) {
    const done = await run([antiphon, ...words], options);
    if (done.code !== 0) throw new Error(`exit code ${done.code}: ${done.stderr.trim().slice(-400)}`);
    return JSON.parse(done.stdout).result;
}

const same = (what, found, wanted) =>
    isDeepStrictEqual(found, wanted) ? [] : [`${what} ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`];

const MORE = {
    'server/discover': async server => {
        const result = await asked(['discover', '--json', ...server]);
        return [
            ...same('versions', result.supportedVersions, [VERSION]),
            ...same('capabilities', Object.keys(result.capabilities).sort(), ['prompts', 'resources', 'tools']),
        ];
    },
    'tools/list': async server => {
        const { tools } = await asked(['tools', '--json', ...server]);
        const provision = tools.find(tool => tool.name === 'provision');
        return [
            ...same('number of tools', tools.length, 23),
            ...same('arguments of provision', Object.keys(provision.inputSchema.properties), ['name']),
        ];
    },
    'a call of two rounds, each in a process of its own': async server => {
        const first = await run([antiphon, 'call', '--once', '--json', ...CALL_TWICE, ...server]);
        const goOn = (input, ...words) => run([antiphon, 'resume', '--json', ...words, '-', ...server], { input });
        const pending = done => JSON.stringify(JSON.parse(done.stdout).pending);
        const second = await goOn(pending(first), '--once', '--answer', 'country.country=Japan');
        const third = await goOn(pending(second), '--answer', 'carrier.carrier=Yamato');
        const codes = [first.code, second.code, third.code];
        return [...same('exit codes', codes, [3, 3, 0]), ...same('text', textOf(JSON.parse(third.stdout).result), 'A-1 goes to Japan by Yamato.')];
    },
};
/** The states of a process end with it, and over stdio every command starts one. */
const HTTP_ONLY = ['a call of two rounds, each in a process of its own'];

const tally = new Tally('server for ours');
const { url, stop } = await peerOverHttp();
try {
    const wanted = cases.filter(one => !one.later && (!one.slow || process.env.INTEROP_SLOW));
    const jobs = Object.entries({ http: [url], stdio: ['--', ...PEER, '--stdio'] }).flatMap(([transport, server]) => [
        ...Object.entries(MORE)
            .filter(([name]) => transport === 'http' || !HTTP_ONLY.includes(name))
            .map(([name, check]) => ({ transport, name, check: () => check(server) })),
        ...wanted.map(one => ({ transport, name: one.id, check: () => play(one, server) })),
    ]);
    const found = await inTurns(
        jobs.map(job => () => job.check().catch(error => [reasonOf(error)])),
        availableParallelism(),
    );
    jobs.forEach(({ transport, name }, index) =>
        tally.add({ label: `antiphon, ${transport}`, transport, name, fault: found[index].join('; ') }),
    );
} finally {
    stop();
}
tally.end();
