/** Claude Code's hook logs and transcripts: what becomes of each line, who is heard first, and each rule broken. */

import { describe, expect, it } from 'vitest';
import { accountFor } from '../../../src/hosts/shared/account.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { claudeCode } from '../../../src/hosts/claude-code/index.js';
import { litellm } from '../../../src/hosts/litellm/index.js';
import { edited, fileOf, found, holdsForBrokenFiles, linesOf, sample, verifyPlan } from '../samples.js';

const hooks = sample('claude-code', 'hooks.jsonl');
const transcript = sample('claude-code', 'transcript.jsonl');

interface Hook {
  readonly timestamp?: string;
  readonly input: { readonly hook_event_name: string; readonly tool_use_id?: string };
  readonly output?: object;
}

/** The hook log with the lines that `change` makes of each; of the one that is about that event and the last characters of that id. */
function withHook(event: string, id: string, change: (line: Hook) => readonly object[]): HostFile {
  return fileOf(
    'hooks.jsonl',
    (linesOf(hooks) as Hook[]).flatMap((line) =>
      line.input.hook_event_name === event && (line.input.tool_use_id ?? '').endsWith(id)
        ? change(line)
        : [line],
    ),
  );
}

interface Line {
  readonly uuid?: string;
}

/** The transcript with another line for that number. */
function withLine(number: number, change: (line: Line) => readonly object[]): HostFile {
  return fileOf(
    'transcript.jsonl',
    (linesOf(transcript) as Line[]).flatMap((line, index) => (index + 1 === number ? change(line) : [line])),
  );
}

function sourceIds(files: readonly HostFile[]): string[] {
  return planImport(claudeCode, files).events.map(({ sourceId }) => sourceId);
}

describe('a hook log and its transcript', () => {
  it('say each decision and each execution once', async () => {
    const plan = planImport(claudeCode, [hooks, transcript]);
    const { byFile, byReason } = accountFor(plan.reading.items);
    expect(byFile.get('hooks.jsonl')).toEqual({ items: 13, mapped: 8, evidence: 5, repeated: 0, dropped: 0 });
    expect(byFile.get('transcript.jsonl')).toEqual({
      items: 15,
      mapped: 0,
      evidence: 9,
      repeated: 5,
      dropped: 1,
    });
    expect(Object.fromEntries(byReason)).toEqual({ NOT_A_MESSAGE: 1, RESULT_REPEATED: 5 });
    expect(plan.findings).toEqual([]);
    expect(plan.byType.get('authorization')).toBe(5);
    expect(plan.byType.get('execution')).toBe(3);
    const report = await verifyPlan(plan);
    expect(report.verdict).toBe('ok');
    expect(report.findings).toEqual([]);
  });

  it('are read alike in either order', () => {
    expect(sourceIds([transcript, hooks]).sort()).toEqual(sourceIds([hooks, transcript]).sort());
    expect(found(claudeCode.read([transcript, hooks]))).toEqual([]);
  });

  it('link executions to what allowed them, with what ran', () => {
    const { events } = planImport(claudeCode, [hooks, transcript]);
    const execution = events.find(({ sourceId }) =>
      sourceId.startsWith('execution:toolu_01sampleTest'),
    )!.event;
    const decision = events.find(({ sourceId }) =>
      sourceId.startsWith('permission_request_decision:'),
    )!.event;
    expect(decision).toMatchObject({ decision: 'allow', decision_code: 'PERMISSION_ALLOW' });
    expect(execution).toMatchObject({
      outcome: 'failure',
      auth_event_id: decision.event_id,
      meter_used: [
        { unit: 'calls', amount: { t: 'int', v: '1' } },
        { unit: 'time.ms', amount: { t: 'int', v: '3412' } },
      ],
      principal_id: 'agent:claude-code/7d3f0c52-0d0c-4a55-9b0e-6f6a4f3f1c11',
    });
    expect(execution['started_at']).toBeUndefined();
  });

  it('keep no parameters, no answers and no prompts', () => {
    const text = JSON.stringify(planImport(claudeCode, [hooks, transcript]).events);
    for (const content of ['npm test', 'rm -rf', 'Fix the cart', 'failing', 'example.com'])
      expect(text).not.toContain(content);
  });

  it('observe each tool use, and each message with all of its input', () => {
    const { observations } = claudeCode.read([hooks, transcript]);
    const tools = observations.filter(({ tool }) => tool !== undefined);
    expect(tools.map(({ tool, decision, outcome }) => [tool, decision, outcome])).toEqual(
      expect.arrayContaining([
        ['Read', 'allow', 'success'],
        ['Bash', 'allow', 'failure'],
        ['Bash', 'deny', undefined],
        ['WebFetch', 'deny', undefined],
        ['Edit', 'allow', 'success'],
      ]),
    );
    expect(tools).toHaveLength(5);
    const first = observations.find(({ callIds }) => callIds.includes('msg_01sample1'));
    expect(first).toMatchObject({
      callIds: ['msg_01sample1', 'req_01sample1'],
      meters: [
        { unit: 'tokens.input', amount: { v: '23697' } },
        { unit: 'tokens.output', amount: { v: '96' } },
        { unit: 'tokens.input.cache_read', amount: { v: '15030' } },
        { unit: 'tokens.input.cache_creation', amount: { v: '8655' } },
      ],
    });
    expect(observations).toHaveLength(11);
  });

  it('agree with what a proxy logged of the same message', () => {
    const tokens = (observations: ReturnType<typeof claudeCode.read>['observations']): unknown =>
      observations
        .find(({ callIds }) => callIds.includes('msg_01sample1'))
        ?.meters.filter(({ unit }) => ['tokens.input', 'tokens.output'].includes(unit));
    const proxied = litellm.read([sample('litellm', 'spend-logs.json')]);
    expect(tokens(proxied.observations)).toEqual(tokens(claudeCode.read([transcript]).observations));
  });
});

