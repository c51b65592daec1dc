/** Validation of a whole event (SPEC §2, §3): its shape, its values, and both ids. */

import { NorthrootError } from '../../base/error.js';
import type { ValueFault } from '../../base/fault.js';
import { toDigestText } from '../../base/value/digest.js';
import { checkEvent, type ShapeCode } from '../schema/check.js';
import { describeFault, schemaOfEventType } from '../schema/fault-words.js';
import { identifyEvent } from './identity.js';
import { findMisspelt } from './misspelt.js';

export type EventFaultCode = ShapeCode | 'PAYLOAD_DIGEST_MISMATCH' | 'EVENT_ID_MISMATCH';

/** Pointers are from the event's root. */
type EventFault = ValueFault<EventFaultCode>;

/** An event was refused. `code` is that of the first fault; `faults` has all of them. */
export class EventError extends NorthrootError {
  readonly faults: readonly [EventFault, ...EventFault[]];
  /** Each fault in words, with its place; the message joins them. */
  readonly messages: readonly string[];
  /** The name of the event's schema; undefined for an extension or unknown type. */
  readonly schema: string | undefined;
  /** The event's `event_type`, of any form. */
  readonly eventType: unknown;

  constructor(faults: readonly [EventFault, ...EventFault[]], eventType?: unknown, hint?: string) {
    const [{ code }] = faults;
    const messages = faults.map((fault) => describeFault(fault, eventType));
    super(code, messages.join('; '), { hint });
    this.name = 'EventError';
    this.faults = faults;
    this.messages = messages;
    this.eventType = eventType;
    this.schema = schemaOfEventType(eventType);
  }
}

/**
 * Every fault of an event with its ids; empty if it is valid.
 *
 * @throws NorthrootError, TypeError if it has no canonical JSON (see `canonicalBytes`).
 */
export function validateEvent(event: object): EventFault[] {
  const faults: EventFault[] = checkEvent(event);
  const identity = identifyEvent(event);
  const compare = (
    code: 'PAYLOAD_DIGEST_MISMATCH' | 'EVENT_ID_MISMATCH',
    name: 'payload_digest' | 'event_id',
    actual: string,
  ): void => {
    const claimed = (event as Record<string, { b64?: unknown } | undefined>)[name]?.b64;
    if (faults.some((fault) => fault.pointer.startsWith(`/${name}`)) || claimed === actual) return;
    faults.push({
      code,
      pointer: `/${name}`,
      expected: toDigestText(actual),
      actual: toDigestText(String(claimed)),
    });
  };
  compare('PAYLOAD_DIGEST_MISMATCH', 'payload_digest', identity.payloadDigest);
  compare('EVENT_ID_MISMATCH', 'event_id', identity.eventId);
  return faults;
}

/** Throws unless an event is valid. @throws EventError with the faults of {@link validateEvent}. */
export function assertEvent(event: object): void {
  assertNone(validateEvent(event), event);
}

/** {@link assertEvent} without the ids. */
export function assertShape(event: object): void {
  assertNone(checkEvent(event), event);
}

function assertNone([first, ...rest]: EventFault[], event: object): void {
  if (first === undefined) return;
  const withMisspelt = (fault: EventFault): EventFault => {
    const actual = fault.actual === 'absent' ? findMisspelt(event, fault.pointer) : undefined;
    return actual === undefined ? fault : { ...fault, actual };
  };
  throw new EventError(
    [withMisspelt(first), ...rest.map(withMisspelt)],
    (event as { readonly event_type?: unknown }).event_type,
  );
}
