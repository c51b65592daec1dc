/** `northroot checkpoint`, `append --checkpoint-every` and `verify --checkpoint`: what is sealed, published, cosigned and held against. */

import { mkdirSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Report } from '../../src/rules/report/report.js';
import { parseNote } from '../../src/format/note/signed-note.js';
import { ndjson, note } from './drafts.js';
import {
  expectCode,
  expectError,
  expectOk,
  parse,
  parseLines,
  Workshop,
  type Run,
  type Running,
} from './runner.js';

const shop = new Workshop();
const ORIGIN = 'example.com/tests/seal';

interface Sealed {
  readonly seq: number;
  readonly event_id: string;
  readonly tree_size: number;
  readonly note: string;
  readonly attestation?: { readonly seq: number; readonly event_id: string };
  readonly cosignatures?: readonly {
    readonly name: string;
    readonly key_id: string;
    readonly verified: boolean;
    readonly declared?: boolean;
  }[];
}

/** A ledger of `count` notes with a key of its own; what ends in `/` is a folder. */
function make(name: string, count = 2): string {
  const input = ndjson(Array.from({ length: count }, (_, n) => note(n)));
  expectOk(shop.run(['append', name, '--origin', ORIGIN], { input }));
  return name;
}

function verify(path: string, ...args: string[]): { status: number | null; report: Report } {
  const { status, stdout } = shop.run(['verify', path, '--format', 'json', ...args]);
  return { status, report: parse<Report>(stdout) };
}

function codesOf({ findings = [] }: Report): string[] {
  return findings.map(({ code }) => code);
}

/** Asserts that a ledger is right and sealed up to its last checkpoint. */
function expectSealed(path: string, treeSize: number, ...args: string[]): Report {
  return expectSealedBut([], path, treeSize, ...args);
}

function expectSealedBut(
  known: readonly string[],
  path: string,
  treeSize: number,
  ...args: string[]
): Report {
  const { status, report } = verify(path, ...args);
  const codes = codesOf(report).filter((code) => code !== 'TAIL_UNSEALED' && !known.includes(code));
  expect({ status, codes }).toEqual({ status: 0, codes: [] });
  expect(report.checkpoints.last_tree_size).toBe(treeSize);
  return report;
}

function typesOf(name: string): string[] {
  return shop.records(name).map(({ event }) => event.event_type);
}

function edit(from: string, to: string, change: (lines: string[]) => string[]): string {
  return shop.write(
    to,
    change(shop.lines(from))
      .map((line) => `${line}\n`)
      .join(''),
  );
}

