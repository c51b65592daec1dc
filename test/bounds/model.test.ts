/**
 * Every random ledger is judged alike by the verifier and by the naive checker: verdicts, findings, accounts, open
 * authorizations, open starts, approvals used, revocations. On failure fast-check prints the seed and the path: SEED and SEED_PATH repeat the run. SLOW=1 runs sixty
 * times as many.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Finding } from '../../src/format/finding/finding.js';
import { listGrants, listOpenAuthorizations, listOpenStarts } from '../../src/rules/report/accounts.js';
import {
  judgeNaively,
  subtract,
  valueOf,
  type Entry,
  type Fraction,
  type NaiveFinding,
  type NaiveReport,
} from './naive-checker.js';
import { makeSequence, TOPICS } from './sequences.js';
import { judge } from './support.js';
import { times } from '../slow.js';

const { SEED, SEED_PATH } = process.env;
const RUNS = times(300, 60_000);

/** What the sequences must have met often, or the comparison says little. */
const CODES = [
  ['SCHEMA', 'TIMESTAMP_INVALID', 'EVENT_DUPLICATE', 'PREV_EVENT_NOT_FOUND', 'EVENT_TYPE_UNKNOWN'],
  [
    'AUTH_NOT_FOUND',
    'AUTH_NOT_AN_AUTHORIZATION',
    'AUTH_AFTER_EXECUTION',
    'GRANT_NOT_FOUND',
    'GRANT_NOT_A_GRANT',
  ],
  ['INTENT_MISMATCH', 'TOOL_MISMATCH', 'TOOL_PARAMS_MISMATCH', 'EVIDENCE_MISSING', 'PRINCIPAL_MISMATCH'],
  ['TOOL_NOT_ALLOWED', 'EXECUTION_UNDER_DENY', 'GRANT_DENIED', 'AUTHORIZATION_REUSED', 'GRANT_EXPIRED'],
  ['EXECUTION_BEFORE_AUTHORIZATION', 'DELEGATION_EXCEEDED', 'METER_CAP_EXCEEDED', 'RESERVATION_EXCEEDED'],
  ['RESERVATION_OVER_CAP', 'RATE_LIMIT_EXCEEDED', 'CONCURRENCY_EXCEEDED', 'OUTPUT_MODE_EXCEEDED'],
  ['ALLOW_WITH_FAILED_CHECK', 'HYGIENE_NOT_OK', 'METER_UNCAPPED', 'RESOURCE_NOT_GRANTED', 'QUANTITY_LOSSY'],
  ['TIME_REGRESSION', 'HYGIENE_LOSSY', 'TIME_INCONSISTENT', 'INTENT_UNLINKED', 'GRANT_NOT_YET_VALID'],
  ['AUTHORIZATION_BEFORE_GRANT', 'ACTION_CAP_EXCEEDED', 'ADJUSTMENT_EXCEEDED', 'SELF_CREDIT'],
  [
    'EXECUTION_NOT_FOUND',
    'EXECUTION_NOT_UNDER_GRANT',
    'METER_UNREPORTED',
    'RELEASE_OF_STARTED',
    'ACTION_EXPIRED',
    'REQUEST_REPEATED',
  ],
  [
    'APPROVAL_NOT_FOUND',
    'APPROVAL_NOT_AN_APPROVAL',
    'APPROVAL_MISSING',
    'APPROVAL_REUSED',
    'APPROVAL_EXCEEDED',
  ],
  ['GRANT_REVOKED', 'SLICE_REUSED'],
].flat();

test('the verifier judges every ledger as the naive checker does', () => {
  const met = new Map<string, number>();
  const count = (what: string): unknown => met.set(what, (met.get(what) ?? 0) + 1);
  const seeds = fc.array(fc.nat(0xffff_ffff), { minLength: 1, maxLength: 30, size: 'max' });
  fc.assert(
    fc.property(seeds, fc.constantFrom(...TOPICS), (list, topic) => {
      const entries = makeSequence(list, topic);
      const naive = judgeNaively(entries);
      const expected = expectedReport(naive);
      expect(actualReport(entries)).toEqual(expected);
      for (const { verdict, findings } of expected.events) {
        count(verdict);
        for (const finding of findings) count(finding.split(' ')[0]);
      }
      for (const at of naive.retries) {
        count('taken over');
        if (naive.findings.some((finding) => finding.at === at && finding.code === 'METER_CAP_EXCEEDED'))
          count('taken over beyond a cap');
      }
      if (naive.running.length > 1) count('several run');
    }),
    {
      numRuns: RUNS,
      ...(SEED !== undefined && { seed: Number(SEED) }),
      ...(SEED_PATH !== undefined && { path: SEED_PATH }),
    },
  );
  if (SEED_PATH !== undefined || RUNS < 1_000) return;
  const verdicts = ['ok', 'denied', 'violation', 'invalid'];
  const happenings = ['taken over', 'taken over beyond a cap', 'several run'];
  const rare = [...CODES, ...verdicts, ...happenings].filter((what) => (met.get(what) ?? 0) < 5);
  expect(rare).toEqual([]);
});

