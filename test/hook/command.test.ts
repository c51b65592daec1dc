/** `northroot hook`, as agents run it: a process for each call, over a service or the ledger itself. */

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createSigner, HOOK_PROFILES, makeToken, parsePrivateKey, Tokens } from '../../src/api/index.js';
import {
  CLI,
  expectError,
  expectOk,
  type RecordJson,
  type Run,
  type RunOptions,
  Workshop,
} from '../cli/runner.js';
import { event, HAS_RECORDED, recorded } from './events.js';
import { BreakableService } from './service.js';

const shop = new Workshop();
let count = 0;

/** A new ledger that grants an agent so many calls. */
function makeLedger(calls = 2, principal = 'agent:claude-code'): string {
  count += 1;
  const name = `l${count}.jsonl`;
  expectOk(shop.run(['init', name]));
  grant(name, principal, calls);
  return name;
}

function grant(name: string, principal: string, calls: number, ...more: string[]): void {
  expectOk(shop.run(['grant', name, '--to', principal, '--tool', '*', '--cap', `calls=${calls}`, ...more]));
}

function hook(ledger: string, input: string | Uint8Array, ...more: string[]): Run {
  return shop.run(['hook', 'claude-code', '--ledger', ledger, ...more], { input });
}

/** In a process that does not keep this one from answering it. */
function hookProcess(args: readonly string[], input: string, env: RunOptions['env'] = {}): Promise<Run> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [CLI, 'hook', ...args], {
      cwd: shop.folder,
      env: { PATH: process.env['PATH'], HOME: shop.folder, ...env },
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk) => (stdout += String(chunk)));
    child.stderr.on('data', (chunk) => (stderr += String(chunk)));
    child.stdin.on('error', () => undefined);
    child.on('close', (status) => resolve({ status, stdout, stderr }));
    child.stdin.end(input);
  });
}

/** What the ledger has after its grants, in short. */
function told(ledger: string): string[] {
  return shop.records(ledger).flatMap(({ event: each }: RecordJson) => {
    const {
      event_type: type,
      decision,
      decision_code: code,
      outcome,
      error_code: error,
      authorization,
    } = each;
    if (type === 'execution') return [[outcome, error].filter((part) => part !== undefined).join(' ')];
    if (type !== 'authorization' || (authorization as { kind: string }).kind === 'grant') return [];
    return [`${String(decision)}${code === 'ALLOW' ? '' : ` ${String(code)}`}`];
  });
}

function expectSound(ledger: string): void {
  expectOk(shop.run(['verify', '--quiet', ledger]));
}

const ALLOWED = { status: 0, stdout: '', stderr: '' };
const call = (id: string, name = 'PreToolUse', more = {}): string =>
  event(name, { tool_use_id: id, ...more });
const denied = (code: string): object => ({
  status: 0,
  stderr: '',
  stdout: expect.stringMatching(
    `"permissionDecision":"deny","permissionDecisionReason":"northroot: ${code}`,
  ) as string,
});

