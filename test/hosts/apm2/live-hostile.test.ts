/** Agents that lie, flood, hide and hang: each is answered no more than it may be, ended, and closes with a reason. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NorthrootError } from '../../../src/base/error.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
import { type FileSystem, nodeFileSystem } from '../../../src/log/fs/file-system.js';
import { runAgent } from '../../../src/hosts/apm2/index.js';
import { recordedText, hasRecordings } from '../recorded.js';
import {
  eventsOf,
  fakeTools,
  filesOf,
  importOf,
  isAlive,
  makeFolder,
  openGate,
  profileWith,
  runScript,
  verify,
  wrongIn,
} from './live-kit.js';

const READ = 'ask r1 fs.read \'{"path":"notes.txt"}\'';
const DONE = 'echo \'{"done":true}\'';
const PROTOCOL = { review: 'blocked', reason: 'ADAPTER_PROTOCOL_VIOLATION' } as const;
const MISCONFIGURED = { review: 'blocked', reason: 'ADAPTER_MISCONFIGURED' } as const;

function answersIn(log: string): string[] {
  return [...log.matchAll(/^⟦TR1 [0-9a-f]{16}⟧ (\S+ \S+(?: [A-Z0-9_]+$)?)/gm)].map(
    ([, answer]) => answer ?? '',
  );
}

describe('the protocol', () => {
  it('answers no other nonce, and ends whoever tries three', async () => {
    const guess = (n: number): string => `echo "⟦TI1 badbadbadbadbad${n}⟧ g${n} fs.read e30"`;
    const one = await runScript(`${guess(1)}; ${READ}; ${DONE}`);
    expect(answersIn(one.log)).toEqual(['r1 ok']);
    expect(one.result).toMatchObject({
      ...PROTOCOL,
      detail: 'NONCE_MISMATCH',
      counts: { guesses: 1, allowed: 1 },
    });
    const three = await runScript(`${guess(1)}; ${guess(2)}; ${guess(3)}; sleep 60`);
    expect(three.result).toMatchObject({
      ...PROTOCOL,
      detail: 'NONCE_GUESSING',
      counts: { guesses: 3, requests: 0 },
    });
    expect(wrongIn(three.result.record)).not.toContain('EP-7 NOT_FAILED_CLOSED');
    expect(wrongIn(three.result.record)).toContain('EP-5 ADAPTER_PROTOCOL_VIOLATION');
  });

  it('runs a request once, and refuses its id after that', async () => {
    const { result, log, ledger } = await runScript(`${READ}; ${READ}; ${DONE}`);
    expect(answersIn(log)).toEqual(['r1 ok', 'r1 denied DUPLICATE_REQUEST_ID']);
    expect(result).toMatchObject({
      ...PROTOCOL,
      detail: 'REQUEST_DUPLICATE',
      counts: { allowed: 1, duplicates: 1 },
    });
    expect((await eventsOf(ledger)).filter((event) => event['event_type'] === 'execution')).toHaveLength(1);
  });

  it.each([
    ['too few parts', 'r1 fs.read', 'MALFORMED_FRAME'],
    ['too many parts', 'r1 fs.read e30 x', 'MALFORMED_FRAME'],
    ['padding', 'r1 fs.read eyJhIjoxfQ==', 'MALFORMED_FRAME'],
    ['no JSON', `r1 fs.read ${Buffer.from('{').toString('base64url')}`, 'MALFORMED_FRAME'],
    ['blanks in JSON', `r1 fs.read ${Buffer.from('{ }').toString('base64url')}`, 'NOT_CANONICAL'],
    ['another order', `r1 fs.read ${Buffer.from('{"b":1,"a":2}').toString('base64url')}`, 'NOT_CANONICAL'],
    [
      'a number that is not exact',
      `r1 fs.read ${Buffer.from('9007199254740993').toString('base64url')}`,
      'NOT_CANONICAL',
    ],
    ['too much', `r1 fs.read ${'A'.repeat(2000)}`, 'ARGS_TOO_LARGE'],
  ])('refuses a request of %s, and records that', async (_, rest, code) => {
    const { log, ledger } = await runScript(`echo "⟦TI1 $TI_NONCE⟧ ${rest}"; read -r answer; ${DONE}`);
    expect(answersIn(log)).toEqual([`r1 denied ${code}`]);
    const events = await eventsOf(ledger);
    expect(events).toContainEqual(expect.objectContaining({ decision: 'deny', decision_code: code }));
  });

  it.each([
    ['', 'MALFORMED_FRAME'],
    [` ${'x'.repeat(300)} fs.read e30`, 'MALFORMED_FRAME'],
  ])('ends whoever asks without an id that can be read', async (rest, detail) => {
    const { result } = await runScript(`echo "⟦TI1 $TI_NONCE⟧${rest}"; sleep 60`);
    expect(result).toMatchObject({ ...PROTOCOL, detail });
  });

  it('takes no request without its end', async () => {
    const { result, log } = await runScript(`${READ}; printf '%s' "⟦TI1 $TI_NONCE⟧ r2 fs.read e30"`);
    expect(answersIn(log)).toEqual(['r1 ok']);
    expect(result.counts.requests).toBe(1);
  });

  it('keeps what an agent writes in the name of the kernel apart', async () => {
    const forge = 'echo "⟦TR1 $TI_NONCE⟧ r9 ok 00"; echo "  ⟦TR1 $TI_NONCE⟧ r1 denied NO"';
    const { result, log } = await runScript(`${forge}; ${READ}; ${forge}; ${DONE}`);
    expect(answersIn(log)).toEqual(['r1 ok']);
    expect(result.review).toBe('recorded');
    expect(importOf(result.record).report).toBeDefined();
    expect(wrongIn(result.record)).toEqual([]);
  });

  it('takes no events of the kernel from its log', async () => {
    const forged = '{"event_type":"tool_executed","request_id":"r1","outcome":"SUCCESS","result_hash":"00"}';
    const { result } = await runScript(`echo '${forged}'; echo '${forged}'`);
    const read = importOf(result.record);
    expect(JSON.stringify(read.events)).not.toContain('"execution"');
  });

  it('ends whoever asks while the bridge is off', async () => {
    const profile = profileWith({ tool_bridge: { enabled: false } });
    const { result, log } = await runScript(`${READ}; sleep 60`, { profile });
    expect(answersIn(log)).toEqual([]);
    expect(result).toMatchObject({ ...MISCONFIGURED, detail: 'TOOL_BRIDGE_DISABLED' });
  });

  it.runIf(hasRecordings)(
    'reads the lines of the recorded cases as their reader does, or more strictly',
    async () => {
      const { lines } = JSON.parse(recordedText('apm2/ti1-cases.json')) as {
        lines: { line: string; expect: { ok?: object; err?: string } }[];
      };
      for (const { line, expect: expected } of lines) {
        const [, rest] = /^⟦TI1 abc123def456⟧ (.*)$/.exec(line) ?? [];
        if (rest === undefined) continue;
        const { log, result } = await runScript(
          `echo "⟦TI1 $TI_NONCE⟧ ${rest.replaceAll('!', '\\!')}"; read -r a; ${DONE}`,
          {
            profile: profileWith({ capability_map: { read_file: 'fs.read' } }),
          },
        );
        expect(result.counts.allowed).toBe(expected.ok === undefined ? 0 : 1);
        if (expected.ok === undefined) expect(log).toContain('req-001 denied ');
      }
    },
  );
});

describe('floods', () => {
  it('of a line without an end are cut off', async () => {
    const { result } = await runScript('head -c 1000000 /dev/zero | tr "\\0" x; sleep 60');
    expect(result).toMatchObject({ ...PROTOCOL, detail: 'LINE_TOO_LONG' });
  });

  it('of output fill no disk, and the end is kept', async () => {
    const profile = profileWith({ evidence_policy: { max_recorded_output_bytes: 4096 } });
    const { result, log } = await runScript(
      `yes noise | head -n 200000; ${READ}; yes noise | head -n 200000; ${DONE}`,
      {
        profile,
      },
    );
    expect(log.length).toBeLessThan(80_000);
    expect(log).toMatch(/\| \d+ lines are left out\n/);
    expect(result.review).toBe('recorded');
  });

  it('of repeated ids are ended', async () => {
    const { result } = await runScript(
      `${READ}; line="⟦TI1 $TI_NONCE⟧ r1 fs.read e30"; for n in $(seq 200); do echo "$line"; done; sleep 60`,
    );
    expect(result).toMatchObject({ ...PROTOCOL, detail: 'DUPLICATE_REQUEST_ID' });
  });
});

describe('an agent that does not end', () => {
  it('is killed with its children when its time is over, though it ignores SIGTERM', async () => {
    const folder = makeFolder();
    const pids = join(folder, 'pids');
    const profile = profileWith({ budget_defaults: { max_wall_clock_ms: 1500 } });
    const script = `trap '' TERM; (trap '' TERM; echo $BASHPID >> ${pids}; while :; do sleep 1; done) & echo $$ >> ${pids}; ${READ}; while :; do sleep 1; done`;
    const { result, ledger } = await runScript(script, { profile }, folder);
    expect(result).toMatchObject({ review: 'blocked', reason: 'TIMEOUT', detail: 'WALL_CLOCK_EXCEEDED' });
    const alive = readFileSync(pids, 'utf8')
      .trim()
      .split('\n')
      .filter((pid) => isAlive(Number(pid)));
    expect(alive).toEqual([]);
    expect((await verify(ledger)).verdict).toBe('ok');
    expect(wrongIn(result.record)).toContain('EP-5 TIMEOUT');
    expect(wrongIn(result.record)).not.toContain('EP-7 NOT_FAILED_CLOSED');
  });

  it('is killed when it says nothing', async () => {
    const profile = profileWith({ health_checks: { stall_threshold_ms: 300 } });
    const { result } = await runScript(`${READ}; sleep 60`, { profile });
    expect(result).toMatchObject({ review: 'blocked', reason: 'TIMEOUT', detail: 'STALLED' });
  });

  it('is killed when it does not begin', async () => {
    const profile = profileWith({ health_checks: { startup_timeout_ms: 500 } });
    const { result } = await runScript('sleep 60', { profile });
    expect(result).toMatchObject({ review: 'blocked', reason: 'TIMEOUT', detail: 'STARTUP_TIMEOUT' });
  });

  it('is not thought silent while the kernel works for it', async () => {
    const profile = profileWith({ health_checks: { stall_threshold_ms: 200 } });
    const tools = fakeTools(
      () => new Promise((resolve) => setTimeout(() => resolve(Buffer.from('late')), 700)),
    );
    const { result } = await runScript(`${READ}; ${DONE}`, { profile, tools });
    expect(result.review).toBe('recorded');
  });

  it('has its tool ended with it', async () => {
    const profile = profileWith({ budget_defaults: { max_wall_clock_ms: 1200 } });
    const tools = fakeTools(
      (_, signal) =>
        new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error()))),
    );
    const { result, ledger } = await runScript(`${READ}; sleep 60`, { profile, tools });
    expect(result).toMatchObject({ review: 'blocked', reason: 'TIMEOUT' });
    expect(await eventsOf(ledger)).toContainEqual(
      expect.objectContaining({ event_type: 'execution', outcome: 'failure' }),
    );
    expect((await verify(ledger)).verdict).toBe('ok');
  });

  it('is ended when who runs it is told to stop', async () => {
    const stop = new AbortController();
    const tools = fakeTools(() => {
      stop.abort();
      return Promise.resolve(Buffer.from('x'));
    });
    const { result } = await runScript(`${READ}; sleep 60`, { signal: stop.signal, tools });
    expect(result).toMatchObject({ review: 'blocked', reason: 'TIMEOUT', detail: 'INTERRUPTED' });
  });

  it('whose children keep its output open is waited for no longer than it lives', async () => {
    const { result } = await runScript(`setsid sleep 30 & ${READ}; ${DONE}`);
    expect(result.review).toBe('recorded');
  });
});

describe('a profile', () => {
  it.each([
    ['is of another version', profileWith({ version_probe: { regex: '^local 2\\.0$' } }), 'PROBE_MISMATCH'],
    [
      'has a probe that is not there',
      profileWith({ version_probe: { command: 'no-such-probe' } }),
      'PROBE_NOT_STARTED',
    ],
    ['has a probe that fails', profileWith({ version_probe: { command: 'false' } }), 'PROBE_FAILED'],
    [
      'has a probe that hangs',
      profileWith({ version_probe: { command: 'sleep 60' }, health_checks: { startup_timeout_ms: 300 } }),
      'PROBE_TIMEOUT',
    ],
    [
      'has a pattern that takes for ever',
      profileWith({ version_probe: { command: `echo ${'a'.repeat(60)}b`, regex: '^(a+)+$1.0' } }),
      'PROBE_MISMATCH',
    ],
    ['has a member that nobody knows', profileWith({ extra: true }), 'MEMBER_UNKNOWN'],
    ['is none', Buffer.from('nothing'), 'NO_CANONICAL_FORM'],
    ['is not found', undefined, 'PROFILE_NOT_FOUND'],
    [
      'wants what the environment has not',
      profileWith({ env_template: [['TOKEN', '${NOT_THERE}']] }),
      'ENVIRONMENT_MISSING',
    ],
  ])('that %s runs nothing', async (_, profile, detail) => {
    const folder = makeFolder();
    const gate = await openGate(folder);
    const mark = join(folder, 'ran');
    const result = await runAgent({ gate, tools: fakeTools(), profile, command: ['touch', mark], env: {} });
    expect(result).toMatchObject({ ...MISCONFIGURED, detail, exitStatus: undefined });
    expect(existsSync(mark)).toBe(false);
    const blocked = (await eventsOf(join(folder, 'ledger.jsonl'))).at(-1);
    expect(blocked).toMatchObject({
      event_type: 'x.apm2.review_blocked_recorded',
      reason_code: 'ADAPTER_MISCONFIGURED',
      detail_code: detail,
    });
    expect(wrongIn(result.record)).toContain('EP-5 ADAPTER_MISCONFIGURED');
  });

  it('whose program is not there runs nothing', async () => {
    const folder = makeFolder();
    const gate = await openGate(folder);
    const result = await runAgent({
      gate,
      tools: fakeTools(),
      profile: profileWith(),
      command: ['no-such-agent'],
    });
    expect(result).toMatchObject({ ...MISCONFIGURED, detail: 'AGENT_NOT_FOUND' });
  });

  it('gives its agent only the environment that it names', async () => {
    const profile = profileWith({ env_template: [['A', 'x-${GIVEN}']] });
    const { log } = await runScript('env | sort', { profile, env: { GIVEN: 'y', SECRET: 'z' } });
    const names = log.split('\n').flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? []);
    expect(log).toContain('A=x-y\n');
    expect(names.filter((name) => !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(name))).toEqual([
      'A',
      'PATH',
      'TI_CAS',
      'TI_EPISODE',
      'TI_NONCE',
    ]);
  });
});

describe('what cannot be kept', () => {
  /** A disk that is full for files whose path has this in it. */
  function fullFor(part: string): FileSystem {
    return {
      ...nodeFileSystem,
      async open(path, mode, permissions) {
        if (path.includes(part) && mode === 'new' && part === '/results/')
          throw new NorthrootError('DISK_FULL', 'the disk is full');
        const file = await nodeFileSystem.open(path, mode, permissions);
        if (!path.includes(part)) return file;
        return Object.assign(Object.create(file) as typeof file, {
          path: file.path,
          write: () => Promise.reject(new NorthrootError('DISK_FULL', 'the disk is full')),
          datasync: () => file.datasync(),
          close: () => file.close(),
        });
      },
    };
  }

  it('as a result ends the episode without an answer', async () => {
    const folder = makeFolder();
    await expect(
      runScript(`${READ}; sleep 60`, { fileSystem: fullFor('/results/'), episodeId: 'e1' }, folder),
    ).rejects.toMatchObject({ code: 'DISK_FULL' });
    const ledger = join(folder, 'ledger.jsonl');
    expect((await verify(ledger)).verdict).toBe('ok');
    expect(await eventsOf(ledger)).toContainEqual(
      expect.objectContaining({
        event_type: 'execution',
        outcome: 'failure',
        error_code: 'RESULT_NOT_STORED',
      }),
    );
    const record = join(`${ledger}.episodes`, 'e1', 'record');
    expect(readFileSync(join(record, 'log.txt'), 'utf8')).not.toContain('⟦TR1');
    expect(wrongIn(record)).toContain('EP-5 ADAPTER_MISCONFIGURED');
    expect(filesOf(record).length).toBeGreaterThan(3);
  });

  it('as a line of the log ends the episode', async () => {
    await expect(runScript(`${READ}; sleep 60`, { fileSystem: fullFor('log.txt') })).rejects.toMatchObject({
      code: 'DISK_FULL',
    });
  });

  it('as a decision in the ledger ends the episode without an answer', async () => {
    const folder = makeFolder();
    const gate = await openGate(folder);
    const decide = gate.decide.bind(gate);
    gate.decide = (...args) =>
      args[0].ref === 'r2'
        ? Promise.reject(new NorthrootError('LEDGER_FAILED', 'it failed'))
        : decide(...args);
    await expect(
      runScript(`${READ}; ask r2 fs.read '{"path":"x"}'; sleep 60`, { gate, episodeId: 'e1' }, folder),
    ).rejects.toMatchObject({ code: 'LEDGER_FAILED' });
    const record = join(folder, 'ledger.jsonl.episodes', 'e1', 'record');
    expect(answersIn(readFileSync(join(record, 'log.txt'), 'utf8'))).toEqual(['r1 ok']);
    expect(wrongIn(record)).toContain('EP-5 ADAPTER_MISCONFIGURED');
  });

  it('twice under one id is refused', async () => {
    const folder = makeFolder();
    const gate = await openGate(folder);
    await runScript(`${READ}; ${DONE}`, { gate, episodeId: 'e1' }, folder);
    await expect(runScript(`${READ}; ${DONE}`, { gate, episodeId: 'e1' }, folder)).rejects.toMatchObject({
      code: 'FILE_EXISTS',
    });
  });
});

