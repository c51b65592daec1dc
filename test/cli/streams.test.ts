/** `northroot append` as part of a pipeline: long streams, readers and writers that go away, Ctrl-C. */

import { existsSync, openSync, realpathSync } from 'node:fs';
import { spawn, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import type { ReportJson } from '../../src/format/schema/generated/types.js';
import { times } from '../slow.js';
import { ndjson, note } from './drafts.js';
import { CLI, expectCode, expectOk, hasProgram, parse, parseLines, Workshop } from './runner.js';

const shop = new Workshop({ ownProcesses: true });
const EVENTS = times(2_000, 20_000);
shop.write('events.jsonl', ndjson(Array.from({ length: EVENTS }, (_, n) => note(n))));
for (const name of ['ledger.jsonl', 'small.jsonl']) expectOk(shop.run(['init', name]));

/** Every result printed stands in the ledger, at the place that it names. */
function expectAcknowledged(name: string, stdout: string): void {
  const ids = shop.records(name).map(({ event }) => `sha-256:${event.event_id.b64}`);
  const results = parseLines(stdout);
  expect(results.map(({ seq }) => ids[seq])).toEqual(results.map(({ event_id }) => event_id));
}

describe('a long stream', () => {
  it('is acknowledged event by event, in order', () => {
    const stdout = expectOk(shop.run(['append', 'ledger.jsonl', 'events.jsonl']));
    const results = parseLines(stdout);
    expect(results.map(({ seq }) => seq)).toEqual(Array.from({ length: EVENTS }, (_, n) => n + 1));
    expectAcknowledged('ledger.jsonl', stdout);
    const report = parse<ReportJson>(expectOk(shop.run(['verify', 'ledger.jsonl', '--format', 'json'])));
    expect(report.counts.by_verdict.ok).toBe(EVENTS + 1);
  });

  it('goes on when nobody reads the results', () => {
    const input = shop.lines('events.jsonl').slice(0, 1_500).join('\n');
    const run = shop.shell('northroot append unread.jsonl --create - | head -n 1; echo "${PIPESTATUS[0]}"', {
      input,
    });
    const [first, status] = run.stdout.trim().split('\n');
    expect(JSON.parse(first)).toMatchObject({ seq: 1, status: 'appended' });
    expect(status).toBe('0');
    expect(run.stderr).not.toContain('error');
    expect(shop.lines('unread.jsonl')).toHaveLength(1_501);
    expectOk(shop.run(['verify', 'unread.jsonl']));
  });

  it.skipIf(!existsSync('/dev/full'))('says so when the results cannot be written', () => {
    const stdout = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [CLI, 'append', 'full.jsonl', '--create'], {
      cwd: shop.folder,
      input: ndjson([note(1)]),
      stdio: ['pipe', stdout, 'pipe'],
      encoding: 'utf8',
    });
    expect(status).toBe(2);
    expectCode({ status, stdout: '', stderr }, 'OUTPUT_FAILED');
    expectOk(shop.run(['verify', 'full.jsonl']));
  });
});

