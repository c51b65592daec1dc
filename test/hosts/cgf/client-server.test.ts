/** CGF's adapter against CGF's face: two ledgers of the same calls, which agree. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveGate } from '../../../src/gate/service/serve-gate.js';
import { cgf, cgfFace, type CgfFaceOptions } from '../../../src/hosts/cgf/index.js';
import { reconcileLedger } from '../../../src/hosts/shared/reconcile.js';
import { readSource } from '../../../src/hosts/shared/reconcile-sources.js';
import type { GrantOptions } from '../../../src/log/policy/draft-grant.js';
import { filePlace } from '../../agent/support.js';
import { openGate } from '../../gate/support.js';
import { readRecords, temporaryFolder } from '../../writer/support.js';
import { codesIn, openAdapter, READ } from './client-kit.js';
import { policyBytes } from './live-kit.js';

/** A service over a ledger with a grant for agent:a1. */
async function serve(bounds: Partial<GrantOptions> = {}, options: CgfFaceOptions = {}) {
  const place = filePlace();
  const { gate } = await openGate(place, { allowedTools: ['*'], meterCaps: { calls: 100 }, ...bounds });
  const events = join(temporaryFolder(), 'server.jsonl');
  const face = cgfFace({ token: 'S3CRET-token', events, ...options });
  const server = await serveGate({ gate, listen: { port: 0 }, faces: [face] });
  onTestFinished(async () => {
    await server.close();
    await face.close?.();
    await gate.close();
  });
  return { url: server.urls[0], place, events, close: () => server.close(), face };
}

const call = (tool: string, more: object = {}) =>
  ({ ...READ, ...more, params: { tool_name: tool, tool_args: { n: 1 } } }) as const;

/** What is not explained of a ledger by files of CGF. */
async function unexplained(ledger: string, ...files: string[]): Promise<unknown> {
  const sources = files.map((path, n) =>
    readSource(cgf, [{ name: path, bytes: readFileSync(path) }], {}, `source${n}`),
  );
  const { verdict, exit_status: status, findings, calls } = await reconcileLedger(ledger, sources);
  return { verdict, status, codes: findings.map(({ code }) => code), calls };
}

describe('an adapter and the face of CGF', () => {
  it('agree on every call, by both ledgers and both logs', async () => {
    const server = await serve({}, { policy: policyBytes() });
    const { adapter, path, verdict, found, log, problems } = await openAdapter(server.url, {
      token: 'S3CRET-token',
      constraints: {
        quarantine_namespace: (params, { target_namespace: namespace }) => ({ ...params, namespace }),
      },
    });
    expect(await adapter.connect()).toBe(true);
    const done: string[] = [];
    for (const tool of ['fs.read', 'to_block', 'to_defer', 'to_audit', 'to_constrain', 'fs.write']) {
      const ran = adapter.guard(call(tool), () => 'ran');
      done.push(await ran.catch((error: { act: string }) => error.act));
    }
    expect(done).toEqual(['ran', 'block', 'defer', 'ran', 'ran', 'ran']);
    await expect(adapter.guard(call('fs.read'), () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await adapter.flush()).toBe(0);
    expect(problems).toEqual([]);
    expect(await verdict()).toBe('ok');
    expect(await server.place.verdict()).toBe('ok');
    expect(found()).toEqual([]);
    expect(codesIn(server.events)).toEqual([]);
    const decisions = (events: readonly object[]) =>
      (events as { event_type: string; decision: string; outcome?: string }[])
        .filter(({ event_type: type }) => type === 'authorization' || type === 'execution')
        .map(({ decision, outcome }) => decision ?? outcome);
    const own = decisions(readRecords(path).map(({ event }) => event));
    // The server's begins with its grant; outcomes are told to it in the background.
    expect(decisions(server.place.events()).slice(1).sort()).toEqual(own.sort());
    for (const ledger of [path, server.place.path])
      expect(await unexplained(ledger, log, server.events)).toMatchObject({
        verdict: 'ok',
        status: 0,
        codes: [],
      });
  });

  it('of two adapters that race for a cap of 5, exactly 5 calls run', async () => {
    const server = await serve({ meterCaps: { calls: 5 } });
    const two = [
      await openAdapter(server.url, { token: 'S3CRET-token', timeoutMs: 5_000 }),
      await openAdapter(server.url, { token: 'S3CRET-token', timeoutMs: 5_000 }),
    ];
    let runs = 0;
    const asked = [...Array(12).keys()].map((n) =>
      two[n % 2].adapter.guard({ ...call('fs.read'), riskTier: 'high' }, () => (runs += 1)),
    );
    const settled = await Promise.allSettled(asked);
    expect(runs).toBe(5);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    for (const { adapter, verdict } of two) {
      expect(await adapter.flush()).toBe(0);
      expect(await verdict()).toBe('ok');
    }
    expect(await server.place.verdict()).toBe('ok');
  });

  it('without its token an adapter is blocked, and once the server is away its fail modes hold', async () => {
    const server = await serve();
    const { adapter } = await openAdapter(server.url, { token: 'wrong' });
    await expect(adapter.guard(call('fs.read'), () => 'ran')).rejects.toMatchObject({
      code: 'CGF_INVALID_RESPONSE',
    });
    await server.close();
    expect(await adapter.guard(call('fs.read'), () => 'ran')).toBe('ran');
    await expect(adapter.guard(call('fs.read', { riskTier: 'high' }), () => 'ran')).rejects.toMatchObject({
      code: 'CGF_FAIL_CLOSED',
    });
  });
});