describe('checkpoint', () => {
  it('seals a ledger, tells of it, and publishes the note', () => {
    make('a.jsonl');
    const run = shop.run(['checkpoint', 'a.jsonl']);
    const [, , , record] = shop.records('a.jsonl');
    expect(parse(expectOk(run))).toEqual({
      seq: 3,
      event_id: `sha-256:${record.event.event_id.b64}`,
      tree_size: 3,
      note: 'a.jsonl.checkpoint',
    });
    expect(run.stderr).toBe('');
    expect(shop.read('a.jsonl.checkpoint')).toBe(record.event['note']);
    expect(shop.files('a.jsonl')).toEqual(['a.jsonl', 'a.jsonl.checkpoint', 'a.jsonl.key']);
    expectSealed('a.jsonl', 3);
    expect(record.event.principal_id).toBe(shop.records('a.jsonl')[0].event.principal_id);
  });

  it('again, with another note, another principal and a named key', () => {
    make('b.jsonl');
    expectOk(shop.run(['checkpoint', 'b.jsonl']));
    const first = shop.read('b.jsonl.checkpoint');
    const args = ['--note', 'elsewhere.note', '--principal', 'service:sealer', '--key', 'b.jsonl.key'];
    const sealed = parse<Sealed>(expectOk(shop.run(['checkpoint', 'b.jsonl', ...args])));
    expect(sealed).toMatchObject({ seq: 4, tree_size: 4, note: 'elsewhere.note' });
    expect(shop.read('b.jsonl.checkpoint')).toBe(first);
    expect(shop.records('b.jsonl')[4].event.principal_id).toBe('service:sealer');
    expectSealed('b.jsonl', 4, '--checkpoint', 'elsewhere.note', '--checkpoint', 'b.jsonl.checkpoint');
  });

  it('of a folder puts the note beside it', () => {
    make('f/', 3);
    const sealed = parse<Sealed>(expectOk(shop.run(['checkpoint', 'f/'])));
    expect(sealed.note).toBe('f.checkpoint');
    expect(shop.has('f.checkpoint')).toBe(true);
    expectSealed('f/', 4, '--checkpoint', 'f.checkpoint');
  });

  it('of an unsigned ledger counts for whoever pins the key', () => {
    expectOk(shop.run(['append', 'u.jsonl', '--unsigned', '--origin', ORIGIN], { input: ndjson([note(1)]) }));
    expectError(shop.run(['checkpoint', 'u.jsonl']), 2, 'SIGNATURE_MISSING');
    const { keyid, public_key } = parse<{ keyid: string; public_key: string }>(
      expectOk(shop.run(['keygen', '--out', 'u.pem'])),
    );
    expectOk(shop.run(['checkpoint', 'u.jsonl', '--key', 'u.pem']));
    const key = { keyid, public_key, roles: ['event', 'checkpoint'], principals: ['*'] };
    shop.write(
      'u.policy',
      JSON.stringify({ trust_version: '1', origins: [ORIGIN], keys: [key], require: {} }),
    );
    expect(verify('u.jsonl').report.checkpoints.last_tree_size).toBeNull();
    expectSealed('u.jsonl', 2, '--trust', 'u.policy');
  });

  it('does not seal broken evidence', () => {
    make('broken.jsonl', 3);
    expectOk(shop.run(['checkpoint', 'broken.jsonl']));
    const note = shop.read('broken.jsonl.checkpoint');
    shop.write('broken.jsonl', shop.read('broken.jsonl').replace('"n":1', '"n":7'));
    const before = shop.read('broken.jsonl');
    expectError(shop.run(['checkpoint', 'broken.jsonl']), 1, 'LEDGER_INVALID');
    expect(shop.read('broken.jsonl')).toBe(before);
    expect(shop.read('broken.jsonl.checkpoint')).toBe(note);
  });

  it.each<[string, 1 | 2, string, string[]]>([
    ['a ledger that is not there', 2, 'FILE_NOT_FOUND', ['missing.jsonl']],
    ['a P-256 key', 2, 'KEY_UNSUPPORTED', ['k.jsonl', '--key', 'p256.pem']],
    ['a key that the ledger does not declare', 1, 'KEY_UNKNOWN', ['k.jsonl', '--key', 'stranger.pem']],
    ['a key file that is none', 2, 'KEY_MALFORMED', ['k.jsonl', '--key', 'k.jsonl']],
    ['a principal that is none', 2, 'USAGE', ['k.jsonl', '--principal', 'me']],
    ['a witness key and no witness', 2, 'USAGE', ['k.jsonl', '--witness-policy', 'silent.policy']],
    [
      'a witness key that is a log key',
      2,
      'USAGE',
      ['k.jsonl', '--witness', 'http://[::1]:1', '--witness-key', '@log'],
    ],
    [
      'a witness key that is none',
      2,
      'KEY_MALFORMED',
      ['k.jsonl', '--witness', 'http://[::1]:1', '--witness-key', 'x'],
    ],
  ])('refuses %s, and changes nothing', (_what, status, code, args) => {
    if (!shop.has('k.jsonl')) {
      make('k.jsonl');
      expectOk(shop.run(['keygen', '--out', 'stranger.pem']));
      expectOk(shop.run(['keygen', '--alg', 'p256', '--out', 'p256.pem']));
      const witness = expectOk(
        shop.run(['key', 'show', 'stranger.pem', '--form', 'cosigner', '--name', 'w.example']),
      );
      shop.write('silent.policy', `witness W ${witness.trim()}\nquorum W\n`);
    }
    const before = shop.read('k.jsonl');
    const vkey = expectOk(
      shop.run(['key', 'show', 'stranger.pem', '--form', 'vkey', '--name', 'l.example']),
    ).trim();
    expectError(shop.run(['checkpoint', ...args.map((arg) => (arg === '@log' ? vkey : arg))]), status, code);
    expect(shop.read('k.jsonl')).toBe(before);
    expect(shop.has('k.jsonl.checkpoint')).toBe(false);
  });

  it('stands when its note cannot be written, and leaves no half note', () => {
    make('n.jsonl');
    mkdirSync(shop.path('n.jsonl.checkpoint'));
    const run = shop.run(['checkpoint', 'n.jsonl']);
    expect(run.status).toBe(2);
    expect(typesOf('n.jsonl').at(-1)).toBe('checkpoint');
    expect(shop.files('n.jsonl')).toEqual(['n.jsonl', 'n.jsonl.checkpoint', 'n.jsonl.key']);
    expectOk(shop.run(['checkpoint', 'n.jsonl', '--note', 'n.note']));
    expectSealed('n.jsonl', 4, '--checkpoint', 'n.note');
  });

  it('takes the place of no ledger, of no key, and of nothing that is no note', () => {
    expectOk(shop.run(['init', 'own.jsonl']));
    shop.write('text.txt', 'hello');
    const before = ['own.jsonl', 'own.jsonl.key'].map((name) => shop.read(name));
    for (const file of ['own.jsonl', 'own.jsonl.key', './own.jsonl']) {
      expectError(shop.run(['checkpoint', 'own.jsonl', '--note', file]), 2, 'USAGE');
      const append = ['append', 'own.jsonl', '--principal', 'service:x', '--checkpoint-every', '1'];
      expectError(shop.run([...append, '--note', file], { input: ndjson([note(1)]) }), 2, 'USAGE');
    }
    const serve = ['serve', 'own.jsonl', '--face', 'cgf', '--cgf-anonymous', '--cgf-events', 'own.jsonl'];
    expectError(shop.run(serve), 2, 'USAGE');
    expect(['own.jsonl', 'own.jsonl.key'].map((name) => shop.read(name))).toEqual(before);
    expect(shop.run(['checkpoint', 'own.jsonl', '--note', 'text.txt'])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('FILE_EXISTS'),
    });
    expect(shop.read('text.txt')).toBe('hello');
  });

  it('seals nothing for a witness that has no such URL', () => {
    const ledger = make('bad-url.jsonl');
    const before = shop.read(ledger);
    for (const url of ['ftp://w.example', 'w.example', 'http://w.example/?a=b']) {
      const run = shop.run(['checkpoint', ledger, '--witness', url]);
      expect(run).toMatchObject({ status: 2, stdout: '' });
      expectCode(run, 'WITNESS_URL_INVALID');
    }
    expect(shop.read(ledger)).toBe(before);
  });
});

