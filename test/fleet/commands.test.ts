/** `northroot slice`, `init --slice`, `grant --slice`, `settle`, `anchor` and `fleet verify`, killed at every step too. */

import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { FleetReport, ReportJson } from '../../src/format/schema/generated/types.js';
import { expectError, expectOk, parse, parseLines, Workshop } from '../cli/runner.js';

const shop = new Workshop();
const GRANT = ['--to', 'agent:a1', '--tool', 'northroot.slice', '--cap', 'usd=100'];

function makeParent(name: string): void {
  expectOk(shop.run(['init', name]));
  expectOk(shop.run(['grant', name, ...GRANT]));
}

const init = (child: string, parent: string, ...more: string[]): string[] => [
  ...['init', child, '--slice', parent, '--grant', '1', '--cap', 'usd=10', '--tool', 'fs.*'],
  ...more,
];

const typesOf = (name: string): string[] => shop.records(name).map(({ event }) => event.event_type);
const PARENT = ['genesis', 'authorization', 'authorization', 'x.northroot.start'];
const CHILD = ['genesis', 'authorization'];

interface InitJson {
  readonly event_id: string;
  readonly grant: { readonly seq: number; readonly status: string };
  readonly slice: { readonly seq: number; readonly status: string };
}

describe('init --slice', () => {
  it('makes a child that may spend; given again, it says so', () => {
    makeParent('p1');
    const first = parse<InitJson>(expectOk(shop.run(init('c1', 'p1', '--expires', '1d'))));
    expect([first.grant.status, first.slice.status]).toEqual(['appended', 'appended']);
    const again = parse<InitJson>(expectOk(shop.run(init('c1', 'p1', '--expires', '1d'))));
    expect([again.event_id, again.grant.status, again.slice.status]).toEqual([
      first.event_id,
      'exists',
      'exists',
    ]);
    expect([typesOf('p1'), typesOf('c1')]).toEqual([PARENT, CHILD]);
    expectOk(shop.run(['verify', 'c1', '--parent', 'p1']));
  });

  it('goes on from whatever a crash left', () => {
    makeParent('p2');
    expectOk(shop.run(init('c2', 'p2')));
    const parent = shop.lines('p2');
    const child = shop.lines('c2');
    const steps: [number, number, string][] = [
      [0, 2, 'the key alone'],
      [1, 2, 'the genesis'],
      [1, 3, 'the action, torn from its start'],
      [1, 4, 'the slice'],
      [2, 4, 'all'],
    ];
    for (const [n, [inChild, inParent, what]] of steps.entries()) {
      for (const torn of ['', '{"event":{']) {
        const name = `at-${n}${torn === '' ? '' : '-torn'}`;
        const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');
        shop.write(`${name}-p`, text(parent.slice(0, inParent)) + torn);
        if (inChild > 0) shop.write(`${name}-c`, text(child.slice(0, inChild)) + torn);
        copyFileSync(shop.path('p2.key'), shop.path(`${name}-p.key`));
        copyFileSync(shop.path('c2.key'), shop.path(`${name}-c.key`));
        expectOk(shop.run(init(`${name}-c`, `${name}-p`)));
        expect([what, typesOf(`${name}-p`), typesOf(`${name}-c`)]).toEqual([what, PARENT, CHILD]);
        expectOk(shop.run(['verify', '--quiet', `${name}-c`, '--parent', `${name}-p`]));
      }
    }
  });

  it.each<[string, (child: string, parent: string) => boolean]>([
    ['its key', (child) => existsSync(shop.path(`${child}.key`))],
    ['its genesis', (child) => linesOf(child) >= 1],
    ['the slice', (_, parent) => linesOf(parent) >= 4],
    ['its grant', (child) => linesOf(child) >= 2],
  ])('killed after %s, goes on', async (what, isThere) => {
    const [child, parent] = [`killed-c-${what}`, `killed-p-${what}`];
    makeParent(parent);
    const running = shop.start(init(child, parent));
    await running.until(() => running.hasEnded || isThere(child, parent));
    running.kill('SIGKILL');
    await running.end();
    expectOk(shop.run(init(child, parent)));
    expect([typesOf(parent), typesOf(child)]).toEqual([PARENT, CHILD]);
    expectOk(shop.run(['verify', '--quiet', child, '--parent', parent]));
  });

  it('is refused for wrong input', () => {
    makeParent('p3');
    expectError(shop.run(['init', 'c3', '--cap', 'usd=1']), 2, 'USAGE');
    expectError(shop.run(['init', 'c3', '--slice', 'p3', '--cap', 'usd=1']), 2, 'USAGE');
    expectError(shop.run(init('c3', 'p3', '--tool', 'a b')), 2, 'USAGE');
    expectError(shop.run(init('c3', 'p3', '--expires', 'soon')), 2, 'USAGE');
    expectError(shop.run(init('c3', 'no-parent')), 2, 'FILE_NOT_FOUND');
    const unknown = shop.run(init('c3', 'p3', '--grant', '99'));
    expectError(unknown, 2, 'RECORD_NOT_FOUND');
    expect(unknown.stderr).toContain('northroot log p3');
    expect(shop.has('c3')).toBe(false);
    const denied = shop.run([
      'init',
      'c3',
      '--slice',
      'p3',
      '--grant',
      '1',
      '--cap',
      'usd=101',
      '--tool',
      'x',
    ]);
    expect([denied.status, denied.stdout]).toEqual([3, '']);
    expect(denied.stderr).toContain('RESERVATION_OVER_CAP');
    expect(typesOf('c3')).toEqual(['genesis']);
    // What was denied may be asked for otherwise.
    expectOk(shop.run(init('c3', 'p3')));
    expectError(shop.run(init('p3', 'c3')), 2, 'LEDGER_EXISTS');
    expectError(shop.run(['init', 'c3']), 2, 'LEDGER_EXISTS');
  });
});

