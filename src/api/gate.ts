/**
 * `northroot/gate`: in the path of calls. It decides before a call, and settles after it.
 */

export { type Adviser, type AdviserAnswer, type AdvisedCall } from '../gate/adviser.js';
export {
  Gate,
  type CallName,
  type CallOutcome,
  type Coverage,
  type GateCall,
  type GateDecision,
  type GateOptions,
  type OpenCall,
  type Settled,
} from '../gate/gate.js';

// Hooks of coding agents
export {
  type Desk as HookDesk,
  type DeskCall as HookDeskCall,
  type DeskDecision as HookDecision,
  type DeskOutcome as HookOutcome,
} from '../gate/hook/desk.js';
export { GateDesk } from '../gate/hook/gate-desk.js';
export { type HookOptions, hostTimeout } from '../gate/hook/options.js';
export {
  type HookCall,
  type HookName,
  type HookProfile,
  type HookSettings,
  type HookStep,
  type HookVerdict,
} from '../gate/hook/profile.js';
export { HOOK_PROFILES } from '../gate/hook/profiles.js';
export { type HookEvent, readEvent as readHookEvent } from '../gate/hook/read-event.js';
export { type HookAnswer, runHook } from '../gate/hook/run-hook.js';
export { hookCommand, installHooks, uninstallHooks } from '../gate/hook/settings.js';
export { WireDesk } from '../gate/hook/wire-desk.js';
