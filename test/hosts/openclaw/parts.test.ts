/** Recordings in parts, in several imports, in other orders, given twice: what is in a ledger stands, and nothing counts twice. */

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openclaw } from '../../../src/hosts/openclaw/index.js';
import { accountFor } from '../../../src/hosts/shared/account.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { type ImportPlan, type KnownLedger, planImport } from '../../../src/hosts/shared/import.js';
import { hasRecordings } from '../recorded.js';
import {
  cli,
  edited,
  fileOf,
  findingsOf,
  hooks,
  hooksText,
  linesOf,
  transcript,
  transcriptText,
} from './kit.js';

/** What a ledger has after the plans, one after the other. */
function ledgerOf(...plans: readonly ImportPlan[]): KnownLedger {
  const sources = new Map<string, string>();
  const openEnds = new Set<string>();
  for (const { events } of plans)
    for (const { sourceId, event } of events) {
      sources.set(sourceId, `${event.event_id.alg}:${event.event_id.b64}`);
      if ('outcome' in event && event.outcome === 'unknown') openEnds.add(sourceId);
    }
  return { ledgerId: undefined, sources, openEnds };
}

const planOf = (files: readonly HostFile[], into?: KnownLedger): ImportPlan =>
  planImport(openclaw, files, into === undefined ? {} : { into });

const severeOf = ({ findings }: ImportPlan): string[] =>
  findings.filter(({ severity }) => severity !== 'info').map(({ rule, code }) => `${rule} ${code}`);

const kindsOf = ({ byType, events }: ImportPlan): object => ({
  authorizations: events.filter(({ kind }) => kind === 'action').length,
  executions: events.filter(({ kind }) => kind === 'execution').length,
  made: [...byType.values()].reduce((sum, count) => sum + count, 0),
});

const idsOf = ({ events }: ImportPlan): string[] =>
  events.map(({ sourceId, event }) => `${sourceId} ${event.event_id.b64}`).sort();

const ctx = { agentId: 'main', sessionKey: 'agent:main:main', sessionId: 's1' };

/** A line of a recording; times go up by `n`. */
function hook(n: number, name: string, event: object, returned: unknown = null): object {
  return { n, ts: 1795292352000 + n, hook: name, event, ctx, returned };
}

const before = (n: number, toolCallId: string | undefined, params: object, returned: unknown = null) =>
  hook(n, 'before_tool_call', { toolName: 'exec', params, runId: 'r1', toolCallId }, returned);
const after = (n: number, toolCallId: string | undefined, params: object, rest: object) =>
  hook(n, 'after_tool_call', { toolName: 'exec', params, runId: 'r1', toolCallId, ...rest });
const agentEvent = (n: number, seq: number, stream: string, data: object) =>
  hook(n, '@agent_event', {
    runId: 'r1',
    seq,
    stream,
    ts: 1795292352000 + n,
    data,
    sessionKey: ctx.sessionKey,
  });
const start = agentEvent(1, 1, 'lifecycle', { phase: 'start' });
const DONE = { content: [{ type: 'text', text: 'x' }], details: { status: 'completed', exitCode: 0 } };