describe('a stream whose results nobody reads', () => {
  it('holds no lock: others append meanwhile, and it goes on when they are read', async () => {
    expectOk(shop.run(['init', 'blocked.jsonl']));
    const child = spawn(process.execPath, [CLI, 'append', 'blocked.jsonl'], {
      cwd: shop.folder,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const count = 4_000;
    child.stdin.end(ndjson(Array.from({ length: count }, (_, n) => note(n))));
    // More results than a pipe holds.
    await expect.poll(() => shop.lines('blocked.jsonl').length).toBeGreaterThan(1_500);
    const other = shop.run(['append', 'blocked.jsonl'], { input: ndjson([note('other')]) });
    expect(parseLines(expectOk(other))).toMatchObject([{ status: 'appended' }]);
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    const status = await new Promise((resolve) => child.once('close', resolve));
    expect(status).toBe(0);
    expect(parseLines(stdout)).toHaveLength(count);
    expectAcknowledged('blocked.jsonl', stdout);
    expectOk(shop.run(['verify', 'blocked.jsonl']));
  });
});

describe('several processes that begin one ledger', () => {
  it('make one ledger and one key', async () => {
    const all = Array.from({ length: 4 }, (_, n) => {
      const running = shop.start(['append', 'common.jsonl', '--create']);
      void running.feed(ndjson([note(n)]));
      running.endInput();
      return running.end();
    });
    for (const run of await Promise.all(all)) expectOk(run);
    expect(shop.files('common')).toEqual(['common.jsonl', 'common.jsonl.key']);
    expect(shop.records('common.jsonl')).toHaveLength(5);
    expectOk(shop.run(['verify', 'common.jsonl']));
  });
});

describe('an interrupted append', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('by %s keeps what it printed, and ends with %d', async (signal, expected) => {
    const name = `${signal}.jsonl`;
    const running = shop.start(['append', name, '--create']);
    void running.feed(shop.read('events.jsonl'));
    await running.until(({ stdout }) => stdout.split('\n').length > 500);
    running.kill(signal);
    const { status, stdout } = await running.end();
    expect(status).toBe(expected);
    expect(stdout.endsWith('\n')).toBe(true);
    expectAcknowledged(name, stdout);
    expect(shop.lines(name)).toHaveLength(parseLines(stdout).length + 1);
    expect(shop.read(name).endsWith('\n')).toBe(true);
    expectOk(shop.run(['verify', name]));
  });

  it('ends while it waits for more input', async () => {
    const running = shop.start(['append', 'idle.jsonl', '--create']);
    void running.feed(`${ndjson([note(1)])}{"event_type":"x.n"`);
    await running.until(({ stdout }) => stdout !== '');
    running.kill('SIGINT');
    const { status, stdout } = await running.end();
    expect(status).toBe(130);
    expect(parseLines(stdout)).toHaveLength(1);
    expect(shop.lines('idle.jsonl')).toHaveLength(2);
  });
});

describe('other commands that wait for standard input', () => {
  it.each([['digest'], ['canonicalize'], ['event-id'], ['show', '-', '5'], ['log', '-'], ['verify', '-']])(
    'end at Ctrl-C: %s',
    async (...args) => {
      const running = shop.start(args);
      // More than a pipe holds: when it is written, the command is reading.
      await running.feed(' '.repeat(2_000_000));
      running.kill('SIGINT');
      expect(await running.end()).toMatchObject({ status: 130, stdout: '' });
    },
  );
});

describe.skipIf(!hasProgram('flock') || !existsSync('/proc/self/fd'))(
  'a ledger that another writer holds',
  () => {
    /** Holds the ledger until `release` is called. */
    async function hold(): Promise<() => void> {
      const holder = spawn('flock', ['small.jsonl', '-c', 'echo held; read -r _'], { cwd: shop.folder });
      await new Promise((resolve) => holder.stdout.once('data', resolve));
      return () => holder.stdin.end();
    }

    it('is waited for, but not for ever', async () => {
      const release = await hold();
      const before = shop.read('small.jsonl');
      const run = shop.run(['append', 'small.jsonl', '--lock-timeout', '0.2'], { input: ndjson([note(1)]) });
      expect(run).toMatchObject({ status: 2, stdout: '' });
      expectCode(run, 'LEDGER_LOCKED');
      const repair = shop.run(['repair', 'small.jsonl', '--lock-timeout', '0']);
      expectCode(repair, 'LEDGER_LOCKED');
      expect(shop.read('small.jsonl')).toBe(before);
      // Readers need no lock.
      expectOk(shop.run(['show', 'small.jsonl', '0']));
      const running = shop.start(['append', 'small.jsonl']);
      void running.feed(ndjson([note('late')]));
      await running.until(() => running.hasOpen(realpathSync(shop.path('small.jsonl'))));
      release();
      await running.until(({ stdout }) => stdout !== '');
      expect(JSON.parse(running.stdout)).toMatchObject({ seq: 1 });
      running.kill('SIGINT');
      await running.end();
    });

    it.each([
      ['append', 'small.jsonl', 'events.jsonl'],
      ['repair', 'small.jsonl'],
    ])('is left as it is by a Ctrl-C while waiting: %s', async (...args) => {
      const release = await hold();
      const before = shop.read('small.jsonl');
      const running = shop.start(args);
      await running.until(() => running.hasOpen(realpathSync(shop.path('small.jsonl'))));
      running.kill('SIGINT');
      expect(await running.end()).toMatchObject({ status: 130, stdout: '' });
      release();
      expect(shop.read('small.jsonl')).toBe(before);
    });
  },
);