describe('append --checkpoint-every', () => {
  it.each<[string, number, number[]]>([
    // Genesis counts as the first.
    ['1', 3, [1, 3, 5, 7]],
    ['3', 6, [3, 7]],
    ['50', 4, []],
  ])('%s, with %i events in one pipe', (every, count, expected) => {
    const name = `every-${every}.jsonl`;
    const input = ndjson(Array.from({ length: count }, (_, n) => note(n)));
    const run = shop.run(['append', name, '--checkpoint-every', every, '--create'], { input });
    const results = parseLines(expectOk(run));
    expect(results).toHaveLength(count);
    const types = typesOf(name);
    for (const { seq } of results) expect(types[seq]).toBe('x.note');
    const places = types.flatMap((type, seq) => (type === 'checkpoint' ? [seq] : []));
    expect(places).toEqual(expected);
    for (const seq of places)
      expect(run.stderr).toMatch(new RegExp(`sealed ${seq} records? with the checkpoint of seq ${seq}\n`));
    const last = places.at(-1);
    expect(shop.has(`${name}.checkpoint`)).toBe(last !== undefined);
    if (last === undefined) return;
    expect(shop.read(`${name}.checkpoint`)).toBe(shop.records(name)[last].event['note']);
    expectSealed(name, last, '--checkpoint', `${name}.checkpoint`);
  });

  it('goes on counting from run to run, in a folder of segments', () => {
    for (let run = 0; run < 5; run += 1) {
      const args = [
        'append',
        'runs/',
        '--checkpoint-every',
        '4',
        '--segment-bytes',
        '2000',
        '--note',
        'runs.note',
        '--create',
      ];
      expectOk(shop.run(args, { input: ndjson([note(2 * run), note(2 * run + 1)]) }));
    }
    // Of 11 records and the checkpoints between them.
    const report = expectSealed('runs/', 9, '--checkpoint', 'runs.note');
    expect(report.checkpoints).toMatchObject({ count: 2, unsealed: 3 });
    expect(report.ledger.paths.length + shop.files('runs').length).toBeGreaterThan(1);
  });

  it('by time ends promptly with its input', () => {
    const run = shop.run(['append', 'time.jsonl', '--checkpoint-every', '1d', '--create'], {
      input: ndjson([note(1)]),
    });
    expectOk(run);
    expect(shop.has('time.jsonl.checkpoint')).toBe(false);
    expect(typesOf('time.jsonl')).toEqual(['genesis', 'x.note']);
  });

  it('by time seals while it waits for input', async () => {
    const running = shop.start(['append', 'waits.jsonl', '--checkpoint-every', '1s', '--create']);
    await running.feed(ndjson([note(1)]));
    await running.until(({ stderr }) => stderr.includes('sealed '));
    running.endInput();
    expect(await running.end()).toMatchObject({ status: 0 });
    expectSealed('waits.jsonl', 2, '--checkpoint', 'waits.jsonl.checkpoint');
  });

  it.each([['0'], ['-1'], ['1.5'], ['10x'], ['1w'], [''], ['1e3'], ['99999999999']])(
    'refuses %j',
    (every) => {
      const run = shop.run(['append', 'refused.jsonl', '--checkpoint-every', every], {
        input: ndjson([note(1)]),
      });
      expectError(run, 2, 'USAGE');
      expect(shop.has('refused.jsonl')).toBe(false);
    },
  );

  it('needs a key that may seal, before anything is appended', () => {
    make('may.jsonl');
    expectOk(shop.run(['keygen', '--out', 'may.pem']));
    expectOk(shop.run(['key', 'add', 'may.jsonl', 'may.pem']));
    const before = shop.read('may.jsonl');
    const args = ['append', 'may.jsonl', '--checkpoint-every', '2', '--key', 'may.pem', '--create'];
    expectError(shop.run(args, { input: ndjson([note(9)]) }), 1, 'KEY_NOT_FOR_ROLE');
    expect(shop.read('may.jsonl')).toBe(before);
    const unsigned = ['append', 'new.jsonl', '--checkpoint-every', '2', '--unsigned', '--create'];
    expectError(shop.run(unsigned, { input: ndjson([note(9)]) }), 2, 'SIGNATURE_MISSING');
  });

  it('keeps what was sealed before an event that is refused', () => {
    const input = ndjson([note(1), note(2), note(3), { event_type: 'x.note' }, note(4)]);
    const run = shop.run(['append', 'stop.jsonl', '--checkpoint-every', '2', '--create'], { input });
    expect(run.status).toBe(1);
    expectCode(run, 'SCHEMA', 'stdin:4');
    expect(parseLines(run.stdout)).toHaveLength(3);
    expectSealed('stop.jsonl', 5, '--checkpoint', 'stop.jsonl.checkpoint');
  });

  it('loses nothing and leaves a ledger that verifies when it is killed', async () => {
    const text = 'x'.repeat(700);
    for (let round = 0; round < 4; round += 1) {
      const running = shop.start(['append', 'killed.jsonl', '--checkpoint-every', '1', '--create']);
      const input = ndjson(Array.from({ length: 300 }, (_, n) => note(`${round}-${n}`, { text })));
      void running.feed(input);
      await running.until(({ stdout }) => stdout.split('\n').length > 4 + 10 * round);
      running.kill('SIGKILL');
      const { stdout } = await running.end();
      const done = parseLines(`${stdout.slice(0, stdout.lastIndexOf('\n') + 1)}`);
      const { report } = verify('killed.jsonl');
      expect(codesOf(report).filter((code) => !['LINE_TORN', 'TAIL_UNSEALED'].includes(code))).toEqual([]);
      const records = shop
        .lines('killed.jsonl')
        .map((line) => parse<{ event: { event_id: { b64: string } } }>(line));
      for (const { seq, event_id } of done)
        expect(`sha-256:${records[seq].event.event_id.b64}`).toBe(event_id);
      // The note is of a checkpoint that is on disk, whole.
      if (shop.has('killed.jsonl.checkpoint')) {
        const anchored = verify('killed.jsonl', '--checkpoint', 'killed.jsonl.checkpoint').report;
        expect(anchored.checkpoints.anchors).toMatchObject([{ relation: 'extends' }]);
      }
    }
    expectOk(shop.run(['checkpoint', 'killed.jsonl']));
    expectSealed('killed.jsonl', shop.lines('killed.jsonl').length - 1);
  });

  it('takes turns with other writers and checkpointers', async () => {
    make('shared.jsonl', 1);
    const jobs = [0, 1, 2].map((job) => {
      const running = shop.start([
        'append',
        'shared.jsonl',
        '--checkpoint-every',
        '2',
        '--lock-timeout',
        '30',
      ]);
      void running.feed(ndjson(Array.from({ length: 7 }, (_, n) => note(`${job}-${n}`))));
      running.endInput();
      return running;
    });
    for (let n = 0; n < 3; n += 1)
      jobs.push(shop.start(['checkpoint', 'shared.jsonl', '--lock-timeout', '30']));
    for (const run of await Promise.all(jobs.map((job) => job.end())))
      expect(run).toMatchObject({ status: 0, stderr: expect.not.stringContaining('error') as string });
    const places = typesOf('shared.jsonl').flatMap((type, seq) => (type === 'checkpoint' ? [seq] : []));
    expect(typesOf('shared.jsonl').filter((type) => type === 'x.note')).toHaveLength(22);
    // An event is dated when it is given, and those of others may come first.
    expectSealedBut(['TIME_REGRESSION'], 'shared.jsonl', places.at(-1)!);
  });

  it('says so when the last checkpoint that was due could not be made', () => {
    const ledger = make('no-seal.jsonl');
    const [genesis] = shop.records(ledger);
    const [key] = (genesis as unknown as { event: { keys: object[] } }).event.keys;
    const revoke = { event_type: 'key', action: 'revoke', key, principal_id: 'service:ledger' };
    const run = shop.run(['append', ledger, '--checkpoint-every', '1'], { input: ndjson([revoke]) });
    expect(run.status).toBe(2);
    expectCode(run, 'KEY_NOT_VALID_HERE');
    expect(run.stderr).toContain('a checkpoint of no-seal.jsonl was due and could not be made');
    // The event itself is in the ledger.
    expect(parseLines<{ status: string }>(run.stdout).map(({ status }) => status)).toEqual(['appended']);
    expect(typesOf(ledger).at(-1)).toBe('key');
  });
});

