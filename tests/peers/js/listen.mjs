// Streamable HTTP over node:http: one transport per session for the pushed era, and, where the SDK has it, a handler
// for the rounds era. Says where it listens in one line of JSON on stdout.
import http from 'node:http';

// With `TOKEN` in the environment, only requests that carry it as a bearer token are taken.
const wanted = process.env.TOKEN && `Bearer ${process.env.TOKEN}`;

export function listen(port, { openSession, modern, roundsOnly = false }) {
  const sessions = new Map();
  const server = http.createServer(async (request, response) => {
    if (wanted && request.headers.authorization !== wanted) {
      return void response.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="peers"' }).end();
    }
    try {
      if (roundsOnly || (modern && (request.headers['mcp-protocol-version'] ?? '') >= '2026-07-28')) return await modern(request, response);
      const body = request.method === 'POST' ? JSON.parse(await whole(request)) : undefined;
      let transport = sessions.get(request.headers['mcp-session-id']);
      if (!transport) {
        if (body?.method !== 'initialize') return void response.writeHead(request.headers['mcp-session-id'] ? 404 : 400).end();
        transport = await openSession((id, opened) => sessions.set(id, opened));
      }
      await transport.handleRequest(request, response, body);
    } catch (error) {
      console.error(error);
      if (!response.headersSent) response.writeHead(400);
      response.end();
    }
  });
  server.listen(port, '127.0.0.1', () => {
    console.log(JSON.stringify({ listening: `http://127.0.0.1:${server.address().port}/mcp` }));
  });
}

async function whole(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
