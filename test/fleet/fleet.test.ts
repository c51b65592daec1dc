/** Many ledgers verified together: what a cap allowed over all of them, though some are gone. */

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, symlinkSync, writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { NorthrootError } from '../../src/base/error.js';
import type { FleetReport } from '../../src/format/schema/generated/types.js';
import { ANCHOR_TYPE } from '../../src/log/fleet/anchor-event.js';
import { anchorLedger, anchorsToCheckpoints, verifyAnchoringParent } from '../../src/log/fleet/anchor.js';
import { listFleet, parseFleetList } from '../../src/log/fleet/list-fleet.js';
import { settleSlices } from '../../src/log/fleet/settle.js';
import { openSlice } from '../../src/log/fleet/slice.js';
import { verifyFleet } from '../../src/log/fleet/verify-fleet.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { openLedger } from '../../src/log/tile/tile-tree.js';
import { writeTiles } from '../../src/log/tile/tile-writer.js';
import { begin, create, createChild, createParent, int, makeFolder, open, spend } from './kit.js';

const folder = makeFolder();

function makePlace(name: string): (file: string) => string {
  mkdirSync(join(folder, name));
  return (file) => join(folder, name, file);
}

async function codeOf(promised: Promise<unknown>): Promise<string> {
  return promised.then(
    () => 'none',
    (error: unknown) => (error as NorthrootError).code,
  );
}

const note = (type: string, n: number): object => ({
  event_type: type,
  principal_id: 'service:a',
  n: String(n),
});
const usd = ({ caps }: FleetReport): unknown => caps[0]?.meters.find(({ unit }) => unit === 'usd');
const cut = (path: string, lines: number): void =>
  writeFileSync(path, `${readFileSync(path, 'utf8').split('\n').slice(0, lines).join('\n')}\n`);

describe('a fleet of fifty under one cap, of which ten are cut off', () => {
  it('spends no more than the cap, as anybody can verify', async () => {
    const path = makePlace('fifty');
    // By name the children come first.
    const { parent, grantId } = await createParent(path('parent.jsonl'));
    const children = [];
    for (let n = 0; n < 50; n += 1) {
      const { child } = await createChild(path(`child-${n}.jsonl`), parent, grantId, { usd: '2' });
      children.push(child);
    }
    const next = await create(path('next.jsonl'));
    const asked = { grantId, childId: next.genesisId, caps: { usd: '1' } };
    expect(await codeOf(openSlice(parent, asked))).toBe('RESERVATION_OVER_CAP');
    for (const [n, child] of children.entries()) {
      await spend(child, 1);
      if (n % 2 === 0) await spend(child, 1);
      await expect(spend(child, 2)).rejects.toThrow();
      // Ten die amid a call.
      if (n >= 40) await begin(child, { usd: n % 2 === 0 ? '0' : '1' });
      else await settleSlices(parent, child);
      await child.close();
    }
    // What 20 of 40 did not use is free again.
    expect((await openSlice(parent, { ...asked, caps: { usd: '20' } })).status).toBe('appended');
    await parent.checkpoint();
    await Promise.all([parent.close(), next.close()]);
    const all = await verifyFleet(await listFleet(path('')));
    expect(all.ledgers.filter(({ verdict }) => verdict !== 'ok')).toEqual([]);
    expect(all.verdict).toBe('ok');
    expect(all.caps[0]?.slices).toEqual({ settled: 40, open: 11, missing: 0, released: 0 });
    expect(usd(all)).toEqual({
      unit: 'usd',
      cap: int(100),
      used: int(60),
      reserved: int(40),
      left: int(0),
      set_aside: int(120),
      settled: int(60),
      open: int(40),
      open_used: int(15),
      missing: int(0),
    });
    expect(all.not_checked.map(({ code }) => code)).not.toContain('SLICES');
    // Five files are gone, five lack their end.
    for (let n = 40; n < 45; n += 1) rmSync(path(`child-${n}.jsonl`));
    for (let n = 45; n < 50; n += 1) cut(path(`child-${n}.jsonl`), 3);
    const rest = await verifyFleet(await listFleet(path('')));
    expect([rest.verdict, rest.exit_status]).toEqual(['ok', 0]);
    expect(rest.caps[0]?.slices).toMatchObject({ open: 11, missing: 5 });
    expect(usd(rest)).toMatchObject({
      cap: int(100),
      used: int(60),
      reserved: int(40),
      left: int(0),
      missing: int(10),
    });
    expect(rest.slices.filter(({ child }) => child === null).map(({ meters }) => meters[0]?.used)).toEqual(
      Array(5).fill(null),
    );
    expect(rest.not_checked.find(({ code }) => code === 'SLICES')?.message).toContain(': 5');
  });
});

