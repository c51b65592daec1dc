/** Sessions of Codex CLI that begin with the history of others: calls and tokens count once. */

import { describe, expect, it } from 'vitest';
import { accountFor } from '../../../src/hosts/shared/account.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { codex } from '../../../src/hosts/codex/index.js';
import { fileOf, found, linesOf, sample } from '../samples.js';

const rollout = sample('codex', 'rollout.jsonl');
interface Line {
  readonly timestamp: string;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}
const lines = linesOf(rollout) as Line[];
const PARENT = lines[0].payload['id'] as string;
/** Made after all turns of the sample. */
const CHILD = '019b0100-0000-7a00-8000-0000000000c1';
const TURN = '019b0100-0001-7a00-8000-0000000000c2';
const TIME = '2026-11-21T09:00:00.000Z';

const item = (type: string, payload: object): object => ({ timestamp: TIME, type, payload });
const meta = (more: object, id = CHILD): object =>
  item('session_meta', { id, cwd: '/home/dev/shop', ...more });
const restamped = (own: readonly Line[]): object[] => own.map((line) => ({ ...line, timestamp: TIME }));
const usage = (
  input_tokens: number,
  cached_input_tokens: number,
  output_tokens: number,
  reasoning_output_tokens: number,
): object => ({
  ...{ input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens },
  total_tokens: input_tokens + output_tokens,
});
const used = (total: object, last: object): object =>
  item('event_msg', { type: 'token_count', info: { total_token_usage: total, last_token_usage: last } });
const started = item('event_msg', { type: 'task_started', turn_id: TURN });
/** What a fork does itself: a call, and an answer of 100 and 10 tokens on top of its parent's. */
const own = [
  item('response_item', {
    type: 'function_call',
    name: 'exec_command',
    arguments: '{}',
    call_id: 'call_own',
  }),
  item('response_item', { type: 'function_call_output', call_id: 'call_own', output: 'Exit code: 0\n' }),
  used(usage(62_400, 49_000, 318, 70), usage(100, 0, 10, 0)),
];

function inputOf(files: readonly HostFile[]): number {
  return codex
    .read(files)
    .observations.filter(({ tool }) => tool === undefined)
    .flatMap(({ meters }) => meters)
    .filter(({ unit }) => unit === 'tokens.input')
    .reduce((sum, { amount }) => sum + Number('v' in amount ? amount.v : Number.NaN), 0);
}

function executionsOf(files: readonly HostFile[]): string[] {
  return codex.read(files).claims.flatMap(({ kind, id }) => (kind === 'execution' ? [id] : []));
}

const once = executionsOf([rollout]);
const HISTORIES: readonly (readonly [string, readonly object[]])[] = [
  [
    'with the line about its parent, and turns of its own',
    [meta({ forked_from_id: PARENT }), ...restamped(lines), started],
  ],
  [
    'with its parent named as who spawned it',
    [
      meta({ source: { subagent: { thread_spawn: { parent_thread_id: PARENT, depth: 1 } } } }),
      ...restamped(lines),
      started,
    ],
  ],
  [
    'with its own line again after them',
    [meta({ forked_from_id: PARENT }, 'x-1'), ...restamped(lines), meta({}, 'x-1')],
  ],
  ['with nothing between', [meta({ forked_from_id: PARENT }, 'x-2'), ...restamped(lines.slice(1))]],
];

describe.each(HISTORIES)('a fork %s', (_, history) => {
  const fork = fileOf('fork.jsonl', [...history, ...own]);

  it('beside its parent adds what it did itself, in either order', () => {
    for (const files of [
      [rollout, fork],
      [fork, rollout],
    ]) {
      expect(inputOf(files)).toBe(62_300 + 100);
      expect(executionsOf(files)).toHaveLength(once.length + 1);
      expect(executionsOf(files)).toEqual(expect.arrayContaining(once));
      expect(codex.read(files).findings.filter(({ rule }) => rule !== 'CX-7')).toEqual([]);
    }
  });
});

it('of a fork without its parent only its own lines count, and the parent is asked for', () => {
  const fork = fileOf('fork.jsonl', [...HISTORIES[0][1], ...own]);
  expect(inputOf([fork])).toBe(100);
  expect(executionsOf([fork])).toEqual([`execution:${CHILD}/call_own`]);
  const { findings, items } = codex.read([fork]);
  expect(findings).toContainEqual(
    expect.objectContaining({ code: 'PARENT_NOT_GIVEN', severity: 'warning', about: CHILD }),
  );
  expect(accountFor(items).byReason.get('HISTORY_COPIED')).toBe(lines.length);
});

it('an empty fork used nothing', () => {
  const fork = fileOf('fork.jsonl', [meta({ forked_from_id: PARENT }), ...restamped(lines)]);
  expect(inputOf([fork])).toBe(0);
  expect(executionsOf([fork])).toEqual([]);
  expect(inputOf([rollout, fork])).toBe(62_300);
});

it('a fork of which nothing tells where its own lines begin is read whole, with a finding', () => {
  const bare = lines
    .slice(1)
    .map(({ payload: { turn_id: _, ...payload }, ...line }) => ({ ...line, payload }));
  const fork = fileOf('fork.jsonl', [meta({ forked_from_id: PARENT }), meta({}, PARENT), ...bare]);
  expect(found(codex.read([fork]))).toContain('CX-3 HISTORY_NOT_TOLD_APART');
  expect(executionsOf([fork])).toHaveLength(once.length);
});

it('a fork that continues totals without any history counts what its answers used', () => {
  const fork = fileOf('fork.jsonl', [meta({ forked_from_id: PARENT }), ...own]);
  expect(inputOf([fork])).toBe(100);
  expect(inputOf([rollout, fork])).toBe(62_400);
});

it('a subagent is a principal below the session that spawned it', () => {
  const spawned = meta({ source: { subagent: { thread_spawn: { parent_thread_id: PARENT, depth: 1 } } } });
  const { claims } = codex.read([rollout, fileOf('sub.jsonl', [spawned, started, ...own.slice(0, 2)])]);
  const principals = new Map(claims.map(({ id, principalId }) => [id, principalId]));
  expect(principals.get(`execution:${CHILD}/call_own`)).toBe(`agent:codex/${PARENT}/${CHILD}`);
  expect(principals.get(once[0])).toBe(`agent:codex/${PARENT}`);
});

it('a session in two files counts once, and what one of them has more', () => {
  const half = fileOf('archived.jsonl', lines.slice(0, 14));
  for (const files of [
    [rollout, { ...rollout, name: 'copy.jsonl' }],
    [half, rollout],
    [rollout, half],
  ]) {
    expect(inputOf(files)).toBe(62_300);
    expect(executionsOf(files).sort()).toEqual([...once].sort());
    expect(new Set(found(codex.read(files)))).toEqual(new Set(['CX-7 DECISION_NOT_STATED']));
  }
});

it('what a compaction keeps of the history is no call and no usage', () => {
  const compacted = item('compacted', {
    message: '',
    replacement_history: lines.map(({ payload }) => payload),
  });
  const file = fileOf('rollout.jsonl', [...lines, compacted]);
  expect(inputOf([file])).toBe(62_300);
  expect(executionsOf([file])).toEqual(once);
});
