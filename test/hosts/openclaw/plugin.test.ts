/** The plugin for OpenClaw, called as the host calls it, before a real service and before ones that fail. */

import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { formatDigest, sha256Digest } from '../../../src/base/value/digest.js';
import { type Gate, type GateOptions } from '../../../src/gate/gate.js';
import { serveGate } from '../../../src/gate/service/serve-gate.js';
import { makeToken, Tokens } from '../../../src/gate/service/tokens.js';
import { openclaw } from '../../../src/hosts/openclaw/index.js';
import { principalOf, toolOf as importedTool } from '../../../src/hosts/shared/names.js';
import { readSource, type ReconcileSource } from '../../../src/hosts/shared/reconcile-sources.js';
import { reconcileLedger } from '../../../src/hosts/shared/reconcile.js';
import type { GrantOptions } from '../../../src/log/policy/draft-grant.js';
import { AGENT, filePlace, memoryPlace, type Place } from '../../agent/support.js';
import { HOSTILE_STRINGS } from '../../hostile-strings.js';
import { temporaryFolder } from '../../writer/support.js';
import { openGate, reopen } from '../../gate/support.js';

const FOLDER = new URL('../../../examples/openclaw-plugin/', import.meta.url);
/** What was sent in a real run, kept beside the checkout. */
const RECORDED = fileURLToPath(
  new URL('../../../../shared/live/recorded/openclaw/run.hooks.jsonl', import.meta.url),
);

type Json = Record<string, unknown>;
interface Verdict {
  readonly params?: Json;
  readonly block?: true;
  readonly blockReason?: string;
}
type Handler = (event: Json, ctx?: Json) => Promise<Verdict | undefined>;
interface Plugin {
  readonly id: string;
  register(api: object): void;
}
interface Values {
  asJson(value: unknown): unknown;
  digestOf(value: unknown): string | undefined;
  toolOf(name: string): string;
  agentOf(id: string): string;
  printable(text: string, most?: number): string;
}

const load = async (file: string): Promise<unknown> => import(new URL(file, FOLDER).href);
const { default: plugin } = (await load('index.js')) as { readonly default: Plugin };
const values = (await load('values.js')) as Values;

/** The host: it calls what a plugin registers, and keeps what it logs. */
class Host {
  readonly #handlers = new Map<string, { handler: Handler; options: Json | undefined }[]>();
  readonly log: string[] = [];

  constructor(pluginConfig?: unknown, registrations = 1) {
    const say = (level: string) => (text: string) => void this.log.push(`${level} ${text}`);
    const logger = { info: say('info'), warn: say('warn'), error: say('error') };
    const on = (name: string, handler: Handler, options?: Json): void => {
      this.#handlers.set(name, [...(this.#handlers.get(name) ?? []), { handler, options }]);
    };
    for (let count = 0; count < registrations; count += 1) plugin.register({ pluginConfig, logger, on });
  }

  optionsOf(name: string): Json | undefined {
    return this.#handlers.get(name)?.[0]?.options;
  }

  /** All handlers, as registered; the first answer. */
  async #call(name: string, event: Json, ctx?: Json): Promise<Verdict | undefined> {
    const answers = await Promise.all(
      (this.#handlers.get(name) ?? []).map(({ handler }) => handler(structuredClone(event), ctx)),
    );
    return answers.find((each) => each !== undefined);
  }

  before(event: Json, ctx: Json = contextOf(event)): Promise<Verdict | undefined> {
    return this.#call('before_tool_call', event, ctx);
  }

  async after(event: Json, ctx: Json = contextOf(event)): Promise<void> {
    await this.#call('after_tool_call', event, ctx);
  }
}

let runs = 0;
const newRun = (): string => `run-${(runs += 1)}`;

/** A call of the host, of a run of its own unless another is given. */
function callOf(command: string, more: Json = {}): Json {
  return { toolName: 'exec', params: { command }, runId: newRun(), toolCallId: 'call_1', ...more };
}

function contextOf({ toolName, runId, toolCallId }: Json): Json {
  return {
    agentId: 'main',
    sessionKey: 'agent:main:explicit:s1',
    sessionId: 's1',
    toolName,
    runId,
    toolCallId,
  };
}

