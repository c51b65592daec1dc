/** Services of one ledger: what a follower does where the leader goes away amid a request, serves another ledger, or lost records. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RoleChange } from '../../src/gate/service/peers.js';
import { serveGate } from '../../src/gate/service/serve-gate.js';
import { makeToken, Tokens } from '../../src/gate/service/tokens.js';
import { memoryPlace } from '../agent/support.js';
import { expectError, Workshop } from '../cli/runner.js';
import { openGate } from './support.js';

const shop = new Workshop();
const { token, entry } = makeToken({ name: 'all', principals: ['agent:a1'], may: ['call', 'read'] });
const tokens = Tokens.parse(Buffer.from(JSON.stringify({ tokens: [entry] })));

interface Peer {
  readonly url: URL;
  /** Paths of what it was asked, without its health. */
  readonly asked: string[];
  readonly server: Server;
}

/** A peer that leads, and does with requests as it is told. */
async function peerOf(
  health: () => object,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Peer> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    request.resume();
    if (request.url === '/healthz') {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(health()));
      return;
    }
    asked.push(request.url ?? '');
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}/`), asked, server };
}

/** A service that follows the peer. */
async function follow(makePeer: (ledgerId: string) => Promise<Peer>) {
  const { gate } = await openGate(memoryPlace());
  const peer = await makePeer(gate.ledger.genesisId);
  const roles: RoleChange[] = [];
  const onRole = (change: RoleChange): void => void roles.push(change);
  const server = await serveGate({ gate, tokens, listen: { port: 0 }, peers: [peer.url], onRole });
  onTestFinished(() => server.close());
  const [url] = server.urls as [string];
  const ask = async (path: string, body?: object) => {
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { status, headers } = response;
    return { status, retryAfter: headers.get('retry-after'), body: (await response.json()) as object };
  };
  return { peer, roles, ask, gate };
}

const leading = (ledgerId: string) => ({
  status: 'ok',
  records: 9,
  role: 'leader',
  id: 'other',
  ledger_id: ledgerId,
  since: 1_000,
});
const ANOTHER_PROTOCOL = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n';
const READ = { tool: 'fs.read', params: { path: '/x' } };

describe('a follower whose leader goes away amid a request', () => {
  it.each([
    ['/v1/decide', { ...READ, ref: 'c1' }],
    ['/v1/settle', { ref: 'c0', outcome: 'success' }],
    ['/v1/budget', undefined],
  ])('takes over, and answers itself what can be asked again: %s', async (path, body) => {
    const { peer, roles, ask, gate } = await follow((ledgerId) =>
      peerOf(
        () => leading(ledgerId),
        ({ socket }) => {
          socket.destroy();
          peer.server.close();
          peer.server.closeAllConnections();
        },
      ),
    );
    await gate.decide({ ...READ, ref: 'c0' });
    expect((await ask(path, body)).status).toBe(200);
    expect(peer.asked).toEqual([path]);
    expect(roles.map(({ role }) => role)).toEqual(['follower', 'leader']);
  });

  it.each<[string, (socket: Socket) => unknown]>([
    ['goes away', (socket) => socket.destroy()],
    ['answers with another protocol', (socket) => socket.write(ANOTHER_PROTOCOL)],
  ])('tells who asked without an id of the call that it may have been done: it %s', async (_, go) => {
    const { peer, ask, gate } = await follow((ledgerId) =>
      peerOf(
        () => leading(ledgerId),
        ({ socket }) => void go(socket),
      ),
    );
    expect(await ask('/v1/decide', READ)).toMatchObject({
      status: 503,
      retryAfter: '1',
      body: { error: { code: 'LEADER_GONE' } },
    });
    expect(peer.asked).toEqual(['/v1/decide']);
    expect(gate.openCalls).toBe(0);
  });
});

it('a peer of another ledger is never followed', async () => {
  const { peer, roles, ask } = await follow(() =>
    peerOf(
      () => leading('sha-256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU'),
      (_, response) => response.end(),
    ),
  );
  expect(await ask('/v1/decide', { ...READ, ref: 'c1' })).toMatchObject({ body: { effect: 'allow' } });
  expect(peer.asked).toEqual([]);
  expect(roles).toEqual([{ role: 'leader', leader: undefined, code: 'LEDGER_MISMATCH' }]);
});

it('where a peer found that acknowledged records are gone, no other goes on', async () => {
  const { ask } = await follow((ledgerId) =>
    peerOf(
      () => ({ ...leading(ledgerId), status: 'failed', code: 'LEDGER_ROLLED_BACK', role: 'follower' }),
      (_, response) => response.end(),
    ),
  );
  const refused = { body: { error: { code: 'LEDGER_ROLLED_BACK' } } };
  expect(await ask('/v1/decide', { ...READ, ref: 'c1' })).toMatchObject(refused);
  expect(await ask('/healthz')).toMatchObject({ status: 503, body: { code: 'LEDGER_ROLLED_BACK' } });
});

it.each([
  [['--peer', 'http://127.0.0.1:9']],
  [['--peer', 'http://127.0.0.1:9', '--listen', '127.0.0.1:0']],
  [['--peer', 'http://user:secret@127.0.0.1:9', '--listen', '127.0.0.1:0', '--tokens', 'x.json']],
  [['--peer', 'unix:x.sock', '--listen', '127.0.0.1:0', '--tokens', 'x.json']],
])('serve %j is refused', (args) => {
  const run = shop.run(['serve', 'some.jsonl', '--principal', 'agent:a1', ...args]);
  expectError(run, 2, 'USAGE');
  expect(run.stderr).not.toContain('secret');
});
