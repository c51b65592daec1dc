/** Whether a value is a whole and valid event (SPEC §2, §3): its shape, its values, and that both ids are its content's. */

import { NorthrootError } from '../../base/error.js';
import type { ValueFault } from '../../base/fault.js';
import { toDigestText } from '../../base/value/digest.js';
import { checkEvent, type ShapeCode } from '../schema/check.js';
import { describeFault, schemaOfEventType } from '../schema/fault-words.js';
import { identifyEvent } from './identity.js';
import { findMisspelt } from './misspelt.js';

/** The codes that the faults of an event can have. */
export type EventFaultCode = ShapeCode | 'PAYLOAD_DIGEST_MISMATCH' | 'EVENT_ID_MISMATCH';

/** Pointers are from the event's root. */
type EventFault = ValueFault<EventFaultCode>;

/** An event was refused: `code` is the first fault's, all of them are in `faults`. */
export class EventError extends NorthrootError {
  readonly faults: readonly [EventFault, ...EventFault[]];
  /** Each fault in words, with its place; the message has them all. */
  readonly messages: readonly string[];
  /** The name of the schema that the event has to have; undefined of an extension type, or where nobody can say. */
  readonly schema: string | undefined;

  /** The `event_type` that the event says, of whatever form. */
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
 * Every fault of an event that carries its ids; empty when it is valid.
 *
 * @throws NorthrootError, TypeError when it is not canonical JSON at all (see `canonicalBytes`).
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

/** Throws unless an event is valid. @throws EventError when {@link validateEvent} finds anything. */
export function assertEvent(event: object): void {
  assertNone(validateEvent(event), event);
}

/** The same for an event whose ids were just made. @throws EventError when its shape or its values are not valid. */
export function assertShape(event: object): void {
  assertNone(checkEvent(event), event);
}

function assertNone([first, ...rest]: EventFault[], event: object): void {
  if (first === undefined) return;
  const tell = (fault: EventFault): EventFault => {
    const actual = fault.actual === 'absent' ? findMisspelt(event, fault.pointer) : undefined;
    return actual === undefined ? fault : { ...fault, actual };
  };
  throw new EventError(
    [tell(first), ...rest.map(tell)],
    (event as { readonly event_type?: unknown }).event_type,
  );
}
