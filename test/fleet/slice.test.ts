/** Setting amounts aside in one ledger, and granting them in another. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { NorthrootError } from '../../src/base/error.js';
import { DeniedError } from '../../src/log/agent/errors.js';
import { draftSliceGrant, grantSlice } from '../../src/log/fleet/grant-slice.js';
import { grantNextSlice, openNextSlice } from '../../src/log/fleet/next-slice.js';
import { closeSlices, recordSettlement } from '../../src/log/fleet/settle.js';
import { openSlice, sliceKey } from '../../src/log/fleet/slice.js';
import { formatSlice, parseSlice } from '../../src/log/fleet/slice-json.js';
import { verifyFleet } from '../../src/log/fleet/verify-fleet.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Ledger } from '../../src/log/writer/ledger.js';
import { AGENT, create, createChild, createParent, int, makeFolder, open } from './kit.js';

const folder = makeFolder();
const path = (name: string): string => join(folder, name);

interface RecordJson {
  readonly event: Readonly<Record<string, unknown>>;
}

const eventsOf = (name: string): Readonly<Record<string, unknown>>[] =>
  readFileSync(path(name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as RecordJson).event);

async function codeOf(promised: Promise<unknown>): Promise<string> {
  return promised.then(
    () => 'none',
    (error: unknown) => (error as NorthrootError).code,
  );
}

async function usdOf(ledger: Ledger, grantId: string): Promise<unknown> {
  return ledger.inspect((_, { links }) => {
    const account = links.grants.get(grantId.slice('sha-256:'.length))?.accounts.get('usd');
    return [account?.used.n, account?.reserved.n];
  });
}

describe('a slice', () => {
  it('is an action and its start in the parent, and a root grant in the child', async () => {
    const end = '2030-01-01T00:00:00Z';
    const { parent, grantId } = await createParent(path('p1'), { usd: '100', calls: 9 }, { expiresAt: end });
    const { child, sliceId } = await createChild(path('c1'), parent, grantId, { usd: '10' });
    expect(eventsOf('p1').map((event) => event['event_type'])).toEqual([
      'genesis',
      'authorization',
      'authorization',
      'x.northroot.start',
    ]);
    expect(eventsOf('c1').at(-1)).toMatchObject({
      principal_id: AGENT,
      authorization: {
        kind: 'grant',
        slice: { event_id: { b64: sliceId.slice('sha-256:'.length) } },
        bounds: {
          expires_at: end,
          meter_caps: [
            { unit: 'calls', amount: int(0) },
            { unit: 'usd', amount: int(10) },
          ],
        },
      },
    });
    expect(await usdOf(parent, grantId)).toEqual([0n, 10n]);
    const report = await verifyLedger(path('c1'), { parents: [path('p1')] });
    expect([report.verdict, report.findings]).toEqual(['ok', []]);
    await Promise.all([parent.close(), child.close()]);
  });

  it('asked for again is the same one, even over an index, in any process', async () => {
    const { parent, grantId } = await createParent(path('p2'));
    const child = await create(path('c2'));
    const asked = { grantId, childId: child.genesisId, caps: { usd: '10' } };
    const first = await openSlice(parent, asked);
    const other = await open(path('p2'));
    const again = await Promise.all([openSlice(parent, asked), openSlice(other, asked)]);
    expect([first.status, ...again.map(({ status }) => status)]).toEqual(['appended', 'exists', 'exists']);
    expect(again.map(({ eventId }) => eventId)).toEqual([first.eventId, first.eventId]);
    expect(await usdOf(parent, grantId)).toEqual([0n, 10n]);
    expect(await codeOf(openSlice(parent, { ...asked, caps: { usd: '11' } }))).toBe('REQUEST_CONFLICT');
    const second = { ...asked, requestKey: sliceKey(child.genesisId, 2) };
    expect((await openSlice(parent, second)).eventId).not.toBe(first.eventId);
    expect(await usdOf(parent, grantId)).toEqual([0n, 20n]);
    const granted = await Promise.all([
      grantSlice(child, first, { allowedTools: ['*'] }),
      grantSlice(child, first, { allowedTools: ['*'] }),
    ]);
    expect(granted.map(({ status }) => status).sort()).toEqual(['appended', 'exists']);
    await Promise.all([parent.close(), other.close(), child.close()]);
  });

  it('is never above the cap, whoever slices at once', async () => {
    const { parent, grantId } = await createParent(path('p3'), { usd: '10' });
    const others = [parent, await open(path('p3')), await open(path('p3'))];
    const children = await Promise.all([...'abcdefghi'].map((name) => create(path(`c3${name}`))));
    const outcomes = await Promise.all(
      children.map((child, n) =>
        codeOf(openSlice(others[n % 3] ?? parent, { grantId, childId: child.genesisId, caps: { usd: '3' } })),
      ),
    );
    expect(outcomes.filter((code) => code === 'none')).toHaveLength(3);
    expect(outcomes.filter((code) => code === 'RESERVATION_OVER_CAP')).toHaveLength(6);
    expect(await usdOf(parent, grantId)).toEqual([0n, 9n]);
    await Promise.all([...others, ...children].map((ledger) => ledger.close()));
    expect((await verifyLedger(path('p3'))).verdict).toBe('ok');
  });

  it('is refused for wrong input', async () => {
    const { parent, grantId } = await createParent(
      path('p4'),
      { usd: '1' },
      { expiresAt: '2030-01-01T00:00:00Z' },
    );
    const child = await create(path('c4'));
    const asked = { grantId, childId: child.genesisId, caps: { usd: '1' } };
    expect(await codeOf(openSlice(parent, { ...asked, grantId: '0' }))).toBe('GRANT_NOT_A_GRANT');
    expect(await codeOf(openSlice(parent, { ...asked, grantId: '7' }))).toBe('GRANT_NOT_FOUND');
    expect(await codeOf(openSlice(parent, { ...asked, expiresAt: '2030-01-01T00:00:01Z' }))).toBe(
      'SLICE_EXCEEDED',
    );
    await expect(openSlice(parent, { ...asked, childId: 'x' })).rejects.toThrow(RangeError);
    await expect(openSlice(parent, { ...asked, childId: parent.genesisId })).rejects.toThrow(RangeError);
    await expect(openSlice(parent, { ...asked, caps: {} })).rejects.toThrow(RangeError);
    await expect(openSlice(parent, { ...asked, caps: { usd: '-1' } })).rejects.toThrow(RangeError);
    await expect(openSlice(parent, { ...asked, cap: 1 } as never)).rejects.toThrow(TypeError);
    await expect(openSlice(parent, { ...asked, caps: { usd: '2' } })).rejects.toThrow(DeniedError);
    const slice = await openSlice(parent, asked);
    const tools = { allowedTools: ['*'] };
    const refused = (make: () => unknown): Promise<string> => codeOf(Promise.resolve().then(make));
    expect(await refused(() => draftSliceGrant(slice, { ...tools, meterCaps: { usd: '2' } }))).toBe(
      'SLICE_EXCEEDED',
    );
    expect(await refused(() => draftSliceGrant(slice, { ...tools, meterCaps: { eur: '1' } }))).toBe(
      'SLICE_EXCEEDED',
    );
    expect(await refused(() => draftSliceGrant(slice, { ...tools, expiresAt: '2031-01-01T00:00:00Z' }))).toBe(
      'SLICE_EXCEEDED',
    );
    expect(() => draftSliceGrant(slice, {})).toThrow(RangeError);
    const other = await create(path('c4b'));
    expect(await codeOf(grantSlice(other, slice, tools))).toBe('LEDGER_MISMATCH');
    await Promise.all([parent.close(), child.close(), other.close()]);
  });
});

describe('the JSON of a slice', () => {
  const id = `sha-256:${'A'.repeat(43)}`;
  const slice = {
    ledgerId: id,
    eventId: id,
    childId: id,
    principalId: AGENT,
    caps: [{ unit: 'usd', amount: int(1) }],
    expiresAt: undefined,
  };
  const json = formatSlice(slice);

  it('is read as it was written, whatever stands beside it', () => {
    expect(parseSlice({ ...json, seq: 3 })).toEqual(slice);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a list', [json]],
    ['no ledger', { ...json, ledger_id: undefined }],
    ['another digest', { ...json, event_id: `sha-512:${'A'.repeat(43)}` }],
    ['a short id', { ...json, child_ledger_id: 'sha-256:AA' }],
    ['no principal', { ...json, principal_id: 'a1' }],
    ['no caps', { ...json, meter_caps: [] }],
    ['a cap twice', { ...json, meter_caps: [...json.meter_caps, ...json.meter_caps] }],
    ['a cap that is a number', { ...json, meter_caps: [{ unit: 'usd', amount: 1 }] }],
    ['a negative cap', { ...json, meter_caps: [{ unit: 'usd', amount: int(-1) }] }],
    ['a wrong time', { ...json, expires_at: 'tomorrow' }],
  ])('is refused with %s', (_, value) => {
    expect(() => parseSlice(value)).toThrow(RangeError);
  });
});

it('comes next as the rest where less is left, and whole again when there is room', async () => {
  const { parent, grantId } = await createParent(path('rest'), { usd: '10' });
  const one = await createChild(path('rest-1'), parent, grantId, { usd: '4' });
  const two = await createChild(path('rest-2'), parent, grantId, { usd: '4' });
  const childId = one.child.genesisId;
  const next = (number: number) => openNextSlice(parent, { childId, after: one.sliceId, number });
  const rest = await next(2);
  expect(rest).toMatchObject({ status: 'appended', caps: [{ unit: 'usd', amount: int(2) }] });
  // Who asks again gets what was set aside, however much is left by now.
  expect(await next(2)).toMatchObject({ status: 'exists', eventId: rest.eventId, caps: rest.caps });
  await grantNextSlice(one.child, rest);
  await expect(next(3)).rejects.toThrow(DeniedError);
  const [given] = await closeSlices(two.child, [two.sliceId]);
  await recordSettlement(parent, { ...given, note: given.checkpoint.note });
  expect(await next(2)).toMatchObject({ status: 'exists', caps: rest.caps });
  const whole = await next(3);
  expect(whole.caps).toEqual([{ unit: 'usd', amount: int(4) }]);
  await grantNextSlice(one.child, whole);
  await Promise.all([parent, one.child, two.child].map((ledger) => ledger.close()));
  const report = await verifyFleet([parent.path, one.child.path, two.child.path]);
  expect(report.exit_status).toBe(0);
  expect(report.slices.map(({ meters }) => meters[0].amount)).toEqual([4, 4, 2, 4].map(int));
});
