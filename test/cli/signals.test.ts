/** Every command that is told to stop: it ends soon, whatever it does or waits for, and what it leaves is whole. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { GROUPS } from '../../src/cli/main.js';
import { makeProgram } from '../../src/cli/program.js';
import { action, execution, grant, unsigned } from '../docs/grant-kit.js';
import { ndjson, note } from './drafts.js';
import { CLI, expectOk, hasProgram, parseLines, Workshop, type ResultJson, type Running } from './runner.js';

/** A second or two; far more where the machine does much else. */
const SOON_MS = 60_000;
/** 128 and the number of the signal; none where the signal itself ended the process. */
const ENDED: Readonly<Record<string, readonly (number | null)[]>> = {
  SIGTERM: [143, null],
  SIGINT: [130, null],
};

const shop = new Workshop();
expectOk(shop.run(['init', 'small.jsonl']));
const GRANT = ['grant', 'small.jsonl', '--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=9'] as const;
expectOk(shop.run(GRANT));
const reserve = ['--principal', 'agent:a1', '--tool', 'sh.x', '--reserve', 'calls=1'];
const allowed = shop.run(['authorize', 'small.jsonl', ...reserve, '--', 'sleep', '60']);
const [permission] = parseLines<ResultJson>(expectOk(allowed));
const AUTH = String(permission?.seq);
expectOk(shop.run(['checkpoint', 'small.jsonl']));
expectOk(shop.run(['trust', 'init', 'small.jsonl', '--out', 'trust.json', '--yes']));
expectOk(shop.run(['keygen', '--out', 'other.pem']));
expectOk(shop.run(['init', 'child.jsonl']));
expectOk(shop.run(['checkpoint', 'child.jsonl']));
const slice = ['slice', 'small.jsonl', '--grant', '1', '--to', 'child.jsonl', '--cap', 'calls=1'] as const;
shop.write('drafts.jsonl', ndjson(Array.from({ length: 20_000 }, (_, n) => note(n))));
shop.write(
  'usage.jsonl',
  '{"request_id":"r1","spend":0.25,"startTime":"2026-03-01T10:00:00Z","model":"m"}\n',
);
const root = grant({ meter_caps: [{ unit: 'usd', amount: { t: 'int', v: '900000' } }] });
const runs = Array.from({ length: 10_000 }, (_, n) =>
  action(root, 1, { occurred_at: new Date(Date.UTC(2026, 0, 2, 0, 0, n)).toISOString() }),
);
shop.write(
  'large.jsonl',
  unsigned(root, ...runs, ...runs.map((run) => execution(run, 1, { occurred_at: '2026-01-03T00:00:00Z' }))),
);

/** Ends it; what it was then. */
async function stop(
  running: Pick<Running, 'kill' | 'end'>,
  signal: 'SIGTERM' | 'SIGINT' = 'SIGTERM',
): Promise<number | null> {
  const at = performance.now();
  running.kill(signal);
  const { status } = await running.end();
  expect(performance.now() - at).toBeLessThan(SOON_MS);
  return status;
}

/** Nothing but the ledger's lines, each of them whole. */
function expectWhole(name: string): void {
  expect(shop.read(name).endsWith('\n')).toBe(true);
  expectOk(shop.run(['verify', '--quiet', name]));
}

/** What ends at once, since it reads nothing that could keep it waiting. */
const IMMEDIATE = ['keygen', 'explain', 'schema', 'completion'];
/** What waits for a program, and is told to stop in test/hook/doctor.test.ts, test/gate/mcp/stdio.test.ts and test/cli/run-agent.test.ts. */
const WAITING = ['doctor', 'mcp', 'run-agent'];

