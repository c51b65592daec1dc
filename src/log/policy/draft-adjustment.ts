/** Corrections of what counts as used under a grant (SPEC §3.5): refunds, provider bills. */

import { defined } from '../../base/defined.js';
import { type Digest, isDigest, tryParseDigest } from '../../base/value/digest.js';
import type { AmountsByUnit } from '../../base/value/meter.js';
import type { Draft } from '../../format/event/build.js';
import type { AdjustmentEvent, ContentRef, Source } from '../../format/schema/generated/types.js';
import { OptionReader } from './option-problems.js';

/** Exactly one of `credit` and `debit` is required. */
export interface AdjustmentOptions {
  /** `sha-256:…` */
  readonly grantId: string;
  /** Lowers what counts as used: `{ usd: '0.3' }`. A grantee MUST NOT credit its own grant. */
  readonly credit?: AmountsByUnit | undefined;
  readonly debit?: AmountsByUnit | undefined;
  /** 1 to 64 of `A-Z 0-9 _`, such as `REFUND`. */
  readonly reason: string;
  /** The corrected execution, `sha-256:…`. */
  readonly executionId?: string | undefined;
  readonly meterBasis?: NonNullable<AdjustmentEvent['meter_basis']> | undefined;
  /** A bill, a credit note. */
  readonly evidence?: ContentRef | undefined;
  /** Default: the ledger's `principalId`. */
  readonly principalId?: string | undefined;
  readonly source?: Source | undefined;
  /** SPEC §2. Default: when it is appended. */
  readonly occurredAt?: string | undefined;
}

const BASES: readonly unknown[] = ['measured', 'reported', 'estimated', 'billed'];

/**
 * Drafts an adjustment for `Ledger.append`. A credit counts when a key with the role `authority` signs it.
 * @throws OptionsError (a RangeError) listing all problems
 * @example
 * await ledger.append({ event: draftAdjustment({ grantId, credit: { usd: '0.3' }, reason: 'REFUND', principalId: 'human:anna' }) });
 */
export function draftAdjustment(options: AdjustmentOptions): Draft<AdjustmentEvent> {
  const reader = new OptionReader(options);
  const grant = readId(reader, options, 'grantId');
  const execution = reader.has('executionId') ? readId(reader, options, 'executionId') : undefined;
  const [direction, other] =
    options.debit === undefined ? (['credit', 'debit'] as const) : (['debit', 'credit'] as const);
  const meters = reader.amounts(direction);
  if (reader.has(other) && reader.has(direction))
    reader.refuse('credit', 'expected a credit or a debit, found both');
  else if (Object.keys(options[direction] ?? {}).length === 0)
    reader.refuse(direction, 'expected at least one unit and its amount, in a credit or a debit, found none');
  const isCode = (text: string): boolean => /^[A-Z0-9_]{1,64}$/.test(text);
  const reason = reader.text('reason', 'up to 64 of A-Z, 0-9 and _, such as REFUND', isCode, true);
  const isBasis = (value: unknown): value is NonNullable<AdjustmentEvent['meter_basis']> =>
    BASES.includes(value);
  const basis = reader.read('meterBasis', BASES.join(', '), isBasis);
  const isEvidence = (value: unknown): value is ContentRef => isDigest((value as ContentRef | null)?.digest);
  const evidence = reader.read('evidence', 'a reference to content, with its digest', isEvidence);
  const principalId = reader.principal('principalId');
  const source = reader.source('source');
  const occurredAt = reader.timestamp('occurredAt');
  reader.end();
  return {
    event_type: 'adjustment',
    grant_event_id: grant as Digest,
    direction,
    meters,
    reason: reason as string,
    ...defined({
      principal_id: principalId,
      occurred_at: occurredAt,
      execution_event_id: execution,
      meter_basis: basis,
      evidence,
      source,
    }),
  };
}

function readId(
  reader: OptionReader,
  options: AdjustmentOptions,
  option: 'grantId' | 'executionId',
): Digest | undefined {
  const text = reader.text(option, 'an event id, sha-256:…', (id) => tryParseDigest(id) !== undefined, true);
  return text === undefined ? undefined : tryParseDigest(options[option] as string);
}
