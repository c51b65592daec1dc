/**
 * A ledger's status on one screen: identity, period, keys, seals, open and expiring items, and what was not checked. Findings are counted,
 * not listed.
 */

import { decodeUtf8 } from '../../base/bytes/text.js';
import { checkOptions } from '../../base/options.js';
import { toRational } from '../../base/value/quantity.js';
import { compareRationals } from '../../base/value/rational.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { FindingJson, MeterDecimals, TrustPolicy } from '../../format/schema/generated/types.js';
import { decimalsOf } from '../../rules/report/accounts.js';
import { listKeys } from '../../rules/report/key-list.js';
import { buildLazyReport, type Report } from '../../rules/report/report.js';
import type { LedgerSource, Segment } from '../../rules/source/ledger-source.js';
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
  /** Allowed and not expired. */
  readonly grants: number;
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
  const { now = new Date().toISOString() } = options;
  const ends = new LineEnds();
  const source = await openVerifiable('readLedgerStatus', ledger);
  const result = await runVerification(ends.watch(source), { ...options, now, maxFindings: 1 });
  return toLedgerStatus(result, ends, now);
}

/** The first and last whole line. */
interface OuterLines {
  readonly first: Uint8Array | undefined;
  readonly last: Uint8Array | undefined;
}

export function toLedgerStatus(result: VerificationResult, ends: OuterLines, now: string): LedgerStatus {
  const report = buildLazyReport(result);
  const [first, last] = [occurredAt(ends.first), occurredAt(ends.last)];
  const scarce: ScarceMeter[] = [];
  let current = 0;
  for (const grant of report.grants) {
    const { expires_at: end } = grant;
    if (end !== undefined && compareTimestamps(now, end) >= 0) continue;
    current += 1;
    scarce.push(...listScarce(grant));
  }
  const records = new Map(report.trust.signers.map((signer) => [signer.keyid, signer.records]));
  return {
    ledger: report.ledger,
    verdict: report.verdict,
    exit_status: report.exit_status,
    period: first === undefined || last === undefined ? null : { first, last },
    keys: listKeys(result.state, result.state.policy).map(({ key, since, revoked }) => ({
      keyid: key.keyid,
      ...(key.name === undefined ? {} : { name: key.name }),
      roles: key.roles,
      principals: key.principals,
      since_seq: since?.seq ?? null,
      revoked_at_seq: revoked?.seq ?? null,
      records: records.get(key.keyid) ?? 0,
    })),
    checkpoints: report.checkpoints,
    grants: current,
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

function occurredAt(line: Uint8Array | undefined): string | undefined {
  if (line === undefined) return undefined;
  try {
    const value = JSON.parse(decodeUtf8(line)) as Record<string, unknown> | null;
    const { occurred_at: time } = (value?.['event'] ?? value ?? {}) as { readonly occurred_at?: unknown };
    return typeof time === 'string' && isTimestamp(time) ? time : undefined;
  } catch {
    return undefined;
  }
}

const NEWLINE = 0x0a;

/** Keeps the first and last whole line of what passes through. */
class LineEnds {
  first: Uint8Array | undefined;
  last: Uint8Array | undefined;
  /** Bytes since the last newline, at most one more than a line may have. */
  #tail = new Uint8Array();

  watch(source: LedgerSource): LedgerSource {
    return { ...source, segments: this.#segments(source.segments) };
  }

  async *#segments(segments: AsyncIterable<Segment>): AsyncGenerator<Segment, void, void> {
    for await (const segment of segments) {
      this.#tail = new Uint8Array();
      yield { ...segment, chunks: this.#chunks(segment.chunks) };
    }
  }

  async *#chunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of chunks) {
      this.#see(chunk);
      yield chunk;
    }
  }

  #see(chunk: Uint8Array): void {
    const end = chunk.lastIndexOf(NEWLINE);
    if (end === -1) {
      this.#tail = this.#join(chunk);
      return;
    }
    if (this.first === undefined) this.first = this.#join(chunk.subarray(0, chunk.indexOf(NEWLINE)));
    const before = end === 0 ? -1 : chunk.lastIndexOf(NEWLINE, end - 1);
    const last = before === -1 ? this.#join(chunk.subarray(0, end)) : chunk.slice(before + 1, end);
    if (last.length > 0) this.last = last;
    this.#tail = chunk.slice(end + 1, end + MAX_LINE_BYTES + 2);
  }

  #join(rest: Uint8Array): Uint8Array<ArrayBuffer> {
    const joined = new Uint8Array(Math.min(this.#tail.length + rest.length, MAX_LINE_BYTES + 1));
    joined.set(this.#tail);
    joined.set(rest.subarray(0, joined.length - this.#tail.length), this.#tail.length);
    return joined;
  }
}
