/** Codex CLI's rollouts and hook logs: what becomes of each line, tokens counted once, and each rule broken. */

import { describe, expect, it } from 'vitest';
import { accountFor } from '../../../src/hosts/shared/account.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { recogniseHost } from '../../../src/hosts/shared/reconcile-sources.js';
import { HOSTS } from '../../../src/hosts/shared/registry.js';
import { codex } from '../../../src/hosts/codex/index.js';
import { inTime } from '../../in-time.js';
import { fileOf, found, holdsForBrokenFiles, linesOf, sample, verifyPlan } from '../samples.js';

const rollout = sample('codex', 'rollout.jsonl');
const hooks = sample('codex', 'hooks.jsonl');

interface Line {
  readonly timestamp?: string;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}
const lines = linesOf(rollout) as Line[];
const SESSION = lines[0].payload['id'] as string;
const item = (payload: object, type = 'response_item', timestamp = '2026-11-20T10:00:00.000Z'): object => ({
  ...{ timestamp, type, payload },
});
const rolloutOf = (...own: readonly object[]): HostFile =>
  fileOf('rollout-2026-11-20T10-00-00-x.jsonl', [item({ id: SESSION }, 'session_meta'), ...own]);
const call = (id: string, name = 'exec_command', args = '{"cmd":"ls"}'): object =>
  item({ type: 'function_call', name, arguments: args, call_id: id });
const output = (id: string, text: unknown): object =>
  item({ type: 'function_call_output', call_id: id, output: text });

function executionsOf(files: readonly HostFile[]): unknown[] {
  return codex
    .read(files)
    .claims.flatMap((claim) =>
      claim.kind === 'execution' ? [[claim.id.split('/').at(-1), claim.outcome, claim.errorCode]] : [],
    );
}

/** The tokens of all observations, by unit. */
function tokensOf(files: readonly HostFile[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { meters, tool } of codex.read(files).observations) {
    for (const { unit, amount } of tool === undefined ? meters : [])
      sums[unit] = (sums[unit] ?? 0) + Number('v' in amount ? amount.v : Number.NaN);
  }
  return sums;
}
const TOKENS = {
  'tokens.input': 62_300,
  'tokens.output': 308,
  'tokens.input.cache_read': 49_000,
  'tokens.output.reasoning': 70,
};

describe('a rollout', () => {
  it('says how its calls ended, and what was denied', async () => {
    const plan = planImport(codex, [rollout]);
    expect(accountFor(plan.reading.items).total).toEqual({
      items: 28,
      mapped: 6,
      evidence: 16,
      repeated: 4,
      dropped: 2,
    });
    expect(executionsOf([rollout])).toEqual([
      ['call_read', 'success', undefined],
      ['call_test', 'failure', 'EXIT_1'],
      ['call_patch', 'success', undefined],
      ['call_mcp', 'success', undefined],
      ['web_search-10', 'success', undefined],
    ]);
    expect(plan.events.filter(({ kind }) => kind === 'action').map(({ event }) => event)).toMatchObject([
      { decision: 'deny', decision_code: 'USER_REJECTED', principal_id: `agent:codex/${SESSION}` },
    ]);
    expect(new Set(found(plan))).toEqual(new Set(['CX-7 DECISION_NOT_STATED']));
    expect(new Set((await verifyPlan(plan)).findings.map(({ code }) => code))).toEqual(
      new Set(['AUTH_NOT_FOUND']),
    );
  });

  it('counts each token once, whatever is repeated', () => {
    expect(tokensOf([rollout])).toEqual(TOKENS);
  });

  it('keeps the model and the folder, and no prompts, parameters and answers', () => {
    const { events } = planImport(codex, [rollout]);
    expect(events.map(({ event }) => event)).toContainEqual(
      expect.objectContaining({ event_type: 'x.codex.usage', model: 'gpt-sample-1' }),
    );
    const text = JSON.stringify(events);
    expect(text).toContain('/home/dev/shop');
    for (const content of [
      'npm test',
      'rm -rf',
      'Fix the cart',
      'failing',
      '12 EUR',
      'rules of the shop',
      'gAAAA',
    ])
      expect(text).not.toContain(content);
  });

  it('has durations as meters', () => {
    const { claims } = codex.read([rollout]);
    const of = (id: string): unknown =>
      claims.flatMap((claim) =>
        claim.kind === 'execution' && claim.id.endsWith(id) ? [claim.meters[1]?.amount] : [],
      );
    expect(of('call_test')).toEqual([{ t: 'int', v: '3412' }]);
    expect(of('call_mcp')).toEqual([{ t: 'int', v: '1250' }]);
  });

  it('has the same events for the same lines when it goes on', () => {
    const ids = (file: HostFile): unknown[] =>
      planImport(codex, [file]).events.map(({ event }) => event.event_id);
    for (const length of [4, 11, 15, 24])
      expect(ids(rollout)).toEqual(expect.arrayContaining(ids(fileOf(rollout.name, lines.slice(0, length)))));
  });

  it('of older versions is read without records around its items', () => {
    const bare = fileOf('rollout-old.jsonl', [
      { id: SESSION, timestamp: '2025-07-01T10:00:00.000Z', instructions: null, git: {} },
      { record_type: 'state' },
      { type: 'message', role: 'user', content: [] },
      { type: 'function_call', name: 'shell', arguments: '{"command":["ls"]}', call_id: 'call_1' },
      {
        ...{ type: 'function_call_output', call_id: 'call_1' },
        output: '{"output":"","metadata":{"exit_code":2,"duration_seconds":0.5}}',
      },
    ]);
    expect(executionsOf([bare])).toEqual([['call_1', 'failure', 'EXIT_2']]);
    expect(codex.recognises(bare)).toBe(true);
    const { findings, claims } = codex.read([bare]);
    expect(findings.filter(({ code }) => code === 'TIME_NOT_STATED')).toHaveLength(3);
    expect(new Set(claims.map(({ occurredAt }) => occurredAt))).toEqual(new Set(['2025-07-01T10:00:00Z']));
  });
});

