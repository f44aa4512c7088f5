// Signs in at our resource server with the client of the TypeScript SDK, which finds the way by our answers alone.
//
//   oauth_client_of_ours.mjs URL
//
// The server trusts oidc-provider: `read` needs the scope `mcp`, `write` another one. One line per case; the last line is
// `N passed, N failed`.

import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { Tally, VERSION, reasonOf } from '../node.mjs';
import { visit } from '../person.mjs';

const url = new URL(process.argv[2]);
const CASE_MILLISECONDS = 30_000;

/** Keeps everything in memory. */
class Store {
    asked = [];
    redirectUrl = 'http://127.0.0.1:9/callback';
    clientMetadata = {
        client_name: 'TypeScript',
        redirect_uris: [this.redirectUrl],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
    };

    clientInformation = () => this.client;
    saveClientInformation = client => void (this.client = client);
    tokens = () => this.known;
    saveTokens = tokens => void (this.known = tokens);
    codeVerifier = () => this.verifier;
    saveCodeVerifier = verifier => void (this.verifier = verifier);
    discoveryState = () => this.discovered;
    saveDiscoveryState = state => void (this.discovered = state);
    redirectToAuthorization = page => void this.asked.push(page);
}

function same(found, wanted) {
    if (found !== wanted) throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
}

/** Calls a tool over a connection of its own. The person agrees wherever the SDK asks. */
async function call(store, name, mode = { pin: VERSION }) {
    for (;;) {
        const transport = new StreamableHTTPClientTransport(url, { authProvider: store });
        const client = new Client({ name: 'typescript-peer', version: '1.0.0' }, { versionNegotiation: { mode } });
        const before = store.asked.length;
        try {
            await client.connect(transport);
            return (await client.callTool({ name })).content[0].text;
        } catch (error) {
            if (!UnauthorizedError.isInstance(error.cause ?? error) && store.asked.length === before) throw error;
            await transport.finishAuth(new URL(await visit(store.asked.at(-1))).searchParams);
        } finally {
            await client.close();
        }
    }
}

async function signIn(mode) {
    const store = new Store();
    for (let round = 0; round < 2; round += 1) same(await call(store, 'read', mode), 'ada');
    same(store.asked.length, 1);
    same(store.asked[0].searchParams.get('resource'), url.href);
    // It adds what renews a token.
    same(store.asked[0].searchParams.get('scope'), 'mcp offline_access');
}

async function refused() {
    const store = new Store();
    await call(store, 'read');
    store.known = { ...store.known, access_token: 'old' };
    same(await call(store, 'read'), 'ada');
    same(store.asked.length, 1);
}

async function stepUp() {
    const store = new Store();
    // The SDK registers for the first scopes only, and oidc-provider grants no other ones then: this registration names none.
    const json = async (...request) => (await fetch(...request)).json();
    const { authorization_servers: [issuer] } = await json(new URL(`/.well-known/oauth-protected-resource${url.pathname}`, url));
    const { registration_endpoint: registration } = await json(`${issuer}/.well-known/openid-configuration`);
    const body = JSON.stringify(store.clientMetadata);
    const known = await json(registration, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    store.client = { ...known, issuer };
    await call(store, 'read');
    same(await call(store, 'write'), 'ada');
    same(await call(store, 'read'), 'ada');
    same(store.asked.length, 2);
}

async function dpop() {
    const [store, session] = [new Store(), await DpopSession.create()];
    store.dpop = () => session;
    for (let round = 0; round < 2; round += 1) same(await call(store, 'read'), 'ada');
    same(store.known.token_type, 'DPoP');
    same(store.asked.length, 1);
}

const CASES = [
    ['sign-in: challenge, metadata, registration, PKCE', VERSION, () => signIn()],
    ['sign-in: challenge, metadata, registration, PKCE', '2025-11-25', () => signIn('legacy')],
    ['a token that the server refuses is renewed', VERSION, refused],
    ['step up', VERSION, stepUp],
    ['DPoP', VERSION, dpop],
];

const tally = new Tally('client of ours');
for (const [name, era, check] of CASES) {
    let fault, timer;
    const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error('it takes too long')), CASE_MILLISECONDS)));
    try {
        await Promise.race([check(), late]);
    } catch (error) {
        fault = reasonOf(error);
    }
    clearTimeout(timer);
    tally.add({ label: `http, ${era}`, transport: 'http', name, fault, era });
}
tally.end();
process.exit();