/** Each command with one of its inputs a pipe, PIPE, to which nobody writes. */
const PIPED: readonly (readonly [command: string, ...args: string[]])[] = [
  ['init', 'never.jsonl', '--key', 'PIPE'],
  ['append', 'small.jsonl', 'PIPE'],
  ['checkpoint', 'small.jsonl', '--key', 'PIPE'],
  ['index', 'small.jsonl', '--trust', 'PIPE'],
  ['grant', 'small.jsonl', '--to', 'agent:a1', '--tool', 'x', '--cap', 'calls=1', '--key', 'PIPE'],
  ['simulate', 'small.jsonl', '--grant', 'PIPE'],
  ['draft-grant', 'PIPE'],
  ['authorize', 'small.jsonl', ...reserve, '--params', 'PIPE'],
  ['record', 'small.jsonl', '--auth', AUTH, '--key', 'PIPE', '--', 'sleep', '60'],
  ['abandon', 'small.jsonl', '--older-than', '1s', '--key', 'PIPE'],
  ['adjust', 'small.jsonl', '--grant', '1', '--debit', 'calls=1', '--reason', 'BILL', '--key', 'PIPE'],
  ['budget', 'small.jsonl', '--trust', 'PIPE'],
  ['approvals', 'small.jsonl', '--trust', 'PIPE'],
  ['approve', 'small.jsonl', AUTH, '--key', 'PIPE'],
  ['reject', 'small.jsonl', AUTH, '--key', 'PIPE'],
  ['revoke', 'small.jsonl', '1', '--reason', 'END', '--key', 'PIPE'],
  ['suspend', 'small.jsonl', '1', '--reason', 'END', '--key', 'PIPE'],
  ['resume', 'small.jsonl', '1', '--reason', 'END', '--key', 'PIPE'],
  [...slice, '--trust', 'PIPE'],
  ['settle', 'small.jsonl', 'child.jsonl', '--trust', 'PIPE'],
  ['anchor', 'small.jsonl', 'child.jsonl', '--trust', 'PIPE'],
  ['fleet', 'verify', 'PIPE'],
  ['hook', 'install', 'codex', '--ledger', 'small.jsonl', '--print', '--trust', 'PIPE'],
  ['why', 'small.jsonl', '1', '--trust', 'PIPE'],
  ['verify', 'PIPE'],
  ['verify', 'small.jsonl', '--trust', 'PIPE'],
  ['verify', 'small.jsonl', '--checkpoint', 'PIPE'],
  ['report', 'PIPE'],
  ['status', 'small.jsonl', '--trust', 'PIPE'],
  ['show', 'PIPE', '3'],
  ['log', 'PIPE'],
  ['diff', 'small.jsonl', 'PIPE'],
  ['prove', 'small.jsonl', '1', '--checkpoint', 'PIPE'],
  ['verify-proof', 'PIPE'],
  ['import', '--from', 'litellm', 'PIPE'],
  ['prices', 'import', 'PIPE'],
  ['check', '--as', 'episode', 'PIPE'],
  ['reconcile', 'small.jsonl', 'PIPE'],
  ['key', 'list', 'PIPE'],
  ['trust', 'show', 'PIPE'],
  ['export', 'small.jsonl', '--csv', 'never', '--trust', 'PIPE'],
  ['disclose', 'PIPE', '--check', 'small.jsonl'],
  ['tiles', 'small.jsonl', '--out', 'never', '--checkpoint', 'PIPE'],
  ['witness', '--name', 'example.com/w', '--key', 'other.pem', '--state', 'never', '--policy', 'PIPE'],
  ['serve', 'small.jsonl', '--tokens', 'PIPE'],
  ['llm', 'small.jsonl', '--upstream', 'http://127.0.0.1:9', '--prices', 'PIPE'],
  ['gate', 'status', 'small.jsonl', '--trust', 'PIPE'],
  ['canonicalize', 'PIPE'],
  ['digest', 'PIPE'],
  ['event-id', 'PIPE'],
];

