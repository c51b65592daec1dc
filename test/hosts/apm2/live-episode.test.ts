/** An agent behind the kernel: what it asks for is decided, done, recorded and answered, and nothing else. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSource } from '../../../src/hosts/shared/reconcile-sources.js';
import { reconcileLedger } from '../../../src/hosts/shared/reconcile.js';
import { apm2 } from '../../../src/hosts/apm2/index.js';
import { blake3Hex } from '../../../src/hosts/shared/forms/cac.js';
import { openLedger } from '../../../src/log/tile/tile-tree.js';
import {
  eventsOf,
  fakeTools,
  filesOf,
  importedVerdict,
  profileWith,
  runScript,
  verify,
  wrongIn,
} from './live-kit.js';

const READ = 'ask r1 fs.read \'{"path":"notes.txt"}\'';
const DONE = 'echo \'{"done":true}\'';

describe('an episode', () => {
  it('is decided, executed, answered and reviewed', async () => {
    const { result, ledger, log } = await runScript(`echo hello; ${READ}; echo "saw $answer"; ${DONE}`);
    expect(result).toMatchObject({ review: 'recorded', exitStatus: 0 });
    expect(result.counts).toMatchObject({ requests: 1, allowed: 1, denied: 0 });
    expect(log).toMatch(
      /^hello\n⟦TI1 [0-9a-f]{16}⟧ r1 fs\.read \S+\n⟦TR1 [0-9a-f]{16}⟧ r1 ok [0-9a-f]{64}\nsaw ⟦TR1/,
    );
    expect(wrongIn(result.record)).toEqual([]);
    const report = await verify(ledger);
    expect(report.verdict).toBe('ok');
    const events = await eventsOf(ledger);
    expect(events.map(({ event_type: type }) => type)).toEqual([
      'genesis',
      'authorization',
      'x.apm2.episode_run_attributed',
      'authorization',
      'x.northroot.start',
      'execution',
      'x.apm2.review_receipt_recorded',
    ]);
    expect(events[1]).toMatchObject({
      principal_id: result.principal,
      policy_id: 'apm2:profile:local-test',
      checks: [{ code: 'CAP' }, { code: 'CAP' }, { code: 'CAP' }, { code: 'CAP' }],
      authorization: { bounds: { allowed_tools: ['fs.list', 'fs.read'] } },
    });
    expect(events[3]?.['checks']).toContainEqual({ check: 'coverage', code: 'KERNEL', result: 'pass' });
    expect(events[3]?.['checks']).toContainEqual({ check: 'isolation', code: 'NONE', result: 'pass' });
  });

  it('gives the agent the result by its hash', async () => {
    const { result, log } = await runScript(`${READ}; cat "$TI_CAS/\${answer##* }"; echo; ${DONE}`);
    expect(log).toContain('\nnotes.txt\n{"done":true}\n');
    const hash = blake3Hex(Buffer.from('notes.txt'));
    expect(readFileSync(join(result.record, '..', 'results', hash), 'utf8')).toBe('notes.txt');
  });

  it('names results by SHA-256 where that is asked for, and gives excerpts', async () => {
    const { result, log } = await runScript(`${READ}; read -r excerpt; echo "got $excerpt"; ${DONE}`, {
      resultDigest: 'sha-256',
      excerptBytes: 5,
    });
    expect(log).toContain('got ⟦TX1');
    expect(log).toContain(Buffer.from('notes').toString('base64url'));
    expect(result.review).toBe('recorded');
    expect(wrongIn(result.record)).toEqual([]);
  });

  it('has the verdict of an import of its record, and explains all that the record shows', async () => {
    const script = `${READ}; ask r2 fs.read '{}'; ask r3 look '{}'; ask r4 other '{}'; ${DONE}`;
    const { result, ledger, log } = await runScript(script);
    expect(log.match(/denied \S+/g)).toEqual([
      'denied INVALID_ARGUMENTS',
      'denied TOOL_DISABLED',
      'denied TI1_UNKNOWN_TOOL',
    ]);
    expect(result).toMatchObject({ review: 'recorded', counts: { requests: 4, allowed: 1, denied: 3 } });
    expect((await verify(ledger)).verdict).toBe('ok');
    expect(await importedVerdict(result.record)).toBe('ok');
    const source = readSource(apm2, filesOf(result.record));
    const report = await reconcileLedger(await openLedger(ledger), [source], {});
    expect(report.findings).toEqual([]);
    expect(report.verdict).toBe('ok');
  });

  it('counts a failed tool as a failure, and answers with what it said', async () => {
    const tools = fakeTools(() => Promise.reject(new Error('no')));
    const { result, ledger, log } = await runScript(`${READ}; cat "$TI_CAS/\${answer##* }"; echo; ${DONE}`, {
      tools,
    });
    expect(log).toContain('{"error":"FAILED"}');
    expect(wrongIn(result.record)).toEqual([]);
    const [execution] = (await eventsOf(ledger)).filter((event) => event['event_type'] === 'execution');
    expect(execution).toMatchObject({ outcome: 'failure', error_code: 'FAILED' });
    expect(await importedVerdict(result.record)).toBe('ok');
  });

  it('spends the budget of its profile exactly', async () => {
    const profile = profileWith({ budget_defaults: { max_tool_calls: 2 } });
    const asks = [1, 2, 3, 4].map((n) => `ask r${n} fs.read '{"path":"n${n}"}'`).join('; ');
    const { result, ledger, log } = await runScript(`${asks}; ${DONE}`, { profile });
    expect(log.match(/(?:ok|denied \S+)/g)?.filter((word) => word !== 'ok')).toEqual([
      'denied RESERVATION_OVER_CAP',
      'denied RESERVATION_OVER_CAP',
    ]);
    expect(result).toMatchObject({ review: 'recorded', counts: { allowed: 2, denied: 2 } });
    expect((await verify(ledger)).verdict).toBe('ok');
    expect(await importedVerdict(result.record)).toBe('ok');
  });

  it('has no cap where the profile says 0, and says so', async () => {
    const none = { max_tool_calls: 0, max_tokens: 0, max_wall_clock_ms: 0, max_evidence_bytes: 0 };
    const { result, ledger } = await runScript(`${READ}; ${DONE}`, {
      profile: profileWith({ budget_defaults: none }),
    });
    expect(result.review).toBe('recorded');
    const [, grant] = await eventsOf(ledger);
    expect(grant).toMatchObject({
      checks: [{ code: 'NO_CAP' }, { code: 'NO_CAP' }, { code: 'NO_CAP' }, { code: 'NO_CAP' }],
    });
    expect(grant).toMatchObject({
      authorization: { bounds: { meter_caps: [{ unit: 'calls', amount: { v: '10000' } }] } },
    });
    expect(JSON.stringify(grant)).not.toContain('expires_at');
    expect(wrongIn(result.record)).toEqual([]);
  });

  it('gives no more evidence than the budget has left', async () => {
    const profile = profileWith({ budget_defaults: { max_evidence_bytes: 12 } });
    const script = `${READ}; ask r2 fs.read '{"path":"more.txt"}'; cat "$TI_CAS/\${answer##* }"; echo; ${DONE}`;
    const { ledger, result } = await runScript(script, { profile });
    const [first, second] = (await eventsOf(ledger)).filter((event) => event['event_type'] === 'execution');
    expect(first).toMatchObject({ outcome: 'success' });
    expect(second).toMatchObject({ outcome: 'failure', error_code: 'RESULT_TOO_LARGE' });
    expect((await verify(ledger)).verdict).toBe('ok');
    expect(result.counts.allowed).toBe(2);
  });
});

describe('an agent that ends badly', () => {
  it('without a structured ending has no review', async () => {
    const { result } = await runScript(READ);
    expect(result).toMatchObject({ review: 'blocked', reason: 'ADAPTER_PROTOCOL_VIOLATION', detail: 'EP-4' });
    expect(wrongIn(result.record)).toEqual([
      'EP-4 ADAPTER_PROTOCOL_VIOLATION',
      'EP-5 ADAPTER_PROTOCOL_VIOLATION',
    ]);
  });

  it('without a request has none either', async () => {
    const { result } = await runScript(DONE);
    expect(result).toMatchObject({ review: 'blocked', reason: 'ADAPTER_PROTOCOL_VIOLATION', detail: 'EP-2' });
  });

  it('with a status of failure has none', async () => {
    const { result } = await runScript(`${READ}; ${DONE}; exit 7`);
    expect(result).toMatchObject({ review: 'blocked', reason: 'TOOL_FAILED', exitStatus: 7 });
  });
});