/** As the host tells the end of a command. */
function completed(call: Json, more: Json = {}): Json {
  const details = { status: 'completed', exitCode: 0, exitSignal: null, durationMs: 120, cwd: '/' };
  return {
    ...call,
    result: { content: [{ type: 'text', text: 'hello' }], details },
    durationMs: 900,
    ...more,
  };
}

interface Served {
  readonly gate: Gate;
  readonly place: Place;
  readonly socket: string;
  readonly host: Host;
  /** The kinds of events after the grant: type, and decision or outcome. */
  readonly records: () => string[];
}

async function serve(
  config: Json = {},
  bounds: Partial<GrantOptions> = {},
  options: GateOptions = {},
  registrations = 1,
): Promise<Served> {
  const place = memoryPlace();
  const all = { allowedTools: ['exec', 'read'], meterCaps: { calls: 10 }, ...bounds };
  const { gate } = await openGate(place, all, options);
  const socket = join(temporaryFolder(), 's.sock');
  const server = await serveGate({ gate, socket });
  onTestFinished(() => server.close());
  const host = new Host({ socket, ...config }, registrations);
  return { gate, place, socket, host, records: () => recordsOf(place) };
}

function recordsOf(place: Place): string[] {
  return place
    .events()
    .slice(2)
    .flatMap((event) => {
      const {
        event_type: type,
        outcome,
        error_code: code,
        decision,
        decision_code: why,
      } = event as unknown as Json;
      if (type === 'execution') return [[outcome, code].filter(Boolean).join(' ')];
      return type === 'authorization' ? [`${String(decision)} ${String(why)}`] : [];
    });
}

