/**
 * `northroot/gate`: in the path of calls. It decides before a call, and settles after it.
 */

export { type Adviser, type AdviserAnswer, type AdvisedCall } from '../gate/advisers/adviser.js';
export {
  Gate,
  type CallName,
  type CallOutcome,
  type Coverage,
  type GateAnswer,
  type GateCall,
  type GateDecision,
  type GateOptions,
  type OpenCall,
  type Settled,
} from '../gate/gate.js';

export { cedarAdviser, type CedarModule, type CedarOptions } from '../gate/advisers/cedar.js';
export {
  authZenAdviser,
  opaAdviser,
  opaWasmAdviser,
  type HttpAdviserOptions,
  type OpaWasmPolicy,
} from '../gate/advisers/http.js';
export { serveGate, type GateServer, type ServeGateOptions } from '../gate/service/serve-gate.js';
export { type ServiceEvent } from '../gate/service/gate-service.js';
export { makeToken, Tokens, type TokenEntry, type TokenUse } from '../gate/service/tokens.js';
