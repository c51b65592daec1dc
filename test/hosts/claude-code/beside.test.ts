/** What hook logs and transcripts of one session say together: when hooks were asked, and for whom. */

import { describe, expect, it } from 'vitest';
import { accountFor } from '../../../src/hosts/shared/account.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { claudeCode } from '../../../src/hosts/claude-code/index.js';
import { fileOf, found, linesOf, sample } from '../samples.js';

const SESSION = '7d3f0c52-0d0c-4a55-9b0e-6f6a4f3f1c11';
const hooks = sample('claude-code', 'hooks.jsonl');
const transcript = sample('claude-code', 'transcript.jsonl');

/** The hook log as hooks were told it, without times of its own. */
const untimed = fileOf(
  'hooks.jsonl',
  (linesOf(hooks) as { readonly input: object; readonly output?: object }[]).map(({ input, output }) => ({
    ...input,
    ...(output === undefined ? {} : { output }),
  })),
);

const timesOf = (files: readonly HostFile[]): Record<string, string> =>
  Object.fromEntries(claudeCode.read(files).claims.map(({ id, occurredAt }) => [id, occurredAt]));

describe('hooks that were logged without times', () => {
  it('have those of the same tool uses in the transcript: of the use what comes before, of the result what comes after', () => {
    const times = timesOf([untimed, transcript]);
    expect(times).toMatchObject({
      'pre_tool_use_decision:toolu_01sampleRead00000000001': '2026-11-20T09:00:04.548Z',
      'execution:toolu_01sampleRead00000000001': '2026-11-20T09:00:06.822Z',
      'permission_denied:toolu_01sampleWeb000000000004': '2026-11-20T09:00:23.151Z',
      'execution:toolu_01sampleEdit00000000005': '2026-11-20T09:00:31.247Z',
    });
  });

  it('are counted, and what no transcript dates is found each time', () => {
    const { findings } = claudeCode.read([untimed, transcript]);
    expect(findings.filter(({ code }) => code === 'TIME_OF_TRANSCRIPT')).toMatchObject([
      { severity: 'info', class: 'none', at: { file: 'hooks.jsonl', line: 3 } },
    ]);
    expect(findings.find(({ code }) => code === 'TIME_OF_TRANSCRIPT')?.actual).toContain('9 lines');
    const { byReason } = accountFor(claudeCode.read([untimed, transcript]).items);
    // Those about no tool, before anything that has a time.
    expect(byReason.get('TIME_NOT_STATED')).toBe(2);
    expect(findings.filter(({ code }) => code === 'TIME_NOT_STATED')).toHaveLength(4);
  });

  it('give the same decisions and executions as those that state times', () => {
    const said = (files: readonly HostFile[]): unknown =>
      claudeCode
        .read(files)
        .claims.filter(({ kind }) => kind !== 'evidence')
        .map(({ id, kind }) => [id, kind])
        .sort();
    expect(said([untimed, transcript])).toEqual(said([hooks, transcript]));
    expect(said([transcript, untimed])).toEqual(said([hooks, transcript]));
  });

  it('are not dated by the transcript of another session', () => {
    const other = fileOf(
      'other.jsonl',
      (linesOf(transcript) as object[]).map((line) => ({ ...line, sessionId: 'another' })),
    );
    const { findings } = claudeCode.read([untimed, other]);
    expect(findings.filter(({ code }) => code === 'TIME_NOT_STATED')).toHaveLength(13);
    expect(findings.filter(({ code }) => code === 'TIME_OF_TRANSCRIPT')).toEqual([]);
  });

  it('of a batch of tools have the time of its last result', () => {
    const batch = {
      hook_event_name: 'PostToolBatch',
      session_id: SESSION,
      tool_calls: [
        { tool_use_id: 'toolu_01sampleTest00000000002' },
        { tool_use_id: 'toolu_01sampleRead00000000001' },
      ],
    };
    const { claims } = claudeCode.read([fileOf('hooks.jsonl', [batch]), transcript]);
    expect(claims.find(({ id }) => id.startsWith('hook:'))?.occurredAt).toBe('2026-11-20T09:00:15.055Z');
  });

  it('state times that stand where they have any', () => {
    expect(timesOf([hooks, transcript])['execution:toolu_01sampleTest00000000002']).toBe(
      '2026-11-20T09:00:15.055Z',
    );
    expect(found(claudeCode.read([hooks, transcript]))).toEqual([]);
  });
});