describe('verifying a fleet', () => {
  it('says which ledger is wrong, and takes the worst', async () => {
    const path = makePlace('worst');
    const { parent, grantId } = await createParent(path('p'));
    const names = ['a', 'b', 'c', 'd'];
    for (const name of names) {
      const { child } = await createChild(path(name), parent, grantId, { usd: '10' });
      await spend(child, 3);
      if (name === 'a') await settleSlices(parent, child);
      await child.close();
    }
    await parent.close();
    const verify = async (): Promise<FleetReport> => verifyFleet([path('p'), ...names.map(path)]);
    expect((await verify()).counts).toMatchObject({ ledgers: 5, by_verdict: { ok: 5 } });
    // Settled by a checkpoint that is no longer there.
    cut(path('a'), 4);
    rmSync(path('b'));
    const report = await verify();
    expect(
      report.ledgers.map(({ path: each, verdict, findings }) => [each, verdict, findings[0]?.code]),
    ).toEqual([
      [path('p'), 'ok', undefined],
      [path('a'), 'violation', 'SLICE_MISMATCH'],
      [path('b'), 'undecided', undefined],
      [path('c'), 'ok', undefined],
      [path('d'), 'ok', undefined],
    ]);
    expect(report.ledgers[2]?.error?.code).toBe('FILE_NOT_FOUND');
    expect([report.verdict, report.exit_status]).toEqual(['violation', 3]);
    // The parent was put back to before it set the slices aside.
    cut(path('p'), 2);
    const back = await verify();
    expect(
      back.ledgers.map(({ verdict, findings }) => [
        verdict,
        findings.find(({ severity }) => severity === 'error')?.code,
      ]),
    ).toEqual([
      ['ok', undefined],
      ['invalid', 'SLICE_NOT_FOUND'],
      ['undecided', undefined],
      ['invalid', 'SLICE_NOT_FOUND'],
      ['invalid', 'SLICE_NOT_FOUND'],
    ]);
  });

  it('finds a slice that two copies of a ledger spend', async () => {
    const path = makePlace('copies');
    const { parent, grantId } = await createParent(path('p'));
    const { child } = await createChild(path('a'), parent, grantId, { usd: '10' });
    await child.close();
    writeFileSync(path('b'), readFileSync(path('a')));
    const copy = await open(path('b'));
    await spend(copy, 10);
    await Promise.all([parent.close(), copy.close()]);
    const report = await verifyFleet(await listFleet(path('')));
    expect(report.ledgers.map(({ error }) => error?.code)).toEqual([undefined, 'LEDGER_REPEATED', undefined]);
    expect(report.exit_status).toBe(2);
  });

  it('finds a ledger that was cut to before it had the slice that it settled', async () => {
    const path = makePlace('before');
    const { parent, grantId } = await createParent(path('p'));
    const { child } = await createChild(path('c'), parent, grantId, { usd: '10' });
    await child.checkpoint();
    await spend(child, 10);
    const lines = readFileSync(path('c'), 'utf8').split('\n');
    const granted = lines.findIndex((line) => line.includes('"slice"'));
    await settleSlices(parent, child);
    await Promise.all([parent.close(), child.close()]);
    expect((await verifyFleet(await listFleet(path('')))).exit_status).toBe(0);
    cut(path('c'), granted);
    const { exit_status: status, ledgers } = await verifyFleet(await listFleet(path('')));
    expect(status).toBe(2);
    expect(ledgers.map(({ verdict, error }) => [verdict, error?.code])).toEqual([
      ['undecided', 'SLICE_MISMATCH'],
      ['ok', undefined],
    ]);
  });

  it('takes slices of slices, whatever the order of files and times', async () => {
    const path = makePlace('deep');
    const { parent, grantId } = await createParent(path('z'));
    const middle = await create(path('y'));
    const slice = await openSlice(parent, { grantId, childId: middle.genesisId, caps: { usd: '50' } });
    const { grantSlice } = await import('../../src/log/fleet/grant-slice.js');
    const granted = await grantSlice(middle, slice, { allowedTools: ['northroot.slice'] });
    const { child } = await createChild(path('x'), middle, granted.eventId, { usd: '20' });
    await spend(child, 20);
    await settleSlices(middle, child);
    expect(await codeOf(settleSlices(parent, middle))).toBe('none');
    await Promise.all([parent, middle, child].map((ledger) => ledger.close()));
    const report = await verifyFleet(await listFleet(path('')));
    expect(
      report.ledgers.flatMap(({ findings }) => findings).filter(({ severity }) => severity !== 'info'),
    ).toEqual([]);
    expect(report.verdict).toBe('ok');
    expect(report.slices.map(({ state, child: by }) => [state, by?.path])).toEqual([
      ['settled', path('x')],
      ['settled', path('y')],
    ]);
    expect(report.caps.map(({ meters }) => meters[0]?.used)).toEqual([int(20), int(20)]);
  });

  it('hides no file that may be a ledger, and waits for no pipe', async () => {
    const path = makePlace('hostile');
    const ledger = await create(path('a.jsonl'));
    await ledger.close();
    const bytes = readFileSync(path('a.jsonl'));
    writeFileSync(path('changed.jsonl'), Buffer.concat([Buffer.from('X'), bytes.subarray(1)]));
    writeFileSync(path('empty.jsonl'), '');
    writeFileSync(path('notes.txt'), 'mine');
    execFileSync('mkfifo', [path('pipe.jsonl')]);
    mkdirSync(path('segments'));
    execFileSync('mkfifo', [path('segments/00000000000000000000.jsonl')]);
    symlinkSync('loop.jsonl', path('loop.jsonl'));
    symlinkSync('a.jsonl', path('other.jsonl'));
    symlinkSync('.', path('here'));
    const { ledgers } = await verifyFleet([...(await listFleet(path(''))), path('segments')]);
    expect(ledgers.map(({ path: each, verdict, error }) => [each, verdict, error?.code])).toEqual([
      [path('a.jsonl'), 'ok', undefined],
      [path('changed.jsonl'), 'invalid', undefined],
      [path('empty.jsonl'), 'undecided', undefined],
      [path('loop.jsonl'), 'undecided', 'FILE_NOT_FOUND'],
      [path('other.jsonl'), 'undecided', 'LEDGER_REPEATED'],
      [path('pipe.jsonl'), 'undecided', 'NOT_A_LEDGER'],
      [path('segments'), 'undecided', 'NOT_A_LEDGER'],
    ]);
  });

  it('is asked with the paths of ledgers', async () => {
    await expect(verifyFleet([])).rejects.toThrow(RangeError);
    await expect(verifyFleet('x' as never)).rejects.toThrow(TypeError);
    await expect(verifyFleet(['x'], { threads: 1 } as never)).rejects.toThrow(TypeError);
    const path = makePlace('empty');
    writeFileSync(path('notes.txt'), 'mine');
    expect(await codeOf(listFleet(path('')))).toBe('FLEET_EMPTY');
    expect(() => parseFleetList('\n \n')).toThrow();
    expect(parseFleetList('a b\r\n\nc')).toEqual(['a b', 'c']);
    expect(parseFleetList('x\n'.repeat(100_000))).toHaveLength(100_000);
    expect(() => parseFleetList('x\n'.repeat(100_001))).toThrow(
      expect.objectContaining({ code: 'INPUT_TOO_LARGE' }),
    );
    const report = await verifyFleet([path('missing'), path('')]);
    expect(report.ledgers.map(({ error }) => error?.code)).toEqual(['FILE_NOT_FOUND', 'NOT_A_LEDGER']);
    const stop = AbortSignal.abort(new Error('enough'));
    await expect(verifyFleet([path('x')], { signal: stop })).rejects.toThrow('enough');
  });
});

