/**
 * Every code of linkage and bounds: a shortest sequence that gives it and nothing else, and the nearest ones that do not; then
 * the rules of SPEC §8, sentence by sentence.
 */

import { describe, expect, test } from 'vitest';
import { findUnsound } from '../../src/rules/bounds/grant.js';
import { buildEvent, type AnyEvent } from '../../src/format/event/build.js';
import {
  findBalance,
  listGrants,
  listOpenAuthorizations,
  listOpenStarts,
} from '../../src/rules/report/accounts.js';
import { meters } from '../../src/base/value/meter.js';
import { formatQuantity, type Quantity } from '../../src/base/value/quantity.js';
import type { VerifyState } from '../../src/rules/verify/state.js';
import {
  RELEASE,
  digestOf,
  judge as judgeAll,
  makeAction,
  makeAdjustment,
  makeExecution,
  makeGrant,
  makeStart,
  malformed,
  number,
  type AmountsByUnit,
  type BoundsDraft,
  type Judged,
  type Members,
} from './support.js';

const rat = (n: bigint, d: bigint): Quantity => ({ t: 'rat', n: String(n), d: String(d) });
const double = (value: number): Quantity => {
  const bits = Buffer.alloc(8);
  bits.writeDoubleBE(value);
  return { t: 'f64', bits: bits.toString('hex') };
};
const at = (time: string): Members => ({ occurred_at: `2026-01-01T${time}Z` });
const started = (time: string): Members => ({ started_at: `2026-01-01T${time}Z` });
const ran = (from: string, to: string): Members => ({ ...started(from), ended_at: `2026-01-01T${to}Z` });
const deny = { decision: 'deny', decision_code: 'NO' };
const failed = { outcome: 'failure', error_code: 'BLOCKED' };
const other = { principal_id: 'agent:a2' };
const note = buildEvent(
  { event_type: 'x.note' },
  { principalId: 'agent:a1', occurredAt: '2026-01-01T12:00:00Z' },
);
/** Most executions here start after noon, and are recorded at noon: that warning has a test of its own. */
function judge(events: readonly AnyEvent[]): Judged {
  const judged = judgeAll(events);
  const findings = judged.findings.map((list) => list.filter(({ code }) => code !== 'TIME_INCONSISTENT'));
  return { ...judged, findings };
}

/** The codes of each event, in the order in which they were found. */
function codesOf(...events: AnyEvent[]): string[][] {
  return judge(events).findings.map((list) => list.map(({ code }) => code));
}

/** The codes of the last event, the others having none. */
function codesOfLast(...events: AnyEvent[]): string[] {
  const codes = codesOf(...events);
  expect(codes.slice(0, -1).flat()).toEqual([]);
  return codes.at(-1) as string[];
}

function verdictOfLast(...events: AnyEvent[]): string | undefined {
  return judge(events).verdicts.at(-1);
}

/** `used/reserved/left` of a grant's unit. */
function balance(state: VerifyState, grant: AnyEvent, unit = 'usd'): string {
  const found = findBalance(state, `sha-256:${grant.event_id.b64}`, unit);
  if (found === undefined) return 'none';
  return [found.used, found.reserved, found.left].map(formatQuantity).join('/');
}

describe('links', () => {
  const grant = makeGrant();
  const action = makeAction(grant);

  test('an execution under an earlier authorization has no finding', () => {
    expect(codesOfLast(grant, makeExecution(grant))).toEqual([]);
    expect(codesOfLast(grant, action, makeExecution(action))).toEqual([]);
  });

  test('AUTH_NOT_FOUND: it is nowhere', () => {
    const events = [makeExecution(digestOf('nowhere'))];
    expect(codesOf(...events)).toEqual([['AUTH_NOT_FOUND']]);
    expect(verdictOfLast(...events)).toBe('invalid');
  });

  test('AUTH_NOT_FOUND is listed once for each id, with the number of the others', () => {
    const [execution, again, elsewhere] = [
      makeExecution(digestOf('nowhere')),
      makeExecution(digestOf('nowhere'), {}, number(1)),
      makeExecution(digestOf('elsewhere')),
    ];
    const { findings, verdicts } = judge([execution, again, elsewhere]);
    expect(findings.map((list) => list.map(({ code, folded }) => [code, folded]))).toEqual([
      [['AUTH_NOT_FOUND', 1]],
      [],
      [['AUTH_NOT_FOUND', undefined]],
    ]);
    expect(verdicts).toEqual(['invalid', 'invalid', 'invalid']);
  });

  test('AUTH_AFTER_EXECUTION: it comes later, as a grant or as an action, well-formed or not', () => {
    for (const late of [grant, makeAction(undefined), malformed(grant)]) {
      const { findings, verdicts } = judge([makeExecution(late), makeExecution(late, {}, number(1)), late]);
      expect(findings[0]).toMatchObject([
        { code: 'AUTH_AFTER_EXECUTION', folded: 1, related: [{ line: 3 }] },
      ]);
      expect(verdicts.slice(0, 2)).toEqual(['invalid', 'invalid']);
    }
    expect(codesOf(makeExecution(grant), grant, makeExecution(grant, {}, number(1)))).toEqual([
      ['AUTH_AFTER_EXECUTION'],
      [],
      [],
    ]);
  });

  test('AUTH_NOT_AN_AUTHORIZATION: it is another event, earlier or later, or a malformed one', () => {
    expect(codesOf(note, makeExecution(note))).toEqual([[], ['AUTH_NOT_AN_AUTHORIZATION']]);
    expect(codesOf(makeExecution(note), note)).toEqual([['AUTH_NOT_AN_AUTHORIZATION'], []]);
    const broken = malformed(grant);
    expect(codesOf(broken, makeExecution(broken))).toEqual([['SCHEMA'], ['AUTH_NOT_AN_AUTHORIZATION']]);
    const execution = makeExecution(grant);
    expect(codesOfLast(grant, execution, makeExecution(execution))).toEqual(['AUTH_NOT_AN_AUTHORIZATION']);
  });

  test('an execution whose link is broken counts nowhere', () => {
    const late = makeExecution(grant, { usd: 3n });
    const { state } = judge([late, grant]);
    expect(balance(state, grant)).toBe('0/0/10');
  });

  test('GRANT_NOT_FOUND: the grant is nowhere, or later; of an action, of a grant, and of a deny', () => {
    const delegated = makeGrant({}, grant);
    expect(codesOf(action)).toEqual([['GRANT_NOT_FOUND']]);
    expect(codesOf(action, grant)).toEqual([['GRANT_NOT_FOUND'], []]);
    expect(codesOf(delegated, grant)).toEqual([['GRANT_NOT_FOUND'], []]);
    expect(codesOf(makeAction(grant, {}, deny))).toEqual([['GRANT_NOT_FOUND']]);
    expect(codesOfLast(grant, delegated, action)).toEqual([]);
    expect(verdictOfLast(action)).toBe('invalid');
  });

  test('GRANT_NOT_FOUND is listed once for each id', () => {
    const { findings } = judge([0, 1, 2].map((n) => makeAction(grant, {}, number(n))));
    expect(findings.flat()).toMatchObject([{ code: 'GRANT_NOT_FOUND', folded: 2, at: { line: 1 } }]);
  });

  test('GRANT_NOT_A_GRANT: an action, another event, a malformed grant', () => {
    expect(codesOfLast(grant, action, makeAction(action))).toEqual(['GRANT_NOT_A_GRANT']);
    expect(codesOfLast(note, makeGrant({}, note))).toEqual(['GRANT_NOT_A_GRANT']);
    const broken = malformed(grant);
    expect(codesOf(broken, makeAction(broken))).toEqual([['SCHEMA'], ['GRANT_NOT_A_GRANT']]);
  });

  test('an allow whose grant is not usable is under none', () => {
    const stray = makeAction(makeAction(undefined), { usd: 99n });
    expect(codesOf(stray, makeExecution(stray, { usd: 99n, tok: 1n }))).toEqual([['GRANT_NOT_FOUND'], []]);
  });

  test('GRANT_DENIED: an allow under a denied grant, as an action or as a delegated grant', () => {
    const denied = makeGrant({}, undefined, deny);
    expect(codesOfLast(denied, makeAction(denied))).toEqual(['GRANT_DENIED']);
    expect(codesOfLast(denied, makeGrant({}, denied))).toEqual(['GRANT_DENIED']);
    expect(codesOfLast(denied, makeAction(denied, {}, deny))).toEqual([]);
    expect(codesOfLast(denied, makeGrant({}, denied, deny))).toEqual([]);
    expect(verdictOfLast(denied, makeAction(denied))).toBe('violation');
  });

  test('INTENT_MISMATCH: another intent than the authorization has', () => {
    const intents = { intents: { intent_digest: digestOf('another') } };
    expect(codesOfLast(grant, makeExecution(grant, {}, intents))).toEqual(['INTENT_MISMATCH']);
    expect(codesOfLast(grant, action, makeExecution(action, {}, intents))).toEqual(['INTENT_MISMATCH']);
    // Of an execution the intent is compared with its authorization's, and what else an intent has is not.
    const more = { intents: { ...intents.intents, user_intent_digest: digestOf('intent') } };
    const own = makeAction(grant, {}, more);
    expect(codesOfLast(grant, own, makeExecution(own, {}, intents))).toEqual([]);
    const sameBytes = { intents: { intent_digest: { ...digestOf('intent'), alg: 'blake3' } } };
    expect(codesOfLast(grant, makeExecution(grant, {}, sameBytes))).toEqual(['INTENT_MISMATCH']);
  });

  test('TOOL_MISMATCH: another tool than the action is for', () => {
    const writing = { tool_name: 'fs.write' };
    expect(codesOfLast(grant, action, makeExecution(action, {}, writing))).toEqual(['TOOL_MISMATCH']);
    expect(codesOfLast(grant, makeExecution(grant, {}, writing))).toEqual([]);
  });

  test('TOOL_PARAMS_MISMATCH: other parameters than the action is for, where the execution says them', () => {
    const params = (name: string): Members => ({ tool_params_digest: digestOf(name) });
    expect(codesOfLast(grant, action, makeExecution(action, {}, params('other')))).toEqual([
      'TOOL_PARAMS_MISMATCH',
    ]);
    expect(codesOfLast(grant, action, makeExecution(action, {}, params('params')))).toEqual([]);
    expect(codesOfLast(grant, action, makeExecution(action))).toEqual([]);
    expect(codesOfLast(grant, makeExecution(grant, {}, params('other')))).toEqual([]);
  });

  test('EVIDENCE_MISSING: no tool_params_digest where the action fixes it, unless nothing was run', () => {
    const none = { tool_params_digest: undefined };
    expect(codesOfLast(grant, action, makeExecution(action, {}, none))).toEqual(['EVIDENCE_MISSING']);
    expect(verdictOfLast(grant, action, makeExecution(action, {}, none))).toBe('invalid');
    expect(codesOfLast(grant, makeExecution(grant, {}, none))).toEqual([]);
    expect(codesOfLast(grant, action, makeExecution(action, {}, { ...RELEASE, ...none }))).toEqual([]);
    expect(codesOfLast(grant, action, makeExecution(action, {}, { ...failed, ...none }))).toEqual([
      'EVIDENCE_MISSING',
    ]);
    const denied = makeAction(grant, {}, deny);
    expect(codesOfLast(grant, denied, makeExecution(denied, {}, { ...failed, ...none }))).toEqual([]);
    expect(codesOfLast(grant, denied, makeExecution(denied, {}, none))).toEqual([
      'EVIDENCE_MISSING',
      'EXECUTION_UNDER_DENY',
    ]);
    // A second execution is compared with the action in nothing.
    expect(codesOfLast(grant, action, makeExecution(action), makeExecution(action, {}, none))).toEqual([
      'AUTHORIZATION_REUSED',
    ]);
  });

  test('a finding names the other event, its line and its place in the event', () => {
    const { findings } = judge([grant, action, makeExecution(action, {}, other)]);
    expect(findings[2]).toMatchObject([
      {
        code: 'PRINCIPAL_MISMATCH',
        class: 'violation',
        at: { line: 3, pointer: '/principal_id' },
        expected: 'agent:a1',
        actual: 'agent:a2',
        related: [{ line: 2, seq: 1, eventId: `sha-256:${action.event_id.b64}` }],
      },
    ]);
  });

  test('a duplicate takes no part', () => {
    const execution = makeExecution(grant, { usd: 3n });
    const { findings, state } = judge([grant, execution, execution, grant]);
    expect(findings.map((list) => list.map(({ code }) => code))).toEqual([
      [],
      [],
      ['EVENT_DUPLICATE'],
      ['EVENT_DUPLICATE'],
    ]);
    expect(balance(state, grant)).toBe('3/0/7');
  });
});

