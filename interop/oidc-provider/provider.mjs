// oidc-provider with every grant that antiphon's client supports, and a person who signs in there over plain HTTP.
//
//   node provider.mjs
//
// It prints `listening on ISSUER DRIVER`. A GET of DRIVER?url=URL opens a page of the issuer as the browser of a person who agrees
// does: the answer is the address to which the browser leaves the issuer, or nothing if it ends on a page there.

import { randomBytes } from 'node:crypto';
import http from 'node:http';
import { Provider } from 'oidc-provider';
import { visit } from '../person.mjs';

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
