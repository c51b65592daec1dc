/** Whatever comes, a call that is to be decided is denied unless somebody allowed it, and what only reports lets the host go on. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalBytes,
  formatDigest,
  type HookDesk,
  type HookDecision,
  type HookName,
  HOOK_PROFILES,
  NorthrootError,
  runHook,
  sha256Digest,
} from '../../src/api/index.js';
import { type HookFlags, readHookFlags as hookOptions } from '../../src/cli/hook-flags.js';
import { event } from './events.js';

const ALLOW: HookDecision = {
  effect: 'allow',
  code: 'ALLOW',
  reason: undefined,
  ref: 't1',
  authorization: 'sha-256:abc',
};

/** A desk that gives this answer, and what it was asked. */
function deskOf(decision: HookDecision | Error = ALLOW): { desk: HookDesk; asked: unknown[][] } {
  const asked: unknown[][] = [];
  const note =
    (name: string) =>
    (...args: unknown[]): Promise<void> => {
      asked.push([name, ...args.slice(0, -1)]);
      return decision instanceof Error ? Promise.reject(decision) : Promise.resolve();
    };
  const decide: HookDesk['decide'] = (call) => {
    asked.push(['decide', call]);
    return decision instanceof Error ? Promise.reject(decision) : Promise.resolve(decision);
  };
  return {
    asked,
    desk: {
      decide,
      settle: note('settle'),
      release: note('release'),
      releaseSession: note('releaseSession'),
    },
  };
}

function run(
  host: HookName,
  input: string | Uint8Array,
  decision?: HookDecision | Error,
  flags: HookFlags = {},
): Promise<{ stdout: string; stderr: string; status: number; asked: unknown[][] }> {
  const { desk, asked } = deskOf(decision);
  const profile = HOOK_PROFILES[host];
  const options = hookOptions(profile, { ledger: 'l.jsonl', ...flags }, {});
  return runHook(profile, Buffer.from(input), () => Promise.resolve(desk), options).then((answer) => ({
    ...answer,
    asked,
  }));
}

const HOSTS = Object.keys(HOOK_PROFILES) as HookName[];
const NOTHING = { stdout: '', stderr: '', status: 0 };
const decisionOf = (host: HookName, more?: object): string => event(HOOK_PROFILES[host].decides, { ...more });

/** Whether this is a denial as the host understands it. */
function expectDenied(host: HookName, { stdout }: { stdout: string }, code: string): void {
  const answer = JSON.parse(stdout) as Record<string, unknown>;
  const { permissionDecision, permissionDecisionReason, decision, reason } = {
    ...answer,
    ...(answer['hookSpecificOutput'] as object | undefined),
  };
  expect(permissionDecision ?? decision).toBe('deny');
  expect(permissionDecisionReason ?? reason).toContain(code);
  expect(host).toBeDefined();
}

