/** The project's own adapter against the project's own server: both ledgers verify, and say the same. */

import { expect, it, onTestFinished } from 'vitest';
import { serveGate } from '../../../src/gate/service/serve-gate.js';
import { clasper, ClasperClient, clasperFace, writeExchange } from '../../../src/hosts/clasper/index.js';
import { encodeUtf8 } from '../../../src/base/bytes/text.js';
import { reconcileLedger } from '../../../src/hosts/shared/reconcile.js';
import { readSource } from '../../../src/hosts/shared/reconcile-sources.js';
import { filePlace, openLive } from '../../agent/support.js';
import { signer } from '../../writer/support.js';
import { live, SECRETS, TENANT, token } from './live-kit.js';

it('asks, waits for an approval, uses tools and reports', async () => {
  const served = await live();
  const lines: string[] = [];
  const server = await serveGate({
    gate: served.gate,
    listen: { port: 0 },
    faces: [
      clasperFace({
        secrets: SECRETS,
        approveCapabilities: ['shell.*'],
        onExchange: (exchange) => Promise.resolve(void lines.push(`${writeExchange(exchange)}\n`)),
      }),
    ],
  });
  onTestFinished(() => server.close());
  const place = filePlace();
  const problems: unknown[] = [];
  const client = new ClasperClient({
    endpoint: server.urls[0],
    adapterToken: token(),
    adapterId: 'openclaw',
    tenantId: TENANT,
    workspaceId: TENANT,
    version: '1.0.0',
    ledger: await openLive(place, { honourImported: ['clasper'] }),
    telemetrySigner: signer,
    onProblem: (error) => problems.push(error),
  });
  await client.register({ displayName: 'O', riskClass: 'low', capabilities: ['filesystem.read'] });
  await served.send('POST', '/ops/api/adapters/telemetry-key', {
    adapter_id: 'openclaw',
    version: '1.0.0',
    key_alg: 'ed25519',
    public_jwk: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(signer.publicKey.bytes).toString('base64url') },
  });
  const reading = await client.begin({ capabilities: ['filesystem.read'], toolCount: 1, maxCost: 0.5 });
  expect(await reading.guard('filesystem.read', { path: '/x' }, () => 'text')).toBe('text');
  await reading.end();
  await expect(client.begin({ capabilities: ['db.drop'], toolCount: 1, maxCost: 0.5 })).rejects.toMatchObject(
    {
      code: 'POLICY_DENIED',
    },
  );
  const making = await client.begin(
    { capabilities: ['shell.exec'], toolCount: 1, maxCost: 0.5 },
    { onPending: (id) => void served.gate.ledger.approve(id, { principalId: 'human:olga' }) },
  );
  expect(await making.guard('shell.exec', { cmd: 'ls' }, () => 0)).toBe(0);
  await making.end();
  await client.flush();
  await client.close();
  expect(problems).toEqual([]);
  expect([await served.verdict(), await place.verdict()]).toEqual(['ok', 'ok']);
  const recording = [{ name: 'http.jsonl', bytes: encodeUtf8(lines.join('')) }];
  expect(clasper.read(recording).findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  const { verdict, by_code: codes } = await reconcileLedger(served.path, [readSource(clasper, recording)]);
  expect(verdict).toBe('ok');
  expect(Object.keys(codes)).toEqual(['NOT_IN_SOURCES']);
});