describe('an end of a call', () => {
  it.each([
    ['Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 7\n', 'success', undefined],
    [
      'Wall time: 0.1 seconds\nProcess running with session ID 4\nOutput:\nProcess exited with code 0\n',
      'unknown',
      undefined,
    ],
    ['Exit code: 7\nWall time: 0.1 seconds\nOutput:\n', 'failure', 'EXIT_7'],
    ['aborted by user after 2.3s', 'failure', 'INTERRUPTED'],
    ['execution error: Io(…)', 'failure', undefined],
    ['Plan updated', 'unknown', undefined],
    [
      [{ type: 'input_text', text: 'Script completed\nWall time 0.1 seconds\nOutput:\n' }],
      'success',
      undefined,
    ],
    [{ content: 'x', success: false }, 'failure', undefined],
    [42, 'unknown', undefined],
  ])('is what is said of it, and unknown where nothing is: %j', (text, outcome, code) => {
    expect(executionsOf([rolloutOf(call('c'), output('c', text))])).toEqual([['c', outcome, code]]);
  });

  it('is told by an event where the output only says that it runs', () => {
    const end = item({ type: 'exec_command_end', call_id: 'c', exit_code: 3, status: 'failed' }, 'event_msg');
    const running = output('c', 'Wall time: 1 seconds\nProcess running with session ID 4\nOutput:\n');
    expect(executionsOf([rolloutOf(call('c'), running, end)])).toEqual([['c', 'failure', 'EXIT_3']]);
    // Without an output the event is the end.
    expect(executionsOf([rolloutOf(call('c'), end)])).toEqual([['c', 'failure', 'EXIT_3']]);
    expect(executionsOf([rolloutOf(end)])).toEqual([['c', 'failure', 'EXIT_3']]);
  });

  it('of a command that the person ran is none of the agent', () => {
    const end = item(
      { type: 'exec_command_end', call_id: 'c', exit_code: 0, source: 'user_shell' },
      'event_msg',
    );
    expect(executionsOf([rolloutOf(end)])).toEqual([]);
  });

  it.each([
    ['exec command rejected by user', 'USER_REJECTED'],
    ['patch rejected by user', 'USER_REJECTED'],
    ['user cancelled MCP tool call', 'USER_REJECTED'],
    ['Command blocked by PreToolUse hook: too much', 'HOOK_DENIED'],
    ['exec command rejected: not trusted', 'POLICY_DENIED'],
  ])('is none where it was denied: %s', (text, code) => {
    const { claims, findings } = codex.read([rolloutOf(call('c'), output('c', text))]);
    expect(findings).toEqual([]);
    expect(claims.filter(({ kind }) => kind === 'execution')).toEqual([]);
    expect(claims).toContainEqual(expect.objectContaining({ decision: 'deny', decisionCode: code }));
  });

  it('is none where no tool was called', () => {
    for (const text of ['unsupported call: nothing', 'failed to parse function arguments: x']) {
      const { claims, findings } = codex.read([rolloutOf(call('c'), output('c', text))]);
      expect(findings).toEqual([]);
      expect(claims.map(({ kind }) => kind)).toEqual(['evidence', 'evidence', 'evidence']);
    }
  });

  it('is that of its session: other sessions have calls of the same id', () => {
    const other = fileOf('other.jsonl', [
      item({ id: 'other' }, 'session_meta'),
      call('c'),
      output('c', 'Exit code: 1\n'),
    ]);
    const { findings } = codex.read([rolloutOf(call('c'), output('c', 'Exit code: 0\n')), other]);
    expect(new Set(found({ findings }))).toEqual(new Set(['CX-7 DECISION_NOT_STATED']));
    expect(executionsOf([rolloutOf(call('c'), output('c', 'Exit code: 0\n')), other])).toHaveLength(2);
  });
});