describe('a transcript by itself', () => {
  it('states denials, and of what ran no decision', async () => {
    const plan = planImport(claudeCode, [transcript]);
    expect(accountFor(plan.reading.items).total).toEqual({
      items: 15,
      mapped: 5,
      evidence: 9,
      repeated: 0,
      dropped: 1,
    });
    expect(found(plan)).toEqual(Array(3).fill('CC-7 DECISION_NOT_STATED'));
    const denials = plan.events.filter(({ kind }) => kind === 'action');
    expect(denials.map(({ event }) => [event['decision'], event['decision_code']])).toEqual([
      ['deny', 'HOOK_DENIED'],
      ['deny', 'PERMISSION_DENIED'],
    ]);
    const report = await verifyPlan(plan);
    expect(report.verdict).toBe('invalid');
    expect(new Set(report.findings.map(({ code }) => code))).toEqual(new Set(['AUTH_NOT_FOUND']));
  });

  it('has the same events for the same lines when it goes on', () => {
    const lines = linesOf(transcript);
    for (const length of [4, 5, 8, 12]) {
      const ids = (file: HostFile): unknown[] =>
        planImport(claudeCode, [file]).events.map(({ event }) => event.event_id);
      expect(ids(transcript)).toEqual(
        expect.arrayContaining(ids(fileOf(transcript.name, lines.slice(0, length)))),
      );
    }
  });

  it('repeats lines of the session that it goes on from', () => {
    const resumed = {
      name: 'resumed',
      bytes: Buffer.from(String(Buffer.from(transcript.bytes)).replaceAll('7d3f0c52', '8d3f0c52')),
    };
    const reading = claudeCode.read([transcript, resumed]);
    expect(accountFor(reading.items).byFile.get('resumed')).toMatchObject({ repeated: 14, dropped: 1 });
    expect(found(reading)).toEqual(found(claudeCode.read([transcript])));
  });

  it('has a rejection by the person as a denial', () => {
    const rejected = edited(
      transcript,
      '"content":"The file /home/dev/shop/src/cart.ts has been updated."',
      '"content":"The user doesn\'t want to proceed with this tool use. The tool use was rejected.","is_error":true',
    );
    const denial = claudeCode
      .read([rejected])
      .claims.find(({ id }) => id.startsWith('rejection:toolu_01sampleEdit'));
    expect(denial).toMatchObject({ decision: 'deny', decisionCode: 'USER_REJECTED' });
  });

  it('does not take the words of a denial for one where the tool had no error', () => {
    const printed = edited(
      transcript,
      '"content":"The file /home/dev/shop/src/cart.ts has been updated."',
      '"content":"The user doesn\'t want to proceed with this tool use."',
    );
    const ids = claudeCode.read([printed]).claims.map(({ id }) => id);
    expect(ids).toContain('execution:toolu_01sampleEdit00000000005');
  });
});

