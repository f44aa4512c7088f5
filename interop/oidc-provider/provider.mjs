// oidc-provider with every grant that antiphon's client supports, and a person who signs in there over plain HTTP.
//
//   node provider.mjs
//
// It prints `listening on ISSUER DRIVER`. A GET of DRIVER?url=URL opens a page of the issuer as the browser of a person who agrees
// does: the answer is the address to which the browser leaves the issuer, or nothing if it ends on a page there.

import { randomBytes } from 'node:crypto';
import http from 'node:http';
import { Provider } from 'oidc-provider';

const listen = (server) =>
  new Promise((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`)));

const server = http.createServer();
const issuer = await listen(server);

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'machine',
      client_secret: 'machine-secret',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  cookies: { keys: [randomBytes(32).toString('hex')] },
  scopes: ['openid', 'offline_access', 'mcp', 'write'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
  features: {
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    devInteractions: { enabled: true },
    dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'mcp write',
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 3600,
      }),
    },
    revocation: { enabled: true },
  },
});
provider.on('server_error', (_, fault) => console.error(fault));
server.on('request', provider.callback());

// The fields of the first form of a page that do not give up.
function filled(page, base) {
  const form = /<form[^>]*action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/.exec(page);
  if (!form) return undefined;
  const fields = new URLSearchParams();
  for (const [input] of form[2].matchAll(/<input[^>]*>/g)) {
    const name = /name="([^"]*)"/.exec(input)?.[1];
    const value = /value="([^"]*)"/.exec(input)?.[1] ?? '';
    if (name) fields.set(name, { login: 'ada', password: 'x' }[name] ?? value);
  }
  return { action: new URL(form[1].replaceAll('&amp;', '&'), base), fields };
}

async function visit(start) {
  const cookies = new Map();
  let url = new URL(start);
  let body;
  for (let step = 0; step < 30; step += 1) {
    const sent = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      method: body ? 'POST' : 'GET',
      body,
      headers: { cookie: sent },
      redirect: 'manual',
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [pair] = cookie.split(';');
      const at = pair.indexOf('=');
      cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    const location = response.headers.get('location');
    const page = await response.text();
    body = undefined;
    if (location) {
      url = new URL(location, url);
      if (url.origin !== issuer) return location;
      continue;
    }
    if (!response.ok) throw new Error(`${response.status} at ${url.pathname}: ${page}`);
    const form = filled(page, url);
    if (!form) return '';
    ({ action: url, fields: body } = form);
    // The code for a device is in the address of the page.
    if (body.has('user_code') && !body.get('user_code')) {
      body.set('user_code', new URL(start).searchParams.get('user_code'));
    }
  }
  throw new Error('the pages do not end');
}

const driver = http.createServer((request, response) => {
  visit(new URL(request.url, issuer).searchParams.get('url')).then(
    (location) => response.end(location),
    (fault) => {
      console.error(fault);
      response.writeHead(500).end(String(fault));
    },
  );
});
console.log(`listening on ${issuer} ${await listen(driver)}`);