describe.each(HOSTS)('%s', (host) => {
  it('says nothing where a call is allowed', async () => {
    expect(await run(host, decisionOf(host))).toMatchObject(NOTHING);
  });

  it('denies with the reason', async () => {
    const denied = await run(host, decisionOf(host), {
      ...ALLOW,
      effect: 'deny',
      code: 'METER_CAP_EXCEEDED',
    });
    expect(denied).toMatchObject({ status: 0, stderr: '' });
    expectDenied(host, denied, 'METER_CAP_EXCEEDED');
    expect(denied.asked.map(([name]) => name)).toEqual(['decide']);
  });

  it('denies what waits for an approval, and says how to approve it', async () => {
    const asked = await run(host, decisionOf(host), {
      ...ALLOW,
      effect: 'ask',
      code: 'APPROVAL_REQUIRED',
      approvers: ['human:lead'],
    });
    expectDenied(host, asked, 'human:lead can approve sha-256:abc: northroot approve l.jsonl sha-256:abc;');
  });

  it.each(['INTERNAL_ERROR', 'LEDGER_INVALID', 'SERVICE_FAILED', 'LEDGER_LOCKED'])(
    'denies with status 2 on %s, unless --fail open',
    async (code) => {
      const error = new NorthrootError(code, 'it broke');
      const closed = await run(host, decisionOf(host), error);
      expect(closed).toMatchObject({ status: 2, stderr: expect.stringContaining(code) as string });
      expectDenied(host, closed, code);
      expect(await run(host, decisionOf(host), error, { fail: 'open' })).toMatchObject({
        status: 0,
        stdout: '',
        stderr: expect.stringContaining('fail open') as string,
      });
    },
  );

  it.each(['REQUEST_CONFLICT', 'NOT_ALLOWED', 'TOKEN_INVALID', 'HOOK_INPUT_INVALID'])(
    'denies on %s even with --fail open',
    async (code) => {
      const refused = await run(host, decisionOf(host), new NorthrootError(code, 'no'), { fail: 'open' });
      expect(refused.status).toBe(2);
      expectDenied(host, refused, code);
    },
  );

  it('denies on errors that nobody expects', async () => {
    const broken = await run(host, decisionOf(host), new Error('secret words'));
    expect(broken.status).toBe(2);
    expect(broken.stdout + broken.stderr).not.toContain('secret');
  });

  it('lets the host go on where nothing can be recorded', async () => {
    const [, after = ''] = HOOK_PROFILES[host].events;
    for (const error of [new NorthrootError('LEDGER_LOCKED', 'x'), new Error('x'), new TypeError('x')])
      expect(await run(host, event(after, { tool_response: 1, tool_calls: [] }), error)).toMatchObject({
        status: 0,
        stdout: '',
        stderr: expect.stringMatching(/^northroot: [A-Z_]+: .*\n$/) as string,
      });
  });

  it.each([
    ['nothing', ''],
    ['no JSON', 'PreToolUse'],
    ['no object', '[]'],
    ['no name', '{"session_id":"s"}'],
    ['a name that is no text', '{"hook_event_name":1}'],
    ['no UTF-8', Buffer.from([0x7b, 0xff])],
    ['half of it', decisionOf(host).slice(0, -2)],
  ])('denies %s', async (_, input) => {
    const refused = await run(host, input, undefined, { fail: 'open' });
    expect(refused).toMatchObject({ status: 2, asked: [] });
    expectDenied(host, refused, 'HOOK_INPUT_INVALID');
  });

  it('denies what is too large', async () => {
    const refused = await run(host, Buffer.alloc(32 * 1024 * 1024 + 1, 0x20));
    expect(refused).toMatchObject({ status: 2, asked: [] });
  });

  it.each([
    ['a key twice', (text: string) => text.replace('{', '{"tool_name":"Read",')],
    ['a lone surrogate', (text: string) => text.replace('echo', String.raw`\ud800`)],
    ['a number that is rounded', (text: string) => text.replace('"echo hello"', '9007199254740993')],
    ['negative zero', (text: string) => text.replace('"echo hello"', '-0')],
    ['lists in lists', (text: string) => text.replace('"echo hello"', `${'['.repeat(70)}${']'.repeat(70)}`)],
  ])('denies a call with %s', async (_, change) => {
    const refused = await run(host, change(decisionOf(host)), undefined, { fail: 'open' });
    expect(refused).toMatchObject({ status: 2, asked: [] });
    expect(refused.stdout).not.toContain('echo');
  });

  it('settles a call whatever it gave', async () => {
    const [, after = ''] = HOOK_PROFILES[host].events;
    const text = event(after, { tool_response: { stdout: 'x' }, tool_result: 'x' });
    for (const odd of [
      text.replace('"x"', String.raw`"\ud800"`),
      text.replace('"x"', '1e999'),
      text.replace('{', '{"cwd":1,"cwd":2,'),
    ]) {
      const { asked, ...answer } = await run(host, odd);
      expect(answer).toEqual(NOTHING);
      expect(asked).toMatchObject([['settle', { session: 's1' }, { outcome: 'success' }]]);
    }
  });

  it('says nothing of what it was given', async () => {
    const secret = 'hunter2';
    const inputs = [
      decisionOf(host, { tool_input: { command: secret }, prompt: secret }),
      `${decisionOf(host, { tool_input: { command: secret } })}${secret}`,
      event(HOOK_PROFILES[host].events[1] ?? '', {
        tool_response: secret,
        error: secret,
        tool_input: secret,
      }),
      decisionOf(host, { tool_name: '', tool_input: secret }),
    ];
    for (const input of inputs)
      for (const decision of [new Error(secret), new NorthrootError('SERVICE_FAILED', 'x'), ALLOW]) {
        const { stdout, stderr } = await run(host, input, decision);
        expect(stdout + stderr).not.toContain(secret);
      }
  });

  it('answers anything', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json(), fc.constantFrom(...HOOK_PROFILES[host].events), async (json, name) => {
        const any = JSON.parse(json) as unknown;
        const { status, stdout } = await run(
          host,
          event(name, { tool_input: any, tool_calls: any, tool_name: any }),
        );
        expect([0, 2]).toContain(status);
        if (name !== HOOK_PROFILES[host].decides) expect([status, stdout]).toEqual([0, '']);
      }),
    );
  });
});