/** A report as texts, so that what differs can be read. */
interface TextReport {
  readonly events: { readonly verdict: string; readonly findings: string[] }[];
  readonly grants: string[];
  readonly open: number[];
  readonly running: number[];
  readonly approvals: string[];
  readonly revocations: number[];
}

function expectedReport(report: NaiveReport): TextReport {
  const { verdicts, findings, grants, open, running, approvals, revocations } = report;
  return {
    events: verdicts.map((verdict, at) => ({
      verdict,
      findings: findings
        .filter((finding) => finding.at === at)
        .map(toText)
        .sort(),
    })),
    grants: grants.map(({ at, executions, meters }) => {
      const accounts = meters.map(({ unit, cap, used, estimated, reserved }) => {
        const left = subtract(subtract(cap, used), reserved);
        return `${unit} ${[cap, used, estimated, reserved, left].map(lowestTerms).join(' ')}`;
      });
      return [at, executions, ...accounts].join(', ');
    }),
    open: [...open],
    running: [...running],
    approvals: approvals.map(({ at, usedBy }) => `${at} by ${usedBy}`).sort(),
    revocations: [...revocations],
  };
}

function actualReport(entries: readonly Entry[]): TextReport {
  const { verdicts, findings, state } = judge(entries.map(({ event }) => event));
  const placeOf = (id: string): number => entries.findIndex(({ event }) => id.endsWith(event.event_id.b64));
  return {
    events: verdicts.map((verdict, at) => ({
      verdict,
      findings: findings[at]
        .map((finding) => toText({ ...partsOf(finding, entries[at]), at, folded: finding.folded ?? 0 }))
        .sort(),
    })),
    grants: listGrants(state).map(({ seq, executions, balances }) => {
      const accounts = balances.map(
        ({ unit, cap, used, estimated = { t: 'int', v: '0' }, reserved, left }) =>
          `${unit} ${[cap, used, estimated, reserved, left].map((each) => lowestTerms(valueOf(each))).join(' ')}`,
      );
      return [seq, executions, ...accounts].join(', ');
    }),
    open: listOpenAuthorizations(state).map(({ seq }) => seq),
    running: listOpenStarts(state).map(({ seq }) => seq),
    approvals: [...state.links.approvals.values()]
      .filter(({ usedBy }) => usedBy !== undefined)
      .map(({ place, usedBy }) => `${place.seq} by ${placeOf(usedBy as string)}`)
      .sort(),
    revocations: [...state.links.revocations].map(({ place }) => place.seq),
  };
}

function toText({
  code,
  part,
  about,
  folded,
}: Omit<NaiveFinding, 'cause'> & { readonly folded: number }): string {
  return [
    code,
    part,
    about === undefined ? undefined : `by ${about}`,
    folded > 0 ? `and ${folded} more` : undefined,
  ]
    .filter((text) => text !== undefined)
    .join(' ');
}

function partsOf(
  { code, at, expected = '', related }: Finding,
  { event }: Entry,
): Pick<NaiveFinding, 'code' | 'part' | 'about'> {
  const path = (at.pointer ?? '').split('/').slice(1);
  const [named] = expected.split(' ');
  const part = ((): string | undefined => {
    if (code === 'RATE_LIMIT_EXCEEDED') return named;
    if (code === 'DELEGATION_EXCEEDED') {
      const bound = path[2] ?? path[1];
      return ['meter_caps', 'action_caps', 'rate_limits'].includes(bound) ? `${bound} ${named}` : bound;
    }
    if (!/^(METER|RESERVATION|ACTION_CAP|ADJUSTMENT)_|^APPROVAL_EXCEEDED/.test(code)) return undefined;
    const meter = path
      .slice(0, -1)
      .reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], event);
    return (meter as { unit: string }).unit;
  })();
  return { code, part, about: related?.[0] && related[0].line - 1 };
}

function lowestTerms([n, d]: Fraction): string {
  let [a, b] = [d, n < 0n ? -n : n];
  while (b !== 0n) [a, b] = [b, a % b];
  return `${n / a}/${d / a}`;
}
