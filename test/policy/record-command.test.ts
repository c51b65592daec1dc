/** `northroot authorize` and `northroot record` around commands: what is run, what is not, and what is then in the ledger. */

import { afterAll, describe, expect, it } from 'vitest';
import { ndjson } from '../cli/drafts.js';
import {
  CLI,
  expectCode,
  expectError,
  expectOk,
  parse,
  Workshop,
  type EventJson,
  type Run,
  type RunOptions,
} from '../cli/runner.js';
import { formatPrivateKey, generatePrivateKey, parsePrivateKey } from '../../src/format/key/private-key.js';
import { authorizeAction } from '../../src/log/policy/authorize.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { meters } from '../../src/base/value/meter.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { holdLock } from '../writer/support.js';
import { digestOf } from './bare-events.js';

const shop = new Workshop();
const int = (n: number) => ({ t: 'int', v: String(n) });

interface DecisionJson {
  readonly decision: string;
  readonly decision_code: string;
  readonly seq: number;
  readonly event_id: string;
  readonly grant_event_id: string | null;
  readonly checks: readonly { readonly check: string; readonly result: string; readonly code?: string }[];
  readonly remaining: readonly { readonly unit: string; readonly left: unknown }[];
}

const DECISION = {
  event_type: 'authorization',
  principal_id: 'agent:a1',
  intents: { intent_digest: digestOf('intent') },
  policy_id: 'test/1',
  policy_digest: digestOf('policy'),
  decision: 'allow',
  decision_code: 'ALLOW',
};

/** A draft of a grant over `sh.*`: generous, but for what is given. */
function grant(bounds: object = {}, members: object = {}): object {
  const meter_caps = [
    { unit: 'calls', amount: int(100) },
    { unit: 'time.ms', amount: int(600_000) },
    { unit: 'usd', amount: int(5) },
  ];
  return {
    ...DECISION,
    authorization: { kind: 'grant', bounds: { allowed_tools: ['sh.*'], meter_caps, ...bounds } },
    ...members,
  };
}

/** Makes a ledger of these drafts, with its key beside it; returns their ids. */
async function makeLedger(name: string, ...drafts: readonly object[]): Promise<string[]> {
  const key = generatePrivateKey();
  shop.write(`${name}.key`, formatPrivateKey(key, 'pem'), 0o600);
  const ledger = await Ledger.open(shop.path(name), {
    signer: createSigner(key),
    create: { origin: `example.com/${name}` },
  });
  const appended = await Promise.all(drafts.map((event) => ledger.append({ event })));
  await ledger.close();
  return appended.map(({ eventId }) => eventId);
}

function signerOf(ledger: string): { signer: Signer } {
  return { signer: createSigner(parsePrivateKey(shop.bytes(`${ledger}.key`))) };
}

/** Asks for leave to run a command, as `northroot authorize` does; returns the authorization's id. */
async function allow(
  ledger: string,
  command: readonly string[],
  reserve: Parameters<typeof meters>[0] = {},
): Promise<string> {
  const request = {
    principalId: 'agent:a1',
    toolName: 'sh.run',
    paramsDigest: digestOf(JSON.stringify(command)),
    intentDigest: digestOf('intent'),
    meters: meters(reserve),
  };
  const { decision, recorded } = await authorizeAction(shop.path(ledger), request, signerOf(ledger));
  expect(decision).toBe('allow');
  return recorded.eventId;
}

function record(ledger: string, auth: string, command: readonly string[], ...options: string[]): Run {
  return shop.run(['record', ledger, '--auth', auth, ...options, '--', ...command]);
}

function report(ledger: string, auth: string, ...options: string[]): Run {
  return shop.run(['record', ledger, '--auth', auth, ...options]);
}

function lastEvent(ledger: string): EventJson {
  return shop.records(ledger).at(-1)!.event;
}

function usedOf({ meter_used }: EventJson): Record<string, unknown> {
  const meters = meter_used as { unit: string; amount: { v?: string; m?: string; s?: number } }[];
  return Object.fromEntries(
    meters.map(({ unit, amount }) => [unit, Number(amount.v ?? amount.m) / 10 ** (amount.s ?? 0)]),
  );
}

/** Runs that must end before the command begins: it would leave `name` behind. */
function expectNotRun(
  name: string,
  attempt: (command: readonly string[]) => Run,
  code: string,
  status: 1 | 2,
): void {
  expectError(attempt(['touch', name]), status, code);
  expect(shop.has(name)).toBe(false);
}

const [mainGrant = ''] = await makeLedger('main.jsonl', grant());
/** The ledgers in which more was used than was allowed. */
const overspent = new Set<string>();

afterAll(async () => {
  // Whatever was done: what was written verifies.
  const ledgers = shop.files('').filter((name) => name.endsWith('.jsonl'));
  expect(ledgers.length).toBeGreaterThan(5);
  for (const ledger of ledgers) {
    const { exit_status } = await verifyLedger(shop.path(ledger));
    expect([ledger, exit_status]).toEqual([ledger, overspent.has(ledger) ? 3 : 0]);
  }
});