describe('who acts', () => {
  const sub = event('PreToolUse', { agent_id: 'a1', agent_type: 'plugin:code reviewer' });
  const principalOf = async (input: string, flags: HookFlags): Promise<unknown> =>
    (await run('claude-code', input, ALLOW, flags)).asked[0]?.[1];

  it('is the host, unless it is said', async () => {
    expect(await principalOf(sub, {})).toMatchObject({ principal: 'agent:claude-code' });
    expect(await principalOf(sub, { principal: 'agent:a1' })).toMatchObject({ principal: 'agent:a1' });
  });

  it('is a subagent under its own name', async () => {
    const flags = { subagents: 'agent:claude-code/' };
    expect(await principalOf(sub, flags)).toMatchObject({
      principal: 'agent:claude-code/plugin:code~20reviewer',
    });
    expect(await principalOf(event('PreToolUse'), flags)).toMatchObject({ principal: 'agent:claude-code' });
  });

  it('is nobody of an impossible name', async () => {
    const long = event('PreToolUse', { agent_type: 'x'.repeat(300) });
    expect(await run('claude-code', long, ALLOW, { subagents: 'agent:' })).toMatchObject({
      status: 2,
      asked: [],
    });
  });
});

it('takes any name of a tool', async () => {
  const { asked } = await run('claude-code', event('PreToolUse', { tool_name: 'mcp__a b__c\u0000' }));
  expect(asked).toMatchObject([['decide', { tool: 'mcp__a~20b__c~00' }]]);
});

it('gives the digest of the output, and no more', async () => {
  const { asked } = await run(
    'claude-code',
    event('PostToolUse', { tool_response: 'hello', duration_ms: 7 }),
  );
  expect(asked).toEqual([
    [
      'settle',
      expect.objectContaining({ ref: 't1', session: 's1' }),
      {
        outcome: 'success',
        outputDigest: formatDigest(sha256Digest(canonicalBytes('hello'))),
        errorCode: undefined,
        durationMs: 7,
      },
    ],
  ]);
});

describe('--on-allow allow', () => {
  it('tells hosts that can hear it', async () => {
    const { stdout } = await run('claude-code', event('PreToolUse'), ALLOW, { onAllow: 'allow' });
    expect(JSON.parse(stdout)).toMatchObject({ hookSpecificOutput: { permissionDecision: 'allow' } });
    expect(await run('codex', event('PreToolUse'), ALLOW, { onAllow: 'allow' })).toMatchObject(NOTHING);
  });
});

describe('--on-ask ask', () => {
  const ask: HookDecision = { ...ALLOW, effect: 'ask', code: 'APPROVAL_REQUIRED' };

  it('has hosts ask that can', async () => {
    const { stdout } = await run('claude-code', event('PreToolUse'), ask, { onAsk: 'ask' });
    expect(JSON.parse(stdout)).toMatchObject({ hookSpecificOutput: { permissionDecision: 'ask' } });
  });

  it.each(['codex', 'gemini'] as const)('denies for %s, which would run it', async (host) => {
    expectDenied(host, await run(host, decisionOf(host), ask, { onAsk: 'ask' }), 'APPROVAL_REQUIRED');
  });
});