describe('a budget of two calls', () => {
  it('stops the third', () => {
    const ledger = makeLedger();
    for (const id of ['t1', 't2']) {
      expect(hook(ledger, call(id))).toEqual(ALLOWED);
      expect(hook(ledger, call(id, 'PostToolUse', { tool_response: 'x', duration_ms: 5 }))).toEqual(ALLOWED);
    }
    expect(hook(ledger, call('t3'))).toMatchObject(denied('RESERVATION_OVER_CAP'));
    expect(told(ledger)).toEqual(['allow', 'success', 'allow', 'success', 'deny RESERVATION_OVER_CAP']);
    expectSound(ledger);
  });

  it('holds for an agent that gives calls no id', () => {
    const ledger = makeLedger(2, 'agent:gemini');
    const ask = (name: string, more = {}): Run =>
      shop.run(['hook', 'gemini', '--ledger', ledger], { input: event(name, more) });
    expect([ask('BeforeTool'), ask('BeforeTool'), ask('AfterTool', { tool_response: {} })]).toEqual([
      ALLOWED,
      ALLOWED,
      ALLOWED,
    ]);
    expect(ask('BeforeTool').stdout).toContain('"decision":"deny"');
    expect(ask('AfterTool', { tool_response: { error: { message: 'x' } } })).toEqual(ALLOWED);
    expect(told(ledger)).toEqual(['allow', 'allow', 'success', 'deny RESERVATION_OVER_CAP', 'failure ERROR']);
    expectSound(ledger);
  });

  it('is given back for calls that did not run', () => {
    const ledger = makeLedger(1);
    expect(hook(ledger, call('t1'))).toEqual(ALLOWED);
    const batch = { tool_calls: [{ tool_name: 'Bash', tool_input: {}, tool_use_id: 't1' }] };
    expect(hook(ledger, event('PostToolBatch', batch))).toEqual(ALLOWED);
    expect(hook(ledger, event('PostToolBatch', batch))).toEqual(ALLOWED);
    expect(hook(ledger, call('t2'))).toEqual(ALLOWED);
    expect(hook(ledger, call('t2', 'PermissionDenied'))).toEqual(ALLOWED);
    expect(hook(ledger, call('t3'))).toEqual(ALLOWED);
    expect(told(ledger)).toEqual(['allow', 'failure ABANDONED', 'allow', 'failure ABANDONED', 'allow']);
  });

  it('is given back at the end of its turn, and of no other session', () => {
    const ledger = makeLedger(3);
    grant(ledger, 'agent:gemini', 3);
    expect(hook(ledger, call('t1'))).toEqual(ALLOWED);
    expect(hook(ledger, call('t2', 'PreToolUse', { session_id: 's2' }))).toEqual(ALLOWED);
    const gemini = (name: string, session: string): Run =>
      shop.run(['hook', 'gemini', '--ledger', ledger], { input: event(name, { session_id: session }) });
    expect([gemini('BeforeTool', 's1'), gemini('BeforeTool', 's3')]).toEqual([ALLOWED, ALLOWED]);
    expect(hook(ledger, event('Stop', { session_id: 's2' }))).toEqual(ALLOWED);
    expect(told(ledger).slice(4)).toEqual(['failure ABANDONED']);
    expect(gemini('AfterAgent', 's3')).toEqual(ALLOWED);
    expect(told(ledger).slice(5)).toEqual(['failure ABANDONED']);
    const open = shop.run(['budget', ledger, '--format', 'json']);
    expect(expectOk(open).match(/"tool_name"/g)).toHaveLength(2);
    expectSound(ledger);
  });
});

describe('a session that breaks off', () => {
  it.each([
    ['claude-code', 'PreToolUse'],
    ['gemini', 'BeforeTool'],
  ])('of %s charges what may have run', (host, decides) => {
    const ledger = makeLedger(0);
    grant(ledger, `agent:${host}`, 1);
    const run = (name: string, session: string): Run =>
      shop.run(['hook', host, '--ledger', ledger], { input: event(name, { session_id: session }) });
    expect(run(decides, 's1')).toEqual(ALLOWED);
    expect(run('SessionEnd', 's1')).toEqual(ALLOWED);
    expect(run(decides, 's2').stdout).toContain('RESERVATION_OVER_CAP');
    expect(told(ledger)).toEqual(['allow', 'unknown SESSION_ENDED', 'deny RESERVATION_OVER_CAP']);
    expectSound(ledger);
  });
});

describe.skipIf(!HAS_RECORDED)('a recorded run', () => {
  it.each([
    ['claude-code/allow', ['allow', 'success']],
    ['claude-code/fail', ['allow', 'failure EXIT_3', 'allow', 'failure ERROR']],
    ['claude-code/sub', ['allow', 'allow', 'success', 'success']],
    ['claude-code/denyallow', ['allow', 'failure ABANDONED']],
  ] as const)('%s is in the ledger', (run, expected) => {
    const ledger = makeLedger(9);
    for (const text of recorded(run)) expect(hook(ledger, text)).toEqual(ALLOWED);
    expect(told(ledger)).toEqual(expected);
    expectSound(ledger);
  });

  it('has subagents spend grants of their own', () => {
    const ledger = makeLedger(9);
    const flags = ['--subagents', 'agent:claude-code/'];
    const ask = (): string[] =>
      recorded('claude-code/sub').map((text) => hook(ledger, text, ...flags).stdout);
    expect(ask().filter((stdout) => stdout !== '')).toHaveLength(1);
    grant(ledger, 'agent:claude-code/general-purpose', 1);
    const again = recorded('claude-code/sub').map((text) => text.replaceAll('toolu_mock', 'again'));
    for (const text of again) expect(hook(ledger, text, ...flags)).toEqual(ALLOWED);
    const actors = shop.records(ledger).filter(({ event: each }) => each.event_type === 'execution');
    expect(actors.map(({ event: each }) => each.principal_id)).toEqual([
      'agent:claude-code',
      'agent:claude-code/general-purpose',
      'agent:claude-code',
    ]);
    expectSound(ledger);
  });
});

