/** Clasper's adapter against Clasper's face: two ledgers of the same calls, which agree. */

import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Gate } from '../../../src/gate/gate.js';
import { serveGate } from '../../../src/gate/service/serve-gate.js';
import { clasper, ClasperClient, clasperFace, writeExchange } from '../../../src/hosts/clasper/index.js';
import { keyMembers } from '../../../src/hosts/clasper/live/sign.js';
import { reconcileLedger } from '../../../src/hosts/shared/reconcile.js';
import { readSource } from '../../../src/hosts/shared/reconcile-sources.js';
import { draftGrant } from '../../../src/log/policy/draft-grant.js';
import { LiveLedger } from '../../../src/log/agent/live-ledger.js';
import { filePlace, openLive } from '../../agent/support.js';
import { signer, temporaryFolder } from '../../writer/support.js';
import { SIGNERS } from './client-kit.js';
import { BOUNDS, HOST, OPERATOR, SECRETS, sender, TENANT, token } from './live-kit.js';

/** A service over a ledger with a grant for the tenant, and what it was asked. */
async function serve() {
  const place = filePlace();
  const ledger = await LiveLedger.open(place.path, {
    ...{ signer, principalId: HOST, create: { origin: 'example.com/tests/clasper' } },
  });
  await ledger.append({ event: draftGrant({ principalId: HOST, ...BOUNDS }) });
  await ledger.close();
  const gate = await Gate.open(place.path, { signer, principalId: OPERATOR, lockTimeoutMs: 60_000 });
  const recording: string[] = [];
  const socket = join(temporaryFolder(), 's.sock');
  const face = clasperFace({
    secrets: SECRETS,
    approveCapabilities: ['shell.exec'],
    onExchange: (exchange) => Promise.resolve(void recording.push(writeExchange(exchange))),
  });
  const server = await serveGate({ gate, socket, listen: { port: 0 }, faces: [face] });
  const close = async (): Promise<void> => {
    await server.close();
    await face.close?.();
  };
  onTestFinished(async () => {
    await close();
    await gate.close();
  });
  return { url: server.urls[1], place, recording, operator: sender(socket), close };
}

it('an adapter and the face of Clasper agree on every call, by both ledgers', async () => {
  const server = await serve();
  const place = filePlace();
  const ledger = await openLive(place, { honourImported: ['clasper'] });
  const problems: unknown[] = [];
  const client = new ClasperClient({
    ...{ endpoint: server.url, ledger, adapterToken: token(), version: '1.0.0', adapterId: 'openclaw' },
    ...{ tenantId: TENANT, workspaceId: TENANT, telemetrySigner: SIGNERS.p256 },
    onProblem: (error) => problems.push(error),
  });
  onTestFinished(() => client.close());
  const capabilities = ['filesystem.read', 'shell.exec'];
  await client.register({ displayName: 'OpenClaw', riskClass: 'low', capabilities });
  const keyed = await server.operator('POST', '/ops/api/adapters/telemetry-key', {
    ...{ adapter_id: 'openclaw', version: '1.0.0', key_id: 'k1', ...keyMembers(SIGNERS.p256) },
  });
  expect(keyed.status).toBe(200);

  const scope = { toolCount: 2, maxSteps: 10, maxCost: 0.5 };
  const read = await client.begin({ ...scope, capabilities: ['filesystem.read'] });
  const cheap = { reserve: { usd: '0.02' } };
  const call = read.guard(
    'filesystem.read',
    { path: '/x' },
    ({ report }) => report({ used: { usd: '0.01' } }),
    cheap,
  );
  await call;
  const failing = read.guard('filesystem.read', { path: '/y' }, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  await expect(client.begin({ ...scope, capabilities: ['payments.send'] })).rejects.toMatchObject({
    code: 'CAPABILITY_NOT_ALLOWED',
  });
  const shell = await client.begin(
    { ...scope, capabilities: ['shell.exec'] },
    {
      onPending: (id) =>
        void server.operator('POST', `/api/decisions/${id}/resolve`, {
          ...{ action: 'approve', justification: 'as the test says' },
        }),
    },
  );
  expect(await shell.guard('shell.exec', { cmd: 'ls' }, () => 'ran')).toBe('ran');
  await read.end();
  await shell.end();
  expect(await client.flush()).toBe(0);
  expect(problems).toEqual([]);
  await server.close();

  expect(await place.verdict()).toBe('ok');
  expect(await server.place.verdict()).toBe('ok');
  const files = [
    {
      name: 'http.jsonl',
      bytes: Buffer.from(server.recording.map((line) => `${line.trimEnd()}\n`).join('')),
    },
  ];
  const reading = clasper.read(files);
  expect(reading.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  const sources = [readSource(clasper, files)];
  const own = await reconcileLedger(place.path, sources);
  expect(own).toMatchObject({ verdict: 'ok', exit_status: 0, findings: [] });
  // Three calls with their tokens, and the reports of two executions.
  expect(own.calls).toMatchObject({ corroborated: 7, ledger_only: 0, source_only: 0, contradicted: 0 });
  const theirs = await reconcileLedger(server.place.path, sources);
  expect(theirs).toMatchObject({ verdict: 'ok', exit_status: 0 });
  expect(theirs.calls).toMatchObject({ corroborated: 7, source_only: 0, contradicted: 0 });
});