/** Something else than a service, at a socket. */
async function listen(answer: string | undefined): Promise<string> {
  const socket = join(temporaryFolder(), 'x.sock');
  const server: Server = createServer((connection) => {
    connection.on('error', () => undefined);
    if (answer !== undefined) connection.once('data', () => connection.end(answer));
    onTestFinished(() => void connection.destroy());
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => void server.close());
  return socket;
}

function http(body: string, status = '200 OK'): string {
  return `HTTP/1.1 ${status}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`;
}

/** Waits until something holds that is told in the background. */
async function until(holds: () => boolean): Promise<void> {
  await expect.poll(holds, { interval: 20 }).toBe(true);
}

describe('a call', () => {
  it('that is allowed runs as it is, and its end is recorded: outcome, the time of the tool itself, digest', async () => {
    const { host, place, records } = await serve();
    const call = callOf('echo hello');
    expect(await host.before(call)).toBeUndefined();
    const ended = completed(call);
    await host.after(ended);
    expect(records()).toEqual(['allow ALLOW', 'success']);
    const [allowed, start, execution] = place.events().slice(-3) as unknown as Json[];
    expect(allowed).toMatchObject({
      principal_id: AGENT,
      authorization: { action: { tool_name: 'exec', request_key: 's1:call_1' } },
    });
    expect((allowed as { checks: Json[] }).checks[0]).toEqual({
      check: 'coverage',
      result: 'pass',
      code: 'HOOK',
    });
    expect(start).toMatchObject({ event_type: 'x.northroot.start' });
    expect(execution).toMatchObject({
      tool_params_digest: digestJson({ command: 'echo hello' }),
      output_digest: digestJson(ended['result']),
    });
    expect(JSON.stringify(execution)).toContain('"120"');
    expect(await place.verdict()).toBe('ok');
    expect(host.log).toEqual([]);
  });

  it('that is denied is blocked, with the reason; that the host tells its end changes nothing', async () => {
    const { host, records } = await serve();
    const call = callOf('x', { toolName: 'process' });
    const verdict = await host.before(call);
    expect(verdict).toMatchObject({ block: true });
    expect(verdict?.blockReason).toMatch(/^northroot: TOOL_NOT_ALLOWED/);
    const details = { status: 'blocked', deniedReason: 'plugin-before-tool-call' };
    await host.after({ ...call, error: verdict?.blockReason, result: { details } });
    expect(records()).toEqual(['deny TOOL_NOT_ALLOWED']);
    expect(host.log).toEqual([]);
    await host.before({ ...call, runId: newRun() });
    await host.after(completed({ ...call, runId: 'run-none', toolCallId: 'call_9' }));
    expect(host.log.join()).toContain('CALL_NOT_FOUND');
  });

  it('that ran although it was blocked is told', async () => {
    const { host } = await serve();
    const call = callOf('x', { toolName: 'process' });
    await host.before(call);
    await host.after(completed(call));
    expect(host.log).toEqual(['error northroot: process call_1 ran although it was blocked']);
  });

  it('that needs an approval is blocked, and told how to approve; approved, it runs when it is made again', async () => {
    const { host, gate } = await serve({}, { approvals: [{ tools: ['exec'], approvers: ['human:*'] }] });
    const verdict = await host.before(callOf('rm x'));
    const [, id = ''] = /northroot approve LEDGER (sha-256:\S+);/.exec(verdict?.blockReason ?? '') ?? [];
    expect(verdict?.blockReason).toContain('human:*');
    await gate.ledger.approve(id, { principalId: 'human:olga' });
    expect(await host.before(callOf('rm x'))).toBeUndefined();
  });

  it('waits for an approval where it is told to', async () => {
    const { host, gate } = await serve(
      { waitSeconds: 60 },
      { approvals: [{ tools: ['exec'], approvers: ['human:*'] }] },
    );
    expect(host.optionsOf('before_tool_call')).toMatchObject({ timeoutMs: 75_000 });
    const verdict = host.before(callOf('rm x'));
    await expect.poll(async () => (await gate.ledger.requests()).length).toBe(1);
    const [request] = await gate.ledger.requests();
    await gate.ledger.approve(request?.eventId ?? '', { principalId: 'human:olga' });
    expect(await verdict).toBeUndefined();
  });

  it('is rewritten where the policy says so; members that the rewrite leaves out are taken out', async () => {
    const { host, place } = await serve(
      {},
      {},
      { advisers: [{ name: 'quiet', advise: () => ({ effect: 'rewrite', params: { command: 'ls' } }) }] },
    );
    const call = callOf('rm x', { params: { command: 'rm x', elevated: true } });
    const verdict = await host.before(call);
    const merged = { ...(call['params'] as Json), ...verdict?.params };
    expect(JSON.parse(JSON.stringify(merged))).toEqual({ command: 'ls' });
    await host.after(completed({ ...call, params: merged }));
    expect(await place.verdict()).toBe('ok');
    expect(host.log).toEqual([]);
  });

  it('that another plugin changed afterwards is recorded as what it is', async () => {
    const { host, place, records } = await serve();
    const call = callOf('echo mine');
    await host.before(call);
    await host.after(completed({ ...call, params: { command: 'echo other' } }));
    expect(records()).toEqual([
      'allow ALLOW',
      'unknown TOOL_PARAMS_MISMATCH',
      'deny TOOL_PARAMS_MISMATCH',
      'success',
    ]);
    expect(await place.verdict()).toBe('violation');
    expect(host.log).toEqual([
      'error northroot: exec call_1 ran with other parameters than authorized: TOOL_PARAMS_MISMATCH',
    ]);
    // What was authorized decides on nothing else.
    expect(await host.before(callOf('echo mine'))).toBeUndefined();
  });

  it('that never began is not taken for one with other parameters', async () => {
    const { host, records } = await serve(
      {},
      {},
      { advisers: [{ name: 'quiet', advise: () => ({ effect: 'rewrite', params: { command: 'ls' } }) }] },
    );
    const call = callOf('rm x');
    await host.before(call);
    await host.after({ ...call, error: 'Approval timed out', result: { details: { status: 'error' } } });
    expect(records()).toEqual(['allow ALLOW', 'failure TOOL_ERROR']);
  });

  it('keeps its parameters where they are pinned', async () => {
    const { host } = await serve({ pin: true });
    expect(await host.before(callOf('echo mine'))).toEqual({ params: { command: 'echo mine' } });
  });

  it.each([
    ['a status other than 0', { details: { status: 'completed', exitCode: 3 } }, {}, 'failure EXIT_3'],
    ['an error', undefined, { error: 'no' }, 'failure TOOL_ERROR'],
    ['a timeout', { details: { status: 'timeout' } }, {}, 'failure TOOL_TIMEOUT'],
    ['going on in the background', { details: { status: 'running' } }, {}, 'unknown'],
    ['nothing', undefined, {}, 'unknown'],
    [
      'a block by another',
      { details: { status: 'blocked', deniedReason: 'plugin-approval' } },
      { error: 'Denied by user' },
      'failure OPENCLAW_BLOCKED_PLUGIN_APPROVAL',
    ],
    [
      "an approval of the host's own that is not given yet",
      { details: { status: 'approval-pending' } },
      {},
      'unknown OPENCLAW_BLOCKED_APPROVAL_PENDING',
    ],
    ['another result', 'text', {}, 'success'],
  ])('that ends with %s is settled so', async (_, result, more, outcome) => {
    const { host, records } = await serve();
    const call = callOf('x');
    await host.before(call);
    await host.after({ ...call, result, durationMs: 5, ...more });
    expect(records()).toEqual(['allow ALLOW', outcome]);
  });

  it('is decided once, however often the host registers the plugin and tells of it', async () => {
    const { host, records } = await serve({}, {}, {}, 3);
    const call = callOf('x');
    expect(await host.before(call)).toBeUndefined();
    expect(await host.before(call)).toBeUndefined();
    const other = await host.before({ ...call, params: { command: 'other' } });
    expect(other?.blockReason).toContain('REQUEST_CONFLICT');
    await host.after(completed(call));
    await host.after(completed(call));
    expect(records()).toEqual(['allow ALLOW', 'success']);
  });

  it('whose id was used before is another call', async () => {
    const { host, records } = await serve();
    for (const command of ['x', 'x', 'y', 'y']) {
      const call = callOf(command);
      expect(await host.before(call)).toBeUndefined();
      await host.after(completed(call));
    }
    // In the same run, too.
    const call = callOf('z', { runId: 'run-last' });
    for (let count = 0; count < 3; count += 1) {
      expect(await host.before(call)).toBeUndefined();
      await host.after(completed(call));
    }
    expect(records()).toEqual(Array(7).fill(['allow ALLOW', 'success']).flat());
  });

  it('without an id is told by what was asked for; one of several is not guessed', async () => {
    const { host, records } = await serve();
    const run = { runId: newRun(), toolCallId: undefined };
    const [a, b] = [callOf('a', run), callOf('b', run)];
    for (const call of [a, a, b]) expect(await host.before(call)).toBeUndefined();
    await host.after(completed(b));
    await host.after(completed({ ...a, params: { command: 'c' } }));
    expect(host.log).toEqual(['error northroot: exec has ended, and which call it was is not known']);
    await host.after(completed(a));
    await host.after(completed({ ...a, params: { command: 'c' } }));
    expect(records().sort()).toEqual(
      [
        ...['allow ALLOW', 'allow ALLOW', 'allow ALLOW', 'success', 'success'],
        ...['unknown TOOL_PARAMS_MISMATCH', 'deny TOOL_PARAMS_MISMATCH', 'success'],
      ].sort(),
    );
  });

  it('is one of as many at once as the grant allows', async () => {
    const { host, place, records } = await serve({}, { meterCaps: { calls: 5 } });
    const runId = newRun();
    const calls = Array.from({ length: 20 }, (_, n) =>
      callOf(`echo ${n}`, { runId, toolCallId: `call_${n}` }),
    );
    const verdicts = await Promise.all(calls.map((call) => host.before(call)));
    expect(verdicts.filter((each) => each === undefined)).toHaveLength(5);
    await Promise.all(
      calls.map(async (call, n) => (verdicts[n] === undefined ? host.after(completed(call)) : undefined)),
    );
    expect(records().filter((each) => each === 'success')).toHaveLength(5);
    expect(await place.verdict()).toBe('ok');
  });

  it('that the host stopped by itself, without a hook, is none', async () => {
    const { host, gate, records } = await serve();
    await gate.decide({ ref: 'call_1', session: 's1', principal: AGENT, tool: 'exec', params: {} });
    const unfit = { error: 'Validation failed for tool "exec":', result: { details: {} } };
    await host.after({ ...callOf('x'), ...unfit });
    await host.after({
      ...callOf('x'),
      result: { details: { status: 'blocked', deniedReason: 'tool-loop' } },
    });
    expect(records()).toEqual(['allow ALLOW']);
    expect(host.log).toEqual([]);
  });

  it('settles what was begun before the plugin was loaded', async () => {
    const { host, gate, records } = await serve();
    const params = { command: 'x' };
    await gate.decide({ ref: 'call_1', session: 's1', principal: AGENT, tool: 'exec', params });
    await host.after(completed(callOf('x')));
    expect(records()).toEqual(['allow ALLOW', 'success']);
  });
});

/** A service that knows the host by a token. */
async function serveWithToken(
  config: Json,
  principal: string,
): Promise<Pick<Served, 'host' | 'place'> & { readonly token: string; readonly tokenFile: string }> {
  const place = memoryPlace();
  const { gate } = await openGate(place, { allowedTools: ['exec'], meterCaps: { calls: 3 } });
  const { token, entry } = makeToken({ name: 'host', principals: [principal] });
  const folder = temporaryFolder();
  const [socket, tokenFile] = [join(folder, 's.sock'), join(folder, 'token')];
  writeFileSync(tokenFile, token);
  const tokens = Tokens.parse(Buffer.from(JSON.stringify({ tokens: [entry] })));
  const server = await serveGate({ gate, socket, tokens });
  onTestFinished(() => server.close());
  return { host: new Host({ socket, tokenFile, principal: AGENT, ...config }), place, token, tokenFile };
}

describe('who acts', () => {
  it.each([
    [{}, {}, AGENT],
    [{ principal: 'agent:a1/x' }, {}, 'agent:a1/x'],
    [{ agents: 'agent:a1/' }, {}, 'agent:a1/main'],
    [{ agents: 'agent:a1/' }, { agentId: 'a b/c' }, 'agent:a1/a~20b~2Fc'],
    [{ agents: 'agent:a1/' }, { agentId: undefined }, 'agent:a1/main'],
    [{ subagents: 'agent:a1/sub/' }, {}, AGENT],
    [{ subagents: 'agent:a1/sub/' }, { sessionKey: 'agent:main:subagent:77' }, 'agent:a1/sub/main'],
    [{ agents: 'agent:a1/' }, { sessionKey: 'agent:main:subagent:77' }, 'agent:a1/main'],
  ])('%j with %j is %s', async (config, ctx, principal) => {
    const { host, place } = await serveWithToken(config, 'agent:*');
    const call = callOf('x');
    await host.before(call, { ...contextOf(call), ...ctx });
    const events = place.events().slice(2) as unknown as Json[];
    expect(events[0]).toMatchObject({ event_type: 'authorization', principal_id: principal });
  });

  it('is nobody whom the token does not speak for', async () => {
    const { host, place } = await serveWithToken({ principal: 'agent:b2', fail: 'open' }, AGENT);
    expect((await host.before(callOf('x')))?.blockReason).toContain('NOT_ALLOWED');
    expect(recordsOf(place)).toEqual([]);
  });

  it('is whom the token speaks for; it is read anew each time', async () => {
    const { host, place, token, tokenFile } = await serveWithToken({ fail: 'open' }, AGENT);
    rmSync(tokenFile);
    const reasonOf = async (): Promise<string | undefined> => (await host.before(callOf('x')))?.blockReason;
    expect(await reasonOf()).toContain('TOKEN_INVALID');
    writeFileSync(tokenFile, 'wrong');
    expect(await reasonOf()).toContain('TOKEN_INVALID');
    writeFileSync(tokenFile, 'a\nb');
    expect(await reasonOf()).toContain('TOKEN_INVALID');
    writeFileSync(tokenFile, `${token}\n`);
    expect(await reasonOf()).toBeUndefined();
    expect(host.log.join()).not.toContain(token);
    expect(recordsOf(place)).toEqual(['allow ALLOW']);
  });
});

describe('a call that nobody decides on is blocked', () => {
  const decision = (more: Json): string =>
    http(
      JSON.stringify({
        ...{ effect: 'allow', code: 'ALLOW', ref: 'r', is_repeated: false },
        authorization: `sha-256:${'A'.repeat(43)}`,
        ...more,
      }),
    );
  it.each([
    ['nothing', undefined],
    ['no HTTP', 'hello\r\n\r\n'],
    ['half an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{'],
    ['no JSON', http('allow')],
    ['a list', http('[]')],
    ['an empty object', http('{}')],
    ['an unknown effect', decision({ effect: 'maybe' })],
    ['no code', decision({ code: undefined })],
    ['no reference', decision({ ref: 7 })],
    ['no record', decision({ authorization: 'sha-256:x' })],
    ['not whether it was decided before', decision({ is_repeated: undefined })],
    ['a rewrite without parameters', decision({ effect: 'rewrite' })],
    ['a rewrite with a list', decision({ effect: 'rewrite', params: [] })],
    ['too much', http(`{"a":"${'x'.repeat(3_000_000)}"}`)],
    ['a redirect', 'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'],
    ['that it is busy', http('{"error":{"code":"BUSY","message":"x"}}', '503 Busy')],
    ['an error', http('{"error":{"code":"INTERNAL_ERROR","message":"x"}}', '500 No')],
    ['an error without a form', http('no', '500 No')],
  ])('where the service says %s', async (_, answer) => {
    const socket = await listen(answer);
    const host = new Host({ socket, timeoutSeconds: answer === undefined ? 1 : 10 });
    const verdict = await host.before(callOf('SECRET'));
    expect(verdict).toMatchObject({ block: true });
    expect(`${verdict?.blockReason} ${host.log.join()}`).not.toContain('SECRET');
    const open = new Host({ socket, fail: 'open', timeoutSeconds: answer === undefined ? 1 : 10 });
    const call = callOf('SECRET');
    expect(await open.before(call)).toBeUndefined();
    expect(open.log[0]).toBe(
      'warn northroot: fails open: calls run without a record where the service is gone',
    );
    expect(open.log[1]).toContain('runs without a record');
    expect(open.log.join()).not.toContain('SECRET');
  });

  it('where there is no service; and decided again once there is one', async () => {
    const { gate, socket, host, records } = await serve();
    const gone = new Host({ socket: `${socket}.none` });
    const verdict = await gone.before(callOf('x'));
    expect(verdict?.blockReason).toBe('northroot: SERVICE_FAILED: the service did not answer: ENOENT');
    expect(await host.before(callOf('x'))).toBeUndefined();
    expect(gate.openCalls).toBe(1);
    expect(records()).toEqual(['allow ALLOW']);
  });

  it.each([
    ['no socket', {}],
    ['an unknown member', { socket: '/x', sockett: '/y' }],
    ['a member of another type', { socket: 7 }],
    ['no object', 'socket'],
    ['a deadline beyond that of the host', { socket: '/x', timeoutSeconds: 60 }],
    ['an unknown way to fail', { socket: '/x', fail: 'maybe' }],
  ])('where it is configured with %s, even if it is to fail open', async (_, config) => {
    const host = new Host(typeof config === 'string' ? config : { fail: 'open', ...config });
    expect((await host.before(callOf('x')))?.blockReason).toMatch(/^northroot: CONFIG_INVALID: /);
    await host.after(completed(callOf('x')));
    expect(host.log).toHaveLength(1);
    expect(host.log[0]).toMatch(/^error northroot: every call is blocked/);
  });

  it('where its parameters cannot be sent, even if it is to fail open', async () => {
    const { host, records } = await serve({ fail: 'open' });
    const cyclic: Json = {};
    cyclic['self'] = cyclic;
    for (const params of [cyclic, [], 'text', { text: '\ud800' }, { text: 'x'.repeat(1_100_000) }])
      expect(await host.before(callOf('x', { params }))).toMatchObject({ block: true });
    expect(records()).toEqual([]);
  });

  it('before the host gives up', () => {
    const host = new Host({ socket: '/x' });
    // Its own budget is 15 seconds.
    expect(host.optionsOf('before_tool_call')).toEqual({
      priority: Number.MIN_SAFE_INTEGER,
      timeoutMs: 15_000,
    });
  });
});

describe('a call that is given up', () => {
  const SLOW = { approvals: [{ tools: ['exec'], approvers: ['human:*'] }] };

  it('by the host while it waits is blocked, and later not allowed', async () => {
    const { host, gate, records } = await serve({ waitSeconds: 60 }, SLOW);
    const abort = new AbortController();
    const call = callOf('x');
    const verdict = host.before(call, { ...contextOf(call), abortSignal: abort.signal });
    await expect.poll(async () => (await gate.ledger.requests()).length).toBe(1);
    abort.abort();
    expect(await verdict).toMatchObject({ block: true });
    expect(records()).toEqual(['deny APPROVAL_REQUIRED']);
    expect(gate.openCalls).toBe(0);
  });

  it('by the host before the answer came is settled as not run', async () => {
    const { host, records } = await serve();
    const call = callOf('x');
    const verdict = host.before(call);
    // The host does not wait, and tells the end of what it has blocked.
    await host.after({ ...call, error: 'Tool call blocked because before_tool_call hook failed' });
    expect(await verdict).toMatchObject({ block: true });
    await until(() => records().length === 2);
    expect(records()).toEqual(['allow ALLOW', 'failure NOT_RUN']);
  });

  it('after a decision that did not arrive is settled as not run', async () => {
    const { socket, gate, records } = await serve();
    // Lets one request through and swallows its answer.
    let isFirst = true;
    const { connect } = await import('node:net');
    const between = join(temporaryFolder(), 'b.sock');
    const server = createServer((client) => {
      const swallows = isFirst;
      isFirst = false;
      const to = connect(socket);
      for (const each of [client, to]) each.on('error', () => undefined);
      client.pipe(to);
      if (swallows) to.once('data', () => client.destroy());
      else to.pipe(client);
    });
    await new Promise<void>((resolve) => server.listen(between, resolve));
    onTestFinished(() => void server.close());
    const host = new Host({ socket: between });
    expect(await host.before(callOf('x'))).toMatchObject({ block: true });
    await until(() => records().length === 2);
    expect(records()).toEqual(['allow ALLOW', 'failure NOT_RUN']);
    expect(gate.openCalls).toBe(0);
  });
});

it('what the host recorded itself says the same, call by call', async () => {
  const place = filePlace();
  const { gate } = await openGate(place, { allowedTools: ['exec'], meterCaps: { calls: 9 } });
  const socket = join(temporaryFolder(), 's.sock');
  const server = await serveGate({ gate, socket });
  onTestFinished(() => server.close());
  const host = new Host({ socket });
  const lines: string[] = [];
  const record = (hook: string, event: Json): void => {
    lines.push(JSON.stringify({ n: lines.length, ts: Date.now(), hook, event, ctx: contextOf(event) }));
  };
  const runId = newRun();
  const act = async (
    toolCallId: string,
    command: string,
    more: Json = {},
    ran = command,
    refusal?: string,
  ): Promise<void> => {
    const call = callOf(command, { runId, toolCallId, ...more });
    record('before_tool_call', call);
    const verdict = await host.before(call);
    const details = { status: 'blocked', deniedReason: refusal ?? 'plugin-before-tool-call' };
    const end =
      verdict === undefined && refusal === undefined
        ? completed({ ...call, params: { command: ran } })
        : { ...call, error: verdict?.blockReason ?? 'no', result: { details }, durationMs: 1 };
    record('after_tool_call', end);
    await host.after(end);
  };
  // The same command twice is told apart by its id.
  await act('call_1', 'make');
  await act('call_2', 'make');
  await act('call_3', 'x', { toolName: 'process' });
  // The host's user refuses what the gate has allowed.
  await act('call_4', 'make', {}, 'make', 'plugin-approval');
  const source = (): ReconcileSource =>
    readSource(openclaw, [{ name: 'hooks.jsonl', bytes: Buffer.from(`${lines.join('\n')}\n`) }]);
  const first = await reconcileLedger(place.path, [source()]);
  expect(first).toMatchObject({ exit_status: 0, calls: { total: 4, corroborated: 4 }, findings: [] });
  expect(first.listed.map(({ sources }) => sources[0]?.by)).toEqual(['id', 'id', 'id', 'id']);
  await act('call_5', 'make', {}, 'make install');
  const second = await reconcileLedger(place.path, [source()]);
  expect(second).toMatchObject({ exit_status: 3, calls: { contradicted: 0, source_only: 0, ambiguous: 0 } });
});

it('tells an end again until the service is back', async () => {
  const place = memoryPlace();
  const { gate } = await openGate(place, { allowedTools: ['exec'], meterCaps: { calls: 3 } });
  const socket = join(temporaryFolder(), 's.sock');
  const first = await serveGate({ gate, socket });
  const host = new Host({ socket });
  const call = callOf('x');
  expect(await host.before(call)).toBeUndefined();
  await first.close();
  await gate.close();
  await host.after(completed(call));
  const second = await serveGate({ gate: await reopen(place), socket });
  onTestFinished(() => second.close());
  await until(() => recordsOf(place).includes('success'));
  expect(recordsOf(place)).toEqual(['allow ALLOW', 'success']);
});

describe('values', () => {
  it('have the names and digests that an import gives them', () => {
    for (const text of [
      ...HOSTILE_STRINGS,
      '',
      'exec',
      'a b',
      `${'x'.repeat(200)} `,
      'mcp__x__y',
      '~',
      '\ud800',
    ]) {
      expect(values.toolOf(text)).toBe(importedTool(text));
      const agent = values.agentOf(text);
      if (text !== '' && agent.length < 240) expect(`agent:x/${agent}`).toBe(principalOf('agent', 'x', text));
      const value = {
        [text]: [text, 1.5, -0, 1e21, null, true, { b: 1, a: 2, '\u{10000}': 3, '\uffff': 4 }],
      };
      const isText = !/\p{Surrogate}/u.test(text);
      const json = values.asJson(value);
      expect(values.digestOf(json)).toBe(
        isText
          ? formatDigest(sha256Digest(canonicalBytes(JSON.parse(JSON.stringify(value)) as never)))
          : undefined,
      );
      expect(values.printable(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }
  });
});

it.skipIf(!hasRecording())('decides on what a real run sent', async () => {
  const { host, place, records } = await serve();
  for (const line of readFileSync(RECORDED, 'utf8').trim().split('\n')) {
    const { h, event = {}, ctx = {} } = JSON.parse(line) as { h?: string; event?: Json; ctx?: Json };
    if (h === 'before_tool_call') await host.before(event, ctx);
    if (h === 'after_tool_call') await host.after(event, { ...ctx, ...contextOf(event) });
  }
  expect(records().filter((each) => each === 'allow ALLOW')).toHaveLength(3);
  expect(await place.verdict()).toBe('ok');
});

it('packs to what it needs, and says what the host checks', () => {
  const { status, stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: fileURLToPath(FOLDER),
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const names = files.map(({ path }) => path);
  const read = (name: string): Json => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as Json;
  const { dependencies, openclaw, exports } = read('package.json');
  expect(dependencies).toBeUndefined();
  expect(openclaw).toEqual({ extensions: [exports] });
  expect(names).toEqual(expect.arrayContaining(['index.js', 'openclaw.plugin.json', 'package.json']));
  const manifest = read('openclaw.plugin.json');
  expect(manifest['id']).toBe(plugin.id);
  const { properties } = manifest['configSchema'] as { properties: Json };
  // Each member that the host lets through is one that the plugin knows.
  for (const name of Object.keys(properties)) {
    const sample = { fail: 'open', timeoutSeconds: 2, waitSeconds: 2, pin: true }[name] ?? '/x';
    expect(new Host({ socket: '/x', [name]: sample }).log.filter((each) => each.startsWith('error'))).toEqual(
      [],
    );
  }
});

function digestJson(value: unknown): Json {
  const { alg, b64 } = sha256Digest(canonicalBytes(value));
  return { alg, b64 };
}

function hasRecording(): boolean {
  try {
    readFileSync(RECORDED);
    return true;
  } catch {
    return false;
  }
}