describe('approvals', () => {
  it('are asked for, given, and used by the same call made again', () => {
    const ledger = makeLedger(0);
    grant(ledger, 'agent:a1', 5, '--approver', 'human:*');
    const ask = (id: string): Run => hook(ledger, call(id), '--principal', 'agent:a1');
    const asked = ask('t1');
    expect(asked).toMatchObject(denied('APPROVAL_REQUIRED'));
    const [, command = ''] = /northroot (approve \S+ \S+?);/.exec(asked.stdout) ?? [];
    expectOk(shop.run([...command.split(' '), '--principal', 'human:lead']));
    expect(ask('t2')).toEqual(ALLOWED);
    expect(ask('t3')).toMatchObject(denied('APPROVAL_REQUIRED'));
  });

  it('are waited for', async () => {
    const ledger = makeLedger(0);
    grant(ledger, 'agent:a1', 5, '--approver', 'human:*');
    const flags = ['claude-code', '--ledger', ledger, '--principal', 'agent:a1', '--wait', '10m'];
    const waiting = hookProcess(flags, call('t1'));
    for (;;) {
      const [request] = shop.records(ledger).filter(({ event: each }) => each['decision'] === 'deny');
      if (request !== undefined) {
        expectOk(shop.run(['approve', ledger, String(request.seq), '--principal', 'human:lead']));
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await waiting).toEqual(ALLOWED);
  });
});

describe('without a ledger that can be asked', () => {
  it.each(['missing', 'broken', 'without a key', 'of text'])('denies: %s', (what) => {
    const ledger = what === 'missing' ? 'none.jsonl' : makeLedger();
    if (what === 'broken')
      shop.write(ledger, shop.read(ledger).replace('agent:claude-code', 'agent:claude-cod3'));
    if (what === 'without a key') shop.remove(`${ledger}.key`);
    if (what === 'of text') shop.write(ledger, 'hello\n');
    const refused = shop.runProcess(['hook', 'claude-code', '--ledger', ledger], { input: call('t1') });
    expect(refused).toMatchObject({ status: 2, stdout: expect.stringContaining('"deny"') as string });
    expect(refused.stderr).toMatch(/^northroot: [A-Z_]+: /m);
    const after = shop.runProcess(['hook', 'claude-code', '--ledger', ledger], {
      input: call('t1', 'PostToolUse'),
    });
    expect(after).toMatchObject({ status: 0, stdout: '' });
    const open = ['hook', 'claude-code', '--ledger', ledger, '--fail', 'open'];
    expect(shop.runProcess(open, { input: call('t2') })).toMatchObject({
      status: 0,
      stdout: '',
      stderr: expect.stringContaining('fail open') as string,
    });
  });

  it('denies where another writer holds it', async () => {
    const ledger = makeLedger();
    const holder = shop.startProgram(['sh', '-c', `exec 9<> ${ledger}; flock 9; echo held; exec sleep 600`]);
    await holder.until(({ stdout }) => stdout.includes('held'));
    try {
      const flags = ['claude-code', '--ledger', ledger, '--lock-timeout', '0.1'];
      const refused = await hookProcess(flags, call('t1'));
      expect(refused).toMatchObject({ status: 2, stdout: expect.stringContaining('"deny"') as string });
      expect(refused.stderr).toContain('LEDGER_LOCKED');
    } finally {
      holder.kill('SIGKILL');
      await holder.end();
    }
  });

  it('denies where neither ledger nor socket is named', () => {
    const refused = shop.runProcess(['hook', 'codex'], { input: call('t1') });
    expect(refused).toMatchObject({ status: 2, stdout: expect.stringContaining('SERVICE_FAILED') as string });
  });
});

it.each([
  ['hook'],
  ['hook', 'emacs'],
  ['hook', 'codex', '--fail', 'never'],
  ['hook', 'codex', '--wait', 'x'],
  ['hook', 'codex', 'x'],
])('%s %s %s %s is refused', (...args) => {
  expectError(shop.run(args), 2, 'USAGE');
});

describe('hooks at once', () => {
  it('share one budget', async () => {
    const ledger = makeLedger(2);
    const ids = ['t1', 't2', 't3', 't4'];
    const ends = await Promise.all(
      ids.map((id) => hookProcess(['claude-code', '--ledger', ledger], call(id))),
    );
    expect(ends.filter(({ stdout }) => stdout === '')).toHaveLength(2);
    expect(told(ledger).toSorted()).toEqual([
      'allow',
      'allow',
      'deny RESERVATION_OVER_CAP',
      'deny RESERVATION_OVER_CAP',
    ]);
    expectSound(ledger);
  });

  it('that are the same call are one', async () => {
    const ledger = makeLedger(2);
    const ends = await Promise.all(
      [1, 2].map(() => hookProcess(['claude-code', '--ledger', ledger], call('t1'))),
    );
    expect(ends).toEqual([ALLOWED, ALLOWED]);
    expect(told(ledger)).toEqual(['allow']);
  });

  it('without ids are two', async () => {
    const ledger = makeLedger(2, 'agent:gemini');
    const ends = await Promise.all(
      [1, 2].map(() => hookProcess(['gemini', '--ledger', ledger], event('BeforeTool'))),
    );
    expect(ends).toEqual([ALLOWED, ALLOWED]);
    expect(told(ledger)).toEqual(['allow', 'allow']);
  });
});

describe('a hook that is killed', () => {
  const steps: readonly (readonly [
    string,
    (running: ReturnType<Workshop['start']>, ledger: string) => Promise<void>,
  ])[] = [
    ['before it reads', () => Promise.resolve()],
    ['when it has read', (running) => running.feed(call('t1')).then(() => running.endInput())],
    [
      'when it has the ledger open',
      async (running, ledger) => {
        await running.feed(call('t1'));
        running.endInput();
        await running.until((each) => each.hasEnded || each.hasOpen(shop.path(ledger)));
      },
    ],
    [
      'when it has decided',
      async (running, ledger) => {
        const size = statSync(shop.path(ledger)).size;
        await running.feed(call('t1'));
        running.endInput();
        await running.until(() => statSync(shop.path(ledger)).size > size);
      },
    ],
  ];

  it.each(steps)('%s leaves a sound ledger, and the same call gets one answer', async (_, reach) => {
    const ledger = makeLedger(1);
    const running = shop.start(['hook', 'claude-code', '--ledger', ledger]);
    await reach(running, ledger);
    running.kill('SIGKILL');
    await running.end();
    expectSound(ledger);
    expect(hook(ledger, call('t1'))).toEqual(ALLOWED);
    expect(hook(ledger, call('t1', 'PostToolUse'))).toEqual(ALLOWED);
    expect(told(ledger)).toEqual(['allow', 'success']);
    expectSound(ledger);
  });
});

describe('over a service', () => {
  async function serve(ledger: string, tokens?: Tokens): Promise<BreakableService> {
    const signer = createSigner(parsePrivateKey(readFileSync(shop.path(`${ledger}.key`))));
    const principalId = 'agent:claude-code';
    return BreakableService.start(shop.path(ledger), {
      ...{ signer, principalId, coverage: 'hook' },
      ...(tokens && { tokens }),
    });
  }

  it('asks it, and opens nothing', async () => {
    const ledger = makeLedger(2);
    const service = await serve(ledger);
    try {
      const flags = ['claude-code', '--socket', `${ledger}.sock`];
      for (const id of ['t1', 't2']) {
        expect(await hookProcess(flags, call(id))).toEqual(ALLOWED);
        expect(await hookProcess(flags, call(id, 'PostToolUse', { tool_response: 'x' }))).toEqual(ALLOWED);
      }
      expect(await hookProcess(flags, call('t3'))).toMatchObject(denied('RESERVATION_OVER_CAP'));
      expect(await hookProcess(flags, event('SessionEnd'))).toEqual(ALLOWED);
      expect(service.routes).toEqual([
        'POST /v1/decide',
        'POST /v1/settle',
        'POST /v1/decide',
        'POST /v1/settle',
        'POST /v1/decide',
        'POST /v1/release',
      ]);
    } finally {
      await service.stop();
    }
    expect(told(ledger)).toEqual(['allow', 'success', 'allow', 'success', 'deny RESERVATION_OVER_CAP']);
    expectSound(ledger);
  });

  it('goes on with the ledger where the service breaks off or is gone', async () => {
    const ledger = makeLedger(3);
    const flags = ['claude-code', '--ledger', ledger];
    const service = await serve(ledger);
    service.door = 'refuse';
    expect(await hookProcess(flags, call('t1'))).toEqual(ALLOWED);
    expect(service.routes).toEqual([]);
    service.door = 'lose';
    expect(await hookProcess(flags, call('t2'))).toEqual(ALLOWED);
    // It asks again before it goes on with the ledger.
    expect(new Set(service.routes)).toEqual(new Set(['POST /v1/decide']));
    await service.stop();
    expect(await hookProcess(flags, call('t1', 'PostToolUse'))).toEqual(ALLOWED);
    expect(told(ledger)).toEqual(['allow', 'allow', 'success']);
    expectSound(ledger);
  });

  it('denies where it is gone, and no ledger is named', async () => {
    const ledger = makeLedger(3);
    const service = await serve(ledger);
    service.door = 'refuse';
    const flags = ['claude-code', '--socket', `${ledger}.sock`];
    expect(await hookProcess(flags, call('t1'))).toMatchObject({ status: 2 });
    await service.stop();
    expect(await hookProcess(flags, call('t1'))).toMatchObject({ status: 2 });
    expect(await hookProcess(flags, call('t1', 'PostToolUse'))).toMatchObject({ status: 0, stdout: '' });
    expect(await hookProcess([...flags, '--fail', 'open'], call('t1'))).toMatchObject({
      status: 0,
      stdout: '',
    });
  });

  it('takes the token from a file or the environment', async () => {
    const ledger = makeLedger(3);
    const principals = ['agent:claude-code'];
    const [known, other] = ['ci', 'other'].map((name) => makeToken({ name, principals }));
    const service = await serve(
      ledger,
      Tokens.parse(Buffer.from(JSON.stringify({ tokens: [known?.entry] }))),
    );
    try {
      shop.write('token', `${known?.token}\n`);
      const flags = ['claude-code', '--socket', `${ledger}.sock`];
      expect(await hookProcess([...flags, '--token-file', 'token'], call('t1'))).toEqual(ALLOWED);
      expect(await hookProcess(flags, call('t2'), { NORTHROOT_TOKEN: known?.token })).toEqual(ALLOWED);
      const refused = [
        await hookProcess(flags, call('t3')),
        await hookProcess(flags, call('t3'), { NORTHROOT_TOKEN: other?.token }),
        await hookProcess(flags, call('t3'), { NORTHROOT_TOKEN: 'a b' }),
        await hookProcess([...flags, '--token-file', 'none'], call('t3')),
      ];
      expect(refused.map(({ status }) => status)).toEqual([2, 2, 2, 2]);
    } finally {
      await service.stop();
    }
    expect(told(ledger)).toEqual(['allow', 'allow']);
  });
});

describe('hook install', () => {
  const ledger = makeLedger(2);
  const env = { HOME: shop.folder, CODEX_HOME: shop.path('codex') };
  const install = (...args: string[]): Run => shop.runProcess(['hook', 'install', ...args], { env });
  const SETTINGS = '.claude/settings.json';

  it('writes settings that deny and allow, and takes them back', () => {
    mkdirSync(shop.path('.claude'));
    const before = '{\n  "model": "m"\n}\n';
    shop.write(SETTINGS, before, 0o600);
    expectOk(install('claude-code', '--ledger', ledger));
    expect(shop.mode(SETTINGS)).toBe('600');
    const { hooks, model } = JSON.parse(shop.read(SETTINGS)) as {
      model: string;
      hooks: Record<string, { hooks: { command: string }[] }[]>;
    };
    expect(model).toBe('m');
    expect(Object.keys(hooks)).toEqual(HOOK_PROFILES['claude-code'].events);
    const command = hooks['PreToolUse']?.[0]?.hooks[0]?.command ?? '';
    for (const id of ['t1', 't2'])
      expect(shop.shell(`cd / && ${command}`, { input: call(id) })).toEqual(ALLOWED);
    expect(shop.shell(command, { input: call('t3') })).toMatchObject(denied('RESERVATION_OVER_CAP'));
    const during = shop.read(SETTINGS);
    expectOk(install('claude-code', '--ledger', ledger));
    expect(shop.read(SETTINGS)).toBe(during);
    expectOk(shop.runProcess(['hook', 'uninstall', 'claude-code'], { env }));
    expect(shop.read(SETTINGS)).toBe(before);
    expectOk(shop.runProcess(['hook', 'uninstall', 'claude-code'], { env }));
    expect(shop.read(SETTINGS)).toBe(before);
  });

  it('writes what a link leads to', () => {
    shop.write('dotfiles.json', '{}\n');
    symlinkSync(shop.path('dotfiles.json'), shop.path('linked.json'));
    expectOk(install('claude-code', '--ledger', ledger, '--settings', 'linked.json'));
    expect(shop.read('dotfiles.json')).toContain('northroot.js hook claude-code');
  });

  it.each([
    ['claude-code', ['--project'], '.claude/settings.json'],
    ['codex', ['--principal', 'agent:claude-code'], 'codex/hooks.json'],
    ['codex', ['--principal', 'agent:claude-code', '--project'], '.codex/hooks.json'],
    ['gemini', ['--principal', 'agent:claude-code'], '.gemini/settings.json'],
    ['copilot', ['--principal', 'agent:claude-code'], '.github/hooks/northroot.json'],
  ] as const)('%s %j is in %s', (host, flags, path) => {
    const installed = install(host, '--ledger', ledger, ...flags);
    expectOk(installed);
    // Of files that others may check out.
    const isShared = host === 'copilot' || (flags as readonly string[]).includes('--project');
    expect(installed.stderr.includes('paths of this machine')).toBe(isShared);
    expect(shop.read(path)).toContain(`northroot.js hook ${host} --ledger ${shop.path(ledger)}`);
    expectOk(
      shop.runProcess(['hook', 'uninstall', host, ...flags.filter((flag) => flag === '--project')], { env }),
    );
    expect(shop.has(path) && shop.read(path).includes('northroot.js')).toBe(false);
    if (host === 'copilot') expect(shop.has(path)).toBe(false);
  });

  it('passes on what the hooks are to run with', () => {
    shop.write('token', 'x');
    const flags = [
      '--socket',
      's.sock',
      '--token-file',
      'token',
      '--wait',
      '10m',
      '--fail',
      'open',
      '--subagents',
      'agent:x/',
    ];
    const printed = install('claude-code', ...flags, '--print');
    expect(expectOk(printed)).toContain(
      `hook claude-code --socket ${shop.path('s.sock')} --token-file ${shop.path('token')} --subagents agent:x/ --fail open --wait 10m"`,
    );
    expect(printed.stdout).toContain('"timeout": 660');
    expect(shop.has('.claude/settings.json') && shop.read('.claude/settings.json').includes('s.sock')).toBe(
      false,
    );
  });

  it('says what to run first', () => {
    const missing = install('claude-code', '--ledger', 'never.jsonl');
    expectError(missing, 2, 'FILE_NOT_FOUND');
    expect(missing.stderr).toContain(
      'northroot init never.jsonl && northroot grant never.jsonl --to agent:claude-code',
    );
    const ungranted = install('codex', '--ledger', ledger);
    expectError(ungranted, 2, 'GRANT_NOT_FOUND');
    expect(ungranted.stderr).toContain(`northroot grant ${ledger} --to agent:codex`);
    expectError(install('codex'), 2, 'USAGE');
  });

  it.each([
    [[], false],
    [['--rate', 'calls.per_min=1'], true],
    [['--concurrency', '1'], true],
  ] as const)('says under %j what hooks hold only afterwards', (flags, isTold) => {
    const timed = makeLedger();
    grant(timed, 'agent:claude-code', 2, ...flags);
    const installed = install('claude-code', '--ledger', timed, '--print');
    expectOk(installed);
    expect(installed.stderr.includes('rates and concurrency limits')).toBe(isTold);
  });

  it('writes nothing into settings that it cannot read', () => {
    shop.write('odd.json', '{ "a": 1, // mine\n}');
    expectError(install('claude-code', '--ledger', ledger, '--settings', 'odd.json'), 2, 'SETTINGS_INVALID');
    expect(shop.read('odd.json')).toBe('{ "a": 1, // mine\n}');
    shop.makeFolder('folder.json');
    expect(install('claude-code', '--ledger', ledger, '--settings', 'folder.json').status).toBe(2);
    rmSync(shop.path('folder.json'), { recursive: true });
  });
});
