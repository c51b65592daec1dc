/** What sessions of Claude Code hold besides the sample: results of calls that were not made, denials in other words, answers in other forms. */

import { describe, expect, it } from 'vitest';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { claudeCode } from '../../../src/hosts/claude-code/index.js';
import { inTime } from '../../in-time.js';
import { fileOf, found, verifyPlan } from '../samples.js';

const SESSION = '7d3f0c52-0d0c-4a55-9b0e-6f6a4f3f1c11';
const BASH = { tool_name: 'Bash', tool_input: { command: 'ls' } };
const seconds = (n: number): string => `2026-11-20T09:00:${String(n).padStart(2, '0')}.000Z`;

function hook(at: number, event: string, rest: object): object {
  return { timestamp: seconds(at), hook_event_name: event, session_id: SESSION, ...rest };
}

/** A transcript of one tool use after another, each with what its result says. */
function transcriptOf(...results: readonly (object | undefined)[]): HostFile {
  let parentUuid: string | null = null;
  const lines: object[] = [];
  const add = (type: string, content: object): void => {
    const uuid = `line-${lines.length}`;
    const timestamp = seconds(lines.length);
    lines.push({ type, uuid, parentUuid, sessionId: SESSION, timestamp, message: { content: [content] } });
    parentUuid = uuid;
  };
  for (const [index, result] of results.entries()) {
    add('assistant', { type: 'tool_use', id: `toolu_${index}`, name: 'Bash', input: { command: 'ls' } });
    if (result !== undefined) add('user', { type: 'tool_result', tool_use_id: `toolu_${index}`, ...result });
  }
  return fileOf('transcript.jsonl', lines);
}

const failed = (content: string): object => ({ content, is_error: true });

describe('a result that says that no tool was called', () => {
  it.each([
    ['CANCELLED', '<tool_use_error>Cancelled: parallel tool call Bash(grep -c x) errored</tool_use_error>'],
    ['INPUT_REFUSED', '<tool_use_error>InputValidationError: Bash failed due to the following issue:\n…'],
    ['TOOL_UNKNOWN', '<tool_use_error>Error: No such tool available: Bash</tool_use_error>'],
  ])('is neither an execution nor a decision: %s', async (reason, content) => {
    const plan = planImport(claudeCode, [transcriptOf(failed(content))]);
    expect(plan.findings).toEqual([]);
    expect(plan.reading.items.map(({ fate }) => fate)).toEqual(['evidence', 'evidence']);
    const types = [...plan.byType.keys()];
    expect(types).not.toContain('execution');
    expect(types).not.toContain('authorization');
    expect(plan.events.map(({ event }) => event)).toContainEqual(
      expect.objectContaining({ event_type: 'x.claude-code.not_called', reason }),
    );
    expect((await verifyPlan(plan)).verdict).toBe('ok');
  });

  it('is one where the words are those of an answer of a tool', () => {
    const { findings } = claudeCode.read([transcriptOf({ content: '<tool_use_error>Cancelled: …' })]);
    expect(found({ findings })).toEqual(['CC-7 DECISION_NOT_STATED']);
  });

  it('contradicts a hook that says that it ended', () => {
    const log = fileOf('hooks.jsonl', [
      hook(0, 'PreToolUse', {
        ...BASH,
        tool_use_id: 'toolu_0',
        output: { hookSpecificOutput: { permissionDecision: 'allow' } },
      }),
      hook(1, 'PostToolUse', { ...BASH, tool_use_id: 'toolu_0', tool_response: {} }),
    ]);
    const cancelled = failed('<tool_use_error>Cancelled: parallel tool call Bash(x) errored');
    expect(found(claudeCode.read([log, transcriptOf(cancelled)]))).toEqual(['CC-5 OUTCOME_DISAGREES']);
  });
});

describe('a denial', () => {
  it.each([
    'Permission for this action was denied by the Claude Code auto mode classifier. Reason: Blocked.',
    'Permission for this action has been denied. Reason: Blocked.',
    `Permission to use Bash with command ${'x\n'.repeat(4_000)} has been denied.`,
    'This command requires approval',
    'This Bash command contains multiple operations. The following part requires approval: rm -rf x',
  ])('is told by the words of the permission system: %.60s', (content) => {
    const { findings, claims } = claudeCode.read([transcriptOf(failed(content))]);
    expect(findings).toEqual([]);
    expect(claims.filter(({ kind }) => kind === 'execution')).toEqual([]);
    expect(claims).toContainEqual(
      expect.objectContaining({ kind: 'action', decision: 'deny', decisionCode: 'PERMISSION_DENIED' }),
    );
  });

  it('by a hook is no violation where the result gives its reason', () => {
    const log = (output: object): HostFile =>
      fileOf('hooks.jsonl', [hook(0, 'PreToolUse', { ...BASH, tool_use_id: 'toolu_0', output })]);
    const denied = log({
      hookSpecificOutput: { permissionDecision: 'deny', permissionDecisionReason: 'Use rg instead of ls' },
    });
    const older = log({ decision: 'block', reason: 'Use rg instead of ls' });
    for (const file of [denied, older]) {
      expect(found(claudeCode.read([file, transcriptOf(failed('Use rg instead of ls'))]))).toEqual([]);
      const ran = transcriptOf({ content: 'Use rg instead of ls' });
      expect(found(claudeCode.read([file, ran]))).toEqual(['CC-6 RAN_AFTER_DENIAL']);
      const other = transcriptOf(failed('ls: no such file'));
      expect(found(claudeCode.read([file, other]))).toEqual(['CC-6 RAN_AFTER_DENIAL']);
    }
    expect(JSON.stringify(planImport(claudeCode, [denied]).events)).not.toContain('Use rg');
  });
});

