// Drives `antiphon serve-demo` from a web page of another origin, in Chromium.
//
//   client_of_ours.mjs CHROMIUM COMMAND ARGUMENT...      the command is `serve-demo` with its keys
//
// Two local servers have the page: the origin of the first is allowed, and one of this machine; that of the second is neither. One
// line per case; the last line is `N passed, N failed`, and any failure makes the exit code 1.

import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { Tally, VERSION, reasonOf, start } from '../node.mjs';

const PER_CASE_MILLISECONDS = 30_000;
const OLDER = '2025-11-25';
// It may run as root, in a container, and reaches nothing but this machine.
const FLAGS = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    // A host that is not this machine, for the browser.
    '--host-resolver-rules=MAP other.test 127.0.0.1',
];

const accept = content => ({ action: 'accept', content });
const EU = accept({ region: 'eu-west-1' });
const PROVISION = { tool: 'provision', arguments: { name: 'orders' } };
const UPDATE = { tool: 'update_work_item', arguments: { workItemId: 4522, fields: { 'System.State': 'Resolved' } } };
const IN_IRELAND = 'Provisioned "orders" in eu-west-1.';
const DUPLICATE = 'Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.';

function same(found, wanted, what = 'found') {
    if (!isDeepStrictEqual(found, wanted)) {
        throw new Error(`${what} ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
    }
}

/** The call ended with this text, after these forms. */
function done({ asked, text, isError, error }, wanted, forms) {
    same({ asked, text, isError, error }, { asked: forms, text: wanted, isError: false, error: undefined });
}

/** The browser gave the page no response, and the call failed. */
function refused({ responses, blocked, text, error }) {
    same([responses, [...new Set(blocked)], text], [[], ['TypeError'], undefined]);
    if (!error) throw new Error('the call did not fail');
}

// ---- the cases -------------------------------------------------------------------------------------------------------

/** The cases of both eras: where the page is, which server it calls, and what must come of it. */
const CALLS = {
    'page: a tool that asks is answered': {
        job: { ...PROVISION, answers: [EU] },
        check: found => done(found, IN_IRELAND, ['region']),
    },
    'page: a tool that asks twice is answered': {
        job: { ...UPDATE, answers: [accept({ resolution: 'Duplicate' }), accept({ duplicateOfId: 4301 })] },
        check: found => done(found, DUPLICATE, ['resolution', 'duplicateOfId']),
    },
    'page: an error of the protocol is read': {
        job: { tool: 'no_such_tool', arguments: {}, answers: [] },
        check: found => {
            if (!found.error?.includes('no_such_tool')) throw new Error(JSON.stringify(found));
        },
    },
    'page: a bearer token is sent': {
        server: 'closed',
        job: { ...PROVISION, answers: [EU], bearer: 'demo-ada' },
        check: found => done(found, IN_IRELAND, ['region']),
    },
    'page: without a token, status and challenge are read': {
        server: 'closed',
        job: { ...PROVISION, answers: [] },
        check: ({ responses }) => same([responses[0].status, responses[0].challenge], [401, 'Bearer']),
    },
    'page: an origin that is not allowed is refused': {
        page: 'other',
        job: { ...PROVISION, answers: [EU] },
        check: refused,
    },
    'page: no origin is allowed by default': {
        page: 'other',
        server: 'default',
        job: { ...PROVISION, answers: [EU] },
        check: refused,
    },
};

const MODES = { [VERSION]: { pin: VERSION }, [OLDER]: 'legacy' };

/** The session is readable, and the page ends it. */
function isEnded({ version, responses }) {
    same(version, OLDER);
    if (!responses[0].session) throw new Error('the page cannot read Mcp-Session-Id');
    const { method, status } = responses.find(response => response.method === 'DELETE') ?? {};
    same([method, status], ['DELETE', 204]);
}

/** Headers that repeat arguments have names that no list of headers can have. */
async function headersOfArguments(pages, urls) {
    const meta = {
        'io.modelcontextprotocol/protocolVersion': VERSION,
        'io.modelcontextprotocol/clientCapabilities': {},
    };
    const params = { name: 'echo', arguments: { text: 'hi' }, _meta: meta };
    const headers = {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'mcp-protocol-version': VERSION,
        'mcp-method': 'tools/call',
        'mcp-name': 'echo',
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const send = more => {
        const job = { url: urls.open, method: 'POST', headers: { ...headers, ...more }, body };
        return pages.own.evaluate(job => globalThis.send(job), job);
    };
    const sent = await send({ 'mcp-param-region': 'eu' });
    same([sent.status, JSON.parse(sent.body).result?.content[0].text], [200, 'hi']);
    same(await send({ 'x-secret': 'eu' }), { error: 'TypeError' }, 'a header that is not allowed:');
}

/** The cases, as name, revision and check. */
function cases(pages, urls) {
    const call = ({ page = 'own', server = 'open', job }, mode) =>
        pages[page].evaluate(job => globalThis.call(job), { ...job, mode, url: urls[server] });
    const all = Object.entries(MODES).flatMap(([era, mode]) =>
        Object.entries(CALLS).map(([name, one]) => {
            const check = async () => {
                const found = await call(one, mode);
                // A call that ended has a version.
                if (found.text !== undefined) same(found.version, era, 'version');
                one.check(found);
            };
            return { name, era, check };
        }),
    );
    const ended = { job: { ...PROVISION, answers: [EU] } };
    return [
        ...all,
        { name: 'page: headers of arguments are sent', era: VERSION, check: () => headersOfArguments(pages, urls) },
        { name: 'page: a session is ended', era: OLDER, check: async () => isEnded(await call(ended, 'legacy')) },
    ];
}

// ---- the page, the servers, the browser ------------------------------------------------------------------------------

/** Serves the page with this script; its origin, and what ends it. */
async function servePage(script, host) {
    const server = createServer((request, response) => {
        const [type, body] = request.url === '/page.js' ? ['text/javascript', script] : ['text/html', '<script src="/page.js"></script>'];
        response.setHeader('content-type', type).end(body);
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    return { origin: `http://${host}:${server.address().port}`, stop: () => server.close() };
}

/** Starts the command; its URL, and what ends it. */
async function serveDemo(command, ...more) {
    const child = start([...command, '--listen', '127.0.0.1:0', ...more], { stdio: ['ignore', 'ignore', 'pipe'] });
    for await (const line of createInterface(child.stderr)) {
        const ready = /^listening on (http:\S+)$/.exec(line);
        child.stderr.resume();
        if (ready) return { url: ready[1], stop: () => child.kill() };
    }
    throw new Error(`it ended before it was ready: ${command.join(' ')}`);
}

function inTime(work) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('no end in time')), PER_CASE_MILLISECONDS);
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function open(browser, origin) {
    // Each page has storage and a cache of its own.
    const page = await (await browser.newContext()).newPage();
    await page.goto(origin);
    return page;
}

