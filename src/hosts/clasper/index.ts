/** `northroot/hosts/clasper`: the adapter contract of Clasper, its records, an adapter that acts, and its server. */

export { clasper } from './clasper.js';
export {
  type AdapterRegistration,
  type BeginOptions,
  ClasperClient,
  type ClasperClientOptions,
  type ExecutionRequest,
} from './live/client.js';
export {
  type AllowedCall,
  type ClasperExecution,
  type ClasperGuardOptions,
  type ExecutionEnd,
  type ModelUse,
} from './live/client-execution.js';
export { ClasperDeniedError } from './live/denied.js';
export type { TokenSource } from './live/exchange.js';
export { clasperFace, type ClasperFaceOptions } from './live/face.js';
export { type Exchange, writeExchange } from './live/recording.js';
export type { CircuitOptions } from '../shared/live/circuit-breaker.js';
export { type CallReport, UnsettledCallError } from '../shared/live/run-decided.js';
