/** The recorded run: what became of each item, what was found, and the accounts of the ledger. */

import { describe, expect, it } from 'vitest';
import { accountFor, verdictOf } from '../../../src/hosts/shared/account.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import { clasper } from '../../../src/hosts/clasper/index.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import type { HostFile, HostReading } from '../../../src/hosts/shared/host.js';
import { hasRecordings, recordedFile } from '../recorded.js';
import { BUNDLE, claimOf, codesOf, file, http, httpLines, ledgerOf, read, RUN } from './kit.js';

function counted(list: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const each of [...list].sort()) counts[each] = (counts[each] ?? 0) + 1;
  return counts;
}

function findingsOf({ findings }: HostReading, severity: string): Record<string, number> {
  return counted(
    findings.filter((each) => each.severity === severity).map(({ rule, code }) => `${rule} ${code}`),
  );
}

function kindsOf({ claims }: HostReading): Record<string, number> {
  return counted(claims.map(({ kind }) => kind));
}

function idsOf({ claims }: HostReading): string[] {
  return eventsOfClaims(claims, { system: 'clasper' }).events.map(({ event }) => event.event_id.b64);
}

describe.skipIf(!hasRecordings)('the recorded run', () => {
  const recording = hasRecordings ? recordedFile(`${RUN}http.jsonl`) : { name: '', bytes: new Uint8Array() };
  const archive = hasRecordings ? recordedFile(`${RUN}export-unsigned.tar.gz`) : recording;
  const folder: HostFile[] = hasRecordings
    ? BUNDLE.map((name) => recordedFile(`${RUN}bundle-unsigned/${name}`))
    : [];

  it('as calls', async () => {
    const reading = read([recording]);
    expect(accountFor(reading.items).total).toEqual({
      items: 72,
      mapped: 19,
      evidence: 30,
      repeated: 23,
      dropped: 0,
    });
    expect(kindsOf(reading)).toEqual({ action: 2, evidence: 33, execution: 9, grant: 8 });
    expect(verdictOf(reading)).toBe('invalid');
    expect(findingsOf(reading, 'error')).toEqual({
      'CLA-2 ID_MISMATCH': 1,
      'CLA-3 EXECUTED_AFTER_DENY': 1,
      'CLA-3 EXECUTION_NOT_REQUESTED': 3,
      'CLA-4 CAPABILITY_NOT_GRANTED': 1,
      'CLA-6 TOOL_TOKEN_OTHER_EXECUTION': 2,
      'CLA-6 TOOL_TOKEN_REUSED': 2,
      'CLA-7 IDEMPOTENCY_CONFLICT': 3,
      'CLA-8 STEP_HASH_MISMATCH': 1,
    });
    expect(findingsOf(reading, 'warning')).toEqual({
      'CLA-1 INVALID_SIGNATURE': 1,
      'CLA-1 PAYLOAD_HASH_MISMATCH': 1,
      'CLA-1 PAYLOAD_TYPE_MISMATCH': 1,
      'CLA-1 TELEMETRY_UNSIGNED': 1,
      'CLA-1 TIMESTAMP_SKEW': 1,
      'CLA-4 COST_DISAGREES': 1,
      'CLA-4 COST_NOT_REPORTED': 1,
      'CLA-4 VIOLATION_REPORTED': 1,
      'CLA-6 DATED_BEFORE_TOKEN': 3,
      'CLA-7 RETRY_LOST': 1,
      'INPUT TIME_INVALID': 3,
      'INPUT TIME_NOT_STATED': 23,
    });
    const report = await ledgerOf(reading);
    expect(report.verdict).toBe('invalid');
    expect(report.counts.by_type).toMatchObject({ authorization: 10, execution: 9 });
    const caps = report.grants.map(({ executions, meters }) => ({
      executions,
      meters: Object.fromEntries(meters.map(({ unit, cap, used }) => [unit, [cap, used]])),
    }));
    expect(caps).toEqual([
      {
        executions: 1,
        meters: {
          'clasper.steps': [
            { t: 'int', v: '10' },
            { t: 'int', v: '0' },
          ],
          usd: [
            { t: 'dec', m: '5', s: 1 },
            { t: 'dec', m: '1', s: 2 },
          ],
        },
      },
      {
        executions: 5,
        meters: {
          'clasper.steps': [
            { t: 'int', v: '100' },
            { t: 'int', v: '3' },
          ],
          usd: [
            { t: 'dec', m: '15', s: 1 },
            { t: 'dec', m: '31', s: 4 },
          ],
        },
      },
    ]);
    expect(
      counted(report.findings.filter(({ severity }) => severity === 'error').map(({ code }) => code)),
    ).toMatchObject({
      AUTH_NOT_FOUND: 1,
      AUTHORIZATION_REUSED: 1,
      EXECUTION_UNDER_DENY: 1,
    });
  });

  it('as a bundle, packed and unpacked: the same events', async () => {
    const packed = read([archive]);
    const unpacked = read(folder);
    expect(accountFor(packed.items).total).toEqual({
      items: 53,
      mapped: 13,
      evidence: 14,
      repeated: 23,
      dropped: 3,
    });
    expect(idsOf(unpacked)).toEqual(idsOf(packed));
    expect(idsOf(read([...folder].reverse()))).toEqual(idsOf(packed));
    expect(findingsOf(unpacked, 'error')).toEqual(findingsOf(packed, 'error'));
    expect(findingsOf(unpacked, 'warning')).toEqual(findingsOf(packed, 'warning'));
    expect(kindsOf(packed)).toEqual({ action: 2, evidence: 16, execution: 8, grant: 3 });
    expect(findingsOf(packed, 'error')).toEqual({
      'CLA-6 TOOL_TOKEN_OTHER_EXECUTION': 1,
      'CLA-6 TOOL_TOKEN_REUSED': 1,
      'CLA-8 STEP_HASH_MISMATCH': 1,
    });
    expect(findingsOf(packed, 'warning')).toEqual({
      'CLA-10 BUNDLE_UNSIGNED': 1,
      'CLA-3 EXECUTION_NOT_REQUESTED': 4,
      'CLA-3 GRANT_NOT_STATED': 1,
      'CLA-4 COST_DISAGREES': 1,
      'CLA-4 VIOLATION_REPORTED': 2,
      'CLA-6 DATED_BEFORE_TOKEN': 2,
      'INPUT TIME_INVALID': 3,
    });
    expect((await ledgerOf(packed)).grants).toEqual([]);
  });

  it('as both: what happened once is recorded once', () => {
    const both = read([recording, archive]);
    expect(accountFor(both.items).total).toEqual({
      items: 125,
      mapped: 19,
      evidence: 32,
      repeated: 71,
      dropped: 3,
    });
    expect(kindsOf(both)).toEqual({ action: 2, evidence: 35, execution: 9, grant: 8 });
    expect(findingsOf(both, 'error')).toEqual(findingsOf(read([recording]), 'error'));
    const twice = read([recording, archive, ...folder]);
    expect(kindsOf(twice)).toEqual(kindsOf(both));
  });

  it('a recording as one array has the same items, the entries of its chain too', () => {
    const lines = httpLines();
    const array = file('http.json', `[\n${lines.join(',\n')}\n]\n`);
    const [asArray, asLines] = [read([array]), read([http(lines)])];
    const fates = ({ items }: HostReading) => items.map(({ type, fate }) => `${type} ${fate}`).sort();
    expect(fates(asArray)).toEqual(fates(asLines));
    expect(codesOf(asArray)).toEqual(codesOf(asLines));
  });

  it('the bundle or the calls first is the same', () => {
    expect(idsOf(read([archive, recording]))).toEqual(idsOf(read([recording, archive])));
  });

  it('a longer recording has the events of a shorter one', () => {
    const lines = httpLines();
    const all = idsOf(read([recording]));
    for (const length of [12, 27, 43]) {
      const part = idsOf(
        read([{ name: 'http.jsonl', bytes: Buffer.from(lines.slice(0, length).join('\n')) }]),
      );
      expect(all.slice(0, part.length)).toEqual(part);
    }
  });

  it('imported again adds nothing, and what a bundle says less of is told of', () => {
    const first = planImport(clasper, [recording, archive]);
    expect([first.unfit, first.conflicting]).toEqual([0, 0]);
    const openEnds = new Set<string>();
    const sources = new Map(
      first.events.map(({ event, sourceId }) => [sourceId, `sha-256:${event.event_id.b64}`]),
    );
    const again = planImport(clasper, [recording, archive], {
      into: { ledgerId: undefined, sources, openEnds },
    });
    expect([again.events.length, again.existing]).toEqual([0, first.events.length]);
    const calls = planImport(clasper, [recording], { into: { ledgerId: undefined, sources, openEnds } });
    expect([calls.events.length, calls.conflicting]).toEqual([0, 0]);
    const bundle = planImport(clasper, [archive], { into: { ledgerId: undefined, sources, openEnds } });
    expect(bundle.conflicting).toBeGreaterThan(0);
  });

  it('amounts are exact, contents and tokens are not there', () => {
    const reading = read([recording, archive]);
    expect(claimOf(reading, 'cost:dev-tenant/exec_abc123')).toMatchObject({
      meters: [
        { unit: 'usd', amount: { t: 'dec', m: '31', s: 4 } },
        { unit: 'tokens.input', amount: { t: 'int', v: '120' } },
        { unit: 'tokens.output', amount: { t: 'int', v: '40' } },
      ],
      outcome: 'unknown',
      modelId: 'gpt-4o-mini',
    });
    const text = JSON.stringify([
      eventsOfClaims(reading.claims, { system: 'clasper' }),
      reading.findings,
      reading.observations,
    ]);
    for (const secret of [
      'eyJhbGciOiJIUzI1NiJ9',
      'left-pad',
      'curl evil',
      'reviewed by release manager',
      'install_dependency',
    ])
      expect(text).not.toContain(secret);
  });

  it('is recognised, and nothing else is', () => {
    for (const file of [recording, archive, ...folder])
      expect([file.name, clasper.recognises(file)]).toEqual([file.name, true]);
    for (const text of ['', '{}', '[]', 'x', '{"method":"GET","path":"/index.html"}', '{"type":"hook"}'])
      expect(clasper.recognises({ name: 'x.jsonl', bytes: Buffer.from(text) })).toBe(false);
  });
});