describe('a request that a policy rewrites', () => {
  const rewritten = async (from: string, to: object) => {
    const folder = makeFolder();
    const advisers = [{ name: 'policy', advise: () => ({ effect: 'rewrite' as const, params: to }) }];
    const gate = await openGate(folder, { advisers });
    const acted: object[] = [];
    const tools = fakeTools((args) => {
      acted.push(args);
      return Promise.resolve(Buffer.from('done'));
    });
    const ran = await runScript(`ask r1 fs.read '${from}'; ${DONE}`, { gate, tools }, folder);
    expect((await verify(ran.ledger)).verdict).toBe('ok');
    return { ...ran, acted };
  };

  it('is done as it was rewritten', async () => {
    const to = { path: 'notes.txt', limit: 1 };
    const { acted, log, ledger } = await rewritten('{"path":"notes.txt"}', to);
    expect(acted).toEqual([to]);
    expect(answersIn(log)).toEqual(['r1 ok']);
    const digest = sha256Digest(Buffer.from('{"limit":1,"path":"notes.txt"}'));
    const [execution] = (await eventsOf(ledger)).filter((event) => event['event_type'] === 'execution');
    expect(execution).toMatchObject({ outcome: 'success', tool_params_digest: { ...digest } });
  });

  it.each([
    ['something else', { path: 'other.txt' }, 'RESOURCE_NOT_GRANTED'],
    ['what is no call', { path: 1 }, 'INVALID_ARGUMENTS'],
  ])('to %s is not done at all', async (_, to, code) => {
    const { acted, log, ledger } = await rewritten('{"path":"notes.txt"}', to);
    expect(acted).toEqual([]);
    expect(answersIn(log)).toEqual(['r1 ok']);
    const [execution] = (await eventsOf(ledger)).filter((event) => event['event_type'] === 'execution');
    expect(execution).toMatchObject({ outcome: 'failure', error_code: code });
  });
});
