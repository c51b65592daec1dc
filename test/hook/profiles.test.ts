/** Each profile makes the right step of each event, as real agents sent them and as its documents say. */

import { describe, expect, it } from 'vitest';
import { type HookName, HOOK_PROFILES, readHookEvent } from '../../src/api/gate.js';
import { event, HAS_RECORDED, recorded } from './events.js';

/** An event's step in short. */
function stepOf(host: HookName, text: string): string {
  const { name, event: read } = readHookEvent(Buffer.from(text));
  const step = HOOK_PROFILES[host].read(read, name);
  switch (step.kind) {
    case 'decide':
      return `decide ${step.call.ref ?? '-'} ${step.call.tool}${step.call.agentType === undefined ? '' : ` as ${step.call.agentType}`}`;
    case 'settle':
      return `${step.outcome} ${step.call.ref ?? '-'} ${step.errorCode ?? '-'} ${step.output === undefined ? 'no output' : 'output'}`;
    case 'release':
      return `release ${step.calls.map(({ ref }) => ref ?? '-').join(' ')}`;
    case 'release-session':
      return step.mayHaveRun === true ? 'unknown session' : 'release session';
    case 'none':
      return 'none';
  }
}

const RUNS: [host: HookName, run: string, ...steps: string[]][] = [
  [
    'claude-code',
    'claude-code/allow',
    'decide toolu_mock_1 Bash',
    'success toolu_mock_1 - output',
    'release toolu_mock_1',
    'release session',
    'unknown session',
  ],
  [
    'claude-code',
    'claude-code/deny',
    'decide toolu_mock_1 Bash',
    'release toolu_mock_1',
    'release session',
    'unknown session',
  ],
  [
    'claude-code',
    'claude-code/fail',
    'decide toolu_mock_1 Bash',
    'failure toolu_mock_1 EXIT_3 output',
    'release toolu_mock_1',
    'decide toolu_mock_2 Read',
    'failure toolu_mock_2 - output',
    'release toolu_mock_2',
    'release session',
    'unknown session',
  ],
  [
    'claude-code',
    'claude-code/sub',
    'decide toolu_mock_1 Agent',
    'decide toolu_mock_2 Bash as general-purpose',
    'success toolu_mock_2 - output',
    'release toolu_mock_2',
    'success toolu_mock_1 - output',
    'release toolu_mock_1',
    'release session',
    'unknown session',
  ],
  ['codex', 'codex/allow', 'decide call_1 Bash', 'success call_1 - output'],
  ['codex', 'codex/deny', 'decide call_1 Bash'],
  [
    'gemini',
    'gemini/exit1',
    'decide - run_shell_command',
    'success - - output',
    'release session',
    'unknown session',
  ],
  ['gemini', 'gemini/deny', 'decide - run_shell_command', 'release session', 'unknown session'],
];

describe.skipIf(!HAS_RECORDED)('recorded runs', () => {
  it.each(RUNS)('%s: %s', (host, run, ...steps) => {
    expect(
      recorded(run)
        .map((text) => stepOf(host, text))
        .filter((step) => step !== 'none'),
    ).toEqual(steps);
  });

  it.each(RUNS)('%s is called for every event of %s that is a step', (host, run) => {
    for (const text of recorded(run)) {
      const { name } = readHookEvent(Buffer.from(text));
      if (stepOf(host, text) !== 'none') expect(HOOK_PROFILES[host].events).toContain(name);
    }
  });
});

it.each([
  [
    'claude-code',
    event('PostToolUseFailure', { error: 'x', is_interrupt: true }),
    'unknown t1 INTERRUPTED output',
  ],
  ['claude-code', event('PostToolUseFailure', { error: 'Exit code 1234' }), 'failure t1 - output'],
  ['claude-code', event('PermissionDenied', { reason: 'no' }), 'release t1'],
  ['claude-code', event('PermissionRequest'), 'none'],
  ['claude-code', event('Stop', { background_tasks: [{ id: 'b1' }] }), 'none'],
  ['claude-code', event('StopFailure'), 'release session'],
  ['claude-code', event('PreToolUse', { tool_use_id: undefined }), 'decide - Bash'],
  ['claude-code', event('NextYearsEvent'), 'none'],
  // Its commands may run on.
  ['codex', event('Stop'), 'none'],
  ['codex', event('SessionEnd'), 'none'],
  ['gemini', event('AfterTool', { tool_response: { error: { message: 'x' } } }), 'failure - - output'],
  ['gemini', event('AfterTool', { tool_response: { error: null } }), 'success - - output'],
  ['gemini', event('BeforeModel', { llm_request: {} }), 'none'],
  ['copilot', event('PreToolUse'), 'decide t1 Bash'],
  ['copilot', event('PostToolUse', { tool_result: { result_type: 'success' } }), 'success t1 - output'],
  ['copilot', event('PostToolUseFailure', { error: 'x' }), 'failure t1 - output'],
  ['copilot', event('Stop'), 'release session'],
  ['copilot', event('SessionEnd'), 'unknown session'],
] as const)('%s: %s', (host, text, step) => {
  expect(stepOf(host, text)).toBe(step);
});

it.each([
  ['claude-code', 'PreToolUse', { tool_name: 1 }],
  ['claude-code', 'PreToolUse', { tool_name: '' }],
  ['claude-code', 'PreToolUse', { tool_name: undefined }],
  ['claude-code', 'PreToolUse', { tool_input: undefined }],
  ['claude-code', 'PreToolUse', { tool_use_id: 7 }],
  ['claude-code', 'PreToolUse', { session_id: null }],
  ['claude-code', 'PreToolUse', { agent_type: {} }],
  ['claude-code', 'PostToolBatch', { tool_calls: {} }],
  ['claude-code', 'PostToolBatch', { tool_calls: [1] }],
  ['claude-code', 'PostToolBatch', { tool_calls: Array.from({ length: 1001 }, () => ({})) }],
  ['codex', 'PreToolUse', { session_id: undefined }],
  ['gemini', 'BeforeTool', { tool_input: undefined }],
  ['copilot', 'PreToolUse', { tool_name: [] }],
] as const)('%s: %s with %j is no call', (host, name, more) => {
  const { event: read } = readHookEvent(Buffer.from(event(name, more)));
  expect(() => HOOK_PROFILES[host].read(read, name)).toThrow(
    expect.objectContaining({ code: 'HOOK_INPUT_INVALID' }),
  );
});

describe('what a host is told', () => {
  const verdict = { effect: 'deny', reason: 'why' } as const;

  it('is in its own words', () => {
    const specific = {
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
      permissionDecisionReason: 'why',
    };
    expect(HOOK_PROFILES['claude-code'].answer(verdict)).toEqual({ hookSpecificOutput: specific });
    expect(HOOK_PROFILES.codex.answer(verdict)).toEqual({ hookSpecificOutput: specific });
    expect(HOOK_PROFILES.gemini.answer(verdict)).toEqual({ decision: 'deny', reason: 'why' });
    expect(HOOK_PROFILES.copilot.answer(verdict)).toEqual({
      permissionDecision: 'deny',
      permissionDecisionReason: 'why',
    });
  });

  it('allows with other parameters', () => {
    const rewrite = { effect: 'rewrite', reason: 'why', params: { command: 'ls' } } as const;
    expect(HOOK_PROFILES['claude-code'].answer(rewrite)).toEqual({
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'allow',
        permissionDecisionReason: 'why',
        updatedInput: { command: 'ls' },
      },
    });
    expect(HOOK_PROFILES.copilot.answer(rewrite)).toMatchObject({ modifiedArgs: { command: 'ls' } });
  });
});
