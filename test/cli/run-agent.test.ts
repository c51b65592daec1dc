/** `northroot run-agent`: by the command line, and what is left when it is killed. */

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { probeIsolation } from '../../src/api/gate.js';
import { PROFILE, profileWith, SHELL } from '../hosts/apm2/live-kit.js';
import { expectError, expectOk, parseLines, Workshop } from './runner.js';

const shop = new Workshop();
const isolation = await probeIsolation();
const MOCK = fileURLToPath(new URL('../../../shared/live/mocks/agent-tool-intent.sh', import.meta.url));
const READ = 'ask r1 fs.read \'{"path":"notes.txt"}\'';
const DONE = 'echo \'{"done":true}\'';

shop.makeFolder('work');
shop.write('work/notes.txt', 'hello');
shop.makeFolder('profiles');
shop.write('local.json', JSON.stringify(PROFILE, undefined, 2));
shop.write('profiles/one.json', profileWith());
shop.write('profiles/note.txt', 'nothing');

/** A new ledger, and an agent with this script. */
function prepare(name: string, script: string): readonly string[] {
  expectOk(shop.run(['init', `${name}.jsonl`]));
  shop.write(`${name}.sh`, `${SHELL}${script}\n`);
  return ['run-agent', `${name}.jsonl`, '--workspace', 'work', '--format', 'json'];
}

/** The one episode of a ledger. */
function recordOf(name: string): string {
  const folder = `${name}.jsonl.episodes`;
  return join(folder, readdirSync(shop.path(folder))[0] ?? '', 'record');
}

it('run-agent leaves nothing behind where the ledger could record nothing', () => {
  const args = prepare('keyless', DONE);
  rmSync(shop.path('keyless.jsonl.key'));
  const run = shop.run([...args, '--profile', 'local.json', '--', 'bash', shop.path('keyless.sh')]);
  expectError(run, 2, 'SIGNATURE_MISSING');
  expect(existsSync(shop.path('keyless.jsonl.episodes'))).toBe(false);
});

let usages = 0;

