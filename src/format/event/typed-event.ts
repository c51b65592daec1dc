/** Well-formed events by their types: the one place where JSON that a schema has passed gets the type that the schema stands for. */

import { isKnownEventType } from '../schema/check.js';
import type {
  AdjustmentEvent,
  AttestationEvent,
  AuthorizationEvent,
  CheckpointEvent,
  EventEnvelope,
  ExecutionEvent,
  GenesisEvent,
  KeyEvent,
} from '../schema/generated/types.js';

/** The types of SPEC §3 by name; `other` is every extension type and every one that is not known. */
export interface EventTypes {
  readonly genesis: GenesisEvent;
  readonly authorization: AuthorizationEvent;
  readonly execution: ExecutionEvent;
  readonly adjustment: AdjustmentEvent;
  readonly checkpoint: CheckpointEvent;
  readonly attestation: AttestationEvent;
  readonly key: KeyEvent;
  readonly other: EventEnvelope;
}

/** The name of a type that has a schema of its own, or `other`. */
export type TypeName = keyof EventTypes;

/** An event whose type is known by `type`. */
export type TypedEvent = {
  readonly [T in TypeName]: { readonly type: T; readonly event: EventTypes[T] };
}[TypeName];

/** Any event, however it is typed. */
export type AnyTypeOfEvent = Readonly<Record<string, unknown>> | EventTypes[TypeName];

/** Which of the types an `event_type` names. */
export function typeNameOf(eventType: unknown): TypeName {
  return typeof eventType === 'string' && isKnownEventType(eventType) ? (eventType as TypeName) : 'other';
}

/** @param event - One that `checkEvent` finds nothing wrong with; nothing is checked here. */
export function typeEvent(event: AnyTypeOfEvent): TypedEvent {
  return { type: typeNameOf(event.event_type), event } as TypedEvent;
}