describe('verify --checkpoint', () => {
  make('kept.jsonl', 5);
  expectOk(shop.run(['checkpoint', 'kept.jsonl', '--note', 'kept.note']));
  expectOk(shop.run(['append', 'kept.jsonl'], { input: ndjson([note(10), note(11)]) }));
  const { keyid } = parse<{ keyid: string }>(expectOk(shop.run(['key', 'show', 'kept.jsonl.key'])));

  it('says that the ledger extends it, and who signed it', () => {
    const { status, report } = verify('kept.jsonl', '--checkpoint', 'kept.note');
    expect(status).toBe(0);
    expect(report.checkpoints).toEqual({
      count: 1,
      last_tree_size: 6,
      unsealed: 2,
      signers: [{ keyid, name: ORIGIN, role: 'log', tree_size: 6 }],
      anchors: [{ path: 'kept.note', tree_size: 6, relation: 'extends', signed_by: [keyid] }],
    });
    const codes = report.not_checked.map(({ code }) => code);
    expect(codes).toContain('TRUNCATION');
    const required = ['--checkpoint', 'kept.note', '--require', 'TRUNCATION'];
    const partly = shop.run(['verify', 'kept.jsonl', '--format', 'json', ...required]);
    expect(partly.status).toBe(0);
    expect(partly.stderr).toContain('up to seq 5');
    const open = parse<Report>(partly.stdout).not_checked.filter(({ code }) => code === 'TRUNCATION');
    expect(open).toMatchObject([{ shown_before_seq: 6 }]);
    const text = expectOk(shop.run(['verify', 'kept.jsonl', '--checkpoint', 'kept.note']));
    expect(text).toMatch(/^ {2}anchor +kept\.note, of 6 records: the ledger extends it$/m);
    expect(text).toMatch(/^ {2}checkpoints +1, the last over 6 records, 2 after it$/m);
  });

  it('reads the ledger from standard input too', () => {
    const run = shop.run(['verify', '-', '--format', 'json', '--checkpoint', 'kept.note'], {
      input: shop.bytes('kept.jsonl'),
    });
    expect(parse<Report>(expectOk(run)).checkpoints.anchors).toMatchObject([{ relation: 'extends' }]);
  });

  it.each([1, 2, 3, 4, 5])('finds that all but %i records were cut off', (length) => {
    edit('kept.jsonl', 'cut.jsonl', (lines) => lines.slice(0, length));
    expect(verify('cut.jsonl').status).toBe(0);
    const { status, report } = verify('cut.jsonl', '--checkpoint', 'kept.note');
    expect(status).toBe(1);
    expect(codesOf(report)).toContain('TRUNCATED');
    expect(report.checkpoints.anchors).toMatchObject([{ tree_size: 6, relation: 'truncated' }]);
    const text = shop.run(['verify', 'cut.jsonl', '--checkpoint', 'kept.note']);
    expect(text).toMatchObject({ status: 1 });
    expect(text.stdout).toMatch(/^invalid {2}\S+: TRUNCATED, though none of \d+ records? is invalid$/m);
    expect(text.stdout).toMatch(/^ {2}first bad {3}the end of \S+$/m);
    expect(text.stdout).toMatch(/^error: \S+, at its end \(byte \d+\) TRUNCATED: /m);
  });

  it('finds a fork, also by the holder of the key', () => {
    edit('kept.jsonl', 'fork.jsonl', (lines) => lines.slice(0, 4));
    shop.write('fork.jsonl.key', shop.read('kept.jsonl.key'), 0o600);
    expectOk(shop.run(['append', 'fork.jsonl'], { input: ndjson([note(90), note(91), note(92)]) }));
    expectOk(shop.run(['checkpoint', 'fork.jsonl']));
    const { status, report } = verify('fork.jsonl', '--checkpoint', 'kept.note');
    expect([status, codesOf(report).filter((code) => code === 'FORKED')]).toEqual([1, ['FORKED']]);
    expect(report.checkpoints.anchors).toMatchObject([{ relation: 'forked' }]);
  });

  it('finds that it is of another log', () => {
    expectOk(shop.run(['init', 'other.jsonl', '--origin', 'example.com/tests/other']));
    expectOk(shop.run(['checkpoint', 'other.jsonl']));
    const { status, report } = verify('kept.jsonl', '--checkpoint', 'other.jsonl.checkpoint');
    expect([status, codesOf(report).includes('ORIGIN_MISMATCH')]).toEqual([1, true]);
    expect(report.checkpoints.anchors).toMatchObject([{ relation: 'other-origin' }]);
  });

  it('takes several, and each counts', () => {
    edit('kept.jsonl', 'seven.jsonl', (lines) => lines.slice(0, 7));
    expectOk(shop.run(['checkpoint', 'kept.jsonl', '--note', 'kept-2.note']));
    const args = ['--checkpoint', 'kept.note', '--checkpoint', 'kept-2.note'];
    expect(verify('kept.jsonl', ...args).report.checkpoints.anchors).toMatchObject([
      { path: 'kept.note', relation: 'extends' },
      { path: 'kept-2.note', relation: 'extends' },
    ]);
    const { status, report } = verify('seven.jsonl', ...args);
    expect(status).toBe(1);
    expect(report.checkpoints.anchors).toMatchObject([{ relation: 'extends' }, { relation: 'truncated' }]);
  });

  it('says that nobody known signed it', () => {
    const { text } = parseNote(shop.bytes('kept.note'));
    const line = `— ${ORIGIN} ${Buffer.alloc(68, 7).toString('base64')}\n`;
    shop.write('unknown.note', `${text}\n${line}`);
    const { status, report } = verify('kept.jsonl', '--checkpoint', 'unknown.note');
    expect(status).toBe(0);
    expect(report.not_checked.map(({ code }) => code)).toContain('ANCHOR_UNVERIFIED');
    expect(report.checkpoints.anchors).toMatchObject([{ relation: 'extends', signed_by: [] }]);
    const wrong = shop.read('kept.note').replace(/.{4}\n$/, 'AAA=\n');
    shop.write('wrong.note', wrong);
    const bad = verify('kept.jsonl', '--checkpoint', 'wrong.note');
    expect([bad.status, codesOf(bad.report).includes('CHECKPOINT_SIGNATURE_INVALID')]).toEqual([1, true]);
  });

  it('goes on from a state, and finds the same', () => {
    const args = ['--checkpoint', 'kept.note', '--state', 'kept.state'];
    for (let run = 0; run < 2; run += 1) {
      expect(verify('kept.jsonl', ...args).report.checkpoints.anchors).toMatchObject([
        { relation: 'extends', signed_by: [keyid] },
      ]);
    }
    shop.write('cut-2.jsonl', shop.lines('kept.jsonl').slice(0, 4).join('\n') + '\n');
    expect([1, 2]).toContain(shop.run(['verify', 'cut-2.jsonl', ...args]).status);
  });

  it.each<[string, string, string[]]>([
    ['a file that is not there', 'FILE_NOT_FOUND', ['--checkpoint', 'nowhere.note']],
    ['a folder', 'IS_A_FOLDER', ['--checkpoint', '.']],
    ['what is no note', 'NOTE_MALFORMED', ['--checkpoint', 'kept.jsonl']],
    ['a witness policy that is none', 'WITNESS_POLICY_INVALID', ['--witness-policy', 'kept.note']],
    ['a time that is none', 'USAGE', ['--now', 'soon']],
  ])('could not decide by %s', (_what, code, args) => {
    expectError(shop.run(['verify', 'kept.jsonl', ...args]), 2, code);
  });

  it('judges the age of checkpoints by --now, where a policy bounds it', () => {
    const policy = parse<{ require: object }>(expectOk(shop.run(['trust', 'init', 'kept.jsonl', '--yes'])));
    const require = { ...policy.require, checkpoint_max_age_seconds: 86_400 };
    shop.write('aged.json', JSON.stringify({ ...policy, require }));
    expect(verify('kept.jsonl', '--trust', 'aged.json').status).toBe(0);
    for (const now of ['2099-01-01', '2001-01-01T00:00:00Z']) {
      const { status, report } = verify('kept.jsonl', '--trust', 'aged.json', '--now', now);
      expect([status, codesOf(report)]).toEqual([1, expect.arrayContaining(['CHECKPOINT_MISSING'])]);
    }
  });

  it('reads a tile tree, and holds it against a checkpoint', () => {
    expectOk(shop.run(['tiles', 'kept.jsonl', '--out', 'tiles']));
    const { status, report } = verify('tiles', '--checkpoint', 'kept.note');
    expect(status).toBe(0);
    expect(report.checkpoints.anchors).toMatchObject([{ path: 'kept.note', relation: 'extends' }]);
    expect(verify('tiles', '--checkpoint', 'other.jsonl.checkpoint').status).toBe(1);
  });
});