describe('a subagent', () => {
  const use = (id: string): object => ({ type: 'tool_use', id, name: 'Bash', input: { command: 'ls' } });
  const line = (uuid: string, parentUuid: string | null, content: object, more: object = {}): object => ({
    type: 'tool_use_id' in content ? 'user' : 'assistant',
    timestamp: '2026-11-20T09:00:00.000Z',
    sessionId: SESSION,
    message: { content: [content] },
    ...{ uuid, parentUuid, ...more },
  });
  const result = (id: string): object => ({ type: 'tool_result', tool_use_id: id, content: '' });
  const principals = (files: readonly HostFile[]): Record<string, string> =>
    Object.fromEntries(claudeCode.read(files).claims.map(({ id, principalId }) => [id, principalId]));
  const OWN = `agent:claude-code/${SESSION}`;

  it('is a principal below the session, by the id that its transcript states or is named by', () => {
    const stated = fileOf('t.jsonl', [
      line('a', null, use('toolu_0')),
      line('b', null, use('toolu_1'), { isSidechain: true, agentId: 'ab12' }),
      line('c', 'b', result('toolu_1'), { isSidechain: true, agentId: 'ab12' }),
      line('d', 'a', result('toolu_0')),
    ]);
    expect(principals([stated])).toMatchObject({
      'execution:toolu_0': OWN,
      'tool_use:toolu_1': `${OWN}/ab12`,
      'execution:toolu_1': `${OWN}/ab12`,
    });
    const byName = fileOf('subagents/agent-ab12.jsonl', [
      line('b', null, use('toolu_1'), { isSidechain: true }),
      line('c', 'b', result('toolu_1'), { isSidechain: true }),
    ]);
    expect(principals([byName])['execution:toolu_1']).toBe(`${OWN}/ab12`);
  });

  it('is told apart from others where only sidechains are stated', () => {
    const file = fileOf('t.jsonl', [
      line('a', null, use('toolu_0'), { isSidechain: true }),
      line('b', null, use('toolu_1'), { isSidechain: true }),
      line('c', 'a', result('toolu_0'), { isSidechain: true }),
      line('d', 'b', result('toolu_1'), { isSidechain: true }),
    ]);
    expect(principals([file])).toMatchObject({
      'execution:toolu_0': `${OWN}/sidechain-a`,
      'execution:toolu_1': `${OWN}/sidechain-b`,
    });
  });

  it('is who hooks tell of, and whom its transcript names where they do not', () => {
    const hook = (event: string, more: object): object => ({
      ...{
        timestamp: '2026-11-20T09:00:00Z',
        session_id: SESSION,
        hook_event_name: event,
        tool_name: 'Bash',
      },
      ...{ tool_input: { command: 'ls' }, tool_use_id: 'toolu_1', ...more },
    });
    const output = { hookSpecificOutput: { permissionDecision: 'allow' } };
    const log = (more: object): HostFile =>
      fileOf('h.jsonl', [
        hook('PreToolUse', { output, ...more }),
        hook('PostToolUse', { tool_response: {}, ...more }),
      ]);
    const both = {
      'pre_tool_use_decision:toolu_1': `${OWN}/ab12`,
      'execution:toolu_1': `${OWN}/ab12`,
    };
    expect(principals([log({ agent_id: 'ab12' })])).toEqual(both);
    const sub = fileOf('t.jsonl', [line('b', null, use('toolu_1'), { isSidechain: true, agentId: 'ab12' })]);
    expect(principals([log({}), sub])).toMatchObject(both);
    expect(principals([log({})])['execution:toolu_1']).toBe(OWN);
  });
});
