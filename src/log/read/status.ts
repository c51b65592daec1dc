/**
 * A ledger's status on one screen: identity, period, keys, seals, open and expiring items, and what was not checked. Findings are counted,
 * not listed.
 */

import { presentTime } from '../../base/clock.js';
import { defined } from '../../base/defined.js';
import { checkOptions } from '../../base/options.js';
import { toRational } from '../../base/value/quantity.js';
import { compareRationals } from '../../base/value/rational.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import type { FindingJson, MeterDecimals, TrustPolicy } from '../../format/schema/generated/types.js';
import { decimalsOf } from '../../rules/report/accounts.js';
import { listKeys } from '../../rules/report/key-list.js';
import { buildLazyReport, type Report } from '../../rules/report/report.js';
import type { Anchor } from '../../rules/verify/anchors.js';
import { runVerification, type VerificationResult } from '../../rules/verify/run-verification.js';
import { type LedgerInput, openVerifiable } from './verify-ledger.js';

export interface StatusKey {
  readonly keyid: string;
  readonly name?: string;
  readonly roles: readonly string[];
  readonly principals: readonly string[];
  /** The adding record's seq; null for a pinned key. */
  readonly since_seq: number | null;
  readonly revoked_at_seq: number | null;
  /** Records with its valid signature. */
  readonly records: number;
}

/** A unit of a grant with at most a tenth left. */
export interface ScarceMeter {
  readonly grant_seq: number;
  readonly grant_event_id: string;
  readonly principal_id: string;
  readonly meter: Report['grants'][number]['meters'][number];
  /** As decimal texts. */
  readonly decimals: MeterDecimals;
}

/** The wire form, as `status --format json` prints it. */
export interface LedgerStatus extends Pick<
  Report,
  | 'ledger'
  | 'verdict'
  | 'exit_status'
  | 'checkpoints'
  | 'open_authorizations'
  | 'not_checked'
  | 'findings_total'
> {
  /** `occurred_at` of the first and last record; null if unreadable. */
  readonly period: { readonly first: string; readonly last: string } | null;
  readonly keys: readonly StatusKey[];
  readonly open_starts: NonNullable<Report['open_starts']>;
  /** Allowed, not expired and not withdrawn. */
  readonly grants: number;
  /** Allowed, not expired, and revoked or suspended. */
  readonly withdrawn: number;
  /** Of those grants. */
  readonly scarce: readonly ScarceMeter[];
  readonly worst_finding: FindingJson | null;
}

export interface LedgerStatusOptions {
  readonly trust?: TrustPolicy | undefined;
  readonly checkpoints?: readonly Anchor[] | undefined;
  /** Decides expiry. Default: the present. */
  readonly now?: string | undefined;
  /** Called with the bytes read, and the size if known. */
  readonly onProgress?: ((bytes: number, size: number | undefined) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A tenth. */
const SCARCE = 10n;

/** Verifies a whole ledger and summarises it. @throws NorthrootError when it cannot be read; TypeError, RangeError for a bad option */
export async function readLedgerStatus(
  ledger: LedgerInput,
  options: LedgerStatusOptions = {},
): Promise<LedgerStatus> {
  checkOptions('readLedgerStatus', options, {
    trust: 'object',
    checkpoints: 'array',
    now: 'string',
    onProgress: 'function',
    signal: 'signal',
  });
  const { now = presentTime() } = options;
  const source = await openVerifiable('readLedgerStatus', ledger);
  let period: readonly [unknown, unknown] | undefined;
  const result = await runVerification(source, {
    ...options,
    now,
    maxFindings: 1,
    onRecord: ({ examined }) => {
      const time = examined?.occurredAt;
      period = [period === undefined ? time : period[0], time];
      return undefined;
    },
  });
  return toLedgerStatus(result, period ?? [undefined, undefined], now);
}

/** @param period - `occurred_at` of the first and last record, if readable */
export function toLedgerStatus(
  result: VerificationResult,
  [first, last]: readonly [unknown, unknown],
  now: string,
): LedgerStatus {
  const report = buildLazyReport(result);
  const scarce: ScarceMeter[] = [];
  let current = 0;
  let withdrawn = 0;
  for (const grant of report.grants) {
    const { expires_at: end } = grant;
    if (end !== undefined && compareTimestamps(now, end) >= 0) continue;
    if (grant.withdrawn !== undefined) {
      withdrawn += 1;
      continue;
    }
    current += 1;
    scarce.push(...listScarce(grant));
  }
  const records = new Map(report.trust.signers.map((signer) => [signer.keyid, signer.records]));
  return {
    ledger: report.ledger,
    verdict: report.verdict,
    exit_status: report.exit_status,
    period: isTime(first) && isTime(last) ? { first, last } : null,
    keys: listKeys(result.state, result.state.policy).map(({ key, since, revoked }) => ({
      keyid: key.keyid,
      ...defined({ name: key.name }),
      roles: key.roles,
      principals: key.principals,
      since_seq: since?.seq ?? null,
      revoked_at_seq: revoked?.seq ?? null,
      records: records.get(key.keyid) ?? 0,
    })),
    checkpoints: report.checkpoints,
    grants: current,
    withdrawn,
    scarce,
    open_authorizations: [...report.open_authorizations],
    open_starts: report.open_starts ?? [],
    not_checked: report.not_checked,
    worst_finding: report.findings[0] ?? null,
    findings_total: report.findings_total,
  };
}

function listScarce({
  seq,
  event_id: id,
  principal_id: principal,
  meters,
}: Report['grants'][number]): ScarceMeter[] {
  return meters
    .filter(({ cap, left }) => {
      const { n, d } = toRational(left);
      return compareRationals({ n: n * SCARCE, d }, toRational(cap)) <= 0;
    })
    .map((meter) => ({
      grant_seq: seq,
      grant_event_id: id,
      principal_id: principal,
      meter,
      decimals: decimalsOf([meter])[meter.unit] ?? {},
    }));
}

function isTime(time: unknown): time is string {
  return typeof time === 'string' && isTimestamp(time);
}