describe('authorize', () => {
  it('says what was decided, and ends with it', async () => {
    await makeLedger('decisions.jsonl', grant({ meter_caps: [{ unit: 'calls', amount: int(1) }] }));
    const ask = (...options: string[]): Run =>
      shop.run(['authorize', 'decisions.jsonl', '--principal', 'agent:a1', '--tool', 'sh.run', ...options]);
    const first = ask('--reserve', 'calls=1', '--', 'make');
    expect(first).toMatchObject({ status: 0 });
    // What is after -- is digested, and not run.
    expect(first.stderr).toContain('nothing was run');
    expect(parse<DecisionJson>(first.stdout)).toMatchObject({
      decision: 'allow',
      decision_code: 'ALLOW',
      seq: 2,
      remaining: [{ unit: 'calls', left: int(0) }],
    });
    const second = ask('--reserve', 'calls=1', '--', 'make');
    expect(second.status).toBe(3);
    expect(second.stderr).toMatch(
      /^denied: RESERVATION_OVER_CAP: .*; 0 of 1 calls left under sha-256:\S+\n$/,
    );
    expect(parse<DecisionJson>(second.stdout)).toMatchObject({
      decision: 'deny',
      decision_code: 'RESERVATION_OVER_CAP',
      seq: 3,
      grant_event_id: parse<DecisionJson>(first.stdout).grant_event_id,
      remaining: [],
      bound: {
        code: 'RESERVATION_OVER_CAP',
        grant_event_id: parse<DecisionJson>(first.stdout).grant_event_id,
        unit: 'calls',
        limit: int(1),
        used: int(1),
        left: int(0),
      },
    });
    expect(ask('--quiet', '--reserve', 'calls=1', '--', 'make')).toMatchObject({ status: 3, stderr: '' });
    const other = ask('--principal', 'agent:a2', '--', 'make');
    expect(other.status).toBe(3);
    expect(parse<DecisionJson>(other.stdout)).toMatchObject({
      decision_code: 'GRANT_NOT_FOUND',
      grant_event_id: null,
    });
  });

  it('takes the grant that is named, by number, id or prefix', async () => {
    const [first = '', second = ''] = await makeLedger(
      'two-grants.jsonl',
      grant(),
      grant({ meter_caps: [{ unit: 'usd', amount: int(7) }] }),
    );
    const ask = (name: string): Run =>
      shop.run([
        ...['authorize', 'two-grants.jsonl', '--principal', 'agent:a1', '--tool', 'sh.run'],
        ...['--grant', name, '--params-digest', 'A'.repeat(64).toLowerCase()],
      ]);
    for (const name of ['2', second, second.slice(0, 20)]) {
      expect(parse<DecisionJson>(expectOk(ask(name)))).toMatchObject({ grant_event_id: second });
    }
    expect(parse<DecisionJson>(expectOk(ask(first)))).toMatchObject({ grant_event_id: first });
    expect(parse<DecisionJson>(ask('0').stdout)).toMatchObject({ decision_code: 'GRANT_NOT_FOUND' });
    expectError(ask('77'), 2, 'RECORD_NOT_FOUND');
  });

  it('digests parameters and intent as digest --json does', () => {
    shop.write('params.json', '{ "b": 1, "a": [true] }\n');
    const digest = expectOk(shop.run(['digest', '--json', 'params.json'])).trim();
    const base = ['authorize', 'main.jsonl', '--principal', 'agent:a1', '--tool', 'sh.run'];
    const input = shop.read('params.json');
    expectOk(shop.run([...base, '--params', 'params.json', '--intent', '-'], { input }));
    const b64 = digest.slice('sha-256:'.length);
    expect(lastEvent('main.jsonl')).toMatchObject({
      intents: { intent_digest: { b64 } },
      authorization: { action: { tool_params_digest: { b64 } } },
    });
    expectOk(shop.run([...base, '--params-digest', digest, '--intent-digest', digest]));
    expect(lastEvent('main.jsonl')).toMatchObject({
      intents: { intent_digest: { b64 } },
      authorization: { action: { tool_params_digest: { b64 } } },
    });
  });

  it.each<[string, string[], RunOptions?]>([
    ['a principal of no kind', ['--principal', 'bob', '--tool', 'sh.run', '--', 'make']],
    ['a tool with a space', ['--principal', 'agent:a1', '--tool', 'sh run', '--', 'make']],
    ['nothing to be done', ['--principal', 'agent:a1', '--tool', 'sh.run']],
    [
      'parameters twice',
      ['--principal', 'agent:a1', '--tool', 'sh.run', '--params', 'params.json', '--', 'make'],
    ],
    [
      'a negative amount',
      ['--principal', 'agent:a1', '--tool', 'sh.run', '--reserve', 'usd=-1', '--', 'make'],
    ],
    ['a digest that is none', ['--principal', 'agent:a1', '--tool', 'sh.run', '--params-digest', 'abc']],
    [
      'standard input for two things',
      ['--principal', 'agent:a1', '--tool', 'sh.run', '--params', '-', '--intent', '-'],
      { input: '{}' },
    ],
    [
      'two intents',
      [
        ...['--principal', 'agent:a1', '--tool', 'sh.run', '--intent', 'params.json'],
        ...['--intent-digest', 'A'.repeat(64), '--', 'make'],
      ],
    ],
  ])('does not ask with %s', (_what, args, options) => {
    const before = shop.read('main.jsonl');
    expectError(shop.run(['authorize', 'main.jsonl', ...args], options), 2, 'USAGE');
    expect(shop.read('main.jsonl')).toBe(before);
  });

  it('does not ask of what is no ledger, or an invalid one', () => {
    const args = ['--principal', 'agent:a1', '--tool', 'sh.run', '--', 'make'];
    expectError(shop.run(['authorize', 'missing.jsonl', ...args]), 2, 'FILE_NOT_FOUND');
    const lines = shop.lines('main.jsonl');
    shop.write('tampered', `${lines.with(1, lines[1].replace('"100"', '"101"')).join('\n')}\n`);
    shop.write('tampered.key', shop.read('main.jsonl.key'), 0o600);
    const before = shop.read('tampered');
    expectError(shop.run(['authorize', 'tampered', ...args]), 1, 'LEDGER_INVALID');
    expectNotRun(
      'ran-1',
      (command) => record('tampered', '1', command, '--tool', 'sh.run'),
      'LEDGER_INVALID',
      1,
    );
    expect(shop.read('tampered')).toBe(before);
  });

  it('refuses parameters that have no one meaning', () => {
    shop.write('doubled.json', '{"a":1,"a":2}');
    const args = ['authorize', 'main.jsonl', '--principal', 'agent:a1', '--tool', 'sh.run'];
    expectError(shop.run([...args, '--params', 'doubled.json']), 1, 'DUPLICATE_KEYS');
  });
});