describe('an answer on a line of its own', () => {
  const asked = hook(0, 'PreToolUse', { ...BASH, tool_use_id: 'toolu_0' });
  const done = hook(2, 'PostToolUse', { ...BASH, tool_use_id: 'toolu_0', tool_response: {} });

  it('decides in the older form, which names nothing', () => {
    const { findings, claims } = claudeCode.read([
      fileOf('hooks.jsonl', [asked, { decision: 'approve' }, done]),
    ]);
    expect(findings).toEqual([]);
    expect(claims).toContainEqual(expect.objectContaining({ kind: 'action', decisionCode: 'HOOK_ALLOW' }));
    expect(
      found(claudeCode.read([fileOf('hooks.jsonl', [asked, { decision: 'block', reason: 'no' }, done])])),
    ).toEqual(['CC-6 RAN_AFTER_DENIAL']);
  });

  it('to what was done decides nothing', () => {
    const allowed = { ...asked, output: { hookSpecificOutput: { permissionDecision: 'allow' } } };
    for (const answer of [
      { decision: 'block', reason: 'Run the linter' },
      { hookSpecificOutput: { hookEventName: 'PostToolUse' }, decision: 'block' },
    ]) {
      const { findings, items } = claudeCode.read([fileOf('hooks.jsonl', [allowed, done, answer])]);
      expect(findings).toEqual([]);
      expect(items.map(({ fate }) => fate)).toEqual(['mapped', 'mapped', 'evidence']);
    }
  });
});

it('tells permission requests of equal tool uses apart by their order', () => {
  const use = { ...BASH, tool_input: { command: 'ls' } };
  const request = (at: number, behavior: string, isBeside: boolean): object[] => {
    const output = { hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior } } };
    const asked = hook(at, 'PermissionRequest', use);
    return isBeside ? [{ ...asked, output }] : [asked, output];
  };
  for (const isBeside of [true, false]) {
    const log = fileOf('hooks.jsonl', [
      hook(0, 'PreToolUse', { ...use, tool_use_id: 'toolu_0' }),
      hook(1, 'PreToolUse', { ...use, tool_use_id: 'toolu_1' }),
      ...request(2, 'allow', isBeside),
      ...request(3, 'deny', isBeside),
      hook(4, 'PostToolUse', { ...use, tool_use_id: 'toolu_0', tool_response: {} }),
      hook(5, 'PreToolUse', { ...use, tool_use_id: 'toolu_2' }),
      ...request(6, 'allow', isBeside),
      hook(7, 'PostToolUse', { ...use, tool_use_id: 'toolu_2', tool_response: {} }),
    ]);
    const { findings, claims } = claudeCode.read([log]);
    expect(findings).toEqual([]);
    expect(
      claims.flatMap((claim) => (claim.kind === 'action' ? [[claim.id.split(':')[1], claim.decision]] : [])),
    ).toEqual([
      ['toolu_0', 'allow'],
      ['toolu_1', 'deny'],
      ['toolu_2', 'allow'],
    ]);
  }
});

it('takes permission requests of tool uses that nothing named for one each', () => {
  const output = {
    hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } },
  };
  const ended = (at: number, id: string): object =>
    hook(at, 'PostToolUse', { ...BASH, tool_use_id: id, tool_response: {} });
  const log = fileOf('hooks.jsonl', [
    hook(0, 'PermissionRequest', { ...BASH, output }),
    hook(1, 'PermissionRequest', { ...BASH, output }),
    ended(2, 'toolu_0'),
    ended(3, 'toolu_1'),
  ]);
  expect(claudeCode.read([log]).findings).toEqual([]);
});

it('has a tool of an MCP server that answered with an error as failed', () => {
  const { claims } = claudeCode.read([
    fileOf('hooks.jsonl', [
      hook(0, 'PostToolUse', { ...BASH, tool_use_id: 'toolu_0', tool_response: { isError: true } }),
    ]),
  ]);
  expect(claims).toContainEqual(expect.objectContaining({ kind: 'execution', outcome: 'failure' }));
});

it('does not call a transcript invalid for a parent that Claude Code never wrote', () => {
  const [first, ...rest] = Buffer.from(transcriptOf(failed('Permission to use Bash has been denied')).bytes)
    .toString()
    .split('\n');
  expect(first).toContain('line-0');
  const { findings } = claudeCode.read([{ name: 't.jsonl', bytes: Buffer.from(rest.join('\n')) }]);
  expect(findings.filter(({ rule }) => rule === 'CC-4')).toMatchObject([
    { code: 'PARENT_NOT_FOUND', severity: 'warning', class: 'none' },
  ]);
});

it('many decisions of one tool use cost what their number is, and each has an id of its own', () => {
  const decision = (n: number): object =>
    hook(0, 'PreToolUse', {
      ...{ tool_name: 'Bash', tool_use_id: 'toolu_1', tool_input: { n } },
      output: {
        hookSpecificOutput: {
          hookEventName: 'PreToolUse',
          permissionDecision: n % 2 === 0 ? 'allow' : 'deny',
          permissionDecisionReason: `not ${n}`,
        },
      },
    });
  const log = fileOf(
    'hooks.jsonl',
    Array.from({ length: 25_000 }, (_, n) => decision(n)),
  );
  const { claims } = inTime(() => claudeCode.read([log]));
  const ids = claims.flatMap(({ kind, id }) => (kind === 'action' ? [id] : []));
  expect(ids).toHaveLength(25_000);
  expect(ids[24_999]).toBe('pre_tool_use_decision:toolu_1:25000');
});