describe('what an authorization says of itself', () => {
  const checks = (...results: string[]): Members => ({
    checks: results.map((result) => ({ check: 'spend', result })),
  });
  const hygiene = (status: string): Members => ({
    hygiene: { status, warnings: [], metrics: {}, profile_id: 'northroot-jcs-v1' },
  });

  test('ALLOW_WITH_FAILED_CHECK: one failed check is enough, once', () => {
    expect(codesOfLast(makeGrant({}, undefined, checks('pass', 'fail', 'fail')))).toEqual([
      'ALLOW_WITH_FAILED_CHECK',
    ]);
    expect(codesOfLast(makeAction(undefined, undefined, checks('fail')))).toEqual([
      'ALLOW_WITH_FAILED_CHECK',
    ]);
    expect(codesOfLast(makeGrant({}, undefined, checks('pass')))).toEqual([]);
    expect(codesOfLast(makeGrant({}, undefined, checks()))).toEqual([]);
    expect(codesOfLast(makeGrant({}, undefined, { ...checks('fail'), ...deny }))).toEqual([]);
  });

  test('HYGIENE_NOT_OK for an Invalid allow, HYGIENE_LOSSY for what is between', () => {
    expect(codesOfLast(makeGrant({}, undefined, hygiene('Invalid')))).toEqual(['HYGIENE_NOT_OK']);
    expect(codesOfLast(makeGrant({}, undefined, hygiene('Lossy')))).toEqual(['HYGIENE_LOSSY']);
    expect(codesOfLast(makeGrant({}, undefined, hygiene('Ambiguous')))).toEqual(['HYGIENE_LOSSY']);
    expect(codesOfLast(makeGrant({}, undefined, hygiene('Ok')))).toEqual([]);
    expect(codesOfLast(makeGrant({}, undefined, { ...hygiene('Invalid'), ...deny }))).toEqual([]);
    expect(verdictOfLast(makeGrant({}, undefined, hygiene('Invalid')))).toBe('violation');
    expect(verdictOfLast(makeGrant({}, undefined, hygiene('Lossy')))).toBe('ok');
  });

  test('QUANTITY_LOSSY: a double in any meter vector', () => {
    const half = { usd: double(0.5) };
    const grant = makeGrant();
    expect(codesOfLast(makeGrant({ caps: half }))).toEqual(['QUANTITY_LOSSY']);
    expect(codesOfLast(makeGrant({ rates: { 'usd.per_sec': double(0.5) } }))).toEqual(['QUANTITY_LOSSY']);
    expect(codesOfLast(grant, makeAction(grant, half))).toEqual(['QUANTITY_LOSSY']);
    expect(codesOfLast(grant, makeExecution(grant, half))).toEqual(['QUANTITY_LOSSY']);
    expect(codesOfLast(grant, makeExecution(grant, { usd: '0.5' }))).toEqual([]);
    expect(verdictOfLast(grant, makeExecution(grant, half))).toBe('ok');
  });

  test('TIME_REGRESSION: before the latest so far, as instants; listed once', () => {
    const grant = makeGrant({}, undefined, at('12:00:00.5'));
    const next = (time: string, n = 0): AnyEvent => makeGrant({}, undefined, { ...at(time), ...number(n) });
    expect(codesOfLast(grant, next('12:00:00.50'))).toEqual([]);
    expect(codesOfLast(grant, next('12:00:00.499999999'))).toEqual(['TIME_REGRESSION']);
    const back = [1, 2].map((n) => next('12:00:00', n));
    expect(judge([grant, ...back]).findings.flat()).toMatchObject([
      { code: 'TIME_REGRESSION', severity: 'info', folded: 1 },
    ]);
    expect(verdictOfLast(grant, ...back)).toBe('ok');
  });
});

describe('rule 1: deny', () => {
  const tight: BoundsDraft = { tools: ['fs.write'], caps: { usd: 1n }, expires: '2026-01-01T11:00:00Z' };
  const grant = makeGrant(tight);

  test('a denied authorization breaks no bound itself and counts nowhere', () => {
    const denied = makeAction(grant, { usd: 99n }, { ...deny, ...other });
    const { findings, verdicts, state } = judge([grant, denied]);
    expect(findings.flat()).toEqual([]);
    expect(verdicts).toEqual(['ok', 'denied']);
    expect(balance(state, grant)).toBe('0/0/1');
    expect(listOpenAuthorizations(state)).toEqual([]);
    const wider = makeGrant({ caps: { usd: 2n } }, grant, deny);
    expect(codesOfLast(grant, wider)).toEqual([]);
    expect(listGrants(judge([grant, wider]).state)).toHaveLength(1);
  });

  test('an execution that names one is denied when it failed and used nothing, or zero', () => {
    const zeros = { usd: 0n, tok: '0.0', calls: double(-0) };
    for (const denied of [makeAction(undefined, {}, deny), makeGrant({}, undefined, deny)]) {
      expect(codesOfLast(denied, makeExecution(denied, {}, failed))).toEqual([]);
      expect(verdictOfLast(denied, makeExecution(denied, {}, failed))).toBe('denied');
      expect(verdictOfLast(denied, makeExecution(denied, zeros, failed))).toBe('denied');
      const twice = [
        makeExecution(denied, {}, failed),
        makeExecution(denied, {}, { ...failed, ...number(2) }),
      ];
      expect(judge([denied, ...twice]).verdicts).toEqual(['denied', 'denied', 'denied']);
    }
  });

  test('otherwise it is EXECUTION_UNDER_DENY', () => {
    const denied = makeAction(undefined, {}, deny);
    expect(codesOfLast(denied, makeExecution(denied))).toEqual(['EXECUTION_UNDER_DENY']);
    expect(codesOfLast(denied, makeExecution(denied, { usd: 0n }))).toEqual(['EXECUTION_UNDER_DENY']);
    expect(codesOfLast(denied, makeExecution(denied, { usd: rat(1n, 10n ** 38n) }, failed))).toEqual([
      'EXECUTION_UNDER_DENY',
    ]);
    expect(verdictOfLast(denied, makeExecution(denied))).toBe('violation');
    const refused = makeGrant({}, undefined, deny);
    expect(codesOfLast(refused, makeExecution(refused))).toEqual(['EXECUTION_UNDER_DENY']);
  });

  test('a blocked attempt leaves nothing, and one with an unknown outcome was executed', () => {
    const denied = makeAction(undefined, {}, deny);
    const run = (members: Members): string[] => codesOfLast(denied, makeExecution(denied, {}, members));
    const under = ['EXECUTION_UNDER_DENY'];
    const [file, output] = [{ kind: 'file', reference: '/a' }, digestOf('output')];
    expect(run({ ...failed, output_digest: output })).toEqual(under);
    expect(run({ ...failed, output_ref: { digest: output } })).toEqual(under);
    expect(run({ ...failed, resources_touched: [file] })).toEqual(under);
    expect(run({ ...failed, resources_touched: [] })).toEqual([]);
    expect(run({ outcome: 'unknown' })).toEqual(under);
    expect(run({ outcome: 'unknown', error_code: 'BLOCKED' })).toEqual(under);
  });

  test('an attempt that a deny blocked is still compared with it, its time apart', () => {
    const denied = makeAction(undefined, {}, deny);
    expect(codesOfLast(denied, makeExecution(denied, {}, { ...failed, ...other }))).toEqual([
      'PRINCIPAL_MISMATCH',
    ]);
    expect(codesOfLast(denied, makeExecution(denied, {}, { ...failed, tool_name: 'fs.write' }))).toEqual([
      'TOOL_MISMATCH',
    ]);
    expect(codesOfLast(denied, makeExecution(denied, {}, { ...failed, ...started('11:00:00') }))).toEqual([]);
  });
});

describe('rule 2: single use', () => {
  test('a second execution of an action is AUTHORIZATION_REUSED', () => {
    const grant = makeGrant();
    const action = makeAction(grant);
    const [first, second, third] = [1, 2, 3].map((n) => makeExecution(action, { usd: 1n }, number(n)));
    const { findings, state, verdicts } = judge([grant, action, first, second, third]);
    expect(findings.flat()).toMatchObject([
      { code: 'AUTHORIZATION_REUSED', folded: 1, at: { line: 4 }, related: [{ line: 2 }] },
    ]);
    expect(verdicts.slice(2)).toEqual(['ok', 'violation', 'violation']);
    expect(balance(state, grant)).toBe('3/0/7');
  });

  test('it is compared with the action in nothing, and held against the bounds of its grants', () => {
    const grant = makeGrant({ tools: ['fs.read'], expires: '2026-01-01T13:00:00Z' });
    const action = makeAction(grant, { usd: 1n });
    const first = makeExecution(action, { usd: 0n });
    const strange = { ...other, intents: { intent_digest: digestOf('another') } };
    expect(codesOfLast(grant, action, first, makeExecution(action, { usd: 2n }, strange))).toEqual([
      'AUTHORIZATION_REUSED',
    ]);
    const late = { tool_name: 'fs.write', ...started('13:00:00') };
    expect(codesOfLast(grant, action, first, makeExecution(action, { usd: 11n }, late))).toEqual([
      'AUTHORIZATION_REUSED',
      'TOOL_NOT_ALLOWED',
      'GRANT_EXPIRED',
      'METER_CAP_EXCEEDED',
    ]);
  });

  test('a failed execution spends the action too, and so does a release', () => {
    const action = makeAction(undefined);
    for (const first of [makeExecution(action, {}, failed), makeExecution(action, {}, RELEASE)]) {
      expect(codesOfLast(action, first, makeExecution(action))).toEqual(['AUTHORIZATION_REUSED']);
    }
  });

  test('an execution that breaks something spends it', () => {
    const action = makeAction(undefined);
    expect(codesOf(action, makeExecution(action, {}, other), makeExecution(action))).toEqual([
      [],
      ['PRINCIPAL_MISMATCH'],
      ['AUTHORIZATION_REUSED'],
    ]);
  });

  test('a grant may be named by any number of executions', () => {
    const grant = makeGrant();
    expect(codesOf(grant, ...[1, 2, 3].map((n) => makeExecution(grant, {}, number(n)))).flat()).toEqual([]);
  });
});