describe('record -- a command', () => {
  it.each<[number, string, object]>([
    [0, 'exit 0', { outcome: 'success' }],
    [3, 'exit 3', { outcome: 'failure', error_code: 'EXIT_3' }],
    [143, 'kill -TERM $$', { outcome: 'failure', error_code: 'EXIT_143' }],
  ])('ends with its status %i, and records it', async (status, script, recorded) => {
    const command = ['sh', '-c', script];
    const id = await allow('main.jsonl', command);
    const run = record('main.jsonl', id, command);
    expect(run).toMatchObject({ status, stdout: '' });
    const event = lastEvent('main.jsonl');
    expect(event).toMatchObject({
      event_type: 'execution',
      principal_id: 'agent:a1',
      tool_name: 'sh.run',
      auth_event_id: { b64: id.slice('sha-256:'.length) },
      ...recorded,
    });
    expect(event).not.toHaveProperty(status === 0 ? 'error_code' : 'output_digest');
    expect(usedOf(event)).toEqual({ calls: 1, 'time.ms': expect.any(Number) as number });
    const result = parse<Record<string, unknown>>(run.stderr);
    expect(result).toMatchObject({ seq: shop.records('main.jsonl').length - 1, status: 'appended' });
  });

  it('leaves its input and its output alone', async () => {
    const command = ['sh', '-c', 'cat; printf "\\000\\377x"; echo talk >&2'];
    const id = await allow('main.jsonl', command);
    const run = shop.shell(
      `northroot -q record main.jsonl --auth ${id} -- sh -c 'cat; printf "\\000\\377x"; echo talk >&2' > out`,
      {
        input: 'given\n',
      },
    );
    expect(run).toEqual({ status: 0, stdout: '', stderr: 'talk\n' });
    expect(shop.bytes('out')).toEqual(Buffer.concat([Buffer.from('given\n'), Buffer.from([0, 255, 0x78])]));
  });

  it('measures how long it took', async () => {
    const id = await allow('main.jsonl', ['sleep', '0.3']);
    const start = performance.now();
    expect(record('main.jsonl', id, ['sleep', '0.3']).status).toBe(0);
    const elapsed = performance.now() - start;
    const event = lastEvent('main.jsonl');
    const took = usedOf(event)['time.ms'] as number;
    expect(took).toBeGreaterThanOrEqual(300);
    expect(took).toBeLessThanOrEqual(elapsed);
    const [from, to] = [event['started_at'], event['ended_at']].map((time) => Date.parse(time as string));
    expect(to - from).toBe(took);
  });

  it('records what the user says was used, beside or above what is measured', async () => {
    const id = await allow('main.jsonl', ['true'], { usd: '0.5', calls: 2 });
    record('main.jsonl', id, ['true'], '--meter', 'usd=0.25,calls=2', '--meter', 'time.ms=70000');
    expect(usedOf(lastEvent('main.jsonl'))).toEqual({ usd: 0.25, calls: 2, 'time.ms': 70_000 });
    const other = await allow('main.jsonl', ['sleep', '0.1']);
    record('main.jsonl', other, ['sleep', '0.1'], '--meter', 'calls=0,time.ms=7');
    const { calls, 'time.ms': took } = usedOf(lastEvent('main.jsonl'));
    expect([calls, (took as number) >= 100]).toEqual([1, true]);
  });

  it('records where the amounts come from, and by which model and provider', async () => {
    const first = await allow('main.jsonl', ['true']);
    record('main.jsonl', first, ['true']);
    expect(lastEvent('main.jsonl')).toMatchObject({ meter_basis: 'measured' });
    const second = await allow('main.jsonl', ['true'], { usd: '0.5' });
    record('main.jsonl', second, ['true'], '--meter', 'usd=0.25', '--model', 'm-1', '--provider', 'Example');
    expect(lastEvent('main.jsonl')).toMatchObject({ model_id: 'm-1', provider: 'Example' });
    expect(lastEvent('main.jsonl')).not.toHaveProperty('meter_basis');
    const third = await allow('main.jsonl', ['true'], { usd: '0.5' });
    const said = ['--outcome', 'success', '--meter', 'usd=0.25', '--basis', 'reported', '--model', 'm-2'];
    expectOk(report('main.jsonl', third, ...said));
    expect(lastEvent('main.jsonl')).toMatchObject({ meter_basis: 'reported', model_id: 'm-2' });
  });

  it('finds the authorization by its number or a prefix of its id', async () => {
    const id = await allow('main.jsonl', ['true']);
    expect(record('main.jsonl', id.slice(0, 24), ['true']).status).toBe(0);
    await allow('main.jsonl', ['true']);
    const { seq } = shop.records('main.jsonl').at(-1)!;
    expect(record('main.jsonl', String(seq), ['true']).status).toBe(0);
    expect(lastEvent('main.jsonl')['event_type']).toBe('execution');
  });

  it('works under a grant itself, any number of times', () => {
    for (let n = 0; n < 2; n += 1) {
      expect(record('main.jsonl', mainGrant, ['true'], '--tool', 'sh.direct').status).toBe(0);
      expect(lastEvent('main.jsonl')).toMatchObject({
        tool_name: 'sh.direct',
        auth_event_id: { b64: mainGrant.slice('sha-256:'.length) },
        tool_params_digest: digestOf('["true"]'),
      });
    }
    expectNotRun('ran-2', (command) => record('main.jsonl', mainGrant, command), 'USAGE', 2);
  });

  it('says that a command could not be run, and records that nothing was', async () => {
    shop.write('no-program', 'text', 0o644);
    for (const [status, name] of [
      [127, 'no-such-command-at-all'],
      [126, './no-program'],
    ] as const) {
      const id = await allow('main.jsonl', [name, 'x']);
      const run = record('main.jsonl', id, [name, 'x']);
      expect(run).toMatchObject({ status, stdout: '' });
      expect(run.stderr).toContain(`cannot run ${name}: `);
      expect(lastEvent('main.jsonl')).toMatchObject({
        outcome: 'failure',
        error_code: `EXIT_${status}`,
        meter_used: [],
      });
    }
  });

  it('records use over the reservation as it was', async () => {
    await makeLedger('over.jsonl', grant());
    overspent.add('over.jsonl');
    const id = await allow('over.jsonl', ['sleep', '0.1'], { 'time.ms': 1 });
    expect(record('over.jsonl', id, ['sleep', '0.1']).status).toBe(0);
    const { status, stdout } = shop.run(['verify', 'over.jsonl']);
    expect(status).toBe(3);
    expect(stdout).toContain(' RESERVATION_EXCEEDED: ');
  });

  it('passes signals on, and records how the command ended', async () => {
    const command = ['sh', '-c', 'echo up; exec sleep 60'];
    const id = await allow('main.jsonl', command);
    const running = shop.start(['record', 'main.jsonl', '--auth', id, '--', ...command]);
    await running.until(({ stdout }) => stdout === 'up\n');
    running.kill('SIGTERM');
    expect((await running.end()).status).toBe(143);
    expect(lastEvent('main.jsonl')).toMatchObject({ outcome: 'failure', error_code: 'EXIT_143' });
  });

  it('outlives Ctrl-C until the command has ended and is recorded', async () => {
    const command = ['sh', '-c', 'echo up; read line; exit 4'];
    const id = await allow('main.jsonl', command);
    const running = shop.start(['record', 'main.jsonl', '--auth', id, '--', ...command]);
    await running.until(({ stdout }) => stdout === 'up\n');
    for (let n = 0; n < 3; n += 1) running.kill('SIGINT');
    await running.feed('go\n');
    expect((await running.end()).status).toBe(4);
    expect(lastEvent('main.jsonl')).toMatchObject({ outcome: 'failure', error_code: 'EXIT_4' });
  });

  it('leaves the ledger to others meanwhile', async () => {
    const command = ['sh', '-c', `'${process.execPath}' '${CLI}' append main.jsonl --quiet > inner; exit $?`];
    const id = await allow('main.jsonl', command);
    const run = shop.run(['record', 'main.jsonl', '--auth', id, '--', ...command], {
      input: ndjson([{ event_type: 'x.note', principal_id: 'agent:a1', n: 'meanwhile' }]),
    });
    expect(run.status).toBe(0);
    const [, note, execution] = shop
      .records('main.jsonl')
      .slice(-3)
      .map(({ event }) => event);
    expect([note?.event_type, execution?.event_type]).toEqual(['x.note', 'execution']);
  });

  it('gives the event to be appended later when it cannot record it', async () => {
    await makeLedger('moved.jsonl', grant());
    const command = ['mv', 'moved.jsonl', 'elsewhere.jsonl'];
    const id = await allow('moved.jsonl', command);
    const run = record('moved.jsonl', id, command, '--quiet');
    expect(run.status).toBe(2);
    expectCode(run, 'FILE_NOT_FOUND');
    const [draft = ''] = run.stderr.split('\n');
    const key = ['--key', 'moved.jsonl.key'];
    expectOk(shop.run(['append', 'elsewhere.jsonl', ...key], { input: `${draft}\n` }));
    expect(lastEvent('elsewhere.jsonl')).toMatchObject({
      outcome: 'success',
      auth_event_id: { b64: id.slice('sha-256:'.length) },
    });
  });
});

