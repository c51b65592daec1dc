/** A service over a database that is killed between a decision and its answer: the client asks again, and is answered the same. */

import { generateKeyPairSync } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeToken } from '../../src/gate/service/tokens.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { parsePrivateKey } from '../../src/api/index.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import { PostgresStore } from '../../src/log/postgres/postgres-store.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { type Running, Workshop } from '../cli/runner.js';
import { freePorts } from '../gate/peer-services.js';
import { readFrom } from '../store/conformance.js';
import { hasNoPostgres, PostgresServer } from './server.js';

const shop = new Workshop();
const SERVICE = fileURLToPath(new URL('children/peer-service.js', import.meta.url));
const AGENT = 'agent:a1';
const CALL = { ref: 'c1', session: 's', tool: 'fs.read', params: { path: '/x' } };
const DONE = { ref: 'c1', session: 's', outcome: 'success' };

type Body = Record<string, unknown>;

interface Service {
  readonly running: Running;
  /** Undefined where the service died before it answered. */
  readonly ask: (path: string, body: object) => Promise<Body | undefined>;
}

/** @param dies - At which append, and when. */
async function start(url: string, token: string, dies?: object): Promise<Service> {
  const [port] = await freePorts(1);
  const options = { url, port, peers: [], principalId: AGENT, dies };
  const files = { key: shop.path('key.pem'), tokens: shop.path('tokens.json') };
  const running = shop.startProgram([process.execPath, SERVICE, JSON.stringify({ ...options, ...files })]);
  onTestFinished(() => running.kill('SIGKILL'));
  await running.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const ask = (path: string, body: object): Promise<Body | undefined> =>
    fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      .then((response) => response.json() as Promise<Body>)
      .catch(() => undefined);
  return { running, ask };
}

describe.skipIf(hasNoPostgres)('a service over PostgreSQL that is killed', () => {
  let server: PostgresServer;
  let ledgers = 0;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server.stop());

  // The first append is the decision with its start, the second the execution.
  test.each([
    ['before the decision', { append: 1, moment: 'before' }],
    ['while the server has the decision', { append: 1, moment: 'amid' }],
    ['between the decision and its answer', { append: 1, moment: 'after' }],
    ['while the server has the report', { append: 2, moment: 'amid' }],
    ['between the report and its answer', { append: 2, moment: 'after' }],
  ])('%s: who asks again is answered the same', async (_, dies) => {
    const url = `postgres://postgres@127.0.0.1:${server.port}/postgres#ledger${(ledgers += 1)}`;
    const { privateKey } = generateKeyPairSync('ed25519');
    shop.write('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }), 0o600);
    const { token, entry } = makeToken({ name: 'all', principals: [AGENT], may: ['call', 'read'] });
    shop.write('tokens.json', JSON.stringify({ tokens: [entry] }));
    const signer = createSigner(parsePrivateKey(shop.read('key.pem')));
    const made = await Ledger.open(await PostgresStore.open(url, { create: true }), {
      signer,
      create: { origin: 'example.com/tests/killed' },
    });
    const grant = { principalId: AGENT, allowedTools: ['fs.*'], meterCaps: { calls: 1 } };
    await made.append({ event: draftGrant(grant) });
    await made.close();

    const service = await start(url, token, dies);
    const first = await service.ask('/v1/decide', CALL);
    const reported = first === undefined ? undefined : await service.ask('/v1/settle', DONE);
    await service.running.end();
    expect([first, reported].filter((answer) => answer !== undefined)).toHaveLength(dies.append - 1);

    const store = await PostgresStore.open(url);
    onTestFinished(() => store.close());
    const events = async (): Promise<Body[]> =>
      (await readFrom(store)).lines.map((line) => (JSON.parse(line) as { readonly event: Body }).event);
    const next = await start(url, token);
    const again = await next.ask('/v1/decide', CALL);
    const types = (await events()).map(({ event_type: type }) => type);
    const wasReported = types.includes('execution');
    if (wasReported) expect(again).toMatchObject({ effect: 'deny', code: 'AUTHORIZATION_REUSED' });
    else expect(again).toMatchObject({ effect: 'allow', ref: 'c1' });
    if (dies.moment === 'after') expect(again).toMatchObject({ is_repeated: true });
    if (first !== undefined) expect(again).toMatchObject({ authorization: first['authorization'] });
    expect(await next.ask('/v1/decide', CALL)).toMatchObject({
      effect: again?.['effect'],
      authorization: again?.['authorization'],
      is_repeated: true,
    });
    const settled = await next.ask('/v1/settle', DONE);
    expect(settled?.['authorization']).toBe(again?.['authorization']);
    expect(settled?.['recorded'] === null).toBe(wasReported);
    next.running.kill('SIGTERM');
    await next.running.end();
    expect((await events()).map(({ event_type: type }) => type)).toEqual([
      'genesis',
      'authorization',
      'authorization',
      'x.northroot.start',
      'execution',
    ]);
    expect((await verifyLedger(await store.source())).verdict).toBe('ok');
  });
});