describe('rule 3: time', () => {
  const grant = makeGrant({ expires: '2026-01-01T13:00:00Z' });
  const action = makeAction(grant, {}, at('12:30:00'));

  test('an execution is at started_at, else at occurred_at', () => {
    expect(
      codesOfLast(grant, makeExecution(grant, {}, { ...at('14:00:00'), ...started('12:59:59') })),
    ).toEqual([]);
    expect(
      codesOfLast(grant, makeExecution(grant, {}, { ...at('12:10:00'), ...started('13:00:00') })),
    ).toEqual(['GRANT_EXPIRED']);
    expect(codesOfLast(grant, makeExecution(grant, {}, at('13:00:00')))).toEqual(['GRANT_EXPIRED']);
  });

  test('EXECUTION_BEFORE_AUTHORIZATION: to the nanosecond', () => {
    expect(
      codesOfLast(
        grant,
        action,
        makeExecution(action, {}, { ...at('12:30:00'), ...started('12:29:59.999999999') }),
      ),
    ).toEqual(['EXECUTION_BEFORE_AUTHORIZATION']);
    expect(
      codesOfLast(
        grant,
        action,
        makeExecution(action, {}, { ...at('12:30:00'), ...started('12:30:00.000') }),
      ),
    ).toEqual([]);
    expect(codesOfLast(grant, makeExecution(grant, {}, started('11:59:59')))).toEqual([
      'EXECUTION_BEFORE_AUTHORIZATION',
    ]);
  });

  test('EXECUTION_BEFORE_AUTHORIZATION: the grants above count too, one finding for the nearest', () => {
    const above = makeGrant({}, undefined, at('12:30:00'));
    const early = makeAction(above, {}, at('12:00:00'));
    const run = (time: string): unknown[] =>
      judge([above, early, makeExecution(early, {}, at(time))]).findings[2].map(({ code, related }) => [
        code,
        related?.[0].line,
      ]);
    expect(run('12:31:00')).toEqual([]);
    expect(run('12:10:00')).toEqual([['EXECUTION_BEFORE_AUTHORIZATION', 1]]);
    expect(run('11:59:00')).toContainEqual(['EXECUTION_BEFORE_AUTHORIZATION', 2]);
    const child = makeGrant({}, above, at('12:00:00'));
    expect(codesOf(above, child, makeExecution(child, {}, at('12:10:00')))[2]).toEqual([
      'EXECUTION_BEFORE_AUTHORIZATION',
    ]);
  });

  test('AUTHORIZATION_BEFORE_GRANT: an action or a delegated grant that is dated before its own grant', () => {
    const above = makeGrant({}, undefined, at('12:30:00'));
    const codes = (event: AnyEvent): string[] => codesOf(above, event)[1];
    const before = ['TIME_REGRESSION', 'AUTHORIZATION_BEFORE_GRANT'];
    expect(codes(makeAction(above, {}, at('12:29:59.999999999')))).toEqual(before);
    expect(codes(makeGrant({}, above, at('12:29:59.999999999')))).toEqual(before);
    expect(verdictOfLast(above, makeGrant({}, above, at('12:00:00')))).toBe('violation');
    expect(codes(makeAction(above, {}, at('12:30:00.0')))).toEqual([]);
    expect(codes(makeAction(above, {}, { ...deny, ...at('12:00:00') }))).toEqual(['TIME_REGRESSION']);
    // Only the grant that is named: the child has the finding of its own time.
    const child = makeGrant({}, above, at('12:00:00'));
    expect(codesOf(above, child, makeAction(child, {}, at('12:10:00')))[2]).toEqual([]);
  });

  test('GRANT_NOT_YET_VALID: at not_before or later, of executions and actions, of every ancestor', () => {
    const from = makeGrant({ begins: '2026-01-01T12:30:00Z' });
    const [early, due] = [at('12:29:59.999999999'), at('12:30:00.0')];
    const young = ['GRANT_NOT_YET_VALID'];
    expect(codesOfLast(from, makeExecution(from, {}, early))).toEqual(young);
    expect(codesOfLast(from, makeExecution(from, {}, due))).toEqual([]);
    expect(codesOfLast(from, makeAction(from, {}, early))).toEqual(young);
    expect(codesOfLast(from, makeAction(from, {}, due))).toEqual([]);
    expect(codesOfLast(from, makeAction(from, {}, { ...early, ...deny }))).toEqual([]);
    expect(verdictOfLast(from, makeExecution(from, {}, early))).toBe('violation');
    const child = makeGrant({ begins: '2026-01-01T12:40:00Z' }, from, early);
    const run = (time: string): unknown[] =>
      judge([from, child, makeExecution(child, {}, at(time))]).findings.map((list) =>
        list.map(({ code, related }) => [code, related?.[0].line]),
      );
    expect(run('12:35:00')).toEqual([[], [], [['GRANT_NOT_YET_VALID', 2]]]);
    expect(run('12:40:00')).toEqual([[], [], []]);
    const loose = makeGrant({}, from);
    expect(codesOf(from, loose, makeExecution(loose, {}, early))[2]).toEqual(young);
    // A release may come late, and not early.
    const action = makeAction(from, {}, due);
    expect(codesOf(from, action, makeExecution(action, {}, { ...RELEASE, ...early }))[2]).toContain(
      'GRANT_NOT_YET_VALID',
    );
  });

  test('TIME_INCONSISTENT: it started after it was recorded, a warning', () => {
    const run = (time: string): unknown =>
      judgeAll([grant, makeExecution(grant, {}, { ...at('12:10:00'), ...started(time) })]).findings[1];
    expect(run('12:10:00.000000001')).toMatchObject([
      { code: 'TIME_INCONSISTENT', severity: 'warning', at: { pointer: '/started_at' } },
    ]);
    expect(run('12:10:00.0')).toEqual([]);
  });

  test('GRANT_EXPIRED: before expires_at to the nanosecond, in every spelling', () => {
    const run = (time: string): string[] => codesOfLast(grant, makeExecution(grant, {}, at(time)));
    expect(run('12:59:59.999999999')).toEqual([]);
    expect(run('13:00:00')).toEqual(['GRANT_EXPIRED']);
    expect(run('13:00:00.0')).toEqual(['GRANT_EXPIRED']);
    expect(run('13:00:00.000000001')).toEqual(['GRANT_EXPIRED']);
  });

  test('GRANT_EXPIRED: the ancestors count, one finding an event', () => {
    const child = makeGrant({ expires: '2026-01-01T12:30:00Z' }, grant);
    const run = (time: string): number =>
      codesOfLast(grant, child, makeExecution(child, {}, at(time))).length;
    expect([run('12:29:59'), run('12:30:00'), run('13:00:00')]).toEqual([0, 1, 1]);
    const forever = makeGrant({}, grant);
    const late = makeExecution(forever, {}, at('13:00:00'));
    const { findings } = judge([grant, forever, late]);
    expect(findings[1].map(({ code }) => code)).toEqual(['DELEGATION_EXCEEDED']);
    expect(findings[2]).toMatchObject([{ code: 'GRANT_EXPIRED', related: [{ line: 1 }] }]);
  });

  test("GRANT_EXPIRED: an action's own time counts too", () => {
    expect(codesOfLast(grant, makeAction(grant, {}, at('12:59:59.999999999')))).toEqual([]);
    expect(codesOfLast(grant, makeAction(grant, {}, at('13:00:00')))).toEqual(['GRANT_EXPIRED']);
  });

  test('TIMESTAMP_INVALID: ended_at before started_at', () => {
    expect(codesOfLast(grant, makeExecution(grant, {}, ran('12:00:01', '12:00:00.999999999')))).toEqual([
      'TIMESTAMP_INVALID',
    ]);
    expect(codesOfLast(grant, makeExecution(grant, {}, ran('12:00:01', '12:00:01.0')))).toEqual([]);
    expect(codesOfLast(grant, makeExecution(grant, {}, { ended_at: '2026-01-01T11:00:00Z' }))).toEqual([]);
  });

  test('the order of the ledger, not time, says what is earlier', () => {
    const late = makeGrant({}, undefined, at('11:00:00'));
    expect(codesOf(makeExecution(late, {}, at('12:00:00')), late)[0]).toEqual(['AUTH_AFTER_EXECUTION']);
  });
});

describe('rule 4: tools', () => {
  test.each([
    [['fs.*'], 'fs.read', true],
    [['fs.*'], 'fs.', false],
    [['fs.*'], 'fs', false],
    [['fs.'], 'fs.', true],
    [['fs.'], 'fs.read', false],
    [['*'], 'fs', true],
    [['http.get', 'fs.r*'], 'fs.read', true],
    [['fs.read'], 'fs.reader', false],
    [['fs.Read'], 'fs.read', false],
  ])('%j allows %s: %s, of executions and of actions', (tools, tool, isAllowed) => {
    const grant = makeGrant({ tools });
    const expected = isAllowed ? [] : ['TOOL_NOT_ALLOWED'];
    expect(codesOfLast(grant, makeExecution(grant, {}, { tool_name: tool }))).toEqual(expected);
    expect(codesOfLast(grant, makeAction(grant, {}, {}, tool))).toEqual(expected);
  });

  test('every ancestor must allow it, and the execution as well as the action', () => {
    const grant = makeGrant({ tools: ['fs.read'] });
    const child = makeGrant({ tools: ['fs.*'] }, grant);
    const { findings } = judge([grant, child, makeExecution(child, {}, { tool_name: 'fs.write' })]);
    expect(findings[1].map(({ code }) => code)).toEqual(['DELEGATION_EXCEEDED']);
    expect(findings[2]).toMatchObject([{ code: 'TOOL_NOT_ALLOWED', related: [{ line: 1 }] }]);
    const action = makeAction(grant);
    expect(codesOfLast(grant, action, makeExecution(action, {}, { tool_name: 'fs.write' }))).toEqual([
      'TOOL_MISMATCH',
      'TOOL_NOT_ALLOWED',
    ]);
  });
});

describe('rule 5: meters', () => {
  const grant = makeGrant({ caps: { usd: 10n } });

  test('METER_CAP_EXCEEDED: equal to the cap is within it', () => {
    const seven = makeExecution(grant, { usd: 7n });
    expect(codesOfLast(grant, seven, makeExecution(grant, { usd: 3n }))).toEqual([]);
    const { findings } = judge([grant, seven, makeExecution(grant, { usd: '3.01' })]);
    expect(findings[2]).toMatchObject([
      { code: 'METER_CAP_EXCEEDED', at: { pointer: '/meter_used/0/amount' }, related: [{ line: 1 }] },
    ]);
    // The finding says the unit, the cap, what was used before, and by how much it is over.
    expect(findings[2][0].expected).toContain('usd at most 10 ');
    expect(findings[2][0].actual).toMatch(/^7 used before, 3\.01 by this event: 0\.01 over$/);
  });

  test('it is given to each event that adds to what is over, and not to one that adds nothing', () => {
    const over = makeExecution(grant, { usd: 11n });
    const codes = codesOf(
      grant,
      over,
      makeExecution(grant, { usd: 1n }),
      makeExecution(grant, { usd: 0n }),
      makeExecution(grant),
      makeAction(grant, { usd: 0n }),
      makeAction(grant, { usd: 1n }),
    );
    expect(codes).toEqual([
      [],
      ['METER_CAP_EXCEEDED'],
      ['METER_CAP_EXCEEDED'],
      [],
      [],
      [],
      ['RESERVATION_OVER_CAP'],
    ]);
  });

  test('RESERVATION_OVER_CAP: used and outstanding reservations together', () => {
    const four = makeAction(grant, { usd: 4n });
    const used = makeExecution(grant, { usd: 3n });
    expect(codesOfLast(grant, four, used, makeAction(grant, { usd: 3n }))).toEqual([]);
    const { findings } = judge([grant, four, used, makeAction(grant, { usd: 4n }, number(1))]);
    expect(findings[3]).toMatchObject([
      { code: 'RESERVATION_OVER_CAP', at: { pointer: '/authorization/action/meter_reservation/0/amount' } },
    ]);
    expect(findings[3][0].actual).toMatch(/^3 used before, 4 reserved, 4 by this event: 1 over$/);
    expect(codesOfLast(grant, four, makeExecution(grant, { usd: 7n }))).toEqual(['METER_CAP_EXCEEDED']);
  });

  test('an execution replaces its reservation', () => {
    const ten = makeAction(grant, { usd: 10n });
    const { state, findings } = judge([grant, ten, makeExecution(ten, { usd: 4n })]);
    expect(findings.flat()).toEqual([]);
    expect(balance(state, grant)).toBe('4/0/6');
    const six = makeAction(grant, { usd: 6n }, number(1));
    expect(codesOfLast(grant, ten, makeExecution(ten, { usd: 4n }), six)).toEqual([]);
    expect(balance(judge([grant, ten]).state, grant)).toBe('0/10/0');
  });

  test('an excessive reservation is not reported again for the execution within it', () => {
    const eight = [1, 2].map((n) => makeAction(grant, { usd: 8n }, number(n)));
    expect(
      codesOf(grant, ...eight, makeExecution(eight[0], { usd: 8n }), makeExecution(eight[1], { usd: 2n })),
    ).toEqual([[], [], ['RESERVATION_OVER_CAP'], [], []]);
    expect(
      codesOf(grant, ...eight, makeExecution(eight[0], { usd: 8n }), makeExecution(eight[1], { usd: 3n }))[4],
    ).toEqual(['METER_CAP_EXCEEDED']);
  });

  test('RESERVATION_EXCEEDED: use beyond the reservation, and equal to it is within', () => {
    const action = makeAction(grant, { usd: '2.5' });
    expect(codesOfLast(grant, action, makeExecution(action, { usd: '2.5' }))).toEqual([]);
    expect(codesOfLast(grant, action, makeExecution(action, { usd: double(2.5) }))).toEqual([
      'QUANTITY_LOSSY',
    ]);
    expect(codesOfLast(grant, action, makeExecution(action, { usd: rat(5n, 2n) }))).toEqual([]);
    expect(codesOfLast(grant, action, makeExecution(action, { usd: '2.500000000000000001' }))).toEqual([
      'RESERVATION_EXCEEDED',
    ]);
    const none = makeAction(grant, { usd: 0n });
    expect(codesOfLast(grant, none, makeExecution(none, { usd: 1n }))).toEqual(['RESERVATION_EXCEEDED']);
    expect(codesOfLast(grant, none, makeExecution(none, { usd: 0n }))).toEqual([]);
    const alone = makeAction(undefined, { usd: 1n });
    expect(codesOfLast(alone, makeExecution(alone, { usd: 2n }))).toEqual(['RESERVATION_EXCEEDED']);
  });

  test('METER_UNCAPPED: a used unit that neither the reservation nor a grant caps', () => {
    const action = makeAction(grant, { tok: 5n });
    const codes = codesOf(
      grant,
      action,
      makeExecution(action, { usd: 1n, tok: 5n, calls: 1n }),
      makeExecution(grant, { time: 0n }),
    );
    // Everybody measures calls.
    expect(codes).toEqual([[], ['METER_UNCAPPED'], [], []]);
    expect(codesOfLast(grant, makeExecution(grant, { tok: 1n }))).toEqual(['METER_UNCAPPED']);
    expect(verdictOfLast(grant, makeExecution(grant, { tok: 1n }))).toBe('ok');
    const child = makeGrant({ caps: { usd: 1n, tok: 1n } }, grant);
    const grandchild = makeGrant({ caps: { usd: 1n } }, child);
    const { findings } = judge([grant, child, grandchild, makeExecution(grandchild, { tok: 1n })]);
    expect(findings[3]).toEqual([]);
    const alone = makeAction(undefined, { usd: 1n });
    expect(codesOfLast(alone, makeExecution(alone, { usd: 0n, tok: 1n }))).toEqual([]);
  });

  test('METER_UNCAPPED: of a reservation too; an info, once for a grant and unit', () => {
    const child = makeGrant({}, grant);
    expect(codesOfLast(grant, makeAction(grant, { tok: 1n }))).toEqual(['METER_UNCAPPED']);
    expect(codesOfLast(grant, makeAction(grant, { tok: 0n, usd: 1n }))).toEqual([]);
    const { findings } = judge([
      grant,
      child,
      makeAction(grant, { tok: 1n }),
      makeExecution(grant, { tok: 1n }),
      makeExecution(child, { tok: 1n }),
      makeExecution(grant, { calls: 1n, 'time.ms': 1n }),
      makeExecution(grant, { requests: 1n }),
    ]);
    expect(findings.flat()).toMatchObject([
      {
        code: 'METER_UNCAPPED',
        severity: 'info',
        folded: 1,
        at: { line: 3, pointer: '/authorization/action/meter_reservation/0/amount' },
        related: [{ line: 1 }],
      },
      { code: 'METER_UNCAPPED', at: { line: 5 }, related: [{ line: 2 }] },
      { code: 'METER_UNCAPPED', at: { line: 7 }, related: [{ line: 1 }] },
    ]);
  });

  test('use and reservations count against every ancestor, each with its own cap', () => {
    const child = makeGrant({ caps: { usd: 6n } }, grant);
    const sibling = makeGrant({ caps: { usd: 6n } }, grant, number(1));
    const five = makeExecution(child, { usd: 5n });
    const { findings, state } = judge([grant, child, sibling, five, makeExecution(sibling, { usd: 6n })]);
    expect(findings[4]).toMatchObject([{ code: 'METER_CAP_EXCEEDED', related: [{ line: 1 }] }]);
    expect([grant, child, sibling].map((each) => balance(state, each))).toEqual([
      '11/0/-1',
      '5/0/1',
      '6/0/0',
    ]);
    expect(listGrants(state).map(({ executions }) => executions)).toEqual([2, 1, 1]);
    const both = judge([grant, child, sibling, five, makeAction(child, { usd: 6n })]);
    expect(both.findings[4].map(({ related }) => related?.[0].line)).toEqual([2, 1]);
    expect(both.findings[4].map(({ code }) => code)).toEqual([
      'RESERVATION_OVER_CAP',
      'RESERVATION_OVER_CAP',
    ]);
  });

  test('sums are exact: three thirds are one', () => {
    const one = makeGrant({ caps: { usd: 1n } });
    const thirds = [1, 2, 3].map((n) => makeExecution(one, { usd: rat(1n, 3n) }, number(n)));
    expect(codesOf(one, ...thirds).flat()).toEqual([]);
    expect(balance(judge([one, ...thirds]).state, one)).toBe('1/0/0');
    expect(codesOf(one, ...thirds, makeExecution(one, { usd: rat(1n, 10n ** 38n) })).flat()).toEqual([
      'METER_CAP_EXCEEDED',
    ]);
  });

  test('sums are exact: 0.1 and 0.2 as doubles are more than 0.3', () => {
    const cap = makeGrant({ caps: { usd: '0.3' } });
    const [tenth, fifth] = [0.1, 0.2].map((value) => makeExecution(cap, { usd: double(value) }));
    expect(codesOf(cap, tenth, fifth)).toEqual([
      [],
      ['QUANTITY_LOSSY'],
      ['QUANTITY_LOSSY', 'METER_CAP_EXCEEDED'],
    ]);
    const [exactTenth, exactFifth] = ['0.1', '0.2'].map((usd) => makeExecution(cap, { usd }));
    expect(codesOf(cap, exactTenth, exactFifth).flat()).toEqual([]);
  });

  test('amounts of 39 digits are exact', () => {
    const most = 10n ** 39n - 1n;
    const full = makeGrant({ caps: { usd: most } });
    const used = makeExecution(full, { usd: most - 1n });
    expect(codesOfLast(full, used, makeExecution(full, { usd: 1n }))).toEqual([]);
    expect(codesOfLast(full, used, makeExecution(full, { usd: '1.000000000000000001' }))).toEqual([
      'METER_CAP_EXCEEDED',
    ]);
  });
});

