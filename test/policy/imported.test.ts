/** Authority that was imported from another system's log allows nothing live, unless that system is honoured (SPEC §7). */

import { describe, expect, it } from 'vitest';
import { MAX_SYSTEMS } from '../../src/rules/bounds/grant.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import { codeOf } from '../writer/support.js';
import { filePlace, leftOf, openLive } from '../agent/support.js';

const source = { system: 'clasper', id: 'execution 1' };
const bounds = { principalId: 'agent:a1', allowedTools: ['fs.*'], meterCaps: { calls: 10, usd: 1_000_000 } };
const run = (): string => 'ran';

describe('an imported grant', () => {
  it('lets no live decision allow, unless its system is honoured', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    await ledger.append({ event: { ...draftGrant(bounds), source } });
    expect(await codeOf(ledger.guard('fs.read', {}, run))).toBe('IMPORTED_AUTHORITY');
    const honouring = await openLive(place, { honourImported: ['cgf', 'clasper'] });
    expect(await honouring.guard('fs.read', {}, run)).toBe('ran');
    const report = await verifyLedger(place.path);
    const item = report.not_checked.find(({ code }) => code === 'IMPORTED_AUTHORITY');
    expect(item?.message).toContain('clasper');
    expect(report.verdict).toBe('ok');
  });

  it('gives nothing on to what is delegated from it, nor by a credit', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    const { eventId } = await ledger.append({ event: { ...draftGrant(bounds), source } });
    const child = draftGrant(bounds) as { readonly authorization: object };
    const parent = { alg: 'sha-256', b64: eventId.slice('sha-256:'.length) };
    const authorization = { ...child.authorization, grant_event_id: parent };
    await ledger.append({ event: { ...child, authorization } });
    expect(await codeOf(ledger.guard('fs.read', {}, run))).toBe('IMPORTED_AUTHORITY');
    const native = await ledger.append({ event: draftGrant({ ...bounds, meterCaps: { calls: 1 } }) });
    expect(await ledger.guard('fs.read', {}, run)).toBe('ran');
    expect(await leftOf(ledger, native.eventId)).toBe('0');
    await ledger.append({
      event: {
        event_type: 'adjustment',
        principal_id: 'service:billing',
        grant_event_id: native.eventId,
        direction: 'credit',
        meters: [{ unit: 'calls', amount: { t: 'int', v: '1' } }],
        reason: 'REFUND',
        source,
      },
    });
    expect(await leftOf(ledger, native.eventId)).toBe('1');
    expect(await codeOf(ledger.guard('fs.read', { n: 2 }, run))).toBe('IMPORTED_AUTHORITY');
  });

  it('is given on by a resumption that ended a suspension, and by no other', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    const { eventId } = await ledger.append({ event: draftGrant(bounds) });
    const revocation = (effect: string, more: object): object => ({
      event_type: 'revocation',
      principal_id: 'human:ada',
      grant_event_id: { alg: 'sha-256', b64: eventId.slice('sha-256:'.length) },
      effect,
      reason: 'CHECKED',
      ...more,
    });
    await ledger.append({ event: revocation('resume', { source }) });
    expect(await ledger.guard('fs.read', {}, run)).toBe('ran');
    await ledger.append({ event: revocation('suspend', { in_flight: 'finish' }) });
    await ledger.append({ event: revocation('resume', { source: { ...source, id: 'execution 2' } }) });
    expect(await codeOf(ledger.guard('fs.read', { n: 2 }, run))).toBe('IMPORTED_AUTHORITY');
  });

  it('is not honoured for being one of more systems than are told apart', async () => {
    const place = filePlace();
    const honourImported = Array.from({ length: MAX_SYSTEMS + 1 }, (_, n) => `system ${n}`);
    const ledger = await openLive(place, { honourImported });
    const { eventId } = await ledger.append({ event: draftGrant({ ...bounds, meterCaps: { calls: 200 } }) });
    const adjustment = (direction: string, calls: number): object => ({
      event_type: 'adjustment',
      principal_id: 'service:billing',
      grant_event_id: { alg: 'sha-256', b64: eventId.slice('sha-256:'.length) },
      direction,
      meters: [{ unit: 'calls', amount: { t: 'int', v: String(calls) } }],
      reason: 'BILL',
    });
    const credit = (system: string): object => ({
      ...adjustment('credit', 1),
      source: { system, id: system },
    });
    await ledger.append({ event: adjustment('debit', MAX_SYSTEMS + 1) });
    for (const system of honourImported.slice(0, MAX_SYSTEMS)) await ledger.append({ event: credit(system) });
    expect(await ledger.guard('fs.read', {}, run)).toBe('ran');
    await ledger.append({ event: credit('not honoured') });
    expect(await codeOf(ledger.guard('fs.read', { n: 2 }, run))).toBe('IMPORTED_AUTHORITY');
  });

  it('is no authority of an action that is executed without a word of it in the report', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    await ledger.append({ event: draftGrant(bounds) });
    expect(await ledger.guard('fs.read', {}, run)).toBe('ran');
    const codes = (await verifyLedger(place.path)).not_checked.map(({ code }) => code);
    expect(codes).not.toContain('IMPORTED_AUTHORITY');
  });
});
