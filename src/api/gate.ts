/**
 * `northroot/gate`: in the path of calls. It decides before a call, and settles after it.
 */

export { type Adviser, type AdviserAnswer, type AdvisedCall } from '../gate/adviser.js';
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