describe.skipIf(!hasRecordings)('a recording in parts', () => {
  it('gives the same events in two imports as in one', () => {
    const text = hooksText();
    const lines = text.trimEnd().split('\n');
    const whole = idsOf(planOf([hooks(text)]));
    for (let count = 1; count < lines.length; count++) {
      const [first, rest] = [lines.slice(0, count), lines.slice(count)].map((part) => `${part.join('\n')}\n`);
      const one = planOf([fileOf('1.jsonl', first)]);
      const two = planOf([fileOf('2.jsonl', rest)], ledgerOf(one));
      const bad = [one, two].flatMap(({ findings }) =>
        findings.filter(({ severity }) => severity === 'error'),
      );
      expect([count, bad]).toEqual([count, []]);
      // The hooks of a result are evidence of their own where the call was in the part before.
      const both = [...idsOf(one), ...idsOf(two)].filter((id) => !id.startsWith('hook:'));
      const all = whole.filter((id) => !id.startsWith('hook:'));
      const isInError = (count >= 32 && count < 35) || (count >= 52 && count < 55);
      // Between a call and its error: nobody can tell then whether that is the block's, so it is no execution.
      if (isInError)
        expect(both.filter((id) => !all.includes(id))).toEqual([expect.stringMatching(/^result:/)]);
      else expect([count, ...both.sort()]).toEqual([count, ...all]);
    }
  });

  it('adds to a ledger that has the hooks what only the transcript has', () => {
    const one = planOf([hooks(hooksText())]);
    const two = planOf([transcript(transcriptText())], ledgerOf(one));
    expect(severeOf(two).filter((code) => code !== 'OC-11 DECISION_NOT_RECORDED')).toEqual([]);
    expect(kindsOf(two)).toEqual({ authorizations: 0, executions: 0, made: 18 });
    expect([two.events.length, two.existing, two.conflicting]).toEqual([5, 13, 0]);
    // What changed since then is still a conflict.
    const changed = edited(transcriptText(), (line) => line.replace('"input":103', '"input":999'));
    const three = planOf([transcript(changed)], ledgerOf(planOf([transcript(transcriptText())])));
    expect(severeOf(three)).toContain('INPUT SOURCE_CONFLICT');
  });

  it('adds decisions to a ledger that has the transcript, and says what is known later', () => {
    const one = planOf([transcript(transcriptText())]);
    const two = planOf([hooks(hooksText()), transcript(transcriptText()), cli('{}')], ledgerOf(one));
    expect(severeOf(two)).toEqual(Array<string>(4).fill('INPUT OUTCOME_KNOWN_LATER'));
    // The read that failed: a transcript does not show that it ran.
    expect(kindsOf(two)).toMatchObject({ authorizations: 6, executions: 1 });
  });

  it('counts nothing twice that is given twice, or in parts that overlap, in whatever order', () => {
    const lines = hooksText().trimEnd().split('\n');
    const part = (name: string, from: number, to?: number): HostFile =>
      fileOf(name, `${lines.slice(from, to).join('\n')}\n`);
    const whole = idsOf(planOf([hooks(hooksText())]));
    const given = [
      [part('a', 0), part('b', 0)],
      [part('a', 0, 40), part('b', 29)],
      [part('b', 40), part('a', 0, 40)],
      [fileOf('a', hooksText() + hooksText())],
    ];
    for (const files of given) {
      const plan = planOf(files);
      expect(severeOf(plan)).toEqual([]);
      expect(idsOf(plan)).toEqual(whole);
    }
    const text = transcriptText();
    const twice = planOf([fileOf('b', text), fileOf('a', text)]);
    expect(idsOf(twice)).toEqual(idsOf(planOf([transcript(text)])));
    const longer = planOf([fileOf('a', text.split('\n').slice(0, 8).join('\n')), fileOf('b', text)]);
    expect(idsOf(longer)).toEqual(idsOf(planOf([transcript(text)])));
    expect(severeOf(longer).filter((code) => code !== 'OC-11 DECISION_NOT_RECORDED')).toEqual([
      'OC-5 CALL_WITHOUT_RESULT',
    ]);
  });

  it('finds one thing wrong where a transcript has an entry twice', () => {
    const twice = edited(transcriptText(), (line) =>
      line.includes('"13eca0cd","parentId"') ? `${line}\n${line}` : line,
    );
    expect(findingsOf([transcript(twice)]).filter((code) => code.startsWith('OC-5'))).toEqual([
      'OC-5 ENTRY_ID_REUSED',
    ]);
  });

  it('takes a transcript without its beginning for a part of one', () => {
    const rest = transcriptText().split('\n').slice(6).join('\n');
    const reading = openclaw.read([transcript(rest)]);
    const errors = reading.findings.filter(
      ({ severity, lacks }) => severity === 'error' && lacks === undefined,
    );
    expect(errors).toEqual([]);
    expect(findingsOf([transcript(rest)])).toContain('OC-5 RESULT_WITHOUT_CALL');
  });
});

