/** Settling slices: what the child used, and nothing else, is used in the parent. */

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { NorthrootError } from '../../src/base/error.js';
import { settleSlices } from '../../src/log/fleet/settle.js';
import { authorizeAction } from '../../src/log/policy/authorize.js';
import { fromDigestText, sha256Digest } from '../../src/base/value/digest.js';
import type { Grant } from '../../src/rules/bounds/grant.js';
import { sliceUseOf } from '../../src/rules/verify/slice-use.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Ledger } from '../../src/log/writer/ledger.js';
import { CountingFileSystem } from '../writer/file-systems.js';
import { AGENT, begin, createChild, createParent, int, makeFolder, open, spend } from './kit.js';

const folder = makeFolder();
const path = (name: string): string => join(folder, name);

async function codeOf(promised: Promise<unknown>): Promise<string> {
  return promised.then(
    () => 'none',
    (error: unknown) => (error as NorthrootError).code,
  );
}

const closeAll = (...ledgers: readonly Ledger[]): Promise<unknown> =>
  Promise.all(ledgers.map((ledger) => ledger.close()));

function countOf(name: string, type: string): number {
  return readFileSync(path(name), 'utf8').split(`"event_type":"${type}"`).length - 1;
}

/** Both verify, and the parent counts what was used. */
async function expectSettled(parent: string, child: string, used: number): Promise<void> {
  const report = await verifyLedger(path(child), { parents: [path(parent)] });
  expect([report.verdict, report.findings.filter(({ severity }) => severity !== 'info')]).toEqual(['ok', []]);
  const { verdict, grants } = await verifyLedger(path(parent));
  expect(verdict).toBe('ok');
  expect(grants[0]?.meters[0]).toMatchObject({ used: int(used), reserved: int(0), left: int(100 - used) });
  expect(countOf(parent, 'execution')).toBe(1);
  expect(countOf(child, 'revocation')).toBe(1);
}