describe('a hook log beside a rollout', () => {
  it('says what was allowed, and the rollout when and how it ended', () => {
    const plan = planImport(codex, [hooks, rollout]);
    const allowed = plan.events.filter(
      ({ kind, event }) => kind === 'action' && event['decision'] === 'allow',
    );
    expect(allowed.map(({ event }) => event['occurred_at'])).toEqual([
      '2026-11-20T09:00:05.5Z',
      '2026-11-20T09:00:07.5Z',
    ]);
    const ran = plan.events.filter(({ sourceId }) => /^execution:.*call_(?:read|test)$/.test(sourceId));
    expect(ran.map(({ event }) => [event['outcome'], event['tool_name'], event['auth_event_id']])).toEqual([
      ['success', 'Bash', allowed[0].event.event_id],
      ['failure', 'Bash', allowed[1].event.event_id],
    ]);
    expect(tokensOf([hooks, rollout])).toEqual(TOKENS);
    expect(found(plan).filter((each) => each.startsWith('CX-') && !each.startsWith('CX-7'))).toEqual([]);
  });

  it('alone knows that tools ended, and not how', () => {
    const alone = codex.read([hooks], { occurredAt: '2026-11-20T09:00:00Z' });
    expect(alone.claims.flatMap((claim) => (claim.kind === 'execution' ? [claim.outcome] : []))).toEqual([
      'unknown',
      'unknown',
    ]);
    expect(codex.read([hooks]).claims).toEqual([]);
    expect(codex.read([hooks]).findings.map(({ code }) => code)).toEqual(Array(6).fill('TIME_NOT_STATED'));
  });

  it('that denied is not contradicted by the output that says so', () => {
    const denial = { hookSpecificOutput: { permissionDecision: 'deny', permissionDecisionReason: 'no' } };
    const log = fileOf('hooks.jsonl', [
      {
        ...{ session_id: SESSION, turn_id: 't', hook_event_name: 'PreToolUse', tool_name: 'Bash' },
        ...{ tool_input: { command: 'ls' }, tool_use_id: 'c', output: denial },
      },
    ]);
    const reading = codex.read([
      log,
      rolloutOf(call('c'), output('c', 'Command blocked by PreToolUse hook: no')),
    ]);
    expect(found(reading)).toEqual(['INPUT TIME_OF_TRANSCRIPT']);
    expect(found(codex.read([log, rolloutOf(call('c'), output('c', 'Exit code: 0\n'))]))).toContain(
      'CX-6 RAN_AFTER_DENIAL',
    );
  });
});

describe('usage', () => {
  const used = (total: object, last?: object): object =>
    item(
      {
        type: 'token_count',
        info: { total_token_usage: total, ...(last === undefined ? {} : { last_token_usage: last }) },
      },
      'event_msg',
    );
  const t = (input_tokens: number, output_tokens: number, more = {}): object => ({
    input_tokens,
    output_tokens,
    ...more,
  });
  const cx11 = (file: HostFile): string[] =>
    found(codex.read([file])).filter((each) => each.startsWith('CX-11'));

  it('that a torn line hid is in the next total, and is told', () => {
    const file = rolloutOf(used(t(10, 1), t(10, 1)), used(t(40, 4), t(20, 2)));
    expect(tokensOf([file])).toEqual({ 'tokens.input': 40, 'tokens.output': 4 });
    expect(cx11(file)).toEqual(['CX-11 USAGE_DISAGREES']);
  });

  it('goes on after a total that is only the size of a full context', () => {
    const full = used(
      { input_tokens: 0, output_tokens: 0, total_tokens: 272_000 },
      { input_tokens: 0, output_tokens: 0, total_tokens: 5 },
    );
    const file = rolloutOf(
      used(t(10, 1, { total_tokens: 11 }), t(10, 1)),
      full,
      used(t(7, 2, { total_tokens: 272_009 }), t(7, 2)),
    );
    expect(tokensOf([file])).toEqual({ 'tokens.input': 17, 'tokens.output': 3 });
  });

  it.each([
    ['CX-11 AMOUNT_INVALID', t(-1, 0)],
    ['CX-11 AMOUNT_INVALID', t(1.5, 0)],
    ['CX-11 AMOUNT_INVALID', { input_tokens: '7' }],
    ['CX-11 PART_EXCEEDS_TOTAL', t(1, 0, { cached_input_tokens: 2 })],
    ['CX-11 PART_EXCEEDS_TOTAL', t(1, 1, { reasoning_output_tokens: 2 })],
  ])('that cannot be is found: %s', (expected, tokens) => {
    expect(cx11(rolloutOf(used(tokens, tokens)))[0]).toBe(expected);
  });
});