describe('rule 6: rates', () => {
  const under = (rates: AmountsByUnit): AnyEvent => makeGrant({ rates });
  const call = (grant: AnyEvent, time: string, used = {}): AnyEvent =>
    makeExecution(grant, used, started(time));

  test('a window ends at an execution and includes it: (t − window, t]', () => {
    const grant = under({ 'calls.per_sec': 1n });
    expect(codesOfLast(grant, call(grant, '12:00:00'), call(grant, '12:00:01'))).toEqual([]);
    expect(codesOfLast(grant, call(grant, '12:00:00'), call(grant, '12:00:00.999999999'))).toEqual([
      'RATE_LIMIT_EXCEEDED',
    ]);
    const { findings } = judge([grant, call(grant, '12:00:00'), call(grant, '12:00:00.5')]);
    expect(findings[2]).toMatchObject([{ code: 'RATE_LIMIT_EXCEEDED', related: [{ line: 1 }] }]);
  });

  test.each([
    ['sec', '12:00:00.999999999', '12:00:01'],
    ['min', '12:00:59.999999999', '12:01:00'],
    ['hour', '12:59:59.999999999', '13:00:00'],
    ['90s', '12:01:29.999999999', '12:01:30'],
    ['5h', '16:59:59.999999999', '17:00:00'],
    ['60m', '12:59:59.999999999', '13:00:00'],
  ])('per_%s is so long', (per, within, beyond) => {
    const grant = under({ [`usd.per_${per}`]: 1n });
    const first = call(grant, '12:00:00', { usd: 1n });
    expect(codesOfLast(grant, first, call(grant, within, { usd: rat(1n, 10n ** 38n) }))).toEqual([
      'RATE_LIMIT_EXCEEDED',
    ]);
    expect(codesOfLast(grant, first, call(grant, beyond, { usd: 1n }))).toEqual([]);
  });

  test('per_day is 24 hours, not a date', () => {
    const grant = under({ 'calls.per_day': 1n });
    const next = (time: string): AnyEvent => makeExecution(grant, {}, { started_at: `2026-01-02T${time}Z` });
    expect(codesOfLast(grant, call(grant, '12:00:00'), next('11:59:59.999999999'))).toEqual([
      'RATE_LIMIT_EXCEEDED',
    ]);
    expect(codesOfLast(grant, call(grant, '12:00:00'), next('12:00:00'))).toEqual([]);
    const weekly = under({ 'calls.per_week': 1n });
    const later = (day: string): AnyEvent => makeExecution(weekly, {}, { started_at: `2026-01-${day}Z` });
    expect(codesOfLast(weekly, call(weekly, '12:00:00'), later('08T11:59:59'))).toEqual([
      'RATE_LIMIT_EXCEEDED',
    ]);
    expect(codesOfLast(weekly, call(weekly, '12:00:00'), later('08T12:00:00'))).toEqual([]);
  });

  test('the sum of a unit, or for calls the number of executions; equal to the limit is within it', () => {
    const grant = under({ 'calls.per_min': 2n, 'tok.per_min': 3n });
    const [first, second] = ['12:00:00', '12:00:01'].map((time) => call(grant, time, { usd: 1n, calls: 9n }));
    expect(codesOf(grant, first, second, call(grant, '12:00:02')).slice(1)).toEqual([
      [],
      [],
      ['RATE_LIMIT_EXCEEDED'],
    ]);
    const wide = makeGrant({ caps: { tok: 99n }, rates: { 'tok.per_min': 3n } });
    const two = call(wide, '12:00:00', { tok: 2n });
    expect(codesOfLast(wide, two, call(wide, '12:00:30', { tok: 1n }))).toEqual([]);
    expect(codesOfLast(wide, two, call(wide, '12:00:30', { tok: '1.1' }))).toEqual(['RATE_LIMIT_EXCEEDED']);
    const over = call(wide, '12:00:20', { tok: 2n });
    expect(codesOf(wide, two, over, call(wide, '12:00:30', { tok: 0n })).slice(2)).toEqual([
      ['RATE_LIMIT_EXCEEDED'],
      [],
    ]);
  });

  test('executions recorded out of order: the one that makes a window too full, wherever it is in it', () => {
    const grant = under({ 'calls.per_sec': 2n });
    const times = ['12:00:00', '12:00:01.8', '12:00:00.9'];
    expect(codesOf(grant, ...times.map((time) => call(grant, time))).flat()).toEqual([]);
    // (0.8, 1.8] now holds 0.9, 1.5 and 1.8.
    expect(
      codesOf(grant, ...times.map((time) => call(grant, time)), call(grant, '12:00:01.5')).at(-1),
    ).toEqual(['RATE_LIMIT_EXCEEDED']);
  });

  test('every ancestor counts; each broken limit is reported', () => {
    const grant = under({ 'calls.per_min': 1n, 'calls.per_hour': 1n });
    const child = makeGrant({ rates: { 'calls.per_min': 1n, 'calls.per_hour': 1n } }, grant);
    const { findings } = judge([grant, child, call(grant, '12:00:00'), call(child, '12:00:01')]);
    expect(findings[3].map(({ code, related }) => [code, related?.[0].line])).toEqual([
      ['RATE_LIMIT_EXCEEDED', 1],
      ['RATE_LIMIT_EXCEEDED', 1],
    ]);
  });

  test('a limit of zero forbids', () => {
    const grant = under({ 'calls.per_sec': 0n });
    expect(codesOfLast(grant, call(grant, '12:00:00'))).toEqual(['RATE_LIMIT_EXCEEDED']);
  });

  test('actions and blocked attempts are no executions', () => {
    const grant = under({ 'calls.per_min': 1n });
    const actions = [1, 2, 3].map((n) => makeAction(grant, {}, number(n)));
    expect(codesOf(grant, ...actions, call(actions[0], '12:00:00')).flat()).toEqual([]);
  });
});

describe('rule 7: concurrency', () => {
  const grant = makeGrant({ concurrency: 1n });
  const run = (from: string, to: string, under = grant): AnyEvent => makeExecution(under, {}, ran(from, to));

  test('executions that touch do not overlap: [started_at, ended_at)', () => {
    const first = run('12:00:00', '12:00:10');
    expect(codesOfLast(grant, first, run('12:00:10', '12:00:20'))).toEqual([]);
    expect(codesOfLast(grant, first, run('12:00:09.999999999', '12:00:20'))).toEqual([
      'CONCURRENCY_EXCEEDED',
    ]);
    expect(codesOfLast(grant, run('12:00:10', '12:00:20'), first)).toEqual([]);
    expect(codesOfLast(grant, run('12:00:09.999999999', '12:00:20'), first)).toEqual([
      'CONCURRENCY_EXCEEDED',
    ]);
  });

  test('one that takes no time is there at its instant', () => {
    const long = run('12:00:00', '12:00:10');
    const short = (time: string): AnyEvent => run(time, `${time}.0`);
    const exceeded = ['CONCURRENCY_EXCEEDED'];
    expect(codesOfLast(grant, long, short('12:00:05'))).toEqual(exceeded);
    expect(codesOfLast(grant, short('12:00:05'), long)).toEqual(exceeded);
    expect(codesOfLast(grant, long, short('12:00:00'))).toEqual(exceeded);
    expect(codesOfLast(grant, long, short('12:00:10'))).toEqual([]);
    expect(codesOfLast(grant, run('12:00:00.000000001', '12:00:10'), short('12:00:00'))).toEqual([]);
    expect(codesOfLast(grant, short('12:00:00'), run('12:00:00', '12:00:00.00'))).toEqual(exceeded);
  });

  test('more than the limit at one instant, not over the whole time', () => {
    const two = makeGrant({ concurrency: 2n });
    const runs = [
      ['12:00:00', '12:00:10'],
      ['12:00:05', '12:00:15'],
      ['12:00:10', '12:00:20'],
      ['12:00:04', '12:00:05'],
    ].map(([from, to]) => run(from, to, two));
    expect(codesOf(two, ...runs).flat()).toEqual([]);
    expect(codesOf(two, ...runs, run('12:00:14', '12:00:30', two)).flat()).toEqual(['CONCURRENCY_EXCEEDED']);
    expect(codesOf(two, ...runs, run('12:00:15', '12:00:30', two)).flat()).toEqual([]);
  });

  test("every ancestor's limit counts", () => {
    const child = makeGrant({ concurrency: 1n }, grant);
    const { findings } = judge([
      grant,
      child,
      run('12:00:00', '12:00:10'),
      run('12:00:05', '12:00:06', child),
    ]);
    expect(findings[3]).toMatchObject([{ code: 'CONCURRENCY_EXCEEDED', related: [{ line: 1 }] }]);
  });

  test('EVIDENCE_MISSING: started_at or ended_at is absent under a limit', () => {
    for (const times of [{}, started('12:00:00'), { ended_at: '2026-01-01T12:00:00Z' }]) {
      expect(codesOfLast(grant, makeExecution(grant, {}, times))).toEqual(['EVIDENCE_MISSING']);
      expect(verdictOfLast(grant, makeExecution(grant, {}, times))).toBe('invalid');
      const free = makeGrant();
      expect(codesOfLast(free, makeExecution(free, {}, times))).toEqual([]);
    }
    const parent = makeGrant({ concurrency: 2n });
    const child = makeGrant({ concurrency: 1n }, parent);
    expect(codesOfLast(parent, child, makeExecution(child))).toEqual(['EVIDENCE_MISSING']);
  });
});

