/** Two gates on two PostgreSQL servers: the primary is killed under load, and so is the gate that leads. Nothing is lost, nothing doubled. */

import { generateKeyPairSync } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { defined } from '../../src/base/defined.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { parsePrivateKey } from '../../src/api/index.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import { PostgresStore } from '../../src/log/postgres/postgres-store.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { makeToken } from '../../src/gate/service/tokens.js';
import { Workshop } from '../cli/runner.js';
import { freePorts, PeerService, PeerServices } from '../gate/peer-services.js';
import { readFrom } from '../store/conformance.js';
import { hasNoPostgres, PostgresServer } from './server.js';

const shop = new Workshop();
const SERVICE = fileURLToPath(new URL('children/peer-service.js', import.meta.url));
const AGENT = 'agent:a1';

interface Line {
  readonly event: {
    readonly event_type: string;
    readonly event_id: { readonly b64: string };
    readonly decision?: string;
    readonly authorization?: { readonly action?: { readonly request_key?: string } };
  };
}

async function startGates(url: string, count: number): Promise<PeerServices> {
  const { token, entry } = makeToken({ name: 'all', principals: [AGENT], may: ['call', 'read'] });
  shop.write('tokens.json', JSON.stringify({ tokens: [entry] }));
  const ports = await freePorts(count);
  const peers = ports.map((port) => `http://127.0.0.1:${port}/`);
  const all = ports.map((port, index) => {
    const options = {
      url,
      key: shop.path('key.pem'),
      tokens: shop.path('tokens.json'),
      port,
      peers,
      principalId: AGENT,
    };
    const running = shop.startProgram([process.execPath, SERVICE, JSON.stringify(options)]);
    onTestFinished(() => running.kill('SIGKILL'));
    return new PeerService(peers[index].slice(0, -1), running);
  });
  const services = new PeerServices(all, token);
  await services.running();
  return services;
}

/** A ledger with a grant of so many calls, whose key is in `key.pem`. */
async function makeLedger(url: string, cap: number, requires?: 'replicated'): Promise<void> {
  const { privateKey } = generateKeyPairSync('ed25519');
  shop.write('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }), 0o600);
  const signer = createSigner(parsePrivateKey(shop.read('key.pem')));
  const store = await PostgresStore.open(url, { create: true, ...defined({ requires }) });
  const made = await Ledger.open(store, { signer, create: { origin: 'example.com/tests/gates' } });
  await made.append({
    event: draftGrant({ principalId: AGENT, allowedTools: ['fs.*'], meterCaps: { calls: cap } }),
  });
  await made.close();
}

function bodiesOf(calls: number): object[] {
  return Array.from({ length: calls }, (_, n) => ({ ref: `c${n}`, tool: 'fs.read', params: { n } }));
}

/** Each answer is in the ledger once, and so many calls were allowed and begun. */
async function expectExact(
  url: string,
  answers: readonly Record<string, unknown>[],
  cap: number,
): Promise<void> {
  const store = await PostgresStore.open(url);
  onTestFinished(() => store.close());
  const events = (await readFrom(store)).lines.map((line) => (JSON.parse(line) as Line).event);
  expect((await verifyLedger(await store.source())).verdict).toBe('ok');
  const ids = events.map(({ event_id: id }) => `sha-256:${id.b64}`);
  for (const { authorization } of answers) expect(ids.filter((id) => id === authorization)).toHaveLength(1);
  expect(new Set(answers.map(({ authorization }) => authorization)).size).toBe(answers.length);
  expect(answers.filter(({ effect }) => effect === 'allow')).toHaveLength(cap);
  const keys = events.flatMap(({ decision, authorization }) =>
    decision === 'allow' ? (authorization?.action?.request_key ?? []) : [],
  );
  expect(keys).toHaveLength(cap);
  expect(new Set(keys).size).toBe(cap);
  expect(events.filter(({ event_type: type }) => type === 'x.northroot.start')).toHaveLength(cap);
}

describe.skipIf(hasNoPostgres)('two gates on two servers, with synchronous replication', () => {
  test('whose primary is killed, then the gate that leads: acknowledged lost 0, doubled 0, the cap exact', async () => {
    const primary = await PostgresServer.start();
    onTestFinished(() => primary.stop());
    const standby = await primary.startStandby('standby1');
    onTestFinished(() => standby.stop());
    await primary.reload({ synchronous_standby_names: 'standby1' });
    await primary.waitForStandbys('sync');
    const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
    const url = `postgres://postgres@${hosts}/postgres#ledger`;

    const [cap, calls] = [120, 200];
    await makeLedger(url, cap, 'replicated');
    const services = await startGates(url, 2);
    const leader = await services.settled();
    const odd: unknown[] = [];
    const bodies = bodiesOf(calls);
    let failover: Promise<void> | undefined;
    const answers = await services.load(bodies, 16, odd, (done) => {
      if (done === 40) failover = primary.kill().then(() => standby.promote());
      if (done === 110) leader.kill('SIGKILL');
    });
    await failover;
    expect(odd).toEqual([]);
    const [last] = services.all.filter((each) => each !== leader) as [PeerService];
    // Whoever asks again is answered as before.
    for (const n of [0, 39, 41, 109, 111]) {
      const again = await last.ask('/v1/decide', services.token, bodies[n]);
      if (answers[n]?.['effect'] !== 'allow') continue;
      expect(again.body).toMatchObject({ authorization: answers[n]['authorization'], is_repeated: true });
    }
    last.kill('SIGTERM');
    expect((await last.process.end()).status).toBe(0);

    await expectExact(url, answers, cap);
  });
});

describe.skipIf(hasNoPostgres)('two gates on one server', () => {
  test('of which the one that leads is paused under load, and goes on: the other leads, and the cap is exact', async () => {
    const server = await PostgresServer.start();
    onTestFinished(() => server.stop());
    const url = server.url('ledger');
    const [cap, calls] = [60, 160];
    await makeLedger(url, cap);
    const services = await startGates(url, 2);
    const leader = await services.settled();
    const others = services.all.filter((each) => each !== leader);
    const odd: unknown[] = [];
    let taken: Promise<unknown> = Promise.resolve();
    const answers = await services.load(bodiesOf(calls), 16, odd, (done) => {
      // Most likely it holds the lock.
      if (done !== 40) return;
      leader.kill('SIGSTOP');
      taken = services.settled(others).then(() => leader.kill('SIGCONT'));
    });
    await taken;
    await services.settled();
    expect(odd).toEqual([]);
    await services.stop();
    await expectExact(url, answers, cap);
  });
});