describe('a hook log by itself', () => {
  it('is read as hooks were told it, with what was answered on lines of their own', () => {
    const raw = (linesOf(hooks) as Hook[]).flatMap(({ input, output, timestamp }) => [
      { timestamp, ...input },
      ...(output === undefined ? [] : [{ timestamp, ...output }]),
    ]);
    const plan = planImport(claudeCode, [fileOf('raw.jsonl', raw)]);
    expect(found(plan)).toEqual([]);
    const kinds = (files: HostFile[]): unknown =>
      planImport(claudeCode, files)
        .events.filter(({ kind }) => kind !== 'evidence')
        .map(({ sourceId }) => sourceId);
    expect(kinds([fileOf('raw.jsonl', raw)])).toEqual(kinds([hooks]));
  });

  it('states no time unless whoever logged it did', () => {
    const raw = (linesOf(hooks) as Hook[]).map(({ input }) => input);
    const none = claudeCode.read([fileOf('raw.jsonl', raw)]);
    expect(none.claims).toEqual([]);
    expect(new Set(none.items.map(({ reason }) => reason))).toEqual(new Set(['TIME_NOT_STATED']));
    const given = claudeCode.read([fileOf('raw.jsonl', raw)], { occurredAt: '2026-11-20T09:00:00Z' });
    expect(given.claims.length).toBeGreaterThan(0);
  });

  it('links a permission request that names no tool use to what ran with its parameters', () => {
    const asked = (linesOf(hooks) as Hook[]).filter(({ input }) => input.hook_event_name !== 'PreToolUse');
    const { claims, observations } = claudeCode.read([fileOf('asked.jsonl', asked)]);
    const decision = claims.find(({ id }) => id.startsWith('permission_request_decision:unnamed:'));
    expect(claims).toContainEqual(
      expect.objectContaining({ id: 'execution:toolu_01sampleTest00000000002', authorization: decision!.id }),
    );
    expect(observations.filter(({ tool, callIds }) => tool === 'Bash' && callIds.length === 0)).toEqual([]);
  });

  it('has a block by exit status as a denial, and an answer in the older words', () => {
    const blocked = withHook('PreToolUse', 'Rm0000000000003', ({ output: _, ...line }) => [
      { ...line, exit_code: 2 },
    ]);
    const older = withHook('PreToolUse', 'Rm0000000000003', (line) => [
      { ...line, output: { decision: 'block' } },
    ]);
    for (const file of [blocked, older]) {
      expect(claudeCode.read([file]).claims).toContainEqual(
        expect.objectContaining({
          id: 'pre_tool_use_decision:toolu_01sampleRm0000000000003',
          decision: 'deny',
        }),
      );
    }
  });

  it('has the parameters that a hook put in their place as those that are allowed', () => {
    const output = {
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'allow',
        updatedInput: { file_path: '/tmp/other' },
      },
    };
    const changed = withHook('PreToolUse', 'Edit00000000005', (line) => [{ ...line, output }]);
    expect(found(claudeCode.read([changed]))).toEqual(['CC-8 PARAMS_CHANGED']);
  });

  it('keeps each of several lines that say the same, once for each file', () => {
    const stop = (linesOf(hooks) as Hook[]).at(-1)!;
    const twice = fileOf('twice.jsonl', [stop, stop]);
    const reading = claudeCode.read([twice, { ...twice, name: 'copy.jsonl' }]);
    expect(reading.claims).toHaveLength(2);
    expect(accountFor(reading.items).total).toMatchObject({ evidence: 2, repeated: 2 });
  });
});