describe('rule 5: silence is not free', () => {
  const grant = makeGrant({ caps: { usd: 10n, calls: 9n }, rates: { 'usd.per_min': 6n } });
  const action = makeAction(grant, { usd: 4n, calls: 1n, tok: 0n });

  test('METER_UNREPORTED: what was reserved counts as used, as estimated use, under every grant above', () => {
    const child = makeGrant({ caps: { usd: 5n, calls: 5n }, rates: { 'usd.per_min': 6n } }, grant);
    const under = makeAction(child, { usd: 4n });
    const { findings, state, verdicts } = judge([grant, child, under, makeExecution(under, { tok: 0n })]);
    expect(findings[3]).toMatchObject([{ code: 'METER_UNREPORTED', severity: 'warning', class: 'none' }]);
    expect(verdicts[3]).toBe('ok');
    expect([grant, child].map((each) => balance(state, each))).toEqual(['4/0/6', '4/0/1']);
    const estimated = listGrants(state).map(
      ({ balances }) => balances.find(({ unit }) => unit === 'usd')?.estimated,
    );
    expect(estimated).toEqual([
      { t: 'int', v: '4' },
      { t: 'int', v: '4' },
    ]);
  });

  test('it is listed once for a grant and unit, and not of calls and time.ms, which count all the same', () => {
    const second = makeAction(grant, { usd: 1n, calls: 1n }, number(1));
    const { findings, state } = judge([
      grant,
      action,
      second,
      makeExecution(action, {}, started('12:00:00')),
      makeExecution(second, {}, started('12:05:00')),
    ]);
    expect(findings.flat()).toMatchObject([{ code: 'METER_UNREPORTED', folded: 1, at: { line: 4 } }]);
    expect([balance(state, grant), balance(state, grant, 'calls')]).toEqual(['5/0/5', '2/0/7']);
  });

  test('who used none says 0, and a failure that left nothing gives it back', () => {
    expect(codesOfLast(grant, action, makeExecution(action, { usd: 0n }))).toEqual([]);
    const { findings, state } = judge([grant, action, makeExecution(action, {}, failed)]);
    expect(findings[2]).toEqual([]);
    expect(balance(state, grant)).toBe('0/0/10');
  });

  test('it counts in rates, and is not held against action caps', () => {
    const next = makeAction(grant, { usd: 4n }, number(1));
    const [first, second] = [action, next].map((each) => makeExecution(each, {}, started('12:00:00')));
    expect(codesOf(grant, action, next, first, second)[4]).toEqual(['RATE_LIMIT_EXCEEDED']);
    const capped = makeGrant({ actionCaps: { usd: 3n } });
    const above = makeAction(capped, { usd: 4n });
    expect(codesOf(capped, above, makeExecution(above)).slice(1)).toEqual([
      ['ACTION_CAP_EXCEEDED'],
      ['METER_UNREPORTED'],
    ]);
    const stated = makeExecution(above, { usd: 4n });
    expect(codesOf(capped, above, stated)[2]).toEqual(['ACTION_CAP_EXCEEDED']);
  });

  test('an execution with an unknown outcome used what was reserved, where it states nothing', () => {
    const unknown = makeExecution(action, {}, { outcome: 'unknown' });
    const { findings, state, verdicts } = judge([grant, action, unknown]);
    expect(findings[2].map(({ code }) => code)).toEqual(['METER_UNREPORTED']);
    expect(verdicts[2]).toBe('ok');
    expect([balance(state, grant), balance(state, grant, 'calls')]).toEqual(['4/0/6', '1/0/8']);
    expect(listGrants(state)).toMatchObject([{ executions: 1 }]);
    const stated = makeExecution(action, { usd: 0n }, { outcome: 'unknown' });
    const left = judge([grant, action, stated]);
    expect(left.findings.flat()).toEqual([]);
    expect([balance(left.state, grant), balance(left.state, grant, 'calls')]).toEqual(['0/0/10', '1/0/8']);
  });

  test('of actions without a grant it is listed once a unit', () => {
    const bare = (n: number, reserved: AmountsByUnit): AnyEvent => makeAction(undefined, reserved, number(n));
    const actions = [bare(1, { usd: 1n, tok: 1n }), bare(2, { usd: 2n }), bare(3, { usd: 3n, calls: 1n })];
    const silent = actions.map((each) => makeExecution(each));
    const under = makeAction(grant, { usd: 1n });
    const findings = judge([grant, ...actions, under, ...silent, makeExecution(under)]).findings.flat();
    expect(findings.map(({ code, at: { line }, folded = 0 }) => [code, line, folded])).toEqual([
      ['METER_UNREPORTED', 6, 0],
      ['METER_UNREPORTED', 6, 2],
      ['METER_UNREPORTED', 9, 0],
    ]);
  });

  test('a unit has a basis of its own', () => {
    const used = { usd: 2n, calls: 1n };
    const members = { meter_basis: 'reported', meter_basis_by_unit: { usd: 'estimated' } };
    const { state } = judge([grant, makeExecution(grant, used, members)]);
    const [calls, usd] = listGrants(state)[0]?.balances ?? [];
    expect([calls?.unit, calls?.estimated]).toEqual(['calls', undefined]);
    expect(usd).toMatchObject({ unit: 'usd', estimated: { t: 'int', v: '2' } });
  });
});

describe('rule 3: until when an action may be begun', () => {
  const grant = makeGrant();
  const expiring = { expires_at: '2026-01-01T12:30:00Z' };
  const action = makeAction(grant, { usd: 1n }, {}, 'fs.read', expiring);

  test('ACTION_EXPIRED: at expires_at or later, a release excepted', () => {
    expect(codesOfLast(grant, action, makeExecution(action, { usd: 1n }, started('12:29:59.9')))).toEqual([]);
    const late = makeExecution(action, { usd: 1n }, started('12:30:00'));
    expect(codesOfLast(grant, action, late)).toEqual(['ACTION_EXPIRED']);
    expect(verdictOfLast(grant, action, late)).toBe('violation');
    const release = makeExecution(action, {}, { ...RELEASE, ...at('13:00:00') });
    expect(codesOfLast(grant, action, release)).toEqual([]);
  });
});

describe('rule 18: requests', () => {
  const grant = makeGrant();
  const ask = (under: AnyEvent | undefined, n: number, key = 'job/1'): AnyEvent =>
    makeAction(under, { usd: 1n }, number(n), 'fs.read', { request_key: key });

  test('REQUEST_REPEATED: of one principal under one root grant, each key is used once', () => {
    const child = makeGrant({}, grant);
    const elsewhere = makeGrant({}, undefined, number(1));
    expect(codesOfLast(grant, ask(grant, 1), ask(grant, 2))).toEqual(['REQUEST_REPEATED']);
    expect(codesOfLast(grant, child, ask(grant, 1), ask(child, 2))).toEqual(['REQUEST_REPEATED']);
    expect(codesOfLast(ask(undefined, 1), ask(undefined, 2))).toEqual(['REQUEST_REPEATED']);
    expect(codesOfLast(grant, elsewhere, ask(grant, 1), ask(elsewhere, 2))).toEqual([]);
    expect(codesOfLast(grant, ask(grant, 1), ask(grant, 2, 'job/2'))).toEqual([]);
  });

  test('a release does not free a key, and an earlier action that is invalid does not hold it', () => {
    const first = ask(grant, 1);
    const release = makeExecution(first, {}, RELEASE);
    expect(codesOfLast(grant, first, release, ask(grant, 2))).toEqual(['REQUEST_REPEATED']);
    const unlinked = {
      ...number(1),
      intents: { intent_digest: digestOf('x'), user_intent_digest: digestOf('y') },
    };
    const broken = makeAction(grant, { usd: 1n }, unlinked, 'fs.read', { request_key: 'job/1' });
    expect(codesOf(grant, broken, ask(grant, 2))).toEqual([[], ['INTENT_MISMATCH'], []]);
  });
});

describe('rule 8: release of what was started', () => {
  const grant = makeGrant({ caps: { usd: 10n } });
  const action = makeAction(grant, { usd: 4n });
  const begin = (members: Members = {}, authorization = action): AnyEvent =>
    makeStart(authorization, members);

  test('RELEASE_OF_STARTED: nothing is given back', () => {
    const release = makeExecution(action, {}, RELEASE);
    const { findings, state } = judge([grant, action, begin(), release]);
    expect(findings[3]).toMatchObject([
      { code: 'RELEASE_OF_STARTED', severity: 'warning', related: [{ line: 3 }] },
    ]);
    expect(balance(state, grant)).toBe('4/0/6');
    // A start by another principal does not count.
    const strange = judge([grant, action, begin({ principal_id: 'agent:a2' }), release]);
    expect(strange.findings.flat()).toEqual([]);
    expect(balance(strange.state, grant)).toBe('0/0/10');
  });

  test('who takes a start over counts what is reserved once more', () => {
    const first = begin();
    const second = begin({ prev_event_id: first.event_id });
    const third = begin({ prev_event_id: second.event_id });
    const taken = judge([grant, action, first, second]);
    expect(taken.findings.flat()).toEqual([]);
    expect(balance(taken.state, grant)).toBe('4/4/2');
    const over = judge([grant, action, first, second, third]);
    expect(over.findings[4]).toMatchObject([{ code: 'METER_CAP_EXCEEDED', at: { line: 5 } }]);
    // One that names no open start does not count.
    expect(
      balance(judge([grant, action, first, begin({ meter_known: [], ...number(9) })]).state, grant),
    ).toBe('0/4/6');
  });

  test('a release of what was started comes after expiry all the same, and gives nothing back', () => {
    const short = makeGrant({ expires: '2026-01-01T13:00:00Z', rates: { 'calls.per_day': 0n } });
    const expiring = makeAction(short, { usd: 4n }, {}, 'fs.read', { expires_at: '2026-01-01T12:30:00Z' });
    const release = makeExecution(expiring, {}, { ...RELEASE, ...at('14:00:00') });
    const { findings, state } = judge([short, expiring, begin({}, expiring), release]);
    expect(findings.flat()).toMatchObject([{ code: 'RELEASE_OF_STARTED', at: { line: 4 } }]);
    expect(balance(state, short)).toBe('4/0/6');
    expect(listGrants(state)).toMatchObject([{ executions: 0, balances: [{ estimated: { v: '4' } }] }]);
    expect(listOpenStarts(state)).toEqual([]);
    const unbegun = judge([short, expiring, release]);
    expect(unbegun.findings.flat()).toEqual([]);
    expect(balance(unbegun.state, short)).toBe('0/0/10');
  });

  test('a start that was taken over makes way: a release is one of the later start', () => {
    const first = begin();
    const second = begin({ prev_event_id: first.event_id });
    const release = makeExecution(action, {}, RELEASE);
    const { findings, state } = judge([grant, action, first, second, release]);
    expect(findings[4]).toMatchObject([{ code: 'RELEASE_OF_STARTED', related: [{ line: 4 }] }]);
    expect(balance(state, grant)).toBe('8/0/2');
  });
});