describe('calls that hooks do not show the end of', () => {
  const call = (returned: unknown, result: object, isError = false) => [
    start,
    before(2, 'c1', { a: 1 }, returned),
    agentEvent(3, 2, 'tool', { phase: 'result', name: 'exec', toolCallId: 'c1', isError, result }),
    agentEvent(4, 3, 'lifecycle', { phase: 'end' }),
  ];
  const runsOf = (lines: readonly object[]) =>
    openclaw.read([hooks(linesOf(...lines))]).claims.filter(({ kind }) => kind === 'execution');

  it('have what agent events say of it', () => {
    expect(runsOf(call(null, DONE))).toMatchObject([
      { id: 'event-run:s1/c1', authorization: 'decision:s1/c1', outcome: 'success' },
    ]);
    expect(findingsOf([hooks(linesOf(...call(null, DONE)))])).toEqual(['OC-1 END_NOT_RECORDED']);
  });

  it('are a violation where they were blocked', () => {
    const blocked = call({ block: true, blockReason: 'no' }, DONE);
    expect(findingsOf([hooks(linesOf(...blocked))])).toEqual(['OC-2 EXECUTED_AFTER_BLOCK']);
    expect(runsOf(blocked)).toMatchObject([{ authorization: 'decision:s1/c1' }]);
    const held = call({ block: true, blockReason: 'no' }, { details: { status: 'error' } }, true);
    expect(findingsOf([hooks(linesOf(...held))])).toEqual([]);
    expect(runsOf(held)).toEqual([]);
  });

  it('are not over while the run goes on', () => {
    expect(runsOf(call(null, DONE).slice(0, 3))).toEqual([]);
  });

  it('contradict a block that hooks show', () => {
    const echo = after(3, 'c1', { a: 1 }, { error: 'no', result: { details: { status: 'error' } } });
    const [first, announced, ran, last] = call({ block: true, blockReason: 'no' }, DONE);
    expect(findingsOf([hooks(linesOf(first, announced, echo, ran, last))])).toEqual([
      'OC-12 RESULTS_DISAGREE',
    ]);
  });
});

it('does not take an error for a run where nothing shows the decision', () => {
  const error = { error: 'no', result: { details: { status: 'error' } } };
  const reading = openclaw.read([hooks(linesOf(start, after(2, 'c1', {}, error)))]);
  expect(reading.claims.filter(({ kind }) => kind === 'execution')).toEqual([]);
  expect(reading.findings.filter(({ severity }) => severity === 'error')).toMatchObject([
    { rule: 'OC-1', code: 'BEFORE_MISSING' },
  ]);
  const loop = { result: { details: { status: 'blocked', deniedReason: 'tool-loop' } } };
  const lines = linesOf(start, after(2, 'c1', {}, loop), agentEvent(3, 2, 'lifecycle', { phase: 'end' }));
  expect(findingsOf([hooks(lines)])).toEqual([]);
  const unfit = { error: 'Validation failed for tool "exec":', result: { details: {} } };
  const unasked = linesOf(start, after(2, 'c1', {}, unfit), agentEvent(3, 2, 'lifecycle', { phase: 'end' }));
  expect(findingsOf([hooks(unasked)])).toEqual([]);
  expect(openclaw.read([hooks(unasked)]).claims.map(({ kind }) => kind)).not.toContain('execution');
});

