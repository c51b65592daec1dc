/** `northroot doctor`, with programs that speak to model and hook as Claude Code does, obey or not, and with what is no agent at all. */

import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { HOST_TRIALS, judgeTrial, serveTrialModel, type TrialHost } from '../../src/api/index.js';
import { expectError, type Run, Workshop } from '../cli/runner.js';

const shop = new Workshop();
shop.makeFolder('tmp');
const TMPDIR = shop.path('tmp');

/** A host: it asks its model, calls its hook unless told otherwise, and then may run what it was asked to. */
function writeHost(
  name: string,
  { callsHook = true, obeys = true, hangs = false, asks = true } = {},
): string {
  return shop.write(
    name,
    `#!${process.execPath}
    const { spawnSync } = require('node:child_process');
    const { readFileSync, existsSync } = require('node:fs');
    const file = [process.cwd(), process.env.HOME].map((f) => f + '/.claude/settings.json').find(existsSync);
    const ask = async (messages) => {
      const tools = [{ name: 'Read' }, { name: 'Bash' }];
      const body = JSON.stringify({ model: 'm', stream: true, tools, messages });
      const url = process.env.ANTHROPIC_BASE_URL + '/v1/messages';
      const text = await (await fetch(url, { method: 'POST', body })).text();
      return text.split('\\n').filter((l) => l.startsWith('data: ')).map((l) => JSON.parse(l.slice(6)));
    };
    (async () => {
      console.log('settings ' + file.slice(-40) + ' \\u001b[31m' + Object.keys(process.env).filter((k) => k.startsWith('NORTHROOT')));
      if (${String(!asks)}) return;
      const events = await ask([]);
      const { content_block: block } = events.find((e) => e.content_block?.type === 'tool_use');
      const json = events.filter((e) => e.delta?.partial_json).map((e) => e.delta.partial_json).join('');
      const input = JSON.parse(json);
      let isDenied = false;
      if (${String(callsHook)}) {
        const { command } = JSON.parse(readFileSync(file, 'utf8')).hooks.PreToolUse[0].hooks[0];
        const call = { session_id: 's1', hook_event_name: 'PreToolUse', tool_name: block.name, tool_input: input, tool_use_id: block.id };
        const { stdout } = spawnSync('sh', ['-c', command], { input: JSON.stringify(call), encoding: 'utf8' });
        isDenied = stdout.includes('"permissionDecision":"deny"');
      }
      if (${String(hangs)}) await new Promise(() => setInterval(() => undefined, 1000));
      if (!isDenied && ${String(callsHook)} || ${String(!obeys)}) spawnSync('sh', ['-c', input.command]);
      await ask([{ role: 'user', content: 'tool_result' }]);
    })();`,
    0o755,
  );
}

function doctor(bin: string, ...more: string[]): Run {
  return shop.runProcess(['doctor', 'claude-code', '--bin', bin, ...more], {
    env: { TMPDIR, NORTHROOT_KEY: shop.path('none.pem'), NORTHROOT_SOCKET: shop.path('none.sock') },
  });
}

function seen(bin: string, ...more: string[]): Record<string, unknown> {
  const { status, stdout, stderr } = doctor(bin, '--format', 'json', ...more);
  expect([stderr, readdirSync(TMPDIR)]).toEqual(['', []]);
  return { ...(JSON.parse(stdout) as object), exit: status };
}

describe('a host', () => {
  it('that obeys is told to be blocked, with hooks of the user or the project', () => {
    const bin = writeHost('obedient');
    expect(seen(bin)).toMatchObject({
      exit: 0,
      agent: 'claude-code',
      verdict: 'blocked',
      denials: 1,
      model_requests: 2,
      end: 'exited',
      status: 0,
      output: [expect.stringMatching(/home\/\.claude\/settings\.json \u001b\[31m$/)],
    });
    const { output } = seen(bin, '--project');
    expect(output).toEqual([expect.stringMatching(/project\/\.claude\/settings\.json \u001b\[31m$/)]);
    expect(doctor(bin).stdout).toMatch(/^blocked: /);
  });

  it('that runs what was denied is told to', () => {
    const bin = writeHost('disobedient', { obeys: false });
    expect(seen(bin)).toMatchObject({ exit: 1, verdict: 'ran', denials: 1 });
    const { status, stdout } = doctor(bin);
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/^ran: .*\n.*\n {2}settings .* \\u\{1b\}\[31m\n$/),
    ]);
  });

  it('that runs without its hook is told to', () => {
    expect(seen(writeHost('bare', { callsHook: false, obeys: false }))).toMatchObject({
      exit: 1,
      verdict: 'ran',
      denials: 0,
    });
  });

  it('that neither calls its hook nor runs is unknown', () => {
    expect(seen(writeHost('idle', { callsHook: false }))).toMatchObject({
      exit: 2,
      verdict: 'unknown',
      model_called: true,
      denials: 0,
    });
    expect(seen(writeHost('silent', { asks: false }))).toMatchObject({
      exit: 2,
      verdict: 'unknown',
      model_called: false,
    });
  });

  it('that hangs after the denial is stopped, and unknown', () => {
    expect(seen(writeHost('hanging', { hangs: true }), '--timeout', '5s')).toMatchObject({
      exit: 2,
      verdict: 'unknown',
      end: 'timed_out',
      status: null,
    });
  });

  it('that cannot be started is unknown', () => {
    shop.write('plain', 'no program');
    for (const bin of ['missing', 'plain', 'tmp'])
      expect(seen(bin)).toMatchObject({ exit: 2, verdict: 'unknown', end: 'not_started', status: null });
  });
});