describe('starts (SPEC §3.8)', () => {
  const begin = (members: Members, authorization: AnyEvent): AnyEvent => makeStart(authorization, members);
  const known = (usd: bigint): Members => ({ meter_known: meters({ usd }) });

  test('under a grant: what the earlier start was known to use counts as used, as an estimate', () => {
    const grant = makeGrant({ caps: { usd: 10n } });
    const first = begin(known(6n), grant);
    const second = begin({ ...known(4n), prev_event_id: first.event_id }, grant);
    const third = begin({ ...known(9n), prev_event_id: second.event_id }, grant);
    const { findings, state } = judge([grant, first, second, third]);
    expect(findings.flat()).toEqual([]);
    expect(balance(state, grant)).toBe('10/0/0');
    expect(listGrants(state)).toMatchObject([{ balances: [{ estimated: { v: '10' } }] }]);
    const more = begin({ prev_event_id: third.event_id }, grant);
    const over = judge([grant, first, second, third, more]);
    expect(over.findings[4]).toMatchObject([{ code: 'METER_CAP_EXCEEDED', class: 'violation' }]);
    expect(over.verdicts[4]).toBe('violation');
    expect(balance(over.state, grant)).toBe('19/0/-9');
  });

  test('under each grant above, up to its cap and not beyond; of units that nothing caps nothing counts', () => {
    const root = makeGrant({ caps: { usd: 9n } });
    const child = makeGrant({ caps: { usd: 8n, tok: 1n } }, root);
    const action = makeAction(child, { usd: 4n, tok: 1n, http: 1n });
    const uncapped = ['METER_UNCAPPED'];
    const first = begin({}, action);
    const second = begin({ prev_event_id: first.event_id }, action);
    const taken = judge([root, child, action, first, second]);
    expect(taken.findings.map((list) => list.map(({ code }) => code))).toEqual([
      [],
      [],
      uncapped,
      [],
      ['METER_CAP_EXCEEDED'],
    ]);
    expect(taken.findings[4]).toMatchObject([{ related: [{ line: 2 }], at: { line: 5 } }]);
    expect([root, child].map((each) => balance(taken.state, each))).toEqual(['4/4/1', '4/4/0']);
    expect(balance(taken.state, child, 'tok')).toBe('1/1/-1');
    const spent = makeExecution(root, { usd: 2n });
    const above = judge([root, child, spent, action, first, second]).findings[5];
    expect(above.filter(({ code }) => code === 'METER_CAP_EXCEEDED')).toMatchObject([
      { related: [{ line: 2 }] },
      { related: [{ line: 1 }] },
    ]);
  });

  test('of a grant no more are open than may run at a time, of an action one; who takes over adds none', () => {
    const grant = makeGrant({ concurrency: 2n });
    const [one, two, beyond] = [1n, 2n, 3n].map((usd) => begin(known(usd), grant)) as [
      AnyEvent,
      AnyEvent,
      AnyEvent,
    ];
    const openOf = (...events: AnyEvent[]): number[] =>
      listOpenStarts(judge(events).state).map(({ seq }) => seq);
    expect(openOf(grant, one, two, beyond)).toEqual([1, 2]);
    const after = (earlier: AnyEvent): AnyEvent => begin({ prev_event_id: earlier.event_id }, grant);
    expect(openOf(grant, one, two, after(one))).toEqual([2, 3]);
    // Who follows one that does not count takes nothing over.
    const lost = judge([grant, one, two, beyond, after(beyond)]);
    expect(listOpenStarts(lost.state).map(({ seq }) => seq)).toEqual([1, 2]);
    expect(balance(lost.state, grant)).toBe('0/0/10');
    // What is settled makes room.
    const done = makeExecution(grant, {}, { ...ran('12:00:00', '12:00:00'), prev_event_id: one.event_id });
    expect(openOf(grant, one, two, done, beyond)).toEqual([2, 4]);
    const action = makeAction(grant, { usd: 1n });
    const [first, again] = [1, 2].map((n) => begin(number(n), action)) as [AnyEvent, AnyEvent];
    expect(openOf(grant, action, first, again)).toEqual([2]);
    expect(openOf(grant, one, two, action, first)).toEqual([1, 2, 4]);
  });

  test('one that does not count is no finding, and takes nothing over', () => {
    const grant = makeGrant();
    const action = makeAction(grant, { usd: 4n });
    const first = begin({}, action);
    for (const members of [
      other,
      { tool_name: 'fs.write' },
      { tool_params_digest: digestOf('else') },
      { tool_params_digest: undefined },
      { recorder: 'fifteen-letters' },
      { recorder: 'a'.repeat(129) },
      { recorder: 'with a space and more' },
      { started_at: undefined },
      { meter_known: undefined },
      { meter_known: [{ unit: 'usd', amount: { t: 'int', v: '-1' } }] },
      { intents: undefined },
    ]) {
      const strange = begin({ prev_event_id: first.event_id, ...members }, action);
      const { findings, state } = judge([grant, action, first, strange]);
      expect(findings.flat()).toEqual([]);
      expect(listOpenStarts(state).map(({ seq }) => seq)).toEqual([2]);
      expect(balance(state, grant)).toBe('0/4/6');
      expect(listOpenStarts(judge([grant, action, begin(members, action)]).state)).toEqual([]);
    }
    const denied = makeAction(grant, { usd: 4n }, deny);
    expect(listOpenStarts(judge([grant, denied, begin({}, denied)]).state)).toEqual([]);
    const spent = makeExecution(action, { usd: 1n });
    expect(listOpenStarts(judge([grant, action, spent, first]).state)).toEqual([]);
    // A record that is invalid: its causal link names nothing.
    const unlinked = begin({ prev_event_id: digestOf('nowhere') }, action);
    const broken = judge([grant, action, unlinked]);
    expect(broken.findings[2].map(({ code }) => code)).toEqual(['PREV_EVENT_NOT_FOUND']);
    expect(listOpenStarts(broken.state)).toEqual([]);
  });

  test('an execution settles the start that it names, and of an action any', () => {
    const grant = makeGrant();
    const action = makeAction(grant, { usd: 4n });
    const [one, two] = [1n, 2n].map((usd) => begin(known(usd), grant)) as [AnyEvent, AnyEvent];
    const openOf = (...events: AnyEvent[]): number[] =>
      listOpenStarts(judge(events).state).map(({ seq }) => seq);
    expect(openOf(grant, one, two, makeExecution(grant))).toEqual([1, 2]);
    expect(openOf(grant, one, two, makeExecution(grant, {}, { prev_event_id: two.event_id }))).toEqual([1]);
    expect(openOf(grant, action, begin({}, action), makeExecution(action, { usd: 1n }))).toEqual([]);
    const elsewhere = makeExecution(action, { usd: 1n }, { prev_event_id: one.event_id });
    expect(openOf(grant, action, one, elsewhere)).toEqual([2]);
  });
});

describe('rule 8: release', () => {
  const grant = makeGrant({
    rates: { 'calls.per_day': 1n },
    concurrency: 1n,
    expires: '2026-01-01T13:00:00Z',
  });
  const action = makeAction(grant, { usd: 4n });

  test('a reservation is outstanding until its action is executed', () => {
    const { state } = judge([grant, action]);
    expect(balance(state, grant)).toBe('0/4/6');
    expect(listOpenAuthorizations(state)).toMatchObject([{ toolName: 'fs.read', seq: 1 }]);
    expect(listOpenAuthorizations(judge([grant, action, makeExecution(action)]).state)).toEqual([]);
  });

  test('a failed execution with ABANDONED and no use gives it back, and did not happen in time', () => {
    const late = makeExecution(action, {}, { ...RELEASE, ...at('14:00:00') });
    const { state, findings, verdicts } = judge([grant, action, late]);
    expect(findings.flat()).toEqual([]);
    expect(verdicts).toEqual(['ok', 'ok', 'ok']);
    expect(balance(state, grant)).toBe('0/0/10');
    expect(listGrants(state)).toMatchObject([{ executions: 0 }]);
    const run = makeExecution(grant, {}, ran('12:00:00', '12:00:01'));
    expect(codesOf(grant, action, late, run).flat()).toEqual(['TIME_REGRESSION']);
  });

  test('any other failure did happen', () => {
    const gone = { ...ran('14:00:00', '14:00:00'), ...RELEASE };
    const [file, output] = [{ kind: 'file', reference: '/a' }, digestOf('output')];
    expect(codesOfLast(grant, action, makeExecution(action, {}, gone))).toEqual([]);
    expect(codesOfLast(grant, action, makeExecution(action, {}, { ...gone, resources_touched: [] }))).toEqual(
      [],
    );
    const silent = ['GRANT_EXPIRED', 'METER_UNREPORTED'];
    const stated = ['GRANT_EXPIRED'];
    for (const [used, members, codes, left] of [
      [{}, { ...gone, error_code: 'TIMEOUT' }, stated, '0/0/10'],
      [{ usd: 0n }, gone, stated, '0/0/10'],
      [{}, { ...gone, outcome: 'unknown', error_code: undefined }, silent, '4/0/6'],
      [{}, { ...gone, output_digest: output }, silent, '4/0/6'],
      [{}, { ...gone, output_ref: { digest: output } }, silent, '4/0/6'],
      [{}, { ...gone, resources_touched: [file] }, silent, '4/0/6'],
      [{}, { ...gone, ended_at: '2026-01-01T14:00:00.000000001Z' }, stated, '0/0/10'],
    ] as const) {
      const { findings, state } = judge([grant, action, makeExecution(action, used, members)]);
      expect(findings[2].map(({ code }) => code)).toEqual(codes);
      expect(listGrants(state)).toMatchObject([{ executions: 1 }]);
      expect(balance(state, grant)).toBe(left);
    }
    const ended = { ...RELEASE, ...at('14:00:00'), ended_at: '2026-01-01T14:00:00Z' };
    expect(codesOfLast(grant, action, makeExecution(action, {}, ended))).toEqual([
      'GRANT_EXPIRED',
      'EVIDENCE_MISSING',
    ]);
  });

  test('under a grant itself, and of a spent action, there is nothing to release', () => {
    const gone = { ...ran('14:00:00', '14:00:00'), ...RELEASE };
    expect(codesOfLast(grant, makeExecution(grant, {}, gone))).toEqual(['GRANT_EXPIRED']);
    const first = makeExecution(action, {}, RELEASE);
    const { findings, state } = judge([grant, action, first, makeExecution(action, {}, gone)]);
    expect(findings[3].map(({ code }) => code)).toEqual(['AUTHORIZATION_REUSED', 'GRANT_EXPIRED']);
    expect(listGrants(state)).toMatchObject([{ executions: 1 }]);
    const early = ran('12:00:00', '12:00:00');
    const twice = [1, 2].map((n) => makeExecution(grant, {}, { ...early, ...RELEASE, ...number(n) }));
    expect(codesOf(grant, ...twice)[2]).toEqual(['RATE_LIMIT_EXCEEDED', 'CONCURRENCY_EXCEEDED']);
  });
});

describe('rule 9: delegation', () => {
  const full: BoundsDraft = {
    tools: ['fs.*', 'http.get'],
    caps: { usd: 10n, tok: '0.3' },
    actionCaps: { usd: 2n },
    begins: '2026-01-01T11:00:00Z',
    expires: '2026-01-01T13:00:00Z',
    rates: { 'calls.per_min': 5n },
    concurrency: 2n,
    mode: 'allow_contentref',
    resources: [{ kind: 'file', reference: '/a' }],
  };
  const parent = makeGrant(full);
  const delegate = (changes: BoundsDraft, under = parent, base = full): string[] =>
    codesOfLast(under, makeGrant({ ...base, ...changes }, under));

  test('the same bounds, or tighter ones, are within', () => {
    expect(delegate({})).toEqual([]);
    const tighter: BoundsDraft = {
      tools: ['fs.r*', 'fs.write'],
      caps: { usd: '9.99', tok: 0n, calls: 1n },
      actionCaps: { usd: '1.99', tok: 99n },
      begins: '2026-01-01T11:00:00.000000001Z',
      expires: '2026-01-01T12:59:59.999999999Z',
      rates: { 'calls.per_min': '4.5', 'usd.per_day': 1n },
      concurrency: 1n,
      mode: 'digest_only',
      resources: [],
    };
    expect(delegate(tighter)).toEqual([]);
    expect(codesOfLast(makeGrant(), makeGrant({ ...full, caps: { usd: 1n, tok: 1n } }, makeGrant()))).toEqual(
      [],
    );
  });

  test.each<[string, BoundsDraft]>([
    ['a tool that no pattern covers', { tools: ['fs.read', 'http.post'] }],
    ['a wider pattern', { tools: ['f*'] }],
    ['the prefix itself', { tools: ['fs.'] }],
    ['a pattern of which the parent has one name', { tools: ['http.*'] }],
    ['a higher cap', { caps: { usd: '10.01', tok: '0.3' } }],
    ['a cap that is higher as a double', { caps: { usd: 10n, tok: rat(300_000_001n, 10n ** 9n) } }],
    ['no cap', { caps: { usd: 10n } }],
    ['a higher action cap', { actionCaps: { usd: '2.01' } }],
    ['an action cap of another unit', { actionCaps: { tok: 1n } }],
    ['an earlier start', { begins: '2026-01-01T10:59:59.999999999Z' }],
    ['a later expiry', { expires: '2026-01-01T13:00:00.000000001Z' }],
    ['a higher rate', { rates: { 'calls.per_min': '5.1' } }],
    ['another rate', { rates: { 'calls.per_sec': 1n } }],
    ['a higher rate over an equally long window', { rates: { 'calls.per_60s': '5.1' } }],
    ['a longer window', { rates: { 'calls.per_61s': 5n } }],
    ['a higher concurrency', { concurrency: 3n }],
    ['a looser mode', { mode: 'allow_inline' }],
  ])('DELEGATION_EXCEEDED: %s', (_, changes) => {
    expect(delegate(changes)).toEqual(['DELEGATION_EXCEEDED']);
  });

  test.each(['actionCaps', 'begins', 'expires', 'rates', 'concurrency', 'mode'] as const)(
    'DELEGATION_EXCEEDED: no %s where the parent has it',
    (name) => {
      const rest = Object.fromEntries(Object.entries(full).filter(([key]) => key !== name));
      expect(delegate({}, parent, rest)).toEqual(['DELEGATION_EXCEEDED']);
    },
  );

  test('the same instant or window in another spelling is within', () => {
    expect(delegate({ expires: '2026-01-01T13:00:00.000Z' })).toEqual([]);
    expect(delegate({ begins: '2026-01-01T11:00:00.000Z' })).toEqual([]);
    expect(delegate({ rates: { 'calls.per_60s': 5n } })).toEqual([]);
    expect(delegate({ rates: { 'calls.per_1m': 5n } })).toEqual([]);
  });

  test('max_delegation_depth: of any ancestor', () => {
    const [none, one, two] = [0, 1, 2].map((depth) => makeGrant({ depth }));
    const exceeded = ['DELEGATION_EXCEEDED'];
    expect(codesOfLast(none, makeGrant({}, none))).toEqual(exceeded);
    expect(codesOfLast(none, makeGrant({}, none, deny))).toEqual([]);
    const child = makeGrant({}, one);
    expect(codesOfLast(one, child)).toEqual([]);
    const { findings } = judge([one, child, makeGrant({}, child)]);
    expect(findings[2]).toMatchObject([
      {
        code: 'DELEGATION_EXCEEDED',
        at: { pointer: '/authorization/grant_event_id' },
        related: [{ line: 1 }],
      },
    ]);
    // What the child says of itself does not loosen it, and may be tighter.
    const wide = makeGrant({ depth: 31 }, one);
    expect(codesOfLast(one, wide, makeGrant({}, wide))).toEqual(exceeded);
    const tight = makeGrant({ depth: 0 }, two);
    expect(codesOfLast(two, tight, makeGrant({}, tight))).toEqual(exceeded);
    const middle = makeGrant({}, two);
    expect(codesOfLast(two, middle, makeGrant({}, middle))).toEqual([]);
  });

  test('each exceeded bound is reported, with its place', () => {
    const loose = makeGrant({ tools: ['*'], caps: { tok: 1n } }, parent);
    const { findings } = judge([parent, loose]);
    expect(findings[1].map(({ at: place }) => place.pointer)).toEqual(
      [
        'allowed_tools',
        'meter_caps',
        'meter_caps',
        'action_caps',
        'not_before',
        'expires_at',
        'rate_limits',
        'concurrency_limit',
        'output_mode',
      ].map((name) => `/authorization/bounds/${name}${name === 'allowed_tools' ? '/0' : ''}`),
    );
  });

  test('RESOURCE_NOT_GRANTED: a resource that the parent does not name', () => {
    expect(delegate({ resources: [{ kind: 'file', reference: '/b' }] })).toEqual(['RESOURCE_NOT_GRANTED']);
    expect(delegate({ resources: [{ kind: 'dir', reference: '/a' }] })).toEqual(['RESOURCE_NOT_GRANTED']);
    // An empty list lists none that others would have to be among; what is touched under it is told.
    const empty = makeGrant({ resources: [] });
    const child = makeGrant({ resources: [{ kind: 'file', reference: '/b' }] }, empty);
    expect(codesOfLast(empty, child)).toEqual([]);
    const touched = { resources_touched: [{ kind: 'file', reference: '/b' }] };
    expect(codesOfLast(empty, child, makeExecution(child, {}, touched))).toEqual(['RESOURCE_NOT_GRANTED']);
  });

  test('its principal may differ', () => {
    expect(codesOfLast(parent, makeGrant(full, parent, other))).toEqual([]);
  });

  test('a chain is at most 32 grants deep, and what is used counts against the nearest 32', () => {
    const chain = [makeGrant()];
    while (chain.length < 33) chain.push(makeGrant({}, chain.at(-1), number(chain.length)));
    const codes = codesOf(
      ...chain,
      makeExecution(chain[31], { usd: 1n }),
      makeExecution(chain[32], { usd: 2n }),
    );
    expect(codes.slice(0, 32).flat()).toEqual([]);
    expect(codes.slice(32)).toEqual([['DELEGATION_EXCEEDED'], [], []]);
    const { state } = judge([
      ...chain,
      makeExecution(chain[31], { usd: 1n }),
      makeExecution(chain[32], { usd: 2n }),
    ]);
    expect([0, 1, 31, 32].map((n) => balance(state, chain[n]))).toEqual(['1/0/9', '3/0/7', '3/0/7', '2/0/8']);
  });

  test('use counts under a grant that exceeds its parent too', () => {
    const grant = makeGrant();
    const loose = makeGrant({ caps: { usd: 20n } }, grant);
    const { findings } = judge([grant, loose, makeExecution(loose, { usd: 11n })]);
    expect(findings[2]).toMatchObject([{ code: 'METER_CAP_EXCEEDED', related: [{ line: 1 }] }]);
  });
});