const [executablePath, ...command] = process.argv.slice(2);
const tally = new Tally('client of ours');
const toStop = [];
try {
    const bundle = await build({
        entryPoints: [new URL('page.mjs', import.meta.url).pathname],
        bundle: true,
        format: 'iife',
        platform: 'browser',
        write: false,
        logLevel: 'error',
    });
    const [own, other] = await Promise.all(['127.0.0.1', 'other.test'].map(host => servePage(bundle.outputFiles[0].text, host)));
    toStop.push(own.stop, other.stop);
    const allowed = ['--allow-origin', own.origin];
    const [opened, closed, byDefault] = await Promise.all([
        serveDemo(command, ...allowed),
        serveDemo(command, ...allowed, '--token', 'demo-ada=ada'),
        serveDemo(command),
    ]);
    toStop.push(opened.stop, closed.stop, byDefault.stop);
    const browser = await chromium.launch({ executablePath, args: FLAGS });
    toStop.push(() => browser.close());
    const pages = { own: await open(browser, own.origin), other: await open(browser, other.origin) };
    const urls = { open: opened.url, closed: closed.url, default: byDefault.url };
    for (const { name, era, check } of cases(pages, urls)) {
        const fault = await inTime(check()).then(() => '', reasonOf);
        tally.add({ label: era, transport: 'http', name, fault, era });
    }
} catch (error) {
    tally.add({ label: VERSION, transport: 'http', name: 'page: the browser starts', fault: reasonOf(error) });
} finally {
    for (const stop of toStop.reverse()) await stop();
}
tally.end();