describe('an anchor', () => {
  it('is recorded once, and finds a child that was cut or forked', async () => {
    const path = makePlace('anchors');
    const parent = await create(path('z'));
    const child = await create(path('a'));
    const anchor = (): ReturnType<typeof anchorLedger> => anchorLedger(parent, () => openLedger(path('a')));
    expect(await codeOf(anchor())).toBe('CHECKPOINT_MISSING');
    for (let n = 0; n < 3; n += 1) await child.append({ event: note('x.note', n) });
    await child.checkpoint();
    expect([(await anchor()).status, (await anchor()).status]).toEqual(['appended', 'exists']);
    expect(await codeOf(anchorLedger(parent, () => openLedger(path('z'))))).toBe('CHECKPOINT_MISSING');
    await parent.checkpoint();
    expect(await codeOf(anchorLedger(parent, () => openLedger(path('z'))))).toBe('LEDGER_MISMATCH');
    await Promise.all([parent.close(), child.close()]);
    const relation = async (): Promise<unknown[]> => {
      const { anchors, exit_status: status, ledgers } = await verifyFleet(await listFleet(path('')));
      return [
        anchors[0]?.relation,
        status,
        ledgers.find((each) => each.path === path('a'))?.findings[0]?.code,
      ];
    };
    expect(await relation()).toEqual(['extends', 0, undefined]);
    const whole = readFileSync(path('a'));
    cut(path('a'), 3);
    expect(await relation()).toEqual(['truncated', 1, 'TRUNCATED']);
    const fork = await open(path('a'));
    for (let n = 0; n < 3; n += 1) await fork.append({ event: note('x.other', n) });
    await fork.close();
    expect((await relation()).slice(0, 2)).toEqual(['forked', 1]);
    writeFileSync(path('a'), whole);
    // Of a tile tree the id is known once it is verified.
    await writeTiles(() => openLedger(path('a')), path('tree'));
    rmSync(path('a'));
    const tree = await verifyFleet([path('tree'), path('z')]);
    expect(tree.anchors).toMatchObject([{ relation: 'extends', child_path: path('tree'), tree_size: 4 }]);
    expect((await verifyFleet([path('z')])).anchors).toMatchObject([
      { relation: 'missing', child_path: null },
    ]);
  });

  it('finds a fork that was anchored too, and names earlier anchors only where they do not hold', async () => {
    const path = makePlace('anchored-forks');
    const parent = await create(path('p'));
    let child = await create(path('c'));
    const grow = async (type: string): Promise<void> => {
      for (let n = 0; n < 3; n += 1) await child.append({ event: note(type, n) });
      const { note: signed } = await child.checkpoint();
      // As other programs may record it, which compare it with nothing.
      const anchored = { ledger_id: child.genesisId, note: signed };
      await parent.append({ event: { ...note(ANCHOR_TYPE, 0), anchored } });
    };
    await grow('x.note');
    await grow('x.more');
    const relations = async (): Promise<unknown[]> => {
      const { anchors, exit_status: status } = await verifyFleet([path('c'), path('p')]);
      return [status, ...anchors.map(({ tree_size: size, relation }) => [size, relation])];
    };
    expect(await relations()).toEqual([0, [8, 'extends']]);
    await child.close();
    cut(path('c'), 6);
    child = await open(path('c'));
    await grow('x.fork');
    expect(await relations()).toEqual([1, [8, 'forked'], [9, 'extends']]);
    const { anchors } = await verifyAnchoringParent(await openLedger(path('p')));
    const held = anchorsToCheckpoints(anchors.get(child.genesisId) ?? [], 'p');
    const { checkpoints } = await verifyLedger(path('c'), held);
    expect(checkpoints.anchors?.map(({ relation }) => relation)).toEqual(['extends', 'forked']);
    // Of the same size, the later one hides the earlier one as little.
    await child.close();
    cut(path('c'), 6);
    child = await open(path('c'));
    await grow('x.fork.again');
    expect(await relations()).toEqual([1, [8, 'forked'], [9, 'forked'], [9, 'extends']]);
    await Promise.all([parent.close(), child.close()]);
  });

  it.each(['read', 'indexed'])(
    'is refused of a child that does not extend the furthest one in a parent that is %s',
    async (how) => {
      const path = makePlace(`refused-${how}`);
      const index = how === 'indexed' ? path('index') : false;
      const parent = await open(path('p'), { create: {}, index });
      const other = await open(path('p'), { index });
      let child = await create(path('c'));
      const grow = async (type: string): Promise<void> => {
        for (let n = 0; n < 3; n += 1) await child.append({ event: note(type, n) });
        await child.checkpoint();
      };
      const anchor = async (by = parent): Promise<string> => {
        const anchoring = anchorLedger(by, () => openLedger(path('c')), { index }).then(
          ({ status }) => status,
        );
        return anchoring.catch((error: unknown) => (error as NorthrootError).code);
      };
      const size = (): Promise<number> => parent.inspect(({ records }) => records);
      await grow('x.note');
      expect(await anchor()).toBe('appended');
      await grow('x.more');
      expect([await anchor(other), await anchor()]).toEqual(['appended', 'exists']);
      await child.close();
      const whole = readFileSync(path('c'));
      cut(path('c'), 5);
      const before = await size();
      expect([await anchor(), await anchor(other)]).toEqual(['TRUNCATED', 'TRUNCATED']);
      child = await open(path('c'));
      await grow('x.fork');
      await grow('x.fork.more');
      expect([await anchor(), await anchor(other)]).toEqual(['FORKED', 'FORKED']);
      await child.close();
      // A tree that is published says so of its own records alone.
      await writeTiles(() => openLedger(path('c')), path('tree'));
      expect(await codeOf(anchorLedger(parent, () => openLedger(path('tree')), { index }))).toBe('FORKED');
      // Who opens the parent anew reads them.
      await other.close();
      const again = await open(path('p'), { index });
      expect(await anchor(again)).toBe('FORKED');
      expect(await size()).toBe(before);
      writeFileSync(path('c'), whole);
      child = await open(path('c'));
      await grow('x.most');
      expect([await anchor(again), await anchor()]).toEqual(['appended', 'exists']);
      await Promise.all([parent.close(), again.close(), child.close()]);
    },
  );

  it('of two forks at once, by two writers, is one', async () => {
    const path = makePlace('at-once');
    const parents = [await create(path('p')), await open(path('p'))];
    const child = await create(path('c'));
    await child.append({ event: note('x.note', 0) });
    await child.close();
    const forks = ['c', 'd'];
    writeFileSync(path('d'), readFileSync(path('c')));
    for (const name of forks) {
      const fork = await open(path(name));
      await fork.append({ event: note(`x.${name}`, 1) });
      await fork.checkpoint();
      await fork.close();
    }
    const results = await Promise.all(
      parents.map((parent, n) => codeOf(anchorLedger(parent, () => openLedger(path(forks[n] ?? ''))))),
    );
    expect(results.sort()).toEqual(['FORKED', 'none']);
    await Promise.all(parents.map((parent) => parent.close()));
  });
});