/** Each command that writes to a ledger. */
const WRITING: readonly (readonly [command: string, ...args: string[]])[] = [
  ['append', 'small.jsonl', 'drafts.jsonl'],
  ['checkpoint', 'small.jsonl'],
  ['repair', 'small.jsonl'],
  ['copy', 'large.jsonl', 'small.jsonl'],
  GRANT,
  ['authorize', 'small.jsonl', ...reserve, '--', 'sleep', '60'],
  ['record', 'small.jsonl', '--auth', AUTH, '--', 'sleep', '60'],
  ['record', 'small.jsonl', '--auth', AUTH, '--outcome', 'success'],
  ['abandon', 'small.jsonl', '--older-than', '1s'],
  ['adjust', 'small.jsonl', '--grant', '1', '--debit', 'calls=1', '--reason', 'BILL'],
  ['approve', 'small.jsonl', AUTH],
  ['reject', 'small.jsonl', AUTH],
  ['revoke', 'small.jsonl', '1', '--reason', 'END'],
  ['suspend', 'small.jsonl', '1', '--reason', 'END'],
  ['resume', 'small.jsonl', '1', '--reason', 'END'],
  slice,
  ['settle', 'small.jsonl', 'child.jsonl'],
  ['anchor', 'small.jsonl', 'child.jsonl'],
  ['key', 'add', 'small.jsonl', 'other.pem', '--role', 'event', '--for', 'agent:a1'],
  ['import', '--from', 'litellm', '--ledger', 'small.jsonl', 'usage.jsonl'],
];

it('is asked of every command', () => {
  const asked = new Set([
    ...IMMEDIATE,
    ...WAITING,
    ...PIPED.map(([name]) => name),
    ...WRITING.map(([name]) => name),
  ]);
  const { commands } = makeProgram(GROUPS, () => Promise.resolve());
  expect(commands.map((each) => each.name()).filter((name) => !asked.has(name))).toEqual([]);
});

/** Whether a thread of the process opens a pipe that nobody writes to (where the system tells). */
function opensPipe({ pid }: Running): boolean {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks).some((task) => {
    try {
      return readFileSync(`${tasks}/${task}/wchan`, 'utf8') === 'wait_for_partner';
    } catch {
      return false;
    }
  });
}

const tellsWhatItWaitsFor =
  hasProgram('mkfifo') && existsSync('/proc/self/wchan') && readFileSync('/proc/self/wchan', 'utf8') !== '';

describe.skipIf(!tellsWhatItWaitsFor).concurrent('a command one of whose files nobody writes to', () => {
  it.each(PIPED.map((args, n) => [args.join(' '), args, n] as const))('ends: %s', async (_, args, n) => {
    const pipe = `pipe-${n}`;
    spawnSync('mkfifo', [shop.path(pipe)]);
    const before = shop.read('small.jsonl');
    const running = shop.start(args.map((arg) => arg.replace('PIPE', pipe)));
    await running.until(() => running.hasEnded || opensPipe(running));
    expect([running.hasEnded, running.stderr]).toEqual([false, '']);
    expect(ENDED['SIGTERM']).toContain(await stop(running));
    expect(shop.read('small.jsonl')).toBe(before);
    expect(shop.files('never')).toEqual([]);
  });
});

describe.skipIf(!hasProgram('flock') || !existsSync('/proc/self/fd'))(
  'a command that waits until another writer is done',
  () => {
    it.each(WRITING.map((args) => [args.join(' '), args] as const))('ends: %s', async (_, args) => {
      const holder = spawn('flock', ['small.jsonl', '-c', 'echo held; read -r _'], { cwd: shop.folder });
      const released = once(holder, 'exit');
      try {
        await once(holder.stdout, 'data');
        const before = shop.read('small.jsonl');
        const running = shop.start(
          args.flatMap((arg) => (arg === 'small.jsonl' ? [arg, '--lock-timeout', '300'] : [arg])),
        );
        const path = realpathSync(shop.path('small.jsonl'));
        await running.until(() => running.hasEnded || running.hasOpen(path));
        expect([running.hasEnded, running.stderr]).toEqual([false, '']);
        expect(ENDED['SIGINT']).toContain(await stop(running, 'SIGINT'));
        expect(shop.read('small.jsonl')).toBe(before);
      } finally {
        holder.stdin.end();
        await released;
      }
    });
  },
);

