/** Whether a value is a whole and valid event (SPEC §2, §3): its shape, its values, and that both ids are its content's. */

import { NorthrootError } from '../error.js';
import { checkEvent, type ShapeIssue } from '../schema/check.js';
import { describeIssue, schemaOfEventType } from '../schema/issue-words.js';
import { toDigestText } from '../value/digest.js';
import { identifyEvent } from './identity.js';
import { findMisspelt } from './misspelt.js';

/** One fault of an event; `pointer` (RFC 6901) is from the event's root. */
export interface EventIssue {
  readonly code: ShapeIssue['code'] | 'PAYLOAD_DIGEST_MISMATCH' | 'EVENT_ID_MISMATCH';
  readonly pointer: string;
  readonly expected: string;
  readonly actual: string;
}

/** An event was refused: `code` is the first issue's, all of them are in `issues`. */
export class EventError extends NorthrootError {
  readonly issues: readonly [EventIssue, ...EventIssue[]];
  /** Each issue in words, with its place; the message has them all. */
  readonly faults: readonly string[];
  /** The name of the schema that the event has to have; undefined of an extension type, or where nobody can say. */
  readonly schema: string | undefined;

  /** The `event_type` that the event says, of whatever form. */
  readonly eventType: unknown;

  constructor(issues: readonly [EventIssue, ...EventIssue[]], eventType?: unknown, hint?: string) {
    const [{ code }] = issues;
    const faults = issues.map((issue) => describeIssue(issue, eventType));
    super(code, faults.join('; '), { hint });
    this.name = 'EventError';
    this.issues = issues;
    this.faults = faults;
    this.eventType = eventType;
    this.schema = schemaOfEventType(eventType);
  }
}

/**
 * Every fault of an event that carries its ids; empty when it is valid.
 *
 * @throws NorthrootError, TypeError when it is not canonical JSON at all (see `canonicalBytes`).
 */
export function validateEvent(event: object): EventIssue[] {
  const issues: EventIssue[] = checkEvent(event);
  const identity = identifyEvent(event);
  const compare = (
    code: 'PAYLOAD_DIGEST_MISMATCH' | 'EVENT_ID_MISMATCH',
    name: 'payload_digest' | 'event_id',
    actual: string,
  ): void => {
    const claimed = (event as Record<string, { b64?: unknown } | undefined>)[name]?.b64;
    if (issues.some((issue) => issue.pointer.startsWith(`/${name}`)) || claimed === actual) return;
    issues.push({
      code,
      pointer: `/${name}`,
      expected: toDigestText(actual),
      actual: toDigestText(String(claimed)),
    });
  };
  compare('PAYLOAD_DIGEST_MISMATCH', 'payload_digest', identity.payloadDigest);
  compare('EVENT_ID_MISMATCH', 'event_id', identity.eventId);
  return issues;
}

/** @throws EventError when {@link validateEvent} finds anything. */
export function assertEvent(event: object): void {
  assertNone(validateEvent(event), event);
}

/** The same for an event whose ids were just made. @throws EventError when its shape or its values are not valid. */
export function assertShape(event: object): void {
  assertNone(checkEvent(event), event);
}

function assertNone([first, ...rest]: EventIssue[], event: object): void {
  if (first === undefined) return;
  const tell = (issue: EventIssue): EventIssue => {
    const actual = issue.actual === 'absent' ? findMisspelt(event, issue.pointer) : undefined;
    return actual === undefined ? issue : { ...issue, actual };
  };
  throw new EventError(
    [tell(first), ...rest.map(tell)],
    (event as { readonly event_type?: unknown }).event_type,
  );
}