it('knows a call without an id by what was asked for', () => {
  const asked = { phase: 'start', name: 'exec', toolCallId: 'c1', args: { a: 1 } };
  const lines = [
    start,
    agentEvent(2, 2, 'tool', asked),
    before(3, undefined, { a: 1 }, { params: { a: 2 } }),
    agentEvent(4, 3, 'tool', { ...asked, phase: 'result', args: undefined, isError: false, result: DONE }),
    after(5, undefined, { a: 2 }, { result: DONE }),
    agentEvent(6, 4, 'lifecycle', { phase: 'end' }),
  ];
  const isEvent = (line: object): boolean => 'hook' in line && line.hook === '@agent_event';
  const apart = [lines.filter((line) => !isEvent(line)), lines.filter(isEvent)].map((part, i) =>
    fileOf(`${i}.jsonl`, linesOf(...part)),
  );
  for (const files of [[hooks(linesOf(...lines))], apart, [...apart].reverse()]) {
    expect(openclaw.read(files).claims.filter(({ kind }) => kind === 'execution')).toHaveLength(1);
    expect(findingsOf(files)).toEqual(['OC-1 CALL_ID_NOT_STATED']);
  }
});

describe('approvals', () => {
  const asking = (requireApproval: object) => before(2, 'c1', {}, { requireApproval });
  const resolved = (decision: string) =>
    hook(3, 'approval_resolved', { runId: 'r1', toolCallId: 'c1', decision });
  const end = agentEvent(5, 2, 'lifecycle', { phase: 'end' });

  it('that nobody answered let a call run where the hook said so', () => {
    const ran = after(4, 'c1', {}, { result: DONE });
    const lines = (behavior: string) =>
      linesOf(start, asking({ timeoutBehavior: behavior }), resolved('timeout'), ran, end);
    expect(findingsOf([hooks(lines('allow'))])).toEqual([]);
    expect(findingsOf([hooks(lines('deny'))])).toEqual(['OC-2 EXECUTED_AFTER_BLOCK']);
  });

  it('that were refused and are not recorded show in the error', () => {
    const error = { error: 'Denied by user', result: { details: { status: 'error' } } };
    const file = hooks(linesOf(start, asking({}), after(4, 'c1', {}, error), end));
    expect(findingsOf([file])).toEqual([]);
    expect(openclaw.read([file]).claims.some(({ kind }) => kind === 'execution')).toBe(false);
  });
});

it('tells the next run of a session from the one before in a file of its own', () => {
  const run = (n: number) => [
    { runId: 'r1', seq: 1, stream: 'lifecycle', ts: 1795292352000 + n, data: { phase: 'start' } },
    { runId: 'r1', seq: 2, stream: 'lifecycle', ts: 1795292352001 + n, data: { phase: 'end' } },
  ];
  const one = planOf([fileOf('1', linesOf(...run(0)))]);
  const two = planOf([fileOf('2', linesOf(...run(500)))], ledgerOf(one));
  expect([two.events.length, ...severeOf(two)]).toEqual([2]);
  expect(accountFor(two.reading.items).total.dropped).toBe(0);
});

it('adds to a ledger that has the audit records no call twice', () => {
  const fingerprint = `sha256:${createHash('sha256').update('c1').digest('hex')}`;
  const audit = {
    ...{ schemaVersion: 1, sequence: 1, eventId: 'e1', occurredAt: 1795292352000, kind: 'tool_action' },
    ...{ action: 'tool.action.finished', status: 'succeeded', agentId: 'main', sessionId: 's1', runId: 'r1' },
    ...{ toolCallId: fingerprint, toolName: 'exec' },
  };
  const one = planOf([fileOf('audit.jsonl', linesOf(audit))]);
  const lines = linesOf(start, before(2, 'c1', {}), after(3, 'c1', {}, { result: DONE }));
  const two = planOf([hooks(lines)], ledgerOf(one));
  expect(kindsOf(one)).toMatchObject({ authorizations: 0, executions: 1 });
  expect(kindsOf(two)).toMatchObject({ authorizations: 1, executions: 0 });
  expect([two.existing, two.conflicting]).toEqual([1, 0]);
});