describe('rule 10: principals', () => {
  const grant = makeGrant();

  test("an action's principal is its grant's", () => {
    expect(codesOfLast(grant, makeAction(grant, {}, other))).toEqual(['PRINCIPAL_MISMATCH']);
    expect(codesOfLast(makeAction(undefined, undefined, other))).toEqual([]);
  });

  test("an execution's is its authorization's", () => {
    expect(codesOfLast(grant, makeExecution(grant, {}, other))).toEqual(['PRINCIPAL_MISMATCH']);
    const action = makeAction(undefined, undefined, other);
    expect(codesOfLast(action, makeExecution(action, {}, other))).toEqual([]);
    expect(codesOfLast(action, makeExecution(action))).toEqual(['PRINCIPAL_MISMATCH']);
    const child = makeGrant({}, grant, other);
    expect(codesOfLast(grant, child, makeExecution(child, {}, other))).toEqual([]);
  });
});

describe('rule 11: adjustments', () => {
  const grant = makeGrant({ caps: { usd: 10n, tok: 5n } });
  const child = makeGrant({ caps: { usd: 10n, tok: 5n } }, grant, other);
  const used = makeExecution(child, { usd: 4n, tok: 1n }, other);
  const begun = [grant, child, used];
  const at = (events: AnyEvent[]): string[] => {
    const { state } = judge([...begun, ...events]);
    return [grant, child].map((each) => balance(state, each));
  };

  test('a credit lowers and a debit raises what counts as used, of the grant and those above it', () => {
    expect(at([])).toEqual(['4/0/6', '4/0/6']);
    expect(at([makeAdjustment(child, 'credit', { usd: '1.5' })])).toEqual(['2.5/0/7.5', '2.5/0/7.5']);
    expect(at([makeAdjustment(grant, 'credit', { usd: 4n })])).toEqual(['0/0/10', '4/0/6']);
    expect(at([makeAdjustment(child, 'debit', { usd: 2n })])).toEqual(['6/0/4', '6/0/4']);
    expect(codesOfLast(...begun, makeAdjustment(child, 'credit', { usd: 4n, tok: 1n }))).toEqual([]);
  });

  test('it does so from its place on', () => {
    const credit = makeAdjustment(grant, 'credit', { usd: 4n });
    const more = makeExecution(grant, { usd: 10n });
    expect(codesOf(...begun, more, credit)[3]).toEqual(['METER_CAP_EXCEEDED']);
    expect(codesOf(...begun, credit, more).flat()).toEqual([]);
  });

  test('METER_CAP_EXCEEDED: a debit that goes over, reservations counted; equal to the cap is within', () => {
    const reserved = makeAction(grant, { usd: 3n });
    const debit = (usd: string): string[] =>
      codesOfLast(...begun, reserved, makeAdjustment(grant, 'debit', { usd }));
    expect(debit('3')).toEqual([]);
    expect(debit('3.01')).toEqual(['METER_CAP_EXCEEDED']);
    // What goes over is counted all the same.
    expect(at([makeAdjustment(grant, 'debit', { usd: 7n })])).toEqual(['11/0/-1', '4/0/6']);
  });

  test('METER_UNCAPPED: a unit that the named grant does not cap changes nothing', () => {
    const narrow = makeGrant({ caps: { usd: 1n, tok: 1n, calls: 1n } }, grant);
    const strange = makeAdjustment(child, 'debit', { calls: 1n, usd: 1n });
    expect(codesOfLast(...begun, strange)).toEqual(['METER_UNCAPPED']);
    expect(at([strange])).toEqual(['5/0/5', '5/0/5']);
    // Nor under an ancestor that would cap it.
    const parent = makeGrant();
    const free = makeGrant({ caps: { tok: 1n } }, parent);
    const { state } = judge([parent, free, makeAdjustment(free, 'debit', { usd: 1n })]);
    expect(balance(state, parent)).toBe('0/0/10');
    expect(codesOfLast(grant, narrow, makeAdjustment(narrow, 'debit', { calls: 1n }))).toEqual([]);
  });

  test('ADJUSTMENT_EXCEEDED: more than counts as used, under the grant or above it; no part is applied', () => {
    const much = makeAdjustment(child, 'credit', { usd: '4.01', tok: 1n });
    const { findings, verdicts, state } = judge([...begun, much]);
    expect(findings[3]).toMatchObject([
      { code: 'ADJUSTMENT_EXCEEDED', at: { pointer: '/meters/1/amount' }, related: [{ line: 2 }] },
    ]);
    expect(verdicts[3]).toBe('violation');
    expect([balance(state, child), balance(state, child, 'tok')]).toEqual(['4/0/6', '1/0/4']);
    // What was given back above counts no more as used there.
    const above = makeAdjustment(grant, 'credit', { usd: 3n });
    const below = makeAdjustment(child, 'credit', { usd: 2n });
    const both = judge([...begun, above, below]);
    expect(both.findings[4]).toMatchObject([{ code: 'ADJUSTMENT_EXCEEDED', related: [{ line: 1 }] }]);
    expect(balance(both.state, child)).toBe('4/0/6');
    expect(codesOfLast(...begun, makeAdjustment(grant, 'credit', { usd: 5n }))).toEqual([
      'ADJUSTMENT_EXCEEDED',
    ]);
  });

  test('SELF_CREDIT: by the principal of the grant or of one above; no part is applied', () => {
    const self = ['SELF_CREDIT'];
    const by = (principal: string, under = child, direction: 'credit' | 'debit' = 'credit'): AnyEvent =>
      makeAdjustment(under, direction, { usd: 1n }, { principal_id: principal });
    expect(codesOfLast(...begun, by('agent:a2'))).toEqual(self);
    expect(codesOfLast(...begun, by('agent:a1'))).toEqual(self);
    expect(codesOfLast(...begun, by('agent:a2', grant))).toEqual([]);
    expect(codesOfLast(...begun, by('agent:a1', grant, 'debit'))).toEqual([]);
    expect(at([by('agent:a1')])).toEqual(['4/0/6', '4/0/6']);
  });

  test('rates and concurrency do not see adjustments', () => {
    const rated = makeGrant({ rates: { 'usd.per_day': 4n, 'calls.per_day': 1n } });
    const first = makeExecution(rated, { usd: 4n });
    expect(codesOfLast(rated, first, makeAdjustment(rated, 'debit', { usd: 1n }))).toEqual([]);
    const credit = makeAdjustment(rated, 'credit', { usd: 4n });
    expect(codesOf(rated, first, credit, makeExecution(rated, { usd: 1n }))[3]).toEqual([
      'RATE_LIMIT_EXCEEDED',
      'RATE_LIMIT_EXCEEDED',
    ]);
  });

  test('GRANT_NOT_FOUND, GRANT_NOT_A_GRANT, GRANT_DENIED', () => {
    const debit = (named: AnyEvent): AnyEvent => makeAdjustment(named, 'debit', { usd: 1n });
    expect(codesOf(debit(grant), grant)[0]).toEqual(['GRANT_NOT_FOUND']);
    expect(codesOfLast(note, debit(note))).toEqual(['GRANT_NOT_A_GRANT']);
    const denied = makeGrant({}, undefined, deny);
    expect(codesOfLast(denied, debit(denied))).toEqual(['GRANT_DENIED']);
    expect(judge([denied, debit(denied)]).findings[1]).toMatchObject([
      { at: { pointer: '/grant_event_id' } },
    ]);
  });

  test('EXECUTION_NOT_FOUND: it names no earlier execution', () => {
    const of = (named: AnyEvent | undefined, under = grant): AnyEvent =>
      makeAdjustment(under, 'debit', { usd: 1n }, {}, named);
    const missing = ['EXECUTION_NOT_FOUND'];
    expect(codesOfLast(...begun, of(used))).toEqual([]);
    expect(codesOfLast(...begun, of(child))).toEqual(missing);
    expect(codesOfLast(...begun, of(note))).toEqual(missing);
    expect(codesOf(grant, child, of(used), used)[2]).toEqual(missing);
    expect(verdictOfLast(...begun, of(note))).toBe('invalid');
    const broken = malformed(used);
    expect(codesOf(grant, child, broken, of(broken))[3]).toEqual(missing);
  });

  test('EXECUTION_NOT_UNDER_GRANT: it counts under another grant, or under none', () => {
    const sibling = makeGrant({ caps: { usd: 9n, tok: 5n } }, grant);
    const of = (named: AnyEvent, under: AnyEvent): AnyEvent =>
      makeAdjustment(under, 'debit', { usd: 1n }, {}, named);
    const elsewhere = ['EXECUTION_NOT_UNDER_GRANT'];
    expect(codesOfLast(grant, child, sibling, used, of(used, sibling))).toEqual(elsewhere);
    expect(codesOfLast(grant, child, sibling, used, of(used, child))).toEqual([]);
    const direct = makeExecution(grant);
    expect(codesOfLast(grant, child, direct, of(direct, child))).toEqual(elsewhere);
    const action = makeAction(child, {}, other);
    const ran = makeExecution(action, {}, other);
    expect(codesOfLast(grant, child, action, ran, of(ran, grant))).toEqual([]);
    const twice = makeExecution(action, {}, { ...other, ...number(1) });
    expect(codesOf(grant, child, action, ran, twice, of(twice, grant))[5]).toEqual([]);
    const alone = makeAction(undefined);
    const free = makeExecution(alone);
    expect(codesOfLast(grant, alone, free, of(free, grant))).toEqual(elsewhere);
    const denied = makeAction(grant, {}, deny);
    const blocked = makeExecution(denied, {}, failed);
    expect(codesOfLast(grant, denied, blocked, of(blocked, grant))).toEqual(elsewhere);
  });

  test('a credit by a record that is invalid is not applied, a debit is', () => {
    const bad = { prev_event_id: digestOf('nowhere') };
    expect(at([makeAdjustment(grant, 'credit', { usd: 1n }, bad)])).toEqual(['4/0/6', '4/0/6']);
    expect(at([makeAdjustment(grant, 'debit', { usd: 1n }, bad)])).toEqual(['5/0/5', '4/0/6']);
    expect(at([makeAdjustment(grant, 'credit', { usd: 1n }, {}, note)])).toEqual(['4/0/6', '4/0/6']);
  });

  test('QUANTITY_LOSSY: a double', () => {
    expect(codesOfLast(grant, makeAdjustment(grant, 'debit', { usd: double(0.5) }))).toEqual([
      'QUANTITY_LOSSY',
    ]);
  });

  test('a sum of too many digits is not made', () => {
    const parts = [double(5e-324), rat(1n, 10n ** 38n + 1n), rat(1n, 10n ** 39n - 1n)];
    const debits = parts.map((usd) => makeAdjustment(grant, 'debit', { usd }));
    expect(codesOf(grant, ...debits).slice(2)).toEqual([[], ['QUANTITY_INVALID']]);
    const whole = makeExecution(grant, { usd: 1n });
    const credits = parts.map((usd) => makeAdjustment(grant, 'credit', { usd }));
    expect(codesOf(grant, whole, ...credits).slice(3)).toEqual([[], ['QUANTITY_INVALID']]);
  });
});

