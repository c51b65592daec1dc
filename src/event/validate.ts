/** Whether a value is a whole and valid event (SPEC §2, §3): its shape, its values, and that both ids are its content's. */

import { NorthrootError } from '../error.js';
import { checkEvent, type ShapeIssue } from '../schema/check.js';
import { identifyEvent } from './identity.js';

/** One fault of an event; `pointer` (RFC 6901) is from the event's root. */
export interface EventIssue {
  readonly code: ShapeIssue['code'] | 'PAYLOAD_DIGEST_MISMATCH' | 'EVENT_ID_MISMATCH';
  readonly pointer: string;
  readonly expected: string;
  readonly actual: string;
}

/** So many issues are in the message of an {@link EventError}. */
const MAX_SHOWN = 8;

function describeIssue({ pointer, expected, actual }: EventIssue): string {
  const place = pointer === '' ? 'the event' : pointer;
  const [, type] = /^present(?: \((.*)\))?$/.exec(expected) ?? [];
  if (expected === 'no such member') return `${place}: unknown member`;
  if (expected.startsWith('present')) return `${place} is missing${type === undefined ? '' : ` (${type})`}`;
  return `${place}: expected ${expected}, found ${actual}`;
}

/** An event was refused: `code` is the first issue's, all of them are in `issues`. */
export class EventError extends NorthrootError {
  readonly issues: readonly EventIssue[];

  constructor(issues: readonly [EventIssue, ...EventIssue[]]) {
    const [{ code }] = issues;
    const more = issues.length - MAX_SHOWN;
    const shown = issues.slice(0, MAX_SHOWN).map(describeIssue).join('; ');
    super(code, more > 0 ? `${shown}; and ${more} more` : shown, {
      exitStatus: 1,
      hint: `northroot explain ${code}`,
    });
    this.name = 'EventError';
    this.issues = issues;
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
      expected: `sha-256:${actual}`,
      actual: `sha-256:${String(claimed)}`,
    });
  };
  compare('PAYLOAD_DIGEST_MISMATCH', 'payload_digest', identity.payloadDigest);
  compare('EVENT_ID_MISMATCH', 'event_id', identity.eventId);
  return issues;
}

/** @throws EventError when {@link validateEvent} finds anything. */
export function assertEvent(event: object): void {
  assertNone(validateEvent(event));
}

/** The same for an event whose ids were just made. @throws EventError when its shape or its values are not valid. */
export function assertShape(event: object): void {
  assertNone(checkEvent(event));
}

function assertNone([first, ...rest]: EventIssue[]): void {
  if (first !== undefined) throw new EventError([first, ...rest]);
}
