/** Types of well-formed events: the one place where JSON that passed a schema gets the schema's type. */

import { isKnownEventType } from '../schema/check.js';
import type {
  AdjustmentEvent,
  ApprovalEvent,
  AttestationEvent,
  AuthorizationEvent,
  CheckpointEvent,
  EventEnvelope,
  ExecutionEvent,
  GenesisEvent,
  KeyEvent,
  RevocationEvent,
} from '../schema/generated/types.js';

/** The types of SPEC §3 by name; `other` is any other type. */
export interface EventTypes {
  readonly genesis: GenesisEvent;
  readonly authorization: AuthorizationEvent;
  readonly execution: ExecutionEvent;
  readonly adjustment: AdjustmentEvent;
  readonly approval: ApprovalEvent;
  readonly revocation: RevocationEvent;
  readonly checkpoint: CheckpointEvent;
  readonly attestation: AttestationEvent;
  readonly key: KeyEvent;
  readonly other: EventEnvelope;
}

export type TypeName = keyof EventTypes;

type TypedEvent = {
  readonly [T in TypeName]: { readonly type: T; readonly event: EventTypes[T] };
}[TypeName];

export type AnyTypeOfEvent = Readonly<Record<string, unknown>> | EventTypes[TypeName];

export function typeNameOf(eventType: unknown): TypeName {
  return typeof eventType === 'string' && isKnownEventType(eventType) ? (eventType as TypeName) : 'other';
}

/** Types an event, which MUST have passed `checkEvent`. */
export function typeEvent(event: AnyTypeOfEvent): TypedEvent {
  return { type: typeNameOf(event.event_type), event } as TypedEvent;
}