describe('what is only estimated', () => {
  const grant = makeGrant({ caps: { usd: 10n } });
  const guess = { meter_basis: 'estimated' };
  const estimated = (...events: AnyEvent[]): string | undefined => {
    const { estimated: found } =
      findBalance(judge([grant, ...events]).state, `sha-256:${grant.event_id.b64}`, 'usd') ?? {};
    return found && formatQuantity(found);
  };

  test('is what executions used and debits added by a guess, and no more than counts as used', () => {
    const used = makeExecution(grant, { usd: 2n }, guess);
    expect(estimated(makeExecution(grant, { usd: 2n }, { meter_basis: 'billed' }))).toBeUndefined();
    expect(estimated(used, makeExecution(grant, { usd: 1n }))).toBe('2');
    expect(estimated(used, makeAdjustment(grant, 'debit', { usd: 1n }, guess))).toBe('3');
    expect(estimated(used, makeAdjustment(grant, 'debit', { usd: 1n }))).toBe('2');
    expect(estimated(used, makeAdjustment(grant, 'credit', { usd: '0.5' }))).toBe('1.5');
    expect(estimated(used, makeAdjustment(grant, 'credit', { usd: 2n }))).toBeUndefined();
  });
});

describe('rule 12: grants that are themselves wrong', () => {
  const findUnsoundOf = (events: AnyEvent[], grant: AnyEvent): number | undefined =>
    findUnsound(judge(events).state.links.grants.get(grant.event_id.b64))?.place.line;

  test('are known, and so are those above; what is allowed under them is judged as usual', () => {
    const grant = makeGrant();
    expect(findUnsoundOf([grant], grant)).toBeUndefined();
    const loose = makeGrant({ caps: { usd: 11n } }, grant);
    const below = makeGrant({}, loose);
    expect(findUnsoundOf([grant, loose, below], loose)).toBe(2);
    expect(findUnsoundOf([grant, loose, below], below)).toBe(2);
    expect(findUnsoundOf([grant, loose, below], grant)).toBeUndefined();
    expect(
      codesOf(grant, loose, below, makeExecution(below, { usd: 1n }))
        .slice(2)
        .flat(),
    ).toEqual([]);
    const invalid = makeGrant({}, undefined, { prev_event_id: digestOf('nowhere') });
    expect(findUnsoundOf([invalid], invalid)).toBe(1);
    // A warning leaves a grant as it is, and so does a copy of it.
    const lossy = makeGrant({ caps: { usd: double(0.5) } });
    expect(findUnsoundOf([lossy, lossy], lossy)).toBeUndefined();
  });
});

describe('rule 13: intents', () => {
  const intents = (intent: string, user?: string): Members => ({
    intents: {
      intent_digest: digestOf(intent),
      ...(user !== undefined && { user_intent_digest: digestOf(user) }),
    },
  });

  test.each([
    [[intents('a'), intents('a')], []],
    [[intents('a'), intents('a', 'other')], []],
    [[intents('a'), intents('b', 'a')], []],
    [[intents('a', 'user'), intents('b', 'user')], []],
    [[intents('a'), intents('b')], ['INTENT_UNLINKED']],
    [[intents('a'), intents('b', 'other')], ['INTENT_MISMATCH']],
    [[intents('a', 'user'), intents('b', 'a')], ['INTENT_MISMATCH']],
  ])('%j: %j, of actions and of delegated grants', ([above, own], codes) => {
    const grant = makeGrant({}, undefined, above);
    expect(codesOfLast(grant, makeAction(grant, {}, own))).toEqual(codes);
    expect(codesOfLast(grant, makeGrant({}, grant, own))).toEqual(codes);
    expect(codesOfLast(grant, makeAction(grant, {}, { ...own, ...deny }))).toEqual([]);
    expect(codesOfLast(grant, makeGrant({}, grant, { ...own, ...deny }))).toEqual([]);
  });

  test('a mismatch makes the event invalid, a missing link does not', () => {
    const grant = makeGrant({}, undefined, intents('a'));
    expect(verdictOfLast(grant, makeAction(grant, {}, intents('b', 'c')))).toBe('invalid');
    expect(verdictOfLast(grant, makeAction(grant, {}, intents('b')))).toBe('ok');
  });
});

describe('rule 14: action caps', () => {
  const grant = makeGrant({ actionCaps: { usd: 2n } });

  test("ACTION_CAP_EXCEEDED: an action's reservation and an execution's use; equal to it is within", () => {
    const over = ['ACTION_CAP_EXCEEDED'];
    expect(codesOfLast(grant, makeAction(grant, { usd: 2n }))).toEqual([]);
    expect(codesOfLast(grant, makeAction(grant, { usd: '2.01' }))).toEqual(over);
    expect(codesOfLast(grant, makeExecution(grant, { usd: 2n }))).toEqual([]);
    expect(codesOfLast(grant, makeExecution(grant, { usd: '2.01' }))).toEqual(over);
    expect(codesOfLast(grant, makeAction(grant, { usd: 9n }, deny))).toEqual([]);
    expect(verdictOfLast(grant, makeExecution(grant, { usd: '2.01' }))).toBe('violation');
    const twice = [1, 2].map((n) => makeExecution(grant, { usd: 2n }, number(n)));
    expect(codesOfLast(grant, ...twice)).toEqual([]);
    const silent = makeAction(grant);
    expect(codesOfLast(grant, silent, makeExecution(silent, { usd: 3n }))).toEqual(over);
  });

  test('each grant of the chain has its own, also of a unit that it does not cap', () => {
    const child = makeGrant({ actionCaps: { usd: 1n, tok: 1n } }, grant);
    const { findings } = judge([grant, child, makeExecution(child, { usd: 3n })]);
    expect(findings[2].map(({ code, related }) => [code, related?.[0].line])).toEqual([
      ['ACTION_CAP_EXCEEDED', 2],
      ['ACTION_CAP_EXCEEDED', 1],
    ]);
    expect(codesOf(grant, child, makeExecution(child, { tok: 2n }))[2]).toEqual([
      'ACTION_CAP_EXCEEDED',
      'METER_UNCAPPED',
    ]);
  });
});

describe('outputs and resources', () => {
  const output = { output_ref: { digest: digestOf('output') } };

  test('OUTPUT_MODE_EXCEEDED: an output_ref under digest_only, of the grant or an ancestor', () => {
    const strict = makeGrant({ mode: 'digest_only' });
    expect(codesOfLast(strict, makeExecution(strict, {}, output))).toEqual(['OUTPUT_MODE_EXCEEDED']);
    expect(codesOfLast(strict, makeExecution(strict, {}, { output_digest: digestOf('output') }))).toEqual([]);
    const child = makeGrant({ mode: 'digest_only' }, strict);
    expect(codesOfLast(strict, child, makeExecution(child, {}, output))).toEqual(['OUTPUT_MODE_EXCEEDED']);
    for (const grant of [
      makeGrant(),
      makeGrant({ mode: 'allow_contentref' }),
      makeGrant({ mode: 'allow_inline' }),
    ]) {
      expect(codesOfLast(grant, makeExecution(grant, {}, output))).toEqual([]);
    }
  });

  test('RESOURCE_NOT_GRANTED: one that the grant does not name, character by character', () => {
    const grant = makeGrant({ resources: [{ kind: 'file', reference: '/a' }] });
    const touch = (...references: string[]): Members => ({
      resources_touched: references.map((reference) => ({ kind: 'file', reference })),
    });
    expect(codesOfLast(grant, makeExecution(grant, {}, touch('/a')))).toEqual([]);
    expect(codesOfLast(grant, makeExecution(grant, {}, touch('/a', '/A', '/a/')))).toEqual([
      'RESOURCE_NOT_GRANTED',
      'RESOURCE_NOT_GRANTED',
    ]);
    expect(verdictOfLast(grant, makeExecution(grant, {}, touch('/b')))).toBe('ok');
    const free = makeGrant();
    expect(codesOfLast(free, makeExecution(free, {}, touch('/b')))).toEqual([]);
  });
});

describe('sums of too many digits (SPEC §2)', () => {
  // Pairwise without a common factor: 324, 39 and 39 digits; the product of the first three has 400, with `long` 402.
  const tiny = double(5e-324);
  const [short1, short2, long] = [10n ** 38n + 1n, 10n ** 38n + 3n, 10n ** 39n - 1n];
  const grant = makeGrant({ caps: { usd: 10n ** 38n } });
  const use = (amount: Quantity, under: AnyEvent = grant): AnyEvent => makeExecution(under, { usd: amount });

  test('400 digits are within, 402 are QUANTITY_INVALID and do not count', () => {
    const begin = [grant, use(tiny), use(rat(1n, short1))];
    expect(codesOf(...begin, use(rat(1n, short2))).flat()).toEqual(['QUANTITY_LOSSY']);
    const { findings, verdicts, state } = judge([...begin, use(rat(1n, long)), use(rat(1n, short2))]);
    expect(findings.map((list) => list.map(({ code }) => code)).slice(2)).toEqual([
      [],
      ['QUANTITY_INVALID'],
      [],
    ]);
    expect(verdicts[3]).toBe('invalid');
    expect([...state.links.grants.values()][0].accounts.get('usd')?.used.d).toBe(
      2n ** 1074n * short1 * short2,
    );
  });

  test('a reservation that does not count is not given back', () => {
    const actions = [tiny, rat(1n, short1), rat(1n, long)].map((usd) => makeAction(grant, { usd }));
    const { findings, state } = judge([
      grant,
      ...actions,
      ...actions.map((each) => makeExecution(each, {}, RELEASE)),
    ]);
    expect(findings.flat().map(({ code }) => code)).toEqual(['QUANTITY_LOSSY', 'QUANTITY_INVALID']);
    expect(balance(state, grant)).toMatch(/^0\/0\//);
  });

  test('taking away what had made a sum coarser is bounded too', () => {
    const pairs = Array.from({ length: 12 }, (_, n) => 10n ** 38n + BigInt(2 * n + 1)).map((d, n) =>
      [1n, d - 1n].map((part) => makeAction(grant, { usd: rat(part, d) }, number(n))),
    );
    const releases = pairs.map(([, second]) => makeExecution(second, {}, RELEASE));
    const { findings, state } = judge([grant, ...pairs.flat(), ...releases]);
    const codes = findings.map((list) => list.map(({ code }) => code));
    expect(codes.slice(0, 25).flat()).toEqual([]);
    expect(codes.slice(25).flat().length).toBeGreaterThan(0);
    expect([...new Set(codes.slice(25).flat())]).toEqual(['QUANTITY_INVALID']);
    const digits = [...state.links.grants.values()][0].accounts.get('usd')?.reserved.d.toString().length;
    expect(digits).toBeLessThanOrEqual(400);
  });

  test('what one window holds is bounded, and not what all of them hold', () => {
    const rated = makeGrant({ caps: { tok: 1n }, rates: { 'usd.per_day': 10n ** 38n } });
    const run = (...days: string[]): string[] =>
      codesOf(
        rated,
        ...[rat(1n, short1), tiny, rat(1n, long)].map((usd, n) =>
          makeExecution(rated, { usd }, { started_at: `2026-02-${days[n]}Z` }),
        ),
      ).at(-1) as string[];
    expect(run('01T00:00:00', '04T00:00:00', '07T00:00:00')).toEqual([]);
    expect(run('01T00:00:00', '02T00:00:00', '02T00:00:00')).toEqual([]);
    expect(run('01T00:00:01', '02T00:00:00', '02T00:00:00.5')).toEqual(['QUANTITY_INVALID']);
    expect(run('02T00:00:00', '02T00:00:00.5', '01T00:00:01')).toEqual(['QUANTITY_INVALID']);
  });
});

describe('verdicts', () => {
  test('invalid over violation over denied over ok', () => {
    const grant = makeGrant({ tools: ['x'] });
    const intents = { intents: { intent_digest: digestOf('another') } };
    expect(codesOfLast(grant, makeExecution(grant, {}, intents))).toEqual([
      'INTENT_MISMATCH',
      'TOOL_NOT_ALLOWED',
    ]);
    expect(verdictOfLast(grant, makeExecution(grant, {}, intents))).toBe('invalid');
    const denied = makeAction(undefined, {}, deny);
    expect(verdictOfLast(denied, makeExecution(denied, {}, { ...failed, ...other }))).toBe('violation');
    expect(verdictOfLast(denied, makeExecution(denied, {}, { ...failed, ...intents }))).toBe('invalid');
    expect(verdictOfLast(makeAction(grant, {}, deny))).toBe('invalid');
  });
});