describe('record does not run', () => {
  let markers = 0;
  const refused = (code: string, attempt: (command: readonly string[]) => Run, status: 1 | 2 = 1): void => {
    markers += 1;
    const before = shop.read('main.jsonl');
    expectNotRun(`marker-${markers}`, attempt, code, status);
    expect(shop.read('main.jsonl')).toBe(before);
  };

  it('another command than was authorized', async () => {
    const id = await allow('main.jsonl', ['true']);
    refused('TOOL_PARAMS_MISMATCH', (command) => record('main.jsonl', id, command));
    expect(record('main.jsonl', id, ['true', '']).status).toBe(1);
    expect(record('main.jsonl', id, ['true']).status).toBe(0);
  });

  it('under an authorization that was used', async () => {
    const id = await allow('main.jsonl', ['true']);
    expect(record('main.jsonl', id, ['true']).status).toBe(0);
    for (const name of [id, id.slice(0, 24)]) {
      refused('AUTHORIZATION_REUSED', (command) => record('main.jsonl', name, command));
    }
  });

  it('under one that was denied', () => {
    const args = ['authorize', 'main.jsonl', '--principal', 'agent:a1', '--tool', 'net.get', '--', 'true'];
    const { event_id: id } = parse<DecisionJson>(shop.run(args).stdout);
    refused('EXECUTION_UNDER_DENY', (command) => record('main.jsonl', id, command));
  });

  it('under what is not an authorization, or may be one of several', async () => {
    refused('AUTH_NOT_FOUND', (command) => record('main.jsonl', `sha-256:${'A'.repeat(43)}`, command));
    refused('AUTH_NOT_AN_AUTHORIZATION', (command) => record('main.jsonl', '0', command));
    refused('USAGE', (command) => record('main.jsonl', '', command), 2);
    // More than there are first characters.
    const many = Array.from({ length: 65 }, (_, n) => grant({}, { policy_id: `test/${n}` }));
    const ids = await makeLedger('many.jsonl', ...many);
    const firsts = ids.map((id) => id['sha-256:'.length]).filter((first) => !/\d/.test(first));
    const twice = firsts.find((first, n) => firsts.indexOf(first) !== n)!;
    refused('AUTHORIZATION_AMBIGUOUS', (command) => record('many.jsonl', twice, command, '--tool', 'sh.run'));
  });

  it('another tool than the one that was allowed', async () => {
    const id = await allow('main.jsonl', ['true']);
    refused('TOOL_MISMATCH', (command) => record('main.jsonl', id, command, '--tool', 'sh.other'));
    refused('TOOL_NOT_ALLOWED', (command) => record('main.jsonl', mainGrant, command, '--tool', 'net.get'));
  });

  it('after the grant has expired', async () => {
    const occurred_at = '2020-01-01T00:00:00Z';
    const [id = ''] = await makeLedger(
      'expired.jsonl',
      grant({ expires_at: '2020-01-02T00:00:00Z' }, { occurred_at }),
    );
    refused('GRANT_EXPIRED', (command) => record('expired.jsonl', id, command, '--tool', 'sh.run'));
  });

  it('more than may be used still', async () => {
    await makeLedger('small.jsonl', grant({ meter_caps: [{ unit: 'calls', amount: int(1) }] }));
    const use = (command: readonly string[]): Run => record('small.jsonl', '1', command, '--tool', 'sh.run');
    expect(use(['true']).status).toBe(0);
    refused('METER_CAP_EXCEEDED', use);
    const id = await allow('main.jsonl', ['touch', `marker-${markers + 1}`], { usd: '0.5' });
    refused('RESERVATION_EXCEEDED', (command) => record('main.jsonl', id, command, '--meter', 'usd=0.6'));
    const rated = grant({ rate_limits: [{ unit: 'calls.per_day', amount: int(1) }] });
    await makeLedger('rated.jsonl', rated);
    const again = (command: readonly string[]): Run =>
      record('rated.jsonl', '1', command, '--tool', 'sh.run');
    expect(again(['true']).status).toBe(0);
    refused('RATE_LIMIT_EXCEEDED', again);
  });

  it('what it could not record afterwards', async () => {
    expectOk(shop.run(['keygen', '--out', 'stranger.pem']));
    refused('KEY_UNKNOWN', (command) =>
      record('main.jsonl', mainGrant, command, '--tool', 'sh.run', '--key', 'stranger.pem'),
    );
    const units = Array.from({ length: 63 }, (_, n) => `u${n}=1`).join(',');
    refused('SCHEMA', (command) =>
      record('main.jsonl', mainGrant, command, '--tool', 'sh.run', '--meter', units),
    );
    const release = await holdLock(shop.path('main.jsonl'));
    refused(
      'LEDGER_LOCKED',
      (command) => record('main.jsonl', mainGrant, command, '--tool', 'sh.run', '--lock-timeout', '0.1'),
      2,
    );
    await release();
    refused(
      'FILE_NOT_FOUND',
      (command) => record('missing.jsonl', mainGrant, command, '--tool', 'sh.run'),
      2,
    );
  });

  it('no ledger that is only held for a while: --lock-timeout is in seconds', async () => {
    const release = await holdLock(shop.path('main.jsonl'));
    const common = ['--tool', 'sh.run', '--lock-timeout', '30'];
    const asking = shop.start(['authorize', 'main.jsonl', '--principal', 'agent:a1', ...common]);
    const recording = shop.start(['record', 'main.jsonl', '--auth', mainGrant, ...common, '--', 'true']);
    await recording.until(({ stderr }) => stderr.includes('waiting for another process'));
    await release();
    expect((await asking.end()).stderr).not.toContain('LEDGER_LOCKED');
    expect(await recording.end()).toMatchObject({ status: 0 });
  });

  it('with details that could not be recorded afterwards', async () => {
    const id = await allow('main.jsonl', ['touch', 'not-details']);
    for (const details of [
      ['--model', ''],
      ['--provider', 'x'.repeat(257)],
    ]) {
      const attempt = (command: readonly string[]): Run => record('main.jsonl', id, command, ...details);
      expectNotRun('not-details', attempt, 'USAGE', 2);
    }
  });

  it('with what is said of an end that nobody has seen', () => {
    for (const option of [
      ['--outcome', 'success'],
      ['--started-at', '2020-01-01'],
    ]) {
      refused(
        'USAGE',
        (command) => record('main.jsonl', mainGrant, command, '--tool', 'sh.run', ...option),
        2,
      );
    }
  });
});