describe('a grant of every tool', () => {
  it('allows no slices, and the hint names the tool that does', () => {
    expectOk(shop.run(['init', 'p-any']));
    expectOk(shop.run(['grant', 'p-any', '--to', 'agent:a1', '--tool', '*', '--cap', 'usd=100']));
    const denied = shop.run(init('c-any', 'p-any'));
    expect(denied.status).toBe(3);
    expect(denied.stderr).toMatch(/^hint: .*--tool northroot\.slice$/m);
  });
});

function linesOf(name: string): number {
  return shop.has(name) ? readFileSync(shop.path(name)).filter((byte) => byte === 0x0a).length : 0;
}

describe('slice', () => {
  it('writes what grant takes, once for each that the child takes up', () => {
    makeParent('p4');
    expectOk(shop.run(['init', 'c4']));
    const slice = ['slice', 'p4', '--grant', '1', '--to', 'c4', '--cap', 'usd=10'];
    const first = expectOk(shop.run(slice));
    const again = parse<{ status: string; event_id: string }>(expectOk(shop.run(slice)));
    expect([again.status, again.event_id]).toEqual(['exists', parse<{ event_id: string }>(first).event_id]);
    shop.write('slice.json', first);
    expectOk(shop.run(['grant', 'c4', '--slice', 'slice.json', '--tool', 'fs.*', '--cap', 'usd=5']));
    expectOk(shop.run(['grant', 'c4', '--slice', '-', '--tool', 'fs.*'], { input: first }));
    expect(typesOf('c4')).toEqual(CHILD);
    expect(parse<{ status: string }>(expectOk(shop.run(slice))).status).toBe('appended');
    const [{ event }] = shop.records('c4');
    const byId = ['slice', 'p4', '--grant', '1', '--to', `sha-256:${event.event_id.b64}`, '--cap', 'usd=10'];
    expect(parse<{ status: string }>(expectOk(shop.run(byId))).status).toBe('exists');
    expectOk(shop.run(['verify', '--quiet', 'c4', '--parent', 'p4']));
    expectError(shop.run(['verify', 'c4', '--parent', 'p4', '--parent', 'p4']), 2, 'USAGE');
    const more = ['--tool', 'x', '--cap', 'usd=11'];
    expectError(shop.run(['grant', 'c4', '--slice', 'slice.json', ...more]), 1, 'SLICE_EXCEEDED');
    expectError(
      shop.run(['grant', 'c4', '--slice', 'slice.json', '--to', 'agent:b', '--tool', 'x']),
      2,
      'USAGE',
    );
    expectError(shop.run(['grant', 'p4', '--slice', 'slice.json', '--tool', 'x']), 1, 'LEDGER_MISMATCH');
    shop.write('other.json', '{"ledger_id":1}');
    expectError(shop.run(['grant', 'c4', '--slice', 'other.json', '--tool', 'x']), 2, 'USAGE');
    expectError(shop.run([...slice.slice(0, 4), '--to', 'missing', '--cap', 'usd=1']), 2, 'FILE_NOT_FOUND');
    expectError(shop.run([...slice.slice(0, 4), '--to', 'sha-256:x', '--cap', 'usd=1']), 2, 'USAGE');
    expect(shop.run(['slice', 'c4', '--grant', '1', '--to', 'p4', '--cap', 'usd=1']).status).toBe(3);
  });
});

