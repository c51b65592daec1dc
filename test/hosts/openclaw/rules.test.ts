/** Each rule, broken by one edit of the recorded run; and nothing else is found. */

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openclaw } from '../../../src/hosts/openclaw/index.js';
import { hasRecordings } from '../recorded.js';
import {
  cli,
  cliText,
  edited,
  findingsOf,
  fileOf,
  hooks,
  hooksText,
  imported,
  linesOf,
  RUN_ID,
  transcript,
  transcriptText,
} from './kit.js';

/** Edits the line of the recording that has this number. */
const hookLine = (n: number, edit: (line: string) => string | undefined): string =>
  edited(hooksText(), (line) => (line.startsWith(`{"n":${n},`) ? edit(line) : line));

const without = (...numbers: readonly number[]): string =>
  edited(hooksText(), (line) => (numbers.some((n) => line.startsWith(`{"n":${n},`)) ? undefined : line));

const fingerprint = (callId: string): string => `sha256:${createHash('sha256').update(callId).digest('hex')}`;

/** Audit records of the recorded run, as 2026.9 would write them. */
function auditOf(...calls: readonly (readonly [string, string])[]): string {
  let sequence = 0;
  const row = (action: string, status: string, callId: string): object => ({
    ...{ schemaVersion: 1, sequence: ++sequence, eventId: `e${sequence}`, sourceSequence: sequence },
    ...{
      occurredAt: 1795292353500 + sequence,
      redaction: 'metadata_only',
      actor: { type: 'agent', id: 'main' },
    },
    ...{ agentId: 'main', runId: RUN_ID, sessionId: RUN_ID, kind: 'tool_action', action, status },
    ...{ toolCallId: fingerprint(callId), toolName: 'exec' },
  });
  return linesOf(
    ...calls.flatMap(([callId, status]) => [
      row('tool.action.started', 'started', callId),
      row('tool.action.finished', status, callId),
    ]),
  );
}

const ALL_CALLS = [
  ['call_0', 'succeeded'],
  ['call_1', 'succeeded'],
  ['call_2', 'blocked'],
  ['call_3', 'succeeded'],
  ['call_4', 'failed'],
  ['call_5', 'succeeded'],
] as const;

