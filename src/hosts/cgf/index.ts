/** `northroot/hosts/cgf`: CGF HostAdapter, its records, a HostAdapter that acts, and its server. */

export { cgf } from './cgf.js';
export { cgfFace, type CgfFaceOptions } from './live/face.js';
export {
  type ActionOutcome,
  type AllowedAction,
  CgfAdapter,
  type CgfAction,
  type CgfAdapterOptions,
  type CgfAudit,
  CgfDeniedError,
  type CgfGuardOptions,
  type CgfHostConfig,
  type ConstraintHandler,
  grantsWhereAny,
} from './live/adapter.js';
export type { LiveDecision } from './live/decision.js';
export type { EventSink, LiveVocabulary } from './live/event-log.js';
export type { FailModeRow } from './live/fail-modes.js';
export type { CircuitOptions } from '../shared/live/circuit-breaker.js';
export { UnsettledCallError } from '../shared/live/run-decided.js';