describe('with witnesses', () => {
  const NAMES = ['w.example/1', 'w.example/2'];
  make('w.jsonl', 3);
  const log = expectOk(shop.run(['key', 'show', 'w.jsonl.key', '--form', 'vkey', '--name', ORIGIN])).trim();
  const cosigners = NAMES.map((name, n) => {
    expectOk(shop.run(['keygen', '--out', `w${n}.pem`]));
    return expectOk(shop.run(['key', 'show', `w${n}.pem`, '--form', 'cosigner', '--name', name])).trim();
  });

  async function start(n: number, state = `state-${n}`): Promise<{ url: string; running: Running }> {
    const args = ['witness', '--key', `w${n}.pem`, '--name', NAMES[n], '--state', state, '--log', log];
    const running = shop.start([...args, '--listen', '127.0.0.1:0']);
    onTestFinished(async () => {
      running.kill('SIGKILL');
      await running.end();
    });
    await running.until(({ stdout, stderr }) => stdout.includes('\n') || stderr.includes('error:'));
    return { url: running.stdout.trim(), running };
  }

  /** Runs a command while witnesses in this process's children answer. */
  async function seal(...args: string[]): Promise<Run> {
    const running = shop.start(['checkpoint', 'w.jsonl', ...args]);
    running.endInput();
    return running.end();
  }

  function policyOf(quorum: string, urls: readonly string[]): string {
    const witnesses = cosigners.map(
      (vkey, n) => `witness W${n} ${vkey}${urls[n] === undefined ? '' : ` ${urls[n]}`}\n`,
    );
    return `log ${log}\n${witnesses.join('')}${quorum}`;
  }

  it('has the checkpoint cosigned, and their lines in the ledger', async () => {
    const { url } = await start(0);
    const run = await seal('--witness', url, '--witness-key', cosigners[0]);
    const sealed = parse<Sealed>(expectOk(run));
    expect(sealed).toMatchObject({
      tree_size: 4,
      attestation: { seq: sealed.seq + 1 },
      cosignatures: [{ name: NAMES[0], verified: true }],
    });
    const records = shop.records('w.jsonl');
    expect(records[sealed.seq + 1].event).toMatchObject({ event_type: 'attestation' });
    const { signatures } = parseNote(shop.bytes('w.jsonl.checkpoint'));
    expect(signatures.map(({ name }) => name)).toEqual([ORIGIN, NAMES[0]]);
    expectSealed('w.jsonl', 4);
    shop.write('w0.policy', policyOf('quorum W0\n', []));
    expectSealed('w.jsonl', 4, '--witness-policy', 'w0.policy');
    shop.write('w1.policy', policyOf('quorum W1\n', []));
    const unmet = verify('w.jsonl', '--witness-policy', 'w1.policy');
    expect([unmet.status, codesOf(unmet.report)]).toEqual([1, expect.arrayContaining(['WITNESS_QUORUM'])]);
  });

  it('meets the quorum of a policy, or says that it does not: the checkpoint stands', async () => {
    const [a, b] = [await start(0), await start(1)];
    shop.write('both.policy', policyOf('group G all W0 W1\nquorum G\n', [a.url, b.url]));
    const met = parse<Sealed>(expectOk(await seal('--witness-policy', 'both.policy')));
    expect(met.cosignatures).toMatchObject(NAMES.map((name) => ({ name, verified: true })));
    expectSealed('w.jsonl', met.tree_size, '--witness-policy', 'both.policy');

    b.running.kill('SIGKILL');
    await b.running.end();
    const run = await seal('--witness-policy', 'both.policy', '--witness-timeout', '5');
    expect(run.status).toBe(2);
    expectCode(run, 'WITNESS_QUORUM');
    expect(run.stderr).toContain('WITNESS_UNREACHABLE');
    const unmet = parse<Sealed>(run.stdout);
    expect(unmet.cosignatures).toMatchObject([{ name: NAMES[0], verified: true }]);
    const { signatures } = parseNote(shop.bytes('w.jsonl.checkpoint'));
    expect(signatures.map(({ name }) => name)).toEqual([ORIGIN, NAMES[0]]);
    expectSealed('w.jsonl', unmet.tree_size);
  });

  it('says when no witness answers, and keeps the note without them', async () => {
    const run = await seal('--witness', 'http://127.0.0.1:1/none');
    expect(run.status).toBe(2);
    expectCode(run, 'WITNESS_QUORUM');
    const sealed = parse<Sealed>(run.stdout);
    expect(sealed.cosignatures).toEqual([]);
    expect(sealed.attestation).toBeUndefined();
    expect(shop.read('w.jsonl.checkpoint')).toBe(shop.records('w.jsonl')[sealed.seq].event['note']);
    expectSealed('w.jsonl', sealed.tree_size);
  });

  it('leaves out lines by a witness whose key was not given', async () => {
    const { url } = await start(1);
    const run = await seal('--witness', url, '--witness-key', cosigners[0]);
    expect(run.status).toBe(2);
    expectCode(run, 'WITNESS_QUORUM');
    expect(parse<Sealed>(run.stdout).cosignatures).toEqual([]);
    expect(typesOf('w.jsonl').at(-1)).toBe('checkpoint');
    expect(run.stderr).toContain(`refused a line by ${NAMES[1]}+`);
    // Without any key nobody could say whose they are.
    const without = await seal('--witness', url);
    expect(without.status).toBe(2);
    expectCode(without, 'WITNESS_QUORUM');
    const { cosignatures, tree_size: size } = parse<Sealed>(without.stdout);
    expect(cosignatures).toEqual([]);
    expectSealed('w.jsonl', size);
  });

  it('knows the witnesses that the ledger declares', async () => {
    const args = ['--role', 'witness', '--name', NAMES[1], '--for', 'service:w'];
    expectOk(shop.run(['key', 'add', 'w.jsonl', 'w1.pem', ...args]));
    const { url } = await start(1);
    const sealed = parse<Sealed>(expectOk(await seal('--witness', url)));
    expect(sealed.cosignatures).toMatchObject([{ name: NAMES[1], verified: true, declared: true }]);
    const { checkpoints, not_checked: gaps } = expectSealed('w.jsonl', sealed.tree_size);
    const declared = { name: NAMES[1], role: 'witness', declared: true };
    expect(checkpoints.signers).toContainEqual(expect.objectContaining(declared));
    expect(gaps.map(({ code }) => code)).toContain('WITNESSES');
    const shown = shop.run(['verify', 'w.jsonl']).stdout;
    expect(shown).toContain(`declared    ${NAMES[1]}`);
    expect(shown).not.toContain(`${NAMES[1]} cosigned`);
  });

  it('is refused by a witness that saw a larger ledger of that origin', async () => {
    const { url } = await start(0);
    expectOk(await seal('--witness', url, '--witness-key', cosigners[0]));
    edit('w.jsonl', 'w-cut.jsonl', (lines) => lines.slice(0, 3));
    const running = shop.start(['checkpoint', 'w-cut.jsonl', '--key', 'w.jsonl.key', '--witness', url]);
    running.endInput();
    const run = await running.end();
    expect(run.status).toBe(2);
    expect(run.stderr).toContain('WITNESS_AHEAD');
  });
});
