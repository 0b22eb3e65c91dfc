// A real OpenID provider (panva's oidc-provider) with two people and one consent page, for the tests that sign in.
//
//   node provider.mjs http PORT      (0 chooses one)
//
// REDIRECT_URIS in the environment lists, separated by spaces, what is registered for the client `connect` (secret
// `connect-secret`) and the public client `connect-public`. Whoever signs in is called what they type.
//
// With LOGOUT_URI set, the client `connect` is told there who has logged out (POST /session/end/confirm).
//
// POST /groups with `NAME=GROUP` puts a person into that group alone.
//
// With RESOURCES set, clients register themselves, tokens are for the resource that is asked for, end after LIFETIME seconds
// (20) and can be refreshed. They are JSON Web Tokens if TOKENS is `jwt`; the others can be looked up at /token/introspection
// and ended at /token/revocation, and the client `gateway` (secret `gateway-secret`) may exchange them for those of another
// resource (RFC 8693). The client `program` (secret `program-secret`) has tokens of its own. POST /rotate takes another signing
// key and forgets everything before.
import { generateKeyPairSync } from 'node:crypto';
import http from 'node:http';
import { Provider, errors } from 'oidc-provider';

const server = http.createServer();
await new Promise((listening) => server.listen(Number(process.argv[3] ?? 0), '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const redirect_uris = (process.env.REDIRECT_URIS ?? '').split(' ').filter(Boolean);
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const code = { redirect_uris, grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };
const logout = process.env.LOGOUT_URI && (
  { backchannel_logout_uri: process.env.LOGOUT_URI, backchannel_logout_session_required: true }
);
const machine = (name, ...grant_types) => (
  { client_id: name, client_secret: `${name}-secret`, redirect_uris: [], grant_types, response_types: [] }
);

const serverOf = (resource) => ({
  scope: 'calendar.read calendar.write mcp',
  audience: resource,
  accessTokenFormat: process.env.TOKENS ?? 'opaque',
  accessTokenTTL: Number(process.env.LIFETIME ?? 20),
});
const resources = process.env.RESOURCES && {
  issueRefreshToken: () => true,
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => serverOf(resource),
    },
  },
};

const groups = new Map();
const account = (id) => ({
  sub: id, name: `${id[0].toUpperCase()}${id.slice(1)} at the provider`, groups: [groups.get(id) ?? 'leads'],
  email: `${id}@example.com`, email_verified: id !== 'mallory',
});

const keys = () => [{ ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), use: 'sig' }];

function start() {
  const provider = new Provider(issuer, {
    clients: [
      { client_id: 'connect', client_secret: 'connect-secret', ...code, ...logout },
      { client_id: 'connect-public', token_endpoint_auth_method: 'none', ...code },
      ...resources ? [machine('program', 'client_credentials'), machine('gateway', EXCHANGE)] : [],
    ],
    cookies: { keys: ['only for tests'] },
    jwks: { keys: keys() },
    scopes: ['openid', 'offline_access', 'calendar.read', 'calendar.write', 'mcp'],
    pkce: { required: () => true },
    // As by default, the ID token has none of these; UserInfo has those of the scopes that are asked for.
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => account(id) }),
    // By itself it sends nothing to loopback.
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: Boolean(process.env.LOGOUT_URI) } },
    ...resources,
  });
  provider.on('server_error', (_, error) => console.error(error));
  provider.on('backchannel.error', (_, error) => console.error(error));
  if (resources) {
    const parameters = ['subject_token', 'subject_token_type', 'requested_token_type', 'resource', 'scope'];
    provider.registerGrantType(EXCHANGE, exchange, parameters);
  }
  return provider;
}

// A token of the same person for another resource.
async function exchange(ctx) {
  const { client, params, provider } = ctx.oidc;
  const subject = await provider.AccessToken.find(params.subject_token);
  if (!subject?.isValid) throw new errors.InvalidGrant('the token is not known');
  const token = new provider.AccessToken({ accountId: subject.accountId, client, gty: EXCHANGE });
  token.resourceServer = new provider.ResourceServer(params.resource, serverOf(params.resource));
  token.scope = params.scope;
  ctx.body = {
    access_token: await token.save(),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: token.expiration,
  };
}

const page = (uid, title, fields, button) => `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
<h1>${title}</h1><form method="post" action="/interaction/${uid}">${fields}<button id="yes">${button}</button></form>
<form method="post" action="/interaction/${uid}"><input type="hidden" name="no" value="1"><button id="no">No</button></form>`;

async function interact(request, response) {
  const details = await provider.interactionDetails(request, response);
  const { uid, prompt, params, session } = details;
  if (request.method === 'GET') {
    const login = prompt.name === 'login';
    const fields = login ? '<label>Name <input name="login" id="login" required></label>' : '';
    const title = login ? 'Sign in' : `Let ${params.client_id} use ${params.scope}?`;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    return void response.end(page(uid, title, fields, login ? 'Sign in' : 'Allow'));
  }
  const form = new URLSearchParams(await whole(request));
  let result;
  if (form.has('no')) {
    result = { error: 'access_denied', error_description: '<b>the person said no</b>' };
  } else if (prompt.name === 'login') {
    result = { login: { accountId: form.get('login') } };
  } else {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope ?? 'openid');
    if (params.resource) grant.addResourceScope(params.resource, params.scope ?? 'calendar.read');
    result = { consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: !form.has('no') });
}

async function whole(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

let provider = start();
let answer = provider.callback();
server.on('request', (request, response) => {
  if (resources && request.method === 'POST' && request.url === '/rotate') {
    provider = start();
    answer = provider.callback();
    return void response.end();
  }
  if (request.method === 'POST' && request.url === '/groups') {
    return void whole(request).then((form) => {
      for (const [name, group] of new URLSearchParams(form)) groups.set(name, group);
      response.end();
    });
  }
  if (!request.url.startsWith('/interaction/')) return void answer(request, response);
  interact(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(400);
    response.end(String(error?.message));
  });
});
console.log(JSON.stringify({ listening: issuer }));