describe('a slice that was begun', () => {
  it('is neither abandoned, nor released, nor recorded as other calls are', () => {
    makeParent('p7');
    const { slice } = parse<InitJson>(expectOk(shop.run(init('c7', 'p7'))));
    const before = shop.read('p7');
    const record = ['record', 'p7', '--auth', String(slice.seq)];
    for (const more of [
      ['--abandon'],
      ['--resume', '--', 'true'],
      ['--outcome', 'success', '--meter', 'usd=0'],
      ['--outcome', 'failure', '--error-code', 'TIMEOUT'],
      ['--outcome', 'unknown'],
    ])
      expectError(shop.run([...record, ...more]), 1, 'SLICE_BEGUN');
    const release = ['--outcome', 'failure', '--error-code', 'ABANDONED'];
    expectError(shop.run([...record, ...release]), 1, 'AUTHORIZATION_STARTED');
    expectError(shop.run([...record, '--', 'true']), 1, 'AUTHORIZATION_STARTED');
    expect(expectOk(shop.run(['abandon', 'p7', '--expired', '--older-than', '1s']))).toBe('');
    expect(shop.read('p7')).toBe(before);
    expectOk(shop.run(['settle', 'p7', 'c7']));
  });
});

describe('settle, anchor and fleet verify', () => {
  it('settle the others beside a slice that the child has no grant of, with status 1', () => {
    makeParent('p8');
    expectOk(shop.run(init('c8', 'p8')));
    const second = ['slice', 'p8', '--grant', '1', '--to', 'c8', '--cap', 'usd=5', '--request-key', 'second'];
    expectOk(shop.run(second));
    const run = shop.run(['settle', 'p8', 'c8']);
    expect(run.status).toBe(1);
    expect(parseLines<{ status: string }>(run.stdout).map(({ status }) => status)).toEqual([
      'appended',
      'ungranted',
    ]);
    expect(typesOf('p8').filter((type) => type === 'execution')).toHaveLength(1);
  });

  it('end what was begun, and prove it', async () => {
    shop.makeFolder('fleet');
    makeParent('fleet/p.jsonl');
    const settle = (child: string): string[] => ['settle', 'fleet/p.jsonl', `fleet/${child}.jsonl`];
    for (const name of ['a', 'b']) expectOk(shop.run(init(`fleet/${name}.jsonl`, 'fleet/p.jsonl')));
    expectOk(shop.run(['init', 'lone']));
    expectError(shop.run(['settle', 'fleet/p.jsonl', 'lone']), 1, 'SLICE_NOT_FOUND');
    expectOk(
      shop.run([
        'record',
        'fleet/a.jsonl',
        '--auth',
        '1',
        '--tool',
        'fs.x',
        '--meter',
        'usd=3',
        '--',
        'true',
      ]),
    );
    const [done] = parseLines<{ status: string; meter_used: unknown }>(expectOk(shop.run(settle('a'))));
    expect(done).toMatchObject({
      status: 'appended',
      meter_used: [{ unit: 'usd', amount: { t: 'int', v: '3' } }],
    });
    const [again] = parseLines<{ status: string }>(expectOk(shop.run(settle('a'))));
    expect(again?.status).toBe('exists');
    // Killed once it has sealed the child.
    const running = shop.start(settle('b'));
    await running.until(() => running.hasEnded || shop.read('fleet/b.jsonl').includes('"checkpoint"'));
    running.kill('SIGKILL');
    await running.end();
    expectOk(shop.run(settle('b')));
    expect(typesOf('fleet/p.jsonl').filter((type) => type === 'execution')).toHaveLength(2);

    const anchor = ['anchor', 'fleet/p.jsonl', 'fleet/a.jsonl'];
    expectOk(shop.run(anchor));
    expectOk(shop.run(anchor));
    expect(typesOf('fleet/p.jsonl').filter((type) => type === 'x.northroot.anchor')).toHaveLength(1);
    expectOk(shop.run(['checkpoint', 'fleet/p.jsonl']));
    const text = expectOk(shop.run(['fleet', 'verify', 'fleet']));
    expect(text).toContain('3 ledgers');
    shop.write('list', 'fleet/p.jsonl\nfleet/a.jsonl\nfleet/b.jsonl\n');
    const json = parse<FleetReport>(expectOk(shop.run(['fleet', 'verify', 'list', '--format', 'json'])));
    expect(json).toMatchObject({ verdict: 'ok', counts: { ledgers: 3 }, anchors: [{ relation: 'extends' }] });
    expect(json.slices.map(({ state }) => state)).toEqual(['settled', 'settled']);

    const whole = shop.read('fleet/a.jsonl');
    shop.write('fleet/a.jsonl', whole.split('\n').slice(0, 3).join('\n') + '\n');
    const found = shop.run(['verify', 'fleet/a.jsonl', '--parent', 'fleet/p.jsonl']);
    expect([found.status, /TRUNCATED/.test(found.stdout), /SLICE_MISMATCH/.test(found.stdout)]).toEqual([
      1,
      true,
      true,
    ]);
    expect(shop.run(['fleet', 'verify', 'fleet', '--output', 'json=report.json']).status).toBe(1);
    expect(parse<FleetReport>(shop.read('report.json')).anchors).toMatchObject([{ relation: 'truncated' }]);

    // Nor is a child anchored that does not extend what was.
    const size = shop.read('fleet/p.jsonl').length;
    expectOk(shop.run(['checkpoint', 'fleet/a.jsonl']));
    expectError(shop.run(anchor), 1, 'TRUNCATED');
    expect(shop.read('fleet/p.jsonl')).toHaveLength(size);

    // A tile tree is held against its anchors, too.
    shop.write('fork.jsonl', `${whole.split('\n')[0]}\n`);
    shop.write('fork.jsonl.key', shop.read('fleet/a.jsonl.key'));
    expectOk(shop.run(['checkpoint', 'fork.jsonl']));
    expectOk(shop.run(['tiles', 'fork.jsonl', '--out', 'tree']));
    const tree = shop.run(['verify', 'tree', '--parent', 'fleet/p.jsonl']);
    expect([tree.status, /TRUNCATED/.test(tree.stdout)]).toEqual([1, true]);

    // A parent that is broken shows nothing, and it is said which.
    shop.write('broken.jsonl', `${shop.read('fleet/p.jsonl')}torn`);
    shop.write('cut.jsonl', whole.split('\n').slice(0, 1).join('\n') + '\n');
    const unknown = shop.run(['verify', 'cut.jsonl', '--parent', 'broken.jsonl']);
    expect([unknown.status, /broken\.jsonl is itself invalid/.test(unknown.stderr)]).toEqual([0, true]);
  });

  it('say of which ledgers something was not checked, if not of all', () => {
    shop.makeFolder('some');
    for (const name of ['some/a.jsonl', 'some/b.jsonl']) expectOk(shop.run(['init', name]));
    expectOk(shop.run(['checkpoint', 'some/a.jsonl']));
    const text = expectOk(shop.run(['fleet', 'verify', 'some']));
    const about = (code: string): string =>
      text.split('\n').find((line) => line.startsWith(`  ${code} `)) ?? 'none';
    expect(about('CHECKPOINTS')).toContain('1 of 2 ledgers: some/b.jsonl');
    expect(about('TRUST')).not.toContain('ledgers: ');
  });

  it('take a bundle for the parent, and say what it does not show', () => {
    makeParent('p6');
    expectOk(shop.run(init('c6', 'p6')));
    const other = '{"event_type":"x.note","principal_id":"service:a"}';
    expectOk(shop.run(['append', 'p6'], { input: other }));
    expectOk(shop.run(['checkpoint', 'p6']));
    const verify = (bundle: string): { report: ReportJson; status: number | null } => {
      const run = shop.run(['verify', 'c6', '--parent', bundle, '--format', 'json']);
      return { report: parse<ReportJson>(run.stdout), status: run.status };
    };
    const gapOf = ({ not_checked: list }: ReportJson): string | undefined =>
      list.find(({ code }) => code === 'SLICES')?.message;
    expectOk(shop.run(['export', 'p6', '--bundle', 'slice.nrb', '--event', '2', '--event', '3']));
    const shown = verify('slice.nrb');
    expect(shown.status).toBe(0);
    expect(gapOf(shown.report)).toContain('only some records');
    // The whole ledger in a bundle shows all that the ledger does.
    expectOk(shop.run(['export', 'p6', '--bundle', 'whole.nrb']));
    expect(gapOf(verify('whole.nrb').report)).toBeUndefined();
    // One without the start shows no slice that was begun.
    expectOk(shop.run(['export', 'p6', '--bundle', 'part.nrb', '--event', '2']));
    const unbegun = verify('part.nrb');
    expect([unbegun.status, unbegun.report.findings?.[0]?.code]).toEqual([1, 'SLICE_NOT_FOUND']);
    const bytes = shop.bytes('slice.nrb');
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    shop.write('broken.nrb', bytes);
    expect(shop.run(['verify', 'c6', '--parent', 'broken.nrb']).status).not.toBe(0);
  });

  it('are refused for wrong input', () => {
    makeParent('p5');
    expectError(shop.run(['fleet', 'verify', 'p5']), 2, 'USAGE');
    expectError(shop.run(['fleet', 'verify', 'missing']), 2, 'FILE_NOT_FOUND');
    shop.makeFolder('nothing');
    expectError(shop.run(['fleet', 'verify', 'nothing']), 2, 'FLEET_EMPTY');
    expect(shop.run(['fleet', 'verify', '-'], { input: 'missing\n' }).status).toBe(2);
    expectError(shop.run(['anchor', 'p5', 'missing']), 2, 'FILE_NOT_FOUND');
    expectError(shop.run(['anchor', 'p5', 'p5']), 2, 'CHECKPOINT_MISSING');
    expectOk(shop.run(['checkpoint', 'p5']));
    expectError(shop.run(['anchor', 'p5', 'p5']), 1, 'LEDGER_MISMATCH');
    expectError(shop.run(['settle', 'p5', 'p5', '--wait', 'x']), 2, 'USAGE');
  });
});
