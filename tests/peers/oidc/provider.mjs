// A real OpenID provider (panva's oidc-provider) with two people and one consent page, for the tests that sign in.
//
//   node provider.mjs http PORT      (0 chooses one)
//
// REDIRECT_URIS in the environment lists, separated by spaces, what is registered for the client `connect` (secret
// `connect-secret`) and the public client `connect-public`. Whoever signs in is called what they type.
//
// With RESOURCES set, clients register themselves, tokens are for the resource that is asked for, end after 20 seconds and can
// be refreshed, and `connect` may look them up at /token/introspection.
import http from 'node:http';
import { Provider } from 'oidc-provider';

const server = http.createServer();
await new Promise((listening) => server.listen(Number(process.argv[3] ?? 0), '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const redirect_uris = (process.env.REDIRECT_URIS ?? '').split(' ').filter(Boolean);
const code = { redirect_uris, grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };

const resources = process.env.RESOURCES && {
  issueRefreshToken: () => true,
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'calendar.read calendar.write', audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: 20,
      }),
    },
  },
};

const provider = new Provider(issuer, {
  clients: [
    { client_id: 'connect', client_secret: 'connect-secret', ...code },
    { client_id: 'connect-public', token_endpoint_auth_method: 'none', ...code },
  ],
  cookies: { keys: ['only for tests'] },
  scopes: ['openid', 'offline_access', 'calendar.read', 'calendar.write'],
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  features: { devInteractions: { enabled: false } },
  ...resources,
});
provider.on('server_error', (_, error) => console.error(error));

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

const answer = provider.callback();
server.on('request', (request, response) => {
  if (!request.url.startsWith('/interaction/')) return void answer(request, response);
  interact(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(400);
    response.end(String(error?.message));
  });
});
console.log(JSON.stringify({ listening: issuer }));
