// `antiphon login`, `call` and `logout` at a server of another SDK, with a person who signs in there.
//
//   calls_theirs.mjs ANTIPHON URL ERA [--expires] [--lives] [--removed]
//
// ERA        the revision that the server speaks
// --expires  the first access token of a sign-in expires after a second
// --lives    an access token is valid until it expires: only its refresh token is revoked
// --removed  the authorization server does not revoke
//
// The server has the tools `who`, which returns the name of the person, and `end_token`, which ends the token of the call.
// ANTIPHON_TOKENS is an empty folder. One line per case; the last line is `N passed, N failed`.

import { Tally, reasonOf, run, start } from '../node.mjs';
import { visit } from '../person.mjs';

const [antiphon, url, era, ...words] = process.argv.slice(2);
const CASE_SECONDS = 30;

function same(found, wanted) {
    if (found !== wanted) throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
}

/** What `antiphon` writes on standard output. */
async function ours(...words) {
    const { code, stdout, stderr } = await run([antiphon, ...words], { seconds: CASE_SECONDS });
    if (code !== 0) throw new Error(`\`antiphon ${words.join(' ')}\` ended with ${code}: ${stderr.trim()}`);
    return stdout.trim();
}

const call = tool => ours('call', tool, url);
const whoami = async () => JSON.parse(await ours('whoami', '--json', url)).signedIn;

/** The status of a request with this token. */
async function statusWith(token) {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: `Bearer ${token}` };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const response = await fetch(url, { method: 'POST', headers, body });
    await response.body?.cancel();
    return response.status;
}

async function signIn() {
    const child = start([antiphon, 'login', url], { stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = new Promise(done => child.once('close', done));
    let said = '';
    const page = await new Promise(found => {
        child.stderr.setEncoding('utf8').on('data', piece => {
            said += piece;
            const line = /^The page: (\S+)$/m.exec(said);
            if (line) found(line[1]);
        });
        child.once('close', () => found(undefined));
    });
    if (page) {
        const query = new URL(page).searchParams;
        same(query.get('code_challenge_method'), 'S256');
        same(query.get('resource'), url);
        await (await fetch(await visit(page))).text();
    }
    const code = await ended;
    if (code !== 0) throw new Error(`\`antiphon login\` ended with ${code}: ${said.trim().slice(-500)}`);
    const known = await whoami();
    same(known.renews, true);
    same(known.scopes.includes('mcp'), true);
}

async function expires() {
    // `token` renews an old token; an earlier case may have done so.
    let left = 0;
    while (left < 60) {
        await ours('token', url);
        left = (await whoami()).expiresInSeconds;
    }
    same(await call('who'), 'ada');
}

async function ends() {
    const before = await ours('token', url);
    same(await call('end_token'), 'ended');
    same(await statusWith(before), 401);
    same(await call('who'), 'ada');
    same((await ours('token', url)) === before, false);
}

async function logout() {
    const token = await ours('token', url);
    const { status } = JSON.parse(await ours('logout', '--json', url));
    same(status, words.includes('--removed') ? 'removed' : 'revoked');
    if (!words.includes('--lives')) same(await statusWith(token), 401);
    same((await run([antiphon, 'whoami', url])).code, 3);
}

const CASES = [
    ['sign-in: registration, PKCE, resource', signIn],
    ['a call with the token', async () => same(await call('who'), 'ada')],
    ...(words.includes('--expires') ? [['an expired token is renewed', expires]] : []),
    ['a token that the server ended is renewed', ends],
    ['logout', logout],
];

const tally = new Tally('server for ours');
for (const [name, check] of CASES) {
    let fault;
    try {
        let timer;
        const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error('it takes too long')), CASE_SECONDS * 1000)));
        await Promise.race([check(), late]).finally(() => clearTimeout(timer));
    } catch (error) {
        fault = reasonOf(error);
    }
    tally.add({ label: `http, ${era}`, transport: 'http', name, fault, era });
}
tally.end();
process.exit();