describe('settling', () => {
  it('counts what was used, and gives the rest back', async () => {
    const { parent, grantId } = await createParent(path('p1'));
    const { child, sliceId } = await createChild(path('c1'), parent, grantId, { usd: '10' });
    await spend(child, 3);
    const params = sha256Digest(Buffer.from('unbegun'));
    const request = { principalId: AGENT, toolName: 'fs.x', paramsDigest: params, intentDigest: params };
    const unbegun = await authorizeAction(child, { ...request, meters: [{ unit: 'usd', amount: int(4) }] });
    expect(unbegun.decision).toBe('allow');
    const [settled, ...more] = await settleSlices(parent, child);
    expect(more).toEqual([]);
    expect(settled).toMatchObject({ sliceId, status: 'appended', used: [{ unit: 'usd', amount: int(3) }] });
    const [again] = await settleSlices(parent, child);
    expect(again).toMatchObject({ sliceId, status: 'exists', recorded: undefined });
    await expect(begin(child, { usd: '1' })).rejects.toThrow();
    await closeAll(parent, child);
    await expectSettled('p1', 'c1', 3);
  });

  it('writes once for all that is released, and once for all that is charged', async () => {
    const { parent, grantId } = await createParent(path('p-many'));
    const made = await createChild(path('c-many'), parent, grantId, { usd: '10' });
    const count = 300;
    const params = sha256Digest(Buffer.from('unbegun'));
    const request = { principalId: AGENT, toolName: 'fs.x', paramsDigest: params, intentDigest: params };
    const numbers = Array.from({ length: count }, (_, n) => n);
    await Promise.all(numbers.map(() => begin(made.child, {})));
    await Promise.all(
      numbers.map((n) => authorizeAction(made.child, { ...request, meters: [], requestKey: `k${n}` })),
    );
    await made.child.close();
    const fileSystem = new CountingFileSystem();
    const child = await open(path('c-many'), { fileSystem, index: path('c-many.index') });
    const openUnder = () =>
      child.inspect(async (_, state) => {
        await state.links.actions.load?.();
        const slice = state.links.grants.get(fromDigestText(made.grantId));
        const { openActions, openStarts } = sliceUseOf(state, slice as Grant);
        return { openActions, openStarts };
      });
    expect(await openUnder()).toEqual({ openActions: 2 * count, openStarts: count });
    const before = fileSystem.syncsOf(path('c-many'));
    const [settled] = await settleSlices(parent, child, { abandon: true });
    expect(settled).toMatchObject({ status: 'appended' });
    expect(countOf('c-many', 'execution')).toBe(2 * count);
    expect(await openUnder()).toEqual({ openActions: 0, openStarts: 0 });
    expect(fileSystem.syncsOf(path('c-many')) - before).toBeLessThan(count / 3);
    await closeAll(parent, child);
  });

  it('waits for what was begun, or has it charged', async () => {
    const { parent, grantId } = await createParent(path('p2'));
    const { child } = await createChild(path('c2'), parent, grantId, { usd: '10' });
    const end = await begin(child, { usd: '5' });
    expect(await codeOf(settleSlices(parent, child))).toBe('SLICE_OPEN');
    const onWaiting = vi.fn();
    const settling = settleSlices(parent, child, { waitMs: 60_000, onWaiting });
    await vi.waitFor(() => expect(onWaiting).toHaveBeenCalled(), { timeout: 60_000 });
    await end({ usd: '2' });
    const [settled] = await settling;
    expect(settled?.used).toEqual([{ unit: 'usd', amount: int(2) }]);
    await closeAll(parent, child);
    await expectSettled('p2', 'c2', 2);

    const other = await createParent(path('p3'));
    const killed = await createChild(path('c3'), other.parent, other.grantId, { usd: '10' });
    await begin(killed.child, { usd: '5' });
    const [charged] = await settleSlices(other.parent, killed.child, { abandon: true });
    expect(charged?.used).toEqual([{ unit: 'usd', amount: int(5) }]);
    await closeAll(other.parent, killed.child);
    await expectSettled('p3', 'c3', 5);
  });

  it('goes on from whatever a crash left, and doubles nothing', async () => {
    const { parent, grantId } = await createParent(path('p4'));
    const { child } = await createChild(path('c4'), parent, grantId, { usd: '10' });
    await spend(child, 3);
    const before = readFileSync(path('p4'));
    const begun = child.size;
    await settleSlices(parent, child);
    await closeAll(parent, child);
    const lines = readFileSync(path('c4'), 'utf8').split('\n').slice(0, -1);
    expect(lines.length).toBeGreaterThan(begun + 1);
    for (let kept = begun; kept <= lines.length; kept += 1) {
      for (const torn of ['', '{"event":{"au']) {
        writeFileSync(path('p'), before);
        writeFileSync(path('c'), `${lines.slice(0, kept).join('\n')}\n${torn}`);
        const again = [await open(path('p')), await open(path('c'))] as const;
        expect(await settleSlices(...again)).toHaveLength(1);
        await closeAll(...again);
        await expectSettled('p', 'c', 3);
      }
    }
  });

  it('is done once by two at once', async () => {
    const { parent, grantId } = await createParent(path('p5'));
    const { child } = await createChild(path('c5'), parent, grantId, { usd: '10' });
    await spend(child, 3);
    const others = [await open(path('p5')), await open(path('c5'))] as const;
    await Promise.all([settleSlices(parent, child), settleSlices(...others)]);
    await closeAll(parent, child, ...others);
    expect(countOf('p5', 'execution')).toBe(1);
    expect((await verifyLedger(path('c5'), { parents: [path('p5')] })).verdict).toBe('ok');
    expect((await verifyLedger(path('p5'))).verdict).toBe('ok');
  });

  it('settles the others beside one that the child never granted, which stays spent', async () => {
    const { parent, grantId } = await createParent(path('p9'));
    const { child, sliceId } = await createChild(path('c9'), parent, grantId, { usd: '10' });
    const { openSlice, sliceKey } = await import('../../src/log/fleet/slice.js');
    const { grantSlice } = await import('../../src/log/fleet/grant-slice.js');
    const childId = child.genesisId;
    const request = { grantId, childId, caps: { usd: '5' }, requestKey: sliceKey(childId, 2) };
    const second = await openSlice(parent, request);
    await spend(child, 3);
    const statuses = async (): Promise<unknown[]> =>
      (await settleSlices(parent, child)).map((each) => [each.sliceId, each.status]);
    expect(await statuses()).toEqual([
      [sliceId, 'appended'],
      [second.eventId, 'ungranted'],
    ]);
    expect(await statuses()).toEqual([
      [sliceId, 'exists'],
      [second.eventId, 'ungranted'],
    ]);
    expect(countOf('p9', 'execution')).toBe(1);
    // It was not freed: the child may still take it up, and is settled then.
    await grantSlice(child, second, { allowedTools: ['fs.*'] });
    expect(await statuses()).toEqual([
      [sliceId, 'exists'],
      [second.eventId, 'appended'],
    ]);
    await closeAll(parent, child);
    expect((await verifyLedger(path('c9'), { parents: [path('p9')] })).findings).toEqual([]);
  });

  it('settles all slices of a child by one checkpoint', async () => {
    const { parent, grantId } = await createParent(path('p6'));
    const { child } = await createChild(path('c6'), parent, grantId, { usd: '10' });
    const { openSlice, sliceKey } = await import('../../src/log/fleet/slice.js');
    const { grantSlice } = await import('../../src/log/fleet/grant-slice.js');
    const childId = child.genesisId;
    const caps = { usd: '5' };
    const second = await openSlice(parent, { grantId, childId, caps, requestKey: sliceKey(childId, 2) });
    await grantSlice(child, second, { allowedTools: ['fs.*'] });
    await spend(child, 3);
    expect(await settleSlices(parent, child)).toHaveLength(2);
    expect(countOf('c6', 'checkpoint')).toBe(1);
    await closeAll(parent, child);
    expect((await verifyLedger(path('c6'), { parents: [path('p6')] })).findings).toEqual([]);
  });

  it('settles the others beside one that cannot be closed, which is the error', async () => {
    const { parent, grantId } = await createParent(path('p10'));
    const { child } = await createChild(path('c10'), parent, grantId, { usd: '10' });
    const { openSlice, sliceKey } = await import('../../src/log/fleet/slice.js');
    const { grantSlice } = await import('../../src/log/fleet/grant-slice.js');
    const childId = child.genesisId;
    const end = await begin(child, { usd: '2' });
    const request = { grantId, childId, caps: { usd: '5' }, requestKey: sliceKey(childId, 2) };
    const second = await openSlice(parent, request);
    await grantSlice(child, second, { allowedTools: ['fs.*'] });
    expect(await codeOf(settleSlices(parent, child))).toBe('SLICE_OPEN');
    expect(countOf('p10', 'execution')).toBe(1);
    await end();
    const statuses = (await settleSlices(parent, child)).map(({ status }) => status);
    expect(statuses.sort()).toEqual(['appended', 'exists']);
    await closeAll(parent, child);
    expect((await verifyLedger(path('c10'), { parents: [path('p10')] })).verdict).toBe('ok');
  });

  it('refuses a child that does not verify, or that has no slice', async () => {
    const { parent, grantId } = await createParent(path('p7'));
    const { child } = await createChild(path('c7'), parent, grantId, { usd: '10' });
    await spend(child, 3);
    await child.close();
    const [first, ...rest] = readFileSync(path('c7'), 'utf8').split('\n');
    writeFileSync(
      path('c7'),
      [first, ...rest.map((line) => line.replace('"fs.read"', '"fs.writ"'))].join('\n'),
    );
    const broken = await open(path('c7')).catch((error: unknown) => error as NorthrootError);
    if ('code' in broken) expect(broken.code).toMatch(/^LEDGER_/);
    else {
      expect(await codeOf(settleSlices(parent, broken))).toMatch(/^LEDGER_/);
      await broken.close();
    }
    expect(countOf('p7', 'execution')).toBe(0);
    const other = await createParent(path('p8'));
    expect(await codeOf(settleSlices(other.parent, parent))).toBe('SLICE_NOT_FOUND');
    await expect(settleSlices(parent, other.parent, { waitMs: -1 })).rejects.toThrow(RangeError);
    await expect(settleSlices(parent, other.parent, { wait: 1 } as never)).rejects.toThrow(TypeError);
    await closeAll(parent, other.parent);
    copyFileSync(path('p7'), path('p7b'));
  });
});