describe.skipIf(!hasRecordings)('rules of OpenClaw', () => {
  it('OC-1: an end without its announcement', async () => {
    const files = [hooks(without(12))];
    expect(findingsOf(files)).toEqual(['OC-1 BEFORE_MISSING']);
    const { plan } = await imported(files);
    const run = plan.reading.claims.find(({ id }) => id === `run:${RUN_ID}/call_0`);
    expect(run).toMatchObject({ kind: 'execution', authorization: undefined });
  });

  it('OC-1: an end of another run', () => {
    const other = hookLine(15, (line) => line.replaceAll(`"runId":"${RUN_ID}"`, '"runId":"r2"'));
    expect(findingsOf([hooks(other)])).toEqual(['OC-1 END_NOT_RECORDED', 'OC-1 BEFORE_MISSING']);
  });

  it('OC-1: two ends of one call', () => {
    const twice = hookLine(15, (line) => `${line}\n${line.replace('"durationMs":43', '"durationMs":44')}`);
    expect(findingsOf([hooks(twice)])).toEqual(['OC-1 CALL_ENDED_TWICE']);
  });

  it('OC-1: a recording that ends before the call does', () => {
    const lines = hooksText().split('\n').slice(0, 61).join('\n');
    expect(findingsOf([hooks(`${lines}\n`)])).toEqual(['OC-6 RUN_NOT_ENDED', 'OC-1 END_NOT_RECORDED']);
  });

  it('OC-2: a result after a block', async () => {
    const ran = hookLine(35, (line) =>
      line
        .replace(/,"error":"nr-test: destructive command","durationMs"/, ',"durationMs"')
        .replace(/"details":\{.*?\}/, '"details":{"status":"completed","exitCode":0}'),
    );
    expect(findingsOf([hooks(ran)])).toEqual(['OC-2 EXECUTED_AFTER_BLOCK']);
    const blocked = hookLine(21, (line) =>
      line.replace('"returned":null', '"returned":{"block":true,"blockReason":"no"}'),
    );
    expect(findingsOf([hooks(blocked)])).toEqual(['OC-2 EXECUTED_AFTER_BLOCK']);
    const { report } = await imported([hooks(blocked)]);
    expect(report.findings.map(({ code }) => code)).toContain('EXECUTION_UNDER_DENY');
  });

  it('OC-2: an approval that nobody gave', () => {
    const approval = '{"requireApproval":{"title":"t","description":"d","severity":"info"}}';
    const asked = hookLine(21, (line) => line.replace('"returned":null', `"returned":${approval}`));
    expect(findingsOf([hooks(asked)])).toEqual(['OC-2 EXECUTED_BEFORE_APPROVAL']);
    const resolved = (decision: string): string =>
      edited(asked, (line) =>
        line.startsWith('{"n":21,')
          ? `${line}\n${JSON.stringify({ n: 21.5, ts: 1795292353057, hook: 'approval_resolved', event: { runId: RUN_ID, toolCallId: 'call_1', decision }, ctx: null, returned: null })}`
          : line,
      );
    expect(findingsOf([hooks(resolved('allow-once'))])).toEqual([]);
    expect(findingsOf([hooks(resolved('deny'))])).toEqual(['OC-2 EXECUTED_AFTER_BLOCK']);
    const { claims } = openclaw.read([hooks(resolved('allow-once'))]);
    expect(claims.filter(({ kind }) => kind === 'action').slice(1, 3)).toMatchObject([
      { decision: 'deny', decisionCode: 'OPENCLAW_PENDING_APPROVAL' },
      { decision: 'allow', decisionCode: 'OPENCLAW_APPROVAL_ALLOW_ONCE' },
    ]);
    expect(claims.find(({ id }) => id === `run:${RUN_ID}/call_1`)).toMatchObject({
      authorization: `approval:${RUN_ID}/call_1`,
    });
  });

  it('OC-3: other parameters, and another tool', async () => {
    const other = hookLine(46, (line) =>
      line.replace('"params":{"command":"echo rewritten"}', '"params":{"command":"echo REWRITE"}'),
    );
    expect(findingsOf([hooks(other)])).toEqual(['OC-3 PARAMS_DIFFER']);
    const { report } = await imported([hooks(other)]);
    expect(report.findings.map(({ code }) => code)).toContain('TOOL_PARAMS_MISMATCH');
    const tool = hookLine(15, (line) =>
      line.replace('"event":{"toolName":"read"', '"event":{"toolName":"write"'),
    );
    expect(findingsOf([hooks(tool)])).toEqual(['OC-3 TOOL_DIFFERS']);
  });

  it('OC-3: parameters that a hook returns are put over those that were asked for', () => {
    const partial = edited(hooksText(), (line) =>
      line.startsWith('{"n":41,')
        ? line.replace(
            '"params":{"command":"echo REWRITE"}',
            '"params":{"command":"echo REWRITE","cwd":"/x"}',
          )
        : line.startsWith('{"n":46,')
          ? line.replace(
              '"params":{"command":"echo rewritten"}',
              '"params":{"cwd":"/x","command":"echo rewritten"}',
            )
          : line,
    ).replaceAll('"args":{"command":"echo REWRITE"}', '"args":{"command":"echo REWRITE","cwd":"/x"}');
    expect(findingsOf([hooks(partial)])).toEqual([]);
  });

  it('OC-4: a gap, another event of the same number, and no number', () => {
    expect(findingsOf([hooks(without(19, 20))])).toEqual(['OC-4 SEQ_GAP']);
    const other = hookLine(20, (line) => line.replace('echo hi', 'echo ho'));
    expect(findingsOf([hooks(other)])).toEqual(['OC-4 SEQ_CONFLICT']);
    const none = hookLine(68, (line) => line.replace('"seq":16', '"seq":0'));
    expect(findingsOf([hooks(none)])).toEqual(['OC-4 SEQ_INVALID']);
  });

  it('OC-4: an agent event that comes once is no gap', () => {
    expect(findingsOf([hooks(without(20, 71))])).toEqual([]);
  });

  it('OC-5: a broken chain, a result without its call, a call without its result', () => {
    const broken = edited(transcriptText(), (line) =>
      line.replace('"parentId":"c7559cff"', '"parentId":"00000000"'),
    );
    const rest = findingsOf([transcript(transcriptText())]);
    const beyond = (text: string): string[] => {
      const found = findingsOf([transcript(text)]);
      for (const finding of rest) if (found.includes(finding)) found.splice(found.indexOf(finding), 1);
      return found;
    };
    expect(beyond(broken)).toEqual(['OC-5 PARENT_MISSING']);
    const renamed = edited(transcriptText(), (line) =>
      line.includes('"id":"c7559cff"')
        ? line.replace('"toolCallId":"call_0"', '"toolCallId":"call_9"')
        : line,
    );
    expect(beyond(renamed)).toEqual(['OC-5 CALL_WITHOUT_RESULT', 'OC-5 RESULT_WITHOUT_CALL']);
    const reused = edited(transcriptText(), (line) => line.replace('"id":"33bb3274"', '"id":"1f3c0712"'));
    expect(beyond(reused)).toEqual(['OC-5 ENTRY_ID_REUSED']);
    const cut = `${transcriptText().split('\n').slice(0, 16).join('\n')}\n`;
    expect(beyond(cut)).toEqual(['OC-5 CALL_WITHOUT_RESULT']);
  });

  it('OC-6: a run without its start, without its end, and events after it', () => {
    const unstarted = edited(hooksText(), (line) =>
      line.replace(
        '"stream":"lifecycle","data":{"phase":"start"',
        '"stream":"lifecycle","data":{"phase":"begin"',
      ),
    );
    expect(findingsOf([hooks(unstarted)])).toEqual(['OC-6 RUN_NOT_STARTED']);
    expect(findingsOf([hooks(without(70, 71))])).toEqual(['OC-6 RUN_NOT_ENDED']);
    const late = edited(hooksText(), (line) =>
      line
        .replace(
          '"data":{"text":"done: all tool steps ran","delta":"done: all tool steps ran"},"sessionKey":"agent:main:main","seq":16',
          '"data":{},"sessionKey":"agent:main:main","seq":18',
        )
        .replace(
          '"data":{"phase":"end","endedAt":1795292353414},"sessionKey":"agent:main:main","seq":17',
          '"data":{"phase":"end"},"sessionKey":"agent:main:main","seq":16',
        ),
    );
    expect(findingsOf([hooks(late)]).sort()).toEqual(['OC-4 SEQ_GAP', 'OC-4 SEQ_ORDER']);
    const after = hookLine(
      71,
      (line) => `${line}\n${line.replace('"seq":17', '"seq":18').replace('lifecycle', 'assistant')}`,
    );
    expect(findingsOf([hooks(after)])).toEqual(['OC-6 EVENT_AFTER_END']);
  });

  it('OC-7: audit records that are missing make it incomplete, not wrong', () => {
    const whole = auditOf(...ALL_CALLS);
    expect(findingsOf([hooks(hooksText()), fileOf('audit.jsonl', whole)])).toEqual([]);
    const lines = whole.split('\n');
    const gap = [...lines.slice(0, 2), ...lines.slice(3)].join('\n');
    const files = [hooks(hooksText()), fileOf('audit.jsonl', gap)];
    expect(findingsOf(files)).toEqual(['OC-7 AUDIT_INCOMPLETE', 'OC-7 START_MISSING']);
    expect(openclaw.read(files).findings.every(({ class: of }) => of === 'none')).toBe(true);
    const conflict = `${whole}${lines[0].replace('call', 'cell').replace('"eventId":"e1"', '"eventId":"e0"')}\n`;
    expect(findingsOf([hooks(hooksText()), fileOf('audit.jsonl', conflict)])).toEqual([
      'OC-7 SEQUENCE_CONFLICT',
    ]);
  });

  it('OC-8: calls that only the hooks or only the audit has', () => {
    const audit = (...calls: readonly (readonly [string, string])[]) => [
      hooks(hooksText()),
      fileOf('audit.jsonl', auditOf(...calls)),
    ];
    expect(findingsOf(audit(...ALL_CALLS.slice(0, 5)))).toEqual(['OC-8 CALL_NOT_IN_AUDIT']);
    expect(findingsOf(audit(...ALL_CALLS, ['call_9', 'succeeded']))).toEqual([
      'OC-8 CALL_NOT_IN_HOOKS',
      'OC-11 DECISION_NOT_RECORDED',
    ]);
  });

  it('OC-10: sums that are not those of the messages', () => {
    const sum = hookLine(73, (line) => line.replace('"usage":{"input":721,', '"usage":{"input":720,'));
    expect(findingsOf([hooks(sum)])).toEqual(['OC-10 TOKEN_SUM_DIFFERS']);
    const all = (text: string) => [hooks(hooksText()), transcript(transcriptText()), cli(text)];
    expect(findingsOf(all(cliText().replace('"output": 140', '"output": 141')))).toEqual([
      'OC-10 TOKEN_SUM_DIFFERS',
    ]);
    const usage = edited(transcriptText(), (line) =>
      line.replace('"usage":{"input":103,', '"usage":{"input":1,'),
    );
    expect(findingsOf([hooks(hooksText()), transcript(usage)])).toEqual(['OC-10 USAGE_DIFFERS']);
    expect(findingsOf([transcript(usage), cli(cliText())])).toContain('OC-10 TOKEN_SUM_DIFFERS');
    expect(findingsOf([transcript(transcriptText()), cli(cliText())])).not.toContain(
      'OC-10 TOKEN_SUM_DIFFERS',
    );
  });

  it('OC-10: the sum stands for messages that a recording has not', () => {
    const sums = edited(hooksText(), (line) =>
      line.includes('"before_message_write"') || line.includes('"agent_end"') ? undefined : line,
    );
    const { claims } = openclaw.read([hooks(sums)]);
    const models = claims.filter(({ id }) => id.startsWith('llm'));
    expect(models).toMatchObject([{ id: `llm-run:${RUN_ID}/${RUN_ID}`, outcome: 'success' }]);
    expect(findingsOf([hooks(sums), transcript(transcriptText())])).toEqual([]);
    const usage = edited(transcriptText(), (line) =>
      line.replace('"usage":{"input":103,', '"usage":{"input":1,'),
    );
    expect(findingsOf([hooks(sums), transcript(usage)])).toEqual(['OC-10 TOKEN_SUM_DIFFERS']);
  });

  it('OC-11: a recording that does not say what the hook returned shows no decision', () => {
    const silent = hookLine(12, (line) => line.replace(',"returned":null', ''));
    expect(findingsOf([hooks(silent)])).toEqual(['OC-11 DECISION_NOT_RECORDED']);
    const { claims } = openclaw.read([hooks(silent)]);
    expect(claims.find(({ id }) => id === `run:${RUN_ID}/call_0`)).toMatchObject({
      authorization: undefined,
    });
  });

  it('OC-11: block false is no decision', () => {
    const undecided = hookLine(12, (line) => line.replace('"returned":null', '"returned":{"block":false}'));
    const { claims } = openclaw.read([hooks(undecided)]);
    expect(claims.find(({ id }) => id === `decision:${RUN_ID}/call_0`)).toMatchObject({
      decisionCode: 'OPENCLAW_NO_DECISION',
    });
  });

  it('OC-12: sources that disagree', () => {
    const args = edited(transcriptText(), (line) =>
      line.replace('"arguments":{"command":"echo hi"}', '"arguments":{"command":"echo ho"}'),
    );
    expect(findingsOf([hooks(hooksText()), transcript(args)])).toEqual(['OC-12 ARGUMENTS_DIFFER']);
    const text = edited(transcriptText(), (line) => line.replace('hello world', 'hello'));
    expect(findingsOf([hooks(hooksText()), transcript(text)])).toEqual(['OC-12 RESULTS_DIFFER']);
    const failed = edited(transcriptText(), (line) =>
      line.includes('"id":"c22c0349"') ? line.replace('"isError":false', '"isError":true') : line,
    );
    expect(findingsOf([hooks(hooksText()), transcript(failed)])).toEqual(['OC-12 RESULTS_DISAGREE']);
    const asked = edited(hooksText(), (line) =>
      line.includes('"@agent_event"')
        ? line.replace('"args":{"path":"hello.txt"}', '"args":{"path":"hallo.txt"}')
        : line,
    );
    expect(findingsOf([hooks(asked)])).toEqual(['OC-12 ARGUMENTS_DIFFER']);
    const audited = auditOf(
      ...ALL_CALLS.map(([id, status]) => [id, id === 'call_1' ? 'blocked' : status] as const),
    );
    expect(findingsOf([hooks(hooksText()), fileOf('audit.jsonl', audited)])).toEqual([
      'OC-12 RESULTS_DISAGREE',
    ]);
  });

  it('OC-13: times that go back', () => {
    const back = hookLine(66, (line) => line.replace('"ts":1795292353389', '"ts":1795292353000'));
    expect(findingsOf([hooks(back)])).toEqual(['OC-13 TIME_REGRESSION']);
  });
});