const HOOK_RULES: readonly (readonly [string, HostFile])[] = [
  [
    'CC-1 DUPLICATE_TOOL_USE',
    withHook('PreToolUse', 'Web000000000004', (line) => [
      line,
      { ...line, input: { ...line.input, tool_name: 'Bash' } },
    ]),
  ],
  ['CC-2 RESULT_WITHOUT_USE', withHook('PreToolUse', 'Read00000000001', () => [])],
  [
    'CC-5 TWO_RESULTS',
    withHook('PostToolUse', 'Read00000000001', (line) => [
      line,
      { ...line, input: { ...line.input, tool_response: 'x' } },
    ]),
  ],
  [
    'CC-6 RAN_AFTER_DENIAL',
    withHook('PreToolUse', 'Rm0000000000003', (line) => [
      line,
      { ...line, output: {}, input: { ...line.input, hook_event_name: 'PostToolUse', tool_response: {} } },
    ]),
  ],
  [
    'CC-6 RAN_AFTER_DENIAL',
    withHook('PostToolUse', 'Edit00000000005', (line) => [
      line,
      { ...line, input: { ...line.input, hook_event_name: 'PermissionDenied' } },
    ]),
  ],
  ['CC-7 DECISION_NOT_STATED', withHook('PreToolUse', 'Edit00000000005', ({ output: _, ...line }) => [line])],
  [
    'CC-8 PARAMS_CHANGED',
    withHook('PostToolUse', 'Edit00000000005', (line) => [
      { ...line, input: { ...line.input, tool_input: { a: 1 } } },
    ]),
  ],
  [
    'CC-8 TOOL_CHANGED',
    withHook('PostToolUse', 'Edit00000000005', (line) => [
      { ...line, input: { ...line.input, tool_name: 'Write' } },
    ]),
  ],
  ['CC-9 RESULT_MISSING', withHook('PostToolUse', 'Edit00000000005', () => [])],
  [
    'CC-12 DECISION_UNKNOWN',
    withHook('PreToolUse', 'Test00000000002', (line) => [
      {
        ...line,
        output: { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'maybe' } },
      },
    ]),
  ],
];

it.each(HOOK_RULES)('finds %s in a hook log', (expected, file) => {
  const findings = found(claudeCode.read([file]));
  // Without its PreToolUse a result has lost its decision too.
  const besides = expected.startsWith('CC-2') ? ['CC-7 DECISION_NOT_STATED'] : [];
  expect(findings).toEqual([expected, ...besides]);
});

it('calls what is not allowed a violation, and what is cut a warning', async () => {
  const judged = (index: number): unknown =>
    claudeCode.read([HOOK_RULES[index][1]]).findings.map(({ severity, class: of }) => [severity, of]);
  expect(judged(3)).toEqual([['error', 'violation']]);
  expect(judged(8)).toEqual([['warning', 'none']]);
  const ran = await verifyPlan(planImport(claudeCode, [HOOK_RULES[3][1]]));
  expect(ran.verdict).toBe('violation');
  const changed = await verifyPlan(planImport(claudeCode, [HOOK_RULES[6][1]]));
  expect(changed.findings.map(({ code }) => code)).toEqual(['TOOL_PARAMS_MISMATCH']);
});

