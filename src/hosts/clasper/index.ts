/** `northroot/hosts/clasper`: the adapter contract of Clasper, its records and an adapter that acts. */

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