describe('run-agent', () => {
  it('runs an agent, and writes a record that checks, imports and reconciles', () => {
    const args = prepare('good', `${READ}; cat "$TI_CAS/\${answer##* }"; echo; ${DONE}`);
    const run = shop.run([...args, '--profile', 'local.json', '--', 'bash', shop.path('good.sh')]);
    const [result] = parseLines<object>(expectOk(run));
    expect(result).toMatchObject({ review: 'recorded', requests: 1, allowed: 1, exit_status: 0 });
    const record = recordOf('good');
    expect(readFileSync(shop.path(join(record, 'log.txt')), 'utf8')).toContain('\nhello\n');
    expectOk(shop.run(['verify', 'good.jsonl']));
    expectOk(shop.run(['check', '--as', 'episode', record]));
    expectOk(shop.run(['import', '--from', 'apm2', record, '--ledger', 'imported.jsonl', '--create']));
    expectOk(shop.run(['verify', 'imported.jsonl']));
    expectOk(shop.run(['reconcile', 'good.jsonl', `apm2=${record}`]));
  });

  it('tells episodes apart whose requests have the same ids', () => {
    const args = prepare('twins', `${READ}; ${DONE}`);
    const agent = ['--profile', 'local.json', '--', 'bash', shop.path('twins.sh')];
    for (const episode of ['one', 'two']) expectOk(shop.run([...args, '--episode', episode, ...agent]));
    for (const episode of ['one', 'two']) {
      const source = `apm2=twins.jsonl.episodes/${episode}/record`;
      const found = expectOk(shop.run(['reconcile', 'twins.jsonl', source, '--format', 'json']));
      expect(JSON.parse(found)).toMatchObject({ calls: { corroborated: 1, ledger_only: 1, ambiguous: 0 } });
    }
  });

  it.runIf(isolation.container)('shows an agent in a container neither ledger nor keys', () => {
    // Below /tmp nothing is seen in any case.
    const folder = mkdtempSync('/var/tmp/northroot-');
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const ledger = join(folder, 'hidden.jsonl');
    expectOk(shop.run(['init', ledger]));
    mkdirSync(join(folder, 'work'));
    const agent = join(folder, 'agent.sh');
    const looks = `cat ${ledger} ${ledger}.key | wc -c; ls ${ledger}.episodes`;
    writeFileSync(agent, `${SHELL}${looks}\n${READ}\ncat "$TI_CAS/\${answer##* }"\n${DONE}\n`);
    writeFileSync(join(folder, 'work/notes.txt'), 'hello\n');
    const place = ['--workspace', join(folder, 'work'), '--isolation', 'container', '--episode', 'e1'];
    // The probe may be the agent itself.
    const probe = { command: `stat -c %F,1.0 ${ledger}.key`, regex: '^character special file,1\\.0$' };
    shop.write('probing.json', profileWith({ version_probe: probe }));
    expectOk(shop.run(['run-agent', ledger, '--profile', 'probing.json', ...place, '--', 'bash', agent]));
    const log = readFileSync(join(`${ledger}.episodes`, 'e1/record/log.txt'), 'utf8');
    expect(log.split('\n').slice(0, 2)).toEqual(['0', 'e1']);
    expect(log).toContain('\nhello\n');
  });

  it('finds a profile by its hash, and runs nothing of another', () => {
    const [hash] =
      /[0-9a-f]{64}/.exec(expectOk(shop.run(['check', '--as', 'adapter-profile', 'profiles/one.json']))) ??
      [];
    const args = prepare('hash', `${READ}; ${DONE}`);
    const agent = ['--profiles', 'profiles', '--', 'bash', shop.path('hash.sh')];
    expectOk(shop.run([...args, '--profile', `blake3:${hash}`, ...agent]));
    const other = shop.run([...args, '--profile', `blake3:${'0'.repeat(64)}`, ...agent]);
    expect(other.status).toBe(1);
    expect(parseLines(other.stdout)).toMatchObject([
      { review: 'blocked', reason_code: 'ADAPTER_MISCONFIGURED', detail_code: 'PROFILE_NOT_FOUND' },
    ]);
  });

  it.each([
    [['--profile', 'local.json'], 'no program'],
    [['--', 'true'], 'no profile'],
    [['--profile', 'blake3:00', '--', 'true'], 'no hash'],
    [['--profile', 'local.json', '--tier', 'none', '--', 'true'], 'no such tier'],
    [['--profile', 'local.json', '--episode', '../x', '--', 'true'], 'no such id'],
  ])('refuses %j: %s', (words) => {
    usages += 1;
    expectError(shop.run([...prepare(`usage${usages}`, ''), ...words]), 2, 'USAGE');
  });

  it('refuses a workspace that holds the ledger', () => {
    const [command, ledger] = prepare('within', '');
    const run = shop.run([
      command ?? '',
      ledger ?? '',
      '--workspace',
      '.',
      '--profile',
      'local.json',
      '--',
      'true',
    ]);
    expectError(run, 2, 'ROOT_HOLDS_KEPT_OUT');
  });

  it.runIf(existsSync(MOCK))(
    'answers an agent that lies once and repeats itself, and blocks its review',
    () => {
      const args = prepare('mock', '');
      shop.write('mock.json', profileWith({ capability_map: { 'fs.read': 'fs.read' } }));
      const run = shop.run([...args, '--profile', 'mock.json', '--', 'bash', MOCK]);
      expect(run.status).toBe(1);
      expect(parseLines(run.stdout)).toMatchObject([
        { review: 'blocked', reason_code: 'TOOL_FAILED', other_nonces: 1, repeated_ids: 1 },
      ]);
      const log = readFileSync(shop.path(join(recordOf('mock'), 'log.txt')), 'utf8');
      expect(log.match(/^⟦TR1.*$/gm)?.map((line) => line.replace(/^\S+ \S+ /, ''))).toEqual([
        'r1 denied PATH_OUTSIDE_ROOT',
        'r3 denied TI1_UNKNOWN_TOOL',
        'r1 denied DUPLICATE_REQUEST_ID',
      ]);
      expectOk(shop.run(['verify', 'mock.jsonl']));
    },
  );

  it('killed in the middle of a call leaves what can be settled', async () => {
    const args = prepare('killed', `${READ}; ask r2 run '{"argv":["sleep","60"]}'; ${DONE}`);
    shop.write('exec.json', profileWith({ capability_map: { 'fs.read': 'fs.read', run: 'exec' } }));
    const agent = ['--profile', 'exec.json', '--program', 'sleep', '--', 'bash', shop.path('killed.sh')];
    const running = shop.start([...args, ...agent]);
    const starts = (): number => (shop.read('killed.jsonl').match(/"x\.northroot\.start"/g) ?? []).length;
    await running.until(() => running.hasEnded || starts() === 2);
    expect(running.stderr).toBe('');
    running.kill('SIGKILL');
    await running.end();
    expectOk(shop.run(['verify', 'killed.jsonl']));
    expectOk(shop.run(['record', 'killed.jsonl', '--auth', '6', '--abandon']));
    expectOk(shop.run(['verify', 'killed.jsonl']));
    expect(shop.read('killed.jsonl')).toContain('"outcome":"unknown"');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'told to stop by %s ends its agent, and records that',
    async (signal) => {
      const name = signal.toLowerCase();
      const args = prepare(name, `${READ}; sleep 60`);
      const running = shop.start([...args, '--profile', 'local.json', '--', 'bash', shop.path(`${name}.sh`)]);
      await running.until(() => running.hasEnded || shop.read(`${name}.jsonl`).includes('"execution"'));
      running.kill(signal);
      const { status, stdout } = await running.end();
      expect(status).not.toBe(0);
      expect(parseLines(stdout)).toMatchObject([
        { review: 'blocked', reason_code: 'TIMEOUT', detail_code: 'INTERRUPTED' },
      ]);
      expectOk(shop.run(['verify', `${name}.jsonl`]));
    },
  );
});