it('ends with what it started when it is told to stop', async () => {
  const bin = writeHost('endless', { hangs: true });
  mkdirSync(shop.path('stop'));
  const running = shop.start(['doctor', 'claude-code', '--bin', bin], { TMPDIR: shop.path('stop') });
  const ledger = (): string | undefined => {
    const [folder] = readdirSync(shop.path('stop')).filter((name) =>
      existsSync(shop.path(`stop/${name}/ledger.jsonl`)),
    );
    return folder === undefined ? undefined : `stop/${folder}/ledger.jsonl`;
  };
  // A genesis, a grant and the denial.
  await running.until(() => {
    const path = ledger();
    return path !== undefined && shop.lines(path).length === 3;
  });
  running.kill('SIGTERM');
  expect([(await running.end()).status, readdirSync(shop.path('stop'))]).toEqual([143, []]);
});

it('tries no other agent, and waits no longer than an hour', () => {
  expectError(shop.run(['doctor', 'copilot']), 2, 'USAGE');
  expectError(shop.run(['doctor', 'constructor']), 2, 'USAGE');
  expectError(shop.run(['doctor', 'codex', '--timeout', '61m']), 2, 'USAGE');
});

describe('the model of a trial', () => {
  const REQUESTS: Readonly<Record<TrialHost, readonly [path: string, body: unknown]>> = {
    'claude-code': ['/v1/messages?beta=true', { stream: true, tools: [{ name: 'Bash' }] }],
    codex: ['/v1/responses', 'zstd'],
    gemini: [
      '/v1beta/models/m:streamGenerateContent?alt=sse',
      { tools: [{ functionDeclarations: [{ name: 'run_shell_command' }] }] },
    ],
  };

  it.each(Object.entries(REQUESTS))('of %s asks once for the call', async (host, [path, body]) => {
    const model = await serveTrialModel(HOST_TRIALS[host as TrialHost]);
    try {
      const ask = async (): Promise<string> =>
        (await fetch(model.url + path, { method: 'POST', body: JSON.stringify(body) })).text();
      expect(model.hasCalled).toBe(false);
      expect([(await ask()).includes('ran.txt'), model.hasCalled]).toEqual([true, true]);
      expect((await ask()).includes('ran.txt')).toBe(false);
      expect(model.requests).toBe(2);
    } finally {
      await model.close();
    }
  });

  it.each(['claude-code', 'gemini'] as const)('of %s asks for no tool that is not offered', async (host) => {
    const model = await serveTrialModel(HOST_TRIALS[host]);
    try {
      for (const body of ['', '[]', '{"tools":[{"name":"Read"},7]}', '{"tools":7}'])
        await fetch(model.url + REQUESTS[host][0], { method: 'POST', body });
      expect([model.requests, model.hasCalled]).toEqual([4, false]);
    } finally {
      await model.close();
    }
  });
});

it('a verdict is blocked only after a denial, and the end of the host', () => {
  const blocked = { hasRun: false, denials: 1, hasCalled: true, end: 'exited' } as const;
  expect(judgeTrial(blocked)).toBe('blocked');
  expect(judgeTrial({ ...blocked, hasRun: true })).toBe('ran');
  for (const change of [
    { denials: 0 },
    { hasCalled: false },
    { end: 'timed_out' },
    { end: 'not_started' },
  ] as const)
    expect(judgeTrial({ ...blocked, ...change })).toBe('unknown');
});