/** Ends a recorder the hard way in the middle of its command, which then waits for its input to end. */
async function killRecorder(ledger: string, auth: string, command: readonly string[], ...options: string[]) {
  const running = shop.start(['record', ledger, '--auth', auth, ...options, '--', ...command]);
  await running.until(({ stdout }) => stdout.includes('up\n'));
  running.kill('SIGKILL');
  running.endInput();
  await running.end();
}

const WAITING = ['sh', '-c', 'echo up; cat > left-running; touch "$0"', 'ran'] as const;

describe('what is allowed once', () => {
  it('is run once by three recorders at a time', async () => {
    await makeLedger('thrice.jsonl', grant({ meter_caps: [{ unit: 'calls', amount: int(2) }] }));
    // Whoever runs it goes on until its input ends.
    const command = ['sh', '-c', 'echo ran >> thrice; cat'];
    const id = await allow('thrice.jsonl', command, { calls: 1 });
    /** Three at once, of which the winner goes on until the others have lost. */
    const race = async (auth: string, ...options: string[]): Promise<Run[]> => {
      const args = ['record', 'thrice.jsonl', '--auth', auth, ...options, '--', ...command];
      const recorders = [1, 2, 3].map(() => shop.start(args));
      const ended: Run[] = [];
      await Promise.all(
        recorders.map(async (recorder) => {
          ended.push(await recorder.end());
          if (ended.length === 2) for (const each of recorders) each.endInput();
        }),
      );
      return ended;
    };
    const losers = (runs: readonly Run[]): Run[] => {
      expect(runs.map(({ status }) => status)).toEqual([1, 1, 0]);
      return runs.filter(({ status }) => status === 1);
    };
    for (const run of losers(await race(id))) {
      expectCode(run, 'AUTHORIZATION_STARTED');
    }
    expect(shop.lines('thrice')).toHaveLength(1);
    // One call is left of the grant: once more, under the grant itself.
    for (const run of losers(await race('1', '--tool', 'sh.run'))) expectCode(run, 'METER_CAP_EXCEEDED');
    expect(shop.lines('thrice')).toHaveLength(2);
  });

  it('is not run again after its recorder was killed, until it is taken over or given up', async () => {
    await makeLedger('killed.jsonl', grant());
    const id = await allow('killed.jsonl', WAITING, { usd: 1 });
    await killRecorder('killed.jsonl', id, WAITING);
    const again = record('killed.jsonl', id, WAITING);
    expectError(again, 1, 'AUTHORIZATION_STARTED');
    const { seq } = shop.records('killed.jsonl').at(-1)!;
    expect(expectOk(shop.run(['why', 'killed.jsonl', id]))).toMatch(
      new RegExp(`^started seq ${seq}  sh\\.run at `, 'm'),
    );
    expect(again.stderr).toContain(`(seq ${seq})`);
    const verified = shop.run(['verify', 'killed.jsonl']);
    expect(expectOk(verified)).toMatch(new RegExp(`^1 start not recorded .*: seq ${seq} sh\\.run$`, 'm'));
    expectError(record('killed.jsonl', id, ['true'], '--resume'), 1, 'TOOL_PARAMS_MISMATCH');
    expectError(record('killed.jsonl', id, WAITING, '--resume', '0'), 1, 'START_NOT_FOUND');
    expect(record('killed.jsonl', id, WAITING, '--resume', String(seq))).toMatchObject({
      status: 0,
      stdout: 'up\n',
    });
    const [taken, execution] = shop
      .records('killed.jsonl')
      .slice(-2)
      .map(({ event }) => event);
    expect([taken?.event_type, execution?.['prev_event_id']]).toEqual(['x.northroot.start', taken?.event_id]);
    expectError(record('killed.jsonl', id, WAITING, '--resume'), 1, 'AUTHORIZATION_REUSED');
  });

  it('charges what a recorder that was killed held', async () => {
    await makeLedger('given-up.jsonl', grant({ meter_caps: [{ unit: 'calls', amount: int(2) }] }));
    const id = await allow('given-up.jsonl', WAITING, { calls: 1 });
    await killRecorder('given-up.jsonl', id, WAITING);
    expectOk(report('given-up.jsonl', id, '--abandon'));
    expect(lastEvent('given-up.jsonl')).toMatchObject({
      outcome: 'unknown',
      meter_used: meters({ calls: 1 }),
    });
    expectError(report('given-up.jsonl', id, '--abandon'), 1, 'AUTHORIZATION_REUSED');
    await killRecorder('given-up.jsonl', '1', WAITING, '--tool', 'sh.run');
    const budget = shop.run(['budget', 'given-up.jsonl']);
    expect(budget.stdout).toMatch(/calls +2 +1 +1 +0\n/);
    expect(budget.stdout).toMatch(/seq 5 .* not recorded: sh\.run, calls 1 held/);
    const { starts } = parse<{ starts: object[] }>(
      expectOk(shop.run(['budget', 'given-up.jsonl', '--format', 'json'])),
    );
    expect(starts).toMatchObject([{ seq: 5, tool_name: 'sh.run', meter_known: meters({ calls: 1 }) }]);
    const run = report('given-up.jsonl', '1', '--abandon');
    expectOk(run);
    expect(run.stderr).toMatch(/^used up: 2 of 2 calls used, nothing left, under sha-256:/m);
    expect(lastEvent('given-up.jsonl')).toMatchObject({
      outcome: 'unknown',
      meter_used: meters({ calls: 1 }),
    });
    expectError(report('given-up.jsonl', '1', '--abandon'), 1, 'START_NOT_FOUND');
  });

  it.each<[string, string[], string[]]>([
    ['both', ['--resume', '--abandon'], ['true']],
    ['--resume of nothing', ['--resume'], []],
    ['--abandon of a command', ['--abandon'], ['true']],
    ['--abandon and an outcome', ['--abandon', '--outcome', 'success'], []],
  ])('is not settled with %s', (_what, options, command) => {
    const args = ['record', 'main.jsonl', '--auth', mainGrant, ...options];
    expectError(shop.run(command.length === 0 ? args : [...args, '--', ...command]), 2, 'USAGE');
  });

  it('says when more was used than was allowed', async () => {
    await makeLedger('told.jsonl', grant({ meter_caps: [{ unit: 'time.ms', amount: int(50) }] }));
    overspent.add('told.jsonl');
    const run = record('told.jsonl', '1', ['sleep', '0.1'], '--tool', 'sh.run');
    expect(run.status).toBe(0);
    expect(run.stderr).toMatch(/^warning: METER_CAP_EXCEEDED: /m);
    expect(run.stderr).toMatch(/^overspent: \d+ of 50 time\.ms used, \d+ over, under sha-256:/m);
    expectNotRun(
      'ran-3',
      (command) => record('told.jsonl', '1', command, '--tool', 'sh.run'),
      'METER_CAP_EXCEEDED',
      1,
    );
  });

  it('needs a key: without one nothing was decided', async () => {
    await makeLedger('keyless.jsonl', grant());
    shop.write('keyless-2.jsonl', shop.read('keyless.jsonl'));
    const ask = ['authorize', 'keyless-2.jsonl', '--principal', 'agent:a1', '--tool', 'sh.run', '--', 'true'];
    expectError(shop.run(ask), 2, 'SIGNATURE_MISSING');
    expectError(record('keyless-2.jsonl', '1', ['true'], '--tool', 'sh.run'), 2, 'SIGNATURE_MISSING');
  });
});

