/** The calls that a ledger or another system's files show to have been made, for `simulateGrant`: their executions, in order. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions } from '../../base/options.js';
import { toDigestText } from '../../base/value/digest.js';
import { hasFormOfBlocked, hasFormOfRelease } from '../../rules/verify/authorizations.js';
import type { AuthorizationEvent, ExecutionEvent } from '../../format/schema/generated/types.js';
import { checkEvent } from '../../format/schema/check.js';
import { readRecords, type UnreadLine } from '../../log/read/read-records.js';
import type { MadeCall } from '../../log/policy/simulate.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import type { Host, HostPlace, HostReading } from './host.js';
import { planReading } from './import.js';

export interface RecordedCall extends MadeCall {
  readonly principalId: string;
  /** Of a record of a ledger. */
  readonly seq?: number | undefined;
  readonly at: HostPlace;
}

/**
 * The calls of another system's files, read by `readHost`. What was denied and not done is none.
 * @throws TypeError, RangeError as `readHost`
 */
export function callsOfReading(host: Host, reading: HostReading): RecordedCall[] {
  const finder = new CallFinder();
  return planReading(host, reading).events.flatMap(({ event, at }) => finder.take(event, { at }));
}

/**
 * The calls of a ledger, which is read and not verified. Releases and attempts that were blocked are none.
 * @throws NorthrootError `LEDGER_INVALID` for a line that is no record, and when the source cannot be read; the signal's reason;
 *   TypeError for a bad option
 */
export async function callsOfLedger(
  source: LedgerSource,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<RecordedCall[]> {
  checkOptions('callsOfLedger', options, { signal: 'signal' });
  const finder = new CallFinder();
  const calls: RecordedCall[] = [];
  for await (const { event, seq, file, line } of readRecords(source, { ...options, onUnread: refuse }))
    calls.push(...finder.take(event, { seq, at: { file, line } }));
  return calls;
}

/** A call that cannot be read could be one that is denied. */
function refuse({ file, line }: UnreadLine): never {
  throw new NorthrootError('LEDGER_INVALID', `${printable(file)}:${line} is no record`, {
    hint: 'verify the ledger',
  });
}

class CallFinder {
  readonly #denied = new Set<string>();
  readonly #seen = new Set<string>();

  take(value: object, place: Pick<RecordedCall, 'seq' | 'at'>): RecordedCall[] {
    const { event_type: type } = value as { readonly event_type?: unknown };
    if (type !== 'authorization' && type !== 'execution') return [];
    // A ledger is not verified: what has another shape says nothing.
    if (checkEvent(value).length > 0) return [];
    if (type === 'authorization') {
      const { decision, event_id: id } = value as AuthorizationEvent;
      if (decision === 'deny') this.#denied.add(toDigestText(id.b64));
      return [];
    }
    const event = value as ExecutionEvent;
    // A record that is repeated is no second call.
    if (this.#seen.has(event.event_id.b64)) return [];
    this.#seen.add(event.event_id.b64);
    const isDenied = this.#denied.has(toDigestText(event.auth_event_id.b64));
    if (hasFormOfRelease(event) || (isDenied && hasFormOfBlocked(event))) return [];
    const { tool_name: toolName, meter_used: meterUsed, principal_id: principalId } = event;
    const { started_at: startedAt, ended_at: endedAt, occurred_at: at, resources_touched: resources } = event;
    return [
      {
        ...place,
        principalId,
        toolName,
        startedAt: startedAt ?? endedAt ?? at,
        endedAt,
        meterUsed,
        resources,
      },
    ];
  }
}