describe('other parameters', () => {
  const rewrite: HookDecision = { ...ALLOW, effect: 'rewrite', code: 'ALLOW', params: { command: 'ls' } };

  it('are given to hosts that take them', async () => {
    const { stdout, asked } = await run('claude-code', event('PreToolUse'), rewrite);
    expect(JSON.parse(stdout)).toMatchObject({ hookSpecificOutput: { updatedInput: { command: 'ls' } } });
    expect(asked).toHaveLength(1);
  });

  it.each(['codex', 'gemini'] as const)(
    'end the call for %s, which is not run and released',
    async (host) => {
      const denied = await run(host, decisionOf(host), { ...rewrite, ref: 'nth:x/1' });
      expectDenied(host, denied, 'allowed only with other parameters');
      expect(denied.stdout).not.toContain('ALLOW');
      expect(denied.asked).toMatchObject([
        ['decide', {}],
        ['release', { ref: 'nth:x/1' }],
      ]);
    },
  );

  it('that are no object end it, too', async () => {
    const denied = await run('claude-code', event('PreToolUse'), { ...rewrite, params: 'ls' });
    expectDenied('claude-code', denied, 'allowed only with other parameters');
  });
});

it('denies where nobody decides in time', async () => {
  const desk = { ...deskOf().desk, decide: () => new Promise<never>(() => undefined) };
  const profile = HOOK_PROFILES['claude-code'];
  const options = hookOptions(profile, { deadline: '0.01s' }, {});
  const late = await runHook(profile, Buffer.from(event('PreToolUse')), () => Promise.resolve(desk), options);
  expect(late.status).toBe(2);
  expectDenied('claude-code', late, 'HOOK_TIMEOUT');
});

it('releases the rest of a batch that has calls it does not know', async () => {
  const { desk } = deskOf();
  const released: (string | undefined)[] = [];
  const release: HookDesk['release'] = ({ ref }) => {
    released.push(ref);
    return ref === 't1' ? Promise.reject(new NorthrootError('CALL_NOT_FOUND', 'x')) : Promise.resolve();
  };
  const profile = HOOK_PROFILES['claude-code'];
  const calls = ['t1', 't2'].map((id) => ({ tool_name: 'Bash', tool_input: {}, tool_use_id: id }));
  const input = Buffer.from(event('PostToolBatch', { tool_calls: calls }));
  const options = hookOptions(profile, {}, {});
  expect(await runHook(profile, input, () => Promise.resolve({ ...desk, release }), options)).toEqual(
    NOTHING,
  );
  expect(released).toEqual(['t1', 't2']);
});

describe('options', () => {
  const profile = HOOK_PROFILES['claude-code'];

  it.each([
    [{ principal: 'nobody' }, '--principal'],
    [{ subagents: 'nobody' }, '--subagents'],
    [{ onAllow: 'maybe' }, '--on-allow'],
    [{ onAsk: 'maybe' }, '--on-ask'],
    [{ fail: 'maybe' }, '--fail'],
    [{ wait: '10x' }, '--wait'],
    [{ wait: '25h' }, '--wait'],
    [{ deadline: '' }, '--deadline'],
  ])('%j is refused', (flags, flag) => {
    expect(() => hookOptions(profile, flags as HookFlags, {})).toThrow(flag);
  });

  it('name the socket beside the ledger', () => {
    expect(hookOptions(profile, { ledger: 'l/' }, {}).socket).toBe('l.sock');
    expect(hookOptions(profile, { ledger: 'l' }, { NORTHROOT_SOCKET: 'e' }).socket).toBe('e');
    expect(hookOptions(profile, { ledger: 'l', socket: 's' }, { NORTHROOT_SOCKET: 'e' }).socket).toBe('s');
    expect(hookOptions(profile, {}, {}).socket).toBeUndefined();
  });
});