describe('a command that has a large ledger to go through', () => {
  const threads = [1, 2].map((n) => ['verify', 'large.jsonl', '--threads', String(n)] as const);
  const exports = ['--csv', '--parquet', '--focus', '--ocsf', '--otlp', '--html', '--journal', '--dsse'].map(
    (kind) => ['export', 'large.jsonl', kind, `out${kind}`] as const,
  );
  it.each(
    [
      ...threads,
      ['verify', 'large.jsonl', '--state', 'out.state'],
      ['report', 'large.jsonl', '--by', 'principal'],
      ['status', 'large.jsonl', '--no-index'],
      ['budget', 'large.jsonl', '--no-index'],
      ['why', 'large.jsonl', '15000', '--no-index'],
      ['prove', 'large.jsonl', '15000', '--out', 'out.proof', '--no-index'],
      ['index', 'large.jsonl', '--rebuild'],
      ['abandon', 'large.jsonl', '--older-than', '1h'],
      ['append', 'large.jsonl', 'drafts.jsonl', '--unsigned', '--no-index'],
      ...exports,
    ].map((args) => [args.join(' '), args] as const),
  )('ends, and leaves whole files: %s', async (_, args) => {
    const before = shop.read('large.jsonl');
    const running = shop.start(args);
    await running.until(() => running.hasEnded || running.hasOpen(realpathSync(shop.path('large.jsonl'))));
    const status = await stop(running);
    // One that was done before it was told to stop has its own.
    const isDone = status !== null && status !== 143;
    if (!isDone) expect(shop.files('out').filter((name) => !name.includes('.new-'))).toEqual([]);
    const after = shop.read('large.jsonl');
    expect(after.startsWith(before) && after.endsWith('\n')).toBe(true);
    for (const name of shop.files('out')) shop.remove(name);
  });
});

describe('a command whose input never ends', () => {
  it.each(
    [
      ['verify', '-'],
      ['report', '-'],
      ['show', '-', '999999999'],
      ['log', '-'],
      ['append', 'endless.jsonl', '--create', '--unsigned'],
      ['import', '--from', 'litellm', '-'],
      ['digest', '-'],
      ['verify-proof', '-'],
    ].map((args) => [args.join(' '), args] as const),
  )('ends: %s', async (_, args) => {
    const running = shop.start(args);
    const lines = args[0] === 'append' ? shop.read('drafts.jsonl') : shop.read('large.jsonl');
    // When that is written the command is reading: it is more than a pipe holds.
    await Promise.race([running.feed(lines), running.end()]);
    const feeding = (async () => {
      for (let n = 0; n < 1_000 && !running.hasEnded; n += 1) await running.feed(lines);
    })();
    const status = await stop(running);
    // What no file of that kind may be so long is refused.
    expect([2, 143, null]).toContain(status);
    await feeding;
    if (args[0] === 'append') expectWhole('endless.jsonl');
  });
});

describe('a command whose output nobody reads', () => {
  it.each([
    [['append', 'unread.jsonl', '--create', '--unsigned', 'drafts.jsonl']],
    [['log', 'large.jsonl', '--format', 'ndjson']],
    [['budget', 'large.jsonl', '--format', 'json']],
  ])('ends: %j', async (args) => {
    const child = spawn(process.execPath, [CLI, ...args], {
      cwd: shop.folder,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(child.stdout, 'readable');
    const end = once(child, 'exit') as Promise<[number | null]>;
    const status = await stop({
      kill: (signal) => void child.kill(signal),
      end: async () => ({ status: (await end)[0], stdout: '', stderr: '' }),
    });
    expect([0, 143, null]).toContain(status);
    if (shop.has('unread.jsonl')) expectWhole('unread.jsonl');
  });
});

describe('record, while its command runs', () => {
  it('gives it the signal, waits for it, and records how it ended', async () => {
    const script = "trap 'sleep 2; exit 7' TERM; echo runs; while :; do sleep 0.05; done";
    const running = shop.start([
      ...['record', 'small.jsonl', '--auth', '1', '--tool', 'sh.x'],
      '--',
      'bash',
      '-c',
      script,
    ]);
    await running.until(({ stdout }) => stdout.includes('runs'));
    running.kill('SIGTERM');
    expect((await running.end()).status).toBe(7);
    expect(shop.records('small.jsonl').at(-1)?.event).toMatchObject({
      event_type: 'execution',
      outcome: 'failure',
      error_code: 'EXIT_7',
    });
  });
});