const RULES: readonly (readonly [string, HostFile])[] = [
  ['CX-1 DUPLICATE_TOOL_USE', rolloutOf(call('c'), call('c', 'other'), output('c', 'Exit code: 0\n'))],
  ['CX-2 RESULT_WITHOUT_USE', rolloutOf(output('c', 'Exit code: 0\n'))],
  ['CX-5 TWO_RESULTS', rolloutOf(call('c'), output('c', 'Exit code: 0\n'), output('c', 'Exit code: 1\n'))],
  ['CX-9 RESULT_MISSING', rolloutOf(call('c'))],
  [
    'CX-10 RESULT_BEFORE_USE',
    rolloutOf(
      call('c'),
      item(
        { type: 'function_call_output', call_id: 'c', output: 'Exit code: 0\n' },
        'response_item',
        '2026-11-20T09:59:59Z',
      ),
    ),
  ],
  ['INPUT ID_NOT_STATED', rolloutOf(item({ type: 'function_call', name: 'x', arguments: '{}' }))],
];

it.each(RULES)('finds %s', (expected, file) => {
  expect(found(codex.read([file])).filter((each) => !each.startsWith('CX-7'))).toEqual([expected]);
});

it('names kinds that it does not know once each, with how many lines they are', () => {
  const file = rolloutOf(
    item({ type: 'brand_new' }, 'event_msg'),
    item({ type: 'brand_new' }, 'event_msg'),
    item({ type: 'novel_call' }),
    item({ a: 1 }, 'new_record'),
  );
  const { findings, items } = codex.read([file]);
  expect(findings.map(({ code, about, actual }) => [code, about, actual])).toEqual([
    ['KIND_UNKNOWN', 'event_msg/brand_new', 'event_msg/brand_new on 2 lines'],
    ['KIND_UNKNOWN', 'response_item/novel_call', 'response_item/novel_call on 1 lines'],
    ['KIND_UNKNOWN', 'new_record', 'new_record on 1 lines'],
  ]);
  expect(items.filter(({ reason }) => reason === 'KIND_UNKNOWN')).toHaveLength(4);
});

it('is told apart from all other hosts, its hooks from those of Claude Code', () => {
  for (const file of [rollout, hooks]) expect(recogniseHost(file, HOSTS).name).toBe('codex');
  for (const [host, name] of [
    ['claude-code', 'hooks.jsonl'],
    ['claude-code', 'transcript.jsonl'],
    ['otlp', 'traces.jsonl'],
    ['litellm', 'spend-logs.jsonl'],
  ] as const)
    expect(recogniseHost(sample(host, name), HOSTS).name).toBe(host);
});

describe('whatever it is given', () => {
  it('is read', () => {
    holdsForBrokenFiles(codex, [hooks, rollout]);
  });

  it('may be of other types', () => {
    const odd = [
      null,
      7,
      [],
      'x',
      { type: 3 },
      { type: 'response_item', payload: null },
      { type: 'response_item', payload: [] },
    ];
    const typed = [
      'function_call',
      'function_call_output',
      'custom_tool_call',
      'web_search_call',
      'message',
    ].flatMap((type) =>
      [null, 7, [], {}, 'x'].map((value) =>
        item({
          type,
          call_id: value,
          name: value,
          arguments: value,
          output: value,
          action: value,
          id: value,
        }),
      ),
    );
    const events = ['token_count', 'exec_command_end', 'mcp_tool_call_end', 'patch_apply_end'].flatMap(
      (type) =>
        [null, 7, [], {}, 'x'].map((value) =>
          item(
            {
              type,
              call_id: value,
              info: value,
              duration: value,
              result: value,
              invocation: value,
              exit_code: value,
            },
            'event_msg',
          ),
        ),
    );
    const all = [...odd, item({ id: 7, source: [] }, 'session_meta'), ...typed, ...events];
    const { items } = codex.read([fileOf('odd.jsonl', all)]);
    expect(items).toHaveLength(all.length);
  });

  it('may be torn, or huge', () => {
    const torn = { name: 'torn.jsonl', bytes: Buffer.from(Buffer.from(rollout.bytes).subarray(0, -9)) };
    expect(found(codex.read([torn]))).toContain('INPUT LINE_TORN');
    const huge = rolloutOf(call('c'), output('c', 'x'.repeat(17 * 1024 * 1024)));
    expect(found(codex.read([huge]))).toContain('INPUT LINE_TOO_LONG');
  });

  it('costs what its number of lines is', () => {
    const many = Array.from({ length: 20_000 }, (_, n) => [
      call(`c${n % 5000}`),
      output(`c${n % 5000}`, 'Exit code: 0\n'),
    ]).flat();
    inTime(() => codex.read([rolloutOf(...many)]));
  });
});