interface BudgetJson {
  readonly grants: readonly {
    readonly executions: number;
    readonly meters: readonly { readonly unit: string; readonly used: object; readonly reserved: object }[];
  }[];
}

it('budget shows amounts of as many digits as there are, whole', async () => {
  const most = 2n ** 127n - 1n;
  const caps = meters({ calls: most, usd: `0.${'1'.repeat(38)}` });
  await makeLedger('most.jsonl', grant({ meter_caps: caps }));
  const { stdout } = shop.run(['budget', 'most.jsonl']);
  expect(stdout).toMatch(new RegExp(`calls +${most} +0 +0 +${most}\n`));
  expect(stdout).toMatch(/usd +0\.1{38} +0 +0 +0\.1{38}\n/);
});

describe('record without a command', () => {
  const usd = (ledger: string): unknown => {
    const { grants } = parse<BudgetJson>(expectOk(shop.run(['budget', ledger, '--format', 'json'])));
    const { used, reserved } = grants[0].meters.find(({ unit }) => unit === 'usd')!;
    return { executions: grants[0].executions, used, reserved };
  };

  it('records what was done elsewhere', async () => {
    await makeLedger('elsewhere-done.jsonl', grant({}, { occurred_at: '2020-01-01T00:00:00Z' }));
    const id = await allow('elsewhere-done.jsonl', ['true'], { usd: 1 });
    const run = report('elsewhere-done.jsonl', id, '--outcome', 'success', '--meter', 'usd=0.75');
    const result = parse<Record<string, unknown>>(expectOk(run));
    expect(result).toMatchObject({
      seq: 3,
      status: 'appended',
      outcome: 'success',
      meter_used: [{ unit: 'usd', amount: { t: 'dec', m: '75', s: 2 } }],
    });
    expect(run.stderr).toBe('');
    const times = ['--started-at', '2020-06-01T00:00:00Z', '--ended-at', '2020-06-01T00:00:02.5Z'];
    const again = ['--tool', 'sh.run', '--outcome', 'failure', '--error-code', 'TIMEOUT', ...times];
    const twice = [1, 2].map(() =>
      parse<{ status: string }>(expectOk(report('elsewhere-done.jsonl', '1', ...again))),
    );
    expect(twice.map(({ status }) => status)).toEqual(['appended', 'exists']);
    expect(lastEvent('elsewhere-done.jsonl')).toMatchObject({
      occurred_at: '2020-06-01T00:00:02.5Z',
      started_at: '2020-06-01T00:00:00Z',
      ended_at: '2020-06-01T00:00:02.5Z',
      outcome: 'failure',
      error_code: 'TIMEOUT',
      meter_used: [],
    });
  });

  it('records use over the cap as it was', async () => {
    await makeLedger('over-cap.jsonl', grant());
    overspent.add('over-cap.jsonl');
    expectOk(report('over-cap.jsonl', '1', '--tool', 'sh.run', '--outcome', 'success', '--meter', 'usd=5.5'));
    const { status, stdout } = shop.run(['verify', 'over-cap.jsonl']);
    expect(status).toBe(3);
    expect(stdout).toContain('METER_CAP_EXCEEDED');
  });

  it('gives a reservation back', async () => {
    await makeLedger('released.jsonl', grant());
    const id = await allow('released.jsonl', ['true'], { usd: 2 });
    expect(usd('released.jsonl')).toEqual({ executions: 0, used: int(0), reserved: int(2) });
    expectOk(report('released.jsonl', id, '--outcome', 'failure', '--error-code', 'ABANDONED'));
    expect(usd('released.jsonl')).toEqual({ executions: 0, used: int(0), reserved: int(0) });
    expectError(
      report('released.jsonl', id, '--outcome', 'failure', '--error-code', 'ABANDONED'),
      1,
      'AUTHORIZATION_REUSED',
    );
  });

  it('gives it back also when the grant has expired and its rate is used up', async () => {
    const occurred_at = '2020-01-01T00:00:00Z';
    const bounds = {
      expires_at: '2020-01-02T00:00:00Z',
      rate_limits: [{ unit: 'calls.per_day', amount: int(1) }],
    };
    const [grantId = ''] = await makeLedger('late.jsonl', grant(bounds, { occurred_at }));
    const grant_event_id = { alg: 'sha-256', b64: grantId.slice('sha-256:'.length) };
    const ledger = await Ledger.open(shop.path('late.jsonl'), signerOf('late.jsonl'));
    const action = {
      tool_name: 'sh.run',
      tool_params_digest: digestOf('params'),
      meter_reservation: meters({ usd: 2 }),
    };
    const authorization = { kind: 'action', grant_event_id, action };
    const { eventId } = await ledger.append({ event: { ...DECISION, occurred_at, authorization } });
    await ledger.close();
    const started = ['--started-at', occurred_at, '--ended-at', occurred_at];
    expectOk(report('late.jsonl', grantId, '--tool', 'sh.run', '--outcome', 'success', ...started));
    expectError(report('late.jsonl', eventId, '--outcome', 'success'), 1, 'GRANT_EXPIRED');
    expectError(report('late.jsonl', eventId, '--outcome', 'success', ...started), 1, 'RATE_LIMIT_EXCEEDED');
    expectOk(report('late.jsonl', eventId, '--outcome', 'failure', '--error-code', 'ABANDONED'));
    expect(usd('late.jsonl')).toEqual({ executions: 1, used: int(0), reserved: int(0) });
  });

  it.each<[string, string[]]>([
    ['a failure without a code', ['--outcome', 'failure']],
    ['a code with a space', ['--outcome', 'failure', '--error-code', 'too late']],
    [
      'an end before the start',
      ['--outcome', 'success', '--started-at', '2021-01-02', '--ended-at', '2021-01-01'],
    ],
    ['a start that is to come', ['--outcome', 'success', '--started-at', '9999-01-01']],
    ['a time that is none', ['--outcome', 'success', '--ended-at', 'noon']],
  ])('does not record %s', (_what, options) => {
    const before = shop.read('main.jsonl');
    expectError(report('main.jsonl', mainGrant, '--tool', 'sh.run', ...options), 2, 'USAGE');
    expect(shop.read('main.jsonl')).toBe(before);
  });

  it('asks for the tool under a grant itself', () => {
    const run = report('main.jsonl', mainGrant, '--outcome', 'success');
    expectError(run, 2, 'USAGE');
    expect(run.stderr).toContain('--tool');
  });

  it('does not record what broke another bound, and says what does', () => {
    const before = shop.read('main.jsonl');
    const run = report('main.jsonl', mainGrant, '--tool', 'net.get', '--outcome', 'success');
    expectError(run, 1, 'TOOL_NOT_ALLOWED');
    expect(run.stderr).toContain('hint: northroot append');
    expect(shop.read('main.jsonl')).toBe(before);
  });
});