const TRANSCRIPT_RULES: readonly (readonly [string, HostFile])[] = [
  [
    'CC-1 DUPLICATE_TOOL_USE',
    edited(transcript, '"id":"toolu_01sampleRm0000000000003"', '"id":"toolu_01sampleRead00000000001"'),
  ],
  [
    'CC-2 RESULT_WITHOUT_USE',
    edited(transcript, '"tool_use_id":"toolu_01sampleEdit', '"tool_use_id":"toolu_01none'),
  ],
  [
    'CC-3 DUPLICATE_UUID',
    edited(
      transcript,
      '"uuid":"00000000-0000-4000-8000-000000000014"',
      '"uuid":"00000000-0000-4000-8000-000000000001"',
    ),
  ],
  [
    'CC-4 PARENT_NOT_FOUND',
    edited(
      transcript,
      '"parentUuid":"00000000-0000-4000-8000-000000000013"',
      '"parentUuid":"00000000-0000-4000-8000-000000000099"',
    ),
  ],
  [
    'CC-4 PARENT_AFTER_CHILD',
    edited(
      transcript,
      '"parentUuid":"00000000-0000-4000-8000-000000000012"',
      '"parentUuid":"00000000-0000-4000-8000-000000000014"',
    ),
  ],
  [
    'CC-5 TWO_RESULTS',
    withLine(5, (line) => [
      line,
      { ...(JSON.parse(JSON.stringify(line).replace('export', 'import')) as object), uuid: 'x' },
    ]),
  ],
  ['CC-9 RESULT_MISSING', withLine(5, () => [])],
  [
    'CC-10 RESULT_BEFORE_USE',
    edited(
      transcript,
      '"uuid":"00000000-0000-4000-8000-000000000012","timestamp":"2026-11-20T09:00:31',
      '"uuid":"00000000-0000-4000-8000-000000000012","timestamp":"2026-11-20T09:00:21',
    ),
  ],
  ['CC-11 USAGE_DISAGREES', edited(transcript, '"output_tokens":96', '"output_tokens":0')],
  ['CC-11 AMOUNT_INVALID', edited(transcript, '"output_tokens":96', '"output_tokens":-96')],
];

it.each(TRANSCRIPT_RULES)('finds %s in a transcript', (expected, file) => {
  const findings = found(claudeCode.read([file])).filter((each) => !each.startsWith('CC-7'));
  // What is renamed or removed leaves its use open, its answer without it, and its child without a parent.
  const besides: Readonly<Record<string, readonly string[]>> = {
    'CC-1 DUPLICATE_TOOL_USE': ['CC-2 RESULT_WITHOUT_USE'],
    'CC-2 RESULT_WITHOUT_USE': ['CC-9 RESULT_MISSING'],
    'CC-9 RESULT_MISSING': ['CC-4 PARENT_NOT_FOUND'],
  };
  expect([...findings].sort()).toEqual([expected, ...(besides[expected] ?? [])].sort());
});

it('finds that a hook and a transcript say otherwise how a tool ended', () => {
  const failed = edited(
    transcript,
    '"content":"The file /home/dev/shop/src/cart.ts has been updated."',
    '"content":"The file was not found.","is_error":true',
  );
  expect(found(claudeCode.read([hooks, failed]))).toEqual(['CC-5 OUTCOME_DISAGREES']);
});

it('finds that a transcript has a result of what a hook denied', () => {
  const ran = edited(
    transcript,
    '"content":"Permission to use WebFetch has been denied.","is_error":true',
    '"content":"12 EUR"',
  );
  expect(found(claudeCode.read([hooks, ran]))).toEqual(['CC-6 RAN_AFTER_DENIAL']);
});

it('recognises both kinds, and nothing else', () => {
  expect([hooks, transcript].map((file) => claudeCode.recognises(file))).toEqual([true, true]);
  expect(claudeCode.recognises(sample('otlp', 'traces.jsonl'))).toBe(false);
  expect(claudeCode.recognises(sample('litellm', 'spend-logs.jsonl'))).toBe(false);
});

it('reads whatever it is given', () => {
  holdsForBrokenFiles(claudeCode, [hooks, transcript]);
});
